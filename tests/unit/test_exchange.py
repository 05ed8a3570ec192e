"""Conversions between layouts, by enumeration: shuffles find every element, shared memory is met without bank conflicts."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from math import prod
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.hardware import CACHE_LINE_BYTES, LANE_BITS, SECTOR_BYTES
from tilewright.ir.nodes import Variable
from tilewright.ir.types import ValueType
from tilewright.language.dtypes import float32
from tilewright.lower.shared.memory import SharedMemory
from tilewright.lower.text.names import Names
from tilewright.lower.text.unit import Shared
from tilewright.runtime.building import nvrtc
from tilewright.schedule.products.instructions import fma_layout, warp_layout, warpgroup_layout
from tilewright.schedule.staging.warp_copies import Pieces, warp_copy
from tilewright.schedule.tiles.exchange import exchange_swizzle, lane_swaps, passage, shuffles
from tilewright.schedule.tiles.layout import REGISTER, Layout, blocked, elements

SHAPES = ((64,), (1024,), (8, 8), (16, 128), (64, 64), (128, 4), (2, 256), (4, 16, 32), (1, 64), (32, 2))
BANKS = 32


def layouts_of(shape: tuple[int, ...], warps: int) -> list[Layout]:
    """The layouts that schedules make for a shape: blocked ones, accumulators, and any permutation of bits."""
    threads = 32 * warps
    found = [blocked(shape, threads, axis, run) for axis in range(len(shape)) for run in (1, 2, 4, 8)]
    if len(shape) == 2:
        found += [warp_layout(shape, warps), fma_layout(shape, warps)]
        found += [one for one in (warpgroup_layout(shape, warps),) if one is not None]
    generator = random.Random(f"{shape} {warps}")
    bits = [side.bit_length() - 1 for side in shape]
    for _ in range(12):
        sources = [*range(LANE_BITS + warps.bit_length() - 1), *[REGISTER] * sum(bits)]
        generator.shuffle(sources)
        axes, taken = [], 0
        for count in bits:
            axes.append(tuple(sources[taken : taken + count]))
            taken += count
        found.append(Layout(tuple(axes), LANE_BITS + warps.bit_length() - 1))
    return list(dict.fromkeys(found))


def pairs() -> list[tuple[tuple[int, ...], Layout, Layout]]:
    found = []
    for shape, warps in itertools.product(SHAPES, (1, 4)):
        layouts = layouts_of(shape, warps)
        found += [(shape, a, b) for a, b in itertools.product(layouts, layouts) if a != b]
    return random.Random(1).sample(found, 1500)


PAIRS = pairs()


def conflicts(layout: Layout, shape: tuple[int, ...], place: Any, itemsize: int, width: int = 1) -> int:
    """The most words that a warp's access, `width` elements per lane, meets in one bank; copies do not take part."""
    at_once = min(32, 128 // (itemsize * width))
    free = layout.free_thread_bits()
    worst = 1
    for first in range(0, min(1 << layout.thread_bits, 64), at_once):
        threads = [t for t in range(first, first + at_once) if not any(t >> bit & 1 for bit in free if bit < LANE_BITS)]
        held = [elements(layout, thread)[::width] for thread in threads]
        for number in range(min(map(len, held), default=0)):
            words = set()
            for one in held:
                offset = 0
                for coordinate, side in zip(place(one[number]), shape, strict=True):
                    offset = offset * side + coordinate
                words |= {(offset * itemsize + byte) // 4 for byte in range(0, itemsize * width, min(itemsize, 4))}
            worst = max(worst, *Counter(word % BANKS for word in words).values())
    return worst


@pytest.mark.parametrize("itemsize", (1, 2, 4, 8))
def test_no_bank_is_met_twice(itemsize: int) -> None:
    plain = 0
    for shape, held, wanted in PAIRS[itemsize.bit_length() % 3 :: 3]:
        swizzle = exchange_swizzle(held, wanted, itemsize)
        everything = list(itertools.product(*map(range, shape))) if prod(shape) <= 1024 else []
        assert sorted(map(swizzle.place, everything)) == everything, "a place of its own for every element"
        for layout in (held, wanted):
            assert conflicts(layout, shape, swizzle.place, itemsize) == 1, (shape, held, wanted, swizzle)
            plain += conflicts(layout, shape, lambda place: place, itemsize) > 1
    assert plain > 150, "without a swizzle there would be conflicts"


@pytest.mark.parametrize("itemsize", (1, 2, 4, 8))
def test_wide_accesses_meet_no_bank_twice_either(itemsize: int) -> None:
    widths: Counter[int] = Counter()
    for shape, held, wanted in PAIRS[itemsize.bit_length() % 3 :: 3]:
        way = passage(held, wanted, itemsize)
        for layout, width in ((held, way.written), (wanted, way.read)):
            widths[width * itemsize] += 1
            assert width == 1 or conflicts(layout, shape, way.swizzle.place, itemsize, width) == 1, (
                shape,
                held,
                wanted,
            )
            held_by = [elements(layout, thread) for thread in range(0, 1 << layout.thread_bits, 7)]
            for run in [own[i : i + width] for own in held_by for i in range(0, len(own), width)]:
                places = [way.swizzle.place(element) for element in run]
                first = places[0]
                assert first[way.axis] % width == 0
                assert places == [
                    (*first[: way.axis], first[way.axis] + i, *first[way.axis + 1 :]) for i in range(width)
                ]
    assert widths[16] > 20 and widths[itemsize] > 20 and max(widths) == 16


def test_shuffles_find_every_element_in_the_own_warp() -> None:
    found = 0
    for shape, held, wanted in PAIRS:
        if not shuffles(held, wanted):
            continue
        found += 1
        where: dict[tuple[int, ...], dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        for thread in range(1 << held.thread_bits):
            for register, element in enumerate(elements(held, thread)):
                where[element][thread // 32].add(register)
        wanted_by = [elements(wanted, thread) for thread in range(1 << wanted.thread_bits)]
        for register in range(prod(wanted.register_shape())):
            for warp in range(1 << held.thread_bits - LANE_BITS):
                asked = {own[register] for own in wanted_by[32 * warp : 32 * warp + 32]}
                common = set.intersection(*(where[element][warp] for element in asked))
                assert common, (shape, held, wanted)  # every lane of the warp can send the same register
    assert found > 20


def registers(layout: Layout, thread: int) -> dict[tuple[int, ...], tuple[int, ...]]:
    """The elements of a thread, by the numbers of their registers along the axes."""
    indices = itertools.product(*map(range, layout.register_shape()))
    return dict(zip(indices, elements(layout, thread), strict=True))


def test_exchanges_between_two_lanes_lead_from_one_layout_to_the_other() -> None:
    """What lanes chose registers choose afterwards: each exchange, done to the elements, as the helper does it to values."""
    cases = [(held, wanted) for _, held, wanted in PAIRS if lane_swaps(held, wanted)]
    row = (REGISTER, 0, 1, REGISTER, REGISTER, 5, REGISTER), (2, 3, 4, REGISTER)
    cases.append((Layout(row, 6), Layout(((REGISTER, REGISTER, REGISTER, 0, 1, 5, REGISTER), row[1]), 6)))
    for held, wanted in cases:
        now = {
            (thread, indices): element
            for thread in range(1 << held.thread_bits)
            for indices, element in registers(held, thread).items()
        }
        for axis, lane, place in lane_swaps(held, wanted):
            moved = {}
            for (thread, indices), element in now.items():
                other, chosen = thread, list(indices)
                if (thread >> lane ^ indices[axis] >> place) & 1:
                    other, chosen[axis] = thread ^ 1 << lane, indices[axis] ^ 1 << place
                moved[other, tuple(chosen)] = element
            now = moved
        for thread in range(1 << wanted.thread_bits):
            for indices, element in registers(wanted, thread).items():
                assert now[thread, indices] == element, (held, wanted)
    assert lane_swaps(cases[-1][1], cases[-1][0]) and not lane_swaps(cases[-1][0], cases[-1][0])


# --------------------------------------------------------------------------------------------------- generated text


@triton.jit
def turned_sums(x_ptr, y_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    # Sums of rows lie where the rows were; the second load wants them elsewhere.
    m, n = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    y = tl.load(y_ptr + n[:, None] * M + m[None, :])
    rows = tl.sum(x, axis=1)
    tl.store(out_ptr + n[:, None] * M + m[None, :], y * rows[None, :] + x.T)


@pytest.mark.parametrize("shape", [(8, 64), (64, 8), (32, 32), (5, 48), (128, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "float64"])
@pytest.mark.parametrize("warps", (1, 4))
def test_conversions_in_kernels(run_everywhere: Any, shape: tuple[int, int], dtype: str, warps: int) -> None:
    generator = np.random.default_rng(3)
    x = generator.integers(-2, 3, shape).astype(dtype)
    y = generator.integers(-2, 3, shape[::-1]).astype(dtype)
    *_, out = run_everywhere(turned_sums, (1,), x, y, np.zeros_like(y), M=shape[0], N=shape[1], num_warps=warps)
    with np.errstate(over="ignore"):
        expected = (y * x.sum(1)[None, :] + x.T).astype(dtype)
    np.testing.assert_array_equal(out, expected)


@triton.jit
def spread(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    # What one lane per row has, all lanes of another layout want.
    m, n = tl.arange(0, M), tl.arange(0, N)
    largest = tl.max(tl.load(x_ptr + m[:, None] * N + n[None, :]), axis=1)
    tl.store(out_ptr + n[:, None] * M + m[None, :], tl.broadcast_to(largest[None, :], (N, M)))


@triton.jit
def with_its_turn(x_ptr, out_ptr, N: tl.constexpr):
    n = tl.arange(0, N)
    x = tl.load(x_ptr + n[:, None] * N + n[None, :])
    tl.store(out_ptr + n[:, None] * N + n[None, :], x + x.T)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
@pytest.mark.parametrize("side", (4, 8, 32, 64))
def test_a_tile_meets_its_turn(run_everywhere: Any, side: int, dtype: str) -> None:
    x = np.random.default_rng(3).integers(-9, 9, (side, side)).astype(dtype)
    for warps in (1, 4):
        _, out = run_everywhere(with_its_turn, (1,), x, np.zeros_like(x), N=side, num_warps=warps)
        np.testing.assert_array_equal(out, x + x.T)
    _, out = run_everywhere(spread, (1,), x, np.zeros_like(x), M=side, N=side, num_warps=1)
    np.testing.assert_array_equal(out, np.broadcast_to(x.max(1), x.shape))


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16", "i8", "i64", "fp64"])
def test_the_text_compiles(dtype: str) -> None:
    texts = ""
    for kernel, sides in ((with_its_turn, "32"), (with_its_turn, "4"), (spread, "8, 8"), (spread, "16, 128")):
        artifact = kernel.translate(f"*{dtype}:16, *{dtype}:16, {sides}", num_warps=1)
        assert "warning" not in nvrtc.compile_text(artifact, "sm_80").log
        texts += artifact.source
    assert "__shfl_sync(" in texts and " ^ " in texts


@triton.jit
def weighted_rows(x_ptr, w_ptr, v_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    # The first product has other sides than the second, so that its warps stand elsewhere; sums of its rows meet rows of the
    # second one, whose neighbours are settled first.
    m, n, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    x = tl.load(x_ptr + m[:, None] * D + d[None, :])
    w = tl.load(w_ptr + d[:, None] * N + n[None, :])
    v = tl.load(v_ptr + n[:, None] * D + d[None, :])
    largest = tl.full([M], -float("inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    out = tl.zeros([M, D], tl.float32)
    for turn in range(2):
        score = tl.zeros([M, N], tl.float16)
        score += tl.dot(x, w)
        score += turn
        larger = tl.maximum(largest, tl.max(score, 1))
        scale = tl.exp2(largest - larger)
        p = tl.exp2(score - larger[:, None])
        out *= scale[:, None]
        out += tl.dot(p.to(tl.float16), v)
        total = total * scale + tl.sum(p, 1)
        largest = larger
    tl.store(out_ptr + m[:, None] * D + d[None, :], out / total[:, None])


@pytest.mark.parametrize("warps", (4, 8))
@pytest.mark.parametrize("sides", [(64, 64, 128), (16, 32, 64), (128, 16, 64)])
def test_sums_of_rows_follow_what_they_are_added_to(
    run_everywhere: Any, sides: tuple[int, int, int], warps: int
) -> None:
    rows, columns, depth = sides
    generator = np.random.default_rng(4)
    x = (generator.random((rows, depth)) < 4 / depth).astype(np.float16)
    w = generator.integers(0, 2, (depth, columns)).astype(np.float16)
    v = generator.integers(1, 3, (columns, depth)).astype(np.float16)
    start = np.zeros((rows, depth), np.float32)
    *_, out = run_everywhere(
        weighted_rows, (1,), x, w, v, start, M=rows, N=columns, D=depth, num_warps=warps, tolerance=1e-5
    )
    weights = 3.0 * 2 ** (x.astype(np.float64) @ w)
    np.testing.assert_allclose(out, weights @ v / weights.sum(1)[:, None], rtol=1e-4)


def sectors_of(layout: Layout, axis: int, width: int, itemsize: int) -> int:
    """32-byte sectors that the first lanes touch that copy 128 bytes; every element of another axis lies elsewhere."""
    touched = set()
    for lane in range(min(CACHE_LINE_BYTES // (width * itemsize), 32)):
        first = elements(layout, lane)[0]
        others = tuple(coordinate for a, coordinate in enumerate(first) if a != axis)
        touched.add((others, first[axis] * itemsize // SECTOR_BYTES))
    return len(touched)


def test_lanes_copy_for_others_of_their_warp() -> None:
    """Every element is copied once, by a lane of the reader's warp; 128 bytes meet no bank twice, sectors stay together."""
    copies = 0
    for shape, used, _ in PAIRS:
        used_by = [elements(used, thread) for thread in range(1 << used.thread_bits)]
        for axis, itemsize in itertools.product(range(len(shape)), (2, 4)):
            width = min(used.run(axis), 16 // itemsize)
            copy = (
                warp_copy(used, Pieces(shape, axis, width, itemsize, (1,) * len(shape)))
                if width * itemsize >= 4
                else None
            )
            if copy is None:
                continue
            copies += 1
            if copy.lane_bits == LANE_BITS:
                assert sectors_of(copy.layout, axis, width, itemsize) <= sectors_of(used, axis, width, itemsize)
            lanes = 1 << copy.lane_bits
            places = [copy.swizzle.place((lane,))[0] for lane in range(lanes)]
            copied_by = [elements(copy.layout, thread) for thread in range(1 << copy.layout.thread_bits)]
            assert sorted(places) == list(range(lanes))
            for thread in range(1 << used.thread_bits):
                number = sum((thread >> source & 1) << bit for bit, source in enumerate(copy.copiers))
                copier = number % lanes + number // lanes * 32
                assert copier // 32 == thread // 32
                assert copied_by[copier] == used_by[thread]
            copiers = [
                sum((lane >> s & 1) << b for b, s in enumerate(copy.copiers[: copy.lane_bits])) for lane in range(32)
            ]
            together = min(CACHE_LINE_BYTES // (width * itemsize), 32)
            for users in (copiers, list(range(lanes))):
                for first in range(0, len(users), together):
                    different = {places[user] for user in users[first : first + together]}
                    assert len({place % together for place in different}) == len(different)
            in_sector = SECTOR_BYTES // (width * itemsize)
            for first in range(0, lanes, in_sector):
                whole = {place // in_sector for place in places[first : first + in_sector]}
                assert len(whole) == 1, "the parts of a sector stay side by side"
    assert copies > 50


@triton.jit
def differences(x_ptr, out_ptr, n, shift, N: tl.constexpr):
    # The pointers move, so that they are in registers, and are wanted along both axes of one tile.
    i = tl.arange(0, N)
    at = x_ptr + i * N
    for _ in range(n):
        at += shift
    both = tl.load(at[:, None] + i[None, :]) - tl.load(at[None, :] + i[:, None])
    tl.store(out_ptr + i[:, None] * N + i[None, :], both)


def test_pointers_to_what_is_only_read_change_hands(run_everywhere: Any) -> None:
    x = np.random.default_rng(4).integers(-9, 9, 32 * 32 + 6).astype(np.float32)
    *_, out = run_everywhere(differences, (1,), x, np.zeros((32, 32), np.float32), 2, 3, N=32)
    moved = x[6:].reshape(32, 32)
    np.testing.assert_array_equal(out, moved - moved.T)


def test_an_array_of_single_elements_serves_no_vectors() -> None:
    """What is only known to be aligned to its elements is not taken for accesses of 16 bytes later on."""
    shared, tile = SharedMemory(Names([])), Variable("x", ValueType(float32, (8, 256)), 1)

    def array_for(statement: int, align: int) -> str:
        name = shared.exchange_name(statement, "convert0", tile, align)
        shared.exchange(statement, "convert0", tile, Shared(name, "float", "[8][256]", 8192, align=align or None))
        return name

    assert [array_for(number, align) for number, align in enumerate((0, 16, 0, 16, 8))] == [
        "x_shared", "x_shared_second", "x_shared", "x_shared_second", "x_shared_second",
    ]  # fmt: skip


@triton.jit
def transformed(x_ptr, out_ptr, N: tl.constexpr, LEVELS: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i).to(tl.float32)
    for _ in tl.static_range(LEVELS):
        even, odd = tl.split(tl.reshape(x, (N // 2, 2)))
        x = tl.reshape(tl.permute(tl.join(even + odd, even - odd), (1, 0)), (N,))
    tl.store(out_ptr + i, x)


def test_joined_tiles_move_as_one_and_what_registers_add_stays_out_of_the_exclusive_or() -> None:
    """Halves that each thread would hold twice are joined first; an address serves all registers that lie a fixed step apart."""
    text = " ".join(transformed.translate("*fp16:16, *fp16:16, 4096, 12", arch="sm_90a").source.split())
    assert "even_shared" not in text and "odd_shared" not in text
    assert text.count("x_shared[e * NUM_THREADS + (tid ^ (e % 2 * 16 + tid / WARP_SIZE * 4))] = ") == 2
    assert "x_shared[v / 2 * NUM_THREADS * VEC + ((tid * VEC + v % 2 * QUAD_VEC) ^ tid / 4 % 8 * 4)]" in text


@pytest.mark.parametrize(("bits", "warps"), [(12, 4), (11, 2), (10, 8), (9, 1), (13, 4)])
def test_transforms(run_everywhere: Any, bits: int, warps: int) -> None:
    x = np.random.default_rng(bits).standard_normal(1 << bits).astype(np.float32)
    arrays = x, np.full_like(x, np.nan)
    _, out = run_everywhere(transformed, (1,), *arrays, 1 << bits, bits, num_warps=warps, tolerance=1e-3)
    expected = x.astype(np.float64).reshape((2,) * bits)
    for axis in range(bits):
        first, second = np.take(expected, 0, axis), np.take(expected, 1, axis)
        expected = np.stack((first + second, first - second), axis)
    np.testing.assert_allclose(out, expected.reshape(-1), rtol=1e-4, atol=1e-3)


@triton.jit
def places_that_move(x_ptr, o_ptr, n):
    """What is stored, and the pointers that it is stored through, are held as they are loaded and move to be stored."""
    r, k = tl.arange(0, 4), 0
    while k < n:
        x = tl.load(x_ptr + k * 128 + tl.arange(0, 8)[:, None, None] * 16 + r[None, :, None] * 4 + r[None, None, :])
        p = o_ptr + k * 128 + tl.arange(0, 8)[:, None, None] + (3 - r[None, :, None]) * 8 + r[None, None, :] * 32
        tl.store(p, x == 1)
        k += 1


def test_pointers_that_move_are_written_through(run_everywhere: Any) -> None:
    x = np.random.default_rng(0).integers(0, 3, (3, 8, 4, 4)).astype(np.int32)
    found = run_everywhere(places_that_move, (1,), x, np.zeros(3 * 128, np.bool_), 3)[1]
    np.testing.assert_array_equal(found.reshape(3, 4, 4, 8), (x == 1).transpose(0, 3, 2, 1)[:, :, ::-1])
    assert "unsigned char* p_moved = " in places_that_move.translate("*i32:16, *i1:16, i32").source
