"""Accumulators, and operands in shared memory, by enumeration: against the PTX ISA's formulas, not against our text."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import prod
from pathlib import Path

import pytest
from ptx_kernels import helper_text
from tilewright.hardware import CHUNK_BYTES
from tilewright.schedule.products.instructions import (
    BESIDE_PRODUCTS,
    consumer_registers,
    fma_layout,
    warp_layout,
    warpgroup_layout,
)
from tilewright.schedule.products.shared_tiles import SharedTile, fits
from tilewright.schedule.tiles.layout import Layout, elements

SIDES = (8, 16, 32, 64, 128, 256)
WARPS = (1, 2, 4, 8, 16)
BANK_BYTES, BANKS = 4, 32


def covered(layout: Layout, shape: tuple[int, ...], num_warps: int) -> None:
    """Asserts that every element of a tile is held by one thread, or by each of the threads that hold copies."""
    held = Counter(place for thread in range(32 * num_warps) for place in elements(layout, thread))
    copies = 1 << len(layout.free_thread_bits())
    assert len(held) == prod(shape) and set(held.values()) == {copies}


def mma_fragment(lane: int) -> list[tuple[int, int]]:
    """(row, column) of c0..c3 of mma.m16n8: PTX ISA, "Matrix fragments for mma.m16n8k16"."""
    group, in_group = lane >> 2, lane % 4
    return [(group if i < 2 else group + 8, in_group * 2 + (i & 1)) for i in range(4)]


def wgmma_fragment(thread: int, n: int) -> list[tuple[int, int]]:
    """(row, column) of d0.. of wgmma.m64nNk16: PTX ISA, "Register fragments for wgmma.mma_async.m64nNk16"."""
    warp, lane = thread // 32 % 4, thread % 32
    return [(16 * warp + lane // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + lane % 4 * 2 + i % 2) for i in range(n // 2)]


@pytest.mark.parametrize("num_warps", WARPS)
def test_accumulators_of_warps(num_warps: int) -> None:
    found = 0
    for rows, columns in product(SIDES, SIDES):
        layout = warp_layout((rows, columns), num_warps)
        if rows < 16 or rows * columns > 128 * 64:
            continue
        found += 1
        covered(layout, (rows, columns), num_warps)
        for thread in range(32 * num_warps):
            held = elements(layout, thread)
            width = layout.registers(1)
            row, column = elements(layout, thread // 32 * 32)[0]
            for m, n in product(range(layout.registers(0) // 2), range(width // 2)):
                piece = [held[(2 * m + half) * width + 2 * n + one] for half in (0, 1) for one in (0, 1)]
                first = row + 16 * m, column + 8 * n
                assert piece == [(first[0] + r, first[1] + c) for r, c in mma_fragment(thread % 32)]
    assert found > 15


@pytest.mark.parametrize("num_warps", WARPS)
def test_accumulators_shorter_than_the_instruction(num_warps: int) -> None:
    """Rows and columns past the tile's are copies of the tile's: what a lane holds is at its own place, modulo the sides."""
    for rows, columns in product((1, 2, 4, 8, 16, 64), (1, 2, 4, 8, 64)):
        layout = warp_layout((rows, columns), num_warps)
        covered(layout, (rows, columns), num_warps)
        for lane in range(32):
            fragment = [(row % rows, column % columns) for row, column in mma_fragment(lane)]
            assert elements(layout, lane)[0] == fragment[0] and set(fragment) <= set(elements(layout, lane))


@pytest.mark.parametrize("num_warps", WARPS)
def test_accumulators_of_warps_in_planes(num_warps: int) -> None:
    for shape in ((1, 16, 8), (2, 16, 16), (4, 32, 16), (8, 16, 8)):
        layout = warp_layout(shape, num_warps)
        covered(layout, shape, num_warps)
        for thread in range(32 * num_warps):
            plane, row, column = elements(layout, thread)[0]
            start = elements(layout, thread // 32 * 32)[0]
            fragment = mma_fragment(thread % 32)[0]
            assert (plane, row, column) == (start[0], start[1] + fragment[0], start[2] + fragment[1])


@pytest.mark.parametrize("num_warps", (4, 8, 16))
def test_accumulators_of_warpgroups(num_warps: int) -> None:
    found = 0
    for rows, columns in product((16, 32, 64, 128, 256), (8, 16, 64, 256)):
        layout = warpgroup_layout((rows, columns), num_warps)
        if layout is None:
            narrow = columns * max(rows // 64, 1) // (num_warps // 4) < 8 or columns < 16
            crowded = rows * columns // (32 * num_warps) + BESIDE_PRODUCTS > consumer_registers(num_warps)
            assert rows < 64 or columns > 256 or narrow or crowded
            continue
        found += 1
        n = 4 * layout.registers(1)
        assert 8 <= n <= 256
        covered(layout, (rows, columns), num_warps)
        for thread in range(0, 32 * num_warps, 7):
            held = elements(layout, thread)
            row, column = elements(layout, thread // 128 * 128)[0]
            for band in range(layout.registers(0) // 2):
                upper, lower = (held[(2 * band + half) * (n // 4) :][: n // 4] for half in (0, 1))
                expected = [(row + 64 * band + r, column + c) for r, c in wgmma_fragment(thread, n)]
                # The instruction's registers in order take turns: two of the upper row, two of the lower one.
                assert [p for i in range(0, n // 4, 2) for p in (*upper[i : i + 2], *lower[i : i + 2])] == expected
    assert found >= 6
    assert warpgroup_layout((256, 256), 16) is None  # 128 sums a thread, of 112 registers
    assert warpgroup_layout((64, 64), 2) is None and warpgroup_layout((64, 512), 4) is None
    assert warpgroup_layout((1, 64, 64), 4) is None


@pytest.mark.parametrize("num_warps", WARPS)
def test_accumulators_without_tensor_cores(num_warps: int) -> None:
    for shape in ((1, 1), (1, 16), (16, 4), (32, 32), (64, 128), (2, 8, 8), (4, 1, 64)):
        covered(fma_layout(shape, num_warps), shape, num_warps)


# -------------------------------------------------------------------------------------------------------- operands


def all_tiles() -> Iterator[SharedTile]:
    """Tiles of all formats, of sizes that can be enumerated."""
    for shape in (
        (8, 8),
        (16, 16),
        (8, 64),
        (64, 8),
        (32, 32),
        (16, 64),
        (64, 128),
        (256, 16),
        (16, 256),
        (2, 16, 32),
        (4, 8, 64),
    ):
        for fast, itemsize in product((len(shape) - 2, len(shape) - 1), (1, 2, 4)):
            if fits(shape, fast, itemsize):
                yield SharedTile(shape, fast, itemsize)


TILES = list(all_tiles())


def tile_name(tile: SharedTile) -> str:
    """The name of a test."""
    return f"{'x'.join(map(str, tile.shape))} axis {tile.fast}, {tile.itemsize} bytes"


def hardware_place(tile: SharedTile, coordinates: tuple[int, ...]) -> int:
    """The byte that a tensor copy writes: the box without swizzle, then bits 4.. of the address XOR bits 7.. (PTX ISA)."""
    plane = coordinates[0] if len(coordinates) == 3 else 0
    element, line = coordinates[tile.fast], coordinates[tile.slow]
    width = tile.line * tile.itemsize
    box, inside = divmod(element, tile.line)
    address = (plane * tile.boxes + box) * tile.lines * width + line * width + inside * tile.itemsize
    mask = {0: 0, 32: 1, 64: 3, 128: 7}[tile.swizzle]
    return address ^ (address >> 7 & mask) << 4


@pytest.mark.parametrize("tile", TILES, ids=tile_name)
def test_operands_lie_as_tensor_copies_write_them(tile: SharedTile) -> None:
    places = set()
    for coordinates in product(*map(range, tile.shape)):
        offset = tile.offset(coordinates)
        assert offset * tile.itemsize == hardware_place(tile, coordinates)
        places.add(offset)
    assert places == set(range(tile.size)), "a place of its own for every element"


def banks(addresses: list[int], width: int) -> int:
    """How often the busiest bank is touched, different words of it, by accesses of `width` bytes."""
    words = {a // BANK_BYTES + i for a in addresses for i in range(width // BANK_BYTES)}
    return max(Counter(word % BANKS for word in words).values())


@pytest.mark.parametrize("tile", TILES, ids=tile_name)
def test_matrices_of_eight_lines_touch_each_bank_once(tile: SharedTile) -> None:
    for first, chunk in product(range(0, tile.lines, 8), range(tile.shape[tile.fast] // tile.chunk)):
        addresses = []
        for line in range(first, first + 8):
            coordinates = [0] * len(tile.shape)
            coordinates[tile.slow], coordinates[tile.fast] = line, chunk * tile.chunk
            addresses.append(tile.offset(tuple(coordinates)) * tile.itemsize)
        assert all(address % CHUNK_BYTES == 0 for address in addresses)
        assert banks(addresses, CHUNK_BYTES) == 1


@pytest.mark.parametrize(("itemsize", "conflicts"), [(2, 1), (4, 2)])
def test_fragments_are_stored_without_conflicts(itemsize: int, conflicts: int) -> None:
    """Pairs of halves meet no bank twice; pairs of floats, half a warp at once, meet it twice: rows fill two chunks."""
    tile = SharedTile((16, 128 // itemsize), 1, itemsize)
    at_once = 128 // (2 * itemsize)
    for start, half in product(range(0, 32, at_once), (0, 8)):
        lanes = range(start, start + at_once)
        for piece in range(tile.shape[1] // 8):
            places = [(lane // 4 + half, piece * 8 + lane % 4 * 2) for lane in lanes]
            assert banks([tile.offset(place) * itemsize for place in places], 2 * itemsize) == conflicts


@pytest.mark.skipif(shutil.which("g++") is None, reason="no host compiler")
def test_the_helper_computes_the_same(tmp_path: Path) -> None:
    chosen = [tile for tile in TILES if tile.swizzle and len(tile.shape) == 2]
    words = {1: "char", 2: "short", 4: "int"}
    calls = ""
    for tile in chosen:
        call = f"swizzled<{words[tile.itemsize]}, {tile.shape[tile.fast]}, {tile.lines}>(line, e)"
        calls += f"    for (int line = 0; line < {tile.lines}; ++line)\n"
        calls += f'        for (int e = 0; e < {tile.shape[tile.fast]}; ++e) printf("%d ", {call});\n'
        calls += '    puts("");\n'
    helper = helper_text([("swizzled", "swizzled", {})])
    source = f"#include <cstdio>\n#define __device__\n#define __forceinline__ inline\n{helper}\n"
    (tmp_path / "swizzled.cpp").write_text(f"{source}int main()\n{{\n{calls}}}\n")
    subprocess.run(["g++", "-o", tmp_path / "swizzled", tmp_path / "swizzled.cpp"], check=True)
    done = subprocess.run([tmp_path / "swizzled"], capture_output=True, text=True, check=True)
    for tile, text in zip(chosen, done.stdout.splitlines(), strict=True):
        expected = [
            tile.offset((line, e) if tile.fast == 1 else (e, line))
            for line in range(tile.lines)
            for e in range(tile.shape[tile.fast])
        ]
        assert list(map(int, text.split())) == expected, tile
