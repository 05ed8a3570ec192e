"""`device_print` and `device_assert`."""

from __future__ import annotations

from ..ir.nodes import Effect, Expr
from ..language.dtypes import PointerType
from ..schedule.access import padding_tests
from ..schedule.layout import Layout
from .conditions import conjunction, copies_guard
from .context import Context
from .point import Point, coordinate
from .spell import Text
from .unit import Branch, Line, Node


def lower_print(context: Context, statement: Effect) -> tuple[Node, ...]:
    """A line per element, in Triton's format: `pid (x, y, z) idx (i, j) prefix: value`; every thread prints a scalar."""
    call = statement.call
    prefix = str(call.attribute("prefix") or "")
    if not call.args:
        return (_print(f"pid (%u, %u, %u){_after_index(prefix, False)}\\n", []),)
    prefix = _after_index(prefix, True)
    layout = context.schedule.statement_layouts.get(id(statement))
    nodes: list[Node] = []
    for number, value in enumerate(call.args):
        operand = f"(operand {number}) " if len(call.args) > 1 else ""
        nodes += _print_one(context, value, layout, prefix, operand, bool(call.attribute("hex")))
    return tuple(nodes)


def _after_index(prefix: str, has_values: bool) -> str:
    """Triton's rules for what stands between the index and the value."""
    text = prefix.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    if has_values and not text.endswith(" "):
        text += " " if text.endswith(":") else ": "
    return text if text.startswith(" ") else f" {text}"


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
            coordinate(Point(point.layout, point.indices, (point.axes[axis],)), 0, context.roles)
            for axis in range(len(shape))
        ]
        values = [*coordinates, wrap(context.speller.text(value, point))]
        line = _print(f"pid (%u, %u, %u) idx ({index}){prefix}{operand}{conversion}\\n", values)
        inside = conjunction([context.speller.spell(test, point) for test in padding_tests(shape)])
        return (line,) if inside is None else (Branch(inside.text, (line,)),)

    nodes = context.each_register(layout, one)
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
    """Stops the kernel with a message when a condition does not hold."""
    call = statement.call
    message = str(call.attribute("message") or "").replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    origin = statement.origin.span
    where = f"{context.kernel.file}:{origin.line}"
    fail: tuple[Node, ...] = (
        Line(f'printf("%s: block (%u, %u, %u), thread %u: assertion failed: %s\\n", "{where}", blockIdx.x, '
             f'blockIdx.y, blockIdx.z, {context.roles.tid}, "{message}");'),
        Line("__trap();"),
    )  # fmt: skip
    layout = context.schedule.statement_layouts.get(id(statement))

    def one(point: Point | None) -> tuple[Node, ...]:
        failed = Text(f"!{context.speller.spell(call.args[0], point).within(15)}", 15)
        tests = [context.speller.spell(arg, point) for arg in call.args[1:]]
        if point is not None:
            tests += [context.speller.spell(test, point) for test in padding_tests(call.args[0].type.shape)]
        condition = conjunction([*tests, failed])
        return (Branch(condition.text, fail),) if condition else ()

    return one(None) if layout is None else context.each_register(layout, one)
