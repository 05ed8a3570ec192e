"""`device_print` and `device_assert`."""

from __future__ import annotations

from ..ir.nodes import Effect, Expr
from ..language.dtypes import PointerType
from ..language.printing import printed_prefix
from ..schedule.accesses.access import padding_tests
from ..schedule.tiles.layout import Layout
from .accesses.conditions import copies_guard
from .context import Context
from .text.operators import conjunction
from .text.point import Point, coordinate
from .text.register_loops import each_register
from .text.unit import Branch, Line, Node

# What stands in a string for the backslash, the quote, and what would end the line; octal, since it ends after 3 digits.
NAMED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
ESCAPES = str.maketrans(NAMED | {chr(code): f"\\{code:03o}" for code in range(32) if chr(code) not in NAMED})


def lower_print(context: Context, statement: Effect) -> tuple[Node, ...]:
    """A line per element, in Triton's format: `pid (x, y, z) idx (i, j) prefix: value`; every thread prints a scalar."""
    call = statement.call
    prefix = str(call.attribute("prefix") or "")
    if not call.args:
        return (_print(f"pid (%u, %u, %u){_after_index(prefix, False)}\\n", []),)
    prefix = _after_index(prefix, True)
    layout = context.schedule.statement_layouts.get(statement)
    nodes: list[Node] = []
    for number, value in enumerate(call.args):
        operand = f"(operand {number}) " if len(call.args) > 1 else ""
        nodes += _print_one(context, value, layout, prefix, operand, bool(call.attribute("hex")))
    return tuple(nodes)


def _after_index(prefix: str, has_values: bool) -> str:
    """What stands between the index and the value, as a part of a format of printf."""
    return _quoted(printed_prefix(prefix, has_values)).replace("%", "%%")


def _print_one(
    context: Context, value: Expr, layout: Layout | None, prefix: str, operand: str, as_hex: bool
) -> tuple[Node, ...]:
    conversion, wrap = _format(value, as_hex)
    if not value.type.is_tile or layout is None:
        text = wrap(context.speller.text(value))
        return (_print(f"pid (%u, %u, %u) idx (){prefix}{operand}{conversion}\\n", [text]),)
    shape = value.type.shape
    index = ", ".join(f"%{len(str(side - 1))}d" for side in shape)

    def one(point: Point) -> tuple[Node, ...]:
        coordinates = [
            coordinate(Point(point.layout, point.indices, (point.axes[axis],)), 0, context.axis_names).text
            for axis in range(len(shape))
        ]
        values = [*coordinates, wrap(context.speller.text(value, point))]
        line = _print(f"pid (%u, %u, %u) idx ({index}){prefix}{operand}{conversion}\\n", values)
        inside = conjunction([context.speller.spell(test, point) for test in padding_tests(shape)])
        return (line,) if inside is None else (Branch(inside.text, (line,)),)

    nodes = each_register(context, layout, one)
    guard = copies_guard(context, layout)
    return (Branch(guard, nodes),) if guard else nodes


def _print(text: str, values: list[str]) -> Line:
    arguments = ", ".join([f'"{text}"', "blockIdx.x", "blockIdx.y", "blockIdx.z", *values])
    return Line(f"printf({arguments});")


def _format(value: Expr, as_hex: bool):  # type: ignore[no-untyped-def]
    """Printf's conversion for a value, and how the value is passed to it."""
    element = value.type.element
    if isinstance(element, PointerType):
        return "%p", lambda text: f"static_cast<const void*>({text})"
    wide = element.bits == 64
    if as_hex:
        digits = max(element.bits // 4, 2)
        kind = "unsigned long long" if wide else "unsigned"
        return f"0x%0{digits}{'llx' if wide else 'x'}", lambda text: f"static_cast<{kind}>({text})"
    if element.is_floating():
        return "%f", lambda text: f"static_cast<double>({text})" if element.bits >= 32 else _widened(text)
    if element.is_int_signed():
        return ("%lld" if wide else "%d"), lambda text: text
    return ("%llu" if wide else "%u"), lambda text: text if element.bits >= 32 else f"static_cast<unsigned>({text})"


def _widened(text: str) -> str:
    return f"static_cast<double>(static_cast<float>({text}))"


def lower_assert(context: Context, statement: Effect) -> tuple[Node, ...]:
    """CUDA's `assert`, with the kernel's line and the message; elements beyond a side of the user's do not count."""
    call = statement.call
    words = _quoted(
        f"{statement.origin.file or context.kernel.file}:{statement.origin.span.line}: {call.attribute('message') or ''}".rstrip(
            " :"
        )
    )
    layout = context.schedule.statement_layouts.get(statement)

    def one(point: Point | None) -> tuple[Node, ...]:
        tests = [context.speller.spell(arg, point) for arg in call.args[1:]]
        if point is not None:
            tests += [context.speller.spell(test, point) for test in padding_tests(call.args[0].type.shape)]
        condition = context.speller.spell(call.args[0], point)
        line = Line(f'assert(({condition.text}) && "{words}");')
        where = conjunction(tests)
        return (line,) if where is None else (Branch(where.text, (line,)),)

    return one(None) if layout is None else each_register(context, layout, one)


def _quoted(text: str) -> str:
    """A text as it stands in a string of C++, of which no part looks like a trigraph."""
    return text.translate(ESCAPES).replace("??", "?\\?")
