"""How far an offset can reach at a launch: arithmetic in the kernel's integer parameters and the sides of the grid.

In: integers that are made of program indices, positions in a tile, parameters and numbers. Out: an expression that none of
them exceeds, whatever its sign, and conditions under which that is so. `(pid * 1024 + tl.arange(0, 1024)) // W * C` does
not pass `num_programs_x * 1024 / W * C` where W is above zero and C not below. With the sizes of a launch that is a number,
which says whether the offset fits in 32 bits; nothing in the text could.

Bounds are sums of products while they are computed: the least of one term is taken off where another adds it again, so that
`pid * H + row`, whose row is below H, comes to `num_programs_x * H`. No quotient stands in a divisor: what divides without
rounding comes to no less, then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice

from ..artifact import LARGEST_OFFSET
from ..frozen import frozen
from ..ir.nodes import Call, Expr, For, Kernel, Literal, Statement, Use, Variable
from ..ir.types import ValueType
from ..ir.walk import MOVES, assignment_counts, statements, subexpressions
from ..language.dtypes import DType, int1, int64
from .parameter_text import parameter_text
from .ranges import integer_range

MOST = 120  # operations and operands of a bound: places by a hash have no end, and nobody would read more
SMALL = 1 << 24  # numbers that the text itself keeps below this need no size of a launch
SAME = MOVES | {"cast", "abs", "neg", "shr"}  # what does not move a number away from zero
OF_BOTH = frozenset(("add", "sub", "or", "xor", "maximum", "minimum"))  # no further than both together

Terms = Counter[tuple[Expr, ...]]  # how often each product of factors, which are not negative, is added up


@frozen
class Reach:
    """What an offset does not exceed, and the conditions, over parameters, that this takes."""

    terms: Terms
    conditions: tuple[Call, ...]

    @property
    def most(self) -> Expr:
        """The bound as an expression."""
        return _sum_of(self.terms)


class Reaches:
    """The reaches of a kernel's offsets."""

    def __init__(self, kernel: Kernel, definitions: Mapping[Variable, Expr]) -> None:
        """`definitions` are the values of variables that are assigned once."""
        self._parameters = {parameter.variable for parameter in kernel.parameters}
        self._definitions = definitions
        self._loops = dict(_counters(kernel.body))
        self._conditions: dict[Call, None] = {}
        self._known: dict[Variable, Terms | None] = {}

    def of(self, offsets: Sequence[Expr]) -> Reach | None:
        """How far some offsets reach together; None for what is loaded, or otherwise not known before the kernel runs."""
        self._conditions, self._known = {}, {}
        found = self._sum(offsets)
        return None if found is None else Reach(+found, tuple(self._conditions))

    def _bound(self, expr: Expr) -> Terms | None:
        element = expr.type.element
        if not isinstance(element, DType) or not element.is_int():
            return None
        made = None if element.kind == "unsigned" else self._made_of(expr)  # one less than zero is the largest of those
        return self._small(expr) if made is None or not _is_short(made) else made

    def _small(self, expr: Expr) -> Terms | None:
        """The bound of what the text itself keeps small, such as `word & 15`."""
        least, most = integer_range(expr, self._definitions)
        return _number(max(-least, most)) if max(-least, most) < SMALL else None

    def _made_of(self, expr: Expr) -> Terms | None:
        """The bound of an expression, from those of its parts."""
        match expr:
            case Literal(value=int()):
                least, most = expr.reach
                return _number(max(-least, most))
            case Use(variable=variable):
                if variable not in self._known:
                    self._known[variable] = self._of_variable(variable)
                return self._known[variable]
            case Call(op="program_id"):
                return _added(_one(_call("num_programs", axis=expr.attribute("axis"))), _number(-1))
            case Call(op="num_programs"):
                return _one(_call("num_programs", axis=expr.attribute("axis")))
            case Call(op=op, args=(arg, *_)) if op in SAME:
                return self._bound(arg)
            case Call(op="where", args=(_, *ways)):
                return self._sum(ways)
            case Call(op="minimum" | "maximum", args=args) if any(map(self._is_not_negative, args)):
                return self._clamped(expr.op, args)
            case Call(op=op, args=args) if op in OF_BOTH:
                return self._sum(args)
            case Call(op="mul", args=args):
                one, other = map(self._bound, args)
                return None if one is None or other is None else _product(one, other)
            case Call(op="floordiv" | "mod", args=(dividend, divisor)):
                return self._divided(expr.op, dividend, divisor)
        return None

    def _of_variable(self, variable: Variable) -> Terms | None:
        if variable in self._parameters:
            own = Use(ValueType(int64), variable)
            self._conditions[_call("ge", own, Literal(own.type, 0))] = None
            return _one(own)
        if variable in self._loops:
            loop = self._loops[variable]
            return self._sum((loop.start, loop.stop, loop.step))
        return self._bound(self._definitions[variable]) if variable in self._definitions else None

    def _sum(self, parts: Iterable[Expr]) -> Terms | None:
        bounds = [self._bound(part) for part in parts]
        return None if None in bounds else _added(*filter(None, bounds))

    def _clamped(self, op: str, args: Sequence[Expr]) -> Terms | None:
        """The bound of the smaller or the larger of two, of which one is not below zero: of an index that is cut off at edges.

        The smaller one is then no further from zero than the other is, and the larger one no further than what both are below.
        """
        if op == "minimum":
            one, other = args if self._is_not_negative(args[0]) else reversed(args)
            bound = self._bound(other)
            return self._bound(one) if bound is None and self._is_not_negative(other) else bound
        tops = [self._top(arg) for arg in args]
        return None if None in tops else _added(*filter(None, tops))

    def _top(self, expr: Expr) -> Terms | None:
        """What a number is below: one that is the smaller of two, below each."""
        while isinstance(expr, Use) and expr.variable in self._definitions:
            expr = self._definitions[expr.variable]
        if isinstance(expr, Call) and expr.op == "minimum":
            return next((bound for bound in map(self._top, expr.args) if bound is not None), None)
        return self._bound(expr)

    def _is_not_negative(self, expr: Expr) -> bool:
        return integer_range(expr, self._definitions)[0] >= 0

    def _divided(self, op: str, dividend: Expr, divisor: Expr) -> Terms | None:
        """A quotient, or what is left. Of a divisor that no parameter says, only that it does not make a number larger."""
        found, by = self._bound(dividend), self._scalar(divisor)
        if by is None:
            return found if op == "floordiv" else self._bound(divisor)
        if isinstance(by, Literal) and by.value <= 0:
            return None
        self._require_above_zero(by)
        if op == "mod":
            return _added(_terms(by), _number(-1))
        return None if found is None else _quotient(found, by)

    def _require_above_zero(self, by: Expr) -> None:
        """Of a product that none of its factors is zero: which are not negative, as parameters are not."""
        if isinstance(by, Call) and by.op == "mul":
            for factor in by.args:
                self._require_above_zero(factor)
        elif not isinstance(by, Literal):
            self._conditions[_call("gt", by, Literal(by.type, 0))] = None

    def _scalar(self, expr: Expr) -> Expr | None:
        """A scalar in parameters and numbers alone; None for any other."""
        match expr:
            case Literal(value=int(value)) if expr.trips is None:
                return Literal(ValueType(int64), value)
            case Use(variable=variable) if variable in self._parameters:
                self._bound(expr)  # for what it takes
                return Use(ValueType(int64), variable)
            case Use(variable=variable) if variable in self._definitions:
                return self._scalar(self._definitions[variable])
            case Call(op=op, args=(arg,)) if op in MOVES or op == "cast":
                return self._scalar(arg)
            case Call(op="add" | "mul", args=(left, right)):
                one, other = self._scalar(left), self._scalar(right)
                return None if one is None or other is None else _call(expr.op, one, other)
        return None


def furthest(reaches: Iterable[Reach]) -> tuple[Expr, ...]:
    """The bounds that others do not exceed: of those of neighbours in a window, the last one's."""
    left: list[Reach] = []
    for reach in reaches:
        if not any(reach.terms <= other.terms for other in left):
            left = [*(other for other in left if not other.terms <= reach.terms), reach]
    return tuple(reach.most for reach in left)


def conditions_of(reaches: Iterable[Reach]) -> tuple[Call, ...]:
    """What several reaches take, each once; what is above zero is not below."""
    found = dict.fromkeys(condition for reach in reaches for condition in reach.conditions)
    above = {condition.args for condition in found if condition.op == "gt"}
    return tuple(condition for condition in found if condition.op == "gt" or condition.args not in above)


def _counters(body: tuple[Statement, ...]) -> Iterator[tuple[Variable, For]]:
    """The loops of variables that nothing else assigns."""
    counts = assignment_counts(body)
    for loop in statements(body):
        if isinstance(loop, For) and counts[loop.variable] == 1 and loop.previous is None:
            yield loop.variable, loop


# ------------------------------------------------------------------------------------------------- sums of products


def _is_short(terms: Terms) -> bool:
    """Whether a bound is one to be read, of numbers that an offset of 32 bits could reach."""
    parts = (part for factors in terms for factor in factors for part in subexpressions(factor))
    few = len(terms) <= MOST and sum(1 for _ in islice(parts, MOST + 1)) <= MOST
    return few and all(abs(times) <= LARGEST_OFFSET for times in terms.values())


def _number(value: int) -> Terms:
    return Terms({(): value})


def _one(factor: Expr) -> Terms:
    return Terms({(factor,): 1})


def _added(*sums: Terms) -> Terms:
    total = Terms()
    for one in sums:
        total.update(one)
    return total


def _product(one: Terms, other: Terms) -> Terms:
    found = Terms()
    for left, times in one.items():
        for right, number in other.items():
            found[tuple(sorted((*left, *right), key=_order))] += times * number
    return found


def _quotient(dividend: Terms, by: Expr) -> Terms:
    """A quotient that is rounded down: of each term for itself where that is exact, so that `H * 4 // 2` is `H * 2`."""
    number = by.value if isinstance(by, Literal) else 0
    kept = +dividend
    if number and all(times % number == 0 for factors, times in kept.items() if factors):
        return Terms({factors: times // number for factors, times in kept.items()})
    return _one(_call("floordiv", _sum_of(kept), by))


def _terms(scalar: Expr) -> Terms:
    """A scalar in parameters and numbers, multiplied out."""
    match scalar:
        case Literal(value=int(value)):
            return _number(value)
        case Call(op="add", args=(left, right)):
            return _added(_terms(left), _terms(right))
        case Call(op="mul", args=(left, right)):
            return _product(_terms(left), _terms(right))
    return _one(scalar)


def _sum_of(terms: Terms) -> Expr:
    """The sum as an expression, the number last; what is taken off is left out."""
    parts = sorted((one for one in terms.items() if one[1] > 0), key=lambda one: not one[0])
    whole: Expr | None = None
    for factors, times in parts:
        numbers = [Literal(ValueType(int64), times)] if times > 1 or not factors else []
        product = reduce(lambda one, other: _call("mul", one, other), (*factors, *numbers))
        whole = product if whole is None else _call("add", whole, product)
    return Literal(ValueType(int64), 0) if whole is None else whole


def _order(factor: Expr) -> tuple[bool, str]:
    """What is made of the sides of the grid comes first."""
    parts = (part.op for part in subexpressions(factor) if isinstance(part, Call))
    return "num_programs" not in parts, parameter_text(factor)


def _call(op: str, *args: Expr, **attributes: int) -> Call:
    return Call(ValueType(int1 if op in ("ge", "gt") else int64), op, args, tuple(attributes.items()))
