"""Loops whose threads load ahead themselves: a barrier per iteration says that tiles are there, and that places are free.

What `cp.async` can take goes straight to its stage, `stages - 1` iterations ahead; where that is two or more, behind this
iteration's products: between those of `mma.sync` the compiler then puts the copies (`_Filling.late`), and those of wgmma run
while the threads of several warpgroups copy. Rows that are not aligned go to shared memory as they lie, and are shifted into
their tile one iteration ahead (`row_copies.py`). Anything else is loaded into registers before the products of an iteration
and written to its stage behind them. Products that run by themselves (wgmma) are waited for when all that is done.
"""

from __future__ import annotations

from dataclasses import replace

from ...frozen import frozen
from ...hardware import WARPGROUP
from ...ir.nodes import Assign, Effect
from ...ir.walk import assigned_variables, nested, top_statements
from ...schedule.products.fragment_loads import waits_for_matrices
from ...schedule.products.operand_tiles import transposed_tile
from ...schedule.staging.ring_plan import Ring
from ..context import Context, ctype
from ..shared.convert import conversions_before
from ..text.operators import Text
from ..text.tags import tag
from ..text.unit import Branch, Comment, Declaration, Lambda, Line, Loop, Node, const, words
from .copies import ahead_registers, copy_tile, declare_tile, fetch_tile, is_asynchronous, proxy_fence, put_tile
from .loop_bounds import ONE, compared, for_header, if_any_trip, steps_on, surely_runs, trips_of
from .names_ahead import names_ahead
from .own_stages import AHEAD, declare_own, named_iteration, own_copies, own_of, stage_word
from .read_ahead import read_ahead, read_values, running_totals
from .ring_barriers import stages_name
from .ring_loop import RingLoop
from .rings import only_sums, products_complete, products_in
from .row_copies import align_rows, copy_rows, declare_rows, indexed, is_row_load, rows_name, tile_stage

ALWAYS = "true"  # a condition that numbers decide


@frozen
class _Names:
    """The words of one loop.

    Attributes:
      stages: the constant that counts the ring's stages.
      load_tiles, put_tiles, align_tiles: the functions that start loads and finish them.
      ahead: the iteration that is loaded next.
      used: the count of iterations so far; "" where the loop's variable is that.
      count: what counts the iterations: one or the other.
      stage: the variable with the stage of an iteration.
      refilled: whether that is filled again in the same iteration.
    """

    stages: str
    load_tiles: str
    put_tiles: str
    align_tiles: str
    ahead: str
    used: str
    count: str
    stage: str
    refilled: bool = False

    @property
    def under_way(self) -> str:
        """How many iterations are loaded ahead of one that computes."""
        return self.stages if self.refilled else f"{self.stages} - 1"

    @property
    def position(self) -> str:
        """The stage that is read."""
        return f"{self.count} % {self.stages}"

    @property
    def later(self) -> str:
        """The count of the iteration that is loaded next."""
        return f"{self.used} + {self.stages} - 1" if self.used else self.ahead

    @property
    def refill(self) -> str:
        """The stage that is filled next."""
        if self.refilled:
            return self.stage
        return f"({self.later}) % {self.stages}" if self.used else f"{self.later} % {self.stages}"


@frozen
class _Filling:
    """How tiles get to their stages: the functions that do it, and what has a part: `cp.async`, registers, unaligned rows.

    `late` says that copies stand behind the products and have no branch around them: what reads fragments cannot be moved
    across copies, while products can, if all is one block of instructions. Past the last iteration they bring zeros.
    """

    functions: tuple[Node, ...]
    direct: bool
    through_registers: bool
    rows: bool
    late: bool

    @property
    def asynchronous(self) -> bool:
        """Whether threads must wait for their own copies."""
        return self.direct or self.rows

    def start(self, names: _Names, iteration: str, stage: str, count: str, more: str, *then: Node) -> tuple[Node, ...]:
        """Starts the loads of an iteration where the condition `more` says that there is one, and does `then` there."""
        arguments = [iteration, *([stage] if self.direct else ()), *([count] if self.rows and names.used else ())]
        if self.late:
            return (Line(f"{names.load_tiles}({', '.join((*arguments, more))});"),)
        nodes = (Line(f"{names.load_tiles}({', '.join(arguments)});"), *then)
        return nodes if more == ALWAYS else (Branch(more, nodes),)

    def finish(self, names: _Names, stage: str) -> tuple[Line, ...]:
        """Writes what came into registers."""
        return (Line(f"{names.put_tiles}({stage});"),) if self.through_registers else ()

    def align(self, names: _Names, iteration: str, count: str) -> Line:
        """Shifts the rows of an iteration, which have arrived, into their tiles."""
        return Line(f"{names.align_tiles}({iteration}{f', {count}' if names.used else ''});")


def lower_copying_loop(context: Context, loop: RingLoop) -> tuple[Node, ...]:
    """A loop with the loads of its first iterations before it, and in each iteration those of a later one."""
    statement, ring = loop.statement, loop.ring
    names, counter = _names(context, ring), context.names.variable(statement.variable)
    loads = [s for s in top_statements(statement.body) if isinstance(s, Assign) and s.targets[0] in ring.tiles]
    rows = [load for load in loads if is_row_load(load)]
    arrays = [declare_rows(context, s) if s in rows else declare_tile(context, s) for s in loads]
    arrays += [rows_name(context, load) for load in rows]
    before = [node for array in arrays for node in context.before_write(array)]
    own = own_of(context, loop)
    own_arrays = [declare_own(context, load, ring, names.stages) for load in own]
    reading, values = read_ahead(context, loop, [*loads, *own]), read_values(context, loop, own)
    prepare, moved = conversions_before(context, [*loads, *own])
    free = [node for array in own_arrays for node in context.before_write(array)]
    behind = (*running_totals(context, loop), *reading.behind_copies(counter))
    with context.instead.conversions(moved):
        filling = _filling(context, loop, _Loads(dict(zip(loads, arrays, strict=False)), own, behind), names)
    first = _first_loads(context, loop, names, filling)
    context.ahead.stage_of |= dict.fromkeys(ring.tiles, names.stage)
    context.ahead.stage_of |= {load.target: tile_stage(context, names.count) for load in rows}
    flying = _flying(context, loop)
    order, being_read = context.order.snapshot(), set(context.shared.being_read)
    free_next = "" if ring.refilled else ", and nobody reads the stage that is filled next"
    head = context.barrier(f"everyone's share is there{free_next}")
    in_flight = context.around.in_flight | set(flying)
    with context.inside(replace(context.around, in_flight=in_flight)):
        inner = loop.lowered(context, statement.body)
    if flying:
        for helper in ("wgmma_commit", "wgmma_wait"):
            context.use_helper(helper)
        inner = (*inner, Line("wgmma_commit();"))
    if ring.refilled:
        inner = (*inner, *context.barrier("everyone has read the stage, which is filled again"))
    trip = _trip(context, loop, names, filling, (head, inner, products_complete(context, flying)))
    context.order.merge(order)  # there may be no trip, and no barrier
    context.shared.being_read |= {*being_read, *arrays, *filter(context.shared.takes_turns, own_arrays)}
    zeros = (Line("cp_async_wait<0>();", "no copy of zeros is left behind"),) if filling.late else ()
    ready = (*before, *prepare, *free, *reading.before, *values.before, *filling.functions)
    return (
        *ready,
        *reading.at_first(),
        *values.at_first(),
        *first,
        trips_of(context, statement, for_header(statement, counter, loop.bounds), trip),
        *zeros,
    )


def _flying(context: Context, loop: RingLoop) -> tuple[Assign, ...]:
    """The dots whose products run on to the end of an iteration.

    None where they read transposed copies whose memory others have in their turn: nobody waits for such products before that
    is written, unless a dot is all that the loop has.
    """
    if not loop.ring.overlapped:
        return ()
    dots = products_in(context, loop.statement)
    settled = context.facts.absorbed | context.facts.index | context.facts.unused | {*loop.ring.tiles}
    rest = [s for s in nested(loop.statement) if isinstance(s, Effect) or not settled.issuperset(assigned_variables(s))]
    takes_turns = context.shared.in_turns and len(rest) > 1
    return () if takes_turns and any(_transposes(context, dot) for dot in dots) else dots


def _transposes(context: Context, dot: Assign) -> bool:
    """Whether a dot transposes an operand in shared memory."""
    plan, staged = context.schedule.dots[dot], context.schedule.staged
    return any(
        transposed_tile(operand, staged[operand.variable], plan.instruction) is not None for operand in plan.operands
    )


def _names(context: Context, ring: Ring) -> _Names:
    once, stages, loop = context.names.once, stages_name(context, ring), ring.loop
    ahead = once("ahead", ("ahead", loop))
    used = once("used", ("position", loop, "")) if ring.counted else ""
    load, put, align = (once(f"{word}_tiles", (word, loop)) for word in ("load", "put", "align"))
    position = used or context.names.variable(loop)
    return _Names(stages, load, put, align, ahead, used, position, stage_word(context, ring), ring.refilled)


@frozen
class _Loads:
    """What a loop loads ahead.

    Attributes:
      arrays: the arrays in which the loads of tiles for all threads end.
      own: the loads that threads make for themselves.
      behind: what follows all copies of an iteration.
    """

    arrays: dict[Assign, str]
    own: list[Assign]
    behind: tuple[Node, ...]


def _filling(context: Context, loop: RingLoop, loads: _Loads, names: _Names) -> _Filling:
    """The functions that load an iteration's tiles; the loop's variable is their parameter."""
    statement = loop.statement
    before: list[Node] = []
    loading: list[Node] = []
    putting: list[Node] = []
    aligning: list[Node] = []
    direct, late = False, _can_be_late(context, loop, loads)
    name = context.names.variable(statement.variable)
    more = context.names.shared_index("more")
    count = context.names.shared_index("turn") if names.used else name
    has_rows = any(map(is_row_load, loads.arrays))  # which are found by functions of their own
    followed = [] if has_rows else [*loads.arrays, *loads.own]
    with names_ahead(context, statement, followed) as scalars:
        for load, array in loads.arrays.items():
            loading += tag(load.origin, "", bool(loading))
            if is_row_load(load):
                first, definition = indexed(context, load, statement)
                before += definition
                loading.append(copy_rows(context, load, f"{first}({name})", count))
                aligning.append(align_rows(context, load, f"{first}({name})", count))
            elif is_asynchronous(context, load):
                direct = True
                loading += copy_tile(context, load, f"{array}[{names.stage}]", more if late else "")
            else:
                before.append(_registers(context, load, array))
                loading += fetch_tile(context, load)
                putting += put_tile(context, load, f"{array}[{names.stage}]")
        for load in loads.own:
            loading += [*tag(load.origin, AHEAD, bool(loading), again=True), *own_copies(context, load)]
    loading = [*scalars, *loading, *loads.behind]
    direct = direct or bool(loads.own)
    for helper in ("cp_async_commit", "cp_async_wait") if direct or aligning else ():
        context.use_helper(helper)
    kind = ctype(statement.variable.type)
    parameters = [
        f"{kind} {name}",
        *([f"int {names.stage}"] if direct else ()),
        *([f"int {count}"] if aligning and names.used else ()),
        *([f"bool {more}"] if late else ()),
    ]
    rest = "; if there are no more, zeros" if late else ""
    what = f"Starts the loads of the iteration at `{name}`{' into a stage' if direct else ''}{rest}."
    functions = [*before, *_function(what, names.load_tiles, parameters, loading)]
    if putting:
        what = "Puts what has come into registers into its stage."
        functions += _function(what, names.put_tiles, [f"int {names.stage}"], putting)
    if aligning:
        parameters = [f"{kind} {name}", *([f"int {count}"] if names.used else ())]
        what = f"Shifts the rows of the iteration at `{name}` into their tiles."
        functions += _function(what, names.align_tiles, parameters, aligning)
    return _Filling(tuple(functions), direct, bool(putting), bool(aligning), late)


def _registers(context: Context, load: Assign, array: str) -> Declaration:
    """The registers in which a tile waits for its place."""
    variable = ahead_registers(context, load)
    declaration = context.declaration(variable, context.schedule.layouts[load.target])
    return replace(declaration, comment=f"{array} on its way: no asynchronous copy can take it")


def _function(what: str, name: str, parameters: list[str], body: list[Node]) -> tuple[Node, Node]:
    """A function within the kernel, under what it does."""
    return Comment(what), Lambda(name, ", ".join(parameters), tuple(body))


def _can_be_late(context: Context, loop: RingLoop, loads: _Loads) -> bool:
    """Whether copies may wait for the products of their iteration: there is another one in which they can arrive.

    Where a loop computes with its products, copies ahead of them are what the computing hides; where these are few to a fragment
    that is read, copies behind them come late.
    """
    ring, plans = loop.ring, context.schedule.dots
    if loads.own or ring.running or ring.overlapped or ring.refilled or ring.stages <= 2:
        return False
    if any(waits_for_matrices(plans[dot]) for dot in products_in(context, loop.statement)):
        return False
    simple = all(not is_row_load(load) and is_asynchronous(context, load) for load in loads.arrays)
    return simple and only_sums(context, loop.statement)


def _first_loads(context: Context, loop: RingLoop, names: _Names, filling: _Filling) -> tuple[Node, ...]:
    """The loads of the iterations that are under way before the first one computes; of that, rows are aligned too."""
    statement, ring, bounds, stage = loop.statement, loop.ring, loop.bounds, names.stage
    iteration = steps_on(bounds.start, Text(stage), bounds.step) if ring.counted else Text(stage)
    naming, iteration = named_iteration(statement, names.ahead, iteration)
    under_way = ring.stages if ring.refilled else ring.stages - 1
    more = ALWAYS if surely_runs(statement, under_way) else compared(statement, iteration, bounds.stop)
    finish = filling.finish(names, stage)
    loads = filling.start(names, iteration.text, stage, stage, more, *finish)
    commit = (Line("cp_async_commit();"),) if filling.asynchronous else ()
    header = f"for (int {stage} = 0; {stage} < {names.under_way}; ++{stage})"
    nodes: list[Node] = [Loop(header, (*naming, *loads, *commit))]
    if filling.rows:
        nodes += [
            Line(
                f"cp_async_wait<{names.stages} - 2>();",
                "the oldest group has arrived: this thread's share of the first rows",
            ),
            *context.barrier("everyone's share is there"),
            *if_any_trip(statement, bounds, (filling.align(names, bounds.start.text, "0"),)),
        ]
    return (*nodes, *((Declaration("int", names.used, "0", comment="stages so far"),) if ring.counted else ()))


def _trip(
    context: Context,
    loop: RingLoop,
    names: _Names,
    filling: _Filling,
    parts: tuple[tuple[Node, ...], tuple[Node, ...], tuple[Node, ...]],
) -> tuple[Node, ...]:
    """One iteration: wait for its tiles, start the loads of a later one, compute.

    Its `parts` are the barrier at its head, what it computes, and the wait for products that run on.
    """
    head, inner, complete = parts
    statement, ring, bounds = loop.statement, loop.ring, loop.bounds
    kind, name = ctype(statement.variable.type), context.names.variable(ring.loop)
    more = compared(statement, Text(names.ahead), bounds.stop)
    late = filling.rows and ring.stages == 2  # the next iteration's rows have no time to arrive but this iteration
    waiting = f"{names.stages} - {1 if ring.refilled else 2}"
    arrival = Line(f"cp_async_wait<{waiting}>();", "the oldest group has arrived: this thread's share of the tiles")
    if filling.rows:
        comment = "this thread's share of the next iteration's rows has arrived"
        arrival = Line("cp_async_wait<0>();" if late else f"cp_async_wait<{names.stages} - 3>();", comment)
    commit = Line("cp_async_commit();", "possibly of nothing: one group per iteration")
    last = Text(names.under_way, 16 if ring.refilled else 12, "" if ring.refilled else "-")
    loads: list[Node] = [
        const(kind, names.ahead, steps_on(Text(name), last, bounds.step).text),
        *filling.start(names, names.ahead, names.refill, names.later, more),
        *((commit,) if filling.asynchronous else ()),
    ]
    read = words((*inner, *loads))  # tiles whose rows are shifted have stages of their own
    stage = [const("int", names.stage, names.position)] if names.stage in read else []
    # Products that run by themselves do so while their threads start copies, which a single warpgroup gains nothing by.
    several = context.schedule.num_threads > WARPGROUP
    running = several and ring.overlapped and ring.stages > 2 and not filling.rows and not filling.through_registers
    behind = filling.late or running or ring.refilled
    nodes: list[Node] = [
        *((arrival,) if filling.asynchronous and not late else ()),
        *proxy_fence(context),
        *head,
        *(() if behind else loads),
        *stage,
        *inner,
        *(loads if behind else ()),
    ]
    if filling.rows:
        following = steps_on(Text(name), ONE, bounds.step)
        aligned = filling.align(names, following.text, f"{names.count} + 1")
        nodes += [arrival, *context.barrier("everyone's share of them is there")] if late else []
        nodes.append(Branch(compared(statement, following, bounds.stop), (aligned,)))
    if filling.through_registers:
        nodes.append(Branch(more, filling.finish(names, names.refill)))
    nodes += complete
    if ring.counted:
        nodes.append(Line(f"++{names.used};"))
    return tuple(nodes)
