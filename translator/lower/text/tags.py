"""Quotes of the source: the user's comments and lines, and what the translator has to say about them.

Where two roles share a kernel, a line whose code both execute is quoted at the first of them; at the other, one comment
names all such lines that follow. A loop or branch around code of both is quoted twice, and says whose part it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.nodes import Assign, Call, Effect, Origin, Statement, Use
from ...ir.structured import assigns, is_promise_alone
from ...ir.walk import statements
from ..context import Context
from .unit import Blank, Comment, Node

CONVERSIONS = ("cast", "hint", "expand_dims", "broadcast")
OF_ALL_TRIPS = "for the loads of all trips"
PARTS = {"producer": "the loading thread's part", "consumer": "the multiplying warps' part"}


def same_source(one: Origin, other: Origin) -> bool:
    """Whether two statements came from one statement of the source."""
    return (one.span, one.text, one.remark) == (other.span, other.text, other.remark)


def is_repeated(context: Context, group: list[Statement]) -> bool:
    """Whether the other role has shown the same code under its tag already."""
    lines = _lines(group) if context.role.name == "consumer" else []
    return bool(lines) and set(lines) <= context.role.shared_lines.same


def is_elsewhere(context: Context, group: list[Statement]) -> bool:
    """Whether the code of some statements stands, under its tag, where their loads are started."""
    if not all(isinstance(s, Assign) for s in group):
        return False
    if all(s in context.notes.behind_copies for s in group):
        return True
    targets = [s.targets[0] for s in group if isinstance(s, Assign)]
    if any(target in context.ahead.read_ahead for target in targets):
        return all(target in context.ahead.read_ahead | context.facts.unused for target in targets)
    started = (
        isinstance(s, Assign)
        and (s.targets[0] in context.ahead.stage_of or (context.role.name == "consumer" and assigns(s, "box_load")))
        for s in group
    )
    return all(started)


def again(groups: list[list[Statement]]) -> Comment:
    """The comment above code that the other role has shown already."""
    lines = sorted({line for group in groups for line in _lines(group)})
    return Comment(f"{', '.join(_ranges(lines))} again, for the multiplying warps.")


def _lines(group: list[Statement]) -> list[int]:
    return [s.origin.span.line for s in statements(tuple(group))]


def _ranges(lines: list[int]) -> Iterator[str]:
    runs: list[list[int]] = []
    for line in lines:
        if runs and line == runs[-1][-1] + 1:
            runs[-1].append(line)
        else:
            runs.append([line])
    for run in runs:
        yield f"L{run[0]}" if len(run) == 1 else f"L{run[0]}-L{run[-1]}"


def source_of(group: list[Statement], tagged: bool) -> list[Node]:
    """What says where code without a tag came from."""
    return [] if tagged else [Comment("", (group[0].origin.file, group[0].origin.span.line))]


def tag(origin: Origin, note: str, separated: bool = True, again: bool = False) -> list[Node]:
    """The user's comments and the quoted source lines, with what the translator has to say about them.

    The comments are not said `again`.
    """
    nodes: list[Node] = [Blank()] if origin.blank_before and separated else []
    nodes += [Comment(comment) for comment in origin.comments if not again]
    of_part = note in PARTS.values()  # which says nothing of what was done to the line
    remarks = (origin.noted(note) if note and (of_part or not origin.note) else origin).remark
    remark = f"({remarks})" if remarks else ""
    lines = origin.text.splitlines()
    for number, line in enumerate(lines):
        place = origin.span.line + number
        text, source, last = f"{origin.place(place)}: {line.strip()}", (origin.file, place), number == len(lines) - 1
        nodes.append(Comment(text, source, remark, origin) if last else Comment(text, source))
    return nodes


def remark(context: Context, group: list[Statement], code: list[Node]) -> str:
    """What the tag of a source line says about its code: why there is none, or who executes it."""
    if not code:
        notes = (note for statement in group for note in _notes(context, statement))
        return next(notes, "" if group[0].origin.remark else "no code")
    said = [part(context, group[0].origin)]
    if context.around.loads_first:
        said = [OF_ALL_TRIPS]
    if any(isinstance(s, Assign) and s.targets[0] in context.ahead.own for s in group):
        said = ["from where it was copied"]
    elif any(isinstance(s, Assign) and s.targets[0] in context.ahead.values for s in group):
        said = ["read an iteration ago"]
    return ", ".join(filter(None, (*said, "the rest formed where it is used" if _goes_on(context, group) else "")))


def _goes_on(context: Context, group: list[Statement]) -> bool:
    """Whether a line's own value stands for an expression, other than a conversion, of what its code computes."""
    last = group[-1]
    if not isinstance(last, Assign) or len(last.targets) != 1 or last.target not in context.facts.absorbed:
        return False
    if last.target in context.masks.named:
        return False
    value = last.value
    while isinstance(value, Call) and value.op in CONVERSIONS:
        value = value.args[0]
    return not isinstance(value, Use)


def is_second_part(context: Context, group: list[Statement]) -> bool:
    """Whether the other role has quoted the line for its own part."""
    return context.role.name == "consumer" and group[0].origin.span.line in context.role.shared_lines.parts


def part(context: Context, origin: Origin) -> str:
    """Whose part of a line this is; "" where there is only one."""
    return PARTS[context.role.name] if context.role.name and origin.span.line in context.role.shared_lines.parts else ""


def _notes(context: Context, statement: Statement) -> Iterator[str]:
    """Why a statement became no code."""
    if isinstance(statement, Effect) and statement.call.op == "assume":
        yield "taken into account"
    if not isinstance(statement, Assign) or len(statement.targets) != 1:
        return
    target = statement.target
    if target in context.names.of_trip:
        yield "loaded in front of the loop"
    if context.is_unread(target) and target not in context.facts.unused:
        yield "for what is loaded ahead"
    if is_promise_alone(statement):
        yield "a promise: no code"
    if statement in context.schedule.rings.started_ahead:
        yield "its product is there"
    if target in context.role.program_variables.values():
        yield "the loop above counts it"
    mask = not target.type.is_pointer and target.type.dtype.is_bool()
    if target in context.facts.unused:
        if assigns(statement, "permute"):
            yield "the same tile seen from another side"
        if target not in context.schedule.rings.folded:
            yield "its value is not used"
        yield "the copies keep to it" if mask else "folded into the copies"
    layouts = context.schedule.index_layouts.get(target, ())
    if target in context.facts.absorbed or any(context.counts_registers(target, layout) for layout in layouts):
        yield "tested where it is used" if mask else "formed where it is used"
