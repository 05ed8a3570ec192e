"""Times everyday kernels: one source through tilewright and through Triton, with the same sizes and options.

usage: python benchmarks/everyday.py [--only WORD ...] [--case-ms 100] [--output RESULT.json]
       python benchmarks/everyday.py --small    (checks small sizes on the CPU, without a GPU and without Triton)

Every result is checked against float64 on a poisoned output, captured into a CUDA graph and timed by events, in turns, with
the L2 cache overwritten before each replay; the median counts (contest.py). Kernels that add to their result clear it in
what is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import everyday_algebra_cases
import everyday_cases
import everyday_chunk_cases
import everyday_fields_cases
import everyday_images_cases
import everyday_layers_cases
import everyday_neighbours_cases
import everyday_numerics_cases
import everyday_product_cases
import everyday_sequence_cases
import everyday_shares_cases
import everyday_signals_cases
import everyday_steps_cases
import everyday_tasks_cases
import torch
from contest import HEADER, Case, Row, check, conclusion, l2_flush, load_both, run_case, table_line
from everyday_cases import DEVICE, Problem

HERE = Path(__file__).parent
SOURCES = {
    "everyday_rows.py": everyday_cases.CASES,
    "everyday_products.py": everyday_product_cases.CASES,
    "everyday_chunks.py": everyday_chunk_cases.CASES,
    "everyday_numerics.py": everyday_numerics_cases.CASES,
    "everyday_layers.py": everyday_layers_cases.CASES,
    "everyday_sequences.py": everyday_sequence_cases.CASES,
    "everyday_algebra.py": everyday_algebra_cases.CASES,
    "everyday_images.py": everyday_images_cases.CASES,
    "everyday_neighbours.py": everyday_neighbours_cases.CASES,
    "everyday_fields.py": everyday_fields_cases.CASES,
    "everyday_shares.py": everyday_shares_cases.CASES,
    "everyday_signals.py": everyday_signals_cases.CASES,
    "everyday_steps.py": everyday_steps_cases.CASES,
    "everyday_tasks.py": everyday_tasks_cases.CASES,
}


def launches(problem: Problem, kernel: str, modules: dict[str, ModuleType]) -> dict[str, Callable[[], Any]]:
    """The launch by whoever reads the source."""

    def launch(module: ModuleType) -> Any:
        if problem.zeroed:
            problem.output.zero_()
        return getattr(module, kernel)[problem.grid](*problem.args, **problem.meta)

    return {name: (lambda module=module: launch(module)) for name, module in modules.items()}


def case_of(build: Callable[..., Problem], sizes: tuple[int, ...], modules: dict[str, ModuleType]) -> Case:
    """A problem as the benchmarks' common code wants it."""
    problem = build(*sizes)
    kernel = build.__name__
    return Case(
        name=f"{kernel} {'x'.join(map(str, sizes))}",
        contenders=launches(problem, kernel, modules),
        output=problem.output,
        reference=lambda: problem.reference().double(),
        tolerance=problem.tolerance,
        work=problem.work,
        unit=problem.unit,
    )


def measure(sources: dict[str, Any], usage: str) -> None:
    """Prints a table; with --small, a line per kernel. `sources` has the cases of each file of kernels."""
    parser = argparse.ArgumentParser(description=usage, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="extend", nargs="+", help="kernels whose name has this in it")
    parser.add_argument("--case-ms", type=float, default=100.0, help="milliseconds of timing a case")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--output", type=Path, help="a JSON file for times, errors and failures")
    options = parser.parse_args()
    torch.manual_seed(0)
    if options.small:
        DEVICE[0] = "cpu"
        os.environ.setdefault("TILEWRIGHT_MODE", "cpu")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        wanted = []
        for source, cases in sources.items():
            modules = load_both(HERE / source, Path(folder))
            for build, large, small in cases:
                if any(word in build.__name__ for word in options.only or [build.__name__]):
                    wanted.append((build, small if options.small else large, modules))
        if options.small:
            for build, sizes, modules in wanted:
                case = case_of(build, sizes, {"tilewright": modules["tilewright"]})
                rows.append(Row(case.name))
                check(case, rows[-1])
                print(rows[-1].case, rows[-1].error, rows[-1].failed or "", flush=True)
        else:
            rows = timed(wanted, options.case_ms)
    print("", *conclusion(rows), sep="\n")
    if options.output:
        found = [{"case": row.case, "ms": row.ms, "error": row.error, "failed": row.failed} for row in rows]
        options.output.write_text(json.dumps(found, indent=1))


def timed(wanted: list[tuple[Any, tuple[int, ...], dict[str, ModuleType]]], milliseconds: float) -> list[Row]:
    """All cases beside Triton."""
    flush = l2_flush()
    print(*HEADER, sep="\n", flush=True)
    rows = []
    for build, sizes, modules in wanted:
        try:
            rows.append(run_case(case_of(build, sizes, modules), flush, milliseconds))
        except Exception as error:
            rows.append(Row(build.__name__, failed={"all": "".join(traceback.format_exception_only(error))}))
        print(table_line(rows[-1]), flush=True)
        torch.cuda.empty_cache()
    return rows


if __name__ == "__main__":
    measure(SOURCES, __doc__)
