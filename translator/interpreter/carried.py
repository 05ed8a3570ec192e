"""What a loop carries from one trip to the next: its type stays, which Python would not mind and the translator insists on."""

from __future__ import annotations

from typing import Any

from ..diagnostics import DTypeError
from ..language.hints import no_carried_type
from .places import SUPPORT, user_variables
from .tile import Tile


class Trips:
    """The trips of one run of a loop; `last` are the kernel's variables as they were last seen, from in front of it on."""

    def __init__(self) -> None:
        """Before the first trip."""
        self.last = {
            name: value
            for name, value in user_variables().items()
            if isinstance(value, Tile) and not name.startswith(SUPPORT)
        }

    def check(self, own: Any = None) -> None:
        """To be called behind every trip; `own` is what the loop has given its own variable.

        Raises:
          DTypeError: when the trip has made a variable one of another type.
        """
        variables = user_variables()
        for name, before in self.last.items():
            after = variables.get(name)
            if after is before or after is own or not isinstance(after, Tile):
                continue
            if after.element != before.element or after.shape != before.shape:
                cause, remedy = no_carried_type(name, before.type, after.type)
                raise DTypeError(cause, None, remedy)
            self.last[name] = after
