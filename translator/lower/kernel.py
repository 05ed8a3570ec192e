"""From decisions to the render model: one kernel, its facts and its schedule become a `Unit`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ..analysis.facts import Facts
from ..analysis.origins import Origins
from ..analysis.overflow import wrapping_calls
from ..artifact import shared_declaration
from ..hardware import REGISTER_FILE, REGISTER_STEP
from ..ir.c_names import MATH_NAMES, can_be_global
from ..ir.nodes import (
    NO_COMMENTS,
    Assign,
    Call,
    Expr,
    For,
    Kernel,
    Literal,
    Note,
    ParameterComments,
    Statement,
    Variable,
)
from ..ir.symbols import Name
from ..ir.types import ValueType, symbol_of
from ..ir.walk import expressions, statements, subexpressions
from ..language.dtypes import DType, PointerType, float32, float64, int32
from ..ops.promotion import literal_type
from ..ops.registry import OPS
from ..schedule.accesses.agreed_loads import agreed_loads
from ..schedule.accesses.common_tests import loads_with_common_tests
from ..schedule.accesses.pointers import lasting_loads, read_only_pointers
from ..schedule.plan import Schedule
from ..schedule.tiles.layout import Layout
from .accesses.index_tiles import settle_index_tiles
from .assumptions import of_program, of_thread
from .context import Context
from .functions import lower_function
from .given_names import given_names
from .shared.memory import SharedMemory
from .shared.plan import names_of_arrays, plan_shared, shared_alignment
from .shared.turns import Sharing, Turns, find_turns
from .staging.made_maps import count_map_slots
from .staging.warp_roles import lower_body
from .state import MemoryFacts
from .static_loops import rolled
from .text.axis_names import UNNAMED_TILE, AxisNames
from .text.header import declared, header_fields, needed_architecture, reads_through_proxy, title
from .text.literals import literal_text
from .text.local_names import with_plain_names
from .text.names import Names, entry_name
from .text.repeats import with_parts_named
from .text.scopes import Scopes, find_scopes
from .text.spell import WRAPS, Arithmetic
from .text.stored import with_arrays_in_common
from .text.unit import (
    COMMENT_ROOM,
    Blank,
    Constant,
    Function,
    Line,
    Node,
    Shared,
    Unit,
    every,
    rewritten,
    texts_of,
    words,
)
from .versions import versions_of_one_array

TYPE_HEADERS = {"fp16": "cuda_fp16.h", "bf16": "cuda_bf16.h", "fp8e5": "cuda_fp8.h", "fp8e4nv": "cuda_fp8.h"}
NEGATIVE_INFINITY = "__int_as_float(0xff800000)"
INFINITIES = re.compile(r"__int_as_float\(0x[7f]f800000\)")
LAUNCH_WORD = re.compile(r"static_cast<int>\((blockIdx|gridDim)\.([xyz])\)")


def lower_kernel(kernel: Kernel, facts: Facts, schedule: Schedule, sharing: Sharing = Sharing.NONE) -> Unit:
    """Writes down, as plain values, everything that the generated file says.

    `sharing` is which arrays share their memory with others, at the price of barriers.

    Raises:
      OutOfResources: when the shared arrays have no room.
    """
    context = _context(kernel, facts, schedule, sharing)
    names, settled = context.names, facts.index | facts.definitions.keys()
    with_loops = rolled(lower_body(context, kernel), names, context.shared.arrays.values())
    context.shared.keep(with_loops.shared)
    body = settle_index_tiles(with_loops.body, lambda name: names.bearers(name) <= settled)
    body = with_plain_names(with_arrays_in_common(body, context.notes.stored), names.wanted)
    body, infinities = _name_infinities(context, _name_launch_words(context, body))
    functions = _functions(context, kernel)
    for helper in context.speller.used.helpers:
        if helper in WRAPS:
            context.use_helper("wrapping", helper, sign=WRAPS[helper])
        else:
            context.use_helper(helper)
    static, dynamic, dynamic_bytes = plan_shared(context, kernel)
    count_map_slots(context, dynamic_bytes)
    prologue, (bounds, threads) = _prologue(context, dynamic, body), _bounds(context)
    name = entry_name(kernel.name, _constants(kernel))
    unit = Unit(
        title=title(kernel, name),
        docstring=kernel.docstring,
        header=header_fields(context, dynamic_bytes, words(body)),
        includes=_includes(kernel),
        constants=(*_user_constants(context, words((*prologue, *body))), *context.axis_names.constants),
        helpers=tuple(context.needs.helpers.values()),
        functions=functions,
        dynamic_shared=dynamic,
        dynamic_bytes=dynamic_bytes,
        dynamic_alignment=shared_alignment(dynamic),
        static_shared=static,
        packets=tuple(sorted(context.needs.packets, reverse=True)),
        name=name,
        parameters=(
            *(context.declaration(parameter.variable, None) for parameter in kernel.parameters),
            *(f"int {context.launch_word('num_programs', axis)}" for axis in range(schedule.rings.program_axes)),
            *(f"const __grid_constant__ TensorMap {tensor_map.name}" for tensor_map in schedule.rings.encoded),
        ),
        bounds=bounds,
        threads=threads,
        body=with_parts_named((*prologue, *infinities, Blank(), *body)),
        needs=needed_architecture(context),
        proxy_reads=reads_through_proxy(context),
        unequal=frozenset(context.needs.unequal | with_loops.unequal),
        parameter_comments=_parameter_comments(kernel),
    )
    return unit


def _parameter_comments(kernel: Kernel) -> tuple[ParameterComments, ...]:
    """The user's, by parameter; a descriptor's sides and strides stand in the line of its address."""
    names = (parameter.variable.name for parameter in kernel.parameters)
    return tuple(kernel.parameter_comments.get(name, NO_COMMENTS) for name in names)


def _name_launch_words(context: Context, body: tuple[Node, ...]) -> tuple[Node, ...]:
    """The body with a name for a program's place in the grid, and for the grid's sides, where it computes with them."""
    found = {word for node in every(body) for text in texts_of(node) for word in LAUNCH_WORD.findall(text)}
    known = {"blockIdx": ("program", "the program's place"), "gridDim": ("num_programs", "how many there are")}
    names = {
        (word, axis): context.thread_place(f"{known[word][0]}_{axis}", f"{word}.{axis}", "", known[word][1])
        for word, axis in sorted(found)
    }
    return rewritten(body, lambda text: LAUNCH_WORD.sub(lambda match: names[match[1], match[2]], text))


def _name_infinities(context: Context, body: tuple[Node, ...]) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """The body with names for infinities, which CUDA spells by their bits, and what declares these."""
    names: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        word = "neg_inf" if match[0] == NEGATIVE_INFINITY else "inf"
        return names.setdefault(match[0], names.get(match[0]) or context.names.fresh(word, f"the_{word}"))

    body = rewritten(body, lambda text: INFINITIES.sub(named, text))
    return body, tuple(Line(f"const float {name} = {text};") for text, name in names.items())


def _bounds(context: Context) -> tuple[str, str]:
    """The qualifier that bounds the kernel's registers: as the user says, or by the threads that a multiprocessor holds.

    And the number of threads as it has that; "" where it has none.

    CUDA takes one of the two, and the compiler's own flag counts for neither.
    """
    if context.schedule.options.maxnreg is not None:
        return f"__maxnreg__({context.schedule.options.maxnreg})", ""
    threads = " + ".join(filter(None, ("NUM_THREADS", context.producer_threads())))
    blocks = context.schedule.blocks_per_multiprocessor
    if blocks is None:
        return f"__launch_bounds__({threads})", threads
    if blocks > 1:
        most = REGISTER_FILE // (blocks * context.schedule.launch_threads) // REGISTER_STEP * REGISTER_STEP
        comment = f"per multiprocessor: {most} registers a thread"
        blocks_word = context.constant("MIN_BLOCKS", blocks, comment, topic="threads")
        return f"__launch_bounds__({threads}, {blocks_word})", threads
    return f"__launch_bounds__({threads}, {blocks})", threads


def _context(kernel: Kernel, facts: Facts, schedule: Schedule, sharing: Sharing) -> Context:
    """What a lowering starts from: the names that are taken, and the arrays that are known."""
    entry = entry_name(kernel.name, _constants(kernel))
    names = Names([entry, *_constants(kernel), *_variable_names(kernel)], _called(kernel))
    axis_names = AxisNames(_layouts(kernel, schedule), names, schedule.options.num_warps, schedule.rings.has_producer)
    scopes = _scopes(kernel, facts, schedule, names)
    given = given_names(kernel, facts, schedule, scopes)
    _take_names(names, kernel, schedule, given)
    names.array_of.update(versions_of_one_array(kernel, facts, schedule, scopes, {*given, *given.values()}))
    context = Context(
        kernel,
        facts,
        schedule,
        scopes,
        names,
        axis_names,
        SharedMemory(names, _turns(kernel, facts, schedule, sharing)),
        MemoryFacts(
            read_only_pointers(kernel),
            Origins(kernel.body),
            lasting_loads(kernel),
            agreed_loads(kernel),
            loads_with_common_tests(kernel, facts),
        ),
        Arithmetic(wrapping_calls(kernel, facts.definitions), _doubles(kernel)),
        frozenset(given.values()),
    )
    for variable in sorted(schedule.in_shared, key=lambda v: v.key):
        context.shared.arrays[variable, "tile"] = _tile_in_shared(context, variable)
    return context


def _turns(kernel: Kernel, facts: Facts, schedule: Schedule, sharing: Sharing) -> Turns | None:
    """The turns of arrays: of staged tiles, and of what threads load ahead for themselves.

    Beside tensor copies there are none: the loading warpgroup loads for the next loop while this one is under way.
    """
    rings = schedule.rings.rings
    ahead = {tile for ring in rings if ring.kind == "tma" for tile in ring.tiles}
    tiles = [tile for tile in schedule.staged if tile not in ahead]
    own = [tile for ring in rings if ring.kind != "tma" for tile in ring.own]
    return find_turns(kernel, facts, (*tiles, *own), rings, sharing)


def _take_names(names: Names, kernel: Kernel, schedule: Schedule, given: dict[Variable, Variable]) -> None:
    """Has what the file shows to others keep its names, and what others are written under have theirs."""
    for name in _constants(kernel):
        names.reserve(name)
    for tensor_map in schedule.rings.maps:
        names.reserve(tensor_map.name)
    for parameter in kernel.parameters:
        names.variable(parameter.variable)
    for tile, first in schedule.rings.twins.items():
        if tile.name == first.name:
            names.share(tile, first)
    for result, target in given.items():
        names.share(result, target)


def _called(kernel: Kernel) -> frozenset[str]:
    """The functions of CUDA's that a kernel's operations are spelled with."""
    found = set(MATH_NAMES) if any(dtype.name == "fp64" for dtype in _dtypes(kernel)) else set()
    for part in _parts(kernel):
        if isinstance(part, Call) and part.op in OPS:
            found.update(re.findall(r"\b([A-Za-z]\w*)\(", OPS[part.op].spelling(part.args[0].type.element)))
    return frozenset(found)


def _scopes(kernel: Kernel, facts: Facts, schedule: Schedule, names: Names) -> Scopes:
    """Where variables are declared; `names` learns which of them may share one: not those of arrays in shared memory."""
    scopes = find_scopes(kernel.body, {variable: facts.definitions[variable] for variable in facts.absorbed})
    around = {one.variable for one in schedule.rings.ahead}  # declared in front of the loop that assigns them
    scopes = replace(scopes, blocks={v: path[:-1] if v in around else path for v, path in scopes.blocks.items()})
    registers = set(scopes.blocks) - set(schedule.staged) - set(schedule.in_shared)
    names.apart = lambda one, other: {one, other} <= registers and scopes.apart(one, other)
    return scopes


def written_parameters(kernel: Kernel) -> tuple[str, ...]:
    """Names of the pointer parameters that the kernel writes, in order."""
    read_only = read_only_pointers(kernel)
    pointers = (p.variable for p in kernel.parameters if p.variable.type.is_pointer)
    return tuple(variable.name for variable in pointers if variable not in read_only)


def _variable_names(kernel: Kernel) -> list[str]:
    names = [p.variable.name for p in kernel.parameters]
    for statement in statements(kernel.body):
        names += [variable.name for variable in getattr(statement, "targets", ())]
        names += [statement.variable.name] if isinstance(statement, For) else []
        names += [statement.trip.loop.name] if isinstance(statement, Note) and statement.trip is not None else []
    return names


def _layouts(kernel: Kernel, schedule: Schedule) -> list[tuple[Layout, tuple[int, ...], str]]:
    """Every layout of the schedule with a tile that has it, in source order.

    Behind them stand those of loads for a next iteration, and of indices that are tiles of several axes.
    """
    found: list[tuple[Layout, tuple[int, ...], str]] = []
    of_indices: list[tuple[Layout, tuple[int, ...], str]] = []
    loads = [s for s in statements(kernel.body) if isinstance(s, Assign) and s.targets[0] in schedule.rings.for_next]
    early = set(loads)
    for statement in (*(s for s in statements(kernel.body) if s not in early), *loads):
        for target in getattr(statement, "targets", ()):
            for layout in schedule.index_layouts.get(target, ()):
                (found if layout.rank == 1 else of_indices).append((layout, target.type.shape, target.name))
            if target in schedule.layouts:
                layout = schedule.layouts[target]
                found.append((layout, target.type.shape, _user_name(target, layout, schedule)))
            copy = schedule.warp_copies.get(target) or schedule.block_copies.get(target)
            if copy is not None:
                found.append((copy.layout, target.type.shape, f"{target.stem}_ahead"))
        own = schedule.statement_layouts.get(statement)
        if own is not None:
            found.append((own, _tile_shape(statement), UNNAMED_TILE))
        for conversion in schedule.conversions.get(statement, ()):
            found.append((conversion.layout, conversion.variable.type.shape, conversion.variable.name))
    return found + of_indices


def _user_name(tile: Variable, layout: Layout, schedule: Schedule) -> str:
    """What a layout is called after: of a tile as it was loaded, the user's name, if the user's tile has the same layout."""
    same = {schedule.layouts[other] for other in schedule.layouts if other.name == tile.stem}
    return tile.stem if same == {layout} else tile.name


def _tile_shape(statement: Statement) -> tuple[int, ...]:
    for expr in expressions(statement):
        for arg in expr.args if isinstance(expr, Call) else ():
            if arg.type.is_tile:
                return arg.type.shape
    return ()


def _functions(context: Context, kernel: Kernel) -> tuple[Function, ...]:
    """The functions that the text calls; a function stands above those that call it."""
    written: list[Function] = []
    for function in reversed(kernel.functions):
        if function in context.speller.used.functions:
            written.append(lower_function(context, function))
    return tuple(reversed(written))


def _constants(kernel: Kernel) -> dict[str, Any]:
    """The compile-time values that have names in the text."""
    return {**kernel.numbers, **kernel.constants}


def _user_constants(context: Context, mentioned: frozenset[str]) -> list[Constant]:
    """Constexpr parameters that are numbers, under their own names: sides of tiles first, strides that are 1 last.

    `mentioned` are the names in the kernel's text. Where the user says what a parameter is, that stands for our own words.
    """
    constants, sides, shown = [], {}, declared(context, mentioned)
    above: tuple[str, ...] = ()
    for name, value in _constants(context.kernel).items():
        users = context.kernel.parameter_comments.get(name, NO_COMMENTS)
        above += users.above
        spelled = _spelled_constant(value, name in context.speller.arithmetic.doubles)
        if spelled is None or not can_be_global(name):
            continue  # its value is written out
        sides[name] = _sides(context, name, mentioned)
        text, ctype = spelled
        constants.append(Constant(name, text, users.beside or sides[name], ctype, "user", above))
        if name in shown:  # what stands above several is said at the first that is declared
            above = ()
    return sorted(constants, key=lambda constant: (not sides[constant.name], constant.value == "1"))


def _spelled_constant(value: Any, as_double: bool) -> tuple[str, str] | None:
    """(text, C++ type) of a compile-time value; None for one that is no number."""
    if isinstance(value, bool):
        return "true" if value else "false", "bool"
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
        dtype = literal_type(value)
        return str(value) if dtype == int32 else literal_text(value, dtype), dtype.cuda
    if isinstance(value, float):
        dtype = float64 if as_double else float32
        return literal_text(value, dtype), dtype.cuda
    return None


def _doubles(kernel: Kernel) -> frozenset[str]:
    """Compile-time floats that are computed with in fp64."""
    literals = (part for part in _parts(kernel) if isinstance(part, Literal) and part.type.element == float64)
    names = {one.symbol.word for one in literals if isinstance(one.symbol, Name)}
    return frozenset(name for name in names if isinstance(_constants(kernel).get(name), float))


def _parts(kernel: Kernel) -> Iterator[Expr]:
    """Every expression of a kernel and of the functions that it calls."""
    for body in (kernel.body, *(function.body for function in kernel.functions)):
        for statement in statements(body):
            for expr in expressions(statement):
                yield from subexpressions(expr)


def _sides(context: Context, constant: str, mentioned: frozenset[str]) -> str:
    """Of which tiles a constant is a side, as far as there is room to say it: "rows of a, columns of b"."""
    found: dict[str, list[str]] = {}
    for variable in (*context.schedule.staged, *context.schedule.layouts):
        shape = variable.type.shape
        for axis, side in enumerate(shape):
            if symbol_of(side) == Name(constant):
                noun = ("elements",) if len(shape) == 1 else ("planes", "rows", "columns")[3 - len(shape) :]
                names = found.setdefault(noun[axis] if axis < len(noun) else "elements", [])
                if variable.stem not in names and variable.name in mentioned:
                    names.append(variable.stem)
    parts = [f"{noun} of {names[0]}" for noun, names in found.items() if names]
    return ", ".join(parts) if len(", ".join(parts)) <= COMMENT_ROOM else "".join(parts[:1])


def _includes(kernel: Kernel) -> tuple[str, ...]:
    """CUDA's headers for the types that occur."""
    return tuple(sorted({TYPE_HEADERS[dtype.name] for dtype in _dtypes(kernel) if dtype.name in TYPE_HEADERS}))


def _dtypes(kernel: Kernel) -> set[DType]:
    """All element types that occur in a kernel, pointees included."""
    dtypes: set[DType] = set()

    def see(type_: ValueType) -> None:
        element = type_.element
        dtypes.add(element.element_ty if isinstance(element, PointerType) else element)

    for parameter in kernel.parameters:
        see(parameter.variable.type)
    for part in _parts(kernel):
        see(part.type)
    return dtypes


def _tile_in_shared(context: Context, variable: Variable) -> Shared:
    """The array of a tile that the registers have no room for."""
    layout = context.schedule.layouts[variable]
    count = 1
    for registers in layout.register_shape():
        count *= registers
    size = count * context.schedule.num_threads * variable.type.dtype.itemsize
    comment = "no room in registers: each thread has a column of its own"
    dimensions = f"{context.dimensions(layout)}[NUM_THREADS]"
    return Shared(context.names.variable(variable), context.element_ctype(variable), dimensions, size, comment)


def _twins(context: Context) -> list[Line]:
    """Names for tiles that take the memory of others of another name."""
    pairs = [tuple(map(context.names.variable, pair)) for pair in context.schedule.rings.twins.items()]
    comment = "the same memory: their loops follow each other"
    return [Line(f"auto& {tile} = {first};", comment) for tile, first in dict.fromkeys(pairs) if tile != first]


def _prologue(context: Context, dynamic: tuple[Shared, ...], body: Iterable[Node]) -> list[Node]:
    """The coordinates of the thread, as far as the body reads them, and the shared struct."""
    nodes: list[Node] = []
    if dynamic:
        nodes += [
            Line(shared_declaration(shared_alignment(dynamic))),
            *names_of_arrays(context, dynamic),
        ]
    nodes += _twins(context)
    tid = context.axis_names.tid
    used, places = words((*context.role.set_up, *body)), []
    for place in reversed(context.axis_names.places):  # a place may be computed from those before it
        if place.name in used:
            places.append(place)
            used |= words((place,))
    if tid in used:
        nodes.append(Line(f"const int {tid} = threadIdx.x;"))
    places.reverse()
    nodes += of_thread(context, places) if tid in used else ()
    nodes += [*places, *of_program(context, places)]
    return [*nodes, *context.role.set_up]
