"""What follows a dot: members of modules and types, properties and methods of tiles."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..diagnostics import Span, UnknownNameError, UnsupportedLanguageConstruct
from ..ir.nodes import Expr
from ..ir.types import symbol_of
from ..kernel_function import KernelFunction
from ..language.constexpr import unwrap
from ..language.descriptors import BLOCK_POINTER_METHODS
from ..language.descriptors import METHODS as DESCRIPTOR_METHODS
from ..language.dtypes import PointerType
from ..language.hints import shown
from ..language.member_hints import instead_of_member, instead_of_tiles_member, is_language
from ..language.values import block_type, constexpr_type, tuple_type
from .builder import Builder
from .builtins_shape import reversed_axes
from .operators import operator_method
from .values import BlockPointer, Const, Descriptor, Method, Tuple, Value, is_static, known_value
from .watched import watch_member


def attribute_of(builder: Builder, base: Value, name: str, span: Span) -> Value:
    """`base.name`.

    Raises:
      UnknownNameError: when there is no such thing.
    """
    if isinstance(base, Const):
        return _member(builder, base, name, span)
    if isinstance(base, Tuple):
        if name in base.fields:
            return base.items[base.fields.index(name)]
        if name == "value" and is_static(base):
            return base
        if name == "type" and base.is_wrapped:
            return Const(constexpr_type(builder.constant(base, "the tuple", span)), is_plain=True)
        if name == "type":
            types = [builder.constant(attribute_of(builder, item, name, span), "the type", span) for item in base.items]
            return Const(tuple_type(types, base.fields), is_plain=True)
        has = f"it has {', '.join(base.fields)}" if base.fields else "take its items by their numbers, as x[0]"
        raise UnknownNameError(f"a tuple has no attribute {name}", span, has, builder.calls)
    if isinstance(base, Descriptor):
        return _descriptor_member(builder, base, name, span)
    if isinstance(base, BlockPointer):
        return _block_pointer_member(builder, base, name, span)
    if isinstance(base, Expr):
        return _property(builder, base, name, span)
    raise UnknownNameError(f"a method has no attribute {name}", span, "call it, with parentheses", builder.calls)


def _member(builder: Builder, base: Const, name: str, span: Span) -> Value:
    value = base.value
    try:
        member, missing = getattr(value, name), None
    except AttributeError as error:
        member, missing = None, error
    except Exception as error:  # of a property, or of a module that imports what it is asked for
        cause = f"{name} of {_describe(value)} failed at compile time: {error}"
        raise UnsupportedLanguageConstruct(cause, span, "read it outside of the kernel", builder.calls) from None
    is_own = not base.is_plain or missing is not None  # of the constexpr itself, not of what it wraps
    if name == "value" and is_own:
        return Const(value, is_plain=True)
    if name == "type" and is_own and (not base.is_plain or value is None or isinstance(value, (bool, int, float, str))):
        return Const(constexpr_type(value), is_plain=True)
    if missing is not None:
        cause = str(missing) if is_language(value) else f"{_describe(value)} has no attribute {name!r}"
        raise UnknownNameError(cause, span, instead_of_member(value, name), builder.calls)
    member = unwrap(member)
    is_watched = watch_member(builder, value, name, member)
    if isinstance(value, ModuleType):
        builder.outside.read(value, "member", name, member, value.__name__ if is_watched else "")
    elif isinstance(value, KernelFunction):
        builder.outside.untold()
    return known_value(member)


def _descriptor_member(builder: Builder, desc: Descriptor, name: str, span: Span) -> Value:
    if name in DESCRIPTOR_METHODS:
        return Method(DESCRIPTOR_METHODS[name], desc)
    block = Tuple(tuple(Const(int(side), symbol_of(side)) for side in desc.block_shape))
    element = desc.base.type.element
    members: dict[str, Value] = {
        "base": desc.base,
        "shape": Tuple(desc.shape),
        "strides": Tuple((*desc.strides, Const(1))),
        "block_shape": block,
        "dtype": Const(element.element_ty if isinstance(element, PointerType) else element, is_plain=True),
    }
    if name not in members:
        words = ", ".join((*members, *DESCRIPTOR_METHODS))
        raise UnknownNameError(f"a tensor descriptor has no attribute {name}", span, f"it has {words}", builder.calls)
    return members[name]


def _block_pointer_member(builder: Builder, pointer: BlockPointer, name: str, span: Span) -> Value:
    from .. import language

    if name in BLOCK_POINTER_METHODS:
        return Method(language.METHODS[name], pointer)
    if name in ("dtype", "type"):  # kernels cast to `p.dtype.element_ty`
        return Const(pointer.base.type.element, is_plain=True)
    words = ", ".join(("dtype", "type", *BLOCK_POINTER_METHODS))
    raise UnknownNameError(f"a block pointer has no attribute {name}", span, f"it has {words}", builder.calls)


def _describe(value: Any) -> str:
    return f"{type(value).__name__} {shown(value)}" if isinstance(value, (bool, int, float, str)) else shown(value)


def _property(builder: Builder, expr: Expr, name: str, span: Span) -> Value:
    from .. import language

    type_ = expr.type
    if name == "shape":
        builder.not_elementwise()
        return Tuple(tuple(Const(int(side), symbol_of(side)) for side in type_.shape))
    if name in ("dtype", "type"):
        is_block = type_.is_tile and name == "type"
        return Const(block_type(type_.element, type_.shape) if is_block else type_.element, is_plain=True)
    if name == "numel":
        return Const(type_.numel)
    if name == "T":
        return reversed_axes(builder, expr, span)
    if name == "to":
        return Method(language.METHODS["cast"], expr)
    if operator_method(name) is not None:
        return Method(name, expr)
    if name in language.METHODS:
        return Method(language.METHODS[name], expr)
    later = " yet" if name in language.NOT_YET else ""
    raise UnknownNameError(
        f"a value of type {type_} has no attribute {name}{later}", span, instead_of_tiles_member(name), builder.calls
    )
