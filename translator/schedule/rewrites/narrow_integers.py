"""64-bit integers whose values fit in 32 bits are computed in 32: tiles, and the scalars and loops that tiles are made of.

In: a typed kernel. Out: the same kernel, with the same values. torch computes places in 64 bits, clamps them to a picture's side
and compares them with numbers; others take `tl.program_id(1).to(tl.int64)` for everything, so that addresses cannot overflow. A
GPU takes two steps for whatever has 64 bits, and one for an address with an offset of 32; tensor maps have coordinates of 32.
A scalar of any size that is looked for among narrow indices, of which none is below zero, is made one of 32 bits: itself, or -1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeGuard

from ...analysis.ranges import COMPARISONS, Range, integer_range, loop_ranges
from ...ir.nodes import Assign, Call, CallFunction, Expr, For, Kernel, Literal, Statement, Use, Variable
from ...ir.rewrite import mapped_in, with_operands, with_replaced
from ...ir.structured import is_elementwise
from ...ir.types import ValueType
from ...ir.walk import MOVES, next_key, only_values, statements, subexpressions, used_variables
from ...language.dtypes import DType, int1, int32, int64

ARITHMETIC = frozenset("add sub mul neg abs minimum maximum floordiv mod and or xor".split())
INT32 = (-(2**31), 2**31 - 1)


def with_narrow_integers(kernel: Kernel) -> Kernel:
    """See the module docstring."""
    definitions = only_values(kernel.body)
    loops = loop_ranges(kernel.body, definitions)
    if not any(_is_long(variable.type) for variable in (*definitions, *loops)):
        return kernel
    wanted = frozenset[Variable]()
    while True:
        narrowing = _Narrowing(definitions, loops, next_key(kernel), wanted)
        narrow = narrowing.of_kernel(kernel)
        if narrowing.asked <= wanted:
            return narrow
        wanted |= narrowing.asked


def _is_long(type_: ValueType) -> bool:
    return type_.element == int64


def _fits(found: Range) -> bool:
    return INT32[0] <= found[0] and found[1] <= INT32[1]


def _is_computed(value: Expr) -> bool:
    return isinstance(value, Call) and value.op != "cast" and is_elementwise(value)


def _is_lower_half(expr: Expr) -> bool:
    """Whether an expression is made of one of 64 bits, so that nothing is saved."""
    return isinstance(expr, Call) and expr.op == "cast" and expr.args[0].type.element == int64


def _is_widened(expr: Expr) -> TypeGuard[Call]:
    """Whether an expression is a narrow one in 64 bits."""
    return (
        isinstance(expr, Call)
        and expr.op == "cast"
        and (expr.type.element, expr.args[0].type.element) == (int64, int32)
    )


def _of_narrow(cast: Call, widened: Call) -> Expr:
    """A cast of what is widened, as one of the narrow number where that has the same bits, which those of a float have not."""
    narrow, element = widened.args[0], cast.type.element
    if element == int32:
        return narrow
    if not cast.attribute("bitcast"):
        return replace(cast, args=(narrow,))
    same = isinstance(element, DType) and element.is_int()
    return Call(cast.type, "cast", (narrow,)) if same else replace(cast, args=(widened,))


class _Narrowing:
    """Expressions with what is `chosen` in the place of integers of 64 bits.

    Of scalars those are chosen that are `wanted`, for what tiles, loops and other chosen scalars are computed of; those that
    were `asked` for are to be wanted next time. Beside those that are `sought` among indices stand others, narrow ones.
    `narrowed` has what is known of parts, by `id`: what does not fit after all would be looked through again at each level.
    """

    def __init__(
        self,
        definitions: Mapping[Variable, Expr],
        loops: Mapping[Variable, Range],
        first_key: int,
        wanted: frozenset[Variable],
    ) -> None:
        self.definitions, self.loops, self.next_key, self.wanted = definitions, loops, first_key, wanted
        self.asked: set[Variable] = set()
        self.chosen: dict[Variable, Variable] = {}
        self.sought: dict[Variable, Variable] = {}
        self.narrowed: dict[int, tuple[Expr, Expr | None]] = {}

    def of_kernel(self, kernel: Kernel) -> Kernel:
        """The kernel with what fits in 32 bits in as many."""
        parts = Counter(statement.origin for statement in statements(kernel.body))
        changed: dict[Statement, Statement] = {}
        for statement in statements(kernel.body):
            narrow: Statement | None = None
            if isinstance(statement, For):
                narrow = self.narrow_loop(statement)
            elif isinstance(statement, Assign) and len(statement.targets) == 1 and statement.target in self.definitions:
                narrow = self.narrow_assignment(statement)
            if narrow is not None:
                noted = narrow.origin.noted("fits in 32 bits") if parts[narrow.origin] == 1 else narrow.origin
                changed[statement] = replace(narrow, origin=noted)
        body = mapped_in(with_replaced(kernel.body, changed), self.of)
        return replace(kernel, body=with_replaced(body, {}, dict(self._sought_for(body))))

    def _sought_for(self, body: tuple[Statement, ...]) -> Iterator[tuple[tuple[Statement, bool], list[Statement]]]:
        """What is to be added behind the statements that assign scalars which are looked for."""
        for statement in statements(body):
            if isinstance(statement, Assign) and (narrow := self.sought.get(statement.targets[0])):
                whole = Use(statement.targets[0].type, statement.targets[0])
                half = self._lower_half(whole)
                fits = Call(ValueType(int1), "eq", (whole, Call(whole.type, "cast", (half,))))
                value = Call(narrow.type, "where", (fits, half, Literal(narrow.type, -1)))
                yield (statement, True), [Assign(statement.origin, (narrow,), value)]

    def narrow_assignment(self, statement: Assign) -> Assign | None:
        """A variable that is computed in 32 bits from here on; None for one that stays, or is a wider copy."""
        target, value = statement.target, statement.value
        if not _is_long(target.type) or self._number(value) is not None:
            return None
        if target.type.is_tile:
            narrow = self.narrow(value) if _is_computed(value) else None
        else:
            narrow = self.narrow(value) if target in self.wanted else None
        if narrow is None:
            return None
        self._ask(narrow)
        if not target.type.is_tile and _is_lower_half(narrow):
            return None
        return replace(statement, targets=(self._choose(target, narrow.type),), value=narrow)

    def narrow_loop(self, loop: For) -> For | None:
        """A loop whose variable counts in 32 bits; None for one that stays."""
        if not _is_long(loop.variable.type) or not _fits(self.loops.get(loop.variable, (0, INT32[1] + 1))):
            return None
        bounds = self._all_narrow((loop.start, loop.stop, loop.step))
        if not bounds:
            return None
        for bound in bounds:
            self._ask(bound)
        start, stop, step = bounds
        return replace(loop, variable=self._choose(loop.variable, start.type), start=start, stop=stop, step=step)

    def _choose(self, variable: Variable, type_: ValueType) -> Variable:
        self.chosen[variable] = self._own(variable.name, type_)
        return self.chosen[variable]

    def _own(self, name: str, type_: ValueType) -> Variable:
        self.next_key += 1
        return Variable(name, type_, self.next_key - 1)

    def _ask(self, narrow: Expr) -> None:
        """Notes the scalars of 64 bits of which a narrow expression takes the lower half."""
        for part in subexpressions(narrow):
            if _is_lower_half(part) and isinstance(part.args[0], Use) and not part.args[0].type.is_tile:  # type: ignore[attr-defined]
                self.asked.add(part.args[0].variable)  # type: ignore[attr-defined]

    def of(self, expr: Expr) -> Expr:
        """An expression of the same type."""
        if isinstance(expr, Use) and expr.variable in self.chosen:
            return Call(expr.type, "cast", (self._use(expr.variable),))
        if isinstance(expr, CallFunction):
            return with_operands(expr, tuple(map(self.of, expr.args)))
        if not isinstance(expr, Call):
            return expr
        if expr.op in COMPARISONS and expr.args[0].type.element == int64 and self._is_for_tiles(expr):
            compared = self._all_narrow(expr.args)
            saves = any(self._number(arg) is None for arg in expr.args)
            if compared and saves and not any(map(_is_lower_half, compared)):
                for side in compared:
                    self._ask(side)
                return replace(expr, args=compared)
            if expr.op in ("eq", "ne") and (found := self._search(expr)) is not None:
                return found
        if expr.op == "ptr_add" and expr.args[1].type.element == int64:
            pointer, offset = expr.args
            moved = self.narrow(offset)
            if moved is not None and self._is_for_tiles(expr):
                self._ask(moved)
                return replace(expr, args=(self.of(pointer), moved))
        if expr.op == "cast" and _is_widened(inner := self.of(expr.args[0])):
            return _of_narrow(expr, inner)
        return replace(expr, args=tuple(map(self.of, expr.args)))

    def _search(self, comparison: Call) -> Expr | None:
        """Whether narrow indices, none of which is below zero, are a scalar of any size, by what that is among such.

        None for another comparison. What the text computes as an int is taken not to overflow.
        """
        for side, other in (comparison.args, comparison.args[::-1]):
            narrow = self.narrow(side) if self._number(side) is None else None
            if narrow is None or _is_lower_half(narrow):
                continue
            least, _ = integer_range(side, self.definitions, within=True, given=self.loops)
            moved = self._sought(other) if least >= 0 else None
            if moved is not None:
                self._ask(narrow)
                return replace(comparison, args=(narrow, moved))
        return None

    def _sought(self, expr: Expr) -> Expr | None:
        """A scalar of 64 bits, as a tile or not, in 32: -1 where it does not fit; None for anything else."""
        if isinstance(expr, Call) and expr.op in MOVES:
            inner = self._sought(expr.args[0])
            return inner and replace(expr, type=expr.type.with_element(int32), args=(inner,))
        if not isinstance(expr, Use) or expr.type.is_tile or expr.variable not in self.definitions:
            return None
        if expr.variable not in self.sought:
            type_ = expr.type.with_element(int32)
            self.sought[expr.variable] = self._own(f"{expr.variable.name}_or_none", type_)
        return Use(self.sought[expr.variable].type, self.sought[expr.variable])

    def _is_for_tiles(self, expr: Expr) -> bool:
        """Whether an operation is one of tiles, or of scalars that are narrow anyway: only for it none becomes narrow."""
        longs = (variable for variable in used_variables(expr) if _is_long(variable.type))
        return expr.type.is_tile or all(v in self.chosen or v.type.is_tile for v in longs)

    def narrow(self, expr: Expr) -> Expr | None:
        """The same numbers in 32 bits; None where that is not known to be possible."""
        if id(expr) not in self.narrowed:
            self.narrowed[id(expr)] = expr, self._narrow(expr)
        return self.narrowed[id(expr)][1]

    def _narrow(self, expr: Expr) -> Expr | None:
        type_ = expr.type.with_element(int32)
        if expr.type.element == int32:
            return self.of(expr)
        if expr.type.element != int64 or not _fits(integer_range(expr, self.definitions, given=self.loops)):
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
