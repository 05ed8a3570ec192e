"""Walks over statements and expressions: the only place that knows which node holds which."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import TypeVar

from .nodes import (
    Assign,
    Call,
    CallFunction,
    Effect,
    Expr,
    For,
    If,
    Inlined,
    Kernel,
    Return,
    Statement,
    Use,
    Variable,
    While,
)

# The fields of a statement that are blocks, in the order in which they run.
BLOCKS: Mapping[type[Statement], tuple[str, ...]] = {
    If: ("then", "otherwise"),
    For: ("body",),
    While: ("prelude", "body"),
    Inlined: ("body",),
}

REARRANGES = frozenset(("permute", "reshape", "select"))  # operations whose elements change their places
# Operations whose result has the elements of their operand, in other places or more often.
MOVES = frozenset(("broadcast", "expand_dims", "permute", "reshape", "hint"))

Step = TypeVar("Step")
Path = list[tuple[tuple[Statement, ...], int]]  # (block, place in it), from a body to a statement


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression."""
    return expr.args if isinstance(expr, (Call, CallFunction)) else ()


def subexpressions(expr: Expr) -> Iterator[Expr]:
    """The expression and everything below it, outermost first."""
    pending = [expr]  # instead of a generator per level, which would cost the depth for every part
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, (Call, CallFunction)):
            pending += part.args[::-1]


def all_expressions(kernel: Kernel) -> Iterator[Expr]:
    """Every expression of a kernel and of the functions that it calls, with all below it."""
    for body in (kernel.body, *(function.body for function in kernel.functions)):
        for statement in statements(body):
            for expr in expressions(statement):
                yield from subexpressions(expr)


def expressions(statement: Statement) -> tuple[Expr, ...]:
    """The expressions that stand in a statement itself, not in its body."""
    match statement:
        case Assign():
            return (statement.value,)
        case Effect():
            return (statement.call,)
        case If() | While():
            return (statement.condition,)
        case For():
            bounds = (statement.start, statement.stop, statement.step)
            return bounds if statement.previous is None else (*bounds, statement.previous)
        case Return(value=Expr() as value):
            return (value,)
    return ()


def bodies(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """The blocks inside a statement, in the order in which they run."""
    names = BLOCKS.get(type(statement))
    return () if names is None else tuple(getattr(statement, name) for name in names)


def blocks(body: tuple[Statement, ...]) -> Iterator[tuple[Statement, ...]]:
    """A block and the blocks inside of it."""
    yield body
    for statement in statements(body):
        yield from bodies(statement)


def nested(statement: Statement) -> Iterator[Statement]:
    """Every statement of the blocks inside of a statement, in source order, without itself."""
    for body in bodies(statement):
        yield from statements(body)


def statements(block: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement of a block and of the blocks inside, in source order.

    Not by recursion: each statement would pass through a generator for every block around it.
    """
    waiting = [*reversed(block)]
    while waiting:
        statement = waiting.pop()
        yield statement
        for body in reversed(bodies(statement)):
            waiting += reversed(body)


def in_loops(block: tuple[Statement, ...]) -> set[Statement]:
    """The statements of a block that a loop repeats, those that its condition needs among them."""
    found: set[Statement] = set()
    for statement in statements(block):
        if isinstance(statement, (For, While)) and statement not in found:
            found.update(nested(statement))
    return found


def loops_around(block: tuple[Statement, ...], outer: int = 0) -> dict[Variable, int]:
    """How many loops stand around the first assignment of every variable, `outer` of them around the block."""
    found: dict[Variable, int] = {}
    for statement in block:
        for variable in assigned_variables(statement):
            found.setdefault(variable, outer)
        for body in bodies(statement):
            for variable, loops in loops_around(body, outer + isinstance(statement, (For, While))).items():
                found.setdefault(variable, loops)
    return found


def top_statements(block: tuple[Statement, ...]) -> Iterator[Statement]:
    """The statements that every run of a block passes once: inlined functions are part of it."""
    for statement in block:
        if isinstance(statement, Inlined):
            yield from top_statements(statement.body)
        else:
            yield statement


def path_to(block: tuple[Statement, ...], wanted: Statement) -> Path | None:
    """The blocks around a statement, outermost first, each with the place of what holds it; None if it is nowhere."""
    for place, statement in enumerate(block):
        if statement is wanted:
            return [(block, place)]
        for body in bodies(statement):
            below = path_to(body, wanted)
            if below is not None:
                return [(block, place), *below]
    return None


def common_path(one: tuple[Step, ...], other: tuple[Step, ...]) -> tuple[Step, ...]:
    """The blocks that two paths of blocks, outermost first, have in common, whatever tells a block apart."""
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return one[:length]


def say_the_same(one: object, other: object) -> bool:
    """Whether two blocks, statements or expressions are equal in all their parts; statements themselves go by identity."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(say_the_same, one, other))
    if isinstance(one, Statement) and type(one) is type(other):
        return all(say_the_same(getattr(one, part.name), getattr(other, part.name)) for part in fields(one))
    return one == other


def used_variables(expr: Expr) -> Iterator[Variable]:
    """The variables that an expression reads, with repetition."""
    for part in subexpressions(expr):
        if isinstance(part, Use):
            yield part.variable


def read_variables(statement: Statement) -> Iterator[Variable]:
    """The variables that a statement itself reads, not its body, with repetition."""
    for expr in expressions(statement):
        yield from used_variables(expr)


def readers_of(block: tuple[Statement, ...]) -> dict[Variable, list[Statement]]:
    """The statements that read a variable, by variable, once for each time."""
    found: dict[Variable, list[Statement]] = defaultdict(list)
    for statement in statements(block):
        for variable in read_variables(statement):
            found[variable].append(statement)
    return found


def read_inside(block: tuple[Statement, ...]) -> Iterator[Variable]:
    """The variables that the statements of a block and of the blocks inside read, with repetition."""
    for statement in statements(block):
        yield from read_variables(statement)


def assigned_variables(statement: Statement) -> tuple[Variable, ...]:
    """The variables that a statement itself assigns."""
    match statement:
        case Assign():
            return statement.targets
        case For():
            return (statement.variable,)
    return ()


def assigned_inside(statement: Statement) -> set[Variable]:
    """What a statement, or anything inside of it, assigns."""
    return {variable for inner in statements((statement,)) for variable in assigned_variables(inner)}


def reachable(start: Iterable[Variable], steps: Mapping[Variable, Iterable[Variable]]) -> set[Variable]:
    """The variables that some lead to, with these, by any number of steps."""
    found = set(start)
    pending = list(found)
    while pending:
        new = set(steps.get(pending.pop(), ())) - found
        found |= new
        pending += new
    return found


def assignment_counts(block: tuple[Statement, ...]) -> Counter[Variable]:
    """How often each variable is assigned in a block and in the blocks inside."""
    return Counter(v for s in statements(block) for v in assigned_variables(s))


def only_values(block: tuple[Statement, ...]) -> dict[Variable, Expr]:
    """The value of every variable that one assignment of its own, and nothing else, assigns in a block."""
    counts = assignment_counts(block)
    return {
        s.target: s.value
        for s in statements(block)
        if isinstance(s, Assign) and len(s.targets) == 1 and counts[s.target] == 1
    }


def next_key(kernel: Kernel) -> int:
    """The first serial number that no variable of a kernel has."""
    assigned = (v.key for s in statements(kernel.body) for v in assigned_variables(s))
    return max((*assigned, *(p.variable.key for p in kernel.parameters)), default=-1) + 1


def computed_from(body: tuple[Statement, ...]) -> dict[Variable, set[Variable]]:
    """The variables that a function's body computes each of its variables from, in one step."""
    found: dict[Variable, set[Variable]] = {}
    for statement in statements(body):
        if isinstance(statement, Assign):
            used = set(used_variables(statement.value))
            for target in statement.targets:
                found.setdefault(target, set()).update(used)
    return found


def computed_with(some: Iterable[Statement]) -> dict[Variable, set[Variable]]:
    """The variables that some statements compute with each variable, in one step."""
    found: dict[Variable, set[Variable]] = {}
    for statement in some:
        if isinstance(statement, Assign):
            for variable in used_variables(statement.value):
                found.setdefault(variable, set()).update(statement.targets)
    return found


def follows_from(body: tuple[Statement, ...]) -> dict[Variable, set[Variable]]:
    """As `computed_from` by data, and by control: what decides whether, and how often, each variable is assigned."""
    found: dict[Variable, set[Variable]] = {}
    pending = [(body, frozenset[Variable]())]
    while pending:
        block, around = pending.pop()
        for statement in block:
            read = around.union(read_variables(statement))
            for variable in assigned_variables(statement):
                found.setdefault(variable, set()).update(read)
            pending += [(inner, read) for inner in bodies(statement)]
    return found


def where_from(body: tuple[Statement, ...], variables: Iterable[Variable]) -> frozenset[Variable]:
    """Some variables and those that their values are computed from in a function's body."""
    return frozenset(reachable(variables, computed_from(body)))


def what_decides(body: tuple[Statement, ...]) -> set[Variable]:
    """The variables that the values which a function's body returns come from, by data or by control."""
    every = list(statements(body))
    needed: set[Variable] = set()
    size = -1
    while size != len(needed):
        size = len(needed)
        for statement in every:
            assigned = assigned_variables(statement)
            if isinstance(statement, Assign) and needed.isdisjoint(assigned):
                continue
            needed.update(read_variables(statement))
    return needed
