"""Statements of random kernels that reduce tiles along an axis, and that put their elements into other shapes."""

from __future__ import annotations

import math
from dataclasses import replace

from random_tile_steps import tame
from random_tile_values import DIGITS, INTEGERS, Value, is_exact, limits, of_extremum, of_sum
from random_tile_writer import Writer


def reduction(w: Writer) -> Value | None:
    """A tile reduced along an axis, or whole."""
    v = w.some(lambda v: len(v.shape) > 0 and (v.dtype in INTEGERS or v.is_float or v.dtype == "int1"))
    if v is None:
        return None
    axis = None if w.chance(0.25) else w.number(0, len(v.shape) - 1)
    count = math.prod(v.shape) if axis is None else v.shape[axis]
    rest = () if axis is None else v.shape[:axis] + v.shape[axis + 1 :]
    where = f"axis={axis}" if axis is not None or w.chance(0.5) else ""
    tail = ", " + where if where else ""
    kinds = ["sum", "sum", "max", "min"] + ([] if v.rough else ["argmax", "argmin", "pair", "function"])
    kinds += ["xor_sum"] if v.dtype in INTEGERS else []
    kind = w.pick(*kinds)
    if kind == "sum":
        dtype = of_sum(v.dtype)
        text, source = v.name, v
        if v.dtype in DIGITS and not v.rough and not is_exact(v.dtype, v.reach * count, v.unit):
            text, source = tame(w, v.name, v)
            if not is_exact(v.dtype, source.reach * count, source.unit):
                text, dtype = f"({text}).to(tl.float32)", "float32"
        if v.rough and v.dtype in ("float16", "bfloat16"):
            text, dtype = f"{text}.to(tl.float32)", "float32"
        if source.reach * count > 1e6 and v.dtype in DIGITS:
            return None
        low, high = min(source.low, 0) * count, max(source.high, 0) * count
        if v.dtype == "int1":
            low, high = 0, count
        return w.let(f"tl.sum({text}{tail})", Value("", dtype, rest, low, high, source.unit, v.rough))
    if kind in ("max", "min"):
        return w.let(f"tl.{kind}({v.name}{tail})", replace(v, dtype=of_extremum(v.dtype), shape=rest))
    if kind == "xor_sum":
        return w.let(
            f"tl.xor_sum({v.name}{tail})", replace(v, shape=rest, low=limits(v.dtype)[0], high=limits(v.dtype)[1])
        )
    if axis is None:
        return None
    if kind in ("argmax", "argmin"):
        if v.dtype == "int1":
            return None
        return w.let(f"tl.{kind}({v.name}, axis={axis})", Value("", "int32", rest, 0, v.shape[axis] - 1))
    if kind == "pair":
        return _pair(w, v, axis, rest)
    return _own_function(w, v, axis, rest)


def _pair(w: Writer, v: Value, axis: int, rest: tuple[int, ...]) -> Value | None:
    if v.dtype not in ("float32", "int32", "int64", "float64"):
        return None
    first, second = w.name(), w.name()
    w.put(f"{first}, {second} = tl.{w.pick('max', 'min')}({v.name}, axis={axis}, return_indices=True)")
    w.values.append(replace(v, name=first, shape=rest))
    w.values.append(Value(second, "int32", rest, 0, v.shape[axis] - 1))
    return w.values[-1]


COMBINATIONS = {
    "larger": ("a, b", "return tl.maximum(a, b)"),
    "united": ("a, b", "return a | b"),
    "product": ("a, b", "return a * b"),
    "both": ("a, b, c, d", "return a + c, tl.maximum(b, d)"),
    "nearest": (
        "a, i, b, j",
        "first = (a < b) | ((a == b) & (i < j))\n    return tl.where(first, a, b), tl.where(first, i, j)",
    ),
}


def _own_function(w: Writer, v: Value, axis: int, rest: tuple[int, ...]) -> Value | None:
    if v.dtype not in ("int32", "int64", "uint32"):
        return None
    kind = w.pick(*COMBINATIONS)
    parameters, body = COMBINATIONS[kind]
    w.helpers[kind] = f"def {kind}({parameters}):\n    {body}\n"
    low, high = limits(v.dtype)
    if parameters == "a, b":
        return w.let(f"tl.reduce({v.name}, {axis}, {kind})", Value("", v.dtype, rest, low, high))
    other = w.some(lambda o: o.shape == v.shape and o.dtype in ("int32", "int64"))
    if other is None:
        return None
    second = (
        other.name if kind == "both" else f"tl.broadcast_to({w.along(v.shape, axis)}, {', '.join(map(str, v.shape))})"
    )
    names = w.name(), w.name()
    w.put(f"{names[0]}, {names[1]} = tl.reduce(({v.name}, {second}), {axis}, {kind})")
    w.values.append(Value(names[0], v.dtype, rest, low, high))
    last = limits(other.dtype) if kind == "both" else (0, v.shape[axis] - 1)
    w.values.append(Value(names[1], other.dtype if kind == "both" else "int32", rest, *last))
    return w.values[-1]


def reshaped(w: Writer) -> Value | None:
    """The elements of a tile in another shape, or of two tiles in one."""
    v = w.some(lambda v: len(v.shape) > 0)
    if v is None:
        return None
    rank, size = len(v.shape), math.prod(v.shape)
    kind = w.pick("trans", "reshape", "expand", "broadcast", "join", "split", "interleave", "keep")
    if kind == "trans" and rank > 1:
        order = list(range(rank))
        w.random.shuffle(order)
        shape = tuple(v.shape[k] for k in order)
        text = f"tl.trans({v.name})" if order == [1, 0] else f"tl.permute({v.name}, {tuple(order)})"
        return w.let(text, replace(v, shape=shape))
    if kind == "reshape":
        parts = [k for k in range(1, size + 1) if size % k == 0 and k <= 128]
        first = w.pick(*parts)
        shape = w.pick((size,), (first, size // first), (first, size // first))
        return w.let(
            f"tl.reshape({v.name}, {shape})" if len(shape) > 1 else f"tl.reshape({v.name}, [{size}])",
            replace(v, shape=shape),
        )
    if kind == "expand" and rank < 3:
        axis = w.number(0, rank)
        return w.let(f"tl.expand_dims({v.name}, {axis})", replace(v, shape=(*v.shape[:axis], 1, *v.shape[axis:])))
    if kind == "broadcast" and rank == 1 and size <= 128:
        side, axis = w.pick(2, 4, 16), w.pick(0, 1)
        shape = (side, size) if axis == 0 else (size, side)
        index = "[None, :]" if axis == 0 else "[:, None]"
        return w.let(f"tl.broadcast_to({v.name}{index}, {shape[0]}, {shape[1]})", replace(v, shape=shape))
    if kind in ("join", "interleave") and rank < 3 and size <= 4096:
        other = w.some(lambda o: o.shape == v.shape and o.dtype == v.dtype)
        if other is None:
            return None
        united = replace(
            v,
            low=min(v.low, other.low),
            high=max(v.high, other.high),
            unit=max(v.unit, other.unit),
            rough=v.rough or other.rough,
        )
        shape = (*v.shape, 2) if kind == "join" else (*v.shape[:-1], v.shape[-1] * 2)
        return w.let(f"tl.{kind}({v.name}, {other.name})", replace(united, shape=shape))
    if kind == "split" and v.shape[-1] % 2 == 0:
        shape = (*v.shape[:-1], v.shape[-1] // 2)
        first, second = w.name(), w.name()
        w.put(f"{first}, {second} = tl.split(tl.reshape({v.name}, {(*shape, 2)}))")
        w.values += [replace(v, name=first, shape=shape), replace(v, name=second, shape=shape)]
        return w.values[-1]
    if kind == "keep" and rank > 1 and not v.rough and v.dtype in ("int32", "float32"):
        axis = w.number(0, rank - 1)
        return w.let(f"{v.name} - tl.max({v.name}, axis={axis}, keep_dims=True)",
                     replace(v, low=v.low - v.high, high=max(v.high - v.low, 0)))  # fmt: skip
    return None
