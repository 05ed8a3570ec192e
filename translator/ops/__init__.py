"""The op table. Importing this package fills it."""

from . import elementwise, libdevice
from .registry import OPS

__all__ = ["OPS", "elementwise", "libdevice"]
