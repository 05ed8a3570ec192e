"""How many registers the tiles of a kernel keep busy, and what that says about blocks per multiprocessor.

In: the tiles that threads hold. Out: the peak number of 32-bit registers per thread that hold live tiles. It is an
estimate from below: addresses, masks and temporaries come on top.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from ...analysis.facts import Facts, read_through
from ...artifact import Target
from ...frozen import frozen
from ...hardware import MOST_OF_THREAD, REGISTER_FILE
from ...ir.nodes import Assign, For, Literal, Statement, Variable, While
from ...ir.structured import assigned_call, is_elementwise
from ...ir.walk import assigned_variables, bodies, expressions, statements, used_variables
from .held_tiles import HeldTiles
from .layout import Layout

OTHER_REGISTERS = 24  # per thread: addresses, loop counters, temporaries


def peak_registers(held: HeldTiles, across: Set[Statement] | None = None) -> int:
    """The peak over all statements, or of what is kept across these statements."""
    return _peak(held, _lifetimes(held.kernel.body, frozenset(), held.facts)[1], across)


@frozen
class _Moment:
    """A statement, the variables that are alive in front of it, and those of them that are alive behind it as well."""

    statement: Statement
    before: frozenset[Variable]
    kept: frozenset[Variable]


def _peak(held: HeldTiles, moments: Sequence[_Moment], across: Set[Statement] | None = None) -> int:
    sizes = {variable: register_count(variable, layout) for variable, layout in held.layouts.items()}
    sizes |= {v: 0 for v in sizes if isinstance(held.facts.definitions.get(v), Literal)}  # a number stands at its use
    for moment in moments:
        # A widened load is kept narrow until it is used: the conversion costs nothing where it is needed. A sum that is
        # rounded for its store has been held until then.
        cast = assigned_call(moment.statement, "cast")
        if cast is not None and not cast.attribute("for_store"):
            (target,) = assigned_variables(moment.statement)
            sources = [v for v in used_variables(cast) if v in sizes]
            if sources and target in sizes:
                sizes[target] = min(sizes[target], sizes[sources[0]])
                sizes[sources[0]] = 0
    alive = (one.before if across is None else one.kept for one in moments if across is None or one.statement in across)
    return max((sum(sizes.get(variable, 0) for variable in variables) for variables in alive), default=0)


def blocks_that_fit(registers: int, num_threads: int, target: Target) -> int:
    """Blocks on a multiprocessor whose threads hold so many registers of tiles."""
    return min(REGISTER_FILE // ((registers + OTHER_REGISTERS) * num_threads), target.resident_blocks(num_threads))


def registers_left(registers: int, num_threads: int) -> int:
    """How many more than so many registers of tiles a thread can hold."""
    return min(REGISTER_FILE // num_threads, MOST_OF_THREAD) - OTHER_REGISTERS - registers


def choose_shared(held: HeldTiles, num_threads: int, shared_bytes: int) -> frozenset[Variable]:
    """Tiles that live in shared memory because the registers cannot hold everything.

    Candidates are accumulators: tiles of 32 bits that elementwise statements assign more than once. Each thread keeps its
    own elements there, so that no barrier is needed; what they cost is one read and one write per update.
    """
    budget = REGISTER_FILE // num_threads - OTHER_REGISTERS
    _, moments = _lifetimes(held.kernel.body, frozenset(), held.facts)  # wherever tiles live, they live as long
    chosen: set[Variable] = set()
    crowded = _peak(held, moments) > budget
    for variable in _accumulators(held) if crowded else ():
        needed = register_count(variable, held.layouts[variable]) * num_threads * 4
        if crowded and needed <= shared_bytes:
            chosen.add(variable)
            shared_bytes -= needed
            crowded = _peak(held.without(chosen), moments) > budget
    return frozenset(chosen)


def blocks_beside(
    in_shared: frozenset[Variable], layouts: Mapping[Variable, Layout], threads: int, target: Target
) -> int:
    """Blocks on a multiprocessor whose shared memory holds the tiles that `choose_shared` has put there."""
    needed = sum(register_count(variable, layouts[variable]) for variable in in_shared) * threads * 4
    return target.max_dynamic_shared_bytes // needed if needed else target.resident_blocks(threads)


def _accumulators(held: HeldTiles) -> list[Variable]:
    structured = {
        target
        for statement in statements(held.kernel.body)
        if isinstance(statement, Assign) and not is_elementwise(statement.value)
        for target in statement.targets
    }
    return [
        v for v in held.layouts
        if held.facts.assignments[v] > 1 and v not in structured and not v.type.is_pointer and v.type.dtype.bits == 32
    ]  # fmt: skip


def needs_whole_multiprocessor(peak: int, num_threads: int) -> bool:
    """Whether the tiles alone leave no room for a second block."""
    return peak * num_threads * 2 > REGISTER_FILE


def register_count(variable: Variable, layout: Layout) -> int:
    """The 32-bit registers of a thread that a tile takes."""
    bits = 64 if variable.type.is_pointer else max(variable.type.dtype.bits, 8)
    return -(-layout.num_registers * bits // 32)


def _lifetimes(
    block: tuple[Statement, ...], after: frozenset[Variable], facts: Facts
) -> tuple[frozenset[Variable], list[_Moment]]:
    """What is alive in front of a block, and all moments inside, in the order of the text; `after` is alive behind it."""
    live, moments = after, list[_Moment]()
    for statement in reversed(block):
        inner = list[_Moment]()
        if within := bodies(statement):
            repeated = isinstance(statement, (For, While))
            again = {v for body in within for v in _read_before_written(body, facts)} if repeated else set[Variable]()
            ways = [_lifetimes(body, live | again, facts) for body in within]
            inner = [moment for _, found in ways for moment in found]
            live = (live if repeated else frozenset()).union(*(before for before, _ in ways))
        kept = live.difference(assigned_variables(statement))
        live = kept.union(v for expr in expressions(statement) for v in read_through(expr, facts))
        moments += [*reversed(inner), _Moment(statement, live, kept)]
    return live, moments[::-1]


def _read_before_written(body: tuple[Statement, ...], facts: Facts) -> set[Variable]:
    """Variables whose value comes from before the block, or from a loop's previous iteration."""
    written: set[Variable] = set()
    found: set[Variable] = set()
    for statement in statements(body):
        for expr in expressions(statement):
            found.update(v for v in read_through(expr, facts) if v not in written)
        written |= set(assigned_variables(statement))
    return found
