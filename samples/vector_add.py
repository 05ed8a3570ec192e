"""Element-wise sum of two vectors."""

import numpy as np
import tilewright as triton
import tilewright.language as tl
from support import place, report


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    # Each program adds one contiguous block of BLOCK_SIZE elements.
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    # The last block may run past the end of the vectors.
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    z = x + y
    tl.store(out_ptr + offsets, z, mask=mask)


def main() -> None:
    """Adds two vectors of an awkward length."""
    rng = np.random.default_rng()
    x, y = rng.standard_normal((2, 98_432 + 7), dtype=np.float32)
    out = place(np.full_like(x, np.nan))
    add_kernel[(triton.cdiv(x.size, 1024),)](place(x), place(y), out, x.size, BLOCK_SIZE=1024)
    report("vector_add", out, x.astype(np.float64) + y, 1e-6)


if __name__ == "__main__":
    main()
