"""Runs functions of public libraries of kernels through Triton as they are, and through tilewright with their imports swapped.

usage: python benchmarks/libraries.py FOLDER ... [--only WORD ...] [--all-configs] [--output RESULT.json] [--lowest 40]

Each FOLDER holds a package's source, such as flash-linear-attention's `fla` or Liger's `liger_kernel`. It is copied twice into a
temporary folder, once with `import triton` replaced by `import tilewright as triton` and so on, which is all that a user does;
the functions of `libraries_cases.py` that belong to the packages given then run in a process for each compiler, forwards and
backwards, with the same random arguments. Results are compared with each other, and the times of all kernels that either
compiler made are taken from torch's profiler: medians over some runs, with whatever the run before left in L2. Of autotuned
kernels the middle config is taken, so that both run the same, or with `--all-configs` what each chooses.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from libraries_cases import CASES, MADE_UP, Case

RUNS = 8
SAMPLE = 1 << 22  # elements of a result that are compared
SWAPS = (
    (r"\bimport triton\.([\w.]+) as (\w+)", r"import tilewright.\1 as \2"),
    (r"\bimport triton\.([\w.]+)", r"import tilewright.\1; import tilewright as triton"),
    (r"\bimport triton as\b", "import tilewright as"),
    (r"\bimport triton\b(?!\.)", "import tilewright as triton"),
    (r"\bfrom triton\b", "from tilewright"),
    (r"([\"'])triton\.language\.extra", r"\1tilewright.language.extra"),
)


def swapped(text: str) -> str:
    """Source with its imports of Triton replaced by those of tilewright."""
    for pattern, replacement in SWAPS:
        text = re.sub(pattern, replacement, text)
    return text


def copy_package(source: Path, folder: Path, compiler: str) -> None:
    """A package's source in a folder, for one of the compilers; what neither has yet is done by torch (`MADE_UP`)."""
    target = folder / source.name
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    for path in target.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        text += MADE_UP.get(path.relative_to(folder).as_posix(), "")
        path.write_text(swapped(text) if compiler == "tilewright" else text, encoding="utf-8")


def middle_config(autotune: Callable[..., Any]) -> Callable[..., Any]:
    """`triton.autotune` that has only the middle one of its configs."""

    def with_one(configs: list[Any], *args: Any, **options: Any) -> Any:
        return autotune(configs[len(configs) // 2 :][:1], *args, **options)

    return with_one


# ------------------------------------------------------------------------------------------- in a process of its own


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in what a function returns."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [one for part in value for one in tensors(part)] if isinstance(value, (list, tuple)) else []


def step(case: Case) -> Callable[[], list[torch.Tensor]]:
    """A run of a case, forwards and, where an argument wants a gradient, backwards: its results and gradients."""
    torch.manual_seed(zlib.crc32(case.name.encode()))
    arguments = case.arguments()
    wanted = [one for one in arguments if isinstance(one, torch.Tensor) and one.requires_grad]

    def run() -> list[torch.Tensor]:
        for one in wanted:
            one.grad = None
        results = tensors(case.run(*arguments))
        ends = [one for one in results if one.requires_grad]
        if ends:
            generator = torch.Generator(device="cuda").manual_seed(1)
            seeds = [torch.randn(one.shape, generator=generator, device="cuda").to(one.dtype) for one in ends]
            torch.autograd.backward(ends, seeds)
        return [*(one.detach() for one in results), *(one.grad for one in wanted if one.grad is not None)]

    return run


def times(run: Callable[[], Any]) -> dict[str, float]:
    """Microseconds of every kernel of a run, by name; those launched several times together."""
    from torch.profiler import ProfilerActivity, profile

    run()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        for _ in range(RUNS):
            run()
        torch.cuda.synchronize()
    found: dict[str, list[float]] = {}
    for event in recorded.events():
        if "cuda" in str(event.device_type).lower():
            found.setdefault(event.name, []).append(event.device_time)
    return {name: statistics.median(every) * len(every) / RUNS for name, every in found.items()}


def run_all(compiler: str, folder: Path, names: list[str], all_configs: bool) -> None:
    """Runs cases, and leaves their results and times in the folder."""
    sys.path.insert(0, str(folder / compiler))
    module = __import__(compiler)
    if not all_configs:
        module.autotune = middle_config(module.autotune)
    for case in CASES:
        if case.name not in names:
            continue
        try:
            run = step(case)
            results = [one.flatten()[:: -(-one.numel() // SAMPLE)].cpu() for one in run()]
            torch.save({"results": results, "times": times(run)}, folder / f"{compiler}.{case.name}.pt")
        except Exception as error:
            traceback.print_exc(limit=-2)
            torch.save({"failed": "".join(traceback.format_exception_only(error)).strip()},
                       folder / f"{compiler}.{case.name}.pt")  # fmt: skip
        torch.cuda.empty_cache()


# ----------------------------------------------------------------------------------------------------- the comparison


def difference(one: torch.Tensor, other: torch.Tensor) -> float:
    """Norm of the difference over the norm; infinite where only one is NaN."""
    one, other = one.double(), other.double()
    if one.shape != other.shape or bool((one.isnan() != other.isnan()).any()):
        return math.inf
    gap, size = (one - other).nan_to_num(0, 0, 0).norm(), other.nan_to_num(0, 0, 0).norm()
    return float(gap / size) if size else float(gap)


def compared(name: str, folder: Path) -> dict[str, Any]:
    """What both compilers made of a case: the largest difference, and times of the kernels that both have."""
    both = {c: torch.load(folder / f"{c}.{name}.pt") for c in ("tilewright", "triton")
            if (folder / f"{c}.{name}.pt").exists()}  # fmt: skip
    failed = {c: found["failed"] for c, found in both.items() if "failed" in found}
    if failed or len(both) < 2:
        return {"failed": failed or {"both": "a process ended"}}
    ours, theirs = both["tilewright"], both["triton"]
    gaps = [difference(*pair) for pair in zip(ours["results"], theirs["results"], strict=True)]
    kernels = {k: (ours["times"][k], theirs["times"][k]) for k in ours["times"].keys() & theirs["times"].keys()}
    own = {k: pair for k, pair in kernels.items() if not k.startswith(("void ", "Mem", "sm90", "nvjet", "cutlass"))}
    return {"difference": max(gaps, default=0.0), "kernels": own}


def main() -> None:
    """See the module docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD")
    parser.add_argument("--all-configs", action="store_true")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--lowest", type=int, default=40)
    parser.add_argument("--inside", help=argparse.SUPPRESS)  # the compiler, in a process of its own
    arguments = parser.parse_args()
    given = {package.name for package in arguments.packages}
    names = [case.name for case in CASES if case.package in given
             and (not arguments.only or any(word in case.name for word in arguments.only))]  # fmt: skip
    if arguments.inside:
        run_all(arguments.inside, Path(os.environ["LIBRARIES_FOLDER"]), names, arguments.all_configs)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for compiler in ("tilewright", "triton"):
            for package in arguments.packages:
                copy_package(package.resolve(), folder / compiler, compiler)
            subprocess.run([sys.executable, __file__, *sys.argv[1:], "--inside", compiler], check=False,
                           env={**os.environ, "LIBRARIES_FOLDER": temporary})  # fmt: skip
        rows = {name: compared(name, folder) for name in names}
    report(rows, arguments.lowest)
    if arguments.output:
        arguments.output.write_text(json.dumps(rows, indent=1))


def report(rows: dict[str, dict[str, Any]], lowest: int) -> None:
    """Prints a table of kernels, the slowest beside Triton first, and what failed."""
    kernels = [(theirs / ours, name, kernel, ours, theirs) for name, row in rows.items()
               for kernel, (ours, theirs) in row.get("kernels", {}).items()]  # fmt: skip
    print("| case | kernel | tilewright us | Triton us | to Triton |\n| --- | --- | --- | --- | --- |")
    for ratio, name, kernel, ours, theirs in sorted(kernels)[:lowest]:
        print(f"| {name} | {kernel} | {ours:.1f} | {theirs:.1f} | {ratio:.3f} |")
    if kernels:
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio, *_ in kernels))
        print(f"\n{len(kernels)} kernels: geometric mean {mean:.3f}, lowest {min(kernels)[0]:.3f}")
    for name, row in rows.items():
        if "failed" in row:
            print("FAILED", name, row["failed"])
        elif row["difference"] > 2e-2:
            print("DIFFERENT", name, f"{row['difference']:.1e}")


if __name__ == "__main__":
    main()
