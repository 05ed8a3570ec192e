"""Operands that dots copy to shared memory: once for all dots of a block that read them, anew where they have changed."""

from __future__ import annotations

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
