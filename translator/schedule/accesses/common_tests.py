"""Loads of a block whose masks have parts in common: windows of a picture, the points of a stencil.

In: a kernel. Out: the tiles that are loaded so. `row < H && col < W && row > 0` is a way through branches, and the compiler takes
the loads behind the same test together, one branch behind the other: what stands in one overlaps with nothing in the next. Where
all parts of such masks are computed before any decides, `(row < H) & (col < W) & (row > 0)`, each load has one predicate.
"""

from __future__ import annotations

from collections import Counter

from ...analysis.facts import Facts
from ...analysis.masks import conjuncts
from ...ir.nodes import Assign, Call, Expr, Kernel, Variable
from ...ir.structured import assigns
from ...ir.walk import blocks


def loads_with_common_tests(kernel: Kernel, facts: Facts) -> frozenset[Variable]:
    """See the module docstring; loads under the same mask, all parts of it, may stand in one branch."""
    found: set[Variable] = set()
    for block in blocks(kernel.body):
        masks = [(s.targets[0], _parts(s, facts)) for s in block if isinstance(s, Assign) and assigns(s, "load")]
        several = {tests for _, tests in masks if len(tests) > 1}
        counts = Counter(test for tests in several for test in tests)
        found |= {target for target, tests in masks if tests in several and any(counts[test] > 1 for test in tests)}
    return frozenset(found)


def _parts(load: Assign, facts: Facts) -> frozenset[Expr]:
    """The conditions that a load's mask consists of, where it is a tile's."""
    call = load.value
    masked = isinstance(call, Call) and len(call.args) > 1 and call.args[0].type.is_tile
    return frozenset(conjuncts(call.args[1], facts) if masked and isinstance(call, Call) else ())
