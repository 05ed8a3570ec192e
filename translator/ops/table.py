"""The filled op table: importing this module registers every row."""

from __future__ import annotations

from . import arithmetic, comparison, libdevice, math
from .registry import OPS

__all__ = ["OPS", "arithmetic", "comparison", "libdevice", "math"]
