"""What a branch annotates as `tl.constexpr` is its own: another branch, and another trip, may annotate it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors
from written_kernels import written_kernel

HEADER = """import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr, n):
"""


@triton.jit
def sides_of_trips(x_ptr, n, STEPS: tl.constexpr):
    for i in tl.static_range(STEPS):
        if tl.program_id(0) < n:
            SIDE: tl.constexpr = 4 << i
            offsets = tl.arange(0, SIDE)
            tl.store(x_ptr + i * 32 + offsets, offsets + SIDE)
        else:
            SIDE: tl.constexpr = 8
            tl.store(x_ptr + i * 32 + 31, SIDE)


def test_each_trip_has_its_own(run_everywhere: Any) -> None:
    (found,) = run_everywhere(sides_of_trips, (2,), np.zeros(96, np.int32), 1, 3)
    expected = np.zeros((3, 32), np.int32)
    for trip in range(3):
        side = 4 << trip
        expected[trip, :side] = np.arange(side) + side
    expected[:, 31] = 8
    np.testing.assert_array_equal(found.reshape(3, 32), expected)


@pytest.mark.parametrize(
    ("lines", "said", "remedy"),
    [
        (
            "if n > 3:\n    m: tl.constexpr = 4\nelse:\n    m: tl.constexpr = 8\ntl.store(x_ptr, m)",
            "m is another constexpr in either branch of the if, and ends with it",
            "define it in front of the if",
        ),
        ("m: tl.constexpr = 4\nif n > 3:\n    m: tl.constexpr = 8", "a constexpr cannot be defined twice", "own"),
    ],
)
def test_what_cannot_follow_the_branch(lines: str, said: str, remedy: str, tmp_path: Path) -> None:
    with pytest.raises(errors.CompilationError, match=said) as caught:
        written_kernel(tmp_path / "kernel.py", HEADER, lines).translate("*i32, i32")
    assert remedy in caught.value.remedy
