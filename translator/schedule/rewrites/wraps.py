"""Takes out wrap-arounds that only keep addresses inside of an array, where nobody sees what lies beyond.

`offs_m = (pid * BLOCK_M + tl.arange(0, BLOCK_M)) % M` makes loads past the last row safe, and hides that the rows are a
box. Where stores let through rows below M alone (analysis/demand.py), the rows beyond need not be loaded at all: the
index becomes `pid * BLOCK_M + tl.arange(0, BLOCK_M)`, and every load that it leads to gets `offs_m < M` in its mask. The
same goes for `tl.where(offs < M, offs, 0)` and `tl.minimum(offs, M - 1)`.

In: a typed kernel. Out: the kernel without such wrap-arounds.
"""

from __future__ import annotations

from dataclasses import replace

from ...analysis.affine import NotAffineError, build, scalar_part
from ...analysis.box_dimensions import Site
from ...analysis.demand import Bound, Demand, axes_of, bound_at, carried_by, find_demand
from ...analysis.facts import Facts, find_facts
from ...analysis.induction import closed_forms
from ...analysis.signs import NOTHING, find_signs
from ...frozen import frozen
from ...ir.nodes import Assign, Call, CallFunction, Effect, Expr, Kernel, Note, Statement, Use, Variable
from ...ir.rewrite import with_operands, with_replaced
from ...ir.structured import is_elementwise
from ...ir.types import ValueType
from ...ir.walk import expressions, say_the_same, statements, subexpressions, used_variables
from ...language.dtypes import int1

WRAPS = ("mod", "where", "minimum")
REMARK = "masked instead of wrapped"


@frozen(eq=False)
class Wrap:
    """One wrap-around.

    Attributes:
      statement: where it stands.
      call: the operation, a tile of integers along one axis.
      index: what it is where it changes nothing.
      condition: where that is so.
      variable: the name of the wrapped index, if it has one that is assigned once.
    """

    statement: Statement
    call: Call
    index: Expr
    condition: Call
    variable: Variable | None

    @property
    def sources(self) -> frozenset[Variable]:
        """The variables whose values the condition is made of."""
        own = (self.variable,) if self.variable else ()
        return frozenset((*used_variables(self.condition), *own))


def without_wraps(kernel: Kernel) -> Kernel:
    """See the module docstring."""
    if not any(
        _is_candidate(part) for s in statements(kernel.body) for e in expressions(s) for part in subexpressions(e)
    ):
        return kernel
    facts = find_facts(kernel)
    demand = find_demand(kernel, facts, closed_forms(kernel, facts))
    wraps = [wrap for s in statements(kernel.body) for e in expressions(s) for wrap in _wraps(s, e, facts)]
    while wraps:
        removal = _Removal(kernel, facts, demand, wraps)
        refused = removal.refused()
        if not refused:
            return replace(kernel, body=with_replaced(kernel.body, removal.replaced()))
        wraps = [wrap for wrap in wraps if wrap not in refused]
    return kernel


# -------------------------------------------------------------------------------------------------------- candidates


def _is_candidate(part: Expr) -> bool:
    wide = [side for side in part.type.shape if side > 1]
    if not isinstance(part, Call) or part.op not in WRAPS or len(wide) != 1 or part.type.is_pointer:
        return False
    return part.type.dtype.is_int_signed() and part.type.dtype.bits >= 32


def _wraps(statement: Statement, expr: Expr, facts: Facts) -> list[Wrap]:
    variable = None
    if isinstance(statement, Assign) and len(statement.targets) == 1 and facts.assignments[statement.target] == 1:
        variable = statement.target
    found = []
    for part in subexpressions(expr):
        if isinstance(part, Call) and _is_candidate(part):
            index, condition = _without(part)
            if isinstance(condition, Call):
                found.append(Wrap(statement, part, index, condition, variable if _is_whole(expr, part) else None))
    return found


def _is_whole(expr: Expr, part: Expr) -> bool:
    while isinstance(expr, Call) and expr.op == "hint":
        expr = expr.args[0]
    return expr is part


def _without(call: Call) -> tuple[Expr, Expr]:
    """The index that a wrap-around leaves as it is, and where it does."""
    boolean = call.type.with_element(int1)
    match call.op:
        case "mod":
            return call.args[0], Call(boolean, "lt", call.args, span=call.span)
        case "minimum":
            return call.args[0], Call(boolean, "le", call.args, span=call.span)
    return call.args[1], call.args[0]


# -------------------------------------------------------------------------------------------------------- the removal

Tainted = dict[Variable, dict[tuple[Wrap, int], None]]  # which axis of a tile follows which wrapped index


class _Removal:
    """What follows from taking out some wrap-arounds, and why not all of them can be."""

    def __init__(self, kernel: Kernel, facts: Facts, demand: Demand, wraps: list[Wrap]) -> None:
        """Follows the wrapped indices to the loads that use them."""
        self.kernel, self.facts, self.demand, self.induction = kernel, facts, demand, demand.induction
        self.wraps = {id(wrap.call): wrap for wrap in wraps}
        self.stale: set[Wrap] = set()
        self.tainted: Tainted = {}
        while self._spread():
            pass

    def refused(self) -> set[Wrap]:
        """The wrap-arounds that must stay."""
        refused = set(self.stale) | {wrap for wrap in self.wraps.values() if not self._is_unseen(wrap)}
        masked: set[Wrap] = set()
        for statement in statements(self.kernel.body):
            for wrap, axis in self._followed(statement):
                # One load is enough to refuse: a search has as many loads as wraps, each with a long value.
                if wrap not in refused:
                    (masked if self._can_mask(statement, wrap, axis) else refused).add(wrap)
        return refused | {wrap for wrap in self.wraps.values() if wrap not in masked}  # no load, nothing to gain

    def replaced(self) -> dict[Statement, Statement]:
        """Every statement that changes, by the one in the kernel."""
        result: dict[Statement, Statement] = {}
        for statement in statements(self.kernel.body):
            after = self._masked(statement)
            if isinstance(after, Assign):
                after = self._assigned(after)
            elif isinstance(after, Effect) and isinstance(call := self._unwrapped(after.call), Call):
                after = replace(after, call=call)
            if not say_the_same(after, statement):
                result[statement] = after
        return result

    def _assigned(self, statement: Assign) -> Statement:
        """An assignment whose value no longer wraps around; nothing is left where the value is the name's own."""
        value = self._unwrapped(statement.value)
        if value is statement.value or not is_elementwise(value):
            return replace(statement, value=value)
        origin = statement.origin.noted(REMARK)
        if isinstance(value, Use) and value.variable is statement.targets[0]:
            return Note(origin)
        return replace(statement, origin=origin, value=value)

    def _unwrapped(self, expr: Expr) -> Expr:
        if id(expr) in self.wraps:
            return self._unwrapped(self.wraps[id(expr)].index)
        if isinstance(expr, (Call, CallFunction)):
            return with_operands(expr, tuple(self._unwrapped(arg) for arg in expr.args))
        return expr

    # ------------------------------------------------------------------------------------------------- who is tainted

    def _spread(self) -> bool:
        changed = False
        for statement in statements(self.kernel.body):
            if not isinstance(statement, Assign):
                continue
            found = dict(self._followed(statement))
            if is_elementwise(statement.value):
                found = self._taint(statement.value, statement)
            elif isinstance(statement.value, Call) and statement.value.op != "load":
                for arg in statement.value.args:  # rows and columns of a product; nothing else keeps its axes
                    found |= self._taint(arg, statement)
            for target in statement.targets:
                known = self.tainted.setdefault(target, {})
                changed |= not found.keys() <= known.keys()
                known |= found
        return changed

    def _taint(self, expr: Expr, statement: Statement) -> dict[tuple[Wrap, int], None]:
        """The wrapped indices that an expression follows, with the axes."""
        found: dict[tuple[Wrap, int], None] = {}
        if isinstance(expr, Use):
            found = dict(self.tainted.get(expr.variable, {}))
            stale = carried_by(expr.variable, statement, self.demand) if found else frozenset()
            self.stale |= {wrap for wrap, _ in found if wrap.sources & stale}
            return found
        for arg in expr.args if isinstance(expr, (Call, CallFunction)) else ():
            axes = axes_of(expr, arg)
            found |= {(wrap, axes[axis]): None for wrap, axis in self._taint(arg, statement) if axis in axes}
        if id(expr) in self.wraps:
            axis = next(number for number, side in enumerate(expr.type.shape) if side > 1)
            found[self.wraps[id(expr)], axis] = None
        return found

    def _followed(self, statement: Statement) -> dict[tuple[Wrap, int], None]:
        """The wrapped indices that the addresses of a load of a tile follow."""
        if not isinstance(statement, Assign) or not isinstance(statement.value, Call) or statement.value.op != "load":
            return {}
        return {key: None for arg in statement.value.args for key in self._taint(arg, statement)}

    # -------------------------------------------------------------------------------------------------- what is legal

    def _is_unseen(self, wrap: Wrap) -> bool:
        """Whether nothing sees the index where it wraps."""
        bounds = self.demand.parts.get(id(wrap.call), {})
        return any(self._bound(wrap, wrap.condition, wrap.statement, axis) is one for axis, one in bounds.items())

    def _bound(self, wrap: Wrap, condition: Expr, statement: Statement, axis: int) -> Bound | None:
        """The bound that a condition, made of what held at the wrap-around, sets at a statement along an axis."""
        value = self.induction.value_from(condition, wrap.statement, statement)
        try:
            found, bound = bound_at(value, statement, self.demand) if value is not None else (None, None)
        except NotAffineError:
            return None
        return bound if found == axis else None

    def _can_mask(self, load: Statement, wrap: Wrap, axis: int) -> bool:
        """Whether the load may leave out what lies beyond, and can say so."""
        if not isinstance(load, Assign) or not self._never_negative(wrap, load):
            return False
        condition = _along(wrap.condition, axis, load.target.type)
        wanted = self.demand.variables.get(load.target, {}).get(axis)
        if condition is None or wanted is None:
            return False
        return self._bound(wrap, condition, load, axis) is wanted

    def _never_negative(self, wrap: Wrap, load: Assign) -> bool:
        """Whether the index starts at 0 or above, so that below its bound it is what it wraps to."""
        site = Site(load, self.kernel, self.facts, self.induction)
        value = self.induction.value_from(wrap.index, wrap.statement, load)
        try:
            terms = site.numeric.sum(value) if value is not None else None
        except NotAffineError:
            return False
        if terms is None:
            return False
        signs = find_signs(site)
        return signs.needed(build(scalar_part(terms))) == NOTHING

    # ------------------------------------------------------------------------------------------------------- the masks

    def _masked(self, statement: Statement) -> Statement:
        """A load with a mask of what lies within all indices that it follows."""
        followed = self._followed(statement)
        if not followed or not isinstance(statement, Assign) or not isinstance(statement.value, Call):
            return statement
        call = statement.value
        mask = call.args[1] if len(call.args) > 1 else None
        for wrap, axis in followed:
            part = _along(self._spelled(wrap, statement), axis, call.type)
            if part is not None:
                mask = part if mask is None else Call(part.type, "and", (mask, part), span=call.span)
        args = (call.args[0], mask, *call.args[2:]) if mask is not None else call.args
        return replace(statement, value=replace(call, args=args))

    def _spelled(self, wrap: Wrap, load: Statement) -> Expr:
        """The condition in names that still mean the same at the load, the index's own first; written out otherwise."""
        choices: list[Expr] = [wrap.condition]
        if wrap.variable is not None and wrap.call.op != "where":
            index = Use(wrap.variable.type, wrap.variable, span=wrap.call.span)
            choices.insert(0, replace(wrap.condition, args=(index, *wrap.condition.args[1:])))
        now, before = (self.induction.versions[place] for place in (load, wrap.statement))
        for choice in choices:
            used = set(used_variables(choice))
            own = now.get(wrap.variable) if wrap.variable in used else None
            if wrap.variable in used and (own is None or own.statement is not wrap.statement):
                continue
            if all(now.get(variable) is before.get(variable) for variable in used - {wrap.variable}):
                return choice
        value = self.induction.value_from(wrap.condition, wrap.statement, load)
        if value is None:
            raise ValueError("a wrap-around that should have been refused")
        return value


def _along(condition: Expr, axis: int, type_: ValueType) -> Expr | None:
    """A condition along one axis as a mask of a tile; None where its shape does not fit."""
    result = condition
    wanted = type_.shape
    if condition.type.rank == 1 and len(wanted) > 1:
        for place in range(len(wanted)):
            if place != axis:
                shape = (*result.type.shape[:place], 1, *result.type.shape[place:])
                result = Call(
                    result.type.with_shape(shape), "expand_dims", (result,), (("axis", place),), span=result.span
                )
    if result.type.rank != len(wanted) or axis >= len(wanted) or result.type.shape[axis] != wanted[axis]:
        return None
    boolean = ValueType(int1, wanted)
    return result if result.type.shape == wanted else Call(boolean, "broadcast", (result,), span=result.span)
