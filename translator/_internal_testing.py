"""`triton._internal_testing`: what tests of kernels import; see `tilewright.runtime.measuring.kernel_tests`."""

from typing import Any

from tilewright.absent import absent
from tilewright.runtime.measuring import kernel_tests
from tilewright.runtime.measuring.kernel_tests import (
    default_alloc_fn,
    dtypes,
    dtypes_with_bfloat16,
    float_dtypes,
    float_dtypes_with_bfloat16,
    get_arch,
    get_current_target,
    int_dtypes,
    integral_dtypes,
    is_ampere_or_newer,
    is_blackwell,
    is_cuda,
    is_hopper,
    is_hopper_or_newer,
    is_interpreter,
    is_sm12x,
    numpy_random,
    str_to_triton_dtype,
    supports_tma,
    supports_ws,
    tma_dtypes,
    tma_skip_msg,
    to_numpy,
    to_triton,
    torch_dtype_name,
    torch_dtypes,
    torch_float8_dtypes,
    uint_dtypes,
    unwrap_tensor,
)

__all__ = [
    "default_alloc_fn", "dtypes", "dtypes_with_bfloat16", "float_dtypes", "float_dtypes_with_bfloat16", "get_arch",
    "get_current_target", "int_dtypes", "integral_dtypes", "is_ampere_or_newer", "is_blackwell", "is_cuda", "is_hopper",
    "is_hopper_or_newer", "is_interpreter", "is_sm12x", "numpy_random", "str_to_triton_dtype", "supports_tma", "supports_ws",
    "tma_dtypes", "tma_skip_msg", "to_numpy", "to_triton", "torch_dtype_name", "torch_dtypes", "torch_float8_dtypes",
    "uint_dtypes", "unwrap_tensor",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name.startswith(("is_hip", "is_xpu")):
        return kernel_tests.other_vendors
    if name == "requires_tma":
        import pytest

        return pytest.mark.skipif(not supports_tma(), reason=tma_skip_msg())
    raise absent("triton._internal_testing", name, __all__)
