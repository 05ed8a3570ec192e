"""What rewritten kernels call: assignment, logic, calls, loops. See `rewrite.py`."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator
from functools import partial, reduce
from types import MethodType, SimpleNamespace
from typing import Any

import numpy as np

from ..diagnostics import ArgumentError, DTypeError, KernelFaultError, NotConstexprError, UnsupportedLanguageConstruct
from ..kernel_function import KernelFunction
from ..language import control, values
from ..language.builtin import Builtin
from ..language.constexpr import constexpr, plain, unwrap
from ..language.dtypes import DType
from ..language.hints import NO_RANGE, check_ordered, no_bounds, no_form, no_range_argument, uncallable
from ..language.member_hints import not_as_many
from ..language.targets import cuda_capability_geq
from ..language.tile_hints import defined_twice
from ..ops.casts import numpy_type
from ..ops.promotion import promote
from .arguments import constant
from .blocks import BlockPointer, Descriptor
from .bound import Bound as Bound
from .bound import branch as branch
from .bound import ends as ends
from .carried import Trips
from .places import user_line
from .program import running
from .tile import Known, Tile, apply, as_tile, type_of


def assigned(value: Any) -> Any:
    """What a plain assignment binds: numbers become typed scalars, in tuples too, whose items may be sides all the same."""
    value = plain(value)
    if isinstance(value, (bool, int, float)):
        return as_tile(value)
    if isinstance(value, (builtins.tuple, list)):
        items = [Known(item) if isinstance(plain(item), (bool, int, float)) else assigned(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else builtins.tuple(items)
    return value


def taken_apart(value: Any, form: Any) -> Any:
    """What is assigned to several names, which nest as `form` says.

    Raises:
      DTypeError: unless it has as many items.
    """
    if form is not None:
        items = value if isinstance(value, (builtins.tuple, list)) else None
        if items is None or len(items) != len(form):
            cause, remedy = not_as_many(None if items is None else len(items), len(form))
            raise DTypeError(cause, None, remedy)
        for item, names in zip(items, form, strict=True):
            taken_apart(item, names)
    return value


def rebound(value: Any) -> Any:
    """What a plain assignment binds to a name that was declared `tl.constexpr`."""
    return value if isinstance(value, Tile) else compile_time(value)


def compile_time(value: Any) -> Any:
    """What `x: tl.constexpr = value` binds; a run-time value remains one, as in Triton."""
    if isinstance(value, Tile):
        return value
    return None if unwrap(value) is None else constexpr(value)


def declared(name: str, value: Any) -> Any:
    """What `name: tl.constexpr = value` binds where the name may be a compile-time value already.

    Raises:
      DTypeError: when it is.
    """
    if isinstance(sys._getframe(1).f_locals.get(name), constexpr):
        cause, remedy = defined_twice(name)
        raise DTypeError(cause, None, remedy)
    return compile_time(value)


# ----------------------------------------------------------------------------------------------------------- logic


def needs_next(word: str, left: Any) -> bool:
    """Whether `left and …` or `left or …` depends on what follows: always when `left` is known at run time only."""
    return isinstance(left, Tile) or bool(unwrap(left)) == (word == "and")


def joined(word: str, left: Any, right: Any) -> Any:
    """`left and right`, `left or right`, where the left side does not decide alone."""
    if not isinstance(left, Tile):
        return right
    right = right if isinstance(right, Tile) else bool(unwrap(right))
    return apply("logical_and" if word == "and" else "logical_or", [left, right])


def negated(value: Any) -> Any:
    """`not`."""
    return apply("logical_not", [value]) if isinstance(value, Tile) else not unwrap(value)


def asserted(condition: Any, message: Any) -> None:
    """`assert` in a kernel."""
    from .debugging import device_assert

    device_assert({"cond": condition, "msg": message, "mask": None})


# ----------------------------------------------------------------------------------------------------------- calls


def callee(function: Any) -> Any:
    """What a call in a kernel runs: functions of the language and jit functions as they are, Python's with care."""
    function = unwrap(function)
    if isinstance(function, (Builtin, KernelFunction)):
        return function
    if isinstance(function, MethodType) and isinstance(function.__self__, Tile):
        return function
    if isinstance(function, partial) and function.args and _is_run_time(function.args[0]):
        return function  # a method
    if isinstance(function, type) and issubclass(function, control.range):
        return partial(_range, function)
    if isinstance(function, type) and (hasattr(function, "_fields") or function is control.condition):
        return function
    replaced = _REPLACED.get(function) if getattr(function, "__hash__", None) else None
    return replaced if replaced is not None else partial(_at_compile_time, function)


def alone(result: Any, function: Any) -> None:
    """Takes the result of a call that is a statement of its own.

    Raises:
      ArgumentError: when the function is nothing but its result.
    """
    function = function.func if isinstance(function, partial) else function
    why = getattr(function, "must_use_result", None)
    if why is not None:
        text = f"The result of {function.__name__} is not being used. {why}".rstrip()
        raise ArgumentError(text, None, "assign it to a name")


def _at_compile_time(function: Any, *args: Any, **kwargs: Any) -> Any:
    """A Python function, on compile-time values only.

    Raises:
      UnsupportedLanguageConstruct: when an argument is known at run time only.
    """
    if any(_is_run_time(value) for value in (*args, *kwargs.values())):
        cause, remedy = uncallable(function)
        raise UnsupportedLanguageConstruct(cause, None, remedy)
    return function(*map(unwrap, args), **{name: unwrap(value) for name, value in kwargs.items()})


def _is_run_time(value: Any) -> bool:
    value = unwrap(value)
    return isinstance(value, (Tile, BlockPointer, Descriptor)) or (
        isinstance(value, (builtins.tuple, list)) and any(map(_is_run_time, value))
    )


def _extremum(op: str, of_numbers: Callable[..., Any]) -> Callable[..., Any]:
    def function(*values: Any) -> Any:
        if len(values) == 1 and isinstance(plain(values[0]), Tile):
            return _at_compile_time(of_numbers, *values)
        items = [plain(value) for value in (values if len(values) > 1 else unwrap(values[0]))]
        if not any(isinstance(item, Tile) for item in items):
            check_ordered(items)
            return of_numbers(items)
        result = items[0]
        for item in items[1:]:
            result = apply(op, [result, item])
        return result

    return function


def _range(kind: type[control.range], *bounds: Any, **named: Any) -> control.range:
    """A range.

    Raises:
      ArgumentError: when it has no such arguments.
    """
    hints = control.RANGE_HINTS if kind is control.range else ()
    unknown = [name for name in named if name not in ("step", *hints)]
    if unknown:
        cause, remedy = no_range_argument(unknown[0], hints)
        raise ArgumentError(cause, None, remedy)
    return kind(*bounds, **named)


def _length(value: Any) -> int:
    value = unwrap(value)
    return len(value) if isinstance(value, builtins.tuple) else _at_compile_time(len, value)


def _is_instance(value: Any, classes: Any) -> bool:
    """`isinstance`, for which every compile-time value is a `tl.constexpr`."""
    wanted = classes if isinstance(classes, builtins.tuple) else (classes,)
    if constexpr in wanted and not isinstance(value, (Tile, BlockPointer, Descriptor, builtins.tuple)):
        return True
    return isinstance(unwrap(value), wanted)


def owner(name: str, value: Any) -> Any:
    """What `value.value` and `value.type` are asked of: a number, as a side of a shape, is a `tl.constexpr` without being one."""
    if name == "type" and isinstance(value, builtins.tuple) and not hasattr(value, name):
        types = [owner(name, item).type for item in value]
        return SimpleNamespace(type=values.tuple_type(types, getattr(value, "_fields", None)))
    if isinstance(value, constexpr) or hasattr(value, name) or _is_run_time(value):
        return value
    has_type = value is None or isinstance(value, (bool, int, float, str))
    return constexpr(value) if name == "value" or has_type else value


def _attribute(of: Callable[..., Any]) -> Callable[..., Any]:
    """`getattr` or `hasattr` by a name that may be a compile-time value."""
    return lambda value, name, *default: of(value, unwrap(name), *default)


# Python's functions that mean something else in a kernel, and those that may look at run-time values.
_REPLACED: dict[Any, Any] = {
    builtins.min: _extremum("minimum", builtins.min),
    builtins.max: _extremum("maximum", builtins.max),
    builtins.range: partial(_range, control.range),
    builtins.len: _length,
    isinstance: _is_instance,
    constexpr: lambda value: _at_compile_time(constexpr, value) if isinstance(value, Tile) else compile_time(value),
    values.tuple: builtins.tuple,
    cuda_capability_geq: cuda_capability_geq,
    getattr: _attribute(getattr),
    hasattr: _attribute(hasattr),
} | {function: function for function in (print, type, repr, builtins.tuple, list)}


# ----------------------------------------------------------------------------------------------------------- loops


def loop(iterable: Any, bound: Bound | None = None) -> Iterator[Any]:
    """The indices of a loop: typed scalars, or compile-time values for `tl.static_range`.

    Raises:
      UnsupportedLanguageConstruct: for anything but a range.
      DTypeError: for bounds that are no integer scalars.
      NotConstexprError: for run-time bounds of `tl.static_range`.
    """
    if not isinstance(iterable, control.range):
        raise UnsupportedLanguageConstruct(NO_RANGE[0], None, NO_RANGE[1])
    bounds = (iterable.start, iterable.stop, iterable.step)
    if bound is not None:
        bound.at_run_time = not isinstance(iterable, control.static_range)
    if isinstance(iterable, control.static_range):
        numbers = (constant(bound, "a bound of tl.static_range") for bound in bounds)
        return map(constexpr, builtins.range(*numbers))
    return _typed_indices([as_tile(bound) for bound in bounds])


def refused(kind: str) -> None:
    """Stops at a form of Python's that kernels do not have.

    Raises:
      UnsupportedLanguageConstruct: says what to write instead.
    """
    cause, remedy = no_form(kind)
    raise UnsupportedLanguageConstruct(cause, None, remedy)


def repeats(trips: Trips, condition: Any) -> Any:
    """The condition of a `while` loop, which is asked for in front of each of its trips and behind the last.

    Raises:
      NotConstexprError: for a compile-time value, which no trip of the loop can change.
      DTypeError: see `Trips.check`.
    """
    trips.check()
    test = condition.value if isinstance(condition, control.condition) else condition
    if not isinstance(test, Tile):
        raise NotConstexprError("the condition of a while loop is a compile-time value", None, "use for or if")
    return test


def _typed_indices(bounds: list[Tile]) -> Iterator[Tile]:
    elements = [bound.element for bound in bounds if isinstance(bound.element, DType)]
    types = [element for element in elements if element.is_int() and not element.is_bool()]
    if len(types) < len(bounds) or any(bound.shape for bound in bounds):
        shown = [type_of(bound) for bound in bounds]
        cause, remedy = no_bounds(shown, any(bound.shape for bound in bounds))
        raise DTypeError(cause, None, remedy)
    common = reduce(promote, types)
    array_type = numpy_type(common)
    numbers = [int(bound.number()) for bound in bounds]
    if numbers[2] == 0:
        program = running.get().memory.program
        raise KernelFaultError(f"the step of a range is 0 at {user_line()}, program {program}")
    values = builtins.range(*numbers)
    return _trips(Tile(np.asarray(index).astype(array_type), common) for index in values)


def _trips(indices: Iterator[Tile]) -> Iterator[Tile]:
    trips = Trips()
    for index in indices:
        yield index
        trips.check(index)
