"""The op table: one entry per elementwise operation.

An entry holds everything there is to know about an operation: what it takes and returns, what it means (NumPy), how CUDA
spells it, how exact that is, and its documentation. Type inference, the interpreter, the generated text, `tl`'s
docstrings and a parametrised test are all derived from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..frozen import frozen
from ..language.dtypes import DType, Element


@frozen
class Operand:
    """What a type rule sees of an operand: its element type, and its value when it is a Python literal or constexpr."""

    element: Element
    literal: int | float | bool | None = None


@frozen
class Resolved:
    """What a type rule answers: the types that the operands are cast to, and the result's.

    `computed` is the type that the operation itself gives, where that is another one than the result is cast to. Literals
    are of their operand's type at once where they adapt, otherwise of their own type first, and then cast. `warning` is what
    the user should be told of the operands, at their line.
    """

    operands: tuple[Element, ...]
    result: Element
    computed: Element | None = None
    literals_adapt: bool = False
    warning: str = ""


@frozen
class OpDef:
    """One elementwise operation.

    Attributes:
      name: its key in `Call.op`, such as "add", "exp" or "libdevice.pow".
      parameters: operand names; the spelling refers to them.
      rule: operands to `Resolved`; raises `DTypeError` or `ArgumentError` (without span; the frontend adds it).
      numpy: the meaning on NumPy arrays of the resolved operand types; returns an array of the result type's NumPy
        type.
      cuda: spelling by the first resolved operand type, or "*" for all: "{x} + {y}", "fmaxf({x}, {y})". Only one infix or
        prefix operator at top level, so that the printer can place parentheses.
      accuracy: one sentence for the header of the generated text where CUDA differs from the obvious; "" when exact.
      doc: first sentence of the documentation.
      helper: the template under `templates/helpers` that defines what a spelling calls, or "". It is needed where the
        spelling names it.
      long: whether it is several instructions on floats, which the compiler would rather branch around than compute in vain.
    """

    name: str
    parameters: tuple[str, ...]
    rule: Callable[[tuple[Operand, ...]], Resolved]
    numpy: Callable[..., Any]
    cuda: Mapping[DType | str, str]
    accuracy: str = ""
    doc: str = ""
    helper: str = ""
    long: bool = False

    def spelling(self, element: Element) -> str:
        """The CUDA spelling for operands of type `element`.

        Raises:
          KeyError: when the table has none.
        """
        if isinstance(element, DType) and element in self.cuda:
            return self.cuda[element]
        return self.cuda["*"]


OPS: dict[str, OpDef] = {}


def register(op: OpDef) -> OpDef:
    """Adds a row to the table.

    Raises:
      ValueError: when the name is taken.
    """
    if op.name in OPS:
        raise ValueError(f"op {op.name!r} is registered twice")
    OPS[op.name] = op
    return op
