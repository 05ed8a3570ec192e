"""From decisions to the render model: one kernel, its facts and its schedule become a `Unit`."""

from __future__ import annotations

from collections.abc import Iterable

from ..analysis.facts import Facts
from ..artifact import shared_declaration
from ..hardware import REGISTER_FILE, REGISTER_STEP
from ..ir.c_tokens import identifiers
from ..ir.nodes import NO_COMMENTS, Kernel, ParameterComments
from ..schedule.accesses.pointers import read_only_pointers
from ..schedule.plan import Schedule
from .accesses.index_tiles import settle_index_tiles
from .assumptions import of_program, of_thread
from .beginning import first_context
from .context import Context
from .functions import lower_function
from .shared.plan import names_of_arrays, names_of_own_arrays, plan_shared, shared_alignment
from .shared.turns import Sharing
from .staging.made_maps import count_map_slots
from .staging.teams import team_and_thread
from .staging.warp_roles import lower_body
from .static_loops import rolled
from .text.header import header_fields, needed_architecture, reads_through_proxy, title
from .text.includes import includes
from .text.local_names import with_plain_names
from .text.names import entry_name
from .text.operators import sum_text
from .text.repeats import with_parts_named
from .text.spell import WRAPS
from .text.stored import with_arrays_in_common
from .text.unit import Blank, Declaration, Function, Line, Node, Shared, Unit, const, every, texts_of, words
from .text.user_constants import named_values, user_constants


def lower_kernel(kernel: Kernel, facts: Facts, schedule: Schedule, sharing: Sharing = Sharing.NONE) -> Unit:
    """Writes down, as plain values, everything that the generated file says.

    `sharing` is which arrays share their memory with others, at the price of barriers.

    Raises:
      OutOfResources: when the shared arrays have no room.
    """
    context, lowered = _lowered(kernel, facts, schedule, sharing)
    written = rolled(lowered, context.names, context.shared.arrays.values())
    context.shared.keep(written.shared)
    body = _finished(context, written.body)
    functions = _functions(context, kernel)  # may ask for helpers, as all above may
    _ask_for_spelled_helpers(context)
    static, dynamic, dynamic_bytes = plan_shared(context, kernel)
    count_map_slots(context, dynamic_bytes)
    prologue, (bounds, threads) = _prologue(context, dynamic, body), _bounds(context)
    name = entry_name(kernel.name, named_values(kernel))
    return Unit(
        title=title(kernel, name),
        docstring=kernel.docstring,
        header=header_fields(context, dynamic_bytes, words(body)),
        includes=includes(kernel),
        constants=(*user_constants(context, words((*prologue, *body))), *context.constants.all),
        helpers=tuple(context.needs.helpers.values()),
        functions=functions,
        dynamic_shared=dynamic,
        dynamic_bytes=dynamic_bytes,
        dynamic_alignment=shared_alignment(dynamic),
        static_shared=static,
        packets=tuple(sorted(context.needs.packets, reverse=True)),
        name=name,
        parameters=(
            *(context.declaration(parameter.variable, None).declarator for parameter in kernel.parameters),
            *(f"int {context.launch_word('num_programs', axis)}" for axis in range(schedule.rings.program_axes)),
            *(f"const __grid_constant__ TensorMap {tensor_map.name}" for tensor_map in schedule.rings.encoded),
        ),
        bounds=bounds,
        threads=threads,
        body=with_parts_named((*prologue, *_infinities(context, body), Blank(), *body)),
        needs=needed_architecture(context),
        proxy_reads=reads_through_proxy(context),
        unequal=frozenset(context.needs.unequal | written.unequal),
        parameter_comments=_parameter_comments(kernel),
    )


def _lowered(kernel: Kernel, facts: Facts, schedule: Schedule, sharing: Sharing) -> tuple[Context, tuple[Node, ...]]:
    """The body, and what its lowering has left; again where masks are spelled so often that they get names."""
    context = first_context(kernel, facts, schedule, sharing, {})
    body = lower_body(context, kernel)
    named = context.masks.worth_naming()
    if not named:
        return context, body
    context = first_context(kernel, facts, schedule, sharing, named)
    return context, lower_body(context, kernel)


def _finished(context: Context, body: tuple[Node, ...]) -> tuple[Node, ...]:
    """The body with what is known once all is written: how much of an index tile anything asks for, what can be shared."""
    names, settled = context.names, context.facts.index | context.facts.definitions.keys()
    body = settle_index_tiles(body, lambda name: names.bearers(name) <= settled)
    return with_plain_names(with_arrays_in_common(body, context.notes.stored), names.wanted)


def _ask_for_spelled_helpers(context: Context) -> None:
    """Has the file have the helpers that expressions were spelled with."""
    for helper in context.needs.used.helpers:
        if helper in WRAPS:
            context.use_helper("wrapping", helper, sign=WRAPS[helper])
        else:
            context.use_helper(helper)


def _parameter_comments(kernel: Kernel) -> tuple[ParameterComments, ...]:
    """The user's, by parameter; a descriptor's sides and strides stand in the line of its address."""
    names = (parameter.variable.name for parameter in kernel.parameters)
    return tuple(kernel.parameter_comments.get(name, NO_COMMENTS) for name in names)


def _bounds(context: Context) -> tuple[str, str]:
    """The qualifier that bounds the kernel's registers: as the user says, or by the threads that a multiprocessor holds.

    And the number of threads as it has that; "" where it has none.

    CUDA takes one of the two, and the compiler's own flag counts for neither.
    """
    if context.schedule.options.maxnreg is not None:
        return f"__maxnreg__({context.schedule.options.maxnreg})", ""
    threads = sum_text(context.multiplying_threads(), context.producer_threads())
    blocks = context.schedule.blocks_per_multiprocessor
    if blocks is None:
        return f"__launch_bounds__({threads})", threads
    if blocks > 1:
        most = REGISTER_FILE // (blocks * context.schedule.launch_threads) // REGISTER_STEP * REGISTER_STEP
        comment = f"per multiprocessor: {most} registers a thread"
        blocks_word = context.constants.named("MIN_BLOCKS", blocks, comment, topic="threads")
        return f"__launch_bounds__({threads}, {blocks_word})", threads
    return f"__launch_bounds__({threads}, {blocks})", threads


def written_parameters(kernel: Kernel) -> tuple[str, ...]:
    """Names of the pointer parameters that the kernel writes, in order."""
    read_only = read_only_pointers(kernel)
    pointers = (p.variable for p in kernel.parameters if p.variable.type.is_pointer)
    return tuple(variable.name for variable in pointers if variable not in read_only)


def _functions(context: Context, kernel: Kernel) -> tuple[Function, ...]:
    """The functions that the text calls; a function stands above those that call it."""
    written: list[Function] = []
    for function in reversed(kernel.functions):
        if function in context.needs.used.functions:
            written.append(lower_function(context, function))
    return tuple(reversed(written))


def _twins(context: Context) -> list[Line]:
    """Names for tiles that take the memory of others of another name."""
    pairs = [tuple(map(context.names.variable, pair)) for pair in context.schedule.rings.twins.items()]
    comment = "the same memory: their loops follow each other"
    return [Line(f"auto& {tile} = {first};", comment) for tile, first in dict.fromkeys(pairs) if tile != first]


def _infinities(context: Context, body: tuple[Node, ...]) -> list[Declaration]:
    """The declarations of those that are mentioned, in the order of the text."""
    known = context.constants.infinities
    nodes = every(body) if known else ()
    mentioned = (word for node in nodes for text in texts_of(node) for word in identifiers(text) if word in known)
    return [const("float", name, known[name]) for name in dict.fromkeys(mentioned)]


def _prologue(context: Context, dynamic: tuple[Shared, ...], body: Iterable[Node]) -> list[Node]:
    """The coordinates of the thread, as far as the body reads them, and the shared struct."""
    nodes: list[Node] = []
    if dynamic:
        nodes += [Line(shared_declaration(shared_alignment(dynamic))), *names_of_arrays(context, dynamic)]
    nodes += _twins(context)
    tid = context.axis_names.tid
    used, places = words((*context.role.set_up, *body)), []
    for place in reversed(context.constants.prologue):  # a place may be computed from those before it
        if place.name in used:
            places.append(place)
            used |= words((place,))
    if context.schedule.rings.teams > 1:
        nodes += [*team_and_thread(context), *names_of_own_arrays(context, dynamic)]
    elif tid in used:
        nodes.append(const("int", tid, "threadIdx.x"))
    places.reverse()
    nodes += of_thread(context, places) if tid in used else ()
    nodes += [*places, *of_program(context, places)]
    return [*nodes, *context.role.set_up]
