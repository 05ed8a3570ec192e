"""The signature of ahead-of-time translation: "*fp32:16, *fp32:16, i32, 1024".

One entry per parameter, by position: a type (`*fp32`, `i32`, `fp16`), with `:16` when the value (or the address) is
divisible by 16 and `:1` when it is 1; `tensordesc<fp16[128, 64]>` for a tensor descriptor with blocks of that shape, with
`:16` when all sides of the tensor are divisible by 16; or the value of a compile-time parameter, or of any other that is to
be one in this text: a number, True, False or None.
"""

from __future__ import annotations

import ast
import re

from tilewright.artifact import Argument, ConstantArgument, DescriptorArgument, RuntimeArgument
from tilewright.diagnostics import SignatureError
from tilewright.kernel_function import KernelFunction, KernelParameter
from tilewright.language.dtypes import DTYPES_BY_NAME, PointerType, void

DESCRIPTOR = re.compile(r"tensordesc<(\w+)\[([\d, ]+)\](?:, *(zero|nan))?>(:16)?")


def parse_signature(function: KernelFunction, signature: str) -> tuple[Argument, ...]:
    """The arguments that a signature describes.

    Raises:
      SignatureError: names the position, what was expected and what stands there.
    """
    if not isinstance(signature, str):
        raise SignatureError(f'a signature is a text such as "*fp32:16, i32, 1024", not {signature!r}')
    entries = _entries(signature)
    if len(entries) != len(function.params):
        names = ", ".join(function.arg_names)
        counted = "1 entry" if len(entries) == 1 else f"{len(entries)} entries"
        raise SignatureError(
            f"the signature has {counted}, but {function.__name__} has {len(function.params)} parameters: {names}"
        )
    return tuple(
        _entry(parameter, text, number + 1)
        for number, (parameter, text) in enumerate(zip(function.params, entries, strict=True))
    )


def _entries(signature: str) -> list[str]:
    """The entries between the commas that stand outside brackets and quotes."""
    entries, depth, quote = [""], 0, ""
    for character in signature if signature.strip() else "":
        if quote or character in "'\"":
            quote = "" if character == quote else quote or character
        depth += (character in "([{<") - (character in ")]}>") if not quote else 0
        if character == "," and depth == 0 and not quote:
            entries.append("")
        else:
            entries[-1] += character
    return [entry.strip() for entry in entries] if signature.strip() else []


def _descriptor(name: str, text: str, where: str) -> Argument:
    match = DESCRIPTOR.fullmatch(text)
    dtype = DTYPES_BY_NAME.get(match[1]) if match else None
    if match is None or dtype is None:
        raise SignatureError(f"{where}: expected a descriptor such as tensordesc<fp16[128, 64]>, got {text!r}")
    block_shape = tuple(int(side) for side in match[2].split(","))
    return DescriptorArgument(name, dtype, block_shape, (bool(match[4]),) * len(block_shape), match[3] or "zero")


def _entry(parameter: KernelParameter, text: str, position: int) -> Argument:
    where = f"entry {position} of the signature ({parameter.name})"
    if parameter.is_constexpr or _is_number(text):
        return ConstantArgument(parameter.name, _value(text, where))
    return parse_entry(parameter.name, text, where)


def parse_entry(name: str, text: str, where: str) -> Argument:
    """The argument that an entry describes for a parameter which is no constexpr; `where` begins messages.

    Raises:
      SignatureError: when it describes none.
    """
    if text.startswith("tensordesc"):
        return _descriptor(name, text, where)
    spelled, _, fact = text.partition(":")
    pointer = spelled.startswith("*")
    const = spelled.startswith("*k")
    dtype = DTYPES_BY_NAME.get(spelled[1:].removeprefix("k") if pointer else spelled)
    if dtype is None or dtype is void:
        if text == "None":
            return ConstantArgument(name, None)
        raise SignatureError(
            f"{where}: expected a type such as *fp32 or i32, got {text!r}; if {name} is a compile-time value, "
            f"annotate it as {name}: tl.constexpr"
        )
    if fact not in ("", "1", "16"):
        raise SignatureError(f"{where}: after the colon stands 16 or 1, not {fact!r}")
    if fact == "1":
        if pointer or not dtype.is_int():
            raise SignatureError(f"{where}: only an integer can be equal to 1")
        return ConstantArgument(name, 1)
    return RuntimeArgument(name, PointerType(dtype, const) if pointer else dtype, fact == "16")


def _is_number(text: str) -> bool:
    """Whether an entry is a number or a truth value: what stands for a parameter in its place, as with Triton."""
    try:
        return isinstance(ast.literal_eval(text), (int, float))
    except (ValueError, SyntaxError):
        return False


def _value(text: str, where: str) -> object:
    if text in DTYPES_BY_NAME:
        return DTYPES_BY_NAME[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        quoted = f"; a string is written {text!r}, with its quotes" if text.isidentifier() else ""
        problem = f"{where}: expected the value of a compile-time parameter, got {text}{quoted}"
        raise SignatureError(problem) from None
