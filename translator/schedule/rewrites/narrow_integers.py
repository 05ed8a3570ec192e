"""Tiles of 64-bit integers whose values fit in 32 bits are computed in 32.

In: a typed kernel. Out: the same kernel, with the same values. torch computes places in 64 bits, clamps them to a picture's side
and compares them with numbers; a GPU takes two steps for whatever has 64 bits, and one for an address with an offset of 32.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ...analysis.ranges import COMPARISONS, integer_range
from ...ir.nodes import Assign, Call, CallFunction, Expr, Kernel, Literal, Statement, Use, Variable
from ...ir.rewrite import mapped_in, with_operands, with_replaced
from ...ir.structured import is_elementwise
from ...ir.types import ValueType
from ...ir.walk import MOVES, next_key, only_values, statements
from ...language.dtypes import int32, int64

ARITHMETIC = frozenset("add sub mul neg abs minimum maximum floordiv mod and or xor".split())
INT32 = (-(2**31), 2**31 - 1)


def with_narrow_integers(kernel: Kernel) -> Kernel:
    """See the module docstring."""
    definitions = only_values(kernel.body)
    if not any(_is_long(variable.type) for variable in definitions):
        return kernel
    narrowing = _Narrowing(definitions, next_key(kernel))
    parts = Counter(statement.origin for statement in statements(kernel.body))
    changed: dict[int, Statement] = {}
    for statement in statements(kernel.body):
        if isinstance(statement, Assign) and len(statement.targets) == 1 and statement.target in definitions:
            narrow = narrowing.chosen_value(statement)
            if narrow is not None:
                origin, target = statement.origin, narrowing.chosen[statement.target]
                if parts[origin] == 1:
                    origin = origin.noted("fits in 32 bits")
                changed[id(statement)] = replace(statement, origin=origin, targets=(target,), value=narrow)
    return replace(kernel, body=mapped_in(with_replaced(kernel.body, changed), narrowing.of))


def _is_long(type_: ValueType) -> bool:
    return type_.is_tile and type_.element == int64


def _is_lower_half(expr: Expr) -> bool:
    """Whether an expression is made of one of 64 bits, so that nothing is saved."""
    return isinstance(expr, Call) and expr.op == "cast" and expr.args[0].type.element == int64


class _Narrowing:
    """Expressions with what is `chosen` in the place of tiles of 64 bits.

    `narrowed` has what is known of parts, by `id`: what does not fit after all would be looked through again at each level.
    """

    def __init__(self, definitions: Mapping[Variable, Expr], first_key: int) -> None:
        self.definitions, self.next_key = definitions, first_key
        self.chosen: dict[Variable, Variable] = {}
        self.narrowed: dict[int, tuple[Expr, Expr | None]] = {}

    def chosen_value(self, statement: Assign) -> Expr | None:
        """The value of a tile that is computed in 32 bits from here on; None for one that stays, or is a wider copy."""
        target, value = statement.target, statement.value
        computed = isinstance(value, Call) and value.op != "cast"
        if not _is_long(target.type) or not computed or not is_elementwise(value) or self._number(value) is not None:
            return None
        narrow = self.narrow(value)
        if narrow is not None:
            self.chosen[target] = Variable(target.name, narrow.type, self.next_key)
            self.next_key += 1
        return narrow

    def of(self, expr: Expr) -> Expr:
        """An expression of the same type."""
        if isinstance(expr, Use) and expr.variable in self.chosen:
            return Call(expr.type, "cast", (self._use(expr.variable),))
        if isinstance(expr, CallFunction):
            return with_operands(expr, tuple(map(self.of, expr.args)))
        if not isinstance(expr, Call):
            return expr
        if expr.op in COMPARISONS and expr.args[0].type.element == int64:
            compared = self._all_narrow(expr.args)
            saves = any(self._number(arg) is None for arg in expr.args)
            if compared and saves and not any(map(_is_lower_half, compared)):
                return replace(expr, args=compared)
        if expr.op == "ptr_add" and expr.args[1].type.element == int64:
            pointer, offset = expr.args
            moved = self.narrow(offset)
            if moved is not None:
                return replace(expr, args=(self.of(pointer), moved))
        return replace(expr, args=tuple(map(self.of, expr.args)))

    def narrow(self, expr: Expr) -> Expr | None:
        """The same numbers in 32 bits; None where that is not known to be possible."""
        if id(expr) not in self.narrowed:
            self.narrowed[id(expr)] = expr, self._narrow(expr)
        return self.narrowed[id(expr)][1]

    def _narrow(self, expr: Expr) -> Expr | None:
        type_ = expr.type.with_element(int32)
        if expr.type.element == int32:
            return self.of(expr)
        least, most = integer_range(expr, self.definitions) if expr.type.element == int64 else (INT32[0] - 1, 0)
        if least < INT32[0] or most > INT32[1]:
            return None
        number = self._number(expr)
        if number is not None:
            return replace(number, type=type_)
        match expr:
            case Use(variable=variable) if variable in self.chosen:
                return self._use(variable)
            case Call(op="where", args=(condition, yes, no)):
                ways = [self.narrow(way) or self._lower_half(way) for way in (yes, no)]
                return Call(type_, "where", (self.of(condition), *ways))
            case Call(op=op, args=args) if op in ARITHMETIC or op in MOVES:
                if operands := self._all_narrow(args):
                    return replace(expr, type=type_, args=operands)
            case Call(op="cast", args=(arg,)) if arg.type.dtype.bits <= int32.bits:
                return self.of(arg) if arg.type.element == int32 else Call(type_, "cast", (self.of(arg),))
        return self._lower_half(expr)

    def _all_narrow(self, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """All of some operands in 32 bits; () where one is not known to fit."""
        found = tuple(narrow for narrow in map(self.narrow, args) if narrow is not None)
        return found if len(found) == len(args) else ()

    def _number(self, expr: Expr) -> Literal | None:
        """The number that all elements of an expression are, as it stands or by name."""
        while isinstance(expr, Use) and expr.variable in self.definitions:
            expr = self.definitions[expr.variable]
        if isinstance(expr, Call) and expr.op in MOVES:
            return self._number(expr.args[0])
        return expr if isinstance(expr, Literal) else None

    def _lower_half(self, expr: Expr) -> Expr:
        return Call(expr.type.with_element(int32), "cast", (self.of(expr),))

    def _use(self, variable: Variable) -> Use:
        narrow = self.chosen[variable]
        return Use(narrow.type, narrow)
