"""The structs that reductions combine through: asked for as helpers, one per combination and state."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...analysis.commuting import commutes
from ...ir.nodes import Call, Combine
from ...ir.types import ORDINALS, ValueType
from ...language.dtypes import DType
from ..functions import lower_combination
from ..text.names import Names, type_word
from ..text.operators import Text
from ..text.unit import Line, Node, const
from .combine import Combination, extremum, known_combination

if TYPE_CHECKING:
    from ..context import Context


def combination_of(context: Context, call: Call, padding: bool) -> Combination:
    """The combination of a `reduce`; `padding` says that some elements may be no part of the tile."""
    combine: Combine = call.attribute("combine")
    dtypes = tuple(arg.type.dtype for arg in call.args)
    known = known_combination(combine, dtypes)
    if known is not None:
        name = _struct_name(context, known.struct, (dtypes[0],), (combine.op,))
        text = known.expression("a", "b") if known.expression else ""
        body = (Line(f"return {text};"),)
        context.use_helper("combine_element", name, state=known.state, left="a", right="b", body=body)
        return replace(known, struct=name)
    if combine.parts:
        return _joint(context, combine, dtypes)
    words = {"argmax": "ArgMax", "argmin": "ArgMin"}
    base = words.get(combine.op or "", "".join(word.capitalize() for word in combine.name.split("_") if word))
    meaning = (combine.op or combine.body, padding)
    name = _struct_name(context, base, dtypes, meaning, f"{base}OfPart" if padding else f"{base}OfWhole")
    fields: tuple[tuple[str, str], ...]
    if combine.op in words:
        fields = ((dtypes[0].cuda, "value"), (dtypes[1].cuda, "index"))
        return _states(context, name, fields, _argument_body(combine.op, dtypes[0], padding), padding)
    order_is_free = commutes(combine)
    if len(dtypes) == 1 and not padding:
        return replace(_custom_element(context, name, combine, dtypes[0]), commutes=order_is_free)
    fields = tuple((dtype.cuda, field) for dtype, field in zip(dtypes, _field_names(combine), strict=True))
    states = _states(context, name, fields, _custom_body(context, combine, fields, padding), padding)
    return replace(states, commutes=order_is_free)


def _struct_name(
    context: Context, base: str, dtypes: tuple[DType, ...], meaning: tuple[object, ...], other: str = ""
) -> str:
    """One struct per combination and element types; the first keeps the plain name.

    `meaning` is all else that its text depends on, `other` a second choice of a name that says so.
    """
    key = (base, dtypes, meaning)
    if key not in context.needs.structs:
        word = "".join(type_word(ValueType(dtype)).capitalize() for dtype in dtypes)
        choices = dict.fromkeys((base, other or base, f"{base}{word}", f"{other or base}{word}"))
        context.needs.structs[key] = context.names.fresh(*choices)
    return context.needs.structs[key]


def _states(
    context: Context, name: str, fields: tuple[tuple[str, str], ...], body: tuple[Node, ...], padding: bool
) -> Combination:
    if padding:
        fields = (*fields, ("bool", "present"))
        body = (
            Line("if (!right.present) return left;", "padding past the tile's side"),
            Line("if (!left.present) return right;"),
            *body,
        )
    context.use_helper("shuffle_xor")
    context.use_helper("combine_state", name, fields=fields, body=body)
    context.use_helper("shuffle_state", f"shuffle_xor of {name}", state=name, fields=fields)
    return Combination(name, name, tuple((field, field) for _, field in fields), None, None)


def _joint(context: Context, combine: Combine, dtypes: tuple[DType, ...]) -> Combination:
    """Reductions that share an exchange: a field for each."""
    names = Names([])
    fields, values = [], []
    for (op, target), dtype in zip(combine.parts, dtypes, strict=True):
        known = known_combination(Combine(op, op), (dtype,))
        field = names.fresh(target, *(f"{target}_{ordinal}" for ordinal in ORDINALS[1:]))
        fields.append((dtype.cuda, field))
        if known is None or known.expression is None:
            raise ValueError(f"{op} is no combination of elements")
        values.append(known.expression(f"left.{field}", f"right.{field}"))
    base = "".join(word.capitalize() for word in combine.name.split("_"))
    key = (base, tuple(fields))
    if key not in context.needs.structs:
        context.needs.structs[key] = context.names.fresh(
            base, f"{base}Together", *(f"{base}{o.capitalize()}" for o in ORDINALS[2:])
        )
    return _states(
        context, context.needs.structs[key], tuple(fields), (Line(f"return {{{', '.join(values)}}};"),), False
    )


def _argument_body(op: str, dtype: DType, padding: bool) -> tuple[Node, ...]:
    """The better value wins; NaN loses to every number; among equals the lower index, so that all lanes find the same one.

    The better value is what a maximum or minimum of the same tile is too, so that the compiler shares them. Of two NaN it
    may be either's index, which gives way to a number's: `reduce_states` has what stands for a tile of nothing but NaN.
    """
    better = extremum("max" if op == "argmax" else "min", dtype)("left.value", "right.value")
    value = const(dtype.cuda, "value", better, "NaN only if both are")
    is_earlier = "right.value == value && right.index < left.index"
    earlier = const("bool", "earlier", is_earlier, "of equal values the lower index wins")
    chosen, present = "left.value == value && !earlier ? left.index : right.index", ", true" if padding else ""
    return (value, earlier, Line(f"return {{value, {chosen}{present}}};"))


def _custom_element(context: Context, name: str, combine: Combine, dtype: DType) -> Combination:
    names = Names([])
    left, right = names.variable(combine.left[0]), names.variable(combine.right[0])
    body, (result,) = lower_combination(context, combine.body, names, combine.results)
    body = (*body, Line(f"return {result.assigned};"))
    context.use_helper("combine_element", name, state=dtype.cuda, left=left, right=right, body=body)
    return Combination(name, dtype.cuda, (), lambda one, other: f"{name}::combine({one}, {other})", None)


def _custom_body(
    context: Context, combine: Combine, fields: tuple[tuple[str, str], ...], padding: bool
) -> tuple[Node, ...]:
    """The user's function, whose parameters are names of the fields of both sides."""
    names = Names([])
    for parameter in ("left", "right"):
        names.reserve(parameter)  # of the function around; a variable of the user's has another word behind its name
    present = {side: names.fresh(f"{side}_present") for side in ("left", "right")} if padding else {}
    nodes: list[Node] = []
    for side, variables in (("left", combine.left), ("right", combine.right)):
        bound = [*map(names.variable, variables), *([present[side]] if padding else [])]
        nodes.append(const("auto", f"[{', '.join(bound)}]", side))
    body, values = lower_combination(context, combine.body, names, combine.results)
    members = [in_braces(value, ctype) for value, (ctype, _) in zip(values, fields, strict=False)]
    result = ", ".join([*members, *(["true"] if padding else [])])
    return (*nodes, *body, Line(f"return {{{result}}};"))


def in_braces(value: Text, ctype: str) -> str:
    """A value as a member of a list in braces, where C++ lets no int become narrower unsaid: `max(x, y)`, `x & 3`."""
    return f"static_cast<{ctype}>({value.text})" if value.is_int else value.text


def _field_names(combine: Combine) -> tuple[str, ...]:
    """Names of a state's fields: what the two parameters for each have in common, "mean" of mean_1 and mean_2."""
    names, found = Names(["left", "right"]), []
    for one, other, ordinal in zip(combine.left, combine.right, ORDINALS[: len(combine.left)], strict=True):
        shared = "_".join(word for word in one.name.split("_") if word in other.name.split("_"))
        if not shared and one.name.rstrip("0123456789") == other.name.rstrip("0123456789"):
            shared = one.name.rstrip("0123456789")
        found.append(names.fresh(shared if shared.isidentifier() else ordinal, ordinal))
    return tuple(found)
