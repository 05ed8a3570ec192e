"""The passes between the frontend and the plans: which of them broke a kernel is said, and some depend on their order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import preparing
from tilewright.artifact import Options
from tilewright.cli import load_kernel
from tilewright.explain import describe_stage
from tilewright.frontend import build_kernel
from tilewright.ir.nodes import Inlined, Kernel
from tilewright.ir.printer import print_kernel
from tilewright.ir.rewrite import mapped_in, with_replaced
from tilewright.ir.verify import InvalidKernelError
from tilewright.ir.walk import say_the_same, statements
from tilewright.pipeline import translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.rewrites.early_loads import with_early_loads
from tilewright.schedule.rewrites.early_products import with_early_products
from tilewright.schedule.targets import find_target

ROOT = Path(__file__).resolve().parent.parent.parent
SIGNATURE = "*fp32:16, *fp32:16, i32, 1024"
OPTIONS, TARGET = Options(), find_target("sm_90a")


@triton.jit
def sums(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for start in range(n):
        x = tl.load(x_ptr + start * B + i)
        tl.store(out_ptr + start, tl.sum(x, axis=0))


def built(kernel: Any, signature: str = SIGNATURE) -> Kernel:
    """What the frontend makes of a kernel."""
    return build_kernel(kernel, parse_signature(kernel, signature), OPTIONS, TARGET)


def without_first(kernel: Kernel) -> Kernel:
    """A pass that takes a kernel's first statement out, which others read."""
    return replace(kernel, body=kernel.body[1:])


def test_the_pass_that_broke_a_kernel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "without_copies", without_first)
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")
    with pytest.raises(
        InvalidKernelError, match="sums breaks 1 rules of docs/ir.md after copies:\n  defined .*: i may"
    ):
        sums.translate(SIGNATURE)
    monkeypatch.delenv("TILEWRIGHT_VERIFY")
    preparing.prepared(built(sums), OPTIONS, TARGET)  # nobody asked


def test_a_kernel_that_needs_no_pass_is_the_same_object() -> None:
    kernel = built(sums)
    assert preparing.prepared(kernel, OPTIONS, TARGET) is kernel


def test_passes_that_change_nothing_return_the_same_object() -> None:
    """Those that change this kernel are the ones of docs/walkthrough.md; its two reductions do not wait for one another."""
    softmax = load_kernel(f"{ROOT / 'samples' / 'fused_softmax.py'}:softmax_kernel")
    kernel = built(softmax, "*fp32:16, *fp32:16, i32:16, i32:16, i32, i32:16, 1, 4096")
    changed = []
    for name, rewritten in preparing.passes(OPTIONS, TARGET):
        before, kernel = kernel, rewritten(kernel)
        changed += [] if kernel is before else [name]
    assert changed == ["settled_masks", "copies"]


@triton.jit
def multiplied(a, b):
    # Stands in its caller, in a block of its own.
    return tl.dot(a, b)


@triton.jit
def products(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tile = i[:, None] * B + i[None, :]
    total = tl.zeros([B, B], dtype=tl.float32)
    for start in range(n):
        x = tl.load(x_ptr + start * B + tile)
        total += multiplied(x, x)
    tl.store(out_ptr + tile, total)


def test_what_finds_nothing_to_move_returns_the_same_object() -> None:
    """Else a second plan is made of the same kernel."""
    kernel = preparing.prepared(built(products, HALVES), OPTIONS, TARGET)
    assert any(isinstance(statement, Inlined) for statement in statements(kernel.body))
    assert with_early_loads(kernel, ()) is kernel
    assert with_early_products(kernel, lambda dot: True) is kernel


def test_statements_that_say_the_same_are_still_two() -> None:
    """Tables go by the statement itself: of two equal ones, as a loop that is written out has them, one alone is replaced."""
    body = built(sums).body
    again = mapped_in(body, lambda expr: replace(expr))
    assert say_the_same(body, again) and body != again
    assert say_the_same(with_replaced((*body, *again), {again[0]: None}), (*body, *again[1:]))
    assert not say_the_same(body, body[1:]) and not say_the_same(body, (replace(again[0], targets=()), *again[1:]))


def test_a_pass_has_the_name_of_its_file() -> None:
    for name, rewritten in preparing.passes(OPTIONS, TARGET):
        function = getattr(rewritten, "func", rewritten)
        assert function.__module__ == f"tilewright.schedule.rewrites.{name}"


@triton.jit
def searched(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for start in range(0, B, B):
        low, high = 0, 100
        while low < high:
            low = (low + high) // 2 + 1
        tl.store(out_ptr + start + i, tl.load(x_ptr + start + i, mask=start + i < B) + low)


@triton.jit
def wrapped(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for start in range(0, n, B):
        rows = start + i
        inside = tl.where((i < B) & (rows < n), rows, 0)
        tl.store(out_ptr + rows, tl.load(x_ptr + inside), mask=(i < B) & (rows < n))


@triton.jit
def wide(x_ptr, out_ptr, n, B: tl.constexpr):
    i = (tl.program_id(0) * B + tl.arange(0, B)).to(tl.int64)
    tl.store(out_ptr + i, tl.load(x_ptr + i % n), mask=i < n)


@triton.jit
def widened(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for start in range(n):
        x = tl.load(x_ptr + start * B + i)
        x = x.to(tl.float32)
        x = x + 1.0
        tl.store(out_ptr + start * B + i, x)


@triton.jit
def counted(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tile = i[:, None] * B + i[None, :]
    weight = tl.zeros([B, B], dtype=tl.float16)
    total = tl.zeros([B, B], dtype=tl.float32)
    for start in range(n):
        weight += 1.0
        total += tl.dot(tl.load(x_ptr + tile + start), weight * 2.0)
    tl.store(out_ptr + tile, total)


@triton.jit
def kept(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    before = tl.atomic_add(out_ptr + i, 1.0)
    tl.store(x_ptr + i, tl.where(i < B, 2.0, before))


@triton.jit
def both(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x, y = tl.load(x_ptr + i), tl.load(out_ptr + i)
    tl.store(out_ptr, tl.max(x.to(tl.float32), axis=0) + tl.max(y, axis=0))


@triton.jit
def by_twos(x_ptr, out_ptr, n, B: tl.constexpr):
    offs = tl.arange(0, 8)[:, None] * 256 + 2 * tl.arange(0, 64)[None, :]
    even, odd = tl.load(x_ptr + offs), tl.load(x_ptr + offs + 1)
    tl.store(out_ptr + offs, odd)
    tl.store(out_ptr + offs + 1, even)


@triton.jit
def near(x_ptr, out_ptr, n, B: tl.constexpr):
    offs = tl.arange(0, 8)[:, None] * 256 + tl.arange(0, 64)[None, :]
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))


HALVES = "*fp16:16, *fp32:16, i32, 64"


@pytest.mark.parametrize(
    ("kernel", "signature", "first", "second"),
    [
        (searched, SIGNATURE, "single_trips", "counted_whiles"),
        (searched, SIGNATURE, "single_trips", "settled_masks"),
        (wrapped, SIGNATURE, "settled_masks", "wraps"),
        (wrapped, SIGNATURE, "wraps", "copies"),
        (widened, SIGNATURE, "copies", "loaded_names"),
        (wide, SIGNATURE, "wraps", "narrow_integers"),
        (by_twos, SIGNATURE, "interleaved", "row_offsets"),
        (near, SIGNATURE, "row_offsets", "narrow_integers"),
        (counted, HALVES, "operands", "uniform_tiles"),
        (kept, SIGNATURE, "settled_masks", "unused_results"),
        (both, "*fp16:16, *fp32:16, i32, 1024", "narrow_reductions", "joint_reductions"),
    ],
)
def test_the_order_that_comments_give_reasons_for(kernel: Any, signature: str, first: str, second: str) -> None:
    """With the second pass in front of the first one another kernel comes of it; without guards rows of offsets have 64 bits."""
    options = replace(OPTIONS, guards=False)
    ordered = dict(preparing.passes(options, TARGET))
    names = list(ordered)
    names.insert(names.index(first), names.pop(names.index(second)))
    swapped = built(kernel, signature)
    for name in names:
        swapped = ordered[name](swapped)
    assert text(swapped) != text(preparing.prepared(built(kernel, signature), options, TARGET))


def text(kernel: Kernel) -> tuple[str, list[Any]]:
    """A kernel with what its text leaves out."""
    return print_kernel(kernel), [getattr(statement, "trips", None) for statement in statements(kernel.body)]


def test_what_the_frontend_built_is_kept_beside_what_was_scheduled() -> None:
    arguments = parse_signature(searched, SIGNATURE)
    stages = translate_stages(searched, arguments, OPTIONS, TARGET)
    assert describe_stage(stages, "kernel") == print_kernel(built(searched))
    assert describe_stage(stages, "prepared") == print_kernel(preparing.prepared(built(searched), OPTIONS, TARGET))
    assert "for start" in describe_stage(stages, "kernel") and "for start" not in describe_stage(stages, "prepared")
