"""Bits that are counted by sums and masks are counted by one instruction.

In: a typed kernel. Out: the same kernel, in which what these steps leave is `popc(x)`, as libdevice calls it:

    x = x - ((x >> 1) & 0x55555555)                   how many of every two bits are set
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)    of every four
    x = (x + (x >> 4)) & 0x0F0F0F0F                   of every byte
    n = (x * 0x01010101) >> 24                        of all

Signed numbers count so as well: the masks leave out what a shift fills with the sign, and counts are too small to have one.
They may stand in one statement or in several, under one name or under several, for 32 and for 64 bits (Warren, Hacker's Delight,
section 5-1). Triton has no name for the count but libdevice's, so that kernels count so; its compiler knows these steps as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ...frozen import frozen
from ...ir.nodes import (
    Assign,
    Call,
    CallFunction,
    DeviceFunction,
    Expr,
    Kernel,
    Literal,
    Note,
    Statement,
    Use,
    Variable,
)
from ...ir.rewrite import mapped_in, with_operands, with_replaced
from ...ir.walk import assigned_inside, blocks, bodies, expressions, read_inside, subexpressions, used_variables
from ...language.dtypes import int32, int64, uint32, uint64

SIGNED = {int32: int32, uint32: int32, int64: int64, uint64: int64}  # what popc takes for each type that is counted in
BYTES = 0x0101010101010101
RESULT = "bits are counted by one instruction"


def with_bit_counts(kernel: Kernel) -> Kernel:
    """See the module docstring; functions that the kernel calls count so as well."""
    body = _counted(kernel.body)
    if all(_counted(function.body) is function.body for function in kernel.functions):
        return kernel if body is kernel.body else replace(kernel, body=body)
    made: dict[DeviceFunction, DeviceFunction] = {}

    def counting(function: DeviceFunction) -> DeviceFunction:
        if function not in made:
            made[function] = replace(function, body=mapped_in(_counted(function.body), calling))
        return made[function]

    def calling(expr: Expr) -> Expr:
        if not isinstance(expr, (Call, CallFunction)):
            return expr
        called = with_operands(expr, tuple(map(calling, expr.args)))
        return replace(called, function=counting(called.function)) if isinstance(called, CallFunction) else called

    functions = tuple(map(counting, kernel.functions))
    return replace(kernel, body=mapped_in(body, calling), functions=functions)


def _counted(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """A body with the instruction; itself where it has no count."""
    reads: Counter[Variable] | None = None
    replaced: dict[Statement, Statement] = {}
    for statements in blocks(body):
        if not any(_is_last_step(expr) for statement in statements for expr in _parts(statement)):
            continue
        reads = reads or Counter(read_inside(body))
        block = _Block(statements, reads)
        for at, statement in enumerate(statements):
            found = block.count_in(statement, at)
            if found is not None:
                place = statement.origin.place(statement.origin.span.line)
                replaced |= {statements[step]: _without_code(statements[step], place) for step in found.steps}
                replaced[statement] = _with_count(statement, found)
    return with_replaced(body, replaced) if replaced else body


@frozen
class _Count:
    """A count: the expression that is its result, what is counted, and which statements of the block are its steps."""

    result: Expr
    of: Expr
    steps: frozenset[int]


class _Block:
    """The statements of a block, and how often the whole kernel reads a variable."""

    def __init__(self, statements: tuple[Statement, ...], reads: Counter[Variable]) -> None:
        self.statements, self.reads = statements, reads
        self.assigned = [assigned_inside(statement) for statement in statements]
        self.read = [Counter(read_inside((statement,))) for statement in statements]

    def count_in(self, statement: Statement, at: int) -> _Count | None:
        """A count whose last step is in a statement, and whose other steps nobody else reads."""
        for expr in _parts(statement):
            found = self._count(expr, at) if _is_last_step(expr) else None
            if found is not None and self._is_alone(found, at):
                return found
        return None

    def _count(self, result: Expr, at: int) -> _Count | None:
        expr, steps, place = result, set[int](), at
        for before in (_shifted, _of_all, _masked, _of_bytes, _of_fours, _of_twos):
            if before is not _shifted:
                expr, place = self._value(expr, place)
                steps |= {place} - {at}
            inner = before(expr)
            if inner is None:
                return None
            expr = inner
        between = set[Variable]().union(*(self.assigned[k] for k in range(place, at) if k not in steps))
        if place != at and not between.isdisjoint(used_variables(expr)):
            return None  # what is counted is another number by then
        return _Count(result, expr, frozenset(steps))

    def _value(self, expr: Expr, at: int) -> tuple[Expr, int]:
        """What a name holds in front of a statement, and where it was assigned; the expression where it is no such name."""
        place = self._assigned_before(expr.variable, at) if isinstance(expr, Use) else None
        statement = None if place is None else self.statements[place]
        if place is None or not isinstance(statement, Assign) or len(statement.targets) != 1:
            return expr, at
        return statement.value, place

    def _assigned_before(self, variable: Variable, at: int) -> int | None:
        return next((k for k in range(at - 1, -1, -1) if variable in self.assigned[k]), None)

    def _is_alone(self, count: _Count, at: int) -> bool:
        """Whether only the steps of a count, up to the one at `at`, read what these assign.

        Names that are read outside of the block, or in front of their first assignment, may hold it there.
        """
        own = Counter(used_variables(count.result))
        for step in count.steps:
            (variable,) = self.assigned[step]
            if sum(read[variable] for read in self.read) != self.reads[variable]:
                return False
            readers = [k for k, read in enumerate(self.read) if read[variable]]
            if any(self._assigned_before(variable, k) is None for k in readers):
                return False
            others = [k for k in readers if self._assigned_before(variable, k) == step and k not in count.steps]
            if any(k != at or self.read[k][variable] != own[variable] for k in others):
                return False
        return True


def _parts(statement: Statement) -> Iterator[Expr]:
    if not bodies(statement):
        for expr in expressions(statement):
            yield from subexpressions(expr)


def _is_last_step(expr: Expr) -> bool:
    return not expr.type.is_pointer and expr.type.dtype in SIGNED and _shifted(expr) is not None


def _shifted(expr: Expr) -> Expr | None:
    """What the last step shifts to the lowest byte; a mask that the count fits in changes nothing."""
    bits = expr.type.dtype.bits
    if isinstance(expr, Call) and expr.op == "and":
        for one, other in (expr.args, expr.args[::-1]):
            value = _number(other)
            if value is not None and value >= bits and value & (value + 1) == 0:
                expr = one
                break
    return _beside(expr, "shr", bits - 8)


def _of_all(expr: Expr) -> Expr | None:
    return _beside(expr, "mul", BYTES)


def _masked(expr: Expr) -> Expr | None:
    return _beside(expr, "and", BYTES * 0x0F)


def _of_bytes(expr: Expr) -> Expr | None:
    """Of `x + (x >> 4)` the x."""
    for one, other in _either_way(expr, "add"):
        if _beside(other, "shr", 4) == one:
            return one
    return None


def _of_fours(expr: Expr) -> Expr | None:
    """Of `(x & 0x33..) + ((x >> 2) & 0x33..)` the x."""
    return _neighbours(expr, 2, BYTES * 0x33)


def _of_twos(expr: Expr) -> Expr | None:
    """Of `x - ((x >> 1) & 0x55..)`, or of the sum that it is, the x."""
    if isinstance(expr, Call) and expr.op == "sub":
        whole, odd = expr.args
        return whole if _beside(_beside(odd, "and", BYTES * 0x55), "shr", 1) == whole else None
    return _neighbours(expr, 1, BYTES * 0x55)


def _neighbours(expr: Expr, distance: int, mask: int) -> Expr | None:
    """Of `(x & mask) + ((x >> distance) & mask)` the x."""
    for even, odd in _either_way(expr, "add"):
        whole = _beside(even, "and", mask)
        if whole is not None and _beside(_beside(odd, "and", mask), "shr", distance) == whole:
            return whole
    return None


def _either_way(expr: Expr, op: str) -> tuple[tuple[Expr, ...], ...]:
    """The two operands of an operation in both orders; nothing for another one."""
    return (expr.args, expr.args[::-1]) if isinstance(expr, Call) and expr.op == op else ()


def _beside(expr: Expr | None, op: str, number: int) -> Expr | None:
    """What an operation combines with a number, of which as many bits count as the type has; None for anything else."""
    if expr is None or not isinstance(expr, Call) or expr.op != op:
        return None
    mask = (1 << expr.type.dtype.bits) - 1
    for one, other in (expr.args,) if op == "shr" else (expr.args, expr.args[::-1]):
        value = _number(other)
        if value is not None and value & mask == number & mask:
            return one
    return None


def _number(expr: Expr) -> int | None:
    return expr.value if isinstance(expr, Literal) and type(expr.value) is int else None


def _without_code(statement: Statement, place: str) -> Note:
    return Note(statement.origin.noted(f"bits are counted at {place}"))


def _with_count(statement: Statement, count: _Count) -> Statement:
    """The statement with the instruction in the place of the last step."""
    type_ = count.result.type
    signed = type_.with_element(SIGNED[type_.dtype])
    operand = count.of if signed == type_ else Call(signed, "cast", (count.of,))
    found: Expr = Call(type_.with_element(int32), "libdevice.popc", (operand,), span=count.result.span)
    if found.type != type_:
        found = Call(type_, "cast", (found,))

    def change(expr: Expr) -> Expr:
        if expr is count.result:
            return found
        return with_operands(expr, tuple(map(change, expr.args))) if isinstance(expr, (Call, CallFunction)) else expr

    return replace(mapped_in(statement, change), origin=statement.origin.noted(RESULT))
