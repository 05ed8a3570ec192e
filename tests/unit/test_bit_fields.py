"""Pairs of bit fields of one word, taken out together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def fields_kernel(words_ptr, out_ptr, N: tl.constexpr, SHIFT: tl.constexpr, MASK: tl.constexpr):
    i = tl.arange(0, N)
    words = tl.load(words_ptr + i // 2)
    numbers = (words >> (i % 2 * 16 + SHIFT)) & MASK
    halves = (numbers - 3).to(tl.float16) * 0.5
    tl.store(out_ptr + i, halves)


@pytest.mark.parametrize("shift, mask, together", [(12, 15, True), (14, 15, False)])
def test_a_field_may_end_in_copies_of_the_sign(run_everywhere: Any, shift: int, mask: int, together: bool) -> None:
    words = np.random.default_rng(1).integers(-(2**31), 2**31, 512).astype(np.int32)
    _, out = run_everywhere(fields_kernel, (1,), words, np.zeros(1024, np.float16), N=1024, SHIFT=shift, MASK=mask)
    numbers = np.stack([words >> shift & mask, words.astype(np.int64) >> shift + 16 & mask], axis=1).ravel()
    np.testing.assert_array_equal(out, (numbers - 3) * 0.5)
    text = fields_kernel.translate(f"*i32:16, *fp16:16, 1024, {shift}, {mask}").source
    assert ("fields_half2" in text) == together
