"""The structured functions of the language on tiles of NumPy: one function each, in one table."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..diagnostics import ArgumentError, CompileTimeAssertionFailure, KernelFaultError, UnknownNameError
from ..language.constexpr import unwrap
from ..language.dtypes import DTYPES_BY_NAME, bfloat16, float32, int32
from ..ops.casts import numpy_type
from ..ops.promotion import ordered_type, summed_type
from .memory import Memory
from .printing import print_values
from .tile import Tile, apply, as_tile, broadcast, cast


class Program:
    """The running program: its index, the grid, the memory, the options."""

    def __init__(self, memory: Memory, grid: tuple[int, int, int], debug: bool) -> None:
        """Starts at program (0, 0, 0)."""
        self.memory, self.grid, self.debug = memory, grid, debug


program: ContextVar[Program] = ContextVar("program")
A = dict[str, Any]


def _dtype(value: Any) -> Any:
    value = unwrap(value)
    return DTYPES_BY_NAME.get(value, value) if isinstance(value, str) else value


def _shape(value: Any) -> tuple[int, ...]:
    value = unwrap(value)
    if isinstance(value, (tuple, list)) and len(value) == 1 and isinstance(unwrap(value[0]), (tuple, list)):
        value = unwrap(value[0])
    return tuple(int(unwrap(side)) for side in value) if isinstance(value, (tuple, list)) else (int(value),)


def _optional(value: Any) -> Tile | None:
    return None if unwrap(value) is None else as_tile(value)


def _full(a: A) -> Tile:
    dtype = _dtype(a["dtype"])
    value = cast(as_tile(a.get("value", 0)), dtype)
    return Tile(np.full(_shape(a["shape"]), value.values, numpy_type(dtype)), dtype)


def _zeros_like(a: A) -> Tile:
    tile = as_tile(a["input"])
    return Tile(np.zeros_like(tile.values), tile.element)


def _program_id(a: A) -> Tile:
    return Tile(np.int32(program.get().memory.program[unwrap(a["axis"])]), int32)


def _num_programs(a: A) -> Tile:
    return Tile(np.int32(program.get().grid[unwrap(a["axis"])]), int32)


def _arange(a: A) -> Tile:
    return Tile(np.arange(unwrap(a["start"]), unwrap(a["end"]), dtype=np.int32), int32)


def _expand_dims(a: A) -> Tile:
    tile, axes = as_tile(a["input"]), unwrap(a["axis"])
    return Tile(np.expand_dims(tile.values, axes if isinstance(axes, int) else tuple(axes)), tile.element)


def _permute(a: A) -> Tile:
    tile, dims = as_tile(a["input"]), a["dims"]
    order = _shape(dims) if dims else (*range(tile.values.ndim - 2), tile.values.ndim - 1, tile.values.ndim - 2)
    return Tile(np.transpose(tile.values, order), tile.element)


def _reshape(a: A) -> Tile:
    tile = as_tile(a["input"])
    return Tile(tile.values.reshape(_shape(a["shape"])), tile.element)


def _load(a: A) -> Tile:
    mask, other = _optional(a["mask"]), _optional(a["other"])
    if mask is None and other is not None:
        raise ArgumentError("`other` cannot be provided without `mask`")
    return program.get().memory.load(as_tile(a["pointer"]), mask, other)


def _store(a: A) -> None:
    program.get().memory.store(as_tile(a["pointer"]), as_tile(a["value"]), _optional(a["mask"]))


def _atomic(new_value: Callable[..., Any], *names: str) -> Callable[[A], Tile]:
    def handler(a: A) -> Tile:
        mask = _optional(a.get("mask"))
        operands = [as_tile(a[name]) for name in names]
        return program.get().memory.change(as_tile(a["pointer"]), operands, mask, new_value)

    return handler


# ------------------------------------------------------------------------------------------------------- reductions


def _axis(a: A, name: str = "axis") -> int | None:
    axis = unwrap(a[name])
    return None if axis is None else int(axis)


def _reduced(a: A, function: Callable[..., Any], tile: Tile) -> Tile:
    with np.errstate(all="ignore"):
        values = function(tile.values, axis=_axis(a), keepdims=bool(unwrap(a["keep_dims"])))
    return Tile(np.asarray(values).astype(numpy_type(tile.element)), tile.element)  # type: ignore[arg-type]


def _sum(a: A) -> Tile:
    tile = as_tile(a["input"])
    wanted = _dtype(a["dtype"]) or summed_type(tile.element)  # type: ignore[arg-type]
    tile = cast(tile, wanted)
    return _reduced(a, lambda v, **how: np.add.reduce(v, dtype=v.dtype, **how), tile)


def _bits(function: str) -> Callable[[A], Tile]:
    return lambda a: _reduced(a, lambda v, **how: getattr(np, function).reduce(v, **how), as_tile(a["input"]))


def _ordered(name: str) -> Callable[[A], Any]:
    def handler(a: A) -> Any:
        tile = as_tile(a["input"])
        if unwrap(a["return_indices"]):
            return _with_indices(a, name, tile)
        tile = cast(tile, ordered_type(tile.element))  # type: ignore[arg-type]
        ignoring = {"max": np.fmax, "min": np.fmin}[name]
        return _reduced(a, lambda v, **how: ignoring.reduce(v, **how), tile)

    return handler


def _with_indices(a: A, name: str, tile: Tile) -> tuple[Tile, Tile]:
    """The extreme value and the lowest index that has it; NaN loses to every number."""
    if tile.element == bfloat16:
        tile = cast(tile, float32)
    axis, keep = _axis(a), bool(unwrap(a["keep_dims"]))
    values = tile.values
    worst = -np.inf if name == "max" else np.inf
    clean = np.where(np.isnan(values), worst, values) if values.dtype.kind == "f" else values
    index = np.asarray((np.argmax if name == "max" else np.argmin)(clean, axis=axis, keepdims=keep)).astype(np.int32)
    if axis is None:
        best = values.reshape(-1)[index]
    else:
        wide = index if keep else np.expand_dims(index, axis)
        best = np.take_along_axis(values, wide, axis)
        best = best if keep else np.squeeze(best, axis)
    return Tile(best, tile.element), Tile(index, int32)


def _argument(name: str) -> Callable[[A], Tile]:
    return lambda a: _with_indices(a, name, as_tile(a["input"]))[1]


def _reduce(a: A) -> Any:
    many = isinstance(unwrap(a["input"]), tuple)
    tiles = [as_tile(t) for t in (unwrap(a["input"]) if many else (a["input"],))]
    axis = _axis(a)
    arrays = [tile.values.reshape(-1) if axis is None else np.moveaxis(tile.values, axis, 0) for tile in tiles]
    state = tuple(Tile(array[0], tile.element) for array, tile in zip(arrays, tiles, strict=True))
    for number in range(1, arrays[0].shape[0]):
        following = tuple(Tile(array[number], tile.element) for array, tile in zip(arrays, tiles, strict=True))
        combined = unwrap(a["combine_fn"])(*state, *following)
        items = combined if isinstance(combined, tuple) else (combined,)
        state = tuple(cast(as_tile(item), tile.element) for item, tile in zip(items, tiles, strict=True))
    if unwrap(a["keep_dims"]):
        rank = tiles[0].values.ndim
        state = tuple(
            Tile(t.values.reshape((1,) * rank) if axis is None else np.expand_dims(t.values, axis), t.element)
            for t in state
        )
    return state if many else state[0]


def _softmax(a: A) -> Tile:
    x = as_tile(a["x"])
    how = {"axis": a["dim"] if unwrap(a["dim"]) is not None else 0, "keep_dims": True}
    largest = HANDLERS["max"]({"input": x, "return_indices": False, **how})
    numerator = apply("exp", [apply("sub", [x, largest])])
    return apply("fdiv", [numerator, HANDLERS["sum"]({"input": numerator, "dtype": None, **how})])


# ---------------------------------------------------------------------------------------------------------- others


def _extremum(op: str) -> Callable[[A], Tile]:
    def handler(a: A) -> Tile:
        to_nan = getattr(unwrap(a["propagate_nan"]), "name", "") == "ALL"
        return apply(f"{op}_nan" if to_nan else op, [a["x"], a["y"]])

    return handler


def _clamp(a: A) -> Tile:
    to_nan = getattr(unwrap(a["propagate_nan"]), "name", "") == "ALL"
    return apply("clamp_nan" if to_nan else "clamp", [a["x"], a["min"], a["max"]])


def _cdiv(a: A) -> Any:
    x, div = unwrap(a["x"]), unwrap(a["div"])
    if not isinstance(x, Tile) and not isinstance(div, Tile):
        return -(-x // div)
    return apply("floordiv", [apply("add", [x, apply("sub", [div, 1]) if isinstance(div, Tile) else div - 1]), div])


def _swizzle(a: A) -> tuple[Tile, Tile]:
    i, j, size_i, size_j, size_g = (as_tile(a[name]) for name in ("i", "j", "size_i", "size_j", "size_g"))
    ij = i * size_j + j  # type: ignore[operator]
    group = size_g * size_j  # type: ignore[operator]
    first = ij // group * size_g
    rows = apply("minimum", [size_i - first, size_g])
    return first + ij % group % rows, ij % group // rows


def _static_assert(a: A) -> None:
    if not unwrap(a["cond"]):
        raise CompileTimeAssertionFailure(unwrap(a["msg"]) or "tl.static_assert does not hold")


def _static_print(a: A) -> None:
    print(*(unwrap(v) for v in a["values"]), sep=unwrap(a["sep"]), end=unwrap(a["end"]))


def _device_print(a: A) -> None:
    print_values(
        program.get().memory.program, unwrap(a["prefix"]), [as_tile(v) for v in a["args"]], bool(unwrap(a["hex"]))
    )


def device_assert(a: A) -> None:
    """Stops where the condition does not hold, when the option `debug` is set."""
    if not program.get().debug:
        return
    condition = as_tile(a["cond"]).values != 0
    mask = _optional(a["mask"])
    if not np.all(condition | (False if mask is None else ~mask.values.astype(bool))):
        raise KernelFaultError(f"assertion failed in program {program.get().memory.program}: {unwrap(a['msg'])}")


def _pass_through(a: A) -> Any:
    return a["input"]


def _nothing(a: A) -> None:
    return None


def _pair(a: A) -> tuple[Tile, ...]:
    return tuple(broadcast([as_tile(a["input"]), as_tile(a["other"])]))


HANDLERS: dict[str, Callable[[A], Any]] = {
    "program_id": _program_id,
    "num_programs": _num_programs,
    "arange": _arange,
    "full": _full,
    "zeros": _full,
    "zeros_like": _zeros_like,
    "to_tensor": lambda a: as_tile(a["x"]),
    "cast": lambda a: as_tile(a["input"]).to(_dtype(a["dtype"]), a["fp_downcast_rounding"], a["bitcast"]),
    "broadcast": _pair,
    "broadcast_to": lambda a: Tile(
        np.broadcast_to(as_tile(a["input"]).values, _shape(a["shape"])), as_tile(a["input"]).element
    ),
    "expand_dims": _expand_dims,
    "permute": _permute,
    "trans": _permute,
    "reshape": _reshape,
    "view": _reshape,
    "ravel": lambda a: Tile(as_tile(a["x"]).values.reshape(-1), as_tile(a["x"]).element),
    "squeeze": lambda a: Tile(np.squeeze(as_tile(a["x"]).values, unwrap(a["dim"])), as_tile(a["x"]).element),
    "unsqueeze": lambda a: Tile(np.expand_dims(as_tile(a["x"]).values, unwrap(a["dim"])), as_tile(a["x"]).element),
    "swizzle2d": _swizzle,
    "load": _load,
    "store": _store,
    "atomic_add": _atomic(lambda old, v: old + v, "val"),
    "atomic_max": _atomic(lambda old, v: np.where(v > old, v, old), "val"),
    "atomic_min": _atomic(lambda old, v: np.where(v < old, v, old), "val"),
    "atomic_and": _atomic(lambda old, v: old & v, "val"),
    "atomic_or": _atomic(lambda old, v: old | v, "val"),
    "atomic_xor": _atomic(lambda old, v: old ^ v, "val"),
    "atomic_xchg": _atomic(lambda old, v: v, "val"),
    "atomic_cas": _atomic(lambda old, c, v: np.where(old == c, v, old), "cmp", "val"),
    "sum": _sum,
    "max": _ordered("max"),
    "min": _ordered("min"),
    "argmax": _argument("max"),
    "argmin": _argument("min"),
    "xor_sum": _bits("bitwise_xor"),
    "reduce_or": _bits("bitwise_or"),
    "reduce": _reduce,
    "softmax": _softmax,
    "minimum": _extremum("minimum"),
    "maximum": _extremum("maximum"),
    "clamp": _clamp,
    "add": lambda a: as_tile(a["x"]) + a["y"],  # type: ignore[operator]
    "sub": lambda a: as_tile(a["x"]) - a["y"],  # type: ignore[operator]
    "mul": lambda a: as_tile(a["x"]) * a["y"],  # type: ignore[operator]
    "fdiv": lambda a: apply("fdiv", [a["x"], a["y"]]),
    "cdiv": _cdiv,
    "multiple_of": _pass_through,
    "max_contiguous": _pass_through,
    "max_constancy": _pass_through,
    "assume": _nothing,
    "debug_barrier": _nothing,
    "static_assert": _static_assert,
    "static_print": _static_print,
    "device_print": _device_print,
    "device_assert": device_assert,
}


def call_builtin(builtin: Any, arguments: A) -> Any:
    """Runs a function of the language on its bound arguments.

    Raises:
      UnknownNameError: for one that the interpreter does not have.
    """
    if builtin.op:
        return apply(builtin.op, list(arguments.values()))
    if builtin.name not in HANDLERS:
        raise UnknownNameError(f"tl.{builtin.name} cannot run in the interpreter")
    return HANDLERS[builtin.name](arguments)
