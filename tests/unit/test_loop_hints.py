"""The hints of `tl.range`: which there are, what they must be, and what the text makes of them."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
import tilewright.language as tl
from tilewright.diagnostics import ArgumentError

MODES = ("cpu", "interpret")


@tilewright.jit
def sum_of_rows(x_ptr, out_ptr, rows, BLOCK: tl.constexpr, FACTOR: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in tl.range(0, rows, loop_unroll_factor=FACTOR, flatten=True):
        total += tl.load(x_ptr + row * BLOCK + columns)
    tl.store(out_ptr + columns, total)


@tilewright.jit
def by_position(x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in tl.range(1, rows, 2, None, 3):
        total += tl.load(x_ptr + row * BLOCK + columns)
    tl.store(out_ptr + columns, total)


@tilewright.jit
def unknown_hint(out_ptr):
    for i in tl.range(0, 4, unroll=2):
        tl.store(out_ptr + i, i)


@tilewright.jit
def step_of_range(out_ptr):
    for i in range(1, 6, step=2):
        tl.store(out_ptr + i, i)
    for i in range(2, flatten=True, num_stages=2):
        tl.store(out_ptr + 6 + i, 1)


@tilewright.jit
def hint_of_static_range(out_ptr):
    for i in tl.static_range(4, num_stages=2):
        tl.store(out_ptr + i, i)


def pragma_of(text: str) -> str:
    """The line above the loop over rows."""
    lines = text.splitlines()
    return lines[next(i for i, line in enumerate(lines) if "for (int row = " in line) - 1].strip()


@pytest.mark.parametrize(("factor", "pragma"), [("4", "#pragma unroll 4"), ("1", "#pragma unroll 1")])
def test_the_factor_stands_above_the_loop(factor: str, pragma: str) -> None:
    assert pragma_of(sum_of_rows.translate(f"*fp32:16, *fp32:16, i32, 256, {factor}").source) == pragma


@pytest.mark.parametrize("factor", ["0", "None"])
def test_without_a_factor_the_compiler_decides(factor: str) -> None:
    assert "pragma" not in pragma_of(sum_of_rows.translate(f"*fp32:16, *fp32:16, i32, 256, {factor}").source)


@pytest.mark.parametrize("mode", MODES)
def test_hints_change_no_results(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x = np.random.default_rng(0).integers(0, 100, (7, 64)).astype(np.float32)
    out = np.full(64, np.nan, np.float32)
    sum_of_rows[(1,)](x, out, 7, BLOCK=64, FACTOR=3)
    assert np.array_equal(out, x.sum(axis=0))
    by_position[(1,)](x, out, 7, BLOCK=64)
    assert np.array_equal(out, x[1::2].sum(axis=0))


def test_hints_may_stand_behind_the_step() -> None:
    assert pragma_of(by_position.translate("*fp32:16, *fp32:16, i32, 256").source) == "#pragma unroll 3"


@pytest.mark.parametrize("factor", ["-1", "2.5", "True"])
def test_a_factor_is_a_number_of_iterations(factor: str) -> None:
    with pytest.raises(ArgumentError, match="loop_unroll_factor of a range must be None or an integer"):
        sum_of_rows.translate(f"*fp32:16, *fp32:16, i32, 256, {factor}")


@pytest.mark.parametrize(("kernel", "name"), [(unknown_hint, "unroll"), (hint_of_static_range, "num_stages")])
def test_what_a_range_does_not_take_is_named(kernel: object, name: str) -> None:
    with pytest.raises(ArgumentError, match=f"takes no argument '{name}'"):
        kernel.translate("*i32")  # type: ignore[attr-defined]


@pytest.mark.parametrize("mode", MODES)
def test_keywords_of_pythons_range(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    out = np.zeros(8, np.int32)
    step_of_range[(1,)](out)
    assert out.tolist() == [0, 1, 0, 3, 0, 5, 1, 1]
