"""Prepares dots: operands get names, narrow results are accumulated in fp32, types that the target lacks are widened.

In: a typed kernel. Out: the same kernel in which both operands of every dot are variables or transposes of variables, and
every result is fp32, fp64 or int32.
"""

from __future__ import annotations

from dataclasses import replace

from ...artifact import Target
from ...ir.nodes import Assign, Call, Expr, Kernel, Note, Statement, Use, Variable
from ...ir.rewrite import with_bodies, with_operands, with_statements
from ...ir.structured import assigns
from ...ir.types import ValueType
from ...ir.walk import assignment_counts, expressions, next_key, statements, used_variables
from ...language.dtypes import DType, float16, float32
from ..products.dots import viewed
from ..products.instructions import mma_takes


def prepare_dots(kernel: Kernel, target: Target) -> Kernel:
    """See the module docstring; a kernel without dots is returned as it is."""
    if not any(assigns(statement, "dot") for statement in statements(kernel.body)):
        return kernel
    views = _views(kernel)
    preparation = _Preparation(next_key(kernel), target, views, _read_outside_dots(kernel, views))
    body = preparation.block(kernel.body)
    return kernel if body is kernel.body else replace(kernel, body=body)


def _read_outside_dots(kernel: Kernel, views: dict[Variable, Expr]) -> frozenset[Variable]:
    """Variables that something reads besides dots, as operands; an operand of a dot may be an expression of its own."""
    found: set[Variable] = set()
    for statement in statements(kernel.body):
        for expr in expressions(statement):
            parts: tuple[Expr, ...] = (expr,)
            if isinstance(expr, Call) and expr.op == "dot":
                parts = (*expr.args[2:], *(arg for arg in expr.args[:2] if viewed(arg) is None))
            if isinstance(statement, Assign) and statement.targets[0] in views:
                continue  # what a view shows is read where the view is
            found |= {v for part in parts for v in used_variables(part)}
    for view, shown in reversed(views.items()):  # a view of a view stands behind it
        if view in found:
            found |= set(used_variables(shown))
    return frozenset(found)


def _views(kernel: Kernel) -> dict[Variable, Expr]:
    """Names that stand for another tile seen from another side: `b_columns = b_rows.T`."""
    assignments = assignment_counts(kernel.body)
    views: dict[Variable, Expr] = {}
    for statement in statements(kernel.body):
        if not isinstance(statement, Assign) or len(statement.targets) != 1 or not statement.target.type.is_tile:
            continue
        seen = viewed(statement.value)
        if seen is not None and assignments[statement.target] == assignments[seen.variable] == 1:
            views[statement.target] = statement.value
    return views


class _Preparation:
    """Rewrites blocks; `next_key` numbers the variables that it adds."""

    def __init__(
        self, next_key: int, target: Target, views: dict[Variable, Expr], read_elsewhere: frozenset[Variable]
    ) -> None:
        """Starts numbering at `next_key`; `views` are the names to look through, which others than dots may read too."""
        self.next_key, self.target = next_key, target
        self.views, self.read_elsewhere = views, read_elsewhere

    def block(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """A block with all its dots prepared."""
        result: list[Statement] = []
        for statement in body:
            match statement:
                case Assign(value=Call(op="dot") as call):
                    result += self._dot(statement, call)
                case Assign(targets=(target,)) if target in self.views and target not in self.read_elsewhere:
                    origin = statement.origin.noted("the same tile seen from another side")
                    if not result or result[-1].origin.span != origin.span:
                        result.append(Note(origin))
                case _:
                    result.append(with_bodies(statement, self.block))
        return with_statements(body, result)

    def _variable(self, name: str, type_: ValueType) -> Variable:
        self.next_key += 1
        return Variable(name, type_, self.next_key - 1)

    def _dot(self, statement: Assign, call: Call) -> list[Statement]:
        before: list[Statement] = []
        words = ("left", "right")
        operands = [self._operand(statement, arg, word, before) for arg, word in zip(call.args[:2], words, strict=True)]
        target, result = statement.target, call.type.dtype
        accumulators = call.args[2:]
        if not result.is_floating() or result.bits >= 32:
            prepared = with_operands(call, (*operands, *accumulators))
            return [*before, statement if prepared is call else replace(statement, value=prepared)]
        wide = call.type.with_element(float32)
        total = self._variable(f"{target.name}_sum", wide)
        widened = tuple(Call(wide, "cast", (acc,), span=call.span) for acc in accumulators)
        product = Call(wide, "dot", (*operands, *widened), call.attributes, span=call.span)
        narrowed = Call(call.type, "cast", (Use(wide, total),), span=call.span)
        return [*before, Assign(statement.origin, (total,), product), replace(statement, value=narrowed)]

    def _seen_through(self, expr: Expr) -> Expr:
        if isinstance(expr, Use) and expr.variable in self.views:
            return self._seen_through(self.views[expr.variable])
        if isinstance(expr, Call) and expr.op == "permute":
            return replace(expr, args=(self._seen_through(expr.args[0]),))
        return expr

    def _operand(self, statement: Assign, operand: Expr, word: str, before: list[Statement]) -> Expr:
        operand = self._seen_through(operand)
        wanted = self._operand_type(operand.type.dtype)
        if wanted == operand.type.dtype and viewed(operand) is not None:
            return operand
        value = operand
        if wanted != operand.type.dtype:
            value = Call(operand.type.with_element(wanted), "cast", (operand,), span=operand.span)
        named = viewed(operand)
        if isinstance(operand, Call) and operand.op == "cast" and isinstance(operand.args[0], Use):
            word = operand.args[0].variable.name  # of another type: names tell the two apart
        name = f"{named.variable.name if named else word}_{wanted.short}" if wanted != operand.type.dtype else word
        variable = self._variable(name, value.type)
        before.append(Assign(statement.origin, (variable,), value))
        return Use(value.type, variable, span=operand.span)

    def _operand_type(self, dtype: DType) -> DType:
        """The type in which an operand is multiplied: 8-bit floats widen to fp16, exactly, where mma lacks them."""
        narrow = dtype.is_floating() and dtype.bits == 8
        return float16 if narrow and not mma_takes(dtype, self.target.capability) else dtype
