"""Which operations of integers are checked for overflow with the option `debug`, and what the assertion says."""

from __future__ import annotations

from ..language.dtypes import DType, Element

WORDS = {"add": "add", "sub": "sub", "mul": "mul", "neg": "minus"}
WIDEST = 64  # bits: of such integers nothing wider could hold the result


def is_checked(op: str, element: Element) -> bool:
    """Whether results of an operation of this type are checked."""
    return (
        op in WORDS
        and isinstance(element, DType)
        and element.is_int()
        and not element.is_bool()
        and element.bits < WIDEST
    )


def overflow_message(op: str, dtype: DType) -> str:
    """What the assertion says."""
    return f"{dtype.name} overflow detected for operation {WORDS[op]}"
