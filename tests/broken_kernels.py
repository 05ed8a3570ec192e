"""One valid kernel with everything in it, and ways to break a part of it: what the tests of the verifier start from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.frontend import build_kernel
from tilewright.ir.nodes import (
    Expr,
    Kernel,
    Literal,
    Statement,
)
from tilewright.ir.rewrite import with_replaced
from tilewright.ir.types import ValueType
from tilewright.ir.walk import statements
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target

S = TypeVar("S", bound=Statement)
Change = Callable[[Any], Expr]
Kernels = Callable[[Kernel], Kernel]


@triton.jit
def joined(a, b):
    return a * b + a + b


@triton.jit
def clipped(value, limit):
    if value > limit:
        return limit
    return value


@triton.jit
def everything(x_ptr, count_ptr, out_ptr, trips, N: tl.constexpr):
    # Every operation that has a rule of its own.
    tl.assume(trips > 0)
    tl.extra.cuda.gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()
    rows, columns = tl.arange(0, N)[:, None], tl.max_contiguous(tl.arange(0, 2 * N), 2 * N)[None, :]
    places = rows * (2 * N) + columns
    x = tl.load(x_ptr + places, mask=columns < trips, other=0.0)
    total = tl.dot(x, tl.trans(x))
    for step in range(trips):
        total = tl.dot(tl.load(x_ptr + step + places), tl.trans(x), total)
    even, odd = tl.split(tl.reshape(total, (N, N // 2, 2)))
    while tl.load(count_ptr) < trips:
        tl.atomic_add(count_ptr, 1)
        tl.atomic_max(count_ptr, 1)
        tl.atomic_min(count_ptr, 1)
        tl.atomic_and(count_ptr, 1)
        tl.atomic_or(count_ptr, 1)
        tl.atomic_xor(count_ptr, 1)
        tl.atomic_xchg(count_ptr, 1)
        seen = tl.atomic_cas(count_ptr, 0, 1)
        if seen == tl.num_programs(0):
            tl.debug_barrier()
    tl.device_assert(trips > tl.program_id(0), "fewer")
    tl.device_print("trips", trips)
    largest, place = tl.max(even, 1, return_indices=True)
    sums = tl.reduce(even + odd, 1, joined) + largest + place
    tl.store(out_ptr + tl.arange(0, N) * clipped(trips, step), sums)
    moved = tl.reshape(tl.load(x_ptr + tl.arange(0, 6)[:, None] * 4 + tl.arange(0, 4)[None, :]), (3, 8))
    tl.store(x_ptr + tl.arange(0, 3)[:, None] * 8 + tl.arange(0, 8)[None, :], moved.to(tl.float16))


@cache
def valid() -> Kernel:
    """The kernel as the frontend leaves it."""
    signature = parse_signature(everything, "*fp16:16, *i32:16, *fp32:16, i32, 16")
    options = Options(debug=True, sanitize_overflow=False)
    return build_kernel(everything, signature, options, find_target("sm_90a"))


def with_statement(kind: type[S], change: Callable[[S], Statement], which: Callable[[S], bool]) -> Kernels:
    """Changes the first statement of a kind for which `which` holds."""

    def changed(kernel: Kernel) -> Kernel:
        old = next(one for one in statements(kernel.body) if isinstance(one, kind) and which(one))
        return dataclasses.replace(kernel, body=with_replaced(kernel.body, {old: change(old)}))

    return changed


def typed(element: Any = None, shape: tuple[int, ...] | None = None) -> Change:
    """Another type of the result."""

    def changed(expr: Expr) -> Expr:
        of = expr.type
        return dataclasses.replace(expr, type=ValueType(element or of.element, of.shape if shape is None else shape))

    return changed


def attribute(name: str, value: Any) -> Change:
    """Another compile-time argument."""
    return lambda call: dataclasses.replace(call, attributes=tuple({**dict(call.attributes), name: value}.items()))


def operand(number: int, change: Change) -> Change:
    """Another operand."""

    def changed(call: Any) -> Expr:
        args = list(call.args)
        args[number] = change(args[number])
        return dataclasses.replace(call, args=tuple(args))

    return changed


def of_zeros(element: Any, shape: tuple[int, ...] | None = None) -> Change:
    """Zeros of another type in the place of an expression."""
    return lambda expr: Literal(ValueType(element, expr.type.shape if shape is None else shape), 0)
