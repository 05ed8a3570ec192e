"""Attention backward for `attention.py --backward`: read by tilewright and, imports replaced, by Triton.

A program has a block of keys, for which it sums over queries, and the block of queries in the same place, for which it sums
over keys. Probabilities are computed again from the logarithm of each row's sum, which the forward pass leaves.
"""

import tilewright as triton
import tilewright.language as tl


def configs():
    """What both tune over."""
    sizes = [(128, 32, 4, 5), (128, 32, 8, 4), (128, 64, 8, 2)]
    return [triton.Config(dict(BLOCK=m, STEP=n), num_warps=w, num_stages=s) for m, n, w, s in sizes]


@triton.jit
def row_sums_kernel(out_ptr, d_out_ptr, delta_ptr, N, BLOCK: tl.constexpr, D: tl.constexpr):
    # The sum of out * d_out of every row, which all probabilities of the row need.
    rows = tl.program_id(1).to(tl.int64) * N + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, D)
    places = rows[:, None] * D + d[None, :]
    out = tl.load(out_ptr + places).to(tl.float32)
    d_out = tl.load(d_out_ptr + places).to(tl.float32)
    tl.store(delta_ptr + rows, tl.sum(out * d_out, 1))


@triton.jit
def over_queries(
    dk, dv, k, v, q_ptr, d_out_ptr, sums_ptr, delta_ptr, columns, first, last, scale, STEP: tl.constexpr,
    D: tl.constexpr, DIAGONAL: tl.constexpr,
):  # fmt: skip
    # One block of keys meets the queries from `first` to `last`: tiles have a row for each key.
    d = tl.arange(0, D)
    for start in tl.range(first, last, STEP):
        rows = start + tl.arange(0, STEP)
        q = tl.load(q_ptr + rows[:, None] * D + d[None, :])
        log_sum = tl.load(sums_ptr + rows)
        p = tl.exp2(tl.dot(k, q.T) * scale - log_sum[None, :])
        if DIAGONAL:
            p = tl.where(rows[None, :] >= columns[:, None], p, 0.0)
        d_out = tl.load(d_out_ptr + rows[:, None] * D + d[None, :])
        dv = tl.dot(p.to(d_out.dtype), d_out, dv)
        delta = tl.load(delta_ptr + rows)
        ds = p * (tl.dot(v, d_out.T) - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk)
    return dk, dv


@triton.jit
def over_keys(
    dq, q, d_out, log_sum, delta, k_ptr, v_ptr, rows, first, last, scale, STEP: tl.constexpr, D: tl.constexpr,
    DIAGONAL: tl.constexpr,
):  # fmt: skip
    # One block of queries meets the keys from `first` to `last`.
    d = tl.arange(0, D)
    for start in tl.range(first, last, STEP):
        columns = start + tl.arange(0, STEP)
        k = tl.load(k_ptr + columns[:, None] * D + d[None, :])
        v = tl.load(v_ptr + columns[:, None] * D + d[None, :])
        p = tl.exp2(tl.dot(q, k.T) * scale - log_sum[:, None])
        if DIAGONAL:
            p = tl.where(rows[:, None] >= columns[None, :], p, 0.0)
        ds = p * (tl.dot(d_out, v.T) - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    return dq


@triton.autotune(configs=configs(), key=["N", "D", "CAUSAL"])
@triton.jit
def attention_backward_kernel(
    q_ptr, k_ptr, v_ptr, d_out_ptr, sums_ptr, delta_ptr, dq_ptr, dk_ptr, dv_ptr, scale, N, BLOCK: tl.constexpr,
    STEP: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    # All tensors are [heads, N, D] or [heads, N], contiguous; `scale` and `sums` are those of base 2.
    first = tl.program_id(0) * BLOCK
    head = tl.program_id(1).to(tl.int64) * N
    block, d = first + tl.arange(0, BLOCK), tl.arange(0, D)
    q_ptr += head * D
    k_ptr += head * D
    v_ptr += head * D
    d_out_ptr += head * D
    sums_ptr += head
    delta_ptr += head
    places = block[:, None] * D + d[None, :]

    k = tl.load(k_ptr + places)
    v = tl.load(v_ptr + places)
    dk = tl.zeros([BLOCK, D], tl.float32)
    dv = tl.zeros([BLOCK, D], tl.float32)
    below = 0
    if CAUSAL:
        below = first + BLOCK
        dk, dv = over_queries(
            dk, dv, k, v, q_ptr, d_out_ptr, sums_ptr, delta_ptr, block, first, below, scale, STEP // 2, D, True
        )
    dk, dv = over_queries(dk, dv, k, v, q_ptr, d_out_ptr, sums_ptr, delta_ptr, block, below, N, scale, STEP, D, False)
    # d(score) / d(q k) is scale * ln(2), for the scale has the factor log2(e).
    tl.store(dv_ptr + head * D + places, dv.to(dv_ptr.dtype.element_ty))
    tl.store(dk_ptr + head * D + places, (dk * (scale * 0.6931471805599453)).to(dk_ptr.dtype.element_ty))

    q = tl.load(q_ptr + places)
    d_out = tl.load(d_out_ptr + places)
    log_sum = tl.load(sums_ptr + block)
    delta = tl.load(delta_ptr + block)
    dq = tl.zeros([BLOCK, D], tl.float32)
    above = N
    if CAUSAL:
        above = first
        dq = over_keys(
            dq, q, d_out, log_sum, delta, k_ptr, v_ptr, block, first, first + BLOCK, scale, STEP // 2, D, True
        )
    dq = over_keys(dq, q, d_out, log_sum, delta, k_ptr, v_ptr, block, 0, above, scale, STEP, D, False)
    tl.store(dq_ptr + head * D + places, (dq * (scale * 0.6931471805599453)).to(dq_ptr.dtype.element_ty))
