"""Comments keep their places in the text, and statements on the line of their head are statements."""

from __future__ import annotations

from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl


# fmt: off
@triton.jit
def commented_kernel(x_ptr, n, BLOCK: tl.constexpr):
    """Doc."""
    # above the first

    #   and more
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)

    if n > 4:  # behind a head
        # inside
        x = x * 2
        # end of then

        # still there

    # above else
    else:

        # in else
        x = x + 1
        if n > 2:
            x = x - 3
            # innermost
          # between two blocks
        # end of else
    # above the store
    tl.store(x_ptr + i,
             # not above a statement
             x)  # behind a statement
    # end of kernel
# fmt: on


def test_comments_stand_where_they_stood() -> None:
    text = commented_kernel.translate("*fp32:16, i32, 32").source
    body = text[text.index("commented_kernel(float") :].splitlines()
    said = [line.strip()[3:] for line in body if line.strip().startswith("// ")]
    spoken = [line.partition(": ")[2] if line.startswith("L") else line for line in said]
    assert spoken == [
        "above the first", "and more", "i = tl.arange(0, BLOCK)", "x = tl.load(x_ptr + i)",
        "if n > 4:  # behind a head", "inside", "x = x * 2", "end of then", "still there",
        "above else", "else:", "in else", "x = x + 1", "if n > 2:", "x = x - 3", "innermost",
        "between two blocks", "end of else", "above the store", "tl.store(x_ptr + i,", "# not above a statement",
        "x)  # behind a statement", "end of kernel",
    ]  # fmt: skip


# fmt: off
# ruff: noqa: E701, E702
@triton.jit
def early(x, n):
    if n > 3: return x * 2
    y = x + 1; return y


@triton.jit
def one_line_kernel(x_ptr, n, BLOCK: tl.constexpr):
    # once
    i = tl.arange(0, BLOCK); j = i + 1
    y = 0.0
    if n > 2: y = 3.0
    if BLOCK == 16: y += 10
    elif n == 2: y += 20; y += 40
    else: y += 80
    for k in range(n): y += k
    while y > 1000: y -= 1000
    tl.store(x_ptr + i, early(tl.load(x_ptr + i), n) + y + j)
# fmt: on


def test_statements_behind_their_head_count(run_everywhere: Any) -> None:
    for n, block in ((2, 16), (2, 32), (5, 16), (5, 32)):
        x = np.arange(block, dtype=np.float32)
        got = run_everywhere(one_line_kernel, (1,), x, n, BLOCK=block)[0]
        y = (3 if n > 2 else 0) + (10 if block == 16 else 60 if n == 2 else 80) + sum(range(n))
        np.testing.assert_array_equal(got, (x * 2 if n > 3 else x + 1) + y + np.arange(block) + 1)
    assert one_line_kernel.translate("*fp32:16, i32, 32").source.count("// once") == 1


@triton.jit
def one_more(v):
    """Adds one. \\"""  # noqa: D301 (the backslash is the subject)
    return v + 1  # up \


@triton.jit
def backslash_kernel(x_ptr, n):
    # C:\temp\
    i = tl.arange(0, 8)  # here \
    if n > 3:  # there \
        tl.store(x_ptr + i, one_more(n))  # and there \
    else:  # or \
        # there \
        tl.store(x_ptr + i, 2)


def test_comments_that_end_in_a_backslash_take_no_code_in(run_everywhere: Any) -> None:
    source = backslash_kernel.translate("*i32, i32").source
    assert "temp" in source and not any(line.endswith("\\") for line in source.splitlines() if "//" in line)
    (x,) = run_everywhere(backslash_kernel, (1,), np.zeros(8, np.int32), 5)
    assert (x == 6).all()


@triton.jit
def ends_of_lines(x_ptr):
    # a trigraph of a backslash ??/
    tl.store(x_ptr, 1.0)  # and here ??/ too
    tl.device_print("??/", 3)


def test_comments_have_no_trigraphs_of_the_backslash() -> None:
    text = ends_of_lines.translate("*fp32").source
    assert "??/" not in text and "// a trigraph of a backslash ?? /\n" in text and "?\\?/: %d" in text


# fmt: off
@triton.jit
def commented_parameters(
    # Pointers: not aligned, since this very long remark takes more than a line of the text has room for, and goes on
    x_ptr, y_ptr,  # two of them
    out_ptr,  #
    n,  # elements; a backslash \
    # Meta-parameters
    BLOCK: tl.constexpr,  # elements a program
    # a power of two
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def one_commented(x_ptr, o_ptr,  # written
                  SIZE: tl.constexpr):
    tl.store(o_ptr + tl.arange(0, SIZE), tl.load(x_ptr + tl.arange(0, SIZE)))
# fmt: on


def test_comments_at_parameters_stand_at_the_parameters(run_everywhere: Any) -> None:
    lines = commented_parameters.translate("*fp32, *fp32, *fp32, i32, 64").source.splitlines()
    start = lines.index("commented_parameters(")
    assert lines[start + 1 : start + 6] == [
        "    // Pointers: not aligned, since this very long remark takes more than a line of the text has room for, and",
        "    // goes on",
        "    const float* x_ptr, const float* y_ptr,   // two of them",
        "    float* out_ptr,",
        "    int n)   // elements; a backslash \\.",
    ]
    constant = next(number for number, line in enumerate(lines) if line.startswith("constexpr int BLOCK ="))
    assert lines[constant - 1] == "// Meta-parameters"
    assert lines[constant].endswith("   // elements a program a power of two")
    x, y = np.random.default_rng(0).standard_normal((2, 100)).astype(np.float32)
    *_, out = run_everywhere(commented_parameters, (2,), x, y, np.zeros(128, np.float32), 100, BLOCK=64)[:3]
    np.testing.assert_array_equal(out[:100], x + y)


def test_what_a_launch_adds_stands_apart() -> None:
    text = one_commented.translate("*fp32:16, *fp32:16, 64").source
    assert "one_commented(\n    const float* x_ptr, float* o_ptr)   // written\n{" in text


# fmt: off
@triton.jit
def commented_flags(x_ptr, n,  # how much is added
                    # Texts
                    HOW: tl.constexpr,
                    # Flags
                    ADD: tl.constexpr,  # whether to add
                    # Sizes
                    SIZE: tl.constexpr, OTHER: tl.constexpr,
                    # Ways
                    WAY: tl.constexpr  # which one
                    ):
    i = tl.arange(0, SIZE)
    if ADD:
        tl.store(x_ptr + i, tl.load(x_ptr + i) + n)
# fmt: on


def test_a_parameter_without_a_constant_has_its_comment_in_the_header() -> None:
    text = commented_flags.translate("*fp32:16, i32, 'all', True, 256, 2, 'sum'").source
    assert (
        "//   constexpr  HOW = 'all',\n//              ADD = True (whether to add),\n//              SIZE = 256, OTHER = 2,\n"
        in text
    )
    assert "\n//              WAY = 'sum' (Ways; which one)\n" in text
    assert "// Texts\n// Flags\n// Sizes\nconstexpr int SIZE = 256;" in text and text.count("// Sizes") == 1


@triton.jit
def promised_in_a_branch(x_ptr, n, m, B: tl.constexpr):
    i = tl.arange(0, B)
    for t in range(n):
        if t > 0:
            i = t * B + tl.arange(0, B)
            i = tl.max_contiguous(tl.multiple_of(i, B), B)
            m = tl.multiple_of(m + 16, 16)
            m = tl.multiple_of(m, 16)
        tl.store(x_ptr + i, tl.load(x_ptr + i) + m)


def test_a_promise_of_what_a_branch_assigns_is_no_code(run_everywhere: Any) -> None:
    text = promised_in_a_branch.translate("*fp32:16, i32, i32, 64").source
    assert text.count("(a promise: no code)") == 2 and "m = m;" not in text and "i[e] = i[e];" not in text
    x, *_ = run_everywhere(promised_in_a_branch, (1,), np.zeros(192, np.float32), 3, 16, B=64)
    np.testing.assert_array_equal(x, np.repeat((16, 32, 48), 64))


@triton.jit
def above_its_words(x):
    # above the words of the helper
    """Of the helper."""
    return x * 2


@triton.jit
def with_words(x_ptr, BLOCK: tl.constexpr):
    # above the words of the kernel
    """Of the kernel."""
    i = tl.arange(0, BLOCK)
    # above a string that is no statement
    "a string"
    tl.store(x_ptr + i, above_its_words(tl.load(x_ptr + i)))


def test_comments_above_strings_stay() -> None:
    text = with_words.translate("*fp32:16, 128").source
    words = [
        "// Of the helper.",
        "// above the words of the helper",
        "// Of the kernel.",
        "// above the words of the kernel",
    ]
    words += ["i = tl.arange", "// above a string that is no statement", "tl.store"]
    places = [text.index(word) for word in words]
    assert places == sorted(places)


@triton.jit
def larger(one, other):
    # above its words
    """The larger."""
    # above its value
    return tl.maximum(one, other)
    # at its end


@triton.jit
def largest(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.reduce(tl.load(x_ptr + tl.arange(0, BLOCK)), 0, larger))


def test_comments_in_a_function_that_combines_do_not_order_what_it_combines() -> None:
    text = largest.translate("*fp32:16, *fp32:16, 128").source
    assert "// above its words" in text and "_in_order" not in text
