"""What users hand to `autotune` and `heuristics` to be called or counted with: checked, so that slips are errors of ours."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from tilewright.absent import closest
from tilewright.diagnostics import NoConfigLeftError, TuningArgumentError
from tilewright.language.hints import shown
from tilewright.runtime.tracebacks import warn
from tilewright.runtime.tuning.config import Config

PRUNING = ("early_config_prune", "perf_model", "top_k")  # keys of prune_configs_by
EARLY = "early_config_prune(configs, named_args, **kwargs)"
MODEL = "perf_model(**arguments)"
TIMING = "do_bench(call, quantiles=(0.5, 0.2, 0.8))"
HEURISTIC = "function(arguments)"


def check_pruning(pruning: Any) -> Mapping[str, Any]:
    """`prune_configs_by`, with a warning for a key that means nothing: Triton passes over it.

    Raises:
      TuningArgumentError: for what is no dict, and for what is no function in it.
    """
    if not isinstance(pruning, Mapping):
        raise TuningArgumentError(
            f"prune_configs_by of autotune is {named(pruning)}; it must be a dict with the keys {', '.join(PRUNING)}"
        )
    for key in pruning:
        if key not in PRUNING:
            meant = closest(str(key), PRUNING)
            hint = f"did you mean {meant}? " if meant else ""
            text = f"prune_configs_by of autotune has the key {key!r}; {hint}its keys are {', '.join(PRUNING)}"
            warn(f"{text}; the key is passed over")
    for key, form in (("early_config_prune", EARLY), ("perf_model", MODEL)):
        if pruning.get(key) is not None:
            check_callable(pruning[key], f"{key} of prune_configs_by", form)
    return pruning


def listed(given: Any, what: str, items: str) -> list[Any]:
    """The items of an argument of `autotune` that is a list; `items` says what of.

    Raises:
      TuningArgumentError: for what is no list: one of the items, or an argument meant for another parameter.
    """
    if (isinstance(given, str) and len(given) > 1) or not isinstance(given, Iterable):
        raise TuningArgumentError(f"{what} of autotune is {named(given)}; it must be a list of {items}").of(what)
    return list(given)


def hashable(value: Any, name: str) -> Any:
    """The value of a parameter in `key`, by which configs are looked up: lists, which kernels take as tuples, are tuples.

    Raises:
      TuningArgumentError: for a value by which nothing can be looked up, as an array.
    """
    if isinstance(value, (list, tuple)):
        return tuple(hashable(item, name) for item in value)
    try:
        hash(value)
    except TypeError:
        raise TuningArgumentError(
            f"key of autotune names {name}, which is {shown(value)} in this launch, nothing to tune for; name parameters "
            "that are numbers, texts, types or tuples of these"
        ).of(name) from None
    return value


def check_callable(function: Any, what: str, form: str) -> None:
    """Rejects what is no function; `form` shows how it is called.

    Raises:
      TuningArgumentError: says what it must be.
    """
    if not callable(function):
        raise TuningArgumentError(f"{what} is {named(function)}; it must be a function, called as {form}")


def check_takes(function: Callable[..., Any], what: str, form: str, /, *args: Any, **kwargs: Any) -> None:
    """Rejects a function that cannot be called with some arguments.

    Raises:
      TuningArgumentError: says how it is called, and where it stands.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a function in C
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TuningArgumentError(
            f"{what} is called as {form}, and {named(function)} takes {signature}: {error}{place_of(function)}"
        ) from None


def check_timing(do_bench: Any) -> None:
    """Rejects a `do_bench` that is no function of what it times.

    Raises:
      TuningArgumentError: says how it is called.
    """
    if do_bench is not None:
        check_callable(do_bench, "do_bench of autotune", TIMING)
        check_takes(do_bench, "do_bench of autotune", TIMING, int, quantiles=())


def milliseconds(do_bench: Callable[..., Any], call: Callable[[], None], quantiles: Sequence[float]) -> Any:
    """What the user's `do_bench` finds: a number, or a list of one for each of `quantiles`.

    Raises:
      TuningArgumentError: when it returns something else, of which no least one could be found.
    """
    measured = found = do_bench(call, quantiles=quantiles)
    if isinstance(measured, Iterable) and getattr(measured, "shape", None) != ():  # no tensor of one number
        found = list(measured)
    try:
        numbers = [float(one) for one in (found if isinstance(found, list) else [found])]
    except (TypeError, ValueError):
        numbers = []
    if not numbers or isinstance(measured, str) or any(map(math.isnan, numbers)):
        raise TuningArgumentError(
            f"do_bench of autotune returned {measured!r}; it must return milliseconds: a number, or one for each of "
            f"`quantiles`{place_of(do_bench)}"
        )
    return found


def pruned_early(
    prune: Callable[..., Any], configs: Sequence[Config], arguments: Any, kwargs: dict[str, Any]
) -> list[Config]:
    """The configs that the user's `early_config_prune` leaves.

    Raises:
      TuningArgumentError: when it cannot be called so, or does not return configs.
      NoConfigLeftError: when it leaves none.
    """
    left = _called(prune, EARLY, configs, arguments, **kwargs)
    try:
        found = list(left)
    except TypeError:
        found = [left]
    if not all(isinstance(config, Config) for config in found):
        raise TuningArgumentError(
            f"{EARLY} returned {left!r}; it must return a list of those configs that are worth measuring"
            f"{place_of(prune)}"
        )
    if not found:
        raise NoConfigLeftError(
            "Autotuner error: No valid autotuner configs after pruning. `early_config_prune` should return at least "
            "one config."
        )
    return found


def best_by_model(
    model: Callable[..., Any], top_k: Any, configs: list[Config], arguments: dict[str, Any]
) -> list[Config]:
    """The `top_k` configs for which the user's `perf_model` estimates the least time.

    Raises:
      TuningArgumentError: for a `top_k` that is none, and for a model that cannot be called so or estimates no number.
    """
    if isinstance(top_k, float) and top_k <= 1.0:
        top_k = max(1, int(len(configs) * top_k))
    elif not isinstance(top_k, int) or top_k < 1:
        raise TuningArgumentError(
            f"top_k of prune_configs_by is {top_k!r}; it must be a count from 1 on, or a fraction up to 1.0: write 3, or 0.5"
        )
    if len(configs) <= top_k:
        return configs
    costs = {config: _called(model, MODEL, **{**arguments, **config.all_kwargs()}) for config in configs}
    for cost in costs.values():
        if not isinstance(cost, Real) and not hasattr(cost, "__float__"):
            raise TuningArgumentError(f"{MODEL} returned {cost!r}; it must return an estimated time{place_of(model)}")
    return sorted(costs, key=costs.__getitem__)[:top_k]


def _called(function: Callable[..., Any], form: str, /, *args: Any, **kwargs: Any) -> Any:
    """What a function of `prune_configs_by` returns.

    Raises:
      TuningArgumentError: when its parameters do not fit.
    """
    check_takes(function, f"{form.partition('(')[0]} of prune_configs_by", form, *args, **kwargs)
    return function(*args, **kwargs)


def named(value: Any) -> str:
    """A function by its name; anything else as Python shows it."""
    return getattr(value, "__name__", None) or repr(value)


def place_of(function: Any) -> str:
    """Where a function of Python stands, as a line of its own for messages; nothing for others."""
    try:
        code = getattr(inspect.unwrap(function), "__code__", None)
    except ValueError:  # wrappers in a ring
        return ""
    return f"\n  it stands at {code.co_filename}:{code.co_firstlineno}" if code is not None else ""


def check_heuristics(values: Any) -> None:
    """Rejects heuristics that are no functions by the name of a parameter.

    Raises:
      TuningArgumentError: says what to write.
    """
    if not isinstance(values, Mapping):
        raise TuningArgumentError(
            f"heuristics takes a dict from parameters to functions, not {named(values)}; write "
            '{"BLOCK": lambda arguments: 64}'
        )
    for name, value in values.items():
        if not callable(value):
            raise TuningArgumentError(
                f"heuristics has {value!r} for {name}, which is no function of the arguments; write "
                f'{{"{name}": lambda arguments: {value!r}}}, or pass {name} at the launch'
            )
        check_takes(value, f"the heuristic of {name}", HEURISTIC, {})
