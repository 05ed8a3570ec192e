"""Where the values of variables come from in the end: arguments, and what was loaded, reduced or counted."""

from __future__ import annotations

from collections import defaultdict

from ..ir.nodes import Assign, Expr, For, Statement, Variable
from ..ir.walk import assigned_variables, read_variables, statements, used_variables
from .structured import is_elementwise


class Origins:
    """Answers for the variables of a body, with all that each is ever assigned.

    Attributes:
      data: the variables that structured operations assign: what was loaded, reduced or counted.
    """

    def __init__(self, body: tuple[Statement, ...]) -> None:
        """Reads the body once; variables are followed when they are asked for."""
        self.data: set[Variable] = set()
        self._made_of: dict[Variable, set[Variable]] = defaultdict(set)
        self._known: dict[Variable, frozenset[Variable]] = {}
        for statement in statements(body):
            if isinstance(statement, Assign) and not is_elementwise(statement.value):
                self.data.update(statement.targets)
            elif isinstance(statement, (Assign, For)):
                for target in assigned_variables(statement):
                    self._made_of[target].update(read_variables(statement))

    def of(self, expr: Expr) -> frozenset[Variable]:
        """The arguments and the data that an expression is made of."""
        return frozenset().union(*map(self._of_variable, used_variables(expr)))

    def _of_variable(self, variable: Variable) -> frozenset[Variable]:
        if variable not in self._known:
            found: set[Variable] = set()
            seen, pending = {variable}, [variable]
            while pending:
                part = pending.pop()
                if part in self._known:
                    found |= self._known[part]
                    continue
                if part in self.data or part not in self._made_of:
                    found.add(part)
                new = self._made_of.get(part, set()) - seen
                seen |= new
                pending += new
            self._known[variable] = frozenset(found)
        return self._known[variable]
