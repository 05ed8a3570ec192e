"""Which programs of a grid have something to do, where conditions on their numbers send the others away at once.

In: a kernel that begins with `if pid_m < pid_n: return`, or of which all else stands in `if pid_m >= pid_n:`. Out: from which
one on and up to which one of each line of programs along an axis the condition holds, so that blocks can count these programs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...analysis.affine import ONE, NotAffineError, Sum, Term, build, minus, plus
from ...analysis.coordinates import Reader
from ...analysis.facts import Facts
from ...analysis.masks import COMPARISONS, CONJUNCTIONS
from ...analysis.ranges import integer_range
from ...frozen import frozen
from ...ir.nodes import Assign, Call, Effect, Expr, If, Kernel, Literal, Note, Return, Statement, Use, Variable
from ...ir.rewrite import with_operands
from ...ir.structured import is_elementwise
from ...ir.types import ValueType
from ...ir.walk import subexpressions
from ...language.dtypes import int32

ALTERNATIVES = ("or", "logical_or")
OPPOSITES = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
INT = ValueType(int32)


@frozen
class UsefulPrograms:
    """The programs for which the conditions hold that a kernel begins with.

    Attributes:
      axis: that of the lines of which a part has something to do.
      firsts: none of these lies behind the first such program of a line; over parameters and the programs' other numbers.
      ends: none of these lies in front of the last one; the line's own end is another.
      conditions: the statements that ask for it.
    """

    axis: int
    firsts: tuple[Expr, ...]
    ends: tuple[Expr, ...]
    conditions: tuple[If, ...]


def useful_programs(kernel: Kernel, facts: Facts) -> UsefulPrograms | None:
    """See the module docstring; None for a kernel that begins with no condition, or with one that says it otherwise."""
    conditions = tuple(_leading(kernel.body))
    comparisons: list[Call] = []
    for statement in conditions:
        parts = _comparisons(statement.condition, not returns_at_once(statement), facts)
        if parts is None:
            return None
        comparisons += parts
    parameters = {parameter.variable for parameter in kernel.parameters}
    written = [_over_programs(side, facts, parameters) for one in comparisons for side in one.args]
    sides = [side for side in written if side is not None]
    if not conditions or len(sides) != len(written):
        return None
    axes = {part.attribute("axis") for side in sides for part in _program_numbers(side)}
    pairs = list(zip((one.op for one in comparisons), sides[::2], sides[1::2], strict=True))
    for axis in sorted(axes):
        limits = [_limits(op, left, right, axis) for op, left, right in pairs]
        if None not in limits:
            firsts = [first for limit in limits if limit for first in limit[0]]
            ends = [end for limit in limits if limit for end in limit[1]]
            return UsefulPrograms(axis, tuple(firsts), tuple(ends), conditions)
    return None


def without_conditions(block: tuple[Statement, ...], useful: UsefulPrograms | None) -> tuple[Statement, ...]:
    """A kernel's statements as those of a program for which all conditions hold, where such programs are found."""
    found: list[Statement] = []
    for statement in block:
        if useful is None or not isinstance(statement, If) or statement not in useful.conditions:
            found.append(statement)
        elif returns_at_once(statement):
            found.append(Note(statement.origin.noted("the loops above leave such programs out")))
            found += [Note(s.origin.noted("of such programs")) if isinstance(s, Return) else s for s in statement.then]
        else:
            found += [Note(statement.origin.noted("the loops above leave all other programs out")), *statement.then]
    return tuple(found)


def _leading(block: tuple[Statement, ...]) -> Iterator[If]:
    """The conditions that decide whether a program does anything."""
    for number, statement in enumerate(block):
        match statement:
            case If() if not statement.otherwise and returns_at_once(statement):
                yield statement
            case If() if not statement.otherwise and all(isinstance(s, Note) for s in block[number + 1 :]):
                yield statement
            case Assign() if is_elementwise(statement.value):
                pass
            case Effect() if statement.call.op == "assume":
                pass
            case Note():
                pass
            case _:
                return


def returns_at_once(statement: If) -> bool:
    """Whether all that a program does under a condition is to end."""
    return [type(s) for s in statement.then if not isinstance(s, Note)] == [Return]


def _comparisons(condition: Expr, holds: bool, facts: Facts) -> list[Call] | None:
    """The comparisons that all hold where a condition holds, or where it does not; None where they could hold one by one."""
    if isinstance(condition, Use) and condition.variable in facts.definitions:
        return _comparisons(facts.definitions[condition.variable], holds, facts)
    if not isinstance(condition, Call):
        return None
    if condition.op in COMPARISONS:
        op = condition.op if holds else OPPOSITES[condition.op]
        return [Call(condition.type, op, condition.args)]
    if condition.op in (CONJUNCTIONS if holds else ALTERNATIVES):
        found = [_comparisons(arg, holds, facts) for arg in condition.args]
        return None if None in found else [one for parts in found if parts for one in parts]
    return None


def _over_programs(expr: Expr, facts: Facts, parameters: set[Variable]) -> Expr | None:
    """A number over parameters and the numbers of programs; None for one that is loaded, changes or has other than 32 bits."""
    if expr.type != INT:
        return None
    match expr:
        case Literal() | Call(op="program_id" | "num_programs"):
            return expr
        case Use(variable=variable) if variable in parameters and facts.assignments[variable] == 0:
            return expr
        case Use(variable=variable) if variable in facts.definitions:
            return _over_programs(facts.definitions[variable], facts, parameters)
        case Call() if expr.args and is_elementwise(expr):
            args = tuple(
                arg for arg in (_over_programs(arg, facts, parameters) for arg in expr.args) if arg is not None
            )
            return with_operands(expr, args) if len(args) == len(expr.args) else None
    return None


def _program_numbers(expr: Expr) -> Iterator[Call]:
    return (part for part in subexpressions(expr) if isinstance(part, Call) and part.op == "program_id")


def _limits(op: str, left: Expr, right: Expr, axis: int) -> tuple[tuple[Expr, ...], tuple[Expr, ...]] | None:
    """(where a line of programs begins to fulfil a comparison, where it ends to), () for a side without limit.

    None where it is not some multiple of a program's number that is compared.
    """
    if op in ("lt", "le"):
        left, right = right, left
    try:
        more = minus(Reader().sum(left), Reader().sum(right))
    except NotAffineError:
        return None
    more = minus(more, ONE) if op in ("lt", "gt") else more  # the comparison holds where this is not below zero
    own = [term for term in more if any(_is_number_along(axis, factor) for factor in term.factors)]
    rest = tuple(term for term in more if term not in own)
    hidden = (part for term in rest for factor in term.factors for part in subexpressions(factor))
    if len(own) != 1 or len(own[0].unknowns) > 1 or any(_is_number_along(axis, part) for part in hidden):
        return None
    by = (replace(own[0], factors=tuple(f for f in own[0].factors if isinstance(f, Literal))),)
    if by[0].number > 0:
        return (_quotient(minus((), rest), by),), ()
    return (), (_quotient(plus(rest, ONE), minus((), by)),)


def _is_number_along(axis: int, expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.op == "program_id" and expr.attribute("axis") == axis


def _quotient(number: Sum, by: Sum) -> Expr:
    """The least number, not below zero, that is no less than a quotient."""
    dividend = build(number, int32)
    if integer_range(dividend, {})[0] < 0:
        dividend = Call(INT, "maximum", (dividend, Literal(INT, 0)))
        number = (Term(1, (dividend,)),)
    return (
        dividend if by == ONE else Call(INT, "floordiv", (build(minus(plus(number, by), ONE), int32), build(by, int32)))
    )
