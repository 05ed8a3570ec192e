"""What users see when something is wrong: where, what, why, and what to write instead.

Every error of tilewright derives from `TilewrightError`; its class, which programs catch and reports name, says of what kind it
is. Errors about a kernel's text carry a `Span` and print the line with a caret; errors of an inlined function also print the
chain of calls that led to it.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .frozen import frozen

if TYPE_CHECKING:
    from typing_extensions import Self

SHOWN_CALLS = 4  # of a long chain, at each end


@frozen
class Span:
    """A place in the user's source. Lines count from 1, columns from 0; `text` is the whole first line."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str

    def caret_lines(self) -> str:
        """The source line and, below it, carets under the span."""
        end = self.end_column if self.end_line == self.line else len(self.text)
        width = max(min(end, len(self.text)) - self.column, 1)
        before = "".join("\t" if letter == "\t" else " " for letter in self.text[: self.column].ljust(self.column))
        return f"    {self.text}\n    {before}{'^' * width}"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column + 1}"


class TilewrightError(Exception):
    """Base of all errors of tilewright.

    Attributes:
      about: the argument of the user's call that is wrong; empty for the call as a whole, None where that is not to be shown.
      place: where that stands, known when the error has left tilewright.
    """

    about: str | None = None
    place: Span | None = None

    def __str__(self) -> str:
        text = Exception.__str__(self)  # KeyError's, of which some derive, has quotes around it
        if self.place is None:
            return text
        first, *rest = f"{self.place}: {type(self).__name__}: {text}".splitlines()
        return "\n".join([first, *([self.place.caret_lines()] if self.place.text else []), *rest])

    def of(self, about: str = "") -> Self:
        """The error, to be raised, as one about the user's call, or about an argument of it."""
        if self.about is None:
            self.about = about
        return self


@contextlib.contextmanager
def about(argument: str) -> Iterator[None]:
    """What goes wrong within is about an argument of the user's call."""
    try:
        yield
    except TilewrightError as error:
        raise error.of(argument)


class CompilationError(TilewrightError):
    """A kernel's text cannot be translated.

    Attributes:
      span: where, or None when the place is unknown.
      cause: one sentence: what is wrong.
      remedy: what to write instead; may be empty.
      calls: spans of the calls that led here, outermost first.
    """

    def __init__(self, cause: str, span: Span | None = None, remedy: str = "", calls: tuple[Span, ...] = ()) -> None:
        """Makes the error; `str()` of it is the whole report."""
        self.cause, self.span, self.remedy, self.calls = cause, span, remedy, calls
        super().__init__(cause)

    @property
    def error_message(self) -> str:
        """Triton's name for `cause`."""
        return self.cause

    def __str__(self) -> str:
        lines = []
        left_out = len(self.calls) - 2 * SHOWN_CALLS
        for number, call in enumerate(self.calls):
            if left_out > 1 and number == SHOWN_CALLS:
                lines.append(f"  ({left_out} more calls)")
            if left_out <= 1 or not SHOWN_CALLS <= number < SHOWN_CALLS + left_out:
                lines += [f"{call}: called from here", call.caret_lines()]
        span = self.span or self.place
        place = f"{span}: " if span else ""
        lines.append(f"{place}{type(self).__name__}: {self.cause}")
        if span and span.text:
            lines.append(span.caret_lines())
        if self.remedy:
            lines.append(f"  help: {self.remedy}")
        return "\n".join(lines)


class UnsupportedLanguageConstruct(CompilationError):  # noqa: N818 (Triton's name)
    """A Python statement or expression that kernels cannot contain."""


class UnknownNameError(CompilationError):
    """A name that `tl`, a module or the kernel's scope does not have."""


class ShapeError(CompilationError):
    """Tiles whose shapes do not fit together."""


class DTypeError(CompilationError):
    """An operation on element types that it does not take."""


class UndefinedVariableError(CompilationError):
    """A variable that is not defined on every way to its use."""


class NotConstexprError(CompilationError):
    """A run-time value where a compile-time value is needed."""


class CompileTimeAssertionFailure(CompilationError):  # noqa: N818 (Triton's name)
    """A `tl.static_assert` that does not hold."""


class NoSourceError(CompilationError, ValueError):
    """A kernel whose source text cannot be found."""

    about = ""


class ArgumentError(CompilationError):
    """A call of a `tl` function with arguments that it does not take."""


class SignatureError(TilewrightError):
    """A signature of `translate` that does not fit the kernel's parameters."""


class LaunchError(TilewrightError):
    """A launch that cannot be carried out: its grid, its arguments or where they lie."""


class GridError(LaunchError):
    """A grid that is not one to three non-negative integers."""


class CooperativeGridError(GridError):
    """A cooperative grid whose programs cannot all run at once."""


class ArgumentKindError(LaunchError):
    """An argument that is no array, number or constexpr value."""


class DeviceError(LaunchError, ValueError):
    """Arrays that lie on different devices, or on one that the chosen mode cannot reach."""

    about = ""


class ContiguityError(LaunchError):
    """An array whose elements do not lie where the kernel will look for them."""


class TracedArrayError(LaunchError):
    """An array without memory, which stands for one that is computed later: a FakeTensor of torch, a tracer of JAX."""


class OperatorError(LaunchError):
    """A function that torch or JAX cannot take as an operator."""


class KernelFaultError(LaunchError, RuntimeError):
    """A fault that a run of the kernel found: a race, an access out of bounds, a deadlock, a failed assertion."""


class HostExpressionError(LaunchError):
    """An expression of a tensor map or guard that is not arithmetic in the kernel's integer arguments."""


class DescriptorError(ArgumentKindError, AssertionError):
    """A tensor descriptor of a tensor or blocks that none can describe."""


class TensorMapError(LaunchError):
    """A tensor map that the hardware cannot take with the arguments of a launch."""


class GlobalChangedError(LaunchError, RuntimeError):
    """A launch of a kernel that read a global variable which has changed since."""


class OptionError(LaunchError, AssertionError):
    """A launch option with a value that no kernel can have."""


class IntegerRangeError(ArgumentKindError, OverflowError):
    """An integer argument that 64 bits cannot hold."""


class SpecializationDataError(LaunchError, RuntimeError):
    """Specialization data of another kernel or another target."""


class UnknownArgumentError(LaunchError, KeyError):
    """A launch with a keyword that neither the kernel nor the options have."""


class MissingArgumentError(LaunchError, TypeError):
    """A launch whose arguments do not fit the kernel's parameters."""

    about = ""


class HostCallError(LaunchError, RuntimeError):
    """A kernel that is called on the host, without a grid."""

    about = ""


class UnknownOptionError(UnknownArgumentError, TypeError):
    """A keyword that `jit`, `autotune`, `heuristics` or `Config` does not have."""


class OutOfResources(TilewrightError):  # noqa: N818 (Triton's name)
    """The kernel needs more of something than the hardware has.

    Attributes:
      required: how much it needs.
      limit: how much there is.
      name: of what, such as "shared memory" (bytes) or "threads".
      detail: who needs how much, a line each; may be empty.
      span: what in the kernel's text needs the most, or None where that cannot be told.
      cause: one sentence, which also says what may help.
    """

    def __init__(self, required: int, limit: int, name: str, detail: str = "", span: Span | None = None) -> None:
        """Makes the error; `str()` of it is the whole report."""
        self.required, self.limit, self.name, self.detail, self.span = required, limit, name, detail, span
        self.cause = (
            f"out of resource: {name}, Required: {required}, Hardware limit: {limit}. "
            "Reducing block sizes or `num_stages` may help."
        )
        place = f"{span}: OutOfResources: " if span else ""
        lines = (f"{place}{self.cause}", span.caret_lines() if span else "", detail)
        super().__init__("\n".join(line for line in lines if line))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.required, self.limit, self.name, self.detail, self.span), vars(self)


class ToolchainError(TilewrightError):
    """A compiler, driver or package that this step needs is missing or failed."""


class MissingPackageError(ToolchainError, ImportError):
    """A package of others that a module of ours is made for."""


class OutputExistsError(TilewrightError):
    """An output file that exists and was not to be overwritten."""


class AutotunerError(TilewrightError):
    """Tuning that cannot be carried out."""


class NoConfigLeftError(AutotunerError):
    """Tuning without a config that can run: none was given to measure, or none fits the hardware."""


class TuningNameError(AutotunerError, ValueError):
    """`autotune` with the name of a parameter that the kernel does not have."""


class ConfigConflictError(AutotunerError, ValueError):
    """A launch that passes what the configs set."""


class TuningInCaptureError(AutotunerError):
    """The first launch of a kernel with several configs while a CUDA graph is being captured."""


class TunedFileError(AutotunerError):
    """A file of tuned configs that cannot be read."""


class TuningArgumentError(AutotunerError, TypeError):
    """An argument of `autotune` or `heuristics` of another kind, or a function in it that takes or returns something else."""


_WARNED: dict[
    str, dict[Any, Any]
] = {}  # by the file: what has been said of which line, which Python keeps for each module


def warn_at(file: str, line: int, text: str) -> None:
    """A warning at the user's line, once for each line."""
    warnings.warn_explicit(text, UserWarning, file, line, registry=_WARNED.setdefault(file, {}))
