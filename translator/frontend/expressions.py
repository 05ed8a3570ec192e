"""Python expressions: one function per kind of LibCST node, in a table."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import libcst as cst

from ..diagnostics import DTypeError, ShapeError, UnsupportedLanguageConstruct
from ..ir.nodes import Call, Expr
from ..kernel_function import KernelFunction
from ..language.constexpr import plain
from ..language.hints import KNOWN_INDEX, no_item, no_key, no_launch, shown, too_few_axes
from ..language.member_hints import NO_SUCH_ITEM
from .attributes import attribute_of
from .builder import Builder
from .operators import binary, boolean, compare, unary
from .shapes import describe
from .values import Const, Tuple, Value, is_static
from .watched import watch_content, watch_function

CONVERSIONS: dict[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}  # of f-strings


def evaluate(builder: Builder, node: cst.BaseExpression) -> Value:
    """The value of an expression; what it does on the way is written into the builder."""
    handler = HANDLERS.get(type(node))
    if handler is None:
        raise builder.unsupported(node)
    return handler(builder, node)


def _name(builder: Builder, node: Any) -> Value:
    if node.value in ("True", "False", "None"):
        return Const({"True": True, "False": False, "None": None}[node.value])
    return builder.lookup(node.value, builder.source.span(node))


def _literal(builder: Builder, node: Any) -> Value:
    return Const(ast.literal_eval(node.value), base=16 if node.value[:2] in ("0x", "0X") else 10)


def _string(builder: Builder, node: Any) -> Value:
    return Const(node.evaluated_value)


def _joined_strings(builder: Builder, node: Any) -> Value:
    span = builder.source.span(node)
    left, right = (builder.constant(evaluate(builder, one), "a string", span) for one in (node.left, node.right))
    return Const(left + right)


def _formatted(builder: Builder, node: Any) -> Value:
    return Const(_formatted_text(builder, node, node.parts))


def _formatted_text(builder: Builder, node: Any, parts: Any) -> str:
    """The text of an f-string's parts, or of the parts of a format specification."""
    text = ""
    for part in parts:
        if isinstance(part, cst.FormattedStringText):
            text += _plain_text(node, part.value)
            continue
        span = builder.source.span(part)
        value = builder.constant(evaluate(builder, part.expression), "a value in an f-string", span)
        specification = _formatted_text(builder, node, part.format_spec or ())
        conversion = part.conversion or ("r" if part.equal is not None and not specification else "")
        text += f"{builder.source.code(part.expression)}=" if part.equal is not None else ""
        try:
            text += format(CONVERSIONS[conversion](value) if conversion else value, specification)
        except (TypeError, ValueError) as error:
            raise DTypeError(
                f"cannot format {shown(value)}: {error}", span, "leave the format out", builder.calls
            ) from None
    return text


def _plain_text(node: Any, text: str) -> str:
    """Text between the braces of an f-string, with what its escapes stand for."""
    text = text.replace("{{", "{").replace("}}", "}")
    return text if "r" in node.prefix else str(ast.literal_eval(f"{node.quote}{text}{node.quote}"))


def _tuple(builder: Builder, node: Any) -> Value:
    items: list[Value] = []
    for element in node.elements:
        value = evaluate(builder, element.value)
        items += unpacked(builder, element, value) if isinstance(element, cst.StarredElement) else (value,)
    return Tuple(tuple(items))


def unpacked(builder: Builder, node: Any, value: Value) -> tuple[Value, ...]:
    """The items of `*value`.

    Raises:
      DTypeError: when it is no tuple.
    """
    if isinstance(value, Tuple):
        return value.items
    span = builder.source.span(node)
    raise DTypeError(f"* takes a tuple apart, not {describe(value)}", span, "pass the values themselves", builder.calls)


def _binary(builder: Builder, node: Any) -> Value:
    left, right = evaluate(builder, node.left), evaluate(builder, node.right)
    return binary(builder, type(node.operator).__name__, left, right, builder.source.span(node))


def _unary(builder: Builder, node: Any) -> Value:
    return unary(builder, type(node.operator).__name__, evaluate(builder, node.expression), builder.source.span(node))


def _boolean(builder: Builder, node: Any) -> Value:
    word = type(node.operator).__name__
    left = evaluate(builder, node.left)
    if is_static(left):
        truth = bool(builder.constant(left, "a condition", builder.source.span(node)))
        if truth != (word == "And"):
            return left
        return evaluate(builder, node.right)
    return boolean(builder, word, left, evaluate(builder, node.right), builder.source.span(node))


def _comparison(builder: Builder, node: Any) -> Value:
    span = builder.source.span(node)
    left = evaluate(builder, node.left)
    result: Value | None = None
    for target in node.comparisons:
        right = evaluate(builder, target.comparator)
        one = compare(builder, type(target.operator).__name__, left, right, span)
        result = one if result is None else boolean(builder, "And", result, one, span)
        left = right
    return result if result is not None else left


def _conditional(builder: Builder, node: Any) -> Value:
    from .conditionals import conditional_value
    from .trip_choices import chosen_by_trip

    condition = evaluate(builder, node.test)
    if is_static(condition):
        by_trip = chosen_by_trip(builder, node, condition)
        if by_trip is not None:
            return by_trip
        chosen = node.body if builder.constant(condition, "a condition", builder.source.span(node)) else node.orelse
        return evaluate(builder, chosen)
    return conditional_value(builder, node, condition)


def _attribute(builder: Builder, node: Any) -> Value:
    base = evaluate(builder, node.value)
    return attribute_of(builder, base, node.attr.value, builder.source.span(node))


def _subscript(builder: Builder, node: Any) -> Value:
    base = evaluate(builder, node.value)
    span = builder.source.span(node)
    if isinstance(base, Expr):
        return _index_tile(builder, base, node, span)
    if isinstance(base, Tuple):
        return _index_tuple(builder, base, node, span)
    value = builder.constant(base, "what is indexed", span)
    if isinstance(value, KernelFunction):
        cause, remedy = no_launch(builder.source.code(node.value))
        raise UnsupportedLanguageConstruct(cause, span, remedy, builder.calls)
    key = _key(builder, node, span)
    try:
        watch_content(builder, value, key if type(key) is int else ...)
        watch_function(builder, getattr(value, "__getitem__", None))
        return Const(plain(value[key]), is_plain=True)
    except LookupError:
        cause, remedy = no_key(builder.source.code(node.value), value, key)
        raise DTypeError(cause, span, remedy, builder.calls) from None
    except (TypeError, ValueError) as error:
        remedy = "only tiles and tuples have items; a tile of numbers is made by tl.arange or tl.full"
        raise DTypeError(f"cannot index {shown(value)}: {error}", span, remedy, builder.calls) from None


def _key(builder: Builder, node: Any, span: Any) -> Any:
    """What stands between brackets, as Python would pass it on: a value, a slice, or a tuple of several."""

    def part(node: Any) -> Any:
        return None if node is None else builder.constant(evaluate(builder, node), "an index", span, KNOWN_INDEX)

    keys = tuple(
        slice(part(one.slice.lower), part(one.slice.upper), part(one.slice.step))
        if isinstance(one.slice, cst.Slice)
        else part(one.slice.value)
        for one in node.slice
    )
    return keys[0] if len(keys) == 1 else keys


def _index_tuple(builder: Builder, base: Tuple, node: Any, span: Any) -> Value:
    key = _key(builder, node, span)
    try:
        chosen: Any = base.items[key]
    except (IndexError, TypeError, ValueError) as error:
        raise DTypeError(
            f"index {shown(key)} of a tuple of {len(base.items)}: {error}",
            span,
            NO_SUCH_ITEM,
            builder.calls,
        ) from None
    return Tuple(chosen) if isinstance(key, slice) else chosen


def _index_tile(builder: Builder, base: Expr, node: Any, span: Any) -> Value:
    """`x[:, None]`: new axes of side 1. A : for which there is no axis stands for none, as in Triton.

    Of a scalar every one does, so that None may follow: a row's maximum may be a scalar.
    """
    builder.not_elementwise()
    axis, result = 0, base
    for element in node.slice:
        item = element.slice
        whole = isinstance(item, cst.Slice) and all(map(_is_none, (item.lower, item.upper, item.step)))
        new = isinstance(item, cst.Index) and _is_none(item.value)
        if new and axis <= result.type.rank:
            shape = (*result.type.shape[:axis], 1, *result.type.shape[axis:])
            result = Call(result.type.with_shape(shape), "expand_dims", (result,), (("axis", axis),), span=span)
        elif new:
            cause, remedy = too_few_axes(base.type.element, base.type.shape)
            raise ShapeError(cause, span, remedy, builder.calls)
        elif not whole:
            raise ShapeError(
                f"unsupported tensor index {builder.source.code(item)}",
                span,
                no_item(base.type.is_pointer, builder.source.code(node.value), builder.source.code(item)),
                builder.calls,
            )
        axis += new or base.type.is_tile
    return result


def _is_none(node: Any) -> bool:
    return node is None or (isinstance(node, cst.Name) and node.value == "None")


def _call(builder: Builder, node: Any) -> Value:
    from .calls import call_value

    function = evaluate(builder, node.func)
    args: list[Value] = []
    kwargs: dict[str, Value] = {}
    for argument in node.args:
        value = evaluate(builder, argument.value)
        if argument.star == "*":
            args += unpacked(builder, argument, value)
        elif argument.star == "**":
            raise builder.unsupported(argument, "Keywords")
        elif argument.keyword is not None:
            kwargs[argument.keyword.value] = value
        else:
            args.append(value)
    return call_value(builder, function, args, kwargs, builder.source.span(node))


def _named(builder: Builder, node: Any) -> Value:
    value = evaluate(builder, node.value)
    builder.bind(node.target.value, value, builder.source.span(node))
    return builder.lookup(node.target.value, builder.source.span(node))


def _comprehension(builder: Builder, node: Any) -> Value:
    clause = node.for_in
    span = builder.source.span(node)
    if clause.inner_for_in is not None or not isinstance(clause.target, cst.Name):
        raise builder.unsupported(node, "NestedComprehension")
    iterable = evaluate(builder, clause.iter)
    items = iterable.items if isinstance(iterable, Tuple) else _constants(builder, iterable, span)
    name, results = clause.target.value, []
    before = dict(builder.scope)
    for item in items:
        builder.scope[name] = item
        if all(builder.constant(evaluate(builder, test.test), "a filter", span) for test in clause.ifs):
            results.append(evaluate(builder, node.elt))
    builder.scope = before
    return Tuple(tuple(results))


def _constants(builder: Builder, iterable: Value, span: Any) -> list[Value]:
    value = builder.constant(iterable, "what a comprehension runs over", span)
    try:
        return [Const(item, is_plain=True) for item in value]
    except TypeError as error:
        raise DTypeError(f"a comprehension runs over items: {error}", span, "give it a tuple", builder.calls) from None


HANDLERS: dict[type, Callable[[Builder, Any], Value]] = {
    cst.Name: _name,
    cst.Integer: _literal,
    cst.Float: _literal,
    cst.SimpleString: _string,
    cst.ConcatenatedString: _joined_strings,
    cst.FormattedString: _formatted,
    cst.Tuple: _tuple,
    cst.List: _tuple,
    cst.BinaryOperation: _binary,
    cst.UnaryOperation: _unary,
    cst.BooleanOperation: _boolean,
    cst.Comparison: _comparison,
    cst.IfExp: _conditional,
    cst.Attribute: _attribute,
    cst.Subscript: _subscript,
    cst.Call: _call,
    cst.NamedExpr: _named,
    cst.ListComp: _comprehension,
    cst.Ellipsis: lambda builder, node: Const(...),
}
