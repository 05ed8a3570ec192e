"""Operands that dots copy to shared memory: once for all dots of a block that read them, anew where they have changed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.pipeline import translate
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target


@triton.jit
def twice(a_ptr, b_ptr, first_ptr, second_ptr, trips, SIDE: tl.constexpr, CHANGED: tl.constexpr):
    i = tl.arange(0, SIDE)
    places = i[:, None] * SIDE + i[None, :]
    a = tl.load(a_ptr + places)
    first = tl.zeros([SIDE, SIDE], tl.float32)
    second = tl.zeros([SIDE, SIDE], tl.float32)
    for trip in range(trips):
        b = (tl.load(b_ptr + places) + trip).to(tl.float16)
        first += tl.dot(a, b)
        if CHANGED:
            b = b * 2
        second += tl.dot(a, b)
    tl.store(first_ptr + places, first)
    tl.store(second_ptr + places, second)


@pytest.mark.parametrize("changed", (False, True))
def test_both_products_are_right(run_everywhere: Any, changed: bool) -> None:
    side, trips = 64, 3
    generator = np.random.default_rng(5)
    a, b = (generator.integers(-2, 3, (side, side)).astype(np.float16) for _ in range(2))
    outs = [np.zeros((side, side), np.float32) for _ in range(2)]
    *_, first, second = run_everywhere(twice, (1,), a, b, *outs, trips, SIDE=side, CHANGED=changed, num_warps=4)
    product = sum(a.astype(float) @ (b.astype(float) + trip) for trip in range(trips))
    np.testing.assert_array_equal(first, product)
    np.testing.assert_array_equal(second, 2 * product if changed else product)


@pytest.mark.parametrize("changed, copies", [(False, 1), (True, 2)])
def test_a_tile_is_copied_again_only_where_it_has_changed(changed: bool, copies: int) -> None:
    signature = f"*fp16:16, *fp16:16, *fp32:16, *fp32:16, i32, 64, {changed}"
    found = translate(twice, parse_signature(twice, signature), Options(num_warps=4), find_target("sm_90a"))
    declared = next(line for line in found.source.splitlines() if "b, for the dot" in line)
    assert declared.count("[SIDE * SIDE]") == copies


@triton.jit
def seen_twice(x_ptr, product_ptr, same_ptr, SIDE: tl.constexpr):
    # The second view is stored, and it shows the first, which nothing else but the dot reads.
    i = tl.arange(0, SIDE)
    places = i[:, None] * SIDE + i[None, :]
    x = tl.load(x_ptr + places)
    turned = tl.trans(x)
    same = tl.trans(turned)
    tl.store(product_ptr + places, tl.dot(x, turned))
    tl.store(same_ptr + places, same)


def test_a_view_stays_for_another_one_that_is_stored(run_everywhere: Any) -> None:
    x = np.random.default_rng(1).integers(-2, 3, (32, 32)).astype(np.float16)
    outs = np.zeros((32, 32), np.float32), np.zeros_like(x)
    *_, product, same = run_everywhere(seen_twice, (1,), x, *outs, SIDE=32)
    np.testing.assert_array_equal(product, x.astype(float) @ x.T.astype(float))
    np.testing.assert_array_equal(same, x)


@triton.jit
def halves_by_two(a_ptr, b_ptr, c_ptr, out_ptr, K, CHANGED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                  BK: tl.constexpr):  # fmt: skip
    # An operand that stays in registers, multiplied twice, and changed in between or not.
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total, other = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        at = start + k
        a = tl.load(a_ptr + m[:, None] * K + at[None, :]) * 2
        b = tl.load(b_ptr + at[:, None] * BN + n[None, :])
        c = tl.load(c_ptr + at[:, None] * BN + n[None, :])
        total = tl.dot(a, b, total)
        if CHANGED:
            a += 1
        other = tl.dot(a, c, other)
    tl.store(out_ptr + m[:, None] * BN + n[None, :], total - other)


@pytest.mark.parametrize("changed", (False, True))
def test_fragments_of_an_operand_in_registers_are_made_once(run_everywhere: Any, changed: bool) -> None:
    text = halves_by_two.translate(f"*fp16:16, *fp16:16, *fp16:16, *fp32:16, i32:16, {changed}, 64, 64, 64").source
    assert "wgmma_m64n64k16(" in text
    assert len(re.findall(r"unsigned \w*fragments\w*\[", text)) == (
        not changed
    )  # what changes goes through shared memory
    a, b, c = np.random.default_rng(5).integers(-3, 4, (3, 64, 64)).astype(np.float16)
    *_, out = run_everywhere(
        halves_by_two, (1,), a, b, c, np.zeros((64, 64), np.float32), 64, changed, 64, 64, 64, num_warps=4
    )
    a, b, c = (one.astype(float) for one in (a, b, c))
    np.testing.assert_array_equal(out, 2 * a @ b - (2 * a + changed) @ c)


@triton.jit
def copied_beside_a_tensor_copy(a_ptr, b_ptr, c_ptr, copy_ptr, K, limit, M: tl.constexpr, BLOCK_K: tl.constexpr):
    # The mask keeps tensor copies from b, which the block needs twice: it is loaded into registers and copied for the dot.
    m, k = tl.arange(0, M), tl.arange(0, BLOCK_K)
    total = tl.zeros((M, M), tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + m[:, None] * K + (start + k)[None, :])
        at = (start + k)[:, None] * M + m[None, :]
        b = tl.load(b_ptr + at, mask=at < limit, other=0.0)
        total = tl.dot(a, b, total)
        tl.store(copy_ptr + at, b)
    tl.store(c_ptr + m[:, None] * M + m[None, :], total)


def test_a_copy_waits_for_the_product_that_reads_the_one_before(run_everyhow: Any) -> None:
    side, depth = 64, 256
    text = copied_beside_a_tensor_copy.translate("*fp16:16, *fp16:16, *fp32:16, *fp16:16, i32:16, i32, 64, 64").source
    assert "tma_load_2d(a[stage]" in text and "b_shared[b_place]" in text
    limit = depth * side - 5
    a, b = (
        np.random.default_rng(s).integers(-3, 4, shape).astype(np.float16)
        for s, shape in enumerate(((64, 256), (256, 64)))
    )
    outs = np.zeros((side, side), np.float32), np.zeros_like(b)
    runs = run_everyhow(copied_beside_a_tensor_copy, (1,), [a, b, *outs, depth, limit, side, 64], num_warps=4)
    b.reshape(-1)[limit:] = 0
    for *_, c, copy, _, _, _, _ in runs:
        np.testing.assert_array_equal(c, a.astype(float) @ b.astype(float))
        np.testing.assert_array_equal(copy, b)
