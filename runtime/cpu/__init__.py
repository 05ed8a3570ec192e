"""The CPU run: the generated text, compiled by the host's C++ compiler, one fiber per CUDA thread."""

from tilewright.runtime.cpu.build import build_library, has_compiler
from tilewright.runtime.cpu.check import check
from tilewright.runtime.cpu.memory import Buffer
from tilewright.runtime.cpu.run import run

__all__ = ["Buffer", "build_library", "check", "has_compiler", "run"]
