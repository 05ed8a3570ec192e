"""One candidate of a tuning: values of compile-time parameters and launch options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewright.diagnostics import TuningArgumentError
from tilewright.runtime.keywords import with_known_options

OPTIONS = ("num_warps", "num_ctas", "num_stages", "maxnreg")


class Config:
    """A candidate.

    Attributes:
      kwargs: compile-time parameters by name.
      num_warps, num_stages, num_ctas, maxnreg: launch options; None leaves the option as the launch has it.
      pre_hook: called with the dict of all arguments before every launch of this config.
      ir_override: kept and compared as in Triton; a launch refuses it, as there is no Triton IR to override.
    """

    @with_known_options("triton.Config")
    def __init__(
        self,
        kwargs: dict[str, Any],
        num_warps: int | None = 4,
        num_stages: int | None = 3,
        num_ctas: int | None = 1,
        maxnreg: int | None = None,
        pre_hook: Callable[[dict[str, Any]], Any] | None = None,
        ir_override: str | None = None,
    ) -> None:
        """Makes a candidate; see the class.

        Raises:
          TuningArgumentError: for parameters that are no dict by name, and a hook that is no function.
        """
        if not isinstance(kwargs, Mapping) or not all(isinstance(name, str) for name in kwargs):
            raise TuningArgumentError(
                f"triton.Config takes a dict from names of parameters to values, not {kwargs!r}; write "
                "triton.Config({'BLOCK': 64})"
            ).of("kwargs")
        if pre_hook is not None and not callable(pre_hook):
            raise TuningArgumentError(
                f"pre_hook of triton.Config is {pre_hook!r}; it must be a function, called as pre_hook(arguments)"
            ).of("pre_hook")
        self.kwargs = kwargs
        self.num_warps, self.num_stages, self.num_ctas = num_warps, num_stages, num_ctas
        self.maxnreg, self.pre_hook, self.ir_override = maxnreg, pre_hook, ir_override

    def all_kwargs(self) -> dict[str, Any]:
        """What the config adds to a launch: its parameters, and the options that it sets."""
        own = self.__dict__
        return {**self.kwargs, **{name: own[name] for name in (*OPTIONS, "ir_override") if own[name] is not None}}

    def __str__(self) -> str:
        shown = {**self.kwargs, **{name: getattr(self, name) for name in OPTIONS}}
        if self.ir_override is not None:
            shown["ir_override"] = self.ir_override
        return ", ".join(f"{name}: {value}" for name, value in shown.items())

    def __repr__(self) -> str:
        return f"Config({self})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Config):
            return NotImplemented
        return self.all_kwargs() == other.all_kwargs() and self.pre_hook == other.pre_hook

    def __hash__(self) -> int:
        return hash((tuple(sorted(map(repr, self.all_kwargs().items()))), self.pre_hook))
