"""Tiles that only products behind a loop read are loaded before the loop: their copies then arrive under its products.

In: a kernel, and the loads that go to shared memory for products alone, as copies by threads. Out: the same kernel; such a
load stands in front of the loops with products that come before it in its block, as far up as its addresses are known.

It costs no registers, and no shared memory that is not the tile's anyway, unless arrays take turns. A load moves only past
what does not assign what it reads, nor waits for others or ends the program, and only if the kernel does not write to its
array. Nothing waits for it before its tile is used (`lower/staging/arrivals.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace

from ...ir.nodes import Assign, Call, For, Inlined, Kernel, Statement, Variable
from ...ir.rewrite import with_bodies, with_statements
from ...ir.structured import assigns
from ...ir.walk import assigned_variables, read_variables, statements, used_variables
from ..accesses.pointers import lasting_loads
from ..accesses.waiting import holds_loads_back

MOVED = "moved up"


def with_early_loads(kernel: Kernel, staged: Container[Variable]) -> Kernel:
    """See the module docstring; `staged` tiles are read by products only."""
    body = _reordered(kernel.body, staged, lasting_loads(kernel))
    return kernel if body is kernel.body else replace(kernel, body=body)


def _reordered(
    block: tuple[Statement, ...], staged: Container[Variable], lasts: Callable[[Call], bool]
) -> tuple[Statement, ...]:
    result: list[Statement] = []
    for statement in block:
        if isinstance(statement, Inlined):
            statement = with_bodies(statement, lambda body: _reordered(body, staged, lasts))
        place = len(result)
        if isinstance(statement, Assign) and _is_copy(statement, staged, lasts):
            place = _earliest(result, statement)
        if place < len(result):
            statement = replace(statement, origin=statement.origin.noted(MOVED))
        result.insert(place, statement)
    return with_statements(block, result)


def _is_copy(statement: Assign, staged: Container[Variable], lasts: Callable[[Call], bool]) -> bool:
    value = statement.value
    return isinstance(value, Call) and value.op == "load" and statement.targets[0] in staged and lasts(value)


def _earliest(block: list[Statement], load: Assign) -> int:
    """In front of the first loop with products that a load can pass, all behind it included; its place if there is none."""
    own = {*used_variables(load.value), load.target}
    place = len(block)
    for k in reversed(range(len(block))):
        inner = list(statements((block[k],)))
        if holds_loads_back(block[k]) or any(
            own & {*assigned_variables(s)} or load.target in read_variables(s) for s in inner
        ):
            break
        if isinstance(block[k], For) and any(assigns(s, "dot") for s in inner):
            place = k
    return place
