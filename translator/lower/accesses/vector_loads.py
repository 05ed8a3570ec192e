"""The load of one vector: the helper that brings it, whole, under a condition, or as far as an end."""

from __future__ import annotations

from ...ir.nodes import Assign, Literal
from ...schedule.accesses.access import Access, load_operands
from ..context import Context
from ..text.literals import literal_text
from ..text.point import Point
from ..text.unit import Spelled
from .conditions import uniform_test, valid_count
from .vectors import width_name


def vector_load(
    context: Context, load: Assign, access: Access, point: Point, target: str, source: str, modifier: str = ""
) -> Spelled:
    """The vector of a load that begins at a point: from the address `source` to the registers from `target` on."""
    other, type_ = load_operands(load)[2], load.target.type
    test, count = uniform_test(context, access, point, load.target), valid_count(context, access, point)
    kind = "bounded" if count else "if" if test else ""
    bools = type_.dtype.is_bool()
    helper = "_".join(filter(None, ("load_bools" if bools else "load_vec", kind, modifier)))
    context.use_helper("load_vec", helper, kind=kind, modifier=modifier, bools=bools)
    context.needs.packets |= {access.width * type_.dtype.itemsize}
    number = other.value if isinstance(other, Literal) else 0
    fill = literal_text(number, type_.dtype, infinity=context.constants.infinity)
    if other is not None and not isinstance(other, Literal):
        fill = context.speller.text(other, point)
    values = {
        "width": width_name(context, point.layout, access),
        "target": target,
        "source": source,
        "suffix": f"_{modifier}" if modifier else "",
        "helper": helper,
        "kind": kind,
        "fill": fill,
    }
    if count is not None:
        values["count"] = f"{test.within(4)} ? {count.within(4)} : 0" if test else count.text
    elif test is not None:
        values["condition"] = test.text
    return Spelled("load_vec", values)
