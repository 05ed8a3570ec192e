"""Python statements: one function per kind of LibCST node, in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import libcst as cst

from ..diagnostics import ArgumentError, DTypeError, UnsupportedLanguageConstruct
from ..ir.nodes import Assign, Expr, Note, Origin, Use, Variable
from ..ir.walk import used_variables
from ..language.hints import no_assignment
from ..language.member_hints import not_as_many
from ..language.tile_hints import defined_twice
from .aggregates import parts_of, with_parts
from .builder import Builder
from .calls import once
from .conditionals import visit_if, without
from .expressions import evaluate
from .loops import visit_for, visit_while
from .operators import binary
from .returns import visit_return
from .values import Const, Method, Tuple, Undefined, Value, is_static, with_wrapper


def visit_block(builder: Builder, body: Any) -> bool:
    """Translates a block; True when it certainly returns, so that what follows it is never reached."""
    lines: Sequence[Any] = [body] if isinstance(body, cst.SimpleStatementSuite) else body.body  # a suite: if x: y = 1
    for number, line in enumerate(lines):
        rest = lines[number + 1 :]
        if _visit_line(builder, line, rest):
            if rest and id(rest[0]) not in builder.written_out:  # nor does it stand in a branch that does not return
                _note_unreached(builder, rest)
            return True
    _keep_comments(builder, builder.source.footer(body), "end of block")
    return False


def _keep_comments(builder: Builder, comments: tuple[str, ...], place: str) -> None:
    """Keeps comments that stand above no statement, in front of whatever follows them."""
    if comments and builder.origin is not None:
        builder.statements.append(Note(Origin(builder.origin.span, "", comments, note=place)))


def _visit_line(builder: Builder, line: Any, rest: Sequence[Any]) -> bool:
    if isinstance(line, cst.BaseCompoundStatement):
        builder.origin = builder.origin_of(line)
        return _visit_compound(builder, line, rest)
    for small in line.body:
        builder.origin = builder.origin_of(line, small)
        if _visit_small(builder, small):
            return True
    return False


def _note_unreached(builder: Builder, rest: Sequence[Any]) -> None:
    """Says of statements behind one that certainly returns that the kernel does without them."""
    builder.origin = replace(builder.origin_of(rest[0]), comments=())
    builder.note(f"never reached{without(builder, rest[0], rest[-1])}")


def _visit_small(builder: Builder, node: Any) -> bool:
    if isinstance(node, cst.Return):
        visit_return(builder, node)
        return True
    handler = HANDLERS.get(type(node))
    if handler is None:
        raise builder.unsupported(node)
    handler(builder, node)
    return False


def _visit_compound(builder: Builder, node: Any, rest: Sequence[Any]) -> bool:
    if isinstance(node, cst.If):
        return visit_if(builder, node, rest)
    if isinstance(node, cst.For):
        return visit_for(builder, node)
    if isinstance(node, cst.While):
        visit_while(builder, node)
    else:
        raise builder.unsupported(node)
    return False


# ------------------------------------------------------------------------------------------------- small statements


def _assign(builder: Builder, node: Any) -> None:
    if len(node.targets) != 1:
        raise builder.unsupported(node, "ChainedAssign")
    target = node.targets[0].target
    builder.assigned_to = target.value if isinstance(target, cst.Name) else ""
    value = evaluate(builder, node.value)
    builder.assigned_to = ""
    bind_target(builder, target, value)


def bind_target(builder: Builder, target: Any, value: Value) -> None:
    """`target = value` for a name or a (nested) tuple of names."""
    span = builder.source.span(target)
    if isinstance(target, cst.Name):
        builder.bind(target.value, value, span)
        return
    if isinstance(target, (cst.Tuple, cst.List)):
        if any(isinstance(element, cst.StarredElement) for element in target.elements):
            raise builder.unsupported(target, "StarredTarget")
        if not isinstance(value, Tuple) or len(value.items) != len(target.elements):
            items = len(value.items) if isinstance(value, Tuple) else None
            cause, remedy = not_as_many(items, len(target.elements))
            raise DTypeError(cause, span, remedy, builder.calls)
        # All right sides are taken before any name changes: `a, b = b, a` exchanges.
        elements = [element.value for element in target.elements]
        values = [
            _copied(builder, item, element, elements[:place])
            for place, (element, item) in enumerate(zip(elements, value.items, strict=True))
        ]
        builder.results &= once(values)
        for element, item in zip(elements, values, strict=True):
            bind_target(builder, element, item)
        return
    raise _no_name(builder, target)


def _no_name(builder: Builder, target: Any) -> UnsupportedLanguageConstruct:
    """The error for an assignment to something else than names."""
    what, span = f"assignment to {builder.source.code(target)}", builder.source.span(target)
    remedy = "assign to a plain name"
    base = evaluate(builder, target.value) if isinstance(target, cst.Subscript) else None
    if isinstance(base, Expr):
        index = ", ".join(builder.source.code(element.slice) for element in target.slice)
        remedy = no_assignment(base.type.is_pointer, builder.source.code(target.value), index)
    return UnsupportedLanguageConstruct(what, span, remedy, builder.calls)


def _copied(builder: Builder, value: Value, target: Any, before: list[Any]) -> Value:
    """A value that assignments to the targets `before` its own cannot change: of a bundle, no part of it."""
    named = [(name, builder.scope[name]) for name in _names(before) if name in builder.scope]
    held = [part.value for name, old in named if not isinstance(old, Undefined) for part in parts_of(old, name)]
    changed = {one.variable for one in held if isinstance(one, Use)} - builder.protected
    name = target.value if isinstance(target, cst.Name) else ""
    return with_parts(value, [_kept(builder, part.value, changed, name) for part in parts_of(value, name)])


def _kept(builder: Builder, value: Value, changed: set[Variable], name: str) -> Value:
    """A part that is to be bound to `name`, in a variable of its own if it reads one that is `changed`."""
    if not isinstance(value, Expr) or changed.isdisjoint(used_variables(value)):
        return value
    is_computed = name != "" and not isinstance(value, Use)  # else it is what a variable was
    temporary = builder.variable(name if is_computed else f"{next(used_variables(value)).name}_before", value.type)
    builder.statements.append(Assign(builder.here, (temporary,), value))
    return Use(temporary.type, temporary)


def _names(targets: list[Any]) -> Iterator[str]:
    """The names in targets, those of tuples too."""
    for target in targets:
        if isinstance(target, cst.Name):
            yield target.value
        elif isinstance(target, (cst.Tuple, cst.List)):
            yield from _names([element.value for element in target.elements])


def _annotated(builder: Builder, node: Any) -> None:
    if not isinstance(node.target, cst.Name):
        raise _no_name(builder, node.target)
    name = node.target.value
    annotation = builder.source.code(node.annotation.annotation)
    if "constexpr" not in annotation:
        if node.value is not None:
            bind_target(builder, node.target, evaluate(builder, node.value))
        return
    span = builder.source.span(node)
    if name in builder.constexpr_names and name in builder.scope:
        cause, remedy = defined_twice(name)
        raise DTypeError(cause, span, remedy, builder.calls)
    builder.constexpr_names.add(name)
    if node.value is not None:
        value = evaluate(builder, node.value)
        if not is_static(value):  # as in Triton, the name then stands for a value of run time
            bind_target(builder, node.target, value)
            return
        builder.scope[name] = with_wrapper(builder.with_name(name, value), True)
        builder.note("compile-time value")


def _augmented(builder: Builder, node: Any) -> None:
    word = type(node.operator).__name__.removesuffix("Assign")
    span = builder.source.span(node)
    if not isinstance(node.target, cst.Name):
        raise _no_name(builder, node.target)
    left = evaluate(builder, node.target)
    builder.assigned_to = node.target.value
    right = evaluate(builder, node.value)
    builder.assigned_to = ""
    bind_target(builder, node.target, binary(builder, word, left, right, span))


def _expression(builder: Builder, node: Any) -> None:
    if isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString, cst.Ellipsis)):
        _keep_comments(builder, builder.here.comments, "string")
        return
    evaluate(builder, node.value)
    if not isinstance(node.value, cst.Call):
        return
    root = node.value.func
    while isinstance(root, cst.Attribute):
        root = root.value
    if isinstance(root, cst.Name):
        _check_unused(builder, evaluate(builder, node.value.func), node)


def _check_unused(builder: Builder, function: Value, node: Any) -> None:
    """Rejects a call as a statement where the function is nothing but its result."""
    called = function.builtin if isinstance(function, Method) else getattr(function, "value", None)
    why = getattr(called, "must_use_result", None)
    if why is not None:
        text = f"The result of {builder.source.code(node.value.func)} is not being used. {why}".rstrip()
        raise ArgumentError(text, builder.source.span(node), "assign it to a name", builder.calls)


def _assert(builder: Builder, node: Any) -> None:
    from .builtins_debug import device_assert

    message = evaluate(builder, node.msg) if node.msg is not None else Const("")
    arguments = {"cond": evaluate(builder, node.test), "msg": message, "mask": Const(None)}
    device_assert(builder, arguments, builder.source.span(node))


def _pass(builder: Builder, node: Any) -> None:
    builder.note("nothing to do")


HANDLERS: dict[type, Callable[[Builder, Any], None]] = {
    cst.Assign: _assign,
    cst.AnnAssign: _annotated,
    cst.AugAssign: _augmented,
    cst.Expr: _expression,
    cst.Assert: _assert,
    cst.Pass: _pass,
}
