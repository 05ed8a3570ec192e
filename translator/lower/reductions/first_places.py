"""The extreme value of a thread's elements, and the first place that has it.

A chain of states, each of which is chosen by its value and its place, is several dependent instructions an element. The value
alone is one, and comparing the elements with it afterwards depends on nothing before.
"""

from __future__ import annotations

from ...ir.nodes import Assign, Combine
from ..context import Context
from ..text.operators import ZERO, Text
from ..text.point import Index, Point
from ..text.register_loops import axis_indices
from ..text.unit import Assignment, Branch, Declaration, Node, unrolled, unrolled_from_behind
from .combine import extremum, neutral
from .levels import combined
from .reduction import Reduction, first_value, has_padding, inside_tests, is_array, loop_names, masked, source_point

WORDS = {"argmax": ("max", "greatest"), "argmin": ("min", "least")}


def first_of_extremes(
    context: Context, statement: Assign, plan: Reduction, kept: Point, result: str, declares: bool
) -> tuple[Node, ...]:
    """The state of a thread's elements along the axis of an argmax or argmin; () where there is one, or for anything else.

    Elements that are padding come behind the others of a thread: they change no value, and are not the first that has it.
    """
    combine: Combine = statement.value.attribute("combine")  # type: ignore[attr-defined]
    axis = plan.axes[0]  # such a reduction has one
    if combine.op not in WORDS or plan.source.registers(axis) == 1:
        return ()
    op, word = WORDS[combine.op]
    operand, dtype = plan.operands[0], plan.operands[0].type.dtype
    index = loop_names(plan, kept, axis_indices(context, plan.source))[axis]
    count = context.count(plan.source.axes[axis])
    value, first, elements = (
        context.names.once(one, (one, statement), f"{statement.targets[0].name}_{one}")
        for one in (word, "first", "candidates")
    )

    def element(place: Text) -> Text:
        if not is_array(context, operand):  # what is computed for an element stands in the text once
            return Text(f"{elements}[{place.text}]")
        return context.speller.spell(operand, at(place))

    def at(place: Text) -> Point:
        return source_point(plan, kept, {axis: Index(place)})

    def candidate(place: Text) -> Text:
        return masked(context, plan, at(place), element(place), neutral(op, dtype))

    nodes: list[Node] = []
    if not is_array(context, operand):
        fill = Assignment(f"{elements}[{index}]", context.speller.spell(operand, at(Text(index))).assigned)
        nodes = [Declaration(dtype.cuda, elements, sides=f"[{count}]"), unrolled(index, count, (fill,))]
    place = context.speller.text(plan.operands[1], at(Text(first)))
    present = [" && ".join(test.text for test in inside_tests(context, plan, at(ZERO)))] if has_padding(plan) else []
    is_it = Branch(f"{element(Text(index)).within(10)} == {value}", (Assignment(first, index),))
    return (
        *nodes,
        Declaration(dtype.cuda, value, candidate(ZERO).text),
        unrolled(index, count, (combined(extremum(op, dtype), value, candidate(Text(index))),), start=1),
        Declaration("int", first, "0"),
        unrolled_from_behind(index, count, (is_it,)),
        first_value(plan, result, f"{{{', '.join((value, place, *present))}}}", declares),
    )
