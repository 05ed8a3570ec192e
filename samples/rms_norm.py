"""RMS norm: each row divided by its root mean square, times a weight."""

import numpy as np
import tilewright as triton
import tilewright.language as tl
from support import place, report


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, stride, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < N
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    # Zeros past the end add nothing to the mean of squares.
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / N + eps)
    w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
    tl.store(y_ptr + row * stride + cols, x * rstd * w, mask=mask)


def main() -> None:
    """Half-precision rows of an odd length."""
    rng = np.random.default_rng()
    rows, cols, eps = 19, 1000, 1e-6
    x = rng.standard_normal((rows, cols), dtype=np.float32).astype(np.float16)
    w = rng.standard_normal(cols, dtype=np.float32).astype(np.float16)
    y = place(np.full_like(x, np.nan))
    rms_norm_kernel[(rows,)](place(x), place(w), y, cols, cols, eps, BLOCK_SIZE=1024)
    x64 = x.astype(np.float64)
    report("rms_norm", y, x64 / np.sqrt((x64**2).mean(axis=1, keepdims=True) + eps) * w, 2e-3)


if __name__ == "__main__":
    main()
