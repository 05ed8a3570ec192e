"""What the benchmarks share: one source for tilewright and Triton, checks against float64, timing in turns, tables."""

from __future__ import annotations

import importlib.util
import math
import statistics
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

FLUSH_BYTES = 256 << 20  # several times the L2 cache
Flush = Callable[[], None]
FEWEST_ROUNDS, MOST_ROUNDS = 9, 100


@dataclass(frozen=True)
class Case:
    """One problem.

    Attributes:
      name: as it stands in the table.
      contenders: what runs, by name; all write `output`. Tuned kernels show their config by `config_of`.
      output: the result, poisoned before every check.
      reference: the result in float64.
      tolerance: allowed norm of the difference over the norm of the reference.
      work: operations, or bytes for a case that is bound by memory; `unit` is what it is per second, times 1e12.
    """

    name: str
    contenders: dict[str, Callable[[], Any]]
    output: torch.Tensor
    reference: Callable[[], torch.Tensor]
    tolerance: float
    work: float
    unit: str = "TFLOPS"
    config_of: Callable[[str], str] = lambda name: ""


@dataclass
class Row:
    """The result of a case; times in milliseconds, `ours` what our kernels need."""

    case: str
    ms: dict[str, float] = field(default_factory=dict)
    spread: dict[str, float] = field(default_factory=dict)
    error: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)
    ours: dict[str, dict[str, Any]] = field(default_factory=dict)
    rate: float = 0.0
    unit: str = ""

    def ratio(self, other: str) -> float | None:
        """Their time over ours; above 1 is faster. None where one of the two has no time."""
        both = self.ms.get("tilewright"), self.ms.get(other)
        return both[1] / both[0] if both[0] and both[1] else None


def load_both(path: Path, folder: Path) -> dict[str, ModuleType]:
    """The module of a file twice: as it is, and with Triton in tilewright's place. Without Triton, the first alone."""
    text = path.read_text()
    theirs = text.replace("import tilewright as triton", "import triton")
    theirs = theirs.replace("tilewright.language", "triton.language")
    modules = {}
    for name, source in (("tilewright", text), ("triton", theirs)):
        if importlib.util.find_spec(name) is None:
            continue
        copy = folder / f"{name}_{path.name}"
        copy.write_text(source)
        spec = importlib.util.spec_from_file_location(copy.stem, copy)
        modules[name] = sys.modules[copy.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(modules[name])
    return modules


def errors(result: torch.Tensor, expected: torch.Tensor) -> tuple[float, float]:
    """(norm of the difference, largest difference), over norm and root mean square of the reference; inf for NaN."""
    difference = result.double() - expected
    norm = float(difference.norm() / expected.norm())
    largest = float(difference.abs().max() / expected.square().mean().sqrt())
    return (norm, largest) if math.isfinite(norm) else (math.inf, math.inf)


def check(case: Case, row: Row) -> dict[str, Callable[[], Any]]:
    """Runs every contender on a poisoned output; those that fail or are wrong go into `row.failed`."""
    expected = case.reference()
    good = {}
    for name, run in case.contenders.items():
        case.output.fill_(math.nan if case.output.is_floating_point() else -1)
        try:
            compiled = run()
            if case.output.is_cuda:
                torch.cuda.synchronize()
        except Exception as error:
            row.failed[name] = "".join(traceback.format_exception_only(error)).strip()
            continue
        norm, largest = errors(case.output, expected)
        row.error[name], row.config[name] = norm, case.config_of(name)
        # The largest of 10^8 differences is some 10 times the typical one.
        if norm <= case.tolerance and largest <= 16 * case.tolerance:
            good[name] = run
        else:
            row.failed[name] = f"wrong: norm {norm:.2e} (allowed {case.tolerance:.0e}), largest {largest:.2e}"
        if name.startswith("tilewright"):
            row.ours[name] = facts(compiled)
    return good


def facts(compiled: Any) -> dict[str, Any]:
    """What our kernel needs; empty when that is not known."""
    if not hasattr(compiled, "artifact"):
        return {}
    artifact = compiled.artifact
    return {"registers": compiled.n_regs, "spills": compiled.n_spills, "shared": artifact.shared_bytes,
            "threads": artifact.num_threads, "source": compiled.source}  # fmt: skip


def capture(run: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    """A contender as a graph of its launches."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        run()
    return graph


def l2_flush(clean: bool = False) -> Callable[[], None]:
    """What fills the L2 cache with other data before a contender runs.

    They were written, so that the contender waits while they are written back: the first 60 MB that it brings cost twice. With
    `clean` they have been read since, as by a kernel that reads weights, and make room at once.
    """
    data = torch.empty(FLUSH_BYTES // 4, device="cuda", dtype=torch.int32)
    first_half, total = data[: len(data) // 2], torch.empty((), device="cuda", dtype=torch.int64)

    def flush() -> None:
        data.zero_()
        if clean:
            torch.sum(first_half, dim=0, out=total)

    return flush


def take_turns(runs: dict[str, Callable[[], Any]], flush: Flush, milliseconds: float) -> dict[str, list[float]]:
    """The times of every contender, all in turns, each behind `flush` (see `l2_flush`); about that long in total.

    Who begins a round changes: after the pause between rounds the first one meets slower clocks.
    """
    graphs = {name: capture(run) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in graphs}
    rounds, number = FEWEST_ROUNDS, -2  # two rounds to warm up
    while number < rounds:
        pairs = {}
        names = list(graphs)
        first = number % len(names)
        for name in names[first:] + names[:first]:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush()
            start.record()
            graphs[name].replay()
            end.record()
            pairs[name] = start, end
        torch.cuda.synchronize()
        taken = {name: start.elapsed_time(end) for name, (start, end) in pairs.items()}
        if number == -1:
            rounds = max(FEWEST_ROUNDS, min(MOST_ROUNDS, int(milliseconds / max(sum(taken.values()), 0.01))))
        elif number >= 0:
            for name, value in taken.items():
                times[name].append(value)
        number += 1
    return times


def run_case(case: Case, flush: Flush, milliseconds: float) -> Row:
    """Checks and times a case."""
    row = Row(case.name, unit=case.unit)
    good = check(case, row)
    times = {}
    while good and not times:
        try:
            times = take_turns(good, flush, milliseconds)
        except Exception as error:  # whoever cannot be captured is found by trying each alone
            broken = [name for name, run in good.items() if not _can_be_captured(run)]
            for name in broken or list(good):
                row.failed[name] = f"timing: {''.join(traceback.format_exception_only(error)).strip()}"
                del good[name]
    for name, values in times.items():
        row.ms[name] = statistics.median(values)
        row.spread[name] = (max(values) - min(values)) / row.ms[name]
    if "tilewright" in row.ms:
        row.rate = case.work / row.ms["tilewright"] / 1e9
    return row


def _can_be_captured(run: Callable[[], Any]) -> bool:
    try:
        capture(run)
    except Exception:
        return False
    return True


# ---------------------------------------------------------------------------------------------------------- reporting

HEADER = (
    "| case | tilewright ms | triton ms | torch ms | rate | to triton | to torch | our config | their config |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
)


def table_line(row: Row) -> str:
    """A row as Markdown."""

    def shown(value: float | None, digits: int) -> str:
        return f"{value:.{digits}f}" if value else ""

    times = [shown(row.ms.get(name), 4) or ("failed" if name in row.failed else "") for name in
             ("tilewright", "triton", "torch")]  # fmt: skip
    ratios = [shown(row.ratio(name), 3) for name in ("triton", "torch")]
    configs = [row.config.get(name, "") for name in ("tilewright", "triton")]
    cells = [row.case, *times, f"{row.rate:.1f} {row.unit}" if row.rate else "", *ratios, *configs]
    return f"| {' | '.join(cells)} |"


def conclusion(rows: list[Row]) -> list[str]:
    """Geometric means and lowest ratios, and what failed."""
    lines = []
    for other in ("triton", "torch"):
        ratios = {row.case: ratio for row in rows if (ratio := row.ratio(other))}
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
            low = min(ratios, key=ratios.__getitem__)
            lines.append(f"to {other}: geometric mean {mean:.3f} of {len(ratios)}, lowest {ratios[low]:.3f} ({low})")
    for row in rows:
        lines += [f"SPILLS {row.case}: {need['spills']} bytes" for need in row.ours.values() if need and need["spills"]]
        lines += [f"FAILED {row.case}, {name}: {why.splitlines()[0][:300]}" for name, why in row.failed.items()]
    return lines
