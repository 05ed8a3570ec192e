"""What torch.compile is given by inductor.py, as models have it. Each module adds its graphs to `GRAPHS`."""

from . import attention, elementwise, moves, norms, reductions
from .graph import GRAPHS

__all__ = ["GRAPHS", "attention", "elementwise", "moves", "norms", "reductions"]
