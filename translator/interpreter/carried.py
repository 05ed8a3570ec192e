"""What a loop carries from one trip to the next: its type stays, which Python would not mind and the translator insists on."""

from __future__ import annotations

from typing import Any

from ..diagnostics import DTypeError
from ..language.hints import no_carried_type
from .places import user_variables
from .tile import Tile


class Trips:
    """The trips of one run of a loop; `types` are those of the kernel's variables in front of it."""

    def __init__(self) -> None:
        """Before the first trip."""
        self.types = _types()

    def check(self, own: Any = None) -> None:
        """To be called behind every trip; `own` is what the loop has given its own variable.

        Raises:
          DTypeError: when the trip has made a variable one of another type.
        """
        for name, after in _types(own).items():
            before = self.types.get(name, after)
            if before != after:
                cause, remedy = no_carried_type(name, before, after)
                raise DTypeError(cause, None, remedy)


def _types(own: Any = None) -> dict[str, str]:
    variables = user_variables().items()
    return {name: str(value.type) for name, value in variables if isinstance(value, Tile) and value is not own}
