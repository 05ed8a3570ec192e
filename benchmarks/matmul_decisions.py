"""What single decisions of the schedule are worth, on a GPU: the plain matmul with and without each of them, beside torch.

usage: python benchmarks/matmul_decisions.py [--rounds 60]

A decision is taken back by replacing the function or number that makes it; every variant is a module of its own. Times are of
CUDA graphs, in turns, with the L2 cache overwritten before each; the median counts, in microseconds.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import torch
from contest import l2_flush

VARIANTS: dict[str, dict[str, Any]] = {
    "as decided": {},
    "one program a block": {"schedule.rings.can_persist": lambda *_: False},
    "stages as asked for": {"schedule.rings.MOST_STAGES": 2},
    "warpgroups store together": {"schedule.layouts.cut_stores": lambda _kernel, _facts, _layouts, rings: ({}, rings)},
    "no cache policies": {"schedule.tensor_copies.boxes_across": lambda *_: ()},
    "stores without stmatrix": {"lower.box_store.stores_matrices": lambda *_: False},
}
SMALL, LARGE = (64, 128, 64, 4, 4), (128, 256, 64, 8, 3)  # BLOCK_M, BLOCK_N, BLOCK_K, warps, stages
CASES = [(1024, 1024, 1024, SMALL), (64, 8192, 8192, SMALL), (2048, 2048, 2048, LARGE), (4096, 4096, 4096, LARGE),
         (16384, 16384, 1024, LARGE)]  # fmt: skip


def fresh(folder: Path, name: str) -> ModuleType:
    """A module of its own with the benchmark's kernels."""
    path = folder / f"{name.replace(' ', '_')}.py"
    path.write_text((Path(__file__).parent / "matmul_kernels.py").read_text())
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bound(kernel: Any, m: int, n: int, k: int, config: tuple[int, ...], tensors: Any) -> Callable[[], Any]:
    """A launch without arguments."""
    a, b, c = tensors
    block_m, block_n, block_k, warps, stages = config
    grid = (-(-m // block_m) * -(-n // block_n),)
    return lambda: kernel[grid](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), block_m, block_n, block_k, 8,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip


def median_times(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Microseconds of every run."""
    flush = l2_flush()
    graphs = {}
    for name, run in runs.items():
        run()
        torch.cuda.synchronize()
        graphs[name] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[name]):
            run()
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for number in range(rounds):
        names = list(graphs)
        first = number % len(names)  # who begins changes: after a pause the first one meets slower clocks
        for name in names[first:] + names[:first]:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush()
            start.record()
            graphs[name].replay()
            end.record()
            torch.cuda.synchronize()
            times[name].append(start.elapsed_time(end) * 1e3)
    return {name: statistics.median(each) for name, each in times.items()}


def main() -> None:
    """A line per case."""
    parser = argparse.ArgumentParser(description="Times the plain matmul without single decisions of the schedule.")
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    os.environ["TILEWRIGHT_VERIFY"] = "1"  # translations from the disk cache would all be "as decided"
    with tempfile.TemporaryDirectory() as scratch:
        for m, n, k, config in CASES:
            shapes = ((m, k), (k, n), (m, n))
            a, b, c = tensors = [torch.randn(shape, device="cuda", dtype=torch.float16) for shape in shapes]
            runs: dict[str, Callable[[], Any]] = {"torch": lambda a=a, b=b, c=c: torch.matmul(a, b, out=c)}
            for name, replaced in VARIANTS.items():
                run = bound(fresh(Path(scratch), f"{name} {m} {n} {k}").matmul_kernel, m, n, k, config, tensors)
                with contextlib.ExitStack() as stack:
                    for decision, value in replaced.items():
                        stack.enter_context(mock.patch(f"tilewright.{decision}", value))
                    run()  # translates
                runs[name] = run
            times = median_times(runs, rounds)
            print(
                f"{m}x{n}x{k} {config}: " + ", ".join(f"{name} {time:.2f}" for name, time in times.items()), flush=True
            )


if __name__ == "__main__":
    main()
