"""The load of one vector: the helper that brings it, whole, under a condition, or as far as an end."""

from __future__ import annotations

from ...ir.nodes import Assign, Expr, Literal
from ...ir.types import ValueType
from ...schedule.accesses.access import Access, load_operands
from ..context import Context
from ..text.literals import literal_text
from ..text.operators import Text
from ..text.point import Point
from ..text.unit import Spelled
from .conditions import uniform_test, valid_count
from .vectors import width_name


def vector_load(
    context: Context, load: Assign, access: Access, point: Point, target: str, source: str, modifier: str = ""
) -> Spelled:
    """The vector of a load that begins at a point: from the address `source` to the registers from `target` on."""
    test, count = uniform_test(context, access, point, load.target), valid_count(context, access, point)
    width = access.width, width_name(context, point.layout, access)
    other, end = load_operands(load)[2], count_under(test, count)
    return vector_within(context, load.target.type, other, point, width, test, end, target, source, modifier)


def count_under(test: Text | None, count: Text | None) -> Text | None:
    """How many elements of a vector may be touched, none where a test fails; None where no limit tells."""
    return Text(f"{test.within(4)} ? {count.within(4)} : 0", 3, "?") if test and count else count


def vector_within(
    context: Context,
    type_: ValueType,
    other: Expr | None,
    point: Point,
    width: tuple[int, str],
    test: Text | None,
    count: Text | None,
    target: str,
    source: str,
    modifier: str = "",
) -> Spelled:
    """A vector of so many elements, whose constant is named too, if a test holds, or as far as a count goes; beyond, `other`."""
    kind = "bounded" if count else "if" if test else ""
    bools = type_.dtype.is_bool()
    helper = "_".join(filter(None, ("load_bools" if bools else "load_vec", kind, modifier)))
    context.use_helper("load_vec", helper, kind=kind, modifier=modifier, bools=bools)
    context.needs.packets |= {width[0] * type_.dtype.itemsize}
    number = other.value if isinstance(other, Literal) else 0
    fill = literal_text(number, type_.dtype, infinity=context.constants.infinity)
    if other is not None and not isinstance(other, Literal):
        fill = context.speller.text(other, point)
    values = {
        "width": width[1],
        "target": target,
        "source": source,
        "suffix": f"_{modifier}" if modifier else "",
        "helper": helper,
        "kind": kind,
        "fill": fill,
    }
    if count is not None:
        values["count"] = count.text
    elif test is not None:
        values["condition"] = test.text
    return Spelled("load_vec", values)
