"""Dots in every place where one can stand, on a GPU at larger sizes, against torch in float64 and the samples' own checks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
from before_and_after import KINDS, before_and_after, check
from dot_cases import Case, Problem, all_cases
from exchanged_sums import check as check_exchanged
from exchanged_sums import exchanged_sums

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.gpu
SCALE = 4  # of the table's sizes; tiles become twice as long on both sides
SAME_BITS = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
SAMPLES = sorted(path.stem for path in (ROOT / "samples").glob("*matmul*.py")) + [
    "grouped_gemm",
    "grouped_gemm_descriptor",
]
LOOSER = 4  # tensor cores truncate sums that the CPU run rounds


def to_gpu(value: Any) -> Any:
    """An array as a torch tensor on the GPU; types that torch does not take from NumPy go by their bits."""
    import torch

    if not isinstance(value, np.ndarray):
        return value
    name = str(value.dtype)
    if name in SAME_BITS:
        return torch.from_numpy(value.view(SAME_BITS[name]).copy()).cuda().view(getattr(torch, name))
    return torch.from_numpy(value.copy()).cuda()


def launch(problem: Problem, case: Case, arguments: dict[str, Any]) -> None:
    """Starts a case on the GPU and compares what it leaves."""
    import torch

    problem.kernel[problem.grid](**arguments, **case.options)
    torch.cuda.synchronize()
    for name, reference in problem.expected.items():
        expected = torch.from_numpy(np.ascontiguousarray(reference)).cuda()
        difference = (arguments[name].double() - expected).abs()
        assert torch.isfinite(difference).all(), f"{name} has elements that nobody wrote"
        tolerance = problem.tolerance * LOOSER
        assert difference.norm() <= tolerance * expected.norm(), name
        assert difference.max() <= 24 * tolerance * expected.square().mean().sqrt(), name


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_against_float64(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
    problem = case.build(SCALE)
    for _ in range(3):  # what depends on time may go wrong in the second launch only
        launch(problem, case, {name: to_gpu(value) for name, value in problem.arguments.items()})


@pytest.mark.parametrize("case", [c for c in all_cases() if c.name in ("5 stages", "turned", "rescaled sums", "two loops")],
                         ids=lambda case: case.name)  # fmt: skip
def test_text_for_ampere(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_80")
    problem = case.build(SCALE)
    problem.kernel = triton.jit(problem.kernel.fn)
    launch(problem, case, {name: to_gpu(value) for name, value in problem.arguments.items()})


def test_more_programs_than_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Far more programs than the GPU holds at once, and fewer."""
    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
    for name in ("2 stages", "sums of columns alone", "sums of rows behind the store"):
        case = next(c for c in all_cases() if c.name == name)
        for scale in (2, 80):
            problem = case.build(scale)
            launch(problem, case, {key: to_gpu(value) for key, value in problem.arguments.items()})


@pytest.mark.parametrize("sample", SAMPLES)
def test_samples(sample: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "samples" / f"{sample}.py")], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and "largest error" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_computed_before_a_product_stays_apart_from_what_is_computed_after_it(kind: str) -> None:
    """Ptxas takes one for the other where a wgmma adds to the registers that the first is computed from."""
    import torch

    def run(*arrays: np.ndarray) -> np.ndarray:
        own = [torch.from_numpy(array).cuda() for array in arrays]
        before_and_after[(1,)](*own, 5, B=64, N=32, KIND=kind, num_warps=4)
        return own[2].cpu().numpy()

    check(kind, run)


def test_sums_that_change_places_between_trips() -> None:
    """Ptxas takes one trip's sum for another's where it unrolls such a loop."""
    import torch

    def run(x: np.ndarray, out: np.ndarray, n: int, stride: int) -> np.ndarray:
        own = [torch.from_numpy(array).cuda() for array in (x, out)]
        exchanged_sums[(1,)](*own, n, stride, B=128, num_warps=4)
        return own[1].cpu().numpy()

    check_exchanged(run)
