"""`@autotune`: tries the configs of a kernel once per key and keeps the fastest.

Triton's arguments and hooks, and beyond them: configs are compiled several at a time, those that cannot run are left out
with the reason, timing goes in turns, every launch finds the arguments as the caller passed them, and results stay on disk.
The interpreter and the checking run take the first config that can run: time means nothing there.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.diagnostics import AutotunerError, ConfigConflictError, TuningInCaptureError, TuningNameError, about
from tilewright.runtime.devices import devices_differ
from tilewright.runtime.environment import is_on
from tilewright.runtime.forks import ForkLock
from tilewright.runtime.hooks import TUNING_HOOKS
from tilewright.runtime.kernel_interface import FoundByName, KernelInterface, parameters_below
from tilewright.runtime.keywords import with_known_options
from tilewright.runtime.tracebacks import outermost, warn
from tilewright.runtime.tracing import in_earnest, launches_nothing
from tilewright.runtime.tuning.callbacks import (
    best_by_model,
    check_pruning,
    check_timing,
    hashable,
    listed,
    pruned_early,
)
from tilewright.runtime.tuning.config import Config
from tilewright.runtime.tuning.measure import NEVER, Call, Hooks, Measurement, Timing, as_row
from tilewright.runtime.tuning.place import Place, find_place
from tilewright.runtime.tuning.prepare import check_dropped, prepare, reason
from tilewright.runtime.tuning.state import Kept, Restore, keep, set_to_zero
from tilewright.runtime.tuning.store import Result, is_recording, loaded, record, stored_or_measured
from tilewright.runtime.tuning.subject import Subject


class Autotuner(FoundByName, KernelInterface):
    """A kernel with several configs. Libraries derive from it: arguments, attributes and methods are Triton's.

    Attributes:
      fn: what is launched; `base_fn` the Python function innermost.
      configs, keys, arg_names: the candidates, the names that they are tuned for, the kernel's parameters.
      cache: the config of every key so far; `best_config` the one of the last launch.
      nargs: the positional arguments by name, while a call is tuned.
      configs_timings: median, 20th and 80th percentile of milliseconds by config; `bench_time` the seconds it took.
      dropped: why configs of the last tuning could not run.
      restore_copies: what puts the arrays of `restore_value` back, between the two hooks of a launch.
    """

    __name__: str

    def __init__(
        self,
        fn: Any,
        arg_names: list[str],
        configs: list[Config] | None,
        key: Sequence[str] | None,
        reset_to_zero: Sequence[str] | None,
        restore_value: Sequence[str] | None,
        pre_hook: Callable[..., Any] | None = None,
        post_hook: Callable[..., Any] | None = None,
        prune_configs_by: dict[str, Any] | None = None,
        warmup: float | None = None,
        rep: float | None = None,
        use_cuda_graph: bool = False,
        do_bench: Callable[..., Any] | None = None,
        cache_results: bool | None = None,
    ) -> None:
        """See `autotune`.

        Raises:
          TuningNameError: for a name of an array that is no parameter of the kernel.
          TuningArgumentError: for what is no list where one is wanted, and a `prune_configs_by` or `do_bench` of another kind.
        """
        self.fn, self.arg_names = fn, arg_names
        self.configs = listed(configs or (), "configs", "triton.Config") or [Config({})]
        names = "names of parameters"
        self.keys, self._known_names = listed(key or (), "key", names), frozenset(arg_names)
        self.reset_to_zero = listed(reset_to_zero or (), "reset_to_zero", names)
        self.restore_value = listed(restore_value or (), "restore_value", names)
        self.user_defined_pre_hook, self.user_defined_post_hook = pre_hook is not None, post_hook is not None
        self.pre_hook = pre_hook or self._reset_and_copy
        self.post_hook = post_hook or self._put_back
        with about("prune_configs_by"):
            pruning = check_pruning(prune_configs_by or {})
        self.perf_model, self.configs_top_k = pruning.get("perf_model"), pruning.get("top_k", 1.0)
        self.early_config_prune = pruning.get("early_config_prune")
        with about("do_bench"):
            check_timing(do_bench)
        self.num_warmups, self.num_reps = warmup, rep
        self.use_cuda_graph, self.do_bench, self.cache_results = use_cuda_graph, do_bench, cache_results
        self.base_fn = fn
        while not inspect.isfunction(self.base_fn):
            self.base_fn = self.base_fn.fn
        for name in ("__name__", "__qualname__", "__module__"):
            setattr(self, name, getattr(self.base_fn, name))
        self.cache: dict[Any, Config] = {}
        self.best_config: Config | None = None
        self.nargs: dict[str, Any] | None = None
        self.configs_timings: dict[Config, Any] = {}
        self.bench_time = 0.0
        self.dropped: dict[Config, str] = {}
        self.restore_copies: dict[str, Restore] = {}
        self._passed: dict[str, Any] = {}
        self._kept = Kept()
        self._lock = ForkLock()
        self._check_names()

    def _check_names(self) -> None:
        for config in self.configs:
            if not isinstance(config, Config):
                remedy = (
                    f"write triton.Config({config!r})" if isinstance(config, dict) else "write triton.Config({...})"
                )
                raise AutotunerError(f"configs of autotune has {config!r}, which is no triton.Config; {remedy}").of(
                    "configs"
                )
        for what, names in (
            ("key", self.keys),
            ("reset_to_zero", self.reset_to_zero),
            ("restore_value", self.restore_value),
        ):
            unknown = [name for name in names if name not in self.arg_names]
            if not unknown:
                continue
            text = (
                f"{what} of autotune names {unknown[0]!r}, which is no parameter of {self.__name__}; its parameters are "
                f"{', '.join(self.arg_names)}"
            )
            if what != "key":
                raise TuningNameError(text).of(what)
            # Triton passes over such a name, and public kernels carry some: the key is only coarser for it.
            warn(f"{text}; the name is passed over")

    def run(self, /, *args: Any, **kwargs: Any) -> Any:
        """Launches with the best config for these arguments, which the first launch of a key finds out."""
        if launches_nothing():
            return None
        if kwargs.get("warmup"):
            return self.warmup(*args, **kwargs)
        named = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        if len(self.configs) == 1:
            config = self.configs[0]
        else:
            key = self._key(named)
            try:
                known = self.cache.get(key)
            except TypeError:  # of a list, for example
                told = {name: hashable(value, name) for name, value in named.items() if name in self.keys}
                key = self._key({**named, **told})
                known = self.cache.get(key)
            config = known or self._tuned(key, args, kwargs)
        self.best_config = config
        added = config.all_kwargs()
        self._check_conflict(kwargs, added)
        if config.pre_hook is not None:
            config.pre_hook({**named, **added})
        return self.fn.run(*args, **kwargs, **added)

    def warmup(self, /, *args: Any, **kwargs: Any) -> list[Any]:
        """Compiles all configs that can run, without launching or timing.

        Raises:
          NoConfigLeftError: when none can.
        """
        kwargs = {**kwargs, "warmup": True, "grid": kwargs.get("grid", (1,))}
        with self._lock:
            self.nargs = dict(zip(self.arg_names, args, strict=False))
            try:
                compiled, dropped = prepare(self._measurement(args, kwargs).compile, self.prune_configs(kwargs))
            finally:
                self.nargs = None
        check_dropped(self.__name__, compiled, dropped)
        return list(compiled.values())

    def _key(self, named: dict[str, Any]) -> tuple[Any, ...]:
        """Values of the key's arguments, and element types of all arrays; where GPUs differ, the place of the first one."""
        values = [named[name] for name in self.keys if name in named]
        known = self._known_names
        arrays = [v for name, v in named.items() if name in known and hasattr(v, "dtype")]
        place = [str(getattr(array, "device", "")) for array in arrays[:1]] if devices_differ() else []
        return (*values, *[str(array.dtype) for array in arrays], *place)

    def _tuned(self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Config:
        """The config of a key, found out by one thread while the others wait."""
        with self._lock:
            if key not in self.cache:
                with in_earnest(args, kwargs) as (args, kwargs):
                    self.nargs = dict(zip(self.arg_names, args, strict=False))
                    try:
                        self._tune(key, args, kwargs)
                    finally:
                        self.nargs, self._passed = None, {}  # what was passed is not kept alive
            return self.cache[key]

    def prune_configs(self, kwargs: dict[str, Any]) -> list[Config]:
        """The configs that are worth measuring: what `early_config_prune` leaves, the best by `perf_model` of these.

        Raises:
          NoConfigLeftError: when `early_config_prune` leaves none.
          TuningArgumentError: when one of them takes or returns something else.
        """
        configs = self.configs
        if self.early_config_prune:
            configs = pruned_early(self.early_config_prune, configs, self.nargs, kwargs)
        if self.perf_model:
            configs = best_by_model(self.perf_model, self.configs_top_k, configs, {**(self.nargs or {}), **kwargs})
        return configs

    def _tune(self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Finds the config of a key: from a loaded file, from the disk, or by measuring."""
        self._passed = kwargs
        configs = self.prune_configs(kwargs)
        for config in configs:
            self._check_conflict(kwargs, config.all_kwargs())
        place = find_place(self.fn, {**(self.nargs or {}), **kwargs})
        named = {str(config): config for config in configs}
        has_names = len(named) == len(set(configs))  # those that differ in a hook alone cannot be told apart in a file
        subject = place.subject(key) if place.is_timed and has_names else None
        known = loaded(subject) if subject is not None and not is_recording() else None
        if len(configs) == 1:
            self.cache[key] = configs[0]
        elif not place.is_timed and place.kernel is not None and self.do_bench is None:
            compiled, dropped = prepare(self._measurement(args, kwargs).compile, configs)
            check_dropped(self.__name__, compiled, dropped)
            self.cache[key] = next(iter(compiled))
        elif known in named:
            self.cache[key] = named[known or ""]
            self._tell(key, is_known=True)
        elif subject is not None and self._keeps_results():
            is_known = self.check_disk_cache(key, configs, lambda: self._measure(key, configs, args, kwargs, place))
            self._tell(key, is_known)
        else:
            self._measure(key, configs, args, kwargs, place)
            if subject is not None:
                record(self._result(key, subject))
            self._tell(key, is_known=False)

    def _measure(
        self, key: Any, configs: list[Config], args: tuple[Any, ...], kwargs: dict[str, Any], place: Place
    ) -> None:
        """Compiles and times configs; the arguments are afterwards as they were."""
        start = time.perf_counter()
        if place.mode == "gpu":
            self._check_no_capture(key, place)
        if "stream" not in place.arguments:  # of the kernel; timing is on the current one
            kwargs = {name: value for name, value in kwargs.items() if name != "stream"}
        self._kept = Kept()
        measurement = self._measurement(args, kwargs)
        try:
            compiled, dropped = measurement.prepared(self.__name__, configs, place)
            if self.do_bench is None and type(self)._bench is Autotuner._bench and place.is_timed:
                timings = measurement.in_turns(list(compiled), place)
            else:
                timings = {config: self._bench(*args, config=config, **kwargs) for config in compiled}
        finally:
            try:
                self._kept.put_back()
            finally:
                self._kept = Kept()  # which lets go of what was kept
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

    def _measurement(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Measurement:
        """The measuring of a call, by the hooks and the timing that the tuner has now."""
        are_users = self.user_defined_pre_hook or self.user_defined_post_hook
        hooks = Hooks(self.pre_hook, self.post_hook, are_users)
        timing = Timing(self.num_warmups, self.num_reps, self.use_cuda_graph, self.do_bench)
        return Measurement(Call(self.fn, args, kwargs, self.nargs or {}), hooks, timing, self._kept)

    def _bench(self, *args: Any, config: Config, **meta: Any) -> Any:
        """Median, 20th and 80th percentile of one config's milliseconds; infinite when it cannot run."""
        self._check_conflict(meta, config.kwargs)
        return self._measurement(args, meta).alone(config)

    def _check_no_capture(self, key: Any, place: Place) -> None:
        from tilewright.runtime.devices import is_capturing

        if is_capturing(place.device):
            raise TuningInCaptureError(
                f"{self.__name__} has no config yet for {key}, and the current stream is being captured into a CUDA graph, "
                "where nothing can be timed; launch it once with these arguments before the capture"
            )

    def _check_conflict(self, kwargs: dict[str, Any], added: dict[str, Any]) -> None:
        twice = kwargs.keys() & added.keys()
        if twice:
            raise ConfigConflictError(
                f"Conflicting meta-parameters: {', '.join(sorted(twice))}. Make sure that you don't re-define auto-tuned "
                f"symbols: the configs of {self.__name__} set what this launch passes as well"
            )

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

    def _tell(self, key: Any, is_known: bool) -> None:
        """Calls those who listen to tunings, after one that was measured or found on the disk."""
        fn = self.fn
        while TUNING_HOOKS and not inspect.isfunction(fn.fn):
            fn = fn.fn
        for listener in tuple(TUNING_HOOKS):
            listener(
                fn=fn, key=key, best_config=self.cache[key], configs_timings=self.configs_timings,
                duration=None if is_known else self.bench_time, cache_hit=is_known,
            )  # fmt: skip

    def _keeps_results(self) -> bool:
        """By default, unless code of the user takes part in the measurement: its effects would be missed."""
        if not is_on("TRITON_CACHE_AUTOTUNING", default=True):
            return False
        if self.cache_results is not None:
            return self.cache_results
        return self.do_bench is None and not (self.user_defined_pre_hook or self.user_defined_post_hook)

    def check_disk_cache(self, tuning_key: Any, configs: list[Config], bench_fn: Callable[[], None]) -> bool:
        """Sets the cache's entry for a key from the disk, else by `bench_fn`; returns whether it was on the disk."""
        place = find_place(self.fn, {**(self.nargs or {}), **self._passed})
        subject, named = place.subject(tuning_key), {str(config): config for config in configs}

        def measure() -> Result:
            bench_fn()
            return self._result(tuning_key, subject)

        result = stored_or_measured(subject, named, measure)
        record(result)
        if not result.measured:
            self.cache[tuning_key], self.bench_time = named[result.best], 0.0
            self.configs_timings = {named[name]: row for name, row in result.milliseconds.items() if name in named}
            self.dropped = {named[name]: why for name, why in result.dropped.items() if name in named}
        return not result.measured

    def _result(self, key: Any, subject: Subject) -> Result:
        rows = {str(config): as_row(row) for config, row in self.configs_timings.items()}
        rows = {name: row for name, row in rows.items() if row[0] != NEVER[0]}
        dropped = {str(config): why for config, why in self.dropped.items()}
        return Result(subject, str(self.cache[key]), rows, dropped, module=self.base_fn.__module__)


@with_known_options("@autotune")
def autotune(
    configs: list[Config],
    key: Sequence[str],
    prune_configs_by: dict[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable[..., Any] | None = None,
    post_hook: Callable[..., Any] | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool | None = None,
) -> Callable[[Any], Autotuner]:
    """Decorates a kernel with configs to choose from.

    Args:
      configs: the candidates.
      key: parameters for whose values the choice is made anew; the arrays' element types always count. A name that is no
        parameter is passed over with a warning.
      prune_configs_by: `early_config_prune(configs, named_args, **kwargs)` returns those to try; `perf_model(**arguments)`
        estimates a time, and the `top_k` best (a count, or a fraction) are tried.
      reset_to_zero: arrays that are zero before every launch while tuning.
      restore_value: arrays that are restored after every launch while tuning. What the kernel writes always is.
      pre_hook: `pre_hook(arguments, reset_only=False)` before every launch while tuning, in place of the two above.
      post_hook: `post_hook(arguments, exception=None)` after it.
      warmup: milliseconds that a config runs before it is measured.
      rep: milliseconds that it is measured for.
      use_cuda_graph: times replays of graphs, which is for kernels of a few microseconds; needs torch.
      do_bench: `do_bench(call, quantiles=...)` measures in place of the tuner, one config after the other.
      cache_results: whether results stay on disk; None: unless the user has a `do_bench` or hooks.

    Raises:
      TuningNameError: for a name of an array that is no parameter of the kernel.
      TuningArgumentError: for what is no list where one is wanted, and a `prune_configs_by` or `do_bench` of another kind.
      NoSourceError: above what is no kernel.
    """

    def decorate(fn: Any) -> Autotuner:
        names = parameters_below("autotune", fn)
        return Autotuner(
            fn, names, configs, key, reset_to_zero, restore_value, pre_hook, post_hook, prune_configs_by, warmup,
            rep, use_cuda_graph, do_bench, cache_results,
        )  # fmt: skip

    return outermost(decorate, like=autotune)
