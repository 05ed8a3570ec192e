"""CUDA's headers, by the types that occur in a kernel."""

from __future__ import annotations

from ...ir.nodes import Kernel
from ...ir.types import ValueType
from ...ir.walk import all_expressions
from ...language.dtypes import DType, PointerType

TYPE_HEADERS = {"fp16": "cuda_fp16.h", "bf16": "cuda_bf16.h", "fp8e5": "cuda_fp8.h", "fp8e4nv": "cuda_fp8.h"}


def includes(kernel: Kernel) -> tuple[str, ...]:
    """CUDA's headers for the types that occur."""
    return tuple(sorted({TYPE_HEADERS[dtype.name] for dtype in dtypes_of(kernel) if dtype.name in TYPE_HEADERS}))


def dtypes_of(kernel: Kernel) -> set[DType]:
    """All element types that occur in a kernel, pointees included."""
    dtypes: set[DType] = set()

    def see(type_: ValueType) -> None:
        element = type_.element
        dtypes.add(element.element_ty if isinstance(element, PointerType) else element)

    for parameter in kernel.parameters:
        see(parameter.variable.type)
    for part in all_expressions(kernel):
        see(part.type)
    return dtypes
