"""Between which numbers the integers of an expression lie.

In: an expression and the definitions of variables that are assigned once. Out: (least, greatest), both included; what is
not known in more detail has the bounds of its type. `(packed >> shifts) & 15` is from 0 to 15.

What overflows wraps, and can be anything. Not so indices, `within` their type: the text computes them as C's ints, which
may not overflow.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ..hardware import MOST_PROGRAMS
from ..ir.nodes import Call, Expr, For, Literal, Statement, Use, Variable
from ..ir.walk import MOVES, assignment_counts, statements, used_variables
from ..language.dtypes import DType

Range = tuple[int, int]
COMPARISONS = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
NEGATED = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}
MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
DEEPEST = 16  # definitions that are looked into, one inside the other
NOTHING: Mapping[Variable, Range] = MappingProxyType({})


def integer_range(
    expr: Expr, definitions: Mapping[Variable, Expr], within: bool = False, given: Mapping[Variable, Range] = NOTHING
) -> Range:
    """The range of an expression of integers, where some variables have the ranges that are `given`."""
    return _Ranges(definitions, within, given).of(expr, 0)


def loop_ranges(body: tuple[Statement, ...], definitions: Mapping[Variable, Expr]) -> dict[Variable, Range]:
    """The ranges of the variables of loops, inside of them, that nothing else assigns.

    A range includes what a loop adds behind its last trip, for the text computes that.
    """
    counts, found = assignment_counts(body), dict[Variable, Range]()
    for loop in statements(body):
        if not isinstance(loop, For) or counts[loop.variable] != 1 or loop.previous is not None:
            continue
        bounds = [integer_range(bound, definitions, given=found) for bound in (loop.start, loop.stop, loop.step)]
        (first, last), (least, most), (down, up) = bounds
        if loop.descending:
            found[loop.variable] = min(first, least + 1 + down), last
        else:
            found[loop.variable] = first, max(last, most - 1 + up)
    return found


def number_of(expr: Expr, definitions: Mapping[Variable, Expr]) -> int | None:
    """The only number that a scalar of integers can be; None where it can be several."""
    if expr.type.is_tile or not _is_integer(expr):
        return None
    least, greatest = integer_range(expr, definitions)
    return least if least == greatest else None


def truth_of(condition: Expr, definitions: Mapping[Variable, Expr]) -> bool | None:
    """Whether a condition holds, if numbers decide that."""
    while isinstance(condition, Use) and condition.variable in definitions:
        condition = definitions[condition.variable]
    if isinstance(condition, Literal):
        return bool(condition.value)
    if not isinstance(condition, Call) or condition.op not in COMPARISONS:
        return None
    left, right = (number_of(arg, definitions) for arg in condition.args)
    return None if left is None or right is None else COMPARISONS[condition.op](left, right)


class _Ranges:
    """Ranges that are looked up once for each variable and depth: what is made of a variable may mention it many times."""

    def __init__(
        self, definitions: Mapping[Variable, Expr], within: bool, given: Mapping[Variable, Range] = NOTHING
    ) -> None:
        self.definitions, self.within, self.given = definitions, within, given
        self.known: dict[tuple[Variable, int], Range] = {}

    def of(self, expr: Expr, depth: int) -> Range:
        """The range of an expression so many definitions below the one that is asked for."""
        whole = _of_type(expr)
        found = whole
        match expr:
            case Literal(value=int()):
                found = expr.reach
            case Use(variable=variable) if variable in self.given:
                found = self.given[variable]
            case Use(variable=variable) if variable in self.definitions and depth < DEEPEST:
                found = self._of_variable(variable, depth + 1)
            case Call(op="arange"):
                found = (expr.attribute("start"), expr.attribute("end") - 1)
            case Call(op="program_id" | "num_programs"):
                found = (0, MOST_PROGRAMS[expr.attribute("axis")] - (expr.op == "program_id"))
            case Call(op="where", args=(condition, yes, no)):
                ways = [self._where(condition, yes, True, depth), self._where(condition, no, False, depth)]
                found = (min(least for least, _ in ways), max(most for _, most in ways))
            case Call(op=op, args=args) if args and all(_is_integer(arg) for arg in args):
                ranges = [self.of(arg, depth) for arg in args]
                found = ranges[0] if op in MOVES or op == "cast" else _operation(op, ranges) or whole
        if whole[0] <= found[0] and found[1] <= whole[1]:
            return found
        kept = max(found[0], whole[0]), min(found[1], whole[1])
        return kept if self.within and kept[0] <= kept[1] else whole

    def _where(self, condition: Expr, way: Expr, holds: bool, depth: int) -> Range:
        """The range of one way of a choice: of `where(a > b, a, b)`, a is above the least that b can be.

        Where the condition has a name, a must be what it was when that got its value: a variable with one value.
        """
        named = isinstance(condition, Use)
        while isinstance(condition, Use) and condition.variable in self.definitions:
            condition = self.definitions[condition.variable]
        if not isinstance(condition, Call) or condition.op not in NEGATED:
            return self.of(way, depth)
        if named and not all(variable in self.definitions for variable in used_variables(way)):
            return self.of(way, depth)
        relation = condition.op if holds else NEGATED[condition.op]
        left, right = condition.args
        return self._compared(way, ((left, relation, right), (right, MIRRORED[relation], left)), depth)

    def _compared(self, expr: Expr, relations: tuple[tuple[Expr, str, Expr], ...], depth: int) -> Range:
        """The range of an expression where these comparisons hold."""
        found = self.of(expr, depth)
        if isinstance(expr, Call) and expr.op == "cast" and _is_integer(expr.args[0]):
            least, most = self._compared(expr.args[0], relations, depth)
            whole = _of_type(expr)
            return (least, most) if whole[0] <= least and most <= whole[1] else found
        for one, relation, other in relations:
            if one == expr:
                found = _bounded(found, relation, self.of(other, depth))
        return found

    def _of_variable(self, variable: Variable, depth: int) -> Range:
        if (variable, depth) not in self.known:
            self.known[variable, depth] = self.of(self.definitions[variable], depth)
        return self.known[variable, depth]


def fits(call: Call, definitions: Mapping[Variable, Expr], within: bool = False) -> bool:
    """Whether a cast or an operation of integers gives the number that it would give without a limit of bits."""
    if not call.args or not all(_is_integer(arg) for arg in (call, *call.args)):
        return False
    ranges = [integer_range(arg, definitions, within=within) for arg in call.args]
    found, whole = ranges[0] if call.op == "cast" else _operation(call.op, ranges), _of_type(call)
    return found is not None and whole[0] <= found[0] and found[1] <= whole[1]


def never_overflows(expr: Expr, definitions: Mapping[Variable, Expr], written_out: Mapping[Variable, Expr]) -> bool:
    """Whether no sum, difference or product of an offset, down to what else it is made of, needs more bits than an int has.

    `written_out` are the definitions of variables that the text has no name for.
    """
    if isinstance(expr, Use) and expr.variable in written_out:
        return never_overflows(written_out[expr.variable], definitions, written_out)
    if not isinstance(expr, Call) or expr.op not in ("add", "sub", "mul", *MOVES):
        return True
    if not all(never_overflows(arg, definitions, written_out) for arg in expr.args):
        return False
    return expr.op in MOVES or fits(expr, definitions, within=True)


def sums_fit(terms: Sequence[Expr], definitions: Mapping[Variable, Expr]) -> bool:
    """Whether integers of 32 bits can be added up in as many, from the first one on."""
    least, most = 0, 0
    for term in terms:
        if not _is_integer(term) or term.type.dtype.bits != 32:
            return False
        whole, (low, high) = _of_type(term), integer_range(term, definitions, within=True)
        least, most = least + low, most + high
        if least < whole[0] or most > whole[1]:
            return False
    return True


def _is_integer(expr: Expr) -> bool:
    element = expr.type.element
    return isinstance(element, DType) and element.is_int()


def _of_type(expr: Expr) -> Range:
    element = expr.type.element
    if not isinstance(element, DType) or not element.is_int():
        raise TypeError(f"no integers: {expr.type}")
    if element.is_bool():
        return 0, 1
    if element.kind == "unsigned":
        return 0, (1 << element.bits) - 1
    return -(1 << element.bits - 1), (1 << element.bits - 1) - 1


def _operation(op: str, ranges: list[Range]) -> Range | None:
    """The range of an operation's result, before it wraps; None where no rule says more than its type does."""
    if len(ranges) == 1:
        return _of_one(op, ranges[0])
    (a, b), (c, d) = ranges[0], ranges[1]
    match op:
        case "add":
            return a + c, b + d
        case "sub":
            return a - d, b - c
        case "mul":
            products = (a * c, a * d, b * c, b * d)
            return min(products), max(products)
        case "and" if a >= 0 or c >= 0:
            return 0, min(limit for least, limit in ranges if least >= 0)
        case "or" | "xor" if a >= 0 and c >= 0:
            return 0, (1 << max(b, d).bit_length()) - 1
        case "shr" if a >= 0 and c >= 0:
            return 0, b >> min(c, 63)
        case "mod" if c > 0:  # of the dividend's sign
            return max(min(a, 0), 1 - d), min(max(b, 0), d - 1)
        case "floordiv" if c > 0:  # towards zero
            return min(_quotients(a, c, d)), max(_quotients(b, c, d))
        case "minimum":
            return min(a, c), min(b, d)
        case "maximum":
            return max(a, c), max(b, d)
    return None


def _bounded(found: Range, op: str, other: Range) -> Range:
    """The range of a number that compares so with another one; as it was where none could."""
    least, most = found
    match op:
        case "lt":
            most = min(most, other[1] - 1)
        case "le":
            most = min(most, other[1])
        case "gt":
            least = max(least, other[0] + 1)
        case "ge":
            least = max(least, other[0])
    return (least, most) if least <= most else found


def _of_one(op: str, whole: Range) -> Range | None:
    """The range of an operation of one operand."""
    least, most = whole
    match op:
        case "neg":
            return -most, -least
        case "abs":
            return max(least, -most, 0), max(-least, most)
    return None


def _quotients(dividend: int, *divisors: int) -> list[int]:
    return [abs(dividend) // divisor * (1 if dividend >= 0 else -1) for divisor in divisors]
