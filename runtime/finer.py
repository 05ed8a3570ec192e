"""Texts of their own for launches whose integers are multiples of less than 16, where accesses are wider by that.

A kernel is specialised as Triton specialises it, and its text says which integers had better be multiples of what
(`LaunchParameter.finer`). A launch whose integers are takes a text for these multiples, such as that for `:8` where rows have
1000 halves, and that for `:2` where they have 1002; all others share the one they would have had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tilewright.artifact import Argument, Artifact, RuntimeArgument, TupleArgument, argument_at
from tilewright.kernel_function import KernelFunction
from tilewright.runtime.arguments.specialise import FINER, watched


def finer_arguments(
    function: KernelFunction, arguments: tuple[Argument, ...], artifact: Artifact, values: Sequence[Any]
) -> tuple[Argument, ...]:
    """The arguments of a launch with these values, of whose specialisation to `arguments` the artifact is the text."""
    for number, place, divisors in _wanted(function, artifact):
        divisor = next((one for one in divisors if values[number] % one == 0), None)
        if divisor:
            arguments = _with_divisor(arguments, place, divisor)
    return arguments


def left_to_finer(function: KernelFunction, artifact: Artifact) -> tuple[str, ...]:
    """What holds of launches that this text is for, and no finer one, in a launch's arithmetic."""
    names = [parameter.name for parameter in artifact.parameters]
    return tuple(f"{names[number]} % {divisors[-1]} != 0" for number, _, divisors in _wanted(function, artifact))


def promised(arguments: tuple[Argument, ...], artifact: Artifact) -> tuple[str, ...]:
    """What a specialisation to such arguments says of the values of launches, in a launch's arithmetic."""
    return tuple(f"{artifact.parameters[n].name} % {divisor} == 0" for n, _, divisor in _given(arguments, artifact))


def as_promised(
    arguments: tuple[Argument, ...], artifact: Artifact, own: tuple[Argument, ...], values: Sequence[Any]
) -> tuple[Argument, ...]:
    """A call's arguments with the divisors that those of the artifact have, `own`, where the call's values have them."""
    if len(values) != len(artifact.parameters):
        return arguments
    for number, place, divisor in _given(own, artifact):
        if values[number] % divisor == 0:
            arguments = _with_divisor(arguments, place, divisor)
    return arguments


def _wanted(function: KernelFunction, artifact: Artifact) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """(number of a parameter, its path, divisors that it had better have) of those that are specialised."""
    return [
        (number, parameter.path, parameter.finer)
        for number, parameter in enumerate(artifact.parameters)
        if parameter.finer and watched(function.params[parameter.path[0]]).divisible
    ]


def _given(arguments: tuple[Argument, ...], artifact: Artifact) -> list[tuple[int, tuple[int, ...], int]]:
    """(number of a parameter, its path, its divisor) of those that are known to be multiples of less than 16."""
    passed = ((n, one.path, argument_at(arguments, one.path)) for n, one in enumerate(artifact.parameters))
    return [
        (n, path, one.divisor) for n, path, one in passed if isinstance(one, RuntimeArgument) and one.divisor in FINER
    ]


def _with_divisor(arguments: tuple[Argument, ...], path: tuple[int, ...], divisor: int) -> tuple[Argument, ...]:
    """The arguments with another divisor of the one at a path, if that is an integer, or a pointer, of a launch."""
    number, *rest = path
    found = arguments[number]
    if isinstance(found, TupleArgument) and rest:
        found = replace(found, items=_with_divisor(found.items, tuple(rest), divisor))
    elif isinstance(found, RuntimeArgument):
        found = replace(found, divisor=divisor)
    return (*arguments[:number], found, *arguments[number + 1 :])
