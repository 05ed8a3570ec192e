"""Loads of the fields of records are loads of whole records, with the results, the bounds and the warnings of single loads."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

RANDOM = np.random.default_rng(7)


@triton.jit
def planes(x_ptr, out_ptr, n, FIRST: tl.constexpr, FIELDS: tl.constexpr, APART: tl.constexpr, BLOCK: tl.constexpr):
    """Some fields of each record, each into a row of its own; FIELDS says in which order they are loaded.

    Outside of the mask each is another number.
    """
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(x_ptr + i * APART + FIRST + FIELDS[0], mask=mask, other=5)
    b = tl.load(x_ptr + i * APART + FIRST + FIELDS[1], mask=mask)
    c = tl.load(x_ptr + (FIRST + FIELDS[2] + i * APART), mask=mask, other=7)
    tl.store(out_ptr + i, a)
    tl.store(out_ptr + BLOCK * 2 + i, b)
    tl.store(out_ptr + BLOCK * 4 + i, c)


def records_of(text: str) -> list[str]:
    """The records that a text declares: their names and sizes."""
    return re.findall(r"^ *(?:[\w ]+) (\w+_records(?:\[[^\]]*\])+);", text, re.MULTILINE)


@pytest.mark.parametrize("fields", ((0, 1, 2), (2, 0, 1), (0, 1, 3)))
@pytest.mark.parametrize("first, apart", ((0, 3), (1, 3), (0, 4), (4, 8), (0, 2)))
@pytest.mark.parametrize("dtype, n", ((np.uint8, 601), (np.float32, 1008)))
def test_planes(run_everywhere: Any, fields: tuple[int, ...], first: int, apart: int, dtype: Any, n: int) -> None:
    """The array ends behind the last field that is read: nothing else of its record may be."""
    last = (n - 1) * apart + first + max(fields)
    x = RANDOM.integers(0, 99, last + 1).astype(dtype)
    out = np.full((3, 1024), 9, dtype)
    found = run_everywhere(planes, (2,), x, out, n, first, fields, apart, 512, num_warps=2)[1]
    wanted = np.stack([np.full(1024, other, dtype) for other in (5, 0, 7)])
    wanted[:, :n] = [x[first + one :: apart][:n] for one in fields]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype, n", ((np.uint8, 601), (np.float32, 1007), (np.float32, 1008)))
def test_nothing_behind_the_end_is_read(run_everyhow: Any, dtype: Any, n: int) -> None:
    """Sanitizers see what lies behind the array, which ends with the last record."""
    x = RANDOM.integers(0, 99, n * 3).astype(dtype)
    arguments = x, np.zeros((3, 1024), dtype), n, 0, (0, 1, 2), 3, 512
    for results in run_everyhow(planes, (2,), arguments, num_warps=2):
        np.testing.assert_array_equal(results[1][:, :n], x.reshape(n, 3).T)


@pytest.mark.parametrize("n", ("i32:16", "i32"))
def test_the_text_of_planes(n: str) -> None:
    """Of bytes three to a record a thread's eight records are three vectors; the first load loads them, in whatever order."""
    for fields in ((0, 1, 2), (2, 0, 1)):
        text = planes.translate(f"*u8:16, *u8:16, {n}, 0, {fields}, 3, 1024", num_warps=4).source
        assert records_of(text) == ["a_records[ELEMS * 3]"]
        assert text.count("i < ELEMS * 3 / OCT_VEC") == 1 and "int OCT_VEC = 8;" in text
        assert "L24, L25 and L26: 3 fields of ELEMS records" in text
        assert ("if (a_inside == ELEMS * 3) {" in text) == (n == "i32")


def test_parts_of_records() -> None:
    """Fields that leave others out are pieces of each record by itself, which are vectors where these are aligned."""
    four = planes.translate("*fp32:16, *fp32:16, i32:16, 0, (0, 1, 1), 4, 512", num_warps=2).source
    assert records_of(four) == ["a_records[ELEMS][2]"] and "load_vec_if<PAIR_VEC>(a_records[e]," in four
    assert not records_of(planes.translate("*fp32:16, *fp32:16, i32:16, 0, (0, 2, 4), 8, 512", num_warps=2).source)
    assert not records_of(planes.translate("*fp32:16, *fp32:16, i32:16, 1, (0, 1, 2), 3, 512", num_warps=2).source)
    assert not records_of(planes.translate("*fp32, *fp32:16, i32:16, 0, (0, 1, 2), 3, 512", num_warps=2).source)


@triton.jit
def turned(q_ptr, v_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Records of three numbers and of four, put together as rows of planes."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    w = tl.load(q_ptr + 4 * i, mask=mask, other=1)
    x = tl.load(q_ptr + 4 * i + 1, mask=mask, other=0.0)
    y = tl.load(q_ptr + 4 * i + 2, mask=mask, other=0.0)
    z = tl.load(q_ptr + 4 * i + 3, mask=mask, other=0.0)
    a = tl.load(v_ptr + 3 * i, mask=mask, other=2)
    b = tl.load(v_ptr + 3 * i + 1, mask=mask, other=3)
    c = tl.load(v_ptr + 3 * i + 2, mask=mask, other=0.0)
    tl.store(out_ptr + i, w * a + y * c + z * b)
    tl.store(out_ptr + 1024 + i, w * b + z * a + x * c)
    tl.store(out_ptr + 2048 + i, w * c + x * b + y * a)


@pytest.mark.parametrize("dtype, n", ((np.uint8, 1000), (np.uint8, 999), (np.float32, 514), (np.uint8, 1)))
def test_records_of_two_kinds(run_everyhow: Any, dtype: Any, n: int) -> None:
    """What stands for records outside of the mask is each field's own; ends within a thread's run are found for both."""
    q, v = RANDOM.integers(0, 9, (n, 4)).astype(dtype), RANDOM.integers(0, 9, (n, 3)).astype(dtype)
    (w, x, y, z), (a, b, c) = q.T, v.T
    wanted = np.repeat(np.array([[2], [3], [0]], dtype), 1024, axis=1)
    wanted[:, :n] = w * a + y * c + z * b, w * b + z * a + x * c, w * c + x * b + y * a
    arguments = q, v, np.zeros((3, 1024), dtype), n, 512
    for results in run_everyhow(turned, (2,), arguments, num_warps=2):
        np.testing.assert_array_equal(results[2], wanted)


@triton.jit
def pictures(x_ptr, out_ptr, H, W, BH: tl.constexpr, BW: tl.constexpr):
    """Rows of a picture's points, of four numbers each."""
    y = tl.program_id(0) * BH + tl.arange(0, BH)[:, None]
    x = tl.program_id(1) * BW + tl.arange(0, BW)[None, :]
    inside = (y < H) & (x < W)
    at = x_ptr + y * W * 4 + x * 4
    red = tl.load(at, mask=inside, other=0.0)
    green = tl.load(at + 1, mask=inside, other=0.0)
    blue = tl.load(at + 2, mask=inside, other=0.0)
    alpha = tl.load(at + 3, mask=inside, other=0.0)
    tl.store(out_ptr + y * W + x, (red + 2 * green + 3 * blue) * alpha, mask=inside)


@pytest.mark.parametrize("shape", ((16, 64), (9, 52), (3, 17)))
@pytest.mark.parametrize("dtype", (np.float32, np.float16))
def test_pictures(run_everywhere: Any, shape: tuple[int, int], dtype: Any) -> None:
    x = RANDOM.integers(0, 9, (*shape, 4)).astype(dtype)
    grid = (triton.cdiv(shape[0], 8), triton.cdiv(shape[1], 64))
    found = run_everywhere(pictures, grid, x, np.zeros(shape, dtype), *shape, 8, 64)[1]
    np.testing.assert_array_equal(found, (x[..., :3] * np.array([1, 2, 3], dtype)).sum(-1) * x[..., 3])


def test_the_text_of_pictures() -> None:
    text = pictures.translate("*fp16:16, *fp16:16, i32, i32:16, 8, 64").source
    assert records_of(text) == ["red_records[VEC * 4]"] or records_of(text)[0].startswith("red_records[")
    assert "x_ptr[" not in text


@triton.jit
def between(x_ptr, out_ptr, n, BLOCK: tl.constexpr, WHAT: tl.constexpr):
    """What stands between the loads decides whether the second can be loaded where the first is."""
    i = tl.arange(0, BLOCK)
    base = 0
    mask = i < n
    a = tl.load(x_ptr + base + 4 * i, mask=mask, other=0)
    b = tl.load(x_ptr + base + 4 * i + 1, mask=mask, other=0)
    if WHAT == "stored":
        tl.store(x_ptr + 4 * i + 2, a)
        tl.store(x_ptr + 4 * i + 3, b)
    if WHAT == "moved":
        base = base + n
    if WHAT == "other mask":
        mask = i < n - 1
    if WHAT == "barrier":
        tl.debug_barrier()
    if WHAT == "branch":  # noqa: SIM102 - the one is decided when the kernel is translated
        if n > 3:
            base += 1
    c = tl.load(x_ptr + base + 4 * i + 2, mask=mask, other=0)
    d = tl.load(x_ptr + base + 4 * i + 3, mask=mask, other=0)
    tl.store(out_ptr + i, a + 10 * b + 100 * c + 1000 * d)


@pytest.mark.parametrize("what", ("", "stored", "moved", "other mask", "barrier", "branch"))
def test_what_stands_between(run_everywhere: Any, what: str) -> None:
    x, n = RANDOM.integers(0, 9, 4 * 256 + 64).astype(np.int32), 60
    out = np.zeros(128, np.int32)
    found = run_everywhere(between, (1,), x, out, n, 128, what, num_warps=1)[1]
    fields = np.stack([x[at : at + 512 : 4] for at in range(4)])
    fields[:, n:] = 0
    moved_by = {"moved": n, "branch": 1}.get(what, 0)
    if what == "stored":
        fields[2:, :n] = fields[:2, :n]
    elif moved_by:
        fields[2:, :n] = [x[at + moved_by : at + moved_by + 512 : 4][:n] for at in (2, 3)]
    elif what == "other mask":
        fields[2:, n - 1] = 0
    np.testing.assert_array_equal(found, np.array([1, 10, 100, 1000]) @ fields)
    text = between.translate(f"*i32:16, *i32:16, i32:16, 128, {what!r}", num_warps=1).source
    whole = text.count("4 fields of") == 1
    assert whole == (what == "")


@triton.jit
def in_loops(x_ptr, out_ptr, trips, BLOCK: tl.constexpr, TURNS: tl.constexpr):
    """Points that a loop goes through, turned about in a loop that is written out."""
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(trips):
        for turn in tl.static_range(TURNS):
            x = tl.load(x_ptr + (k * BLOCK + i) * 3 + turn * 6)
            y = tl.load(x_ptr + (k * BLOCK + i) * 3 + turn * 6 + 1)
            z = tl.load(x_ptr + (k * BLOCK + i) * 3 + turn * 6 + 2)
            total += x * y + z * (turn + 1)
    tl.store(out_ptr + i, total)


def test_loops(run_everywhere: Any) -> None:
    x = RANDOM.integers(-9, 9, (3 * 256 + 8, 3)).astype(np.float32)
    found = run_everywhere(in_loops, (1,), x, np.zeros(256, np.float32), 3, 256, 2, num_warps=2)[1]
    points = [x[k * 256 + 2 * turn :][:256] for k in range(3) for turn in range(2)]
    wanted = sum(p[:, 0] * p[:, 1] + p[:, 2] * (turn % 2 + 1) for turn, p in enumerate(points))
    np.testing.assert_array_equal(found, wanted)
