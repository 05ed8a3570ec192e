"""The stages, in order: source, kernel, prepared, facts, schedule, unit, text.

`translate` is the whole of it; `STAGES` names what each step leaves, for `tilewright explain`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from .artifact import (
    Argument,
    Artifact,
    ConstantArgument,
    DescriptorArgument,
    LaunchParameter,
    Options,
    RuntimeArgument,
    Target,
    TupleArgument,
    argument_at,
)
from .diagnostics import CompilationError
from .frozen import frozen
from .ir.static_loops import LoopPlace, loops_in
from .language.dtypes import DType

if TYPE_CHECKING:
    from .analysis.facts import Facts
    from .ir.nodes import Kernel
    from .kernel_function import KernelFunction
    from .lower.text.unit import Unit
    from .schedule.plan import Schedule

STAGES = ("kernel", "prepared", "facts", "schedule", "unit", "text")


@frozen
class Translation:
    """What every stage left.

    Attributes:
      kernel: what the frontend built.
      prepared: what was scheduled: the kernel after all passes, as the chosen plan has it.
      facts: what is known of that.
      schedule: who holds what.
      unit: what is to be written.
      artifact: the text, and what a launch has to know of it.
    """

    kernel: Kernel
    prepared: Kernel
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
    written_out: frozenset[LoopPlace] = frozenset()
    while True:
        found = _translated(function, arguments, options, target, name, written_out)
        differing = _differing_loops(found)
        if not differing:
            return found
        written_out |= differing


def _differing_loops(found: Translation) -> frozenset[LoopPlace]:
    """The static loops of which the text still has trips by themselves: that have to be written out."""
    loops = found.kernel.static_loops
    left = loops_in(found.artifact.source) if loops else set()
    return frozenset({loop.place for loop in found.unit.unequal} | {loops[one] for one in left if one < len(loops)})


def _translated(
    function: KernelFunction,
    arguments: tuple[Argument, ...],
    options: Options,
    target: Target,
    name: str,
    written_out: frozenset[LoopPlace],
) -> Translation:
    """One translation, in which all static loops but those that are `written_out` are to become loops."""
    from .emit.render import render
    from .fitting import fitted
    from .frontend import build_kernel
    from .lower.kernel import written_parameters
    from .lower.text.header import FOR_CALLERS
    from .preparing import check
    from .schedule.staging.few_programs import is_for_many

    try:
        kernel = build_kernel(function, arguments, options, target, written_out)
    except CompilationError as error:
        _name_types(error, arguments)
        raise
    if name:
        kernel = _renamed(kernel, name)
    check(kernel, "the frontend")
    plan = fitted(kernel, options, target)
    prepared, schedule, unit = plan.kernel, plan.schedule, plan.unit
    text, lines = render(unit)
    artifact = Artifact(
        source=text,
        kernel_name=unit.name,
        target=target.name,
        num_threads=schedule.launch_threads,
        shared_bytes=unit.dynamic_bytes,
        parameters=launch_parameters(kernel, arguments),
        writes=written_parameters(prepared),
        lines=lines,
        file=prepared.file,
        globals=prepared.globals,
        readings=prepared.readings,
        tensor_maps=schedule.rings.encoded,
        guards=schedule.guards,
        reaches=schedule.reaches,
        program_axes=schedule.rings.program_axes,
        in_turns=schedule.rings.useful is not None,
        cooperative=options.launch_cooperative_grid,
        dependent=options.launch_pdl and target.has_dependent_launch,
        static_shared_bytes=sum(array.size for array in unit.static_shared),
        compiler_flags=options.compiler_flags,
        needs=unit.needs,
        title=unit.title,
        about=tuple((field.word, field.lines) for field in unit.header if field.word in FOR_CALLERS),
        headers=unit.includes,
        threads=unit.threads,
        shared_alignment=unit.dynamic_alignment if unit.dynamic_shared else 0,
        proxy_reads=unit.proxy_reads,
        for_many=is_for_many(prepared, plan.facts, schedule),
    )
    return Translation(kernel, prepared, plan.facts, schedule, unit, artifact)


def _name_types(error: CompilationError, arguments: tuple[Argument, ...]) -> None:
    """Has an error that speaks of a type say which compile-time arguments it came from: a signature needs their values."""
    found = []
    for number, one in enumerate(arguments, 1):
        type_ = one.value if isinstance(one, ConstantArgument) else None
        if isinstance(type_, DType) and re.search(rf"\btl\.{type_.word}\b", error.cause):
            found.append(f"{number}, {one.name}")
    if not found:
        return
    own = f"argument {found[0]}, is" if len(found) == 1 else f"each of the arguments {'; '.join(found)} is"
    own += " that type: where it is to be a number, a signature has the number"
    error.remedy = f"{own}; {error.remedy}" if error.remedy else own


def _renamed(kernel: Kernel, name: str) -> Kernel:
    """The kernel under another name, so that several translations of one fit into one program."""
    from .diagnostics import SignatureError

    if not isinstance(name, str) or not name.isidentifier():
        raise SignatureError(f"a kernel's name is letters, digits and underscores, not {name!r}")
    return replace(kernel, name=name)


def launch_parameters(kernel: Kernel, arguments: tuple[Argument, ...]) -> tuple[LaunchParameter, ...]:
    """The kernel's parameters in order, with the place of each among the user's arguments.

    Run-time arguments and kernel parameters come in the same order, tuples taken apart.
    """
    from .schedule.accesses.finer_divisors import finer_divisors

    paths = [path for number, argument in enumerate(arguments) for path in _runtime_paths(argument, (number,))]
    passed = zip(kernel.parameters, paths, strict=True)
    own = {p.variable for p, path in passed if isinstance(argument_at(arguments, path), RuntimeArgument)}
    finer = finer_divisors(kernel, own)
    return tuple(
        LaunchParameter(
            parameter.variable.name,
            parameter.variable.type.element,
            path,
            parameter.divisibility,
            finer.get(parameter.variable, ()),
        )
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
