"""Where a `for` loop starts, ends and how far it steps, as text.

As in Python, bounds are taken once: what the body changes of them is kept in front of the loop.
"""

from __future__ import annotations

from dataclasses import replace

from ...frozen import frozen
from ...ir.nodes import For, Literal, Statement, Variable
from ...ir.symbols import Name, Opposite
from ...ir.walk import assigned_variables, nested, used_variables
from ...language.dtypes import int32
from ...schedule.accesses.unrolled import stays_rolled, unrolls_by_itself
from ..context import Context, ctype
from ..text.operators import Text
from ..text.unit import Branch, Loop, Node, const

ONE = Text("1")


@frozen
class Bounds:
    """The three bounds of a loop."""

    start: Text
    stop: Text
    step: Text


def loop_stop(context: Context, statement: For) -> str:
    """The name for where a loop ends."""
    return context.names.once(f"{context.names.variable(statement.variable)}_stop", ("stop", statement.variable))


def find_bounds(context: Context, statement: For) -> tuple[list[Node], Bounds]:
    """Start, stop and step of a loop, and the lines in front of it that keep those which the loop would change."""
    nodes: list[Node] = []
    changed, variable = _assigned_in(statement), statement.variable
    texts = []
    for word, bound in (("start", statement.start), ("stop", statement.stop), ("step", statement.step)):
        text = context.speller.spell(bound)
        if changed.intersection(used_variables(bound)):
            name = context.names.variable(context.beside(statement, variable, word))
            nodes.append(const(ctype(variable.type), name, text.text, "the loop's bounds are taken once"))
            text = Text(name)
        texts.append(text)
    return nodes, Bounds(*texts)


def steps_on(start: Text, count: Text, step: Text) -> Text:
    """What a loop's variable is `count` steps after `start`."""
    down = step.text.startswith("-") and start.text != "0"
    size = replace(step, text=step.text[1:]) if down else step
    if ONE.text in (size.text, count.text):
        many = count if size.text == ONE.text else size
    else:
        many = Text(f"{count.within(13, '*')} * {size.within(13 if size.operator == '*' else 14, '*')}", 13, "*")
    if start.text == "0":
        return many
    sign, least = ("-", 13) if down else ("+", 12)
    return Text(f"{start.within(12, '+')} {sign} {many.within(least, sign)}", 12, sign)


def compared(loop: For, one: Text, other: Text) -> str:
    """Whether one value of a loop's variable comes before another one; a number stands behind what it is compared with."""
    if one.text.isdecimal():
        return has_trips(loop, one, other)
    return f"{one.within(11)} {'>' if loop.descending else '<'} {other.within(11)}"


def has_trips(loop: For, start: Text, stop: Text) -> str:
    """Whether a loop runs at all."""
    first, last = start.within(11), stop.within(11)
    return f"{first} > {last}" if loop.descending else f"{last} > {first}"


def if_any_trip(loop: For, bounds: Bounds, nodes: tuple[Node, ...], comment: str = "") -> tuple[Node, ...]:
    """What is done only if a loop runs at all: under that condition, unless its bounds are numbers that tell."""
    if surely_runs(loop):
        return nodes
    return (Branch(has_trips(loop, bounds.start, bounds.stop), nodes, comment=comment),)


def surely_runs(loop: For, trips: int = 1) -> bool:
    """Whether the bounds of a loop are numbers that tell that it has at least so many trips."""
    if not isinstance(loop.start, Literal) or not isinstance(loop.stop, Literal):
        return False
    start, stop = int(loop.start.value), int(loop.stop.value)
    if trips > 1:
        return isinstance(loop.step, Literal) and len(range(start, stop, int(loop.step.value))) >= trips
    return start > stop if loop.descending else start < stop


def for_header(statement: For, counter: str, bounds: Bounds) -> str:
    """The head of a loop that counts in `counter`."""
    kind = ctype(statement.variable.type)
    if isinstance(statement.step, Literal) and abs(int(statement.step.value)) == 1:
        advance = f"--{counter}" if statement.descending else f"++{counter}"
    elif isinstance(statement.step, Literal) and int(statement.step.value) < 0:
        advance = f"{counter} -= {_size(statement.step)}"
    else:
        advance = f"{counter} += {bounds.step.assigned}"
    test = compared(statement, Text(counter), bounds.stop)
    return f"for ({kind} {counter} = {bounds.start.assigned}; {test}; {advance})"


def _size(step: Literal) -> str:
    """How far a negative step goes, by its name where it has one that needs no cast."""
    symbol = step.symbol if step.type.element == int32 else None
    if isinstance(symbol, Opposite) and isinstance(symbol.operand, Name):
        return symbol.operand.word
    return str(-int(step.value))


def trips_of(context: Context, statement: For, header: str, trip: tuple[Node, ...], factor: int | None = None) -> Loop:
    """The loop itself: unrolled as the user asks, else `factor` times, or not at all where ptxas would do it wrongly."""
    factor = dict(statement.options).get("loop_unroll_factor") or factor
    asked, unasked = factor not in (None, 1), factor is None and unrolls_by_itself(statement, context.facts)
    if (asked or unasked) and stays_rolled(statement, context.schedule.dots):
        ptxas = "ptxas, which does it by itself, mixes up" if unasked else f"not {factor}: ptxas mixes up"
        return Loop(header, trip, unroll=True, factor=1, why=f"{ptxas} the trips' sums")
    return Loop(header, trip, unroll=factor is not None, factor=factor)


def _assigned_in(statement: Statement) -> set[Variable]:
    return {v for inner in nested(statement) for v in assigned_variables(inner)}
