"""Norms over rows, channels and groups."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .graph import BRAIN, both_ways, forward, graph, normal


@graph
def layernorm_8192() -> None:
    both_ways(lambda x, w, bb: F.layer_norm(x, (8192,), w, bb), normal(4096, 8192), normal(8192), normal(8192))


@graph
def layernorm_768() -> None:
    both_ways(
        lambda x, w, bb: F.layer_norm(x, (768,), w, bb),
        normal(16384, 768, dtype=BRAIN),
        normal(768, dtype=BRAIN),
        normal(768, dtype=BRAIN),
    )


@graph
def rmsnorm_4096() -> None:
    def fn(x, w):
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w

    both_ways(fn, normal(8192, 4096, dtype=BRAIN), normal(4096, dtype=BRAIN))


@graph
def residual_norm() -> None:
    def fn(x, res, w):
        y = x + res
        z = y.float()
        return (z * torch.rsqrt(z.pow(2).mean(-1, keepdim=True) + 1e-6) * w.float()).to(x.dtype), y

    forward(fn, normal(8192, 5120, dtype=BRAIN), normal(8192, 5120, dtype=BRAIN), normal(5120, dtype=BRAIN))


@graph
def two_layer_norms() -> None:
    def fn(x, w1, w2):
        return F.layer_norm(F.layer_norm(x, (1024,), w1), (1024,), w2)

    forward(fn, normal(32768, 1024), normal(1024), normal(1024))


@graph
def batchnorm() -> None:
    def fn(x, w, bb):
        return F.relu(F.batch_norm(x, None, None, w, bb, True))

    both_ways(fn, normal(64, 256, 56, 56), normal(256), normal(256))


@graph
def groupnorm() -> None:
    both_ways(lambda x, w, bb: F.silu(F.group_norm(x, 32, w, bb)), normal(16, 512, 64, 64), normal(512), normal(512))


@graph
def groupnorm_cl() -> None:
    both_ways(
        lambda x, w, bb: F.silu(F.group_norm(x, 32, w, bb)),
        normal(16, 512, 64, 64).to(memory_format=torch.channels_last),
        normal(512),
        normal(512),
    )


@graph
def instance_norm() -> None:
    forward(lambda x: F.instance_norm(x), normal(16, 256, 128, 128))
