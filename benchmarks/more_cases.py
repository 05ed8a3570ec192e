"""Cases of `matmul.py` that are no plain products: weights of 4 bits, several problems at once, other precisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from contest import Case
from matmul_launch import Launchers

MODES = ("int4", "grouped", "precisions")
INT4_SHAPES = ((16, 8192, 8192), (16, 28672, 8192), (16, 8192, 28672))
GROUPS = {"4x2048x2048x2048": [(2048, 2048, 2048)] * 4,
          "uneven": [(4096, 2048, 1024), (128, 2048, 4096), (1000, 1504, 2048), (2048, 4096, 512)]}  # fmt: skip
SIDE = 2048  # of the products in several precisions
GROUP_K, READ_BLOCK = 128, 4096
# Norm of the difference from float64 over the norm of the result, several times what the precision gives.
PRECISIONS = {"fp64": 1e-13, "tf32": 1e-3, "tf32x3": 1e-6, "bf16x3": 2e-5, "bf16x6": 1e-6}

Build = Callable[[], Case]


def bound(
    launchers: Launchers,
    title: str,
    grid: Callable[[dict[str, Any]], tuple[int, ...]],
    args: Sequence[Any],
    spelling: str = "",
    **meta: Any,
) -> tuple[dict[str, Callable[[], Any]], Callable[[str], str]]:
    """The launches of a case by contender, with a word for the kernel, and what says which config a contender has."""
    names = {f"{name} {spelling}".rstrip(): name for name in launchers.functions}
    runs = {
        contender: launchers.bind(name, (title, contender), grid, *args, **meta) for contender, name in names.items()
    }
    return runs, lambda who: launchers.config_of(names[who], (title, who)) if who in names else ""


def int4_product(launchers: Launchers, shape: tuple[int, int, int]) -> Case:
    """C = A @ dequantised weights, bound by memory, in two spellings; C is cleared in what is timed: parts of K add to it."""
    m, n, k = shape
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    packed = torch.randint(-(2**31), 2**31, (k // 8, n), device="cuda", dtype=torch.int32)
    scale = torch.rand(k // GROUP_K, n, device="cuda", dtype=torch.float16) * 0.02
    c = torch.empty(m, n, device="cuda")
    shifts = torch.arange(0, 32, 4, device="cuda", dtype=torch.int32)
    nibbles = ((packed[:, None, :] >> shifts[None, :, None]) & 15).reshape(k, n) - 8
    weights = nibbles.half() * scale.repeat_interleave(GROUP_K, dim=0)
    del nibbles
    args = (a, packed, scale, c, m)
    grid = lambda meta: (-(-n // meta["BLOCK_N"]), meta["PARTS"])
    title = f"int4 spellings {m}x{n}x{k} fp16"
    runs: dict[str, Callable[[], Any]] = {}
    shown: dict[str, Callable[[str], str]] = {}
    for spelling in ("weights scaled", "sums scaled"):
        sums = spelling == "sums scaled"
        launches, config_of = bound(launchers, title, grid, args, spelling, N=n, K=k, GROUP=GROUP_K, SCALE_SUMS=sums)
        runs |= {name: lambda launch=launch: (c.zero_(), launch())[1] for name, launch in launches.items()}
        shown |= dict.fromkeys(launches, config_of)
    moved = packed.nbytes + scale.nbytes + a.nbytes + c.nbytes
    return Case(
        title,
        runs,
        c,
        lambda: a.double() @ weights.double(),
        2e-3,
        moved,
        "TB/s",
        config_of=lambda name: shown[name](name),
    )


def reading(launchers: Launchers, shape: tuple[int, int, int]) -> Case:
    """The bound that `int4_product` has in this benchmark: reading the packed weights alone."""
    _, n, k = shape
    words = torch.randint(-(2**31), 2**31, (k // 8 * n,), device="cuda", dtype=torch.int32)
    sums = torch.empty(len(words) // READ_BLOCK, device="cuda")
    title = f"reading of int4 {n}x{k}"
    runs, config_of = bound(launchers, title, lambda meta: (len(sums),), (words, sums), BLOCK=READ_BLOCK)
    exact = lambda: words.view(-1, READ_BLOCK).sum(1, dtype=torch.int32).double()
    return Case(title, runs, sums, exact, 1e-6, words.nbytes, "TB/s", config_of=config_of)


def grouped_product(launchers: Launchers, name: str) -> Case:
    """Products of several sizes in one launch, C = A @ B.T; what torch has is a launch for each."""
    sizes = GROUPS[name]
    pairs = [(torch.randn(m, k, device="cuda", dtype=torch.float16),
              torch.randn(n, k, device="cuda", dtype=torch.float16)) for m, n, k in sizes]  # fmt: skip
    output = torch.empty(sum(m * n for m, n, _ in sizes), device="cuda", dtype=torch.float16)
    pieces = output.split([m * n for m, n, _ in sizes])
    results = [piece.view(m, n) for piece, (m, n, _) in zip(pieces, sizes, strict=True)]
    places = [[each.data_ptr() for each in (a, b, c)] for (a, b), c in zip(pairs, results, strict=True)]
    args = (torch.tensor(places, device="cuda"), torch.tensor(sizes, device="cuda", dtype=torch.int32), len(sizes))
    programs = torch.cuda.get_device_properties(0).multi_processor_count
    title = f"grouped {name} fp16 NT"
    runs, config_of = bound(launchers, title, lambda meta: (programs,), args, PROGRAMS=programs)
    runs["torch"] = lambda: [torch.matmul(a, b.t(), out=c) for (a, b), c in zip(pairs, results, strict=True)]
    exact = lambda: torch.cat([(a.double() @ b.double().t()).flatten() for a, b in pairs])
    work = 2.0 * sum(m * n * k for m, n, k in sizes)
    return Case(title, runs, output, exact, 1e-3, work, config_of=config_of)


def precision_product(launchers: Launchers, precision: str, layout: str) -> Case:
    """C = A @ B of doubles, or of floats that are multiplied in some precision."""
    dtype = torch.float64 if precision == "fp64" else torch.float32
    a, b, c = (torch.randn(SIDE, SIDE, device="cuda", dtype=dtype) for _ in range(3))
    if layout[1] == "T":
        b = b.t()
    if layout[0] == "T":
        a = a.t()
    args = (a, b, c, SIDE, SIDE, SIDE, *a.stride(), *b.stride(), c.stride(0))
    grid = lambda meta: (SIDE // meta["BLOCK_M"], SIDE // meta["BLOCK_N"])
    title = f"{precision} {SIDE}x{SIDE}x{SIDE} {layout}"
    given = None if precision == "fp64" else precision
    runs, config_of = bound(launchers, title, grid, args, PRECISION=given)
    exact = lambda: a.double() @ b.double()
    return Case(title, runs, c, exact, PRECISIONS[precision], 2.0 * SIDE**3, config_of=config_of)


def more_cases(
    mode: str, made: Callable[..., Launchers], layouts: Sequence[str], config: str | None
) -> Iterator[Build]:
    """The cases of one of `MODES`; `made` makes launchers, `layouts` counts for precisions, `config` for int4."""
    if mode == "int4":
        reads = made("reading_kernel", ["BLOCK"], "reading_configs")
        given = config and "16,64,128,4,4,4"
        products = made("int4_kernel", ["M", "N", "K", "SCALE_SUMS"], "int4_configs", ("c_ptr",), config=given)
        for shape in INT4_SHAPES:
            yield partial(reading, reads, shape)
            yield partial(int4_product, products, shape)
    elif mode == "grouped":
        for name in GROUPS:  # each with tuners of its own: sizes are no arguments, so they are in no key
            launchers = made("grouped_kernel", ["groups"], "grouped_configs", config=config)
            yield partial(grouped_product, launchers, name)
    else:
        launchers = made(
            "precision_kernel", ["PRECISION", "stride_bn", "stride_am"], "precision_configs", config=config
        )
        for precision in PRECISIONS:
            yield from (partial(precision_product, launchers, precision, layout) for layout in layouts)
