"""What `autotune`, `heuristics` and `Config` are given to call and to count with: used, or an error of what to write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.diagnostics import OutOfResources, TuningArgumentError
from tilewright.runtime.tuning import store as autotune_store
from tuned_kernels import BLOCKS, N, count_measurements, grid, increment, tuned


@pytest.fixture(autouse=True)
def fresh_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cache of its own for every test, on the CPU."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setattr(autotune_store, "_loaded", {})


def test_pruning() -> None:
    configs = [triton.Config({"BLOCK": 1 << size}) for size in range(10)]
    seen: dict[str, Any] = {}

    def early(given: list[triton.Config], named: dict[str, Any], **kwargs: Any) -> list[triton.Config]:
        seen.update(named=set(named), n=kwargs["n"])
        return given[:6]

    def model(**arguments: Any) -> float:
        return -float(arguments["BLOCK"])

    kernel = tuned(
        increment, configs, prune_configs_by={"early_config_prune": early, "perf_model": model, "top_k": 0.5}
    )
    kernel[grid](np.zeros(N, np.float32), n=N)
    assert seen == {"named": {"x_ptr"}, "n": N}
    assert set(kernel.configs_timings) == {configs[5], configs[4], configs[3]}
    kernel = tuned(increment, prune_configs_by={"perf_model": model, "top_k": 0.1})
    kernel[grid](np.zeros(N, np.float32), N)
    assert kernel.best_config is BLOCKS[1]
    with pytest.raises(TypeError, match="top_k"):
        tuned(increment, prune_configs_by={"perf_model": model, "top_k": 2.5})[grid](np.zeros(N, np.float32), N)


@pytest.mark.parametrize(
    ("pruning", "said"),
    [
        ({"early_config_prune": lambda configs, named, **kwargs: None}, r"returned None; it must return .*\n.*{place}"),
        ({"early_config_prune": lambda configs, named, **kwargs: [64]}, r"returned \[64\]; it must return a list"),
        ({"early_config_prune": lambda configs: configs}, r"takes \(configs\): too many positional .*\n.*{place}"),
        ({"early_config_prune": lambda configs, named: configs}, r"unexpected keyword argument 'grid'\n.*{place}"),
        (
            {"early_config_prune": True},
            "early_config_prune of prune_configs_by is True; it must be a function, called as",
        ),
        (
            {"perf_model": lambda n: n, "top_k": 1},
            r"perf_model\(\*\*arguments\), and <lambda> takes \(n\).*\n.*{place}",
        ),
        (
            {"perf_model": lambda **arguments: None, "top_k": 1},
            r"returned None; it must return an estimated time\n.*{place}",
        ),
        (
            {"perf_model": lambda **arguments: 1.0, "top_k": 0},
            "top_k of prune_configs_by is 0; it must be a count from 1",
        ),
        (
            ["early_config_prune"],
            "prune_configs_by of autotune is .*; it must be a dict with the keys early_config_prune",
        ),
    ],
)
def test_what_cannot_prune(pruning: Any, said: str) -> None:
    with pytest.raises(TuningArgumentError, match=said.format(place=rf"{Path(__file__).name}:\d+$")):
        tuned(increment, prune_configs_by=pruning)[grid](np.zeros(N, np.float32), N)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        # Arguments that other versions of Triton took by position: here the milliseconds of a warm-up.
        ({"restore_value": 25}, "restore_value of autotune is 25; it must be a list of names of parameters"),
        ({"key": "x_size"}, "key of autotune is 'x_size'; it must be a list"),
        ({"configs": triton.Config({})}, "configs of autotune is .*; it must be a list of triton.Config"),
    ],
)
def test_what_is_no_list(options: dict[str, Any], said: str) -> None:
    with pytest.raises(TuningArgumentError, match=said):
        triton.autotune(**{"configs": [], "key": [], **options})(increment)


def test_a_key_of_pruning_that_there_is_not() -> None:
    """Triton passes over it."""
    misspelled = {"early_config_prun": lambda configs, named, **kwargs: configs[1:]}
    with pytest.warns(RuntimeWarning, match="'early_config_prun'; did you mean early_config_prune[?]") as caught:
        kernel = tuned(increment, prune_configs_by=misspelled)
    assert caught[0].filename.endswith("tuned_kernels.py")  # where the decorator stands
    kernel[grid](np.zeros(N, np.float32), N)
    assert set(kernel.configs_timings) == set(BLOCKS)


@triton.jit
def increment_part(x_ptr, sides, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < sides[0]) + 1, mask=i < sides[0])


def test_values_of_a_key_that_nothing_can_be_looked_up_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are tuples for kernels, and so for the key; of an array it says so."""
    counted, x = count_measurements(monkeypatch), np.zeros(N, np.float32)
    kernel = tuned(increment_part, key=("sides",), cache_results=False)
    for sides in ([N, [2]], (N, (2,)), [N, [2]]):
        kernel[(triton.cdiv(N, 32),)](x, sides)
    assert len(counted) == 1 and (x == 3).all() and list(kernel.cache) == [((N, (2,)), "float32")]
    with pytest.raises(TuningArgumentError, match="key of autotune names x_ptr, which is .* nothing to tune for"):
        tuned(increment, key=("x_ptr",))[grid](x, N)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"BLOCK": 16}, r'heuristics has 16 for BLOCK, .* write \{"BLOCK": lambda arguments: 16\}'),
        (len, "heuristics takes a dict from parameters to functions, not len"),
    ],
)
def test_what_is_no_heuristic(values: Any, said: str) -> None:
    with pytest.raises(TuningArgumentError, match=said):
        triton.heuristics(values)(increment)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: triton.Config(64), r"takes a dict from names of parameters to values, not 64; write triton.Config"),
        (lambda: triton.Config({64: "BLOCK"}), "takes a dict from names of parameters to values"),
        (lambda: triton.Config({}, pre_hook="x"), "pre_hook of triton.Config is 'x'; it must be a function, called as"),
        (lambda: tuned(increment, do_bench=5), "do_bench of autotune is 5; it must be a function, called as"),
        (lambda: tuned(increment, do_bench=lambda call: 1.0), r"takes \(call\): got an unexpected (?s:.*){place}"),
        (lambda: tuned(increment, reset_to_zero=["n"]), "reset_to_zero of autotune names n, which is 300 and no array"),
        (lambda: triton.heuristics({"BLOCK": lambda: 64}), r"the heuristic of BLOCK is called as (?s:.*){place}"),
    ],
)
def test_what_cannot_be_called_or_counted_with(make: Any, said: str) -> None:
    with pytest.raises(TuningArgumentError, match=said.format(place=rf"{Path(__file__).name}:\d+$")):
        make()[grid](np.zeros(N, np.float32), N)


@pytest.mark.parametrize("measured", [None, "1.0", float("nan"), [], [1.0, None], {"a": 1.0}])
def test_what_is_no_time(measured: Any) -> None:
    """Taken for one, it would choose a config by chance."""
    with pytest.raises(TuningArgumentError, match=r"do_bench of autotune returned .*; it must return milliseconds"):
        tuned(increment, do_bench=lambda call, quantiles: measured)[grid](np.zeros(N, np.float32), N)


@pytest.mark.parametrize("measured", [1.0, np.float32(1), np.ones(3), (1.0, 1.0, 1.0), np.array(1.0)])
def test_a_config_without_a_time_beside_one_that_has_one(measured: Any) -> None:
    """A config that finds no room while it is timed has three times, which are endless; another may have one."""
    left = iter(BLOCKS)

    def do_bench(call: Any, quantiles: Any) -> Any:
        if next(left) is BLOCKS[0]:
            raise OutOfResources(2, 1, "threads")
        return measured

    kernel = tuned(increment, do_bench=do_bench)
    kernel[grid](np.zeros(N, np.float32), N)
    assert kernel.best_config is BLOCKS[1]
