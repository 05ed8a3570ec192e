"""The state of one lowering: names given, helpers and shared arrays asked for, barriers owed.

Everything that a statement's lowering needs to know about the rest of the file goes through here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from ..analysis.axis_info import axis_info
from ..analysis.facts import Facts
from ..ir.nodes import DeviceFunction, Kernel, Statement, Variable
from ..ir.types import ValueType
from ..language.dtypes import DTYPES, PointerType
from ..schedule.instructions import LANE_BITS, WARPGROUP_BITS
from ..schedule.layout import REGISTER, Layout
from ..schedule.plan import Schedule
from ..schedule.producer import SharedLines
from .names import LIBRARY_NAMES, Names
from .point import Index, Point, point_of, register_index
from .roles import Roles
from .scopes import Scopes
from .spell import Speller, Text, coordinate_speller
from .unit import Constant, Helper, Line, Loop, Node, Shared

FALLBACK_INDICES = ("p", "r", "c", "k", "m", "n")


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


STATEMENTS, LOOPS = "statements", "loops"  # areas of shared memory, whose arrays take turns


class Context:
    """See the module docstring. One per kernel."""

    def __init__(
        self,
        kernel: Kernel,
        facts: Facts,
        schedule: Schedule,
        scopes: Scopes,
        names: Names,
        roles: Roles,
        read_only: frozenset[Variable] = frozenset(),
    ) -> None:
        """Starts a lowering; `read_only` are the pointers that nothing is written through."""
        self.read_only = read_only
        self.kernel, self.facts, self.schedule, self.scopes = kernel, facts, schedule, scopes
        self.spelled = {variable: facts.definitions[variable] for variable in facts.absorbed}
        self.names, self.roles = names, roles
        self.speller = Speller(self._variable_text, coordinate_speller(roles), self.function_name, self.launch_word)
        self.speller.definitions = facts.definitions
        self.function_names: dict[int, str] = {}
        self.root = self  # the kernel's own lowering, whose names are those of the file
        self.helpers: dict[str, Helper] = {}
        self.shared: dict[tuple[int, str], Shared] = {}
        self.pending_reads: set[str] = set()  # shared arrays that some thread may still be reading
        self.in_turns = False  # whether arrays that only one statement or one loop needs share their memory
        self.turns: dict[str, tuple[str, int]] = {}  # the arrays that do: (area, which statement or loop needs them)
        self.loops_of: dict[int, int] = {}  # of staged tiles (by key) that only one loop needs, the loop
        self.loaded_from: dict[Variable, set[Layout | None]] = {}  # per pointer argument, since the last barrier
        self.pointer_roots: dict[Variable, set[Variable]] = {}  # the arguments that a pointer derives from
        self.converted: dict[tuple[Variable, Layout], str] = {}
        self.moved: dict[tuple[Variable, Layout], str] = {}  # by the source statement that is being lowered, so far
        self.written: dict[Variable, None] = {}  # pointer arguments that the kernel writes through
        self.packets: set[int] = set()  # sizes of vector accesses, in bytes
        self.structs: dict[tuple[object, ...], str] = {}
        self.stage_of: dict[Variable, str] = {}  # which stage of its ring a staged tile is read from here
        self.own_stage: dict[Variable, str] = {}  # where each thread finds what it has copied ahead for itself
        self.after_load: dict[int, tuple[Node, ...]] = {}  # what follows a load, by `id` of its statement
        self.fixed_starts: dict[tuple[Variable, int], str] = {}  # coordinates of boxes that their loop does not change
        self.in_flight: frozenset[int] = frozenset()  # dots that the loop around them waits for
        self.turned: dict[Variable, str] = {}  # what the header says of tiles that dots transpose
        self.running_on = ""  # what counts the iterations of a loop whose products run on into the next one
        self.set_up: list[Node] = []  # what the block does before the first statement
        self.role = ""  # "producer" or "consumer" where the warpgroups of a block do different things
        self.program_variable: Variable | None = None  # the user's name for the program that a block is at
        self.known_scalars: dict[str, str] = {}  # names of what is computed before the roles, by what it is computed as
        self.loop_stops: dict[Variable, str] = {}  # where loops end, by their variables, as far as it is known before
        self.policies: dict[Variable, str] = {}  # how long L2 keeps a copied tile: the variable that says so
        self.at_end: list[Node] = []  # what the role owes before the block ends
        self.before_return: tuple[Node, ...] = ()  # and what it owes wherever it ends
        self.shared_lines = SharedLines()  # source lines that both of them execute
        self.quoting = True  # whether statements stand under tags
        self._temporaries: dict[tuple[int, str], Variable] = {}
        self._widths: dict[int, str] = {}
        self._constants: dict[tuple[str, str, object], str] = {}

    def nested(self, facts: Facts, scopes: Scopes, names: Names) -> Context:
        """A lowering of scalar code in a function of its own; helpers are asked for from this one."""
        inner = Context(self.kernel, facts, self.schedule, scopes, names, self.roles)
        inner.root = self.root
        inner.helpers, inner.structs, inner.packets = self.helpers, self.structs, self.packets
        inner.speller.used_ops, inner.speller.used_helpers = self.speller.used_ops, self.speller.used_helpers
        inner.speller.used_functions = self.speller.used_functions
        return inner

    def function_name(self, function: DeviceFunction) -> str:
        """The name of a device function: the user's, unless something of ours or CUDA's has it."""
        known = self.root.function_names
        if id(function) not in known:
            own = [] if function.name in LIBRARY_NAMES else [function.name]
            known[id(function)] = self.root.names.fresh(*own, f"{function.name}_of_{self.kernel.name}")
        return known[id(function)]

    def size_of(self, state: str) -> int:
        """Bytes of a C++ type: of an element, or of a state struct (every field takes at most 8)."""
        sizes = {dtype.cuda: dtype.itemsize for dtype in DTYPES}
        if state in sizes:
            return sizes[state]
        fields = self.helpers[state].values["fields"]
        total = 0
        for field_type, _ in fields:
            size = sizes[field_type]
            total = -(-total // size) * size + size
        widest = max(sizes[field_type] for field_type, _ in fields)
        return -(-total // widest) * widest

    # ------------------------------------------------------------------------------------------------ variables

    def _variable_text(self, variable: Variable, point: Point | None, wide: bool) -> Text:
        if not variable.type.is_tile:
            return Text(self.names.variable(variable))
        if point is None:
            raise ValueError(f"{variable} is a tile and needs a point")
        if variable in self.facts.absorbed:
            return self.speller.spell(self.facts.definitions[variable], self._coarser(variable, point), wide)
        wanted = point.pattern()
        name = self.array_name(variable, wanted)
        indices = (register_index(point, axis) for axis in wanted.array_axes())
        if variable in self.schedule.recomputed.variables:
            return Text(f"{name}({', '.join(index for index in indices if index is not None)})")
        return Text(
            name + "".join(f"[{index}]" for index in indices if index is not None) + self.column(variable, name)
        )

    def column(self, variable: Variable, name: str) -> str:
        """The subscript that picks a thread's own elements of a tile in shared memory; "" for registers.

        `name` is the array in question: what a tile in shared memory is converted to for a statement is in registers.
        """
        own = variable in self.schedule.in_shared and name == self.names.variable(variable)
        return f"[{self.roles.tid}]" if own else ""

    def _coarser(self, variable: Variable, point: Point) -> Point:
        """The point at which to test a mask: the start of the vector, where the whole vector shares the answer."""
        if variable.type.is_pointer or not variable.type.dtype.is_bool() or point.layout.rank != variable.type.rank:
            return point
        constancy = axis_info(self.facts.definitions[variable], self.facts.known).constancy
        indices = list(point.indices)
        for axis, index in enumerate(indices):
            role = self.roles.find(point.layout.axes[axis])
            whole = role is not None and role.run > 1 and constancy[axis] % role.run == 0 and index.text == role.index
            if whole and role is not None:
                indices[axis] = Index(
                    f"{index.text} / {role.vector} * {role.vector}", f"{index.text} / {role.vector}", role.vector
                )
        return replace(point, indices=tuple(indices))

    def array_name(self, variable: Variable, layout: Layout) -> str:
        """The register array that holds a tile in the given layout."""
        if (variable, layout) in self.converted:
            return self.converted[variable, layout]
        if variable in self.facts.index:
            layouts = self.schedule.index_layouts.get(variable, ())
            number = layouts.index(layout) if layout in layouts else 0
            return self.names.variable(variable, "" if number == 0 else self._layout_word(layout, number))
        return self.names.variable(variable)

    def _layout_word(self, layout: Layout, number: int) -> str:
        roles = [self.roles.find(bits) for bits in layout.axes if bits]
        words = [role.noun for role in roles if role is not None]
        return "_".join([*words, *("other" for _ in range(number - 1))]) or "again"

    def declaration(self, variable: Variable, layout: Layout | None, name: str | None = None) -> str:
        """The declarator of a variable: type, name and register dimensions."""
        return f"{self.element_ctype(variable)} {name or self.names.variable(variable)}{self.dimensions(layout)}"

    def element_ctype(self, variable: Variable) -> str:
        """The C++ type of a variable's elements, wherever they lie: pointers to what is only read are to `const`."""
        return ctype(variable.type, variable.type.is_pointer and self._writes_through(variable))

    def _writes_through(self, variable: Variable) -> bool:
        element = variable.type.element
        return isinstance(element, PointerType) and not element.const and variable not in self.read_only

    def dimensions(self, layout: Layout | None) -> str:
        """The register dimensions of a tile, such as "[ROWS][COLS]"."""
        if layout is None:
            return ""
        return "".join(f"[{self.count(layout.axes[axis])}]" for axis in layout.array_axes())

    def count(self, bits: tuple[int, ...]) -> str:
        """The number of registers along an axis, by name where it has one."""
        role = self.roles.find(bits)
        return role.count if role else str(1 << bits.count(-1))

    def declares(self, statement: Statement, variable: Variable) -> bool:
        """Whether this statement is where the variable is declared."""
        return variable not in self.scopes.hoisted and self.scopes.first.get(variable) == id(statement)

    def declare(self, statement: Statement, variable: Variable, layout: Layout | None) -> tuple[Node, ...]:
        """The declaration of a statement's target, if it stands here."""
        if variable in self.schedule.in_shared or not self.declares(statement, variable):
            return ()
        return (Line(f"{self.declaration(variable, layout)};"),)

    def bind_scalar(self, statement: Statement, variable: Variable, text: str) -> tuple[Node, ...]:
        """`variable = text` for a scalar: a declaration or an assignment."""
        name = self.names.variable(variable)
        if not self.declares(statement, variable):
            return (Line(f"{name} = {text};"),)
        declarator = self.declaration(variable, None)
        once = self.facts.assignments[variable] == 1 and not variable.type.is_pointer
        return (Line(f"{'const ' if once else ''}{declarator} = {text};"),)

    def temporary(self, statement: int, purpose: str, type_: ValueType) -> Variable:
        """A variable of the translator's own for one purpose of one statement."""
        key = (statement, purpose)
        if key not in self._temporaries:
            self._temporaries[key] = Variable(purpose, type_, -1 - len(self._temporaries))
        return self._temporaries[key]

    def width_constant(self, width: int, base: str) -> str:
        """The constant for vectors of another width than their axis's run."""
        name = self._widths.get(width)
        if name is None:
            words = {2: "PAIR", 4: "QUAD", 8: "OCT", 16: "HEX"}
            name = self._widths[width] = self.names.fresh(f"{words[width]}_VEC")
            self.roles.constants.append(Constant(name, str(width), "elements of one access"))
        return name

    # ------------------------------------------------------------------------------- places and constants of dots

    def constant(self, name: str, value: int, comment: str, text: str = "", topic: str = "tiles", *others: str) -> str:
        """The name of a constant; one of the `others` where the name already stands for another value.

        `text` says how the value follows from other constants; `topic` where in the file it stands.
        """
        key = ("constant", name, value)
        if key not in self._constants:
            self._constants[key] = self.names.fresh(name, *others, f"NEXT_{name}", f"OTHER_{name}", f"FURTHER_{name}")
            self.roles.constants.append(Constant(self._constants[key], text or str(value), comment, topic=topic))
        return self._constants[key]

    def thread_place(self, name: str, text: str, comment: str = "") -> str:
        """A variable of the prologue that says where this thread stands."""
        key = ("place", name, text)
        if key not in self._constants:
            place = self._constants[key] = self.names.fresh(name, f"{name}_too", f"other_{name}")
            self.roles.places.append((place, Line(f"const int {place} = {text};", comment)))
        return self._constants[key]

    def lane(self) -> str:
        """The thread's number within its warp."""
        return self.roles.place_of("lane")

    def warp_place(self, name: str, axis: tuple[int, ...], comment: str) -> str:
        """The first coordinate of this warp along an axis of an accumulator."""
        text = self.roles.thread_text(tuple(bit if bit >= LANE_BITS else REGISTER for bit in axis))
        return self.thread_place(name, text, comment) if text != "0" else text

    def warpgroup(self, bits: list[int]) -> str:
        """The warpgroup's number, counted by the given thread bits."""
        size = self.warpgroup_size()
        low = bits[0] - WARPGROUP_BITS
        text = f"{self.roles.tid} / {size}" + (f" / {1 << low}" if low else "")
        if bits[-1] + 1 < self.roles.num_threads.bit_length() - 1:
            text += f" % {1 << len(bits)}"
        return self.thread_place("warpgroup", text)

    def warpgroup_size(self) -> str:
        """The constant that counts the threads of a warpgroup."""
        return self.constant("WARPGROUP_SIZE", 1 << WARPGROUP_BITS, "threads", topic="threads")

    def distinct_helper(self, template: str, name: str, values: dict[str, object]) -> str:
        """A helper whose name is its own where another with the same name has other values."""
        word = values.get("a_type") or values.get("acc")
        for candidate in (name, f"{name}_{word}", f"{name}_next", f"{name}_other"):
            known = self.helpers.get(candidate)
            if known is None or known.values == values:
                return self.use_helper(template, candidate, **values)
        raise ValueError(f"no name left for {name}")

    # ---------------------------------------------------------------------------------------------------- loops

    def axis_indices(self, layout: Layout) -> list[str]:
        """A loop variable for every axis of a layout, all different."""
        chosen: list[str] = []
        for axis, bits in enumerate(layout.axes):
            role = self.roles.find(bits)
            wanted = role.index if role else FALLBACK_INDICES[axis % len(FALLBACK_INDICES)]
            choices = (wanted, *map(self.names.shared_index, FALLBACK_INDICES))
            chosen.append(next(choice for choice in choices if choice not in chosen))
        return chosen

    def each_register(self, layout: Layout, body: Callable[[Point], tuple[Node, ...]]) -> tuple[Node, ...]:
        """Unrolled loops over all registers of a tile around `body` at each element."""
        names = self.axis_indices(layout)
        indices = tuple(
            Index(names[axis] if layout.registers(axis) > 1 else "0") for axis in range(layout.rank)
        )  # fmt: skip
        nodes = body(point_of(layout, indices))
        for axis in reversed(range(layout.rank)):
            if layout.registers(axis) > 1:
                count = self.count(layout.axes[axis])
                header = f"for (int {names[axis]} = 0; {names[axis]} < {count}; ++{names[axis]})"
                nodes = (Loop(header, nodes, unroll=True),)
        return nodes

    # ------------------------------------------------------------------------------------- helpers, shared memory

    def use_helper(self, template: str, name: str | None = None, **values: object) -> str:
        """Asks for a helper and returns its name."""
        name = name or template
        self.helpers.setdefault(name, Helper(template, name, values))
        return name

    def scratch(self, owner: int, purpose: str, shared: Shared) -> Shared:
        """A shared array for one purpose of a statement or of a tile (by its key), however often that is lowered."""
        if shared.name in self.turns and (owner, purpose) not in self.shared:
            area, place = self.turns[shared.name]
            mates = [one.turn for one in self.shared.values() if self.turns.get(one.name) == (area, place)]
            turn = mates[0] if mates else self.names.fresh(f"for_{shared.name.removesuffix('_shared')}")
            shared = replace(shared, turn=turn, area=area)
        return self.shared.setdefault((owner, purpose), shared)

    def scratch_name(self, statement: int, purpose: str, *choices: str, lasting: bool = False) -> str:
        """The name of an array of a statement; one that is `lasting` is still in use when its statement is over."""
        if (statement, purpose) in self.shared:
            return self.shared[statement, purpose].name
        name = self.names.fresh(*choices)
        if self.in_turns and not lasting:
            self.turns[name] = (STATEMENTS, statement)
        return name

    def tile_name(self, variable: Variable) -> str:
        """The name of the shared array of a staged tile."""
        name = self.names.variable(variable)
        if variable.key in self.loops_of:
            self.turns[name] = (LOOPS, self.loops_of[variable.key])
        return name

    def before_write(self, name: str) -> tuple[Node, ...]:
        """The barrier, if any, that must precede writing a shared array whose memory may still be read."""
        if name in self.pending_reads:
            return self.barrier(f"everyone has read {name} before it is written again")
        area, own = self.turns.get(name, ("", 0))
        places = {read: self.turns[read] for read in self.pending_reads if read in self.turns}
        others = [read for read, (other, place) in places.items() if other == area and place != own]
        if others:
            return self.barrier(f"everyone has read {min(others)}, whose memory {name} takes")
        return ()

    def barrier(self, reason: str) -> tuple[Node, ...]:
        """A barrier of the block; everything read before it is settled."""
        self.after_barrier()
        return (Line(f"{self.block_barrier()};", reason),)

    def block_barrier(self) -> str:
        """The call that all threads of the tiles make; the loading warpgroup has no part in it."""
        if not self.schedule.rings.has_producer:
            return "__syncthreads()"
        self.use_helper("named_barrier_sync")
        barrier = self.constant("CONSUMER_BARRIER", 1, "named barrier of those that multiply", topic="threads")
        return f"named_barrier_sync({barrier}, NUM_THREADS)"

    def program(self) -> str:
        """The number of the program that a block of a persistent kernel is at: the user's name for it, or ours."""
        if self.program_variable is not None:
            return self.names.variable(self.program_variable)
        return self.names.once("program", "program")

    def num_programs(self) -> str:
        """The parameter of a persistent kernel that counts the programs."""
        return self.names.once("num_programs", "num_programs")

    def launch_word(self, op: str, axis: int) -> str:
        """What `program_id` or `num_programs` along an axis is."""
        if self.schedule.rings.persistent and axis == 0:
            return self.program() if op == "program_id" else self.num_programs()
        return f"{'blockIdx' if op == 'program_id' else 'gridDim'}.{'xyz'[axis]}"

    def producer_threads(self) -> str:
        """The constant that counts the loading warpgroup's threads; "" without one."""
        if not self.schedule.rings.has_producer:
            return ""
        return self.warpgroup_size()

    def after_barrier(self) -> None:
        """Records that a barrier has been passed."""
        self.pending_reads.clear()
        self.loaded_from.clear()

    @contextmanager
    def conversions(self, entries: dict[tuple[Variable, Layout], str]) -> Iterator[None]:
        """Makes converted tiles visible to one statement."""
        before = dict(self.converted)
        self.converted.update(entries)
        try:
            yield
        finally:
            self.converted = before
