"""The language tests and the samples on a GPU: the same kernels, against the interpreter and against float64."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright as triton
from unit.test_atomics import *
from unit.test_casts import *
from unit.test_language import *

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.gpu
SAME_BITS = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}


def to_gpu(array: np.ndarray) -> Any:
    """The array as a torch tensor on the GPU; types that torch does not take from NumPy go by their bits."""
    import torch

    name = str(array.dtype)
    if name in SAME_BITS:
        return torch.from_numpy(array.view(SAME_BITS[name]).copy()).cuda().view(getattr(torch, name))
    return torch.from_numpy(array.copy()).cuda()


def from_gpu(tensor: Any, like: np.ndarray) -> np.ndarray:
    """The tensor as an array of the type that it came from."""
    import torch

    name = str(like.dtype)
    if name in SAME_BITS:
        return tensor.view(getattr(torch, SAME_BITS[name])).cpu().numpy().view(like.dtype)
    return tensor.cpu().numpy()


@pytest.fixture
def run_everywhere(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """As in `conftest.py`, with the GPU in the CPU run's place."""

    def run(kernel: Any, grid: Any, *arguments: Any, tolerance: float = 0.0, **options: Any) -> list[Any]:
        monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
        own = [copy.deepcopy(a) for a in arguments]
        kernel[grid](*own, **options)
        monkeypatch.setenv("TILEWRIGHT_MODE", "gpu")
        moved = [to_gpu(a) if isinstance(a, np.ndarray) else a for a in arguments]
        kernel[grid](*moved, **options)
        results = [from_gpu(m, a) for m, a in zip(moved, arguments, strict=True) if isinstance(a, np.ndarray)]
        expected = [a for a in own if isinstance(a, np.ndarray)]
        for one, other in zip(results, expected, strict=True):
            allowed = tolerance * 20  # approximate functions, other orders of summation
            np.testing.assert_allclose(one.astype(np.float64), other.astype(np.float64), rtol=allowed, atol=allowed)
        return results

    return run


test_device_print_has_tritons_format = None  # what a GPU prints does not pass through Python
test_tuples = None  # chooses its modes itself
test_float_types = None  # exact on the CPU; a GPU contracts x * y + 0.5 into one rounding, see the test below


@pytest.mark.parametrize("name", ("float16", "bfloat16", "float32", "float64"))
@pytest.mark.parametrize("n", (1, 5, 128, 333))
def test_float_types_up_to_contraction(run_everywhere: Any, name: str, n: int) -> None:
    dtype = ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)
    x, y = (np.random.default_rng(n).standard_normal(n).astype(dtype) for _ in range(2))
    ulp = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}[name]
    run_everywhere(float_kernel, (triton.cdiv(n, 64),), x, y, np.zeros_like(x), n, BLOCK=64, tolerance=ulp)


SAMPLES = (
    "vector_add",
    "fused_softmax",
    "layer_norm",
    "rms_norm",
    "cross_entropy",
    "rope",
    "row_reductions",
    "rms_norm_torch",
)


@pytest.mark.parametrize("sample", SAMPLES)
def test_samples(sample: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "samples" / f"{sample}.py")], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and "largest error" in done.stdout, done.stdout + done.stderr


def test_nothing_past_the_end_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
    sys.path.insert(0, str(ROOT / "samples"))
    from fused_softmax import softmax_kernel
    from vector_add import add_kernel

    for n in (1, 7, 1023, 1024, 1025, 99_991):
        x, y = torch.randn(2, n, device="cuda")
        out = torch.full((n + 64,), float("nan"), device="cuda")
        add_kernel[(-(-n // 1024),)](x, y, out, n, BLOCK_SIZE=1024)
        assert torch.equal(out[:n], x + y) and torch.isnan(out[n:]).all()
    for rows, cols in ((1, 1), (5, 333), (131, 781), (64, 1024)):
        x = torch.randn(rows, cols, device="cuda")
        out = torch.full((rows + 1, cols), float("nan"), device="cuda")
        softmax_kernel[(-(-rows // 2),)](out, x, cols, cols, rows, cols, ROWS=2, BLOCK_SIZE=1024)
        error = (out[:rows].double() - torch.softmax(x.double(), 1)).abs().max()
        assert error < 1e-6 and torch.isnan(out[rows:]).all()


def test_streams_and_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
    sys.path.insert(0, str(ROOT / "samples"))
    from vector_add import add_kernel

    x, y = torch.randn(2, 4096, device="cuda")
    out = torch.zeros_like(x)
    add_kernel[(4,)](x, y, out, 4096, BLOCK_SIZE=1024)
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=side):
        add_kernel[(4,)](x, y, out, 4096, BLOCK_SIZE=1024)
    x.copy_(torch.randn_like(x))
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, x + y)
