"""Functions of Python that mean something of their own in kernels, or that may look at run-time values."""

from __future__ import annotations

from typing import Any

from ..diagnostics import ArgumentError, Span, UnknownNameError, UnsupportedLanguageConstruct
from ..hardware import WARP_SIZE
from ..ir.nodes import Expr
from ..language import values as language_values
from ..language.constexpr import constexpr
from ..language.control import condition
from ..language.hints import check_ordered
from ..language.targets import GPUTarget, cuda_capability_geq, current_target
from .attributes import attribute_of
from .builder import Builder
from .shapes import elementwise
from .values import Const, Descriptor, Tuple, Value, is_static


def _extremum(op: str):  # type: ignore[no-untyped-def]
    def call(builder: Builder, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value | None:
        items = list(args[0].items) if len(args) == 1 and isinstance(args[0], Tuple) else args
        if all(is_static(item) for item in items) or items == [args[0]]:
            try:
                check_ordered(item.value for item in items if isinstance(item, Const))
            except ArgumentError as error:
                error.span, error.calls = span, builder.calls
                raise
            return None
        result = items[0]
        for item in items[1:]:
            result = elementwise(op, [result, item], span)
        return result

    return call


def _length(builder: Builder, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value | None:
    return Const(len(args[0].items)) if isinstance(args[0], Tuple) else None


def _isinstance(builder: Builder, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value | None:
    from .. import language

    wanted = builder.constant(args[1], "a class", span)
    classes = wanted if isinstance(wanted, tuple) else (wanted,)
    value = args[0]
    if isinstance(value, Expr):
        return Const(language.tensor in classes)
    if isinstance(value, Tuple):
        return Const(language.tuple in classes or tuple in classes)
    if isinstance(value, Descriptor):
        return Const(language.tensor_descriptor in classes)
    plain = tuple(c for c in classes if c is not constexpr)
    if not all(isinstance(one, type) for one in plain):
        return None  # what Python says of it stands in the error
    return Const(constexpr in classes or isinstance(builder.constant(value, "", span), plain))


def _print(builder: Builder, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    from .builtins_debug import device_print

    prefix = args[0] if args and isinstance(args[0], Const) and isinstance(args[0].value, str) else Const("")
    rest = args[1:] if args and prefix is args[0] else args
    device_print(builder, {"prefix": prefix, "args": Tuple(tuple(rest)), "hex": Const(False)}, span)
    return Const(None)


def _dtype_call(builder: Builder, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value | None:
    return args[0] if args and isinstance(args[0], Const) else None


def _tuple(builder: Builder, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value | None:
    return Tuple(args[0].items) if isinstance(args[0], Tuple) else None


def _has_attribute(builder: Builder, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value | None:
    """`hasattr`."""
    try:
        attribute_of(builder, args[0], str(builder.constant(args[1], "the name of an attribute", span)), span)
    except UnknownNameError:
        return Const(False)
    return Const(True)


def _get_attribute(builder: Builder, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value | None:
    try:
        return attribute_of(builder, args[0], str(builder.constant(args[1], "the name of an attribute", span)), span)
    except UnknownNameError:
        if len(args) < 3:
            raise
        return args[2]


def _has_capability(builder: Builder, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value | None:
    """`tl.target_info.cuda_capability_geq(major, minor)` of the target that is translated for."""
    minor = kwargs.get("minor", args[1] if len(args) > 1 else Const(0))
    major, minor = (builder.constant(part, "a compute capability", span) for part in (args[0], minor))
    return Const(builder.target.capability >= 10 * major + minor)


def _target(builder: Builder, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value | None:
    """`tl.target_info.current_target()`."""
    return Const(GPUTarget("cuda", builder.target.capability, WARP_SIZE))


def _hinted(builder: Builder, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    """`tl.condition(value, hint=…)`: the value."""
    return args[0]


def _of_a_frame(builder: Builder, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    """`globals` and its like: called from here, they would see the names of the translator."""
    cause = "a function that looks at the names around its call cannot stand in a kernel"
    raise UnsupportedLanguageConstruct(cause, span, "write the name that you need", builder.calls)


def _breakpoint(builder: Builder, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    """`breakpoint`, which would stop in the translator."""
    remedy = "set TILEWRIGHT_MODE=interpret, in which the kernel runs as Python and stops there"
    raise UnsupportedLanguageConstruct("breakpoint() in a kernel that is translated", span, remedy, builder.calls)


ANY = 1 << 16  # arguments
# What stands in for a function of Python, and how many positional arguments it takes, at least and at most.
PYTHON: dict[Any, tuple[Any, int, int]] = {
    min: (_extremum("minimum"), 1, ANY),
    max: (_extremum("maximum"), 1, ANY),
    len: (_length, 1, 1),
    isinstance: (_isinstance, 2, 2),
    print: (_print, 0, ANY),
    constexpr: (_dtype_call, 1, 1),
    tuple: (_tuple, 1, 1),
    language_values.tuple: (_tuple, 1, 1),
    condition: (_hinted, 1, 1),
    cuda_capability_geq: (_has_capability, 1, 2),
    current_target: (_target, 0, 0),
    hasattr: (_has_attribute, 2, 2),
    getattr: (_get_attribute, 2, 3),
    breakpoint: (_breakpoint, 0, ANY),
    globals: (_of_a_frame, 0, 0),
    locals: (_of_a_frame, 0, 0),
    vars: (_of_a_frame, 0, 0),
    dir: (_of_a_frame, 0, 0),
    eval: (_of_a_frame, 1, ANY),
    exec: (_of_a_frame, 1, ANY),
}
NOTHING = (None, 0, 0)  # for a function that nothing stands in for
WITH_KEYWORDS = (print, condition, cuda_capability_geq)  # those that take arguments by name too
