"""A scalar that is loaded for the rest of its line alone has no name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl


@triton.jit
def of_pages(page_ptr, x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    page = tl.load(page_ptr + tl.program_id(0)).to(tl.int64)
    part = tl.load(page_ptr + 1, mask=n > 1, other=3) // 2
    both = tl.load(page_ptr) + tl.load(page_ptr + 1)
    twice = tl.load(page_ptr + 2)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + page * BLOCK + offs) * tl.load(x_ptr + page).to(tl.float32)
    tl.store(out_ptr + tl.program_id(0) * BLOCK + offs, x + part + both + twice * twice)


def test_scalars_are_loaded_where_they_are_used(run_everyhow: Callable[..., Any]) -> None:
    pages, x = np.array([2, 0, 1], np.int32), np.random.default_rng(0).standard_normal((3, 128)).astype(np.float32)
    expected = x[pages] * x.ravel()[pages][:, None] + pages[1] // 2 + pages[0] + pages[1] + pages[2] ** 2
    out = np.zeros((3, 128), np.float32)
    for arguments in run_everyhow(of_pages, (3,), [pages, x, out, 2], BLOCK=128):
        np.testing.assert_allclose(arguments[2], expected, rtol=1e-6)
    text = of_pages.translate("*i32, *fp32, *fp32, i32, 128").source
    assert "const long long page = page_ptr[program_x];" in text
    assert "const int part = (n > 1 ? page_ptr[1] : 3) / 2;" in text
    assert "const int twice = page_ptr[2];" in text


@triton.jit
def after_a_store(x_ptr, out_ptr):
    tl.store(x_ptr, 5)
    first = tl.load(x_ptr) + 1
    tl.store(x_ptr, 7)
    tl.store(out_ptr, first)


def test_what_is_stored_around_it_is_seen_and_not_seen(run_everyhow: Callable[..., Any]) -> None:
    for arguments in run_everyhow(after_a_store, (1,), [np.zeros(1, np.int32), np.zeros(1, np.int32)]):
        assert arguments[1][0] == 6
