"""Errors under the name of Triton's module: `from triton.runtime.errors import OutOfResources`."""

from __future__ import annotations

from tilewright.diagnostics import AutotunerError, OutOfResources, TilewrightError, ToolchainError

InterpreterError = TilewrightError  # what a kernel in the interpreter raises has no class of its own
PTXASError = ToolchainError
TritonError = TilewrightError

__all__ = ["AutotunerError", "InterpreterError", "OutOfResources", "PTXASError", "TritonError"]
