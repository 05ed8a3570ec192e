"""Times matrix products: one source through tilewright and through Triton, beside torch. Needs torch and a GPU.

usage: python benchmarks/matmul.py [--quick] [--modes plain,descriptor,persistent,fp8,int4] [--dtypes fp16,bf16]
           [--shapes 8192x8192x8192,...] [--layouts NN,NT,TN] [--config 128,256,64,8,3] [--contenders tilewright,triton,torch]
           [--arch sm_80] [--seconds 540] [--out FOLDER]

Both tune over the same configs (`matmul_kernels.configs`), or take the one of --config. Every contender is checked
against float64 on a poisoned output, captured into a CUDA graph and timed by events, in turns, with the L2 cache
overwritten before each replay; the median counts. Layouts are BLAS's: N lies by rows, T by columns. With --out,
matmul.json, matmul.md and our generated text are written there after every case.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from contest import FLUSH_BYTES, HEADER, Case, Row, conclusion, load_both, run_case, table_line

SHAPES = ("8192x8192x8192 4096x4096x4096 2048x2048x2048 1024x1024x1024 8192x28672x4096 8192x4096x14336 16384x16384x1024 "
          "64x8192x8192 4095x4097x4100").split()  # fmt: skip
QUICK_SHAPES = "8192x8192x8192 4096x4096x4096 4095x4097x4100".split()
INT4_SHAPES = ((16, 8192, 8192), (16, 28672, 8192), (16, 8192, 28672))
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}
TOLERANCES = {torch.float16: 1e-3, torch.bfloat16: 8e-3}
QUICK_CONFIG = "128,256,64,8,3"
GROUP_M, GROUP_K = 8, 128
INT4_PARTS = 4  # of K, where no config is tuned
KEY = ["M", "N", "K", "stride_ak", "stride_bk"]

Modules = dict[str, ModuleType]


def matrix(rows: int, cols: int, dtype: torch.dtype, layout: str = "N") -> torch.Tensor:
    """Normally distributed numbers, [rows, cols], by rows ("N") or by columns ("T")."""
    if layout == "T":
        return matrix(cols, rows, dtype).t()
    if dtype == DTYPES["fp8"]:
        return torch.randn(rows, cols, device="cuda", dtype=torch.float16).to(dtype)
    return torch.randn(rows, cols, device="cuda", dtype=dtype)


class Launchers:
    """A kernel of both modules, tuned or with one config; remembers what was chosen."""

    def __init__(
        self,
        modules: Modules,
        kernel: str,
        key: list[str],
        config: str | None,
        configs: str = "configs",
        zeroed: tuple[str, ...] = (),
    ) -> None:
        """`config` is "BLOCK_M,BLOCK_N,BLOCK_K,warps,stages", or None to tune over what `configs` names.

        The arguments named by `zeroed` start from zeros whenever a config is timed.
        """
        self.kernels: dict[str, Any] = {}
        self.fixed: dict[str, int] = {}
        if config:
            names = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages")
            self.fixed = dict(zip(names, map(int, config.split(",")), strict=True))
        for name, module in modules.items():
            function = getattr(module, kernel)
            tuned = module.triton.autotune(configs=getattr(module, configs)(), key=key, reset_to_zero=list(zeroed))
            self.kernels[name] = function if config else tuned(function)

    def bind(
        self, name: str, grid: Callable[[dict[str, Any]], tuple[int]], *args: Any, **meta: Any
    ) -> Callable[[], Any]:
        """A launch without arguments."""
        return lambda: self.kernels[name][grid](*args, **meta, **self.fixed)

    def config_of(self, name: str) -> str:
        """The config of the last launch, as "128,256,64 w8 s3"."""
        best = getattr(self.kernels.get(name), "best_config", None)
        if best is not None:
            sizes = ",".join(str(value) for value in best.kwargs.values())
            return f"{sizes} w{best.num_warps} s{best.num_stages}"
        sizes = ",".join(str(value) for key, value in self.fixed.items() if key.startswith("BLOCK"))
        return (
            f"{sizes} w{self.fixed['num_warps']} s{self.fixed['num_stages']}" if name in self.kernels and sizes else ""
        )


def tiles(meta: dict[str, Any]) -> int:
    """How many tiles the result has."""
    return -(-meta["M"] // meta["BLOCK_M"]) * -(-meta["N"] // meta["BLOCK_N"])


def product(
    launchers: Launchers, mode: str, shape: tuple[int, int, int], dtype: torch.dtype, layout: str, out: torch.dtype
) -> Case:
    """C = A @ B by the pointer kernels ("plain", "persistent", "fp8") or by descriptors."""
    m, n, k = shape
    a, b = matrix(m, k, dtype, layout[0]), matrix(k, n, dtype, layout[1])
    c = torch.empty(m, n, device="cuda", dtype=out)
    runs: dict[str, Callable[[], Any]] = {}
    for name in launchers.kernels:
        if mode == "descriptor":
            step = b.stride(0) if layout[1] == "N" else b.stride(1)
            args: tuple[Any, ...] = (a, b, c, m, n, k, a.stride(0), step, n)
            meta: dict[str, Any] = {"GROUP_M": GROUP_M, "B_BY_ROWS": layout[1] == "N"}
        else:
            args = (a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride())
            meta = {"GROUP_M": GROUP_M}
        grid: Callable[[dict[str, Any]], tuple[int]] = lambda meta: (tiles(meta),)
        if mode == "persistent":
            meta["PROGRAMS"] = torch.cuda.get_device_properties(0).multi_processor_count
            grid = lambda meta: (min(meta["PROGRAMS"], tiles(meta)),)
        runs[name] = launchers.bind(name, grid, *args, **meta)
    if dtype == DTYPES["fp8"]:
        one = torch.ones((), device="cuda")
        runs["torch"] = lambda: torch._scaled_mm(a, b, one, one, out_dtype=out, use_fast_accum=True, out=c)
    else:
        runs["torch"] = lambda: torch.matmul(a, b, out=c)
    tolerance = TOLERANCES[out] if dtype != DTYPES["fp8"] else 2e-2
    title = f"{mode} {m}x{n}x{k} {next(key for key, value in DTYPES.items() if value == dtype)} {layout}"
    reference = lambda: a.to(torch.float32).double() @ b.to(torch.float32).double()
    return Case(title, runs, c, reference, tolerance, 2.0 * m * n * k, config_of=launchers.config_of)


def int4_product(launchers: Launchers, shape: tuple[int, int, int]) -> Case:
    """C = A @ dequantised weights, bound by memory; C is cleared in what is timed, since parts of K are added to it."""
    m, n, k = shape
    a = matrix(m, k, torch.float16)
    packed = torch.randint(-(2**31), 2**31, (k // 8, n), device="cuda", dtype=torch.int32)
    scale = torch.rand(k // GROUP_K, n, device="cuda", dtype=torch.float16) * 0.02
    c = torch.empty(m, n, device="cuda")
    shifts = torch.arange(0, 32, 4, device="cuda", dtype=torch.int32)
    nibbles = ((packed[:, None, :] >> shifts[None, :, None]) & 15).reshape(k, n) - 8
    weights = nibbles.half() * scale.repeat_interleave(GROUP_K, dim=0)
    del nibbles
    args = (a, packed, scale, c, m, n, k, a.stride(0), packed.stride(0), scale.stride(0), c.stride(0))
    grid = lambda meta: (-(-n // meta["BLOCK_N"]), meta["SPLIT_K"])
    meta = {"GROUP": GROUP_K} | ({"SPLIT_K": INT4_PARTS} if launchers.fixed else {})
    runs: dict[str, Callable[[], Any]] = {}
    for name in launchers.kernels:
        launch = launchers.bind(name, grid, *args, **meta)
        runs[name] = lambda launch=launch: (c.zero_(), launch())[1]
    moved = packed.nbytes + scale.nbytes + a.nbytes + c.nbytes
    title = f"int4 {m}x{n}x{k} fp16"
    reference = lambda: a.double() @ weights.double()
    return Case(title, runs, c, reference, 2e-3, moved, "TB/s", config_of=launchers.config_of)


def cases(options: argparse.Namespace, modules: Modules) -> Iterator[Callable[[], Case]]:
    """The problems, built one after the other so that memory is free again."""
    shapes = [tuple(map(int, text.split("x"))) for text in options.shapes.split(",")]
    kernels = {"plain": "matmul_kernel", "persistent": "persistent_kernel", "descriptor": "descriptor_kernel"}
    for mode in options.modes.split(","):
        if mode == "int4":
            config = options.config and "16,64,128,4,4"
            launchers = Launchers(modules, "int4_kernel", ["M", "N", "K"], config, "int4_configs", ("c_ptr",))
            yield from (partial(int4_product, launchers, shape) for shape in INT4_SHAPES)
        elif mode == "fp8":
            launchers = Launchers(modules, "matmul_kernel", KEY, options.config and "128,256,128,8,3", "fp8_configs")
            yield partial(product, launchers, mode, (8192, 8192, 8192), DTYPES["fp8"], "NT", torch.bfloat16)
        else:
            key = ["M", "N", "K", "B_BY_ROWS"] if mode == "descriptor" else KEY
            launchers = Launchers(modules, kernels[mode], key, options.config)
            for dtype in options.dtypes.split(","):
                for layout in options.layouts.split(","):
                    if mode == "descriptor" and layout[0] == "T":
                        continue
                    for shape in shapes:
                        if mode == "descriptor" and any(side % 8 for side in shape[1:]):
                            continue  # strides of descriptors are multiples of 16 bytes
                        yield partial(product, launchers, mode, shape, DTYPES[dtype], layout, DTYPES[dtype])


def write(rows: list[Row], folder: Path, head: str) -> None:
    """All results so far: JSON, the table, and our text per case."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for row in rows:
        entry = dataclasses.asdict(row)
        source = entry["ours"].pop("source", None)
        if source:
            (folder / (re.sub(r"\W+", "_", row.case) + ".cu")).write_text(source)
        listed.append({**entry, "to_triton": row.ratio("triton"), "to_torch": row.ratio("torch")})
    (folder / "matmul.json").write_text(json.dumps({"machine": head, "rows": listed}, indent=1))
    lines = [head, "", *HEADER, *map(table_line, rows), "", *conclusion(rows)]
    (folder / "matmul.md").write_text("\n".join(lines) + "\n")


def parse() -> argparse.Namespace:
    """The command line; see the module docstring."""
    parser = argparse.ArgumentParser(description="Times matrix products through tilewright, Triton and torch.")
    parser.add_argument("--quick", action="store_true", help="few shapes, fp16, NN, one config")
    parser.add_argument("--modes", default="plain")
    parser.add_argument("--shapes")
    parser.add_argument("--dtypes")
    parser.add_argument("--layouts")
    parser.add_argument("--config", help="BLOCK_M,BLOCK_N,BLOCK_K,warps,stages in place of tuning")
    parser.add_argument("--contenders", default="tilewright,triton,torch")
    parser.add_argument("--arch", help="architecture that tilewright writes for, such as sm_80")
    parser.add_argument("--seconds", type=float, default=540.0, help="no case begins later")
    parser.add_argument("--case-ms", type=float, default=600.0, help="milliseconds of timing a case")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.shapes = options.shapes or ",".join(QUICK_SHAPES if options.quick else SHAPES)
    options.dtypes = options.dtypes or ("fp16" if options.quick else "fp16,bf16")
    options.layouts = options.layouts or ("NN" if options.quick else "NN,NT,TN")
    options.config = options.config or (QUICK_CONFIG if options.quick else None)
    return options


def machine(modules: Modules) -> str:
    """The GPU and the versions."""
    versions = [f"{name} {module.triton.__version__}" for name, module in modules.items()]
    return f"{torch.cuda.get_device_name()}; {', '.join(versions)}, torch {torch.__version__}"


def main() -> None:
    """Runs everything that fits into the time and prints the table."""
    start, options = time.monotonic(), parse()
    if options.arch:
        os.environ["TILEWRIGHT_ARCH"] = options.arch
    torch.manual_seed(0)
    wanted = options.contenders.split(",")
    flush = torch.empty(FLUSH_BYTES, device="cuda", dtype=torch.uint8)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        loaded = load_both(Path(__file__).with_name("matmul_kernels.py"), Path(folder))
        modules = {name: module for name, module in loaded.items() if name in wanted}
        if "triton" in modules:
            allocate = lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8)
            modules["triton"].triton.set_allocator(allocate)
        head = machine(modules)
        print(head, "", *HEADER, sep="\n", flush=True)
        skipped = 0
        for build in cases(options, modules):
            if time.monotonic() - start > options.seconds:
                skipped += 1
                continue
            case = build()
            runs = {name: run for name, run in case.contenders.items() if name in wanted}
            rows.append(run_case(dataclasses.replace(case, contenders=runs), flush, options.case_ms))
            print(table_line(rows[-1]), flush=True)
            if options.out:
                write(rows, options.out, head)
            del case, runs
            torch.cuda.empty_cache()
    print("", *conclusion(rows), sep="\n")
    if skipped:
        print(f"{skipped} cases were left out: --seconds {options.seconds:.0f} were over")


if __name__ == "__main__":
    main()
