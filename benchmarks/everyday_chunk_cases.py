"""The problems of `everyday.py` with several products in a loop: what kernels of `everyday_chunks.py` get."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from everyday_cases import Problem, cdiv, empty, randn

BF16 = torch.bfloat16


def attention_one_loop(heads: int, length: int, depth: int) -> Problem:
    q, k, v = (randn(heads, length, depth) for _ in range(3))
    out = torch.empty_like(q)

    def reference() -> torch.Tensor:
        after = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
        results = torch.empty_like(q, dtype=torch.float64)
        for head in range(heads):
            scores = q[head].double() @ k[head].double().T / math.sqrt(depth)
            results[head] = torch.softmax(scores.masked_fill(after, -math.inf), 1) @ v[head].double()
        return results

    meta = {"BLOCK_M": 128, "BLOCK_N": 64, "D": depth, "num_warps": 4, "num_stages": 3}
    args = (q, k, v, out, math.log2(math.e) / math.sqrt(depth), length)
    work = 2 * heads * length * length * depth
    return Problem((cdiv(length, 128), heads), args, meta, out, reference, work, unit="TFLOP/s")


def prefill_alibi(requests: int, heads: int, context: int, length: int, depth: int) -> Problem:
    page, block = 16, 128
    pages = cdiv(context, page)
    q, k, v = (randn(requests, length, heads, depth) for _ in range(3))
    k_cache, v_cache = (randn(requests * pages, page, heads, depth) for _ in range(2))
    table = torch.randperm(requests * pages, device=q.device).to(torch.int32).reshape(requests, pages)
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1, device=q.device, dtype=torch.float32) / heads)
    out = torch.empty_like(q)
    at, since = (torch.arange(n, device=q.device) for n in (context + length, length))
    distance = (context + since)[:, None] - at[None, :]

    def reference() -> torch.Tensor:
        results = torch.empty_like(q, dtype=torch.float64)
        for i in range(requests):
            keys, values = (
                torch.cat((cache[table[i].long()].reshape(-1, heads, depth)[:context], own[i])).double()
                for cache, own in ((k_cache, k), (v_cache, v))
            )
            for head in range(heads):
                scores = q[i, :, head].double() @ keys[:, head].T / math.sqrt(depth) - slopes[head].double() * distance
                scores.masked_fill_(distance < 0, -math.inf)
                results[i, :, head] = torch.softmax(scores, 1) @ values[:, head]
        return results

    log2e = math.log2(math.e)
    args = (q, k, v, k_cache, v_cache, table, slopes * log2e, out, log2e / math.sqrt(depth), context, length, pages)
    meta = {"PAGE": page, "BLOCK_M": block, "BLOCK_N": 64, "D": depth, "num_warps": 8, "num_stages": 1}
    work = 4 * requests * heads * depth * length * (context + length / 2)
    grid = (requests, heads, cdiv(length, block))
    return Problem(grid, args, meta, out, reference, work, unit="TFLOP/s")


def _gates(heads: int, length: int, chunk: int) -> torch.Tensor:
    """The sums of the logarithms of gates within chunks, [heads, length] in fp32."""
    gates = -randn(heads, length, dtype=torch.float32).abs() * 0.1
    parts = [gates[:, start : start + chunk].cumsum(1) for start in range(0, length, chunk)]
    return torch.cat(parts, 1).contiguous()


def delta_states(heads: int, length: int, width: int) -> Problem:
    chunk, half, block = 64, 64, 32
    depth, chunks = 2 * half, cdiv(length, chunk)
    k, w = (randn(heads, length, depth, dtype=BF16) * 0.05 for _ in range(2))
    v, g = randn(heads, length, width, dtype=BF16), _gates(heads, length, chunk)
    results = empty(heads * (chunks * depth + length) * width, dtype=BF16)
    sizes = (heads * chunks * depth * width, heads * length * width)
    states, new = results.split(sizes)

    def reference() -> torch.Tensor:
        state = torch.zeros(heads, depth, width, dtype=torch.float64, device=k.device)
        befores, news = [], []
        for start in range(0, length, chunk):
            own = slice(start, start + chunk)
            befores.append(state)
            news.append(v[:, own].double() - w[:, own].double() @ state)
            gate = g[:, own].double()
            kept = news[-1] * torch.exp(gate[:, -1:] - gate)[:, :, None]
            state = state * torch.exp(gate[:, -1])[:, None, None] + k[:, own].double().transpose(1, 2) @ kept
        return torch.cat((torch.stack(befores, 1).flatten(), torch.cat(news, 1).flatten()))

    meta = {"CHUNK": chunk, "HALF": half, "BLOCK_V": block, "num_warps": 4, "num_stages": 3}
    args = (k, w, v, g, states, new, length, width)
    work = 4 * heads * length * depth * width
    return Problem((cdiv(width, block), heads), args, meta, results, reference, work, 1e-2, unit="TFLOP/s")


def chunk_outputs(heads: int, length: int, width: int) -> Problem:
    chunk, depth, block = 64, 128, 128
    chunks, scale = cdiv(length, chunk), 1 / math.sqrt(depth)
    q, k, v = (randn(heads, length, n, dtype=BF16) for n in (depth, depth, width))
    states, g = randn(heads, chunks, depth, width, dtype=BF16), _gates(heads, length, chunk)
    out = torch.empty_like(v)

    def reference() -> torch.Tensor:
        parts = []
        for number, start in enumerate(range(0, length, chunk)):
            own = slice(start, start + chunk)
            gate = g[:, own].double()
            scores = q[:, own].double() @ k[:, own].double().transpose(1, 2)
            scores = (scores * torch.exp(gate[:, :, None] - gate[:, None, :])).tril()
            before = (q[:, own].double() @ states[:, number].double()) * torch.exp(gate)[:, :, None]
            parts.append((before + scores @ v[:, own].double()) * scale)
        return torch.cat(parts, 1)

    meta = {"CHUNK": chunk, "D": depth, "BLOCK_K": 64, "BLOCK_V": block, "num_warps": 4, "num_stages": 2}
    args = (q, k, v, states, g, out, scale, length, width)
    work = 2 * heads * length * (depth * width + chunk * depth + chunk * width)
    grid = (cdiv(width, block), chunks, heads)
    return Problem(grid, args, meta, out, reference, work, 1e-2, unit="TFLOP/s")


# A kernel, sizes on a GPU, and sizes for a check on the CPU.
CASES: tuple[tuple[Callable[..., Problem], tuple[int, ...], tuple[int, ...]], ...] = (
    (attention_one_loop, (64, 4096, 64), (2, 256, 64)),
    (prefill_alibi, (4, 16, 2048, 2048, 128), (2, 2, 40, 150, 128)),
    (delta_states, (64, 8192, 128), (2, 150, 64)),
    (chunk_outputs, (64, 8192, 128), (2, 150, 128)),
)
