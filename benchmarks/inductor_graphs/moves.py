"""Pooling, resizing, gathers and scatters, and what changes the order of elements."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .graph import BRAIN, SINGLE, both_ways, forward, graph, integers, normal


@graph
def maxpool() -> None:
    both_ways(lambda x: F.max_pool2d(x, 3, 2, 1), normal(64, 128, 112, 112))


@graph
def avgpool() -> None:
    both_ways(lambda x: F.avg_pool2d(x, 2), normal(64, 256, 56, 56))


@graph
def adaptive_pool() -> None:
    forward(lambda x: F.adaptive_avg_pool2d(x, 1), normal(128, 2048, 7, 7))


@graph
def upsample_nearest() -> None:
    forward(lambda x: F.interpolate(x, scale_factor=2.0, mode="nearest"), normal(16, 128, 128, 128))


@graph
def upsample_bilinear() -> None:
    forward(lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), normal(16, 64, 128, 128))


@graph
def upsample_bicubic() -> None:
    forward(lambda x: F.interpolate(x, scale_factor=2.0, mode="bicubic"), normal(8, 32, 128, 128, dtype=SINGLE))


@graph
def grid_sample() -> None:
    forward(
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        normal(8, 32, 256, 256, dtype=SINGLE),
        torch.rand(8, 256, 256, 2, device="cuda") * 2 - 1,
    )


@graph
def embedding() -> None:
    both_ways(lambda w, i: w[i] * 2, normal(50257, 1024), integers(0, 50257, (16384,)))


@graph
def index_select() -> None:
    forward(lambda x, i: x.index_select(1, i) + 1, normal(4096, 8192), integers(0, 8192, (4096,)))


@graph
def gather() -> None:
    forward(lambda x, i: x.gather(1, i), normal(8192, 4096), integers(0, 4096, (8192, 2048)))


@graph
def scatter_add() -> None:
    forward(
        lambda x, i, y: x.scatter_add(0, i, y),
        normal(8192, 1024, dtype=SINGLE),
        integers(0, 8192, (16384, 1024)),
        normal(16384, 1024, dtype=SINGLE),
    )


@graph
def index_put() -> None:
    forward(
        lambda x, i, y: x.index_put((i,), y, accumulate=True),
        normal(8192, 1024, dtype=SINGLE),
        integers(0, 8192, (16384,)),
        normal(16384, 1024, dtype=SINGLE),
    )


@graph
def index_put_half() -> None:
    def fn(x, i, y):
        return x.index_put((i,), y)

    forward(fn, normal(8192, 1024), torch.randperm(8192, device="cuda")[:4096], normal(4096, 1024))


@graph
def onehot() -> None:
    forward(lambda t: F.one_hot(t, 1000).half(), integers(0, 1000, (16384,)))


@graph
def bucketize() -> None:
    forward(
        lambda x, e: torch.bucketize(x, e), normal(4 << 20, dtype=SINGLE), torch.linspace(-3, 3, 101, device="cuda")
    )


@graph
def moe_route() -> None:
    def fn(x):
        p = F.softmax(x.float(), -1)
        v, i = p.max(-1)
        return v, i, p.sum(0)

    forward(fn, normal(65536, 64, dtype=BRAIN))


@graph
def transpose_add() -> None:
    forward(lambda x, y: x.t() + y, normal(8192, 8192), normal(8192, 8192))


@graph
def permute_4d() -> None:
    forward(lambda x: x.permute(0, 2, 1, 3).contiguous() * 2, normal(8, 2048, 32, 128))


@graph
def nchw_nhwc() -> None:
    forward(lambda x: (x + 1).to(memory_format=torch.channels_last), normal(32, 256, 56, 56))


@graph
def pixel_shuffle() -> None:
    forward(lambda x: F.pixel_shuffle(x, 2) * 1.5, normal(16, 256, 64, 64))


@graph
def cat() -> None:
    forward(lambda x, y, z: torch.cat((x * 2, y, z + 1), 1), normal(8192, 1000), normal(8192, 2000), normal(8192, 3000))


@graph
def pad() -> None:
    forward(lambda x: F.pad(x, (3, 5, 2, 2)) * 2, normal(64, 64, 112, 112))


@graph
def reflect_pad() -> None:
    forward(lambda x: F.pad(x, (3, 3, 3, 3), mode="reflect"), normal(16, 64, 112, 112))


@graph
def roll() -> None:
    forward(lambda x: torch.roll(x, (3, 3), (1, 2)) + 1, normal(64, 56, 56, 128))


@graph
def flip() -> None:
    forward(lambda x: x.flip(-1) + 1, normal(8192, 4096))


@graph
def window_partition() -> None:
    forward(lambda x: x.view(64, 8, 7, 8, 7, 128).permute(0, 1, 3, 2, 4, 5).contiguous() + 1, normal(64, 56, 56, 128))


@graph
def unfold() -> None:
    forward(lambda x: F.unfold(x, 3, padding=1), normal(16, 64, 56, 56))


@graph
def complex_layout() -> None:
    forward(lambda x: x.unfold(1, 16, 8).contiguous() * 2, normal(1024, 4096))


@graph
def repeat_kv() -> None:
    forward(lambda x: x[:, :, None].expand(4, 8, 4, 2048, 128).reshape(4, 32, 2048, 128) * 1.0, normal(4, 8, 2048, 128))


@graph
def strided_slice() -> None:
    forward(lambda x: x[:, ::2] + x[:, 1::2], normal(8192, 8192))
