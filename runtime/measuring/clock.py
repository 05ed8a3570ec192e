"""Clocks for kernels: events of the GPU's stream, or wall time where there is no GPU.

A clock's `start(run)` runs something and returns a reading; after `finish()` the reading is good for `milliseconds`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

FLUSH_TO_CACHE = 4  # bytes written between two runs, per byte of L2 cache


class Clock(Protocol):
    """How long runs take; a context manager that gives back what it holds."""

    def __enter__(self) -> Clock: ...

    def __exit__(self, *error: object) -> None: ...

    def start(self, run: Callable[[], Any]) -> Any:
        """Runs and returns a reading."""

    def finish(self) -> None:
        """Waits until all readings are good."""

    def milliseconds(self, reading: Any) -> float:
        """The time of a reading."""


class HostClock:
    """Wall time."""

    def __enter__(self) -> HostClock:
        return self

    def __exit__(self, *error: object) -> None:
        """Holds nothing."""

    def start(self, run: Callable[[], Any]) -> float:
        """Runs; the milliseconds that it took."""
        before = time.perf_counter()
        run()
        return (time.perf_counter() - before) * 1e3

    def finish(self) -> None:
        """Nothing runs on."""

    def milliseconds(self, reading: float) -> float:
        """The reading itself."""
        return reading


class DeviceClock:
    """Events around what is launched on the current stream. The L2 cache is overwritten before every run.

    The overwriting also keeps the GPU busy until the launch has arrived, so that the host's time does not count.
    """

    def __init__(self, device: int) -> None:
        """A clock of the device's current stream."""
        from tilewright.runtime.driver import bindings, in_context

        self._driver, self._device, self._context = bindings(), device, in_context(device)
        self._address = self._flushed = 0
        self._events: list[Any] = []  # all of the clock's
        self._free: list[Any] = []  # those that no reading has

    def __enter__(self) -> DeviceClock:
        from tilewright.runtime.driver import checked
        from tilewright.runtime.driver_library import L2_CACHE_SIZE

        driver = self._driver
        cache = int(checked(driver.cuDeviceGetAttribute(L2_CACHE_SIZE, checked(driver.cuDeviceGet(self._device)))))
        self._context.__enter__()
        status, address = driver.cuMemAlloc(FLUSH_TO_CACHE * cache)
        if int(status) == 0:  # without room the cache stays as it is
            self._address, self._flushed = int(address), FLUSH_TO_CACHE * cache
        return self

    def __exit__(self, *error: object) -> None:
        for event in self._events:  # those of a reading too, that an error has left
            self._driver.cuEventDestroy(event)
        self._events, self._free = [], []
        if self._address:
            self._driver.cuMemFree(self._address)
            self._address = self._flushed = 0
        self._context.__exit__(None, None, None)

    def start(self, run: Callable[[], Any]) -> tuple[Any, Any]:
        """Runs between two events."""
        from tilewright.runtime.driver import checked, current_stream

        driver, stream = self._driver, current_stream(self._device)
        before, after = self._event(), self._event()
        if self._flushed:
            checked(driver.cuMemsetD32Async(self._address, 0, self._flushed // 4, stream))
        checked(driver.cuEventRecord(before, stream))
        run()
        checked(driver.cuEventRecord(after, stream))
        return before, after

    def _event(self) -> Any:
        from tilewright.runtime.driver import checked
        from tilewright.runtime.driver_library import EVENT_DEFAULT

        if not self._free:
            self._free = [checked(self._driver.cuEventCreate(EVENT_DEFAULT))]
            self._events += self._free
        return self._free.pop()

    def finish(self) -> None:
        """Waits for the device.

        Raises:
          ToolchainError: with the driver's name of what a run did wrong.
        """
        from tilewright.runtime.driver import checked

        checked(self._driver.cuCtxSynchronize())

    def milliseconds(self, reading: tuple[Any, Any]) -> float:
        """The time between the events, which further readings may have."""
        from tilewright.runtime.driver import checked

        elapsed = float(checked(self._driver.cuEventElapsedTime(*reading)))
        self._free += reading
        return elapsed


def clock_of(device: int | None) -> Clock:
    """The clock of a device, or of the host (None or a negative number)."""
    return HostClock() if device is None or device < 0 else DeviceClock(device)


def quantile(values: Sequence[float], fraction: float) -> float:
    """The value below which a fraction of the values lie, interpolated linearly."""
    ordered = sorted(values)
    place = fraction * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def summary(values: Sequence[float], quantiles: Sequence[float] | None, return_mode: str) -> Any:
    """What `do_bench` returns of its times.

    Raises:
      ValueError: for an unknown mode, and for a quantile that is no fraction.
    """
    if quantiles is not None:
        outside = [fraction for fraction in quantiles if not 0 <= fraction <= 1]
        if outside:
            raise ValueError(f"quantiles has {outside[0]!r}; it must have fractions, from 0 to 1")
        found = [quantile(values, fraction) for fraction in quantiles]
        return found[0] if len(found) == 1 else found
    modes: dict[str, Callable[[Sequence[float]], Any]] = {
        "min": min, "max": max, "mean": statistics.fmean, "median": statistics.median, "all": list,
    }  # fmt: skip
    if return_mode not in modes:
        raise ValueError(f"return_mode is {return_mode!r}; it must be one of {', '.join(modes)}")
    return modes[return_mode](values)
