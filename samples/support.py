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
    return torch.from_numpy(array).cuda() if torch.cuda.is_available() else array


def back(array: Any) -> np.ndarray:
    """The array as NumPy."""
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def report(name: str, result: Any, expected: np.ndarray, tolerance: float) -> None:
    """Prints the largest relative difference from the float64 reference; stops when it is too large."""
    difference = np.abs(back(result).astype(np.float64) - expected)
    error = float(np.max(difference / np.maximum(np.abs(expected), 1.0)))
    print(f"{name}: largest error {error:.1e} (allowed {tolerance:.0e})")
    if not error <= tolerance:
        raise SystemExit(f"{name} is wrong")
