"""What a capsule of DLPack says of an array on a GPU; NumPy's capsules stand for those of other libraries."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilewright.diagnostics import ArgumentKindError
from tilewright.runtime import driver
from tilewright.runtime.arguments import arrays, dlpack
from tilewright.runtime.arguments.arrays import describe


class Elsewhere:
    """An array that says that it lies on device 1, and is known by its capsule alone."""

    def __init__(self, array: np.ndarray, kind: int = dlpack.CUDA) -> None:
        self.array, self.kind, self.streams = array, kind, []

    def __dlpack__(self, stream: Any = None) -> Any:
        self.streams.append(stream)
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 1


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """The current stream by device."""
    streams = {0: 0, 1: 77}
    CURRENT[:] = [0]
    monkeypatch.setattr(driver, "current_stream", lambda device: streams[device])
    monkeypatch.setattr(driver, "in_context", current)
    return streams


CURRENT = [0]


@contextlib.contextmanager
def current(device: int) -> Iterator[None]:
    """The driver's stack of contexts: a library may replace the last one, which is gone afterwards."""
    CURRENT.append(device)
    yield
    CURRENT.pop()


@pytest.mark.parametrize("name", ("float32", "float16", "float64", "int8", "uint16", "int64", "bool"))
def test_arrays_are_read_off_their_capsules(name: str, stream: dict[int, int]) -> None:
    whole = np.zeros((6, 8), name)
    part = whole[2:, 3:7]
    value = Elsewhere(part)
    found = describe(value, "x_ptr")
    assert found is not None and found.address == part.ctypes.data and found.dtype.numpy_name == name and found.writable
    assert found.size == (3 * 8 + 3 + 1) * part.itemsize and value.streams == [77]
    stream[1] = 0  # CUDA's stream 0 has the number 1 in DLPack
    describe(value, "x_ptr")
    assert value.streams == [77, 1]


def test_the_current_device_stays(stream: dict[int, int]) -> None:
    """JAX makes the array's device current when it is told of a stream, and leaves it so."""
    value = Elsewhere(np.zeros(4, np.float32))
    made = value.array.__dlpack__

    def changing(**_: Any) -> Any:
        CURRENT[-1] = 1
        return made()

    value.array = types.SimpleNamespace(__dlpack__=changing)  # type: ignore
    assert describe(value, "x_ptr") is not None and CURRENT == [0]


def test_an_array_stays_as_long_as_its_description(stream: dict[int, int]) -> None:
    value = Elsewhere(np.zeros(4, np.float32))
    found = describe(value, "x_ptr")
    assert found is not None and found.owner[0] is value and "dltensor" in repr(found.owner[1])


def test_types_that_only_dlpack_has() -> None:
    for code, bits, lanes, expected in ((4, 16, 1, "bfloat16"), (10, 8, 1, "float8_e4m3fn"), (12, 8, 1, "float8_e5m2")):
        assert dlpack._SPECIAL[(code, bits)] == expected and lanes == 1
        assert (
            str(np.dtype(getattr(ml_dtypes, expected))) == expected
            and arrays._dtype(expected, "x").itemsize == bits // 8
        )


def test_what_cannot_be_passed(stream: dict[int, int]) -> None:
    with pytest.raises(ArgumentKindError, match=r"x_ptr: arrays of DLPack's type \(5, 64 bits, 1 lanes\)"):
        describe(Elsewhere(np.zeros(4, np.complex64)), "x_ptr")
    refusing = Elsewhere(np.zeros(4, np.float32))
    refusing.array = types.SimpleNamespace(__dlpack__=lambda: np.zeros(2, "datetime64[s]").__dlpack__())  # type: ignore
    with pytest.raises(ArgumentKindError, match="x_ptr: its memory cannot be reached through DLPack"):
        describe(refusing, "x_ptr")
