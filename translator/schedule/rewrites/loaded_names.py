"""Gives what a loop loads a name of its own where the loop assigns the loaded variable again.

In: a typed kernel. Out: the same kernel; of `v = tl.load(p)` and, further down in a trip, `v = (v * scale).to(tl.bfloat16)`
the first and what reads it are about `v_loaded`. A variable that is assigned once can be loaded ahead, and lie in another
layout than what is made of it. Where the second is a load as well, both are called after what tells their places apart: of
`w = tl.load(p + low)` and `w = tl.load(p + high)` that is `w_low` and `w_high`.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.nodes import LOADED, Assign, Call, For, Kernel, Statement, Use, Variable, While
from ...ir.rewrite import renamed, substituted_in, with_bodies
from ...ir.walk import assigned_variables, assignment_counts, next_key, statements, used_variables


def with_loaded_names(kernel: Kernel) -> Kernel:
    """See the module docstring."""
    if not any(isinstance(statement, (For, While)) for statement in statements(kernel.body)):
        return kernel
    naming = _Naming(first := next_key(kernel))
    body = naming.block(kernel.body, False)
    if naming.next_key == first:
        return kernel
    times = assignment_counts(body)
    return replace(kernel, body=renamed(body, {old: new for old, new in naming.last.items() if times[old] == 1}))


class _Naming:
    """Rewrites blocks; `next_key` numbers the variables that it adds."""

    def __init__(self, next_key: int) -> None:
        """Starts numbering at `next_key`."""
        self.next_key = next_key
        self.last: dict[Variable, Variable] = {}  # what a variable may be called once only its last load is left

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
        old, words = load.target, _told_apart(load, block[again])
        new = self._variable(old, f"_{words[0]}" if words else LOADED)
        if words:
            self.last[old] = self._variable(old, f"_{words[1]}")
        block[first] = replace(load, targets=(new,))
        for place in range(first + 1, again + 1):
            statement = block[place]
            changed = substituted_in(statement, {old: Use(new.type, new)})
            if isinstance(statement, Assign) and isinstance(changed, Assign):
                changed = replace(changed, targets=statement.targets)
            block[place] = changed

    def _variable(self, old: Variable, ending: str) -> Variable:
        self.next_key += 1
        return Variable(f"{old.name}{ending}", old.type, self.next_key - 1)


def _told_apart(load: Assign, again: Statement) -> tuple[str, str] | None:
    """The names that only one of two loads into a variable reads; None unless there is one for each."""
    if not isinstance(again, Assign) or not _is_load(again):
        return None
    names = [{variable.name for variable in used_variables(one.value)} for one in (load, again)]
    first, second = names[0] - names[1], names[1] - names[0]
    return (first.pop(), second.pop()) if len(first) == len(second) == 1 else None


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
