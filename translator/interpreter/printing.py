"""`tl.device_print` in Triton's format: one line per element."""

from __future__ import annotations

import itertools
from typing import Any

from .tile import Tile, broadcast


def print_values(program: tuple[int, int, int], prefix: str, tiles: list[Tile], as_hex: bool) -> None:
    """`pid (x, y, z) idx (i, j) prefix: value`, an operand a line when there are several."""
    where = f"pid ({', '.join(str(index) for index in program)})"
    if not tiles:
        print(f"{where}{_spaced(prefix)}")
        return
    if not prefix.endswith(" "):
        prefix += " " if prefix.endswith(":") else ": "
    tiles = broadcast(tiles)
    for number, tile in enumerate(tiles):
        operand = f"(operand {number}) " if len(tiles) > 1 else ""
        widths = [len(str(side - 1)) for side in tile.shape]
        for index in itertools.product(*(range(side) for side in tile.shape)):
            shown = ", ".join(f"{i:{width}}" for i, width in zip(index, widths, strict=True))
            print(f"{where} idx ({shown}){_spaced(prefix)}{operand}{_value(tile, index, as_hex)}")


def _spaced(prefix: str) -> str:
    return prefix if prefix.startswith(" ") else f" {prefix}"


def _value(tile: Tile, index: tuple[int, ...], as_hex: bool) -> str:
    value: Any = tile.values[index]
    element: Any = tile.element
    if element.is_ptr() or as_hex:
        bits = 64 if element.is_ptr() else element.bits
        return f"0x{int(value) & (1 << bits) - 1:0{max(bits // 4, 2)}x}"
    return f"{float(value):f}" if element.is_floating() else str(int(value))
