"""Products that do not wait for what stands before them are started behind the first product that they can follow.

In: a kernel whose dots have named operands, and which of them run by themselves (wgmma). Out: the same kernel, with some
statements of its loops in another order.

In a trip such as that of attention's backward pass,

    s = dot(k, q);  p = f(s);  dv = dot(p, do, dv);  dp = dot(v, do);  ds = p * (dp - delta);  dk = dot(ds, q, dk)

the warps would wait for `dp` when they need it, and the tensor cores for the warps before. `dp` needs tiles only, so it is
started right behind `s`: the tensor cores multiply while `p` is computed. What its operands are made of, such as a rounding
to 16 bits, moves in front of both, so that copies to shared memory share a barrier.

The first product of a trip starts ahead of reductions that it does not wait for, such as norms of rows, which distances add to
products. Not where functions of the product follow: threads meet in a reduction, and of two warpgroups that have not met behind
their products one computes functions while the other multiplies.

A statement moves past others only if it neither reads what they write nor writes what they read or write; what it is made of
may be loaded only from arrays that the kernel does not write to. The tensor cores work in order: a dot that adds to
the sum of the one that it follows can do so at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...analysis.long_computations import takes_long
from ...ir.nodes import Assign, Call, For, Kernel, Note, Origin, Statement, Use, Variable, While
from ...ir.rewrite import with_bodies, with_statements
from ...ir.structured import assigns
from ...ir.walk import MOVES, assigned_inside, expressions, read_inside, statements, subexpressions, used_variables
from ..accesses.pointers import lasting_loads
from ..accesses.waiting import holds_loads_back

if TYPE_CHECKING:
    from ..plan import Schedule

PREPARING = MOVES | {"cast"}  # what may precede a product that another one then waits behind
STARTED, PREPARED, MOVED = "its product starts here", "what its product reads", "moved up"


def with_early_products(kernel: Kernel, runs: Callable[[Assign], bool]) -> Kernel:
    """See the module docstring; `runs` says whether a dot's products run by themselves."""
    body = _reordered(kernel.body, runs, lasting_loads(kernel))
    return kernel if body is kernel.body else replace(kernel, body=body)


def _reordered(
    block: tuple[Statement, ...], runs: Callable[[Assign], bool], lasts: Callable[[Call], bool]
) -> tuple[Statement, ...]:
    """A block with the loops in it reordered; `lasts` says whether a load brings the same wherever it stands."""
    result: list[Statement] = []
    for statement in block:
        statement = with_bodies(statement, lambda body: _reordered(body, runs, lasts))
        if isinstance(statement, (For, While)):
            body = _Trip(statement.body, runs, lasts).reordered()
            statement = statement if body is statement.body else replace(statement, body=body)
        result.append(statement)
    return with_statements(block, result)


def serves(early: Schedule, plain: Schedule) -> bool:
    """Whether the plan for the other order costs no stage, no block and no registers that a thread does not have."""
    stages = [[(ring.kind, ring.stages) for ring in plan.rings.rings] for plan in (early, plain)]
    same = stages[0] == stages[1] and early.blocks_per_multiprocessor == plain.blocks_per_multiprocessor
    return same and (early.spare_registers >= 0 or early.spare_registers >= plain.spare_registers)


class _Trip:
    """The body of a loop, what its statements read and write, and the order in which they are to run."""

    def __init__(
        self, block: tuple[Statement, ...], runs: Callable[[Assign], bool], lasts: Callable[[Call], bool]
    ) -> None:
        self.block, self.lasts, self.order = block, lasts, list(block)
        self.products = {statement for statement in block if assigns(statement, "dot") and runs(statement)}
        self.reads = {statement: frozenset(read_inside((statement,))) for statement in block}
        self.writes = {statement: assigned_inside(statement) for statement in block}

    def reordered(self) -> tuple[Statement, ...]:
        """The body with its products as early as they can be."""
        moved = set[Statement]()
        for statement in self.block:
            if statement in self.products:
                moved |= self._move_up(statement) or self._move_ahead(statement)
        return self._noted(moved) if moved else self.block

    def _move_up(self, product: Statement) -> set[Statement]:
        """Moves a product, with what its operands need, to the first product that it can follow; what moved."""
        block, place = self.order, self.order.index(product)
        for first in range(place):
            needed = self._movable(first, place) if block[first] in self.products else None
            if needed is None:
                continue
            behind = [block[k] for k in self._followed(first, place)[1:]]
            rest = [block[k] for k in range(first + 1, place) if k not in needed][len(behind) :]
            copied = any(not assigns(block[k], "load") for k in needed)
            if all(assigns(s, "load") or isinstance(s, Note) for s in rest) and not copied:
                return set()  # nothing would be gained
            own = [block[k] for k in sorted(needed)]
            block[first : place + 1] = [*own, block[first], *behind, product, *rest]
            return {product, *own} if rest else set(own)
        return set()

    def _move_ahead(self, product: Statement) -> set[Statement]:
        """Moves the first product in front of reductions; what moved."""
        block, place = self.order, self.order.index(product)
        start = next((k + 1 for k in reversed(range(place)) if self._conflict(product, block[k])), 0)
        passed = block[start:place]
        reduces = any(assigns(s, "reduce") for s in passed)
        if not self.products.isdisjoint(block[:place]) or not reduces or any(map(_computes_functions, block[place:])):
            return set()
        block[start : place + 1] = [product, *passed]
        return {product}

    def _followed(self, first: int, place: int) -> list[int]:
        """The places of the products that stand behind one another from `first` on: what a product that moves there follows."""
        last = first
        while last < place and self.order[last] in self.products:
            last += 1
        return list(range(first, last))

    def _movable(self, first: int, place: int) -> set[int] | None:
        """The places of statements that move in front of the product at `first`, so that the one at `place` can follow it."""
        block, needed = self.order, set[int]()
        read, sums = set(self.reads[block[place]]), self._sums(place)
        for k in reversed(range(first + 1, place)):
            if block[k] not in self.products and not self.writes[block[k]].isdisjoint(read):
                before = {total for at, total in sums if at < k}
                if not self._can_move(block[k]) or not before.isdisjoint(self.reads[block[k]]):
                    return None
                needed.add(k)
                read |= self.reads[block[k]]
        followed = self._followed(first, place)
        for k in range(first, place):
            if k in needed:
                continue
            for mover in (*sorted(other for other in needed if other > k), place):
                adds_on = mover == place and k in followed and self._adds_on(block[k], block[place])
                held = assigns(block[mover], "load") and holds_loads_back(block[k])
                if held or (not adds_on and self._conflict(block[mover], block[k])):
                    return None
        return needed

    def _sums(self, place: int) -> list[tuple[int, Variable]]:
        """The products in front of a place, by where they stand, with what they add up."""
        before = enumerate(self.order[:place])
        return [(at, s.targets[0]) for at, s in before if isinstance(s, Assign) and s in self.products]

    def _can_move(self, statement: Statement) -> bool:
        if not isinstance(statement, Assign) or len(statement.targets) != 1:
            return False
        value = statement.value
        if isinstance(value, Call) and value.op == "load":
            return self.lasts(value)
        return all(not isinstance(part, Call) or part.op in PREPARING for part in subexpressions(value))

    def _adds_on(self, earlier: Statement, product: Statement) -> bool:
        """Whether a product only adds to the sum of an earlier one, which itself is one that it can follow."""
        if earlier not in self.products or not isinstance(earlier, Assign) or not isinstance(product, Assign):
            return False
        value = product.value
        if earlier.target is not product.target or not isinstance(value, Call) or len(value.args) < 3:
            return False
        start = value.args[2]
        operands = {v for arg in value.args[:2] for v in used_variables(arg)}
        return isinstance(start, Use) and start.variable is product.target and product.target not in operands

    def _conflict(self, mover: Statement, other: Statement) -> bool:
        """Whether the order of two statements counts."""
        read, written = self.reads[mover], self.writes[mover]
        return not (self.writes[other].isdisjoint(read | written) and written.isdisjoint(self.reads[other]))

    def _noted(self, moved: set[Statement]) -> tuple[Statement, ...]:
        """The statements in their new order; source lines that came apart, or out of order, say so."""
        runs: list[list[Statement]] = []
        for statement in self.order:
            if runs and runs[-1][0].origin == statement.origin:
                runs[-1].append(statement)
            else:
                runs.append([statement])
        pieces: dict[Origin, int] = {}
        for run in runs:
            pieces[run[0].origin] = pieces.get(run[0].origin, 0) + 1
        result: list[Statement] = []
        seen: dict[Origin, int] = {}
        for run in runs:
            origin = run[0].origin
            seen[origin] = seen.get(origin, 0) + 1
            if seen[origin] < pieces[origin]:
                note = PREPARED if self.products.isdisjoint(run) else STARTED
                new = _with_note(origin, note, seen[origin] == 1)
            elif pieces[origin] > 1:
                new = replace(origin, comments=(), blank_before=False)
            elif not moved.isdisjoint(run):
                new = _with_note(origin, MOVED, True)
            else:
                new = origin
            result += [replace(statement, origin=new) for statement in run]
        return tuple(result)


def _computes_functions(statement: Statement) -> bool:
    """Whether a statement computes functions, or quotients, of the elements of a tile with rows and columns."""
    exprs = [expr for one in statements((statement,)) for expr in expressions(one)]
    return any(takes_long(expr) and any(part.type.rank > 1 for part in subexpressions(expr)) for expr in exprs)


def _with_note(origin: Origin, note: str, comments: bool) -> Origin:
    return origin.noted(note) if comments else replace(origin.noted(note), comments=(), blank_before=False)
