"""Which loads and stores are boxes, and as what; every box is compared with brute force."""

from __future__ import annotations

import math

import pytest
import tilewright as triton
import tilewright.language as tl
from box_checks import check, described, outcomes
from tilewright.analysis.boxes import Box, parameter_text
from tilewright.ir.nodes import Call, Expr, Literal, Use, Variable
from tilewright.ir.symbols import Name

# ------------------------------------------------------------------------------------------------------- the matmul


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
           BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):  # fmt: skip
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    offs_am = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_bn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        acc += tl.sum(a, axis=1)[:, None] + tl.sum(b, axis=0)[None, :]
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    offs_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, acc, mask=c_mask)


POINTERS = "*fp16:16, *fp16:16, *fp16:16"
ROW, COLUMN = "i32:16, i32:1", "i32:1, i32:16"
# For a tile to be whole, most sizes are multiples of 32; those of K are not.
SIZES = {"M": (32, 300, 32), "N": (32, 300, 32), "K": (1, 200, 1)}


def test_the_grouped_matmul() -> None:
    signature = f"{POINTERS}, i32, i32, i32, {ROW}, {ROW}, {ROW}, 32, 32, 16, 2"
    a, b, c = (described(box) for _, box in outcomes(matmul, signature))
    assert a == (
        [(16, 1, "mul(k, BLOCK_K)", "K", "1"),
         (32, 0, "mod(mul(pid_m, BLOCK_M), M)", None, "stride_am")], ["M % 32 == 0"],
    )  # fmt: skip
    assert b == (
        [(32, 1, "mod(mul(pid_n, BLOCK_N), N)", None, "1"), (16, 0, "mul(k, BLOCK_K)", "K", "stride_bk")],
        ["N % 32 == 0"],
    )
    assert c == ([(32, 1, "mul(pid_n, BLOCK_N)", "N", "1"), (32, 0, "mul(pid_m, BLOCK_M)", "M", "stride_cm")], [])


@pytest.mark.parametrize("a", (ROW, COLUMN))
@pytest.mark.parametrize("b", (ROW, COLUMN))
def test_the_grouped_matmul_in_every_order(a: str, b: str) -> None:
    signature = f"{POINTERS}, i32, i32, i32, {a}, {b}, {ROW}, 32, 32, 16, 2"
    check(matmul, signature, 3, lambda M, N, **_: triton.cdiv(M, 32) * triton.cdiv(N, 32), **SIZES)


def test_a_known_multiple_needs_no_guard() -> None:
    (_, a), *_ = outcomes(matmul, f"{POINTERS}, i32:16, i32:16, i32, {ROW}, {ROW}, {ROW}, 16, 32, 16, 2")
    assert isinstance(a, Box) and not a.guards


# ------------------------------------------------------------------------------------------------- other spellings


@triton.jit
def bounded(a_ptr, out_ptr, M, K, stride_m, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_k = tl.arange(0, BLOCK_K)
    ptrs = a_ptr + offs_m[:, None] * stride_m + offs_k[None, :]
    for k in range(0, K, BLOCK_K):
        mask = (offs_m[:, None] < M) & (k + offs_k[None, :] <= K - 1)
        a = tl.load(ptrs, mask=mask)
        tl.store(out_ptr + offs_m[:, None] * stride_m + (offs_k + k)[None, :], a, mask=(M > offs_m)[:, None])
        ptrs += BLOCK_K


def test_plain_bounds() -> None:
    signature = "*fp16:16, *fp16:16, i32, i32, i32:16, 16, 32"
    load, store = (described(box) for _, box in outcomes(bounded, signature))
    assert load == ([(32, 1, "k", "K", "1"), (16, 0, "mul(program_id(), BLOCK_M)", "M", "stride_m")], [])
    assert store == ([(32, 1, "k", None, "1"), (16, 0, "mul(program_id(), BLOCK_M)", "M", "stride_m")], [])
    check(bounded, signature, 2)


def test_alignment_must_be_known() -> None:
    reasons = [described(box) for _, box in outcomes(bounded, "*fp16, *fp16:16, i32, i32, i32:16, 16, 32")]
    assert reasons[0] == "a_ptr is not known to be a multiple of 16 bytes"
    reasons = [described(box) for _, box in outcomes(bounded, "*fp16:16, *fp16:16, i32, i32, i32:16, 16, 512")]
    assert reasons[0] == "axis 1 has 512 elements, more than the 256 of a box"


@triton.jit
def halved(w_ptr, out_ptr, N, K, BLOCK_N: tl.constexpr, BYTES: tl.constexpr):
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    byte = tl.program_id(1) * BYTES + tl.arange(0, BYTES)
    mask = (n < N)[:, None] & (byte < K // 2)[None, :]
    w = tl.load(w_ptr + n[:, None] * (K // 2) + byte[None, :], mask=mask, other=0)
    tl.store(out_ptr + n[:, None] * K + byte[None, :], w, mask=mask)


def test_the_launcher_is_asked_for_what_a_quotient_leaves_open() -> None:
    load, _ = (described(box) for _, box in outcomes(halved, "*u8:16, *u8:16, i32, i32:16, 16, 64"))
    half = "K // 2"
    dims = [(64, 1, "mul(program_id(axis=1), BYTES)", half, "1"), (16, 0, "mul(program_id(), BLOCK_N)", "N", half)]
    assert load == (dims, ["K // 2 % 16 == 0"])
    wide = [described(box) for _, box in outcomes(halved, "*fp64:16, *fp64:16, i32, i32:16, 16, 64")]
    assert wide[0][1] == []  # a multiple of 8 elements is enough
    reasons = [described(box) for _, box in outcomes(halved, "*u8:16, *u8:16, i32, i32, 16, 64")]
    assert reasons[0] == "the stride K // 2 is not known to be a multiple of 16 bytes"
    check(halved, "*u8:16, *u8:16, i32, i32:16, 16, 64", 2)


@triton.jit
def batched(a_ptr, out_ptr, M, K, stride_b, stride_m, ROWS: tl.constexpr, D: tl.constexpr):
    a_ptr += tl.program_id(1).to(tl.int64) * stride_b + 2 * stride_b
    start_m = tl.program_id(0) * ROWS
    offs_m = start_m + tl.arange(0, ROWS)
    offs_d = tl.arange(0, D)
    flat = tl.program_id(2) * M * D
    a = tl.load(a_ptr + offs_m[:, None] * stride_m + offs_d[None, :], mask=(offs_m < M)[:, None], other=0)
    tl.store(out_ptr + flat + offs_m[:, None] * D + offs_d[None, :], a, mask=(offs_m < M)[:, None])


def test_batches_are_dimensions() -> None:
    signature = "*i8:16, *i8:16, i32, i32, i32:16, i32:16, 16, 64"
    load, store = (described(box) for _, box in outcomes(batched, signature))
    batch = (1, None, "add(program_id(axis=1), 2)", None, "stride_b")
    assert load == ([(64, 1, "0", None, "1"), (16, 0, "start_m", "M", "stride_m"), batch], [])
    batch = (1, None, "program_id(axis=2)", None, "M * 64")
    assert store == ([(64, 1, "0", None, "1"), (16, 0, "start_m", "M", "64"), batch], [])
    check(batched, signature, 2)


@triton.jit
def persistent(a_ptr, out_ptr, M, N, K, stride_m, stride_n, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    num_n = tl.cdiv(N, BLOCK)
    step = tl.num_programs(0)
    stored = tl.program_id(0) - step
    offs_k = tl.arange(0, BLOCK_K)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BLOCK) * num_n, step, flatten=True):
        start_m = tile // num_n * BLOCK
        offs_m = (start_m + tl.arange(0, BLOCK)) % M
        offs_m = tl.max_contiguous(tl.multiple_of(offs_m, BLOCK), BLOCK)
        ptrs = a_ptr + offs_m[:, None] * stride_m + offs_k[None, :]
        acc = tl.zeros((BLOCK, BLOCK_K), tl.float32)
        for k in range(tl.cdiv(K, BLOCK_K)):
            acc += tl.load(ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
            ptrs += BLOCK_K
        stored += step
        rows = (stored // num_n) * BLOCK + tl.arange(0, BLOCK)
        columns = stored * BLOCK_K + tl.arange(0, BLOCK_K)
        tl.store(out_ptr + rows[:, None] * stride_n + columns[None, :], acc, mask=rows[:, None] < M)


def test_persistent_programs() -> None:
    signature = "*fp16:16, *fp16:16, i32, i32, i32, i32:16, i32:16, 16, 32"
    load, store = (described(box) for _, box in outcomes(persistent, signature))
    assert load == (
        [(32, 1, "mul(k, BLOCK_K)", "K", "1"), (16, 0, "mod(start_m, M)", None, "stride_m")], ["M % 16 == 0"]
    )  # fmt: skip
    assert store == (
        [(32, 1, "mul(tile, BLOCK_K)", None, "1"), (16, 0, "mul(floordiv(tile, num_n), BLOCK)", "M", "stride_n")], []
    )  # fmt: skip
    check(persistent, signature, 2, M=(16, 200, 16), N=(1, 40, 1), K=(1, 70, 1))


@triton.jit
def block_pointer(base, out_ptr, rows, columns, stride, offset, SIDE: tl.constexpr):
    first = tl.program_id(0) * SIDE
    second = offset
    for _ in range(0, 3):
        i = (first + tl.arange(0, SIDE)).to(tl.int64)[:, None]
        j = (second + tl.arange(0, SIDE)).to(tl.int64)[None, :]
        inside = (i >= 0) & (i < rows) & (j >= 0) & (j < columns)
        value = tl.load(base + i * stride + j, mask=inside, other=0.0)
        tl.store(out_ptr + i * stride + j, value, mask=inside)
        second += SIDE


def test_block_pointers() -> None:
    signature = "*fp32:16, *fp32:16, i64, i64, i64:16, i32, 16"
    load, store = (described(box) for _, box in outcomes(block_pointer, signature))
    assert load == store
    assert load[0][0][:2] == (16, 1) and load[0][0][3:] == ("columns", "1")
    assert load[0][1] == (16, 0, "first", "rows", "stride") and load[1] == ["offset % 4 == 0"]
    check(block_pointer, signature, 2, offset=(-20, 30, 1))


@triton.jit
def attention(q_ptr, k_ptr, out_ptr, stride_z, stride_h, stride_m, H, length, CAUSAL: tl.constexpr,
              D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):  # fmt: skip
    start_m = tl.program_id(0)
    off_z = tl.program_id(1) // H
    off_h = tl.program_id(1) % H
    offset = off_z.to(tl.int64) * stride_z + off_h.to(tl.int64) * stride_h
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    q = tl.load(q_ptr + offset + offs_m[:, None] * stride_m + offs_d[None, :], mask=offs_m[:, None] < length)
    low = start_m * BLOCK_M if CAUSAL else 0
    k_ptrs = k_ptr + offset + (low + offs_n)[None, :] * stride_m + offs_d[:, None]
    for start_n in range(low, length, BLOCK_N):
        k = tl.load(k_ptrs, mask=(start_n + offs_n)[None, :] < length, other=0.0)
        v = tl.load(tl.trans(k_ptr + offset + (start_n + offs_n)[None, :] * stride_m + offs_d[:, None]))
        acc += tl.sum(k) + tl.sum(v)
        k_ptrs += BLOCK_N * stride_m
    tl.store(out_ptr + offset + offs_m[:, None] * stride_m + offs_d[None, :], acc + q, mask=offs_m[:, None] < length)


@pytest.mark.parametrize("causal", (True, False))
def test_attention(causal: bool) -> None:
    signature = f"*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, i32, i32, {causal}, 16, 32, 16"
    q, k, v, _ = (described(box) for _, box in outcomes(attention, signature))
    batch = [(1, None, "off_z", None, "stride_z"), (1, None, "off_h", None, "stride_h")]
    rows = (32, 0, "mul(start_m, BLOCK_M)", "length", "stride_m")
    assert q == ([(16, 1, "0", None, "1"), rows, *batch], [])
    assert k == ([(16, 0, "0", None, "1"), (16, 1, "start_n", "length", "stride_m"), *batch], [])
    assert v == ([(16, 1, "0", None, "1"), (16, 0, "start_n", None, "stride_m"), *batch], [])
    check(attention, signature, 4, H=(1, 4, 1))


@triton.jit
def window_of_keys(k_ptr, out_ptr, stride, length, window, D: tl.constexpr, BLOCK: tl.constexpr, LAST: tl.constexpr):
    start_m = tl.program_id(0) * BLOCK
    offs_d = tl.arange(0, D)
    acc = tl.zeros((BLOCK, D), tl.float32)
    before = start_m - window + 1
    for start in range((tl.maximum(before, 0) if LAST else tl.maximum(0, before)) // BLOCK * BLOCK, length, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        acc += tl.load(k_ptr + rows[:, None] * stride + offs_d[None, :], mask=rows[:, None] < length, other=0.0)
    tl.store(out_ptr + (start_m + tl.arange(0, BLOCK))[:, None] * stride + offs_d[None, :], acc)


@pytest.mark.parametrize("last", (True, False))
def test_of_two_the_greater_is_not_negative_if_one_is_not(last: bool) -> None:
    """That the other one, `start_m - window + 1`, is not negative for windows below 1 is no condition."""
    signature = f"*fp16:16, *fp16:16, i32:16, i32, i32, 16, 16, {last}"
    (keys, _) = (described(box) for _, box in outcomes(window_of_keys, signature))
    assert keys == ([(16, 1, "0", None, "1"), (16, 0, "start", "length", "stride")], [])
    check(window_of_keys, signature, 2, window=(1, 60, 1))


@triton.jit
def row_of(pid, COUNT: tl.constexpr):
    return pid // COUNT


@triton.jit
def called(x_ptr, stride, SIDE: tl.constexpr):
    start = row_of(tl.program_id(0), 2) * SIDE
    rows = start + tl.arange(0, SIDE)
    tl.store(x_ptr + rows[:, None] * stride + tl.arange(0, SIDE)[None, :], 0.0)


def test_functions_are_followed() -> None:
    ((_, box),) = outcomes(called, "*fp32:16, i32:16, 16")
    assert described(box)[0][1][2] == "start"
    check(called, "*fp32:16, i32:16, 16", 1)


@triton.jit
def numbered(x_ptr, SIDE: tl.constexpr):
    width = 2 * SIDE
    rows = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    tl.store(x_ptr + rows[:, None] * width + tl.arange(0, SIDE)[None, :], 0.0)


def test_strides_may_be_names_of_numbers() -> None:
    ((_, box),) = outcomes(numbered, "*fp32:16, 16")
    assert isinstance(box, Box)
    check(numbered, "*fp32:16, 16", 1)


def test_parameter_text() -> None:
    from tilewright.ir.types import ValueType
    from tilewright.language.dtypes import int32

    scalar = ValueType(int32)
    n, m = (Use(scalar, Variable(name, scalar, number)) for number, name in enumerate("nm"))

    def call(op: str, *args: Expr) -> Expr:
        return Call(scalar, op, args)

    assert parameter_text(call("mul", call("add", n, m), Literal(scalar, 4))) == "(n + m) * 4"
    assert parameter_text(call("sub", n, call("sub", m, Literal(scalar, -1)))) == "n - (m - (-1))"
    assert parameter_text(call("mod", n, call("mul", m, m))) == "n % (m * m)"
    assert parameter_text(call("eq", call("mod", n, Literal(scalar, 128, symbol=Name("BLOCK"))), m)) == "n % 128 == m"
    assert parameter_text(call("neg", n)) == "(-n)"
    assert parameter_text(call("mod", call("floordiv", n, Literal(scalar, 2)), Literal(scalar, 16))) == "n // 2 % 16"
    with pytest.raises(TypeError):
        parameter_text(call("minimum", n, m))
    assert math.isclose(eval(parameter_text(call("neg", n)), {}, {"n": 3}), -3)


@triton.jit
def heads(k_ptr, v_ptr, out_ptr, T, H: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, BD: tl.constexpr):
    # Rows of several heads lie behind one another; masks count from the head's first column and the batch's first row.
    part, block = tl.program_id(0), tl.program_id(1).to(tl.int64)
    batch, head = tl.program_id(2).to(tl.int64) // H, tl.program_id(2).to(tl.int64) % H
    start = batch * T
    columns = part * BD + tl.arange(0, BD)
    for first in range(block * BLOCK, -BLOCK, -BLOCK):
        rows = first + tl.arange(0, BLOCK)
        place = (start * H + head) * D + rows[:, None] * (H * D) + columns[None, :]
        v = tl.load(v_ptr + place, mask=(rows[:, None] < T) & (columns[None, :] < D), other=0.0)
        tl.store(out_ptr + place, v, mask=(rows[:, None] < T) & (columns[None, :] < D))


def test_what_masks_leave_out_has_a_dimension_of_its_own() -> None:
    signature = "*fp16:16, *fp16:16, *fp16:16, i32, 4, 64, 16, 32"
    load, store = (described(box) for _, box in outcomes(heads, signature))
    assert load == store
    dims, guards = load
    assert [(side, axis, size, stride) for side, axis, _, size, stride in dims] == [
        (32, 1, "64", "1"), (16, 0, "T", "256"), (1, None, None, "64")
    ]  # fmt: skip
    assert dims[1][2] == "first"  # which is never negative: multiples of BLOCK above -BLOCK
    assert guards == ["T >= 0"]
    check(heads, signature, 2)


@triton.jit
def far_columns(x_ptr, y_ptr, stride, SIDE: tl.constexpr):
    # Numbers of programs along the first axis have 31 bits: what they are multiplied with may lead beyond 32.
    near, far = tl.program_id(1).to(tl.int64), tl.program_id(0).to(tl.int64)
    places = tl.arange(0, SIDE)[:, None] * stride + tl.arange(0, SIDE)[None, :]
    tl.store(x_ptr + near * 64 + places, 1.0)
    tl.store(x_ptr + far * 64 + places, 1.0)
    tl.store(x_ptr + far * 2 + places, 1.0)
    tl.store(x_ptr + far * near * 64 + places, 1.0)
    tl.store(y_ptr + tl.program_id(0) * 64 + places, 1.0)  # 32 bits, as the user has it


def test_what_needs_64_bits_has_a_dimension_of_its_own_or_is_no_box() -> None:
    """Coordinates have 32 bits: `far * 64` lost its upper ones without a word."""
    near, far, unaligned, product, short = (
        described(box) for _, box in outcomes(far_columns, "*fp32:16, *fp32:16, i32:16, 16")
    )
    rows = (16, 0, "0", None, "stride")
    assert near == ([(16, 1, "mul(near, 64)", None, "1"), rows], [])
    assert far == ([(16, 1, "0", None, "1"), rows, (1, None, "far", None, "64")], [])
    assert unaligned == product == "an offset of 64 bits has no stride of its own"
    assert short[0][0] == (16, 1, "mul(program_id(), 64)", None, "1")
    check(far_columns, "*fp32:16, *fp32:16, i32:16, 16", 3)
