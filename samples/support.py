"""What the samples share: arrays where they can run (a GPU through torch, else NumPy) and the comparison."""

from __future__ import annotations

from typing import Any

import numpy as np


def place(array: np.ndarray) -> Any:
    """The array on the GPU as a torch tensor when there is one, as it is otherwise."""
    try:
        import torch
    except ImportError:
        return array
    if not torch.cuda.is_available():
        return array
    if array.dtype.isbuiltin == 1:
        return torch.from_numpy(array).cuda()
    bits = torch.from_numpy(array.view(f"int{8 * array.itemsize}"))  # a type of ml_dtypes, which torch calls the same
    return bits.view(getattr(torch, array.dtype.name)).cuda()


def back(array: Any) -> np.ndarray:
    """The array as NumPy, float64 when it comes from the GPU."""
    return array if isinstance(array, np.ndarray) else array.cpu().double().numpy()


def report(name: str, result: Any, expected: np.ndarray, tolerance: float) -> None:
    """Prints the largest relative difference from the float64 reference; stops when it is too large."""
    difference = np.abs(back(result).astype(np.float64) - expected)
    error = float(np.max(difference / np.maximum(np.abs(expected), 1.0)))
    print(f"{name}: largest error {error:.1e} (allowed {tolerance:.0e})")
    if not error <= tolerance:
        raise SystemExit(f"{name} is wrong")
