"""What writers of random kernels share: choices, and lines at a depth."""

from __future__ import annotations

import random
from typing import Any


class Choices:
    """The source of choices."""

    random: random.Random

    def pick(self, *options: Any) -> Any:
        """One of several."""
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        """Whether something happens that happens so often."""
        return self.random.random() < share


class Lines(Choices):
    """Lines of a kernel, and the source of the choices that make them."""

    lines: list[str]
    indent: int

    def put(self, *lines: str) -> None:
        """Lines at the present depth; one that ends in a colon goes a level deeper."""
        for line in lines:
            self.lines.append("    " * self.indent + line)
            self.indent += line.endswith(":")

    def leave(self, depth: int) -> None:
        """Ends what was opened at a depth."""
        self.indent = depth
