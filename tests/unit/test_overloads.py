"""Helpers of one meaning have one name: C++ tells apart those for other types, and what they are given."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl


@triton.jit
def of_both_types(q_ptr, x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = i[:, None] * B + i[None, :]
    counts = tl.load(out_ptr + at).to(tl.int32)
    sums = tl.load(out_ptr + B * B + at)
    for _ in range(n):
        counts = tl.dot(tl.load(q_ptr + at), tl.load(q_ptr + B * B + at), counts)
        sums = tl.dot(tl.load(x_ptr + at), tl.load(x_ptr + B * B + at), sums)
        counts = counts * 2
        sums = sums * 2
    tl.store(out_ptr + at, counts.to(tl.float32) + sums)


def test_sums_of_both_types_are_taken_and_pinned_by_helpers_of_one_name() -> None:
    text = of_both_types.translate("*i8:16, *fp16:16, *fp32:16, i32, 64", arch="sm_90a", num_warps=4).source
    for helper in ("wgmma_take", "wgmma_pin"):
        assert set(re.findall(rf"{helper}\w*\((\w+) \(&tile\)", text)) == {"int", "float"}
        assert set(re.findall(rf"{helper}\w*", text)) == {helper}


@triton.jit
def rounded(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    x = x * x
    tl.store(out_ptr + i, x)
    tl.store(out_ptr + N + i, x + 1)


def test_floats_are_rounded_as_the_array_that_they_are(run_everywhere: Any) -> None:
    """No function that returns an element of the array as it stands, `[&](int e) { return x[e]; }`."""
    text = rounded.translate("*fp32:16, *fp16:16, 1024").source
    assert "round_pairs(target, [&](int i) { return source[i]; });" in text and text.count("__floats2half2_rn(") == 1
    assert "round_pairs(stored, x);" in text and re.search(r"round_pairs\(\w+, \[&\]\(int e\) { return x\[e\] \+", text)
    assert not re.search(r"\{ return \w+\[e\]; \}", text)
    x = np.arange(1024, dtype=np.float32) / 64
    found = run_everywhere(rounded, (1,), x, np.zeros(2048, np.float16), N=1024)[1]
    np.testing.assert_array_equal(found, np.concatenate((x * x, x * x + 1)).astype(np.float16))
