"""Measuring and comparing, as `triton.testing` has it: `do_bench`, `do_bench_cudagraph`, `assert_close`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tilewright.diagnostics import ToolchainError
from tilewright.runtime.measuring.clock import Clock, HostClock, clock_of, summary
from tilewright.runtime.measuring.report import Benchmark, Mark, perf_report
from tilewright.runtime.tracebacks import outermost

__all__ = ["Benchmark", "Mark", "assert_close", "captured", "do_bench", "do_bench_cudagraph", "perf_report"]

ESTIMATES, REPLAYS = 5, 10


@outermost
def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Milliseconds that `fn` takes: on the GPU's current stream with a cold L2 cache, by wall time without a GPU.

    Args:
      fn: what to time.
      warmup: milliseconds before it counts; at least one call.
      rep: milliseconds of measuring; at least one call.
      grad_to_none: tensors whose gradients are dropped before every call.
      quantiles: fractions to return in place of `return_mode`; a list, or a number when there is one.
      return_mode: "mean", "median", "min", "max", or "all" for a list.

    Raises:
      ValueError: for an unknown `return_mode`, and for a quantile that is no fraction.
    """
    summary([0.0], quantiles, return_mode)  # complain before measuring

    def once(clock: Clock) -> Any:
        for tensor in grad_to_none or ():
            tensor.grad = None
        return clock.start(fn)

    with clock_of(_device()) as clock:
        estimate = _estimate(fn, clock)
        for _ in range(max(1, int(warmup / estimate))):
            fn()
        readings = [once(clock) for _ in range(max(1, int(rep / estimate)))]
        clock.finish()
        return summary([clock.milliseconds(reading) for reading in readings], quantiles, return_mode)


def _device() -> int | None:
    """The GPU to measure on; None without one."""
    from tilewright.runtime import devices, driver

    return devices.current_device() if driver.is_available() else None


def _estimate(fn: Callable[[], Any], clock: Clock) -> float:
    """About the milliseconds of a call, the first one left out."""
    fn()
    clock.finish()
    count = 1 if isinstance(clock, HostClock) else ESTIMATES
    before = time.perf_counter()
    readings = [clock.start(fn) for _ in range(count)]
    clock.finish()
    wall = (time.perf_counter() - before) * 1e3 / count
    return max(wall if count == 1 else sum(map(clock.milliseconds, readings)) / count, 1e-3)


def captured(run: Callable[[], Any]) -> Any:
    """What `run` launches, as a CUDA graph of torch that can be replayed.

    Raises:
      ToolchainError: without torch or a GPU.
    """
    torch = _torch("timing CUDA graphs")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph


@outermost
def do_bench_cudagraph(
    fn: Callable[[], Any],
    rep: float = 20,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Milliseconds that the work of `fn` takes on the GPU without the host: many calls as one CUDA graph. See `do_bench`.

    Raises:
      ToolchainError: without torch or a GPU.
    """
    summary([0.0], quantiles, return_mode)
    torch = _torch("do_bench_cudagraph")
    with torch.cuda.stream(torch.cuda.Stream()):
        for tensor in grad_to_none or ():
            tensor.detach_()
            tensor.requires_grad_(True)
            tensor.grad = None
        fn()
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        for _ in range(ESTIMATES):
            fn()
        after.record()
        torch.cuda.synchronize()
        count = max(1, int(rep / max(before.elapsed_time(after) / ESTIMATES, 1e-4)))

        def many() -> None:
            for _ in range(count):
                for tensor in grad_to_none or ():
                    tensor.grad = None
                fn()

        graph = captured(many)
        torch.cuda.synchronize()
        times = []
        for _ in range(REPLAYS):
            before.record()
            graph.replay()
            after.record()
            torch.cuda.synchronize()
            times.append(before.elapsed_time(after) / count)
    return summary(times, quantiles, return_mode)


def _torch(what: str) -> Any:
    try:
        import torch
    except ImportError as error:
        raise ToolchainError(f"{what} needs torch; pip install torch, or use do_bench") from error
    if not torch.cuda.is_available():
        raise ToolchainError(f"{what} needs a GPU; use do_bench, which takes wall time without one")
    return torch


def assert_close(
    x: Any,
    y: Any,
    atol: float | Callable[[Any], float] | None = None,
    rtol: float | Callable[[Any], float] | None = None,
    err_msg: str = "",
) -> None:
    """Checks that arrays or numbers are equal within atol + rtol * |y|; NaNs equal NaNs.

    Args:
      x: an array of any library, or a number.
      y: what is expected.
      atol: tolerance, or a function from the element type of `x` to one; 1e-2 by default.
      rtol: likewise; 0 by default.
      err_msg: stands in front of the report.

    Raises:
      AssertionError: with the number and the size of the differences.
    """
    dtype = getattr(x, "dtype", None)
    absolute, relative = (limit(dtype) if callable(limit) else limit for limit in (atol, rtol))
    np.testing.assert_allclose(
        _numbers(x),
        _numbers(y),
        atol=1e-2 if absolute is None else absolute,
        rtol=0.0 if relative is None else relative,
        err_msg=err_msg,
        equal_nan=True,
    )


def _numbers(value: Any) -> np.ndarray[Any, Any]:
    """As an array that NumPy can compare; 16- and 8-bit floats widened."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = value.float() if value.is_floating_point() and value.element_size() <= 2 else value
        return np.asarray(value.numpy())
    if hasattr(value, "get") and hasattr(value, "__cuda_array_interface__"):
        value = value.get()
    array = np.asarray(value)
    return array if array.dtype.kind in "biufc" and array.itemsize != 2 else array.astype(np.float32)
