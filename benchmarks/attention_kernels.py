"""Attention forward for `attention.py`: read by tilewright and, imports replaced, by Triton."""

import tilewright as triton
import tilewright.language as tl


def configs():
    """What both tune over."""
    sizes = [(128, 64, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2)]
    return [triton.Config(dict(BLOCK_M=m, BLOCK_N=n), num_warps=w, num_stages=s) for m, n, w, s in sizes]


@triton.jit
def over_keys(
    out, total, largest, q, k_ptr, v_ptr, rows, first, last, scale, BLOCK_N: tl.constexpr, D: tl.constexpr,
    DIAGONAL: tl.constexpr,
):  # fmt: skip
    # One block of queries meets the keys from `first` to `last`; only on the diagonal may keys come after queries.
    d = tl.arange(0, D)
    for start in tl.range(first, last, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + columns[:, None] * D + d[None, :])
        score = tl.dot(q, k.T) * scale
        if DIAGONAL:
            score = tl.where(rows[:, None] >= columns[None, :], score, -float("inf"))
        larger = tl.maximum(largest, tl.max(score, 1))
        shrink = tl.exp2(largest - larger)
        p = tl.exp2(score - larger[:, None])
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + columns[:, None] * D + d[None, :])
        out = tl.dot(p.to(v.dtype), v, out * shrink[:, None])
        largest = larger
    return out, total, largest


@triton.autotune(configs=configs(), key=["N", "D", "CAUSAL"])
@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
    CAUSAL: tl.constexpr,
):  # fmt: skip
    # All tensors are [heads, N, D], contiguous; `scale` has the factor log2(e).
    first = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1).to(tl.int64) * N * D
    rows, d = first + tl.arange(0, BLOCK_M), tl.arange(0, D)
    q = tl.load(q_ptr + head + rows[:, None] * D + d[None, :])
    k_ptr += head
    v_ptr += head
    largest = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    out = tl.zeros([BLOCK_M, D], tl.float32)
    last = first if CAUSAL else N
    out, total, largest = over_keys(out, total, largest, q, k_ptr, v_ptr, rows, 0, last, scale, BLOCK_N, D, False)
    if CAUSAL:
        out, total, largest = over_keys(
            out, total, largest, q, k_ptr, v_ptr, rows, first, first + BLOCK_M, scale, BLOCK_N, D, True
        )
    out /= total[:, None]
    tl.store(out_ptr + head + rows[:, None] * D + d[None, :], out.to(out_ptr.dtype.element_ty))
