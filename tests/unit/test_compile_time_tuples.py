"""Tuples that are known at compile time, also inside others; and what `is`, `tl.reduce` and the command line make of values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors

NESTED = tl.constexpr(((8, 4), 2))
MODES = ["cpu", "interpret"]


@triton.jit
def product(sides):
    rows, columns = sides
    return rows * columns


@triton.jit
def unpacked(out_ptr, shape: tl.constexpr):
    (first, second), third = shape
    inner, again = NESTED
    rows, columns = inner
    tl.store(out_ptr, first * 100 + second * 10 + third)
    tl.store(out_ptr + 1, product(shape[0]) + rows * columns + again)
    tl.store(out_ptr + 2 + tl.arange(0, 32), tl.reshape(tl.zeros(shape[0], tl.int32) + 5, (32,)))


def test_tuples_within_tuples(run_everywhere: Any) -> None:
    (out,) = run_everywhere(unpacked, (1,), np.zeros(34, np.int32), ((8, 4), 2))
    assert out[0] == 842 and out[1] == 32 + 34 and (out[2:] == 5).all()


@triton.jit
def one_and_a_half(a, b):
    return (a + b) * 1.5


@triton.jit
def nine_sums(a, b, c, d, e, f, g, h, i, a2, b2, c2, d2, e2, f2, g2, h2, i2):
    return a + a2, b + b2, c + c2, d + d2, e + e2, f + f2, g + g2, h + h2, i + i2


@triton.jit
def misused(out_ptr, WHAT: tl.constexpr):
    x = tl.arange(0, 8)
    if WHAT == "type":
        tl.store(out_ptr, tl.reduce(x, 0, one_and_a_half))
    elif WHAT == "nine":
        tl.reduce((x, x, x, x, x, x, x, x, x), 0, nine_sums)
    else:
        y = x
        if x is y:
            tl.store(out_ptr, 1)


@pytest.mark.parametrize(
    ("what", "error", "text"),
    [
        ("type", errors.DTypeError, "one_and_a_half combines values of i32, but returns"),
        ("nine", errors.ArgumentError, "at most 8 tiles at once, not 9"),
        ("identity", errors.UnsupportedLanguageConstruct, "compare their values with =="),
    ],
)
def test_what_cannot_be_meant_is_an_error(what: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as found:
        misused.translate(f'*i32, "{what}"')
    assert text in str(found.value)


def test_the_interpreter_keeps_the_type_that_is_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    with pytest.raises(errors.DTypeError, match="combines values of i32"):
        misused[(1,)](np.zeros(1, np.int32), "type")


@triton.jit
def square(x_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + offs)
    tl.store(x_ptr + offs, tl.dot(x, x))


def test_the_command_line_has_the_options_that_python_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_F32_DEFAULT", "ieee")
    command = [
        sys.executable,
        "-m",
        "tilewright",
        "translate",
        f"{Path(__file__)}:square",
        "--signature",
        "*fp32:16, 32",
    ]
    done = subprocess.run([*command, "--arch", "sm_80"], capture_output=True, text=True, check=True)
    assert done.stdout == square.translate("*fp32:16, 32", arch="sm_80").source and "mma" not in done.stdout


class Pair(NamedTuple):
    tile: Any
    pointer: Any


@triton.jit
def types_of_tuples(x_ptr, out_ptr, arrays, B: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, B))
    y = x + 1
    assigned = (x, 1)
    retyped = (y, 2)
    pair = Pair(x, x_ptr)
    tl.static_assert(x.type == y.type and x.type != tl.arange(0, B).type and x.type != tl.float32)
    tl.static_assert(x.type == tl.block_type(tl.float32, [B]))
    tl.static_assert(assigned.type == tl.tuple_type([x.type, tl.int32]) and assigned.type == retyped.type)
    tl.static_assert(
        assigned.type[0] == x.type and len(assigned.type) == 2 and isinstance(assigned.type, tl.tuple_type)
    )
    tl.static_assert((B, None).type == tl.tuple_type([B.type, None.type]))
    tl.static_assert(pair.type.fields == ("tile", "pointer") and pair.type.types[1] == tl.pointer_type(tl.float32))
    tl.static_assert(pair.type != (x, x_ptr).type)
    tl.static_assert(arrays.type[1][0] == tl.pointer_type(tl.int64))
    tl.static_print(((x, B), pair).type)
    tl.store(out_ptr, len(arrays.type))


@pytest.mark.parametrize("mode", MODES)
def test_types_of_tuples(mode: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    out = np.zeros(1, np.int32)
    types_of_tuples[(1,)](np.zeros(16, np.float32), out, (5, (np.zeros(1, np.int64),)), 16)
    assert out[0] == 2
    said = "[[fp32[16], constexpr_type[16]], [tile: fp32[16], pointer: *fp32]]"
    assert capsys.readouterr().out.splitlines() == [said]


WRAPPED = tl.constexpr((5, 6, 7))


@triton.jit
def first_of(within: tl.constexpr, plain):
    tl.static_assert(within.type == tl.constexpr_type((5, 6, 7)))
    tl.static_assert(plain.type == tl.tuple_type([tl.constexpr_type(5), tl.constexpr_type(6)]))
    return within[0]


@triton.jit
def types_of_wrapped_tuples(out_ptr, given: tl.constexpr):
    here: tl.constexpr = (5, 6, 7)
    tl.static_assert(here.type == tl.constexpr_type((5, 6, 7)) and here.type != tl.constexpr_type((5, 6, 8)))
    tl.static_assert(given.type == here.type and WRAPPED.type == here.type)
    again: tl.constexpr = given
    tl.static_assert(again.type == here.type and again == here)
    plain = given
    tl.static_assert(plain.type == tl.tuple_type([tl.int32, tl.int32, tl.int32]))
    tl.static_print(given.type)
    tl.store(out_ptr, first_of((5, 6, 7), (5, 6)) + here[2])


@pytest.mark.parametrize("mode", MODES)
def test_types_of_tuples_within_a_constexpr(
    mode: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    out = np.zeros(1, np.int32)
    types_of_wrapped_tuples[(1,)](out, (5, 6, 7))
    assert out[0] == 12
    assert capsys.readouterr().out.splitlines() == ["constexpr_type[(5, 6, 7)]"]


@triton.jit
def index_of_a_run_time_loop(xs, o_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(n):
        tl.store(o_ptr + i, tl.load(xs[k] + i))


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_an_index_that_is_counted_at_run_time(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    xs = (np.zeros(8, np.float32), np.ones(8, np.float32))
    with pytest.raises(
        errors.NotConstexprError, match="an index must be known when the kernel is translated"
    ) as caught:
        index_of_a_run_time_loop[(1,)](xs, np.zeros(8, np.float32), 2, 8)
    assert "xs[k]" in str(caught.value) and "help: count with tl.static_range" in str(caught.value)
