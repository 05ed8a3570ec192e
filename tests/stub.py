"""A driver that runs nothing and a torch that holds no numbers: what stands behind a launch, without a GPU."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import types
from pathlib import Path
from typing import Any

STREAM = 77
# Code that makes the launches of a process go through Python alone, as where the part in C could not be built.
WITHOUT_C = "import sys; sys.modules['tilewright.runtime.quick_launch'] = None\n"


@functools.cache
def folder() -> str:
    """A folder with a `libcuda.so.1` that runs nothing."""
    from tilewright.runtime.cpu.build import compiler  # not above: who measures imports wants none of ours yet

    made = tempfile.mkdtemp()
    source, library = Path(__file__).with_name("stub_driver.cpp"), f"{made}/libcuda.so.1"
    command = [compiler(), "-shared", "-fPIC", "-O1", "-Wl,-soname,libcuda.so.1", str(source), "-o", library]
    subprocess.run(command, check=True)
    return made


def can_build_c() -> bool:
    """Whether the part that is in C can be built here: with a compiler, and headers of a Python with a stable interface."""
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    command = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    return not sysconfig.get_config_var("Py_GIL_DISABLED") and header.exists() and shutil.which(command) is not None


def load_driver() -> None:
    """Puts the stub in the place of the driver, for the rest of the process."""
    ctypes.CDLL(f"{folder()}/libcuda.so.1", ctypes.RTLD_GLOBAL)


class Tensor:
    """A tensor of torch as far as a launch looks at it."""

    def __init__(self, address: int, dtype: str = "float32", device: int = 0) -> None:
        self.address, self.dtype, self.number = address, f"torch.{dtype}", device
        self.layout, self.device = "torch.strided", types.SimpleNamespace(type="cuda", index=device)

    def data_ptr(self) -> int:
        return self.address

    def get_device(self) -> int:
        return self.number

    def untyped_storage(self) -> Any:
        return types.SimpleNamespace(nbytes=lambda: 1 << 30)

    def storage_offset(self) -> int:
        return 0

    def element_size(self) -> int:
        return 4


Tensor.__module__ = "torch"


class _Read(ctypes.Structure):
    """The beginning of DLPack's DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32), ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
def _read(tensor: Any, place: int) -> int:
    read = _Read.from_address(place)
    read.data, read.byte_offset = tensor.data_ptr() - 8, 8
    read.device_type, read.device, read.lanes = 2, tensor.number, 1
    read.code, read.bits = {"torch.float32": (2, 32), "torch.float16": (2, 16)}[tensor.dtype]
    return 0


def exchanged() -> type[Tensor]:
    """A class of tensors that are also read through DLPack's exchange, as torch has it from 2.10 on; otherwise the same."""
    table = (ctypes.c_void_p * 7)(1, None, None, None, None, ctypes.cast(_read, ctypes.c_void_p).value, None)
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    name = b"dlpack_exchange_api"
    made = capsule(ctypes.addressof(table), name, None)
    return type("Tensor", (Tensor,), {"__module__": "torch", "__dlpack_c_exchange_api__": made, "kept": (table, name)})


def load_torch() -> None:
    """Puts a module with `Tensor` in torch's place, for the rest of the process."""
    torch: Any = types.ModuleType("torch")
    torch.Tensor = Tensor
    torch.cuda = types.SimpleNamespace(is_initialized=lambda: True, current_device=lambda: 0)
    torch._C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: STREAM)
    sys.modules["torch"] = torch
