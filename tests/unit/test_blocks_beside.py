"""Launch bounds ask for no block that the shared memory leaves no room for."""

from __future__ import annotations

from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc


@triton.jit
def logsumexp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # As compilers write it: elementwise accumulators in loops, reduced at the end.
    row = tl.program_id(0)
    base = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, n, BLOCK):
        mask = start + base < n
        x = tl.load(x_ptr + row * n + start + base, mask=mask, other=0.0).to(tl.float32)
        larger = tl.where((largest > x) | (largest != largest), largest, x)
        largest = tl.where(mask, larger, largest)
    top = tl.max(largest, 0)
    total = tl.full((BLOCK,), 0, tl.float32)
    for start in range(0, n, BLOCK):
        mask = start + base < n
        x = tl.load(x_ptr + row * n + start + base, mask=mask, other=0.0).to(tl.float32)
        total = tl.where(mask, total + tl.exp(x - top), total)
    tl.store(out_ptr + row, tl.log(tl.sum(total, 0)) + top)


def test_accumulators_in_shared_memory_leave_one_block(run_everywhere: Any) -> None:
    """Two would each have 32 registers, which spilled, and one after the other still only one would run."""
    artifact = logsumexp_kernel.translate("*bf16:16, *fp32:16, i32:16, 32768", num_warps=32)
    assert artifact.shared_bytes > 64 * 1024
    assert "__launch_bounds__(NUM_THREADS, 1)" in artifact.source
    if nvrtc.is_available():
        assert nvrtc.compile_text(artifact).spill_bytes == 0
    x = np.random.default_rng(5).normal(size=(2, 5000)).astype(np.float16)
    out = run_everywhere(logsumexp_kernel, (2,), x, np.zeros(2, np.float32), 5000, BLOCK=4096, tolerance=1e-5)[1]
    np.testing.assert_allclose(out, np.log(np.exp(x.astype(np.float64)).sum(1)), rtol=1e-5)
