"""Classes of the language that stand in annotations, in `isinstance`, or as options."""

from __future__ import annotations

import enum
from typing import Any

from .dtypes import PointerType


class tensor:  # noqa: N801 (Triton's name)
    """The type of tiles and run-time scalars inside kernels; the interpreter's are instances of it."""

    __slots__ = ()


class tuple:  # noqa: N801 (Triton's name)
    """The type of tuples inside kernels."""


class tensor_descriptor:  # noqa: N801 (Triton's name)
    """The type of tensor descriptors inside kernels; the interpreter's are instances of it."""

    __slots__ = ()


class const:  # noqa: N801 (Triton's name)
    """Annotation of a pointer parameter that is only read."""


class PropagateNan(enum.Enum):
    """What `maximum`, `minimum` and `clamp` do with NaN."""

    NONE = 0
    ALL = 1


def pointer_type(element_ty: Any, address_space: int = 1, const: bool = False) -> PointerType:
    """The type of pointers to `element_ty`; they point into global memory, the only `address_space`."""
    return PointerType(getattr(element_ty, "value", element_ty), const)
