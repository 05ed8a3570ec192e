"""Errors under the name of Triton's module: `from triton.runtime.errors import OutOfResources`."""

from __future__ import annotations

from tilewright.diagnostics import AutotunerError, OutOfResources

__all__ = ["AutotunerError", "OutOfResources"]
