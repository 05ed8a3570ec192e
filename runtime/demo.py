"""`tilewright demo`: the whole way, on a sample kernel that comes with the package."""

from __future__ import annotations

import numpy as np
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime import driver
from tilewright.runtime.building import nvrtc
from tilewright.runtime.cpu import has_compiler

N_COLS = 781


@triton.jit
def softmax_kernel(out_ptr, in_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):  # type: ignore
    """Softmax of one row per program."""
    row = tl.program_id(0)
    # A row fits in one block: BLOCK_SIZE is a power of two not below n_cols.
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    # Lanes past the end read -inf, which neither the maximum nor the sum can see.
    x = tl.load(in_ptr + row * stride + cols, mask=mask, other=-float("inf"))
    # Subtract the maximum for numerical stability.
    numerator = tl.exp(x - tl.max(x, axis=0))
    denominator = tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * stride + cols, numerator / denominator, mask=mask)


def demo() -> int:
    """Prints the generated CUDA, compiles it, runs it where it can run, checks the result; 0 when it is right."""
    artifact = softmax_kernel.translate("*fp32:16, *fp32:16, i32, i32, 1024")
    print(artifact.source)
    if nvrtc.is_available():
        cubin = nvrtc.compile_text(artifact)
        shared = artifact.shared_bytes + cubin.static_shared_bytes
        print(f"NVRTC, {artifact.target}: {cubin.registers} registers, {shared} bytes of shared memory, ", end="")
        print(f"{cubin.spill_bytes} bytes of spills")
    else:
        print(f"not compiled for a GPU: {nvrtc.INSTALL}")
    x = np.random.default_rng().standard_normal((37, N_COLS), dtype=np.float32)
    where, result = _run(x)
    exact = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    error = float(np.abs(result - exact).max())
    right = error < 1e-6
    print(f"ran {where}: largest difference from NumPy {error:.1e}, {'right' if right else 'WRONG'}")
    return 0 if right else 1


def _run(x: np.ndarray) -> tuple[str, np.ndarray]:
    """Runs on the GPU if torch can reach one, else by the host's compiler, else in Python."""
    rows = x.shape[0]
    try:
        import torch

        gpu = torch.cuda.is_available() and driver.is_available()
    except ImportError:
        gpu = False
    if gpu:
        result = torch.full(x.shape, float("nan"), device="cuda")
        softmax_kernel[(rows,)](result, torch.from_numpy(x).cuda(), N_COLS, N_COLS, BLOCK_SIZE=1024)
        return f"on {torch.cuda.get_device_name()}", result.cpu().numpy()
    out = np.full_like(x, np.nan)
    softmax_kernel[(rows,)](out, x, N_COLS, N_COLS, BLOCK_SIZE=1024)
    return ("on the CPU, the same text" if has_compiler() else "in the Python interpreter"), out
