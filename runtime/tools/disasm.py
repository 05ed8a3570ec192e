"""`triton.tools.disasm`: machine code as text."""

from __future__ import annotations

from pathlib import Path

from tilewright.runtime.building.assembly import disassemble
from tilewright.runtime.tracebacks import outermost


@outermost
def get_sass(cubin_asm: bytes) -> str:
    """The text of machine code such as `compiled.asm["cubin"]`.

    Raises:
      ToolchainError: without CUDA's `nvdisasm` or `cuobjdump`, or for what is no machine code.
    """
    return disassemble(bytes(cubin_asm))


@outermost
def extract(file_path: str | Path) -> str:
    """The text of a file's machine code.

    Raises:
      ToolchainError: as `get_sass`.
    """
    return get_sass(Path(file_path).read_bytes())
