"""What a translation has written and found out so far: all that is undone where a loop or branch is translated again."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from ..ir.nodes import Origin, Statement, Variable
from .values import Undefined, Value

Scope = dict[str, "Value | Undefined"]


@dataclass(eq=False)
class Draft:
    """A builder's fields that going back concerns, each of them; what outlives it is `Builder`'s own.

    Attributes:
      scope: what names stand for.
      statements: of the block that is being written.
      block: its number.
      block_of: the block in which a variable was first assigned.
      siblings: what the other branch of an `if` has made.
      protected: parameters: assigning to them makes a variable of its own.
      constexpr_names: names that were annotated as compile-time values.
      nonnegative: integers that are never below 0.
      owned: variables that hold parts of bundles which loops and branches change (`carried.py`).
      counter: the last number of a variable or block, in a list as inlined functions go on with it.
      origin: of the statement that is being translated.
      loop_depth: the loops around it.
      trip: the trips around it that are being written out.
      mixed: names of the bits that the trips of a static loop around make of one another (`loops.py`).
      carried: names that stand for something ahead of a static loop around, whose trips assign them.
      filled: tiles that are one number so far.
      data: tiles that are no indices: what memory holds, or an operation on whole tiles gives, and what is made of that.
      temporaries: keys of variables that name results of this statement.
      blocks_around: the blocks that it stands in, but for the function's own.
      piece_names: those of results that no plain assignment has taken over, with the blocks around them.
      assigned_to: the name that the statement assigns, while its right side is translated.
    """

    scope: Scope = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    block: int = 0
    block_of: dict[Variable, int] = field(default_factory=dict)
    siblings: dict[str, Variable] = field(default_factory=dict)
    protected: set[Variable] = field(default_factory=set)
    constexpr_names: set[str] = field(default_factory=set)
    nonnegative: set[Variable] = field(default_factory=set)
    owned: set[Variable] = field(default_factory=set)
    counter: list[int] = field(default_factory=lambda: [0])
    origin: Origin | None = None
    loop_depth: int = 0
    trip: str = ""
    mixed: frozenset[str] = frozenset()
    carried: frozenset[str] = frozenset()
    filled: set[Variable] = field(default_factory=set)
    data: set[Variable] = field(default_factory=set)
    temporaries: frozenset[int] = frozenset()
    blocks_around: tuple[int, ...] = ()
    piece_names: frozenset[tuple[str, tuple[int, ...]]] = frozenset()
    assigned_to: str = ""

    def saved(self) -> Draft:
        """All fields as they are now, to go back to."""
        saved = Draft()
        saved.go_back_to(self)
        return saved

    def go_back_to(self, saved: Draft) -> None:
        """Puts all fields back; containers are filled anew, because others refer to them."""
        for one in fields(Draft):
            container, before = getattr(self, one.name), getattr(saved, one.name)
            if isinstance(container, list):
                container[:] = before
            elif isinstance(container, (dict, set)):
                container.clear()
                container.update(before)
            else:
                setattr(self, one.name, before)
