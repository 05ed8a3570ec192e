"""Where the values of variables come from in the end: arguments, and what was loaded, reduced or counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from ..ir.nodes import Assign, Expr, For, Statement, Variable
from ..ir.structured import is_elementwise
from ..ir.walk import assigned_variables, read_variables, statements, used_variables

Known = dict[Variable, frozenset[Variable]]


class Origins:
    """Answers for the variables of a body, with all that each is ever assigned."""

    def __init__(self, body: tuple[Statement, ...]) -> None:
        """Reads the body once; variables are followed when they are asked for."""
        self._holds_data: set[Variable] = set()
        self._made_of: dict[Variable, set[Variable]] = defaultdict(set)
        self._pointers: Known = {}
        self._data: Known = {}
        self._numbers: Known = {}
        for statement in statements(body):
            if isinstance(statement, Assign) and not is_elementwise(statement.value):
                self._holds_data.update(statement.targets)
            elif isinstance(statement, (Assign, For)):
                for target in assigned_variables(statement):
                    self._made_of[target].update(read_variables(statement))

    def pointers(self, expr: Expr) -> frozenset[Variable]:
        """The pointers, arguments or from memory, that an expression is made of."""
        return self._of(expr, self._pointers, lambda variable: variable.type.is_pointer)

    def data(self, expr: Expr) -> frozenset[Variable]:
        """The variables that structured operations assign and that an expression is made of."""
        return self._of(expr, self._data, self._holds_data.__contains__)

    def numbers(self, expr: Expr) -> frozenset[Variable]:
        """The arguments that are no pointers and that an expression is made of."""
        return self._of(expr, self._numbers, lambda v: v not in self._holds_data and not v.type.is_pointer)

    def _of(self, expr: Expr, known: Known, wanted: Callable[[Variable], bool]) -> frozenset[Variable]:
        found: frozenset[Variable] = frozenset()
        for variable in used_variables(expr):
            if variable not in known:
                known[variable] = self._behind(variable, known, wanted)
            found |= known[variable]
        return found

    def _behind(self, variable: Variable, known: Known, wanted: Callable[[Variable], bool]) -> frozenset[Variable]:
        found: set[Variable] = set()
        seen, pending = {variable}, [variable]
        while pending:
            part = pending.pop()
            if part in known:
                found |= known[part]
                continue
            if (part in self._holds_data or part not in self._made_of) and wanted(part):
                found.add(part)
            new = self._made_of.get(part, set()) - seen
            seen |= new
            pending += new
        return frozenset(found)
