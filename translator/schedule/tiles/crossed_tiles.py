"""Choices that most trips of a loop need not make: `score = tl.where(rows >= cols, score, -inf)` behind the diagonal.

In: an assignment that keeps its target where a condition holds, and the facts. Out: the comparisons of integers that the
condition is made of, each by the first element and the number of consecutive ones on either side. What they say of the whole
tile is then a comparison of two scalars.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import replace

from ...analysis.facts import Facts
from ...frozen import frozen
from ...ir.nodes import Assign, Call, Expr, For, Kernel, Literal, Use, Variable
from ...ir.types import ValueType
from ...ir.walk import MOVES, statements, used_variables

NUMBER = "number"  # among the terms of a sum
FEW_TRIPS = 8


@frozen
class Run:
    """Consecutive integers: `count` of them from the scalar `first` on; None stands for 0."""

    first: Expr | None
    count: int


@frozen
class Comparison:
    """Whether every element of `larger` is at least as large as all of `smaller`, or larger than these if `strict`."""

    larger: Run
    smaller: Run
    strict: bool


def crossed(kernel: Kernel, statement: Assign, facts: Facts) -> tuple[Comparison, ...]:
    """The comparisons of which one must fail somewhere for a statement to change its target; () where that is not known.

    Only where a loop changes what is compared, and goes on for longer than the tile: elsewhere, a test would save nothing.
    """
    value = statement.value
    if not isinstance(value, Call) or value.op != "where" or not isinstance(value.args[1], Use):
        return ()
    if value.args[1].variable is not statement.target:
        return ()
    found = _comparisons(value.args[0], facts)
    if found is None:
        return ()
    firsts = [run.first for one in found for run in (one.larger, one.smaller) if run.first is not None]
    used = {variable for first in firsts for variable in used_variables(first)}
    if any(facts.assignments[v] > 1 for v in used):
        return ()  # the condition may have been computed from other values
    along_tile = {s.variable for s in statements(kernel.body) if isinstance(s, For) and _is_short(s, facts)}
    return found if all(_changes(one, facts, along_tile) for one in found) else ()


def _comparisons(expr: Expr, facts: Facts) -> tuple[Comparison, ...] | None:
    """All that a condition asks for; None where it asks for something else."""
    if isinstance(expr, Use):
        definition = facts.definitions.get(expr.variable)
        return None if definition is None else _comparisons(definition, facts)
    if not isinstance(expr, Call):
        return None
    if expr.op in MOVES:
        return _comparisons(expr.args[0], facts)
    if expr.op in ("and", "logical_and"):
        both = [_comparisons(arg, facts) for arg in expr.args]
        return None if both[0] is None or both[1] is None else (*both[0], *both[1])
    if expr.op not in ("lt", "le", "gt", "ge"):
        return None
    larger, smaller = expr.args if expr.op in ("gt", "ge") else expr.args[::-1]
    runs = _run(larger, facts), _run(smaller, facts)
    if runs[0] is None or runs[1] is None:
        return None
    return (Comparison(runs[0], runs[1], expr.op in ("gt", "lt")),)


def _run(expr: Expr, facts: Facts) -> Run | None:
    """What the elements of a tile of integers are, where they follow each other."""
    if not expr.type.is_tile:
        return Run(expr, 1) if isinstance(expr, (Use, Literal)) and expr.type.dtype.is_int() else None
    if isinstance(expr, Use):
        definition = facts.definitions.get(expr.variable)
        return None if definition is None else _run(definition, facts)
    if isinstance(expr, Literal):
        return Run(replace(expr, type=ValueType(expr.type.element)), 1) if expr.type.dtype.is_int() else None
    if not isinstance(expr, Call):
        return None
    if expr.op == "arange" and not expr.attribute("start", 0):
        return Run(None, expr.type.shape[0])
    if expr.op in MOVES:
        return _run(expr.args[0], facts)
    if expr.op != "add":
        return None
    left, right = (_run(arg, facts) for arg in expr.args)
    if left is None or right is None or min(left.count, right.count) > 1:
        return None
    firsts = [run.first for run in (left, right) if run.first is not None]
    first = firsts[0] if firsts else None
    if len(firsts) > 1:
        first = Call(firsts[0].type, "add", tuple(firsts))
    return Run(first, left.count if left.count > 1 else right.count)


def _changes(one: Comparison, facts: Facts, along_tile: Set[Variable]) -> bool:
    """Whether a loop changes what is compared, so that it holds for some tiles and not for others."""
    if _word(one.larger) == _word(one.smaller):
        return False
    firsts = [run.first for run in (one.larger, one.smaller) if run.first is not None]
    used = {variable for first in firsts for variable in used_variables(first)} - along_tile
    return any(facts.assignments[variable] and variable not in facts.definitions for variable in used)


def _word(run: Run) -> object:
    """What tells the scalars that runs begin with apart."""
    return run.first.variable if isinstance(run.first, Use) else run.first


def _is_short(loop: For, facts: Facts) -> bool:
    """Whether a loop goes a few steps from some place on, as along the diagonal of a tile."""
    distance, step = _terms(loop.stop, facts), _terms(loop.step, facts)
    distance.subtract(_terms(loop.start, facts))
    known = not any(count for term, count in (*distance.items(), *step.items()) if term != NUMBER)
    return known and abs(distance[NUMBER]) <= FEW_TRIPS * abs(step[NUMBER])


def _terms(expr: Expr, facts: Facts) -> Counter[object]:
    """What a scalar is the sum of: how often each variable, and the number."""
    if isinstance(expr, Literal) and isinstance(expr.value, int):
        return Counter({NUMBER: expr.value})
    if isinstance(expr, Call) and expr.op == "add":
        left, right = (_terms(arg, facts) for arg in expr.args)
        left.update(right)
        return left
    if isinstance(expr, Use):
        definition = facts.definitions.get(expr.variable)
        if isinstance(definition, (Literal, Use)) or (isinstance(definition, Call) and definition.op == "add"):
            return _terms(definition, facts)
        return Counter([expr.variable])
    return Counter([expr])
