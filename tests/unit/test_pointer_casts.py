"""Pointers cast to other types: words of memory read as bits of another type, and addresses out of a table."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.diagnostics import KernelFaultError
from tilewright.runtime.building import nvrtc


@triton.jit
def bits_kernel(x_ptr, flags_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    words = x_ptr.to(tl.pointer_type(tl.int32))  # of what is only read
    bits = tl.load(words + i, mask=i < n, other=0)
    flags = tl.load(flags_ptr.to(tl.pointer_type(tl.int1)) + i, mask=i < n, other=False)
    low = tl.load(x_ptr.to(tl.pointer_type(tl.uint16)) + 2 * i, mask=i < n, other=0)
    tl.store(out_ptr.to(tl.pointer_type(tl.int32)) + i, tl.where(flags, bits, low.to(tl.int32)), mask=i < n)


def test_memory_that_is_only_read_has_other_types(run_everywhere: Any) -> None:
    x = np.random.default_rng(0).standard_normal(13).astype(np.float32)
    flags = (np.arange(13) % 3 == 0).astype(np.uint8)
    *_, out = run_everywhere(bits_kernel, (1,), x, flags, np.zeros_like(x), 13, BLOCK=16)
    bits = x.view(np.int32)
    np.testing.assert_array_equal(out.view(np.int32), np.where(flags, bits, bits & 0xFFFF))


@triton.jit
def either_kernel(x_ptr, y_ptr, out_ptr, pick, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p = x_ptr.to(tl.pointer_type(tl.int32))
    if pick:
        p = out_ptr.to(tl.pointer_type(tl.int32))
    near = tl.where(i < 4, p, y_ptr.to(tl.pointer_type(tl.int32))) + i
    tl.store(out_ptr.to(tl.pointer_type(tl.int32)) + i, tl.load(near) + 1)


@pytest.mark.parametrize("pick", [0, 1])
def test_what_is_read_and_what_is_written_meet(run_everywhere: Any, pick: int) -> None:
    x, y, start = (np.arange(8, dtype=np.int32) + offset for offset in (0, 100, 50))
    *_, out = run_everywhere(
        either_kernel, (1,), x.view(np.float32), y.view(np.float32), start.view(np.float32), pick, 8
    )
    np.testing.assert_array_equal(out.view(np.int32), np.where(np.arange(8) < 4, start if pick else x, y) + 1)


@triton.jit
def table_kernel(table_ptr, out_ptr, BLOCK: tl.constexpr):
    addresses = table_ptr.to(tl.pointer_type(tl.uint64))
    source = tl.load(addresses + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0) * BLOCK + i, tl.load(source + i))


def test_addresses_lie_in_a_table_that_is_only_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    sources = [np.arange(8, dtype=np.float32) * k for k in (1, 3)]
    table = np.array([source.ctypes.data_as(ctypes.c_void_p).value for source in sources], np.int64)
    out = np.zeros(16, np.float32)
    table_kernel[(2,)](table, out, BLOCK=8)
    np.testing.assert_array_equal(out, np.concatenate(sources))


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
@pytest.mark.parametrize("address", (8192, 2**46))
def test_an_address_where_no_memory_is_ends_the_launch_and_not_python(
    mode: str, address: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(KernelFaultError, match=f"address {address:#x}, where no memory is"):
        table_kernel[(1,)](np.array([address]), np.zeros(8, np.float32), BLOCK=8)


@triton.jit
def integers_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # A row is read where the trip before has written, by way of an address that is an integer.
    i = tl.arange(0, BLOCK)
    address = x_ptr.to(tl.int64)
    for row in tl.range(n, num_stages=3):
        x = tl.load((address + row * 4 * BLOCK).to(tl.pointer_type(tl.float32)) + BLOCK - 1 - i)
        tl.store((address + (row + 1) * 4 * BLOCK).to(tl.pointer_type(tl.float32)) + i, x + 1)
        tl.store(out_ptr + row * BLOCK + i, x)


def test_addresses_that_are_integers_meet(run_everywhere: Any) -> None:
    x = np.arange(4 * 1024, dtype=np.float32)
    run_everywhere(integers_kernel, (1,), x, np.zeros(3 * 1024, np.float32), 3, BLOCK=1024)
    assert "integers_kernel(float* x_ptr" in integers_kernel.translate("*fp32:16, *fp32:16, i32, 1024").source


@triton.jit
def passed_kernel(address, out_ptr, n, BLOCK: tl.constexpr):
    # The same, of an address that is an argument.
    i = tl.arange(0, BLOCK)
    for row in tl.range(n, num_stages=3):
        source = (address + row * 4 * BLOCK).to(tl.pointer_type(tl.float32))
        x = tl.load(source + BLOCK - 1 - i)
        tl.store((address + (row + 1) * 4 * BLOCK).to(tl.pointer_type(tl.float32)) + i, x + 1)
        tl.store(out_ptr + row * BLOCK + i, x)


def test_addresses_that_are_passed_as_integers_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    # Pages of its own lie far up: of an array in the heap, the address may be a number of 32 bits.
    x, out = np.frombuffer(mmap.mmap(-1, 16 * 1024), np.float32), np.zeros(3 * 1024, np.float32)
    x[:] = np.arange(4 * 1024)
    first = x[:1024].copy()
    passed_kernel[(1,)](x.ctypes.data, out, 3, BLOCK=1024)
    np.testing.assert_array_equal(out, np.concatenate([first[::-1], first + 1, first[::-1] + 2]))


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize(
    ("kernel", "signature"),
    [
        (bits_kernel, "*fp32:16, *u8:16, *fp32:16, i32, 64"),
        (either_kernel, "*fp32:16, *fp32:16, *fp32:16, i32, 64"),
        (table_kernel, "*i64:16, *fp32:16, 64"),
    ],
)
def test_no_cast_takes_const_away(kernel: Any, signature: str) -> None:
    assert "warning" not in nvrtc.compile_text(kernel.translate(signature)).log


@triton.jit
def halves_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    # Of neighbouring words, pointers to halves point to every other half; their addresses are four bytes apart.
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load((x_ptr + i).to(tl.pointer_type(tl.int16))))
    places = (x_ptr + i).to(tl.int64) - x_ptr.to(tl.int64)
    tl.store(out_ptr + BLOCK + i, tl.load(x_ptr + places).to(tl.int16))


def test_neighbours_of_one_type_are_none_of_another(run_everywhere: Any) -> None:
    x = np.arange(2048, dtype=np.int32) * 0x10001
    _, out = run_everywhere(halves_kernel, (1,), x, np.zeros(1024, np.int16), BLOCK=512)
    np.testing.assert_array_equal(out, np.concatenate([x[:512], x[::4]]).astype(np.int16))
