"""The contents of arguments, kept while launches are timed, so that each finds what the caller passed.

Arrays that can copy themselves do so (torch, NumPy, CuPy); of others the bytes are kept.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from tilewright.diagnostics import TuningArgumentError
from tilewright.runtime.arguments.arrays import HOST, UNKNOWN, Array, describe

Restore = Callable[[], None]


def keep(value: Any, name: str) -> Restore:
    """Copies an array's content; the result puts it back, as often as it is called.

    An array that nobody may write to stays as it is, and a launch that would write to it says so.
    """
    array = describe(value, name)
    if array is not None and not array.writable:
        return lambda: None
    if hasattr(value, "clone") and hasattr(value, "copy_"):
        return _keep_tensor(value)
    if hasattr(value, "copy") and hasattr(value, "__setitem__"):
        copied = value.copy()

        def put_back() -> None:
            value[...] = copied

        return put_back
    if array is None or array.size == UNKNOWN:
        return lambda: None
    return _keep_host_bytes(array) if array.device == HOST else _keep_device_bytes(array)


class Kept:
    """The content of arrays of a call while it is tuned."""

    def __init__(self) -> None:
        """Of none."""
        self._restores: dict[str, Restore] = {}

    def keep(self, arrays: Mapping[str, Any]) -> None:
        """Keeps the content of these alone; of those that are kept already it stays what it was."""
        self._restores = {name: self._restores.get(name) or keep(value, name) for name, value in arrays.items()}

    def put_back(self) -> None:
        """Has the arrays be as they were."""
        for put_back in self._restores.values():
            put_back()


def set_to_zero(value: Any, name: str) -> None:
    """Fills an array with zeros.

    Raises:
      TuningArgumentError: for what is no array.
    """
    if hasattr(value, "zero_"):
        _writable(value).zero_()
    elif hasattr(value, "__setitem__"):
        value[...] = 0
    else:
        raise TuningArgumentError(
            f"reset_to_zero of autotune names {name}, which is {value!r} and no array; leave it out"
        )


def _writable(tensor: Any) -> Any:
    """All memory of a tensor, once, and out of the sight of autograd, which must not see what the tuner writes."""
    plain = (
        tensor.data if hasattr(tensor, "data") and hasattr(tensor, "requires_grad") else tensor
    )  # without its version
    for axis, stride in enumerate(plain.stride() if hasattr(plain, "narrow") else ()):
        if stride == 0 and plain.shape[axis]:  # as in an expanded tensor, which torch does not write to
            plain = plain.narrow(axis, 0, 1)
    return plain


def _keep_tensor(tensor: Any) -> Restore:
    plain = _writable(tensor)
    try:
        copied = plain.clone()
    except RuntimeError as error:
        if type(error).__name__ not in ("OutOfMemoryError", "AcceleratorError"):
            raise
        copied = plain.cpu()  # slower to put back, but it always fits
    return lambda: _discard(plain.copy_(copied))


def _keep_host_bytes(array: Array) -> Restore:
    copied = ctypes.string_at(array.address, array.size)
    return lambda: _discard(ctypes.memmove(array.address, copied, array.size))


def _keep_device_bytes(array: Array) -> Restore:
    from tilewright.runtime.driver import bindings, checked, in_context

    driver, copied = bindings(), ctypes.create_string_buffer(array.size)
    with in_context(array.device):
        checked(driver.cuCtxSynchronize())
        checked(driver.cuMemcpyDtoH(copied, array.address, array.size))

    def put_back() -> None:
        with in_context(array.device):
            checked(driver.cuCtxSynchronize())
            checked(driver.cuMemcpyHtoD(array.address, copied, array.size))

    return put_back


def _discard(result: Any) -> None:
    """Nothing; for calls whose result is not wanted in a lambda."""
