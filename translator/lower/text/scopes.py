"""Where each variable is declared in C++: at its first assignment, or before the statement that all its uses share.

In: the statements of a kernel or function and the expressions that absorbed variables stand for. Out: `Scopes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...frozen import frozen
from ...ir.nodes import Expr, For, Inlined, Statement, Variable, While
from ...ir.walk import assigned_variables, bodies, common_path, read_variables, statements, used_variables

BlockPath = tuple[tuple[Statement, int], ...]  # (a compound statement, number of its block), outermost first


@frozen
class Scopes:
    """Declarations that cannot stand at the first assignment.

    Attributes:
      before: variables to declare before a statement.
      hoisted: all of these variables.
      outliving: loop variables that are used after their loop.
      first: the statement that assigns each variable first.
      blocks: the block in which each variable is declared.
    """

    before: dict[Statement, tuple[Variable, ...]]
    hoisted: frozenset[Variable]
    outliving: frozenset[Variable]
    first: dict[Variable, Statement]
    blocks: dict[Variable, BlockPath]

    def apart(self, one: Variable, other: Variable) -> bool:
        """Whether no line sees both variables, so that they may have the same name."""
        if one not in self.blocks or other not in self.blocks:
            return False
        paths = self.blocks[one], self.blocks[other]
        return common_path(*paths) not in paths


def find_scopes(body: tuple[Statement, ...], definitions: Mapping[Variable, Expr]) -> Scopes:
    """Finds declarations; `definitions` has the expressions of variables that are spelled where they are used."""
    found: dict[Variable, list[tuple[BlockPath, Statement, bool]]] = {}
    for path, statement, variable, assigns in occurrences(body, definitions):
        found.setdefault(variable, []).append((path, statement, assigns))
    loop_variables = {s.variable: s for s in statements(body) if isinstance(s, For)}
    before: dict[Statement, list[Variable]] = {}
    blocks: dict[Variable, BlockPath] = {}
    outliving = set()
    for variable, places in found.items():
        if variable in loop_variables:
            inside = loop_variables[variable]
            if all(any(step[0] == inside for step in path) for path, _, assigns in places if not assigns):
                blocks[variable] = (*places[0][0], (inside, 0))
                continue
            outliving.add(variable)
        elif not any(assigns for _, _, assigns in places):
            continue  # a parameter
        home, statement, _ = next(place for place in places if place[2])
        shared = home
        for path, _, _ in places:
            shared = common_path(shared, path)
        blocks[variable] = shared
        if shared != home or not places[0][2]:
            first_path, first_statement, _ = places[0]
            anchor = first_path[len(shared)][0] if len(first_path) > len(shared) else first_statement
            before.setdefault(anchor, []).append(variable)
        elif variable in outliving:
            before.setdefault(statement, []).append(variable)
    first = {
        v: next(s for _, s, assigns in places if assigns) for v, places in found.items() if any(p[2] for p in places)
    }
    hoisted = frozenset(v for group in before.values() for v in group)
    return Scopes({key: tuple(group) for key, group in before.items()}, hoisted, frozenset(outliving), first, blocks)


def occurrences(
    body: tuple[Statement, ...], definitions: Mapping[Variable, Expr]
) -> list[tuple[BlockPath, Statement, Variable, bool]]:
    """(block, statement, variable, whether it is assigned) in text order."""
    found: list[tuple[BlockPath, Statement, Variable, bool]] = []
    _add_occurrences(found, body, (), definitions)
    return found


def _add_occurrences(
    found: list[tuple[BlockPath, Statement, Variable, bool]],
    body: tuple[Statement, ...],
    path: BlockPath,
    definitions: Mapping[Variable, Expr],
) -> None:
    for statement in body:
        inside = isinstance(statement, While) and bool(statement.prelude)
        if not inside:
            found += [(path, statement, variable, False) for variable in _reads(statement, definitions)]
        found += [(path, statement, variable, True) for variable in assigned_variables(statement)]
        for number, block in enumerate(bodies(statement)):
            if isinstance(statement, Inlined):  # its statements stand in the caller's block
                _add_occurrences(found, block, path, definitions)
                continue
            step = (statement, 0 if isinstance(statement, While) else number)
            _add_occurrences(found, block, (*path, step), definitions)
            if inside and number == 0:
                found += [((*path, step), statement, variable, False) for variable in _reads(statement, definitions)]


def _reads(statement: Statement, definitions: Mapping[Variable, Expr]) -> Iterator[Variable]:
    pending = list(read_variables(statement))
    seen = set()
    while pending:
        variable = pending.pop(0)
        if variable in seen:
            continue
        seen.add(variable)
        yield variable
        if variable in definitions:
            pending.extend(used_variables(definitions[variable]))
