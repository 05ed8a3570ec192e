"""A driver that runs nothing and a torch that holds no numbers: what stands behind a launch, without a GPU."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

STREAM = 77


@functools.cache
def folder() -> str:
    """A folder with a `libcuda.so.1` that runs nothing."""
    from tilewright.runtime.cpu.build import compiler  # not above: who measures imports wants none of ours yet

    made = tempfile.mkdtemp()
    source, library = Path(__file__).with_name("stub_driver.cpp"), f"{made}/libcuda.so.1"
    command = [compiler(), "-shared", "-fPIC", "-O1", "-Wl,-soname,libcuda.so.1", str(source), "-o", library]
    subprocess.run(command, check=True)
    return made


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


def load_torch() -> None:
    """Puts a module with `Tensor` in torch's place, for the rest of the process."""
    torch: Any = types.ModuleType("torch")
    torch.Tensor = Tensor
    torch.cuda = types.SimpleNamespace(is_initialized=lambda: True)
    torch._C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: STREAM)
    sys.modules["torch"] = torch
