"""The body of a kernel: all threads alike, or a warpgroup that loads beside those that multiply.

Statements of scalars at the top are executed by everybody. From the first statement of tiles on, one thread of the last
warpgroup runs the producer's part (`schedule/staging/producer.py`), the others run everything else.
"""

from __future__ import annotations

from ...hardware import WARP_SIZE, WARPGROUP
from ...ir.nodes import Assign, Call, Expr, For, If, Inlined, Kernel, Literal, Note, Return, Statement, Use, Variable
from ...ir.structured import is_atomic, is_elementwise
from ...ir.walk import bodies, statements, subexpressions, used_variables
from ...schedule.products.instructions import MAKER_REGISTERS, PRODUCER_REGISTERS, consumer_registers
from ...schedule.staging.producer import consumer_block, producer_block, shared_lines
from ..blocks import by_source, lower_block, lower_program
from ..context import Context, ctype
from ..products.staggered import first_turn
from ..text.scopes import find_scopes
from ..text.unit import Blank, Branch, Line, Node, const
from .loop_bounds import loop_stop
from .made_maps import announce_maps, begin_maps, end_maps
from .programs import each_program, program_variables
from .ring_barriers import announce_rings, loads, ready, ring_counters, starts_copies
from .rings import l2_policies
from .teams import turn_counters


def lower_body(context: Context, kernel: Kernel) -> tuple[Node, ...]:
    """All statements, in one part or in two."""
    if not context.schedule.rings.has_producer:
        return lower_program(context, kernel.body)
    split = next((k for k, s in enumerate(kernel.body) if not _for_everybody(context, s)), len(kernel.body))
    first, rest = kernel.body[:split], kernel.body[split:]
    if context.schedule.rings.persistent:
        context.role.program_variables = program_variables(context, kernel)
        first = _same_for_all_programs(context, first)
        kept = set(first)
        rest = tuple(s for s in kernel.body if s not in kept)
    loading = producer_block(rest)
    copies = _copies(loading)
    announce_maps(context)
    encoded = {one.name for one in context.schedule.rings.encoded}
    read = [call.attribute("map") for call in copies.values()]
    context.role.set_up += announce_rings(context, [name for name in read if name in encoded])
    shared = (*lower_block(context, first), *_loop_stops(context, first, rest))
    scalars = [s for s in statements(first) if isinstance(s, Assign) and context.facts.assignments[s.targets[0]] == 1]
    context.role.known_scalars = {
        context.speller.text(s.value): context.names.variable(s.target)
        for s in scalars
        if is_elementwise(s.value) and not s.target.type.is_tile and s.target not in context.facts.unused
    }
    multiplying = consumer_block(rest, loading)
    context.role.shared_lines = shared_lines(loading, multiplying)
    context.role.name = "producer"
    context.scopes = find_scopes((*first, *loading), context.speller.written_out)
    policies = l2_policies(context, copies)
    producer = (
        *begin_maps(context, loads=True), *policies, *ring_counters(context), *each_program(context, loading),
        *end_maps(context, loads=True),
    )  # fmt: skip
    context.role.name, context.scopes = "consumer", find_scopes((*first, *multiplying), context.speller.written_out)
    consumer = (
        *begin_maps(context, loads=False), *ring_counters(context), *turn_counters(context), *first_turn(context),
        *each_program(context, multiplying),
        *end_maps(context, loads=False),
    )  # fmt: skip
    context.role.name = ""
    shrink, grow = _register_shares(context)
    one = Branch(starts_copies(context)[-1], producer)
    arrive, begin = ready(context)
    roles = Branch(
        loads(context),
        (*shrink, arrive, one),
        (*grow, begin, *consumer),
        "the last warpgroup loads: one of its threads starts every TMA load",
        "the others multiply" + ", each a program, in turns" * (context.schedule.rings.teams > 1),
    )
    return (*shared, Blank(), roles) if shared else (roles,)


def _loop_stops(context: Context, first: tuple[Statement, ...], rest: tuple[Statement, ...]) -> tuple[Node, ...]:
    """Names for where the loops of both roles end, as far as that follows from what is computed before the roles."""
    known = {parameter.variable for parameter in context.kernel.parameters}
    known |= {
        v for s in statements(first) if isinstance(s, Assign) for v in s.targets if context.facts.assignments[v] == 1
    }
    nodes: list[Node] = []
    for loop in statements(rest):
        ring = context.schedule.rings.of(loop.variable) if isinstance(loop, For) else None
        if not isinstance(loop, For) or ring is None or ring.kind != "tma" or isinstance(loop.stop, (Use, Literal)):
            continue
        if _is_fixed_value(context, loop.stop, known):
            name = loop_stop(context, loop)
            text = context.speller.text(loop.stop)
            nodes.append(const(ctype(loop.variable.type), name, text, f"where L{loop.origin.span.line} ends"))
            context.role.loop_stops[loop.variable] = name
    return tuple(nodes)


def _same_for_all_programs(context: Context, block: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The scalars of a block that do not depend on which program it is: they are computed once."""
    known = {parameter.variable for parameter in context.kernel.parameters}
    found: list[Statement] = []
    for group in by_source(block):
        own = [s for s in group if isinstance(s, Assign) and _is_fixed(context, s, known)]
        if len(own) == len(group):
            found += own
            known |= {target for s in own for target in s.targets}
    return tuple(found)


def _is_fixed(context: Context, statement: Assign, known: set[Variable]) -> bool:
    """Whether a statement computes, once, a scalar from `known` ones."""
    if any(t.type.is_tile or context.facts.assignments[t] != 1 for t in statement.targets):
        return False
    return is_elementwise(statement.value) and _is_fixed_value(context, statement.value, known)


def _is_fixed_value(context: Context, value: Expr, known: set[Variable]) -> bool:
    """Whether an expression is made of `known` scalars, and not of an index in which the programs of a block differ."""
    axes = max(context.schedule.rings.program_axes, 1)
    calls = [part for part in subexpressions(value) if isinstance(part, Call)]
    return set(used_variables(value)) <= known and not any(
        call.op == "program_id" and call.attribute("axis") < axes for call in calls
    )


def _copies(block: tuple[Statement, ...]) -> dict[Variable, Call]:
    """The tensor copies in a block, by the tile that they fill."""
    assigned = [(s.targets[0], s.value) for s in statements(block) if isinstance(s, Assign)]
    return {target: value for target, value in assigned if isinstance(value, Call) and value.op == "box_load"}


def _for_everybody(context: Context, statement: Statement) -> bool:
    """Whether every thread may execute a statement: scalars, and tiles that need no code or no registers to speak of."""
    match statement:
        case Note():
            return True
        case Assign(value=value, targets=targets):
            if isinstance(value, Call) and (is_atomic(value) or value.op in ("reduce", "dot", "box_load")):
                return False
            absorbed = context.facts.absorbed | context.facts.index | context.facts.unused
            return all(not target.type.is_tile or target in absorbed for target in targets)
        case If():
            inner = [s for body in bodies(statement) for s in body]
            return all(isinstance(s, Return) or _for_everybody(context, s) for s in inner)
        case Inlined():
            return all(_for_everybody(context, s) for s in statement.body)
    return False


def _register_shares(context: Context) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """How the register file is divided: the loading warpgroup gives back what it does not need."""
    blocks = context.schedule.blocks_per_multiprocessor or 1
    multiplying = context.schedule.num_threads * context.schedule.rings.teams
    alone = multiplying == WARPGROUP and blocks == 1  # each thread has the most that it can have
    if alone or context.schedule.options.maxnreg is not None:
        return (), ()
    kept = MAKER_REGISTERS if context.schedule.rings.made and blocks == 1 else PRODUCER_REGISTERS
    share = consumer_registers(multiplying // WARP_SIZE, blocks, kept)
    producer = context.constants.named("PRODUCER_REGS", kept, "registers per loading thread", topic="threads")
    consumer = context.constants.named("CONSUMER_REGS", share, "registers per multiplying thread", topic="threads")
    for helper in ("warpgroup_shrink", "warpgroup_grow"):
        context.use_helper(helper)
    return (Line(f"warpgroup_shrink<{producer}>();"),), (Line(f"warpgroup_grow<{consumer}>();"),)
