"""Assertions, prints, and promises that the interpreter has no use for."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..diagnostics import CompileTimeAssertionFailure, DTypeError, KernelFaultError, NotConstexprError
from ..hardware import WARP_SIZE
from ..language.constexpr import constexpr, unwrap
from ..language.dtypes import int1
from ..language.hints import no_static_condition, only_scalars
from ..language.printing import encodable, index_width, printed_prefix
from .arguments import Arguments, constant, optional_tile
from .places import user_line
from .program import running
from .tile import Tile, as_tile, binary, broadcast, cast


def _static_assert(a: Arguments) -> None:
    condition = constant(a["cond"], "the condition of tl.static_assert")
    if not isinstance(condition, (bool, int)):
        cause, remedy = no_static_condition(condition)
        raise NotConstexprError(cause, None, remedy)
    if not condition:
        raise CompileTimeAssertionFailure(constant(a["msg"], "the message") or "tl.static_assert does not hold")


def _static_print(a: Arguments) -> None:
    shown = [str(value.type if isinstance(value, Tile) else value) for value in map(unwrap, a["values"])]
    sys.stdout.write(str(constant(a["sep"], "sep")).join(shown) + str(constant(a["end"], "end")))


def device_assert(a: Arguments) -> None:
    """Stops where the condition does not hold, when the option `debug` is set.

    Raises:
      KernelFaultError: names the line and the program.
    """
    program = running.get()
    if not program.options.debug:
        return
    condition, mask = cast(as_tile(a["cond"]), int1), optional_tile(a["mask"])
    failed = ~condition.values
    if mask is not None:
        failed = np.logical_and(failed, cast(mask, int1).values)
    if failed.any():
        message = encodable(str(constant(a["msg"], "the message")))
        raise KernelFaultError(f"assertion failed at {user_line()}, program {program.memory.program}: {message}")


def _expect_zero(a: Arguments) -> Tile:
    x = as_tile(a["x"])
    device_assert({"cond": binary("eq", x, 0), "mask": a["mask"], "msg": "expected 0"})
    return x


def _device_print(a: Arguments) -> None:
    """Triton's lines: one per element of a tile, or one per thread for a scalar and where there is nothing to show."""
    program = running.get()
    prefix, as_hex = str(constant(a["prefix"], "the prefix")), bool(constant(a["hex"], "hex"))
    place = f"pid ({', '.join(str(index) for index in program.memory.program)})"
    tiles = [as_tile(value) for value in a["args"]]
    threads = program.options.num_warps * WARP_SIZE
    if not tiles:
        sys.stdout.write(f"{place}{printed_prefix(prefix, False)}\n" * threads)
        return
    after = printed_prefix(prefix, True)
    for number, tile in enumerate(_in_one_shape(tiles)):
        operand = f"(operand {number}) " if len(tiles) > 1 else ""
        widths = [index_width(side) for side in tile.shape]
        for index in itertools.product(*map(range, tile.shape)):
            shown = ", ".join(f"{i:{width}}" for i, width in zip(index, widths, strict=True))
            line = f"{place} idx ({shown}){after}{operand}{_printed(tile, index, as_hex)}\n"
            sys.stdout.write(line if tile.shape else line * threads)


def _in_one_shape(tiles: list[Tile]) -> list[Tile]:
    """Tiles broadcast to one shape; scalars stay what they are."""
    whole = iter(broadcast([tile for tile in tiles if tile.shape] or [tiles[0]]))
    return [next(whole) if tile.shape else tile for tile in tiles]


def _printed(tile: Tile, index: tuple[int, ...], as_hex: bool) -> str:
    """One element as `printf` shows it."""
    value, element = tile.values[index], tile.element
    if element.is_ptr():
        return f"0x{int(value):x}"
    if as_hex:  # printf takes narrow integers as 32-bit ones
        digits = value.dtype.itemsize * 2
        return f"0x{int(value) & ((1 << max(digits * 4, 32)) - 1):0{digits}x}"
    return f"{float(value):f}" if element.is_floating() else str(int(value))


def _pass_through(a: Arguments) -> Any:
    return as_tile(a["input"])


def _assume(a: Arguments) -> None:
    """Nothing: what is assumed holds."""
    condition = unwrap(a["cond"])
    if isinstance(condition, Tile) and condition.shape:
        cause, remedy = only_scalars("tl.assume", condition.shape)
        raise DTypeError(cause, None, remedy)


def _nothing(a: Arguments) -> None:
    return None


def _threads(lanes: int) -> Callable[[Arguments], constexpr]:
    return lambda a: constexpr(running.get().options.num_warps * lanes)


HANDLERS: dict[str, Callable[[Arguments], Any]] = {
    "static_assert": _static_assert,
    "static_print": _static_print,
    "device_print": _device_print,
    "device_assert": device_assert,
    "expect_zero": _expect_zero,
    "multiple_of": _pass_through,
    "max_contiguous": _pass_through,
    "max_constancy": _pass_through,
    "assume": _assume,
    "debug_barrier": _nothing,
    "extra.cuda.gdc_wait": _nothing,  # grids run one after another
    "extra.cuda.gdc_launch_dependents": _nothing,
    "extra.cuda.num_warps": _threads(1),
    "extra.cuda.num_threads": _threads(WARP_SIZE),
}
