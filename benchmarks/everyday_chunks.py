"""Kernels that users write every day, with several products in a loop: `everyday.py` times them."""

import tilewright as triton
import tilewright.language as tl


@triton.jit
def attention_one_loop(q_ptr, k_ptr, v_ptr, out_ptr, scale, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                       D: tl.constexpr):  # fmt: skip
    # Causal attention by block pointers; all blocks of keys in one loop, the diagonal among them.
    first = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1).to(tl.int64) * N * D
    q_block = tl.make_block_ptr(q_ptr + head, (N, D), (D, 1), (first, 0), (BLOCK_M, D), (1, 0))
    k_block = tl.make_block_ptr(k_ptr + head, (D, N), (1, D), (0, 0), (D, BLOCK_N), (0, 1))
    v_block = tl.make_block_ptr(v_ptr + head, (N, D), (D, 1), (0, 0), (BLOCK_N, D), (1, 0))
    rows = first + tl.arange(0, BLOCK_M)
    q = tl.load(q_block)
    largest = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    out = tl.zeros([BLOCK_M, D], tl.float32)
    for start in range(0, first + BLOCK_M, BLOCK_N):
        k = tl.load(k_block)
        score = tl.dot(q, k) * scale
        score = tl.where(rows[:, None] >= (start + tl.arange(0, BLOCK_N))[None, :], score, -float("inf"))
        larger = tl.maximum(largest, tl.max(score, 1))
        p = tl.exp2(score - larger[:, None])
        shrink = tl.exp2(largest - larger)
        total = total * shrink + tl.sum(p, 1)
        out = out * shrink[:, None]
        v = tl.load(v_block)
        out += tl.dot(p.to(v.dtype), v)
        largest = larger
        k_block = tl.advance(k_block, (0, BLOCK_N))
        v_block = tl.advance(v_block, (BLOCK_N, 0))
    out_block = tl.make_block_ptr(out_ptr + head, (N, D), (D, 1), (first, 0), (BLOCK_M, D), (1, 0))
    tl.store(out_block, (out / total[:, None]).to(out_ptr.dtype.element_ty))


@triton.jit
def prefill_alibi(q_ptr, k_ptr, v_ptr, k_cache_ptr, v_cache_ptr, table_ptr, slopes_ptr, out_ptr, scale, context, length,
                  pages, PAGE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  D: tl.constexpr):  # fmt: skip
    # New tokens see the tokens of the cache, which lie in pages, and each other; scores fall with the distance.
    request, head, heads = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    first = tl.program_id(2) * BLOCK_M
    rows, n, d = first + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, D)
    new = request * length
    places = ((new + rows)[:, None] * heads + head) * D + d[None, :]
    q = tl.load(q_ptr + places, mask=(rows < length)[:, None], other=0.0)
    slope = tl.load(slopes_ptr + head)
    largest = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    out = tl.zeros([BLOCK_M, D], tl.float32)
    for start in range(0, context, BLOCK_N):
        keys = start + n
        page = tl.load(table_ptr + request * pages + keys // PAGE, mask=keys < context, other=0).to(tl.int64)
        cached = ((page * PAGE + keys % PAGE) * heads + head) * D
        k = tl.load(k_cache_ptr + cached[None, :] + d[:, None], mask=(keys < context)[None, :], other=0.0)
        score = tl.dot(q, k) * scale
        score += slope * (keys[None, :] - (context + rows)[:, None]).to(tl.float32)
        score = tl.where((keys < context)[None, :], score, -float("inf"))
        larger = tl.maximum(largest, tl.max(score, 1))
        p = tl.exp2(score - larger[:, None])
        shrink = tl.exp2(largest - larger)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(v_cache_ptr + cached[:, None] + d[None, :], mask=(keys < context)[:, None], other=0.0)
        out = tl.dot(p.to(v.dtype), v, out * shrink[:, None])
        largest = larger
    for start in range(0, tl.minimum(first + BLOCK_M, length), BLOCK_N):
        keys = start + n
        k = tl.load(k_ptr + ((new + keys)[None, :] * heads + head) * D + d[:, None], mask=(keys < length)[None, :],
                    other=0.0)  # fmt: skip
        score = tl.dot(q, k) * scale
        distance = (rows[:, None] - keys[None, :]).to(tl.float32)
        score = tl.where(rows[:, None] >= keys[None, :], score - slope * distance, -float("inf"))
        larger = tl.maximum(largest, tl.max(score, 1))
        p = tl.exp2(score - larger[:, None])
        shrink = tl.exp2(largest - larger)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + ((new + keys)[:, None] * heads + head) * D + d[None, :], mask=(keys < length)[:, None],
                    other=0.0)  # fmt: skip
        out = tl.dot(p.to(v.dtype), v, out * shrink[:, None])
        largest = larger
    tl.store(out_ptr + places, (out / total[:, None]).to(out_ptr.dtype.element_ty), mask=(rows < length)[:, None])


@triton.jit
def delta_states(k_ptr, w_ptr, v_ptr, g_ptr, states_ptr, new_ptr, length, width, CHUNK: tl.constexpr,
                 HALF: tl.constexpr, BLOCK_V: tl.constexpr):  # fmt: skip
    # The gated delta rule, chunk by chunk: what a chunk adds to the state is what the state does not say already.
    # The state has 2 * HALF rows, kept as two tiles; `g` is the sum of the logarithms of the gates within a chunk.
    columns = tl.program_id(0) * BLOCK_V + tl.arange(0, BLOCK_V)
    head = tl.program_id(1)
    low, i = tl.arange(0, HALF), tl.arange(0, CHUNK)
    high = HALF + low
    depth = 2 * HALF
    state_low = tl.zeros([HALF, BLOCK_V], tl.float32)
    state_high = tl.zeros([HALF, BLOCK_V], tl.float32)
    for chunk in range(tl.cdiv(length, CHUNK)):
        rows = chunk * CHUNK + i
        inside = rows < length
        token = head * length + rows
        place = (head * tl.cdiv(length, CHUNK) + chunk) * depth
        tl.store(states_ptr + (place + low)[:, None] * width + columns[None, :], state_low.to(tl.bfloat16))
        tl.store(states_ptr + (place + high)[:, None] * width + columns[None, :], state_high.to(tl.bfloat16))
        w = tl.load(w_ptr + token[:, None] * depth + low[None, :], mask=inside[:, None], other=0.0)
        known = tl.dot(w, state_low.to(w.dtype))
        w = tl.load(w_ptr + token[:, None] * depth + high[None, :], mask=inside[:, None], other=0.0)
        known += tl.dot(w, state_high.to(w.dtype))
        v = tl.load(v_ptr + token[:, None] * width + columns[None, :], mask=inside[:, None], other=0.0)
        new = v - known
        tl.store(new_ptr + token[:, None] * width + columns[None, :], new.to(tl.bfloat16), mask=inside[:, None])
        g_last = tl.load(g_ptr + head * length + tl.minimum(chunk * CHUNK + CHUNK, length) - 1)
        g = tl.load(g_ptr + token, mask=inside, other=0.0)
        new = tl.where(inside[:, None], new * tl.exp(g_last - g)[:, None], 0.0).to(tl.bfloat16)
        state_low *= tl.exp(g_last)
        state_high *= tl.exp(g_last)
        k = tl.load(k_ptr + token[None, :] * depth + low[:, None], mask=inside[None, :], other=0.0)
        state_low += tl.dot(k, new)
        k = tl.load(k_ptr + token[None, :] * depth + high[:, None], mask=inside[None, :], other=0.0)
        state_high += tl.dot(k, new)


@triton.jit
def chunk_outputs(q_ptr, k_ptr, v_ptr, states_ptr, g_ptr, out_ptr, scale, length, width, CHUNK: tl.constexpr,
                  D: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_V: tl.constexpr):  # fmt: skip
    # Linear attention with decay: what a chunk reads from the state before it, and from its own tokens.
    columns = tl.program_id(0) * BLOCK_V + tl.arange(0, BLOCK_V)
    chunk, head = tl.program_id(1), tl.program_id(2)
    rows = chunk * CHUNK + tl.arange(0, CHUNK)
    inside = rows < length
    token = head * length + rows
    place = (head * tl.num_programs(1) + chunk) * D
    out = tl.zeros([CHUNK, BLOCK_V], tl.float32)
    scores = tl.zeros([CHUNK, CHUNK], tl.float32)
    for start in range(0, D, BLOCK_K):
        d = start + tl.arange(0, BLOCK_K)
        q = tl.load(q_ptr + token[:, None] * D + d[None, :], mask=inside[:, None], other=0.0)
        k = tl.load(k_ptr + token[None, :] * D + d[:, None], mask=inside[None, :], other=0.0)
        state = tl.load(states_ptr + (place + d)[:, None] * width + columns[None, :])
        out += tl.dot(q, state)
        scores += tl.dot(q, k)
    g = tl.load(g_ptr + token, mask=inside, other=0.0)
    out = out * tl.exp(g)[:, None]
    scores = scores * tl.exp(g[:, None] - g[None, :])
    scores = tl.where((rows[:, None] >= rows[None, :]) & inside[:, None], scores, 0.0)
    v = tl.load(v_ptr + token[:, None] * width + columns[None, :], mask=inside[:, None], other=0.0)
    out = (out + tl.dot(scores.to(v.dtype), v)) * scale
    tl.store(out_ptr + token[:, None] * width + columns[None, :], out.to(v.dtype), mask=inside[:, None])
