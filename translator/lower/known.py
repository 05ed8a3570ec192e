"""What a lowering is given: nothing of it changes while text is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import field, replace
from typing import TYPE_CHECKING

from ..analysis.facts import Facts
from ..analysis.origins import Origins
from ..frozen import frozen
from ..ir.nodes import Call, Kernel, Statement, Variable
from ..schedule.plan import Schedule
from .text.spell import Arithmetic

if TYPE_CHECKING:
    from .accesses.named_masks import Spelling


@frozen
class MemoryFacts:
    """What is known of the memory that a kernel touches; a function of scalars touches none.

    Attributes:
      read_only: the pointers that nothing is written through.
      origins: which arguments an address may come from.
      lasts: whether a load brings the same wherever it stands.
      agreed: scalars that one thread loads for all.
      tested_alike: tiles whose masks have parts in common with others of their block.
    """

    read_only: frozenset[Variable] = frozenset()
    origins: Origins = field(default_factory=lambda: Origins(()))
    lasts: Callable[[Call], bool] = lambda load: False
    agreed: frozenset[Variable] = frozenset()
    tested_alike: frozenset[Variable] = frozenset()


@frozen
class Known:
    """A kernel, or a function in its file, with what was found out and decided about it.

    Attributes:
      kernel: what is lowered, or what has the function.
      facts: what is known of the statements.
      schedule: what was decided for the kernel.
      readers: the statements that read a variable, in the kernel.
      arithmetic: what operators alone do not say.
      memory: what is known of the memory that is touched.
      given: results that are written under other names at once (`given_names.py`).
      named_masks: the masks that an earlier lowering found worth a name.
    """

    kernel: Kernel
    facts: Facts
    schedule: Schedule
    readers: Mapping[Variable, list[Statement]]
    arithmetic: Arithmetic
    memory: MemoryFacts
    given: Set[Variable]
    named_masks: Mapping[Variable, Spelling]

    def of_function(self, facts: Facts) -> Known:
        """The same for scalar code in a function of its own, with facts of its statements."""
        return replace(self, facts=facts, memory=MemoryFacts(), given=frozenset(), named_masks={})
