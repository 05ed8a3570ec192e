"""The dimensions of a box: strides, and where it starts along each of them.

In: a tile of pointers. Out: a `BoxDim` for every axis and for every further stride, sizes left open. What a position in the
tile is multiplied with is the stride of its axis; scalar terms that hold this stride as a factor are where the box starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd

from ..frozen import frozen
from ..hardware import MAX_RANK, MAX_SIDE, TENSOR_ALIGNMENT
from ..ir.nodes import Call, Expr, Kernel, Statement, Use, Variable
from ..ir.structured import is_elementwise
from ..ir.walk import subexpressions, used_variables
from ..language.dtypes import PointerType, int64
from .affine import ONE, NotAffineError, Sum, Term, along, build, divide, minus, plus, scalar_part, times
from .axis_info import axis_info, known_divisor
from .coordinates import Reader
from .facts import Facts
from .induction import Induction
from .parameter_text import parameter_text
from .ranges import integer_range


@frozen
class BoxDim:
    """One dimension of the tensor.

    Attributes:
      side: elements of the box: the tile's side, 1 for a dimension that no axis of the tile runs along.
      axis: the tile's axis, or None.
      start: coordinate of the box's first element, a scalar of what holds at the statement.
      size: elements of the tensor, a scalar over parameters and numbers; None when the kernel does not bound them.
      stride: elements from one index to the next, a scalar over parameters and numbers; 1 for the first dimension.
      sharing: neighbours along the tile's axis that have one element of the box: the tile's side is so many times the box's.
    """

    side: int
    axis: int | None
    start: Expr
    size: Expr | None
    stride: Expr
    sharing: int = 1


@frozen
class BoxKind:
    """Which boxes are asked for.

    Attributes:
      mapped: whether a tensor map must be able to describe them: aligned, not too large, and none that starts before the
        tensor. Any other may have rows of any length, and starts below 0 mean what they mean to a load, except where the mask
        excludes them.
      fixed: scalars that base, sizes and strides may be functions of beside the parameters: of maps that the kernel makes.
      shared: whether neighbours of the tile may share an element, which the box has once (`BoxDim.sharing`).
    """

    mapped: bool = True
    fixed: frozenset[Variable] = frozenset()
    shared: bool = False


OF_LAUNCHER = BoxKind()  # for maps of which the launcher knows all


class Site:
    """One load or store, and readers of the scalars there.

    Attributes:
      parameters: the kernel's, and the scalars that are fixed, which stand for themselves as parameters do.
      kind: which boxes are asked for.
      divisors: what is known of the parameters.
      numeric: a reader that follows every definition.
    """

    def __init__(
        self, statement: Statement, kernel: Kernel, facts: Facts, induction: Induction, kind: BoxKind = OF_LAUNCHER
    ) -> None:
        self.statement, self.kernel, self.facts, self.induction = statement, kernel, facts, induction
        self.kind, fixed = kind, kind.fixed
        self.parameters = frozenset(p.variable for p in kernel.parameters) | fixed
        self.divisors = {p.variable: known_divisor(p.divisibility) for p in kernel.parameters}
        self.divisors |= {variable: facts.known[variable] for variable in fixed if variable in facts.known}
        self.numeric = self.reader(numeric=True)

    def at(self, statement: Statement) -> Site:
        """The same questions at another statement."""
        return Site(statement, self.kernel, self.facts, self.induction, self.kind)

    def reader(self, numeric: bool, strides: frozenset[int] = frozenset()) -> Reader:
        """A reader of the scalars at the statement."""

        def definition(variable: Variable) -> Expr | None:
            return self.induction.definition(variable, self.statement)

        environment = self.facts.environments.get(self.statement, {})
        bases, shared = bool(self.kind.fixed), self.kind.shared
        return Reader(self.parameters, definition, environment, numeric, strides, bases, shared)

    def value(self, expr: Expr, what: str) -> Expr:
        """An operand of the statement in terms of what holds there; `what` names it.

        Raises:
          NotAffineError: when it has no closed form.
        """
        value = self.induction.value_at(expr, self.statement)
        if value is None:
            raise NotAffineError(f"{what} changes from trip to trip in no regular way")
        return value

    def is_defined(self, factor: Expr) -> bool:
        """Whether a factor is a variable whose definition can be followed."""
        return isinstance(factor, Use) and self.induction.definition(factor.variable, self.statement) is not None

    def is_fixed(self, terms: Sum) -> bool:
        """Whether a sum consists of numbers and of what is computed of the parameters, the fixed scalars among them."""
        factors = [factor for term in terms for factor in term.unknowns]
        known = all(self.parameters.issuperset(used_variables(factor)) for factor in factors)
        calls = (part for factor in factors for part in subexpressions(factor) if isinstance(part, Call))
        return (
            bool(self.kind.fixed) and known and all(is_elementwise(call) and call.op != "program_id" for call in calls)
        )

    def divisor(self, expr: Expr) -> int:
        """A known divisor of a scalar over parameters, a power of two."""
        return axis_info(expr, self.divisors).divisibility[0]


# Whether a term of where a box starts along an axis has a dimension of its own.
Apart = Callable[[int, Term, Reader], bool]


def nothing_apart(axis: int, term: Term, reader: Reader) -> bool:
    """Every start belongs to the axis whose stride it holds."""
    return False


def mixes(axis: int, term: Term, reader: Reader) -> bool:
    """Whether a term multiplies a parameter with something that is none, as the number of a batch and its rows."""
    return len({reader.is_parameter(factor) for factor in term.unknowns}) == 2


def terms_apart(terms: Mapping[int | None, Sum], site: Site) -> Apart:
    """Whether a term consists of those that are given for its axis, in numbers and what has no definition."""

    def apart(axis: int, term: Term, reader: Reader) -> bool:
        return set(site.numeric.sum(build((term,)))) <= set(terms.get(axis, ()))

    return apart


def find_dimensions(
    pointer: Expr, shape: tuple[int, ...], site: Site, reader: Reader, apart: Apart
) -> tuple[BoxDim, ...]:
    """All dimensions, sizes left open.

    Where `pid_b * rows * stride` meets an axis of this stride, it is where the box starts along the axis, `pid_b * rows`,
    or, if it is `apart`, a dimension of its own with the stride `rows * stride`.

    Raises:
      NotAffineError: when there are none, or, where the site's boxes are mapped, none that a tensor map can have.
    """
    terms = reader.sum(pointer)
    strides = _strides(terms, shape, reader)
    literals = frozenset(s[0].number for s in strides.values() if s != ONE and not any(t.unknowns for t in s))
    contiguous = next(axis for axis, stride in strides.items() if stride == ONE)
    starts, extra = _starts(terms, strides, contiguous, reader, apart, bool(site.kind.fixed))
    if literals and any(site.is_defined(factor) for term in starts[contiguous] for factor in term.factors):
        # A scalar of the user's may hold a multiple of a stride that is a number.
        terms = site.reader(False, literals).sum(pointer)
        starts, extra = _starts(terms, strides, contiguous, reader, apart, bool(site.kind.fixed))
    starts[contiguous], far = _without_far(starts[contiguous], itemsize(pointer), site.facts)
    for stride, start in far.items():
        extra[stride] = plus(extra.get(stride, ()), start)
    axes = [contiguous, *sorted((axis for axis in strides if axis != contiguous), reverse=True)]
    sharing = {term.lane: term.sharing for term in terms}
    dims = [
        BoxDim(shape[a] // sharing[a], a, build(starts[a]), None, build(strides[a]), sharing[a])
        if sharing[a] > 1 else BoxDim(shape[a], a, build(starts[a]), None, build(strides[a]))
        for a in axes
    ]  # fmt: skip
    for stride, start in extra.items():
        dims.append(BoxDim(1, None, *_with_aligned_stride(start, stride, itemsize(pointer), site)))
    if site.kind.mapped:
        _check_dimensions(dims, pointer, site)
    return tuple(dims)


def _strides(terms: Sum, shape: tuple[int, ...], reader: Reader) -> dict[int, Sum]:
    strides = {}
    for axis, side in enumerate(shape):
        if side == 1:
            continue
        strides[axis] = along(terms, axis)
        if len({term.sharing for term in terms if term.lane == axis}) > 1:
            raise NotAffineError(f"positions along axis {axis} are divided in one place, and in another they are not")
        if not strides[axis]:
            raise NotAffineError(f"all elements along axis {axis} are the same")
        if any(term.coefficient < 0 for term in strides[axis]):
            raise NotAffineError(f"the stride along axis {axis} is negative")
        if not reader.over_parameters(strides[axis]):
            raise NotAffineError(f"the stride along axis {axis} is no function of the parameters")
    count = sum(stride == ONE for stride in strides.values())
    if count != 1:
        raise NotAffineError("no axis is known to be contiguous" if count == 0 else "two axes are contiguous")
    return strides


def _starts(
    terms: Sum, strides: dict[int, Sum], contiguous: int, reader: Reader, apart: Apart, own_base: bool
) -> tuple[dict[int, Sum], dict[Sum, Sum]]:
    """Where the box starts: along each axis, and along the dimensions of strides that no axis has.

    A map with its `own_base`, which the kernel makes, needs no such dimensions.
    """
    rest = tuple(t for t in scalar_part(terms) if not any(factor.type.is_pointer for factor in t.factors))
    starts: dict[int, Sum] = {}
    # The stride with most parameters first: what holds `a * b` belongs to the stride a * b rather than to a.
    for axis in sorted(strides, key=lambda a: (-len(strides[a][0].unknowns), -abs(strides[a][0].number))):
        if axis != contiguous:
            start, rest = divide(rest, strides[axis])
            other = tuple(term for term in start if apart(axis, term, reader))
            starts[axis] = minus(start, other)
            rest = plus(rest, times(other, strides[axis]))
    extra: dict[Sum, Sum] = {}
    remaining: list[Term] = []
    for term in rest:
        parameters = () if own_base else tuple(f for f in term.factors if reader.is_parameter(f))
        own = Term(1, parameters)
        alone = len(term.factors) == len(parameters) == 1 and parameters[0].type.dtype != int64
        if not parameters and not own_base and apart(contiguous, term, reader):
            own = Term(term.number)
        elif not parameters or (alone and term.coefficient == 1):
            remaining.append(term)
            continue
        same = next((s for s in extra if divide((term,), s)[0]), (own,))
        extra[same] = plus(extra.get(same, ()), divide((term,), same)[0])
    starts[contiguous] = tuple(remaining)
    return starts, extra


def _without_far(start: Sum, item_bytes: int, facts: Facts) -> tuple[Sum, dict[Sum, Sum]]:
    """Where a box starts along the contiguous axis, less what may need more than a coordinate's 32 bits, and that by stride.

    What a number is multiplied with counts in steps of that many elements. Along the other axes a start is taken to fit: its
    elements lie too far apart for a memory to hold more.

    Raises:
      NotAffineError: when there is no such number, or what it is multiplied with may need more than 32 bits itself.
    """
    near: list[Term] = []
    far: dict[Sum, Sum] = {}
    for term in start:
        count = Term(1, term.unknowns)
        if not any(factor.type.dtype.bits > 32 for factor in term.unknowns) or _fits(term, facts):
            near.append(term)
        elif _fits(count, facts) and term.number > 0 and term.number * item_bytes % TENSOR_ALIGNMENT == 0:
            far[Term(term.number),] = (count,)
        else:
            raise NotAffineError("an offset of 64 bits has no stride of its own")
    return tuple(near), far


def _fits(term: Term, facts: Facts) -> bool:
    """Whether a coordinate's 32 bits hold a term."""
    least, most = integer_range(build((term,)), facts.definitions)
    return least >= -(2**31) and most < 2**31


def _with_aligned_stride(start: Sum, stride: Sum, itemsize: int, site: Site) -> tuple[Expr, None, Expr]:
    """Start, size and stride of a further dimension; a stride that is not known to be aligned takes numbers from the start."""
    common = gcd(*(term.number for term in start))
    if site.divisor(build(stride)) * itemsize % TENSOR_ALIGNMENT and common > 1:
        start, _ = divide(start, (Term(common),))
        stride = times(stride, (Term(common),))
    return build(start), None, build(stride)


def itemsize(pointer: Expr) -> int:
    """Bytes of an element that a pointer points to."""
    element = pointer.type.element
    return element.element_ty.itemsize if isinstance(element, PointerType) else 1


def _check_dimensions(dims: list[BoxDim], pointer: Expr, site: Site) -> None:
    for dim in dims:
        if dim.side > MAX_SIDE:
            raise NotAffineError(f"axis {dim.axis} has {int(dim.side)} elements, more than the {MAX_SIDE} of a box")
        if dim is not dims[0] and not is_aligned(dim.stride, itemsize(pointer), site) and not _may_be(dim.stride, site):
            text = parameter_text(dim.stride)
            raise NotAffineError(f"the stride {text} is not known to be a multiple of {TENSOR_ALIGNMENT} bytes")
    if len(dims) > MAX_RANK:
        raise NotAffineError(f"it has {len(dims)} dimensions, more than {MAX_RANK}")


def is_aligned(stride: Expr, item_bytes: int, site: Site) -> bool:
    """Whether a stride is known to be a multiple of 16 bytes."""
    return site.divisor(stride) * item_bytes % TENSOR_ALIGNMENT == 0


def _may_be(stride: Expr, site: Site) -> bool:
    """Whether a launch should be asked for a stride's alignment: of parameters that are multiples of 16, it is a quotient."""
    variables = set(used_variables(stride))
    return bool(variables) and all(
        v in site.divisors and site.divisors[v].divisibility[0] % TENSOR_ALIGNMENT == 0 for v in variables
    )
