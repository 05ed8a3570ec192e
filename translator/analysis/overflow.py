"""Which sums and products of integers must wrap where they overflow, because something behind them would tell.

In: a typed kernel and the definitions of its variables. Out: the calls, those of its functions too. Integers wrap in Triton;
in C++ what overflows is undefined for signed ones, and compilers conclude that `x * x` is not negative. Bits that are only
stored come out right all the same; comparisons, quotients, shifts to the right, conversions to more bits and, since a sign
that is known is left out of masks, operations bit by bit do not. Where a kernel names the least number of a type, nothing of
that type does: what is added to it was not negative, a compiler concludes, so that it sets the highest bit in place of a
sum. Places, and what is made of scalars and indices alone, are left as they are: they are far from overflowing. But not
where a kernel mixes bits, as hashes and random numbers do: `pid * 1103515245 + 12345` is meant to overflow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from ..ir.nodes import (
    Assign,
    Call,
    CallFunction,
    Combine,
    DeviceFunction,
    Effect,
    Expr,
    If,
    Kernel,
    Literal,
    Return,
    Statement,
    Use,
    Variable,
    While,
)
from ..ir.structured import is_atomic
from ..ir.walk import MOVES, children, expressions, statements, subexpressions
from ..language.dtypes import DType
from .ranges import fits

WRAPPING = ("add", "sub", "mul", "neg")
BLIND = frozenset(("invert", "shl", "where", "select", *WRAPPING, *MOVES))  # low bits follow from low bits
SUMS = ("sum", "add")
ODD_FACTOR = 1 << 16  # from here on an odd factor is one of a hash: strides of as much are multiples of a tile's side
LARGE_TERM = 1 << 28  # from here on so is a term: no index is shifted by as much


def wrapping_calls(kernel: Kernel, definitions: Mapping[Variable, Expr]) -> frozenset[Call]:
    """See the module docstring."""
    program = _Program(kernel)
    mixed = {part for statement in program.statements for part in _mixing(statement)}
    data = _data(program, mixed)
    return _Observed(program, definitions, data, mixed).found() if data or mixed else frozenset()


class _Program:
    """A kernel and all that it calls, one after the other.

    Attributes:
      statements: those of the kernel, its functions and what its reductions combine by.
      values: what each variable is assigned, and what is passed for a parameter.
      returned: the results of each function.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.statements: list[Statement] = []
        self.values: dict[Variable, list[Expr]] = defaultdict(list)
        self.returned: dict[DeviceFunction, list[Expr]] = {}
        self._combined: set[Combine] = set()
        self._add(kernel.body, None)

    def _add(self, block: tuple[Statement, ...], function: DeviceFunction | None) -> None:
        for statement in statements(block):
            self.statements.append(statement)
            if isinstance(statement, Return) and statement.value is not None and function is not None:
                self.returned[function].append(statement.value)
            if isinstance(statement, Assign):
                for target in statement.targets:
                    self.values[target].append(statement.value)
            for part in _parts(statement):
                if isinstance(part, CallFunction):
                    self._call(part)
                elif combine := _combine(part):
                    self._reduce(combine, part)

    def _call(self, call: CallFunction) -> None:
        if call.function not in self.returned:
            self.returned[call.function] = []
            self._add(call.function.body, call.function)
        for parameter, argument in zip(call.function.parameters, call.args, strict=True):
            self.values[parameter].append(argument)

    def _reduce(self, combine: Combine, call: Expr) -> None:
        if combine not in self._combined:
            self._combined.add(combine)
            self._add(combine.body, None)
        for side in (combine.left, combine.right):
            for variable, operand, result in zip(side, children(call), combine.results, strict=True):
                self.values[variable] += operand, Use(result.type, result)


def _parts(statement: Statement) -> Iterator[Expr]:
    for expr in expressions(statement):
        yield from subexpressions(expr)


def _combine(expr: Expr) -> Combine | None:
    """By what a reduction combines, where that is a function of the user's."""
    combine = expr.attribute("combine") if isinstance(expr, Call) and expr.op == "reduce" else None
    return combine if combine is not None and combine.body else None


def _mixing(statement: Statement) -> Iterator[Expr]:
    """The operations of hashes: an exclusive or, a product with a large odd number, a sum with a very large one.

    And the calls of functions that have some.
    """
    for part in _parts(statement):
        if isinstance(part, CallFunction):
            if any(True for inner in statements(part.function.body) for _ in _mixing(inner)):
                yield part
        elif isinstance(part, Call) and _is_signed(part.type.element) and _mixes(part):
            yield part


def _mixes(call: Call) -> bool:
    if call.op not in ("mul", "add", "sub"):
        return call.op == "xor"
    numbers = [abs(int(arg.value)) for arg in call.args if isinstance(arg, Literal)]
    if call.op == "mul":
        return any(number % 2 and number >= ODD_FACTOR for number in numbers)
    return any(number >= LARGE_TERM for number in numbers)


def _data(program: _Program, mixed: set[Expr]) -> set[Variable]:
    """Tiles that come from memory, what is mixed, and what is made of either."""
    found: set[Variable] = set()
    readers: dict[Variable, list[Variable]] = defaultdict(list)
    for target, values in program.values.items():
        for value in values:
            loaded = isinstance(value, Call) and _accesses(value)
            mixes = not mixed.isdisjoint(subexpressions(value))
            if ((loaded and value.type.is_tile) or mixes) and not target.type.is_pointer:
                found.add(target)
            for part in () if loaded else subexpressions(value):
                if isinstance(part, Use):
                    readers[part.variable].append(target)
    pending = list(found)
    while pending:
        for target in readers[pending.pop()]:
            if target not in found:
                found.add(target)
                pending.append(target)
    return found


def _types_with_their_least(program: _Program) -> set[DType]:
    """The types of signed integers whose least number stands somewhere in a program."""
    numbers = (part for statement in program.statements for part in _parts(statement) if isinstance(part, Literal))
    signed = (number for number in numbers if _is_signed(number.type.element))
    return {number.type.dtype for number in signed if number.value == number.type.dtype.get_int_min_value()}


class _Observed:
    """What flows into stored numbers, masks and conditions.

    `told` says of variables, and of the results of functions, whether more than their low bits matter.
    """

    def __init__(
        self, program: _Program, definitions: Mapping[Variable, Expr], data: set[Variable], mixed: set[Expr]
    ) -> None:
        self.program, self.definitions, self.data, self.mixed = program, definitions, data, mixed
        self.told: dict[Variable | DeviceFunction, bool] = {}
        self.least_of = _types_with_their_least(program)
        self.pending: list[Variable | DeviceFunction] = []
        self.calls: set[Call] = set()

    def found(self) -> frozenset[Call]:
        """The calls whose operands overflow as they do in Triton, if they do."""
        for statement in self.program.statements:
            value: Expr | None = None
            if isinstance(statement, Assign):
                value = statement.value
            elif isinstance(statement, Effect):
                value = statement.call
            elif isinstance(statement, (If, While)):
                self._visit(statement.condition, True)
            if isinstance(value, Call) and _accesses(value):
                for operand in value.args if self.mixed else value.args[1:]:  # numbers, masks, and places if by a hash
                    self._visit(operand, False)
        while self.pending:
            one = self.pending.pop()
            values = self.program.values[one] if isinstance(one, Variable) else self.program.returned[one]
            for value in values:
                self._visit(value, self.told[one])
        return frozenset(self.calls)

    def _ask(self, one: Variable | DeviceFunction, told: bool) -> None:
        if self.told.get(one) is None or (told and not self.told[one]):
            self.told[one] = told
            self.pending.append(one)

    def _visit(self, expr: Expr, told: bool) -> None:
        pending = [(expr, told)]
        while pending:
            part, told = pending.pop()
            if isinstance(part, Use):
                self._ask(part.variable, told)
            elif isinstance(part, CallFunction):
                self._ask(part.function, told)
            elif combine := _combine(part):
                for result in combine.results:
                    self._ask(result, told)
            elif not isinstance(part, Call) or not _accesses(part):
                matters = told or part.type.element in self.least_of
                if matters and isinstance(part, Call) and part not in self.calls and self._can_overflow(part):
                    self.calls.add(part)
                below = told if _is_blind(part) else True
                pending += [(child, below) for child in children(part)]

    def _can_overflow(self, call: Call) -> bool:
        if call.op not in WRAPPING or not _is_signed(call.type.element) or fits(call, self.definitions):
            return False
        parts = subexpressions(call)
        return any(part in self.mixed or (isinstance(part, Use) and part.variable in self.data) for part in parts)


def _accesses(call: Call) -> bool:
    return call.op in ("load", "store") or is_atomic(call)


def _is_blind(expr: Expr) -> bool:
    """Whether the low bits of a result follow from the low bits of what it is made of."""
    if not isinstance(expr, Call):
        return False
    if expr.op == "reduce":
        return expr.attribute("combine").op in SUMS
    if expr.op == "cast":
        source, wanted = expr.args[0].type.element, expr.type.element
        whole = isinstance(source, DType) and isinstance(wanted, DType) and source.is_int() and wanted.is_int()
        return whole and not wanted.is_bool() and wanted.bits <= source.bits  # type: ignore[union-attr]
    return expr.op in BLIND


def _is_signed(element: object) -> bool:
    """Whether integers of a type are computed as such in C++, where narrow ones become `int` and do not overflow."""
    return isinstance(element, DType) and element.kind == "signed" and element.bits >= 32
