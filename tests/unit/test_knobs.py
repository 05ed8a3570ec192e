"""`triton.knobs`: other names of environment variables and of the functions that are called around launches."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import knobs
from tilewright.runtime.hooks import Hooks


@triton.jit
def doubled(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * 2, mask=offsets < n)


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    with contextlib.ExitStack() as stack:
        for group in (knobs.runtime, knobs.autotuning, knobs.compilation, knobs.language, knobs.cache):
            stack.enter_context(group.scope())
        yield


def test_the_names_of_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.delenv("TILEWRIGHT_MODE")
    assert triton.knobs is knobs and knobs.runtime.interpret is False and knobs.autotuning.cache is True
    x = np.ones(8, np.float32)
    with knobs.runtime.scope():
        knobs.runtime.interpret = True
        assert os.environ["TRITON_INTERPRET"] == "1" and doubled[(1,)](x, 8, BLOCK=8) is None, "nothing was compiled"
    assert knobs.runtime.interpret is False and "TRITON_INTERPRET" not in os.environ
    knobs.language.fp32_default = "ieee"
    assert os.environ["TRITON_F32_DEFAULT"] == knobs.language.fp32_default == "ieee"
    knobs.language.fp32_default = None
    assert "TRITON_F32_DEFAULT" not in os.environ


def test_functions_around_launches() -> None:
    x, seen = np.ones(8, np.float32), []
    enter, leave = (lambda told: seen.append(told.get()["name"])), (lambda told: seen.append("end"))
    knobs.runtime.launch_enter_hook.add(enter)
    knobs.runtime.launch_exit_hook = leave
    for _ in range(3):
        doubled[(1,)](x, 8, BLOCK=8)
    assert seen == ["doubled", "end"] * 3
    knobs.runtime.launch_enter_hook.remove(enter)
    knobs.runtime.launch_exit_hook = None
    doubled[(1,)](x, 8, BLOCK=8)
    assert len(seen) == 6 and knobs.runtime.launch_exit_hook.calls == []


def test_a_function_that_takes_itself_out() -> None:
    seen: list[str] = []
    hooks = Hooks()

    def once(about: str) -> None:
        seen.append(f"once {about}")
        hooks.enter.remove(once)

    hooks.enter += [once, lambda about: seen.append(f"always {about}")]
    for about in ("a", "b"):
        hooks.begin(about)
    assert seen == ["once a", "always a", "always b"]


def test_a_function_after_compilations() -> None:
    told: list[dict[str, Any]] = []
    knobs.runtime.jit_post_compile_hook = lambda **facts: told.append(facts)
    x = np.ones(64, np.float32)
    for block in (16, 16, 32):
        doubled[(1,)](x, 16, BLOCK=block, num_warps=2)
    doubled.warmup(x, 16, BLOCK=64)
    assert [facts["is_manual_warmup"] for facts in told] == [False, False, True]
    first = told[0]
    assert first["fn"].name == "doubled" and first["fn"].jit_function is doubled and first["fn"].module == __name__
    assert first["compile"]["num_warps"] == 2 and first["compile"]["signature"]["BLOCK"] == "16"
    assert first["repr"].startswith("doubled[num_warps=2, num_ctas=1, ") and "](x_ptr: *fp32" in first["repr"]
    assert first["key"] == first["compile"]["key"] and first["compile"]["constants"] == {"BLOCK": 16}


def test_a_function_before_compilations_can_leave_the_launch_out() -> None:
    told: list[dict[str, Any]] = []

    def refuse(**facts: Any) -> bool:
        told.append(facts)
        return facts["compile"]["signature"]["BLOCK"] == "512"

    knobs.runtime.jit_cache_hook = refuse
    x = np.ones(512, np.float32)
    for _ in range(2):
        assert doubled[(1,)](x, 512, BLOCK=512) is None and (x == 1).all()
        assert doubled[(1,)](x, 256, BLOCK=256, num_warps=1) is not None
        x[:] = 1
    knobs.runtime.jit_cache_hook = None
    assert [facts["compile"]["signature"]["BLOCK"] for facts in told] == ["512", "256", "512"], "256 is known at last"
    assert not any(facts["already_compiled"] for facts in told) and {facts["compile"]["device"] for facts in told} == {
        0
    }
    assert doubled[(1,)](x, 512, BLOCK=512) is not None and (x == 2).all()


def test_functions_around_loading() -> None:
    seen: list[tuple[Any, ...]] = []
    for chain, word in ((knobs.runtime.kernel_load_start_hook, "start"), (knobs.runtime.kernel_load_end_hook, "end")):
        for number in (1, 2):
            chain.add(lambda *told, word=word, number=number: seen.append((word, number, *told[2:])))
    x = np.ones(64, np.float32)
    for _ in range(3):
        compiled = doubled[(1,)](x, 64, BLOCK=64, num_warps=8)
    about = ("doubled", {}, compiled.hash)
    assert seen == [("start", 1, *about), ("start", 2, *about), ("end", 2, *about), ("end", 1, *about)]


@pytest.mark.parametrize(
    ("on", "off"), [("1", "0"), ("true", "False"), ("YES", "no"), ("On", "off"), ("y", "n"), ("1", "")]
)
def test_words_that_switch(on: str, off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for word, expected in ((on, True), (off, False)):
        monkeypatch.setenv("TRITON_DEBUG", word)
        monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", word)
        knobs.refresh_knobs()
        assert knobs.runtime.debug is knobs.language.default_fp_fusion is expected
        compiled = doubled[(1,)](np.ones(32, np.float32), 32, BLOCK=32)
        assert compiled.metadata.debug is compiled.metadata.enable_fp_fusion is expected
        own = doubled[(1,)](np.ones(32, np.float32), 32, BLOCK=32, enable_fp_fusion=not expected)
        assert own.metadata.enable_fp_fusion is not expected, "the launch's own word counts"


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("TRITON_F32_DEFAULT", "TRITON_F32_DEFAULT is 'bogus'; it must be one of tf32, tf32x3, ieee"),
        ("TILEWRIGHT_VERIFY", "TILEWRIGHT_VERIFY is 'bogus'; it must be 0 or 1"),
    ],
)
def test_words_that_there_are_not(variable: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "bogus")
    doubled.device_caches.clear()
    with pytest.raises(triton.TilewrightError, match=said):
        doubled[(1,)](np.ones(32, np.float32), 32, BLOCK=32)


def test_nothing_is_taken_from_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TILEWRIGHT_VERIFY", raising=False)
    monkeypatch.setenv("TILEWRIGHT_LOG", "compile")
    knobs.cache.dir = tmp_path
    taken = []
    for always in (False, False, True):
        knobs.compilation.always_compile = always
        doubled.device_caches.clear()
        doubled.warmup(tl.float32, 16, BLOCK=16)
        taken.append("translation from the cache" in capsys.readouterr().err)
    assert taken == [False, True, False]


def test_the_folder_of_the_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert knobs.cache.dir == str(tmp_path / "xdg" / "tilewright")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    assert knobs.cache.dir == str(tmp_path / "triton" / "tilewright"), "what a program sets for Triton's counts too"
    knobs.cache.dir = tmp_path / "own"
    assert knobs.cache.dir == str(tmp_path / "own")


def test_who_listens_to_tunings(tmp_path: Path) -> None:
    knobs.cache.dir = tmp_path
    told: list[dict[str, Any]] = []
    knobs.autotuning.listener = lambda **facts: told.append(facts)

    def measured(call: Any, quantiles: Any) -> list[float]:
        call()
        return [1.0, 1.0, 1.0]

    configs = [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})]
    tuned = triton.autotune(configs, ["n"], do_bench=measured, cache_results=True)(doubled)
    x = np.ones(16, np.float32)
    for _ in range(2):
        tuned[(1,)](x, 16)
    tuned.cache.clear()
    tuned[(1,)](x, 16)
    triton.autotune(configs[:1], ["n"], do_bench=measured)(doubled)[(1,)](x, 16)
    assert [facts["cache_hit"] for facts in told] == [False, True], "nothing where nothing was looked for"
    assert (
        told[0]["fn"] is doubled
        and told[0]["best_config"] in configs
        and set(told[0]["configs_timings"]) == set(configs)
    )
    assert told[0]["duration"] > 0 and told[1]["duration"] is None and told[0]["key"] == told[1]["key"]


def test_what_cannot_be_called() -> None:
    with pytest.raises(triton.LaunchError, match="a hook must be a function or None, not 5"):
        knobs.runtime.launch_enter_hook = 5
    with pytest.raises(triton.LaunchError, match="a hook must be a function or None, not 'print'"):
        knobs.runtime.launch_exit_hook.add("print")
    assert not knobs.runtime.launch_enter_hook.calls and not knobs.runtime.launch_exit_hook.calls


def test_what_does_not_exist() -> None:
    assert not hasattr(knobs, "amd") and not hasattr(knobs.runtime, "add_stages_inspection_hook")
    with pytest.raises(AttributeError, match=r"no setting knobs.language.fp64_default; it has fp32_default"):
        knobs.language.fp64_default = "ieee"
    assert "interpret" in dir(knobs.runtime)


@triton.jit
def checked(x_ptr):
    tl.device_assert(tl.load(x_ptr) == 1, "it is not 1")


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
@pytest.mark.parametrize("option", (True, False, None))
@pytest.mark.parametrize("of_kernel", (True, False, None))
@pytest.mark.parametrize("variable", ("1", "0"))
def test_who_asks_for_assertions(
    mode: str, option: bool | None, of_kernel: bool | None, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    monkeypatch.setenv("TRITON_DEBUG", variable)
    kernel = triton.JITFunction(checked.fn, debug=of_kernel)
    options = {} if option is None else {"debug": option}
    asked = variable == "1" or (of_kernel if option is None else option)
    kernel[(1,)](np.ones(1, np.int32), **options)
    with pytest.raises(RuntimeError) if asked else contextlib.nullcontext():
        kernel[(1,)](np.zeros(1, np.int32), **options)
