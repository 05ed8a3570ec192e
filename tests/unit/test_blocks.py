"""Block pointers and tensor descriptors: copies on the CPU and in the interpreter, and the typed kernel."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.frontend import build_kernel
from tilewright.ir.printer import print_kernel
from tilewright.ir.verify import verify
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target
from tilewright.tools.tensor_descriptor import TensorDescriptor

RNG = np.random.default_rng(5)


def typed(kernel: Any, signature: str) -> str:
    """The typed kernel as text; it follows the rules of docs/ir.md."""
    found = build_kernel(kernel, parse_signature(kernel, signature), Options(), find_target("sm_90a"))
    verify(found)
    return print_kernel(found)


def compared_with_zero(text: str) -> int:
    """How many comparisons `>=` a typed kernel holds."""
    return len(re.findall(r"\bge\(", text))


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    return RNG.standard_normal(shape).astype(dtype)


def padded_window(x: Any, start: tuple[int, ...], sides: tuple[int, ...], fill: float = 0) -> Any:
    """The block of `sides` elements of `x` at `start`, `fill` outside."""
    out = np.full(sides, fill, x.dtype)
    for place in np.ndindex(*sides):
        index = tuple(p + s for p, s in zip(place, start, strict=True))
        if all(0 <= i < n for i, n in zip(index, x.shape, strict=True)):
            out[place] = x[index]
    return out


# ----------------------------------------------------------------------------------------------------- block pointers


@triton.jit
def window_kernel(
    x_ptr, out_ptr, M, N, stride, start_m, start_n, CHECK: tl.constexpr, PADDING: tl.constexpr, B: tl.constexpr
):
    block = tl.make_block_ptr(x_ptr, (M, N), (stride, 1), (start_m, start_n), (B, 2 * B), (1, 0))
    x = tl.load(block, boundary_check=CHECK, padding_option=PADDING)
    i = tl.arange(0, B)[:, None] * (2 * B) + tl.arange(0, 2 * B)[None, :]
    tl.store(out_ptr + i, x)


@pytest.mark.parametrize("start", [(0, 0), (3, 5), (-4, -9), (20, 30), (-100, 0)])
@pytest.mark.parametrize(("padding", "fill"), [("zero", 0), ("nan", np.nan)])
def test_boundary_checks_and_padding(run_everywhere: Any, start: tuple[int, int], padding: str, fill: float) -> None:
    x, out = numbers(23, 37), np.full((16, 32), 7, np.float32)
    _, found = run_everywhere(window_kernel, (1,), x, out, 23, 37, 37, *start, (0, 1), padding, 16)
    np.testing.assert_array_equal(found, padded_window(x, start, (16, 32), fill))


@pytest.mark.parametrize(
    ("check", "start"), [((0,), (20, 3)), ((1,), (4, 20)), (1, (4, 20)), ((-1,), (4, 20)), ((), (3, 3))]
)
def test_only_the_named_axes_are_checked(run_everywhere: Any, check: Any, start: tuple[int, int]) -> None:
    x, out = numbers(23, 37), np.zeros((16, 32), np.float32)
    rows = x[: 23 if check in ((0,), ()) else 20]
    _, found = run_everywhere(window_kernel, (1,), x, out, len(rows), 37, 37, *start, check, "zero", 16)
    np.testing.assert_array_equal(found, padded_window(rows, start, (16, 32)))


def test_what_is_tested_in_the_typed_kernel() -> None:
    rest = "i32, i32, i32:16, i32, i32"
    both = typed(window_kernel, f"*fp32, *fp32, {rest}, (0, 1), 'nan', 16")
    assert compared_with_zero(both) == 2 and both.count("lt(") == 2 and "nan:fp32[16, 32]" in both
    assert "boundary" not in both
    neither = typed(window_kernel, f"*fp32, *fp32, {rest}, (), '', 16")
    assert "lt(" not in neither and "load(ptr_add(broadcast(ptr_add(broadcast(x_ptr), mul(cast(" in neither


@triton.jit
def advance_kernel(x_ptr, out_ptr, M, K, BM: tl.constexpr, BK: tl.constexpr, STEP: tl.constexpr):
    pid = tl.program_id(0)
    x_block = tl.make_block_ptr(x_ptr, (M, K), (K, 1), (pid * BM, 0), (BM, BK), (1, 0))
    out_block = tl.make_block_ptr(out_ptr, (M, K), (K, 1), (pid * BM, 0), (BM, BK), (1, 0))
    for _ in range(0, K, BK):
        x = tl.load(x_block, boundary_check=(0, 1), padding_option="zero")
        tl.store(out_block, x * 2, boundary_check=(0, 1))
        x_block = tl.advance(x_block, (0, STEP))
        out_block = tl.advance(out_block, (0, STEP))


@triton.jit
def rounded_copy_kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    source = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (B,), (0,))
    target = tl.make_block_ptr(out_ptr, (n,), (1,), (0,), (B,), (0,))
    tl.static_assert(source.type.element_ty == tl.float32)
    for _ in range(0, n, B):
        halved = tl.load(source, boundary_check=(0,)) / 2
        target.store(halved.to(target.dtype.element_ty), boundary_check=(0,))
        source, target = source.advance((B,)), target.advance((B,))


def test_a_block_pointer_tells_its_type_and_has_methods(run_everywhere: Any) -> None:
    x, out = numbers(50), np.zeros(50, np.float16)
    _, found = run_everywhere(rounded_copy_kernel, (1,), x, out, 50, 16)
    np.testing.assert_array_equal(found, (x / 2).astype(np.float16))


@triton.jit
def addressed_descriptor_kernel(table_ptr, steps_ptr, out_ptr, M, N: tl.constexpr):
    base = tl.load(table_ptr).to(tl.pointer_type(tl.float16))
    desc = tl.make_tensor_descriptor(base, [M, N], [tl.load(steps_ptr), 1], [16, N])
    rows, columns = tl.arange(0, 16), tl.arange(0, N)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], desc.load([0, 0]))


def test_descriptors_promise_aligned_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an address and a stride from memory nothing else is known; rows are read by 16 bytes all the same."""
    text = addressed_descriptor_kernel.translate("*i64:16, *i32:16, *fp16:16, i32, 64").source
    assert re.search(r"VEC = 8;", text) and "load_vec" in text
    x = numbers(16, 72, dtype=np.float16)
    for mode in ("cpu", "interpret"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        out = np.zeros((16, 64), np.float16)
        table, steps = np.array([x.ctypes.data], np.int64), np.array([72], np.int32)
        addressed_descriptor_kernel[(1,)](table, steps, out, 13, 64)
        np.testing.assert_array_equal(out, np.where(np.arange(16)[:, None] < 13, x[:, :64], 0))


def test_a_loop_moves_only_the_offset_that_it_changes(run_everywhere: Any) -> None:
    x, out = numbers(50, 70, dtype=np.float16), np.zeros((50, 70), np.float16)
    _, found = run_everywhere(advance_kernel, (4,), x, out, 50, 70, 16, 32, 32)
    np.testing.assert_array_equal(found, x * 2)
    text = typed(advance_kernel, "*fp16:16, *fp16:16, i32, i32:16, 16, 32, 32")
    assert "x_block_offset_1: i32 = 0\n" in text and "x_block_offset_1: i32 = add(x_block_offset_1, STEP)" in text
    assert not re.search(r"x_block_(base|shape|stride|offset_0)", text)
    assert not compared_with_zero(text)
    negative = typed(advance_kernel, "*fp16:16, *fp16:16, i32, i32:16, 16, 32, -32")
    assert compared_with_zero(negative) == 2, "an offset that moves back is compared with 0"


@triton.jit
def batch_kernel(x_ptr, out_ptr, B, M, N, S: tl.constexpr):
    x = tl.make_block_ptr(x_ptr, (B, M, N), (M * N, N, 1), (0, 0, 0), (2, S, S), (2, 1, 0))
    out = tl.make_block_ptr(out_ptr, (B, N, M), (M * N, M, 1), (0, 0, 0), (2, S, S), (2, 1, 0))
    x = tl.advance(x, (1, 2, 3))
    moved = tl.load(x, boundary_check=(0, 1, 2), padding_option="zero")
    tl.store(out, tl.permute(moved, (0, 2, 1)), boundary_check=(0, 1, 2))


def test_three_axes(run_everywhere: Any) -> None:
    x, out = numbers(2, 9, 7), np.zeros((2, 7, 9), np.float32)
    _, found = run_everywhere(batch_kernel, (1,), x, out, 2, 9, 7, 8)
    window = padded_window(x, (1, 2, 3), (2, 8, 8)).transpose(0, 2, 1)
    np.testing.assert_array_equal(found, np.pad(window, ((0, 0), (0, 0), (0, 1)))[:, :7, :9])


@triton.jit
def wide_kernel(x_ptr, out_ptr, size, start, B: tl.constexpr):
    block = tl.make_block_ptr(x_ptr, (size,), (1,), (start,), (B,), (0,))
    tl.store(
        out_ptr + tl.arange(0, B), tl.load(tl.advance(block, (start,)), boundary_check=(0,), padding_option="zero")
    )


def test_sizes_of_64_bits_have_indices_of_64_bits(run_everywhere: Any) -> None:
    text = typed(wide_kernel, "*fp32, *fp32, i64, i32, 16")
    assert "i64" not in typed(wide_kernel, "*fp32, *fp32, i32, i32, 16")
    assert "add(broadcast(cast(add(cast(start), cast(start)" in text or "add(cast(start)" in text
    x, out = numbers(40), np.zeros(16, np.float32)
    _, found = run_everywhere(wide_kernel, (1,), x, out, 2**40, 4, 16)
    np.testing.assert_array_equal(found, x[8:24])


@triton.jit
def rebound_kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    start = 0
    block = tl.make_block_ptr(x_ptr, (n,), (1,), (start,), (B,), (0,))
    start = 5  # the block stays where it was
    base = out_ptr + start
    out = tl.make_block_ptr(base, (n - start,), (1,), (start - start,), (B,), (0,))
    base = base + 100
    start += 1000
    tl.store(out, tl.load(block), boundary_check=(0,))


def test_a_block_keeps_the_values_that_it_was_made_of(run_everywhere: Any) -> None:
    x, out = numbers(20), np.zeros(20, np.float32)
    _, found = run_everywhere(rebound_kernel, (1,), x, out, 20, 8)
    np.testing.assert_array_equal(found[5:13], x[:8])
    assert found[13:].sum() == 0


# -------------------------------------------------------------------------------------------------------- descriptors


@triton.jit
def made_kernel(x_ptr, out_ptr, M, N, start_m, start_n, PADDING: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BM, BN], padding_option=PADDING)
    out = tl.make_tensor_descriptor(out_ptr, shape=(BM, BN), strides=(BN, 1), block_shape=desc.block_shape)
    tl.static_assert(isinstance(desc, tl.tensor_descriptor))
    tl.static_assert(desc.dtype == tl.float32)
    x = tl.load_tensor_descriptor(desc, [start_m, start_n])
    tl.store_tensor_descriptor(out, [0, 0], x)


@pytest.mark.parametrize("start", [(0, 0), (20, 30), (-4, -9), (-16, 0)])
@pytest.mark.parametrize(("padding", "fill"), [("zero", 0), ("nan", np.nan)])
def test_descriptors_pad(run_everywhere: Any, start: tuple[int, int], padding: str, fill: float) -> None:
    x, out = numbers(23, 36), np.zeros((16, 32), np.float32)
    _, found = run_everywhere(made_kernel, (1,), x, out, 23, 36, *start, padding, 16, 32)
    np.testing.assert_array_equal(found, padded_window(x, start, (16, 32), fill))


@triton.jit
def host_kernel(x_desc, out_desc, scale, B: tl.constexpr):
    row = tl.program_id(0) * B
    for column in range(0, x_desc.shape[1], B):
        out_desc.store([row, column], x_desc.load([row, column]) * scale)


def test_host_descriptors(run_everywhere: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for mode in ("cpu", "interpret"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        x, out = numbers(50, 72, dtype=np.float16), np.zeros((50, 80), np.float16)
        described = TensorDescriptor(out, [50, 72], [80, 1], [32, 32])
        host_kernel[(2,)](TensorDescriptor.from_tensor(x, [32, 32]), described, 2.0, 32)
        np.testing.assert_array_equal(out[:, :72], x * np.float16(2))
        assert out[:, 72:].sum() == 0


def test_host_descriptors_become_parameters() -> None:
    text = typed(host_kernel, "tensordesc<fp16[32, 32]>, tensordesc<fp16[32, 32]>, fp32, 32")
    shown = "x_desc: *fp16:16, x_desc_shape_0: i32, x_desc_shape_1: i32, x_desc_stride_0: i64:8, out_desc: *fp16:16"
    assert shown in text
    assert not compared_with_zero(text) and "x: fp16[32, 32] = load(" in text
    artifact = host_kernel.translate("tensordesc<fp16[32, 32]>, tensordesc<fp16[32, 32], nan>, fp32, 32")
    paths = {parameter.name: parameter.path for parameter in artifact.parameters}
    assert (
        paths["x_desc"] == (0, 0) and paths["out_desc_shape_1"] == (1, 1, 1) and paths["out_desc_stride_0"] == (1, 2, 0)
    )
    assert artifact.writes == ("out_desc",)


def test_specialisations_of_host_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    from tilewright.runtime.arguments.specialise import specialise

    def key(x: Any, **options: Any) -> Any:
        described = TensorDescriptor.from_tensor(x, [16, 16], **options)
        return specialise(host_kernel, {"x_desc": described, "out_desc": described, "scale": 1.0, "B": 16}).key

    x = numbers(50, 64)
    assert key(x) == key(numbers(51, 80)) and key(x) == key(numbers(1, 64)), "a side of 1 stays a parameter"
    for other in (key(numbers(48, 64)), key(x.astype(np.float16)), key(x, padding="nan")):
        assert key(x) != other


@triton.jit
def row_sum(desc, row, B: tl.constexpr):
    total = tl.zeros((B,), tl.float32)
    for column in range(0, desc.shape[1], B):
        total += tl.sum(desc.load([row, column]), axis=0)
    return total


@triton.jit
def chosen(first, second, number):
    if number % 2 == 0:
        return first
    else:
        return second


@triton.jit
def passed_kernel(x_ptr, y_ptr, out_ptr, M, N, B: tl.constexpr):
    descs = (
        tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [1, B]),
        tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [1, B]),
    )
    for row in range(M):
        desc = chosen(descs[0], descs[1], row)
        tl.store(out_ptr + row * B + tl.arange(0, B), row_sum(desc, row, B))


def test_descriptors_are_passed_returned_and_kept_in_tuples(run_everywhere: Any) -> None:
    x, y, out = numbers(6, 32), numbers(6, 32), np.zeros((6, 16), np.float32)
    *_, found = run_everywhere(passed_kernel, (1,), x, y, out, 6, 32, 16, tolerance=1e-5)
    picked = np.where(np.arange(6)[:, None] % 2 == 0, x, y)
    np.testing.assert_allclose(found, picked[:, :16] + picked[:, 16:], rtol=1e-5)


@triton.jit
def carried_kernel(x_ptr, y_ptr, out_ptr, M, N, B: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [1, B])
    row = tl.arange(0, B)
    for i in range(M):
        if i == 2:
            desc = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [1, B])
        tl.store(out_ptr + i * B + row, tl.sum(desc.load([i, 0]), axis=0))


def test_a_descriptor_that_a_loop_replaces(run_everywhere: Any) -> None:
    x, y, out = numbers(5, 16), numbers(5, 16), np.zeros((5, 16), np.float32)
    *_, found = run_everywhere(carried_kernel, (1,), x, y, out, 5, 16, 16)
    np.testing.assert_array_equal(found, np.concatenate([x[:2], y[2:]]))
    text = typed(carried_kernel, "*fp32, *fp32, *fp32, i32, i32, 16")
    assert "desc_base: *fp32 = x_ptr" in text and "desc_base: *fp32 = y_ptr" in text
    assert "desc_shape" not in text and "desc_stride" not in text


@triton.jit
def atomic_kernel(x_desc, y_desc, z_desc, START: tl.constexpr, B: tl.constexpr):
    value = (tl.arange(0, B)[:, None] + tl.arange(0, B)[None, :]).to(x_desc.dtype)
    x_desc.atomic_add([START, START], value)
    y_desc.atomic_max([START, 0], value)
    z_desc.atomic_xor([0, START], value)


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_atomics(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    arrays = [RNG.integers(0, 40, (24, 20), dtype=np.int32) for _ in range(3)]
    before = [array.copy() for array in arrays]
    atomic_kernel[(1,)](*(TensorDescriptor.from_tensor(array, [16, 16]) for array in arrays), 8, 16)
    value = np.arange(16)[:, None] + np.arange(16)[None, :]
    before[0][8:, 8:] += value[:, :12]
    before[1][8:, :16] = np.maximum(before[1][8:, :16], value)
    before[2][:16, 8:] ^= value[:, :12]
    for array, expected in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, expected)


@triton.jit
def rows_kernel(x_desc, out_desc, rows_ptr, to_ptr, column, R: tl.constexpr):
    i = tl.arange(0, R)
    x = x_desc.gather(tl.load(rows_ptr + i), column)
    out_desc.scatter(x + 1, tl.load(to_ptr + i), 0)


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_gather_and_scatter(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x, out = numbers(20, 40), np.zeros((20, 20), np.float32)
    rows, to = np.array([3, 19, -1, 20, 7, 0, 1, 2], np.int32), np.array([0, 1, 2, 3, 19, 20, -1, 5], np.int32)
    described = TensorDescriptor.from_tensor(x, [1, 16]), TensorDescriptor.from_tensor(out, [1, 16])
    rows_kernel[(1,)](*described, rows, to, 30, 8)
    expected = np.zeros_like(out)
    for source, target in zip(rows, to, strict=True):
        if 0 <= target < 20:
            expected[target, :16] = padded_window(x, (int(source), 30), (1, 16))[0] + 1
    np.testing.assert_array_equal(out, expected)


# ------------------------------------------------------------------------------------------------------------- tuples


@triton.jit
def swapped_kernel(out_ptr, n, B: tl.constexpr):
    pair = (tl.arange(0, B), tl.zeros((B,), tl.int32) + 7)
    state = (pair, B, 0)
    for i in range(n):
        state = ((state[0][1], state[0][0]), B, state[2] + i)
    a, b = state[0]
    tl.store(out_ptr + tl.arange(0, B), a)
    tl.store(out_ptr + B + tl.arange(0, B), b + state[1] + state[2])


@pytest.mark.parametrize("steps", [0, 3, 4])
def test_tuples_are_carried_by_loops(run_everywhere: Any, steps: int) -> None:
    (found,) = run_everywhere(swapped_kernel, (1,), np.zeros((2, 8), np.int32), steps, 8)
    pair = [np.arange(8), np.full(8, 7)]
    first, second = pair if steps % 2 == 0 else pair[::-1]
    np.testing.assert_array_equal(found, [first, second + 8 + sum(range(steps))])


@triton.jit
def branch_kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    if n > 3:
        pair = (tl.load(x_ptr), 1)
    else:
        pair = (tl.load(x_ptr + 1), 2)
    value = 5
    kept = (value, value + 1)
    value = 6
    tl.store(out_ptr, pair[0])
    tl.store(out_ptr + 1, pair[1] + kept[0] * 10 + kept[1] * 100)


@pytest.mark.parametrize(("n", "expected"), [(5, [10, 651]), (2, [20, 652])])
def test_branches_make_tuples(run_everywhere: Any, n: int, expected: list[int]) -> None:
    _, found = run_everywhere(branch_kernel, (1,), np.array([10, 20], np.int32), np.zeros(2, np.int32), n, 8)
    assert found.tolist() == expected


# ---------------------------------------------------------------------------------------------------- three spellings


@triton.jit
def pointer_matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    offs_m = tl.program_id(0) * BM + tl.arange(0, BM)
    offs_n = tl.program_id(1) * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * N + offs_n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (offs_k[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < K - k) & (offs_n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


@triton.jit
def block_matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    a_block = tl.make_block_ptr(a_ptr, (M, K), (K, 1), (row, 0), (BM, BK), (1, 0))
    b_block = tl.make_block_ptr(b_ptr, (K, N), (N, 1), (0, column), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(a, b, acc)
        a_block = tl.advance(a_block, (0, BK))
        b_block = tl.advance(b_block, (BK, 0))
    tl.store(tl.make_block_ptr(c_ptr, (M, N), (N, 1), (row, column), (BM, BN), (1, 0)), acc, boundary_check=(0, 1))


@triton.jit
def descriptor_matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a_desc.load([row, k]), b_desc.load([k, column]), acc)
    tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN]).store([row, column], acc)


def test_three_spellings_of_a_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    a, b = numbers(70, 90, dtype=np.float16), numbers(90, 50, dtype=np.float16)
    results = []
    for kernel in (pointer_matmul, block_matmul, descriptor_matmul):
        c = np.full((70, 50), 7, np.float32)
        kernel[(3, 2)](a, b, c, 70, 50, 90, 32, 32, 32)
        results.append(c)
        text = typed(kernel, "*fp16:16, *fp16:16, *fp32:16, i32, i32, i32, 32, 32, 32")
        assert (
            text.count(" = load(") == 2 and text.count("acc: fp32[32, 32] = dot(") == 1 and not compared_with_zero(text)
        )
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_allclose(results[0], a.astype(np.float64) @ b, rtol=1e-3, atol=1e-3)
