"""What copies find their addresses by, such as blocks of a page table: read an iteration before the copies are started.

Each thread has what its own copies need in registers. The copies of an iteration are followed by the loads for the next
one's, which have a whole iteration to arrive. `schedule/staging/read_ahead.py` decides which loads these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.nodes import Assign, Expr, Use, Variable
from ...ir.rewrite import substituted
from ...ir.walk import top_statements
from ..accesses.memory import lower_load
from ..context import Context, ctype
from ..shared.convert import conversions_before
from ..text.literals import literal_text
from ..text.operators import Text
from ..text.tags import tag
from ..text.unit import Branch, Comment, Declaration, Lambda, Line, Node
from .loop_bounds import compared, steps_on, surely_runs
from .ring_loop import RingLoop


@frozen
class ReadingAhead:
    """The parts of it in a loop's text.

    Attributes:
      before: registers, and the functions that fill them, ahead of the function that starts copies.
      functions: the names of these, the one that is called for the next iteration first.
      loop: the loop.
    """

    before: tuple[Node, ...]
    functions: tuple[str, ...]
    loop: RingLoop

    def behind_copies(self, iteration: str) -> tuple[Node, ...]:
        """What follows the copies of an iteration."""
        return tuple(self._call(name, Text(iteration), ahead) for ahead, name in enumerate(self.functions, 1))

    def at_first(self) -> tuple[Node, ...]:
        """What the copies of the first iteration need: as if those of iterations before it had been started."""
        count = len(self.functions)
        calls = [(trip, ahead) for trip in range(-count, 0) for ahead in range(1, count + 1) if trip + ahead >= 0]
        return tuple(
            self._call(
                self.functions[ahead - 1],
                self.loop.bounds.start,
                trip + ahead,
                surely_runs(self.loop.statement, trip + ahead + 1),
            )
            for trip, ahead in calls
        )

    def _call(self, name: str, first: Text, ahead: int, surely: bool = False) -> Node:
        """Reads what an iteration's copies need, where there is such an iteration: so many after the `first`."""
        bounds = self.loop.bounds
        iteration = steps_on(first, Text(str(ahead)), bounds.step) if ahead else first
        call = Line(f"{name}({iteration.text});")
        return call if surely else Branch(compared(self.loop.statement, iteration, bounds.stop), (call,))


def read_ahead(context: Context, loop: RingLoop, copied: Sequence[Assign]) -> ReadingAhead:
    """The text for what the loads `copied`, which the loop starts ahead, find their addresses by."""
    tiles = {load.target for load in copied}
    distances = {one.variable: one.distance for one in loop.ring.ahead if one.tile in tiles}
    statement = loop.statement
    top = [s for s in top_statements(statement.body) if isinstance(s, Assign)]
    loads = _without_repetition(context, [s for s in top if s.targets[0] in distances], distances)
    context.ahead.read_ahead |= set(distances)
    prepare, moved = conversions_before(context, loads)
    when = {load.target: "next" if distances[load.target] == 1 else "later" for load in loads}
    registers: list[Node] = [
        _register(context, variable, f"for the copies that are started {word}") for variable, word in when.items()
    ]
    filling: list[Node] = []
    functions: list[str] = []
    name, kind = context.names.variable(statement.variable), ctype(statement.variable.type)
    with context.instead.conversions(moved):
        for distance in range(1, max(distances.values(), default=0) + 1):
            reading: list[Node] = []
            for load in loads:
                if distances[load.target] == distance:
                    note = "read ahead of the copies" if distance == 1 else "and of what finds their addresses"
                    reading += [*tag(load.origin, note, bool(reading)), *lower_load(context, load)]
            function = context.names.once(
                "find_tiles" if distance == 1 else "find_further", ("find", statement, distance)
            )
            what = "the tiles" if distance == 1 else f"what `{functions[-1]}` reads"
            functions.append(function)
            filling += [
                Comment(
                    f"Reads where {what} of the iteration at `{name}` {'lie' if distance == 1 else 'lies'} in memory."
                ),
                Lambda(function, f"{kind} {name}", tuple(reading)),
            ]
    return ReadingAhead((*prepare, *registers, *filling), tuple(functions), loop)


def running_totals(context: Context, loop: RingLoop) -> tuple[Node, ...]:
    """What is assigned behind the copies of an iteration, in their order, so that those of the next find their addresses."""
    top = (s for s in top_statements(loop.statement.body) if isinstance(s, Assign))
    own = tuple(s for s in top if s.targets[0] in loop.ring.running)
    context.notes.behind_copies -= set(own)  # where a loop is lowered a second time
    nodes = loop.body(own)
    context.notes.behind_copies |= set(own)
    return nodes


def read_values(context: Context, loop: RingLoop, copied: Sequence[Assign]) -> ReadingAhead:
    """The same for scalars that no asynchronous copy can take: each iteration finds its values in registers.

    Behind the last of them stand the loads of the next iteration's.
    """
    statement = loop.statement
    taken = {load.target for load in copied} | {one.tile for one in loop.ring.ahead}
    top = [s for s in top_statements(statement.body) if isinstance(s, Assign)]
    own = {*loop.ring.own} - taken - context.facts.unused
    loads = [s for s in top if s.targets[0] in own and not s.target.type.is_tile]
    if not loads:
        return ReadingAhead((), (), loop)
    registers: list[Node] = []
    reading: list[Node] = []
    for load in loads:
        variable = context.temporary(load, f"next_{load.target.stem}", load.target.type)
        context.ahead.values[load.target] = context.names.variable(variable)
        registers.append(_register(context, variable, "for the next iteration"))
        note = tag(load.origin, "read ahead", bool(reading), again=True)
        reading += [*note, *lower_load(context, replace(load, targets=(variable,)))]
    name, kind = context.names.variable(statement.variable), ctype(statement.variable.type)
    function = context.names.once("read_values", ("values", statement))
    what = Comment(f"Reads the values of the iteration at `{name}`.")
    filling = Lambda(function, f"{kind} {name}", tuple(reading))
    found = ReadingAhead((*registers, what, filling), (function,), loop)
    context.notes.after[loads[-1]] = found.behind_copies(name)
    return found


def take_value(context: Context, load: Assign) -> tuple[Node, ...]:
    """A scalar from the register that it was read into an iteration ago."""
    value = context.ahead.values[load.target]
    return context.bind_scalar(load, load.target, value)


def _without_repetition(context: Context, loads: list[Assign], distances: dict[Variable, int]) -> list[Assign]:
    """The loads without those whose registers would be the same as another's: they share its name."""
    found: list[Assign] = []
    first: dict[object, Variable] = {}
    same: dict[Variable, Expr] = {}
    for load in loads:
        variable = load.target
        key = (substituted(load.value, same), context.schedule.layouts.get(variable), distances[variable])
        other = first.setdefault(key, variable)
        if other is variable:
            found.append(load)
        else:
            same[variable] = Use(other.type, other)
            context.names.share(variable, other)
    return found


def _register(context: Context, variable: Variable, comment: str) -> Declaration:
    """The declaration of what is read ahead."""
    layout = context.schedule.layouts.get(variable)
    start = "{}" if layout else "nullptr" if variable.type.is_pointer else literal_text(0, variable.type.dtype)
    return replace(context.declaration(variable, layout), value=start, comment=comment)
