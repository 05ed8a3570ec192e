"""The stages, in order: source, kernel, facts, schedule, unit, text.

`translate` is the whole of it; `STAGES` names what each step leaves, for `tilewright explain`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from .artifact import (
    Argument,
    Artifact,
    DescriptorArgument,
    LaunchParameter,
    Options,
    RuntimeArgument,
    Target,
    TupleArgument,
)
from .frozen import frozen

if TYPE_CHECKING:
    from .analysis.facts import Facts
    from .ir.nodes import Kernel
    from .kernel_function import KernelFunction
    from .lower.unit import Unit
    from .schedule.dot_plan import Dots
    from .schedule.plan import Schedule

STAGES = ("kernel", "facts", "schedule", "unit", "text")


@frozen
class Translation:
    """What every stage left."""

    kernel: Kernel
    facts: Facts
    schedule: Schedule
    unit: Unit
    artifact: Artifact


def translate(
    function: KernelFunction, arguments: tuple[Argument, ...], options: Options, target: Target, name: str = ""
) -> Artifact:
    """Translates one specialisation of a kernel; `name` is another name for it than the function's.

    Raises:
      SignatureError: when that is no identifier.
      CompilationError: when the kernel's text is at fault.
      OutOfResources: when it does not fit on the target.
    """
    return translate_stages(function, arguments, options, target, name).artifact


def translate_stages(
    function: KernelFunction, arguments: tuple[Argument, ...], options: Options, target: Target, name: str = ""
) -> Translation:
    """The same, with what every stage left."""
    from .deep import with_room

    return with_room(lambda: _translate_stages(function, arguments, options, target, name))


def _translate_stages(
    function: KernelFunction, arguments: tuple[Argument, ...], options: Options, target: Target, name: str
) -> Translation:
    from .emit.render import render
    from .frontend import build_kernel
    from .lower.kernel import written_parameters

    kernel = build_kernel(function, arguments, options, target)
    if name:
        kernel = _renamed(kernel, name)
    if os.environ.get("TILEWRIGHT_VERIFY") == "1":
        from .ir.verify import verify

        verify(kernel)
    kernel, facts, schedule, unit = _fitted(kernel, options, target)
    text, lines = render(unit)
    artifact = Artifact(
        source=text,
        kernel_name=unit.name,
        target=target.name,
        num_threads=schedule.launch_threads,
        shared_bytes=unit.dynamic_bytes,
        parameters=launch_parameters(kernel, arguments),
        writes=written_parameters(kernel),
        lines=lines,
        file=kernel.file,
        globals=kernel.globals,
        readings=kernel.readings,
        tensor_maps=schedule.rings.encoded,
        guards=schedule.rings.guards,
        program_axes=schedule.rings.program_axes,
        cooperative=options.launch_cooperative_grid,
        dependent=options.launch_pdl and target.has_dependent_launch,
        static_shared_bytes=sum(array.size for array in unit.static_shared),
        compiler_flags=options.compiler_flags,
    )
    return Translation(kernel, facts, schedule, unit, artifact)


def _renamed(kernel: Kernel, name: str) -> Kernel:
    """The kernel under another name, so that several translations of one fit into one program."""
    from .diagnostics import SignatureError

    if not name.isidentifier():
        raise SignatureError(f"a kernel's name is letters, digits and underscores, not {name!r}")
    return replace(kernel, name=name)


def _prepared(kernel: Kernel, options: Options, target: Target) -> Kernel:
    """The kernel without what only looks like work, in the form that the schedule takes."""
    from .schedule.copies import without_copies
    from .schedule.joint_reductions import join_reductions
    from .schedule.loaded_names import with_loaded_names
    from .schedule.narrow_reductions import with_narrow_reductions
    from .schedule.operands import prepare_dots
    from .schedule.settled_masks import with_settled_masks
    from .schedule.wraps import without_wraps

    kernel = without_wraps(with_settled_masks(kernel))
    kernel = with_loaded_names(without_copies(kernel))
    kernel = prepare_dots(kernel, target)
    kernel = with_narrow_reductions(kernel)
    return join_reductions(kernel, options.num_warps)


def _fitted(kernel: Kernel, options: Options, target: Target) -> tuple[Kernel, Facts, Schedule, Unit]:
    """Facts, decisions and unit of a kernel, its products as early as they can be where registers have room for that.

    Where a thread cannot hold its tiles, and the multiprocessor has more registers than that many threads can have, the block
    gets twice the warps that were asked for.

    Raises:
      OutOfResources: when the kernel does not fit at all.
    """
    from .diagnostics import OutOfResources
    from .schedule.early_loads import with_early_loads
    from .schedule.early_products import serves, with_early_products
    from .schedule.own_stages import loads_more, may_load_more

    written, kernel = kernel, _prepared(kernel, options, target)
    plain = _in_blocks(kernel, options, target)
    if plain[2].wants_more_warps:
        with suppress(OutOfResources):
            return _fitted(written, replace(options, num_warps=2 * options.num_warps), target)
    dots = _first_plan(kernel, options, target)
    in_turns = any(array.turn for array in plain[3].dynamic_shared)
    early = kernel if in_turns else with_early_loads(kernel, dots.staged)
    early = with_early_products(early, lambda dot: id(dot) in dots.plans and dots.plans[id(dot)].runs_by_itself)
    if early is not kernel:
        found = _in_blocks(early, options, target)
        kernel, plain = (early, found) if serves(found[2], plain[2]) else (kernel, plain)
    if not may_load_more(plain[0], plain[2]):
        return plain
    more = _in_blocks(kernel, options, target, small_loads=True)
    return more if loads_more(more[2], plain[2]) else plain


def _first_plan(kernel: Kernel, options: Options, target: Target) -> Dots:
    """What a kernel's dots are by themselves, before it is decided what loads ahead."""
    from .analysis.facts import find_facts
    from .schedule.dot_plan import Dots
    from .schedule.dots import dot_statements, plan_dots

    if not any(True for _ in dot_statements(kernel)):
        return Dots({}, {})
    return plan_dots(kernel, find_facts(kernel), options, target)


def _in_blocks(
    kernel: Kernel, options: Options, target: Target, small_loads: bool = False
) -> tuple[Kernel, Facts, Schedule, Unit]:
    """Facts, decisions and unit of a kernel, for two blocks on a multiprocessor where these pay and fit.

    Raises:
      OutOfResources: when the kernel does not fit at all.
    """
    from .diagnostics import OutOfResources
    from .schedule.second_block import half_of, serves_two

    found = _with_room(kernel, options, target, 1, small_loads)
    if found[2].wants_second_block:
        try:
            smaller = _with_room(kernel, options, half_of(target), 2, small_loads)
            found = smaller if serves_two(smaller[2], found[2]) else found
        except OutOfResources:
            pass
    return found


def _with_room(
    kernel: Kernel, options: Options, target: Target, blocks: int, small_loads: bool
) -> tuple[Kernel, Facts, Schedule, Unit]:
    """The same with as many stages in its rings as shared memory has room for.

    Where there is room for no ring, or not even for the kernel without one, arrays of single statements share their memory.

    Raises:
      OutOfResources: when the kernel does not fit even so.
    """
    from .analysis.facts import find_facts
    from .diagnostics import OutOfResources
    from .lower.kernel import lower_kernel
    from .schedule.layouts import choose_layouts
    from .schedule.rings import LEAST_STAGES, MOST_STAGES, plan_rings

    most = stages = max(options.num_stages, MOST_STAGES)
    in_turns = False
    while True:
        planned, rings = plan_rings(kernel, options, target, stages, small_loads)
        facts = find_facts(planned)
        schedule = choose_layouts(planned, facts, options, target, rings, blocks)
        try:
            return planned, facts, schedule, lower_kernel(planned, facts, schedule, in_turns)
        except OutOfResources:
            fewer = max((ring.stages for ring in rings.rings), default=1) - 1
            if fewer >= LEAST_STAGES or (in_turns and rings.rings and blocks == 1):
                stages = fewer
            elif not in_turns:
                stages, in_turns = most, True
            else:
                raise


def launch_parameters(kernel: Kernel, arguments: tuple[Argument, ...]) -> tuple[LaunchParameter, ...]:
    """The kernel's parameters in order, with the place of each among the user's arguments.

    Run-time arguments and kernel parameters come in the same order, tuples taken apart.
    """
    paths = [path for number, argument in enumerate(arguments) for path in _runtime_paths(argument, (number,))]
    return tuple(
        LaunchParameter(parameter.variable.name, parameter.variable.type.element, path, parameter.divisibility)
        for parameter, path in zip(kernel.parameters, paths, strict=True)
    )


def _runtime_paths(argument: Argument, path: tuple[int, ...]) -> list[tuple[int, ...]]:
    if isinstance(argument, RuntimeArgument):
        return [path]
    if isinstance(argument, DescriptorArgument):
        rank = len(argument.block_shape)
        sides = [(*path, 1, axis) for axis in range(rank)]
        return [(*path, 0), *sides, *((*path, 2, axis) for axis in range(rank - 1))]
    if isinstance(argument, TupleArgument):
        return [inner for number, item in enumerate(argument.items) for inner in _runtime_paths(item, (*path, number))]
    return []
