"""What is wrong with tiles that functions of the language are given, and what to do: said wherever a kernel is run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .hints import shown

Said = tuple[str, str]  # the cause, and what to write instead


def _sides(shape: Iterable[int]) -> list[int]:
    return [int(side) for side in shape]


def no_single_number(type_: object) -> Said:
    """Of `x.item()`, for a tile of more."""
    return f"item() takes a tile of one number, not {type_}", "reduce it first, as with tl.sum"


def no_common_sides(shapes: Iterable[Sequence[int]]) -> Said:
    """For tiles whose shapes do not go together: the first axis, counted in the longest, whose sides differ."""
    shapes = [_sides(shape) for shape in shapes if shape]
    cause = f"Cannot make shapes compatible: {' and '.join(map(str, shapes))}"
    rank = max(map(len, shapes))
    for axis in range(rank):
        own = [shape[axis - rank + len(shape)] for shape in shapes if axis >= rank - len(shape)]
        sides = list(dict.fromkeys(side for side in own if side != 1))
        if len(sides) > 1:
            cause = f"{cause} differ at axis {axis}: {sides[0]} and {sides[1]}"
            break
    return cause, "expand one of them with [:, None] or [None, :], or use equal block sizes"


def ambiguous_truth(type_: object) -> Said:
    """For a tile of several elements as a condition."""
    cause = f"the condition is a tile of type {type_}; the truth of a tile is ambiguous"
    return cause, "use tl.where, or reduce the tile first with tl.max or tl.sum"


def narrow_pointer(shape: Iterable[int], what: str, own: Iterable[int]) -> Said:
    """For a pointer of fewer elements than what is to be stored, or its mask."""
    cause = f"Expected pointer argument to have shape {_sides(shape)}, the shape of {what}; it has {_sides(own)}"
    return cause, "build the pointer from offsets of the whole tile, as ptr + offsets"


def no_broadcast(type_: object, shape: Sequence[int]) -> Said:
    """For a tile that does not fit a shape."""
    remedy = "a side is the same in both or 1: x[:, None] and x[None, :] add an axis of side 1"
    return f"cannot broadcast {type_} to {_sides(shape)}", remedy


def no_reshape(type_: object, numel: int, shape: Sequence[int]) -> Said:
    """For a shape of another number of elements."""
    cause = f"reshape() cannot change total number of elements in tensor: {type_} to {_sides(shape)}"
    return cause, f"the sides multiply to {numel}"


def no_squeeze(axis: int, type_: object) -> Said:
    """For an axis with several elements."""
    return f"squeeze of axis {axis} of {type_}: its side is not 1", "reduce the axis, as with tl.sum(x, axis)"


def nothing_to_reduce(name: str, type_: object, is_tile: bool) -> Said:
    """For a scalar, or a tile of pointers."""
    remedy = "load what it points to" if is_tile else "a scalar is its own sum and maximum"
    return f"tl.{name} reduces a tile, not {type_}", remedy


def only_of_integers(name: str, dtype: object) -> Said:
    """For a reduction of bits that is given something else."""
    return f"{name} only supported for integers, not for {dtype}", "cast the tile, as x.to(tl.int32)"


def no_combine_function(given: Any) -> Said:
    """For a `combine_fn` that is none."""
    cause = f"combine_fn must be a function under @triton.jit, not {shown(given)}"
    return cause, "define it so: it takes two values and returns one"


def no_common_shape(shapes: Iterable[Sequence[int]]) -> Said:
    """For tiles of several shapes that are to be reduced together."""
    listed = " and ".join(str(_sides(shape)) for shape in shapes)
    cause = f"all tiles that are reduced together must have one shape, not {listed}"
    return cause, "broadcast them first, as with tl.broadcast(x, y)"


def other_number_of_results(name: str, values: int, results: int) -> Said:
    """For a combine function."""
    return f"{name} combines {values} values, but returns {results}", "return as many as are reduced"


def defined_twice(name: str) -> Said:
    """For a name that is declared `tl.constexpr` again."""
    return f"{name} is already defined; a constexpr cannot be defined twice", "give each a name of its own"


def no_scaled_operand(name: str, given: str) -> Said:
    """For an operand of `tl.dot_scaled` that is no matrix."""
    cause = f"{name} of tl.dot_scaled must be a tile of rank 2 or 3, not {given}"
    return cause, "load it as a matrix: the pointers' offsets are rows[:, None] * stride + columns[None, :]"


def other_accumulator(type_: object, shape: Iterable[int]) -> Said:
    """For an accumulator of `tl.dot` that has not the product's shape."""
    cause = f"the accumulator has the type {type_}, the product the shape {_sides(shape)}"
    return cause, "make it with tl.zeros((M, N), dtype=tl.float32)"
