"""What a graph for torch.compile is made of: a function without arguments that compiles and runs something once.

Forward and, where it trains, backward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

GRAPHS: dict[str, Callable[[], None]] = {}
HALF, SINGLE, BRAIN = torch.float16, torch.float32, torch.bfloat16


def graph(run: Callable[[], None]) -> Callable[[], None]:
    """Adds a graph under the function's name."""
    GRAPHS[run.__name__] = run
    return run


def normal(*shape: int, dtype: torch.dtype = HALF) -> torch.Tensor:
    """Random numbers."""
    return torch.randn(*shape, device="cuda").to(dtype)


def integers(low: int, high: int, shape: tuple[int, ...], dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """Random integers."""
    return torch.randint(low, high, shape, device="cuda", dtype=dtype)


def forward(function: Callable[..., Any], *args: Any) -> None:
    """Compiles a function and runs it."""
    with torch.no_grad():
        torch.compile(function, dynamic=False)(*args)


def both_ways(function: Callable[..., Any], *args: Any) -> None:
    """Compiles a function, runs it, and its derivative."""
    args = [arg.requires_grad_() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg for arg in args]
    result = torch.compile(function, dynamic=False)(*args)
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    torch.autograd.backward(results, [torch.randn_like(one) for one in results])
