"""Where random kernels load from: offsets of all kinds, with bounds; and the masks of accesses."""

from __future__ import annotations

from dataclasses import dataclass

from random_tile_values import INTEGERS, Value
from random_tile_writer import Writer

LARGEST = 60000  # elements of an array


@dataclass(frozen=True)
class Place:
    """Offsets of a tile: text, the least, the greatest."""

    text: str
    low: int
    high: int


def offsets(w: Writer, shape: tuple[int, ...]) -> Place:
    """Offsets of the elements of a tile, none below zero."""
    parts = [_base(w)]
    natural, stride = [], 1
    for side in reversed(shape):
        natural.insert(0, stride)
        stride *= side
    for axis, side in enumerate(shape):
        step = natural[axis] if w.chance(0.75) else w.pick(0, 1, 2, 3, side, 16)
        index = w.along(shape, axis)
        if w.chance(0.1):
            index = f"({side - 1} - {index})"
        if step and w.chance(0.06):  # backwards, by a stride below zero
            last = step * (side - 1)
            parts += [Place(str(last), last, last), Place(f"{index} * {w.integer(-step)}", -last, 0)]
        else:
            parts.append(_scaled(w, Place(index, 0, side - 1), step))
    found = w.some(lambda v: v.shape == shape and v.dtype in INTEGERS and 0 <= v.low and v.high <= 2000)
    if found and shape and w.chance(0.35):
        parts = parts[: w.pick(0, 1)] + [
            _scaled(w, Place(found.name, int(found.low), int(found.high)), w.pick(1, 1, 2, 16))
        ]
        if found.dtype not in ("int32", "int64"):
            parts[-1] = Place(
                f"{found.name}.to(tl.{w.pick('int32', 'int64', 'uint32')})", int(found.low), int(found.high)
            )
    parts = [part for part in parts if part.text != "0"] or [Place("0", 0, 0)]
    if w.chance(0.2):
        w.random.shuffle(parts)
    place = Place(" + ".join(p.text for p in parts), sum(p.low for p in parts), sum(p.high for p in parts))
    return _folded(w, place) if shape and w.chance(0.15) else place


def _base(w: Writer) -> Place:
    kind = w.pick("none", "program", "program", "argument", "number", "trip", "trip", "value")
    if kind == "program" and w.programs > 1:
        return _scaled(w, Place("pid", 0, w.programs - 1), w.pick(1, 3, 16, 64))
    if kind == "argument":
        value = w.pick(0, 1, 5, 16, 32, 48)
        return Place(w.integer(value), value, value)
    if kind == "number":
        value = w.pick(1, 2, 8, 16)
        return Place(str(value), value, value)
    if kind == "trip" and w.trips:
        trip = w.pick(*w.trips)
        return _scaled(w, Place(trip.text, 0, trip.most - 1), w.pick(1, 2, 16, 50, 64))
    if kind == "value":
        found = w.some(lambda v: v.shape == () and v.dtype in ("int32", "int64") and 0 <= v.low and v.high <= 2000)
        if found:
            return Place(found.name, int(found.low), int(found.high))
    return Place("0", 0, 0)


def _scaled(w: Writer, place: Place, step: int) -> Place:
    if step == 1 or place.text == "0":
        return place
    factor = w.integer(step) if w.chance(0.3) else str(step)
    text = f"{place.text} * {factor}" if w.chance(0.8) else f"{factor} * {place.text}"
    if w.chance(0.08):
        text = f"{place.text}.to(tl.int64) * {factor}" if place.text[0] in "pv" else text
    return Place(text, place.low * step, place.high * step)


def _folded(w: Writer, place: Place) -> Place:
    kind = w.pick("mod", "div", "and", "xor", "min", "where", "below", "below", "rest", "abs")
    if kind in ("mod", "div", "below", "rest", "abs") and "uint32" in place.text:
        kind = "and"  # no quotient of a number with a sign and one without
    size = w.pick(1, 3, 8, 16, 32, 60, 64, 100)
    name = w.integer(size) if w.chance(0.5) else str(size)
    if kind == "mod":
        return Place(f"(({place.text}) % {name})", 0, min(size - 1, place.high))
    if kind == "div":
        return Place(f"(({place.text}) // {name})", 0, place.high // size)
    less = w.pick(1, 3, 8, 16, 20)
    if kind == "below":  # quotients of numbers below zero, too, which are rounded towards zero
        return Place(
            f"((({place.text}) - {less}) // {name} + {less // size})",
            0,
            max(place.high - less, 0) // size + less // size,
        )
    if kind == "rest":
        return Place(f"((({place.text}) - {less}) % {name} + {size - 1})", 0, 2 * size - 2)
    if kind == "abs":
        return Place(f"tl.abs(({place.text}) - {less})", 0, max(less, place.high - less))
    if kind == "and":
        return Place(f"(({place.text}) & {size})", 0, min(size, place.high))
    if kind == "xor":
        return Place(f"(({place.text}) ^ {size})", 0, (1 << max(size, place.high).bit_length()) - 1)
    if kind == "min":
        return Place(f"tl.minimum({place.text}, {size})", 0, min(size, place.high))
    return Place(f"tl.where(({place.text}) < {name}, {place.text}, 0)", 0, min(size - 1, place.high))


@dataclass(frozen=True)
class Mask:
    """A mask's text, and the bound that all offsets are below where it lets an access through; None where it says nothing."""

    text: str
    limit: int | None = None


def mask(w: Writer, shape: tuple[int, ...], place: Place | None = None) -> Mask | None:
    """A condition for every element of a tile; None for none."""
    if w.chance(0.3):
        return None
    parts = [_condition(w, shape, place) for _ in range(w.pick(1, 1, 1, 2))]
    found = [part for part in parts if part is not None]
    bounds = [part.limit for part in found if part.limit is not None]
    if not found:
        return None
    text = " & ".join(f"({part.text})" for part in found) if len(found) > 1 else found[0].text
    return Mask(text, min(bounds) if bounds else None)


def _condition(w: Writer, shape: tuple[int, ...], place: Place | None) -> Mask | None:
    kind = w.pick("axes", "axes", "axes", "limit", "limit", "data", "data", "scalar", "settled")
    if kind == "limit" and place is not None and shape:
        size = w.number(0, place.high + 1) if w.chance(0.8) else place.high + 20
        name = w.integer(size)
        text = w.pick(
            f"{place.text} < {name}",
            f"{name} > {place.text}",
            f"({place.text}) <= {name} - 1" if size else f"{place.text} < {name}",
        )
        return Mask(text, max(size, 1))
    if kind == "data":
        condition = of_data(w, shape)
        return Mask(condition) if condition else None
    if kind == "scalar" or not shape:
        return Mask(w.pick(f"pid < {w.programs}", "pid % 2 == 0", f"pid != {w.number(0, w.programs)}"))
    axes = w.random.sample(range(len(shape)), w.number(1, len(shape)))
    return Mask(" & ".join(f"({_along(w, shape, axis, kind)})" for axis in axes))


def _along(w: Writer, shape: tuple[int, ...], axis: int, kind: str) -> str:
    side, index = shape[axis], w.along(shape, axis)
    if kind == "settled":
        return str(w.pick(f"{index} < {side}", f"{index} >= 0", f"{index} <= {side + 3}", f"{side} > {index}"))
    bound = w.pick(w.number(0, side), w.number(0, side), side, side // 16 * 16, side // 2, side + 7)
    name = w.integer(bound) if w.chance(0.75) else str(bound)
    return str(
        w.pick(
            f"{index} < {name}", f"{index} < {name}", f"{index} >= {name}", f"{index} != {name}", f"{name} > {index}"
        )
    )


def of_data(w: Writer, shape: tuple[int, ...]) -> str | None:
    """A condition on numbers that the kernel has loaded or computed, of a tile's shape."""
    found = w.some(lambda v: v.shape == shape and not v.rough)
    return condition(w, found) if found else None


def condition(w: Writer, value: Value) -> str:
    """A condition on a variable that is not rough."""
    if value.dtype == "int1":
        return w.pick(value.name, f"~{value.name}") if value.shape else f"{value.name} != 0"
    sign = w.pick("<", "<=", ">", ">=", "==", "!=")
    other = w.some(
        lambda v: v.shape in (value.shape, ()) and not v.rough and v.dtype != "int1" and v.name != value.name
    )
    if other and w.chance(0.5):
        return f"{value.name} {sign} {other.name}"
    bound = int(max(min(value.high, 3), value.low, -3))
    if value.is_float and w.chance(0.5):
        return f"{value.name} {sign} {bound}.5"
    if value.dtype in INTEGERS and w.chance(0.3):
        return f"{value.name} % 2 == 0"
    return f"{value.name} {sign} {bound}"
