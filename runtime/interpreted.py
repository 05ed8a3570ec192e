"""Launches in the interpreter: a call's arguments as the interpreter's values."""

from __future__ import annotations

from typing import Any

import numpy as np
from tilewright.artifact import Options
from tilewright.interpreter import run
from tilewright.interpreter.blocks import Descriptor
from tilewright.interpreter.memory import Buffer, buffer_at
from tilewright.interpreter.tile import ANYWHERE, Tile, as_tile, cast
from tilewright.kernel_function import KernelFunction, KernelParameter
from tilewright.language.constexpr import constexpr, plain, unwrap
from tilewright.language.dtypes import PointerType, float32
from tilewright.ops.casts import numpy_type
from tilewright.runtime.arguments.arrays import UNKNOWN, describe
from tilewright.runtime.arguments.specialise import annotated_type, integer_type
from tilewright.runtime.environment import check_settings
from tilewright.runtime.launching.packing import as_float, fitted
from tilewright.tools.tensor_descriptor import array_of, is_descriptor, reading


def interpret(
    function: KernelFunction,
    grid: tuple[int, int, int],
    bound: dict[str, Any],
    options: Options,
) -> None:
    """Runs a launch in the interpreter; integers of 1 are compile-time values, but for parameters without specialisation."""
    check_settings()
    values, buffers = prepare(function, bound)
    run(function, grid, values, buffers, options)


def prepare(function: KernelFunction, bound: dict[str, Any]) -> tuple[dict[str, Any], list[Buffer]]:
    """Tiles, scalars and compile-time values by parameter name, and the arrays' memory."""
    buffers: list[Buffer] = []
    values: dict[str, Any] = {}
    for parameter in function.params:
        value = bound[parameter.name]
        if parameter.is_constexpr:
            values[parameter.name] = constexpr(plain(value)) if unwrap(value) is not None else None
        else:
            values[parameter.name] = _value(parameter, parameter.name, value, parameter.do_not_specialize, buffers)
    return values, buffers


def _value(parameter: KernelParameter, name: str, value: Any, general: bool, buffers: list[Buffer]) -> Any:
    if value is None or isinstance(value, (constexpr, KernelFunction)):
        return None if unwrap(value) is None else constexpr(value)
    if isinstance(value, (tuple, list)):
        items = [_value(parameter, f"{name}[{i}]", item, general, buffers) for i, item in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    number = plain(value)
    if isinstance(number, (bool, int, float)):
        forced = annotated_type(parameter.annotation)
        if forced is not None:
            fits = as_float(number) if forced.is_floating() else fitted(forced, number)
            with np.errstate(over="ignore"):
                return Tile(np.asarray(fits).astype(numpy_type(forced)), forced)
        if isinstance(number, float):
            return cast(as_tile(number), float32)
        if isinstance(number, bool):
            return as_tile(number)
        return constexpr(1) if number == 1 and not general else _whole(name, number)
    if is_descriptor(value):
        whole = array_of(value, name)
        buffers.append(buffer_at(name, whole.address, whole.size))
        base = Tile(np.int64(whole.address), PointerType(whole.dtype, parameter.is_const))
        sizes = (tuple(value.shape), tuple(value.strides), tuple(value.block_shape))
        return Descriptor(base, *sizes, *reading(value, whole.dtype))
    array = describe(value, name)
    if array is None:
        return constexpr(value)
    if array.size == UNKNOWN:
        return Tile(np.int64(array.address), PointerType(array.dtype, parameter.is_const), ANYWHERE)
    buffers.append(buffer_at(name, array.address, array.size, array.writable))
    return Tile(np.int64(array.address), PointerType(array.dtype, parameter.is_const))


def _whole(name: str, number: int) -> Tile:
    dtype = integer_type(name, number)
    return Tile(np.asarray(number).astype(numpy_type(dtype)), dtype)
