"""Kernels of any length: the work grows with the number of lines, and neither names nor the stack run out."""

from __future__ import annotations

import cProfile
import importlib.util
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilewright import deep
from tilewright.artifact import Options
from tilewright.diagnostics import CompilationError
from tilewright.frontend import build_kernel
from tilewright.lower import control_flow
from tilewright.lower.text.names import AGAIN, Names
from tilewright.preparing import prepared
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.rewrites.early_products import with_early_products
from tilewright.schedule.staging.ring_plan import RingWishes
from tilewright.schedule.staging.rings import plan_rings
from tilewright.schedule.targets import find_target
from written_kernels import written_kernel

HEAD = "import tilewright as triton\nimport tilewright.language as tl\n\n\n@triton.jit\n"
SIGNATURE = "*fp32:16, *fp32:16, i32, 1024"
START = """def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
    s = tl.program_id(0) * B
    i = s + tl.arange(0, B)
    p = x_ptr + i
    x = tl.load(p, mask=i < n)
"""
END = "    tl.store(y_ptr + i, x, mask=i < n)\n"
# What is repeated: {k} is the number of the repetition, {l} that of the last one.
LINES = {
    "one tile": "    x = x * {k}.5 + 0.25\n",
    "many tiles": "    x{k} = tl.exp(x) + {k}.0\n    x = x{k} * 2.0\n",
    "scalars": "    s = (s + n) // {k} + 1\n    x += s\n",
    "index tiles": "    i = i + n\n",
    "loops": "    for j in range(n):\n        x += tl.load(x_ptr + i + j * {k}, mask=i < n)\n",
    "branches": "    if n > {k}:\n        x = x * 2.0\n    else:\n        x = x + 1.0\n",
    "tiles of branches": (
        "    if n > {k}:\n        x{k} = x * 2.0\n    else:\n        x{k} = x + 1.0\n    x = x{k} * 0.5\n"
    ),
    "accesses": "    x{k} = tl.load(x_ptr + i + {k} * n, mask=i < n)\n    tl.store(y_ptr + i + {k} * n, x{k}, mask=i < n)\n",
    "pointers": "    x += tl.load(p, mask=i < n)\n    p += n\n",
    "reductions": "    m{k} = tl.max(x, axis=0)\n    x = x - m{k}\n",
    "notes": "    C{k}: tl.constexpr = {k}\n    x += C{k}\n",
}
SHORT, FACTOR = 120, 4


def load(body: str, folder: Path, name: str) -> Any:
    """The kernel with that body."""
    path = folder / f"{name}.py"
    path.write_text(f"{HEAD}{START}{body}{END}")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def repeated(kind: str, lines: int) -> str:
    """About so many lines of a kind, or a single line with as many terms."""
    if kind == "terms":
        return f"    x = x{''.join(f' + x * {k}.5' for k in range(lines))}\n"
    if kind == "elifs":
        links = "".join(f"    elif n == {k}:\n        x = x * {k}.5\n" for k in range(1, lines // 2))
        return f"    if n == 0:\n        x = x + 1.0\n{links}"
    text = LINES[kind]
    return "".join(text.format(k=k) for k in range(1, lines // text.count("\n") + 1))


def calls(work: Callable[[], Any]) -> int:
    """How many functions are called by some work."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("kind", [*LINES, "terms", "elifs"])
def test_the_work_grows_with_the_length(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deep, "with_room", lambda work: work())  # in this thread, which is the one that is watched
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        load("", tmp_path, "warm").translate(SIGNATURE)  # imports and templates
        counts, sizes = [], []
        for lines in (SHORT, SHORT * FACTOR):
            kernel = load(repeated(kind, lines), tmp_path, f"kernel_{lines}")
            counts.append(calls(lambda kernel=kernel: sizes.append(len(kernel.translate(SIGNATURE).source))))
    finally:
        sys.setrecursionlimit(limit)
    assert counts[1] < counts[0] * FACTOR * 1.15, (
        f"{counts[1] / counts[0]:.2f} times the calls for {FACTOR} times the lines"
    )
    assert sizes[1] < sizes[0] * FACTOR * 1.5


def test_loops_within_loops_are_not_repeated_in_each_of_their_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deep, "with_room", lambda work: work())
    lowered = []
    original = control_flow._trip
    monkeypatch.setattr(control_flow, "_trip", lambda *given: lowered.append(given) or original(*given))

    def nest(loops: int) -> int:
        """How often the bodies of so many loops, each in the one before, are lowered: each exchanges a maximum first."""
        step = "{d}for j{k} in range(n):\n{d}    m{k} = tl.max(x, axis=0)\n{d}    x = x - m{k}\n"
        body = "".join(step.format(k=k, d="    " * (k + 1)) for k in range(loops))
        lowered.clear()
        load(body, tmp_path, f"nest_{loops}").translate(SIGNATURE)
        return len(lowered)

    assert nest(6) <= 4 * nest(3)  # as the square of the depth


def test_a_search_follows_no_value_from_every_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deep, "with_room", lambda work: work())
    step = "    v{k} = tl.load(x_ptr + tl.minimum(i, n - 1), mask=i < n)\n    i = tl.where(v{k} > 0, i + 1, i)\n"
    load("", tmp_path, "warm").translate(SIGNATURE)
    counts = []
    for steps in (8, 24):  # each index is made of the one before, twice
        kernel = load("".join(step.format(k=k) for k in range(steps)), tmp_path, f"search_{steps}")
        counts.append(calls(lambda kernel=kernel: kernel.translate(SIGNATURE)))
    assert counts[1] < counts[0] * 5, f"{counts[1] / counts[0]:.1f} times the calls for 3 times the steps"


def test_products_of_a_loop_do_not_look_at_the_kernel_anew(tmp_path: Path) -> None:
    """Each load asked which scalars of the kernel a loading thread can compute, and each product what every other one reads."""
    head = "    r, k = tl.arange(0, 64), tl.arange(0, 32)\n    acc = tl.zeros([64, 64], tl.float32)\n"
    step = """        a{k} = tl.load(x_ptr + r[:, None] * n + (k + j)[None, :] + {k} * 4096)
        acc += tl.dot(a{k}, tl.load(x_ptr + (k + j)[:, None] * 64 + r[None, :] + {k} * 4096))
"""
    end = "    tl.store(y_ptr + r[:, None] * 64 + r[None, :], acc)\n"
    options, target, planned, reordered = Options(), find_target("sm_90a"), [], []
    for products in (12, 24):
        loop = "    for j in range(0, n, 32):\n" + "".join(step.format(k=k) for k in range(products))
        kernel = load(f"{head}{loop}{end}", tmp_path, f"products_{products}")
        arguments = parse_signature(kernel, "*fp16:16, *fp32:16, i32:16, 64")
        prepared_ = prepared(build_kernel(kernel, arguments, options, target), options, target)
        planned.append(calls(lambda prepared_=prepared_: plan_rings(prepared_, options, target, RingWishes(3))))
        reordered.append(calls(lambda prepared_=prepared_: with_early_products(prepared_, lambda dot: True)))
    assert planned[1] < planned[0] * 2.5, f"{planned[1] / planned[0]:.1f} times the calls for twice the products"
    assert reordered[1] < reordered[0] * 5, f"{reordered[1] / reordered[0]:.1f} times the calls for twice the products"


@pytest.mark.parametrize(
    "body",
    [
        "    i = i + n\n" * 1200,
        "    p += n\n" * 1200 + "    x = tl.load(p, mask=i < n)\n",
        f"    x = (x{' + x * 2.0' * 600})\n",
        "    x = " + "(" * 150 + "x" + " + 1.0)" * 150 + "\n",
    ],
    ids=["lines of an index", "lines of a pointer", "terms", "brackets"],
)
def test_the_stack_does_not_run_out(body: str, tmp_path: Path) -> None:
    limit, size = sys.getrecursionlimit(), threading.stack_size()
    assert "kernel(" in load(body, tmp_path, "deep").translate(SIGNATURE).source
    assert (sys.getrecursionlimit(), threading.stack_size()) == (limit, size)


def test_nor_does_it_in_the_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    y = np.zeros(2, np.float32)
    load(f"    x = (x{' + x' * 600})\n", tmp_path, "interpreted")[(1,)](np.ones(2, np.float32), y, 2, B=2)
    assert (y == 601).all()


def test_what_nests_without_end_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deep, "DEEPEST", 3000)

    def endless() -> Any:
        return endless()

    with pytest.raises(CompilationError, match="nests too deeply"):
        deep.with_room(endless)
    with pytest.raises(ZeroDivisionError):
        deep.with_room(lambda: 1 // 0)
    done: list[str] = []

    def recover() -> str:
        done.append(threading.current_thread().name)
        if len(done) == 1:
            try:
                endless()
            finally:
                {}["LibCST hides the reason like this"]
        return "made"

    assert deep.with_room(recover) == "made" and done[1] == "tilewright-deep"


@pytest.mark.parametrize("ifs", (3, 12))
def test_ways_through_a_function_that_double(ifs: int, tmp_path: Path) -> None:
    maybe = "".join(f"    if x > {k}:\n        y += {k}\n        if y > 9:\n            return y\n" for k in range(ifs))
    helper = f"def f(p, x):\n    y = x\n    tl.store(p, 1.0)\n{maybe}    return y\n\n\n"
    header = f"{HEAD}{helper}@triton.jit\ndef kernel(x_ptr, y_ptr, n, B: tl.constexpr):\n"
    kernel = written_kernel(tmp_path / "ways.py", header, "tl.store(x_ptr, f(y_ptr, n))")
    if ifs == 3:
        assert kernel.translate(SIGNATURE).source.count("return y") == 1 + 2 + 4 + 8
    else:
        with pytest.raises(CompilationError, match="more than 64 ways lead through f to line"):
            kernel.translate(SIGNATURE)


def test_names_do_not_run_out() -> None:
    names = Names(["x"])
    made = [names.fresh("x") for _ in range(500)]
    assert len(set(made)) == 500 and "x" not in made
    assert made[: len(AGAIN)] == [f"x_{word}" for word in AGAIN]
    assert not any(character.isdigit() for name in made for character in name)
    assert names.fresh("ROWS") == "ROWS" and names.fresh("ROWS") == "ROWS_SECOND", "a constant stays in capitals"


def chain(links: int) -> str:
    """A kernel whose indices mention those of the line before three times."""
    lines = ["a0 = tl.arange(0, B) + tl.program_id(0)"]
    lines += [f"a{n} = a{n - 1} % 7 + a{n - 1} // 3 - a{n - 1} * 2" for n in range(1, links)]
    lines += [f"tl.store(out_ptr + a0, tl.load(x_ptr + a{links - 1} * 5 + a{links - 2}))"]
    return "@triton.jit\ndef mixed(x_ptr, out_ptr, B: tl.constexpr):\n    " + "\n    ".join(lines) + "\n"


def test_indices_that_are_mentioned_many_times_are_looked_into_once(tmp_path: Path) -> None:
    source = tmp_path / "chain.py"
    source.write_text(f"import tilewright as triton\nimport tilewright.language as tl\n\n\n{chain(40)}")
    spec = importlib.util.spec_from_file_location("chain", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    start = time.process_time()
    text = module.mixed.translate("*fp32:16, *fp32:16, 1024").source
    assert time.process_time() - start < 10  # three to the power of 40 links otherwise
    assert "a39[e]" in text
