"""Times the kernels that torch.compile writes for the graphs in inductor_graphs, through tilewright and through Triton.

usage: python benchmarks/inductor.py [--only WORD ...] [--case-ms 30] [--lowest 40] [--output RESULT.json] [--keep FOLDER]

Each graph is compiled by torch, which writes kernels in Triton's language and launches them. Every kernel, with the arguments,
the grid and the options of that launch, then runs through both compilers: results are compared with each other, and times are
taken as in the other benchmarks (contest.py). Kernels with random numbers, which tilewright does not know yet, fail.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import inductor_graphs
import torch
import torch._dynamo
import torch._inductor.runtime.triton_helpers as torch_helpers
from contest import Row, conclusion, facts, l2_flush, take_turns
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.runtime.triton_heuristics import CachingAutotuner, GridExpr

HEADS = {
    "triton": """import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math
""",
    "tilewright": """import tilewright as triton
import tilewright.language as tl
import tilewright_helpers as triton_helpers
from tilewright_helpers import libdevice, math as tl_math
""",
}
HELPERS_HEAD = """import tilewright as triton
import tilewright.language as tl
from tilewright.language.extra import libdevice
from tilewright.language.standard import _log2
math = tl.math
builtins_use_semantic_kwarg = True
class JITFunction: pass
"""
TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-6}  # relative; 2e-2 for narrower types


@dataclass
class Launch:
    """A kernel as torch launches it."""

    graph: str
    name: str
    source: str
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    options: dict[str, Any]


@dataclass
class Recorder:
    """Takes down the first launch of every kernel of a graph."""

    graph: str = ""
    launches: dict[tuple[str, str], Launch] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    def install(self) -> None:
        """From now on, what torch.compile writes and launches is recorded."""
        run, compile_source = CachingAutotuner.run, AsyncCompile.triton

        def noted(compiler: Any, kernel_name: str, source_code: str, *args: Any, **kwargs: Any) -> Any:
            self.sources[kernel_name] = source_code
            return compile_source(compiler, kernel_name, source_code, *args, **kwargs)

        def recorded(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            before = copied(args)
            result = run(tuner, *args, **kwargs)
            self.note(tuner, before)
            return result

        CachingAutotuner.run, AsyncCompile.triton = recorded, noted

    def note(self, tuner: Any, args: tuple[Any, ...]) -> None:
        """Takes down a launch with these arguments."""
        name, config = tuner.inductor_meta["kernel_name"], tuner.launchers[0].config
        extra = tuner.inductor_meta.get("extra_launcher_args", [])  # behind the kernel's own: a template's grid
        args, further = args[: len(args) - len(extra)], args[len(args) - len(extra) :]
        signature, constants = tuner.triton_meta["signature"], tuner.triton_meta["constants"]
        given = list(signature)[: len(args)]
        values = {**constants, **config.kwargs}
        options = {
            key: value for key, value in values.items() if signature.get(key) == "constexpr" and key not in given
        }
        grid = GridExpr.from_meta(tuner.inductor_meta, config, mode="python")
        taken = dict(zip(extra, further, strict=True))
        taken |= {key: value for key, value in zip(signature, args, strict=False) if key not in config.kwargs}
        launch = Launch(
            self.graph,
            name,
            self.sources[name],
            tuple(grid.eval_slow({**taken, **config.kwargs})),
            args,
            options | {"num_warps": config.num_warps, "num_stages": config.num_stages},
        )
        self.launches.setdefault((self.graph, name), launch)


def copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, tensors with the memory that they span: kernels count their elements by strides."""

    def copy(tensor: torch.Tensor) -> torch.Tensor:
        span = 1 + sum((side - 1) * stride for side, stride in zip(tensor.shape, tensor.stride(), strict=True))
        return tensor.as_strided((span,), (1,)).clone().as_strided(tensor.shape, tensor.stride())

    return tuple(copy(arg) if isinstance(arg, torch.Tensor) and arg.numel() else arg for arg in args)


def module_of(name: str, text: str, folder: Path) -> ModuleType:
    """A module with this text."""
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_helpers(folder: Path) -> None:
    """The functions that the kernels call, in tilewright's language."""
    text = Path(torch_helpers.__file__).read_text()
    start = text.index("from .triton_compat import")
    end = text.index(")", start) + 1
    module_of("tilewright_helpers", text[:start] + HELPERS_HEAD + text[end:], folder)


def kernels_of(launch: Launch, number: int, folder: Path) -> dict[str, Any]:
    """The kernel by whoever reads it, without the decorator by which torch tunes it."""
    body = launch.source[launch.source.index("@triton.jit", launch.source.index("@triton_heuristics.")) :]
    return {
        who: getattr(module_of(f"{who}_{number}", head + "\n" + body, folder), launch.name)
        for who, head in HEADS.items()
    }


def differs(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether more than one in a thousand elements is another number: sums of atomics come in any order."""
    tolerance = TOLERANCE.get(left.dtype, 2e-2)
    wide = (lambda tensor: tensor) if left.dtype == torch.float64 else torch.Tensor.float
    near = torch.isclose(wide(left), wide(right), rtol=tolerance, atol=tolerance, equal_nan=True)
    return bool((~near).float().mean() > 1e-3)


def compare(launch: Launch, number: int, folder: Path, flush: Callable[[], None], milliseconds: float) -> Row:
    """Runs a kernel through both, compares what it leaves, and times it."""
    row = Row(f"{launch.graph}: {launch.name}", config={key: str(value) for key, value in launch.options.items()})
    runs, left = {}, {}
    for who, kernel in kernels_of(launch, number, folder).items():
        args = copied(launch.arguments)
        run = lambda kernel=kernel, args=args: kernel[launch.grid](*args, **launch.options)
        try:
            compiled = run()
            torch.cuda.synchronize()
        except Exception as error:
            row.failed[who] = "".join(traceback.format_exception_only(error)).strip()
            continue
        runs[who] = run
        left[who] = [arg for arg in copied(args) if isinstance(arg, torch.Tensor)]
        if who == "tilewright":
            row.ours[who] = facts(compiled)
            (folder / f"tilewright_{number}.cu").write_text(compiled.asm["cu"])
    if len(left) == 2 and any(map(differs, left["tilewright"], left["triton"])):
        row.failed["tilewright"] = "the results differ"
    if not row.failed:
        times = take_turns(runs, flush, milliseconds)
        row.ms = {who: sorted(values)[len(values) // 2] for who, values in times.items()}
    return row


def main() -> None:
    """Prints the lowest ratios, and a conclusion."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="extend", nargs="+", help="graphs whose name has this in it")
    parser.add_argument("--case-ms", type=float, default=30.0, help="milliseconds of timing a kernel")
    parser.add_argument("--lowest", type=int, default=40, help="how many kernels to print")
    parser.add_argument("--output", type=Path, help="a JSON file for times and failures")
    parser.add_argument(
        "--keep", type=Path, help="an empty folder for the kernels, as both read them, and for our text"
    )
    options = parser.parse_args()
    torch.manual_seed(0)
    torch._dynamo.config.recompile_limit = 1000
    recorder, flush, rows = Recorder(), l2_flush(), []
    recorder.install()
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        load_helpers(folder)
        for graph, run in inductor_graphs.GRAPHS.items():
            if options.only and not any(word in graph for word in options.only):
                continue
            recorder.graph, recorder.launches, recorder.sources = graph, {}, {}
            try:
                run()
                torch.cuda.synchronize()
            except Exception:
                traceback.print_exc()  # the others count all the same
            for launch in recorder.launches.values():
                rows.append(compare(launch, len(rows), folder, flush, options.case_ms))
            recorder.launches = {}
            torch.cuda.empty_cache()
    timed = sorted((row for row in rows if row.ratio("triton")), key=lambda row: row.ratio("triton"))
    print("| kernel | tilewright ms | triton ms | to triton |\n| --- | --- | --- | --- |")
    for row in timed[: options.lowest]:
        ratio = row.ratio("triton")
        print(f"| {row.case} | {row.ms['tilewright']:.4f} | {row.ms['triton']:.4f} | {ratio:.3f} |")
    print("\n".join(conclusion(rows)))
    if options.output:
        found = [{"case": row.case, "ms": row.ms, "failed": row.failed, "options": row.config} for row in rows]
        options.output.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
