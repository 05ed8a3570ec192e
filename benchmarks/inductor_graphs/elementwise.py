"""Activations, rotary embeddings, arithmetic of every type, quantisation and optimisers."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .graph import BRAIN, SINGLE, both_ways, forward, graph, integers, normal


@graph
def gelu_bias() -> None:
    both_ways(lambda x, y: F.gelu(x + y, approximate="tanh"), normal(8192, 8192), normal(8192))


@graph
def gelu_erf() -> None:
    both_ways(lambda x: F.gelu(x), normal(8192, 8192, dtype=BRAIN))


@graph
def swiglu() -> None:
    def fn(x):
        a, c = x.chunk(2, -1)
        return F.silu(a) * c

    both_ways(fn, normal(8192, 2 * 8192, dtype=BRAIN))


@graph
def bias_act_drop_add() -> None:
    def fn(x, bb, res):
        return F.dropout(F.relu(x + bb), 0.1, True) + res

    both_ways(fn, normal(8192, 4096), normal(4096), normal(8192, 4096))


@graph
def squeeze_excite() -> None:
    forward(lambda x, s: x * torch.sigmoid(s)[:, :, None, None] + x, normal(64, 256, 56, 56), normal(64, 256))


@graph
def depthwise_bias_cl() -> None:
    forward(
        lambda x, bb: F.hardswish(x + bb[None, :, None, None]),
        normal(64, 256, 56, 56).to(memory_format=torch.channels_last),
        normal(256),
    )


@graph
def rope() -> None:
    def fn(q, cos, sin):
        q1, q2 = q.chunk(2, -1)
        rot = torch.cat((-q2, q1), -1)
        return q * cos + rot * sin

    both_ways(fn, normal(4, 32, 2048, 128, dtype=BRAIN), normal(2048, 128, dtype=BRAIN), normal(2048, 128, dtype=BRAIN))


@graph
def rope_interleaved() -> None:
    def fn(q, cos, sin):
        q = q.reshape(4, 2048, 32, 64, 2)
        a, c = q.unbind(-1)
        return torch.stack((a * cos - c * sin, a * sin + c * cos), -1).flatten(-2)

    both_ways(fn, normal(4, 2048, 32, 128), normal(2048, 1, 64), normal(2048, 1, 64))


@graph
def where_clamp() -> None:
    forward(lambda x, y: torch.where(x > 0, x.clamp(max=3), y * 0.01), normal(8192, 8192), normal(8192, 8192))


@graph
def tanh_exp() -> None:
    forward(lambda x: torch.tanh(x) * torch.exp(-x * x) + torch.sin(x), normal(8192, 8192, dtype=SINGLE))


@graph
def erf_pow() -> None:
    forward(lambda x: torch.erf(x) + x.abs().pow(1.7) + torch.log1p(x.abs()), normal(4096, 8192, dtype=SINGLE))


@graph
def int_ops() -> None:
    forward(lambda x: (x // 7) * 3 + x % 5 - (x >> 2), integers(-10000, 10000, (8192, 4096)))


@graph
def int32_div() -> None:
    forward(
        lambda x, y: torch.div(x, y, rounding_mode="floor") + x % y,
        integers(-10000, 10000, (8192, 4096), torch.int32),
        integers(1, 100, (8192, 4096), torch.int32),
    )


@graph
def bool_ops() -> None:
    forward(lambda x, y: ((x > 0) & (y < 1)) | (x == y), normal(8192, 8192), normal(8192, 8192))


@graph
def double_math() -> None:
    forward(lambda x: x.sin() + x.exp(), normal(4096, 2048, dtype=torch.float64))


@graph
def causal_bias() -> None:
    forward(lambda x: torch.tril(x) * 2, normal(64, 1024, 1024))


@graph
def ssm_gate() -> None:
    forward(
        lambda x, dt, a: torch.exp(F.softplus(dt)[..., None] * a) * x[..., None],
        normal(4, 1024, 1024),
        normal(4, 1024, 1024),
        normal(1024, 16),
    )


@graph
def conv1d_causal() -> None:
    def fn(x, w):
        y = F.pad(x, (3, 0))
        return F.silu(sum(y[..., i : i + 2048] * w[:, i : i + 1] for i in range(4)))

    forward(fn, normal(8, 2048, 2048), normal(2048, 4))


@graph
def quant_row() -> None:
    def fn(x):
        s = x.abs().amax(-1, keepdim=True).float() / 127
        return (x / s).round().clamp(-128, 127).to(torch.int8), s

    forward(fn, normal(8192, 4096))


@graph
def quant_fp8() -> None:
    def fn(x):
        x = x.float()
        s = x.abs().amax() / 448
        return (x / s).to(torch.float8_e4m3fn), s

    forward(fn, normal(8192, 8192, dtype=BRAIN))


@graph
def quant_group() -> None:
    def fn(x):
        g = x.view(8192, 32, 128).float()
        s = g.abs().amax(-1, keepdim=True) / 448
        return (g / s).to(torch.float8_e4m3fn).view(8192, 4096), s

    forward(fn, normal(8192, 4096, dtype=BRAIN))


@graph
def dequant_int4() -> None:
    def fn(w, s):
        lo = (w & 15).to(torch.int8) - 8
        hi = (w >> 4).to(torch.int8) - 8
        return torch.stack((lo, hi), -1).flatten(-2).view(8192, 32, 256).half() * s[:, :, None]

    forward(fn, integers(0, 255, (8192, 4096), torch.uint8), normal(8192, 32))


@graph
def adamw() -> None:
    def fn(p, g, m, v):
        m = m * 0.9 + g * 0.1
        v = v * 0.999 + g * g * 0.001
        return p * 0.999 - 1e-3 * m / (v.sqrt() + 1e-8), m, v

    forward(fn, *[normal(32 << 20, dtype=SINGLE).abs() for _ in range(4)])


@graph
def foreach_adam() -> None:
    ps = [torch.nn.Parameter(normal(1024, 1024 + 8 * i, dtype=SINGLE)) for i in range(8)]
    for p in ps:
        p.grad = torch.randn_like(p)
    opt = torch.optim.AdamW(ps, lr=torch.tensor(1e-3, device="cuda"), foreach=True, capturable=True)
    step = torch.compile(opt.step)
    step()
    step()


@graph
def clip_grad() -> None:
    def fn(*g):
        n = torch.stack([x.float().pow(2).sum() for x in g]).sum().sqrt()
        c = (1.0 / (n + 1e-6)).clamp(max=1.0)
        return [x * c for x in g]

    forward(fn, *[normal(4096, 4096) for _ in range(4)])


@graph
def ema() -> None:
    forward(lambda a, c: torch.lerp(a, c, 0.01), normal(64 << 20, dtype=SINGLE), normal(64 << 20, dtype=SINGLE))
