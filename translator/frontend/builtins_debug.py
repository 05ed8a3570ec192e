"""Assertions, prints, promises, the barrier and the order of grids."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ..diagnostics import CompileTimeAssertionFailure, DTypeError, NotConstexprError, Span
from ..hardware import WARP_SIZE
from ..ir.tiles import broadcast_to
from ..language.hints import no_static_condition, only_scalars
from ..language.printing import encodable
from .builder import Builder
from .shapes import as_bool, common_shape, elementwise, to_expr
from .values import BlockPointer, Const, Descriptor, Method, Tuple, Value

Arguments = dict[str, Value]


def _static_assert(builder: Builder, a: Arguments, span: Span) -> Value:
    condition = builder.constant(a["cond"], "the condition of tl.static_assert", span)
    if not isinstance(condition, (bool, int)):
        cause, remedy = no_static_condition(condition)
        raise NotConstexprError(cause, span, remedy, builder.calls)
    if not condition:
        message = builder.constant(a["msg"], "the message", span)
        raise CompileTimeAssertionFailure(message or "tl.static_assert does not hold", span, "", builder.calls)
    builder.note("holds")
    return Const(None)


def _static_print(builder: Builder, a: Arguments, span: Span) -> Value:
    values = a["values"].items if isinstance(a["values"], Tuple) else (a["values"],)
    separator, end = builder.constant(a["sep"], "sep", span), builder.constant(a["end"], "end", span)
    sys.stdout.write(str(separator).join(map(_printed, values)) + str(end))
    builder.note("printed at translation")
    builder.outside.untold()  # every process prints
    return Const(None)


def _printed(value: Value) -> str:
    """What `tl.static_print` says of a value: itself where it is known, else its type."""
    match value:
        case Const():
            return str(value.value)
        case Tuple(items=items):
            return f"({', '.join(map(_printed, items))}{',' if len(items) == 1 else ''})"
        case Descriptor(base=base, block_shape=sides):
            return f"tensordesc<{str(base.type.element)[1:]}{[int(side) for side in sides]}>"
        case BlockPointer(base=base, block_shape=sides):
            return f"block pointer {base.type.element}{[int(side) for side in sides]}"
        case Method(builtin=builtin):
            return f"method {builtin if isinstance(builtin, str) else builtin.name}"
    return str(value.type)


def device_print(builder: Builder, a: Arguments, span: Span) -> Value:
    """`tl.device_print(prefix, *values)`."""
    values = a["args"].items if isinstance(a["args"], Tuple) else (a["args"],)
    exprs = tuple(to_expr(value, span) for value in values)
    shape = common_shape([expr.type.shape for expr in exprs], span) if exprs else ()
    prefix = str(builder.constant(a["prefix"], "the prefix", span))
    as_hex = bool(builder.constant(a["hex"], "hex", span))
    args = tuple(broadcast_to(expr, shape, span) if expr.type.is_tile else expr for expr in exprs)
    builder.effect("device_print", args, span, prefix=prefix, hex=as_hex)
    return Const(None)


def device_assert(builder: Builder, a: Arguments, span: Span) -> Value:
    """`tl.device_assert(cond, msg, mask)`: no code unless the option `debug` is set."""
    if not builder.options.debug:
        builder.note("checked only with debug=True")
        return Const(None)
    condition = as_bool(to_expr(a["cond"], span), span)
    args = [condition]
    if not (isinstance(a["mask"], Const) and a["mask"].value is None):
        args.append(broadcast_to(as_bool(to_expr(a["mask"], span), span), condition.type.shape, span))
    message = encodable(str(builder.constant(a["msg"], "the message", span)))
    builder.effect("device_assert", tuple(args), span, message=message)
    return Const(None)


def _expect_zero(builder: Builder, a: Arguments, span: Span) -> Value:
    x = to_expr(a["x"], span)
    is_zero = elementwise("eq", [x, Const(0)], span)
    device_assert(builder, {"cond": is_zero, "mask": a["mask"], "msg": Const("expected 0")}, span)
    return x


def _barrier(builder: Builder, a: Arguments, span: Span) -> Value:
    builder.effect("barrier", (), span)
    return Const(None)


def _grid_control(op: str) -> Callable[[Builder, Arguments, Span], Value]:
    def handler(builder: Builder, a: Arguments, span: Span) -> Value:
        if builder.target.has_dependent_launch:
            builder.effect(op, (), span)
        else:
            builder.note("grids start in order on this architecture")
        return Const(None)

    return handler


def _assume(builder: Builder, a: Arguments, span: Span) -> Value:
    if isinstance(a["cond"], Const):
        builder.note("known at translation")
        return Const(None)
    condition = as_bool(to_expr(a["cond"], span), span)
    if condition.type.is_tile:
        cause, remedy = only_scalars("tl.assume", condition.type.shape)
        raise DTypeError(cause, span, remedy, builder.calls)
    builder.effect("assume", (condition,), span)
    return Const(None)


def _threads(lanes: int) -> Callable[[Builder, Arguments, Span], Value]:
    return lambda builder, a, span: Const(builder.options.num_warps * lanes)


HANDLERS = {
    "extra.cuda.num_warps": _threads(1),
    "extra.cuda.num_threads": _threads(WARP_SIZE),
    "static_assert": _static_assert,
    "static_print": _static_print,
    "device_print": device_print,
    "device_assert": device_assert,
    "expect_zero": _expect_zero,
    "debug_barrier": _barrier,
    "assume": _assume,
    "extra.cuda.gdc_wait": _grid_control("gdc_wait"),
    "extra.cuda.gdc_launch_dependents": _grid_control("gdc_launch_dependents"),
}
