"""`tilewright.testing`: measuring and comparing; see `tilewright.runtime.measuring.testing`."""

from typing import Any

from tilewright.absent import absent
from tilewright.runtime.measuring.peaks import get_dram_gbps, get_max_simd_tflops, get_max_tensorcore_tflops, nvsmi
from tilewright.runtime.measuring.testing import (
    Benchmark,
    Mark,
    assert_close,
    do_bench,
    do_bench_cudagraph,
    perf_report,
)

__all__ = [
    "Benchmark", "Mark", "assert_close", "do_bench", "do_bench_cudagraph", "get_dram_gbps", "get_max_simd_tflops",
    "get_max_tensorcore_tflops", "nvsmi", "perf_report",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise absent("triton.testing", name, __all__)
