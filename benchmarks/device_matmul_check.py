"""Checks kernels with dots against float64, a line per case, whatever happens to the others.

usage: python benchmarks/device_matmul_check.py [--filter REGEX] [--size small|large] [--arch sm_80] [--seconds 540]
           [--patience 60] [--list]

Runs on a GPU through torch where there is one, else on NumPy arrays with small sizes (as TILEWRIGHT_MODE says). Results
are poisoned before the launch, and operands and results lie between guard zones: NaN that must not get into a result, and
a pattern that must not change. Cases run in a process of their own, which is replaced when it hangs or the GPU is lost.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

GUARD = 128  # elements before and behind every array, a multiple of what keeps it aligned
LOST = 3  # exit status of a process whose GPU does not work any more
SAME_BITS = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}


def has_gpu() -> bool:
    """Whether to run on a GPU: there is one, and no other mode is asked for."""
    if os.environ.get("TILEWRIGHT_MODE", "gpu") != "gpu":
        return False
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


# ------------------------------------------------------------------------------------------------------- one process


class Guarded:
    """An array between guard zones, where the kernel will run.

    `memory` holds zone, array and zone; `value` is what the kernel gets.
    """

    def __init__(self, array: np.ndarray, fill: float | None, offset: int, on_gpu: bool) -> None:
        """Copies an array, or fills in its place with `fill`; `offset` elements spoil its alignment."""
        # Arrays that lie by columns keep doing so.
        self.by_columns = array.ndim == 2 and array.strides[0] < array.strides[1] and 1 not in array.shape
        flat = (array.T if self.by_columns else array).reshape(-1)
        self.shape, self.dtype, self.start = array.shape, array.dtype, GUARD + offset
        wild = np.nan if array.dtype.kind not in "iu" else np.iinfo(array.dtype).max
        memory = np.full(flat.size + 2 * GUARD + offset, wild, np.float32 if wild != wild else array.dtype)
        memory = memory.astype(array.dtype)
        memory[self.start : self.start + flat.size] = (
            flat if fill is None else np.asarray(fill, np.float64).astype(flat.dtype)
        )
        self.size, self.before, self.on_gpu = flat.size, memory.copy(), on_gpu
        self.memory = _to_gpu(memory) if on_gpu else memory
        self.value = self.memory[self.start : self.start + flat.size]

    def result(self) -> np.ndarray:
        """The array's content now, in the shape that it had."""
        content = (_from_gpu(self.memory, self.dtype) if self.on_gpu else self.memory)[
            self.start : self.start + self.size
        ]
        return content.reshape(self.shape[::-1]).T if self.by_columns else content.reshape(self.shape)

    def zones_are_whole(self) -> bool:
        """Whether nothing was written beside the array."""
        now = _from_gpu(self.memory, self.dtype) if self.on_gpu else self.memory
        own = slice(self.start, self.start + self.size)
        raw, before = (
            now.view(np.uint8).reshape(len(now), -1).copy(),
            self.before.view(np.uint8).reshape(len(now), -1).copy(),
        )
        raw[own] = before[own] = 0
        return bool((raw == before).all())


def _to_gpu(array: np.ndarray) -> Any:
    import torch

    name = str(array.dtype)
    if name in SAME_BITS:
        return torch.from_numpy(array.view(SAME_BITS[name]).copy()).cuda().view(getattr(torch, name))
    return torch.from_numpy(array.copy()).cuda()


def _from_gpu(tensor: Any, dtype: np.dtype) -> np.ndarray:
    import torch

    name = str(dtype)
    if name in SAME_BITS:
        return tensor.view(getattr(torch, SAME_BITS[name])).cpu().numpy().view(dtype)
    return tensor.cpu().numpy()


def poison(array: np.ndarray) -> float:
    """What a result holds before the launch."""
    return np.nan if array.dtype.kind not in "iu" else float(np.iinfo(array.dtype).max // 3)


def prepared(problem: Any, on_gpu: bool) -> dict[str, Any]:
    """The arguments with every array guarded."""
    values = {}
    for name, value in problem.arguments.items():
        if isinstance(value, np.ndarray):
            fill = problem.start.get(name, poison(value)) if name in problem.expected else None
            value = Guarded(value, fill, problem.offset, on_gpu)
        values[name] = value
    return values


def judge(problem: Any, values: dict[str, Any]) -> tuple[bool, str]:
    """(whether all results are right, what to print)."""
    worst = 0.0
    for name, expected in problem.expected.items():
        found = values[name].result()
        found = found.astype(np.float32).astype(np.float64) if found.itemsize < 4 else found.astype(np.float64)
        if not np.isfinite(found).all():
            bad = np.argwhere(~np.isfinite(found))
            return False, f"{name}: {len(bad)} of {found.size} are not finite, the first at {bad[0].tolist()}"
        difference = np.abs(found - expected)
        error = float(np.linalg.norm(difference) / max(np.linalg.norm(expected), 1e-30))
        typical = float(np.sqrt(np.mean(expected**2)))
        if error > problem.tolerance or difference.max() > 24 * problem.tolerance * typical:
            place = np.unravel_index(int(difference.argmax()), difference.shape)
            wrong = int((difference > 8 * problem.tolerance * typical).sum())
            return False, (
                f"{name}: error {error:.1e} (allowed {problem.tolerance:.1e}), {wrong} of {found.size} off, most at "
                f"{[int(i) for i in place]}: {found[place]:.6g}, not {expected[place]:.6g}"
            )
        worst = max(worst, error)
    damaged = [name for name, value in values.items() if isinstance(value, Guarded) and not value.zones_are_whole()]
    if damaged:
        return False, f"written outside of {', '.join(damaged)}"
    return True, f"error {worst:.1e} (allowed {problem.tolerance:.1e})"


def arguments_of(values: dict[str, Any]) -> dict[str, Any]:
    """What the kernel is launched with."""
    return {name: value.value if isinstance(value, Guarded) else value for name, value in values.items()}


def run_one(problem: Any, on_gpu: bool) -> tuple[bool, str, bool]:
    """(whether it is right, what to print, whether the GPU is lost)."""
    try:
        values = prepared(problem, on_gpu)
        compiled = problem.kernel[problem.grid](**arguments_of(values), **problem.options)
        right, text = judge(problem, values)
    except Exception as error:
        lines = [line for line in str(error).strip().splitlines() if line.strip()] or [""]
        text = f"{type(error).__name__}: {' / '.join(lines[:3])[:400]}"
        return False, text, on_gpu and _is_lost()
    needs = f"; {compiled.n_regs} registers, {compiled.n_spills} spilled" if on_gpu else ""
    return right, text + needs, False


def _is_lost() -> bool:
    import torch

    try:
        torch.cuda.synchronize()
        torch.zeros(1, device="cuda").item()
    except Exception:
        return True
    return False


def work(cases: list[Any], first: int) -> int:
    """Runs the cases from a number on, printing "number|right|text" for each."""
    on_gpu = has_gpu()
    with ThreadPoolExecutor(os.cpu_count() if on_gpu else 1) as pool:

        def compile_ahead(case: Any) -> Any:
            problem = case.build()
            problem.kernel.warmup(**arguments_of(prepared(problem, on_gpu)), grid=problem.grid, **problem.options)

        ahead: dict[int, Future[Any]] = {}
        for number in range(first, len(cases)):
            for later in range(number, min(number + 2 * (os.cpu_count() or 1), len(cases)) if on_gpu else number):
                if later not in ahead:
                    ahead[later] = pool.submit(compile_ahead, cases[later])
            if number in ahead:
                ahead[number].exception()  # the launch will say the same
            print(f"{number}|start|", flush=True)
            right, text, lost = run_one(cases[number].build(), on_gpu)
            print(f"{number}|{'ok' if right else 'bad'}|{text}", flush=True)
            if lost:
                os._exit(LOST)
    return 0


# ------------------------------------------------------------------------------------------------------- the watcher


def watch(cases: list[Any], command: list[str], seconds: float, patience: float) -> int:
    """Starts processes until every case has a line; returns the number of bad ones."""
    begin, bad, number = time.monotonic(), 0, 0
    while number < len(cases):
        process = subprocess.Popen([*command, "--from", str(number)], stdout=subprocess.PIPE, text=True)
        lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_forward, args=(process, lines), daemon=True).start()
        limit = 5 * patience  # the first line waits for imports and compilers
        while True:
            try:
                line = lines.get(timeout=limit)
            except queue.Empty:
                process.kill()
                line = None
            if line is None:
                if process.wait() != 0 and number < len(cases) and process.returncode != LOST:
                    bad += 1
                    print(f"FAILED  {cases[number].name}: hung or ended with {process.returncode}", flush=True)
                    number += 1
                break
            place, state, text = line.rstrip("\n").split("|", 2)
            limit = patience if state == "start" else 5 * patience
            if state != "start":
                bad += state == "bad"
                print(f"{'ok    ' if state == 'ok' else 'FAILED'}  {cases[number].name}: {text}", flush=True)
                number = int(place) + 1
            if time.monotonic() - begin > seconds:
                process.kill()
                print(f"{len(cases) - number} cases were left out: --seconds {seconds:.0f} were over")
                return bad
    return bad


def _forward(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    for line in process.stdout or ():
        if re.match(r"\d+\|(start|ok|bad)\|", line):
            lines.put(line)
        else:
            print(line, end="", file=sys.stderr)
    lines.put(None)


def main() -> int:
    """Runs all cases; 1 when one is bad."""
    parser = argparse.ArgumentParser(description="Checks kernels with dots against float64.")
    parser.add_argument("--filter", default="", help="only cases whose name matches")
    parser.add_argument("--arch", help="architecture that tilewright writes for, such as sm_80")
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--patience", type=float, default=60.0, help="seconds that a launch may take")
    parser.add_argument("--size", choices=("small", "large"), help="by default large on a GPU")
    parser.add_argument("--list", action="store_true", help="print the names only")
    parser.add_argument("--from", dest="first", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.arch:
        os.environ["TILEWRIGHT_ARCH"] = options.arch
    from check_cases import all_cases

    large = options.size == "large" if options.size else has_gpu()
    cases = [case for case in all_cases(large) if re.search(options.filter, case.name)]
    if options.list:
        print(*(case.name for case in cases), sep="\n")
        return 0
    if options.first is not None:
        return work(cases, options.first)
    bad = watch(cases, [sys.executable, *sys.argv], options.seconds, options.patience)
    print(f"{len(cases)} cases, {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
