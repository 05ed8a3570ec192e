"""Wrap-arounds that nobody sees are taken out; what the kernel stores, and that it reads nothing else, stays."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from box_machine import Machine, Values, typed
from tilewright.artifact import Options
from tilewright.ir.nodes import Call, Effect, Expr, Kernel
from tilewright.ir.walk import expressions, statements, subexpressions
from tilewright.pipeline import translate
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.rewrites.wraps import WRAPS, without_wraps
from tilewright.schedule.targets import find_target


class Memory(Machine):
    """A program whose loads give a number per address; remembers what it read and what it stored."""

    def __init__(self, kernel: Kernel, arguments: Values, program: tuple[int, int, int]) -> None:
        super().__init__(kernel, arguments, program)
        self.read: set[int] = set()
        self.stored: dict[int, int] = {}

    def value(self, expr: Expr) -> Any:
        if isinstance(expr, Call) and expr.op == "load":
            addresses = np.asarray(self.value(expr.args[0]))
            mask = np.broadcast_to(self.value(expr.args[1]) if len(expr.args) > 1 else True, addresses.shape)
            self.read |= set(addresses[mask].tolist())
            return np.where(mask, addresses * 7919 % 101, 0)
        if isinstance(expr, Call) and expr.op == "dot":
            a, b, *acc = map(self.value, expr.args)
            return np.matmul(a, b) + (acc[0] if acc else 0)
        if isinstance(expr, Call) and expr.op == "reduce":
            return np.sum(self.value(expr.args[0]), axis=expr.attribute("axis"))
        if isinstance(expr, Call) and expr.op in ("add", "mul") and expr.type.element.is_floating():
            left, right = map(self.value, expr.args)
            return left + right if expr.op == "add" else left * right
        if isinstance(expr, Call) and expr.op == "cast":
            return self.value(expr.args[0])
        return super().value(expr)

    def check(self, statement: Any, call: Expr) -> None:
        if isinstance(statement, Effect) and isinstance(call, Call) and call.op == "store":
            addresses, values = (np.asarray(self.value(arg)) for arg in call.args[:2])
            mask = np.broadcast_to(self.value(call.args[2]) if len(call.args) > 2 else True, addresses.shape)
            values = np.broadcast_to(values, addresses.shape)
            self.stored |= dict(zip(addresses[mask].tolist(), values[mask].tolist(), strict=True))


def wraps_of(kernel: Kernel) -> int:
    """How many wrap-arounds of tiles a kernel has."""
    parts = (part for s in statements(kernel.body) for e in expressions(s) for part in subexpressions(e))
    return sum(isinstance(part, Call) and part.op in WRAPS and part.type.is_tile for part in parts)


def check(kernel: Any, signature: str, left: int, **ranges: tuple[int, int]) -> None:
    """Of the wrap-arounds `left` stay; programs of random arguments store the same as before, and read nothing more."""
    form = typed(kernel, signature)
    after = without_wraps(form)
    assert wraps_of(after) == left
    generator = random.Random(1)
    fewer = stored = 0
    for _ in range(20):
        arguments: Values = {}
        for number, parameter in enumerate(form.parameters):
            pointer = parameter.variable.type.is_pointer
            low, high = ranges.get(parameter.variable.name, (1, 90))
            arguments[parameter.variable] = np.array((number + 1) << 40 if pointer else generator.randint(low, high))
        program = generator.randrange(4), generator.randrange(3), 0
        before, then = (Memory(one, arguments, program) for one in (form, after))
        before.run(form.body)
        then.run(after.body)
        assert before.stored == then.stored
        assert then.read <= before.read
        fewer += then.read < before.read
        stored += bool(before.stored)
    assert stored
    if left < wraps_of(form):
        assert fewer, "no load became smaller: the sizes never wrapped around"


# ---------------------------------------------------------------------------------------------------- what is taken out


@triton.jit
def product(a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
            SIDE: tl.constexpr, SPELLING: tl.constexpr, BIAS: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    columns = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    if SPELLING == "mod":
        offs_m, offs_n = rows % M, columns % N
    elif SPELLING == "where":
        offs_m, offs_n = tl.where(rows < M, rows, 0), tl.where(columns < N, columns, 0)
    else:
        offs_m, offs_n = tl.minimum(rows, M - 1), tl.minimum(columns, N - 1)
    offs_m = tl.max_contiguous(tl.multiple_of(offs_m, SIDE), SIDE)
    offs_k = tl.arange(0, 16)
    a_ptrs = a_ptr + offs_m[:, None] * stride_a + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * stride_b + offs_n[None, :]
    acc = tl.zeros((SIDE, SIDE), tl.float32)
    for k in range(0, tl.cdiv(K, 16)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * 16, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * 16, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += 16
        b_ptrs += 16 * stride_b
    if BIAS:
        acc = acc + tl.load(bias_ptr + offs_n)[None, :]
    tl.store(
        c_ptr + rows[:, None] * stride_c + columns[None, :], acc, mask=(rows < M)[:, None] & (columns[None, :] < N)
    )


PRODUCT = "*fp16:16, *fp16:16, *fp32:16, *fp32:16, i32, i32, i32, i32:16, i32:16, i32:16, 16"


@pytest.mark.parametrize("spelling", ("mod", "where", "minimum"))
@pytest.mark.parametrize("bias", (False, True))
def test_every_spelling(spelling: str, bias: bool) -> None:
    check(product, f"{PRODUCT}, '{spelling}', {bias}", left=0, M=(20, 60), N=(20, 60))


@triton.jit
def persistent(a_ptr, out_ptr, M, K, stride, SIDE: tl.constexpr):
    offs_k = tl.arange(0, 16)
    for tile in range(tl.program_id(0), tl.cdiv(M, SIDE), 2):
        start = tile * SIDE
        offs_m = start + tl.arange(0, SIDE)
        offs_m = tl.where(offs_m < M, offs_m, 0)
        offs_m = tl.max_contiguous(tl.multiple_of(offs_m, SIDE), SIDE)
        acc = tl.zeros((SIDE, 16), tl.float32)
        for k in range(0, K, 16):
            acc += tl.load(a_ptr + offs_m[:, None] * stride + (k + offs_k)[None, :])
        rows = tile * SIDE + tl.arange(0, SIDE)
        tl.store(out_ptr + rows[:, None] * 16 + offs_k[None, :], acc, mask=rows[:, None] < M)


def test_a_name_assigned_again_in_a_loop() -> None:
    check(persistent, "*fp32:16, *fp32:16, i32, i32, i32:16, 16", left=0)


@triton.jit
def gathered(index_ptr, x_ptr, out_ptr, n, SIDE: tl.constexpr):
    places = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    found = tl.load(index_ptr + places % n)
    x = tl.load(x_ptr + found)
    tl.store(out_ptr + places, x + tl.sum(tl.load(x_ptr + (tl.arange(0, 8) % 5))), mask=places < n)


def test_inside_an_expression_and_through_a_gather() -> None:
    check(gathered, "*i32:16, *i32:16, *i32:16, i32, 16", left=1)


# --------------------------------------------------------------------------------------------------------- what stays


@triton.jit
def seen(x_ptr, out_ptr, n, m, offset, SIDE: tl.constexpr, CASE: tl.constexpr):
    places = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    if CASE == "shifted":
        places += offset
    wrapped = places % n
    x = tl.load(x_ptr + wrapped)
    mask = places < n
    if CASE == "unmasked":
        tl.store(out_ptr + places, x)
    elif CASE == "another bound":
        tl.store(out_ptr + places, x, mask=places < m)
    elif CASE == "reduced":
        tl.store(out_ptr + places, x - tl.sum(x), mask=mask)
    elif CASE == "stored twice":
        tl.store(out_ptr + places, x, mask=mask)
        tl.store(out_ptr + 4096 + places, x)
    elif CASE == "the index itself":
        tl.store(out_ptr + places, x, mask=mask)
        tl.store(out_ptr + 4096 + places, wrapped)
    elif CASE == "of no load":
        tl.store(out_ptr + 4096 + places, (places + offset) % n, mask=places + offset < n)
    elif CASE == "another way":
        tl.store(out_ptr + places, tl.load(x_ptr + (places + 1) % n), mask=mask)
    elif CASE == "volatile":
        tl.store(out_ptr + places, tl.load(x_ptr + wrapped, volatile=True), mask=mask)
    elif CASE == "as a mask":
        tl.store(out_ptr + places, tl.load(x_ptr + places, mask=wrapped < m, other=0), mask=places < n + m)
    elif CASE == "the next tile":
        for tile in range(0, 3):
            tl.store(out_ptr + tile * SIDE + places, x, mask=tile * SIDE + tl.arange(0, SIDE) < n)
            x = tl.load(x_ptr + (tile * SIDE + tl.arange(0, SIDE)) % n)
    else:
        tl.store(out_ptr + places, x, mask=mask)


CASES = {"unmasked": 1, "another bound": 1, "reduced": 1, "stored twice": 1, "the index itself": 1, "another way": 2,
         "of no load": 2, "volatile": 1, "as a mask": 1, "the next tile": 2, "shifted": 1}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_seen_stays(case: str) -> None:
    check(seen, f"*i32:16, *i32:16, i32, i32, i32, 16, '{case}'", CASES[case], offset=(-20, 20))


@triton.jit
def row_sums_beside(x_ptr, out_ptr, n, m):
    """A load that follows a wrapped axis which its tile does not have: the sum over it is what a mask leaves."""
    i, j = tl.arange(0, 8), tl.arange(0, 16)
    sums = tl.sum(tl.load(x_ptr + i[:, None] * 16 + (j % n)[None, :]), axis=1)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < m, other=sums))


def test_a_wrapped_axis_may_be_gone_where_a_load_follows_it(run_everywhere: Any) -> None:
    x = np.arange(128, dtype=np.int32).reshape(8, 16)
    found = run_everywhere(row_sums_beside, (1,), x, np.zeros(8, np.int32), 5, 3)[1]
    np.testing.assert_array_equal(found, [0, 1, 2, *x[3:, np.arange(16) % 5].sum(axis=1)])


def test_no_guard_is_left() -> None:
    signature = f"{PRODUCT[:-2]}64, 'mod', False"
    artifact = translate(product, parse_signature(product, signature), Options(), find_target("sm_90a"))
    assert artifact.tensor_maps and not artifact.guards
    assert {size for one in artifact.tensor_maps for size in one.sizes} == {"M", "N", "K"}
    code = [line.partition("//")[0] for line in artifact.source.partition('extern "C"')[2].splitlines()]
    assert [line for line in code if re.search(r"% [MN]\b", line)] == []
