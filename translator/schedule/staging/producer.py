"""What the loading warpgroup of a kernel executes: the control flow around tensor copies, and the scalars they need.

It also waits for earlier grids where the kernel does: what it loads after that, they may have written.

In: blocks of statements. Out: the same blocks without everything else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from ...frozen import frozen
from ...ir.nodes import Assign, Effect, Expr, For, If, Inlined, Note, Return, Statement, Variable, While
from ...ir.rewrite import with_bodies
from ...ir.structured import assigns, is_elementwise
from ...ir.walk import assigned_variables, bodies, follows_from, nested, reachable, read_variables, statements
from ..accesses.waiting import waits_for_grids
from .lone_thread import scalar_load


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


def producer_block(block: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The producer's part of a block."""
    return _filtered(block, _needed(block))


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
    needed = reachable(needed, sources)
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
    load = scalar_load(value)
    return is_elementwise(value) or (load is not None and not load.attribute("volatile"))


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


def _needed(block: tuple[Statement, ...]) -> set[Variable]:
    """Variables that tensor copies, and the control flow around them, depend on."""
    needed: set[Variable] = set()
    for statement in statements(block):
        if _copies(statement) or makes_load_map(statement) or _holds_copies(statement):
            needed.update(read_variables(statement))
    return reachable(needed, follows_from(block))


def _filtered(block: tuple[Statement, ...], needed: set[Variable]) -> tuple[Statement, ...]:
    kept: list[Statement] = []
    for statement in block:
        match statement:
            case Assign() if _copies(statement) or (needed & set(statement.targets)):
                kept.append(statement)
            case Return():
                kept.append(statement)
            case Effect() if waits_for_grids(statement) or makes_load_map(statement):
                kept.append(statement)
            case For() | While() | If():
                part = with_bodies(statement, lambda body: _filtered(body, needed))
                if any(bodies(part)) or not needed.isdisjoint(assigned_variables(part)):
                    kept.append(part)
            case Inlined():
                if body := _filtered(statement.body, needed):
                    returned = tuple(
                        s for s in statement.body[-1:] if isinstance(s, Note)
                    )  # quoted in front of the value
                    kept.append(replace(statement, body=(*body, *returned)))
    return tuple(kept)
