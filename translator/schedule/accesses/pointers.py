"""Which pointer arguments an address may derive from, and through which of them nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...analysis.origins import Origins
from ...ir.nodes import Assign, Call, Expr, Kernel, Statement, Use, Variable
from ...ir.structured import is_atomic, is_elementwise
from ...ir.walk import expressions, reachable, statements, subexpressions, used_variables

ADDRESS_BITS = 64


def pointer_sources(kernel: Kernel) -> dict[Variable, set[Variable]]:
    """For every pointer variable, and number that is an address, those that its values are made of."""
    sources: dict[Variable, set[Variable]] = {
        p.variable: set() for p in kernel.parameters if p.variable.type.is_pointer
    }
    origins = Origins(kernel.body)
    for statement in statements(kernel.body):
        numbers = set(_numbers_as_addresses(statement))
        for variable in numbers:
            passed = set(filter(_has_room, origins.numbers(Use(variable.type, variable))))
            sources.setdefault(variable, set()).update(passed)
            sources |= {one: set() for one in passed - sources.keys()}
        if not isinstance(statement, Assign):
            continue
        value, made_of = statement.value, pointers_in(statement.value) | numbers
        address = is_elementwise(value) and not value.type.element.is_floating()
        if address:
            made_of |= origins.pointers(value)
        for target in statement.targets:
            if target.type.is_pointer or (made_of and address):
                sources.setdefault(target, set()).update(made_of)
    return sources


def is_number(pointer: Expr) -> bool:
    """Whether an address is made of a number here."""
    return isinstance(pointer, Call) and pointer.op == "cast" and not pointer.args[0].type.is_pointer


def _numbers_as_addresses(statement: Statement) -> Iterator[Variable]:
    """The integers that a statement makes addresses of."""
    for expr in expressions(statement):
        for part in subexpressions(expr):
            if part.type.is_pointer and is_number(part):
                yield from filter(_has_room, used_variables(part))


def _has_room(variable: Variable) -> bool:
    """Whether an integer can hold an address."""
    return not variable.type.is_pointer and variable.type.dtype.bits == ADDRESS_BITS


def roots_of(pointer: Expr, sources: dict[Variable, set[Variable]]) -> set[Variable]:
    """The pointer variables that an address may derive from, arguments and what stands between; `sources` of its kernel."""
    return reachable(_addresses_in(pointer, sources), sources)


def read_only_pointers(kernel: Kernel) -> frozenset[Variable]:
    """Pointers through which nothing is written, though it may be through others that point to the same array."""
    sources = pointer_sources(kernel)
    return frozenset(set(sources) - written_in(kernel.body, sources))


def written_in(block: tuple[Statement, ...], sources: dict[Variable, set[Variable]]) -> set[Variable]:
    """Pointers through which a block writes something; `sources` of its kernel."""
    written: set[Variable] = set()
    for statement in statements(block):
        for expr in expressions(statement):
            if isinstance(expr, Call) and (expr.op == "store" or is_atomic(expr)):
                written |= _addresses_in(expr.args[0], sources)
            elif isinstance(expr, Call) and expr.op == "box_store":
                written.add(expr.attribute("base"))
    return reachable(written, sources)


def lasting_loads(kernel: Kernel) -> Callable[[Call], bool]:
    """Whether a load brings the same wherever in the kernel it stands: from what nothing writes, and not `volatile`."""
    sources = pointer_sources(kernel)
    written = written_in(kernel.body, sources)
    return lambda load: not load.attribute("volatile") and not roots_of(load.args[0], sources) & written


def _addresses_in(expr: Expr, sources: dict[Variable, set[Variable]]) -> set[Variable]:
    return {v for v in used_variables(expr) if v in sources}


def pointers_in(expr: Expr) -> set[Variable]:
    """The pointer variables that stand in an expression."""
    return {v for v in used_variables(expr) if v.type.is_pointer}
