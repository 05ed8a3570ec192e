"""What torch.compile is given by inductor.py: norms, losses, pooling, gathers, quantisation, optimisers, as models have them.

A graph is a function without arguments that compiles and runs something once, forward and, where it trains, backward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

GRAPHS: dict[str, Callable[[], None]] = {}
HALF, SINGLE, BRAIN = torch.float16, torch.float32, torch.bfloat16


def graph(run: Callable[[], None]) -> Callable[[], None]:
    """Adds a graph under the function's name."""
    GRAPHS[run.__name__] = run
    return run


def normal(*shape: int, dtype: torch.dtype = HALF) -> torch.Tensor:
    """Random numbers."""
    return torch.randn(*shape, device="cuda").to(dtype)


def integers(low: int, high: int, shape: tuple[int, ...], dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """Random integers."""
    return torch.randint(low, high, shape, device="cuda", dtype=dtype)


def forward(function: Callable[..., Any], *args: Any) -> None:
    """Compiles a function and runs it."""
    with torch.no_grad():
        torch.compile(function, dynamic=False)(*args)


def both_ways(function: Callable[..., Any], *args: Any) -> None:
    """Compiles a function, runs it, and its derivative."""
    args = [arg.requires_grad_() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg for arg in args]
    result = torch.compile(function, dynamic=False)(*args)
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    torch.autograd.backward(results, [torch.randn_like(one) for one in results])


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
def softmax_2048() -> None:
    both_ways(lambda x: F.softmax(x, -1), normal(16384, 2048))


@graph
def softmax_50257() -> None:
    both_ways(lambda x: F.log_softmax(x.float(), -1), normal(2048, 50257))


@graph
def cross_entropy() -> None:
    both_ways(lambda x, t: F.cross_entropy(x.float(), t), normal(4096, 32000, dtype=BRAIN), integers(0, 32000, (4096,)))


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
def window_partition() -> None:
    forward(lambda x: x.view(64, 8, 7, 8, 7, 128).permute(0, 1, 3, 2, 4, 5).contiguous() + 1, normal(64, 56, 56, 128))


@graph
def unfold() -> None:
    forward(lambda x: F.unfold(x, 3, padding=1), normal(16, 64, 56, 56))


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
def logsumexp() -> None:
    forward(lambda x: torch.logsumexp(x, -1), normal(4096, 32000))


@graph
def cosine() -> None:
    both_ways(lambda x, y: F.cosine_similarity(x, y, -1), normal(16384, 1024), normal(16384, 1024))


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
def causal_bias() -> None:
    forward(lambda x: torch.tril(x) * 2, normal(64, 1024, 1024))


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


@graph
def conv1d_causal() -> None:
    def fn(x, w):
        y = F.pad(x, (3, 0))
        return F.silu(sum(y[..., i : i + 2048] * w[:, i : i + 1] for i in range(4)))

    forward(fn, normal(8, 2048, 2048), normal(2048, 4))


@graph
def ssm_gate() -> None:
    forward(
        lambda x, dt, a: torch.exp(F.softplus(dt)[..., None] * a) * x[..., None],
        normal(4, 1024, 1024),
        normal(4, 1024, 1024),
        normal(1024, 16),
    )


@graph
def complex_layout() -> None:
    forward(lambda x: x.unfold(1, 16, 8).contiguous() * 2, normal(1024, 4096))


@graph
def flip() -> None:
    forward(lambda x: x.flip(-1) + 1, normal(8192, 4096))


@graph
def repeat_kv() -> None:
    forward(lambda x: x[:, :, None].expand(4, 8, 4, 2048, 128).reshape(4, 32, 2048, 128) * 1.0, normal(4, 8, 2048, 128))


@graph
def strided_slice() -> None:
    forward(lambda x: x[:, ::2] + x[:, 1::2], normal(8192, 8192))


@graph
def double_math() -> None:
    forward(lambda x: x.sin() + x.exp(), normal(4096, 2048, dtype=torch.float64))


@graph
def flex_attention_causal() -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 2048, 2048, device="cuda")
    q, k, v = (normal(4, 16, 2048, 64) for _ in range(3))
    both_ways(lambda q, k, v: flex_attention(q, k, v, block_mask=mask), q, k, v)


@graph
def flex_attention_alibi() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    slopes = torch.exp2(-torch.arange(1, 17, device="cuda") / 2)
    q, k, v = (normal(4, 16, 2048, 128, dtype=BRAIN) for _ in range(3))
    forward(lambda q, k, v: flex_attention(q, k, v, lambda s, b, h, i, j: s + slopes[h] * (j - i)), q, k, v)
