"""Times memory-bound kernels: the same source through tilewright and through Triton, beside torch and torch.compile.

usage: python benchmarks/elementwise.py [--only WORD ...] [--output RESULT.json]

Every contender is checked against float64, captured into a CUDA graph, and timed by events around a replay; contenders
take turns, the L2 cache is overwritten before each replay, and the median counts (contest.py). A copy of as many bytes as
the case must move is one of them. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from contest import Flush, l2_flush, load_both, take_turns

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
MILLISECONDS = 100.0  # of each case: up to 100 rounds


@dataclass(frozen=True)
class Case:
    """One problem: its contenders by name, the bytes that must move, its check and the arrays that it fills."""

    contenders: dict[str, Callable[[], object]]
    num_bytes: int
    check: Callable[[], None]
    outputs: tuple[torch.Tensor, ...]


def error(result: torch.Tensor, expected: torch.Tensor) -> float:
    """Norm of the difference over the norm of the reference; infinite for NaN."""
    value = (result.double() - expected).norm() / expected.norm()
    return float(value) if torch.isfinite(value) else math.inf


def expect(result: torch.Tensor, expected: torch.Tensor, tolerance: float, what: str) -> None:
    """Stops when a result is not within tolerance."""
    found = error(result, expected)
    if not found <= tolerance:
        raise SystemExit(f"{what} is wrong: error {found:.2e}")


# ---------------------------------------------------------------------------------------------------------- cases


def vector_add(modules: dict[str, ModuleType], n: int) -> Case:
    """Z = x + y, fp32."""
    x, y = torch.randn(2, n, device="cuda")
    out = torch.empty_like(x)

    def ours(name: str) -> Callable[[], object]:
        return lambda: modules[name].add_kernel[(-(-n // 1024),)](x, y, out, n, BLOCK_SIZE=1024)

    compiled = torch.compile(lambda a, b: a + b)
    contenders = {
        "tilewright": ours("tilewright"),
        "triton": ours("triton"),
        "torch": lambda: torch.add(x, y, out=out),
        "torch.compile": lambda: compiled(x, y),
    }
    return Case(contenders, 12 * n, lambda: expect(out, x.double() + y.double(), 1e-6, "sum"), (out,))


def softmax(modules: dict[str, ModuleType], rows: int, cols: int, dtype: torch.dtype) -> Case:
    """Softmax of rows."""
    x = torch.randn(rows, cols, device="cuda", dtype=dtype)
    out = torch.empty_like(x)

    def ours(name: str) -> Callable[[], object]:
        return lambda: modules[name].softmax(x, out, rows)

    compiled = torch.compile(lambda a: torch.softmax(a, -1))
    contenders = {
        "tilewright": ours("tilewright"),
        "triton": ours("triton"),
        "torch": lambda: torch.softmax(x, -1, out=out) if dtype == torch.float32 else torch.softmax(x, -1),
        "torch.compile": lambda: compiled(x),
    }
    tolerance = 1e-5 if dtype == torch.float32 else 2e-3
    check = lambda: expect(out, torch.softmax(x.double(), -1), tolerance, "softmax")
    return Case(contenders, 2 * x.nbytes, check, (out,))


def layer_norm_forward(modules: dict[str, ModuleType], rows: int, cols: int) -> Case:
    """Layer norm, fp16."""
    x = torch.randn(rows, cols, device="cuda", dtype=torch.float16)
    w, b = torch.randn(2, cols, device="cuda", dtype=torch.float16)
    y = torch.empty_like(x)
    mean, rstd = torch.empty(2, rows, device="cuda")
    # Short rows go by two: a block then waits for memory half as often.
    together, warps = (2, 2) if cols < 4096 else (1, min(cols // 1024, 16))

    def ours(name: str) -> Callable[[], object]:
        kernel, meta = modules[name].layer_norm_fwd, {"N": cols, "ROWS": together, "BLOCK_SIZE": cols}
        grid = (-(-rows // together),)
        return lambda: kernel[grid](x, y, w, b, mean, rstd, rows, 1e-5, **meta, num_warps=warps)

    compiled = torch.compile(lambda a, c, d: F.layer_norm(a, (cols,), c, d, 1e-5))
    contenders = {
        "tilewright": ours("tilewright"),
        "triton": ours("triton"),
        "torch": lambda: F.layer_norm(x, (cols,), w, b, 1e-5),
        "torch.compile": lambda: compiled(x, w, b),
    }
    reference = lambda: F.layer_norm(x.double(), (cols,), w.double(), b.double(), 1e-5)
    return Case(contenders, 2 * x.nbytes, lambda: expect(y, reference(), 2e-3, "y"), (y,))


def layer_norm_backward(modules: dict[str, ModuleType], rows: int, cols: int) -> Case:
    """All gradients of layer norm, fp16, in two kernels."""
    x, dy = torch.randn(2, rows, cols, device="cuda", dtype=torch.float16)
    w, b = torch.randn(2, cols, device="cuda", dtype=torch.float16)
    _, mean, rstd = torch.native_layer_norm(x, (cols,), w, b, 1e-5)
    # A program per multiprocessor where its row is wide enough to keep one busy, otherwise several.
    groups = torch.cuda.get_device_properties(0).multi_processor_count * max(4096 // cols, 1)
    dx = torch.empty_like(x)
    parts = torch.empty(2, groups, cols, device="cuda")
    dw, db = torch.empty(2, cols, device="cuda", dtype=torch.float16)
    warps = min(max(cols // 512, 2), 16)
    flat_mean, flat_rstd = mean.flatten().float(), rstd.flatten().float()

    def ours(name: str) -> Callable[[], object]:
        module = modules[name]

        def run() -> None:
            module.layer_norm_bwd_dx[(groups,)](
                dx,
                dy,
                parts[0],
                parts[1],
                x,
                w,
                flat_mean,
                flat_rstd,
                rows,
                N=cols,
                BLOCK_SIZE=cols,
                num_warps=warps,
            )
            module.layer_norm_bwd_dwdb[(-(-cols // 32),)](
                parts[0], parts[1], dw, db, groups, cols, BLOCK_M=256, BLOCK_N=32, num_warps=8
            )

        return run

    backward = torch.ops.aten.native_layer_norm_backward
    contenders = {
        "tilewright": ours("tilewright"),
        "triton": ours("triton"),
        "torch": lambda: backward(dy, x, (cols,), mean, rstd, w, b, [True, True, True]),
    }

    def check() -> None:
        leaf = [t.double().requires_grad_() for t in (x, w, b)]
        F.layer_norm(leaf[0], (cols,), leaf[1], leaf[2], 1e-5).backward(dy.double())
        for result, tensor, what in zip((dx, dw, db), leaf, ("dx", "dw", "db"), strict=True):
            expect(result, tensor.grad, 5e-3, what)

    return Case(contenders, 3 * x.nbytes, check, (dx, dw, db))


# --------------------------------------------------------------------------------------------------------- timing


def copy_bandwidth() -> float:
    """Bytes per second of a device-to-device copy of 4 GiB, reads and writes counted."""
    source = torch.empty(1 << 30, device="cuda", dtype=torch.float32)
    target = torch.empty_like(source)
    source.fill_(1.0)
    times = []
    for _ in range(10):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        target.copy_(source)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return 2 * source.nbytes / statistics.median(times) * 1e3


def run_case(name: str, case: Case, flush: Flush, copy: float) -> dict[str, Any]:
    """Checks, times and reports one case."""
    for contender in ("tilewright", "triton"):
        for output in case.outputs:
            output.fill_(math.nan)
        case.contenders[contender]()
        torch.cuda.synchronize()
        case.check()
    source, target = torch.ones(2, case.num_bytes // 8, device="cuda")
    turns = take_turns(case.contenders | {"copy": lambda: target.copy_(source)}, flush, MILLISECONDS)
    times = {contender: statistics.median(values) for contender, values in turns.items()}
    row: dict[str, Any] = {"case": name, "ms": times, "bytes": case.num_bytes}
    row["of_copy"] = case.num_bytes / times["tilewright"] * 1e3 / copy
    row["of_such_a_copy"] = times["copy"] / times["tilewright"]
    row["to_triton"] = times["triton"] / times["tilewright"]
    row["to_torch"] = min(times[n] for n in ("torch", "torch.compile") if n in times) / times["tilewright"]
    return row


def all_cases(folder: str) -> dict[str, Callable[[], Case]]:
    """The problems by name, built one after the other so that memory is free again."""
    sys.path.insert(0, str(SAMPLES))
    names = ("vector_add", "fused_softmax", "layer_norm")
    add, soft, norm = (load_both(SAMPLES / f"{name}.py", Path(folder)) for name in names)
    cases: dict[str, Callable[[], Case]] = {}
    for n in (1 << 20, 1 << 26, 98_432_000):
        cases[f"vector add {n} fp32"] = lambda n=n: vector_add(add, n)
    for rows, cols in ((4096, 781), (8192, 1024), (8192, 4096), (4096, 16384)):
        cases[f"softmax {rows}x{cols} fp32"] = lambda r=rows, c=cols: softmax(soft, r, c, torch.float32)
    cases["softmax 4096x32768 fp16"] = lambda: softmax(soft, 4096, 32768, torch.float16)
    for direction, build in (("forward", layer_norm_forward), ("backward", layer_norm_backward)):
        for cols in (1024, 8192, 16384):
            cases[f"layer norm {direction} 4096x{cols} fp16"] = lambda b=build, c=cols: b(norm, 4096, c)
    return cases


def table_line(row: dict[str, Any]) -> str:
    """A row as Markdown."""
    names = ("tilewright", "triton", "torch", "torch.compile")
    shown = [f"{row['ms'][n]:.4f}" if n in row["ms"] else "" for n in names]
    ratios = [f"{row[key]:.3f}" for key in ("to_triton", "to_torch", "of_copy", "of_such_a_copy")]
    return f"| {' | '.join([row['case'], *shown, *ratios])} |"


def main() -> None:
    """Runs what is asked for and prints the table."""
    import triton
    from tilewright.runtime.building import nvrtc
    from tilewright.version import VERSION

    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--only", action="extend", nargs="+", help="run the cases whose name contains this; may be repeated"
    )
    parser.add_argument("--output", type=Path, help="a JSON file for all numbers")
    options = parser.parse_args()
    flush = l2_flush()
    copy = copy_bandwidth()
    compiler = "NVRTC {}.{}".format(*nvrtc.version())
    versions = f"tilewright {VERSION}, {compiler}, triton {triton.__version__}, torch {torch.__version__}"
    print(f"{torch.cuda.get_device_name()}; {versions}; copy {copy / 1e12:.2f} TB/s\n")
    print(
        "| case | tilewright ms | triton ms | torch ms | torch.compile ms"
        " | to triton | to torch | of copy | of a copy of as much |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, build in all_cases(folder).items():
            if options.only and not any(word in name for word in options.only):
                continue
            rows.append(run_case(name, build(), flush, copy))
            print(table_line(rows[-1]), flush=True)
            torch.cuda.empty_cache()
    mean = math.exp(statistics.fmean(math.log(row["to_triton"]) for row in rows))
    print(f"\ngeometric mean to triton {mean:.3f}, lowest {min(row['to_triton'] for row in rows):.3f}")
    if options.output:
        options.output.write_text(json.dumps({"versions": versions, "copy": copy, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
