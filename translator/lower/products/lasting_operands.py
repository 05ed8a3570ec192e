"""Operands of dots in a loop that the loop does not change: they are copied to shared memory once, before it."""

from __future__ import annotations

from collections.abc import Set

from ...ir.nodes import For, Variable, While
from ...ir.walk import assigned_variables, nested
from ...schedule.products.dot_plan import DotPlan, Operand
from ...schedule.products.instructions import DotKind
from ...schedule.products.operand_tiles import copied_tile
from ...schedule.products.shared_tiles import SharedTile
from ..context import Context
from ..text.unit import Line, Node
from .operand import operand_place

Lasting = dict[tuple[Variable, SharedTile], str]


def copied_operands(plan: DotPlan) -> list[Operand]:
    """The operands that a dot on tensor cores reads from shared memory, that of its rows first."""
    return [plan.rows] * (not plan.rows_in_registers) + [plan.columns] * (plan.held is None)


def copies_before_loop(context: Context, loop: For | While) -> tuple[tuple[Node, ...], Lasting]:
    """The copies of tiles in registers that a loop's dots read and its statements do not assign; the names of their arrays.

    None in a kernel whose arrays take turns: the copies would keep their memory for the whole loop.
    """
    inner = list(nested(loop))
    dots = [statement for statement in inner if statement in context.schedule.dots]
    if not dots or context.shared.in_turns or context.role.name == "producer":
        return (), {}
    assigned = {variable for statement in inner for variable in assigned_variables(statement)}
    nodes: list[Node] = []
    lasting: Lasting = {}
    kinds: set[DotKind] = set()
    for statement in dots:
        plan = context.schedule.dots[statement]
        for operand in copied_operands(plan) if plan.instruction.kind != "fma" else ():
            if operand.variable in assigned | set(context.schedule.staged):
                continue
            tile = copied_tile(operand, context.schedule.layouts[operand.variable], plan.instruction)
            if (operand.variable, tile) in {**context.around.lasting, **lasting}:
                continue
            code, place = operand_place(context, statement, operand, plan.instruction)
            nodes += code
            lasting[operand.variable, tile] = place.base
            kinds.add(plan.instruction.kind)
    return (*nodes, *operands_are_there(context, kinds)) if nodes else (), lasting


def operands_are_there(context: Context, kinds: Set[DotKind]) -> tuple[Node, ...]:
    """What stands between copies of operands by threads and the instructions of these kinds that read them."""
    fence: tuple[Node, ...] = ()
    if "wgmma" in kinds:
        context.use_helper("async_proxy_fence")
        fence = (Line("async_proxy_fence();", "the tensor cores read through the asynchronous proxy"),)
    return (*fence, *context.barrier("the operands are in shared memory"))
