"""One statement: what it waits for and its code, by its kind; `STRUCTURED` has who lowers which operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..ir.nodes import Assign, Call, Effect, Expr, For, If, Inlined, Note, Return, Statement, While
from ..ir.walk import assigned_variables, bodies
from .accesses.atomics import FUNCTIONS, lower_atomic
from .accesses.memory import lower_load, lower_store
from .accesses.recompute import forget_tiles
from .assignments import lower_assign
from .blocks import lower_block
from .context import Context
from .control_flow import lower_for, lower_if, lower_while
from .debug import lower_assert, lower_print
from .products.dot import lower_dot
from .products.lasting_operands import copies_before_loop
from .products.running_products import wait_before, wait_for_all
from .reductions.reduce import lower_reduce
from .shared.convert import lower_conversions
from .shared.repack import lower_repack
from .staging.arrivals import wait_for_tiles
from .staging.box_read import lower_box_read
from .staging.box_store import lower_box_store
from .staging.made_maps import lower_make_map
from .staging.read_ahead import take_value
from .staging.rings import lower_box_load
from .staging.row_copies import lower_row_load
from .text.unit import Comment, Line, Node


def _lower_barrier(context: Context, statement: Statement) -> tuple[Node, ...]:
    return context.barrier("asked for by the kernel")


def _lower_grid_wait(context: Context, statement: Statement) -> tuple[Node, ...]:
    context.use_helper("grid_wait")
    return (Line("grid_wait();"),)


def _lower_grid_release(context: Context, statement: Statement) -> tuple[Node, ...]:
    context.use_helper("grid_release_dependents")
    return (Line("grid_release_dependents();"),)


def _lower_assume(context: Context, statement: Statement) -> tuple[Node, ...]:
    return ()


Lowering = Callable[..., tuple[Node, ...]]
ATOMICS: dict[str, Lowering] = dict.fromkeys(FUNCTIONS, lower_atomic)
STRUCTURED: dict[str, Lowering] = {
    "load": lower_load,
    "store": lower_store,
    "reduce": lower_reduce,
    "repack": lower_repack,
    "dot": lower_dot,
    "box_load": lower_box_load,
    "box_read": lower_box_read,
    "row_load": lower_row_load,
    "box_store": lower_box_store,
    "make_map": lower_make_map,
    "barrier": _lower_barrier,
    "gdc_wait": _lower_grid_wait,
    "gdc_launch_dependents": _lower_grid_release,
    "assume": _lower_assume,
    "device_print": lower_print,
    "device_assert": lower_assert,
    **ATOMICS,
}


def lower_statement(context: Context, statement: Statement) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """(What a statement waits for, its code), without its tag, with what the loop around it wants before and behind it."""
    parts = bodies(statement) and not isinstance(statement, Inlined)
    context.progress.copied = {} if parts else context.progress.copied
    waits = wait_for_all(context) if parts or isinstance(statement, Return) else ()
    waits += () if isinstance(statement, Inlined) else wait_for_tiles(context, statement)
    running, barriers = context.progress.running, context.shared.barriers
    around = context.around
    if parts:  # what a branch or a loop starts, it waits for itself
        around = replace(around, may_arrive_later=False, may_run_on=False)
    context.masks.reading(statement.origin)
    with context.inside(around):
        code = context.notes.before.get(statement, ())
        code += _lower_alone(context, statement)
        code += context.notes.after.get(statement, ())
    if not isinstance(statement, Inlined):
        waits += wait_before(context, statement, running, context.shared.barriers > barriers)
    changed = set(assigned_variables(statement))
    copied = {key: name for key, name in context.progress.copied.items() if key[0] not in changed}
    context.progress.copied = {} if parts else copied
    return waits, code


def _lower_alone(context: Context, statement: Statement) -> tuple[Node, ...]:
    match statement:
        case Assign():
            if all(target in context.unread for target in statement.targets):
                return ()
            if statement.targets[0] in context.ahead.read_ahead or statement in context.notes.behind_copies:
                return ()  # the loop around it reads it, in another iteration
            if statement.targets[0] in context.ahead.values:
                return take_value(context, statement)
            started = statement.targets[0] in context.ahead.stage_of or statement.targets[0] in context.ahead.own
            prepare, names = ((), {}) if started else lower_conversions(context, statement)
            prepare = (*prepare, *forget_tiles(context, statement))
            with context.instead.conversions(names), context.speller.assigning(statement):
                if isinstance(statement.value, Call) and statement.value.op in STRUCTURED:
                    return (*prepare, *STRUCTURED[statement.value.op](context, statement))
                return (*prepare, *lower_assign(context, statement))
        case Effect():
            prepare, names = lower_conversions(context, statement)
            prepare = (*prepare, *forget_tiles(context, statement))
            with context.instead.conversions(names):
                return (*prepare, *STRUCTURED[statement.call.op](context, statement))
        case If():
            return lower_if(context, statement)
        case For() | While():
            copies, lasting = copies_before_loop(context, statement)
            with context.inside(replace(context.around, lasting={**context.around.lasting, **lasting})):
                loop = lower_for(context, statement) if isinstance(statement, For) else lower_while(context, statement)
            return (*copies, *loop)
        case Return(value=None):
            left = Line("cp_async_wait<0>();", "no copy is left behind")
            waits = (left,) if context.around.copies_under_way else ()
            return (*context.role.before_return, *waits, Line("return;"))
        case Return(value=Expr() as value):
            return (Line(f"return {context.speller.text(value)};"),)
        case Inlined():
            caption = (Comment(f"{statement.caption}, inlined:"),) if context.remarks.quoting else ()
            return (*caption, *lower_block(context, statement.body))
        case Note():
            return ()
    raise TypeError(f"no lowering for {type(statement).__name__}")
