"""Where elements are found from that lie anywhere: one pointer, which each of them is a single instruction away from.

In: a typed kernel. Out: the same kernel; of `x_ptr + row * stride + found`, the scalars are a pointer of their own, `x_start`.
NVIDIA's compiler takes such a pointer apart again, and adds up `row * stride + found` in 64 bits for each element, so that the
text hides how it came about (`held_starts`, the helper `start_at`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from math import prod

from ...analysis.axis_info import axis_info
from ...analysis.facts import Facts, find_facts
from ...analysis.ranges import never_overflows
from ...analysis.unit_stride import steps
from ...hardware import WARP_SIZE
from ...ir.nodes import Assign, Call, Effect, Expr, Kernel, Literal, Note, Statement, Use, Variable
from ...ir.rewrite import mapped_in, with_bodies, with_operands, with_statements
from ...ir.static_loops import loops_in
from ...ir.structured import assigns
from ...ir.symbols import spelled
from ...ir.tensor_names import tensor_word
from ...ir.types import padded
from ...ir.walk import assigned_inside, expressions, next_key, statements, subexpressions, used_variables

FEWEST = 2  # elements of a thread


def with_found_starts(kernel: Kernel, num_warps: int) -> Kernel:
    """See the module docstring; the same object where nothing is found so. Products find their tiles in other ways."""
    if any(assigns(s, "dot") for s in statements(kernel.body)):
        return kernel
    if not any(_start(part) is not None for part in _calls(kernel)):
        return kernel
    facts = find_facts(kernel)
    starts = _Starts(facts, num_warps, next_key(kernel))
    body = starts.block(kernel.body, {})
    return kernel if body is kernel.body else replace(kernel, body=body)


def held_starts(kernel: Kernel, facts: Facts, num_warps: int) -> frozenset[Variable]:
    """The pointers, also those that the user has named, whose elements lie anywhere."""
    if any(assigns(s, "dot") for s in statements(kernel.body)):
        return frozenset()
    found = (start for s in statements(kernel.body) for start in _found(s, facts, num_warps) if isinstance(start, Use))
    return frozenset(start.variable for start in found if _is_sum(facts.definitions.get(start.variable)))


class _Starts:
    """The pointers that are made, and where."""

    def __init__(self, facts: Facts, num_warps: int, first_key: int) -> None:
        self.facts, self.num_warps, self.keys = facts, num_warps, count(first_key)

    def block(self, block: tuple[Statement, ...], known: Mapping[Expr, Variable]) -> tuple[Statement, ...]:
        """The statements, each behind what it needs; `known` are the pointers that hold in front of the first."""
        result: list[Statement] = []
        around: list[Note] = []  # where the static loops begin whose trips are being read
        for statement in block:
            if isinstance(statement, Note) and statement.trip is not None:
                if statement.trip.number == 0:
                    around.append(statement)
                elif statement.trip.number == statement.trip.loop.trips:
                    around = around[:-1]
            if isinstance(statement, (Assign, Effect)):
                missing = [s for s in _found(statement, self.facts, self.num_warps) if _is_sum(s) and s not in known]
                made = {start: self._variable(start) for start in dict.fromkeys(missing)}
                for start, variable in made.items():
                    result.insert(_place(start, result, around), Assign(statement.origin, (variable,), start))
                known = {**known, **made}
                result.append(mapped_in(statement, partial(_replaced, known=known)))
            else:
                result.append(with_bodies(statement, partial(self.block, known=self._still(known, statement))))
            known = self._still(known, statement)
        return with_statements(block, result)

    def _still(self, known: Mapping[Expr, Variable], statement: Statement) -> dict[Expr, Variable]:
        """The pointers that are made of nothing that a statement changes."""
        if not known:
            return {}
        changed = {v for v in assigned_inside(statement) if self.facts.assignments[v] > 1}
        return {start: v for start, v in known.items() if changed.isdisjoint(used_variables(start))}

    def _variable(self, start: Expr) -> Variable:
        """A name for a start: after its pointer, or the number that an address is made of."""
        made_of = sorted(used_variables(start), key=lambda v: not v.type.is_pointer)
        stem = tensor_word(made_of[0].stem) if made_of else "array"
        return Variable(f"{stem}_start", start.type, next(self.keys))


def _place(start: Expr, block: Sequence[Statement], around: Sequence[Note]) -> int:
    """Where in a block a pointer is made that what follows needs: ahead of the static loops that do not change it.

    All their trips are the same then.
    """
    made_of = set(used_variables(start))
    words = (part.symbol for part in subexpressions(start) if isinstance(part, Literal) and part.symbol and part.trips)
    counted = {serial for word in words for serial in loops_in(spelled(word))}
    for begin in around:
        place = block.index(begin)
        changed = (assigned_inside(statement) for statement in block[place:])
        if begin.trip.loop.serial not in counted and all(map(made_of.isdisjoint, changed)):  # type: ignore[union-attr]
            return place
    return len(block)


def _replaced(expr: Expr, known: Mapping[Expr, Variable]) -> Expr:
    if expr in known:
        return Use(expr.type, known[expr])
    return with_operands(expr, tuple(_replaced(arg, known) for arg in expr.args)) if isinstance(expr, Call) else expr


def _calls(kernel: Kernel) -> Iterator[Expr]:
    return (part for s in statements(kernel.body) for expr in expressions(s) for part in subexpressions(expr))


def _start(expr: Expr) -> Expr | None:
    """The scalar pointer that the addresses of a tile start at; None for what is no such tile."""
    match expr:
        case Call(op="ptr_add", args=(Call(op="broadcast", args=(start,)), _)) if not start.type.is_tile:
            return start
    return None


def _is_sum(start: Expr | None) -> bool:
    """Whether a pointer is moved by more than a number."""
    return isinstance(start, Call) and start.op == "ptr_add" and not isinstance(start.args[1], Literal)


def _found(statement: Statement, facts: Facts, num_warps: int) -> Iterator[Expr]:
    """The scalar pointers in a statement from which elements are found, several for each thread."""
    if not isinstance(statement, (Assign, Effect)):
        return
    for part in (part for expr in expressions(statement) for part in subexpressions(expr)):
        start = _start(part)
        several = prod(map(padded, part.type.shape)) >= FEWEST * WARP_SIZE * num_warps
        if start is not None and several and isinstance(part, Call) and _is_anywhere(part.args[1], statement, facts):
            yield start


def _is_anywhere(offset: Expr, statement: Statement, facts: Facts) -> bool:
    """Whether the offsets of elements are 32 bits each, and nothing says how far apart they are, or they fall along an axis.

    Where they rise by what is known, a thread's elements share an address already.
    """
    written_out = {v: facts.definitions[v] for v in facts.absorbed if v in facts.definitions}
    if offset.type.dtype.bits > 32 or not never_overflows(offset, facts.definitions, written_out):
        return False
    if any(step < 0 for step in steps(offset, facts.definitions).values()):
        return True
    return max(axis_info(offset, facts.environments.get(statement, facts.known)).contiguity) == 1
