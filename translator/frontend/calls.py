"""Calls: functions of the language, jit functions, and Python functions of compile-time values."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from ..diagnostics import ArgumentError, CompilationError, DTypeError, Span, UnsupportedLanguageConstruct
from ..ir.nodes import Assign, CallFunction, DeviceFunction, Expr, Inlined, Note, Use, Variable
from ..ir.rewrite import renamed
from ..ir.tiles import broadcast_to
from ..ir.types import ORDINALS, ValueType
from ..ir.walk import (
    assigned_variables,
    read_inside,
    say_the_same,
    statements,
    used_variables,
    what_decides,
    where_from,
)
from ..kernel_function import KernelFunction
from ..language.builtin import Builtin, without_annotations
from ..language.dtypes import DType, PointerType, int64
from ..language.hints import uncallable, unfitting
from ..language.member_hints import FAILED
from ..language.tile_hints import other_number_of_results
from .aggregates import AGGREGATES, parts_of
from .builder import Builder
from .named_numbers import called_as
from .operators import call_operator_method
from .python_functions import NOTHING, PYTHON, WITH_KEYWORDS
from .ranges import is_nonnegative
from .returns import Result
from .shapes import cast_to, common_shape, describe, elementwise, to_expr
from .source import Source
from .values import Const, Method, NotElementwiseError, Tuple, Value, is_static, known_value, with_wrapper
from .watched import watch_content, watch_function

DEEPEST_CALL = 64  # functions within functions; who goes further has forgotten to end a recursion


def call_value(builder: Builder, function: Value, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    """`function(*args, **kwargs)`."""
    if isinstance(function, Method):
        if isinstance(function.builtin, str):
            return call_operator_method(builder, function, args, kwargs, span)
        return call_builtin(builder, function.builtin, [function.self_value, *args], kwargs, span)
    if not isinstance(function, Const):
        cause, remedy = f"{describe(function)} cannot be called", "leave the parentheses out, or write * for a product"
        raise UnsupportedLanguageConstruct(cause, span, remedy, builder.calls)
    target = function.value
    if isinstance(target, Builtin):
        return call_builtin(builder, target, args, kwargs, span)
    if isinstance(target, KernelFunction):
        return call_jit(builder, target, args, kwargs, span)
    return _call_python(builder, target, args, kwargs, span)


def call_builtin(builder: Builder, target: Builtin, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    """A function of the language."""
    from .builtins import HANDLERS

    bound = bind_arguments(builder, target.signature, f"tl.{target.name}", args, kwargs, span)
    try:
        if target.op:
            return elementwise(target.op, list(bound.values()), span)
        return HANDLERS[target.name](builder, bound, span)
    except CompilationError as error:
        if not error.calls:
            error.calls = builder.calls
        raise


def bind_arguments(
    builder: Builder, signature: inspect.Signature, name: str, args: list[Value], kwargs: dict[str, Value], span: Span
) -> dict[str, Value]:
    """Arguments by parameter name, defaults filled in, extra positional ones gathered into a tuple.

    Raises:
      ArgumentError: when they do not fit.
    """
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        remedy = unfitting(name, without_annotations(signature), kwargs)
        raise ArgumentError(f"{name}: {error}", span, remedy, builder.calls) from None
    values: dict[str, Value] = {}
    for parameter in signature.parameters.values():
        if parameter.name in bound.arguments:
            value = bound.arguments[parameter.name]
            values[parameter.name] = Tuple(tuple(value)) if parameter.kind is parameter.VAR_POSITIONAL else value
        elif parameter.kind is parameter.VAR_POSITIONAL:
            values[parameter.name] = Tuple(())
        else:
            values[parameter.name] = known_value(parameter.default)
    return values


# ------------------------------------------------------------------------------------------------- Python functions


def _call_python(builder: Builder, target: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
    special, least, most = PYTHON.get(target, NOTHING) if getattr(target, "__hash__", None) else NOTHING
    if special is not None and least <= len(args) <= most and (not kwargs or target in WITH_KEYWORDS):
        result: Value | None = special(builder, args, kwargs, span)
        if result is not None:
            return result
    if isinstance(target, type) and hasattr(target, "_fields"):
        bound = bind_arguments(builder, inspect.signature(target), target.__name__, args, kwargs, span)
        return Tuple(tuple(bound.values()), tuple(target._fields))
    if callable(target) and all(is_static(value) for value in (*args, *kwargs.values())):
        plain = [builder.constant(value, "an argument", span) for value in args]
        named = {name: builder.constant(value, "an argument", span) for name, value in kwargs.items()}
        watch_function(builder, target)
        for one in () if target is len else (getattr(target, "__self__", None), *plain, *named.values()):
            watch_content(builder, one)
        try:
            found = target(*plain, **named)
        except Exception as error:
            cause = f"{getattr(target, '__name__', target)} failed at compile time: {error}"
            raise UnsupportedLanguageConstruct(cause, span, FAILED, builder.calls) from None
        number = args[0] if target is int and args else None
        symbol = called_as(number.symbol, number.value, int64) if isinstance(number, Const) else None
        return known_value(found, symbol)
    cause, remedy = uncallable(target)
    raise UnsupportedLanguageConstruct(cause, span, remedy, builder.calls)


# ---------------------------------------------------------------------------------------------------- jit functions


def call_jit(
    builder: Builder, target: KernelFunction, args: list[Value], kwargs: dict[str, Value], span: Span
) -> Value:
    """A jit function: as a device function of scalars where it is one, inlined otherwise."""
    bound = bind_arguments(builder, inspect.signature(target.fn), target.__name__, args, kwargs, span)
    bound |= {one.name: with_wrapper(bound[one.name], True) for one in target.params if one.is_constexpr}
    if len(builder.calls) > DEEPEST_CALL:
        raise UnsupportedLanguageConstruct(
            f"{target.__name__} is called in more than {DEEPEST_CALL} calls within each other",
            span,
            "end the recursion by a compile-time condition",
            builder.calls,
        )
    called = _as_device_function(builder, target, bound, span)
    return called if called is not None else _inline(builder, target, bound, span)


def source_of(function: KernelFunction) -> Source:
    """The parsed source of a function, kept while its text does not change."""
    if function.parsed is None or function.parsed[0] != function.raw_src:
        function.parsed = (function.raw_src, Source(function))
    return function.parsed[1]


def _callee(builder: Builder, target: KernelFunction, span: Span) -> Builder:
    inner = Builder(source_of(target), builder.options, builder.target, builder)
    inner.calls = (*builder.calls, span)
    inner.source.check_parameters(inner.calls)
    return inner


def _as_device_function(builder: Builder, target: KernelFunction, bound: dict[str, Value], span: Span) -> Value | None:
    """A call of a function of scalars, applied element by element; None when the callee does more than that."""
    runtime = {name: value for name, value in bound.items() if isinstance(value, Expr)}
    static = {name: value for name, value in bound.items() if name not in runtime}
    if not runtime or any(not is_static(value) for value in static.values()):
        return None
    if any(value.type.is_pointer for value in runtime.values()):
        return None
    key = (
        id(target),
        tuple((name, value.type.element) for name, value in runtime.items()),
        tuple((name, _told_apart(value)) for name, value in static.items()),
    )
    if key not in builder.functions:
        known = dict(builder.functions)
        try:
            built = _build_function(builder, target, runtime, static, span)
            builder.functions[key] = _known_or_new(known.values(), built)
        except (NotElementwiseError, CompilationError):  # what is wrong with it shows when it is inlined
            builder.functions.clear()
            builder.functions.update(known)
            return None
    function = builder.functions[key]
    deciding = [runtime[parameter.name] for parameter in function.deciding]
    if any(value.type.numel > 1 for value in deciding):
        return None  # the truth of a tile is ambiguous, which shows when the function is inlined
    builder.decided.update(variable for value in deciding for variable in used_variables(value))
    given = [runtime[parameter.name] for parameter in function.parameters]
    shape = common_shape([value.type.shape for value in given], span)
    exprs = tuple(broadcast_to(value, shape, span) for value in given)
    return CallFunction(function.result.with_shape(shape), function, exprs, span=span)


class _Same:
    """An object that is equal to nothing but itself, kept as long as the key that it is part of."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _told_apart(value: Value) -> Any:
    """What tells compile-time arguments apart: numbers, texts and types by content, else which object it is.

    Two functions may have one name, and two objects one text.
    """
    if isinstance(value, Tuple):
        return value.fields, *map(_told_apart, value.items)
    if isinstance(value, Const):
        content = value.value
        plain = content is None or isinstance(content, (bool, int, float, str, DType, PointerType))
        if plain and not isinstance(content, enum.Enum):
            return type(content), repr(content), value.symbol
        return _Same(content), value.is_plain
    return repr(value)


def _build_function(
    builder: Builder, target: KernelFunction, runtime: dict[str, Expr], static: dict[str, Value], span: Span
) -> DeviceFunction:
    from .statements import visit_block

    inner = _callee(builder, target, span)
    inner.scalar_only = True
    inner.scope = dict(static)
    parameters = []
    for name, value in runtime.items():
        variable = inner.variable(name, ValueType(value.type.element))
        inner.scope[name] = Use(variable.type, variable)
        inner.protected.add(variable)
        parameters.append(variable)
    inner.origin = inner.source.origin(inner.source.definition, file=inner.file)
    origin = inner.origin
    returns = visit_block(inner, inner.source.definition.body)
    results = [value for value in inner.returned]
    if not returns or not results or not all(isinstance(value, Expr) for value in results):
        raise NotElementwiseError
    types = {value.type for value in results if isinstance(value, Expr)}
    # A parameter that the result does not come from, such as one that is asked for its type, says nothing of the shape.
    body = tuple(inner.statements)
    needed = what_decides(body)
    read = set(read_inside(body))
    kept = tuple(parameter for parameter in parameters if parameter in needed)
    if len(types) != 1 or not kept or any(parameter in read - needed for parameter in parameters):
        raise NotElementwiseError
    deciding = where_from(body, inner.decided).intersection(kept)
    return DeviceFunction(target.__name__, kept, types.pop(), body, origin, inner.source.docstring, deciding)


def _known_or_new(known: Iterable[DeviceFunction], new: DeviceFunction) -> DeviceFunction:
    """One of some functions that does the same as a new one, or the new one.

    Compile-time arguments that only choose branches leave nothing of themselves, such as a flag by each caller's own name.
    """
    for other in known:
        pairs = dict(zip(_variables(new), _variables(other), strict=False))
        parameters = tuple(pairs.get(parameter, parameter) for parameter in new.parameters)
        deciding = frozenset(pairs.get(parameter, parameter) for parameter in new.deciding)
        same = (new.name, new.result, new.origin) == (other.name, other.result, other.origin)
        same &= (parameters, deciding) == (other.parameters, other.deciding)
        same = same and all(one.type == pairs[one].type for one in pairs)
        if same and say_the_same(renamed(new.body, pairs), other.body):
            return other
    return new


def _variables(function: DeviceFunction) -> tuple[Variable, ...]:
    """The variables of a function, in the order in which they stand in it."""
    assigned = (variable for statement in statements(function.body) for variable in assigned_variables(statement))
    return tuple(dict.fromkeys((*function.parameters, *assigned)))


def _visit_callee(inner: Builder) -> None:
    """Translates a function's body; errors in it show the calls that led there."""
    from .statements import visit_block

    try:
        visit_block(inner, inner.source.definition.body)
        inner.result.settle(inner)
    except CompilationError as error:
        error.calls = error.calls or inner.calls
        raise


def _inline(builder: Builder, target: KernelFunction, bound: dict[str, Value], span: Span) -> Value:
    builder.not_elementwise()
    inner = _callee(builder, target, span)
    inner.result = Result(f"{target.__name__}_result")
    inner.block = inner.result.home = -1
    by_name = {parameter.name: parameter for parameter in target.params}
    for name, value in bound.items():
        inner.scope[name] = value
        if isinstance(value, (Use, *AGGREGATES)):  # the callee may read what the caller has, but not change it
            inner.protected |= {v for part in parts_of(value, name) if isinstance(part.value, Expr)
                                for v in used_variables(part.value)}  # fmt: skip
        elif isinstance(value, Expr):
            variable = inner.variable(name, value.type)
            builder.statements.append(Assign(builder.here, (variable,), value))
            inner.scope[name] = Use(value.type, variable)
            inner.protected.add(variable)
            if is_nonnegative(builder, value):
                builder.nonnegative.add(variable)
        if by_name[name].is_constexpr:
            inner.constexpr_names.add(name)
    _visit_callee(inner)
    at = inner.result.given_at
    if at is not None and inner.result.value != Const(None) and not any(s.origin is at for s in inner.statements[-1:]):
        inner.statements.append(Note(at.noted(f"goes back to {builder.here.place(span.line)}")))
    builder.statements.append(Inlined(builder.here, target.__name__, tuple(inner.statements)))
    result = inner.result.value if inner.result.value is not None else Const(None)
    builder.results |= once(result.items if isinstance(result, Tuple) else (result,))
    return result


def returned_value(builder: Builder, result: Result, arguments: dict[str, Value]) -> Value | None:
    """What the function of a builder returns for some arguments, for who asks for its type alone."""
    builder.scope, builder.result = dict(arguments), result
    builder.block = result.home = -1
    params = builder.source.function.params
    builder.constexpr_names |= {parameter.name for parameter in params if parameter.is_constexpr}
    _visit_callee(builder)
    return result.value


def once(values: Sequence[Value]) -> set[Variable]:
    """The variables that one of some values is, and that no other reads, nor a part of a bundle."""
    parts = [part.value for value in values for part in parts_of(value, "")]
    used = [variable for part in parts if isinstance(part, Expr) for variable in used_variables(part)]
    return {value.variable for value in values if isinstance(value, Use) and used.count(value.variable) == 1}


def reduce_function(builder: Builder, target: KernelFunction, types: list[DType], span: Span) -> Any:
    """The body of a reduction's combine function on scalars: (left, right, results, statements)."""
    inner = _callee(builder, target, span)
    inner.result = Result("combined")
    inner.block = inner.result.home = -1
    names = target.arg_names
    if len(names) != 2 * len(types):
        raise ArgumentError(
            f"{target.__name__} has {len(names)} parameters; to reduce {len(types)} at once it needs {2 * len(types)}",
            span,
            "give it the values of the left side, then those of the right side",
            builder.calls,
        )
    variables = []
    for name, dtype in zip(names, [*types, *types], strict=True):
        variable = inner.variable(name, ValueType(dtype))
        inner.scope[name] = Use(variable.type, variable)
        inner.protected.add(variable)
        variables.append(variable)
    _visit_callee(inner)
    value = inner.result.value
    items = value.items if isinstance(value, Tuple) else (value,)
    if len(items) != len(types):
        cause, remedy = other_number_of_results(target.__name__, len(types), len(items))
        raise ArgumentError(cause, span, remedy, builder.calls)
    results: list[Any] = []
    for item, dtype in zip(items, types, strict=True):
        if isinstance(item, Expr) and item.type.element != dtype:
            cause = f"{target.__name__} combines values of {dtype}, but returns {describe(item)}"
            raise DTypeError(cause, span, f"cast what it returns, as result.to(tl.{dtype.name})", builder.calls)
        expr = cast_to(to_expr(item, span), dtype, span)
        word = ORDINALS[len(results)]
        variable = inner.variable("combined" if len(types) == 1 else f"combined_{word}", expr.type)
        inner.statements.append(Assign(inner.here, (variable,), expr))
        results.append(variable)
    return tuple(variables[: len(types)]), tuple(variables[len(types) :]), tuple(results), tuple(inner.statements)
