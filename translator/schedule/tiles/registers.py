"""How many registers the tiles of a kernel keep busy, and what that says about blocks per multiprocessor.

In: the tiles that threads hold. Out: the peak number of 32-bit registers per thread that hold live tiles. It is an
estimate from below: addresses, masks and temporaries come on top.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

from ...analysis.facts import Facts
from ...artifact import Target
from ...frozen import frozen
from ...hardware import REGISTER_FILE
from ...ir.nodes import Assign, Expr, For, If, Kernel, Literal, Statement, Variable, While
from ...ir.structured import assigned_call, is_elementwise
from ...ir.walk import assigned_variables, bodies, expressions, statements, used_variables
from .layout import Layout

OTHER_REGISTERS = 24  # per thread: addresses, loop counters, temporaries


@frozen
class HeldTiles:
    """The tiles that a kernel's threads hold in registers.

    Attributes:
      kernel: the kernel.
      facts: as they are for who counts registers: what is computed where it is used has none.
      layouts: of the tiles.
    """

    kernel: Kernel
    facts: Facts
    layouts: Mapping[Variable, Layout]

    def without(self, tiles: Set[Variable]) -> HeldTiles:
        """The others."""
        return replace(self, layouts={v: layout for v, layout in self.layouts.items() if v not in tiles})

    def computed_again(self, tiles: Set[Variable]) -> HeldTiles:
        """The others, where some are computed again from them wherever they are used."""
        facts = replace(self.facts, absorbed=self.facts.absorbed | tiles) if tiles else self.facts
        return replace(self.without(tiles), facts=facts)


def peak_registers(held: HeldTiles, across: Set[Statement] | None = None) -> int:
    """The peak over all statements, or of what is kept across these statements."""
    facts, layouts = held.facts, held.layouts
    sizes = {variable: register_count(variable, layout) for variable, layout in layouts.items()}
    sizes |= {v: 0 for v in layouts if isinstance(facts.definitions.get(v), Literal)}  # a number stands at its use
    for statement in statements(held.kernel.body):
        # A widened load is kept narrow until it is used: the conversion costs nothing where it is needed. A sum that is
        # rounded for its store has been held until then.
        cast = assigned_call(statement, "cast")
        if cast is not None and not cast.attribute("for_store"):
            (target,) = assigned_variables(statement)
            sources = [v for v in used_variables(cast) if v in sizes]
            if sources and target in sizes:
                sizes[target] = min(sizes[target], sizes[sources[0]])
                sizes[sources[0]] = 0
    _, peak = _walk(held.kernel.body, frozenset(), sizes, facts, across)
    return peak


def blocks_that_fit(registers: int, num_threads: int, target: Target) -> int:
    """Blocks on a multiprocessor whose threads hold so many registers of tiles."""
    return min(REGISTER_FILE // ((registers + OTHER_REGISTERS) * num_threads), target.resident_blocks(num_threads))


def choose_shared(held: HeldTiles, num_threads: int, shared_bytes: int) -> frozenset[Variable]:
    """Tiles that live in shared memory because the registers cannot hold everything.

    Candidates are accumulators: tiles of 32 bits that elementwise statements assign more than once. Each thread keeps its
    own elements there, so that no barrier is needed; what they cost is one read and one write per update.
    """
    budget = REGISTER_FILE // num_threads - OTHER_REGISTERS
    chosen: set[Variable] = set()
    for variable in _accumulators(held):
        if peak_registers(held.without(chosen)) <= budget:
            break
        needed = register_count(variable, held.layouts[variable]) * num_threads * 4
        if needed <= shared_bytes:
            chosen.add(variable)
            shared_bytes -= needed
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


def _walk(
    block: tuple[Statement, ...],
    after: frozenset[Variable],
    sizes: Mapping[Variable, int],
    facts: Facts,
    across: Set[Statement] | None,
) -> tuple[frozenset[Variable], int]:
    """(live before the block, peak inside), from the last statement to the first."""
    live, peak = after, 0
    for statement in reversed(block):
        if inner := bodies(statement):
            repeated = isinstance(statement, (For, While))
            again = (
                frozenset(v for body in inner for v in _read_before_written(body, facts)) if repeated else frozenset()
            )
            found = [_walk(body, live | again, sizes, facts, across) for body in inner]
            peak = max(peak, *(inside for _, inside in found))
            skipped = live if repeated or isinstance(statement, If) else frozenset()
            live = frozenset().union(skipped, *(before for before, _ in found))
        used = frozenset(v for expr in expressions(statement) for v in _reads(expr, facts))
        kept = live - frozenset(assigned_variables(statement))
        live = kept | used
        counted = live if across is None else kept if statement in across else frozenset()
        peak = max(peak, sum(sizes.get(variable, 0) for variable in counted))
    return live, peak


def _read_before_written(body: tuple[Statement, ...], facts: Facts) -> set[Variable]:
    """Variables whose value comes from before the block, or from a loop's previous iteration."""
    written: set[Variable] = set()
    found: set[Variable] = set()
    for statement in statements(body):
        for expr in expressions(statement):
            found |= {v for v in _reads(expr, facts) if v not in written}
        written |= set(assigned_variables(statement))
    return found


def _reads(expr: Expr, facts: Facts) -> set[Variable]:
    found: set[Variable] = set()
    for variable in used_variables(expr):
        if variable in facts.absorbed:
            found |= _reads(facts.definitions[variable], facts)
        else:
            found.add(variable)
    return found
