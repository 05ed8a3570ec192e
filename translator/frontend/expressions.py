"""Python expressions: one function per kind of LibCST node, in a table."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import libcst as cst

from ..diagnostics import DTypeError, ShapeError, UnsupportedLanguageConstruct
from ..ir.nodes import Call, Expr
from .attributes import attribute_of
from .builder import Builder
from .operators import binary, boolean, compare, is_static, unary
from .values import Const, Tuple, Value


def evaluate(builder: Builder, node: cst.BaseExpression) -> Value:
    """The value of an expression; what it does on the way is written into the builder."""
    handler = HANDLERS.get(type(node))
    if handler is None:
        raise UnsupportedLanguageConstruct(
            f"{type(node).__name__} expressions cannot stand in a kernel",
            builder.source.span(node),
            "compute the value outside the kernel and pass it in",
            builder.calls,
        )
    return handler(builder, node)


def _name(builder: Builder, node: Any) -> Value:
    if node.value in ("True", "False", "None"):
        return Const({"True": True, "False": False, "None": None}[node.value])
    return builder.lookup(node.value, builder.source.span(node))


def _literal(builder: Builder, node: Any) -> Value:
    return Const(ast.literal_eval(node.value))


def _string(builder: Builder, node: Any) -> Value:
    return Const(node.evaluated_value)


def _formatted(builder: Builder, node: Any) -> Value:
    text = ""
    for part in node.parts:
        if isinstance(part, cst.FormattedStringText):
            text += part.value
        else:
            value = evaluate(builder, part.expression)
            text += str(builder.constant(value, "a value in an f-string", builder.source.span(node)))
    return Const(text)


def _tuple(builder: Builder, node: Any) -> Value:
    items: list[Value] = []
    for element in node.elements:
        value = evaluate(builder, element.value)
        if isinstance(element, cst.StarredElement) and isinstance(value, Tuple):
            items += value.items
        else:
            items.append(value)
    return Tuple(tuple(items))


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

    condition = evaluate(builder, node.test)
    if is_static(condition):
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
    key = builder.constant(evaluate(builder, node.slice[0].slice.value), "an index", span)
    value = builder.constant(base, "what is indexed", span)
    try:
        return Const(value[key])
    except (TypeError, KeyError, IndexError) as error:
        raise DTypeError(f"cannot index {value!r} with {key!r}: {error}", span, "", builder.calls) from None


def _index_tuple(builder: Builder, base: Tuple, node: Any, span: Any) -> Value:
    item = node.slice[0].slice
    if isinstance(item, cst.Slice):
        bounds = [
            None if part is None else builder.constant(evaluate(builder, part), "a bound", span)
            for part in (item.lower, item.upper, item.step)
        ]
        return Tuple(base.items[slice(*bounds)])
    key = builder.constant(evaluate(builder, item.value), "the index of a tuple", span)
    try:
        chosen: Value = base.items[key]
        return chosen
    except (IndexError, TypeError):
        raise DTypeError(f"index {key!r} of a tuple of {len(base.items)}", span, "", builder.calls) from None


def _index_tile(builder: Builder, base: Expr, node: Any, span: Any) -> Value:
    """`x[:, None]`: new axes of side 1."""
    builder.not_elementwise()
    axis, result = 0, base
    for element in node.slice:
        item = element.slice
        whole = isinstance(item, cst.Slice) and item.lower is None and item.upper is None and item.step is None
        new = isinstance(item, cst.Index) and isinstance(item.value, cst.Name) and item.value.value == "None"
        if new:
            shape = (*result.type.shape[:axis], 1, *result.type.shape[axis:])
            result = Call(result.type.with_shape(shape), "expand_dims", (result,), (("axis", axis),), span=span)
        elif not whole or axis >= result.type.rank:
            raise ShapeError(
                f"unsupported tensor index {builder.source.code(item)}",
                span,
                "only : and None can index a tile, as in x[:, None]; load the part that you need instead",
                builder.calls,
            )
        axis += 1
    return result


def _call(builder: Builder, node: Any) -> Value:
    from .calls import call_value

    function = evaluate(builder, node.func)
    args: list[Value] = []
    kwargs: dict[str, Value] = {}
    for argument in node.args:
        value = evaluate(builder, argument.value)
        if argument.star == "*" and isinstance(value, Tuple):
            args += value.items
        elif argument.star == "**":
            raise UnsupportedLanguageConstruct(
                "**kwargs in a call", builder.source.span(argument), "name the arguments", builder.calls
            )
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
    if clause.inner_for_in is not None:
        raise UnsupportedLanguageConstruct("a nested comprehension", builder.source.span(node), "", builder.calls)
    iterable = evaluate(builder, clause.iter)
    span = builder.source.span(node)
    items = iterable.items if isinstance(iterable, Tuple) else [
        Const(item) for item in builder.constant(iterable, "what a comprehension runs over", span)
    ]  # fmt: skip
    name, results = clause.target.value, []
    before = dict(builder.scope)
    for item in items:
        builder.scope[name] = item
        if all(builder.constant(evaluate(builder, test.test), "a filter", span) for test in clause.ifs):
            results.append(evaluate(builder, node.elt))
    builder.scope = before
    return Tuple(tuple(results))


HANDLERS: dict[type, Callable[[Builder, Any], Value]] = {
    cst.Name: _name,
    cst.Integer: _literal,
    cst.Float: _literal,
    cst.SimpleString: _string,
    cst.ConcatenatedString: _string,
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
