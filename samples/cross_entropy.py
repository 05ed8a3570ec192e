"""Cross entropy of logits with integer labels, and its gradient, without ever storing the probabilities."""

import numpy as np
import tilewright as triton
import tilewright.language as tl
from support import place, report


@triton.jit
def cross_entropy_kernel(logits_ptr, labels_ptr, loss_ptr, grad_ptr, stride, n_classes, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(labels_ptr + row)
    # First pass: the maximum and the sum of exponentials, block by block.
    largest = -float("inf")
    total = 0.0
    for start in range(0, n_classes, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(logits_ptr + row * stride + cols, mask=cols < n_classes, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(largest, tl.max(x, axis=0))
        # What was summed so far is rescaled to the new maximum.
        total = total * tl.exp(largest - larger) + tl.sum(tl.exp(x - larger), axis=0)
        largest = larger
    logsumexp = tl.log(total) + largest
    target = tl.load(logits_ptr + row * stride + label).to(tl.float32)
    tl.store(loss_ptr + row, logsumexp - target)
    # Second pass: the gradient is the probability, less one at the label.
    for start in range(0, n_classes, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(logits_ptr + row * stride + cols, mask=cols < n_classes, other=-float("inf")).to(tl.float32)
        probability = tl.exp(x - logsumexp)
        grad = tl.where(cols == label, probability - 1.0, probability)
        tl.store(grad_ptr + row * stride + cols, grad, mask=cols < n_classes)


def main() -> None:
    """A vocabulary that no block divides."""
    rng = np.random.default_rng()
    rows, classes = 21, 3001
    logits = rng.standard_normal((rows, classes), dtype=np.float32) * 3
    labels = rng.integers(0, classes, rows, dtype=np.int32)
    loss, grad = place(np.full(rows, np.nan, np.float32)), place(np.full_like(logits, np.nan))
    cross_entropy_kernel[(rows,)](place(logits), place(labels), loss, grad, classes, classes, BLOCK_SIZE=1024)
    x = logits.astype(np.float64)
    logsumexp = np.log(np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1)) + x.max(axis=1)
    expected = np.exp(x - logsumexp[:, None])
    expected[np.arange(rows), labels] -= 1
    report("cross_entropy loss", loss, logsumexp - x[np.arange(rows), labels], 1e-5)
    report("cross_entropy gradient", grad, expected, 1e-5)


if __name__ == "__main__":
    main()
