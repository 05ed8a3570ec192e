"""What a jit function returns where its ways meet: a number that one way returns has the type of what the others return.

Python takes one way at a time. What type the others have only the frontend knows, which is asked for functions that return
in several places, or that came to their end without a `return`, which then gives 0 of that type. It also says where the ways do
not fit together, which is an error however the condition came out.
"""

from __future__ import annotations

import io
import warnings
from collections import namedtuple
from contextlib import redirect_stdout
from typing import Any

import numpy as np

from ..diagnostics import CompilationError
from ..kernel_function import KernelFunction
from ..language.constexpr import constexpr, plain
from ..language.dtypes import DType
from ..language.targets import INTERPRETED
from ..ops.casts import numpy_type
from .blocks import BlockPointer, Descriptor
from .program import running
from .tile import Tile, number_tile


def typed_result(function: KernelFunction, given: dict[str, Any], result: Any) -> Any:
    """The result of a call, its numbers as scalars where other ways return scalars.

    Raises:
      DTypeError: when the function returns what does not fit together.
    """
    if function.raw_src.count("return") < (1 if result is None else 2):
        return result
    known = running.get().returned
    key = (function, *(_key(value) for value in given.values()))
    if key not in known:
        known[key] = _type_of_result(function, given), given  # kept, so that what the key tells by identity lives on
    return _typed(result, known[key][0])


def _key(value: Any) -> Any:
    if isinstance(value, Tile):
        return value.element, value.shape
    if isinstance(value, (tuple, list)):
        return type(value), *map(_key, value)
    if isinstance(value, (BlockPointer, Descriptor)):
        return type(value)
    content = plain(value)
    is_number = content is None or isinstance(content, (bool, int, float, str, DType))
    return type(value), type(content), repr(content) if is_number else id(content)


def _type_of_result(function: KernelFunction, given: dict[str, Any]) -> Any:
    """What the frontend makes of a call; None where it cannot tell.

    Raises:
      DTypeError: see `typed_result`.
    """
    from ..frontend.builder import Builder
    from ..frontend.calls import returned_value, source_of
    from ..frontend.returns import Result
    from ..frontend.values import NotElementwiseError
    from ..schedule.targets import find_target

    target = find_target(f"sm_{INTERPRETED}")
    builder = Builder(source_of(function), running.get().options, target)
    result = Result(function.__name__)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):  # they are said when the function runs
            warnings.simplefilter("ignore")
            arguments = {name: _symbolic(builder, name, value) for name, value in given.items()}
            return returned_value(builder, result, arguments)
    except (CompilationError, NotElementwiseError, RecursionError):
        if result.mismatch is not None:
            raise result.mismatch from None
        return None


def _symbolic(builder: Any, name: str, value: Any) -> Any:
    """An argument as the frontend sees it."""
    from ..frontend.values import NotElementwiseError, Tuple, known_value
    from ..ir.nodes import Use
    from ..ir.types import ValueType

    if isinstance(value, Tile):
        variable = builder.variable(name, ValueType(value.element, value.shape))
        builder.protected.add(variable)
        return Use(variable.type, variable)
    if isinstance(value, (tuple, list)):
        items = tuple(_symbolic(builder, name, item) for item in value)
        return Tuple(items, getattr(value, "_fields", ()))
    if isinstance(value, (BlockPointer, Descriptor)):
        raise NotElementwiseError
    return known_value(value)


def _typed(value: Any, meant: Any) -> Any:
    from ..frontend.values import Tuple
    from ..ir.nodes import Expr

    if value is None:
        return _nothing(meant)
    if isinstance(meant, Tuple) and isinstance(value, tuple):
        items = [_typed(item, one) for item, one in zip(value, meant.items, strict=True)]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    number = value.value if isinstance(value, constexpr) else value
    if isinstance(meant, Expr) and isinstance(number, (bool, int, float)) and isinstance(meant.type.element, DType):
        return number_tile(number, meant.type.element)
    return value


def _nothing(meant: Any) -> Any:
    """What a function gives at an end without `return`, where other ways return `meant`."""
    from ..frontend.values import Tuple
    from ..ir.nodes import Expr

    if isinstance(meant, Tuple):
        items = [_nothing(item) for item in meant.items]
        return namedtuple("Fields", meant.fields)(*items) if meant.fields else tuple(items)
    if not isinstance(meant, Expr) or not isinstance(meant.type.element, DType):
        return None
    return Tile(np.zeros(meant.type.shape, numpy_type(meant.type.element)), meant.type.element)
