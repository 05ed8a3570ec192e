"""Loops whose threads load ahead themselves: a barrier per iteration says that tiles are there, and that places are free.

What `cp.async` can take goes straight to its stage, `stages - 1` iterations ahead. What it cannot is loaded into registers
before the products of an iteration and written to its stage behind them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..ir.nodes import Assign, For, Literal, Statement
from ..schedule.ring_plan import Ring
from ..schedule.rings import top_statements
from .context import Context, ctype
from .own_stages import AHEAD, declare_own, own_copies, own_of
from .rings import stages_name
from .staging import ahead_registers, copy_tile, declare_tile, fetch_tile, is_asynchronous, proxy_fence, put_tile
from .tags import tag
from .unit import Branch, Comment, Line, Loop, Node

Body = Callable[[tuple[Statement, ...]], tuple[Node, ...]]


@dataclass(frozen=True, slots=True)
class _Names:
    """The words of one loop. `position` and `refill` are the stages that are read, and filled next."""

    stages: str
    load_tiles: str
    put_tiles: str
    ahead: str
    used: str
    position: str
    refill: str


@dataclass(frozen=True, slots=True)
class _Filling:
    """How tiles get to their stages: the functions that do it, and whether `cp.async` and registers have a part."""

    functions: tuple[Node, ...]
    asynchronous: bool
    through_registers: bool

    def start(self, names: _Names, iteration: str, stage: str) -> Line:
        """Starts the loads of an iteration."""
        return Line(f"{names.load_tiles}({iteration}{f', {stage}' if self.asynchronous else ''});")

    def finish(self, names: _Names, stage: str) -> tuple[Line, ...]:
        """Writes what came into registers."""
        return (Line(f"{names.put_tiles}({stage});"),) if self.through_registers else ()


def lower_copying_loop(
    context: Context, statement: For, ring: Ring, bounds: tuple[str, str, str], header: str, body: Body
) -> tuple[Node, ...]:
    """A loop with the loads of its first iterations before it, and in each iteration those of a later one."""
    names = _names(context, ring)
    loads = [s for s in top_statements(statement.body) if isinstance(s, Assign) and s.target in ring.tiles]
    arrays = [declare_tile(context, load) for load in loads]
    before = [node for array in arrays for node in context.before_write(array)]
    own = own_of(context, statement, ring)
    for load in own:
        declare_own(context, load, ring, names.stages)
    filling = _filling(context, statement, loads, arrays, own, names)
    first = _first_loads(statement, ring, bounds, names, filling)
    context.stage_of |= dict.fromkeys(ring.tiles, "stage")
    trip = _trip(context, statement, ring, bounds, names, filling, body(statement.body))
    context.pending_reads.update(arrays)
    return (*before, *filling.functions, *first, Loop(header, trip))


def _names(context: Context, ring: Ring) -> _Names:
    once, stages, loop = context.names.once, stages_name(context, ring), ring.loop
    name, ahead, used = context.names.variable(loop), once("ahead", ("ahead", loop)), ""
    position, refill = f"{name} % {stages}", f"{ahead} % {stages}"
    if ring.counted:
        used = once("used", ("position", loop, ""))
        position, refill = f"{used} % {stages}", f"({used} + {stages} - 1) % {stages}"
    load_tiles, put_tiles = once("load_tiles", ("load", loop)), once("put_tiles", ("put", loop))
    return _Names(stages, load_tiles, put_tiles, ahead, used, position, refill)


def _filling(
    context: Context, statement: For, loads: list[Assign], arrays: list[str], own: list[Assign], names: _Names
) -> _Filling:
    """The functions that load an iteration's tiles; the loop's variable is their parameter."""
    registers: list[Node] = []
    loading: list[Node] = []
    putting: list[Node] = []
    for load, array in zip(loads, arrays, strict=True):
        loading += tag(load.origin, "", bool(loading))
        if is_asynchronous(context, load):
            loading += copy_tile(context, load, f"{array}[stage]")
            continue
        variable = ahead_registers(context, load)
        layout = context.schedule.layouts[load.target]
        text = context.declaration(variable, layout, context.names.variable(variable))
        registers.append(Line(f"{text};", f"elements of {array} on their way: no asynchronous copy can take them"))
        loading += fetch_tile(context, load)
        putting += put_tile(context, load, f"{array}[stage]")
    for load in own:
        loading += [*tag(load.origin, AHEAD, bool(loading), again=True), *own_copies(context, load)]
    asynchronous = len(registers) < len(loads) or bool(own)
    for helper in ("cp_async_commit", "cp_async_wait") if asynchronous else ():
        context.use_helper(helper)
    name = context.names.variable(statement.variable)
    parameters = f"{ctype(statement.variable.type)} {name}{', int stage' if asynchronous else ''}"
    functions = [
        *registers,
        Comment(f"Starts the loads of iteration {name}{' into a stage' if asynchronous else ''}."),
        Loop(f"const auto {names.load_tiles} = [&]({parameters})", tuple(loading), closing="};"),
    ]
    if putting:
        functions += [
            Comment("Puts what has come into registers into its stage."),
            Loop(f"const auto {names.put_tiles} = [&](int stage)", tuple(putting), closing="};"),
        ]
    return _Filling(tuple(functions), asynchronous, bool(putting))


def _first_loads(
    statement: For, ring: Ring, bounds: tuple[str, str, str], names: _Names, filling: _Filling
) -> tuple[Node, ...]:
    """The loads of the first `stages - 1` iterations."""
    start, stop, step = bounds
    iteration = "stage"
    if ring.counted:
        iteration = f"{start} + stage * {step}" if start != "0" else f"stage * {step}"
    loads = (filling.start(names, iteration, "stage"), *filling.finish(names, "stage"))
    commit = (Line("cp_async_commit();"),) if filling.asynchronous else ()
    compare = ">" if statement.descending else "<"
    header = f"for (int stage = 0; stage < {names.stages} - 1; ++stage)"
    count = (Line(f"int {names.used} = 0;", "stages so far"),) if ring.counted else ()
    return (Loop(header, (Branch(f"{iteration} {compare} {stop}", loads), *commit)), *count)


def _trip(
    context: Context, statement: For, ring: Ring, bounds: tuple[str, str, str], names: _Names, filling: _Filling,
    inner: tuple[Node, ...],
) -> tuple[Node, ...]:  # fmt: skip
    """One iteration: wait for its tiles, start the loads of a later one, compute."""
    _, stop, step = bounds
    unit = isinstance(statement.step, Literal) and statement.step.value == 1
    many = f"{names.stages} - 1" if unit else f"({names.stages} - 1) * {step}"
    more = f"{names.ahead} {'>' if statement.descending else '<'} {stop}"
    kind, name = ctype(statement.variable.type), context.names.variable(ring.loop)
    arrival = Line(f"cp_async_wait<{names.stages} - 2>();", "this thread's share of the tiles has arrived")
    commit = Line("cp_async_commit();", "possibly of nothing: one group per iteration")
    nodes: list[Node] = [
        *((arrival,) if filling.asynchronous else ()),
        *proxy_fence(context),
        *context.barrier("everyone's share is there, and nobody reads the stage that is filled next"),
        Line(f"const {kind} {names.ahead} = {name} + {many};"),
        Branch(more, (filling.start(names, names.ahead, names.refill),)),
        *((commit,) if filling.asynchronous else ()),
        Line(f"const int stage = {names.position};"),
        *inner,
    ]
    if filling.through_registers:
        nodes.append(Branch(more, filling.finish(names, names.refill)))
    if ring.counted:
        nodes.append(Line(f"++{names.used};"))
    return tuple(nodes)
