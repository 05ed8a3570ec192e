"""Loops whose products are started ahead of those of the iteration before: tensor cores multiply while the warps compute.

In: the rings of a kernel with a loading warpgroup, the plans of its dots, the layouts. Out: the same rings; where a loop is
staggered, `Ring.stagger` says how.

In a loop such as that of attention, `p = f(dot(q, k)); out = dot(p, v, out * shrink)`, the second product waits for what is
computed of the first, and the first one waits for nothing but its tiles. So the second one is left for the next iteration:

    product of k[i], product by v[i - 1]     started one behind the other, at the beginning of iteration i
    wait for the first of them               iteration i computes its `p`, up to the rounding to 16 bits
    wait for the second                      `out` is scaled, what the product by v[i] reads is written

Nothing is known of attention. A dot is ahead if its operands are tiles that the ring loads, or stay as they are in the loop;
the only other one is late if nothing touches its sum behind it, and if it needs what a dot ahead has multiplied.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from ...analysis.facts import Facts, read_through
from ...ir.nodes import Assign, Call, For, Literal, Return, Statement, Variable
from ...ir.walk import assigned_inside, expressions, nested, statements, top_statements
from ..staging.ring_plan import Ring, Rings, Stagger
from ..tiles.held_tiles import HeldTiles
from ..tiles.registers import register_count
from .dot_plan import DotPlan, Dots, Operand
from .operand_tiles import transposed_tile

LEAST_SUMS = 96  # registers of what a thread has of all products: shorter iterations lose more than they win
STAGES_OF_ONE_GROUP = 3  # a stage is in use for longer than an iteration: with two the next tiles would be late


def stagger_rings(held: HeldTiles, dots: Dots, rings: Rings, spare: int) -> Rings:
    """The rings, those of loops that are worth it staggered; `spare` registers of a thread hold no tile at the peak."""
    if rings.made:  # their maps wait for the stages of all tiles together
        return rings
    loops = {s.variable: s for s in statements(held.kernel.body) if isinstance(s, For)}
    found = {ring.loop: _stagger(loops[ring.loop], ring, held, dots, spare) for ring in rings.rings}
    kept: list[Ring] = []
    for ring in rings.rings:
        family = [other for other in rings.rings if (other.like or other.loop) is (ring.like or ring.loop)]
        stagger = found[ring.loop]
        if stagger is not None and len({_early_places(other, found[other.loop]) for other in family}) > 1:
            # Rings that share their stages share their barriers as well.
            stagger = replace(stagger, early=()) if ring.stages >= STAGES_OF_ONE_GROUP else None
        kept.append(replace(ring, stagger=stagger))
    return replace(rings, rings=tuple(kept))


def without_copied_operands(rings: Rings, dots: Mapping[Statement, DotPlan], staged: Container[Variable]) -> Rings:
    """The rings; a loop is staggered only where its dots copy no operand, which they would do in every iteration."""

    def keeps(stagger: Stagger) -> bool:
        plans = [dots[dot] for dot in (*stagger.ahead, stagger.late)]
        read = [(plan.b, False) for plan in plans] + [(plan.a, plan.rows_in_registers) for plan in plans]
        return all(in_registers or operand.variable in staged for operand, in_registers in read)

    if all(ring.stagger is None or keeps(ring.stagger) for ring in rings.rings):
        return rings
    return replace(rings, rings=tuple(replace(ring, stagger=None) for ring in rings.rings))


def _early_places(ring: Ring, stagger: Stagger | None) -> tuple[bool, ...]:
    """Which tiles of a ring have barriers of their own."""
    return tuple(stagger is not None and tile in stagger.early for tile in ring.tiles)


def _stagger(loop: For, ring: Ring, held: HeldTiles, dots: Dots, spare: int) -> Stagger | None:
    if ring.kind != "tma" or ring.overlapped or ring.own:
        return None
    body, layouts = _Body(loop, ring, held.facts, dots), held.layouts
    if not body.is_plain:
        return None
    ready = [place for place in body.products if body.waits_for_tiles_only(place)]
    last = max((place for place in body.products if place not in ready), default=None)
    if last is None or last != max(place for place in body.products) or not body.can_be_late(last):
        return None
    late = body.dot(last)
    ahead = [place for place in ready if place < last and body.begins_with(place)]
    if len(ahead) + 1 < len(body.products) or not body.depends(last, {body.dot(place).target for place in ahead}):
        return None
    plan = dots.plans[late]
    kept = register_count(plan.a.variable, layouts[plan.a.variable]) if plan.rows_in_registers else 0
    sums = [register_count(v, layouts[v]) for v in (body.dot(place).target for place in ahead)]
    kept += sum(sums) - max(sums)
    if sum(sums) + register_count(late.target, layouts[late.target]) < LEAST_SUMS:
        return None
    early = body.read_by_none_but(ahead)
    read_ahead = {variable for place in ahead for variable in body.operands(place)} & set(ring.tiles)
    if kept > spare or (read_ahead - set(early) and ring.stages < STAGES_OF_ONE_GROUP):
        return None
    read = {plan.a.variable} if plan.rows_in_registers else set()
    settled = next(
        s for k, s in enumerate(body.top) if late.target in body.touched[k] or read & body.writes[k]
    )  # ptxas serialises products if registers that they read are computed while others are on their way
    return Stagger(tuple(body.dot(place) for place in ahead), late, settled, early)


class _Body:
    """The statements of a loop's body, by their places in it, and what they touch."""

    def __init__(self, loop: For, ring: Ring, facts: Facts, dots: Dots) -> None:
        self.ring, self.facts, self.dots = ring, facts, dots
        self.top = list(top_statements(loop.body))
        self.reads = [self._reads(statement) for statement in self.top]
        self.writes = [assigned_inside(statement) for statement in self.top]
        self.touched = [reads | writes for reads, writes in zip(self.reads, self.writes, strict=True)]
        self.products = [place for place, statement in enumerate(self.top) if statement in dots.plans]
        self.changed = {v for writes in self.writes for v in writes} | {loop.variable}

    @property
    def is_plain(self) -> bool:
        """Whether every iteration passes all dots, and nothing ends one before its time."""
        inner = [s for one in self.top for s in nested(one)]
        return not any(isinstance(s, Return) for s in (*self.top, *inner)) and not any(
            s in self.dots.plans for s in inner
        )

    def dot(self, place: int) -> Assign:
        """The dot at a place."""
        statement = self.top[place]
        if not isinstance(statement, Assign) or not isinstance(statement.value, Call):
            raise TypeError("not a dot")
        return statement

    def operands(self, place: int) -> tuple[Variable, Variable]:
        """The tiles that a dot multiplies."""
        plan = self.dots.plans[self.top[place]]
        return plan.a.variable, plan.b.variable

    def waits_for_tiles_only(self, place: int) -> bool:
        """Whether a dot starts from zero, and its operands wait for nothing but the ring."""
        plan, value = self.dots.plans[self.top[place]], self.dot(place).value
        if plan.instruction.split is not None:
            return False
        sums = value.args[2:] if isinstance(value, Call) else ()
        from_zero = all(isinstance(one, Literal) and one.value == 0 for one in sums)
        return from_zero and self._lies_ready(plan, plan.a) and self._lies_ready(plan, plan.b)

    def can_be_late(self, place: int) -> bool:
        """Whether nobody touches the sum of a dot behind it, nor its operands while it runs on into the next iteration."""
        plan, target = self.dots.plans[self.top[place]], self.dot(place).target
        if plan.instruction.split is not None or any(target in touched for touched in self.touched[place + 1 :]):
            return False
        return (plan.rows_in_registers or self._lies_ready(plan, plan.a)) and self._lies_ready(plan, plan.b)

    def _lies_ready(self, plan: DotPlan, operand: Operand) -> bool:
        """Whether an operand is a tile of the ring that the instruction reads as it lies, or stays as it is in the loop."""
        variable = operand.variable
        staged = self.dots.staged.get(variable)
        if staged is not None and transposed_tile(operand, staged, plan.instruction) is not None:
            return False
        return variable in self.ring.tiles or variable not in self.changed

    def begins_with(self, place: int) -> bool:
        """Whether everything that touches the sum of a dot stands behind it."""
        target = self.dot(place).target
        return not any(target in touched for touched in self.touched[:place])

    def depends(self, place: int, sums: set[Variable]) -> bool:
        """Whether what a dot multiplies follows, in the same iteration, from one of some sums."""
        needed = set(self.operands(place))
        for k in reversed(range(place)):
            if needed & self.writes[k]:
                if sums & self.writes[k] & needed:
                    return True
                needed |= self.reads[k]
        return False

    def read_by_none_but(self, ahead: list[int]) -> tuple[Variable, ...]:
        """The tiles of the ring that no dots but those at these places read; none where that is all of them."""
        others = {variable for place in self.products if place not in ahead for variable in self.operands(place)}
        early = tuple(tile for tile in self.ring.tiles if tile not in others)
        return early if len(early) < len(self.ring.tiles) else ()

    def _reads(self, statement: Statement) -> set[Variable]:
        """What a statement and those in it read, tiles that are spelled where they are used taken apart."""
        inner = statements((statement,))
        return {v for s in inner for expr in expressions(s) for v in read_through(expr, self.facts)}
