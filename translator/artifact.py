"""What goes into a translation and what comes out: plain values that the runtime can cache, compare and print."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .language.dtypes import Element


@dataclass(frozen=True, slots=True)
class RuntimeArgument:
    """A parameter that is passed at launch: its type, and whether its value (or address in bytes) divides by 16."""

    name: str
    element: Element
    divisible_by_16: bool = False


@dataclass(frozen=True, slots=True)
class ConstantArgument:
    """A parameter that is folded into the text: a constexpr, None, or an integer equal to 1."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class TupleArgument:
    """A parameter that is a tuple of arguments, which may be tuples again."""

    name: str
    items: tuple[Argument, ...]


Argument = RuntimeArgument | ConstantArgument | TupleArgument


@dataclass(frozen=True, slots=True)
class Options:
    """The launch options that change the text."""

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    maxnreg: int | None = None
    debug: bool = False
    enable_fp_fusion: bool = True


@dataclass(frozen=True, slots=True)
class Target:
    """A GPU architecture. `capability` is 90 for "sm_90a"; sizes in bytes."""

    name: str
    capability: int
    max_static_shared_bytes: int
    max_dynamic_shared_bytes: int
    max_threads_per_block: int = 1024


@dataclass(frozen=True, slots=True)
class LaunchParameter:
    """One parameter of the generated kernel, in order: where its value comes from and how it is packed.

    `path` is the index of the user's argument, then of the item within a tuple.
    """

    name: str
    element: Element
    path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Artifact:
    """A translated kernel: the text and everything that a launcher must know.

    Attributes:
      source: the `.cu` text.
      kernel_name: the `extern "C"` name.
      target: the architecture it was written for, such as "sm_90a".
      num_threads: threads per block, all along x.
      shared_bytes: dynamic shared memory per block; static shared memory is the compiler's to count.
      parameters: the kernel's parameters in order.
      writes: names of the pointer parameters that the kernel writes.
      lines: line of the `.cu` (from 1) to line of the user's file, for every line that came from a statement.
      file: base name of the user's file.
      globals: plain global values that were read, as (module, name, value).
    """

    source: str
    kernel_name: str
    target: str
    num_threads: int
    shared_bytes: int
    parameters: tuple[LaunchParameter, ...]
    writes: tuple[str, ...] = ()
    lines: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    file: str = ""
    globals: tuple[tuple[str, str, Any], ...] = field(default=(), compare=False)
