"""How a tuned kernel measures its configs: what is compiled, kept, launched and timed, and which hooks are called."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tilewright.diagnostics import ConfigConflictError, TuningInCaptureError
from tilewright.runtime.compiled import CompiledKernel
from tilewright.runtime.environment import is_on
from tilewright.runtime.forks import ForkLock
from tilewright.runtime.kernel_interface import KernelInterface
from tilewright.runtime.measuring.clock import clock_of
from tilewright.runtime.tuning.callbacks import milliseconds
from tilewright.runtime.tuning.config import Config
from tilewright.runtime.tuning.place import Place, find_place
from tilewright.runtime.tuning.prepare import EXPECTED, check_dropped, prepare, reason
from tilewright.runtime.tuning.state import Restore, keep, set_to_zero
from tilewright.runtime.tuning.timing import QUANTILES, Trial, time_in_turns

WARMUP, REP = 10.0, 50.0  # milliseconds per config, where the user says nothing
NEVER = [float("inf")] * len(QUANTILES)


def as_row(measured: Any) -> list[Any]:
    """What was measured of a config, one number or several, as a list."""
    return measured if isinstance(measured, list) else [measured]


class Measuring(KernelInterface):
    """The measuring half of `Autotuner`, which has the arguments, the choice of configs and the launch."""

    fn: Any
    __name__: str
    nargs: dict[str, Any] | None
    cache: dict[Any, Config]
    pre_hook: Callable[..., Any]
    post_hook: Callable[..., Any]
    user_defined_pre_hook: bool
    user_defined_post_hook: bool
    reset_to_zero: list[str]
    restore_value: list[str]
    num_warmups: float | None
    num_reps: float | None
    use_cuda_graph: bool
    do_bench: Callable[..., Any] | None

    def __init__(self) -> None:
        """Nothing is measured yet."""
        self.configs_timings: dict[Config, Any] = {}
        self.bench_time = 0.0
        self.dropped: dict[Config, str] = {}
        self.restore_copies: dict[str, Restore] = {}
        self._restores: list[Restore] = []
        self._hook_lock = ForkLock()

    def _measure(
        self, key: Any, configs: list[Config], args: tuple[Any, ...], kwargs: dict[str, Any], place: Place
    ) -> None:
        """Compiles and times configs; the arguments are afterwards as they were."""
        start = time.perf_counter()
        if place.mode == "gpu":
            self._check_no_capture(key, place)
        if "stream" not in place.arguments:  # of the kernel; timing is on the current one
            kwargs = {name: value for name, value in kwargs.items() if name != "stream"}
        compiled: dict[Config, Any] = dict.fromkeys(configs)
        dropped: dict[Config, Exception] = {}
        kept = self._keep_for_hooks(configs, place)
        try:
            if place.kernel is not None:
                compiled, dropped = prepare(lambda config: self._compile(args, kwargs, config), configs)
                self._tell_hooks(dropped, kwargs)
                check_dropped(self.__name__, compiled, dropped)
        finally:
            for put_back in kept.values():
                put_back()
        written = place.written(list(compiled.values()))
        self._restores = [kept.get(name) or keep(value, name) for name, value in written.items()]
        kept.clear()
        try:
            if self.do_bench is None and type(self)._bench is Measuring._bench and place.is_timed:
                timings = self._time(list(compiled), args, kwargs, place)
            else:
                timings = {config: self._bench(*args, config=config, **kwargs) for config in compiled}
        finally:
            try:
                self._restore()
            finally:
                self._restores = []
        self.cache[key] = min(timings, key=lambda config: as_row(timings[config]))
        self.pre_hook({**(self.nargs or {}), **kwargs, **self.cache[key].all_kwargs()}, reset_only=True)
        self.configs_timings = {config: timings.get(config, NEVER) for config in configs}
        self.dropped = {config: reason(error) for config, error in dropped.items()}
        self.bench_time = time.perf_counter() - start
        if is_on("TRITON_PRINT_AUTOTUNING"):
            print(
                f"Triton autotuning for function {self.__name__},\nwith key as {key},\nfinished after "
                f"{self.bench_time:.2f}s,\nbest config selected: {self.cache[key]};",
                *(f"\nleft out: {config} ({why})" for config, why in self.dropped.items()),
            )

    def _check_no_capture(self, key: Any, place: Place) -> None:
        from tilewright.runtime.devices import is_capturing

        if is_capturing(place.device):
            raise TuningInCaptureError(
                f"{self.__name__} has no config yet for {key}, and the current stream is being captured into a CUDA graph, "
                "where nothing can be timed; launch it once with these arguments before the capture"
            )

    def _keep_for_hooks(self, configs: list[Config], place: Place) -> dict[str, Restore]:
        """The content of all arrays where configs have hooks: what these write is not known before they ran."""
        if all(config.pre_hook is None for config in configs):
            return {}
        return {name: keep(value, name) for name, value in place.arrays().items()}

    def _compile(self, args: tuple[Any, ...], kwargs: dict[str, Any], config: Config) -> Any:
        """Compiles a config; one after the other where hooks prepare the arguments, such as a descriptor's block."""
        current = {**kwargs, **config.all_kwargs(), "warmup": True}
        if config.pre_hook is None:
            compiled = self.fn.run(*args, **current)
        else:
            with self._hook_lock:
                config.pre_hook({**(self.nargs or {}), **current})
                compiled = self.fn.run(*args, **current)
        if isinstance(compiled, CompiledKernel):
            compiled.finish()
        return compiled

    def _tell_hooks(self, dropped: dict[Config, Exception], kwargs: dict[str, Any]) -> None:
        """The user's hooks hear of configs that cannot run as if these had been launched."""
        if self.user_defined_pre_hook or self.user_defined_post_hook:
            for config, error in dropped.items():
                passed = {**(self.nargs or {}), **kwargs, **config.all_kwargs()}
                self.pre_hook(passed)
                self.post_hook(passed, exception=error)

    def _trial(self, args: tuple[Any, ...], meta: dict[str, Any], config: Config) -> Trial:
        current = {**meta, **config.all_kwargs()}
        passed = {**(self.nargs or {}), **current}

        def before() -> None:
            self._restore()
            if config.pre_hook is not None:
                config.pre_hook(passed)
            self.pre_hook(passed)

        def launch() -> None:
            try:
                self.fn.run(*args, **current)
            except Exception as error:
                self.post_hook(passed, exception=error)
                raise

        return Trial(before, launch, lambda: self.post_hook(passed, exception=None))

    def _restore(self) -> None:
        for put_back in self._restores:
            put_back()

    def _time(
        self, configs: list[Config], args: tuple[Any, ...], meta: dict[str, Any], place: Place
    ) -> dict[Config, Any]:
        trials = {config: self._trial(args, meta, config) for config in configs}
        if self.use_cuda_graph and place.mode == "gpu":
            from tilewright.runtime.measuring.testing import captured

            for trial in trials.values():
                trial.before()
                trial.launch()  # whatever a first launch does must not happen in the capture
                trial.after()
            trials = {c: Trial(t.before, captured(t.launch).replay, t.after) for c, t in trials.items()}
        warmup = WARMUP if self.num_warmups is None else self.num_warmups
        rep = REP if self.num_reps is None else self.num_reps
        with clock_of(place.device if place.mode == "gpu" else None) as clock:
            return time_in_turns(trials, clock, warmup, rep)

    def _bench(self, *args: Any, config: Config, **meta: Any) -> Any:
        """Median, 20th and 80th percentile of one config's milliseconds; infinite when it cannot run."""
        self._check_conflict(meta, config.kwargs)
        trial = self._trial(args, meta, config)

        def call() -> None:
            trial.before()
            trial.launch()
            trial.after()

        try:
            if self.do_bench is not None:
                return milliseconds(self.do_bench, call, QUANTILES)
            place = find_place(self.fn, {**(self.nargs or {}), **meta})
            return self._time([config], args, meta, place)[config]
        except EXPECTED:
            return list(NEVER)

    def _reset_and_copy(self, passed: dict[str, Any], reset_only: bool = False) -> None:
        """The hook before a launch where the user has none: `reset_to_zero` and `restore_value`."""
        for name in self.reset_to_zero:
            if passed.get(name) is not None:
                set_to_zero(passed[name], name)
        if not reset_only:
            kept = {name: passed[name] for name in self.restore_value if passed.get(name) is not None}
            self.restore_copies = {name: keep(value, name) for name, value in kept.items()}

    def _put_back(self, passed: dict[str, Any], exception: Exception | None = None) -> None:
        """The hook after a launch where the user has none."""
        for put_back in self.restore_copies.values():
            put_back()
        self.restore_copies = {}

    def _check_conflict(self, kwargs: dict[str, Any], added: dict[str, Any]) -> None:
        twice = kwargs.keys() & added.keys()
        if twice:
            raise ConfigConflictError(
                f"Conflicting meta-parameters: {', '.join(sorted(twice))}. Make sure that you don't re-define auto-tuned "
                f"symbols: the configs of {self.__name__} set what this launch passes as well"
            )
