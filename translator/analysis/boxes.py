"""Whether a load or store touches an affine box of a tensor that the launcher can describe: what TMA copies.

In: a statement that loads or stores a tile. Out: the `Box`, or why it is none. The pointer is read as a sum
(`coordinates.py`): what a position in the tile is multiplied with is a stride; terms that hold a stride as a factor are
where the box starts along that dimension; strides that no axis has make further dimensions of one index each. Every
part of the mask must bound one coordinate by a function of the parameters.
"""

from __future__ import annotations

from dataclasses import replace
from math import copysign

from ..frozen import frozen
from ..hardware import TENSOR_ALIGNMENT
from ..ir.nodes import Assign, Call, Effect, Expr, Kernel, Literal, Statement, Use, Variable
from ..ir.types import ValueType
from ..ir.walk import subexpressions, used_variables
from ..language.dtypes import PointerType, int1, int64
from .affine import NotAffineError, Sum, build
from .axis_info import AxisInfo, axis_info, known_divisor
from .box_dimensions import (
    OF_LAUNCHER,
    Apart,
    BoxDim,
    BoxKind,
    Site,
    find_dimensions,
    is_aligned,
    itemsize,
    mixes,
    nothing_apart,
    terms_apart,
)
from .box_masks import StartsElsewhereError, find_sizes
from .facts import Facts
from .induction import Induction
from .parameter_text import parameter_text
from .settled import promised_divisors
from .signs import find_signs


@frozen
class Box:
    """`base[sum over dims of (start + position) * stride]`, zeros outside of the sizes.

    Attributes:
      base: the pointer parameter that the tensor starts at, or the pointer of which `place` is made.
      dims: the contiguous dimension first, then the tile's axes from the last to the first, then the rest.
      guards: conditions over parameters under which this holds.
      place: where the tensor starts, if the kernel makes the map itself.
      made_of: the variables that place, sizes and strides are made of; without any, the launcher can make the map.
      whole: the condition under which rows of the tensor end at a multiple of 16 bytes, where that is not known.
    """

    base: Variable
    dims: tuple[BoxDim, ...]
    guards: tuple[Expr, ...]
    place: Expr | None = None
    made_of: frozenset[Variable] = frozenset()
    whole: Expr | None = None


@frozen
class NotABox:
    """`reason` is one clause, for the header of the text and for `explain`."""

    reason: str


def find_box(
    statement: Statement, kernel: Kernel, facts: Facts, induction: Induction, kind: BoxKind = OF_LAUNCHER
) -> Box | NotABox:
    """The box that a load or store of a tile touches, if it is of that kind."""
    call = (
        statement.value if isinstance(statement, Assign) else statement.call if isinstance(statement, Effect) else None
    )
    if not isinstance(call, Call) or call.op not in ("load", "store"):
        return NotABox("it is no load or store")
    try:
        _check_access(call)
        site = Site(statement, kernel, facts, induction, kind)
        try:
            return _find_box(call, site, nothing_apart)
        except NotAffineError as first:
            return _other_tries(call, site, first) or NotABox(first.reason)
    except NotAffineError as problem:
        return NotABox(problem.reason)


def _other_tries(call: Call, site: Site, first: NotAffineError) -> Box | None:
    """A box some of whose starts have dimensions of their own: a batch, or what the mask leaves out, such as a head."""
    tries: list[Apart] = [mixes]
    if isinstance(first, StartsElsewhereError):
        tries.append(terms_apart(first.uncounted, site))
    for apart in tries:
        try:
            return _find_box(call, site, apart)
        except NotAffineError:
            continue
    return None


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


def _find_box(call: Call, site: Site, apart: Apart) -> Box:
    shape = call.args[0].type.shape
    pointer = site.value(call.args[0], "the pointer")
    for variable, divisor in promised_divisors(pointer).items() if site.kind.fixed else ():
        site.divisors[variable] = known_divisor(max(divisor, _divisor_of(variable, site)))
    reader = site.reader(numeric=False)
    dims = find_dimensions(pointer, shape, site, reader, apart)
    place = _base(reader.sum(pointer), site)
    (base,) = (variable for variable in used_variables(place) if variable.type.is_pointer)
    if len(dims) == 1 and any(_multiplies_in_64_bits(part) for part in subexpressions(pointer)):
        raise NotAffineError("coordinates may need 64 bits")
    mask = next(iter(call.args[1 if call.op == "load" else 2 :]), None)
    sizes, from_zero = find_sizes(mask, dims, site)
    dims = tuple(replace(dim, size=sizes.get(number)) for number, dim in enumerate(dims))
    guards = dict(reader.guards) | site.numeric.guards
    guards |= dict.fromkeys(_sign_guards(dims, from_zero, site))
    guards |= dict.fromkeys(_start_guards(dims[0], itemsize(pointer), tuple(guards), site))
    guards |= dict.fromkeys(_stride_guards(dims[1:], itemsize(pointer), site))
    whole = _rows_are_whole(dims[0], itemsize(pointer), tuple(guards), site) if site.kind.mapped else None
    of = {*used_variables(place), *(v for dim in dims for e in (dim.size, dim.stride) if e for v in used_variables(e))}
    made_of = frozenset(of - {parameter.variable for parameter in site.kernel.parameters})
    if any(site.kind.fixed & set(used_variables(guard)) for guard in guards):
        raise NotAffineError("it is a box under conditions that the launcher cannot check")
    conditions = tuple({parameter_text(guard): guard for guard in guards}.values())
    found = Box(base, dims, conditions, whole=whole)
    return replace(found, place=place, made_of=made_of) if site.kind.fixed else found


def _divisor_of(variable: Variable, site: Site) -> int:
    return site.divisors[variable].divisibility[0] if variable in site.divisors else 1


def _multiplies_in_64_bits(expr: Expr) -> bool:
    if not isinstance(expr, Call) or expr.op not in ("mul", "shl") or expr.type.element != int64:
        return False
    return not any(isinstance(arg, Literal) and arg.value == 1 for arg in expr.args)


def _base(terms: Sum, site: Site) -> Expr:
    """The address that a tensor starts at: a parameter, or a scalar that is known to be aligned."""
    bases = [term for term in terms if any(factor.type.is_pointer for factor in term.factors)]
    if len(bases) == 1 and bases[0].coefficient == 1 and len(bases[0].factors) == 1 and bases[0].lane is None:
        (base,) = bases[0].factors
        if isinstance(base, Use) and base.variable in site.parameters:
            if site.divisors[base.variable].divisibility[0] < TENSOR_ALIGNMENT:
                raise NotAffineError(f"{base.variable.name} is not known to be a multiple of {TENSOR_ALIGNMENT} bytes")
            return base
        pointers = {variable for variable in used_variables(base) if variable.type.is_pointer}
        promised = isinstance(base, Call) and base.op == "hint" and base.attribute("values")[0] % TENSOR_ALIGNMENT == 0
        if site.kind.fixed and len(pointers) == 1 and promised:
            return base
    raise NotAffineError("the address does not start at a pointer parameter")


def _sign_guards(dims: tuple[BoxDim, ...], from_zero: set[int], site: Site) -> list[Expr]:
    """Conditions that keep the box from starting before the tensor: where copies of it and the mask would not agree there.

    A tensor copy fills with zeros what lies before the tensor, any other copy reads it.
    """
    signs = find_signs(site)
    guards: list[Expr] = []
    for number, dim in enumerate(dims):
        if (number in from_zero) == site.kind.mapped:
            continue
        needed = signs.needed(dim.start)
        if needed is None:
            where = f"axis {dim.axis}" if dim.axis is not None else f"the stride {parameter_text(dim.stride)}"
            raise NotAffineError(f"the start along {where} may be negative")
        for least in sorted(needed, key=lambda e: (min(v.key for v in used_variables(e)), parameter_text(e))):
            guards.append(Call(ValueType(int1), "ge", (least, Literal(least.type, 0))))
    return guards


def _start_guards(dim: BoxDim, item_bytes: int, guards: tuple[Expr, ...], site: Site) -> list[Expr]:
    """The condition, if any, under which rows of a mapped box start at a multiple of 16 bytes, as hardware asks."""
    wanted = TENSOR_ALIGNMENT // item_bytes
    known = dict(site.facts.environments.get(site.statement, {})) | _divisors_under(guards)
    if not site.kind.mapped or axis_info(dim.start, known).divisibility[0] % wanted == 0:
        return []
    terms = site.numeric.sum(dim.start)
    unaligned = tuple(term for term in terms if axis_info(build((term,)), known).divisibility[0] % wanted)
    if not site.numeric.over_parameters(unaligned):
        raise NotAffineError(
            f"the start along axis {dim.axis} is not known to be a multiple of {TENSOR_ALIGNMENT} bytes"
        )
    return [_is_multiple(build(unaligned), wanted)]


def _stride_guards(dims: tuple[BoxDim, ...], item_bytes: int, site: Site) -> list[Expr]:
    """The conditions, if any, under which the strides of a mapped box are multiples of 16 bytes, as hardware asks."""
    unaligned = [dim.stride for dim in dims if site.kind.mapped and not is_aligned(dim.stride, item_bytes, site)]
    return [_is_multiple(stride, TENSOR_ALIGNMENT // item_bytes) for stride in unaligned]


def _is_multiple(value: Expr, number: int) -> Expr:
    rest = Call(value.type, "mod", (value, Literal(value.type, number)))
    return Call(ValueType(int1), "eq", (rest, Literal(value.type, 0)))


def _rows_are_whole(dim: BoxDim, item_bytes: int, guards: tuple[Expr, ...], site: Site) -> Expr | None:
    """The condition under which rows of the tensor end at a multiple of 16 bytes; None where they are known to."""
    wanted, known = TENSOR_ALIGNMENT // item_bytes, site.divisors | _divisors_under(guards)
    if dim.size is None or axis_info(dim.size, known).divisibility[0] % wanted == 0:
        return None
    return _is_multiple(dim.size, wanted)


def _divisors_under(guards: tuple[Expr, ...]) -> dict[Variable, AxisInfo]:
    """What guards such as `M % 128 == 0` say of parameters."""
    found: dict[Variable, AxisInfo] = {}
    for guard in guards:
        match guard:
            case Call(
                op="eq", args=(Call(op="mod", args=(Use(variable=variable), Literal(value=number))), Literal(value=0))
            ):
                found[variable] = known_divisor(int(number))
    return found


__all__ = ["Box", "BoxDim", "NotABox", "find_box", "parameter_text"]
