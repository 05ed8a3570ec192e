"""The state of one lowering: names given, helpers and shared arrays asked for, barriers owed.

Everything that a statement's lowering needs to know about the rest of the file goes through here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import PurePath

from ..analysis.facts import Facts
from ..analysis.meeting import Places
from ..analysis.own_sums import dots_with_own_sums
from ..hardware import LANE_BITS, WARP_SIZE, WARPGROUP_BITS
from ..ir.c_names import is_library_name
from ..ir.nodes import Assign, Call, DeviceFunction, Expr, For, Kernel, Statement, Variable
from ..ir.types import ValueType
from ..ir.walk import readers_of, statements
from ..language.dtypes import PointerType
from ..schedule.accesses.access import Access
from ..schedule.plan import Schedule
from ..schedule.tiles.layout import REGISTER, Layout
from .accesses.named_masks import NamedMasks, Spelling
from .accesses.vector_starts import coarser, first_of_vector
from .shared.memory import SharedMemory
from .state import AccessOrder, Around, BoxCopies, LoadedAhead, MemoryFacts, Progress, StatementNotes, WarpRole
from .text.axis_names import MOST_BARE, PLACES, AxisNames
from .text.names import Names
from .text.needs import Needs, Used
from .text.operators import Text
from .text.point import Point, coordinate, register_index
from .text.scopes import Scopes
from .text.spell import Arithmetic, Speller
from .text.unit import Assignment, Constant, Declaration, Line, Node, Place

NO_MASKS: Mapping[Variable, Spelling] = {}


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
    """See the module docstring. One per kernel."""

    def __init__(
        self,
        kernel: Kernel,
        facts: Facts,
        schedule: Schedule,
        scopes: Scopes,
        names: Names,
        axis_names: AxisNames,
        shared: SharedMemory,
        memory: MemoryFacts,
        arithmetic: Arithmetic,
        given: Set[Variable] = frozenset(),
        named_masks: Mapping[Variable, Spelling] = NO_MASKS,
        root: Context | None = None,
    ) -> None:
        """Starts a lowering: of a kernel, or within `root` of a function that stands in its file.

        `given` are the names of results that are written under them at once, `named_masks` what an earlier one found.
        """
        self.kernel, self.facts, self.schedule, self.scopes = kernel, facts, schedule, scopes
        self.spelled = {variable: facts.definitions[variable] for variable in facts.absorbed}
        self.names, self.axis_names, self.given = names, axis_names, given
        self.masks = NamedMasks(facts, named_masks)
        counted = {s.variable for s in statements(kernel.body) if isinstance(s, For)}
        self._unread = counted.union(facts.index, (parameter.variable for parameter in kernel.parameters))
        used = root.speller.used if root else Used()
        self.speller: Speller = Speller(facts.definitions, self.spelled, arithmetic, used, words=self)
        self.readers: dict[Variable, list[Statement]] = root.readers if root else readers_of(kernel.body)
        self.root = root or self  # the kernel's own lowering, whose names are those of the file
        self.needs: Needs = root.needs if root else Needs()
        self.shared, self.memory = shared, memory
        self.order = AccessOrder(Places(facts.definitions, kernel.body))
        self.around, self.progress = Around(), Progress()
        self.notes, self.ahead, self.box_copies = StatementNotes(), LoadedAhead(), BoxCopies()
        self.role = WarpRole()
        self.accesses: dict[tuple[Statement, Layout], Access] = {}  # so far: a loop's body is lowered several times
        self.converted: dict[tuple[Variable, Layout], str] = {}
        self.field_of: dict[Variable, tuple[str, str]] = {}  # (state, name) of what is read as a field
        self.moved: dict[tuple[Variable, Layout], str] = {}  # by the source statement that is being lowered, so far
        self.at_once: Variable | None = None  # what the statement being lowered loads for the next one, without a name
        self.in_place: dict[Variable, Text] = {}  # the loads of such
        self.quoting = True  # whether statements stand under tags
        self.said: dict[str, Statement] = {}  # the statement that explains the tests of a limit for whole vectors
        self._temporaries: dict[tuple[Statement, Variable | None, str], Variable] = {}
        self._widths: dict[int, str] = {}
        self._constants: dict[tuple[str, str, object], str] = {}

    def nested(self, facts: Facts, scopes: Scopes, names: Names) -> Context:
        """A lowering of scalar code in a function of its own; helpers are asked for from this one."""
        memory, arithmetic = MemoryFacts(), self.speller.arithmetic
        axis_names, shared = self.axis_names.in_function(), SharedMemory(names)
        return Context(
            self.kernel, facts, self.schedule, scopes, names, axis_names, shared, memory, arithmetic, root=self.root
        )

    def function_name(self, function: DeviceFunction) -> str:
        """The name of a device function: the user's, unless something of ours or CUDA's has it; then with where it is from."""
        known = self.needs.functions
        if function not in known:
            own = [] if is_library_name(function.name) else [function.name]
            where = re.sub(r"\W", "_", PurePath(function.origin.file).stem) or self.kernel.name
            known[function] = self.root.names.fresh(*own, f"{function.name}_of_{where}")
        return known[function]

    # ------------------------------------------------------------------------------------------------ variables

    def variable_text(self, variable: Variable, point: Point | None, wide: bool) -> Text:
        """A variable at a point, None for scalars; `wide` multiplies what it is written out as in 64 bits."""
        if variable in self.in_place:
            return self.in_place[variable]
        state, field = self.field_of.get(variable, ("", ""))
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
        if (variable, layout) in self.converted:
            return self.converted[variable, layout]
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

    def width_constant(self, width: int) -> str:
        """The constant for vectors of another width than their axis's run."""
        name = self._widths.get(width)
        if name is None:
            words = {2: "PAIR", 4: "QUAD", 8: "OCT", 16: "HEX"}
            name = self._widths[width] = self.names.fresh(f"{words[width]}_VEC")
            self.axis_names.constants.append(Constant(name, str(width), "elements of one access"))
        return name

    # -------------------------------------------------------------------------------------- constants and places

    def constant(
        self, name: str, value: int, comment: str, text: str = "", topic: str = "tiles", *others: str, further: str = ""
    ) -> str:
        """The name of a constant; one of the `others` where the name already stands for another value.

        `text` says how the value follows from other constants; `topic` where in the file it stands; `further` is the comment
        of one with another name, if it has its own.
        """
        key = ("constant", name, value)
        if key not in self._constants:
            own = self._constants[key] = self.names.fresh(name, *others)
            said = comment if own == name else further or comment
            self.axis_names.constants.append(Constant(own, text or str(value), said, topic=topic))
        return self._constants[key]

    def large(self, name: str, number: int, comment: str) -> str:
        """A number, by a constant of that name where it is a large one."""
        return str(number) if number <= MOST_BARE else self.constant(name, number, comment)

    def thread_place(self, name: str, text: str, comment: str = "", subject: str = "", *others: str) -> str:
        """A variable of the prologue that says where this thread stands, by a name or one of `others`; see `Place`."""
        key = ("place", name, text)
        if key not in self._constants:
            place = self._constants[key] = self.names.fresh(name, *others)
            self.axis_names.places.append(Place(place, text, comment, subject))
        return self._constants[key]

    def lane(self) -> str:
        """The thread's number within its warp."""
        return self.axis_names.place_of("lane")

    def warp_place(self, name: str, axis: tuple[int, ...], noun: str, tile: str) -> str:
        """The first coordinate of this warp along an axis of an accumulator."""
        text = self.axis_names.thread_text(tuple(bit if bit >= LANE_BITS else REGISTER for bit in axis), noun).text
        if text == "0":
            return text
        subject = "where the warp's part begins"
        return self.thread_place(name, text, f"the first {noun} of the warp's part", subject, f"{tile}_{name}")

    def warpgroup(self, bits: list[int]) -> str:
        """The warpgroup's number, counted by the given thread bits."""
        size = self.warpgroup_size()
        low = bits[0] - WARPGROUP_BITS
        text = f"{self.axis_names.tid} / {size}" + (f" / {1 << low}" if low else "")
        if bits[-1] + 1 < self.axis_names.num_threads.bit_length() - 1:
            text += f" % {1 << len(bits)}"
        return self.thread_place("warpgroup", text)

    def warpgroup_size(self) -> str:
        """The constant that counts the threads of a warpgroup."""
        return self.constant("WARPGROUP_SIZE", 1 << WARPGROUP_BITS, "threads", topic="threads")

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
        barrier = self.constant("CONSUMER_BARRIER", 1, "named barrier of those that multiply", topic="threads")
        return f"named_barrier_sync({barrier}, NUM_THREADS)"

    def launch_word(self, op: str, axis: int) -> str:
        """What `program_id` or `num_programs` along an axis is.

        Where a block runs several programs along it, the program's number has the user's name, or ours, and a parameter
        counts them.
        """
        axes = self.schedule.rings.program_axes
        if axis >= axes:
            return f"{'blockIdx' if op == 'program_id' else 'gridDim'}.{'xyz'[axis]}"
        if op == "program_id" and axis in self.role.program_variables:
            return self.names.variable(self.role.program_variables[axis])
        name = "program" if op == "program_id" else "num_programs"
        name += f"_{'xyz'[axis]}" if axes > 1 else ""
        return self.names.once(name, name)

    def producer_threads(self) -> str:
        """The constant that counts the loading warpgroup's threads; "" without one."""
        if not self.schedule.rings.has_producer:
            return ""
        return self.warpgroup_size()

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

    @contextmanager
    def conversions(self, entries: dict[tuple[Variable, Layout], str]) -> Iterator[None]:
        """Makes converted tiles visible to one statement."""
        before = dict(self.converted)
        self.converted.update(entries)
        try:
            yield
        finally:
            self.converted = before
