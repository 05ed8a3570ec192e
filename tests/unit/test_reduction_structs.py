"""Reductions of one kind that combine differently, side by side in a kernel: each has a struct of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.lower.reductions.combine import Combination
from tilewright.lower.reductions.reduction import Reduction, loop_names
from tilewright.lower.text.names import Names
from tilewright.lower.text.needs import Needs
from tilewright.lower.text.point import point_of, register
from tilewright.runtime.building import nvrtc
from tilewright.schedule.tiles.layout import REGISTER, Layout


@triton.jit
def best_of_both_axes(x_ptr, row_ptr, col_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(row_ptr + tl.arange(0, N), tl.argmax(x, axis=0))
    tl.store(col_ptr + tl.arange(0, M), tl.argmax(x, axis=1))


@triton.jit
def largest_one_by_one(x_ptr, out_ptr, N: tl.constexpr, COUNT: tl.constexpr):
    # Each time the one that was found goes: all threads must have found the same.
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    for t in range(COUNT):
        best = tl.argmax(x, axis=0, tie_break_left=False)
        tl.store(out_ptr + t, tl.max(x, axis=0))
        x = tl.where(i == best, -1, x)


@pytest.mark.parametrize("shape", ((64, 33), (33, 64), (2, 5)))
def test_an_axis_that_is_padded_beside_one_that_is_not(run_everywhere: Any, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(3).integers(-9, -1, shape).astype(np.int32)
    rows, cols = np.zeros(shape[1], np.int32), np.zeros(shape[0], np.int32)
    _, rows, cols = run_everywhere(best_of_both_axes, (1,), x, rows, cols, *shape)
    assert np.array_equal(rows, x.argmax(0))
    assert np.array_equal(cols, x.argmax(1))


@pytest.mark.parametrize("warps", (1, 4))
def test_all_threads_find_the_same_among_equals(run_everywhere: Any, warps: int) -> None:
    x = np.random.default_rng(4).integers(0, 3, 256).astype(np.int32)
    _, found = run_everywhere(largest_one_by_one, (1,), x, np.zeros(9, np.int32), 256, 9, num_warps=warps)
    assert np.array_equal(found, np.sort(x)[::-1][:9])


@triton.jit
def thirds_and_halves(a, b, c, d):
    return a // 3 + c % 5, tl.where(b > d, b >> 1, d // 2)


@triton.jit
def quotients_and_shifts(a, b, c, d):
    return (a ^ c) // 3, (b | d) >> 1


@triton.jit
def combined_narrow(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    a, b = tl.reduce((x, x), 0, quotients_and_shifts)
    c, d = tl.reduce((x, x), 0, thirds_and_halves)
    tl.store(out_ptr + tl.arange(0, 2), tl.join(a + c, b + d))


@pytest.mark.parametrize("element", ["i8", "u8", "i16"])
@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_what_c_computes_in_int_becomes_narrow_again(element: str) -> None:
    """In braces C++ lets no int become narrower unsaid: quotients and shifts are such ints, too."""
    artifact = combined_narrow.translate(f"*{element}:16, *{element}:16, 64")
    assert "warning" not in nvrtc.compile_text(artifact, "sm_80").log


def test_one_name_for_two_helpers_is_a_mistake_of_the_translator() -> None:
    needs = Needs(Names([]))
    needs.helper("divide", "divide", {"ctype": "float"})
    assert needs.helper("divide", "divide", {"ctype": "float"}) == "divide"
    with pytest.raises(ValueError, match="two helpers would be called divide"):
        needs.helper("divide", "divide", {"ctype": "double"})


def test_as_many_helpers_of_a_kind_as_a_kernel_has_instructions() -> None:
    needs = Needs(Names([]))
    values = [
        {"a_type": type_, "b_transposed": turned, "n": n} for type_ in "xy" for turned in (0, 1) for n in (1, 2, 3)
    ]
    names = [needs.distinct_helper("wgmma", "wgmma", one, "registers") for one in values]
    assert len(set(names)) == len(values)
    assert names == [needs.distinct_helper("wgmma", "wgmma", one, "registers") for one in values]


@triton.jit
def smaller_and_larger(small, large, other_small, other_large):
    return tl.minimum(small, other_small), tl.maximum(large, other_large)


@triton.jit
def of_computed_bytes(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    small, large = tl.reduce((x, tl.abs(x)), 0, smaller_and_larger)
    tl.store(out_ptr, small)
    tl.store(out_ptr + 1, large)
    masked, place = tl.max(x & 7, 0, return_indices=True)
    tl.store(out_ptr + 2, masked)
    tl.store(out_ptr + 3, place)


@triton.jit
def of_chosen_bytes(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    small, large = tl.reduce((tl.where(x > 3, tl.maximum(x, x | 1), x), tl.abs(x | 1)), 0, smaller_and_larger)
    tl.store(out_ptr, small)
    tl.store(out_ptr + 1, large)
    named, place = tl.max(tl.load(x_ptr + (tl.arange(0, N) & 7)), 0, return_indices=True)
    tl.store(out_ptr + 2, named)
    tl.store(out_ptr + 3, place)


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize(("signature", "size"), (("*i8:16, *i8:16", 256), ("*u16:16, *u16:16", 100)))
def test_narrow_integers_in_states_compile_without_a_warning(signature: str, size: int) -> None:
    for kernel in (of_computed_bytes, of_chosen_bytes):
        artifact = kernel.translate(f"{signature}, {size}")
        assert "warning" not in nvrtc.compile_text(artifact).log


@triton.jit
def of_conditions(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    _, place = tl.max((x > 0) & (x < 5), 0, return_indices=True)
    tl.store(out_ptr, place)


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_conditions_in_states_compile_without_a_warning() -> None:
    assert "warning" not in nvrtc.compile_text(of_conditions.translate("*fp32:16, *i32:16, 256")).log


@triton.jit
def nearest(a_ptr, b_ptr, best_ptr, place_ptr, N, K, S: tl.constexpr, INSIDE: tl.constexpr):
    # The largest of every row of a product, and where it is: of one tile at a time, or behind the loop.
    i, n, k = tl.program_id(0) * S + tl.arange(0, S), tl.arange(0, S), tl.arange(0, S)
    best = tl.full((S,), float("-inf"), tl.float32)
    place = tl.zeros((S,), tl.int32)
    if INSIDE:
        a = tl.load(a_ptr + i[:, None] * S + k[None, :])
        for n0 in range(0, N, S):
            b = tl.load(b_ptr + (n0 + n)[:, None] * S + k[None, :])
            top, at = tl.max(tl.dot(a, b.T), axis=1, return_indices=True)
            place = tl.where(top > best, n0 + at, place)
            best = tl.maximum(best, top)
    else:
        c = tl.zeros((S, S), tl.float32)
        for k0 in range(0, K, S):
            a = tl.load(a_ptr + i[:, None] * K + (k0 + k)[None, :])
            b = tl.load(b_ptr + n[:, None] * K + (k0 + k)[None, :])
            c = tl.dot(a, b.T, c)
        best, place = tl.max(c, axis=1, return_indices=True)
    tl.store(best_ptr + i, best)
    tl.store(place_ptr + i, place)


@pytest.mark.parametrize(("inside", "arch"), ((True, "sm_80"), (False, "sm_90a")))
def test_where_products_are_largest(
    run_everywhere: Any, monkeypatch: pytest.MonkeyPatch, inside: bool, arch: str
) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    n, k = (192, 64) if inside else (64, 192)
    a, b = (np.random.default_rng(rows).integers(-2, 3, (rows, k)).astype(np.float16) for rows in (64, n))
    outs = np.zeros(64, np.float32), np.zeros(64, np.int32)
    *_, best, place = run_everywhere(nearest, (1,), a, b, *outs, n, k, S=64, INSIDE=inside)
    products = a.astype(np.float32) @ b.astype(np.float32).T
    assert np.array_equal(best, products.max(1))
    assert np.array_equal(place, products.argmax(1))


@triton.jit
def welford(mean_1, m2_1, weight_1, mean_2, m2_2, weight_2):
    delta = mean_2 - mean_1
    weight = weight_1 + weight_2
    share = tl.where(weight == 0.0, 0.0, weight_2 / weight)
    return mean_1 + delta * share, m2_1 + m2_2 + delta * delta * weight_1 * share, weight


@triton.jit
def row_variances(x_ptr, mean_ptr, var_ptr, M: tl.constexpr, N: tl.constexpr, TURNED: tl.constexpr):
    rows, cols = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + (rows + cols * M if TURNED else rows * N + cols))
    mean, m2, _ = tl.reduce((x, tl.zeros([M, N], tl.float32), tl.full([M, N], 1, tl.float32)), 1, welford)
    tl.store(mean_ptr + tl.arange(0, M), mean)
    tl.store(var_ptr + tl.arange(0, M), m2 / N)


@pytest.mark.parametrize(
    ("shape", "turned", "warps", "read"),
    [
        ((2, 1024), False, 16, "_partial[tid % 8]"),  # each of eight lanes reads one warp's part
        (
            (32, 64),
            True,
            8,
            "const int first_part = tid / 8 % 4 * 2;",
        ),  # four lanes share each element, and take two warps' each
        ((2, 256), False, 4, "combine_warps<Welford>"),  # two warps' parts
    ],
)
def test_lanes_share_the_parts_of_warps(
    run_everywhere: Any, shape: tuple[int, int], turned: bool, warps: int, read: str
) -> None:
    m, n = shape
    x = np.random.default_rng(m).standard_normal(shape).astype(np.float32) + 3
    data, zeros = np.ascontiguousarray(x.T if turned else x), np.zeros(m, np.float32)
    arguments = (data, zeros, zeros.copy(), m, n, turned)
    _, mean, variance = run_everywhere(row_variances, (1,), *arguments, num_warps=warps, tolerance=1e-5)
    np.testing.assert_allclose(mean, x.astype(np.float64).mean(1), rtol=1e-5)
    np.testing.assert_allclose(variance, x.astype(np.float64).var(1), rtol=1e-4)
    signature = f"*fp32:16, *fp32:16, *fp32:16, {m}, {n}, {turned}"
    assert read in row_variances.translate(signature, num_warps=warps).source


@triton.jit
def last_but_zero(x, y):
    return tl.where(y != 0, y, x)


@triton.jit
def one_after_the_other(slope, offset, other_slope, other_offset):
    return slope * other_slope, offset * other_slope + other_offset


@triton.jit
def crossed(a, b, c, d):
    return a * d + c * b, tl.maximum(b, d)


@triton.jit
def in_order(x_ptr, y_ptr, last_ptr, slope_ptr, offset_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    zeros = i * 0  # so that every thread stores what it has
    tl.store(last_ptr + i, zeros + tl.reduce(x, 0, last_but_zero))
    slope, offset = tl.reduce((tl.load(y_ptr + i), x), 0, one_after_the_other)
    tl.store(slope_ptr + i, zeros + slope)
    tl.store(offset_ptr + i, zeros + offset)


@triton.jit
def rows_in_order(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + places)
    tl.store(out_ptr + places, x * 0 + tl.reduce(x, 1, last_but_zero)[:, None])


@triton.jit
def by_two_functions(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    total, _ = tl.reduce((x, x), 0, crossed)
    tl.store(out_ptr, total)


@triton.jit
def best_of_nothing(x_ptr, out_ptr, row_ptr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M * N)
    best = tl.argmax(tl.load(x_ptr + i), 0)
    tl.store(out_ptr + i, tl.where(i == best, -1, best))
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    rows = tl.argmin(tl.load(x_ptr + places), 1)
    tl.store(row_ptr + places, places * 0 + rows[:, None])


@pytest.mark.parametrize("warps", (1, 4))
@pytest.mark.parametrize("n", (32, 128))
def test_lanes_combine_in_their_order(run_everywhere: Any, n: int, warps: int) -> None:
    random = np.random.default_rng(n)
    x, y = random.integers(0, 2, n).astype(np.int32) * np.arange(1, n + 1, dtype=np.int32), random.integers(-1, 2, n)
    zeros = np.zeros(n, np.int32)
    _, _, last, _, _ = run_everywhere(
        in_order, (1,), x, y.astype(np.int32), zeros, zeros, zeros, N=n, num_warps=warps
    )  # fmt: skip
    assert np.array_equal(last, np.full(n, x[x != 0][-1]))


@pytest.mark.parametrize("warps", (1, 4))
def test_lanes_that_share_a_row_agree(run_everywhere: Any, warps: int) -> None:
    x = np.random.default_rng(5).integers(0, 2, (16, 64)).astype(np.int32) * np.arange(1, 65, dtype=np.int32)
    _, rows = run_everywhere(rows_in_order, (1,), x, np.zeros_like(x), 16, 64, num_warps=warps)
    assert all(len(set(row)) == 1 for row in rows.tolist())


@pytest.mark.parametrize("shape", ((4, 16), (8, 64), (16, 2)))
@pytest.mark.parametrize("warps", (1, 4))
def test_all_threads_find_the_first_of_nothing_but_nan(run_everywhere: Any, shape: tuple[int, int], warps: int) -> None:
    x = np.full(shape, np.nan, np.float32)
    out = np.zeros(shape, np.int32)
    run_everywhere(best_of_nothing, (1,), x, out, out, *shape, num_warps=warps)


def test_only_what_does_not_commute_takes_the_first_lanes_result() -> None:
    text = by_two_functions.translate("*fp32, *fp32, 256").source
    assert "block_reduce_in_order<" in text  # an fma rounds one of the two products and not the other
    integers = by_two_functions.translate("*i32, *i32, 256").source
    assert "block_reduce<" in integers and "in_order" not in integers


@triton.jit
def the_larger(left, right, value, other):
    # Called as what the struct's own function has: its two sides.
    first = (left > value) | ((left == value) & (right < other))
    return tl.where(first, left, value), tl.where(first, right, other)


@triton.jit
def largest_of_pairs(x_ptr, out_ptr, place_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    best, place = tl.reduce((tl.load(x_ptr + i), i), 0, the_larger)
    tl.store(out_ptr, best)
    tl.store(place_ptr, place)


def test_parameters_may_be_called_as_the_sides(run_everywhere: Any) -> None:
    x = np.random.default_rng(4).integers(0, 50, 256).astype(np.float32)
    _, best, place = run_everywhere(largest_of_pairs, (1,), x, np.zeros(1, np.float32), np.zeros(1, np.int32), 256)
    assert best[0] == x.max() and place[0] == x.argmax()


@triton.jit
def kept_axes(x_ptr, sums_ptr, scaled_ptr, M: tl.constexpr, N: tl.constexpr):
    rows, cols = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + rows * N + cols)
    total = tl.sum(x, 1)[:, None]
    tl.store(sums_ptr + rows, total)
    tl.store(scaled_ptr + rows * N + cols, x / total)


def test_a_sum_has_its_name_at_once(run_everywhere: Any) -> None:
    x = np.random.default_rng(5).random((8, 64), np.float32)
    _, sums, scaled = run_everywhere(
        kept_axes, (1,), x, np.zeros(8, np.float32), np.zeros_like(x), 8, 64, tolerance=1e-5
    )
    whole = x.astype(np.float64).sum(1, keepdims=True)
    np.testing.assert_allclose(sums, whole[:, 0], rtol=1e-5)
    np.testing.assert_allclose(scaled, x / whole, rtol=1e-5)
    text = kept_axes.translate("*fp32:16, *fp32:16, *fp32:16, 8, 64").source
    assert "total = warp_reduce<Sum" in text and "x_sum" not in text


def test_a_reduced_axis_counts_by_another_name_than_what_is_kept() -> None:
    """Both axes of a square tile may be called alike, as where rows have the layout of a vector that is named first."""
    source = Layout(((REGISTER, 0), (REGISTER, 1)), 2)
    kept = Layout(((REGISTER, 1),), 2)
    plan = Reduction((), source, (0,), kept, (0,), (), Combination("ArgMax", "ArgMax", (), None, None))
    assert loop_names(plan, point_of(kept, (register("c"),)), ["c", "c"]) == ["cc", "c"]
    assert loop_names(plan, point_of(kept, (register("c"),)), ["r", "c"]) == ["r", "c"]


@triton.jit
def best_of_turned_rows(x_ptr, best_ptr, sum_ptr, N: tl.constexpr, R: tl.constexpr):
    """The lanes that hold a row are no neighbours behind two transpositions."""
    i, j = tl.arange(0, R), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    y = tl.trans(tl.reshape(x, (N, R))) * tl.load(x_ptr + j)[None, :]
    z = tl.trans(tl.reshape(y - tl.max(x, 1)[:, None], (N, R)))
    tl.store(best_ptr + i, tl.argmin(z, 1))
    tl.store(sum_ptr + i, tl.sum(z, 1))


@pytest.mark.parametrize("warps", (4, 8, 16))
def test_lanes_that_share_the_warps_parts_are_no_neighbours(run_everywhere: Any, warps: int) -> None:
    x = np.random.default_rng(5).integers(-99, 99, (8, 256)).astype(np.float32)
    outs = np.zeros(8, np.int32), np.zeros(8, np.float32)
    _, best, sums = run_everywhere(best_of_turned_rows, (1,), x, *outs, 256, 8, num_warps=warps)
    z = (x.reshape(256, 8).T * x[0] - x.max(1)[:, None]).reshape(256, 8).T
    assert np.array_equal(best, z.argmin(1)) and np.array_equal(sums, z.sum(1))
