"""DLPack's exchange: the C functions that a library has for its arrays, in a capsule that its class of arrays offers.

torch has them from 2.10 on: they take a quarter of the time that the attributes of a tensor take.
"""

from __future__ import annotations

import ctypes
from typing import Any


def pointer_of(capsule: Any, name: bytes) -> int:
    """The address in a capsule of this name."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return int(get(capsule, name))


def exchange(kind: type) -> tuple[int, int]:
    """C functions of the library whose arrays these are: what reads an array, and what gives the current stream.

    They are of DLPack's exchange, from its version 1.3 on. Addresses; 0 for what the library does not have.
    """
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return 0, 0
    table = pointer_of(capsule, b"dlpack_exchange_api")
    if ctypes.c_uint32.from_address(table).value != 1:  # the major version
        return 0, 0
    # Version and link; functions that allocate an array, make one of an object, and an object of one; then those two.
    _, _, _, _, _, reader, stream = (ctypes.c_void_p * 7).from_address(table)
    return reader or 0, stream or 0
