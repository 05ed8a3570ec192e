"""What the text says of lines that a specialisation does without, and of loops that are written out."""

from __future__ import annotations

from pathlib import Path

import pytest
import tilewright as triton
import tilewright.language as tl
from rubric import Generated, comments_name_what_there_is, every_statement_is_quoted, user_comments_are_kept
from tilewright.diagnostics import Span
from tilewright.ir.nodes import Origin
from tilewright.lower.text.repeats import with_parts_named
from tilewright.lower.text.unit import Comment, Loop, every


@triton.jit
def doubled_or_more(x, WAY: tl.constexpr):
    if WAY == 1:
        return x * 2
    y = x + 1
    return y * 3


@triton.jit
def ways(x_ptr, out_ptr, n, WAY: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    if WAY == 1:
        x = x * 2
    # the second way
    elif WAY == 2:
        x = x * 3
    else:
        # the third way
        x = x - 1
    tl.store(out_ptr + i, doubled_or_more(x, WAY))
    if n > 4:
        return
    if WAY == 2:
        tl.store(out_ptr + i, x)
    else:
        return
    # behind all ways but the second
    tl.store(out_ptr + i, x + 1)
    tl.store(out_ptr + i, x + 2)


NEVER = "    (never reached: without L"
BRANCHES = {
    1: ["if WAY == 1:    (true in this specialisation: without L", f"y = x + 1{NEVER}", f"out_ptr + i, x + 1){NEVER}"],
    2: ["elif WAY == 2:    (true in this specialisation: without L"],
    3: ["elif WAY == 2:    (false in this specialisation: without L", f"out_ptr + i, x + 1){NEVER}"],
}


@pytest.mark.parametrize("way", BRANCHES)
def test_every_line_stands_there_or_is_said_to_be_left_out(way: int) -> None:
    text = ways.translate(f"*fp32:16, *fp32:16, i32, {way}, 64").source
    for remark in BRANCHES[way]:
        assert remark in text
    assert text.count(NEVER) == sum(NEVER in remark for remark in BRANCHES[way])
    file = Generated(text, Path(__file__).read_text(encoding="utf-8"), "ways")
    assert [*every_statement_is_quoted(file), *user_comments_are_kept(file)] == []


@triton.jit
def returns_in_a_branch(x, limit):
    if x > limit:
        return x * 2
    y = x + 1
    return y * 3


@triton.jit
def calls(x_ptr, out_ptr, limit):
    tl.store(out_ptr, returns_in_a_branch(tl.load(x_ptr), limit))


def test_what_stands_in_the_other_branch_is_reached() -> None:
    text = calls.translate("*i32, *i32, i32").source
    assert NEVER not in text and "y = x + 1" in text


@triton.jit
def grid_of_trips(x_ptr, out_ptr, N: tl.constexpr, DOUBLED: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for j in tl.static_range(2):
        for k in tl.static_range(2):
            if DOUBLED:
                total += tl.load(x_ptr + (2 * j + k) * N + i) * 2
            else:
                total += tl.load(x_ptr + (2 * j + k) * N + i)
            if j + k == 1:
                total *= 2
    tl.store(out_ptr + i, total)


def test_loops_that_are_written_out_say_which_trips_these_are() -> None:
    text = grid_of_trips.translate("*fp32:16, *fp32:16, 64, False").source
    assert "for k in tl.static_range(2):    (j = 1, written out below)" in text
    for j in range(2):
        for k in range(2):
            assert f"if DOUBLED:    (j = {j}, k = {k}, false in this specialisation: without L" in text
            assert f"+= tl.load(x_ptr + (2 * j + k) * N + i)    (j = {j}, k = {k})" in text


@triton.jit
def of_rows(x_ptr, rows_ptr, out_ptr, M: tl.constexpr, T: tl.constexpr, BLOCK_M: tl.constexpr):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    x = tl.load(x_ptr + offs_m[:, None] * T + tl.arange(0, T)[None, :], mask=offs_m[:, None] < M, other=0.0)
    tl.store(out_ptr + offs_m, tl.sum(x, axis=1), mask=offs_m < M)


def test_a_remark_on_a_test_of_several_rows_names_a_constant_of_the_file() -> None:
    text = of_rows.translate("*fp32:16, *i32:16, *fp32:16, 32, 512, 16", num_warps=1).source
    assert "// One test for BLOCK_M elements: M and the index of the first are multiples of BLOCK_M." in text
    file = Generated(text, Path(__file__).read_text(encoding="utf-8"), "of_rows")
    assert [*comments_name_what_there_is(file)] == []


@triton.jit
def gathered(x_ptr, rows_ptr, y_ptr, out_ptr, count, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, count, BLOCK):
        # which rows
        rows = tl.load(rows_ptr + start + k, mask=start + k < count, other=0)
        x = tl.load(x_ptr + rows[:, None] * M + m[None, :])
        y = tl.load(y_ptr + rows[:, None] * N + n[None, :])
        total = tl.dot(x.T, y, total)
    tl.store(out_ptr + m[:, None] * N + n[None, :], total)


def test_a_comment_goes_ahead_with_its_load() -> None:
    text = gathered.translate("*fp16:16, *i32:16, *fp16:16, *fp32:16, i32, 32, 32, 32").source
    lines = [line.strip() for line in text.splitlines()]
    assert lines.count("// which rows") == 1
    assert "rows = tl.load(" in lines[lines.index("// which rows") + 1]
    file = Generated(text, Path(__file__).read_text(encoding="utf-8"), "gathered")
    assert "(read ahead of the copies)" in text and [*user_comments_are_kept(file)] == []


def test_of_a_line_in_several_places_the_last_one_is_the_rest() -> None:
    """It was "in part" at all of them: a reader looked for more below."""
    at = Span("", 1, 0, 1, 1, "x = a(b(c))"), Span("", 2, 0, 2, 1, "y = d")

    def quotes(*remarks: str, span: Span = at[0]) -> tuple[Comment, ...]:
        return tuple(Comment(span.text, ("", span.line), remark, Origin(span, span.text)) for remark in remarks)

    text = (*quotes("(its copies)"), Loop("for (;;)", quotes("(for the next)")), *quotes("", span=at[1]), *quotes(""))
    named = every(with_parts_named(text))
    remarks = [node.remark for node in named if isinstance(node, Comment)]
    assert remarks == ["(its copies)", "(for the next)", "", "(the rest)"]
    for others in ("", "(its copies)"), ("(its copies)", "", ""):  # not all others say which parts they are
        assert "(in part)" in [node.remark for node in with_parts_named(quotes(*others)) if isinstance(node, Comment)]


@triton.jit
def by_block_pointer(x_ptr, out_ptr, N, B: tl.constexpr):
    block = tl.make_block_ptr(x_ptr, (N,), (1,), (0,), (B,), (0,))
    tl.store(out_ptr + tl.arange(0, B), tl.load(block, boundary_check=(0,)))


def test_a_bundle_of_values_is_no_code() -> None:
    """Its parts were said to be used below, where a copy that the host describes uses none."""
    text = by_block_pointer.translate("*fp32:16, *fp32:16, i32, 128").source
    assert "block = tl.make_block_ptr" in text and "(no code: its parts stand where they are used)" in text


@triton.jit
def words_of_eight(a_ptr, word_ptr, out_ptr, K, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BLOCK):
        a = tl.load(a_ptr + m[:, None] * K + (start + k)[None, :])
        w = (tl.load(word_ptr + ((start + k) // 8)[:, None] * N + n[None, :]) >> (k % 8 * 4)[:, None]) & 15
        total += tl.dot(a, (w - 8).to(tl.float16))
    tl.store(out_ptr + m[:, None] * N + n[None, :], total)


def test_a_line_of_which_only_the_load_stands_there_says_so() -> None:
    """The words were declared under `w = (tl.load(...) >> shift) & 15`, as if they were w."""
    text = words_of_eight.translate(
        "*fp16:16, *i32:16, *fp32:16, i32:16, 128, 128, 64", arch="sm_90a", num_warps=8
    ).source
    assert text.count("(the multiplying warps' part, the rest formed where it is used)") == 1
    assert ">> " not in text[text.index("the rest formed where") :].split("// L")[0]


@triton.jit
def renamed_items(x_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    parts = (x * 2, (n - 1, x + n))
    turned = (parts[1], parts[0])
    tl.store(out_ptr + i, turned[0][1] + turned[1])


def test_a_line_of_which_something_is_said_has_no_other_reason() -> None:
    """An item of `turned` is read by nobody, the others are those of `parts`."""
    text = renamed_items.translate("*i32:16, *i32:16, i32, 64").source
    assert text.count("turned = (parts[1], parts[0])") == 1
    assert "turned = (parts[1], parts[0])    (the same elements)" in text
