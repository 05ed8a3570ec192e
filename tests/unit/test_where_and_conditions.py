"""Choices between values, and conditions made of several: no branches where both sides take long."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors
from tilewright.runtime.building import nvrtc
from written_kernels import written_kernel


@triton.jit
def running_sums(x_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    # Sums of exponentials, each element's with its own running maximum: where nothing has been seen, there is nothing to scale.
    cols = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + start + cols, mask=start + cols < N, other=float("-inf"))
        now = tl.maximum(largest, x)
        scale = tl.where(now == float("-inf"), 1.0, tl.exp(largest - now))
        total = total * scale + tl.where(now == float("-inf"), 0.0, tl.exp(x - now))
        largest = now
    tl.store(out_ptr + cols, tl.where(total > 0, largest + tl.log(total), largest))


@triton.jit
def larger_or_earlier(a_value, a_place, b_value, b_place):
    wins = a_value > b_value
    equal = a_value == b_value
    wins |= (a_value != a_value) & (b_value == b_value)
    wins |= equal & (a_place < b_place)
    return tl.where(wins, a_value, b_value), tl.where(wins, a_place, b_place)


@triton.jit
def place_of_largest(x_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    place = tl.full((BLOCK,), 2147483647, tl.int32)
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + start + cols, mask=start + cols < N, other=0.0)
        next_best, next_place = larger_or_earlier(best, place, x, start + cols)
        best = tl.where(start + cols < N, next_best, best)
        place = tl.where(start + cols < N, next_place, place)
    _, index = tl.reduce((best, place), 0, larger_or_earlier)
    tl.store(out_ptr, index)


def test_both_sides_are_computed(run_everywhere: Any) -> None:
    n, block = 1000, 256
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    x[block // 2 :: block] = -np.inf  # a column of which no element is seen
    _, out = run_everywhere(running_sums, (1,), x, np.zeros(block, np.float32), N=n, BLOCK=block, tolerance=1e-6)
    columns = np.full((4, block), -np.inf)
    columns.reshape(-1)[:n] = x
    with np.errstate(divide="ignore"):
        assert np.allclose(out, np.log(np.exp(columns).sum(axis=0)), rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_no_element_has_a_branch_of_its_own() -> None:
    artifact = running_sums.translate("*fp32:16, *fp32:16, 3072, 1024")
    assert artifact.source.count("choose(") == 4  # three choices and the helper itself
    ptx = nvrtc.compile_ptx(artifact)
    # The masked loads and the loop have branches; 16 choices a trip would have as many again.
    assert ptx.count("ex2.approx") >= 16 and len(re.findall(r"\bbra\b", ptx)) * 4 < ptx.count("ex2.approx")


@triton.jit
def grown(x, FAST: tl.constexpr):
    if FAST:
        return tl.exp2(x)
    return tl.exp(x)


@triton.jit
def grown_rows(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.where(x == float("-inf"), 1.0, grown(x, False)))


def test_what_a_function_computes_is_computed_on_both_sides() -> None:
    text = grown_rows.translate("*fp32:16, *fp32:16, 1024").source
    assert "choose(" in text and "exp(x)" in text.partition("extern")[0]


def test_values_that_are_known_already_are_chosen_in_c() -> None:
    text = place_of_largest.translate("*fp32:16, *i32:16, 4000, 1024").source
    assert "choose(" not in text and " ? " in text


def test_conditions_are_combined_bit_by_bit(run_everywhere: Any) -> None:
    rng = np.random.default_rng(7)
    for n in (1000, 1024):
        x = rng.integers(0, 50, n).astype(np.float32)
        _, out = run_everywhere(place_of_largest, (1,), x, np.zeros(1, np.int32), N=n, BLOCK=256)
        assert out[0] == np.argmax(x)
        x[n // 2] = np.nan
        _, out = run_everywhere(place_of_largest, (1,), x, np.zeros(1, np.int32), N=n, BLOCK=256)
        assert out[0] == n // 2
    text = place_of_largest.translate("*fp32:16, *i32:16, 4000, 1024").source
    assert re.search(r"wins\w*(\[\w+\])? = wins\w*(\[\w+\])? \| \(", text) and "||" not in text


@triton.jit
def sums_of_rows(x_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr, WAITS: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    largest = 0.0
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * N + start + cols, mask=start + cols < N, other=0.0)
        total += tl.where(x > 0, x, x * x)
        if WAITS:
            largest += tl.max(x, axis=0)
    tl.store(out_ptr + row, tl.sum(total, axis=0) + largest)


@pytest.mark.parametrize("n", [1000, 1024, 4100])
def test_trips_behind_each_other(run_everywhere: Any, n: int) -> None:
    x = np.random.default_rng(n).standard_normal((3, n)).astype(np.float32)
    options = {"N": n, "BLOCK": 256, "WAITS": False, "tolerance": 1e-5}
    _, out = run_everywhere(sums_of_rows, (3,), x, np.zeros(3, np.float32), **options)
    wide = x.astype(np.float64)
    assert np.allclose(out, np.where(wide > 0, wide, wide * wide).sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "pragma"),
    [
        ("*fp32:16, *fp32:16, 4096, 1024, False", "#pragma unroll 4"),  # all of four trips
        ("*fp32:16, *fp32:16, 32000, 1024, False", "#pragma unroll 4"),  # four of 32
        ("*fp32:16, *fp32:16, 8192, 1024, False", "#pragma unroll 8"),
        ("*fp32:16, *fp32:16, 2048, 1024, False", ""),  # two trips: not worth a word
        ("*fp32:16, *fp32:16, 32000, 1024, True", ""),  # threads wait for each other in every trip
        ("*fp32:16, *fp32:16, 32000, 4096, False", ""),  # a trip has loads enough
    ],
)
def test_how_many_trips_stand_behind_each_other(arguments: str, pragma: str) -> None:
    lines = sums_of_rows.translate(arguments).source.splitlines()
    above = [lines[number - 1].strip() for number, line in enumerate(lines) if "for (int start" in line]
    assert above and all(line == pragma if pragma else "#pragma" not in line for line in above)


@triton.jit
def running_means(x_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr, COUNTS: tl.constexpr):
    # Welford's means: the weight of what has been seen is the number of trips, or what is loaded.
    cols = tl.arange(0, BLOCK)
    mean = tl.zeros([BLOCK], tl.float32)
    weight = tl.zeros([BLOCK], tl.float32)
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + start + cols)
        weight = weight + (1.0 if COUNTS else tl.abs(x))
        mean += (x - mean) / weight
    tl.store(out_ptr + cols, mean)


def test_divisors_that_count_trips_become_numbers(run_everywhere: Any) -> None:
    x = np.random.default_rng(0).standard_normal((20, 256)).astype(np.float32)
    _, out = run_everywhere(running_means, (1,), x, np.zeros(256, np.float32), N=x.size, BLOCK=256, COUNTS=True)
    assert np.allclose(out, x.astype(np.float64).mean(axis=0), rtol=1e-4, atol=1e-5)

    def pragma(trips: int, counts: bool) -> str:
        lines = running_means.translate(f"*fp32:16, *fp32:16, {1024 * trips}, 1024, {counts}").source.splitlines()
        return next(lines[number - 1].strip() for number, line in enumerate(lines) if "for (int start" in line)

    assert (pragma(20, True), pragma(20, False), pragma(40, True)) == (
        "#pragma unroll 20",
        "#pragma unroll 4",
        "#pragma unroll 4",
    )


class Pair(NamedTuple):
    low: Any
    high: Any


@triton.jit
def ordered(p, q):
    return Pair(p, q) if p < q else Pair(q, p)


@triton.jit
def tuples_by_condition(x_ptr, out_ptr, a, b, B: tl.constexpr):
    """Numbers, tiles, loads of one side, tuples in tuples, and an item that is the same on both sides."""
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    low, high = (a, b) if a < b else (b, a)
    pair = ordered(a, b)
    (first, second), k, same = ((x, x + i), 3, 7) if a < b else ((x * 2, tl.load(x_ptr + B + i)), b, 7)
    WIDE: tl.constexpr = same if same == 7 else 0
    tl.store(out_ptr + i, first + second * k + low * 100 + high * 1000 + (pair.high - pair.low) + WIDE)


@pytest.mark.parametrize(("a", "b"), [(2, 5), (9, 4)])
def test_a_ternary_chooses_tuples(run_everywhere: Any, a: int, b: int) -> None:
    x = np.arange(32, dtype=np.int32) % 7
    i = np.arange(16)
    found = run_everywhere(tuples_by_condition, (1,), x, np.zeros(16, np.int32), a, b, B=16)[1]
    first, second, k = (x[:16], x[:16] + i, 3) if a < b else (x[:16] * 2, x[16:], b)
    low, high = min(a, b), max(a, b)
    np.testing.assert_array_equal(found, first + second * k + low * 100 + high * 1000 + high - low + 7)


@pytest.mark.parametrize(
    ("sides", "said"),
    [
        ("(n, 1) if n > 3 else (n, 1, 2)", "with the condition: it is a tuple of 2 and a tuple of 3"),
        ("(n, 1) if n > 3 else n", "with the condition: it is a tuple of 2 and a value of type i32"),
        ("(n, 1) if n > 3 else (n, 1.5)", "inconsistent types i32 and fp32\n.*\n.*\n  help: cast one side"),
        ("(n, 'a') if n > 3 else (n, 'b')", "changes its compile-time value with the condition"),
        ("(p, n) if n > 3 else (tl.advance(p, (4,)), n)", "help: choose blocks with if and else"),
    ],
)
def test_tuples_that_no_ternary_chooses(sides: str, said: str, tmp_path: Path) -> None:
    header = "import tilewright as triton\nimport tilewright.language as tl\n@triton.jit\ndef kernel(x_ptr, n):\n"
    body = f"p = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (4,), (0,))\ny = {sides}"
    kernel = written_kernel(tmp_path / "sides.py", header, body)
    with pytest.raises(errors.CompilationError, match=said) as caught:
        kernel.translate("*fp32, i32")
    assert "sides.py:6:" in str(caught.value) and "^" in str(caught.value)
