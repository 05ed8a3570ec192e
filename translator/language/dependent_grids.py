"""`tl.extra.cuda.gdc_wait` and `gdc_launch_dependents`: grids that start before the one in front of them has ended."""

from __future__ import annotations

from .builtin import Builtin


def _function(name: str, doc: str) -> Builtin:
    return Builtin(f"extra.cuda.{name}", (), doc)


GRID_CONTROL = {
    "gdc_wait": _function(
        "gdc_wait",
        "Waits until the grids that this one depends on have ended and what they wrote can be read; at once unless it was "
        "launched with `launch_pdl=True`.",
    ),
    "gdc_launch_dependents": _function(
        "gdc_launch_dependents",
        "Lets grids that depend on this one start, as soon as all its programs have come here or ended.",
    ),
}
