"""`return`: the end of a program, or the value of a function, which several returns may share.

In an inlined function, what follows an `if` with a `return` becomes part of its branches (`to_the_end`): the rest of its
own block, then the rests of the blocks around it, which `Builder.following` keeps.

What a function returns where it comes to its end without a `return`, although other ways return a value, is undefined in
Triton, so that only who knows which way was taken can use it. Here it is 0, on the CPU and in the interpreter, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import libcst as cst

from ..diagnostics import DTypeError, Span, UnsupportedLanguageConstruct
from ..ir.nodes import Assign, Expr, Literal, Note, Origin, Return, Statement, Use, Variable
from ..ir.rewrite import with_replaced
from ..ir.tiles import broadcast_to
from ..ir.types import ValueType
from ..ir.walk import statements as every_statement
from ..language.dtypes import DType
from ..ops.promotion import adapted
from .aggregates import Part, form_of, is_run_time, parts_of, with_parts
from .builder import Builder
from .shapes import to_expr
from .values import Const, Value

NOTHING = "ends here without a return: 0 for what is undefined"
MOST_WAYS = 64  # through an inlined function to one of its statements


def visit_return(builder: Builder, node: Any) -> None:
    """`return`: ends the program, or gives a function's value."""
    from .expressions import evaluate

    value = evaluate(builder, node.value) if node.value is not None else Const(None)
    if builder.result is not None:
        if in_loop(builder) and not builder.is_straight:
            raise _return_in_loop(builder, node)
        builder.result.give(builder, value, builder.source.span(node))
        return
    if builder.scalar_only:
        builder.returned.append(value)
        expr = to_expr(value, builder.source.span(node))
        builder.statements.append(Return(builder.here, expr))
        return
    if builder.loop_depth:
        raise _return_in_loop(builder, node)
    builder.statements.append(Return(builder.here))


def _return_in_loop(builder: Builder, node: Any) -> UnsupportedLanguageConstruct:
    return UnsupportedLanguageConstruct(
        "Cannot have `return` statements inside `while` or `for` statements in triton",
        builder.source.span(node),
        "set a flag and test it after the loop",
        builder.calls,
    )


def in_loop(builder: Builder) -> bool:
    """Whether a loop of the function itself, not one around its call, stands around the statement."""
    outside = builder.parent.loop_depth if builder.parent is not None else 0
    return builder.loop_depth > outside or builder.unrolled > 0


def to_the_end(builder: Builder, first: Callable[[], bool], following: tuple[Sequence[Any], ...], span: Span) -> None:
    """Translates one way through an inlined function: `first`, then what follows, innermost first, until it returns.

    Args:
      builder: the function's builder.
      first: translates a branch; True when it certainly returns.
      following: the statements behind the `if`, and behind the blocks that it stands in, outermost first.
      span: the `if`'s condition.
    """
    from .statements import visit_block

    kept = builder.following
    for position in reversed(range(len(following) + 1)):
        builder.following = following[:position]
        here = following[position : position + 1]
        _count(builder, here, span)
        if visit_block(builder, cst.IndentedBlock(list(here[0]))) if here else first():
            break
    else:
        builder.result.end(builder, span)
    builder.following = kept


def _count(builder: Builder, here: tuple[Sequence[Any], ...], span: Span) -> None:
    """Counts how often statements are written out, which each `if` that only may return doubles.

    Raises:
      UnsupportedLanguageConstruct: for more than anybody would read or compile.
    """
    for first in (statements[0] for statements in here if statements):
        times = builder.written_out[id(first)] = builder.written_out.get(id(first), 0) + 1
        if times > MOST_WAYS:
            raise UnsupportedLanguageConstruct(
                f"more than {MOST_WAYS} ways lead through {builder.source.function.__name__} to line "
                f"{builder.source.span(first).line}, for each of which what follows would be written out",
                span,
                "assign the result in the branches, and return it once at the end",
                builder.calls,
            )


class Result:
    """Where an inlined function's returns put its value.

    A number that is returned takes the type of the scalar that other ways return. A variable that only numbers were assigned
    to so far has the type that these have on their own; of one that a way gave another type, `retyped` says which it got.
    `given_at` is the `return` that all ways come to.
    Where a way ends without a `return`, `ends` has a note, and the condition behind which that is.
    """

    home = 0

    def __init__(self, name: str) -> None:
        """`name` is given to the result when several returns share it."""
        self.name = name
        self.value: Value | None = None
        self.given_at: Origin | None = None
        self.numbers: dict[Variable, list[Const]] = {}
        self.retyped: dict[Variable, Variable] = {}
        self.ends: list[tuple[Note, Span]] = []
        self.mismatch: DTypeError | None = None

    def give(self, builder: Builder, value: Value, span: Span) -> None:
        """One `return value`."""
        if builder.block == self.home:
            self.value, self.given_at = value, builder.here
            return
        if self.value is not None and form_of(value) != form_of(self.value):
            raise self._mismatch(builder, "values of different forms", span)
        parts = parts_of(value, self.name)
        if self.value is None:
            self.value = with_parts(value, [self._target(builder, part, span) for part in parts])
        targets = [part.value for part in parts_of(self.value, self.name)]
        self.value = with_parts(
            value, [self._given(builder, one, part.value, span) for one, part in zip(targets, parts, strict=True)]
        )

    def _target(self, builder: Builder, part: Part, span: Span) -> Value:
        """What the first way makes of a part: a variable, or the compile-time value that it is."""
        if not is_run_time(part.value):
            return part.value
        variable = builder.variable(part.name, to_expr(part.value, span).type)
        self.numbers[variable] = []
        return Use(variable.type, variable)

    def _given(self, builder: Builder, target: Value, value: Value, span: Span) -> Value:
        """What holds a part of the result after one more way."""
        if not isinstance(target, Use):
            if target != value:
                raise self._differing(builder, target, value, span)
            return target
        if not is_run_time(value):
            raise self._differing(builder, target, value, span)
        variable = self._typed(builder, target.variable, value, span)
        expr = to_expr(value, span, variable.type.element if isinstance(value, Const) else None)
        builder.statements.append(Assign(builder.here, (variable,), expr))
        return Use(variable.type, variable)

    def _typed(self, builder: Builder, variable: Variable, value: Value, span: Span) -> Variable:
        """The variable of a part, of a type that holds one more value, too."""
        numbers, own = self.numbers.get(variable), to_expr(value, span).type
        found = variable
        if not isinstance(value, Const) or not _holds(variable.type, value):
            if own != variable.type and (numbers is None or not all(_holds(own, one) for one in numbers)):
                raise self._mismatched(
                    builder, f"Return type mismatch: {variable.type} and {own}", "cast one of them", span
                )
            if own != variable.type:
                found = self.retyped[variable] = builder.variable(variable.name, own)
        if not isinstance(value, Const):
            self.numbers.pop(variable, None)
        elif numbers is not None:
            self.numbers[found] = [*numbers, value]
        return found

    def end(self, builder: Builder, span: Span) -> None:
        """The end of a way that no `return` ends."""
        origin = builder.source.origin(builder.source.definition, file=builder.file)
        note = Note(replace(origin, comments=(), blank_before=False).noted(NOTHING))
        builder.statements.append(note)
        self.ends.append((note, span))

    def settle(self, builder: Builder) -> None:
        """Gives what was returned before its type was known that type, in the function's statements; see the class."""
        self._settle_numbers(builder.statements)
        parts = parts_of(self.value, self.name) if self.value not in (None, Const(None)) else []
        replaced: dict[Statement, Statement | None] = {}
        added: dict[tuple[Statement, bool], list[Statement]] = {}
        for note, span in self.ends:
            replaced[note] = None
            added[note, True] = [self._nothing(builder, note, part.value, span) for part in parts]
        if replaced:
            builder.statements[:] = with_replaced(tuple(builder.statements), replaced, added)

    def _nothing(self, builder: Builder, note: Note, target: Value, span: Span) -> Statement:
        """Assigns to a part of the result what it is at the end of a way that returns nothing."""
        if not isinstance(target, Use) or target.type.is_pointer:
            raise self._mismatch(builder, "a value on some ways and none on others", span)
        zero: Expr = to_expr(Const(0), span, target.type.element)
        return Assign(note.origin, (target.variable,), broadcast_to(zero, target.type.shape, span))

    def _settle_numbers(self, statements: list[Statement]) -> None:
        replaced: dict[Statement, Statement | None] = {}
        for one in every_statement(tuple(statements)) if self.retyped else ():
            if isinstance(one, Assign) and isinstance(one.value, Literal) and one.target in self.retyped:
                target, number = one.target, one.value
                while target in self.retyped:
                    target = self.retyped[target]
                value = Const(number.value, number.symbol, number.base)
                typed = to_expr(value, number.span or one.origin.span, target.type.element)
                replaced[one] = Assign(one.origin, (target,), typed)
        if replaced:
            statements[:] = with_replaced(tuple(statements), replaced)

    def _differing(self, builder: Builder, one: Value, other: Value, span: Span) -> DTypeError:
        if any(isinstance(value, Const) and value.value is None for value in (one, other)):
            return self._mismatch(builder, "a value on some ways and none on others", span)
        cause = f"{builder.source.function.__name__} returns different compile-time values"
        return self._mismatched(
            builder, cause, "choose between them by a condition that is known at compile time", span
        )

    def _mismatch(self, builder: Builder, what: str, span: Span) -> DTypeError:
        cause = f"{builder.source.function.__name__} returns {what}"
        return self._mismatched(builder, cause, "end every way with a return of one type", span)

    def _mismatched(self, builder: Builder, cause: str, remedy: str, span: Span) -> DTypeError:
        self.mismatch = DTypeError(cause, span, remedy, builder.calls)
        return self.mismatch


def _holds(type_: ValueType, number: Const) -> bool:
    """Whether a number can be a scalar of a type without being another number."""
    element = type_.element
    if type_.is_tile or not isinstance(element, DType) or element.is_fp8():
        return False
    try:
        return adapted(number.value, element) == element
    except DTypeError:
        return False
