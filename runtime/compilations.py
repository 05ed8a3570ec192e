"""The compiled specialisations of one kernel: each is made once, by whichever thread needs it first."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from tilewright.runtime.arguments.specialise import Call, describe_argument, key_of
from tilewright.runtime.building.nvrtc import load_ahead
from tilewright.runtime.building.translations import translated
from tilewright.runtime.compiled import CompiledKernel
from tilewright.runtime.environment import check_settings
from tilewright.runtime.finer import finer_arguments
from tilewright.runtime.forks import ForkLock, preparing
from tilewright.runtime.log import log, reason
from tilewright.runtime.placement import device_target
from tilewright.runtime.specialisations import Specialisation

Key = tuple[Any, ...]


class Compilations:
    """Those of a kernel; `made` has them by key."""

    def __init__(self) -> None:
        """None yet."""
        self.made: dict[Key, CompiledKernel] = {}
        self._lock = ForkLock()
        self._making: dict[Key, ForkLock] = {}
        self._known: list[dict[str, Any]] = []  # what was compiled, for the log

    def found(self, call: Call, grid: tuple[int, int, int], wanted: Specialisation) -> CompiledKernel:
        """The one for a call: with guards where they hold, else the one that is right for all values; for few programs its own.

        So have integers that are multiples of what the text would like them to be. Of what is not taken, nothing but the text
        is made.
        """
        usual = self._with_text(wanted).artifact
        arguments = finer_arguments(wanted.function, wanted.arguments, usual, call.values)
        if arguments is not wanted.arguments:
            wanted = replace(wanted, arguments=arguments, argument_key=key_of(arguments))
        for guards in (True, False) if wanted.options.guards else (False,):
            own = _with(wanted, guards=guards)
            most = self._with_text(own).few_at_most
            if most and math.prod(grid) <= most:
                own = _with(own, few_programs=True)
            if self._with_text(own).fits(call, grid):
                return self.made_for(own)
        raise ValueError("text without guards that is not right for all values")

    def made_for(self, wanted: Specialisation) -> CompiledKernel:
        """The one for a specialisation."""
        compiled = self._with_text(wanted)
        if not compiled.is_loaded:
            with preparing(), self._alone(wanted.key):
                if not compiled.is_loaded:
                    compiled.load()
        return compiled

    def before(self, compiled: CompiledKernel, guards: bool, few_programs: bool) -> list[CompiledKernel]:
        """Those that are looked at before one, where these were the options asked for, as far as there are any."""
        own = compiled.specialisation
        ways = [_with(own, guards=g, few_programs=f) for g in (True, False) for f in (False, True)]
        ways = [one for one in ways if one.options.guards <= guards and one.options.few_programs >= few_programs]
        earlier = ways[: [one.options for one in ways].index(own.options)]
        return [found for one in earlier if (found := self.made.get(one.key))]

    def _with_text(self, wanted: Specialisation) -> CompiledKernel:
        """The one for a specialisation, whose machine code may not be there yet."""
        compiled = self.made.get(wanted.key)
        if compiled is None:
            with self._alone(wanted.key):
                compiled = self.made.get(wanted.key)
                if compiled is None:
                    compiled = self.made[wanted.key] = self._translate(wanted)
        return compiled

    @contextlib.contextmanager
    def _alone(self, key: Key) -> Iterator[None]:
        """Has one thread at a time work on a specialisation; different ones are made at the same time."""
        with self._lock:
            own = self._making.setdefault(key, ForkLock())
        with own:
            yield
        self._making.pop(key, None)  # who waits for the lock has it, others find what was made

    def has(self, wanted: Specialisation) -> bool:
        """Whether a specialisation is there."""
        return wanted.key in self.made

    def forget(self, device: int | None = None) -> None:
        """Drops those for a device, or all."""
        kept = {key: one for key, one in self.made.items() if device is not None and one.device != device}
        self.made = kept

    @preparing()
    def _translate(self, wanted: Specialisation) -> CompiledKernel:
        check_settings()
        function, place = wanted.function, wanted.placement
        meanwhile = functools.partial(load_ahead, device_target(place.device).name) if place.mode == "gpu" else None
        artifact, is_new = translated(function, wanted.arguments, wanted.options, wanted.target, meanwhile)
        how = "translated" if is_new else "translation from the cache"
        log(lambda: f"{function.__name__} ({place.mode}): {how}; {self._reason(wanted)}")
        return CompiledKernel(artifact, wanted)

    def _reason(self, wanted: Specialisation) -> str:
        """In which arguments and options a specialisation differs from the nearest known one."""
        text = hashlib.sha256(wanted.function.raw_src.encode()).hexdigest()
        parts: dict[str, Any] = {argument.name: describe_argument(argument) for argument in wanted.arguments}
        parts |= {**asdict(wanted.options), "mode": wanted.placement.mode, "device": wanted.placement.device}
        parts |= {"target": wanted.target.name, "source": text[:12]}
        why = reason(parts, self._known) if self._known else "the first of this kernel in the process"
        self._known.append(parts)
        return why


def _with(wanted: Specialisation, **options: Any) -> Specialisation:
    return replace(wanted, options=replace(wanted.options, **options))
