"""What a kernel loads from memory and then leaves as it is: numbers and addresses that a tensor map made in it may consist of.

In: a kernel. Out: its scalars that are assigned once, from memory; and where what is made of some can be computed.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..frozen import frozen
from ..hardware import TENSOR_ALIGNMENT
from ..ir.nodes import Assign, Call, Expr, For, If, Inlined, Kernel, Statement, Use, Variable, While
from ..ir.walk import Path, assigned_variables, path_to, statements, subexpressions
from .axis_info import axis_info
from .facts import Facts


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
            loaded |= axis_info(statement.value, facts.known).divisibility[0] >= TENSOR_ALIGNMENT
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


@frozen
class Place:
    """Where a statement can be added: in front of another one, or `behind` it.

    `loops` counts the loops between it and what it is for: how often that may run for each time it runs.
    """

    statement: Statement
    behind: bool
    loops: int


def place_of_making(kernel: Kernel, variables: Iterable[Variable], line: int, statement: Statement) -> Place | None:
    """Where to compute once what `statement` needs of some variables: when they have their values, and if it is needed.

    That is behind the source line `line`, where a descriptor is made, or the one that assigns the last of them, unless a
    condition or a loop that they do not depend on comes first: then in front of the loop. None where a variable gets its
    value on another way.
    """
    path = path_to(kernel.body, statement) or []
    found = _last_assignment(path, set(variables))
    if found is None:
        return None
    depth, after = found
    while isinstance(path[depth][0][path[depth][1]], (If, Inlined)):
        depth, after = depth + 1, -1
    block, end = path[depth]
    loop = next((n for n in range(after + 1, end) if _holds_loop(block[n])), end)
    loops = sum(isinstance(around[place], (For, While)) for around, place in path[depth:-1])
    lines = (line, block[after].origin.span.line) if after >= 0 else (line,)
    behind = [n for n in range(max(after, 0), loop) if block[n].origin.span.line in lines]
    return Place(block[behind[-1]], True, loops) if behind else Place(block[loop], False, loops)


def _last_assignment(path: Path, missing: set[Variable]) -> tuple[int, int] | None:
    """(depth in the path, place in its block; -1 for a loop's variable) behind which all variables are assigned."""
    last: tuple[int, int] | None = None
    for depth in range(len(path) - 1, -1, -1):
        block, end = path[depth]
        for number in range(end - 1, -1, -1):
            found = missing & {v for s in statements((block[number],)) for v in assigned_variables(s)}
            last = last or ((depth, number) if found else None)
            missing -= found
        around = path[depth - 1][0][path[depth - 1][1]] if depth else None
        if isinstance(around, For) and around.variable in missing:
            last = last or (depth, -1)
            missing.discard(around.variable)
    return None if missing else last


def _holds_loop(statement: Statement) -> bool:
    return any(isinstance(s, (For, While)) for s in statements((statement,)))
