"""Which tiles are loaded where they are used, element by element, because they would take too many registers.

In: the tiles that threads hold. Out: those of them. Elements that are loaded one by one have a register each until they are
used, and an address. Where one statement alone reads such a tile, with nothing but loads and arithmetic in between, the tile
becomes a function of the register's index, which loads; the compiler then has as many on their way as there is room for.
The kernel must not write to where such a tile is loaded from: all threads wait for the loads before a store overwrites them.
Nor may it assign anew, in between, what the address or the mask is made of.
"""

from __future__ import annotations

from collections import Counter

from ...analysis.facts import Facts, read_through
from ...frozen import frozen
from ...hardware import COPY_BYTES, MOST_OF_THREAD, REGISTER_FILE
from ...ir.nodes import Assign, Call, Effect, Expr, Literal, Note, Statement, Use, Variable
from ...ir.structured import assigned_call, is_elementwise
from ...ir.walk import MOVES, assigned_variables, blocks, expressions, statements
from ..accesses.access import load_operands, plan_load
from ..accesses.cache_hints import load_hint
from ..accesses.pointers import lasting_loads
from ..accesses.predicated import is_predicated
from ..staging.ring_plan import Rings
from .held_tiles import HeldTiles
from .layout import Layout
from .registers import OTHER_REGISTERS, peak_registers


@frozen
class _Waiting:
    """A tile that is loaded above, with no effect in between.

    Attributes:
      predicated: whether its elements are loaded by predicated instructions.
      changing: the variables that it is made of and that are assigned more than once.
    """

    predicated: bool
    changing: frozenset[Variable]


def choose_late_loads(held: HeldTiles, rings: Rings) -> frozenset[Variable]:
    """Decides for the tiles in registers; those that a ring copies ahead are arrays.

    Those that are many predicated loads are loaded where they are used, all of them where the registers cannot hold them.
    """
    kernel, facts, layouts = held.kernel, held.facts, held.layouts
    found: set[Variable] = set()
    if not layouts:
        return frozenset()
    # Of elements that are loaded one by one, cp.async takes those of 4 and 8 bytes.
    arrays = held.fixed | {v for ring in rings.rings for v in ring.own if v.type.dtype.itemsize in COPY_BYTES}
    threads = 1 << next(iter(layouts.values())).thread_bits
    room = min(REGISTER_FILE // threads, MOST_OF_THREAD) - OTHER_REGISTERS - peak_registers(held)
    lasts = lasting_loads(kernel)
    reads = Counter(v for s in statements(kernel.body) for expr in expressions(s) for v in read_through(expr, facts))
    for block in blocks(kernel.body):
        waiting: dict[Variable, _Waiting] = {}
        for statement in block:
            if isinstance(statement, Note):
                continue
            changed = {v for v in assigned_variables(statement) if facts.assignments[v] > 1}
            if changed:
                waiting = {v: one for v, one in waiting.items() if not changed & one.changing}
            if isinstance(statement, Assign) and (load := assigned_call(statement, "load")):
                target = statement.targets[0]
                if not lasts(load):
                    continue  # a store's barrier stands in front of what it computes
                if target in layouts and target not in arrays and _one_by_one(statement, layouts[target], facts):
                    predicated = _is_predicated(statement, layouts[target], facts)
                    waiting[target] = _Waiting(predicated, _changing(load, facts))
                continue
            late: set[Variable] = set()
            computed, same = _computed(statement, held)
            if computed is not None:
                here = [
                    v for v in read_through(computed, facts) if v in waiting and reads[v] == 1 and layouts[v] == same
                ]
                crowded = sum(_more_registers(v, layouts[v]) for v in here) > room
                late = {v for v in here if crowded or waiting[v].predicated}
                found |= late
            if computed is None or not isinstance(statement, Assign):
                waiting = {}
            elif late and facts.assignments[target := statement.targets[0]] == 1 and target not in arrays:
                # What follows from such elements can wait for its use as they do.
                changing = _changing(computed, facts).union(*(waiting[v].changing for v in late))
                waiting[target] = _Waiting(True, changing)
    return frozenset(found)


def _changing(expr: Expr, facts: Facts) -> frozenset[Variable]:
    return frozenset(variable for variable in read_through(expr, facts) if facts.assignments[variable] > 1)


def _computed(statement: Statement, held: HeldTiles) -> tuple[Expr | None, Layout | None]:
    """What a statement computes element by element, if it does, and in which layout.

    A store does so before the first element is stored, unless its value is only read or moved.
    """
    if isinstance(statement, Assign):
        layout = held.layouts.get(statement.targets[0])
        return (statement.value, layout) if is_elementwise(statement.value) else (None, None)
    call = statement.call if isinstance(statement, Effect) else None
    if call is None or call.op != "store" or not call.args[1].type.is_tile:
        return None, None
    value = call.args[1]
    while isinstance(value, Call) and value.op in MOVES:
        value = value.args[0]
    return (None if isinstance(value, (Use, Literal)) else value), held.runs_in.get(statement)


def _one_by_one(statement: Assign, layout: Layout, facts: Facts) -> bool:
    """Whether each register of a loaded tile costs an access of its own, without special wishes."""
    call, target = statement.value, statement.target
    if not isinstance(call, Call) or load_hint(call) or facts.assignments[target] != 1 or target.type.is_pointer:
        return False
    access = plan_load(statement, layout, facts)
    return access.width == 1 and not access.repeats and not access.scattered


def _is_predicated(load: Assign, layout: Layout, facts: Facts) -> bool:
    access, pointer = plan_load(load, layout, facts), load_operands(load)[0]
    return is_predicated(access, pointer, load.target.type, layout, facts.at(load))


def _more_registers(variable: Variable, layout: Layout) -> int:
    """How many registers more a tile takes while each element has its own."""
    elements = layout.num_registers
    return elements - elements * min(variable.type.dtype.bits, 32) // 32
