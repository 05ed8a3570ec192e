"""Which sums and products of integers must wrap where they overflow, because something behind them would tell.

In: a typed kernel and the definitions of its variables. Out: the calls. Integers wrap in Triton; in C++ what overflows is
undefined for signed ones, and compilers conclude that `x * x` is not negative. Bits that are only stored come out right all
the same; comparisons, quotients, shifts to the right, conversions to more bits and, since a sign that is known is left out of
masks, operations bit by bit do not. Where a kernel names the least number of a type, nothing of that type does: what is
added to it was not negative, a compiler concludes, so that it sets the highest bit in place of a sum. Places, and what is
made of scalars alone, are left as they are: they are far from overflowing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ..ir.nodes import Assign, Call, CallFunction, Effect, Expr, If, Kernel, Literal, Use, Variable, While
from ..ir.walk import MOVES, children, expressions, statements, subexpressions
from ..language.dtypes import DType
from .ranges import fits

WRAPPING = ("add", "sub", "mul", "neg")
BLIND = frozenset(("invert", "shl", "where", "select", *WRAPPING, *MOVES))  # low bits follow from low bits
SUMS = ("sum", "add")


def wrapping_calls(kernel: Kernel, definitions: Mapping[Variable, Expr]) -> frozenset[Call]:
    """See the module docstring."""
    data = _data(kernel)
    return _Observed(kernel, definitions, data).found() if data else frozenset()


def _data(kernel: Kernel) -> set[Variable]:
    """Tiles that come from memory, and what is made of them."""
    found: set[Variable] = set()
    readers: dict[Variable, list[Variable]] = defaultdict(list)
    for statement in statements(kernel.body):
        if not isinstance(statement, Assign):
            continue
        value = statement.value
        loaded = isinstance(value, Call) and _accesses(value)
        for target in statement.targets:
            if loaded and target.type.is_tile and not target.type.is_pointer:
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


def _types_with_their_least(kernel: Kernel) -> set[DType]:
    """The types of signed integers whose least number stands somewhere in a kernel."""
    written = (expr for statement in statements(kernel.body) for expr in expressions(statement))
    numbers = (part for expr in written for part in subexpressions(expr) if isinstance(part, Literal))
    signed = (number for number in numbers if _is_signed(number.type.element))
    return {number.type.dtype for number in signed if number.value == number.type.dtype.get_int_min_value()}


class _Observed:
    """What flows into stored numbers, masks and conditions; `told` says of variables whether more than their low bits matter."""

    def __init__(self, kernel: Kernel, definitions: Mapping[Variable, Expr], data: set[Variable]) -> None:
        self.kernel, self.definitions, self.data = kernel, definitions, data
        self.told: dict[Variable, bool] = {}
        self.least_of = _types_with_their_least(kernel)
        self.pending: list[Variable] = []
        self.calls: set[Call] = set()
        self.values: dict[Variable, list[Expr]] = defaultdict(list)

    def found(self) -> frozenset[Call]:
        """The calls whose operands overflow as they do in Triton, if they do."""
        for statement in statements(self.kernel.body):
            value: Expr | None = None
            if isinstance(statement, Assign):
                value = statement.value
                for target in statement.targets:
                    self.values[target].append(value)
            elif isinstance(statement, Effect):
                value = statement.call
            elif isinstance(statement, (If, While)):
                self._visit(statement.condition, True)
            if isinstance(value, Call) and _accesses(value):
                for operand in value.args[1:]:  # numbers and masks, but not places
                    self._visit(operand, False)
        while self.pending:
            variable = self.pending.pop()
            for value in self.values[variable]:
                self._visit(value, self.told[variable])
        return frozenset(self.calls)

    def _visit(self, expr: Expr, told: bool) -> None:
        pending = [(expr, told)]
        while pending:
            part, told = pending.pop()
            if isinstance(part, Use):
                if self.told.get(part.variable) is None or (told and not self.told[part.variable]):
                    self.told[part.variable] = told
                    self.pending.append(part.variable)
                continue
            if isinstance(part, Call) and _accesses(part):
                continue
            matters = told or part.type.element in self.least_of
            if matters and isinstance(part, Call) and part not in self.calls and self._can_overflow(part):
                self.calls.add(part)
            below = told if _is_blind(part) else True
            pending += [(child, below) for child in children(part)]

    def _can_overflow(self, call: Call) -> bool:
        if call.op not in WRAPPING or not _is_signed(call.type.element) or fits(call, self.definitions):
            return False
        return any(isinstance(part, Use) and part.variable in self.data for part in subexpressions(call))


def _accesses(call: Call) -> bool:
    return call.op in ("load", "store") or call.op.startswith("atomic_")


def _is_blind(expr: Expr) -> bool:
    """Whether the low bits of a result follow from the low bits of what it is made of."""
    if isinstance(expr, CallFunction) or not isinstance(expr, Call):
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
