"""Softmax, losses, sums and extrema over rows, columns and everything; products that torch writes as sums."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .graph import BRAIN, SINGLE, both_ways, forward, graph, integers, normal


@graph
def softmax_2048() -> None:
    both_ways(lambda x: F.softmax(x, -1), normal(16384, 2048))


@graph
def softmax_50257() -> None:
    both_ways(lambda x: F.log_softmax(x.float(), -1), normal(2048, 50257))


@graph
def attn_softmax_mask() -> None:
    def fn(s, m):
        return F.softmax((s * 0.125).masked_fill(m, float("-inf")), -1)

    both_ways(fn, normal(8, 16, 1024, 1024), (torch.ones(1024, 1024, device="cuda").triu(1) > 0))


@graph
def alibi_softmax() -> None:
    def fn(s, sl):
        p = torch.arange(1024, device="cuda")
        bias = -(p[:, None] - p[None]).abs() * sl[:, None, None]
        return F.softmax(s + bias, -1)

    forward(fn, normal(8, 16, 1024, 1024), torch.rand(16, device="cuda").half())


@graph
def logsumexp() -> None:
    forward(lambda x: torch.logsumexp(x, -1), normal(4096, 32000))


@graph
def cross_entropy() -> None:
    both_ways(lambda x, t: F.cross_entropy(x.float(), t), normal(4096, 32000, dtype=BRAIN), integers(0, 32000, (4096,)))


@graph
def kl() -> None:
    both_ways(
        lambda x, y: F.kl_div(F.log_softmax(x, -1), F.softmax(y, -1), reduction="batchmean"),
        normal(4096, 8192),
        normal(4096, 8192),
    )


@graph
def mse() -> None:
    both_ways(lambda x, y: F.mse_loss(x, y), normal(8192, 4096, dtype=SINGLE), normal(8192, 4096, dtype=SINGLE))


@graph
def bce() -> None:
    both_ways(
        lambda x, y: F.binary_cross_entropy_with_logits(x, y),
        normal(8192, 4096, dtype=SINGLE),
        torch.rand(8192, 4096, device="cuda"),
    )


@graph
def smooth_l1_mask() -> None:
    forward(
        lambda x, y, m: (F.smooth_l1_loss(x, y, reduction="none") * m).sum() / m.sum(),
        normal(8192, 4096, dtype=SINGLE),
        normal(8192, 4096, dtype=SINGLE),
        (torch.rand(8192, 4096, device="cuda") > 0.5),
    )


@graph
def cosine() -> None:
    both_ways(lambda x, y: F.cosine_similarity(x, y, -1), normal(16384, 1024), normal(16384, 1024))


@graph
def argmax() -> None:
    forward(lambda x: x.argmax(-1), normal(8192, 32000))


@graph
def argmin_dim0() -> None:
    forward(lambda x: x.argmin(0), normal(8192, 4096, dtype=SINGLE))


@graph
def max_vals() -> None:
    forward(lambda x: torch.max(x, -1), normal(16384, 1000, dtype=SINGLE))


@graph
def amax_all() -> None:
    forward(lambda x: x.abs().amax(), normal(8192, 8192, dtype=BRAIN))


@graph
def sum_all() -> None:
    forward(lambda x: x.sum(), normal(16384, 8192, dtype=SINGLE))


@graph
def sum_dim0() -> None:
    forward(lambda x: x.sum(0), normal(32768, 4096))


@graph
def sum_dim1_3d() -> None:
    forward(lambda x: x.sum(1), normal(64, 1024, 1024))


@graph
def mean_hw() -> None:
    forward(lambda x: x.mean((2, 3)), normal(64, 512, 56, 56))


@graph
def var_mean() -> None:
    forward(lambda x: torch.var_mean(x, -1), normal(16384, 2048))


@graph
def std_dim0() -> None:
    forward(lambda x: x.std(0), normal(16384, 2048, dtype=SINGLE))


@graph
def norm2() -> None:
    forward(lambda x: x / x.norm(dim=-1, keepdim=True), normal(16384, 4096))


@graph
def prod_any() -> None:
    forward(lambda x: ((x > 3).any(-1), x.prod(-1)), normal(16384, 1024, dtype=SINGLE))


@graph
def outer_sum() -> None:
    forward(
        lambda x, y: (x[:, :, None] * y[:, None, :]).sum(1),
        normal(64, 1024, dtype=SINGLE),
        normal(64, 4096, dtype=SINGLE)[:, :1024],
    )


@graph
def small_k_matmul() -> None:
    forward(
        lambda x, y: (x[:, None, :] * y[None]).sum(-1), normal(4096, 64, dtype=SINGLE), normal(512, 64, dtype=SINGLE)
    )


@graph
def matvec() -> None:
    forward(lambda w, x: (w * x).sum(-1), normal(16384, 8192), normal(8192))


@graph
def pairwise() -> None:
    forward(lambda x: ((x[:, None] - x[None]) ** 2).sum(-1).sqrt(), normal(1024, 64, dtype=SINGLE))
