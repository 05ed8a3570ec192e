"""How tiles lie in shared memory for TMA and wgmma, in NumPy: images of bytes, by the tables in PTX's manual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
LINE, CHUNK = 128, 16


def swizzled(image: Bytes, width: int) -> Bytes:
    """An image that starts at a multiple of 1024, its 16-byte chunks moved as the swizzle of `width` bytes does."""
    if width == 0:
        return image.copy()
    chunks = image.reshape(-1, CHUNK)
    number = np.arange(len(chunks))
    line = number // (LINE // CHUNK)
    result = np.empty_like(chunks)
    result[number ^ (line % (width // CHUNK))] = chunks
    return result.reshape(-1)


@dataclass(frozen=True)
class Tile:
    """Bytes of shared memory, and the descriptor's three numbers besides its start `offset`."""

    image: Bytes
    swizzle: int
    leading: int
    stride: int
    offset: int = 0


def along_k(elements: NDArray[Any], swizzle: int, step: int = 0) -> Tile:
    """[rows, 32 bytes] with rows along K; within a swizzled row the operand is the `step`-th 32 bytes, noise around it."""
    raw = np.ascontiguousarray(elements).view(np.uint8)
    rows = len(raw)
    if swizzle == 0:  # core matrices of 8 rows by 16 bytes: all of the first chunk, then all of the second
        return Tile(np.concatenate([raw[:, :CHUNK].ravel(), raw[:, CHUNK:].ravel()]), 0, rows * CHUNK, 8 * CHUNK)
    image = np.random.default_rng(9).integers(0, 200, (rows, swizzle)).astype(np.uint8)
    image[:, step * 32 : step * 32 + 32] = raw
    return Tile(swizzled(image.ravel(), swizzle), swizzle, 16, 8 * swizzle, step * 32)


def along_rows(elements: NDArray[Any], swizzle: int) -> Tile:
    """[rows, 16] of 16-bit elements with columns along M or N: for each k a run of the swizzle's width."""
    raw = np.ascontiguousarray(elements.T).view(np.uint8)  # [16, rows * 2]
    if swizzle == 0:  # core matrices of 8 k by 16 bytes: both of a chunk, then those of the next
        image = raw.reshape(2, 8, -1, CHUNK).transpose(2, 0, 1, 3)
        return Tile(np.ascontiguousarray(image).reshape(-1), 0, 8 * CHUNK, 16 * CHUNK)
    padded = np.zeros((16, -(-raw.shape[1] // swizzle) * swizzle), np.uint8)
    padded[:, : raw.shape[1]] = raw
    groups = np.ascontiguousarray(padded.reshape(16, -1, swizzle).transpose(1, 0, 2))
    return Tile(swizzled(groups.reshape(-1), swizzle), swizzle, 16 * swizzle, 8 * swizzle)
