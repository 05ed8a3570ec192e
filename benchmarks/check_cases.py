"""The cases of `device_matmul_check.py`: arguments, the result in float64, tolerance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import check_kernels as kernels
import ml_dtypes
import numpy as np
import tilewright.language as tl

NUMPY = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32, "fp64": np.float64, "i8": np.int8,
         "i32": np.int32, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}  # fmt: skip
LANGUAGE = {"fp16": tl.float16, "bf16": tl.bfloat16, "fp32": tl.float32, "fp64": tl.float64, "i32": tl.int32}
ROUNDING = {"fp16": 2.0**-11, "bf16": 2.0**-8, "fp32": 2.0**-24, "fp64": 2.0**-53, "i32": 0.0}
# Relative rounding of a product's operands: TF32 keeps 11 bits, bfloat16 in three parts 16, in six 24; 8-bit floats are
# exact, but Hopper adds their products with few bits; all tensor cores truncate sums.
PRECISION = {"tf32": 2.0**-11, "tf32x3": 2.0**-18, "bf16x3": 2.0**-15, "bf16x6": 2.0**-18, "ieee": 2.0**-20}
OPERANDS = {"fp16": 2.0**-17, "bf16": 2.0**-17, "fp64": 2.0**-48, "i8": 0.0, "e4m3": 2.0**-9, "e5m2": 2.0**-9}


@dataclass
class Problem:
    """A launch: `arguments` by name (arrays that are results are in `expected`), options and what must come out.

    `tolerance` is the allowed norm of the difference over the norm of the reference; 0 asks for equality.
    """

    kernel: Any
    grid: tuple[int, ...]
    arguments: dict[str, Any]
    expected: dict[str, np.ndarray]
    tolerance: float
    options: dict[str, Any] = field(default_factory=dict)
    start: dict[str, float] = field(default_factory=dict)
    offset: int = 0


@dataclass(frozen=True)
class Case:
    """A problem that is built when its turn comes."""

    name: str
    build: Callable[[], Problem]


def normal(*shape: int, dtype: str) -> np.ndarray:
    """Random numbers as the type can hold them: normal, or all values of -128 to 127."""
    generator = np.random.default_rng(sum(shape))
    if dtype == "i8":
        return generator.integers(-128, 128, shape).astype(np.int8)
    return generator.standard_normal(shape).astype(np.float32).astype(NUMPY[dtype])


def blank(*shape: int, dtype: str) -> np.ndarray:
    """A result before the launch; the runner poisons it."""
    return np.zeros(shape, NUMPY[dtype])


def wide(array: np.ndarray) -> np.ndarray:
    """In float64."""
    return array.astype(np.float32).astype(np.float64) if array.dtype.itemsize < 4 else array.astype(np.float64)


def allowed(dtype: str, out: str, precision: str | None = None) -> float:
    """The tolerance of a product of operands of a type."""
    operands = PRECISION[precision or "tf32"] if dtype == "fp32" else OPERANDS[dtype]
    return 0.0 if out == "i32" else 2 * (operands + ROUNDING[out])


def default_out(dtype: str) -> str:
    """The result type of a dot of operands of a type."""
    return {"fp64": "fp64", "i8": "i32"}.get(dtype, "fp32")


def one_dot(m: int, n: int, k: int, dtype: str, warps: int, out: str = "", precision: str | None = None) -> Problem:
    """A single dot; operands are whole tiles."""
    out = out or default_out(dtype)
    a, b = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype)
    arguments = dict(
        a_ptr=a, b_ptr=b, c_ptr=blank(m, n, dtype=out), M=m, N=n, K=k, PRECISION=precision, OUT=LANGUAGE[out]
    )
    tolerance = allowed(dtype, out, precision) * (8 if out == "fp16" else 1)  # additions in half precision
    return Problem(kernels.one_dot, (1,), arguments, {"c_ptr": wide(a) @ wide(b)}, tolerance, {"num_warps": warps})


def transposed(m: int, n: int, k: int, dtype: str, warps: int, precision: str | None = None) -> Problem:
    """Transposes on all sides."""
    a, b, out = normal(k, m, dtype=dtype), normal(n, k, dtype=dtype), default_out(dtype)
    arguments = dict(a_ptr=a, b_ptr=b, c_ptr=blank(n, m, dtype=out), M=m, N=n, K=k, PRECISION=precision)
    expected, tolerance = (wide(a).T @ wide(b).T).T, allowed(dtype, out, precision)
    return Problem(kernels.transposed_dot, (1,), arguments, {"c_ptr": expected}, tolerance, {"num_warps": warps})


def batched(b: int, m: int, n: int, k: int, dtype: str, warps: int) -> Problem:
    """Tiles of rank 3."""
    left, right, out = normal(b, m, k, dtype=dtype), normal(b, k, n, dtype=dtype), default_out(dtype)
    arguments = dict(a_ptr=left, b_ptr=right, c_ptr=blank(b, m, n, dtype=out), B=b, M=m, N=n, K=k)
    expected = {"c_ptr": wide(left) @ wide(right)}
    return Problem(kernels.batched_dot, (1,), arguments, expected, allowed(dtype, out), {"num_warps": warps})


def gemm(
    shape: tuple[int, int, int], blocks: tuple[int, int, int], dtype: str, layout: str = "NN", warps: int = 4,
    stages: int = 3, wrap: bool = True, out: str = "", precision: str | None = None, offset: int = 0, other: str = "",
) -> Problem:  # fmt: skip
    """The tutorials' loop; `layout` says which operand lies by columns, `offset` elements spoil the alignment."""
    m, n, k = shape
    a = normal(m, k, dtype=dtype) if layout[0] == "N" else normal(k, m, dtype=dtype).T
    b = normal(k, n, dtype=other or dtype) if layout[1] == "N" else normal(n, k, dtype=other or dtype).T
    acc, out = default_out(dtype), out or ("i32" if dtype == "i8" else dtype if dtype in LANGUAGE else "fp16")
    steps = [stride // array.itemsize for array in (a, b) for stride in array.strides]
    names = ("stride_am", "stride_ak", "stride_bk", "stride_bn")
    arguments = dict(
        a_ptr=a, b_ptr=b, c_ptr=blank(m, n, dtype=out), M=m, N=n, K=k, **dict(zip(names, steps, strict=True))
    )
    arguments |= dict(stride_cm=n, stride_cn=1, BLOCK_M=blocks[0], BLOCK_N=blocks[1], BLOCK_K=blocks[2], WRAP=wrap,
                      PRECISION=precision, ACC=LANGUAGE[acc])  # fmt: skip
    grid = (-(-m // blocks[0]), -(-n // blocks[1]))
    options = {"num_warps": warps, "num_stages": stages}
    tolerance = allowed(dtype, out, precision)
    return Problem(kernels.gemm, grid, arguments, {"c_ptr": wide(a) @ wide(b)}, tolerance, options, offset=offset)


def plain(kernel: Any, shape: tuple[int, int, int], blocks: tuple[int, int, int], dtype: str, grid: tuple[int, ...],
          out: str = "fp32", **meta: Any) -> Problem:  # fmt: skip
    """A kernel of the usual arguments with operands by rows; `meta` has constants and options."""
    m, n, k = shape
    a, b = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype)
    options = {name: meta.pop(name) for name in ("num_warps", "num_stages") if name in meta}
    arguments = dict(a_ptr=a, b_ptr=b, c_ptr=blank(m, n, dtype=out), M=m, N=n, K=k)
    arguments |= dict(BLOCK_M=blocks[0], BLOCK_N=blocks[1], BLOCK_K=blocks[2], **meta)
    return Problem(kernel, grid, arguments, {"c_ptr": wide(a) @ wide(b)}, allowed(dtype, out), options)


def split_k(shape: tuple[int, int, int], blocks: tuple[int, int, int], dtype: str, split: int) -> Problem:
    """Sums over programs in memory, which starts at zero."""
    problem = plain(kernels.split_k, shape, blocks, dtype, (-(-shape[0] // blocks[0]), split), SPLIT=split)
    problem.start["c_ptr"] = 0.0
    return problem


def epilogue(shape: tuple[int, int, int], blocks: tuple[int, int, int], dtype: str, warps: int) -> Problem:
    """Computed operands, and more than a store behind the loop."""
    problem = plain(kernels.epilogue, shape, blocks, dtype, (-(-shape[0] // blocks[0]),), num_warps=warps)
    arguments, (m, n, _) = problem.arguments, shape
    bias = normal(n, dtype="fp32")
    arguments |= dict(bias_ptr=bias, row_ptr=blank(m, dtype="fp32"), alpha=0.25)
    c = np.minimum(np.maximum(wide(arguments["a_ptr"]), 0) @ wide(arguments["b_ptr"]) * 0.25 + bias, 4.0)
    problem.expected = {"c_ptr": c, "row_ptr": c.sum(axis=1)}
    problem.tolerance *= 4  # sums of both signs cancel
    return problem


def attention(length: int, d: int, blocks: tuple[int, int], dtype: str, warps: int) -> Problem:
    """Chained dots; the weights are rounded to the type between them."""
    q, k, v = (normal(length + i, d, dtype=dtype)[:length].copy() for i in range(3))
    scores = wide(q) @ wide(k).T * d**-0.5
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = weights @ wide(v) / weights.sum(axis=1, keepdims=True)
    arguments = dict(q_ptr=q, k_ptr=k, v_ptr=v, out_ptr=blank(length, d, dtype=dtype), N_CTX=length, scale=d**-0.5)
    arguments |= dict(BLOCK_M=blocks[0], BLOCK_N=blocks[1], D=d)
    grid = (-(-length // blocks[0]),)
    return Problem(kernels.chained, grid, arguments, {"out_ptr": expected}, 3 * ROUNDING[dtype], {"num_warps": warps})


def by_descriptors(
    shape: tuple[int, int, int], blocks: tuple[int, int, int], dtype: str, turned: bool, stages: int
) -> Problem:
    """Loads and stores by descriptors made in the kernel."""
    grid = (-(-shape[0] // blocks[0]), -(-shape[1] // blocks[1]))
    out = dtype if dtype in LANGUAGE else "fp16"
    problem = plain(kernels.by_descriptors, shape, blocks, dtype, grid, out, TURNED=turned, num_stages=stages)
    if turned:
        problem.arguments["b_ptr"] = np.ascontiguousarray(problem.arguments["b_ptr"].T)
    return problem


def gated(shape: tuple[int, int, int], blocks: tuple[int, int, int], dtype: str, warps: int) -> Problem:
    """Two accumulators, a while loop, a condition."""
    (_, n, k), grid = shape, (-(-shape[0] // blocks[0]), -(-shape[1] // blocks[1]))
    problem = plain(kernels.gated, shape, blocks, dtype, grid, num_warps=warps)
    d = normal(k, n, dtype=dtype)[::-1].copy()
    problem.arguments["d_ptr"] = d
    product, other = problem.expected["c_ptr"], wide(problem.arguments["a_ptr"]) @ wide(d)
    even = (np.arange(n) // blocks[1] % 2 == 0)[None, :]
    problem.expected = {"c_ptr": np.where(even, product * other, product)}
    problem.tolerance *= 4
    return problem


def dequantised(m: int, n: int, k: int, block_n: int, block_k: int, dtype: str) -> Problem:
    """8-bit weights as the other operand's type."""
    a, b, scale = normal(m, k, dtype=dtype), normal(k, n, dtype="i8"), np.abs(normal(n, dtype="fp32"))
    arguments = dict(a_ptr=a, b_ptr=b, scale_ptr=scale, c_ptr=blank(m, n, dtype="fp32"), N=n, K=k)
    arguments |= dict(BLOCK_M=m, BLOCK_N=block_n, BLOCK_K=block_k)
    expected = {"c_ptr": wide(a) @ wide(b) * scale}
    return Problem(kernels.dequantised, (n // block_n,), arguments, expected, allowed(dtype, "fp32"))


def all_cases(large: bool) -> Iterator[Case]:
    """Every case, in a fixed order; `large` sizes are for a GPU."""
    yield from _single_dots(large)
    yield from _loops(large)
    yield from _forms(large)


def _case(what: str, function: Callable[..., Problem], *args: Any, **kwargs: Any) -> Case:
    flat = [f"{'x'.join(map(str, arg))}" if isinstance(arg, tuple) else str(arg) for arg in args]
    return Case(" ".join([what, *flat, *(f"{k}={v}" for k, v in kwargs.items())]), partial(function, *args, **kwargs))


def _single_dots(large: bool) -> Iterator[Case]:
    sizes = [(16, 16, 16), (16, 8, 32), (32, 32, 32), (64, 16, 64), (16, 64, 32)]
    sizes += [(64, 64, 64), (128, 64, 32), (64, 128, 128), (128, 256, 64), (256, 128, 32)] if large else []
    for size in sizes:
        for dtype in ("fp16", "bf16"):
            for warps in (1, 4, 8) if large else (1, 4):
                yield _case("one dot", one_dot, *size, dtype, warps)
    for dtype in ("fp32", "fp64", "i8", "e4m3", "e5m2"):
        for size in [s for s in sizes if s[2] >= 32][: None if large else 2]:
            yield _case("one dot", one_dot, *size, dtype, 4)
    for precision in ("tf32", "tf32x3", "bf16x3", "bf16x6", "ieee"):
        for size in sizes[2:3] + ([(64, 64, 64)] if large else []):
            yield _case("one dot", one_dot, *size, "fp32", 4, precision=precision)
    yield from _short_sides(large)
    for size in sizes[:3] + ([(128, 128, 64)] if large else []):
        yield _case("one dot", one_dot, *size, "fp16", 4, out="fp16")
        for dtype in ("fp16", "fp32", "i8") if size[2] >= 32 else ("fp16",):
            yield _case("transposed", transposed, *size, dtype, 4)
    for batch, *size in ((2, 16, 16, 16), (4, 32, 16, 32), *(((4, 64, 64, 32),) if large else ())):
        for dtype in ("fp16", "fp32") if not large else ("fp16", "bf16", "fp32", "i8"):
            if dtype != "i8" or size[2] >= 32:
                yield _case("batched", batched, batch, *size, dtype, 4)


def _short_sides(large: bool) -> Iterator[Case]:
    """Sides below those of the instructions, and sides that are no powers of two."""
    for size in (
        (1, 1, 1),
        (1, 16, 16),
        (2, 8, 32),
        (4, 2, 64),
        (8, 1, 16),
        (16, 4, 8),
        (1, 32, 32),
        (32, 1, 32),
        (3, 5, 20),
    ):
        for dtype in ("fp16", "fp32", "fp64", "i8", "e4m3") if large or size[0] < 5 else ("fp16", "fp64"):
            yield _case("one dot", one_dot, *size, dtype, 1 if size[0] == 2 else 4)
    for dtype in ("fp16", "fp32", "fp64", "i8"):
        yield _case("one dot", one_dot, 48, 24, 40, dtype, 4)
        yield _case("transposed", transposed, 8, 4, 24, dtype, 4)
        yield _case("batched", batched, 3, 5, 2, 12, dtype, 2)
    for precision in ("tf32x3", "bf16x3", "bf16x6"):
        for size in ((4, 1, 4), (24, 2, 20), (128, 64, 32) if large else (16, 8, 16)):
            yield _case("one dot", one_dot, *size, "fp32", 4, precision=precision)
            yield _case("transposed", transposed, *size, "fp32", 4, precision=precision)


def _loops(large: bool) -> Iterator[Case]:
    shape, odd, blocks = ((512, 384, 320), (333, 221, 187), (128, 128, 64)) if large else (
        (64, 64, 96), (37, 29, 45), (32, 32, 32))  # fmt: skip
    for dtype in ("fp16", "bf16", "fp32", "i8", "e4m3", "e5m2", "fp64"):
        size = (64, 64, 32) if large and dtype == "fp64" else blocks
        for layout in ("NN", "NT", "TN", "TT"):
            yield _case("loop", gemm, shape, size, dtype, layout)
            yield _case("loop", gemm, odd, size, dtype, layout)
    for wrap in (True, False):
        for layout in ("NN", "NT"):
            yield _case("loop", gemm, odd, blocks, "fp16", layout, wrap=wrap, out="fp32")
            aligned = tuple(-(-side // 16) * 16 for side in odd)
            yield _case("loop", gemm, aligned, blocks, "fp16", layout, wrap=wrap)
    for offset in (1, 4, 8):
        yield _case("loop", gemm, shape, blocks, "fp16", offset=offset)
    for k in (1, 15, blocks[2] - 1, blocks[2], blocks[2] + 1, 2 * blocks[2]):
        yield _case("loop", gemm, (shape[0], shape[1], k), blocks, "fp16")
    for stages in (1, 2, 3, 4, 5):
        yield _case("loop", gemm, shape, blocks, "fp16", stages=stages)
    tiles = [(16, 16, 16, 1), (16, 32, 32, 2), (32, 16, 64, 4)]
    if large:
        tiles += [(64, 32, 32, 4), (64, 64, 64, 4), (64, 256, 64, 4), (128, 256, 64, 8), (256, 128, 64, 8),
                  (128, 128, 128, 8), (64, 64, 256, 8), (128, 16, 64, 4), (128, 64, 32, 2)]  # fmt: skip
    for m, n, k, warps in tiles:
        for dtype in ("fp16", "fp32", "e4m3") if k >= 32 else ("fp16",):
            yield _case("loop", gemm, odd, (m, n, k), dtype, "NT", warps=warps)
    yield _case("loop", gemm, shape, blocks, "e4m3", "NT", other="e5m2")
    for precision in ("tf32x3", "ieee", "bf16x3", "bf16x6"):
        for layout in ("NN", "NT", "TN"):
            yield _case("loop", gemm, odd, (64, 64, 32) if large else blocks, "fp32", layout, precision=precision)
            yield _case("loop", gemm, shape, (64, 64, 32) if large else blocks, "fp32", layout, precision=precision)
    for dtype in ("fp16", "fp32", "fp64", "i8"):
        for block in ((1, 32, 64), (4, 16, 32), (32, 2, 32)):
            for layout in ("NN", "NT"):
                yield _case("loop", gemm, (5, 64, 96), block, dtype, layout)


def _forms(large: bool) -> Iterator[Case]:
    shape, odd, blocks = ((256, 384, 512), (300, 200, 256), (64, 128, 64)) if large else (
        (64, 64, 64), (37, 30, 64), (32, 32, 32))  # fmt: skip
    aligned = tuple(-(-side // 16) * 16 for side in odd)  # strides of descriptors are multiples of 16 bytes
    grid = (-(-odd[0] // blocks[0]), -(-odd[1] // blocks[1]))
    for dtype in ("fp16", "bf16", "fp32", "e4m3"):
        for size in (shape, (odd[0], *aligned[1:])):
            for turned in (False, True):
                yield _case("descriptors", by_descriptors, size, blocks, dtype, turned, 3)
        yield _case("block pointers", partial(plain, kernels.by_block_pointers), odd, blocks, dtype, grid)
    for stages in (1, 2, 4):
        yield _case("descriptors", by_descriptors, shape, blocks, "fp16", True, stages)
    one_column = (blocks[0], 256 if large else 32, blocks[2])
    for dtype in ("fp16", "bf16"):
        grid = (shape[0] // blocks[0], shape[1] // blocks[1])
        yield _case("full tiles", partial(plain, kernels.full_tiles), shape, blocks, dtype, grid)
        yield _case("full tiles", partial(plain, kernels.full_tiles), shape, blocks, dtype, grid, out=dtype)
        yield _case("epilogue", epilogue, odd, one_column, dtype, 8 if large else 4)
        yield _case("gated", gated, odd, blocks, dtype, 4)
        yield _case("split k", split_k, odd, one_column, dtype, 2)
        yield _case("dequantised", dequantised, 16, shape[1], shape[2], 64 if large else 16, 64 if large else 32, dtype)
        yield _case(
            "dequantised", dequantised, 64, shape[1], shape[2], 128 if large else 64, 64 if large else 32, dtype
        )
        for programs in (1, 3, 40):
            arguments = (partial(plain, kernels.persistent), odd, blocks, dtype, (programs,))
            yield _case("persistent", *arguments, out=dtype, PROGRAMS=programs)
        for d, tile, warps in (
            ((64, (128, 64), 4), (128, (128, 128), 8), (64, (64, 32), 4)) if large else ((16, (32, 16), 4),)
        ):
            for length in (shape[1], shape[1] - 3):
                yield _case("attention", attention, length, d, tile, dtype, warps)
