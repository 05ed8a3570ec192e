"""Times matrix products: one source through tilewright and through Triton, beside torch. Needs torch and a GPU.

usage: python benchmarks/matmul.py [--modes plain,descriptor,persistent,spellings,fp8,int4,grouped,precisions]
           [--shapes 8192x8192x8192,...] [--layouts NN,NT,TN] [--dtypes fp16,bf16] [--config 128,256,64,8,3 | --tuned FILE]
           [--contenders tilewright,triton,torch] [--arch sm_80] [--l2 clean] [--processes 16] [--seconds 540] [--out FOLDER]

Both tune over the same configs (`matmul_kernels.configs`), or take the one of --config, or those that an earlier run left in
tuned.json. Every contender is checked against float64 on a poisoned output, captured into a CUDA graph and timed by events,
in turns, with the L2 cache overwritten before each replay (--l2 clean: and its lines written back, see `l2_flush`); the
median counts. Layouts are BLAS's: N lies by rows, T by columns. "spellings" times pointer, persistent and descriptor kernels
of both in one run, and compares each of ours with the best of Triton's; "int4" reads the packed weights alone as well. --arch
has both write for an older architecture. With --out, matmul.json, matmul.md, tuned.json and our generated text are written
there after every case.
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
from types import SimpleNamespace
from typing import Any

import torch
from contest import HEADER, Case, Row, conclusion, l2_flush, load_both, run_case, table_line
from matmul_launch import Compilers, Known, Launchers, Modules, compile_in_processes, read_known, write_for
from more_cases import MODES, more_cases

SHAPES = ("8192x8192x8192 4096x4096x4096 2048x2048x2048 1024x1024x1024 8192x28672x4096 8192x4096x14336 16384x16384x1024 "
          "64x8192x8192 4095x4097x4100").split()  # fmt: skip
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}
TOLERANCES = {torch.float16: 1e-3, torch.bfloat16: 8e-3}
GROUP_M = 8
KEY = ["M", "N", "K", "stride_ak", "stride_bk"]
DESCRIPTOR_KEY = ["M", "N", "K", "B_BY_ROWS"]
KERNELS = {
    "plain": ("matmul_kernel", KEY),
    "persistent": ("persistent_kernel", KEY),
    "descriptor": ("descriptor_kernel", DESCRIPTOR_KEY),
    "persistent descriptor": ("persistent_descriptor_kernel", DESCRIPTOR_KEY),
}

Build = Callable[[], Case]


def matrix(rows: int, cols: int, dtype: torch.dtype, layout: str = "N") -> torch.Tensor:
    """Normally distributed numbers, [rows, cols], by rows ("N") or by columns ("T")."""
    if layout == "T":
        return matrix(cols, rows, dtype).t()
    if dtype == DTYPES["fp8"]:
        return torch.randn(rows, cols, device="cuda", dtype=torch.float16).to(dtype)
    return torch.randn(rows, cols, device="cuda", dtype=dtype)


def tiles(meta: dict[str, Any]) -> int:
    """How many tiles the result has."""
    return -(-meta["M"] // meta["BLOCK_M"]) * -(-meta["N"] // meta["BLOCK_N"])


def can_run(spelling: str, shape: tuple[int, ...], layout: str) -> bool:
    """Whether a spelling has this problem: strides of descriptors are multiples of 16 bytes, their rows contiguous."""
    return "descriptor" not in spelling or (layout[0] == "N" and not any(side % 8 for side in shape[1:]))


def launch(
    launchers: Launchers,
    spelling: str,
    name: str,
    case: tuple[str, str],
    operands: tuple[torch.Tensor, ...],
    layout: str,
) -> Callable[[], Any]:
    """C = A @ B by one spelling of the kernel of module `name`; `case` is where its config stands in tuned.json."""
    a, b, c = operands
    (m, k), n = a.shape, b.shape[1]
    meta: dict[str, Any] = {"GROUP_M": GROUP_M}
    if "descriptor" in spelling:
        step = b.stride(0) if layout[1] == "N" else b.stride(1)
        args: tuple[Any, ...] = (a, b, c, m, n, k, a.stride(0), step, n)
        meta["B_BY_ROWS"] = layout[1] == "N"
    else:
        args = (a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride())
    grid: Callable[[dict[str, Any]], tuple[int]] = lambda meta: (tiles(meta),)
    if "persistent" in spelling:
        meta["PROGRAMS"] = torch.cuda.get_device_properties(0).multi_processor_count
        grid = lambda meta: (min(meta["PROGRAMS"], tiles(meta)),)
    return launchers.bind(name, case, grid, *args, **meta)


def product(
    kernels: dict[str, Launchers], mode: str, shape: tuple[int, int, int], dtype: torch.dtype, layout: str
) -> Case:
    """C = A @ B by the spellings in `kernels`; with several, contenders are called "tilewright plain" and so on."""
    m, n, k = shape
    a, b = matrix(m, k, dtype, layout[0]), matrix(k, n, dtype, layout[1])
    eight_bits = dtype == DTYPES["fp8"]
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16 if eight_bits else dtype)
    title = f"{mode} {m}x{n}x{k} {next(key for key, value in DTYPES.items() if value == dtype)} {layout}"
    runs: dict[str, Callable[[], Any]] = {}
    configs: dict[str, Callable[[], str]] = {}
    for spelling, launchers in kernels.items():
        if not can_run(spelling, shape, layout):
            continue
        suffix = f" {spelling}" if len(kernels) > 1 else ""
        for name in launchers.functions:
            contender = name + suffix
            runs[contender] = launch(launchers, spelling, name, (title, contender), (a, b, c), layout)
            configs[contender] = partial(launchers.config_of, name, (title, contender))
    if eight_bits and layout == "NT":  # the only one that torch has
        one = torch.ones((), device="cuda")
        runs["torch"] = lambda: torch._scaled_mm(a, b, one, one, out_dtype=c.dtype, use_fast_accum=True, out=c)
    elif not eight_bits:
        runs["torch"] = lambda: torch.matmul(a, b, out=c)
    tolerance = 2e-2 if eight_bits else TOLERANCES[dtype]
    reference = lambda: a.to(torch.float32).double() @ b.to(torch.float32).double()
    config_of = lambda name: configs[name]() if name in configs else ""
    return Case(title, runs, c, reference, tolerance, 2.0 * m * n * k, config_of=config_of)


def cases(options: argparse.Namespace, modules: Modules, launcher: type[Launchers] = Launchers) -> Iterator[Build]:
    """The problems, built one after the other so that memory is free again."""
    made = partial(launcher, modules, known=read_known(options.tuned))
    for mode in options.modes.split(","):
        eight_bits = mode == "fp8"
        asked = options.shapes or ("8192x8192x8192" if eight_bits else ",".join(SHAPES))
        shapes = [tuple(map(int, text.split("x"))) for text in asked.split(",")]
        layouts = (options.layouts or ("NT" if eight_bits else "NN,NT,TN")).split(",")
        if mode in MODES:
            yield from more_cases(mode, made, layouts, options.config)
            continue
        spellings = {"fp8": ["plain"], "spellings": list(KERNELS)}.get(mode, [mode])
        configs = "fp8_configs" if eight_bits else "sm80_configs" if options.arch else "configs"
        config = options.config and "128,256,128,8,3" if eight_bits else options.config
        kernels = {each: made(*KERNELS[each], configs, config=config) for each in spellings}
        for shape in shapes:
            for dtype in ["fp8"] if eight_bits else options.dtypes.split(","):
                for layout in layouts:
                    if can_run(mode, shape, layout):
                        yield partial(product, kernels, mode, shape, DTYPES[dtype], layout)


def load_kernels(folder: Path, wanted: list[str]) -> Modules:
    """The kernels of both files, as if they were one, for the contenders that read them."""
    here = Path(__file__).parent
    plain, more = (load_both(here / name, folder) for name in ("matmul_kernels.py", "more_kernels.py"))
    both = {name: SimpleNamespace(**(vars(more[name]) | vars(module))) for name, module in plain.items()}
    return {name: kernels for name, kernels in both.items() if name in wanted}


def compile_ahead(options: argparse.Namespace, modules: Modules) -> None:
    """Fills both caches on disk with what the cases will need."""

    def runs() -> Iterator[Callable[[], Any]]:
        for build in cases(options, modules, Compilers):
            case = build()
            yield from (run for name, run in case.contenders.items() if name != "torch")

    compile_in_processes(runs, options.processes)


def spelled(row: Row, work: float) -> list[Row]:
    """A row per spelling of ours, beside the fastest of Triton's; the row itself where there is one spelling.

    All rows keep all times; what failed stands in the first.
    """
    theirs = {name: ms for name, ms in row.ms.items() if name.startswith("triton ")}
    if not theirs:
        return [row]
    best = min(theirs, key=theirs.__getitem__)
    rows = []
    for name in (name for name in row.ms if name.startswith("tilewright ")):
        spelling = name.removeprefix("tilewright ")
        kept = {"tilewright": name, "triton": best, "torch": "torch"}
        ms = {short: row.ms[long] for short, long in kept.items() if long in row.ms}
        config = {short: row.config[long] for short, long in kept.items() if long in row.config}
        config["triton"] += f" ({best.removeprefix('triton ')})"
        title, rate = row.case.replace("spellings", spelling), work / row.ms[name] / 1e9
        failed = {} if rows else row.failed
        rows.append(Row(title, row.ms | ms, {}, {}, failed, config, {name: row.ours[name]}, rate, row.unit))
    return rows


def write(rows: list[Row], folder: Path, head: str) -> None:
    """All results so far: JSON, the table, the configs, and our text per case."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for row in rows:
        entry = dataclasses.asdict(row)
        for facts in filter(None, entry["ours"].values()):
            (folder / (re.sub(r"\W+", "_", row.case) + ".cu")).write_text(facts.pop("source", ""))
        listed.append({**entry, "to_triton": row.ratio("triton"), "to_torch": row.ratio("torch")})
    (folder / "matmul.json").write_text(json.dumps({"machine": head, "rows": listed}, indent=1))
    lines = [head, "", *HEADER, *map(table_line, rows), "", *conclusion(rows)]
    (folder / "matmul.md").write_text("\n".join(lines) + "\n")


def parse() -> argparse.Namespace:
    """The command line; see the module docstring."""
    parser = argparse.ArgumentParser(description="Times matrix products through tilewright, Triton and torch.")
    parser.add_argument("--modes", default="plain")
    parser.add_argument("--shapes", help="8192x8192x8192 for fp8, else a list of nine")
    parser.add_argument("--dtypes", default="fp16,bf16")
    parser.add_argument("--layouts", help="NT for fp8, else all three")
    parser.add_argument("--config", help="BLOCK_M,BLOCK_N,BLOCK_K,warps,stages in place of tuning")
    parser.add_argument("--tuned", type=Path, help="tuned.json of an earlier run; cases that it lacks are tuned")
    parser.add_argument("--contenders", default="tilewright,triton,torch")
    parser.add_argument("--arch", help="architecture that both write for, such as sm_80")
    parser.add_argument(
        "--l2", default="written", choices=("written", "clean"), help="what the cache holds before a replay"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="that compile ahead; 0: none does")
    parser.add_argument("--seconds", type=float, default=540.0, help="no case begins later")
    parser.add_argument("--case-ms", type=float, default=600.0, help="milliseconds of timing a case")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def machine(modules: Modules) -> str:
    """The GPU and the versions."""
    versions = [f"{name} {module.triton.__version__}" for name, module in modules.items()]
    return f"{torch.cuda.get_device_name()}; {', '.join(versions)}, torch {torch.__version__}"


def measure(options: argparse.Namespace, modules: Modules, start: float) -> Iterator[tuple[list[Row], Known]]:
    """Rows of every case that fits into the time, with the configs that were chosen."""
    wanted = options.contenders.split(",")
    flush = l2_flush(options.l2 == "clean")
    for build in cases(options, modules):
        if time.monotonic() - start > options.seconds:
            return
        case = build()
        runs = {name: run for name, run in case.contenders.items() if name.split()[0] in wanted}
        row = run_case(dataclasses.replace(case, contenders=runs), flush, options.case_ms)
        yield spelled(row, case.work), {case.name: {name: config for name, config in row.config.items() if config}}
        del case, runs
        torch.cuda.empty_cache()


def main() -> None:
    """Runs everything that fits into the time and prints the table."""
    start, options = time.monotonic(), parse()
    if options.arch:
        write_for(options.arch)
    torch.manual_seed(0)
    rows: list[Row] = []
    tuned = dict(read_known(options.tuned))
    with tempfile.TemporaryDirectory() as folder:
        modules = load_kernels(Path(folder), options.contenders.split(","))
        if "triton" in modules:
            allocate = lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8)
            modules["triton"].triton.set_allocator(allocate)
        if options.processes:
            compile_ahead(options, modules)
        head = machine(modules)
        print(f"{head}; compiled after {time.monotonic() - start:.0f} s", "", *HEADER, sep="\n", flush=True)
        for measured, configs in measure(options, modules, start):
            rows += measured
            tuned |= configs
            print(*map(table_line, measured), sep="\n", flush=True)
            if options.out:
                write(rows, options.out, head)
                (options.out / "tuned.json").write_text(json.dumps(tuned, indent=1))
    print("", *conclusion(rows), f"after {time.monotonic() - start:.0f} s", sep="\n")


if __name__ == "__main__":
    main()
