"""`tilewright.testing`: measuring and comparing; see `tilewright.runtime.testing`."""

from tilewright.runtime.testing import (
    Benchmark,
    Mark,
    assert_close,
    do_bench,
    do_bench_cudagraph,
    perf_report,
)

__all__ = ["Benchmark", "Mark", "assert_close", "do_bench", "do_bench_cudagraph", "perf_report"]
