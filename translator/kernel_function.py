"""What `@jit` makes of a Python function: its source text, its parameters, its globals. Launching is added elsewhere."""

from __future__ import annotations

import ast
import inspect
import os
import textwrap
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .diagnostics import ArgumentError, NoSourceError, Span
from .frozen import frozen

if TYPE_CHECKING:
    from .frontend.source import Source


@frozen
class KernelParameter:
    """One parameter of a kernel: its place, its annotation as text, what that says, and what of its values counts.

    With `do_not_specialize` only the type of a value counts; with `do_not_specialize_on_alignment` whether it is 1, too, but
    not what divides it.
    """

    num: int
    name: str
    annotation: str
    default: Any = inspect.Parameter.empty
    variadic: bool = False
    do_not_specialize: bool = False
    do_not_specialize_on_alignment: bool = False

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

    def check(self, span: Callable[[], Span], calls: tuple[Span, ...] = ()) -> None:
        """Rejects a compile-time parameter whose value the decorator asks not to look at; `span` says where it stands.

        Raises:
          ArgumentError: naming the option.
        """
        if not self.is_constexpr or not (self.do_not_specialize or self.do_not_specialize_on_alignment):
            return
        option = "do_not_specialize" if self.do_not_specialize else "do_not_specialize_on_alignment"
        raise ArgumentError(
            f"{self.name} marked as constexpr and listed in {option}",
            span(),
            f"leave {self.name} out of {option}, or leave tl.constexpr out for a value that is known at run time only",
            calls,
        )


def normalised(text: str) -> str:
    """Text with identifiers as Python reads them: the micro sign is the Greek letter, a ligature its letters."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _annotation_text(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", None) or str(annotation)


def _check_kind(fn: Any) -> None:
    """Rejects what is no plain function.

    Raises:
      NoSourceError: with what to write instead.
    """
    if isinstance(fn, KernelFunction):
        raise NoSourceError(f"{fn.__name__} is marked @jit twice", None, "leave one of them out")
    if hasattr(fn, "arg_names"):
        raise NoSourceError("@jit stands above @autotune or @heuristics", None, "write it directly above the def")
    if inspect.ismethod(fn):
        raise NoSourceError(f"{fn.__name__} is a method of an object", None, "give @jit a function without self")
    if not inspect.isfunction(fn):
        raise NoSourceError(f"@jit takes a function written with def, not {fn!r}", None, "write it as a function")
    if fn.__name__ == "<lambda>":
        raise NoSourceError("@jit takes a function written with def, not a lambda", None, "give it a name with def")
    if inspect.iscoroutinefunction(fn) or inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise NoSourceError(f"{fn.__name__} is a coroutine or a generator", None, "write a plain def without yield")
    for name, parameter in inspect.signature(fn).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            raise NoSourceError(f"{fn.__name__} takes **{name}, which kernels cannot", None, "name its parameters")


class KernelFunction:
    """A function in the language, not yet specialised to argument types.

    Attributes:
      fn: the Python function.
      params: its parameters.
      file: the base name of its file; `path` is the whole path.
      first_line: the line where `src` begins in that file.
      parsed: its text, and what the frontend has made of it; kept here so that it lives no longer than the function.
    """

    def __init__(self, fn: Callable[..., Any], source: str | None = None) -> None:
        """Captures the source now, so that later edits of the file do not matter.

        Raises:
          NoSourceError: when the text cannot be found and `source` is not given.
        """
        if isinstance(fn, classmethod):
            raise NoSourceError(f"{fn.__name__} is a class method", None, "make it a @staticmethod, without cls")
        fn = inspect.unwrap(fn)  # what a decorator of the user's put around it is not translated
        _check_kind(fn)
        self.fn = fn
        self.__name__, self.__qualname__ = fn.__name__, fn.__qualname__
        self.__doc__ = fn.__doc__
        self.__module__ = fn.__module__
        self.path = fn.__code__.co_filename
        self.file = os.path.basename(self.path).encode(errors="backslashreplace").decode()  # it stands in texts
        self._raw, self.first_line = (source, 1) if source is not None else self._find_source(fn)
        self.params = [
            KernelParameter(
                number, name, _annotation_text(p.annotation), p.default, p.kind is inspect.Parameter.VAR_POSITIONAL
            )
            for number, (name, p) in enumerate(inspect.signature(fn).parameters.items())
        ]
        self.parsed: tuple[str, Source] | None = None

    @staticmethod
    def _find_source(fn: Callable[..., Any]) -> tuple[str, int]:
        try:
            lines, first = inspect.getsourcelines(fn)
            if fn.__code__.co_filename in ("<string>", "<stdin>") or f"def {fn.__code__.co_name}" not in normalised(
                "".join(lines)
            ):
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

    @property
    def module(self) -> str:
        """The name of the module that it stands in."""
        return self.__module__

    def parse(self) -> ast.Module:
        """`src` as Python's own tree."""
        return ast.parse(self.src)

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

    def get_capture_scope(self) -> dict[str, Any]:
        """`outer_names`, by the name that programs which write variants of a kernel ask for."""
        return self.outer_names()

    def __repr__(self) -> str:
        return f"JITFunction({self.__module__}:{self.__name__})"
