"""Accesses to every second element that lie between each other become one: `x[2 * i]` and `x[2 * i + 1]`.

In: a typed kernel. Out: the same kernel, in which two such loads of a block are one load of a tile twice as long, which is then
split, and two such stores one store of what is interleaved. Rotary embeddings, complex numbers and two weights in a byte are
written so. By itself each touches all lines of memory and takes half of them, element by element; together they take 16 bytes
at a time.

The load stands where the first one did, the store where the second one did: nothing between them touches memory or changes what
they depend on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

from ...analysis.doubled_tiles import Count, Doubling
from ...analysis.facts import needed_variables
from ...frozen import frozen
from ...ir.nodes import Assign, Call, Effect, Expr, Kernel, Note, Origin, Statement, Use, Variable
from ...ir.rewrite import with_replaced
from ...ir.structured import assigns, is_quiet
from ...ir.tiles import joined, selected
from ...ir.types import padded
from ...ir.walk import assigned_variables, blocks, expressions, next_key, statements, subexpressions

Instead = tuple[tuple[Statement, ...], tuple[Statement, ...]]  # of the first of two accesses, and of the second
LONGEST_NAME = 16


@frozen
class Half:
    """A load or store of every second element: its statement, what it assigns, how it counts, and what was assigned since."""

    statement: Statement
    targets: tuple[Variable, ...]
    call: Call
    count: Count
    since: set[Variable] = field(default_factory=set)


@frozen
class Pair:
    """Two accesses and the one that both are; `swapped` says that the second has the even elements."""

    first: Half
    second: Half
    call: Call
    swapped: bool


def with_interleaved(kernel: Kernel) -> Kernel:
    """See the module docstring; the same object where no accesses lie so."""
    doubling, key = Doubling(kernel), next_key(kernel)
    replaced: dict[Statement, Statement | None] = {}
    added: dict[tuple[Statement, bool], list[Statement]] = {}
    noted: dict[Origin, Origin] = {}
    pairs = [pair for block in blocks(kernel.body) for pair in _pairs(block, doubling)]
    for number, pair in enumerate(pairs):
        whole = Variable(_name(pair), pair.call.type, key + number)
        instead = _one_load(pair, whole) if pair.call.op == "load" else _one_store(pair)
        for access, (*others, last) in zip((pair.first, pair.second), instead, strict=True):
            replaced[access.statement] = last
            added[access.statement, False] = others
            noted[access.statement.origin] = last.origin
    if not pairs:
        return kernel
    for statement in statements(kernel.body):  # what else a line does bears its remark, too
        if statement.origin in noted and statement not in replaced:
            replaced[statement] = replace(statement, origin=noted[statement.origin])
    return replace(kernel, body=_with_remarks(kernel.body, with_replaced(kernel.body, replaced, added)))


def _with_remarks(before: tuple[Statement, ...], after: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The block that pairs were made in; what only these are found by now, says so where it stood under its name."""
    missed = needed_variables(before) - needed_variables(after)
    named = (s for s in statements(after) if isinstance(s, Assign) and len(s.targets) == 1 and not s.origin.note)
    unread = [s for s in named if s.target in missed]
    return with_replaced(after, {s: replace(s, origin=s.origin.noted(_where(s.target))) for s in unread})


def _where(part: Variable) -> str:
    is_mask = not part.type.is_pointer and part.type.dtype.is_bool()
    return "tested where it is used" if is_mask else "formed where it is used"


def _pairs(block: tuple[Statement, ...], doubling: Doubling) -> Iterator[Pair]:
    waiting: list[Half] = []
    for statement in block:
        access = _access(statement, doubling)
        if access is not None or assigns(statement, "load"):  # may stand between other loads, but not between stores
            op = "load" if access is None else access.call.op
            waiting = [one for one in waiting if one.call.op == op]
        elif not is_quiet(statement):
            waiting = []
        if access is not None:
            pair = next(filter(None, (_pair(one, access, doubling) for one in waiting)), None)
            if pair is not None:
                waiting.remove(pair.first)
                yield pair
            elif access.call.op == "load":
                waiting.append(access)
            else:
                waiting = [access]
        for one in waiting:
            if one is not access:
                one.since.update(assigned_variables(statement))


def _access(statement: Statement, doubling: Doubling) -> Half | None:
    """A statement as a load or store of every second element, of rows whose side is a power of two."""
    if not isinstance(statement, (Assign, Effect)):
        return None
    (call,) = expressions(statement)
    if not isinstance(call, Call) or call.op not in ("load", "store") or call.attribute("volatile"):
        return None
    pointer = call.args[0]
    if not pointer.type.is_tile or padded(pointer.type.shape[-1]) != pointer.type.shape[-1]:
        return None
    count = doubling.count(pointer)
    targets = statement.targets if isinstance(statement, Assign) else ()
    return Half(statement, targets, call, count) if count is not None and count.step == 2 else None


def _pair(first: Half, second: Half, doubling: Doubling) -> Pair | None:
    """Two accesses as one; None where they do not lie between each other, or what they depend on has changed."""
    kinds = [(one.call.type, one.call.attributes, one.call.args[0].type, len(one.call.args)) for one in (first, second)]
    if kinds[0] != kinds[1]:
        return None
    apart = second.count.number - first.count.number
    if abs(apart) != 1 or first.count.parts != second.count.parts:
        return None
    even, odd = (first, second) if apart > 0 else (second, first)
    call = _whole(even.call, odd.call, doubling)
    if call is None:
        return None
    moved = subexpressions(call if call.op == "load" else first.call)
    stays = first.since.isdisjoint(part.variable for part in moved if isinstance(part, Use))
    return Pair(first, second, call, apart < 0) if stays else None


def _whole(even: Call, odd: Call, doubling: Doubling) -> Call | None:
    """One access to the elements of two."""
    pointer = doubling.doubled(even.args[0], odd.args[0])
    if pointer is None:
        return None
    args: list[Expr | None] = [pointer]
    for place, (one, other) in enumerate(zip(even.args[1:], odd.args[1:], strict=True)):
        is_stored = even.op == "store" and place == 0
        args.append(_both(one, other, pointer.type.shape) if is_stored else doubling.doubled(one, other))
    known = tuple(arg for arg in args if arg is not None)
    type_ = even.type.with_shape(pointer.type.shape) if even.op == "load" else even.type
    return replace(even, type=type_, args=known) if len(known) == len(args) else None


def _both(even: Expr, odd: Expr, shape: tuple[int, ...]) -> Expr:
    """The elements of two tiles in turns; what both are converted to, all are converted to at once."""
    if isinstance(even, Call) and isinstance(odd, Call) and even.op == odd.op == "cast":  # noqa: SIM102
        if even.attributes == odd.attributes and even.args[0].type == odd.args[0].type:
            return replace(even, type=even.type.with_shape(shape), args=(_both(even.args[0], odd.args[0], shape),))
    pairs = joined(even, odd, even.span)
    return Call(pairs.type.with_shape(shape), "reshape", (pairs,), span=even.span)


# ------------------------------------------------------------------------------------------------- what stands instead


def _name(pair: Pair) -> str:
    """What the tile of both is called: `x_y`, or after the even elements where that would be long."""
    names = [target.stem.removesuffix("_value") for access in (pair.first, pair.second) for target in access.targets]
    names = names[::-1] if pair.swapped else names
    return "_".join(names) if len("_".join(names)) <= LONGEST_NAME else f"{names[0]}_pairs"


def _origins(pair: Pair, at_first: str, at_second: str) -> tuple[Origin, Origin]:
    """Where two accesses came from, with a remark that names the other one's line, unless both stand in one."""
    first, second = pair.first.statement.origin, pair.second.statement.origin
    if first.span is second.span:
        return first, second
    here, there = first.place(first.span.line), second.place(second.span.line)
    return first.noted(f"{at_first} {there}"), second.noted(f"{at_second} {here}")


def _one_load(pair: Pair, whole: Variable) -> Instead:
    """The load of both tiles, and the elements of each."""
    first, second = _origins(pair, "with", "loaded at")
    *rows, side = whole.type.shape
    pairs = Call(whole.type.with_shape((*rows, side // 2, 2)), "reshape", (Use(whole.type, whole),))
    one = Assign(first, pair.first.targets, selected(pairs, int(pair.swapped)))
    other = Assign(second, pair.second.targets, selected(pairs, int(not pair.swapped)))
    return (Assign(first, (whole,), pair.call), one), (other,)


def _one_store(pair: Pair) -> Instead:
    """A note, and the store of both tiles."""
    first, second = _origins(pair, "stored at", "with")
    return (Note(first),), (Effect(second, pair.call),)
