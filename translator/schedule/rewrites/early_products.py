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
from ...ir.rewrite import with_bodies
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
    order = _Order(runs, lasting_loads(kernel))
    body = order.inside(kernel.body)
    return replace(kernel, body=body) if order.moved else kernel


def serves(early: Schedule, plain: Schedule) -> bool:
    """Whether the plan for the other order costs no stage, no block and no registers that a thread does not have."""
    stages = [[(ring.kind, ring.stages) for ring in plan.rings.rings] for plan in (early, plain)]
    same = stages[0] == stages[1] and early.blocks_per_multiprocessor == plain.blocks_per_multiprocessor
    return same and (early.spare_registers >= 0 or early.spare_registers >= plain.spare_registers)


class _Order:
    """Rewrites blocks."""

    def __init__(self, runs: Callable[[Assign], bool], lasts: Callable[[Call], bool]) -> None:
        """`lasts` says whether a load brings the same wherever it stands."""
        self.runs, self.lasts, self.moved = runs, lasts, False

    def inside(self, block: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """A block with the loops in it reordered."""
        result: list[Statement] = []
        for statement in block:
            statement = with_bodies(statement, self.inside)
            if isinstance(statement, (For, While)):
                statement = replace(statement, body=self.trip(statement.body))
            result.append(statement)
        return tuple(result)

    def trip(self, block: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """A loop's body with its products as early as they can be."""
        result, moved = list(block), set[Statement]()
        for statement in block:
            if self._is_product(statement):
                moved |= self._move_up(result, result.index(statement)) or self._move_ahead(result, statement)
        if not moved:
            return block
        self.moved = True
        return self._noted(result, moved)

    def _is_product(self, statement: Statement) -> bool:
        return assigns(statement, "dot") and self.runs(statement)

    def _move_up(self, block: list[Statement], place: int) -> set[Statement]:
        """Moves a product, with what its operands need, to the first product that it can follow; what moved."""
        for first in range(place):
            if not self._is_product(block[first]):
                continue
            needed = self._movable(block, first, place)
            if needed is None:
                continue
            behind = [block[k] for k in self._followed(block, first, place)[1:]]
            rest = [block[k] for k in range(first + 1, place) if k not in needed][len(behind) :]
            copied = any(not assigns(block[k], "load") for k in needed)
            if all(assigns(s, "load") or isinstance(s, Note) for s in rest) and not copied:
                return set()  # nothing would be gained
            product, own = block[place], [block[k] for k in sorted(needed)]
            block[first : place + 1] = [*own, block[first], *behind, product, *rest]
            return {product, *own} if rest else set(own)
        return set()

    def _move_ahead(self, block: list[Statement], product: Statement) -> set[Statement]:
        """Moves the first product in front of reductions; what moved."""
        place = block.index(product)
        start = next((k + 1 for k in reversed(range(place)) if _conflict(product, block[k])), 0)
        passed = block[start:place]
        reduces = any(assigns(s, "reduce") for s in passed)
        if any(map(self._is_product, block[:place])) or not reduces or any(map(_computes_functions, block[place:])):
            return set()
        block[start : place + 1] = [product, *passed]
        return {product}

    def _followed(self, block: list[Statement], first: int, place: int) -> list[int]:
        """The places of the products that stand behind one another from `first` on: what a product that moves there follows."""
        last = first
        while last < place and self._is_product(block[last]):
            last += 1
        return list(range(first, last))

    def _movable(self, block: list[Statement], first: int, place: int) -> set[int] | None:
        """The places of statements that move in front of the product at `first`, so that the one at `place` can follow it."""
        needed: set[int] = set()
        for k in reversed(range(first + 1, place)):
            users = [block[other] for other in (*needed, place)]
            if any(assigned_inside(block[k]) & _reads(user) for user in users) and not self._is_product(block[k]):
                sums = {s.targets[0] for s in block[:k] if self._is_product(s) and isinstance(s, Assign)}
                if not self._can_move(block[k]) or sums & _reads(block[k]):
                    return None
                needed.add(k)
        followed = self._followed(block, first, place)
        for k in range(first, place):
            if k in needed:
                continue
            for mover in (*sorted(other for other in needed if other > k), place):
                adds_on = mover == place and k in followed and self._adds_on(block[k], block[place])
                held = assigns(block[mover], "load") and holds_loads_back(block[k])
                if held or (not adds_on and _conflict(block[mover], block[k])):
                    return None
        return needed

    def _can_move(self, statement: Statement) -> bool:
        if not isinstance(statement, Assign) or len(statement.targets) != 1:
            return False
        value = statement.value
        if isinstance(value, Call) and value.op == "load":
            return self.lasts(value)
        return all(not isinstance(part, Call) or part.op in PREPARING for part in subexpressions(value))

    def _adds_on(self, earlier: Statement, product: Statement) -> bool:
        """Whether a product only adds to the sum of an earlier one, which itself is one that it can follow."""
        if not self._is_product(earlier) or not isinstance(earlier, Assign) or not isinstance(product, Assign):
            return False
        value = product.value
        if earlier.target is not product.target or not isinstance(value, Call) or len(value.args) < 3:
            return False
        start = value.args[2]
        operands = {v for arg in value.args[:2] for v in used_variables(arg)}
        return isinstance(start, Use) and start.variable is product.target and product.target not in operands

    def _noted(self, order: list[Statement], moved: set[Statement]) -> tuple[Statement, ...]:
        """The statements in their new order; source lines that came apart, or out of order, say so."""
        runs: list[list[Statement]] = []
        for statement in order:
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
                note = STARTED if any(map(self._is_product, run)) else PREPARED
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


def _conflict(mover: Statement, other: Statement) -> bool:
    """Whether the order of two statements counts."""
    return bool(
        _reads(mover) & assigned_inside(other) or assigned_inside(mover) & (_reads(other) | assigned_inside(other))
    )


def _reads(statement: Statement) -> set[Variable]:
    return set(read_inside((statement,)))


def _with_note(origin: Origin, note: str, comments: bool) -> Origin:
    return origin.noted(note) if comments else replace(origin.noted(note), comments=(), blank_before=False)
