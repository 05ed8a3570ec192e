"""Which pointer arguments an address may derive from, through which of them nothing is written, and where others may write."""

from __future__ import annotations

from ...analysis.structured import is_elementwise
from ...ir.nodes import Assign, Call, Effect, Expr, Kernel, Statement, Use, Variable
from ...ir.walk import MOVES, expressions, statements, subexpressions
from ...language.dtypes import PointerType

ADDRESS_BITS = 64
BETWEEN_ADDRESSES = frozenset((*MOVES, "add", "sub", "cast", "where", "hint"))  # operations from addresses to addresses


def pointer_sources(kernel: Kernel) -> dict[Variable, set[Variable]]:
    """For every variable that holds addresses, as pointers or as integers, those that its values are made of."""
    sources: dict[Variable, set[Variable]] = {
        p.variable: set() for p in kernel.parameters if _may_be_address(p.variable)
    }
    for statement in statements(kernel.body):
        if isinstance(statement, Assign):
            for target in filter(_may_be_address, statement.targets):
                found = sources.setdefault(target, set())
                if target.type.is_pointer or is_elementwise(statement.value):
                    found |= pointers_in(statement.value) | _bases(statement.value)
    return sources


def roots_of(pointer: Expr, sources: dict[Variable, set[Variable]]) -> set[Variable]:
    """The pointer variables that an address may derive from, arguments and what stands between; `sources` of its kernel."""
    return _closure(pointers_in(pointer), sources)


def first_of(variable: Variable, sources: dict[Variable, set[Variable]], kernel: Kernel) -> set[Variable]:
    """Where a variable's addresses come from in the end: arguments of the kernel, and what it finds in memory."""
    arguments = {parameter.variable for parameter in kernel.parameters}
    return {v for v in _closure({variable}, sources) if v in arguments or not sources.get(v, set()) - {v}}


def read_only_pointers(kernel: Kernel) -> frozenset[Variable]:
    """Pointers through which nothing is written: arguments and what is derived from them."""
    return frozenset(set(pointer_sources(kernel)) - roots_written(kernel))


def roots_written(kernel: Kernel) -> set[Variable]:
    """Pointers through which something is written."""
    sources = pointer_sources(kernel)
    written: set[Variable] = set()
    for statement in statements(kernel.body):
        for expr in expressions(statement):
            if isinstance(expr, Call) and (expr.op == "store" or expr.op.startswith("atomic_")):
                written |= pointers_in(expr.args[0])
            elif isinstance(expr, Call) and expr.op == "box_store":
                written.add(expr.attribute("base"))
    return _closure(written, sources)


def _closure(start: set[Variable], sources: dict[Variable, set[Variable]]) -> set[Variable]:
    found, pending = set(start), list(start)
    while pending:
        for source in sources.get(pending.pop(), ()):
            if source not in found:
                found.add(source)
                pending.append(source)
    return found


def may_move(load: Call, read_only: frozenset[Variable]) -> bool:
    """Whether a load brings the same wherever in the kernel it stands: from what nothing writes, and not `volatile`."""
    return pointers_in(load.args[0]) <= read_only and not load.attribute("volatile")


def waits_for_others(statement: Statement) -> bool:
    """Whether a statement waits for what other programs or kernels write: loads behind it must not come earlier."""
    if isinstance(statement, Effect):
        return statement.call.op == "gdc_wait"
    call = statement.value if isinstance(statement, Assign) and not statement.targets[0].type.is_tile else None
    if not isinstance(call, Call):
        return False
    acquires = call.op.startswith("atomic_") and "acq" in (call.attribute("sem") or "acq_rel")
    return acquires or (call.op == "load" and bool(call.attribute("volatile")))


def pointers_in(expr: Expr) -> set[Variable]:
    """The variables that hold the addresses in an expression: pointers, and integers that are cast to some."""
    found: set[Variable] = set()
    for part in subexpressions(expr):
        if isinstance(part, Use) and part.type.is_pointer:
            found.add(part.variable)
        elif isinstance(part, Call) and part.op == "cast" and part.type.is_pointer:
            found |= _bases(part.args[0])
    return found


def _bases(expr: Expr) -> set[Variable]:
    """The variables that an address as an integer may come from, and not how far it is from there."""
    if isinstance(expr, Use):
        return {expr.variable} if _may_be_address(expr.variable) else set()
    if isinstance(expr, Call) and expr.op in BETWEEN_ADDRESSES:
        return set().union(*map(_bases, expr.args))
    return set()


def _may_be_address(variable: Variable) -> bool:
    element = variable.type.element
    return isinstance(element, PointerType) or (element.is_int() and element.bits == ADDRESS_BITS)
