"""Names where ways through a program meet again: after the branches of an `if`, and at the end of a loop's body.

A name has one variable on all ways. Where one way gave it another variable of the same type, as for a value that was of
another type in between, that way ends in a copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..diagnostics import DTypeError, Span
from ..ir.nodes import Assign, Expr, Origin, Statement, Use, Variable
from ..ir.walk import used_variables
from .aggregates import AGGREGATES, parts_of
from .builder import Builder
from .carried import find_changes
from .draft import Scope
from .ranges import is_nonnegative
from .shapes import describe
from .values import Const, Undefined, Value


def merged(
    builder: Builder, before: Scope, after: tuple[Scope, Scope], block: list[Statement], origin: Origin, span: Span,
    ended: set[str],
) -> Scope:  # fmt: skip
    """The names after an `if` of which either branch may have run.

    Args:
      builder: the function's builder.
      before: the names before it.
      after: those after either branch.
      block: the second branch, which gets the copies.
      origin: the `if`.
      span: its condition.
      ended: names that the branches annotated as compile-time values of their own.
    """
    names, (then, otherwise) = dict(before), after
    copies: list[tuple[str, Value, Value]] = []
    for name in {**then, **otherwise}:
        one, other = then.get(name), otherwise.get(name)
        if one == other and one is not None:
            names[name] = one
        elif one is None or other is None:
            names[name] = Undefined(span, "is defined in only one branch of the if")
        elif isinstance(one, Undefined) or isinstance(other, Undefined):
            names[name] = one if isinstance(one, Undefined) else other
        elif name in ended and all(isinstance(v, Const) for v in (one, other)):
            why = "is another constexpr in either branch of the if, and ends with it"
            names[name] = Undefined(span, why, "define it in front of the if, or choose between run-time values")
        elif name not in builder.constexpr_names and any(isinstance(v, Const) and v.is_number for v in (one, other)):
            # The variable of a static loop in a branch, which hardly anybody reads again.
            why = "holds what loops over it left, which is not the same after both branches of the if"
            names[name] = Undefined(span, why, f"assign {name} behind the if, or give it another name in the loops")
        else:
            _check_types(builder, name, one, other, span)
            names[name] = one
            copies.append((name, one, other))
    copy_over(builder, copies, block, origin)
    return names


def _check_types(builder: Builder, name: str, one: Value, other: Value, span: Span) -> None:
    if isinstance(one, AGGREGATES) or isinstance(other, AGGREGATES):
        find_changes(builder, name, one, other, "in only one branch of the if", span)
        return
    types = [getattr(value, "type", None) or describe(value) for value in (one, other)]
    if types[0] != types[1]:
        cause = f"Mismatched type for {name} between then block ({types[0]}) and else block ({types[1]})"
        remedy = f"convert {name} to one type in both branches"
        if name in builder.constexpr_names:
            remedy = (
                f"a constexpr cannot follow a condition that is known at run time: assign to another name than {name}"
            )
        raise DTypeError(cause, span, remedy, builder.calls)


def copy_over(
    builder: Builder, names: Sequence[tuple[str, Value, Value]], block: list[Statement], origin: Origin
) -> None:
    """Ends a block with what puts the present values of names into the variables that hold them elsewhere.

    `names` gives for each its value elsewhere and its value here.
    """
    pending: dict[Variable, Expr] = {}
    for name, elsewhere, here in names:
        for number, (one, other) in enumerate(zip(parts_of(elsewhere, name), parts_of(here, name), strict=True)):
            if not isinstance(one.value, Use) or not isinstance(other.value, Expr) or one.value == other.value:
                continue
            target = one.value.variable
            if target in builder.protected:
                continue
            pending[target] = other.value
            if target in builder.nonnegative and not is_nonnegative(builder, other.value):
                builder.nonnegative.discard(target)
                builder.signed.add((name, number))
    where = block[-1].origin if block else origin
    block += [Assign(where, (target,), value) for target, value in _read_before_written(builder, pending, block, where)]


def _read_before_written(
    builder: Builder, pending: Mapping[Variable, Expr], block: list[Statement], where: Origin
) -> list[tuple[Variable, Expr]]:
    """The copies, after copies to new variables of values that read a target."""
    found = []
    for target, value in pending.items():
        if any(variable in pending for variable in used_variables(value)):
            kept = builder.variable(f"{target.name}_kept", value.type)
            block.append(Assign(where, (kept,), value))
            value = Use(kept.type, kept)
        found.append((target, value))
    return found
