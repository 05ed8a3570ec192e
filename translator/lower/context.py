"""What the lowering of each statement has of the others and of the file, in one place.

What is given and stays (`known.py`); how things are called and spelled (`text/`); what the file must hold (`text/needs.py`,
`text/constants.py`, `shared/memory.py`); what is collected on the way (`state.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

from ..analysis.facts import Facts
from ..analysis.meeting import Places
from ..analysis.own_sums import dots_with_own_sums
from ..hardware import WARP_SIZE
from ..ir.nodes import Assign, Call, DeviceFunction, Expr, For, Statement, Variable
from ..ir.types import ValueType
from ..ir.walk import statements
from ..language.dtypes import PointerType
from ..schedule.accesses.access import Access
from ..schedule.tiles.layout import REGISTER, Layout
from .accesses.named_masks import NamedMasks
from .accesses.vector_starts import coarser, first_of_vector
from .known import Known
from .shared.memory import SharedMemory
from .state import AccessOrder, Around, BoxCopies, Instead, LoadedAhead, Progress, Remarks, StatementNotes, WarpRole
from .text.axis_names import PLACES, AxisNames
from .text.constants import grid_word
from .text.names import Names
from .text.needs import Needs
from .text.operators import Text
from .text.point import Point, coordinate, register_index
from .text.scopes import Scopes
from .text.spell import Speller
from .text.unit import Assignment, Declaration, Line, Node


def ctype(type_: ValueType, writes: bool = True) -> str:
    """The C++ type of one element; `writes` is whether a pointer is written through."""
    element = type_.element
    if isinstance(element, PointerType):
        memory = memory_ctype(element)
        return f"{memory}*" if writes else f"const {memory}*"
    return element.cuda


def memory_ctype(pointer: PointerType) -> str:
    """The C++ type of an element in memory: booleans are bytes."""
    return "unsigned char" if pointer.element_ty.is_bool() else pointer.element_ty.cuda


def only_place(facts: Facts, variable: Variable) -> int | None:
    """The number that an index tile of a single place has, as `rows = tl.arange(0, BLOCK)` where a block is one row."""
    value = facts.definitions.get(variable) if variable in facts.index else None
    if isinstance(value, Call) and value.op == "arange" and value.type.shape == (1,):
        return int(value.attribute("start", 0))
    return None


class Context:
    """See the module docstring. One per kernel, and one per function in its file."""

    def __init__(
        self, known: Known, scopes: Scopes, names: Names, axis_names: AxisNames, shared: SharedMemory, needs: Needs
    ) -> None:
        """Starts the lowering of a kernel, or of a function that stands in its file; the two have the same `needs`."""
        self._known = known
        self.kernel, self.facts, self.schedule, self.memory = known.kernel, known.facts, known.schedule, known.memory
        self.readers, self.given = known.readers, known.given
        counted = {s.variable for s in statements(self.kernel.body) if isinstance(s, For)}
        parameters = (parameter.variable for parameter in self.kernel.parameters)
        self._unread = counted.union(self.facts.index, parameters)
        # How things are called and spelled.
        self.names, self.axis_names, self.constants = names, axis_names, axis_names.constants
        self.masks = NamedMasks(self.facts, known.named_masks)
        written_out = {variable: self.facts.definitions[variable] for variable in self.facts.absorbed}
        self.speller = Speller(self.facts.definitions, written_out, known.arithmetic, needs.used, words=self)
        self._temporaries: dict[tuple[Statement, Variable | None, str], Variable] = {}
        # What the file must hold for it.
        self.needs, self.shared = needs, shared
        # What is collected on the way.
        self.scopes = scopes  # of the role whose part is being written
        self.around, self.progress, self.instead, self.role = Around(), Progress(), Instead(), WarpRole()
        self.notes, self.ahead, self.box_copies, self.remarks = StatementNotes(), LoadedAhead(), BoxCopies(), Remarks()
        self.order = AccessOrder(Places(self.facts.definitions, self.kernel.body))
        self.accesses: dict[tuple[Statement, Layout], Access] = {}  # so far: a loop's body is lowered several times

    def nested(self, facts: Facts, scopes: Scopes, names: Names) -> Context:
        """A lowering of scalar code in a function of its own."""
        known, axis_names = self._known.of_function(facts), self.axis_names.in_function()
        return Context(known, scopes, names, axis_names, SharedMemory(names), self.needs)

    def function_name(self, function: DeviceFunction) -> str:
        """The name of a device function."""
        return self.needs.function_name(function, self.kernel.name)

    # ------------------------------------------------------------------------------------------------ variables

    def variable_text(self, variable: Variable, point: Point | None, wide: bool) -> Text:
        """A variable at a point, None for scalars; `wide` multiplies what it is written out as in 64 bits."""
        if variable in self.instead.in_place:
            return self.instead.in_place[variable]
        state, field = self.instead.fields.get(variable, ("", ""))
        if not variable.type.is_tile:
            return Text(f"{state}.{field}" if state else self.names.variable(variable))
        if point is None:
            raise ValueError(f"{variable} is a tile and needs a point")
        if (call := self.masks.called(self, variable, point)) is not None:
            return call
        point = coarser(self.axis_names, self.facts, variable, point)
        wanted = point.pattern()
        if variable in self.facts.absorbed or self.counts_registers(variable, wanted):
            return self.speller.spell(self.facts.definitions[variable], point, wide)
        name = state or self.array_name(variable, wanted)
        if (number := only_place(self.facts, variable)) is not None:
            return Text(name, number=number)
        indices = (register_index(point, axis) for axis in wanted.array_axes())
        if variable in self.schedule.functions:
            return Text(f"{name}({', '.join(index for index in indices if index is not None)})")
        return Text(
            name
            + "".join(f"[{index}]" for index in indices if index is not None)
            + (f".{field}" if field else self.column(variable, name))
        )

    def infinity(self, negative: bool) -> str:
        """An infinity of fp32: by a name, within the kernel."""
        return self.constants.infinity(negative)

    def coordinate(self, point: Point) -> Text:
        """The coordinate of a point with one axis."""
        return coordinate(point, 0, self.axis_names)

    def first_of_vector(self, call: Call, point: Point) -> tuple[Point, str] | None:
        """Where to find once what neighbours have in common, and what to add to their remainders."""
        return first_of_vector(self.axis_names, self.facts, call, point)

    def may_stay_unused(self, variable: Variable) -> bool:
        """Whether the compiler is silent about a variable that nothing reads."""
        return variable in self._unread

    def points_to_const(self, pointer: Variable) -> bool:
        """Whether a pointer points to what is only read."""
        return not self._writes_through(pointer)

    def counts_registers(self, variable: Variable, layout: Layout) -> bool:
        """Whether an index tile numbers a thread's registers from 0 on: then the loop over these has its elements already."""
        value = self.facts.definitions.get(variable) if variable in self.facts.index else None
        if not isinstance(value, Call) or value.op != "arange" or value.attribute("start", 0) != 0:
            return False
        axes = layout.array_axes()
        return len(axes) == 1 and set(layout.axes[axes[0]]) == {REGISTER}

    def column(self, variable: Variable, name: str) -> str:
        """The subscript that picks a thread's own elements of a tile in shared memory; "" for registers.

        `name` is the array in question: what a tile in shared memory is converted to for a statement is in registers.
        """
        own = variable in self.schedule.in_shared and name == self.names.variable(variable)
        return f"[{self.axis_names.tid}]" if own else ""

    def array_name(self, variable: Variable, layout: Layout) -> str:
        """The register array that holds a tile in the given layout."""
        if (variable, layout) in self.instead.converted:
            return self.instead.converted[variable, layout]
        if variable in self.facts.index:
            layouts = self.schedule.index_layouts.get(variable, ())
            number = layouts.index(layout) if layout in layouts else 0
            return self.names.variable(variable, self._layout_words(variable, layouts)[number] if layouts else "")
        return self.names.variable(variable)

    def _layout_words(self, variable: Variable, layouts: tuple[Layout, ...]) -> list[str]:
        """What tells apart the arrays of an index tile: the tile that each is for, but for one with the plain names.

        Where that is the same tile, or none, it is the axis as well.
        """
        axes = [[self.axis_names.find(bits) for bits in layout.axes if bits] for layout in layouts]
        tiles = [dict.fromkeys(named.tile for named in each if named and named.tile != variable.name) for each in axes]
        plain = [n for n, each in enumerate(axes) if len(axes) == 1 or all(named and named.plain for named in each)][:1]
        words = ["" if number in plain else "_".join(tile) for number, tile in enumerate(tiles)]
        found: list[str] = []
        for named_axes, word in zip(axes, words, strict=True):
            if word in found:
                nouns = dict.fromkeys(PLACES[named.noun] for named in named_axes if named)
                word = "_".join(filter(None, (word, *nouns)))
            while word in found:
                word = f"{word}_second".lstrip("_")
            found.append(word)
        return found

    def declaration(self, variable: Variable, layout: Layout | None, name: str | None = None) -> Declaration:
        """The declaration of a variable without a value: type, name and register dimensions."""
        own = name or self.names.variable(variable)
        return Declaration(self.element_ctype(variable), own, sides=self.dimensions(layout))

    def element_ctype(self, variable: Variable) -> str:
        """The C++ type of a variable's elements, wherever they lie: pointers to what is only read are to `const`."""
        return ctype(variable.type, variable.type.is_pointer and self._writes_through(variable))

    def _writes_through(self, variable: Variable) -> bool:
        element = variable.type.element
        return isinstance(element, PointerType) and not element.const and variable not in self.memory.read_only

    def dimensions(self, layout: Layout | None) -> str:
        """The register dimensions of a tile, such as "[ROWS][COLS]"."""
        if layout is None:
            return ""
        return "".join(f"[{self.count(layout.axes[axis])}]" for axis in layout.array_axes())

    def count(self, bits: tuple[int, ...]) -> str:
        """The number of registers along an axis, by name where it has one."""
        named = self.axis_names.find(bits)
        return named.count if named else str(1 << bits.count(-1))

    def declares(self, statement: Statement, variable: Variable) -> bool:
        """Whether this statement is where the variable is declared."""
        here = variable not in self.scopes.hoisted and self.scopes.first.get(variable) == statement
        elsewhere = variable in self.names.array_of or variable in self.names.of_trip
        return here and variable not in self.ahead.read_ahead and not elsewhere

    def assigned_once(self, variable: Variable) -> bool:
        """Whether nothing is assigned to the variable's name after its declaration."""
        return self.facts.assignments[variable] == 1 and not self.names.is_version(variable)

    def declare(self, statement: Statement, variable: Variable, layout: Layout | None) -> tuple[Node, ...]:
        """The declaration of a statement's target, if it stands here."""
        if variable in self.schedule.in_shared or not self.declares(statement, variable):
            return ()
        return (self.declaration(variable, layout),)

    def bind_scalar(self, statement: Statement, variable: Variable, text: str, comment: str = "") -> tuple[Node, ...]:
        """`variable = text` for a scalar: a declaration, an assignment, or nothing where it is what it was."""
        name = self.names.variable(variable)
        if not self.declares(statement, variable):
            return (Assignment(name, text, comment=comment),) if text != name else ()
        return (self.defined(variable, None, text, comment=comment),)

    def defined(
        self, variable: Variable, layout: Layout | None, text: str, name: str = "", comment: str = ""
    ) -> Declaration:
        """The declaration of a variable with its value; `const` where that is its only one, but for pointers."""
        once = self.assigned_once(variable) and not variable.type.is_pointer
        return replace(self.declaration(variable, layout, name), value=text, constant=once, comment=comment)

    def temporary(self, statement: Statement, purpose: str, type_: ValueType, other: str = "") -> Variable:
        """A variable of the translator's own for one purpose of one statement, called so, or `other` if that is taken."""
        name = other if other and self.names.bearers(purpose) else purpose
        return self._own((statement, None, purpose), name, type_)

    def beside(self, statement: Statement, variable: Variable, word: str, type_: ValueType | None = None) -> Variable:
        """A variable of the translator's own beside the one of a statement that it is named after, `variable_word`."""
        return self._own((statement, variable, word), f"{variable.name}_{word}", type_ or variable.type)

    def _own(self, key: tuple[Statement, Variable | None, str], name: str, type_: ValueType) -> Variable:
        if key not in self._temporaries:
            self._temporaries[key] = Variable(name, type_, -1 - len(self._temporaries))
        return self._temporaries[key]

    # ------------------------------------------------------------------------------------- helpers, shared memory

    def use_helper(self, template: str, name: str | None = None, **values: object) -> str:
        """Asks for a helper and returns its name."""
        return self.needs.helper(template, name or template, values)

    def before_write(self, name: str) -> tuple[Node, ...]:
        """The barrier, if any, that must precede writing a shared array whose memory may still be read."""
        reason = self.shared.why_not_yet(name)
        return self.barrier(reason) if reason else ()

    def barrier(self, reason: str) -> tuple[Node, ...]:
        """A barrier of the block; everything read before it is settled."""
        self.after_barrier()
        return (Line(f"{self.block_barrier()};", reason),)

    def block_barrier(self) -> str:
        """The call that all threads of the tiles make; the loading warpgroup has no part in it."""
        if not self.schedule.rings.has_producer:  # of a single warp, the lanes meet, which is faster
            return "__syncwarp()" if self.schedule.num_threads == WARP_SIZE else "__syncthreads()"
        self.use_helper("named_barrier_sync")
        several = self.schedule.rings.teams > 1
        whose = "the teams' named barriers for themselves" if several else "named barrier of those that multiply"
        barrier = self.constants.named("CONSUMER_BARRIER", 1, whose, topic="threads")
        own = f"{barrier} + {self.axis_names.team}" if several else barrier
        return f"named_barrier_sync({own}, NUM_THREADS)"

    def launch_word(self, op: str, axis: int) -> str:
        """What `program_id` or `num_programs` along an axis is.

        Where a block runs several programs along it, the program's number has the user's name, or ours, and a parameter
        counts them.
        """
        axes = self.schedule.rings.program_axes
        if axis >= axes:
            return grid_word(op, axis)
        if op == "program_id" and axis in self.role.program_variables:
            return self.names.variable(self.role.program_variables[axis])
        name = "program" if op == "program_id" else "num_programs"
        name += f"_{'xyz'[axis]}" if axes > 1 else ""
        return self.names.once(name, name)

    def launch_int(self, op: str, axis: int) -> str:
        """The same as an int, which CUDA's words are not."""
        own = axis < self.schedule.rings.program_axes
        return self.launch_word(op, axis) if own else self.constants.grid_place(op, axis)

    def multiplying_threads(self) -> str:
        """How many threads multiply, as text: those of all teams."""
        return f"{self.num_teams()} * NUM_THREADS" if self.schedule.rings.teams > 1 else "NUM_THREADS"

    def num_teams(self) -> str:
        """The constant that counts the teams."""
        comment = "warpgroups that take turns at programs"
        return self.constants.named("NUM_TEAMS", self.schedule.rings.teams, comment, topic="threads")

    def producer_threads(self) -> str:
        """The constant that counts the loading warpgroup's threads; "" without one."""
        if not self.schedule.rings.has_producer:
            return ""
        return self.axis_names.warpgroup_size()

    def after_barrier(self) -> None:
        """Records that a barrier has been passed."""
        self.shared.barriers += 1
        self.shared.being_read.clear()
        self.order.loaded_from.clear()
        self.order.stored_to.clear()

    @cached_property
    def scalar_values(self) -> dict[Variable, tuple[Expr, ...]]:
        """What each scalar is set to, in the order of the text."""
        found: dict[Variable, tuple[Expr, ...]] = {}
        for statement in statements(self.kernel.body):
            if isinstance(statement, Assign) and len(statement.targets) == 1 and not statement.target.type.is_tile:
                found[statement.target] = (*found.get(statement.target, ()), statement.value)
        return found

    @cached_property
    def unread(self) -> frozenset[Variable]:
        """The variables whose values no text needs."""
        return self.facts.unused | self.schedule.windows.unread

    def is_unread(self, variable: Variable) -> bool:
        """Whether the text that is being written does not need a variable's value."""
        in_front = variable in self.schedule.first_loads.unread
        return variable in self.unread or (in_front and not self.around.loads_first)

    @cached_property
    def own_sums(self) -> frozenset[Statement]:
        """The dots whose sums only they have read so far."""
        return dots_with_own_sums(self.kernel.body)

    @contextmanager
    def inside(self, around: Around) -> Iterator[None]:
        """What is lowered meanwhile has that around it."""
        before, self.around = self.around, around
        try:
            yield
        finally:
            self.around = before
