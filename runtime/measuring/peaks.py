"""What a GPU could do at best, as `triton.testing` tells it to the models by which libraries choose configs."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any

from tilewright.runtime.active import ACTIVE

SUBCORES = 4  # of a multiprocessor
TENSOR_CORE = {4: 256, 2: 512, 1: 1024}  # operations of a subcore's tensor core per clock, by bytes of an element
ORDINARY = {4: 32, 2: 64}  # operations of its other lanes, of which a multiplication with an addition is two


def get_dram_gbps(device: int | None = None) -> float:
    """Bandwidth of the device's memory in GB/s, 0 where the driver does not tell."""
    known = _properties(device)
    return known["mem_clock_rate"] * known["mem_bus_width"] * 2 / 8 / 1e6


def get_max_tensorcore_tflops(dtype: Any, clock_rate: float, device: int | None = None) -> float:
    """Peak of the tensor cores for elements of a type at a clock in kHz; of int32, that of fp32.

    Raises:
      ValueError: for a type that tensor cores do not take.
    """
    return _peak(TENSOR_CORE, dtype, clock_rate, device)


def get_max_simd_tflops(dtype: Any, clock_rate: float, device: int | None = None) -> float:
    """Peak of everything but tensor cores, likewise.

    Raises:
      ValueError: for a type of other than 2 and 4 bytes.
    """
    return _peak(ORDINARY, dtype, clock_rate, device)


def nvsmi(attrs: Sequence[str]) -> list[int]:
    """What `nvidia-smi` answers for the first device to queries such as "clocks.max.sm".

    Raises:
      FileNotFoundError: where there is no `nvidia-smi`.
    """
    query = ["nvidia-smi", "-i", "0", f"--query-gpu={','.join(attrs)}", "--format=csv,noheader,nounits"]
    answer = subprocess.run(query, capture_output=True, encoding="utf-8", check=True).stdout
    return [int(word) for word in answer.split(",")]


def _peak(per_clock: dict[int, int], dtype: Any, clock_rate: float, device: int | None) -> float:
    size = int(dtype.itemsize)
    if size not in per_clock:
        raise ValueError(f"there is no peak for {dtype}: elements have {' or '.join(map(str, per_clock))} bytes")
    return _properties(device)["multiprocessor_count"] * SUBCORES * per_clock[size] * clock_rate * 1e-9


def _properties(device: int | None) -> dict[str, int]:
    number = ACTIVE.get_current_device() if device is None else int(device)
    return ACTIVE.utils.get_device_properties(number)
