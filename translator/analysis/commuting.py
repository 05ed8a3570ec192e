"""Whether a function that combines two values gives the same for them in either order, bit by bit.

In: a `Combine` with a body. Out: True where its results are the same expressions when left and right change places.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.nodes import Assign, Call, Combine, Expr, Literal, Note, Use, Variable
from ..ir.walk import only_values

COMMUTE = frozenset(
    ("add", "mul", "minimum", "maximum", "and", "or", "xor", "logical_and", "logical_or", "eq", "ne")
)  # fmt: skip
MOST_PARTS = 64  # expressions that are compared; a function that needs more is taken not to commute


def commutes(combine: Combine) -> bool:
    """See the module docstring; what branches, or calls other functions, is taken not to. Comments change nothing."""
    if not all(isinstance(statement, (Assign, Note)) for statement in combine.body):
        return False
    sides = dict(zip(combine.left, combine.right, strict=True))
    comparison = _Comparison(only_values(combine.body), sides | {right: left for left, right in sides.items()})
    return all(comparison.same(value, value) for value in map(comparison.value_of, combine.results))


class _Comparison:
    """Compares an expression with another one whose operands have changed places."""

    def __init__(self, values: Mapping[Variable, Expr], swapped: Mapping[Variable, Variable]) -> None:
        self._values, self._swapped, self._left = values, swapped, MOST_PARTS

    def value_of(self, variable: Variable) -> Expr:
        """What a variable is assigned, or itself."""
        return self._values.get(variable, Use(variable.type, variable))

    def same(self, one: Expr, other: Expr) -> bool:
        """Whether `one` is `other` with left and right exchanged."""
        self._left -= 1
        if self._left < 0:
            return False
        one, other = (self.value_of(e.variable) if isinstance(e, Use) else e for e in (one, other))
        match one, other:
            case Use(variable=left), Use(variable=right):
                return self._swapped.get(left) is right
            case Literal(), Literal():
                return one == other
            case Call(), Call() if one.op == other.op and one.attributes == other.attributes:
                return self._same_args(one, other)
        return False

    def _same_args(self, one: Call, other: Call) -> bool:
        if len(one.args) == len(other.args) and all(map(self.same, one.args, other.args)):
            return True
        if one.op not in COMMUTE or self._is_fused(one):
            return False
        return self.same(one.args[0], other.args[1]) and self.same(one.args[1], other.args[0])

    def _is_fused(self, call: Call) -> bool:
        """Whether a sum of floats may become an fma, which rounds one of its operands less than the other."""
        plain = all(isinstance(arg, Use) and arg.variable in self._swapped for arg in call.args)
        return call.op == "add" and call.type.dtype.is_floating() and not plain
