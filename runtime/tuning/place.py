"""Where a call of a tuned kernel would run, and which of its arrays the kernel would write."""

from __future__ import annotations

import inspect
from typing import Any

from tilewright.frozen import frozen
from tilewright.runtime.arguments.arrays import HOST, Array, describe
from tilewright.runtime.compiled import CompiledKernel
from tilewright.runtime.jit import JITFunction
from tilewright.runtime.placement import Placement, placement_of
from tilewright.runtime.tuning.subject import Subject, flat, subject_of

TIMED_MODES = ("gpu", "cpu")


@frozen
class Place(Placement):
    """A call's surroundings, where it runs and on what.

    Attributes:
      kernel: the innermost `@jit` function; None for objects of users that are no kernels.
      arguments: by parameter name.
    """

    kernel: JITFunction | None
    arguments: dict[str, Any]

    @property
    def is_timed(self) -> bool:
        """Whether a launch here takes a time that means something."""
        return self.kernel is not None and self.mode in TIMED_MODES

    def subject(self, key: Any) -> Subject:
        """What a tuning for a key is about."""
        if self.kernel is None:
            raise TypeError("only @jit functions have a subject")
        return subject_of(self.kernel, key, self.arguments, self)

    def arrays(self) -> dict[str, Any]:
        """The arrays among the arguments by name; those in tuples and descriptors as "name[0]"."""
        return {name: value for name, value in flat(self.arguments) if describe(value, name) is not None}

    def written(self, compiled: list[Any]) -> dict[str, Any]:
        """The arrays that one of the compiled kernels writes, by name; all arrays where that is not known."""
        if self.kernel is None or not all(isinstance(one, CompiledKernel) for one in compiled):
            return self.arrays()
        names = set()
        for one in compiled:
            paths = {parameter.name: parameter.path for parameter in one.artifact.parameters}
            for first, *items in (paths[name] for name in one.artifact.writes):
                names.add(self.kernel.arg_names[first] + "".join(f"[{number}]" for number in items))
        return {name: value for name, value in self.arrays().items() if name in names}


def find_place(fn: Any, arguments: dict[str, Any]) -> Place:
    """The surroundings of a call of `fn`, a kernel with any number of decorators, with arguments by name."""
    kernel = fn
    while not isinstance(kernel, JITFunction) and not inspect.isfunction(kernel):
        kernel = kernel.fn
    if not isinstance(kernel, JITFunction):
        return Place("", HOST, None, arguments)
    known = {name: value for name, value in arguments.items() if name in kernel.arg_names}
    arrays: list[tuple[str, Array]] = []
    for name, value in flat(known):
        array = describe(value, name)
        if array is not None:
            arrays.append((name, array))
    found = placement_of(arrays)
    return Place(found.mode, found.device, kernel, known)
