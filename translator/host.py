"""Small arithmetic for grids and block sizes, on the host and on compile-time values in kernels."""

from __future__ import annotations


def cdiv(x: int, y: int) -> int:
    """X / y, rounded up."""
    return -(-x // y)


def next_power_of_2(n: int) -> int:
    """The smallest power of two not below n; 1 for n <= 1."""
    return 1 << max(n - 1, 0).bit_length()
