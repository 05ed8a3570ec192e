"""What the mask of a load or store says of a box: every part of it must bound one coordinate.

In: the mask and the dimensions. Out: sizes of the tensor, functions of the parameters alone.
"""

from __future__ import annotations

from ..frozen import frozen
from ..ir.nodes import Call, Expr, Use
from ..ir.walk import subexpressions
from .affine import ONE, NotAffineError, Sum, Term, along, build, minus, plus, scalar_part
from .box_dimensions import BoxDim, Site
from .masks import conjuncts


class StartsElsewhereError(NotAffineError):
    """A mask counts from elsewhere than the box starts along an axis; `uncounted` has, by axis, the terms that it leaves out."""

    def __init__(self, reason: str, uncounted: dict[int | None, Sum]) -> None:
        """`str()` of it is the reason."""
        super().__init__(reason)
        self.uncounted = uncounted


def find_sizes(mask: Expr | None, dims: tuple[BoxDim, ...], site: Site) -> tuple[dict[int, Expr], set[int]]:
    """The size of every bounded dimension, and the dimensions of which the mask excludes negative coordinates.

    Raises:
      NotAffineError: when the mask says something else.
      StartsElsewhereError: when a bound holds terms of the start, so that it is no size.
    """
    found: dict[int, Sum] = {}
    uncounted: dict[int | None, Sum] = {}
    from_zero: set[int] = set()
    for part in conjuncts(mask and site.value(mask, "the mask"), site.facts):
        position = bound(part, site)
        lane = position.axis
        number = next((n for n, dim in enumerate(dims) if dim.axis == lane), None)
        if number is None or dims[number].sharing != position.sharing:
            raise NotAffineError("the mask is not a bound of a coordinate")
        if (
            position.lowest and position.sharing > 1
        ):  # quotients are rounded towards zero: those of -7 to 7 by 8 are alike
            raise NotAffineError("the mask excludes quotients below a number")
        start = site.numeric.sum(dims[number].start)
        limit = plus(start, position.value)
        if position.lowest:
            _check_lowest(limit, number, from_zero)
            continue
        if not (site.numeric.over_parameters(limit) or site.is_fixed(limit)):
            uncounted[lane] = tuple(term for term in limit if not site.numeric.over_parameters((term,)))
            continue
        if found.setdefault(number, limit) != limit and minus(found[number], limit):
            raise NotAffineError(f"the mask bounds axis {lane} twice")
    if uncounted:
        reason = f"the bound along axis {next(iter(uncounted))} is no sum of products of parameters"
        raise StartsElsewhereError(reason, uncounted)
    named = _named_scalars(mask, site) if site.kind.fixed else {}
    return {number: named.get(limit) or build(limit) for number, limit in found.items()}, from_zero


def _named_scalars(mask: Expr | None, site: Site) -> dict[Sum, Expr]:
    """The scalars that a mask names, by their sums: sizes that the kernel computes have the user's name."""
    uses = [part for part in subexpressions(mask) if isinstance(part, Use)] if mask else []
    scalars = [use for use in uses if not (use.type.is_tile or use.type.is_pointer) and use.type.dtype.is_int()]
    return {site.numeric.sum(use): use for use in scalars if site.facts.assignments[use.variable] == 1}


def _check_lowest(limit: Sum, number: int, from_zero: set[int]) -> None:
    if limit:
        raise NotAffineError("the mask excludes coordinates below a number other than 0")
    from_zero.add(number)


@frozen
class Limit:
    """`position along an axis < value`, or, of the `lowest` one, `>= value`; `sharing` neighbours have one position."""

    axis: int
    value: Sum
    lowest: bool
    sharing: int


def bound(part: Expr, site: Site) -> Limit:
    """A part of a mask as the bound of a position.

    Raises:
      NotAffineError: when it is none.
    """
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
    lanes = {(term.lane, term.sharing) for term in room if term.lane is not None}
    if not lanes:
        raise NotAffineError("the mask depends on a scalar condition")
    ((lane, sharing),) = lanes if len(lanes) == 1 else ((None, 1),)
    slope = along(room, lane) if lane is not None else ()
    if lane is None or slope not in (ONE, (Term(-1),)):
        raise NotAffineError("the mask is not a bound of a coordinate")
    if slope == ONE:  # lane + r > 0: lane >= 1 - r
        return Limit(lane, minus(ONE, scalar_part(room)), True, sharing)
    return Limit(lane, scalar_part(room), False, sharing)
