"""What a kernel loads from memory and then leaves as it is: numbers and addresses that a tensor map made in it may consist of.

In: a kernel. Out: its scalars that are assigned once, from memory, and for some of them the statement behind which all
have their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..ir.nodes import Assign, Call, Expr, Kernel, Statement, Use, Variable
from ..ir.walk import bodies, statements, subexpressions
from .axis_info import axis_info
from .box_dimensions import ALIGNMENT
from .facts import Facts

Path = list[tuple[tuple[Statement, ...], int]]  # (block, place in it), from the kernel's body to a statement


def settled_scalars(kernel: Kernel, facts: Facts) -> frozenset[Variable]:
    """Integers and addresses that are loaded, and pointers to where descriptors start: assigned once in the text."""
    found: set[Variable] = set()
    for statement in statements(kernel.body):
        if not isinstance(statement, Assign) or len(statement.targets) != 1:
            continue
        target = statement.target
        if target.type.is_tile or facts.assignments[target] != 1:
            continue
        value = _behind_conversions(statement.value)
        loaded = isinstance(value, Call) and value.op == "load" and not value.attribute("volatile")
        if target.type.is_pointer:
            loaded |= axis_info(statement.value, facts.known).divisibility[0] >= ALIGNMENT
        if loaded or (isinstance(value, Use) and value.variable in found):
            found.add(target)
    return frozenset(found)


def _behind_conversions(expr: Expr) -> Expr:
    while isinstance(expr, Call) and expr.op in ("cast", "hint"):
        expr = expr.args[0]
    return expr


def promised_divisors(expr: Expr) -> dict[Variable, int]:
    """What hints in an expression say that scalar variables are multiples of."""
    found: dict[Variable, int] = {}
    for part in subexpressions(expr):
        if isinstance(part, Call) and part.op == "hint" and part.attribute("kind") == "multiple_of":
            value = _behind_conversions(part)
            if isinstance(value, Use) and not value.type.is_tile:
                found[value.variable] = max(found.get(value.variable, 1), part.attribute("values")[0])
    return found


def settled_behind(kernel: Kernel, variables: Iterable[Variable], statement: Statement) -> Statement | None:
    """The statement on the way to `statement` behind which all variables have the values that they have there, if any has."""
    path, missing = path_to(kernel.body, statement) or [], set(variables)
    last: Statement | None = None
    for block, place in reversed(path):
        for number in range(place - 1, -1, -1):
            found = missing & set(_assigned(block[number]))
            if found and last is None:
                last = _end_of_source(block, number, place)
            missing -= found
    return None if missing else last


def path_to(block: tuple[Statement, ...], wanted: Statement) -> Path | None:
    """The blocks around a statement, outermost first, each with the place of what holds it; None if it is nowhere."""
    for place, statement in enumerate(block):
        if statement is wanted:
            return [(block, place)]
        for body in bodies(statement):
            below = path_to(body, wanted)
            if below is not None:
                return [(block, place), *below]
    return None


def _assigned(statement: Statement) -> Iterator[Variable]:
    for one in statements((statement,)):
        if isinstance(one, Assign):
            yield from one.targets


def _end_of_source(block: tuple[Statement, ...], number: int, limit: int) -> Statement:
    """The last statement of the line that the statement at `number` came from."""
    while number + 1 < limit and block[number + 1].origin == block[number].origin:
        number += 1
    return block[number]
