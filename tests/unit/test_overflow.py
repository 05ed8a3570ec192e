"""With `debug`, sums, differences and products of integers that do not fit in their type are faults, as in Triton."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.diagnostics import KernelFaultError
from tilewright.runtime import cpu
from tilewright.runtime.building import nvrtc

needs_compiler = pytest.mark.skipif(not cpu.has_compiler(), reason="no C++ compiler")
MODES = [pytest.param("cpu", marks=needs_compiler), "interpret"]


@triton.jit
def computed(x_ptr, y_ptr, out_ptr, OP: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    if OP == "+":
        z = x + y
    elif OP == "-":
        z = x - y
    elif OP == "*":
        z = x * y
    elif OP == "minus":
        z = -x
    else:
        z = tl.mul(x, y, sanitize_overflow=False)
    tl.store(out_ptr + i, z)


CASES = [
    ("+", np.int32, 2**31 - 2, 1, False),
    ("+", np.int32, 2**31 - 1, 1, True),
    ("+", np.int16, -(2**15), -1, True),
    ("+", np.uint8, 255, 1, True),
    ("+", np.int64, 2**63 - 1, 1, False),  # nothing wider could tell
    ("+", np.float32, 3e38, 3e38, False),
    ("-", np.int32, -(2**31), 1, True),
    ("-", np.uint32, 0, 1, True),
    ("*", np.int32, 2**30, 2, True),
    ("*", np.int32, -(2**30), 2, False),
    ("minus", np.int32, -(2**31), 0, True),
    ("wraps", np.int32, 2**30, 4, False),
]


def run(op: str, dtype: Any, x: Any, y: Any, **options: Any) -> Any:
    """One element of several for which the operation is what it says."""
    xs, ys = (np.array([1, value, 1], dtype) for value in (x, y))
    out = np.zeros(3, dtype)
    computed[(1,)](xs, ys, out, op, 3, **options)
    return out[1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("op", "dtype", "x", "y", "overflows"), CASES)
def test_overflow(
    mode: str, op: str, dtype: Any, x: Any, y: Any, overflows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    wrapped = run(op, dtype, x, y)
    if overflows:
        with pytest.raises(KernelFaultError, match=f"{np.dtype(dtype).name} overflow detected"):
            run(op, dtype, x, y, debug=True)
    else:
        assert run(op, dtype, x, y, debug=True) == wrapped
    assert run(op, dtype, x, y, debug=True, sanitize_overflow=False) == wrapped


@pytest.mark.parametrize("mode", MODES)
def test_the_environment_asks_for_all_launches(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    assert run("+", np.int32, 2**31 - 1, 1, debug=False) == -(2**31)
    monkeypatch.setenv("TRITON_DEBUG", "1")
    with pytest.raises(RuntimeError, match="overflow"):
        run("+", np.int32, 2**31 - 1, 1, debug=False)


def test_assertions_are_cudas() -> None:
    artifact = computed.translate("*i32:16, *i32:16, *i32:16, '+', 8", debug=True)
    line = Path(__file__).read_text().split("z = x + y")[0].count("\n") + 1
    assert f' && "test_overflow.py:{line}: int32 overflow detected for operation add");' in artifact.source
    assert "#include <cassert>" in artifact.source  # for nvcc alone
    if nvrtc.is_available():
        assert "warning" not in nvrtc.compile_text(artifact).log


@triton.jit
def summed(x_ptr, out_ptr, N: tl.constexpr):
    total = 0
    for start in range(0, N, 8):
        total += tl.sum(tl.load(x_ptr + start + tl.arange(0, 8)))
    tl.store(out_ptr, total)


@triton.jit
def scaled(x):
    return x * 3 + 1


@triton.jit
def mapped(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.reduce(scaled(tl.load(x_ptr + i)), 0, added) + i)


@triton.jit
def added(a, b):
    return a + b


@pytest.mark.parametrize("mode", MODES)
def test_checks_stand_in_loops_and_functions(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x, out = np.full(32, 2**24, np.int32), np.zeros(32, np.int32)
    summed[(1,)](x, out, 32, debug=True)
    assert out[0] == 2**29
    with pytest.raises(KernelFaultError, match="overflow detected for operation add"):
        summed[(1,)](x * 4, out, 32, debug=True)
    mapped[(1,)](x, out, 32, debug=True)
    assert (out == 32 * (3 * 2**24 + 1) + np.arange(32)).all()
    with pytest.raises(KernelFaultError, match="overflow detected for operation mul"):
        mapped[(1,)](x * 64, out, 32, debug=True)


@triton.jit
def padded(x_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.expect_zero(tl.load(x_ptr + i), i >= n))


@pytest.mark.parametrize("mode", MODES)
def test_promised_zeros_are_asserted(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x, out = np.array([1, 2, 0, 0], np.float32), np.zeros(4, np.float32)
    for n in (1, 2):
        padded[(1,)](x, out, n, 4)
    padded[(1,)](x, out, 2, 4, debug=True)
    assert (out == x).all()
    with pytest.raises(KernelFaultError, match="expected 0"):
        padded[(1,)](x, out, 1, 4, debug=True)
