"""The state of one translation: names in scope, statements written so far, variables made.

`Builder` binds names and writes statements; what syntax means is in `statements.py` and `expressions.py`, what functions
of the language mean in `builtins_*.py`.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..analysis.induction import without_broadcasts
from ..artifact import Options, Target
from ..diagnostics import DTypeError, NotConstexprError, Span, UndefinedVariableError, UnsupportedLanguageConstruct
from ..ir.c_names import can_be_global
from ..ir.nodes import (
    LOADED,
    Assign,
    Call,
    DeviceFunction,
    Effect,
    Expr,
    Inlined,
    Literal,
    Note,
    Origin,
    Statement,
    Use,
    Variable,
)
from ..ir.rewrite import renamed, substituted
from ..ir.static_loops import LoopPlace
from ..ir.structured import assigns, reads_what_it_writes
from ..ir.symbols import Name
from ..ir.types import Dim, ValueType
from ..ir.walk import (
    MOVES,
    REARRANGES,
    assigned_variables,
    read_inside,
    statements,
    subexpressions,
    top_statements,
    used_variables,
)
from ..language.hints import MAKE_CONSTANT, no_form, no_side
from ..outside import Outside, outer_value
from .aggregates import AGGREGATES, decayed
from .carried import bind_parts
from .draft import Draft
from .ranges import is_nonnegative
from .shapes import describe, of_fair_size, to_expr
from .source import Source
from .values import Const, Method, NotElementwiseError, Tuple, Undefined, Value, is_static, known_value, with_wrapper
from .watched import is_watched, watch


class Builder(Draft):
    """See the module docstring. A function that is inlined or tried as a device function gets a builder of its own."""

    def __init__(self, source: Source, options: Options, target: Target, parent: Builder | None = None) -> None:
        """Starts with an empty scope. What is set here stays what it is where a loop or branch is translated again."""
        if parent is None:
            super().__init__()
        else:
            super().__init__(
                nonnegative=parent.nonnegative,
                filled=parent.filled,
                data=parent.data,
                counter=parent.counter,
                loop_depth=parent.loop_depth,
                trip=parent.trip,
            )
        self.source, self.options, self.target, self.parent = source, options, target, parent
        self.root: Builder = parent.root if parent else self
        self.file = "" if source.function.path == self.root.source.function.path else source.function.file
        self.outside: Outside = parent.outside if parent else Outside(source.function)
        self.calls: tuple[Span, ...] = parent.calls if parent else ()
        self.scalar_only: bool = parent.scalar_only if parent else False
        self.decided: set[Variable] = set()  # what conditions and bounds of loops read
        # By the identity of what a name is of, and the name: (reader or owner, name, value).
        self.globals: dict[tuple[int, str], tuple[Any, str, Any]] = parent.globals if parent else {}
        # Floats that compile-time names stand for, and None for names that stand for something else too.
        self.numbers: dict[str, float | None] = parent.numbers if parent else dict.fromkeys(source.function.arg_names)
        self.functions: dict[Any, DeviceFunction] = parent.functions if parent else {}
        self.result: Any = None  # where an inlined function's returns go
        self.following: tuple[Sequence[Any], ...] = ()  # what stands behind the blocks around, outermost first
        self.written_out: dict[int, int] = {}  # how often statements behind an `if` with a `return` were, by their ids
        self.unrolled = 0  # loops around the statement that are written out
        self.static_loops: dict[LoopPlace, int] = {}  # those of tl.static_range, with a number for each
        self.loops_around: tuple[LoopPlace, ...] = parent.loops_around if parent else ()
        self.written_out_loops: frozenset[LoopPlace] = frozenset()  # those of them whose trips are known to differ
        self.returned: list[Value] = []  # what a device function returns
        self.results: set[Variable] = set()  # what functions inlined in this statement return, each in one place
        # Parts of bundles (see carried.py), by the bundle's name and the part's number: those that loops and branches
        # change, and those of them that may become negative. Such finds are why a translation is repeated.
        self.changing: set[tuple[str, int]] = set()
        self.signed: set[tuple[str, int]] = set()

    # -------------------------------------------------------------------------------------------------- variables

    def variable(self, name: str, type_: ValueType) -> Variable:
        """A new variable."""
        self.counter[0] += 1
        return Variable(name, type_, self.counter[0])

    def lookup(self, name: str, span: Span) -> Value:
        """What a name stands for.

        Raises:
          UndefinedVariableError: when not every way through the program defines it.
        """
        value = self.scope.get(name)
        if isinstance(value, Undefined):
            raise UndefinedVariableError(
                f"{name} {value.why} (line {value.span.line})",
                span,
                value.remedy or f"assign {name} before the branch or loop",
                self.calls,
            )
        if value is not None:
            return value
        return self._outer_value(name, span)

    def _outer_value(self, name: str, span: Span) -> Value:
        from ..language.constexpr import unwrap

        function = self.source.function
        try:
            found = outer_value(function, name)
        except LookupError:
            cause, hint = self._not_defined(name)
            raise UndefinedVariableError(cause, span, hint, self.calls) from None
        watched = is_watched(unwrap(found))
        if watched:
            watch(self, function, name, found)
        self.outside.read(function, "global", name, found, function.__module__ if watched else "")
        return self.with_name(name, known_value(found))

    def with_name(self, name: str, value: Value) -> Value:
        """A compile-time value; a float that is always the same is written by its name."""
        number = value.value if isinstance(value, Const) and value.symbol is None else None
        if type(number) is not float or not math.isfinite(number) or not can_be_global(name):
            return value
        same = repr(self.numbers.setdefault(name, number)) == repr(number)
        return Const(number, Name(name)) if same else value

    def _not_defined(self, name: str) -> tuple[str, str]:
        from ..language.member_hints import not_defined
        from .assigned import assigned_names

        known = (*self.scope, *self.source.function.outer_names())
        return not_defined(name, known, assigned_names(self.source.definition))

    def bind(self, name: str, value: Value, span: Span) -> None:
        """`name = value` as a plain assignment: numbers become scalars, run-time values get a variable."""
        stays = is_static(value) if name in self.constexpr_names else isinstance(value, Const) and not value.is_number
        if stays or isinstance(value, Method):
            self.scope[name] = with_wrapper(value, name in self.constexpr_names)
            self.note("compile-time value")
            return
        if isinstance(value, AGGREGATES):
            bind_parts(self, name, decayed(value, span), span)
            return
        self.assign(name, to_expr(value, span))

    def assign(self, name: str, expr: Expr) -> Variable:
        """Assigns a run-time value to the variable of that name, or to a new one."""
        old = self.scope.get(name)
        target = None
        if isinstance(old, Use) and old.variable not in self.protected and old.type == expr.type:
            target = old.variable
            straight = self.block_of.get(target) == self.block
            absorbed = target.type.is_tile and (target.type.is_pointer or not target.type.dtype.is_floating())
            if absorbed and not target.type.is_pointer and target.type.dtype.bits > 1:
                absorbed = not (name in self.mixed or self._is_sum(name, target, expr))
            if straight and (absorbed or (target.type.is_tile and _moves_elements(expr))):
                target = (
                    None  # a version of its own: its expression can stand where it is used, other threads can hold it
                )
        if target is None:
            target = self.reuse(name, expr.type) or self.variable(name, expr.type)
            self.block_of[target] = self.block
        self.write(target, expr)
        if name in self.source.assigned_once and is_nonnegative(self, expr):
            self.nonnegative.add(target)
        self.scope[name] = Use(target.type, target)
        return target

    def _is_sum(self, name: str, target: Variable, expr: Expr) -> bool:
        """Whether trips of a static loop add data to a number that stands ahead of it, or to what the trip before has made."""
        return name in self.carried and self._is_data(expr) and (target in self.filled or target in self.data)

    def _is_data(self, expr: Expr) -> bool:
        return not self.data.isdisjoint(used_variables(expr))

    def write(self, target: Variable, expr: Expr) -> None:
        """`target = expr`."""
        is_number = isinstance(without_broadcasts(expr), Literal)
        known = self.data if self._is_data(expr) else self.filled if is_number else set[Variable]()
        self.data.discard(target)
        self.filled.discard(target)
        known.add(target)
        if not self.take_over(expr, target) and not self._take_result(expr, target):
            self.statements.append(Assign(self.here, (target,), self._named_as_loaded(expr, target)))

    def _named_as_loaded(self, expr: Expr, target: Variable) -> Expr:
        """Calls what this statement has loaded only to convert it after what it becomes: left_loaded, of whatever pointer."""
        load, name = next(reversed(self.statements), None), f"{target.name}{LOADED}"
        if load is None or not assigns(load, "load") or load.origin is not self.origin or name in self.source.names:
            return expr
        loaded = expr
        while isinstance(loaded, Call) and loaded.op in (*MOVES, "cast"):
            (loaded,) = loaded.args
        if not isinstance(loaded, Use) or loaded.variable is not load.target or load.target.key not in self.temporaries:
            return expr
        called = Variable(name, loaded.type, load.target.key)
        self.statements[-1] = replace(load, targets=(called,))
        return substituted(expr, {load.target: Use(called.type, called, span=loaded.span)})

    def take_over(self, expr: Expr, target: Variable) -> bool:
        """Lets a structured operation of this statement assign to `target` itself instead of to a name of ours."""
        if not isinstance(expr, Use) or expr.variable.key not in self.temporaries:
            return False
        for position in reversed(range(len(self.statements))):
            statement = self.statements[position]
            if statement.origin is not self.origin or not isinstance(statement, Assign):
                return False
            if expr.variable in statement.targets:
                if reads_what_it_writes(statement, target):
                    return False  # `s = tl.sum(x * s)` reads s for every element
                if _mentions(self.statements[position + 1 :], target):
                    return False  # what it holds until then is needed: `a, b = b, tl.load(x_ptr)`
                first = position
                if expr.variable in used_variables(statement.value):  # a product that is added to an earlier one
                    first = next(n for n, s in enumerate(self.statements) if expr.variable in assigned_variables(s))
                    if _mentions(self.statements[first:], target):
                        return False
                self.statements[first:] = renamed(tuple(self.statements[first:]), {expr.variable: target})
                self.temporaries = self.temporaries - {expr.variable.key}
                self.piece_names = self.piece_names - {(expr.variable.name, self.blocks_around)}
                return True
        return False

    def _take_result(self, expr: Expr, target: Variable) -> bool:
        """Lets a function inlined in this statement assign to `target` itself instead of to a variable of that name."""
        if not isinstance(expr, Use) or expr.variable not in self.results or expr.variable.name != target.name:
            return False
        for position in reversed(range(len(self.statements))):
            statement = self.statements[position]
            if statement.origin is not self.origin:
                return False
            if isinstance(statement, Inlined):
                taken = _mentions(self.statements[position + 1 :], target)
                if taken or not _may_assign(statement.body, expr.variable, target):
                    return False
                body = renamed(statement.body, {expr.variable: target})
                self.statements[position] = replace(statement, body=body)
                return True
        return False

    def reuse(self, name: str, type_: ValueType) -> Variable | None:
        """The variable that the other branch of an `if` made for this name, when the type is the same."""
        sibling = self.siblings.get(name)
        return sibling if sibling is not None and sibling.type == type_ else None

    # ------------------------------------------------------------------------------------------------- statements

    @property
    def is_straight(self) -> bool:
        """Whether every way through an inlined function comes to the statement."""
        return bool(self.block == self.result.home)

    @property
    def here(self) -> Origin:
        """The origin of the statement being translated."""
        if self.origin is None:
            raise NotElementwiseError("no statement")
        return self.origin

    def origin_of(self, statement: Any, inner: Any = None) -> Origin:
        """The origin of a statement in the trips that are being written out; `inner` is one of several on a line."""
        return self.source.origin(statement, inner, self.trip, self.file)

    def note(self, text: str) -> None:
        """Records that the statement became no code, and why."""
        self.statements.append(Note(self.here.noted(text)))

    def structured(
        self, op: str, type_: ValueType, args: tuple[Expr, ...], name: str, span: Span, **attributes: Any
    ) -> Expr:
        """A structured operation with one result, named on the spot; a plain assignment takes the name over."""
        (result,) = self.structured_many(op, (type_,), args, (name,), span, **attributes)
        return result

    def structured_many(
        self,
        op: str,
        types: tuple[ValueType, ...],
        args: tuple[Expr, ...],
        names: tuple[str, ...],
        span: Span,
        **attributes: Any,
    ) -> tuple[Expr, ...]:
        """A structured operation with several results."""
        self.not_elementwise()
        targets = tuple(self.variable(self._told_apart(name), type_) for name, type_ in zip(names, types, strict=True))
        call = Call(types[0], op, args, tuple(attributes.items()), span=span)
        self.statements.append(Assign(self.here, targets, call))
        self.temporaries = self.temporaries | {target.key for target in targets}
        self.data.update(target for target in targets if target.type.is_tile)
        return tuple(Use(target.type, target, span=span) for target in targets)

    def _told_apart(self, name: str) -> str:
        """A name for a piece of an expression; one that is taken says what the piece is for: a_starts, b_starts.

        Blocks of which neither stands in the other have the same names for theirs.
        Where the user has a variable x_sum that is assigned something else, a piece of that name is sum_of_x.
        """
        whole, _, what = name.rpartition("_")
        name = f"{what}_of_{whole}" if whole and name in self.source.names - {self.assigned_to} else name
        taken = any(other == name and _is_seen(block, self.blocks_around) for other, block in self.piece_names)
        self.piece_names = self.piece_names | {(name, self.blocks_around)}
        own = self.assigned_to in ("", name) or name.startswith(f"{self.assigned_to}_")
        return name if own or not taken else f"{self.assigned_to}_{name}"

    def effect(self, op: str, args: tuple[Expr, ...], span: Span, **attributes: Any) -> None:
        """A structured operation without a result."""
        from ..language.dtypes import void

        self.not_elementwise()
        self.statements.append(Effect(self.here, Call(ValueType(void), op, args, tuple(attributes.items()), span=span)))

    def unsupported(self, node: Any, kind: str = "") -> UnsupportedLanguageConstruct:
        """The error for a form of Python's that kernels do not have; see `no_form` for what it may be called."""
        cause, remedy = no_form(kind or type(node).__name__)
        return UnsupportedLanguageConstruct(cause, self.source.span(node), remedy, self.calls)

    def not_elementwise(self) -> None:
        """Gives up the attempt to make a device function of scalars, if that is what is going on."""
        if self.scalar_only:
            raise NotElementwiseError

    @contextmanager
    def into_block(self) -> Iterator[list[Statement]]:
        """Writes statements into a new list."""
        before, self.statements = self.statements, []
        block_before, around_before = self.block, self.blocks_around
        self.counter[0] += 1
        self.block = self.counter[0]
        self.blocks_around = (*around_before, self.block)
        try:
            yield self.statements
        finally:
            self.statements, self.block, self.blocks_around = before, block_before, around_before

    # -------------------------------------------------------------------------------------------- compile-time values

    def constant(self, value: Value, what: str, span: Span, remedy: str = MAKE_CONSTANT) -> Any:
        """The Python value of something that must be known at compile time.

        Raises:
          NotConstexprError: when it is not.
        """
        if isinstance(value, Const) or (isinstance(value, Literal) and not value.type.is_tile):  # an item of a tuple
            return value.value
        if isinstance(value, Tuple):
            items = [self.constant(item, what, span, remedy) for item in value.items]
            return namedtuple("Fields", value.fields)(*items) if value.fields else tuple(items)  # type: ignore[misc]
        raise NotConstexprError(
            f"{what} must be known when the kernel is translated, but it is {describe(value)}",
            span,
            remedy,
            self.calls,
        )

    def side(self, value: Value, what: str, span: Span) -> int:
        """A tile's side, with its name.

        Raises:
          NotConstexprError, DTypeError: when it is no positive compile-time integer.
        """
        number = self.constant(value, what, span)
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            cause, remedy = no_side(what, number)
            raise DTypeError(cause, span, remedy, self.calls)
        symbol = value.symbol if isinstance(value, (Const, Literal)) else None
        return Dim(number, symbol)

    def shape(self, value: Value, span: Span) -> tuple[int, ...]:
        """A shape: a tuple or list of sides, or one side."""
        items = value.items if isinstance(value, Tuple) else (value,)
        return of_fair_size(tuple(self.side(item, "a side of the shape", span) for item in items), span)


def _moves_elements(expr: Expr) -> bool:
    """Whether elements of a tile come to other coordinates."""
    return any(isinstance(part, Call) and part.op in REARRANGES for part in subexpressions(expr))


def _mentions(block: Sequence[Statement], variable: Variable) -> bool:
    """Whether some statements read or assign a variable."""
    return variable in read_inside(tuple(block)) or any(
        variable in assigned_variables(statement) for statement in statements(tuple(block))
    )


def _may_assign(body: tuple[Statement, ...], result: Variable, target: Variable) -> bool:
    """Whether a function's body may assign to `target` instead of to `result`: nothing in it needs what `target` held, then.

    That is so where it reads `target` at or before the first assignment only, as written in the caller: `acc = acc * scale + x`.
    """
    assigning = [s for s in statements(body) if result in assigned_variables(s)]
    if not _mentions(body, target):
        return len(assigning) == 1
    line = list(top_statements(body))
    first = next((n for n, s in enumerate(line) if s in assigning), None)
    start = line[first] if first is not None else None
    if first is None or not isinstance(start, Assign) or not all(s in line for s in assigning):
        return False
    assigned = any(target in assigned_variables(s) for some in line[: first + 1] for s in statements((some,)))
    return not assigned and not _mentions(line[first + 1 :], target) and not reads_what_it_writes(start, target)


def _is_seen(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether one of two blocks, by those around them, stands in the other."""
    return all(left == right for left, right in zip(one, other, strict=False))
