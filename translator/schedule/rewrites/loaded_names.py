"""Gives what a loop loads a name of its own where the loop assigns the loaded variable again.

In: a typed kernel. Out: the same kernel; of `v = tl.load(p)` and, further down in a trip, `v = (v * scale).to(tl.bfloat16)`
the first and what reads it are about `v_loaded`. A variable that is assigned once can be loaded ahead, and lie in another
layout than what is made of it.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.nodes import LOADED, Assign, Call, For, Kernel, Statement, Use, Variable, While
from ...ir.rewrite import substituted_in, with_bodies
from ...ir.walk import assigned_variables, next_key, statements


def with_loaded_names(kernel: Kernel) -> Kernel:
    """See the module docstring."""
    if not any(isinstance(statement, (For, While)) for statement in statements(kernel.body)):
        return kernel
    naming = _Naming(first := next_key(kernel))
    body = naming.block(kernel.body, False)
    return replace(kernel, body=body) if naming.next_key > first else kernel


class _Naming:
    """Rewrites blocks; `next_key` numbers the variables that it adds."""

    def __init__(self, next_key: int) -> None:
        """Starts numbering at `next_key`."""
        self.next_key = next_key

    def block(self, body: tuple[Statement, ...], in_loop: bool) -> tuple[Statement, ...]:
        """A block, in a loop or not, with all that is inside of it."""
        result = [self._inside(statement, in_loop) for statement in body]
        for place in range(len(result)) if in_loop else ():
            statement = result[place]
            if isinstance(statement, Assign) and _is_load(statement):
                again = _assigned_again(result, place)
                if again is not None:
                    self._rename(result, place, again)
        return tuple(result)

    def _inside(self, statement: Statement, in_loop: bool) -> Statement:
        in_loop = in_loop or isinstance(statement, (For, While))
        return with_bodies(statement, lambda body: self.block(body, in_loop))

    def _rename(self, block: list[Statement], first: int, again: int) -> None:
        load = block[first]
        if not isinstance(load, Assign):
            raise TypeError("not a load")
        old = load.target
        new = Variable(f"{old.name}{LOADED}", old.type, self.next_key)
        self.next_key += 1
        block[first] = replace(load, targets=(new,))
        for place in range(first + 1, again + 1):
            statement = block[place]
            changed = substituted_in(statement, {old: Use(new.type, new)})
            if isinstance(statement, Assign) and isinstance(changed, Assign):
                changed = replace(changed, targets=statement.targets)
            block[place] = changed


def _is_load(statement: Assign) -> bool:
    value = statement.value
    return isinstance(value, Call) and value.op == "load" and not value.type.is_pointer


def _assigned_again(block: list[Statement], place: int) -> int | None:
    """Where the variable that a load assigns is next assigned, if that is always so, and in one statement of this block."""
    target = block[place].target  # type: ignore[attr-defined]
    for later in range(place + 1, len(block)):
        statement = block[later]
        if target in assigned_variables(statement):
            return later if isinstance(statement, Assign) and statement.targets == (target,) else None
        if any(target in assigned_variables(inner) for inner in statements((statement,))):
            return None
    return None
