"""Values with parts: tuples, block pointers, tensor descriptors. They are bundles at compile time; their parts may run.

A part that never changes stays the expression that it is. A part that a loop or a branch changes gets a variable of its
own, named after the bundle and the part; which ones do is found by translating the loop or branch and comparing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..diagnostics import DTypeError, Span
from ..frozen import frozen
from ..ir.nodes import Expr
from ..ir.types import ORDINALS
from .shapes import describe, to_expr
from .values import BlockPointer, Const, Descriptor, Tuple, Undefined, Value

AGGREGATES = (Tuple, BlockPointer, Descriptor)


@frozen
class Part:
    """One part of a bundle: the name of its variable, its value, and whether an expression may stand for it.

    `is_offset` marks the offsets of a block pointer, of which it is followed whether they can be negative.
    """

    name: str
    value: Value
    stays_expression: bool = False
    is_offset: bool = False


def parts_of(value: Value, name: str) -> list[Part]:
    """The parts of a value, those of tuples within tuples in place; the value itself when it has none."""
    if isinstance(value, Tuple):
        labels = value.fields or tuple(ORDINALS[number % len(ORDINALS)] for number in range(len(value.items)))
        named = zip(labels, value.items, strict=True)
        return [part for label, item in named for part in parts_of(item, f"{name}_{label}")]
    if isinstance(value, BlockPointer):
        offsets = [Part(f"{name}_offset_{axis}", one, True, True) for axis, one in enumerate(value.offsets)]
        return [*_tensor_parts(value, name), *offsets]
    if isinstance(value, Descriptor):
        return _tensor_parts(value, name)
    return [Part(name, value)]


def shown_parts(value: Value, name: str) -> list[str]:
    """The parts of `parts_of` as the user would write them: items of tuples by their numbers, as t[1]."""
    if isinstance(value, Tuple):
        labels = [f".{field}" for field in value.fields] or [f"[{number}]" for number in range(len(value.items))]
        named = zip(labels, value.items, strict=True)
        return [part for label, item in named for part in shown_parts(item, f"{name}{label}")]
    return [part.name for part in parts_of(value, name)]


def _tensor_parts(value: BlockPointer | Descriptor, name: str) -> list[Part]:
    base = Part(f"{name}_base", value.base, True)
    shape = [Part(f"{name}_shape_{axis}", one, True) for axis, one in enumerate(value.shape)]
    return [base, *shape, *(Part(f"{name}_stride_{axis}", one, True) for axis, one in enumerate(value.strides))]


def with_parts(value: Value, parts: list[Value]) -> Value:
    """A value of the same form with other parts, in the order of `parts_of`."""
    return _rebuilt(value, iter(parts))


def _rebuilt(value: Value, parts: Iterator[Value]) -> Value:
    if isinstance(value, Tuple):
        return replace(value, items=tuple(_rebuilt(item, parts) for item in value.items))
    if isinstance(value, (BlockPointer, Descriptor)):
        base = next(parts)
        shape, strides = (tuple(next(parts) for _ in group) for group in (value.shape, value.strides))
        groups: dict[str, Any] = {"base": base, "shape": shape, "strides": strides}
        if isinstance(value, BlockPointer):
            return replace(value, **groups, offsets=tuple(next(parts) for _ in value.offsets))
        return replace(value, **groups)
    return next(parts)


def decayed(value: Value, span: Span) -> Value:
    """A value as an assignment keeps it: numbers in tuples become scalars of their own type, as those outside of tuples do."""
    if isinstance(value, Tuple):
        return replace(value, items=tuple(decayed(item, span) for item in value.items), is_wrapped=False)
    return to_expr(value, span) if isinstance(value, Const) and value.is_number else value


def form_of(value: Value) -> Any:
    """What two bundles must have in common to be one variable: everything but their parts."""
    if isinstance(value, Tuple):
        return ("tuple", value.fields, tuple(form_of(item) for item in value.items))
    if isinstance(value, (BlockPointer, Descriptor)):
        rounds = getattr(value, "rounds_to_tf32", False)
        return (type(value).__name__, value.block_shape, getattr(value, "padding", ""), rounds)
    return "part"


def differing_parts(name: str, left: Any, right: Any, why: str, span: Span, calls: tuple[Span, ...]) -> set[int]:
    """The places at which two values of a name differ.

    Raises:
      DTypeError: when no variables can make up for the difference.
    """
    if isinstance(left, Undefined) or isinstance(right, Undefined):
        return set()
    if form_of(left) != form_of(right):
        forms = f"{_form_in_words(left)} and {_form_in_words(right)}"
        raise DTypeError(
            f"{name} changes its form {why}: it is {forms}", span, "keep tuples and blocks of one form", calls
        )
    found = set()
    for number, (one, other) in enumerate(zip(parts_of(left, name), parts_of(right, name), strict=True)):
        if one.value != other.value:
            if not (is_run_time(one.value) and is_run_time(other.value)):
                cause = f"{one.name} changes its compile-time value {why}"
                raise DTypeError(
                    cause, span, "keep it the same, or make it a number of run time, as with tl.to_tensor(x)", calls
                )
            found.add(number)
    return found


def _form_in_words(value: Value) -> str:
    if isinstance(value, Tuple):
        return f"a tuple of {len(value.items)}"
    if isinstance(value, (BlockPointer, Descriptor)):
        return f"{describe(value)} of {[int(side) for side in value.block_shape]}"
    return describe(value)


def is_run_time(value: Value) -> bool:
    """Whether a variable can hold the value: a run-time value or a number."""
    return isinstance(value, Expr) or (isinstance(value, Const) and value.is_number)
