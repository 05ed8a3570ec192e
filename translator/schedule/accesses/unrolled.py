"""How many trips of a loop stand behind each other, so that the loads of several are under way before the first is used.

In: a loop without a ring. Out: a factor. A thread that loads a few elements a trip waits for memory in every one of them;
where the number of trips is known, and no trip has threads wait for each other, several are written as one. Where trips
divide by what only counts them, such as the weights of Welford's sums, all are, so that divisors are numbers. So are those of a
loop with a condition that numbers decide (`schedule/rewrites/counted_whiles.py`): what counts them is no variable then. Of loops
in loops all trips are written out if they load little: the compiler does that with the inner ones alone.

Of a loop that loads an iteration ahead into registers (`schedule/staging/next_loads.py`), and in whose trips threads wait for
other loads besides, two trips stand behind each other: the second has registers of its own for what comes, where one trip would
copy them at its end, and so wait for them.

A loop of wgmma whose sums other statements use as well is never unrolled: ptxas (NVRTC 13.0 to 13.5) does that by itself where it
knows the number of trips, and then takes one trip's sum for another's. Nor does a `loop_unroll_factor` of the user's unroll it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from itertools import chain

from ...analysis.facts import Facts
from ...ir.nodes import Assign, Call, Effect, Expr, For, If, Inlined, Literal, Note, Statement, Use, Variable, While
from ...ir.structured import assigns, is_elementwise
from ...ir.walk import assigned_variables, nested, read_variables, statements, subexpressions, used_variables
from ..products.dot_plan import DotPlan
from ..tiles.layout import Layout

ALL_TRIPS = 8  # are written out if there are no more
ALL_COUNTED_TRIPS = 32  # of trips that divide by what counts them
TRIPS_AT_ONCE = 4
TRIPS_OF_RECURRENCE = 2  # where one loads for the next
MOST_ELEMENTS = 8  # that a thread loads of a tile in a trip: with more, a trip has enough loads of its own
MOST_STATEMENTS = 40
MOST_OF_NEST = 64  # elements that a thread loads in a nest of loops, such as those of a window of 3 x 3
DIVISIONS = ("div", "fdiv", "div_rn")


def unroll_factor(
    loop: For, facts: Facts, layouts: Mapping[Variable, Layout], for_next: Container[Variable] = ()
) -> int | None:
    """The factor; None where the loop stays as it is. `for_next` are the tiles that are loaded an iteration ahead."""
    if _waits_besides(loop, for_next):
        return TRIPS_OF_RECURRENCE
    numbers = trips_of_numbers(loop, facts)
    if numbers is None:
        return None
    trips = len(numbers)
    inner = list(statements(loop.body))
    if any(isinstance(statement, For) for statement in inner):
        size = _size_of_nest(loop.body, facts, layouts)
        return trips if size is not None and 0 < size * trips <= MOST_OF_NEST else None
    sizes = [size for statement in inner if (size := _loaded(statement, layouts))]
    if trips < TRIPS_AT_ONCE or not sizes or max(sizes) > MOST_ELEMENTS or len(inner) > MOST_STATEMENTS:
        return None
    if not all(_is_simple(statement) for statement in inner):
        return None
    all_trips = ALL_COUNTED_TRIPS if _divides_by_counters(loop, facts) else ALL_TRIPS
    return trips if trips <= all_trips else TRIPS_AT_ONCE


def _waits_besides(loop: For, for_next: Container[Variable]) -> bool:
    """Whether trips load what the next one needs, and something that they need themselves."""
    loads = [s for s in loop.body if isinstance(s, Assign) and assigns(s, "load")]
    ahead = [load.target in for_next for load in loads]
    return any(ahead) and not all(ahead)


def trips_of_numbers(loop: For, facts: Facts) -> range | None:
    """What a loop's variable goes through, where numbers say it."""
    start, stop, step = (_number(bound, facts) for bound in (loop.start, loop.stop, loop.step))
    if start is None or stop is None or not step:
        return None
    return range(start, stop, step)


def _loaded(statement: Statement, layouts: Mapping[Variable, Layout]) -> int:
    """How many elements of a tile a thread loads in a statement."""
    if not assigns(statement, "load") or statement.target not in layouts:
        return 0
    return layouts[statement.target].num_registers


def _size_of_nest(block: tuple[Statement, ...], facts: Facts, layouts: Mapping[Variable, Layout]) -> int | None:
    """How many elements a thread loads in a block and in the loops inside of it; None where these are not to be written out."""
    total = 0
    for statement in block:
        if isinstance(statement, For):
            trips, size = trips_of_numbers(statement, facts), _size_of_nest(statement.body, facts, layouts)
            if trips is None or size is None:
                return None
            total += len(trips) * size
        elif isinstance(statement, If) or not _is_simple(statement):
            return None
        elif isinstance(statement, Inlined):
            size = _size_of_nest(statement.body, facts, layouts)
            if size is None:
                return None
            total += size
        else:
            total += _loaded(statement, layouts)
    return total


def unrolls_by_itself(loop: For, facts: Facts) -> bool:
    """Whether ptxas may unroll a loop unasked: its trips are a number."""
    return trips_of_numbers(loop, facts) is not None


def stays_rolled(loop: For, dots: Mapping[Statement, DotPlan]) -> bool:
    """Whether a loop must not be unrolled: not only products read and write the sums of wgmma."""
    inner = list(statements(loop.body))
    products = [s for s in inner if isinstance(s, Assign) and s in dots and dots[s].instruction.kind == "wgmma"]
    sums = {product.target for product in products}
    adding = {product for product in products if _adds_to_its_sum(product)}
    others = (s for s in inner if s not in adding)
    return any(not sums.isdisjoint((*read_variables(s), *assigned_variables(s))) for s in others)


def _adds_to_its_sum(dot: Assign) -> bool:
    sums = dot.value.args[2:] if isinstance(dot.value, Call) else ()
    return bool(sums) and isinstance(sums[0], Use) and sums[0].variable is dot.target


def is_written_out(loop: While, layouts: Mapping[Variable, Layout]) -> bool:
    """Whether all trips of a loop with a condition are written behind each other: few, and of simple statements."""
    inner = [*statements(loop.prelude), *statements(loop.body)]
    sizes = [layouts[tile].num_registers for s in inner for tile in assigned_variables(s) if tile in layouts]
    few = loop.trips is not None and loop.trips <= ALL_TRIPS and len(inner) <= MOST_STATEMENTS
    return few and max(sizes, default=1) <= MOST_ELEMENTS and all(_is_simple(statement) for statement in inner)


def _divides_by_counters(loop: For, facts: Facts) -> bool:
    """Whether a trip divides by what follows from numbers and from how many trips there have been."""
    values: dict[Variable, list[Expr]] = {loop.variable: []}
    counters: set[Variable] = {loop.variable}
    for statement in statements(loop.body):
        if isinstance(statement, Assign) and is_elementwise(statement.value):
            values.setdefault(statement.target, []).append(statement.value)
            counters.add(statement.target)
        elif isinstance(statement, If):
            for inner in nested(statement):
                for target in assigned_variables(inner):
                    values.setdefault(target, []).append(statement.condition)

    def counts(expr: Expr) -> bool:
        return all(v in counters or _number(Use(v.type, v), facts) is not None for v in used_variables(expr))

    while others := {v for v in counters if not all(map(counts, values[v]))}:
        counters -= others
    divisors = (
        part.args[1]
        for value in chain.from_iterable(values.values())
        for part in subexpressions(value)
        if isinstance(part, Call) and part.op in DIVISIONS
    )
    return any(counts(divisor) and counters & set(used_variables(divisor)) for divisor in divisors)


def _is_simple(statement: Statement) -> bool:
    """Whether a statement is arithmetic, an access to memory, or a choice between such."""
    if isinstance(statement, Effect):
        return statement.call.op == "store"
    if isinstance(statement, Assign):
        return assigns(statement, "load") or is_elementwise(statement.value)
    return isinstance(statement, (If, Inlined, Note))


def _number(expr: Expr, facts: Facts) -> int | None:
    while isinstance(expr, Use) and expr.variable in facts.definitions:
        expr = facts.definitions[expr.variable]
    return int(expr.value) if isinstance(expr, Literal) else None
