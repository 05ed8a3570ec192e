"""How the configs of one call of a tuned kernel are measured: compiled, launched between hooks, and timed in turns."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tilewright.frozen import frozen
from tilewright.runtime.compiled import CompiledKernel
from tilewright.runtime.measuring.clock import clock_of
from tilewright.runtime.tuning.callbacks import milliseconds
from tilewright.runtime.tuning.config import Config
from tilewright.runtime.tuning.place import Place, find_place
from tilewright.runtime.tuning.prepare import EXPECTED, check_dropped, prepare
from tilewright.runtime.tuning.state import Kept
from tilewright.runtime.tuning.timing import QUANTILES, Trial, time_in_turns

WARMUP, REP = 10.0, 50.0  # milliseconds per config, where the user says nothing
NEVER = [float("inf")] * len(QUANTILES)


def as_row(measured: Any) -> list[Any]:
    """What was measured of a config, one number or several, as a list."""
    return measured if isinstance(measured, list) else [measured]


@frozen
class Hooks:
    """What is called around each launch that is measured, outside of its time.

    Attributes:
      before: `before(arguments)`.
      after: `after(arguments, exception=None)`.
      are_users: whether one of them is the user's, who hears of configs that cannot run as well.
    """

    before: Callable[..., Any]
    after: Callable[..., Any]
    are_users: bool


@frozen
class Timing:
    """How a config is timed.

    Attributes:
      warmup, rep: milliseconds before it counts, and of measuring; None for as many as usual.
      use_cuda_graph: whether replays of a graph are timed.
      do_bench: what measures in place of the tuner.
    """

    warmup: float | None
    rep: float | None
    use_cuda_graph: bool
    do_bench: Callable[..., Any] | None


@frozen
class Call:
    """A call that configs are tried for: what is launched with which arguments, and the positional ones by name."""

    fn: Any
    args: tuple[Any, ...]
    meta: dict[str, Any]
    named: dict[str, Any]

    def arguments(self, config: Config) -> dict[str, Any]:
        """All arguments by name, with those that a config has."""
        return {**self.named, **self.meta, **config.all_kwargs()}

    def place(self) -> Place:
        """Where it runs."""
        return find_place(self.fn, {**self.named, **self.meta})


class Measurement:
    """See the module docstring. Before each launch that counts, arrays have the content that is kept."""

    def __init__(self, call: Call, hooks: Hooks, timing: Timing, kept: Kept) -> None:
        """Nothing is compiled yet, and nothing kept."""
        self._call, self._hooks, self._timing, self._kept = call, hooks, timing, kept
        self._preparing = threading.RLock()  # the arguments, by a config's hook

    def compile(self, config: Config) -> Any:
        """Compiles a config; one after the other where hooks prepare the arguments, such as a descriptor's block."""
        current = {**self._call.meta, **config.all_kwargs(), "warmup": True}
        if config.pre_hook is None:
            compiled = self._call.fn.run(*self._call.args, **current)
        else:
            with self._preparing:
                config.pre_hook({**self._call.named, **current})
                compiled = self._call.fn.run(*self._call.args, **current)
        if isinstance(compiled, CompiledKernel):
            compiled.finish()
        return compiled

    def prepared(
        self, name: str, configs: list[Config], place: Place
    ) -> tuple[dict[Config, Any], dict[Config, Exception]]:
        """(The configs that compile, why the others do not); what they write is kept, and is as it was.

        What hooks of configs write is not known before they ran: where there are any, the content of all arrays is kept.

        Raises:
          NoConfigLeftError: when none compiles; other errors as `check_dropped` has them.
        """
        if place.kernel is None:
            self._kept.keep(place.arrays())
            return dict.fromkeys(configs), {}
        if any(config.pre_hook is not None for config in configs):
            self._kept.keep(place.arrays())
        compiled, dropped = prepare(self.compile, configs)
        for config, error in dropped.items() if self._hooks.are_users else ():
            passed = self._call.arguments(config)  # as if it had been launched
            self._hooks.before(passed)
            self._hooks.after(passed, exception=error)
        check_dropped(name, compiled, dropped)
        self._kept.put_back()
        self._kept.keep(place.written(list(compiled.values())))
        return compiled, dropped

    def in_turns(self, configs: list[Config], place: Place) -> dict[Config, Any]:
        """Median, 20th and 80th percentile of the milliseconds of each config."""
        trials = {config: self._trial(config) for config in configs}
        if self._timing.use_cuda_graph and place.mode == "gpu":
            from tilewright.runtime.measuring.testing import captured

            for trial in trials.values():
                trial.before()
                trial.launch()  # whatever a first launch does must not happen in the capture
                trial.after()
            trials = {c: Trial(t.before, captured(t.launch).replay, t.after) for c, t in trials.items()}
        warmup = WARMUP if self._timing.warmup is None else self._timing.warmup
        rep = REP if self._timing.rep is None else self._timing.rep
        with clock_of(place.device if place.mode == "gpu" else None) as clock:
            return time_in_turns(trials, clock, warmup, rep)

    def alone(self, config: Config) -> Any:
        """The same of one config, or what the user's `do_bench` finds; infinite when it cannot run."""
        trial = self._trial(config)

        def call() -> None:
            trial.before()
            trial.launch()
            trial.after()

        try:
            if self._timing.do_bench is not None:
                return milliseconds(self._timing.do_bench, call, QUANTILES)
            return self.in_turns([config], self._call.place())[config]
        except EXPECTED:
            return list(NEVER)

    def _trial(self, config: Config) -> Trial:
        current, passed = {**self._call.meta, **config.all_kwargs()}, self._call.arguments(config)

        def before() -> None:
            self._kept.put_back()
            if config.pre_hook is not None:
                config.pre_hook(passed)
            self._hooks.before(passed)

        def launch() -> None:
            try:
                self._call.fn.run(*self._call.args, **current)
            except Exception as error:
                self._hooks.after(passed, exception=error)
                raise

        return Trial(before, launch, lambda: self._hooks.after(passed, exception=None))
