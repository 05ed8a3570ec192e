"""Classes of the language that stand in annotations, in `isinstance`, or as options."""

from __future__ import annotations

import builtins
import enum
import math
from collections.abc import Iterable, Iterator
from typing import Any

from ..frozen import frozen
from .dtypes import DType, PointerType


class tensor:  # noqa: N801 (Triton's name)
    """The type of tiles and run-time scalars inside kernels; the interpreter's are instances of it."""

    __slots__ = ()


class _Instances(type):
    """The class of names under which kernels make values of another class, and ask for it by `isinstance`."""

    known_as: type

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.known_as)


class tuple(metaclass=_Instances):  # noqa: N801 (Triton's name)
    """The type of tuples inside kernels; `tl.tuple(items)` is one."""

    known_as = builtins.tuple

    def __new__(cls, items: Iterable[Any] = ()) -> Any:
        """Python's own."""
        return builtins.tuple(items)


class tensor_descriptor:  # noqa: N801 (Triton's name)
    """The type of tensor descriptors inside kernels; the interpreter's are instances of it."""

    __slots__ = ()


@frozen
class constexpr_type:  # noqa: N801 (Triton's name)
    """The type of a compile-time value: `x.type` of a `tl.constexpr`."""

    value: Any

    def __repr__(self) -> str:
        return f"constexpr_type[{self.value}]"


class const:  # noqa: N801 (Triton's name)
    """Annotation of a pointer parameter that is only read."""


class PropagateNan(enum.Enum):
    """What `maximum`, `minimum` and `clamp` do with NaN."""

    NONE = 0
    ALL = 1


class pointer_type(metaclass=_Instances):  # noqa: N801 (Triton's name)
    """The type of pointers to `element_ty`; they point into global memory, the only `address_space`."""

    known_as = PointerType

    def __new__(cls, element_ty: Any, address_space: int = 1, const: bool = False) -> Any:
        """A `PointerType`.

        Raises:
          TypeError: for elements that are no numbers.
        """
        element_ty = getattr(element_ty, "value", element_ty)
        if not isinstance(element_ty, DType):
            raise TypeError(f"a pointer points to elements such as tl.float32, not to {element_ty!r}")
        return PointerType(element_ty, const)


class tuple_type:  # noqa: N801 (Triton's name)
    """The type of a tuple: `x.type`; the types of its items are taken by their numbers."""

    def __init__(self, types: Iterable[Any], fields: Iterable[str] | None = None) -> None:
        """The type of tuples of these types; `fields` are the names of a namedtuple's items."""
        self.types = builtins.tuple(types)
        self.fields = builtins.tuple(fields) if fields else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple_type) and (self.types, self.fields) == (other.types, other.fields)

    def __hash__(self) -> int:
        return hash((self.types, self.fields))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.types)

    def __getitem__(self, index: int) -> Any:
        return self.types[index]

    def __len__(self) -> int:
        return len(self.types)

    def __repr__(self) -> str:
        names = [f"{name}: " for name in self.fields] if self.fields else [""] * len(self.types)
        return f"[{', '.join(f'{name}{one}' for name, one in zip(names, self.types, strict=True))}]"


class block_type:  # noqa: N801 (Triton's name)
    """The type of a tile: `x.type`."""

    def __init__(self, element_ty: Any, shape: Iterable[int]) -> None:
        """The type of tiles of `shape`."""
        self.shape = builtins.tuple(int(side) for side in shape)
        self.element_ty = self.scalar = element_ty
        self.numel = math.prod(self.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, block_type) and (self.element_ty, self.shape) == (other.element_ty, other.shape)

    def __hash__(self) -> int:
        return hash((self.element_ty, self.shape))

    def __repr__(self) -> str:
        return f"{self.element_ty}{list(self.shape)}"

    def is_block(self) -> bool:
        """True."""
        return True

    def is_ptr(self) -> bool:
        """False: the tile is a block, its elements may be pointers."""
        return False

    def get_block_shapes(self) -> Any:
        """The shape."""
        return self.shape
