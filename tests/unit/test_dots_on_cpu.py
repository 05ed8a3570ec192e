"""Dots in every place where one can stand, through the CPU run of both architectures' text, against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
import tilewright.runtime.cpu as cpu
from dot_cases import Case, Problem, all_cases, small_rings

CASES = all_cases()
# How threads take turns, and when asynchronous operations are performed.
WAYS = (("greedy_low", "late"), ("reverse", "early"), ("random", "mixed"))
EVERY_WAY = ("wgmma_fence", "mbarrier_wait", "cp_async_wait")  # texts in which it matters
ON_SM_80 = (
    "1 stages|2 stages|5 stages|1 warps|16 warps|no trip|edges|eight columns|down|start and step at run time|two loops|"
    "loop in loop|dot in a condition|tiles used after the loop|tile loaded after an inner loop|type e4m3|shared operand|"
    "type fp64|precision tf32x3|precision bf16x6|short tiles 4 x 8 x 16|"
    "stored by one trip, loaded by the next|chained dots|rescaled sums|turned|odd descriptors in turn|odd block pointers"
).split("|")
CHECKED = (
    "two loops", "tile loaded after an inner loop", "chained dots", "sums of columns alone", "descriptors in turn",
    "loop in loop", "stored twice", "short tiles 3 x 5 x 12", "precision bf16x3", "short planes",
)  # fmt: skip


def named(case: Case) -> str:
    """The name of a test."""
    return case.name


def judge(problem: Problem, arguments: dict[str, Any], way: object) -> None:
    """Compares results with what they must be: the norm of the difference, and each element with what is typical."""
    for name, expected in problem.expected.items():
        found = arguments[name].astype(np.float64)
        difference = np.abs(found - expected)
        assert np.isfinite(found).all(), (name, way)
        assert np.linalg.norm(difference) <= problem.tolerance * np.linalg.norm(expected), (name, way)
        typical = np.sqrt(np.mean(expected**2))
        assert difference.max() <= 24 * problem.tolerance * typical, (name, way)


def run_everyhow(case: Case, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a case in all ways; returns the artifact."""
    problem, run = case.build(1), cpu.run
    kernel = triton.jit(problem.kernel.fn)  # compiled for no other architecture yet
    artifacts: list[Any] = []
    for way in WAYS:
        arguments = {name: v.copy() if isinstance(v, np.ndarray) else v for name, v in problem.arguments.items()}

        def with_way(artifact: Any, grid: Any, values: Any, way: tuple[str, str] = way) -> None:
            artifacts.append(artifact)
            run(artifact, grid, values, schedule=way[0], seed=5, delivery=way[1])

        monkeypatch.setattr(cpu, "run", with_way)
        kernel[problem.grid](**arguments, **case.options)
        judge(problem, arguments, way)
        if not any(word in artifacts[0].source for word in EVERY_WAY):
            break
    return artifacts[0]


@pytest.mark.parametrize("case", CASES, ids=named)
def test_hopper(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    small_rings(monkeypatch)
    run_everyhow(case, monkeypatch)


@pytest.mark.parametrize("case", [c for c in CASES if c.name in ON_SM_80], ids=named)
def test_ampere(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_80")
    assert "wgmma_fence" not in run_everyhow(case, monkeypatch).source


@pytest.mark.parametrize("case", [c for c in CASES if c.name in CHECKED], ids=named)
def test_no_sanitizer_has_a_complaint(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    small_rings(monkeypatch)
    problem = case.build(1)
    triton.jit(problem.kernel.fn)[problem.grid](**problem.arguments, **case.options)
    judge(problem, problem.arguments, "check")


def test_the_table_covers_what_it_says() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) and set(ON_SM_80) | set(CHECKED) <= set(names)
    poisoned = [not np.isfinite(p.arguments["c_ptr"].astype(float)).any() for p in (c.build(1) for c in CASES[:12])]
    assert all(poisoned)


@triton.jit
def sized_product_kernel(a_ptr, b_ptr, c_ptr, size_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a_block = tl.make_block_ptr(a_ptr, (M, K), (K, 1), (tl.program_id(0) * BM, 0), (BM, BK), (1, 0))
    b_block = tl.make_block_ptr(b_ptr, (K, N), (N, 1), (0, 0), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    largest = 0.0
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(a_block), tl.load(b_block), acc)
        largest = tl.maximum(largest, tl.max(tl.abs(acc)))
        a_block, b_block = tl.advance(a_block, (0, BK)), tl.advance(b_block, (BK, 0))
    i = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None] * N + tl.arange(0, BN)[None, :]
    tl.store(c_ptr + i, acc)
    tl.store(size_ptr + tl.program_id(0), largest)


def test_a_reduction_over_the_warps_that_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that loads takes no part in it, and is not waited for."""
    a, b = (np.random.default_rng(4).integers(-3, 4, shape).astype(np.float16) for shape in ((256, 256), (256, 64)))
    sums = np.cumsum((a.astype(np.float32).T[:, :, None] * b.astype(np.float32)[:, None, :]), 0)[63::64]
    for mode in ("cpu", "check"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        c, size = np.zeros((256, 64), np.float32), np.zeros(2, np.float32)
        launched = sized_product_kernel[(2,)](a, b, c, size, 256, 64, 256, 128, 64, 64, num_warps=4)
        assert "warpgroup 1 loads" in launched.source
        np.testing.assert_array_equal(c, sums[-1])
        np.testing.assert_array_equal(size, [np.abs(sums[:, :128]).max(), np.abs(sums[:, 128:]).max()])
