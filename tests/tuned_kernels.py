"""Kernels that the tests of tuning tune, and how."""

from __future__ import annotations

from typing import Any

import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.tuning import measure as autotune_measure

BLOCKS = [triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 128}, num_warps=2)]
N = 300


def grid(meta: dict[str, Any]) -> tuple[int]:
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


@triton.jit
def increment(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, x + 1, mask=i < n)


@triton.jit
def copy(out_ptr, x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def tuned(kernel: Any, configs: list[triton.Config] = BLOCKS, key: tuple[str, ...] = ("n",), **options: Any) -> Any:
    return triton.autotune(configs, list(key), **options)(kernel)


def count_measurements(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A list that grows by one with every tuning that measures."""
    counted, real = [], autotune_measure.time_in_turns
    monkeypatch.setattr(autotune_measure, "time_in_turns", lambda *a, **k: counted.append(a) or real(*a, **k))
    return counted
