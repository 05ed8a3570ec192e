"""Loops of one trip are no loops, and branches that numbers decide are none.

In: a typed kernel. Out: the same kernel; of `for start in range(0, N, BLOCK)` where N is a number and one block has all of the
row, the body stands where the loop stood. What the loop would carry has a name of its own from where the body assigns it, so
that it is assigned once, as if it had been written so: it can be computed again or stay narrow, and nothing keeps trips apart.
Loops and branches inside of others stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...analysis.ranges import number_of, truth_of
from ...ir.nodes import Assign, Expr, For, If, Inlined, Kernel, Note, Statement, Use, Variable
from ...ir.rewrite import substituted, substituted_in, with_replaced
from ...ir.structured import is_elementwise
from ...ir.walk import assigned_variables, assignment_counts, next_key, only_values, statements, top_statements


def without_single_trips(kernel: Kernel) -> Kernel:
    """See the module docstring."""
    straightening = _Straightening(kernel)
    if not any(isinstance(s, For) and straightening.has_one_trip(s) for s in top_statements(kernel.body)):
        return kernel
    return replace(kernel, body=tuple(straightening.block(kernel.body, False)))


class _Straightening:
    """Rewrites what every run of a kernel passes once, in its order.

    `names` are the variables that stand for others from here on, `definitions` the values of those that are assigned once.
    """

    def __init__(self, kernel: Kernel) -> None:
        """Starts where nothing has another name."""
        self.definitions = only_values(kernel.body)
        self.times = assignment_counts(kernel.body)
        self.next_key = next_key(kernel)
        self.names: dict[Variable, Variable] = {}

    def block(self, body: tuple[Statement, ...], inside: bool) -> Iterator[Statement]:
        """The statements in the place of a block's; `inside` a body whose loop or branch is no more."""
        for statement in body:
            match statement:
                case Inlined():
                    yield replace(statement, body=tuple(self.block(statement.body, inside)))
                case For() if self.has_one_trip(statement):
                    origin = statement.origin.noted("one trip")
                    yield self.assigned(Assign(origin, (statement.variable,), statement.start))
                    yield from self.block(statement.body, True)
                case If() if (truth := self.truth(statement.condition)) is not None:
                    yield from self.taken(statement, truth)
                case Assign() if inside:
                    yield self.assigned(statement)
                case _:
                    yield self.with_names(statement)

    def taken(self, branch: If, truth: bool) -> Iterator[Statement]:
        """What is left of a branch whose condition is known."""
        word = "true" if truth else "false"
        yield Note(branch.origin.noted(f"{word} in this specialisation"))
        if not truth and branch.else_origin is not None:
            yield Note(branch.else_origin)
        yield from self.block(branch.then if truth else branch.otherwise, True)

    def assigned(self, statement: Assign) -> Assign:
        """An assignment, from which on what it assigns has a name of its own where others assign it, too."""
        value = self.renamed(statement.value)
        for target in statement.targets:
            if self.times[target] > 1:
                self.names[target] = Variable(target.name, target.type, self.next_key)
                self.next_key += 1
        targets = tuple(self.names.get(target, target) for target in statement.targets)
        if len(targets) == 1 and is_elementwise(value):
            self.definitions[targets[0]] = value
        return replace(statement, targets=targets, value=value)

    def renamed(self, expr: Expr) -> Expr:
        """An expression with the names that hold here."""
        return substituted(expr, {old: Use(new.type, new) for old, new in self.names.items()})

    def with_names(self, statement: Statement) -> Statement:
        """A statement, and all that is inside of it, with the names that hold here."""
        read = substituted_in(statement, {old: Use(new.type, new) for old, new in self.names.items()})
        changed = {
            inner: self._with_targets(inner)
            for inner in statements((read,))
            if not self.names.keys().isdisjoint(assigned_variables(inner))
        }
        (result,) = with_replaced((read,), changed)
        return result

    def _with_targets(self, statement: Statement) -> Statement:
        if isinstance(statement, For):
            return replace(statement, variable=self.names[statement.variable])
        if not isinstance(statement, Assign):
            raise TypeError("nothing else assigns")
        return replace(statement, targets=tuple(self.names.get(target, target) for target in statement.targets))

    def has_one_trip(self, loop: For) -> bool:
        """Whether numbers say that a loop has one trip."""
        start, stop, step = map(self.number, (loop.start, loop.stop, loop.step))
        return start is not None and stop is not None and bool(step) and len(range(start, stop, step or 1)) == 1

    def number(self, expr: Expr) -> int | None:
        """The only number that a scalar of integers can be."""
        return number_of(self.renamed(expr), self.definitions)

    def truth(self, condition: Expr) -> bool | None:
        """Whether a condition holds, if numbers decide that."""
        return truth_of(self.renamed(condition), self.definitions)
