"""A loop that loads ahead, as it is lowered: what all who write a part of it need to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...frozen import frozen
from ...ir.nodes import For, Statement
from ...schedule.staging.ring_plan import Ring
from ..context import Context
from ..text.unit import Node
from .loop_bounds import Bounds


@frozen
class RingLoop:
    """See the module docstring.

    Attributes:
      statement: the loop.
      ring: what it loads ahead.
      bounds: where it starts and ends, and how far it steps.
      body: what lowers statements of its body.
    """

    statement: For
    ring: Ring
    bounds: Bounds
    body: Callable[[tuple[Statement, ...]], tuple[Node, ...]]

    def lowered(self, context: Context, block: tuple[Statement, ...]) -> tuple[Node, ...]:
        """Statements of the body, as those of a loop with stages: one inside of it has a stage of another name."""
        with context.inside(replace(context.around, rings=context.around.rings + 1)):
            return self.body(block)
