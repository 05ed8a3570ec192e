"""`kernel.warmup`: compiling for arrays that are not there yet."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.diagnostics import ArgumentKindError
from tilewright.runtime.jit import MockTensor


@triton.jit
def scaled(x_ptr, out_ptr, n, factor, DTYPE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, (x * factor).to(DTYPE), mask=offsets < n)


@triton.jit
def copied(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")


def aligned(dtype: Any) -> np.ndarray:
    memory = np.ones(256 + 16, dtype)
    start = -memory.ctypes.data // memory.itemsize % (16 // memory.itemsize)
    return memory[start : start + 256]


@pytest.mark.parametrize("library", ["torch", "language"])
def test_types_in_place_of_arrays(library: str) -> None:
    single = tl.float32 if library == "language" else pytest.importorskip("torch").float32
    half = tl.float16 if library == "language" else pytest.importorskip("torch").float16
    compiled = scaled.warmup(single, half, 200, 2.0, DTYPE=tl.float16, BLOCK=256, grid=(1,))
    x, out = aligned(np.float32), aligned(np.float16)
    assert scaled[(1,)](x, out, 200, 2.0, DTYPE=tl.float16, BLOCK=256) is compiled, "the launch finds what was compiled"
    np.testing.assert_array_equal(out, np.where(np.arange(256) < 200, 2.0, 1.0))


def test_types_beside_arrays_and_by_name() -> None:
    x = aligned(np.float32)
    compiled = copied.warmup(x, n=48, out_ptr=tl.float32, BLOCK=64)
    assert copied[(1,)](x, aligned(np.float32), 48, BLOCK=64) is compiled


def test_tunings_and_heuristics_pass_types_on() -> None:
    tuned = triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])(copied)
    sized = triton.heuristics({"BLOCK": lambda arguments: triton.next_power_of_2(arguments["n"])})(copied)
    assert len(tuned.warmup(tl.float32, tl.float32, 48)) == 2
    assert "BLOCK = 32" in sized.warmup(tl.float32, tl.float32, 20, grid=(1,)).source


def test_what_stands_for_an_array() -> None:
    mock = MockTensor(tl.float16, (4, 8, 16))
    assert mock.stride() == (128, 16, 1) and mock.data_ptr() % 16 == 0
    assert MockTensor(tl.float16).stride() == (1,) and triton.MockTensor is triton.runtime.MockTensor is MockTensor
    assert (
        copied.warmup(mock, MockTensor(tl.float16), 48, BLOCK=64).artifact.parameters[0].element.element_ty
        == tl.float16
    )
    with pytest.raises(ArgumentKindError, match="argument x_ptr is a MockTensor"):
        copied[(1,)](mock, mock, 48, BLOCK=64)


def test_a_type_is_no_array_in_a_launch() -> None:
    with pytest.raises(ArgumentKindError, match="only a compile-time parameter can take"):
        copied[(1,)](tl.float32, tl.float32, 48, BLOCK=64)


@triton.jit(do_not_specialize=["n"], repr=lambda specialization: "filled_variant", debug=False)
def filled(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, n, mask=offsets < n)


def test_variants_of_a_kernel_keep_what_the_decorator_was_given() -> None:
    """What libraries do that write kernels from the text of others."""
    parameters = list(inspect.signature(triton.JITFunction.__init__).parameters.values())[2:]
    given = {one.name: getattr(filled, one.name, one.default) for one in parameters}
    assert given["do_not_specialize"] == ("n",) and given["debug"] is False and given["launch_metadata"] is None
    assert given["repr"](None) == "filled_variant" and copied.repr(None) == f"{__name__}.copied"
    assert filled.get_capture_scope()["tl"] is tl
    again = triton.JITFunction(filled.fn, **given)
    x, n = np.zeros(32, np.int32), 1
    assert "int n" in again[(1,)](x, n, BLOCK=32).source, "an integer of 1 is not a text of its own"
    assert again.repr(None) == "filled_variant" and x.tolist() == [1] + [0] * 31


class Wrapped:
    """What libraries pass for a tensor: Triton asks for an address and a type."""

    device = "cpu"

    def __init__(self, array: np.ndarray, shape: bool) -> None:
        self.array, self.dtype = array, tl.float32
        if shape:
            self.shape, self.stride = array.shape, lambda: (1,)

    def data_ptr(self) -> int:
        return self.array.ctypes.data


@pytest.mark.parametrize("shape", [True, False])
@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_arrays_that_tell_little(mode: str, shape: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x, out = np.ones(48, np.float32), np.zeros(48, np.float32)
    copied[(1,)](Wrapped(x, shape), Wrapped(out, shape), 40, BLOCK=64)
    assert out.tolist() == [1] * 40 + [0] * 8


def test_the_interpreter_knows_where_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    x = Wrapped(np.ones(48, np.float32), True)
    with pytest.raises(triton.KernelFaultError, match="element 48 of x_ptr, which has 48"):
        copied[(1,)](x, x, 49, BLOCK=64)
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    with pytest.raises(ArgumentKindError, match="does not tell its size"):
        copied[(1,)](Wrapped(x.array, False), x.array, 40, BLOCK=64)


@triton.jit
def stepped(x_ptr, out_ptr, step, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i * step, mask=i < n), mask=i < n)


class Backwards(Wrapped):
    """A view that torch cannot make: it tells the address of the last element."""

    def __init__(self, array: np.ndarray) -> None:
        super().__init__(array, True)
        self.stride = lambda: (-1,)

    def data_ptr(self) -> int:
        return self.array.ctypes.data + 4 * (self.array.size - 1)


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_arrays_that_run_backwards(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x, out = np.arange(48, dtype=np.float32), np.zeros(48, np.float32)
    stepped[(1,)](Backwards(x), out, -1, 48, BLOCK=64)
    assert out.tolist() == x.tolist()[::-1]
