"""The signature of ahead-of-time translation: "*fp32:16, *fp32:16, i32, 1024".

One entry per parameter, by position: a type (`*fp32`, `i32`, `fp16`), with `:16` when the value (or the address) is
divisible by 16, with `:8`, `:4` or `:2` when that is known of an integer, and `:1` when it is 1; `tensordesc<fp16[128, 64]>` for
a tensor descriptor with blocks of that shape, with `:16` when all sides of the tensor are divisible by 16; entries in
parentheses, `(i32:16, i32:1)`, for a tuple; or the value of a compile-time parameter, or of any other that is to be one in this
text: a number, True, False or None.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tilewright.artifact import Argument, ConstantArgument, DescriptorArgument, RuntimeArgument, TupleArgument
from tilewright.diagnostics import ArgumentError, SignatureError, Span
from tilewright.frozen import frozen
from tilewright.kernel_function import KernelFunction, KernelParameter
from tilewright.language.dtypes import DTYPES_BY_NAME, DTYPES_BY_WORD, PointerType, void
from tilewright.ops.blocks import check_descriptor
from tilewright.runtime.arguments.specialise import ALIGNMENT, FINER, annotated_type

DESCRIPTOR = re.compile(r"tensordesc<(\w+)\[( *\d+ *(?:, *\d+ *)*)\](?:, *(zero|nan))?>(:16)?")
NO_VALUE = (ValueError, SyntaxError, RecursionError, MemoryError)  # of texts; the last two where they nest too deep
CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


@frozen
class _Entry:
    """One entry; `start` is its column in the whole signature, `where` begins messages about it."""

    text: str
    start: int
    signature: str
    where: str

    def problem(self, cause: str, start: int = 0, end: int | None = None) -> SignatureError:
        """An error with carets below the entry, or below a part of it."""
        end = len(self.text) if end is None else end
        return _problem(f"{self.where}: {cause}", self.signature, self.start + start, self.start + end)


def _problem(message: str, signature: str, start: int, end: int) -> SignatureError:
    one_line = re.sub(r"\s", " ", signature)
    return SignatureError(f"{message}\n{Span('', 1, start, 1, end, one_line).caret_lines()}")


def parse_signature(function: KernelFunction, signature: str) -> tuple[Argument, ...]:
    """The arguments that a signature describes.

    Raises:
      SignatureError: names the position, what was expected and what stands there.
    """
    if not isinstance(signature, str):
        raise SignatureError(f'a signature is a text such as "*fp32:16, i32, 1024", not {signature!r}')
    places = _places(signature)
    if len(places) != len(function.params):
        names = ", ".join(function.arg_names)
        counted = "1 entry" if len(places) == 1 else f"{len(places)} entries"
        raise SignatureError(
            f"the signature has {counted}, but {function.__name__} has {len(function.params)} parameters: {names}"
        )
    found = []
    for parameter, (start, end) in zip(function.params, places, strict=True):
        where = f"entry {parameter.num + 1} of the signature ({parameter.name})"
        found.append(_argument(parameter, _Entry(signature[start:end], start, signature, where)))
    return tuple(found)


def example_signature(function: KernelFunction) -> str:
    """A signature as one might begin with: by the kernel's annotations and defaults, and by what names end in."""
    return ", ".join(map(_example, function.params))


def _example(parameter: KernelParameter) -> str:
    if parameter.is_constexpr:
        return repr(parameter.default) if isinstance(parameter.default, (bool, int, float, str)) else "1024"
    annotated = annotated_type(parameter.annotation)
    if annotated is not None:
        return annotated.short
    if isinstance(parameter.default, float):
        return "fp32"
    return "*fp32:16" if parameter.name.lower().endswith(("ptr", "ptrs", "pointer")) else "i32"


def _places(signature: str) -> list[tuple[int, int]]:
    """Where the entries begin and end: between the commas that stand outside brackets and quotes."""
    if not signature.strip():
        return []
    commas, opened, quote = [-1], [], -1
    for place, character in enumerate(signature):
        if quote >= 0:
            quote = -1 if character == signature[quote] and not _is_escaped(signature, place) else quote
        elif character in "'\"":
            quote = place
        elif character in CLOSING:
            opened.append(place)
        elif character in CLOSING.values():
            if not opened or CLOSING[signature[opened.pop()]] != character:
                raise _problem(f"{character} closes nothing in the signature", signature, place, place + 1)
        elif character == "," and not opened:
            commas.append(place)
    if quote >= 0:
        raise _problem("a string in the signature has no end", signature, quote, len(signature))
    if opened:
        bracket = signature[opened[-1]]
        message = f"{bracket} is not closed in the signature; write {CLOSING[bracket]} behind what belongs to it"
        raise _problem(message, signature, opened[-1], opened[-1] + 1)
    return [
        _stripped(signature, start + 1, end) for start, end in zip(commas, [*commas[1:], len(signature)], strict=True)
    ]


def _is_escaped(text: str, place: int) -> bool:
    """Whether an odd number of backslashes stands in front of a character."""
    before = text[:place]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """A part of a text without the white space around it."""
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), start + max(len(part.rstrip()), len(part) - len(part.lstrip()))


def _argument(parameter: KernelParameter, entry: _Entry) -> Argument:
    if parameter.is_constexpr:
        return ConstantArgument(parameter.name, _value(entry))
    return _no_constexpr(parameter.name, entry)


def _no_constexpr(name: str, entry: _Entry) -> Argument:
    if _is_number(entry.text):
        return ConstantArgument(name, _value(entry))
    if entry.text.startswith("(") and entry.text.endswith(")"):
        return TupleArgument(name, tuple(_items(name, entry)))
    return _typed(name, entry)


def _items(name: str, entry: _Entry) -> Iterator[Argument]:
    """The items of a tuple; as in Python, a comma may stand behind the last."""
    inner = entry.text[1:-1]
    places = _places(inner)
    for number, (start, end) in enumerate(places):
        if start < end or number < len(places) - 1:
            yield _no_constexpr(
                f"{name}[{number}]", _Entry(inner[start:end], entry.start + 1 + start, entry.signature, entry.where)
            )


def parse_entry(name: str, text: str, where: str) -> Argument:
    """The argument that an entry describes for a parameter which is no constexpr; `where` begins messages.

    Raises:
      SignatureError: when it describes none.
    """
    return _typed(name, _Entry(text, 0, text, where))


def _typed(name: str, entry: _Entry) -> Argument:
    text = entry.text
    if text.startswith("tensordesc"):
        return _descriptor(name, entry)
    spelled, _, fact = text.partition(":")
    pointer = spelled.startswith("*")
    const = spelled.startswith("*k")
    dtype = DTYPES_BY_NAME.get(spelled[1:].removeprefix("k") if pointer else spelled)
    if dtype is None or dtype is void:
        if text == "None":
            return ConstantArgument(name, None)
        parameter = name.partition("[")[0]
        raise entry.problem(
            f"expected a type such as *fp32 or i32, got {text!r}; if {parameter} is a compile-time value, annotate it as "
            f"{parameter}: tl.constexpr"
        )
    if fact not in ("", "1", *map(str, (ALIGNMENT, *FINER))):
        raise entry.problem(f"after the colon stands 16, 8, 4, 2 or 1, not {fact!r}", len(spelled) + 1)
    if fact == "1":
        if pointer or not dtype.is_int():
            raise entry.problem("only an integer can be equal to 1", len(spelled) + 1)
        return ConstantArgument(name, 1)
    divisor = int(fact or 1)
    if divisor in FINER and (pointer or not dtype.is_int()):
        raise entry.problem(f"only an integer can be a multiple of {divisor}", len(spelled) + 1)
    return RuntimeArgument(name, PointerType(dtype, const) if pointer else dtype, divisor)


def _descriptor(name: str, entry: _Entry) -> Argument:
    match = DESCRIPTOR.fullmatch(entry.text)
    dtype = DTYPES_BY_NAME.get(match[1]) if match else None
    if match is None or dtype is None:
        raise entry.problem(f"expected a descriptor such as tensordesc<fp16[128, 64]>, got {entry.text!r}")
    sides = list(re.finditer(r"\d+", match[2]))
    for side in sides:
        if int(side[0]) == 0:
            first = match.start(2)
            raise entry.problem(
                f"a side of a block is 1 or more, not {side[0]}", first + side.start(), first + side.end()
            )
    block, known = tuple(int(side[0]) for side in sides), (bool(match[4]),) * len(sides)
    try:
        check_descriptor(1, block, dtype)
    except ArgumentError as error:
        raise entry.problem(error.cause, *match.span(2)) from None
    return DescriptorArgument(name, dtype, block, known, match[3] or "zero")


def _is_number(text: str) -> bool:
    """Whether an entry is a number or a truth value: what stands for a parameter in its place, as with Triton."""
    try:
        return isinstance(ast.literal_eval(text), (int, float))
    except NO_VALUE:
        return False


def _value(entry: _Entry) -> object:
    text = entry.text
    if text in DTYPES_BY_NAME:
        return DTYPES_BY_NAME[text]
    if dtype := DTYPES_BY_WORD.get(text.removeprefix("tl.")):
        if text.startswith("tl."):  # as in the kernel's launch
            return dtype
        raise entry.problem(
            f"{text} can be a type, written {dtype} or tl.{text}, or a string, with its quotes: {text!r}"
        )
    try:
        return ast.literal_eval(text)
    except NO_VALUE:
        quoted = f"; a string is written {text!r}, with its quotes" if text.isidentifier() else ""
        raise entry.problem(f"expected the value of a compile-time parameter, got {text}{quoted}") from None
