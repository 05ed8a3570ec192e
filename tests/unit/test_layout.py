"""Layouts by enumeration: every element has exactly one owner among threads that hold no copies."""

from __future__ import annotations

import itertools

import pytest
from tilewright.ir.types import padded
from tilewright.schedule.tiles.layout import Layout, blocked, drop_axis, elements

SHAPES = [(1,), (8,), (100,), (1024,), (16, 128), (128, 4), (3, 5), (2, 4, 8), (1, 64)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("threads", (32, 128))
@pytest.mark.parametrize("run", (1, 4))
def test_blocked_layouts_cover_every_element_once(shape: tuple[int, ...], threads: int, run: int) -> None:
    for fast_axis in range(len(shape)):
        layout = blocked(shape, threads, fast_axis, run)
        free = layout.free_thread_bits()
        owners = [t for t in range(threads) if not any(t >> bit & 1 for bit in free)]
        held = [element for t in owners for element in elements(layout, t)]
        everything = list(itertools.product(*(range(padded(side)) for side in shape)))
        assert sorted(held) == everything


def test_copies_hold_the_same_elements() -> None:
    layout = blocked((16,), 128, 0, 1)
    assert layout.free_thread_bits() == (4, 5, 6)
    assert all(elements(layout, t) == elements(layout, t % 16) for t in range(128))


def test_the_worked_example_of_the_module() -> None:
    layout = blocked((16, 128), 128, 1, 4)
    assert layout.register_shape() == (4, 4) and layout.run(1) == 4
    assert elements(layout, 33)[:5] == [(1, 4), (1, 5), (1, 6), (1, 7), (5, 4)]


def test_an_axis_that_is_reduced_leaves_the_warps_to_others() -> None:
    tile = blocked((4, 32, 32), 128, 2, 8, reduced={1})
    assert tile.axes == ((5, 6), (2, 3, 4, -1, -1), (-1, -1, -1, 0, 1))
    assert blocked((4, 32, 32), 128, 2, 8).axes == ((-1, -1), (2, 3, 4, 5, 6), (-1, -1, -1, 0, 1))
    # Where the others have room for one warp bit only, and none but the first axis is there.
    assert blocked((2, 32, 32), 128, 2, 8, reduced={1}).axes[:2] == ((6,), (2, 3, 4, 5, -1))
    assert blocked((64, 64), 128, 1, 4, reduced={0}) == blocked((64, 64), 128, 1, 4)


def test_dropping_an_axis_leaves_the_others() -> None:
    layout = blocked((16, 128), 128, 1, 4)
    rows = drop_axis(layout, 1)
    assert {element[0] for element in elements(layout, 70)} == {element[0] for element in elements(rows, 70)}


def test_a_thread_bit_cannot_choose_two_coordinate_bits() -> None:
    with pytest.raises(ValueError, match="not a layout"):
        Layout(((0, 0),), 5)
