"""Gives what a loop loads a name of its own where the loop assigns the loaded variable again.

In: a typed kernel. Out: the same kernel; of `v = tl.load(p)` and, further down in a trip, `v = (v * scale).to(tl.bfloat16)`
the first and what reads it are about `v_loaded`. A variable that is assigned once can be loaded ahead, and lie in another
layout than what is made of it. Where the second is a load as well, both are called after what tells their places apart: of
`w = tl.load(p + low)` and `w = tl.load(p + high)` that is `w_low` and `w_high`.

So are reductions along both axes of tiles, in loops and elsewhere: `m = tl.max(x, 1)` and `m = tl.max(x, 0)` are `m_of_rows` and
`m_of_columns`, which lie with the rows and with the columns of x; one name would be one layout for both.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.nodes import LOADED, Assign, Call, For, Kernel, Statement, Use, Variable, While
from ...ir.rewrite import renamed, substituted_in, with_bodies, with_statements
from ...ir.walk import assigned_variables, assignment_counts, next_key, statements, used_variables

WORDS_OF_AXES = ("of_columns", "of_rows")  # what is left of a tile once it is reduced along that axis


def with_loaded_names(kernel: Kernel) -> Kernel:
    """See the module docstring."""
    naming = _Naming(next_key(kernel))
    body = naming.block(kernel.body, False)
    if body is kernel.body:
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
        for place, statement in enumerate(result):
            loads = in_loop and isinstance(statement, Assign) and _is_load(statement)
            if loads or _reduced_axis(statement) is not None:
                again = _assigned_again(result, place)
                if again is not None and (loads or _told_apart(statement, result[again])):
                    self._rename(result, place, again)
        return with_statements(body, result)

    def _inside(self, statement: Statement, in_loop: bool) -> Statement:
        in_loop = in_loop or isinstance(statement, (For, While))
        return with_bodies(statement, lambda body: self.block(body, in_loop))

    def _rename(self, block: list[Statement], first: int, again: int) -> None:
        load = block[first]
        if not isinstance(load, Assign):
            raise TypeError("not an assignment")
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


def _told_apart(statement: Statement, again: Statement) -> tuple[str, str] | None:
    """Words for two values of a variable, neither made of the other: of loads the names that only one of them reads."""
    if not isinstance(statement, Assign) or not isinstance(again, Assign):
        return None
    axes = _reduced_axis(statement), _reduced_axis(again)
    if None not in axes and axes[0] != axes[1] and again.target not in used_variables(again.value):
        return WORDS_OF_AXES[axes[0]], WORDS_OF_AXES[axes[1]]  # type: ignore[index]
    if not _is_load(statement) or not _is_load(again):
        return None
    names = [{variable.name for variable in used_variables(one.value)} for one in (statement, again)]
    first, second = names[0] - names[1], names[1] - names[0]
    return (first.pop(), second.pop()) if len(first) == len(second) == 1 else None


def _reduced_axis(statement: Statement) -> int | None:
    """The axis of a tile of two along which a statement reduces it; None of others."""
    value = statement.value if isinstance(statement, Assign) and len(statement.targets) == 1 else None
    if not isinstance(value, Call) or value.op != "reduce" or len(value.args[0].type.shape) != len(WORDS_OF_AXES):
        return None
    axis = value.attribute("axis")
    return axis if isinstance(axis, int) and statement.target.type.is_tile else None  # type: ignore[attr-defined]


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
