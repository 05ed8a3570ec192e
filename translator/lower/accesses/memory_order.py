"""Which arrays were read, and in which layout: a store must not overwrite what another thread has yet to load.

And which were stored to: a load finds what other threads have stored before, in the last trip of a loop too.
"""

from __future__ import annotations

from ...ir.nodes import Expr, Use, Variable
from ...ir.walk import subexpressions, used_variables
from ...schedule.tiles.layout import Layout
from ..context import Context
from ..text.unit import Node
from .conditions import copies_guard


def pointer_roots(context: Context, pointer: Expr) -> set[Variable]:
    """The pointer arguments that an address may derive from; of one that is made of numbers, these."""
    roots: set[Variable] = set()
    for part in subexpressions(pointer):
        if isinstance(part, Use) and part.type.is_pointer:
            roots |= context.origins.pointers(part) or context.origins.data(part)
    return roots


def note_load(context: Context, pointer: Expr, layout: Layout | None) -> None:
    """Remembers which argument is read through which pointers and in which layout, for stores that follow."""
    for root in pointer_roots(context, pointer):
        context.order.ever_loaded.add(root)
        loads = context.order.loaded_from.setdefault(root, set())
        loads.add((pointer, _assigned(context, pointer), layout))


def _assigned(context: Context, pointer: Expr) -> tuple[int, ...]:
    """How often the variables in an expression have been assigned by now: pointers that advance are others then."""
    return tuple(context.order.assigned[variable] for variable in used_variables(pointer))


def order_after_loads(context: Context, pointer: Expr, layout: Layout | None) -> tuple[Node, ...]:
    """A barrier where other threads may still read what this store overwrites: each has read its own elements alone."""
    now = _assigned(context, pointer)
    for root in pointer_roots(context, pointer):
        # What every thread loads, or several hold copies of, one thread overwrites.
        if any(
            at is None or (place, at) != (pointer, layout) or when not in (now, None) or copies_guard(context, at)
            for place, when, at in context.order.loaded_from.get(root, ())
        ):
            return context.barrier(f"every thread has loaded from {root.name} before it is overwritten")
    return ()


def note_store(context: Context, pointer: Expr, layout: Layout | None) -> None:
    """Remembers which argument is stored to, in which layout, and through which pointers as long as they stay the same."""
    fixed = all(context.facts.assignments[v] <= 1 for v in used_variables(pointer))
    for root in pointer_roots(context, pointer):
        context.order.ever_stored.add(root)
        places = root, _data_in(context, pointer)
        context.order.stored_to.setdefault(places, set()).add((pointer, fixed, layout))


def note_atomic(context: Context, pointer: Expr, layout: Layout | None) -> None:
    """The same of an atomic, which other atomics need not wait for: the argument itself is what its places follow from."""
    for root in pointer_roots(context, pointer):
        context.order.ever_stored.add(root)
        context.order.stored_to.setdefault((root, frozenset((root,))), set()).add((pointer, False, layout))


def order_among_stores(context: Context, pointer: Expr, atomic: bool = False) -> tuple[Node, ...]:
    """A barrier where this store may overwrite what another thread has yet to store: a row of zeros, then some places of it.

    Stores whose places the kernel computes are taken to be apart; those that differ by something it has loaded are not.
    """
    data = _data_in(context, pointer)
    for root in pointer_roots(context, pointer):
        same = {data, frozenset((root,))} if atomic else {data}
        if any(owner == root and others not in same for owner, others in context.order.stored_to):
            return context.barrier(f"every thread has stored to {root.name} before some of it is stored again")
    return ()


def _data_in(context: Context, expr: Expr) -> frozenset[Variable]:
    """The variables behind an address that hold data: what was loaded, reduced or counted."""
    return context.origins.data(expr)


def order_after_stores(context: Context, pointer: Expr, layout: Layout | None) -> tuple[Node, ...]:
    """A barrier where this load may read what other threads have stored: each knows its own elements of a tile alone."""
    for root in pointer_roots(context, pointer):
        if any(
            layout is None or (pointer, True, layout) != stored or copies_guard(context, layout)
            for (owner, _), some in context.order.stored_to.items()
            if owner == root
            for stored in some
        ):
            return context.barrier(f"every thread has stored to {root.name} before it is loaded again")
    return ()
