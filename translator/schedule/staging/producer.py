"""What the loading warpgroup of a kernel executes: the control flow around tensor copies, and the scalars they need.

It also waits for earlier grids where the kernel does: what it loads after that, they may have written.

In: blocks of statements. Out: the same blocks without everything else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from ...frozen import frozen
from ...ir.nodes import Assign, Call, Effect, Expr, For, If, Inlined, Kernel, Note, Return, Statement, Variable, While
from ...ir.rewrite import with_bodies
from ...ir.structured import assigns, is_elementwise
from ...ir.walk import bodies, nested, read_variables, statements, used_variables
from ..accesses.pointers import pointer_sources, roots_of, roots_written
from ..accesses.waiting import polls, waits_for_grids


@frozen
class SharedLines:
    """Source lines of which the producer and the others both execute something: all of it, or parts."""

    same: frozenset[int] = frozenset()
    parts: frozenset[int] = frozenset()


def shared_lines(loading: tuple[Statement, ...], everything: tuple[Statement, ...]) -> SharedLines:
    """Compares the producer's statements, a selection, with all of them."""
    selected, whole = (Counter(s.origin.span.line for s in statements(block)) for block in (loading, everything))
    parts = {line for line in selected if whole[line] and selected[line] != whole[line]}
    for statement in reversed(list(statements(loading))):
        inner = {s.origin.span.line for s in nested(statement)}
        if isinstance(statement, (For, If, While)) or inner & parts:
            parts.add(statement.origin.span.line)
    return SharedLines(frozenset(selected.keys() - parts), frozenset(parts))


def producible(kernel: Kernel, loop: For, starts: tuple[Expr, ...]) -> bool:
    """Whether one thread can compute the control flow down to a loop, and the scalars `starts`, and need not poll memory."""
    if _waits_before(kernel.body, loop):
        return False
    around = [
        s for s in statements(kernel.body)
        if any(o is loop or isinstance(o, Return) or waits_for_grids(o) for o in nested(s))
    ]  # fmt: skip
    needed = {v for s in (*around, loop) for v in read_variables(s)}
    needed |= {v for expr in starts for v in used_variables(expr)}
    written, sources = roots_written(kernel), pointer_sources(kernel)
    return all(_scalar_definition(kernel, variable, written, sources) for variable in _closure(kernel.body, needed))


def _waits_before(block: tuple[Statement, ...], loop: For) -> bool:
    """Whether something polls memory before a loop, be it in the last trip of one around it."""
    for statement in block:
        inside = list(statements((statement,)))
        waits = any(map(polls, inside))
        if loop not in inside:
            if waits:
                return True
        elif isinstance(statement, (For, While)):
            return waits
        else:
            return any(_waits_before(body, loop) for body in bodies(statement))
    return False


def _scalar_definition(
    kernel: Kernel, variable: Variable, written: set[Variable], sources: dict[Variable, set[Variable]]
) -> bool:
    """Whether every assignment of a variable is one that a single thread can make, ahead of what is written to memory."""
    for statement in statements(kernel.body):
        if isinstance(statement, Assign) and variable in statement.targets:
            value = statement.value
            load = _scalar_load(value)
            if load is not None and (load.attribute("volatile") or written & roots_of(load.args[0], sources)):
                return False
            if variable.type.is_tile or not (is_elementwise(value) or load is not None):
                return False
    return True


def producer_block(block: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The producer's part of a block."""
    needed = _needed(block)
    return _filtered(block, needed)


def consumer_block(block: tuple[Statement, ...], loading: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """A block without the scalars that the producer's part of it, `loading`, computes and nobody else needs."""
    needed: set[Variable] = set()
    sources: dict[Variable, set[Variable]] = {}
    for statement in statements(block):
        read = set(read_variables(statement))
        if isinstance(statement, Assign) and _only_gives_values(statement.value):
            for target in statement.targets:
                sources.setdefault(target, set()).update(read)
        elif not _copies(statement) and not makes_load_map(statement):
            needed |= read
    pending = list(needed)
    while pending:
        found = sources.get(pending.pop(), set()) - needed
        needed |= found
        pending += found
    computed = set(statements(loading))
    return _without(
        block,
        lambda s: (
            makes_load_map(s)
            or (
                s in computed
                and isinstance(s, Assign)
                and _only_gives_values(s.value)
                and not any(target.type.is_tile or target in needed for target in s.targets)
            )
        ),
    )


def _only_gives_values(value: Expr) -> bool:
    """Whether an assigned expression is missed by nobody if its value is not used: computed, or a scalar that is loaded."""
    load = _scalar_load(value)
    return is_elementwise(value) or (load is not None and not load.attribute("volatile"))


def _scalar_load(value: Expr) -> Call | None:
    return value if isinstance(value, Call) and value.op == "load" and not value.type.is_tile else None


def _without(block: tuple[Statement, ...], is_left_out: Callable[[Statement], bool]) -> tuple[Statement, ...]:
    kept: list[Statement] = []
    for statement in block:
        if bodies(statement):
            kept.append(with_bodies(statement, lambda body: _without(body, is_left_out)))
        elif not is_left_out(statement):
            kept.append(statement)
    return tuple(kept)


def makes_load_map(statement: Statement) -> bool:
    """Whether a statement makes a tensor map that loads use."""
    return isinstance(statement, Effect) and statement.call.op == "make_map" and bool(statement.call.attribute("loads"))


def _copies(statement: Statement) -> bool:
    return assigns(statement, "box_load")


def _holds_copies(statement: Statement) -> bool:
    return any(_is_kept(inner) or isinstance(inner, Return) for inner in nested(statement))


def _is_kept(statement: Statement) -> bool:
    """Whether a statement is the producer's business, whatever else it executes."""
    return _copies(statement) or makes_load_map(statement) or waits_for_grids(statement)


def _needed(block: tuple[Statement, ...]) -> frozenset[Variable]:
    """Variables that tensor copies, and the control flow around them, depend on."""
    needed: set[Variable] = set()
    for statement in statements(block):
        if _copies(statement) or makes_load_map(statement) or _holds_copies(statement):
            needed |= set(read_variables(statement))
    return _closure(block, needed)


def _closure(block: tuple[Statement, ...], start: set[Variable]) -> frozenset[Variable]:
    needed, changed = set(start), True
    while changed:
        changed = False
        for statement in statements(block):
            defines = isinstance(statement, Assign) and needed & set(statement.targets)
            if defines or _assigns(statement, needed):
                read = set(read_variables(statement))
                changed |= not read <= needed
                needed |= read
    return frozenset(needed)


def _filtered(block: tuple[Statement, ...], needed: frozenset[Variable]) -> tuple[Statement, ...]:
    kept: list[Statement] = []
    for statement in block:
        match statement:
            case Assign() if _copies(statement) or (needed & set(statement.targets)):
                kept.append(statement)
            case Return():
                kept.append(statement)
            case Effect() if waits_for_grids(statement) or makes_load_map(statement):
                kept.append(statement)
            case For() | While() | If() if _holds_copies(statement) or _assigns(statement, needed):
                kept.append(with_bodies(statement, lambda body: _filtered(body, needed)))
            case Inlined():
                if body := _filtered(statement.body, needed):
                    returned = tuple(
                        s for s in statement.body[-1:] if isinstance(s, Note)
                    )  # quoted in front of the value
                    kept.append(replace(statement, body=(*body, *returned)))
    return tuple(kept)


def _assigns(statement: Statement, needed: frozenset[Variable] | set[Variable]) -> bool:
    """Whether what stands inside of a statement gives some variable a value; the variable of a loop keeps its last one."""
    return any(
        (isinstance(inner, Assign) and inner is not statement and bool(needed & set(inner.targets)))
        or (isinstance(inner, For) and inner.variable in needed)
        for inner in statements((statement,))
    )
