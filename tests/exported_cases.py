"""What the samples' exported kernels are given in a C++ program, and what they must leave: one entry per golden.

Numbers are drawn from a generator that is seeded by the golden's name. Sides are odd where the signature lets them be.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from golden_cases import GOLDEN_CASES, GoldenCase

Grid = tuple[int, int, int]
Number = np.dtype[Any] | type


@dataclass(frozen=True)
class Launch:
    """One launch of an exported kernel.

    Attributes:
      golden: the translation.
      arguments: arrays and numbers, in the order of the C++ function's parameters.
      grid: programs per axis.
      expected: by parameter, what the array holds afterwards, in float64; NaN where nothing may be written.
      tolerance: of the difference, relative to numbers above 1.
      offset: bytes by which every array starts behind an aligned address.
    """

    golden: GoldenCase
    arguments: tuple[np.ndarray | int | float, ...]
    grid: Grid
    expected: dict[int, np.ndarray] = field(default_factory=dict)
    tolerance: float = 1e-5
    offset: int = 0

    @property
    def name(self) -> str:
        """The name under which the kernel is exported: one of its own per golden."""
        return f"{self.golden.kernel}_{self.golden.configuration}"

    def check(self, index: int, found: np.ndarray) -> None:
        """Compares the array that a launch left."""
        expected, values = self.expected[index], found.astype(np.float64)
        untouched = np.isnan(expected)
        assert np.isnan(values[untouched]).all(), f"{self.name}: parameter {index} was written where nothing belongs"
        difference = np.abs(values - expected)[~untouched] / np.maximum(np.abs(expected[~untouched]), 1.0)
        assert difference.max() <= self.tolerance, f"{self.name}: parameter {index} is off by {difference.max():.1e}"


def cdiv(x: int, y: int) -> int:
    return -(-x // y)


def poison(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """An array that nobody has written."""
    return np.full(shape, np.nan).astype(dtype)


def padded(x: np.ndarray, columns: int) -> np.ndarray:
    """The matrix in rows of `columns` elements, with NaN behind its own."""
    rows = np.full((*x.shape[:-1], columns), np.nan, np.float64).astype(x.dtype)
    rows[..., : x.shape[-1]] = x
    return rows


def vector_add(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    aligned = golden.configuration == "fp32"
    dtype, block, n = (np.float32, 1024, 98_433) if aligned else (ml_dtypes.bfloat16, 512, 5_001)
    x, y = rng.standard_normal((2, n)).astype(dtype)
    expected = x.astype(np.float64) + y.astype(np.float64)
    arguments = (x, y, poison(n, dtype=dtype), n)
    return Launch(
        golden, arguments, (cdiv(n, block), 1, 1), {2: expected}, 1e-6 if aligned else 1e-2, 0 if aligned else 6
    )


def softmax(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    rows, columns, stride, dtype = {
        "fp32": (37, 4000, 4016, np.float32),
        "odd": (37, 781, 783, np.float32),
        "fp16_wide": (32, 32_000, 32_032, np.float16),
    }[golden.configuration]
    x = (rng.standard_normal((rows, columns)) * 4).astype(dtype)
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True).astype(np.float64))
    expected = padded(powers / powers.sum(axis=1, keepdims=True), stride)
    arguments = (poison(rows, stride, dtype=dtype), padded(x, stride), stride, stride, rows, columns)
    return Launch(golden, arguments, (16, 1, 1), {0: expected}, 1e-6 if dtype is np.float32 else 1e-3)


def layer_norm_fwd(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    rows, columns, eps = 48, 16_384, 1e-5
    x = rng.standard_normal((rows, columns)).astype(np.float16)
    w, b = rng.standard_normal((2, columns)).astype(np.float16)
    x64 = x.astype(np.float64)
    mean, rstd = x64.mean(axis=1), 1 / np.sqrt(x64.var(axis=1) + eps)
    y = (x64 - mean[:, None]) * rstd[:, None] * w.astype(np.float64) + b.astype(np.float64)
    arguments = (x, poison(rows, columns, dtype=np.float16), w, b, poison(rows), poison(rows), rows, eps)
    return Launch(golden, arguments, (rows, 1, 1), {1: y, 4: mean, 5: rstd}, 2e-3)


def layer_norm_bwd_dx(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    rows, columns, groups, eps = 48, 8192, 13, 1e-5
    x, dy = rng.standard_normal((2, rows, columns)).astype(np.float16)
    w = rng.standard_normal(columns).astype(np.float16)
    x64, dy64 = x.astype(np.float64), dy.astype(np.float64)
    mean, rstd = x64.mean(axis=1).astype(np.float32), (1 / np.sqrt(x64.var(axis=1) + eps)).astype(np.float32)
    xhat, g = (x64 - mean[:, None]) * rstd[:, None], dy64 * w.astype(np.float64)
    dx = (g - xhat * (g * xhat).mean(axis=1, keepdims=True) - g.mean(axis=1, keepdims=True)) * rstd[:, None]
    dw, db = (np.stack([part[group::groups].sum(axis=0) for group in range(groups)]) for part in (dy64 * xhat, dy64))
    half, single = poison(rows, columns, dtype=np.float16), (poison(groups, columns), poison(groups, columns))
    arguments = (half, dy, *single, x, w, mean, rstd, rows)
    return Launch(golden, arguments, (groups, 1, 1), {0: dx, 2: dw, 3: db}, 2e-3)


def layer_norm_bwd_dwdb(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    groups, columns = 29, 1040
    dw, db = rng.standard_normal((2, groups, columns)).astype(np.float32)
    expected = {2: dw.astype(np.float64).sum(axis=0), 3: db.astype(np.float64).sum(axis=0)}
    arguments = (dw, db, poison(columns), poison(columns), groups, columns)
    return Launch(golden, arguments, (cdiv(columns, 128), 1, 1), expected)


def rms_norm(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    rows, columns, stride, eps = 19, 1000, 1003, 1e-6
    x, w = rng.standard_normal((rows, columns)).astype(np.float16), rng.standard_normal(columns).astype(np.float16)
    x64 = x.astype(np.float64)
    y = x64 / np.sqrt((x64**2).mean(axis=1, keepdims=True) + eps) * w.astype(np.float64)
    arguments = (padded(x, stride), w, poison(rows, stride, dtype=np.float16), stride, columns, eps)
    return Launch(golden, arguments, (rows, 1, 1), {2: padded(y, stride)}, 2e-3)


def cross_entropy(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    rows, classes, stride = 21, 3001, 3005
    logits = (rng.standard_normal((rows, classes)) * 3).astype(np.float32)
    labels = rng.integers(0, classes, rows, dtype=np.int32)
    x, each = logits.astype(np.float64), np.arange(rows)
    logsumexp = np.log(np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1)) + x.max(axis=1)
    grad = np.exp(x - logsumexp[:, None])
    grad[each, labels] -= 1
    arguments = (padded(logits, stride), labels, poison(rows), poison(rows, stride), stride, classes)
    return Launch(golden, arguments, (rows, 1, 1), {2: logsumexp - x[each, labels], 3: padded(grad, stride)})


def rope(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    positions, heads, width = 29, 13, 128
    x = rng.standard_normal((positions, heads, width)).astype(np.float32)
    angles = np.arange(positions)[:, None] / 10000 ** (np.arange(width // 2) / (width // 2))
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    first, second = x[..., : width // 2].astype(np.float64), x[..., width // 2 :].astype(np.float64)
    c, s = cos[:, None, :].astype(np.float64), sin[:, None, :].astype(np.float64)
    expected = np.concatenate([first * c - second * s, second * c + first * s], axis=2)
    return Launch(golden, (x, cos, sin, poison(*x.shape), heads), (positions, cdiv(heads, 4), 1), {3: expected})


def row_reductions(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    rows, columns = 50, 333
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    expected = {1: x.astype(np.float64).sum(axis=1), 2: x.max(axis=1).astype(np.float64), 3: x.argmax(axis=1) * 1.0}
    arguments = (x, poison(rows), poison(rows), np.full(rows, -1, np.int32), rows, columns)
    return Launch(golden, arguments, (cdiv(rows, 4), 1, 1), expected)


def product(rng: np.random.Generator, m: int, n: int, k: int, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matrices [m, k] and [k, n], and their product in float64."""
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    return a, b, a.astype(np.float64) @ b.astype(np.float64)


def matmul(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    odd = golden.configuration == "fp16_unaligned"
    m, n, k = (197, 151, 183) if odd else (720, 656, 208)
    a, b, c = product(rng, m, n, k, np.float16)
    if golden.configuration in ("fp16_activation", "fp16_small"):
        c = np.where(c >= 0, c, 0.01 * c)
    rows, columns = 128, 128 if golden.configuration in ("fp16_activation", "fp16_ampere") else 256
    if golden.configuration == "fp16_small":
        rows = columns = 64
    strides = (k + 3, n + 5, n + 1) if odd else (k + 16, n + 32, n + 48)
    wide = [padded(x, stride) for x, stride in zip((a, b, c), strides, strict=True)]
    arguments = (*wide[:2], poison(m, strides[2], dtype=np.float16), m, n, k, *strides)
    return Launch(golden, arguments, (cdiv(m, rows) * cdiv(n, columns), 1, 1), {2: wide[2]}, 1e-3)


def matmul_block_ptr(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    m, n, k = 400, 336, 208
    a, b, c = product(rng, m, n, k, ml_dtypes.bfloat16)
    arguments = (a, np.ascontiguousarray(b.T), poison(m, n, dtype=ml_dtypes.bfloat16), m, n, k, k, k, n)
    return Launch(golden, arguments, (cdiv(m, 128) * cdiv(n, 128), 1, 1), {2: c}, 1e-2)


def described(matrix: np.ndarray) -> tuple[np.ndarray | int, ...]:
    """A matrix as the parameters of a tensor descriptor: address, sides, stride of the rows."""
    return (matrix, *matrix.shape, matrix.shape[1])


def matmul_descriptor(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    m, n, k = 400, 336, 136
    a, b, c = product(rng, m, n, k, np.float16)
    arguments = (*described(a), *described(np.ascontiguousarray(b.T)), *described(poison(m, n, dtype=np.float16)))
    return Launch(golden, arguments, (cdiv(m, 128) * cdiv(n, 256), 1, 1), {8: c}, 1e-3)


def matmul_persistent(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    m, n, k = 3200, 2320, 208  # more tiles than programs
    a, b, c = product(rng, m, n, k, np.float16)
    arguments = (a, np.ascontiguousarray(b.T), poison(m, n, dtype=np.float16), m, n, k)
    return Launch(golden, arguments, (132, 1, 1), {2: c}, 1e-3)


def batched_matmul(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    batches, m, n, k = 5, 70, 52, 84
    a, b = (rng.standard_normal((batches, *sides)).astype(np.float32) for sides in ((m, k), (k, n)))
    c = padded(a.astype(np.float64) @ b.astype(np.float64), 64)
    arguments = (padded(a, 96), padded(b, 64), poison(batches, m, 64), m, n, k, m * 96, 96, k * 64, 64, m * 64, 64)
    return Launch(golden, arguments, (cdiv(m, 64), cdiv(n, 64), batches), {2: c}, 5e-2)


def grouped_gemm(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    sizes = [[64, 48, 96], [130, 72, 40], [0, 16, 200], [100, 104, 80], [16, 16, 200]]
    products = [product(rng, *size, np.float16) for size in sizes]
    a, b, c = (np.concatenate([one[side].ravel() for one in products]) for side in range(3))
    counts = np.array([[m * k, k * n, m * n] for m, n, k in sizes], np.int64)
    starts = np.concatenate([np.zeros((1, 3), np.int64), np.cumsum(counts, axis=0)[:-1]])
    arguments = (a, b, poison(c.size, dtype=np.float16), np.array(sizes, np.int32), starts, len(sizes))
    return Launch(golden, arguments, (7, 1, 1), {2: c}, 1e-3)


def split_k_matmul(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    m, n, k = 11, 144, 1008
    a, b, c = product(rng, m, n, k, np.float16)
    return Launch(golden, (a, b, np.zeros((m, n), np.float32), m, n, k), (cdiv(n, 64), 4, 1), {2: c}, 1e-4)


def int4_matmul(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    few = golden.configuration == "fp16_few_rows"
    m, n, k, group, rows, columns = (16, 400, 320, 64, 16, 128) if few else (208, 400, 320, 64, 64, 64)
    weights = rng.integers(-8, 8, (k, n))
    scales = rng.uniform(0.05, 0.2, (k // group, n)).astype(np.float16)
    fields = (weights + 8).astype(np.uint32).reshape(k // 8, 8, n)
    packed = np.bitwise_or.reduce(fields << np.arange(0, 32, 4, dtype=np.uint32)[:, None], axis=1).view(np.int32)
    a = rng.standard_normal((m, k)).astype(np.float16)
    b = (weights.astype(np.float16) * np.repeat(scales, group, axis=0)).astype(np.float64)  # rounded, as in the kernel
    arguments = (a, packed, scales, poison(m, n, dtype=np.float16), m, n, k)
    return Launch(golden, arguments, (cdiv(m, rows), cdiv(n, columns), 1), {3: a.astype(np.float64) @ b}, 1e-3)


def fp8_matmul(golden: GoldenCase, rng: np.random.Generator) -> Launch:
    m, n, k = 400, 336, 208
    a, b = ((rng.standard_normal((side, k)) * 8).astype(ml_dtypes.float8_e4m3fn) for side in (m, n))
    scales = [rng.uniform(0.01, 0.1, side).astype(np.float32) for side in (m, n)]
    exact = [x.astype(np.float64) * scale[:, None] for x, scale in zip((a, b), scales, strict=True)]
    out = poison(m, n, dtype=ml_dtypes.bfloat16)
    arguments = (*described(a), *described(b), *described(out), *scales, m, n, k)
    return Launch(golden, arguments, (cdiv(m, 128), cdiv(n, 128), 1), {8: exact[0] @ exact[1].T}, 2e-2)


CASES: dict[str, Callable[[GoldenCase, np.random.Generator], Launch]] = {
    "add_kernel": vector_add,
    "softmax_kernel": softmax,
    "layer_norm_fwd": layer_norm_fwd,
    "layer_norm_bwd_dx": layer_norm_bwd_dx,
    "layer_norm_bwd_dwdb": layer_norm_bwd_dwdb,
    "rms_norm_kernel": rms_norm,
    "cross_entropy_kernel": cross_entropy,
    "rope_kernel": rope,
    "row_reductions_kernel": row_reductions,
    "matmul_kernel": matmul,
    "matmul_block_ptr_kernel": matmul_block_ptr,
    "matmul_descriptor_kernel": matmul_descriptor,
    "matmul_persistent_kernel": matmul_persistent,
    "batched_matmul_kernel": batched_matmul,
    "grouped_gemm_kernel": grouped_gemm,
    "grouped_gemm_descriptor_kernel": grouped_gemm,
    "split_k_matmul_kernel": split_k_matmul,
    "int4_matmul_kernel": int4_matmul,
    "fp8_matmul_kernel": fp8_matmul,
}


def launches() -> list[Launch]:
    """A launch of every golden."""
    return [
        CASES[golden.kernel](golden, np.random.default_rng(zlib.crc32(golden.path.encode()))) for golden in GOLDEN_CASES
    ]
