"""What the text tells the compiler of the numbers of threads and programs: a quotient of an index is a shift then.

CUDA's own indices are unsigned, and as ints, which Triton's are, they might be negative for all that the compiler knows.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..analysis.masks import compares_with_number, is_number
from ..ir.c_tokens import identifiers
from ..ir.nodes import Call, Expr, Use, Variable
from ..ir.walk import expressions, statements, subexpressions
from ..language.dtypes import DType
from .context import Context
from .text.constants import grid_word
from .text.unit import Line, Place


def of_thread(context: Context, places: list[Place]) -> tuple[Line, ...]:
    """Between which numbers a thread's own lies, where the places that follow divide it or tests of indices decide by it."""
    tid = context.axis_names.tid
    divided = any(tid in identifiers(place.value) for place in places)
    tested = any(compares_with_number(part, context.facts) for part in _parts(context))
    # With tensor copies there is little that it would save.
    why = ["makes / and % shifts"] * divided + ["drops tests that always hold"] * tested
    if not why or context.schedule.rings.has_producer:
        return ()
    return (Line(f"__builtin_assume({tid} >= 0 && {tid} < NUM_THREADS);", ", ".join(why)),)


def of_program(context: Context, places: list[Place]) -> tuple[Line, ...]:
    """That no program's number is negative, where indices that are made of it are divided by numbers.

    Of quotients by anything else little is saved, and the schedule that ptxas makes of them may want more registers.
    """
    if context.schedule.rings.has_producer:
        return ()
    calls = [part for part in _parts(context) if isinstance(part, Call) and _divides_indices(part)]
    dividends = [call.args[0] for call in calls if is_number(call.args[1], context.facts)]
    words = [grid_word("program_id", axis) for axis in sorted(_program_axes(dividends, context.facts.definitions))]
    named = {place.value: place.name for place in places}
    tests = [f"{named.get(word, f'static_cast<int>({word})')} >= 0" for word in words]
    return (Line(f"__builtin_assume({' && '.join(tests)});", "makes quotients of indices shifts"),) if tests else ()


def _divides_indices(call: Call) -> bool:
    """Whether a tile of signed integers is divided."""
    element = call.type.element
    signed = isinstance(element, DType) and element.kind == "signed"
    return call.op in ("floordiv", "mod") and call.type.is_tile and signed


def _program_axes(exprs: list[Expr], definitions: Mapping[Variable, Expr]) -> set[int]:
    """The axes of the grid that some numbers depend on."""
    axes: set[int] = set()
    seen: set[Variable] = set()
    pending = list(exprs)
    while pending:
        for part in subexpressions(pending.pop()):
            if isinstance(part, Call) and part.op == "program_id":
                axes.add(part.attribute("axis"))
            if isinstance(part, Use) and part.variable in definitions and part.variable not in seen:
                seen.add(part.variable)
                pending.append(definitions[part.variable])
    return axes


def _parts(context: Context) -> list[Expr]:
    """Everything that the kernel computes."""
    found = (expr for statement in statements(context.kernel.body) for expr in expressions(statement))
    return [part for expr in found for part in subexpressions(expr)]
