"""Times candidates in turns, so that a change of the machine's speed meets all of them alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tilewright.frozen import frozen
from tilewright.runtime.measuring.clock import Clock, HostClock, quantile

Key = TypeVar("Key")
QUANTILES = (0.5, 0.2, 0.8)
MOST_ROUNDS, FEWEST_ROUNDS, HOST_ROUNDS = 100, 5, 3
# After these rounds a candidate whose median is that much above the best one's cannot win any more.
FIRST_ROUNDS, HOPELESS = 3, 1.5


@frozen
class Trial:
    """A candidate's launch, which is timed, and what is done before and after it, which is not."""

    before: Callable[[], Any]
    launch: Callable[[], Any]
    after: Callable[[], Any]


def time_in_turns(trials: Mapping[Key, Trial], clock: Clock, warmup: float, rep: float) -> dict[Key, list[float]]:
    """Median, 20th and 80th percentile of every trial's milliseconds.

    Args:
      trials: what to time.
      clock: measures a launch.
      warmup: milliseconds that each trial runs before it counts.
      rep: milliseconds that each trial is measured for, of the fastest one's time. With wall time, where a launch may take
        long, neither counts: there are `HOST_ROUNDS`.
    """
    times: dict[Key, list[float]] = {key: [] for key in trials}
    on_host = isinstance(clock, HostClock)
    _round(trials, clock)  # the first launch builds, loads and allocates
    estimate = min(_round(trials, clock).values()) if not on_host else 0.0
    for _ in range(min(int(warmup / max(estimate, 1e-3)), MOST_ROUNDS) if not on_host else 0):
        _round(trials, clock)
    rounds = HOST_ROUNDS if on_host else max(FEWEST_ROUNDS, min(int(rep / max(estimate, 1e-3)), MOST_ROUNDS))
    for number in range(rounds):
        if number == FIRST_ROUNDS:
            best = min(statistics.median(values) for values in times.values())
            trials = {key: trial for key, trial in trials.items() if statistics.median(times[key]) <= best * HOPELESS}
        for key, value in _round(trials, clock).items():
            times[key].append(value)
    return {key: [quantile(values, fraction) for fraction in QUANTILES] for key, values in times.items()}


def _round(trials: Mapping[Key, Trial], clock: Clock) -> dict[Key, float]:
    """Every trial once."""
    readings = {}
    for key, trial in trials.items():
        trial.before()
        readings[key] = clock.start(trial.launch)
        trial.after()
    clock.finish()
    return {key: clock.milliseconds(reading) for key, reading in readings.items()}
