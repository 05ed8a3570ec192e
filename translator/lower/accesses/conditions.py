"""Masks as conditions: of an element, of a whole vector, of a scalar, and of the threads that act for others."""

from __future__ import annotations

from dataclasses import replace

from ...ir.nodes import Call, Expr, Literal, Statement, Variable
from ...ir.walk import MOVES
from ...language.dtypes import int32, int64
from ...schedule.accesses.access import Access, Bound
from ...schedule.tiles.layout import Layout
from ..context import Context
from ..text.operators import Text, conjunction
from ..text.point import Point
from ..text.unit import Branch, Comment, Node
from .vectors import width_name


def uniform_test(context: Context, access: Access, point: Point, loaded: Variable | None = None) -> Text | None:
    """The part of the mask that decides for a whole vector; None when there is none. `loaded` is the tile of a load."""
    return conjunction(context.masks.spelled(context, access.tests, point), _at_once(context, access, loaded))


def why_one_test(context: Context, statement: Statement, access: Access, layout: Layout) -> tuple[Node, ...]:
    """Says once per kernel and limit why a test of one index decides for several elements."""
    here, nodes = context.facts.at(statement), list[Node]()
    for test in access.tests:
        if not isinstance(test, Call) or test.op not in ("lt", "ge"):
            continue
        index, limit = test.args
        while isinstance(limit, Call) and limit.op in MOVES:
            limit = limit.args[0]
        if limit.type.is_tile and not isinstance(limit, Literal):
            continue
        runs, alike = here.info(index).contiguity, here.info(test).constancy
        text = context.speller.text(limit)
        for axis, (run, same) in enumerate(zip(runs, alike, strict=True)):
            width = _tested_at_once(context, access, layout, axis, run, same)
            if width and text != "0" and context.remarks.explained.setdefault(text, statement) == statement:
                what = f"One test for {width} elements: {text} and the index of the first are multiples of {width}."
                nodes.append(Comment(what))
    return tuple(dict.fromkeys(nodes))


def _tested_at_once(context: Context, access: Access, layout: Layout, axis: int, run: int, same: int) -> str:
    """The constant that counts the elements along an axis for which one test decides; "" where each has its own.

    The index that is tested goes up by one over `run` elements, and `same` of them have the same answer.
    """
    named = context.axis_names.find(layout.axes[axis])
    if named is not None and run > 1 and named.num_registers == named.run > 1 and same % named.run == 0:
        return named.vector if axis == access.axis else named.count  # all that a thread has along this axis
    if axis == access.axis and access.width > 1 and run % access.width == 0:
        return width_name(context, layout, access)
    return ""


def valid_count(context: Context, access: Access, point: Point) -> Text | None:
    """How many elements of the vector may be touched; None when all may."""
    counts = [_count(context, access, bound, point) for bound in access.bounds]
    if not counts:
        return None
    text = counts[0]
    for count in counts[1:]:
        text = Text(f"min({text.text}, {count.text})")
    return text


def _count(context: Context, access: Access, bound: Bound, point: Point) -> Text:
    index = context.speller.spell(bound.index, point)
    limit = context.speller.spell(_not_widened(bound.bound) if bound.wraps else bound.bound, point)
    if bound.wraps:
        name, index_type = "count_up_to" if bound.included else "count_below", bound.index.type.dtype
        values = {"included": bound.included, "index": index_type.cuda}
        helper = context.needs.distinct_helper("count_below", name, values, str(index_type.itemsize * 8))
        return Text(f"{helper}<{width_name(context, point.layout, access)}>({limit.text}, {index.text})")
    return limit if index.text == "0" else Text(f"{limit.within(12, '-')} - {index.within(13, '-')}", 12, "-")


def _not_widened(limit: Expr) -> Expr:
    """A limit without the cast to more bits that a call of a function implies."""
    if isinstance(limit, Call) and limit.op in MOVES:
        inner = _not_widened(limit.args[0])
        return replace(limit, type=limit.type.with_element(inner.type.element), args=(inner, *limit.args[1:]))
    widens = isinstance(limit, Call) and limit.op == "cast" and limit.args[0].type.dtype == int32
    return limit.args[0] if widens and limit.type.dtype == int64 else limit  # type: ignore[attr-defined]


def all_tests(context: Context, access: Access, point: Point, loaded: Variable | None = None) -> Text | None:
    """The whole mask at one element; `loaded` is the tile of a load."""
    tests = context.masks.spelled(context, access.tests, point)
    tests += [_bound_test(context, bound, point) for bound in access.bounds]
    return conjunction(tests, _at_once(context, access, loaded))


def _at_once(context: Context, access: Access, loaded: Variable | None) -> bool:
    """Whether all parts of a mask are computed before any decides: around a quotient in one of them there would be a branch.

    So there would be around loads that have one in common (`schedule/accesses/common_tests.py`). Behind branches nothing that one
    element's address and mask take overlaps with another's.
    """
    slow = len(access.tests) > 1 and any(map(context.speller.takes_long, access.tests))
    return slow or loaded in context.memory.tested_alike


def _bound_test(context: Context, bound: Bound, point: Point) -> Text:
    index, limit = context.speller.spell(bound.index, point), context.speller.spell(bound.bound, point)
    word = "<=" if bound.included else "<"
    return Text(f"{index.within(10, word)} {word} {limit.within(11, word)}", 10, word)


def copies_guard(context: Context, layout: Layout) -> str:
    """The condition under which a thread acts for all that hold copies of its elements; "" when there are none."""
    free = layout.free_thread_bits()
    terms: list[str] = []
    runs: list[list[int]] = []
    for bit in free:
        if runs and bit == runs[-1][-1] + 1:
            runs[-1].append(bit)
        else:
            runs.append([bit])
    for run in runs:
        terms.append(context.axis_names.first_of(range(run[0], run[-1] + 1), layout.thread_bits))
    return " && ".join(terms)


def both(guard: str, nodes: tuple[Node, ...], said: str = "") -> Branch:
    """Statements under a condition, and under their own one besides where that is all they are; `said` explains it."""
    inner = nodes[0]
    if len(nodes) > 1 or not isinstance(inner, Branch) or inner.otherwise or inner.comment:
        return Branch(guard, nodes, comment=said)
    loose = any(mark in inner.condition for mark in (" || ", " ? "))
    return Branch(f"{guard} && {f'({inner.condition})' if loose else inner.condition}", inner.then, comment=said)


def scalar_test(context: Context, mask: Expr | None) -> Text | None:
    """The mask of a scalar access; None where there is none or it is always true."""
    return None if mask is None or (isinstance(mask, Literal) and mask.value) else context.speller.spell(mask)
