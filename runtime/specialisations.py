"""A kernel's specialisations as tools see them: what hooks are told of one, its data for other processes, and all of them.

In: a kernel, what it is specialised to (`Argument`s), options. Out: texts, and the compiled kernel that data stand for.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tilewright.artifact import (
    Argument,
    ConstantArgument,
    DescriptorArgument,
    Options,
    RuntimeArgument,
    Target,
    TupleArgument,
    constants_of,
)
from tilewright.diagnostics import SpecializationDataError
from tilewright.frozen import frozen
from tilewright.language.dtypes import DTYPES_BY_NAME, DType
from tilewright.runtime.arguments.specialise import describe_argument, key_of
from tilewright.runtime.building.translations import element_of
from tilewright.runtime.hooks import Hook, JitFunctionInfo
from tilewright.runtime.placement import Placement

if TYPE_CHECKING:
    from tilewright.runtime.compiled import CompiledKernel
    from tilewright.runtime.jit import JITFunction


@frozen
class Specialisation:
    """What a kernel is compiled for.

    Attributes:
      function: the kernel.
      arguments: what is known of each.
      argument_key: what tells these from others.
      options: of the launch.
      placement: where it is to run.
      target: the architecture that the text is written for.
    """

    function: JITFunction
    arguments: tuple[Argument, ...]
    argument_key: tuple[Any, ...]
    options: Options
    placement: Placement
    target: Target

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from the kernel's others, of the text that the kernel has now."""
        place, text = self.placement, self.function.raw_src
        return self.argument_key, self.options, place.mode, place.device, self.target.name, text

    @property
    def name(self) -> str:
        """What tools know it by among the kernel's others on the same device."""
        return f"{self._signature()}, {self.options}, {self.placement.backend}, {self.target.name}"

    def runs_on(self) -> dict[str, str]:
        """Where its machine code runs, in words of Triton's."""
        return {"backend": self.placement.backend, "arch": self.target.name}

    def _signature(self) -> str:
        return ", ".join(f"{argument.name}: {describe_argument(argument)}" for argument in self.arguments)

    def tell(self, hooks: list[Hook], warmup: bool) -> bool:
        """Calls hooks with what Triton's are given; whether one answered that the launch is to be left out."""
        function, options, key = self.function, self.options, self.name
        name = function.fn.__qualname__
        signature = {argument.name: describe_argument(argument) for argument in self.arguments}
        constants = {one.name: one.value for argument in self.arguments for one in constants_of(argument)}
        facts = {
            **asdict(options), "key": key, "signature": signature, "constants": constants,
            "device": max(self.placement.device, 0), "extern_libs": (), "specialization_data": self.data(), "is_warmup": warmup,
        }  # fmt: skip
        shown = ("num_warps", "num_ctas", "num_stages", "enable_fp_fusion", "launch_cooperative_grid")
        words = ", ".join(f"{option}={getattr(options, option)}" for option in shown)
        info = JitFunctionInfo(function.__module__, name, function)
        answers = [
            hook(key=key, repr=f"{name}[{words}]({self._signature()})", fn=info, compile=facts,
                 is_manual_warmup=warmup, already_compiled=False)
            for hook in tuple(hooks)  # one may take itself out
        ]  # fmt: skip
        return any(answers)

    def data(self) -> str | None:
        """A text from which `read` makes it in another process; None for a compile-time value that has no text."""
        try:
            arguments = [_saved(argument) for argument in self.arguments]
        except ValueError:
            return None
        function = self.function
        facts = {
            "name": f"{function.__module__}.{function.fn.__qualname__}", "arguments": arguments, "options": asdict(self.options),
            "target": self.runs_on(),
        }  # fmt: skip
        return json.dumps(facts)


def specialisation_for(
    function: JITFunction,
    arguments: tuple[Argument, ...],
    options: Options,
    placement: Placement,
    target: Target | None = None,
) -> Specialisation:
    """The specialisation to arguments that no call gave; the text is for `target`, or for the placement's own."""
    return Specialisation(function, arguments, key_of(arguments), options, placement, target or placement.target())


def read(function: JITFunction, data: str, placement: Placement) -> Specialisation:
    """The specialisation that `Specialisation.data` wrote, for the same kernel, kind of place and architecture.

    Raises:
      SpecializationDataError: when it is for another one, or no such text.
    """
    try:
        facts = json.loads(data)
        name, found = facts["name"], facts["target"]
        arguments = tuple(_restored(argument) for argument in facts["arguments"])
        options = Options(**facts["options"])
    except (ValueError, KeyError, TypeError, SyntaxError) as error:
        raise SpecializationDataError(
            f"this is no specialization data of this version ({error!r}); it is what hooks get as "
            'compile["specialization_data"]'
        ) from None
    own = f"{function.__module__}.{function.fn.__qualname__}"
    if name != own:
        raise SpecializationDataError(f"Specialization data is for {name}, and this kernel is {own}")
    made = specialisation_for(function, arguments, options, placement)
    if found != made.runs_on():
        raise SpecializationDataError(
            f"Specialization data is for {found}, and the kernel would run on {made.runs_on()}"
        )
    return made


def _saved(argument: Argument) -> dict[str, Any]:
    """An argument as JSON.

    Raises:
      ValueError: for a compile-time value that has no text.
    """
    if isinstance(argument, RuntimeArgument):
        return {"name": argument.name, "type": str(argument.element), "divisor": argument.divisor}
    if isinstance(argument, DescriptorArgument):
        return asdict(argument) | {"element": str(argument.element)}
    if isinstance(argument, TupleArgument):
        return {"name": argument.name, "items": [_saved(item) for item in argument.items], "fields": argument.fields}
    if isinstance(argument.value, DType):
        return {"name": argument.name, "dtype": str(argument.value)}
    text = repr(argument.value)
    try:
        if ast.literal_eval(text) == argument.value:
            return {"name": argument.name, "value": text}
    except SyntaxError:
        pass
    raise ValueError(argument.name)


def _restored(facts: dict[str, Any]) -> Argument:
    name = facts["name"]
    if "type" in facts:
        return RuntimeArgument(name, element_of(facts["type"]), facts["divisor"])
    if "items" in facts:
        return TupleArgument(name, tuple(_restored(item) for item in facts["items"]), tuple(facts["fields"]))
    if "block_shape" in facts:
        lists = {key: tuple(facts[key]) for key in ("block_shape", "divisible_by_16")}
        return DescriptorArgument(**{**facts, **lists, "element": DTYPES_BY_NAME[facts["element"]]})
    return ConstantArgument(
        name, DTYPES_BY_NAME[facts["dtype"]] if "dtype" in facts else ast.literal_eval(facts["value"])
    )


class OnDevice(Mapping[str, "CompiledKernel"]):
    """The compiled specialisations of a kernel for one device, by their names."""

    def __init__(self, function: JITFunction, device: int) -> None:
        """Device 0 has what runs on the host, too."""
        self._function, self._device = function, device

    def _all(self) -> dict[str, CompiledKernel]:
        made = list(self._function.compilations.made.values())
        found = [one for one in made if one.device == self._device and one.is_loaded]
        return {one.specialisation.name: one for one in found}

    def __getitem__(self, key: str) -> CompiledKernel:
        return self._all()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def clear(self) -> None:
        """Forgets them: the next launch finds them on the disk, or compiles them."""
        self._function.forget(self._device)


class DeviceCaches(Mapping[int, tuple[OnDevice]]):
    """`kernel.device_caches`: by device a tuple, whose first item has what is compiled."""

    def __init__(self, function: JITFunction) -> None:
        """Of a kernel."""
        self._function = function

    def __getitem__(self, device: int) -> tuple[OnDevice]:
        return (OnDevice(self._function, device),)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted({one.device for one in list(self._function.compilations.made.values())}))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def clear(self) -> None:
        """Forgets what is compiled for all devices."""
        self._function.forget()
