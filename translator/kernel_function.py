"""What `@jit` makes of a Python function: its source text, its parameters, its globals. Launching is added elsewhere."""

from __future__ import annotations

import inspect
import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .diagnostics import NoSourceError


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """One parameter of a kernel: its place, its annotation as text, and what that says."""

    num: int
    name: str
    annotation: str
    default: Any = inspect.Parameter.empty
    variadic: bool = False

    @property
    def is_constexpr(self) -> bool:
        """Whether its value is needed when the kernel is translated."""
        return "constexpr" in self.annotation

    @property
    def is_const(self) -> bool:
        """Whether it is a pointer that is only read."""
        return "const" in self.annotation and not self.is_constexpr

    @property
    def has_default(self) -> bool:
        """Whether it may be left out."""
        return self.default is not inspect.Parameter.empty


def _annotation_text(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", None) or str(annotation)


class KernelFunction:
    """A function in the language, not yet specialised to argument types.

    Attributes:
      fn: the Python function.
      params: its parameters.
      file: the base name of its file; `path` is the whole path.
      first_line: the line where `src` begins in that file.
    """

    def __init__(self, fn: Callable[..., Any], source: str | None = None) -> None:
        """Captures the source now, so that later edits of the file do not matter.

        Raises:
          NoSourceError: when the text cannot be found and `source` is not given.
        """
        self.fn = fn
        self.__name__ = fn.__name__
        self.__doc__ = fn.__doc__
        self.__module__ = fn.__module__
        self.path = fn.__code__.co_filename
        self.file = os.path.basename(self.path)
        self._raw, self.first_line = (source, 1) if source is not None else self._find_source(fn)
        self.params = [
            KernelParameter(
                number, name, _annotation_text(p.annotation), p.default, p.kind is inspect.Parameter.VAR_POSITIONAL
            )
            for number, (name, p) in enumerate(inspect.signature(fn).parameters.items())
        ]

    @staticmethod
    def _find_source(fn: Callable[..., Any]) -> tuple[str, int]:
        try:
            lines, first = inspect.getsourcelines(fn)
            if fn.__code__.co_filename in ("<string>", "<stdin>") or f"def {fn.__name__}" not in "".join(lines):
                raise OSError("what was found is not the function")  # newer Pythons answer for executed strings too
        except (OSError, TypeError) as error:
            raise NoSourceError(
                f"the source of {fn.__name__} cannot be found: @jit functions must be defined in a file, not typed into "
                "a prompt or passed to python -c",
                None,
                "put the kernel into a .py file and import it",
            ) from error
        return "".join(lines), first

    @property
    def arg_names(self) -> list[str]:
        """Names of the parameters."""
        return [parameter.name for parameter in self.params]

    @property
    def raw_src(self) -> str:
        """The source text as it stands in the file, decorators included."""
        return self._raw

    @property
    def src(self) -> str:
        """The source text from `def` on, without common indentation."""
        text = textwrap.dedent(self._raw)
        start = text.find("def ") if text.startswith("def ") else text.find("\ndef ") + 1
        return text[start:]

    def _unsafe_update_src(self, source: str) -> None:
        """Replaces the source text (Triton's tests make variants of a kernel this way)."""
        self._raw = source

    @property
    def __globals__(self) -> dict[str, Any]:
        return self.fn.__globals__

    def outer_names(self) -> dict[str, Any]:
        """Globals, and on top of them the variables of enclosing functions."""
        names = dict(self.fn.__globals__)
        for name, cell in zip(self.fn.__code__.co_freevars, self.fn.__closure__ or (), strict=False):
            try:
                names[name] = cell.cell_contents
            except ValueError:
                continue  # not assigned yet
        return names

    def __repr__(self) -> str:
        return f"JITFunction({self.__module__}:{self.__name__})"
