"""`tilewright.testing`: measuring and comparing; see `tilewright.runtime.testing`."""

from tilewright.runtime.testing import (
    Benchmark,
    Mark,
    assert_close,
    do_bench,
    do_bench_cudagraph,
    perf_report,
)
from tilewright.runtime.testing_peaks import get_dram_gbps, get_max_simd_tflops, get_max_tensorcore_tflops, nvsmi

__all__ = [
    "Benchmark", "Mark", "assert_close", "do_bench", "do_bench_cudagraph", "get_dram_gbps", "get_max_simd_tflops",
    "get_max_tensorcore_tflops", "nvsmi", "perf_report",
]  # fmt: skip
