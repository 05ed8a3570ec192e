"""Values that change regularly from trip to trip: `ptrs += BLOCK_K * stride` is `ptrs + k * BLOCK_K * stride`.

In: a typed `Kernel`. Out: an `Induction`, which tells what an expression's value is at a statement, in terms of variables
that hold the same at that statement. For every place it is known which assignment gave a variable its value; where that
is "an earlier trip of this loop", the variable has a closed form if the loop changes it once, at the top level of its body,
by adding something that the loop does not change.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import field, replace
from enum import Enum, auto

from ..frozen import frozen
from ..ir.nodes import (
    Assign,
    Call,
    CallFunction,
    Expr,
    For,
    If,
    Kernel,
    Literal,
    Statement,
    Use,
    Variable,
    While,
)
from ..ir.structured import is_elementwise
from ..ir.types import ValueType
from ..ir.walk import assigned_variables, bodies, nested, statements, top_statements, used_variables
from ..language.dtypes import DType
from .affine import build, divide, minus, times
from .coordinates import Reader
from .facts import Facts


class Source(Enum):
    """How a variable came to its value."""

    ASSIGNED = auto()  # by an assignment, or as a loop's variable
    CARRIED = auto()  # before the loop, or in an earlier trip of it
    MERGED = auto()  # in one of several branches, or in a loop that has ended


@frozen(eq=False)
class Version:
    """One value of a variable: where it came from. Compared by identity."""

    source: Source
    statement: Statement


Versions = dict[Variable, Version]


@frozen
class Step:
    """`variable = variable ± amount`, once per trip."""

    update: Assign
    amount: Expr
    negative: bool


LONGEST = 1000  # variables that stand in a value


class _NoClosedFormError(Exception):
    pass


@frozen
class Induction:
    """See the module docstring.

    Attributes:
      versions: the version of every variable before a statement.
      steps: the regular changes of a loop.
      changed: the variables that a loop assigns.
      kept: tiles that stay by name where they hold their value.
      totals: by a step's update what stands for the sum of its amounts in all trips so far, where these differ.
    """

    versions: dict[Statement, Versions]
    steps: dict[Statement, dict[Variable, Step]]
    changed: dict[Statement, frozenset[Variable]]
    kept: frozenset[Variable] = frozenset()
    totals: Mapping[Statement, Expr] = field(default_factory=dict)

    def value_at(self, expr: Expr, statement: Statement) -> Expr | None:
        """The value of an expression at a statement that it stands in.

        Tiles with an elementwise definition are replaced by it, variables that change regularly by their closed form.
        Scalars that hold their value at the statement stay as they are.

        Returns:
          None when a tile, or what does not hold its value, changes from trip to trip and has no closed form.
        """
        return self.value_from(expr, statement, statement)

    def value_from(self, expr: Expr, place: Statement, statement: Statement) -> Expr | None:
        """The value that an expression has at an earlier `place`, in terms of what variables hold at `statement`."""
        try:
            return _Values(self).of(expr, place, statement, frozenset())
        except _NoClosedFormError:
            return None

    def definition(self, variable: Variable, statement: Statement) -> Expr | None:
        """The value that a variable was last assigned, in terms of what variables hold at `statement`.

        Returns:
          None for parameters, loop variables, results of structured operations, and what has no such value.
        """
        version = self.versions[statement].get(variable)
        value = version and _assigned_value(version)
        return self.value_from(value, version.statement, statement) if value and version else None


class _Values:
    """The value of one expression, unless it is too long: a chain whose links mention the one before twice doubles."""

    def __init__(self, induction: Induction) -> None:
        self.induction, self.room = induction, LONGEST

    def of(self, expr: Expr, at: Statement, wanted: Statement, avoid: frozenset[Variable]) -> Expr:
        """The value that an expression has before `at`, in terms of what variables hold at `wanted`."""
        if isinstance(expr, Use):
            return self._variable(expr, at, wanted, avoid)
        if isinstance(expr, (Call, CallFunction)):
            args = tuple(self.of(arg, at, wanted, avoid) for arg in expr.args)
            return expr if all(map(operator.is_, args, expr.args)) else replace(expr, args=args)
        return expr

    def _variable(self, use: Use, at: Statement, wanted: Statement, avoid: frozenset[Variable]) -> Expr:
        """The value of a variable before `at`; not in terms of the variables in `avoid`."""
        version = self.induction.versions[at].get(use.variable)
        if version is None:
            return use  # a parameter
        self.room -= 1
        if self.room < 0:
            raise _NoClosedFormError
        holds = self.induction.versions[wanted].get(use.variable) is version and use.variable not in avoid
        if version.source is Source.CARRIED:
            try:
                return self._closed_form(use, version.statement, wanted, avoid)
            except _NoClosedFormError:
                if holds and not use.type.is_tile:
                    return use
                raise
        value = _assigned_value(version)
        is_result = version.source is Source.ASSIGNED and value is None  # of a structured operation
        by_name = is_result or use.variable in self.induction.kept or not (use.type.is_tile or self._is_update(version))
        if holds and by_name:
            return use
        if value is None:
            raise _NoClosedFormError
        try:
            found = self.of(value, version.statement, wanted, avoid)
            return _simplified(found) if self._is_update(version) else found
        except _NoClosedFormError:
            if holds and not use.type.is_tile:
                return use
            raise

    def _is_update(self, version: Version) -> bool:
        return any(
            step.update is version.statement for steps in self.induction.steps.values() for step in steps.values()
        )

    def _closed_form(self, use: Use, loop: Statement, wanted: Statement, avoid: frozenset[Variable]) -> Expr:
        step = self.induction.steps.get(loop, {}).get(use.variable)
        if step is None or not isinstance(loop, For) or loop.variable in avoid:
            raise _NoClosedFormError
        if self.induction.versions[wanted].get(loop.variable) is not self.induction.versions[step.update].get(
            loop.variable
        ):
            raise _NoClosedFormError
        first = self._variable(use, loop, wanted, avoid)
        total = self.induction.totals.get(step.update)
        if total is not None:
            return _moved(first, _broadcast(total, step.amount.type.with_element(total.type.element)), negative=False)
        amount = self.of(step.amount, step.update, wanted, avoid | self.induction.changed[loop])
        start, stride = (
            self.of(e, loop, wanted, avoid | self.induction.changed[loop]) for e in (loop.start, loop.step)
        )
        return _advanced(first, amount, step.negative, Use(loop.variable.type, loop.variable), start, stride)


def closed_forms(kernel: Kernel, facts: Facts) -> Induction:
    """Finds what every loop of a kernel changes regularly; of loops that assign nothing twice there is nothing to find."""
    versions: dict[Statement, Versions] = {}
    _follow(kernel.body, {}, versions)
    steps: dict[Statement, dict[Variable, Step]] = {}
    changed: dict[Statement, frozenset[Variable]] = {}
    for loop in statements(kernel.body):
        if isinstance(loop, For):
            inside = [v for s in statements(loop.body) for v in assigned_variables(s)]
            changed[loop] = frozenset((*inside, loop.variable))
            steps[loop] = {
                update.target: step
                for update in top_statements(loop.body)
                if isinstance(update, Assign) and facts.assignments[update.targets[0]] > 1
                if (step := as_step(update)) and inside.count(update.target) == 1
            }
    return Induction(versions, steps, changed)


def _follow(block: tuple[Statement, ...], now: Versions, versions: dict[Statement, Versions]) -> Versions:
    """Records the versions before every statement of a block; returns those after it."""
    for statement in block:
        versions[statement] = now
        match statement:
            case Assign():
                now = now | dict.fromkeys(statement.targets, Version(Source.ASSIGNED, statement))
            case If():
                one, other = (_follow(body, now, versions) for body in bodies(statement))
                merged = Version(Source.MERGED, statement)
                now = {v: one[v] if one.get(v) is other.get(v) else merged for v in {**one, **other}}
            case For() | While():
                carried = [v for s in nested(statement) for v in assigned_variables(s)]
                within = now | dict.fromkeys(carried, Version(Source.CARRIED, statement))
                for variable in assigned_variables(statement):
                    within[variable] = Version(Source.ASSIGNED, statement)
                for body in bodies(statement):
                    within = _follow(body, within, versions)
                left = Version(Source.MERGED, statement)
                now = now | dict.fromkeys((*carried, *assigned_variables(statement)), left)
            case _:
                for body in bodies(statement):
                    now = _follow(body, now, versions)
    return now


def as_step(update: Assign) -> Step | None:
    """An assignment as a regular change of its variable, if it is one."""
    value = update.value
    while isinstance(value, Call) and value.op == "hint":
        value = value.args[0]
    if len(update.targets) != 1 or not isinstance(value, Call) or value.op not in ("add", "sub", "ptr_add"):
        return None
    own = [isinstance(arg, Use) and arg.variable is update.target for arg in value.args]
    if own.count(True) != 1 or (value.op == "sub" and not own[0]):
        return None
    amount = value.args[own.index(False)]
    uses_itself = update.target in used_variables(amount)
    return None if uses_itself or not amount.type.element.is_int() else Step(update, amount, value.op == "sub")


def _assigned_value(version: Version) -> Expr | None:
    """What a version was assigned, when that is elementwise."""
    statement = version.statement
    if version.source is not Source.ASSIGNED or not isinstance(statement, Assign) or len(statement.targets) != 1:
        return None
    return statement.value if is_elementwise(statement.value) else None


# -------------------------------------------------------------------------------------------------- the closed form


def _advanced(first: Expr, amount: Expr, negative: bool, trip: Use, start: Expr, step: Expr) -> Expr:
    """`first ± trips * amount`, where `(trip - start) / step` trips are over."""
    if first.type.is_pointer and trip.type.dtype.bits > amount.type.dtype.bits:
        amount = _cast(amount, trip.type.dtype)
    scalar = amount.type.with_shape(())
    each = without_broadcasts(amount)
    if isinstance(each, Literal):
        each = replace(each, type=scalar)
    if each.type.is_tile:
        trips = _broadcast(_product(Literal(scalar, 1), trip, start, step), amount.type)
        total: Expr = Call(amount.type, "mul", (trips, amount))
    else:
        total = _broadcast(_product(each, trip, start, step), amount.type)
    return _moved(first, total, negative)


def _moved(first: Expr, total: Expr, negative: bool) -> Expr:
    """`first ± total`."""
    if first.type.is_pointer:
        return Call(first.type, "ptr_add", (first, Call(total.type, "neg", (total,)) if negative else total))
    return _simplified(Call(first.type, "sub" if negative else "add", (first, total)))


def without_broadcasts(amount: Expr) -> Expr:
    """What the elements of a tile that are all the same are, or the tile."""
    while isinstance(amount, Call) and amount.op == "broadcast":
        amount = amount.args[0]
    return amount


def _simplified(expr: Expr) -> Expr:
    """A scalar integer with like terms put together."""
    if expr.type.is_tile or expr.type.is_pointer:
        return expr
    return build(Reader().sum(expr), expr.type.dtype)


def _product(each: Expr, trip: Use, start: Expr, step: Expr) -> Expr:
    """`trips * each`, a scalar of the type of `each`."""
    reader = Reader()
    distance = minus(reader.sum(trip), reader.sum(start))
    amount, steps = reader.sum(each), reader.sum(step)
    per_unit, rest = divide(amount, steps)
    if not rest:  # trips * amount = distance / step * amount
        return build(times(distance, per_unit), each.type.dtype)
    trips = Call(trip.type, "floordiv", (build(distance, trip.type.dtype), build(steps, trip.type.dtype)))
    return build(times(reader.sum(trips), amount), each.type.dtype)


def _broadcast(scalar: Expr, type_: ValueType) -> Expr:
    return Call(type_, "broadcast", (scalar,)) if type_.is_tile else scalar


def _cast(expr: Expr, element: DType) -> Expr:
    """An integer in a wider type, below the broadcasts."""
    type_ = expr.type.with_element(element)
    if isinstance(expr, Literal):
        return replace(expr, type=type_)
    if isinstance(expr, Call) and expr.op == "broadcast":
        return replace(expr, type=type_, args=(_cast(expr.args[0], element),))
    return Call(type_, "cast", (expr,))
