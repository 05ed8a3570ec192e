"""Loads, stores, atomics."""

from __future__ import annotations

from ..diagnostics import ArgumentError, DTypeError, ShapeError, Span
from ..ir.nodes import LOADED, Call, CallFunction, Expr, Use
from ..ir.tensor_names import tensor_word
from ..ir.tiles import broadcast_to
from ..ir.types import ValueType
from ..language.dtypes import DType, PointerType
from ..language.hints import no_condition, no_mask, shown
from ..language.limits import ATOMIC_TYPES, EVICTION_POLICIES, LOAD_MODIFIERS, MEMORY_ORDERS, SCOPES, STORE_MODIFIERS
from ..language.tile_hints import narrow_pointer
from .builder import Builder
from .shapes import cast_to, common_shape, describe, to_expr
from .values import Const, Tuple, Value

Arguments = dict[str, Value]


def _pointer(builder: Builder, value: Value, what: str, span: Span) -> tuple[Expr, PointerType]:
    if isinstance(value, Expr) and isinstance(value.type.element, PointerType):
        return value, value.type.element
    raise DTypeError(
        f"Unsupported ptr type in tl.{what}: {describe(value)}",
        span,
        "the first argument is a pointer, as x_ptr + offsets",
        builder.calls,
    )


def _mask(builder: Builder, value: Value, span: Span) -> Expr | None:
    if isinstance(value, Const) and value.value is None:
        return None
    if isinstance(value, Tuple) or (isinstance(value, Const) and not isinstance(value.value, int)):
        cause, remedy = no_condition(getattr(value, "value", None), isinstance(value, Tuple))
        raise DTypeError(cause, span, remedy, builder.calls)
    expr = to_expr(Const(bool(value.value)) if isinstance(value, Const) else value, span)
    if expr.type.is_pointer or not expr.type.dtype.is_bool():
        cause, remedy = no_mask(str(expr.type))
        raise DTypeError(cause, span, remedy, builder.calls)
    return expr


def _option(builder: Builder, value: Value, name: str, allowed: tuple[str, ...], span: Span) -> str:
    option = builder.constant(value, name, span) or ""
    if option not in allowed:
        choices = ", ".join(repr(choice) for choice in allowed if choice)
        raise ArgumentError(f"{name} {shown(option)} not supported", span, f"one of {choices}", builder.calls)
    return str(option)


def base_name(expr: Expr, fallback: str, ending: str = "_value") -> str:
    """A name after the pointer that an address derives from: "x" for `x_ptr + offsets`, "x_value" for `x + offsets`."""
    while isinstance(expr, (Call, CallFunction)) and expr.args:
        expr = expr.args[0]
    if not isinstance(expr, Use):
        return fallback
    name = expr.variable.name
    word = tensor_word(name)
    return word if word != name else f"{name}{ending}"


def _load(builder: Builder, a: Arguments, span: Span) -> Value:
    pointer, element = _pointer(builder, a["pointer"], "load", span)
    mask = _mask(builder, a["mask"], span)
    no_other = isinstance(a["other"], Const) and a["other"].value is None
    if mask is None and not no_other:
        raise ArgumentError("`other` cannot be provided without `mask`", span, "pass mask= as well", builder.calls)
    shapes = [pointer.type.shape, *([mask.type.shape] if mask is not None else [])]
    shape = common_shape(shapes, span)
    args = [broadcast_to(pointer, shape, span)]
    if mask is not None:
        args.append(broadcast_to(mask, shape, span))
    if not no_other:
        other = cast_to(to_expr(a["other"], span), element.element_ty, span)
        if other.type.is_tile and common_shape([other.type.shape, shape], span) != shape:
            cause = f"`other` of type {other.type} does not fit the loaded shape, {[int(side) for side in shape]}"
            raise ShapeError(cause, span, "give it that shape, or one number for all elements", builder.calls)
        args.append(broadcast_to(other, shape, span))
    # Where the user has a variable of that name, it is what is made of the elements.
    name = base_name(pointer, "loaded")
    return builder.structured(
        "load",
        ValueType(element.element_ty, shape),
        tuple(args),
        f"{name}{LOADED}" if name in builder.source.names else name,
        span,
        cache_modifier=_option(builder, a["cache_modifier"], "cache_modifier", LOAD_MODIFIERS, span),
        eviction_policy=_option(builder, a["eviction_policy"], "eviction_policy", EVICTION_POLICIES, span),
        volatile=bool(builder.constant(a["volatile"], "volatile", span)),
    )


def _store(builder: Builder, a: Arguments, span: Span) -> Value:
    pointer, element = _pointer(builder, a["pointer"], "store", span)
    _reject_const(builder, element, span)
    value = cast_to(to_expr(a["value"], span), element.element_ty, span)
    mask = _mask(builder, a["mask"], span)
    args = _fitted(builder, pointer, [value], mask, span)
    builder.effect(
        "store",
        args,
        span,
        cache_modifier=_option(builder, a["cache_modifier"], "cache_modifier", STORE_MODIFIERS, span),
        eviction_policy=_option(builder, a["eviction_policy"], "eviction_policy", EVICTION_POLICIES, span),
    )
    return Const(None)


def _reject_const(builder: Builder, element: PointerType, span: Span) -> None:
    if element.const:
        raise DTypeError("Cannot store to a constant pointer", span, "drop the annotation tl.const", builder.calls)


def _fitted(builder: Builder, pointer: Expr, values: list[Expr], mask: Expr | None, span: Span) -> tuple[Expr, ...]:
    """Values and mask in the pointer's shape, which they may not widen."""
    shape = pointer.type.shape
    others = [*values, *([mask] if mask is not None else [])]
    for other in others:
        common = common_shape([shape, other.type.shape], span)
        if common != shape:
            cause, remedy = narrow_pointer(common, "the mask" if other is mask else "the value", shape)
            raise ShapeError(cause, span, remedy, builder.calls)
    return (pointer, *(broadcast_to(other, shape, span) for other in others))


def _atomic(kind: str):  # type: ignore[no-untyped-def]
    def handler(builder: Builder, a: Arguments, span: Span) -> Value:
        pointer, element = _pointer(builder, a["pointer"], f"atomic_{kind}", span)
        _reject_const(builder, element, span)
        _check_atomic_type(builder, kind, element.element_ty, span)
        names = ("cmp", "val") if kind == "cas" else ("val",)
        values = [cast_to(to_expr(a[name], span), element.element_ty, span) for name in names]
        mask = _mask(builder, a["mask"], span) if "mask" in a else None
        args = _fitted(builder, pointer, values, mask, span)
        sem = _option(builder, a["sem"], "sem", MEMORY_ORDERS, span)
        scope = _option(builder, a["scope"], "scope", SCOPES, span)
        type_ = ValueType(element.element_ty, pointer.type.shape)
        name = f"{base_name(pointer, 'memory', '')}_old"
        return builder.structured(f"atomic_{kind}", type_, args, name, span, sem=sem or "acq_rel", scope=scope or "gpu")

    return handler


def _check_atomic_type(builder: Builder, kind: str, dtype: DType, span: Span) -> None:
    if dtype.short not in ATOMIC_TYPES[kind]:
        raise DTypeError(
            f"atomic_{kind} does not support {dtype.word}",
            span,
            f"it takes {', '.join(ATOMIC_TYPES[kind])}",
            builder.calls,
        )


HANDLERS = {"load": _load, "store": _store} | {f"atomic_{kind}": _atomic(kind) for kind in ATOMIC_TYPES}
