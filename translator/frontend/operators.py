"""Operators on values: Python's on compile-time values, the op table's on run-time ones."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

from ..diagnostics import ArgumentError, DTypeError, Span, UnsupportedLanguageConstruct
from ..ir.nodes import Call, Expr, Literal, Use
from ..ir.tiles import broadcast_to
from ..ir.types import ValueType
from ..language.dtypes import PointerType
from ..language.hints import cannot_compute, no_form, no_order, no_power
from .accumulate import accumulated
from .builder import Builder
from .named_numbers import is_c_int, named, opposite
from .overflow import checked
from .shapes import common_shape, describe, elementwise, to_expr
from .values import Const, Method, Tuple, Value, is_static

# LibCST operator: (op of the table, Python's function, how it composes in a C expression of constexprs).
MOST_BITS = 1 << 16  # of integers at compile time; larger ones take long and fit nowhere
BINARY: dict[str, tuple[str, Any, str]] = {
    "Add": ("add", operator.add, "+"),
    "Subtract": ("sub", operator.sub, "-"),
    "Multiply": ("mul", operator.mul, "*"),
    "Divide": ("div", operator.truediv, ""),
    "FloorDivide": ("floordiv", operator.floordiv, "/"),
    "Modulo": ("mod", operator.mod, "%"),
    "BitAnd": ("and", operator.and_, "&"),
    "BitOr": ("or", operator.or_, "|"),
    "BitXor": ("xor", operator.xor, "^"),
    "LeftShift": ("shl", operator.lshift, "<<"),
    "RightShift": ("shr", operator.rshift, ">>"),
    "Power": ("", operator.pow, ""),
}
COMPARISONS: dict[str, tuple[str, Any]] = {
    "Equal": ("eq", operator.eq),
    "NotEqual": ("ne", operator.ne),
    "LessThan": ("lt", operator.lt),
    "LessThanEqual": ("le", operator.le),
    "GreaterThan": ("gt", operator.gt),
    "GreaterThanEqual": ("ge", operator.ge),
}
UNARY: dict[str, tuple[str, Any, str]] = {
    "Minus": ("neg", operator.neg, "-"),
    "Plus": ("", operator.pos, "+"),
    "BitInvert": ("invert", operator.invert, "~"),
    "Not": ("logical_not", operator.not_, "not"),
}


def binary(builder: Builder, word: str, left: Value, right: Value, span: Span, wraps: bool = False) -> Value:
    """`left <operator> right`; `wraps` where integers may overflow with the option `debug`, too."""
    if word not in BINARY:
        cause, remedy = no_form(word)
        raise UnsupportedLanguageConstruct(cause, span, remedy, builder.calls)
    op, python, sign = BINARY[word]
    if isinstance(left, Tuple) or isinstance(right, Tuple):
        return _on_tuples(builder, word, left, right, span)
    if isinstance(left, Const) and isinstance(right, Const):
        return _on_constants(builder, python, sign, left, right, span)
    pointer = _pointer_sum(builder, word, left, right, span)
    if pointer is not None:
        return pointer
    if word == "Add":
        total = accumulated(builder, left, right)
        if total is not None:
            return total
    if not op:
        cause, remedy = no_power(right.value if isinstance(right, Const) else None)
        raise UnsupportedLanguageConstruct(cause, span, remedy, builder.calls)
    result = elementwise(op, [left, right], span)
    return result if wraps else checked(builder, result, span)


def _on_constants(builder: Builder, python: Any, sign: str, left: Const, right: Const, span: Span) -> Const:
    try:
        if python in (operator.pow, operator.lshift) and _bits(left.value, right.value) > MOST_BITS:
            raise OverflowError(f"the result has more than {MOST_BITS} bits")
        value = python(left.value, right.value)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
        cause, remedy = cannot_compute(error, sign, left.value, right.value)
        raise DTypeError(cause, span, remedy, builder.calls) from None
    return Const(value, named(left, sign, right, value))


def _bits(base: Any, count: Any) -> int:
    """Never less than the bits of `base ** count` and `base << count`; 0 where these are no integers."""
    return int(count * max(base.bit_length(), 1)) if isinstance(base, int) and isinstance(count, int) else 0


def _on_tuples(builder: Builder, word: str, left: Value, right: Value, span: Span) -> Value:
    if word == "Add" and isinstance(left, Tuple) and isinstance(right, Tuple):
        return Tuple(left.items + right.items)
    if word == "Multiply" and isinstance(left, Tuple) and isinstance(right, Const) and isinstance(right.value, int):
        return Tuple(left.items * right.value)
    remedy = "take one of its items, as x[0]"
    raise DTypeError("tuples take only + with a tuple and * with an integer", span, remedy, builder.calls)


def _pointer_sum(builder: Builder, word: str, left: Value, right: Value, span: Span) -> Expr | None:
    """`pointer + integer`, `integer + pointer`, `pointer - integer`; None when no pointer is involved."""
    pointers = [isinstance(v, Expr) and isinstance(v.type.element, PointerType) for v in (left, right)]
    if not any(pointers):
        return None
    pointer, offset = (left, right) if pointers[0] else (right, left)
    if all(pointers) or word not in ("Add", "Subtract") or (word == "Subtract" and not pointers[0]):
        raise DTypeError(
            f"invalid operands: {describe(left)} and {describe(right)}",
            span,
            "a pointer takes only + and - with an integer; did you forget tl.load?",
            builder.calls,
        )
    number = to_expr(offset, span)
    if not number.type.dtype.is_int():
        raise DTypeError(f"a pointer moves by integers, not by {number.type}", span, "cast the offset", builder.calls)
    if word == "Subtract":
        number = elementwise("neg", [number], span)
    base = to_expr(pointer, span)
    shape = common_shape([base.type.shape, number.type.shape], span)
    args = (broadcast_to(base, shape, span), broadcast_to(number, shape, span))
    return Call(ValueType(base.type.element, shape), "ptr_add", args, span=span)


def compare(builder: Builder, word: str, left: Value, right: Value, span: Span) -> Value:
    """A comparison; identity and membership at compile time only."""
    if word in ("Is", "IsNot"):
        if is_static(left) or is_static(right):
            same = isinstance(left, Const) and isinstance(right, Const) and left.value is right.value
        elif isinstance(left, Use) and isinstance(right, Use) and left.variable is right.variable:
            same = True
        else:
            cause = f"whether {describe(left)} is the same object as {describe(right)} is not followed"
            raise UnsupportedLanguageConstruct(cause, span, "compare their values with ==", builder.calls)
        return Const(same == (word == "Is"))
    if word in ("In", "NotIn"):
        if is_static(left) and is_static(right):
            container = builder.constant(right, "", span)
            try:
                return Const((builder.constant(left, "", span) in container) == (word == "In"))
            except TypeError as error:
                remedy = "look it up in a tuple, a string or a dict"
                raise DTypeError(f"cannot look this up: {error}", span, remedy, builder.calls) from None
        raise UnsupportedLanguageConstruct("`in` on run-time values", span, "compare with ==", builder.calls)
    op, python = COMPARISONS[word]
    if is_static(left) and is_static(right):
        try:
            return Const(bool(python(builder.constant(left, "", span), builder.constant(right, "", span))))
        except TypeError as error:
            remedy = "test with `is None` or isinstance first"
            raise DTypeError(f"cannot compare: {error}", span, remedy, builder.calls) from None
    if isinstance(left, Tuple) and isinstance(right, Tuple) and word in ("Equal", "NotEqual"):
        equal = _same_items(builder, left, right, span)
        return equal if word == "Equal" else unary(builder, "Not", equal, span)
    if (isinstance(left, Const) and not left.is_number) or (isinstance(right, Const) and not right.is_number):
        if word not in ("Equal", "NotEqual"):
            has_none = any(isinstance(value, Const) and value.value is None for value in (left, right))
            cause, remedy = no_order(describe(left), describe(right), has_none)
            raise DTypeError(cause, span, remedy, builder.calls)
        return Const(word == "NotEqual")  # a tile is never equal to None, a string or a type
    return elementwise(op, [left, right], span)


def _same_items(builder: Builder, left: Tuple, right: Tuple, span: Span) -> Value:
    """Whether tuples are equal, which is known at compile time where all of their numbers are."""
    if len(left.items) != len(right.items):
        return Const(False)
    pairs = zip(map(_number, left.items), map(_number, right.items), strict=True)
    same = [compare(builder, "Equal", one, other, span) for one, other in pairs]
    return reduce(lambda one, other: boolean(builder, "And", one, other, span), same or [Const(True)])


def _number(item: Value) -> Value:
    """An item of a tuple; a number as the compile-time value that it was when the tuple got it."""
    return Const(item.value, item.symbol) if isinstance(item, Literal) and not item.type.is_tile else item


def unary(builder: Builder, word: str, value: Value, span: Span) -> Value:
    """A unary operator."""
    op, python, sign = UNARY[word]
    if is_static(value):
        try:
            found = Const(python(builder.constant(value, "", span)))
            return _negated(value, found) if word == "Minus" else found
        except TypeError as error:
            cause, remedy = cannot_compute(error, sign, builder.constant(value, "", span))
            raise DTypeError(cause, span, remedy, builder.calls) from None
    if not op:
        return value
    return checked(builder, elementwise(op, [value], span), span)


# Operators by the names that tiles have them under as methods: those of Python.
_BY_METHOD = {
    "add": "Add", "sub": "Subtract", "mul": "Multiply", "truediv": "Divide", "floordiv": "FloorDivide", "mod": "Modulo",
    "and": "BitAnd", "or": "BitOr", "xor": "BitXor", "lshift": "LeftShift", "rshift": "RightShift",
}  # fmt: skip
_COMPARED_BY = {op: word for word, (op, _) in COMPARISONS.items()}
_ONE_OPERAND = {"neg": "Minus", "invert": "BitInvert"}


def operator_method(name: str) -> tuple[Callable[..., Value], str, bool] | None:
    """What a method of a tile computes that is an operator: the function here, its word, whether the operands change places."""
    if name in ("logical_and", "logical_or"):
        return boolean, "And" if name == "logical_and" else "Or", False
    inner = name[2:-2] if name.startswith("__") and name.endswith("__") else ""
    if inner in _ONE_OPERAND:
        return unary, _ONE_OPERAND[inner], False
    if inner in _COMPARED_BY:
        return compare, _COMPARED_BY[inner], False
    swapped = inner not in _BY_METHOD and inner[1:] in _BY_METHOD and inner.startswith("r")
    word = _BY_METHOD.get(inner[swapped:])
    return None if word is None else (binary, word, swapped)


def call_operator_method(
    builder: Builder, method: Method, args: list[Value], kwargs: dict[str, Value], span: Span
) -> Value:
    """A call of what `operator_method` knows, with as many operands as the operator has; the second is `other`."""
    function, word, swapped = operator_method(method.builtin)  # type: ignore[misc]
    args = [*args, *(value for name, value in kwargs.items() if name == "other")]
    wanted = 0 if function is unary else 1
    if len(args) != wanted or kwargs.keys() - {"other"}:
        takes = "one argument, other" if wanted else "no argument"
        raise ArgumentError(f"{method.builtin} takes {takes}", span, "write the operator itself", builder.calls)
    operands = [*args, method.self_value] if swapped else [method.self_value, *args]
    return function(builder, word, *operands, span)


def _negated(value: Value, found: Const) -> Const:
    """The opposite of a compile-time value, by its name where C has it as an int."""
    has_name = isinstance(value, Const) and value.symbol and is_c_int(value.value) and is_c_int(found.value)
    return Const(found.value, opposite(value)) if has_name else found  # type: ignore[arg-type]


def boolean(builder: Builder, word: str, left: Value, right: Value, span: Span) -> Value:
    """`and`, `or` of values of which the left is known at run time only: both are evaluated."""
    if is_static(left) and is_static(right):
        first, second = builder.constant(left, "", span), builder.constant(right, "", span)
        return Const(first and second if word == "And" else first or second)
    values = [Const(bool(v.value)) if isinstance(v, Const) else v for v in (left, right)]
    return elementwise("logical_and" if word == "And" else "logical_or", list(values), span)
