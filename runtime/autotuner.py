"""Tuning under the name of Triton's module: `from triton.runtime.autotuner import Autotuner`."""

from __future__ import annotations

from tilewright.diagnostics import OutOfResources
from tilewright.runtime.tuning.autotune import Autotuner, autotune
from tilewright.runtime.tuning.config import Config
from tilewright.runtime.tuning.heuristics import Heuristics, heuristics

__all__ = ["Autotuner", "Config", "Heuristics", "OutOfResources", "autotune", "heuristics"]
