"""How a statement touches memory: how wide, along which axis, and which tests decide.

In: the pointer and mask of a load or store, and the layout it runs in. Out: an `Access`. A mask is a conjunction; each
part either cannot split a vector (one test per vector), or bounds the vector's index (a count of valid elements), or
forces element by element access.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...analysis.facts import Facts, FactsAt
from ...analysis.masks import conjuncts
from ...frozen import frozen
from ...hardware import ACCESS_BYTES
from ...ir.nodes import Assign, Call, Effect, Expr, Literal, Use
from ...ir.types import ValueType, padded, symbol_of
from ...ir.walk import MOVES
from ...language.dtypes import PointerType, int1, int32, int64
from ..tiles.layout import REGISTER, Layout, bits_of

LARGEST = 2**31 - 1
LEAST_SIZE = -(2**30)  # a difference of sizes may be negative, but not so that an index less leaves 32 bits
SIZES = MOVES | {"sub", "mul", "neg", "minimum", "maximum", "floordiv", "mod"}  # what makes sizes of sizes


@frozen
class Bound:
    """The elements of a vector whose index is below a bound may be touched.

    Attributes:
      bound, index: the two sides.
      included: whether the element at the bound may be touched as well.
      wraps: whether `bound - index`, which says how many elements there are, can leave 32 bits, as that of 64-bit indices.
    """

    bound: Expr
    index: Expr
    included: bool = False
    wraps: bool = False


@frozen
class Access:
    """One tile-wide load or store.

    Attributes:
      axis: the axis along which vectors lie.
      width: elements per access; 1 when vectors are not possible.
      tests: conditions that are the same for all elements of a vector.
      bounds: limits along the vector.
      repeats: along axes on which neighbouring registers hold the same element of memory: how many of them.
      scattered: whether the elements of a vector do not lie side by side in the thread's array.
    """

    axis: int
    width: int
    tests: tuple[Expr, ...]
    bounds: tuple[Bound, ...]
    repeats: tuple[tuple[int, int], ...] = ()
    scattered: bool = False

    @property
    def parts(self) -> tuple[Expr, ...]:
        """All that decides about it."""
        return (*self.tests, *(side for bound in self.bounds for side in (bound.bound, bound.index)))


def load_operands(load: Assign) -> tuple[Expr, Expr | None, Expr | None]:
    """Pointer, mask and other of a load."""
    if not isinstance(load.value, Call):
        raise TypeError("not a load")
    pointer, mask, other, *_ = (*load.value.args, None, None)
    return pointer, mask, other  # type: ignore[return-value]


def plan_copies(load: Assign, layout: Layout, facts: Facts) -> Access:
    """How threads touch memory that copy what a load brings, to where it is read from, in the layout of the copies."""
    pointer, mask, _ = load_operands(load)
    return plan_access(pointer, mask, layout, facts.at(load))


def plan_load(load: Assign, layout: Layout, facts: Facts) -> Access:
    """An access that loads what several of a thread's elements have in common once, as wide as memory allows."""
    pointer, mask, _ = load_operands(load)
    here = facts.at(load)
    access = _with_repeats(plan_access(pointer, mask, layout, here), pointer, layout, here)
    wide = plan_access(pointer, mask, layout, here, layout.run)
    if wide.width <= access.width:
        return access
    wide = _with_repeats(wide, pointer, layout, here)
    return replace(wide, scattered=wide.axis != layout.array_axes()[-1])


def plan_store(store: Effect, layout: Layout, facts: Facts) -> Access:
    """How a store touches memory."""
    pointer, _, mask, *_ = (*store.call.args, None)
    return plan_access(pointer, mask, layout, facts.at(store))  # type: ignore[arg-type]


def plan_access(
    pointer: Expr,
    mask: Expr | None,
    layout: Layout,
    here: FactsAt,
    widest: Callable[[int], int] | None = None,
) -> Access:
    """Chooses the width of an access and sorts the parts of its mask.

    `widest` is the number of elements that may be accessed at once along an axis: those side by side in the thread's array.
    """
    return widest_access(pointer, mask, layout.rank, widest or layout.vector, here)


def widest_access(pointer: Expr, mask: Expr | None, rank: int, widest: Callable[[int], int], here: FactsAt) -> Access:
    """The widest access of no more elements than `widest` along its axis."""
    element = pointer.type.element
    if not isinstance(element, PointerType):
        raise TypeError("a load or store needs a pointer")
    parts = [*conjuncts(mask, here.facts), *padding_tests(pointer.type.shape)]
    info = here.info(pointer)
    itemsize = element.element_ty.itemsize
    best = Access(rank - 1, 1, tuple(parts), ())
    for axis in range(rank):
        aligned = max(info.divisibility[axis] // itemsize, 1)
        width = min(widest(axis), info.contiguity[axis], aligned, ACCESS_BYTES // itemsize)
        while width > best.width:
            access = of_width(axis, width, parts, here)
            if access is not None:
                best = access
                break
            width //= 2
    return best


def _with_repeats(access: Access, pointer: Expr, layout: Layout, here: FactsAt) -> Access:
    """The access with the runs of a thread's registers that are the same in memory, and whose mask is the same."""
    infos = [here.info(part) for part in (pointer, *access.parts)]
    found = []
    for axis in range(layout.rank):
        same = min(info.constancy[axis] for info in infos)
        run = 1 << layout.axes[axis][: bits_of(same)].count(REGISTER)
        if run > 1 and (axis != access.axis or access.width == 1):
            found.append((axis, run))
    return replace(access, repeats=tuple(found))


def of_width(axis: int, width: int, parts: list[Expr], here: FactsAt) -> Access | None:
    """An access of so many elements along an axis, under a mask of these parts; None where these do not allow it."""
    tests, bounds = [], []
    for part in parts:
        if here.info(part).constancy[axis] % width == 0:
            tests.append(part)
        elif bound := _as_bound(part, axis, width, here):
            bounds.append(bound)
        else:
            return None
    return Access(axis, width, tuple(tests), tuple(bounds))


def _as_bound(part: Expr, axis: int, width: int, here: FactsAt) -> Bound | None:
    """A comparison of a rising index with a limit that is the same for the whole vector, as a `Bound`."""
    if not isinstance(part, Call) or part.op not in ("lt", "le", "gt", "ge"):
        return None
    left, right = part.args
    if part.op in ("gt", "ge"):
        left, right = right, left
    if left.type.is_pointer or left.type.dtype not in (int32, int64):
        return None
    index, limit = here.info(left), here.info(right)
    if index.contiguity[axis] % width or limit.constancy[axis] % width:
        return None
    included = part.op in ("le", "ge")
    if left.type.dtype == int64:
        return Bound(right, left, included, wraps=True)
    if included and limit.value is not None and limit.value < LARGEST:
        right, included = Literal(right.type, limit.value + 1), False
    if index.nonnegative and not (included or _is_size(right, here)):
        right = Call(right.type, "maximum", (right, Literal(right.type, 0)))
    return Bound(right, left, included, wraps=included or not index.nonnegative)


def _is_size(expr: Expr, here: FactsAt) -> bool:
    """Whether a limit is made of arguments, or is not negative: of all others the least number of 32 bits may be one."""
    if here.info(expr).nonnegative:
        return True
    match expr:
        case Literal(value=int() as value):
            return value >= LEAST_SIZE
        case Use(variable=variable) if variable in here.facts.definitions:
            return _is_size(here.facts.definitions[variable], here)
        case Use(variable=variable):
            return not here.facts.assignments[variable]  # an argument
        case Call(op=op, args=args) if op in SIZES:
            return all(_is_size(arg, here) for arg in args)
    return False


def is_zero(other: Expr | None) -> bool:
    """Whether what stands for elements outside a mask is all zero bits, or nothing."""
    return other is None or (isinstance(other, Literal) and str(other.value) in ("0", "0.0", "False"))


def padding_tests(shape: tuple[int, ...]) -> list[Expr]:
    """The tests that keep padded coordinates, past a side that is no power of two, out of memory."""
    return [inside_test(shape, axis) for axis, side in enumerate(shape) if padded(side) != side]


def inside_test(shape: tuple[int, ...], axis: int) -> Expr:
    """Whether the coordinate along `axis` is a real one, as a tile of booleans of the given shape."""
    side = shape[axis]
    line = tuple(side if a == axis else 1 for a in range(len(shape)))
    coordinate: Expr = Call(ValueType(int32, (side,)), "arange", (), (("start", 0), ("end", int(side))))
    for a in range(len(shape)):
        if a != axis:
            before = coordinate.type.shape
            kept = (*before[:a], 1, *before[a:])
            coordinate = Call(ValueType(int32, kept), "expand_dims", (coordinate,), (("axis", a),))
    symbol = symbol_of(side)
    below = Call(
        ValueType(int1, line), "lt", (coordinate, Literal(ValueType(int32, line), int(side), symbol=symbol))
    )  # fmt: skip
    return below if line == shape else Call(ValueType(int1, shape), "broadcast", (below,))
