"""The compiled specialisations of one kernel: each is made once, by whichever thread needs it first."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from tilewright.artifact import Argument, Options, Target
from tilewright.runtime.arguments.specialise import Call, describe_argument, key_of
from tilewright.runtime.building.nvrtc import load_ahead
from tilewright.runtime.building.translations import translated
from tilewright.runtime.compiled import CompiledKernel, Origin
from tilewright.runtime.environment import check_settings
from tilewright.runtime.forks import ForkLock, preparing
from tilewright.runtime.log import log, reason
from tilewright.runtime.placement import device_target, target_of

if TYPE_CHECKING:
    from tilewright.runtime.jit import JITFunction

Key = tuple[Any, ...]


class Compilations:
    """Those of a kernel; `made` has them by key."""

    def __init__(self, function: JITFunction) -> None:
        """None yet."""
        self._function = function
        self.made: dict[Key, CompiledKernel] = {}
        self._lock = ForkLock()
        self._making: dict[Key, ForkLock] = {}
        self._known: list[dict[str, Any]] = []  # what was compiled, for the log

    def found(self, call: Call, grid: tuple[int, int, int], options: Options, mode: str, device: int) -> CompiledKernel:
        """The one for a call: with guards where they hold, else the one that is right for all values."""
        target = target_of(mode, device)
        compiled = self.made_for(call.arguments, options, mode, device, target)
        if compiled.fits(call, grid):
            return compiled
        return self.made_for(call.arguments, replace(options, guards=False), mode, device, target)

    def made_for(
        self, arguments: tuple[Argument, ...], options: Options, mode: str, device: int, target: Target
    ) -> CompiledKernel:
        """The one for a specialisation."""
        key = self._key(arguments, options, mode, device, target)
        compiled = self.made.get(key)
        if compiled is None:
            with self._lock:  # one lock a specialisation: different ones are compiled at the same time
                own = self._making.setdefault(key, ForkLock())
            with own:
                compiled = self.made.get(key)
                if compiled is None:
                    compiled = self.made[key] = self._compile(arguments, options, mode, device, target)
        return compiled

    def has(self, arguments: tuple[Argument, ...], options: Options, mode: str, device: int, target: Target) -> bool:
        """Whether a specialisation is there."""
        return self._key(arguments, options, mode, device, target) in self.made

    def forget(self, device: int | None = None) -> None:
        """Drops those for a device, or all."""
        kept = {key: one for key, one in self.made.items() if device is not None and one.device != device}
        self.made = kept

    def _key(self, arguments: tuple[Argument, ...], options: Options, mode: str, device: int, target: Target) -> Key:
        return key_of(arguments), options, mode, device, target.name, self._function.raw_src

    @preparing()
    def _compile(
        self, arguments: tuple[Argument, ...], options: Options, mode: str, device: int, target: Target
    ) -> CompiledKernel:
        check_settings()
        function = self._function
        meanwhile = functools.partial(load_ahead, device_target(device).name) if mode == "gpu" else None
        artifact, is_new = translated(function, arguments, options, target, meanwhile)
        how = "translated" if is_new else "translation from the cache"
        log(
            "compile",
            lambda: f"{function.__name__} ({mode}): {how}; {self._reason(arguments, options, mode, device, target)}",
        )
        return CompiledKernel(artifact, options, mode, device, Origin(function, arguments, key_of(arguments)))

    def _reason(self, arguments: tuple[Argument, ...], options: Options, mode: str, device: int, target: Target) -> str:
        """In which arguments and options a specialisation differs from the nearest known one."""
        text = hashlib.sha256(self._function.raw_src.encode()).hexdigest()
        parts: dict[str, Any] = {argument.name: describe_argument(argument) for argument in arguments}
        parts |= {**asdict(options), "mode": mode, "device": device, "target": target.name, "source": text[:12]}
        why = reason(parts, self._known)
        self._known.append(parts)
        return why
