"""Index tiles in the text: all elements, the starts of vectors, or the first one; and the names that scopes share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
import tilewright.runtime.cpu as cpu
from tilewright.lower.accesses.index_tiles import settle_index_tiles
from tilewright.lower.text.unit import Assignment, Branch, Declaration, IndexTile, Line, Loop, Node, const
from tilewright.runtime.building import nvrtc

SIGNATURE = "*fp32:16, *fp32:16, *i32:16, i32, 1024"
needs_compiler = pytest.mark.skipif(not cpu.has_compiler(), reason="no C++ compiler")


@triton.jit
def by_vectors(x_ptr, out_ptr, index_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n, other=0.0), mask=offs < n)


@triton.jit
def stored(x_ptr, out_ptr, index_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))
    tl.store(index_ptr + offs, offs)


@triton.jit
def from_another(x_ptr, out_ptr, index_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    for start in range(0, n, BLOCK):
        rows = start + offs
        tl.store(out_ptr + rows, tl.load(x_ptr + rows, mask=rows < n, other=0.0), mask=rows < n)


@triton.jit
def moved(x_ptr, out_ptr, index_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    for _ in range(0, n, BLOCK):
        tl.store(out_ptr + offs, tl.load(x_ptr + offs))
        offs += BLOCK


@triton.jit
def two_loops(x_ptr, out_ptr, index_ptr, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs)
        tl.store(out_ptr + offs, x + 1.0)
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(out_ptr + offs)
        tl.store(out_ptr + offs, x * 2.0)
        tl.store(index_ptr + offs, offs)


def text(kernel: Any, signature: str = SIGNATURE) -> str:
    return kernel.translate(signature).source


def test_accesses_by_vectors_need_the_start_of_each() -> None:
    found = text(by_vectors)
    assert "int offs[VECS];   // the first of each vector" in found
    assert "x_ptr + offs[v], n - offs[v]" in found and "offs[v * VEC]" not in found


def test_one_vector_needs_one_index() -> None:
    found = text(by_vectors, "*fp32:16, *fp32:16, *i32:16, i32, 512")
    assert "const int offs = " in found and "this thread's first" in found and "offs[" not in found


def test_a_stored_index_tile_is_whole() -> None:
    assert "int offs[ELEMS];" in text(stored)


def test_what_an_index_tile_is_computed_from_follows_it() -> None:
    found = text(from_another)
    assert "int offs[VECS];" in found and "rows[v] = start + offs[v];" in found


def test_an_index_tile_that_changes_is_whole() -> None:
    assert "offs[VECS]" not in text(moved)


def test_variables_that_no_line_sees_both_of_share_a_name() -> None:
    found = text(two_loops)
    assert found.count("for (int start = 0; start < n; start += BLOCK)") == 2
    assert found.count("float x[ELEMS];") == 2 and "x_float" not in found
    assert found.count("int offs[ELEMS];") == 2  # of one name, one is stored: both are whole


@needs_compiler
@pytest.mark.parametrize("kernel", [by_vectors, stored, from_another, moved, two_loops])
def test_the_results_are_those_of_the_interpreter(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for mode in ("cpu", "interpret"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        x, out, index = np.arange(2048, dtype=np.float32), np.zeros(2048, np.float32), np.zeros(2048, np.int32)
        kernel[(2,) if kernel in (by_vectors, stored) else (1,)](x, out, index, 2048, BLOCK=1024)
        results.append((out, index))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


def tile(name: str, value: str) -> IndexTile:
    fill = Loop("for (int e = 0; e < ELEMS; ++e)", (Assignment(f"{name}[e]", value.replace("#", "[e]")),))
    start = Loop("for (int v = 0; v < VECS; ++v)", (Assignment(f"{name}[v]", value.replace("#", "[v * VEC]")),))
    return IndexTile(
        name, "VEC", (Declaration("int", name, sides="[ELEMS]"), fill), (const("int", name, value.replace("#", "[0]")),),
        (Declaration("int", name, sides="[VECS]"), start),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("uses", "declared", "written"),
    [
        ("f(i[0]);", "const int i = x;", "f(i);"),
        ("f(i[0], i[v * VEC]);", "int i[VECS];", "f(i[0], i[v]);"),
        ("f(i[e / VEC * VEC]);", "int i[VECS];", "f(i[e / VEC]);"),
        ("f(i[e]);", "int i[ELEMS];", "f(i[e]);"),
        ("f(i[v * PAIR]);", "int i[ELEMS];", "f(i[v * PAIR]);"),
        ("f(&i[0]);", "int i[ELEMS];", "f(&i[0]);"),
        ("f(i);", "int i[ELEMS];", "f(i);"),
        ("f(ii[e]); g(i[0]);", "const int i = x;", "f(ii[e]); g(i);"),
    ],
)
def test_the_shortest_way_that_the_uses_allow(uses: str, declared: str, written: str) -> None:
    body: tuple[Node, ...] = (tile("i", "x"), Branch("true", (Line(uses),)))
    first, *_, last = settle_index_tiles(body, lambda name: True)
    assert isinstance(first, Declaration) and first.text == declared
    assert isinstance(last, Branch) and last.then == (Line(written),)


def test_what_nothing_asks_for_goes() -> None:
    body = (tile("i", "x"), tile("j", "i#"), Line("f(ii[e]);"))
    assert settle_index_tiles(body, lambda name: True) == (Line("f(ii[e]);"),)


def test_a_name_that_others_have_too_is_left_alone() -> None:
    first, *_ = settle_index_tiles((tile("i", "x"), Line("f(i[0]);")), lambda name: False)
    assert first == Declaration("int", "i", sides="[ELEMS]")


def test_uses_by_a_shortened_tile_count_as_it_is_written() -> None:
    body = (tile("i", "x"), tile("j", "i#"), Line("f(j[0]);"))
    assert settle_index_tiles(body, lambda name: True) == (
        const("int", "i", "x"), const("int", "j", "i"), Line("f(j);"),
    )  # fmt: skip


@triton.jit
def bytes_times_halves(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, cols = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + cols[None, :], mask=(k < K)[:, None] & (cols < N)[None, :], other=0)
        total += tl.dot(a, b.to(tl.bfloat16))
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total, mask=(rows < M)[:, None] & (cols < N)[None, :])


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_one_index_per_thread_that_nothing_reads_goes() -> None:
    artifact = bytes_times_halves.translate(
        "*bf16:16, *i8:16, *fp32:16, i32, i32:16, i32:16, 16, 32, 128", num_stages=4
    )
    assert "warning" not in nvrtc.compile_text(artifact).log


@triton.jit
def numbers_of_registers(x_ptr, y_ptr, L, ROWS: tl.constexpr, COLS: tl.constexpr):
    row, at = tl.arange(0, ROWS), tl.program_id(0) * COLS + tl.arange(0, COLS)
    if L > 4:
        row = tl.arange(0, ROWS)
    x = tl.load(x_ptr + row[:, None] * L + at[None, :], mask=(at < L)[None, :], other=0.0)
    tl.store(y_ptr + row[:, None] * L + at[None, :], x * (row[:, None] + 1), mask=(at < L)[None, :])


@triton.jit
def only_registers(x_ptr, y_ptr, L, ROWS: tl.constexpr, COLS: tl.constexpr):
    row, at = tl.arange(0, ROWS), tl.program_id(0) * COLS + tl.arange(0, COLS)
    x = tl.load(x_ptr + row[:, None] * L + at[None, :], mask=(at < L)[None, :], other=0.0)
    tl.store(y_ptr + row[:, None] * L + at[None, :], x * (row[:, None] + 1), mask=(at < L)[None, :])


@pytest.mark.parametrize("kernel", [numbers_of_registers, only_registers])
def test_a_tile_that_numbers_registers_is_no_array(run_everywhere: Any, kernel: Any) -> None:
    x = np.arange(4 * 301, dtype=np.float32).reshape(4, 301)
    _, y = run_everywhere(kernel, (3,), x, np.zeros_like(x), 301, 4, 128)
    np.testing.assert_array_equal(y, x * np.arange(1, 5, dtype=np.float32)[:, None])
    source = only_registers.translate("*fp32, *fp32, i32, 4, 128").source
    assert "row[" not in source.replace("// ", "").partition("{\n")[2].replace("row[:", "")


@triton.jit
def own_product(x_ptr, y_ptr, N: tl.constexpr, K: tl.constexpr):
    i, k = tl.arange(0, N), tl.arange(0, K)
    x = tl.load(x_ptr + i[:, None] * K + k[None, :])
    product = tl.dot(x, tl.trans(x))
    tl.store(y_ptr + i[:, None] * N + i[None, :], product, mask=i[:, None] > i[None, :])


def test_indices_along_both_axes_of_a_tile_are_told_apart_by_the_axis() -> None:
    source = own_product.translate("*fp16:16, *fp32:16, 64, 64").source
    assert "i_product_col[" in source and "again" not in source
