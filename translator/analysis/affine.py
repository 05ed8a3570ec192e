"""Sums of products of scalars and of positions in a tile: the form in which address arithmetic is compared and taken apart.

`pid_m * BLOCK_M + tl.arange(0, BLOCK_M)` is two terms: 1 * (pid_m, BLOCK_M), and 1 * () along lane 0, that is, the position
along axis 0 of the tile. `coordinates.py` reads expressions into sums; `build` writes sums without lanes as expressions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import prod

from ..frozen import frozen
from ..ir.nodes import Call, Expr, Literal
from ..ir.types import ValueType
from ..language.dtypes import DType, int32, int64


class NotAffineError(Exception):
    """An expression has no such form; `reason` says why in one clause."""

    def __init__(self, reason: str) -> None:
        """`str()` of it is the reason."""
        super().__init__(reason)
        self.reason = reason


@frozen
class Term:
    """`coefficient * factors[0] * factors[1] * …`, times the position along the tile's axis `lane` unless that is None.

    A factor is a scalar that is no sum and no product; numbers with a name of their own, such as BLOCK_M, are factors too.
    `sharing` neighbours along the axis count as one position: the `i // 8` of words that hold eight elements.
    """

    coefficient: int
    factors: tuple[Expr, ...] = ()
    lane: int | None = None
    sharing: int = 1

    @property
    def number(self) -> int:
        """The product of the coefficient and of all named numbers."""
        return self.coefficient * prod(int(f.value) for f in self.factors if isinstance(f, Literal))

    @property
    def unknowns(self) -> tuple[Expr, ...]:
        """The factors that are no numbers."""
        return tuple(f for f in self.factors if not isinstance(f, Literal))


Sum = tuple[Term, ...]
ONE: Sum = (Term(1),)


def collect(*terms: Term) -> Sum:
    """The sum of terms, those that differ in their coefficient only made one, in order of first appearance."""
    found: dict[object, Term] = {}
    for term in terms:
        several = len(term.factors) > 1  # then their order does not count
        key = (frozenset(Counter(term.factors).items()) if several else term.factors, term.lane, term.sharing)
        before = found.get(key)
        found[key] = term if before is None else replace(before, coefficient=before.coefficient + term.coefficient)
    return tuple(term for term in found.values() if term.coefficient)


def plus(*sums: Sum) -> Sum:
    """The sum of sums."""
    return collect(*(term for one in sums for term in one))


def minus(left: Sum, right: Sum) -> Sum:
    """The difference of two sums."""
    return plus(left, times((Term(-1),), right))


def times(left: Sum, right: Sum) -> Sum:
    """The product of two sums.

    Raises:
      NotAffineError: when both hold positions of the tile.
    """
    return collect(*(_product(one, other) for one in left for other in right))


def _product(one: Term, other: Term) -> Term:
    if one.lane is not None and other.lane is not None:
        raise NotAffineError("offsets multiply positions in the tile with each other")
    lane, sharing = (one.lane, one.sharing) if one.lane is not None else (other.lane, other.sharing)
    return Term(one.coefficient * other.coefficient, one.factors + other.factors, lane, sharing)


def scalar_part(terms: Sum) -> Sum:
    """The terms that are the same for the whole tile."""
    return tuple(term for term in terms if term.lane is None)


def along(terms: Sum, lane: int) -> Sum:
    """What the position along an axis is multiplied with."""
    return tuple(replace(term, lane=None, sharing=1) for term in terms if term.lane == lane)


def quotient(term: Term, by: Term) -> Term | None:
    """`term / by` when that is a product again, None otherwise."""
    factors = list(term.factors)
    for factor in by.unknowns:
        if factor not in factors:
            return None
        factors.remove(factor)
    number = by.coefficient
    for factor in by.factors:
        if isinstance(factor, Literal):
            if factor in factors:
                factors.remove(factor)
            else:
                number *= int(factor.value)
    rest = replace(term, factors=tuple(factors))
    if rest.coefficient % number == 0:
        return replace(rest, coefficient=rest.coefficient // number)
    if rest.number % number == 0:
        return replace(rest, coefficient=rest.number // number, factors=rest.unknowns)
    return None


def divide(terms: Sum, by: Sum) -> tuple[Sum, Sum]:
    """(quotient, rest): as many terms as possible of a sum as a multiple of another."""
    if not by:
        return (), terms
    quotients: list[Term] = []
    rest = terms
    for term in terms:
        part = quotient(term, by[0])
        if part is None or term not in rest:
            continue
        left = minus(rest, times((part,), by)) if len(by) > 1 else tuple(t for t in rest if t is not term)
        if len(left) == len(rest) - len(by):
            quotients.append(part)
            rest = left
    return collect(*quotients), rest


# ------------------------------------------------------------------------------------------------------ back to text


def build(terms: Sum, element: DType | None = None) -> Expr:
    """A sum without lanes as a scalar of `element`, by default the narrowest of int32 and int64 that holds all factors."""
    element = element or _common_element(terms)
    type_ = ValueType(element)
    result: Expr | None = None
    for term in sorted(terms, key=lambda t: t.coefficient < 0):  # stable: `a - b` rather than `-b + a`
        size = replace(term, coefficient=abs(term.coefficient))
        product = _build_product(size, type_)
        if result is None:
            result = product if term.coefficient > 0 else _negative(product)
        else:
            result = Call(type_, "add" if term.coefficient > 0 else "sub", (result, product))
    return Literal(type_, 0) if result is None else result


def _negative(product: Expr) -> Expr:
    if isinstance(product, Literal) and product.symbol is None:
        return replace(product, value=-product.value)
    return Call(product.type, "neg", (product,))


def _build_product(term: Term, type_: ValueType) -> Expr:
    parts = [_as_element(factor, type_) for factor in term.factors]
    if term.coefficient != 1 or not parts:
        parts.append(Literal(type_, term.coefficient))
    result = parts[0]
    for part in parts[1:]:
        result = Call(type_, "mul", (result, part))
    return result


def _as_element(factor: Expr, type_: ValueType) -> Expr:
    if factor.type == type_:
        return factor
    if isinstance(factor, Literal):
        return replace(factor, type=type_)
    return Call(type_, "cast", (factor,))


def _common_element(terms: Sum) -> DType:
    elements = [factor.type.dtype for term in terms for factor in term.unknowns]
    fits = all(e.bits < 32 or (e.bits == 32 and e.is_int_signed()) for e in elements)
    return int32 if fits else int64
