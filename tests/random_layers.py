"""Random layers: a product with nothing in its loop but loads, and something done to its sums; a seed gives one, and a launch.

Unlike the programs of `random_product_cases.py` they are as plain as those that people write: tensor copies bring their tiles,
several trips may be one, and teams may take turns at them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from random_modules import kernel_of

TYPES = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8e4nv": ml_dtypes.float8_e4m3fn,
    "int8": np.int8,
    "float32": np.float32,
}
HEAD = "def kernel(a_ptr, b_ptr, x_ptr, c_ptr, d_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):"
GRIDS = {
    "both": ("m0, n0 = tl.program_id(0) * BM, tl.program_id(1) * BN", lambda m, n: (m, n)),
    "turned": ("n0, m0 = tl.program_id(0) * BN, tl.program_id(1) * BM", lambda m, n: (n, m)),
    "one": ("pid = tl.program_id(0)\n    m0, n0 = pid // tl.cdiv(N, BN) * BM, pid % tl.cdiv(N, BN) * BN", lambda m, n: (m * n,)),
}  # fmt: skip
LOOPS = {  # what stands in front, the head, where the trip begins along K
    "by elements": ("", "for start in range(0, K, BK):", "start"),
    "by blocks": ("", "for i in range(0, tl.cdiv(K, BK)):", "i * BK"),
    "named": ("blocks = tl.cdiv(K, BK)", "for i in range(blocks):", "i * BK"),
    "from one on": ("", "for i in range(1, tl.cdiv(K, BK) + 1):", "(i - 1) * BK"),
    "of a number": ("", "for i in range(0, 3):", "i * BK"),
    "for products": ("", "for start in tl.range(0, K, BK, num_stages=4):", "start"),
}
ENDS = (
    "y = total * 0.5",
    "y = tl.maximum(total, 0.0)",
    "y = total + tl.load(x_ptr + n, mask=n < N, other=0.0)[None, :]",
    "y = tl.where(m[:, None] >= n[None, :], total, 0.0)",
    "y = tl.where((m[:, None] + n[None, :]) % 3 == 0, total, -total)",
    "y = total * tl.sigmoid(total)",
    "y = total\n    if tl.program_id(0) % 2 == 1:\n        y = y * 2.0",
    "y = total\n    for _ in range(2):\n        y = y + tl.load(x_ptr + n, mask=n < N, other=0.0)[None, :]",
    "y = total / tl.sum(tl.abs(total), 1)[:, None]",
)


@dataclass(frozen=True)
class Layer:
    """A kernel's text, and how it is launched."""

    source: str
    element: str
    result: str
    by_rows: tuple[bool, bool]
    masked: bool
    grid: str
    tile: dict[str, int]
    options: dict[str, int]
    trips: int

    def kernel(self) -> Any:
        """The kernel, which nobody has called yet."""
        return kernel_of({}, self.source)

    def launch(self, seed: int, programs: int = 2) -> tuple[list[Any], tuple[int, ...], np.ndarray]:
        """The arguments, the grid, and what the kernel's first product is."""
        draw, rng = random.Random(seed), np.random.default_rng(seed)
        bm, bn, bk = self.tile.values()
        align = max(16 // np.dtype(TYPES[self.element]).itemsize, 16)
        k = 3 * bk if self.trips else draw.choice((align, bk, 2 * bk + align, 5 * bk, 3 * bk + 2 * align))
        if not self.masked:
            k = -(-k // bk) * bk
        m, n = draw.randint(1, programs) * bm, draw.randint(1, programs + 1) * bn
        if self.masked:
            m, n = m - draw.choice((0, 16)), n - draw.choice((0, 16))
            m, n, k = (side - draw.choice((0, 0, 0, 8, 4)) for side in (m, n, k))  # rows that 16 does not divide

        def matrix(rows: int, cols: int) -> np.ndarray:
            found = rng.integers(-4, 5, (rows, cols)) if self.element == "int8" else rng.normal(size=(rows, cols))
            return found.astype(TYPES[self.element])

        a = matrix(m, k) if self.by_rows[0] else matrix(k, m)
        b = matrix(k, n) if self.by_rows[1] else matrix(n, k)
        x = rng.normal(size=n).astype(np.float32)
        results = [np.full((m, n), 9, TYPES[self.result]) for _ in range(2)]
        wide = [
            one.astype(np.float64) if by else one.astype(np.float64).T
            for one, by in zip((a, b), self.by_rows, strict=True)
        ]
        grid = GRIDS[self.grid][1](-(-m // bm), -(-n // bn))
        return [a, b, x, *results, m, n, k], grid, wide[0] @ wide[1]


def random_layer(seed: int) -> Layer:
    """The layer of a seed."""
    draw = random.Random(seed)
    element = draw.choice(tuple(TYPES))
    wide = element in ("float16", "bfloat16")
    by_rows = (draw.random() < 0.7, draw.random() < 0.5) if wide else (True, False)
    result = draw.choice(("float32", "float16", "bfloat16"))
    grid, (front, head, at) = draw.choice(tuple(GRIDS)), LOOPS[loop := draw.choice(tuple(LOOPS))]
    masked = draw.random() < 0.8
    tile = {"BM": draw.choice((64, 64, 128)), "BN": draw.choice((32, 64)), "BK": draw.choice((16, 32, 32, 64))}
    if element in ("float8e4nv", "int8"):
        tile["BK"] = max(tile["BK"], 32)
    zero = "0" if element == "int8" else "0.0"
    operands = [
        _load("a", "m", "M", by_rows[0], masked, zero, True),
        _load("b", "n", "N", by_rows[1], masked, zero, False),
    ]
    draw.shuffle(operands)
    sums = "tl.int32" if element == "int8" else "tl.float32"
    product = draw.choice(("total = tl.dot(a, b, total)", "total += tl.dot(a, b)"))
    inside = ", mask=(m[:, None] < M) & (n[None, :] < N)" if masked else ""
    stores = [f"tl.store(c_ptr + m[:, None] * N + n[None, :], y.to(tl.{result}){inside})"]
    if draw.random() < 0.25:
        stores.append(f"tl.store(d_ptr + m[:, None] * N + n[None, :], (y * 2.0).to(tl.{result}){inside})")
    lines = [
        *GRIDS[grid][0].split("\n    "),
        "m, n, k = m0 + tl.arange(0, BM), n0 + tl.arange(0, BN), tl.arange(0, BK)",
        *([front] if front else []),
        f"total = tl.zeros((BM, BN), {sums})",
        head,
        f"    at = {at} + k",
        *(f"    {line}" for line in operands),
        f"    {product}",
        *(["total = total.to(tl.float32)"] if element == "int8" else []),
        *(line for end in draw.sample(ENDS, draw.choice((0, 1, 1))) or ["y = total"] for line in end.split("\n    ")),
        *stores,
    ]
    source = "\n    ".join([HEAD, *lines]) + "\n"
    options = {"num_warps": draw.choice((4, 4, 4, 8)), "num_stages": draw.choice((1, 2, 3))}
    return Layer(source, element, result, by_rows, masked, grid, tile, options, 3 if loop == "of a number" else 0)


def _load(name: str, side: str, size: str, by_rows: bool, masked: bool, zero: str, first: bool) -> str:
    """A line that loads an operand; `by_rows` matrices lie as they are multiplied, others the other way round."""
    own, k = (f"{side}[:, None]", "at[None, :]") if first else (f"{side}[None, :]", "at[:, None]")
    contiguous_k = by_rows == first
    place = f"{own} * K + {k}" if contiguous_k else f"{k} * {size} + {own}"
    mask = f", mask=({own} < {size}) & ({k} < K), other={zero}" if masked else ""
    return f"{name} = tl.load({name}_ptr + {place}{mask})"
