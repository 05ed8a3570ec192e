"""Everything that is known about a kernel before anything is decided: one table per question, beside the tree.

In: a typed `Kernel`. Out: `Facts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ..frozen import frozen
from ..ir.nodes import (
    Assign,
    Call,
    CallFunction,
    Expr,
    Kernel,
    Literal,
    Statement,
    Use,
    Variable,
)
from ..ir.structured import is_atomic, is_elementwise
from ..ir.walk import (
    MOVES,
    assignment_counts,
    children,
    loops_around,
    only_values,
    read_variables,
    statements,
    subexpressions,
    used_variables,
)
from .axis_info import AxisInfo, axis_info, known_divisor
from .flow import Environments, follow
from .fused import converted_once

# A tile whose expression has grown to so many parts is computed once, however it may be used: chains of pointers that are
# advanced line by line would otherwise be written out whole at every line.
LARGEST_ABSORBED = 64


@frozen
class Facts:
    """See the module docstring.

    Attributes:
      assignments: how often each variable is assigned.
      definitions: the right side of every variable that is assigned once, by elementwise operations only.
      index: tiles of integers that follow from the program's index, arguments and `arange` alone: computed in whatever
        layout their users have, a register array for each.
      absorbed: tiles of pointers, masks, further index tiles and integers that are converted once, which get no registers:
        their expression stands at its use.
      unused: variables that nothing with an effect depends on; their statements become no code.
      known: what is known of each variable wherever it is read.
      environments: what is known of variables at each statement that accesses memory.
      loops: how many loops stand around the first assignment of a variable.
    """

    assignments: Counter[Variable]
    definitions: dict[Variable, Expr]
    index: frozenset[Variable]
    absorbed: frozenset[Variable]
    unused: frozenset[Variable]
    known: dict[Variable, AxisInfo]
    environments: Environments
    loops: dict[Variable, int]

    def at(self, statement: Statement) -> FactsAt:
        """The facts with what holds where a statement stands that accesses memory."""
        return FactsAt(self, self.environments[statement])


@frozen
class FactsAt:
    """All facts, and in an `environment` what is known of variables at one place."""

    facts: Facts
    environment: Mapping[Variable, AxisInfo]

    def info(self, expr: Expr) -> AxisInfo:
        """What is known of an expression there."""
        return axis_info(expr, self.environment)


def find_facts(kernel: Kernel) -> Facts:
    """Computes all facts of a kernel."""
    start = {p.variable: known_divisor(p.divisibility) for p in kernel.parameters}
    return body_facts(kernel.body, start)


def read_through(expr: Expr, facts: Facts) -> Iterator[Variable]:
    """The variables that an expression reads, with repetition: of those that stand at their use, what these are made of."""
    pending = [expr]
    while pending:
        part = pending.pop()
        if not isinstance(part, Use):
            pending += reversed(children(part))
        elif part.variable in facts.absorbed:
            pending.append(facts.definitions[part.variable])
        else:
            yield part.variable


def body_facts(
    body: tuple[Statement, ...],
    known: dict[Variable, AxisInfo] | None = None,
    results: tuple[Variable, ...] = (),
) -> Facts:
    """Computes the facts of a block on its own: a kernel's, or a function's that ends with `results` assigned."""
    assignments = assignment_counts(body)
    definitions = {variable: value for variable, value in only_values(body).items() if is_elementwise(value)}
    index, absorbed = _index_variables(body, definitions, assignments)
    absorbed |= (converted_once(body, definitions) | _views(definitions, assignments, _dot_operands(body))) - index
    everywhere, environments = follow(body, known or {})
    unused = unused_variables(body, results)
    return Facts(assignments, definitions, index, absorbed, unused, everywhere, environments, loops_around(body))


def _index_variables(
    body: tuple[Statement, ...], definitions: dict[Variable, Expr], assignments: Counter[Variable]
) -> tuple[frozenset[Variable], frozenset[Variable]]:
    index: set[Variable] = set()
    absorbed: set[Variable] = set()
    sizes: dict[Variable, int] = {}
    multiplied = _dot_operands(body)
    for statement in statements(body):
        if not isinstance(statement, Assign) or len(statement.targets) != 1:
            continue
        variable = statement.targets[0]
        if variable not in definitions or not variable.type.is_tile or variable in multiplied:
            continue
        known = None if variable.type.is_pointer else index | absorbed
        if not _is_index(definitions[variable], known, assignments):
            continue
        wide_axes = sum(side > 1 for side in variable.type.shape)
        if variable.type.is_pointer or variable.type.dtype.is_bool() or wide_axes > 1:
            parts = _parts(definitions[variable], sizes)
            if parts <= LARGEST_ABSORBED:
                absorbed.add(variable)
                sizes[variable] = parts
        else:
            index.add(variable)
    return frozenset(index), frozenset(absorbed)


def _views(
    definitions: dict[Variable, Expr], assignments: Counter[Variable], multiplied: set[Variable]
) -> set[Variable]:
    """The tiles of integers that have the elements of another one, in other places or more often, which nobody assigns again."""
    return {v for v, value in definitions.items() if v not in multiplied and _is_view(value, assignments)}


def _is_view(value: Expr, assignments: Counter[Variable]) -> bool:
    moved = value
    while isinstance(moved, Call) and moved.op in MOVES:
        moved = moved.args[0]
    if moved is value or not moved.type.is_tile or not isinstance(moved, Use):
        return False
    return assignments[moved.variable] == 1 and not moved.type.is_pointer and moved.type.dtype.is_int()


def _parts(expr: Expr, sizes: dict[Variable, int]) -> int:
    """How many parts an expression has when absorbed tiles, of the given sizes, are written out."""
    return sum(sizes.get(one.variable, 1) if isinstance(one, Use) else 1 for one in subexpressions(expr))


def _dot_operands(body: tuple[Statement, ...]) -> set[Variable]:
    """Tiles that dots read: they need registers or shared memory whatever they are made of."""
    calls = [s.value for s in statements(body) if isinstance(s, Assign) and isinstance(s.value, Call)]
    return {v for call in calls if call.op == "dot" for arg in call.args[:2] for v in used_variables(arg)}


def _is_index(expr: Expr, known: set[Variable] | None, assignments: Counter[Variable]) -> bool:
    """Whether a tile can be computed anew wherever it is used: integers, and nothing that is assigned twice.

    Of tiles, all that it is made of must be `known` to be so too; without these, they may be any that registers hold: their
    own parts, such as numbers of rows, are less than the pointers made of them.
    """
    for part in subexpressions(expr):
        element = part.type.element
        if element.is_floating() or isinstance(part, CallFunction):
            return False
        if isinstance(part, Use) and (
            assignments[part.variable] > 1 or (part.type.is_tile and known is not None and part.variable not in known)
        ):
            return False
        if isinstance(part, Literal) and isinstance(part.value, float):
            return False
    return True


def unused_variables(body: tuple[Statement, ...], results: tuple[Variable, ...] = ()) -> frozenset[Variable]:
    """Variables that no effect, condition or bound depends on."""
    assigned = {v for s in statements(body) if isinstance(s, Assign) and not has_effect(s.value) for v in s.targets}
    return frozenset(assigned - needed_variables(body, results))


def needed_variables(body: tuple[Statement, ...], results: tuple[Variable, ...] = ()) -> set[Variable]:
    """Variables that some effect, condition or bound depends on."""
    needed: set[Variable] = set(results)
    sources: dict[Variable, set[Variable]] = {}
    for statement in statements(body):
        reads = set(read_variables(statement))
        if isinstance(statement, Assign) and not has_effect(statement.value):
            for target in statement.targets:
                sources.setdefault(target, set()).update(reads)
        else:
            needed |= reads
    pending = list(needed)
    while pending:
        for variable in sources.get(pending.pop(), ()):
            if variable not in needed:
                needed.add(variable)
                pending.append(variable)
    return needed


def has_effect(expr: Expr) -> bool:
    """Whether an assigned expression does something besides giving a value."""
    return (isinstance(expr, Call) and is_atomic(expr)) or (
        isinstance(expr, Call) and expr.op == "load" and bool(expr.attribute("volatile"))
    )
