"""The Python interpreter where something is wrong: accesses out of bounds, bad input, and what a debugger shows."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors

FILE = os.path.basename(__file__)


@pytest.fixture(autouse=True)
def interpret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")


def line_of(marker: str) -> int:
    """The line of this file that ends with a comment."""
    with open(__file__, encoding="utf-8") as source:
        return next(number for number, line in enumerate(source, 1) if line.rstrip().endswith(f"# {marker}"))


# ---------------------------------------------------------------------------------------------------------- memory


@triton.jit
def read_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)  # the read
    tl.store(y_ptr + i, x, mask=i < 8)


def test_an_access_out_of_bounds_is_named() -> None:
    memory = np.zeros(16, np.float32)
    x, y = memory[:8], memory[8:]  # neighbours: a read past x would silently be one of y
    read_kernel[(2,)](x, y, 8, BLOCK=8)
    with pytest.raises(errors.KernelFaultError) as caught:
        read_kernel[(2,)](x, y, 9, BLOCK=8)
    text = str(caught.value)
    assert "out of bounds read" in text and f"{FILE}:{line_of('the read')}" in text
    assert "program (1, 0, 0)" in text and "element 8 of x_ptr, which has 8" in text


@triton.jit
def write_kernel(x_ptr, offset):
    tl.store(x_ptr - offset, 1.0)


def test_a_write_before_the_array_is_named() -> None:
    with pytest.raises(errors.KernelFaultError, match="out of bounds write .*element -3 of x_ptr"):
        write_kernel[(1,)](np.zeros(8, np.float32), 3)


@triton.jit
def mask_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i * 1000, mask=i == 0))
    tl.store(out_ptr + N + i, tl.load(x_ptr + i * 1000, mask=i == 0, other=7))
    tl.store(out_ptr + 2 * N, tl.sum(tl.load(x_ptr + tl.arange(0, 2), mask=(i < 2)[:, None])))


def test_masked_lanes_are_not_touched() -> None:
    out = np.zeros(13, np.float32)
    mask_kernel[(1,)](np.array([5, 6], np.float32), out, N=4)
    assert out.tolist() == [5, 0, 0, 0, 5, 7, 7, 7, 0, 0, 0, 0, 0][:8] + [22, 0, 0, 0, 0]


# --------------------------------------------------------------------------------------------------------- bad input


@triton.jit
def widened_store(x_ptr):
    tl.store(x_ptr, tl.arange(0, 4))


@triton.jit
def integer_mask(x_ptr):
    tl.load(x_ptr + tl.arange(0, 4), mask=tl.arange(0, 4))


@triton.jit
def store_to_const(x_ptr: tl.const):
    tl.store(x_ptr, 1.0)


@triton.jit
def narrow_atomic(x_ptr):
    tl.atomic_add(x_ptr.to(tl.pointer_type(tl.int8), bitcast=True), 1)


@triton.jit
def bad_hint(x_ptr):
    tl.load(x_ptr, cache_modifier=".xx")


@triton.jit
def bad_axis(x_ptr):
    tl.sum(tl.arange(0, 4), axis=1)


@triton.jit
def bad_reshape(x_ptr):
    tl.arange(0, 4).reshape(3)


@triton.jit
def bad_index(x_ptr):
    tl.arange(0, 4)[0]


@triton.jit
def float_loop(x_ptr):
    for _ in range(tl.load(x_ptr)):
        pass


@triton.jit
def undefined(x_ptr):
    tl.store(x_ptr, nothing)  # noqa: F821


@triton.jit
def bad_attribute(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr).shap)


@triton.jit
def too_few(x_ptr):
    tl.store(x_ptr)


@triton.jit
def host_function(x_ptr):
    tl.store(x_ptr, float(tl.load(x_ptr)))


@triton.jit
def run_time_side(x_ptr, n):
    tl.zeros((n, 2), tl.float32)


@triton.jit
def divided(x_ptr, n: tl.constexpr):
    tl.store(x_ptr, 1 // (n - 7))


def inverse(n: int) -> float:
    return 1 / (n - 7)  # where Python fails


@triton.jit
def divided_in_python(x_ptr, n: tl.constexpr):
    tl.store(x_ptr, inverse(n))


CASES = [
    (widened_store, errors.ShapeError, "Expected pointer argument to have shape"),
    (integer_mask, errors.DTypeError, "Mask must have boolean scalar type"),
    (store_to_const, errors.DTypeError, "Cannot store to a constant pointer"),
    (narrow_atomic, errors.DTypeError, "atomic_add does not support int8"),
    (bad_hint, errors.ArgumentError, "cache_modifier '.xx' not supported"),
    (bad_axis, errors.ArgumentError, "axis 1 of a tile of rank 1"),
    (bad_reshape, errors.ShapeError, "cannot change total number of elements"),
    (bad_index, errors.ShapeError, "unsupported tensor index"),
    (float_loop, errors.DTypeError, "For loop bounds and step must all be ints"),
    (undefined, errors.UndefinedVariableError, "nothing"),
    (bad_attribute, errors.UnknownNameError, "has no attribute shap"),
    (too_few, errors.ArgumentError, "missing a required argument: 'value'"),
    (host_function, errors.UnsupportedLanguageConstruct, "convert with x.to(tl.float32)"),
    (run_time_side, errors.NotConstexprError, "must be known when the kernel is translated"),
    (
        divided,
        errors.DTypeError,
        "compute this at compile time: integer division or modulo by zero",
    ),
    (divided, errors.DTypeError, "help: test the numbers first, with tl.static_assert"),
    (divided_in_python, errors.UnsupportedLanguageConstruct, "inverse failed at compile time: ZeroDivisionError"),
    (
        divided_in_python,
        errors.UnsupportedLanguageConstruct,
        f"failed at {__file__}:{line_of('where Python fails')}",
    ),
]


@pytest.mark.parametrize(("kernel", "kind", "said"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_bad_input_is_refused_at_its_line(kernel: Any, kind: Any, said: str) -> None:
    extra = (7,) if len(kernel.arg_names) == 2 else ()
    with pytest.raises(kind) as caught:
        kernel[(1,)](np.zeros(8, np.float32), *extra)
    text = str(caught.value)
    assert said in text and f"{FILE}:{kernel.first_line + 2}:" in text and "^" in text


def test_an_error_in_an_inner_function_shows_the_calls() -> None:
    def make() -> Any:
        @triton.jit
        def inner(x):
            return x + tl.arange(0, 3)  # the inner line

        @triton.jit
        def outer(x_ptr):
            tl.store(x_ptr, inner(tl.arange(0, 8)))  # the outer line

        return outer

    with pytest.raises(errors.ShapeError) as caught:
        make()[(1,)](np.zeros(8, np.int32))
    text = str(caught.value)
    assert f"{FILE}:{line_of('the outer line')}:" in text and f"{FILE}:{line_of('the inner line')}:" in text
    if sys.version_info >= (3, 11):  # earlier ones do not record columns
        lines = text.splitlines()
        start, end = lines[-2].index("^"), lines[-2].rindex("^") + 1
        assert lines[-3][start:end] == "x + tl.arange(0, 3)"


# --------------------------------------------------------------------------------------------------------- debugging


@triton.jit
def debugged_kernel(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 2))
    print("x is", x.values)
    breakpoint()  # the breakpoint
    tl.store(x_ptr + tl.arange(0, 2), x * 2)


def test_print_and_breakpoints_work(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stops: list[tuple[str, int, Any]] = []

    def debugger() -> None:
        frame = sys._getframe(1)
        stops.append((os.path.basename(frame.f_code.co_filename), frame.f_lineno, frame.f_locals["x"].values.tolist()))

    monkeypatch.setattr("sys.breakpointhook", debugger)
    debugged_kernel[(1,)](np.array([3, 4], np.int32))
    assert "x is [3 4]" in capsys.readouterr().out
    assert stops == [(FILE, line_of("the breakpoint"), [3, 4])]


def test_tracebacks_show_the_kernels_lines() -> None:
    try:
        bad_reshape[(1,)](np.zeros(8, np.float32))
    except errors.ShapeError as error:
        frames = traceback.extract_tb(error.__traceback__)
    assert any(frame.name == "bad_reshape" and "reshape(3)" in (frame.line or "") for frame in frames)


@triton.jit
def assert_kernel(x_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.device_assert(x > 0, "must be positive", mask=x != -1)
    assert tl.max(x) < 9, "too large"  # the assertion


def test_assertions_need_debug() -> None:
    bad = np.array([1, -1, 9], np.int32)
    assert_kernel[(1,)](bad, N=3)
    with pytest.raises(errors.KernelFaultError, match=f"{FILE}:{line_of('the assertion')}.*too large"):
        assert_kernel[(1,)](bad, N=3, debug=True)
    with pytest.raises(errors.KernelFaultError, match="must be positive"):
        assert_kernel[(1,)](np.zeros(3, np.int32), N=3, debug=True)


@triton.jit
def print_kernel(x_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.device_print("x", x)
    tl.device_print("two", x, 1.5)
    tl.device_print("hex", x, hex=True)
    tl.device_print("", x[:, None] > 1)
    tl.device_print("no value")
    tl.static_print("static", N, sep="-")


def test_device_print_is_tritons(capsys: pytest.CaptureFixture[str]) -> None:
    print_kernel[(1,)](np.arange(-1, 10, dtype=np.int16), N=11, num_warps=2)
    lines = capsys.readouterr().out.splitlines()
    for expected in (
        "pid (0, 0, 0) idx ( 0) x: -1", "pid (0, 0, 0) idx (10) x: 9", "pid (0, 0, 0) idx ( 3) two: (operand 0) 2",
        "pid (0, 0, 0) idx ( 0) hex: 0xffffffff",
        "pid (0, 0, 0) idx ( 3) hex: 0x0002", "pid (0, 0, 0) idx ( 3, 0): 1", "static-11",
    ):  # fmt: skip
        assert lines.count(expected) == 1, expected
    for expected in ("pid (0, 0, 0) no value", "pid (0, 0, 0) idx () two: (operand 1) 1.500000"):
        assert lines.count(expected) == 64  # once a thread
