"""What layouts must be chosen for: the tiles of a kernel, and how its statements hang them together.

In: a typed kernel and its facts. Out: a `Problem`, which `layouts.py` fills with answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ...analysis.axis_info import AxisInfo
from ...analysis.facts import Facts
from ...analysis.unit_stride import Steps, steps
from ...artifact import Target
from ...frozen import frozen
from ...hardware import ACCESS_BYTES, SECTOR_BYTES
from ...ir.nodes import Assign, Call, Effect, Expr, Kernel, Statement, Use, Variable
from ...ir.structured import assigns, is_atomic
from ...ir.walk import REARRANGES, children, expressions, in_loops, statements
from ...language.dtypes import PointerType
from ..accesses.atomic_widths import elements_at_once
from ..accesses.trip_loads import moving_axes
from ..products.shared_tiles import SharedTile
from .layout import Layout
from .paths import is_join

# A tile that needs a layout: a variable, or the statement that evaluates tiles without assigning any.
Node = Variable | Statement
Path = tuple[tuple[Expr, Expr], ...]  # (call, operand) from a statement's value down to a use


@frozen
class Relation:
    """Statement `statement` runs in the layout of `node` and reads `variable`, reached through `path`."""

    node: Node
    variable: Variable
    path: Path
    statement: Statement


@frozen
class Addresses:
    """Where a load, store or atomic touches memory, as far as is known before it has a layout (then see `accesses/access.py`).

    Attributes:
      info: what is known of the addresses.
      itemsize: bytes of an element.
      steps: how many elements neighbours lie apart, along the axes along which numbers tell.
      loads: whether it is a load.
      at_once: how many elements an instruction has at most.
      repeated: whether it stands in a loop.
      quotients: the divisions of indices that its addresses and its mask take.
      adds: whether it is an atomic operation, which has its own widths.
    """

    info: AxisInfo
    itemsize: int
    steps: Mapping[int, int]
    loads: bool
    at_once: int
    repeated: bool
    quotients: int = 0
    adds: bool = False

    @property
    def side_by_side(self) -> frozenset[int]:
        """The axes along which neighbours are neighbours in memory, if not in every place."""
        return frozenset(axis for axis, step in self.steps.items() if step == 1)

    def closeness(self, axis: int) -> int:
        """2 where neighbours along an axis are neighbours in memory, 1 where a sector holds several of them, else 0."""
        step = self.steps.get(axis, 0)
        return 2 if step == 1 else int(0 < step * self.itemsize < SECTOR_BYTES)

    def spread(self, axis: int, run: int) -> int:
        """The bytes that a run along an axis is spread over where its elements lie a few apart, else 0."""
        return self.steps[axis] * self.itemsize * run if self.closeness(axis) == 1 else 0


@dataclass(slots=True)
class Problem:
    """The tiles, how they hang together, and the answers so far.

    Attributes:
      target: the architecture, which decides how many elements an atomic has.
      halves_of: by a joined tile, the relations that lead to its halves.
      boxes: where threads take tiles from that tensor copies have brought.
      steps: what has been found of pointers.
      moving: the axes along which the trips of a loop move a load; none beside products.
      looped: what reductions in loops result in.
    """

    target: Target
    shapes: dict[Node, tuple[int, ...]] = field(default_factory=dict)
    relations: list[Relation] = field(default_factory=list)
    reductions: list[tuple[Node, int, Variable]] = field(default_factory=list)
    accesses: dict[Node, list[Addresses]] = field(default_factory=dict)
    boxes: dict[Node, SharedTile] = field(default_factory=dict)
    answers: dict[Node, Layout] = field(default_factory=dict)
    relations_of: dict[Node, list[Relation]] = field(default_factory=dict)
    halves_of: dict[Node, list[Relation]] = field(default_factory=dict)
    reductions_of: dict[Node, list[tuple[int, Variable]]] = field(default_factory=dict)
    steps: dict[Variable, Steps] = field(default_factory=dict)
    moving: dict[Variable, frozenset[int]] = field(default_factory=dict)
    looped: set[Variable] = field(default_factory=set)

    def index(self) -> None:
        """Fills the tables by tile, once everything is collected."""
        for relation in self.relations:
            self.relations_of.setdefault(relation.node, []).append(relation)
            if relation.variable is not relation.node:
                self.relations_of.setdefault(relation.variable, []).append(relation)
            if any(is_join(*step) for step in relation.path):
                self.halves_of.setdefault(relation.node, []).append(relation)
        for source, axis, target in self.reductions:
            self.reductions_of.setdefault(source, []).append((axis, target))


def find_problem(kernel: Kernel, facts: Facts, target: Target) -> Problem:
    """Everything that the layouts of a kernel's tiles depend on, without answers."""
    problem = Problem(target)
    repeated = in_loops(kernel.body)
    for statement in statements(kernel.body):
        _collect(problem, statement, facts, statement in repeated)
    if not any(assigns(s, "dot") for s in statements(kernel.body)):
        problem.moving = moving_axes(kernel, facts)
    problem.index()
    return problem


def statement_node(statement: Statement, facts: Facts) -> Node | None:
    """The tile in whose layout a statement runs; None for a statement of scalars."""
    match statement:
        case Assign(value=Call(op="load", args=args)):
            return statement.target if any(arg.type.is_tile for arg in args) else None
        case Assign(value=Call(op="reduce" | "repack", args=args)) | Effect(call=Call(args=args)):
            return statement if any(arg.type.is_tile for arg in args) else None
        case Assign(value=Call(op="box_load" | "row_load")):
            return None
        case Assign(targets=(target, *_)):
            held = target.type.is_tile and target not in facts.index and target not in facts.absorbed
            return target if held else None
    return None


def _collect(problem: Problem, statement: Statement, facts: Facts, repeated: bool) -> None:
    targets = statement.targets if isinstance(statement, Assign) else ()
    if targets and all(target in facts.unused for target in targets):
        return
    value = statement.value if isinstance(statement, Assign) else None
    boxed = isinstance(value, Call) and value.op in ("box_load", "row_load")
    for target in () if boxed else targets:
        if target.type.is_tile and target not in facts.index and target not in facts.absorbed:
            problem.shapes[target] = target.type.shape
    node = statement_node(statement, facts)
    if node is None:
        return
    for expr in expressions(statement):
        roots = expr.args if isinstance(expr, Call) and isinstance(node, Statement) else (expr,)
        if isinstance(expr, Call) and (expr.op == "load" or is_atomic(expr)):
            roots = expr.args
        elif isinstance(expr, Call) and expr.op == "dot":
            roots = expr.args[2:]  # the operands are read from shared memory
        elif isinstance(expr, Call) and expr.op == "box_read":
            roots = ()  # in whatever layout
        for root in roots:
            if root.type.is_tile:
                problem.shapes[node] = root.type.shape
                for variable, path in tile_uses(root, facts):
                    problem.relations.append(Relation(node, variable, path, statement))
        _collect_structure(problem, statement, expr, node, facts, repeated)


def _collect_structure(
    problem: Problem, statement: Statement, expr: Expr, node: Node, facts: Facts, repeated: bool
) -> None:
    """What a structured operation adds: its access to memory, its results' layouts."""
    if not isinstance(expr, Call):
        return
    if expr.op in ("load", "store") or is_atomic(expr):
        pointer = expr.args[0]
        if isinstance(pointer.type.element, PointerType):
            info = facts.at(statement).info(pointer)
            apart = steps(pointer, facts.definitions, problem.steps)
            itemsize = pointer.type.element.element_ty.itemsize
            adds, quotients = is_atomic(expr), _quotients(expr, facts)
            most = elements_at_once(expr, problem.target) if adds else max(ACCESS_BYTES // itemsize, 1)
            access = Addresses(info, itemsize, apart, expr.op == "load", most, repeated, quotients, adds)
            problem.accesses.setdefault(node, []).append(access)
    targets = statement.targets if isinstance(statement, Assign) else ()
    if expr.op == "reduce" and expr.attribute("axis") is not None:
        problem.reductions += [(node, expr.attribute("axis"), target) for target in targets if target.type.is_tile]
        problem.looped.update(targets if repeated else ())


def tile_uses(expr: Expr, facts: Facts) -> Iterator[tuple[Variable, Path]]:
    """The register tiles that an expression reads, through absorbed and index tiles, with the path to each.

    Of a path only the calls are kept that change what a coordinate means; all others have operands like themselves.
    """
    pending: list[tuple[Expr, Path]] = [(expr, ())]
    seen: set[tuple[Variable, Path]] = set()
    while pending:
        one, path = pending.pop()
        if isinstance(one, Use) and one.type.is_tile:
            if (one.variable, path) in seen:
                continue
            seen.add((one.variable, path))
            if one.variable in facts.absorbed or one.variable in facts.index:
                pending.append((facts.definitions[one.variable], path))
            else:
                yield one.variable, path
        below = [child for child in children(one) if child.type.is_tile]
        changes = isinstance(one, Call) and (one.op in REARRANGES or one.op in ("broadcast", "expand_dims"))
        pending += [(child, (*path, (one, child)) if changes else path) for child in reversed(below)]


def _quotients(access: Call, facts: Facts) -> int:
    """How many divisions of tiles the operands of a load or store contain, each variable's counted once."""
    found, pending = 0, list(access.args)
    seen: set[Variable] = set()
    while pending:
        part = pending.pop()
        if not part.type.is_tile:
            continue
        if isinstance(part, Use) and part.variable not in seen:
            seen.add(part.variable)
            if part.variable in facts.absorbed or part.variable in facts.index:
                pending.append(facts.definitions[part.variable])
        found += isinstance(part, Call) and part.op in ("floordiv", "mod")
        pending += children(part)
    return found
