"""Which arrays were read, and in which layout: a store must not overwrite what another thread has yet to load.

And which tiles were stored: a load from the same pointers finds what other threads have stored there.
"""

from __future__ import annotations

from ..ir.nodes import Expr, Use, Variable
from ..ir.walk import subexpressions, used_variables
from ..schedule.layout import Layout
from .conditions import copies_guard
from .context import Context
from .unit import Node


def pointer_roots(context: Context, pointer: Expr) -> set[Variable]:
    """The pointer arguments that an address may derive from."""
    roots: set[Variable] = set()
    for part in subexpressions(pointer):
        if isinstance(part, Use) and part.type.is_pointer:
            known = context.order.pointer_roots.get(part.variable)
            if known is None:
                definition = context.facts.definitions.get(part.variable)
                known = pointer_roots(context, definition) if definition is not None else {part.variable}
                context.order.pointer_roots[part.variable] = known
            roots |= known
    return roots


def note_load(context: Context, pointer: Expr, layout: Layout | None) -> None:
    """Remembers which argument is read in which layout, for stores that follow."""
    for root in pointer_roots(context, pointer):
        context.order.loaded_from.setdefault(root, set()).add(layout)


def order_after_loads(context: Context, pointer: Expr, layout: Layout | None) -> tuple[Node, ...]:
    """A barrier where other threads may still read what this store overwrites."""
    for root in pointer_roots(context, pointer):
        # What every thread loads, or several hold copies of, one thread overwrites.
        if any(
            loaded is None or loaded != layout or copies_guard(context, loaded)
            for loaded in context.order.loaded_from.get(root, ())
        ):
            return context.barrier(f"every thread has loaded from {root.name} before it is overwritten")
    return ()


def note_store(context: Context, pointer: Expr, layout: Layout) -> None:
    """Remembers where a tile was stored, as long as the pointer means the same."""
    if all(context.facts.assignments[v] <= 1 for v in used_variables(pointer)):
        context.order.stored[pointer] = layout


def order_after_stores(context: Context, pointer: Expr, layout: Layout) -> tuple[Node, ...]:
    """A barrier where this load reads what other threads have stored through the same pointers."""
    stored = context.order.stored.get(pointer)
    if stored is None or (stored == layout and not copies_guard(context, layout)):
        return ()
    return context.barrier("all of the tile has been stored before it is loaded again")
