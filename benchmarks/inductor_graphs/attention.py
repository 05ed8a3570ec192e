"""torch's templates of attention, with masks and biases of the user's."""

from __future__ import annotations

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from .graph import BRAIN, both_ways, forward, graph, normal


@graph
def flex_attention_causal() -> None:
    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 2048, 2048, device="cuda")
    q, k, v = (normal(4, 16, 2048, 64) for _ in range(3))
    both_ways(lambda q, k, v: flex_attention(q, k, v, block_mask=mask), q, k, v)


@graph
def flex_attention_alibi() -> None:
    slopes = torch.exp2(-torch.arange(1, 17, device="cuda") / 2)
    q, k, v = (normal(4, 16, 2048, 128, dtype=BRAIN) for _ in range(3))
    forward(lambda q, k, v: flex_attention(q, k, v, lambda s, b, h, i, j: s + slopes[h] * (j - i)), q, k, v)
