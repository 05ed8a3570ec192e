"""Arrays that take turns so that a multiprocessor has room for more blocks: loops that load ahead one after the other."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import fitting

SIDE, PARTS = 64, 3


@triton.jit
def gradients(x_ptr, w_ptr, scale_ptr, out_ptr, sums_ptr, parts, S: tl.constexpr):
    """Each loop multiplies a tile that it has loaded, and one that it has computed, which needs a copy."""
    r, c = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    scale = tl.load(scale_ptr + tl.arange(0, S))
    out = tl.zeros([S, S], tl.float32)
    sums = tl.zeros([S], tl.float32)
    for part in range(parts):
        x = tl.load(x_ptr + part * S * S + r * S + c)
        w = tl.load(w_ptr + part * S * S + r * S + c)
        y = tl.dot(w, (x * scale[:, None]).to(tl.float16))
        sums += tl.sum(y * x, 1)
        out += y
    for part in range(parts):
        x = tl.load(x_ptr + part * S * S + r * S + c)
        w = tl.load(w_ptr + part * S * S + c * S + r)
        y = tl.dot(w, (x + scale[:, None]).to(tl.float16))
        sums += tl.sum(y * x, 1)
        out += y
    tl.store(out_ptr + r * S + c, out)
    tl.store(sums_ptr + tl.arange(0, S), sums)


def operands() -> tuple[Any, Any, Any]:
    generator = np.random.default_rng(9)
    x, w = (generator.integers(-2, 3, (PARTS, SIDE, SIDE)).astype(np.float16) for _ in range(2))
    return x, w, generator.integers(-1, 2, SIDE).astype(np.float16)


def expected(x: Any, w: Any, scale: Any) -> tuple[Any, Any]:
    x, w, scale = (one.astype(np.float64) for one in (x, w, scale))
    products = [*(w @ (x * scale[:, None])), *(w.transpose(0, 2, 1) @ (x + scale[:, None]))]
    return sum(products), sum((y * x[n % PARTS]).sum(1) for n, y in enumerate(products))


SIGNATURE = f"*fp16:16, *fp16:16, *fp16:16, *fp32:16, *fp32:16, i32, {SIDE}"


def test_loops_share_what_their_threads_load_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = gradients.translate(SIGNATURE, "sm_80", num_warps=2)
    monkeypatch.setattr(fitting, "wants_more_blocks", lambda *_: False)
    apart = triton.jit(gradients.fn).translate(SIGNATURE, "sm_80", num_warps=2)
    assert "union {" in shared.source and "union {" not in apart.source
    turns = re.findall(r"struct \{(.*?)\} for_\w+;", shared.source, re.DOTALL)
    assert sum("half x_ahead" in turn for turn in turns) == 2
    assert 164 * 1024 // (shared.shared_bytes + 1024) > 164 * 1024 // (apart.shared_bytes + 1024)


@pytest.mark.parametrize("mode", ("interpret", "cpu", "check"))
@pytest.mark.parametrize("arch", ("sm_80", "sm_90a"))
@pytest.mark.parametrize("warps", (2, 4))
def test_what_takes_turns_is_right(mode: str, arch: str, warps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    x, w, scale = operands()
    out, sums = np.full((SIDE, SIDE), 7, np.float32), np.full(SIDE, 7, np.float32)
    gradients[(1,)](x, w, scale, out, sums, PARTS, S=SIDE, num_warps=warps, num_stages=3)
    for found, wanted in zip((out, sums), expected(x, w, scale), strict=True):
        np.testing.assert_array_equal(found, wanted)


@triton.jit
def enough(x_ptr, out_ptr, S: tl.constexpr):
    r, c = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    x = tl.load(x_ptr + r * S + c)
    x = tl.dot(x, x).to(tl.float16)
    tl.store(out_ptr + r * S + c, tl.dot(x, x).to(tl.float16))


def test_nothing_is_shared_where_there_are_blocks_enough() -> None:
    artifact = enough.translate("*fp16:16, *fp16:16, 32", "sm_80", num_warps=4)
    assert "union {" not in artifact.source
