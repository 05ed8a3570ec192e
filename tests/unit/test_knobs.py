"""`triton.knobs`: other names of environment variables and of the functions that are called around launches."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import knobs


@triton.jit
def doubled(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * 2, mask=offsets < n)


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    with knobs.runtime.scope(), knobs.autotuning.scope(), knobs.language.scope(), knobs.cache.scope():
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
    assert first["repr"].startswith("doubled[num_warps=2](x_ptr: *fp32")


def test_what_does_not_exist() -> None:
    assert not hasattr(knobs, "amd") and not hasattr(knobs.runtime, "add_stages_inspection_hook")
    with pytest.raises(AttributeError, match=r"no setting knobs.language.fp64_default; it has fp32_default"):
        knobs.language.fp64_default = "ieee"
    assert "interpret" in dir(knobs.runtime)
