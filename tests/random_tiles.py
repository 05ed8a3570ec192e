"""Random kernels without dots: a seed gives a kernel, its arguments, and what its results may differ by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from random_modules import kernel_of
from random_tile_loops import kernel
from random_tile_writer import Array
from tilewright.runtime.jit import JITFunction

NUMPY = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8e4nv": ml_dtypes.float8_e4m3fn,
    "float8e5": ml_dtypes.float8_e5m2,
    "int1": np.bool_,
}
SPECIAL = (-2, -1, 0, 1, 2, 2.5, -0.0, np.inf, -np.inf, np.nan)
MOST_OF_A_THREAD = 64  # elements of a tile, or the compiler takes long
BEHIND = 32  # elements of a result behind those that are stored: they stay


@dataclass(frozen=True)
class Program:
    """A kernel's text, those of the functions that it calls, and how it is launched."""

    seed: int
    source: str
    helpers: dict[str, str]
    arrays: dict[str, Array]
    integers: dict[str, int]
    grid: tuple[int, ...]
    options: dict[str, int]


def program(seed: int) -> Program:
    """The kernel of a seed."""
    w = kernel(seed)
    integers = [f"{name}: tl.constexpr" if name in w.constants else name for name in w.integers]
    names = [*(f"{name}_ptr" for name in w.arrays), *integers]
    w.random.shuffle(names)
    source = "\n".join([f"def kernel({', '.join(names)}):", *w.lines]) + "\n"
    fewest = 1 << (w.largest // (32 * MOST_OF_A_THREAD)).bit_length()
    warps = max(w.pick(1, 2, 4, 4, 4, 8, 16), min(fewest, 16))
    return Program(
        seed, source, w.helpers, w.arrays, w.integers, w.grid, {"num_warps": warps, "num_stages": w.pick(1, 2, 3, 3, 4)}
    )


def make(one: Program) -> JITFunction:
    """The kernel of a program."""
    return kernel_of(one.helpers, one.source)


def arguments(one: Program) -> dict[str, Any]:
    """Arguments by name, arrays of NumPy among them."""
    rng = np.random.default_rng(one.seed)
    return {f"{name}_ptr": content(array, rng) for name, array in one.arrays.items()} | one.integers


def content(array: Array, rng: Any) -> Any:
    """An array of random numbers, or of one that no kernel stores."""
    length = array.skip + array.length + (BEHIND if array.empty else 0)
    dtype = np.dtype(NUMPY.get(array.dtype, getattr(np, array.dtype, None)))
    whole = aligned(length, dtype)
    if array.empty:
        whole.view(np.uint8)[:] = 0xA5 if dtype != np.bool_ else 1
    elif array.special:
        whole[:] = rng.choice(np.array(SPECIAL, np.float32), length).astype(dtype)
    elif dtype.kind in "iub":
        low, high = int(array.low), int(array.high)
        whole[:] = rng.integers(low, high, length, np.int64 if high < 2**63 else np.uint64, endpoint=True).astype(dtype)
    else:
        scale = 2**array.unit
        numbers = rng.integers(int(array.low * scale), int(array.high * scale) + 1, length) / scale
        whole[:] = numbers.astype(np.float32).astype(dtype)
    return whole[array.skip :]


def aligned(length: int, dtype: Any) -> Any:
    """An array whose first element lies at a multiple of 64 bytes."""
    memory = np.zeros(length * dtype.itemsize + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + length * dtype.itemsize].view(dtype)


def copied(values: dict[str, Any], one: Program) -> dict[str, Any]:
    """Arguments with arrays of their own, aligned as they were."""
    own = {}
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            skip = one.arrays[name.removesuffix("_ptr")].skip
            whole = aligned(len(value) + skip, value.dtype)
            whole[skip:] = value
            value = whole[skip:]
        own[name] = value
    return own


def differences(one: Program, found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """What is wrong with the arrays, or nothing."""
    return [text for name, array in one.arrays.items() if (text := _difference(array, name, found, expected))]


def _difference(array: Array, name: str, found: dict[str, Any], expected: dict[str, Any]) -> str | None:
    left, right = found[f"{name}_ptr"], expected[f"{name}_ptr"]
    wrong = left.view(np.uint8).reshape(len(left), -1) != right.view(np.uint8).reshape(len(right), -1)
    wrong = wrong.any(axis=1)
    if wrong.any() and left.dtype.kind not in "iub":
        one, other = left.astype(np.float64), right.astype(np.float64)
        with np.errstate(invalid="ignore"):
            wrong &= ~((one == other) | (np.abs(one - other) <= array.tolerance) | (np.isnan(one) & np.isnan(other)))
    if not wrong.any():
        return None
    at = int(np.argmax(wrong))
    return f"{name}: {int(wrong.sum())} of {wrong.size}, the first at {at}: {left[at]}, not {right[at]}"
