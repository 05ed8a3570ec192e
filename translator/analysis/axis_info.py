"""What is known about the numbers in a tile along each axis: runs of consecutive values, runs of equal ones, divisors.

In: an expression and what is known of the variables it uses. Out: an `AxisInfo`. For
`pid * 1024 + tl.arange(0, 1024)`: contiguity (1024,), divisibility (1024,), constancy (1,): one run of 1024 consecutive
values whose first is a multiple of 1024. Vector widths, alignment and masks that cannot split a vector are read off it.

The lattice is that of Triton's axis analysis (AxisInfo.h in its repository), restricted to powers of two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import gcd

from ..frozen import frozen
from ..ir.nodes import Call, Expr, Literal, Use, Variable
from ..ir.symbols import OfTrips
from ..ir.types import ValueType, padded
from ..language.dtypes import PointerType
from ..ops.registry import OPS

LARGE = 1 << 30  # the divisor of zero


def power_of_two_divisor(value: int) -> int:
    """The largest power of two that divides `value`; `LARGE` for 0."""
    return min(value & -value, LARGE) if value else LARGE


@frozen
class AxisInfo:
    """Per axis (a scalar counts as one axis of side 1), all powers of two.

    Attributes:
      contiguity: lengths of aligned runs in which values rise by 1.
      divisibility: divisors of every run's first value; of an address in bytes for pointers.
      constancy: lengths of aligned runs in which values are equal.
      value: the value when it is the same known number everywhere.
      nonnegative: whether no value is below zero. Division and remainder round towards zero, so what they do to runs
        is known for such values only.
      sum_of: of a sum with a known number, what it was without it, and the number: `x + 2 - 2` is as aligned as x.
      quotient_of: of numbers that rise by 1 after every so many neighbours, as `i // 2` and `n + i // 2` do, the numbers that
        they are quotients of, rounded down, and the divisor: `i // 2 < n` is `i < 2 * n`.
    """

    contiguity: tuple[int, ...]
    divisibility: tuple[int, ...]
    constancy: tuple[int, ...]
    value: int | None = None
    nonnegative: bool = False
    sum_of: tuple[AxisInfo, int] | None = None
    quotient_of: tuple[AxisInfo, int] | None = None

    def start_divisor(self, axis: int, run: int) -> int:
        """A divisor of the first values of runs of length `run`, which may be shorter than the runs known."""
        longer = self.contiguity[axis] > run
        return gcd(self.divisibility[axis], run) if longer else self.divisibility[axis]

    def everywhere(self, axis: int) -> int:
        """A divisor of every value along `axis`, not only of run starts."""
        return self.divisibility[axis] if self.contiguity[axis] == 1 else 1

    def meet(self, other: AxisInfo) -> AxisInfo:
        """What holds whichever of the two is the case."""
        runs = _gcds(self.contiguity, other.contiguity)
        return AxisInfo(
            runs,
            tuple(gcd(self.start_divisor(a, run), other.start_divisor(a, run)) for a, run in enumerate(runs)),
            _gcds(self.constancy, other.constancy),
            self.value if self.value == other.value else None,
            self.nonnegative and other.nonnegative,
        )


Environment = Mapping[Variable, AxisInfo]


def _gcds(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(gcd(a, b) for a, b in zip(left, right, strict=True))


def unknown(type_: ValueType) -> AxisInfo:
    """Nothing is known."""
    ones = (1,) * max(type_.rank, 1)
    return AxisInfo(ones, ones, ones)


def constant(type_: ValueType, value: int) -> AxisInfo:
    """The same number everywhere."""
    shape = type_.shape or (1,)
    ones = (1,) * len(shape)
    sides = tuple(padded(side) for side in shape)
    return AxisInfo(ones, tuple(power_of_two_divisor(value) for _ in shape), sides, value, value >= 0)


def known_divisor(divisor: int) -> AxisInfo:
    """A scalar of which a divisor is known."""
    return AxisInfo((1,), (divisor,), (1,))


def axis_info(expr: Expr, environment: Environment) -> AxisInfo:
    """What is known of an expression."""
    match expr:
        case Literal(value=int(), trips=OfTrips(reach=reach, divisor=divisor)):
            return replace(constant(expr.type, divisor), value=None, nonnegative=reach[0] >= 0)
        case Literal(value=int() as value):
            return constant(expr.type, int(value))
        case Literal():
            return replace(constant(expr.type, 1), divisibility=(1,) * max(expr.type.rank, 1), value=None)
        case Use(variable=variable):
            return environment.get(variable) or unknown(expr.type)
        case Call(op=op) if op in RULES:
            args = [axis_info(arg, environment) for arg in expr.args]
            return _followed(RULES[op](expr, args), expr, args)
        case Call(op=op) if op in OPS:
            return _elementwise(expr, [axis_info(arg, environment) for arg in expr.args])
    return unknown(expr.type)


# ------------------------------------------------------------------------------------------------------ the rules

Rule = Callable[[Call, list[AxisInfo]], AxisInfo]


def _followed(info: AxisInfo, call: Call, args: list[AxisInfo]) -> AxisInfo:
    """The same, with what the numbers are quotients of where an operation only puts them elsewhere."""
    if call.op not in ("broadcast", "expand_dims", "permute", "cast") or args[0].quotient_of is None:
        return info
    dividend, divisor = args[0].quotient_of
    return replace(info, quotient_of=(RULES[call.op](call, [dividend]), divisor))


def _arange(call: Call, _: list[AxisInfo]) -> AxisInfo:
    side = padded(call.type.shape[0])
    start = call.attribute("start")
    return AxisInfo((side,), (power_of_two_divisor(start),), (1,), None, start >= 0)


def _program(call: Call, _: list[AxisInfo]) -> AxisInfo:
    return replace(unknown(call.type), nonnegative=True)


def _add(call: Call, args: list[AxisInfo]) -> AxisInfo:
    left, right = args
    if call.op == "ptr_add" or right.value is None or left.value is not None:
        return _sum(call, left, right)
    base, before = left.sum_of or (left, 0)
    number = before - right.value if call.op == "sub" else before + right.value
    whole = _sum(replace(call, op="add"), base, constant(call.type, number)) if number else base
    return replace(whole, sum_of=(base, number))


def _sum(call: Call, left: AxisInfo, right: AxisInfo) -> AxisInfo:
    axes = range(len(left.contiguity))
    scale = _stride(call.type) if call.op == "ptr_add" else 1
    contiguity = [gcd(left.contiguity[a], right.constancy[a]) for a in axes]
    if call.op != "sub":
        contiguity = [max(contiguity[a], gcd(left.constancy[a], right.contiguity[a])) for a in axes]
    value = None
    if left.value is not None and right.value is not None and call.op != "ptr_add":
        value = left.value - right.value if call.op == "sub" else left.value + right.value
    return AxisInfo(
        tuple(contiguity),
        tuple(gcd(left.start_divisor(a, contiguity[a]), right.start_divisor(a, contiguity[a]) * scale) for a in axes),
        _gcds(left.constancy, right.constancy),
        value,
        call.op == "add" and left.nonnegative and right.nonnegative,
        quotient_of=_quotient_with(call, left, right) or _quotient_with(call, right, left)
        if call.op == "add"
        else None,
    )


def _quotient_with(call: Call, quotient: AxisInfo, number: AxisInfo) -> tuple[AxisInfo, int] | None:
    """Of the sum of a quotient and another number: that is the quotient of the dividend and so many times the number."""
    if quotient.quotient_of is None:
        return None
    dividend, divisor = quotient.quotient_of
    multiples = tuple(min(number.everywhere(a) * divisor, LARGE) for a in range(len(number.contiguity)))
    times = AxisInfo((1,) * len(multiples), multiples, number.constancy)
    return _sum(call, dividend, times), divisor


def _neg(call: Call, args: list[AxisInfo]) -> AxisInfo:
    (arg,) = args
    divisors = tuple(map(arg.everywhere, range(len(arg.contiguity))))
    return replace(_elementwise(call, args), divisibility=divisors, value=None if arg.value is None else -arg.value)


def _mul(_: Call, args: list[AxisInfo]) -> AxisInfo:
    left, right = args
    if left.value == 1:
        return right
    if right.value == 1:
        return left
    axes = range(len(left.contiguity))
    return AxisInfo(
        tuple(1 for _ in axes),
        tuple(min(left.everywhere(a) * right.everywhere(a), LARGE) for a in axes),
        _gcds(left.constancy, right.constancy),
        left.value * right.value if left.value is not None and right.value is not None else None,
        left.nonnegative and right.nonnegative,
    )


def _floordiv(call: Call, args: list[AxisInfo]) -> AxisInfo:
    left, right = args
    if right.value == 1:
        return left
    axes = range(len(left.contiguity))
    divisor = power_of_two_divisor(right.value) if right.value else 1
    # What is a multiple of the divisor is divided without a rest, whatever its sign.
    quotients = tuple(max(left.everywhere(a) // divisor, 1) if divisor == right.value else 1 for a in axes)
    if not right.value or right.value < 0 or not left.nonnegative:
        # A divisor that is not known is taken to be positive, as in the box analysis.
        sign = left.nonnegative and right.value is None
        equal = _gcds(left.constancy, right.constancy)
        if sign:  # an aligned run as long as a divisor of the divisor has one quotient
            runs = (
                gcd(gcd(left.contiguity[a], left.divisibility[a]), right.divisibility[a]) for a in range(len(equal))
            )
            equal = tuple(max(equal[a], gcd(run, right.constancy[a])) for a, run in enumerate(runs))
        return replace(unknown(call.type), divisibility=quotients, constancy=equal, nonnegative=sign)
    equal = tuple(max(left.constancy[a], gcd(gcd(left.contiguity[a], left.divisibility[a]), divisor)) for a in axes)
    dividend = (left, right.value) if divisor == right.value else None
    return AxisInfo(tuple(1 for _ in axes), quotients, equal, None, True, quotient_of=dividend)


def _mod(call: Call, args: list[AxisInfo]) -> AxisInfo:
    left, right = args
    if right.value == 1:
        return constant(call.type, 0)
    axes = range(len(left.contiguity))
    if not left.nonnegative:  # what divides both divides what is left, whatever its sign
        common = tuple(gcd(left.everywhere(a), right.everywhere(a)) for a in axes)
        return replace(unknown(call.type), divisibility=common, constancy=_gcds(left.constancy, right.constancy))
    steady = [gcd(left.divisibility[a], right.divisibility[a]) for a in axes]
    runs = tuple(gcd(gcd(left.contiguity[a], steady[a]), right.constancy[a]) for a in axes)
    divisors = tuple(gcd(left.start_divisor(a, runs[a]), right.everywhere(a)) for a in axes)
    return AxisInfo(runs, divisors, _gcds(left.constancy, right.constancy), None, True)


def _shift(call: Call, args: list[AxisInfo]) -> AxisInfo:
    """A shift to the right by a known number of bits is a quotient."""
    left, bits = args
    if bits.value is None or not 0 <= bits.value < 31:
        return _elementwise(call, args)
    return _floordiv(call, [left, constant(call.args[1].type, 1 << bits.value)])


def _and(call: Call, args: list[AxisInfo]) -> AxisInfo:
    """The low bits alone are a remainder."""
    left, mask = args if args[1].value is not None else reversed(args)
    value = mask.value
    if value is None or value < 0 or value & (value + 1) or not left.nonnegative:
        return _elementwise(call, args)
    return _mod(call, [left, constant(call.type, value + 1)])


def _compare(call: Call, args: list[AxisInfo]) -> AxisInfo:
    left, right = args
    if call.op in ("gt", "le"):  # `bound > index` and `bound <= index` are `index < bound` and `index >= bound`
        left, right = right, left
    constancy = list(_gcds(left.constancy, right.constancy))
    if call.op in ("lt", "ge", "gt", "le"):
        index, divisor = left.quotient_of or (left, 1)
        for a in range(len(constancy)):
            # An aligned run of indices lies wholly on one side of a bound that is a multiple of the run's length.
            whole = gcd(gcd(index.contiguity[a], index.divisibility[a]), right.divisibility[a] * divisor)
            constancy[a] = max(constancy[a], gcd(whole, right.constancy[a]))
    return replace(unknown(call.type), constancy=tuple(constancy))


def _elementwise(call: Call, args: list[AxisInfo]) -> AxisInfo:
    info = unknown(call.type)
    if args:
        constancy = args[0].constancy
        for arg in args[1:]:
            constancy = _gcds(constancy, arg.constancy)
        info = replace(info, constancy=constancy)
    return info


def _load(call: Call, args: list[AxisInfo]) -> AxisInfo:
    """Equal addresses under equal masks bring equal elements, unless somebody may change them between two loads."""
    return unknown(call.type) if call.attribute("volatile") else _elementwise(call, args)


def _extremum(call: Call, args: list[AxisInfo]) -> AxisInfo:
    left, right = args
    divisors = tuple(gcd(left.everywhere(a), right.everywhere(a)) for a in range(len(left.contiguity)))
    sign = left.nonnegative and right.nonnegative
    return replace(_elementwise(call, args), divisibility=divisors, nonnegative=sign)


def _where(_: Call, args: list[AxisInfo]) -> AxisInfo:
    """Runs that the condition does not split are those of one of the two, whichever it is."""
    condition, *values = args
    either = values[0].meet(values[1])
    runs = _gcds(either.contiguity, condition.constancy)
    divisors = tuple(either.start_divisor(a, run) for a, run in enumerate(runs))
    return replace(
        either, contiguity=runs, divisibility=divisors, constancy=_gcds(either.constancy, condition.constancy)
    )


def _cast(call: Call, args: list[AxisInfo]) -> AxisInfo:
    (arg,) = args
    wanted, source = call.type, call.args[0].type
    keeps = wanted.is_pointer or (wanted.dtype.is_int() and wanted.dtype.bits >= 32)
    keeps = keeps and (source.is_pointer or (source.dtype.is_int() and source.dtype.bits >= 8))
    if not keeps or _stride(wanted) == _stride(source):
        return arg if keeps else _elementwise(call, args)
    axes = range(len(arg.contiguity))  # neighbours are as many bytes apart as before, which is no longer one element
    return replace(_elementwise(call, args), divisibility=tuple(map(arg.everywhere, axes)))


def _stride(type_: ValueType) -> int:
    """How far two consecutive values are apart: as addresses in bytes for pointers."""
    return type_.element.element_ty.itemsize if isinstance(type_.element, PointerType) else 1


def _broadcast(call: Call, args: list[AxisInfo]) -> AxisInfo:
    (arg,) = args
    shape, source = call.type.shape, call.args[0].type.shape
    if not source:
        source = (1,) * len(shape)
        ones = (1,) * len(shape)
        arg = AxisInfo(ones, arg.divisibility * len(shape), ones, arg.value, arg.nonnegative)
    contiguity, divisibility, constancy = list(arg.contiguity), list(arg.divisibility), list(arg.constancy)
    for axis, (side, before) in enumerate(zip(shape, source, strict=True)):
        if side != before:
            contiguity[axis], constancy[axis] = 1, padded(side)
            divisibility[axis] = arg.everywhere(axis)
    # A run along another axis makes this axis's values differ from its first, so only common divisors remain.
    for axis, (side, before) in enumerate(zip(shape, source, strict=True)):
        if side != before:
            others = [arg.everywhere(a) for a in range(len(shape)) if a != axis and source[a] != 1]
            divisibility[axis] = min([divisibility[axis], *others])
    return AxisInfo(tuple(contiguity), tuple(divisibility), tuple(constancy), arg.value, arg.nonnegative)


def _expand_dims(call: Call, args: list[AxisInfo]) -> AxisInfo:
    (arg,) = args
    axis = call.attribute("axis")
    common = min(arg.everywhere(a) for a in range(len(arg.contiguity)))
    if not call.args[0].type.shape:
        return arg

    def insert(values: tuple[int, ...], value: int) -> tuple[int, ...]:
        return (*values[:axis], value, *values[axis:])

    sides = (insert(arg.contiguity, 1), insert(arg.divisibility, common), insert(arg.constancy, 1))
    return AxisInfo(*sides, arg.value, arg.nonnegative)


def _permute(call: Call, args: list[AxisInfo]) -> AxisInfo:
    (arg,) = args
    order = call.attribute("order")

    def pick(values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(values[axis] for axis in order)

    sides = (pick(arg.contiguity), pick(arg.divisibility), pick(arg.constancy))
    return AxisInfo(*sides, arg.value, arg.nonnegative)


def _reshape(call: Call, args: list[AxisInfo]) -> AxisInfo:
    (arg,) = args
    last, before = call.type.shape[-1] if call.type.shape else 1, call.args[0].type.shape
    info = unknown(call.type)
    if not before or padded(last) != last or padded(before[-1]) != before[-1]:
        return info
    # Only the innermost axis is followed: its runs survive up to the new side.
    run = gcd(arg.contiguity[-1], last)
    divisor = arg.divisibility[-1] if run == arg.contiguity[-1] else gcd(arg.divisibility[-1], run)
    ones = info.contiguity[:-1]
    constancy = (*ones, gcd(arg.constancy[-1], last))
    return AxisInfo((*ones, run), (*ones, divisor), constancy, arg.value, arg.nonnegative)


def _hint(call: Call, args: list[AxisInfo]) -> AxisInfo:
    (arg,) = args
    values = tuple(power_of_two_divisor(value) for value in call.attribute("values"))
    if len(values) != len(arg.contiguity):
        return arg
    match call.attribute("kind"):
        case "multiple_of":
            return replace(arg, divisibility=values)
        case "max_contiguous":
            return replace(arg, contiguity=values)
    return replace(arg, constancy=values)


RULES: dict[str, Rule] = {
    "arange": _arange,
    "program_id": _program,
    "num_programs": _program,
    "add": _add,
    "sub": _add,
    "ptr_add": _add,
    "neg": _neg,
    "mul": _mul,
    "floordiv": _floordiv,
    "mod": _mod,
    "shr": _shift,
    "and": _and,
    "minimum": _extremum,
    "maximum": _extremum,
    "where": _where,
    "cast": _cast,
    "broadcast": _broadcast,
    "expand_dims": _expand_dims,
    "permute": _permute,
    "reshape": _reshape,
    "hint": _hint,
    "load": _load,
} | dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne"), _compare)
