"""Whether a load or store touches an affine box of a tensor that the launcher can describe: what TMA copies.

In: a statement that loads or stores a tile. Out: the `Box`, or why it is none. The pointer is read as a sum
(`coordinates.py`): what a position in the tile is multiplied with is a stride; terms that hold a stride as a factor are
where the box starts along that dimension; strides that no axis has make further dimensions of one index each. Every
part of the mask must bound one coordinate by a function of the parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import copysign

from ..ir.nodes import Assign, Call, Effect, Expr, Kernel, Literal, Statement, Use, Variable
from ..ir.types import ValueType
from ..ir.walk import subexpressions
from ..language.dtypes import PointerType, int1, int64
from .affine import NotAffineError, Sum, Term, along, build, divide, minus, plus, scalar_part
from .axis_info import axis_info, known_divisor
from .coordinates import Reader
from .facts import Facts
from .induction import Induction
from .masks import conjuncts
from .signs import find_signs

MAX_RANK = 5  # dimensions of a tensor map
MAX_SIDE = 256  # elements of a box along a dimension
ALIGNMENT = 16  # bytes: of the base and of every stride
ONE: Sum = (Term(1),)


@dataclass(frozen=True, slots=True)
class BoxDim:
    """One dimension of the tensor.

    Attributes:
      side: elements of the box: the tile's side, 1 for a dimension that no axis of the tile runs along.
      axis: the tile's axis, or None.
      start: coordinate of the box's first element, a scalar of what holds at the statement.
      size: elements of the tensor, a scalar over parameters and numbers; None when the kernel does not bound them.
      stride: elements from one index to the next, a scalar over parameters and numbers; 1 for the first dimension.
    """

    side: int
    axis: int | None
    start: Expr
    size: Expr | None
    stride: Expr


@dataclass(frozen=True, slots=True)
class Box:
    """`base[sum over dims of (start + position) * stride]`, zeros outside of the sizes.

    Attributes:
      base: the pointer parameter that the tensor starts at.
      dims: the contiguous dimension first, then the tile's axes from the last to the first, then the rest.
      guards: conditions over parameters under which this holds.
    """

    base: Variable
    dims: tuple[BoxDim, ...]
    guards: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class NotABox:
    """`reason` is one clause, for the header of the text and for `explain`."""

    reason: str


class _Site:
    """One load or store, and the readers of scalars there."""

    def __init__(self, statement: Statement, kernel: Kernel, facts: Facts, induction: Induction) -> None:
        self.statement, self.kernel, self.facts, self.induction = statement, kernel, facts, induction
        self.parameters = frozenset(p.variable for p in kernel.parameters)
        self.divisors = {p.variable: known_divisor(p.divisibility) for p in kernel.parameters}
        self.numeric = self.reader(numeric=True)

    def reader(self, numeric: bool, strides: frozenset[int] = frozenset()) -> Reader:
        def definition(variable: Variable) -> Expr | None:
            return self.induction.definition(variable, self.statement)

        environment = self.facts.environments[id(self.statement)]
        return Reader(self.parameters, definition, environment, numeric, strides)

    def value(self, expr: Expr, what: str) -> Expr:
        value = self.induction.value_at(expr, self.statement)
        if value is None:
            raise NotAffineError(f"{what} changes from trip to trip in no regular way")
        return value


def find_box(statement: Statement, kernel: Kernel, facts: Facts, induction: Induction) -> Box | NotABox:
    """The box that a load or store of a tile touches."""
    call = (
        statement.value if isinstance(statement, Assign) else statement.call if isinstance(statement, Effect) else None
    )
    if not isinstance(call, Call) or call.op not in ("load", "store"):
        return NotABox("it is no load or store")
    try:
        _check_access(call)
        site = _Site(statement, kernel, facts, induction)
        return _find_box(call, site)
    except NotAffineError as problem:
        return NotABox(problem.reason)


def _check_access(call: Call) -> None:
    """Raises for what a copy of boxes cannot do whatever the addresses are."""
    element = call.args[0].type.element
    if not call.args[0].type.is_tile:
        raise NotAffineError("it is a scalar")
    if isinstance(element, PointerType) and element.element_ty.is_bool():
        raise NotAffineError("booleans are converted on the way")
    if call.attribute("volatile"):
        raise NotAffineError("the load is volatile")
    if call.attribute("cache_modifier"):
        raise NotAffineError("it has a cache modifier")
    if call.op == "load" and len(call.args) > 2:
        other = call.args[2]
        if not isinstance(other, Literal) or other.value != 0 or copysign(1, other.value) < 0:
            raise NotAffineError("other is not 0")


def _find_box(call: Call, site: _Site) -> Box:
    shape = call.args[0].type.shape
    pointer = site.value(call.args[0], "the pointer")
    reader = site.reader(numeric=False)
    dims = _dimensions(pointer, shape, site, reader)
    base = _base(reader.sum(pointer), site)
    if len(dims) == 1 and any(not p.type.is_pointer and p.type.dtype == int64 for p in subexpressions(pointer)):
        raise NotAffineError("coordinates may need 64 bits")
    mask = call.args[1 if call.op == "load" else 2] if len(call.args) > (1 if call.op == "load" else 2) else None
    sizes, from_zero = _sizes(mask, dims, site)
    dims = tuple(replace(dim, size=sizes.get(number)) for number, dim in enumerate(dims))
    guards = dict(reader.guards) | site.numeric.guards
    guards |= dict.fromkeys(_sign_guards(dims, from_zero, site))
    return Box(base, dims, tuple({parameter_text(guard): guard for guard in guards}.values()))


def _base(terms: Sum, site: _Site) -> Variable:
    bases = [term for term in terms if any(factor.type.is_pointer for factor in term.factors)]
    if len(bases) == 1 and bases[0].coefficient == 1 and len(bases[0].factors) == 1 and bases[0].lane is None:
        (base,) = bases[0].factors
        if isinstance(base, Use) and base.variable in site.parameters:
            if site.divisors[base.variable].divisibility[0] < ALIGNMENT:
                raise NotAffineError(f"{base.variable.name} is not known to be a multiple of {ALIGNMENT} bytes")
            return base.variable
    raise NotAffineError("the address does not start at a pointer parameter")


# ------------------------------------------------------------------------------------------------------ dimensions


def _dimensions(pointer: Expr, shape: tuple[int, ...], site: _Site, reader: Reader) -> tuple[BoxDim, ...]:
    """All dimensions, sizes left open."""
    terms = reader.sum(pointer)
    strides = _strides(terms, shape, reader)
    literals = frozenset(s[0].number for s in strides.values() if s != ONE and not any(t.unknowns for t in s))
    contiguous = next(axis for axis, stride in strides.items() if stride == ONE)
    starts, extra = _starts(terms, strides, contiguous, site, reader)
    if literals and any(site.induction.definition(f.variable, site.statement) is not None
                        for term in starts[contiguous] for f in term.factors if isinstance(f, Use)):  # fmt: skip
        # A scalar of the user's may hold a multiple of a stride that is a number.
        terms = site.reader(False, literals).sum(pointer)
        starts, extra = _starts(terms, strides, contiguous, site, reader)
    axes = [contiguous, *sorted((axis for axis in strides if axis != contiguous), reverse=True)]
    dims = [BoxDim(shape[a], a, build(starts[a]), None, build(strides[a])) for a in axes]
    dims += [BoxDim(1, None, build(start), None, build(stride)) for stride, start in extra.items()]
    _check_dimensions(dims, pointer, site)
    return tuple(dims)


def _strides(terms: Sum, shape: tuple[int, ...], reader: Reader) -> dict[int, Sum]:
    strides = {}
    for axis, side in enumerate(shape):
        if side == 1:
            continue
        strides[axis] = along(terms, axis)
        if not strides[axis]:
            raise NotAffineError(f"all elements along axis {axis} are the same")
        if not reader.over_parameters(strides[axis]):
            raise NotAffineError(f"the stride along axis {axis} is no function of the parameters")
    count = sum(stride == ONE for stride in strides.values())
    if count != 1:
        raise NotAffineError("no axis is known to be contiguous" if count == 0 else "two axes are contiguous")
    return strides


def _starts(
    terms: Sum, strides: dict[int, Sum], contiguous: int, site: _Site, reader: Reader
) -> tuple[dict[int, Sum], dict[Sum, Sum]]:
    """Where the box starts: along each axis, and along the dimensions of strides that no axis has."""
    rest = tuple(t for t in scalar_part(terms) if not any(factor.type.is_pointer for factor in t.factors))
    starts: dict[int, Sum] = {}
    # The stride with most parameters first: what holds `a * b` belongs to the stride a * b rather than to a.
    for axis in sorted(strides, key=lambda a: (-len(strides[a][0].unknowns), -abs(strides[a][0].number))):
        if axis != contiguous:
            starts[axis], rest = divide(rest, strides[axis])
    extra: dict[Sum, Sum] = {}
    remaining: list[Term] = []
    for term in rest:
        parameters = tuple(f for f in term.factors if reader.is_parameter(f))
        own = Term(1, parameters)
        alone = len(term.factors) == len(parameters) == 1 and parameters[0].type.dtype != int64
        if not parameters or (alone and term.coefficient == 1):
            remaining.append(term)
            continue
        same = next((s for s in extra if divide((term,), s)[0]), (own,))
        extra[same] = plus(extra.get(same, ()), divide((term,), same)[0])
    starts[contiguous] = tuple(remaining)
    if any(factor.type.dtype.bits > 32 for term in remaining for factor in term.unknowns):
        raise NotAffineError("an offset of 64 bits has no stride of its own")
    return starts, extra


def _check_dimensions(dims: list[BoxDim], pointer: Expr, site: _Site) -> None:
    element = pointer.type.element
    itemsize = element.element_ty.itemsize if isinstance(element, PointerType) else 1
    for dim in dims:
        if dim.side > MAX_SIDE:
            raise NotAffineError(f"axis {dim.axis} has {int(dim.side)} elements, more than the {MAX_SIDE} of a box")
        known = axis_info(dim.stride, site.divisors).divisibility[0]
        if dim is not dims[0] and known * itemsize % ALIGNMENT:
            text = parameter_text(dim.stride)
            raise NotAffineError(f"the stride {text} is not known to be a multiple of {ALIGNMENT} bytes")
    if len(dims) > MAX_RANK:
        raise NotAffineError(f"it has {len(dims)} dimensions, more than {MAX_RANK}")


# ------------------------------------------------------------------------------------------------------------ masks


def _sizes(mask: Expr | None, dims: tuple[BoxDim, ...], site: _Site) -> tuple[dict[int, Expr], set[int]]:
    """The size of every bounded dimension, and the dimensions of which the mask excludes negative coordinates."""
    found: dict[int, Sum] = {}
    from_zero: set[int] = set()
    for part in conjuncts(mask and site.value(mask, "the mask"), site.facts):
        lane, side, lowest = _bound(part, site)
        number = next((n for n, dim in enumerate(dims) if dim.axis == lane), None)
        if number is None:
            raise NotAffineError("the mask is not a bound of a coordinate")
        start = site.numeric.sum(dims[number].start)
        limit = plus(start, side)
        if lowest:
            _check_lowest(limit, number, from_zero)
            continue
        if not site.numeric.over_parameters(limit):
            raise NotAffineError(f"the bound along axis {lane} is no sum of products of parameters")
        if found.setdefault(number, limit) != limit and minus(found[number], limit):
            raise NotAffineError(f"the mask bounds axis {lane} twice")
    return {number: build(limit) for number, limit in found.items()}, from_zero


def _check_lowest(limit: Sum, number: int, from_zero: set[int]) -> None:
    if limit:
        raise NotAffineError("the mask excludes coordinates below a number other than 0")
    from_zero.add(number)


def _bound(part: Expr, site: _Site) -> tuple[int, Sum, bool]:
    """`position along an axis < limit` as (axis, limit, False), or `>= limit` as (axis, limit, True)."""
    below = part
    while isinstance(below, Call) and below.op in ("broadcast", "expand_dims"):
        below = below.args[0]
    if not below.type.is_tile:
        raise NotAffineError("the mask depends on a scalar condition")
    if not isinstance(part, Call) or part.op not in ("lt", "le", "gt", "ge"):
        raise NotAffineError("the mask is not a bound of a coordinate")
    try:
        left, right = (site.numeric.sum(arg) for arg in part.args)
    except NotAffineError:
        raise NotAffineError("the mask is not a bound of a coordinate") from None
    if part.op in ("gt", "ge"):
        left, right = right, left
    room = plus(minus(right, left), ONE if part.op in ("le", "ge") else ())  # the part holds where this is above 0
    lanes = {term.lane for term in room if term.lane is not None}
    if not lanes:
        raise NotAffineError("the mask depends on a scalar condition")
    (lane,) = lanes if len(lanes) == 1 else (None,)
    slope = along(room, lane) if lane is not None else ()
    if lane is None or slope not in (ONE, (Term(-1),)):
        raise NotAffineError("the mask is not a bound of a coordinate")
    if slope == ONE:  # lane + r > 0: lane >= 1 - r
        return lane, minus(ONE, scalar_part(room)), True
    return lane, scalar_part(room), False


def _sign_guards(dims: tuple[BoxDim, ...], from_zero: set[int], site: _Site) -> list[Expr]:
    """Conditions that keep the box from starting before the tensor, where a mask does not exclude what lies there."""
    signs = find_signs(site.kernel, site.facts, site.induction, site.statement, site.reader)
    guards: list[Expr] = []
    for number, dim in enumerate(dims):
        if number in from_zero:
            continue
        needed = signs.needed(dim.start)
        if needed is None:
            where = f"axis {dim.axis}" if dim.axis is not None else f"the stride {parameter_text(dim.stride)}"
            raise NotAffineError(f"the start along {where} may be negative")
        for variable in sorted(needed, key=lambda v: v.key):
            use = Use(variable.type, variable)
            guards.append(Call(ValueType(int1), "ge", (use, Literal(use.type, 0))))
    return guards


# ------------------------------------------------------------------------------------------------------------- text

OPERATORS = {"mul": ("*", 3), "mod": ("%", 3), "add": ("+", 2), "sub": ("-", 2),
             "lt": ("<", 1), "le": ("<=", 1), "gt": (">", 1), "ge": (">=", 1), "eq": ("==", 1), "ne": ("!=", 1)}  # fmt: skip


def parameter_text(expr: Expr) -> str:
    """A scalar over parameters and numbers as text that means the same in Python and in C++ (see `TensorMap`).

    Raises:
      TypeError: for any other expression.
    """
    return _text(expr, 0)


def _text(expr: Expr, within: int) -> str:
    match expr:
        case Literal(value=value):
            return str(int(value)) if value >= 0 else f"({int(value)})"
        case Use(variable=variable):
            return variable.name
        case Call(op="cast", args=(arg,)):
            return _text(arg, within)
        case Call(op="neg", args=(arg,)):
            return f"(-{_text(arg, 4)})"
        case Call(op=op, args=(left, right)) if op in OPERATORS:
            sign, precedence = OPERATORS[op]
            text = f"{_text(left, precedence)} {sign} {_text(right, precedence + 1)}"
            return f"({text})" if precedence < within else text
    raise TypeError(f"{expr} is no arithmetic in parameters")
