"""Which arrays were read, and in which layout: a store must not overwrite what another thread has yet to load.

And which were stored to: a load finds what other threads have stored before, in the last trip of a loop too.
"""

from __future__ import annotations

from ...analysis.meeting import Trips
from ...ir.nodes import Expr, Use, Variable
from ...ir.tensor_names import tensor_word
from ...ir.walk import subexpressions, used_variables
from ...schedule.accesses.pointers import is_number
from ...schedule.tiles.layout import Layout
from ..context import Context
from ..state import ANOTHER, Accessed
from ..text.unit import Node
from .conditions import copies_guard


def pointer_roots(context: Context, pointer: Expr) -> list[Variable]:
    """The pointer arguments that an address may derive from; of one that is made of numbers, these."""
    origins, roots = context.memory.origins, set[Variable]()
    for part in subexpressions(pointer):
        if part.type.is_pointer and (isinstance(part, Use) or is_number(part)):
            roots |= origins.pointers(part) or origins.data(part) | origins.numbers(part)
    return sorted(roots, key=lambda root: root.key)


def stored_word(context: Context, pointer: Expr) -> str:
    """What a tensor is called that is stored to: by the first argument that its addresses may derive from."""
    return next((tensor_word(root.name) for root in pointer_roots(context, pointer)), "next")


def note_load(context: Context, pointer: Expr, layout: Layout | None) -> None:
    """Remembers which argument is read through which pointers and in which layout, for stores that follow."""
    for root in pointer_roots(context, pointer):
        context.order.ever_loaded.add(root)
        access = pointer, _assigned(context, pointer), layout
        context.order.loaded_from.setdefault(root, set()).add(access)
        context.order.note(access)


def _assigned(context: Context, pointer: Expr) -> tuple[int, ...]:
    """How often the variables in an expression have been assigned by now: pointers that advance are others then."""
    return tuple(context.order.assigned[variable] for variable in used_variables(pointer))


def order_after_loads(context: Context, pointer: Expr, layout: Layout | None, atomic: bool = False) -> tuple[Node, ...]:
    """A barrier where other threads may still read what this store overwrites: each has read its own elements alone."""
    for root in pointer_roots(context, pointer):
        # What every thread loads, or several hold copies of, one thread overwrites; an atomic's place is that of several.
        if any(
            atomic
            or loaded[2] is None
            or copies_guard(context, loaded[2])
            or not _is_own(context, loaded, pointer, layout)
            for loaded in context.order.loaded_from.get(root, ())
        ):
            return context.barrier(f"every thread has loaded from {root.name} before it is overwritten")
    return ()


def _is_own(context: Context, earlier: Accessed, pointer: Expr, layout: Layout | None) -> bool:
    """Whether every thread touches only what it touched itself in an earlier access, or what none did."""
    place, when, at = earlier
    gathered = any(variable.type.is_tile for variable in _data_in(context, pointer))  # one place may be that of several
    if (place, at) != (pointer, layout) or gathered:
        return False
    return not context.order.goes_back(earlier) if isinstance(when, Trips) else when == _assigned(context, pointer)


def note_store(context: Context, pointer: Expr, layout: Layout | None) -> None:
    """Remembers which argument is stored to, in which layout, and through which pointers."""
    for root in pointer_roots(context, pointer):
        context.order.ever_stored.setdefault(root, set()).add((pointer, layout))
        data, access = (root, _data_in(context, pointer)), (pointer, _assigned(context, pointer), layout)
        context.order.stored_to.setdefault(data, set()).add(access)
        context.order.note(access)


def note_atomic(context: Context, pointer: Expr, layout: Layout | None) -> None:
    """The same of an atomic, which other atomics need not wait for: the argument itself is what its places follow from."""
    for root in pointer_roots(context, pointer):
        context.order.ever_stored.setdefault(root, set()).add((pointer, layout))
        access = pointer, ANOTHER, layout
        context.order.stored_to.setdefault((root, frozenset((root,))), set()).add(access)
        context.order.note(access)


def order_among_stores(
    context: Context, pointer: Expr, layout: Layout | None, atomic: bool = False
) -> tuple[Node, ...]:
    """A barrier where this store may overwrite what another thread has yet to store: a row of zeros, then some places of it.

    Stores of tiles whose places the kernel computes are taken to be apart where these do not tell; those that differ by
    something it has loaded, and a scalar among tiles, are not.
    """
    data = _data_in(context, pointer)
    for root in pointer_roots(context, pointer):
        atomics = frozenset((root,))
        for (owner, others), some in context.order.stored_to.items():
            if owner is not root or (atomic and others == atomics):
                continue
            if others != data or any(_overwrites(context, stored, pointer, layout, atomic) for stored in some):
                return context.barrier(f"every thread has stored to {root.name} before some of it is stored again")
    return ()


def _overwrites(context: Context, stored: Accessed, pointer: Expr, layout: Layout | None, atomic: bool) -> bool:
    """Whether a store may touch what another thread stored earlier, in the layout `stored[2]`."""
    place, when, at = stored
    if at is None and layout is None:
        return False  # one thread stores both
    if (place, at) == (pointer, layout):
        if isinstance(when, Trips):
            return context.order.goes_back(stored)
        return when != _assigned(context, pointer) and bool(_data_in(context, pointer))
    found = _meet(context, stored, pointer)
    return found if found is not None else atomic or None in (at, layout)


def _meet(context: Context, earlier: Accessed, pointer: Expr) -> bool | None:
    """Whether an access touches what an earlier one touched, as far as their places tell."""
    (expr, when, _), places = earlier, context.order.places
    one, other = places.of(expr), places.of(pointer)
    if one is None or other is None or one.unknown != other.unknown:
        return None
    if isinstance(when, Trips):
        return places.meet(one, other, when)
    now = _assigned(context, expr)
    others = {
        variable for variable, before, after in zip(used_variables(expr), when, now, strict=False) if before != after
    }
    if others & set(used_variables(pointer)) or not places.count_trips(others):
        return None
    return places.meet(one, other)


def _data_in(context: Context, expr: Expr) -> frozenset[Variable]:
    """The variables behind an address that hold data: what was loaded, reduced or counted."""
    return context.memory.origins.data(expr)


def order_after_stores(context: Context, pointer: Expr, layout: Layout | None) -> tuple[Node, ...]:
    """A barrier where this load may read what other threads have stored: each knows its own elements of a tile alone."""
    for root in pointer_roots(context, pointer):
        if any(
            layout is None or copies_guard(context, layout) or not _is_own(context, stored, pointer, layout)
            for (owner, _), some in context.order.stored_to.items()
            if owner == root
            for stored in some
        ):
            return context.barrier(f"every thread has stored to {root.name} before it is loaded again")
    return ()
