"""Rotary position embedding: pairs of features are rotated by an angle that grows with the position."""

import numpy as np
import tilewright as triton
import tilewright.language as tl
from support import place, report


@triton.jit
def rotate(first, second, cos, sin):
    # The first coordinate of a rotated pair; the second one is rotate(second, -first, cos, sin).
    return first * cos - second * sin


@triton.jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, n_heads, HEAD_DIM: tl.constexpr, BLOCK_HEADS: tl.constexpr):
    position = tl.program_id(0)
    half: tl.constexpr = HEAD_DIM // 2
    heads = tl.program_id(1) * BLOCK_HEADS + tl.arange(0, BLOCK_HEADS)
    pairs = tl.arange(0, half)
    cos = tl.load(cos_ptr + position * half + pairs)
    sin = tl.load(sin_ptr + position * half + pairs)
    offsets = (position * n_heads + heads[:, None]) * HEAD_DIM + pairs[None, :]
    mask = heads[:, None] < n_heads
    first = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    second = tl.load(x_ptr + offsets + half, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, rotate(first, second, cos[None, :], sin[None, :]), mask=mask)
    tl.store(out_ptr + offsets + half, rotate(second, -first, cos[None, :], sin[None, :]), mask=mask)


def main() -> None:
    """Heads that no block divides."""
    rng = np.random.default_rng()
    positions, heads, dim = 29, 13, 128
    x = rng.standard_normal((positions, heads, dim), dtype=np.float32)
    angles = np.arange(positions)[:, None] / 10000 ** (np.arange(dim // 2) / (dim // 2))
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    out = place(np.full_like(x, np.nan))
    grid = (positions, triton.cdiv(heads, 4))
    rope_kernel[grid](place(x), place(cos), place(sin), out, heads, HEAD_DIM=dim, BLOCK_HEADS=4)
    first, second = x[..., : dim // 2].astype(np.float64), x[..., dim // 2 :].astype(np.float64)
    c, s = cos[:, None, :], sin[:, None, :]
    report("rope", out, np.concatenate([first * c - second * s, second * c + first * s], axis=2), 1e-5)


if __name__ == "__main__":
    main()
