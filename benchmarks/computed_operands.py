"""Times products one of whose operands is computed from what is loaded, over several tiles each.

usage: python benchmarks/computed_operands.py [--only WORD ...] [--case-ms 100] [--output RESULT.json]
       python benchmarks/computed_operands.py --small    (checks small sizes on the CPU, without a GPU and without Triton)

Checked and timed as `everyday.py` does it. A case is named M x N x K x BLOCK_M x BLOCK_N x BLOCK_K x num_warps x num_stages.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from everyday import measure
from everyday_cases import Problem, cdiv, empty, integers, randn

GROUP = 128  # weights along K that share a scale, of int4


def problem(
    a: torch.Tensor,
    b: torch.Tensor,
    wide: Callable[[], torch.Tensor],
    scale: torch.Tensor,
    sizes: tuple[int, ...],
    options: tuple[int, ...],
    dtype: torch.dtype = torch.bfloat16,
) -> Problem:
    """The launch for operands as they are loaded; `wide` gives B in float64, scaled."""
    m, n, k = sizes
    meta = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages"), options, strict=True))
    c = empty(m, n, dtype=dtype)
    grid = (cdiv(n, meta["BLOCK_N"]), cdiv(m, meta["BLOCK_M"]))
    reference = lambda: a.double() @ wide()
    return Problem(grid, (a, b, scale, c, m, n, k), meta, c, reference, 2 * m * n * a.shape[1], 1e-2, unit="TFLOP/s")


def int8_weights(m: int, n: int, k: int, *options: int) -> Problem:
    a, scale = randn(m, k, dtype=torch.bfloat16), randn(n, dtype=torch.float32)
    b = integers(128, k, n, low=-128, dtype=torch.int8)
    return problem(a, b, lambda: b.double() * scale.double(), scale, (m, n, k), options)


def int8_weights_nk(m: int, n: int, k: int, *options: int) -> Problem:
    a, scale = randn(m, k, dtype=torch.bfloat16), randn(n, dtype=torch.float32)
    b = integers(128, n, k, low=-128, dtype=torch.int8)
    return problem(a, b, lambda: b.T.double() * scale.double(), scale, (m, n, k), options)


def fp8_weights(m: int, n: int, k: int, *options: int) -> Problem:
    a, scale = randn(m, k, dtype=torch.bfloat16), randn(n, dtype=torch.float32)
    b = randn(k, n, dtype=torch.float8_e4m3fn)
    return problem(a, b, lambda: b.double() * scale.double(), scale, (m, n, k), options)


def int4_weights(m: int, n: int, k: int, *options: int) -> Problem:
    a, scale = randn(m, k), randn(cdiv(k, GROUP), n).abs() + 0.5
    b = integers(256, k // 2, n, dtype=torch.uint8)

    def wide() -> torch.Tensor:
        weights = torch.stack((b & 15, b >> 4), 1).reshape(k, n).double() - 8
        return weights * scale.double().repeat_interleave(GROUP, 0)[:k]

    found = problem(a, b, wide, scale, (m, n, k // 2), options, torch.float16)
    found.meta["GROUP_BYTES"] = GROUP // 2
    return found


def int8_activations(m: int, n: int, k: int, *options: int) -> Problem:
    b, scale = randn(k, n, dtype=torch.bfloat16), randn(n, dtype=torch.float32)
    a = integers(128, m, k, low=-128, dtype=torch.int8)
    return problem(a, b, lambda: b.double() * scale.double(), scale, (m, n, k), options)


TILES = ((128, 128, 64, 8, 4), (256, 128, 64, 8, 3), (128, 256, 64, 8, 3))
FOUR_WARPS = ((128, 128, 64, 4, 3), (128, 64, 64, 4, 4), (64, 128, 64, 4, 4))
LARGE, SMALL = (4096, 4096, 4096), (70, 144, 192)


def cases(*kernels: Callable[..., Problem], tiles: tuple[tuple[int, ...], ...] = TILES) -> list[tuple]:
    """Kernels over tiles: each with sizes on a GPU, and sizes for a check on the CPU."""
    return [(kernel, (*LARGE, *tile), (*SMALL, *tile)) for kernel in kernels for tile in tiles]


SOURCES = {
    "everyday_products.py": cases(int8_weights, tiles=TILES + FOUR_WARPS),
    "computed_operand_kernels.py": cases(int8_weights_nk, fp8_weights, int4_weights, int8_activations),
}

if __name__ == "__main__":
    measure(SOURCES, __doc__)
