"""`tl` functions as objects: a name, a signature and a documentation, bound to a meaning only where they are called.

The frontend looks a `Builtin` up by its name and translates the call; the interpreter installs itself as `active` while a
kernel runs in Python and executes the call. Outside a kernel a call is an error.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from ..diagnostics import ArgumentError, TilewrightError
from .hints import unfitting

# The interpreter of the running kernel: a function of (builtin, arguments by name), or None outside kernels.
active: ContextVar[Callable[[Builtin, dict[str, Any]], Any] | None] = ContextVar("active", default=None)


class Builtin:
    """A function of the language.

    Attributes:
      name: what follows `tl.`; "libdevice.pow" for a libdevice function.
      method: whether it can be called as a method of its first argument.
      op: the row of the op table that it is, or "" for a structured function.
    """

    def __init__(
        self, name: str, like: Callable[..., Any] | Sequence[str], doc: str, *, method: bool = False, op: str = ""
    ) -> None:
        """Makes a builtin; `like` is a function with its parameters, or their names. See the class for the others."""
        self.name, self.method, self.op = name, method, op
        self._like = like
        self.__name__ = name.rpartition(".")[2]
        self.__doc__ = doc

    @property
    def __signature__(self) -> inspect.Signature:
        """What `inspect.signature` finds, made when it is asked for: of 300 functions a program uses a few."""
        return inspect.signature(self._like) if callable(self._like) else _signature_of(self._like)

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The parameters with their defaults, without annotations."""
        return without_annotations(self.__signature__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function inside a kernel that the interpreter executes.

        Raises:
          TilewrightError: outside a kernel.
          ArgumentError: when the arguments do not fit the signature.
        """
        run = active.get()
        if run is None:
            raise TilewrightError(f"tl.{self.name} can be called only inside a kernel (a function under @triton.jit)")
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            name = f"tl.{self.name}"
            raise ArgumentError(f"{name}: {error}", None, unfitting(name, self.signature, kwargs)) from None
        bound.apply_defaults()
        return run(self, bound.arguments)

    def __repr__(self) -> str:
        return f"<tl.{self.name}>"


def builtin(function: Callable[..., Any] | None = None, *, method: bool = False) -> Any:
    """Turns a stub (signature and docstring, no body) into a `Builtin`."""
    if function is None:
        return lambda stub: builtin(stub, method=method)
    return Builtin(function.__name__, function, function.__doc__ or "", method=method)


def _signature_of(names: Sequence[str]) -> inspect.Signature:
    return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names])


def without_annotations(signature: inspect.Signature) -> inspect.Signature:
    """A signature as calls and messages need it."""
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return inspect.Signature(bare)
