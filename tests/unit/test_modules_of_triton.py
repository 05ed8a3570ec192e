"""What public kernels take from Triton's inside: `tl.core`, `tl.standard`, `.value`, pointers as truth values."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
import tilewright.language.core as core
from tilewright.diagnostics import UnknownNameError
from tilewright.language.standard import _is_power_of_two, _log2, zeros_like
from tilewright.runtime.arguments.arrays import HOST, describe


@triton.jit
def bits_kernel(x_ptr, out_ptr, BLOCK: core.constexpr):
    i = core.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    levels: tl.constexpr = _log2(x.shape[0])
    bits: tl.constexpr = tl.core.get_int_dtype(bitwidth=x.dtype.primitive_bitwidth, signed=True)
    plain = tl.core._unwrap_if_constexpr(bits)
    y = (x.to(bits, bitcast=True) ^ levels) + core.sum(i) + tl.full((), 1, plain) + zeros_like(i)
    if _is_power_of_two(BLOCK):
        tl.store(out_ptr + i, y + tl.standard._log2(BLOCK) + tl.core.CONSTEXPR_0)


def test_core_and_standard_have_what_tl_has(run_everywhere: Any) -> None:
    x = np.arange(64, dtype=np.float32)
    out = run_everywhere(bits_kernel, (1,), x, np.zeros(64, np.int32), BLOCK=64)[1]
    np.testing.assert_array_equal(out, (x.view(np.int32) ^ 6) + 2016 + 1 + 6)


@pytest.mark.parametrize("name", sorted(tl.NOT_YET))
def test_names_that_are_still_to_come_say_what_to_write_until_then(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"tl\.{name} is not supported yet; \w"):
        getattr(core, name)


@triton.jit
def sums_so_far_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.sum(tl.where(i[:, None] >= i[None, :], x[None, :], 0), axis=1))


def test_what_is_to_be_written_until_then_is_right(run_everywhere: Any) -> None:
    x = np.arange(3, 35, dtype=np.float32)
    out = run_everywhere(sums_so_far_kernel, (1,), x, np.zeros(32, np.float32), N=32)[1]
    np.testing.assert_array_equal(out, np.cumsum(x))
    assert "tl.sum(tl.where(i[:, None] >= i[None, :], x[None, :], 0), axis=1)" in tl.NOT_YET["cumsum"]


def test_import_triton_alone_makes_its_modules_reachable() -> None:
    """In a process of its own: what other tests have imported is reachable in any case."""
    names = """triton.tools.tensor_descriptor.TensorDescriptor triton.tools.disasm.get_sass triton.errors.TritonError
        triton.runtime.errors.TritonError triton.compiler.errors.CompilationError triton.language.extra.cuda.libdevice""".split()
    code = f"import tilewright as triton\nfor name in {names}: eval(name)\nfrom tilewright import errors, tools"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match=r"triton\.tools has no 'compile'"):
        _ = triton.tools.compile


def test_names_that_core_lacks() -> None:
    with pytest.raises(AttributeError, match=r"did you mean tl\.arange\?"):
        _ = core.arrange
    with pytest.raises(ValueError, match="12"):
        core.get_int_dtype(12, True)


@triton.jit
def lowest(dtype):
    inner = dtype.value
    if inner.is_floating():
        value: tl.constexpr = float("-inf")
        return value
    return 0


@triton.jit
def maximum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK.value)
    dtype = x_ptr.dtype.element_ty
    tl.store(out_ptr, tl.max(tl.load(x_ptr + i, mask=i < n, other=lowest(dtype))))


def test_the_value_of_what_is_known_at_compile_time(run_everywhere: Any) -> None:
    """Triton wraps every such value; its kernels unwrap by hand."""
    x = -np.arange(1, 101, dtype=np.float32)
    assert run_everywhere(maximum_kernel, (1,), x, np.zeros(1, np.float32), 50, BLOCK=64)[1][0] == -1


def test_run_time_values_have_no_value() -> None:
    @triton.jit
    def wrong(out_ptr, n):
        tl.store(out_ptr, n.value)

    with pytest.raises(UnknownNameError, match="has no attribute value"):
        wrong.translate("*i32, i32")


@triton.jit
def affine_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    if weight_ptr:
        weight = tl.load(weight_ptr + i, mask=i < n)
    else:
        weight = tl.full((BLOCK,), 2.0, tl.float32)
    bias = tl.load(bias_ptr) if bias_ptr else 0.0
    tl.store(out_ptr + i, x * weight + bias, mask=i < n)


@pytest.mark.parametrize("weighted", (False, True))
@pytest.mark.parametrize("biased", (False, True))
def test_a_pointer_is_true_where_it_points_to_something(run_everywhere: Any, weighted: bool, biased: bool) -> None:
    x = np.arange(100, dtype=np.float32)
    weight, bias = x + 1 if weighted else None, np.ones(1, np.float32) if biased else None
    out = run_everywhere(affine_kernel, (1,), x, weight, bias, np.zeros(100, np.float32), 100, BLOCK=128)[-1]
    np.testing.assert_array_equal(out, x * (x + 1 if weighted else 2) + biased)


class Buffer:
    """Memory of a library that has only an address, an element type and a device to tell."""

    def __init__(self, array: np.ndarray, device: Any) -> None:
        self.array, self.dtype, self.device = array, array.dtype, device

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)


class Device:
    """A device as torch describes it."""

    def __init__(self, kind: str, index: int | None) -> None:
        self.type, self.index = kind, index


@pytest.mark.parametrize(("device", "number"), ((Device("cpu", None), HOST), ("cpu", HOST), (Device("cuda", 1), 1)))
def test_what_has_an_address_says_where_it_lies(device: Any, number: int) -> None:
    found = describe(Buffer(np.zeros(4, np.float32), device), "x_ptr")
    assert found is not None and found.device == number


def test_the_key_of_a_kernel_is_that_of_what_it_calls_too() -> None:
    assert maximum_kernel.cache_key == maximum_kernel.cache_key != affine_kernel.cache_key
