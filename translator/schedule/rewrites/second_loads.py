"""Vectors that statements need in two layouts are loaded once for each, and move through no shared memory.

In: a kernel, its facts and its schedule. Out: the same kernel, in which such a vector, and what it is computed from, has a second
name for the uses in the other layout.

A few elements more to load cost less than an exchange, in which all threads meet: the second load is on its way beside the first,
and where a loop makes its loads ahead, it is one of them. Only what comes from memory that the kernel does not write is loaded
twice, at places that follow from indices alone, and only if the first load has uses of its own. What is held in runs is loaded
by vectors, which a layout of shorter runs would take apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ...analysis.facts import Facts, read_through
from ...frozen import frozen
from ...ir.nodes import Assign, Call, CallFunction, Effect, Expr, Kernel, Statement, Use, Variable
from ...ir.rewrite import mapped_in, substituted_in, with_operands, with_replaced
from ...ir.structured import is_elementwise
from ...ir.walk import expressions, next_key, read_variables, statements, subexpressions, used_variables
from ..accesses.pointers import lasting_loads
from ..plan import Schedule
from ..tiles.exchange import shuffles
from ..tiles.layout import Layout
from ..tiles.layout_problem import Path, statement_node
from ..tiles.layouts import follow
from .loaded_names import WORDS_OF_AXES

MOST_REGISTERS = 16  # of a thread, for a vector that is held from its second load to its use
MOST_STATEMENTS = 4  # from the loads to the vector: what is computed twice


@frozen
class _Second:
    """The variable that stands for a vector wherever that is needed in a layout."""

    vector: Variable
    layout: Layout
    variable: Variable


@frozen
class _Values:
    """What tells how a vector comes about: the statement that assigns each variable, the facts, and which loads last."""

    assigned: dict[Variable, Assign]
    facts: Facts
    lasts: Callable[[Call], bool]


def with_second_loads(kernel: Kernel, facts: Facts, schedule: Schedule) -> Kernel:
    """See the module docstring; the same object where no vector is loaded twice."""
    wanted = dict.fromkeys(_exchanged(kernel, schedule))
    if not wanted:
        return kernel
    assigned = {s.target: s for s in statements(kernel.body) if isinstance(s, Assign) and len(s.targets) == 1}
    values = _Values(assigned, facts, lasting_loads(kernel))
    replaced: dict[Statement, Statement] = {}
    added: dict[tuple[Statement, bool], list[Statement]] = {}
    key = next_key(kernel)
    for vector, layout in wanted:
        chain = _chain(vector, values)
        if not 0 < len(chain) <= MOST_STATEMENTS:
            continue
        unnamed = _Second(vector, layout, Variable(vector.name, vector.type, key))
        changed = _with_second(kernel, unnamed, facts, schedule, replaced)
        if changed is None:
            continue
        user = next(s for s in statements(kernel.body) if s in changed)
        word = _word(user, changed[user], unnamed)
        again = {v: Variable(f"{v.name}_{word}", v.type, key + number) for number, v in enumerate(chain)}
        key += len(chain)
        named = {unnamed.variable: Use(vector.type, again[vector])}
        replaced |= {old: substituted_in(new, named) for old, new in changed.items()}
        place = user.origin
        for variable in chain:
            first = assigned[variable]
            # A span of its own: the first load is all of the line, and not a part of it.
            origin = replace(first.origin, span=replace(first.origin.span), comments=(), blank_before=False)
            origin = origin.noted(f"again, for {place.place(place.span.line)}")
            names = {old: Use(new.type, new) for old, new in again.items()}
            second = Assign(origin, (again[variable],), substituted_in(first.value, names))
            added.setdefault((first, True), []).append(second)
    return replace(kernel, body=with_replaced(kernel.body, replaced, added)) if replaced else kernel


def _word(user: Statement, changed: Statement, second: _Second) -> str:
    """What tells the second load of a vector from the first, in the first statement that is `changed` to need it.

    That is what the statement computes; where it needs the first as well, which axis the second lies along.
    """
    if second.vector in read_variables(changed):
        parts = (part for expr in expressions(changed) for part in subexpressions(expr))
        turned = (part for part in parts if isinstance(part, Call) and part.op == "expand_dims")
        axes = (part.attribute("axis") for part in turned if set(used_variables(part)) == {second.variable})
        axis = next(axes, None)
        return WORDS_OF_AXES[axis] if isinstance(axis, int) and axis < len(WORDS_OF_AXES) else "again"
    computed = user.targets[0].name if isinstance(user, Assign) else ""
    return f"for_{computed}" if computed not in ("", second.vector.name) else "again"


def _exchanged(kernel: Kernel, schedule: Schedule) -> Iterator[tuple[Variable, Layout]]:
    """The vectors that go through shared memory, and the layouts in which threads have few elements of them."""
    for statement in statements(kernel.body):
        for conversion in schedule.conversions.get(statement, ()):
            vector, layout = conversion.variable, conversion.layout
            held = schedule.layouts[vector]
            few = layout.num_registers <= MOST_REGISTERS
            if vector.type.rank == 1 and few and held.run(0) <= layout.run(0) and not shuffles(held, layout):
                yield vector, layout


def _chain(variable: Variable, values: _Values) -> list[Variable]:
    """A vector behind all that it is computed from, down to loads; empty where something of that cannot be made twice."""
    definition = values.assigned.get(variable)
    if definition is None or values.facts.assignments[variable] != 1:
        return []
    value = definition.value
    loads = isinstance(value, Call) and value.op == "load" and values.lasts(value)
    if not loads and not is_elementwise(value):
        return []
    found: list[Variable] = []
    for tile in _tiles(value, values.facts):
        before = [] if loads else _chain(tile, values)
        if not before:
            return []
        found += (one for one in before if one not in found)
    return [*found, variable] if loads or found else []


def _tiles(expr: Expr, facts: Facts) -> Iterator[Variable]:
    """The tiles that an expression reads from registers: others are written out, or computed in any layout."""
    return (v for v in read_through(expr, facts) if v.type.is_tile and v not in facts.index)


def _with_second(
    kernel: Kernel,
    second: _Second,
    facts: Facts,
    schedule: Schedule,
    replaced: Mapping[Statement, Statement],
) -> dict[Statement, Statement] | None:
    """The statements, some `replaced` before, with the second name where they need that layout; None if all uses do."""
    found: dict[Statement, Statement] = {}
    rest = False
    for statement in statements(kernel.body):
        now = replaced.get(statement, statement)
        if second.vector not in read_variables(now):
            continue
        node = statement_node(statement, facts)
        runs_in = schedule.statement_layouts.get(node) if isinstance(node, Statement) else schedule.layouts.get(node)  # type: ignore[arg-type]
        if runs_in is not None:
            changed = _replaced_in(now, second, runs_in)
            if changed is not now:
                found[statement] = now = changed
        rest = rest or second.vector in read_variables(now)
    return found if found and rest else None


def _replaced_in(statement: Statement, second: _Second, runs_in: Layout) -> Statement:
    """A statement that runs in a layout, with the second name where the vector is needed in that of the second."""

    def changed(expr: Expr, path: Path) -> Expr:
        if isinstance(expr, Use):
            needed = expr.variable is second.vector and follow(runs_in, path) == second.layout
            return Use(second.variable.type, second.variable) if needed else expr
        if not isinstance(expr, (Call, CallFunction)):
            return expr
        return with_operands(expr, tuple(changed(arg, (*path, (expr, arg))) for arg in expr.args))

    return (
        mapped_in(statement, lambda expr: changed(expr, ())) if isinstance(statement, (Assign, Effect)) else statement
    )
