"""From a call's arguments to the specialisation that it needs.

In: the parameters of a kernel and the values bound to them. Out: a `Call`: the `Argument`s of the translation, the values
to pass, the arrays among them, and the cache key. The rules are Triton's: pointers and integers divisible by 16 and
integers equal to 1 get kernels of their own, everything else shares one per type. Multiples of 8, 4 and 2 get texts of their own
behind that, where it makes a difference (`runtime/finer.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tilewright.artifact import Argument, ConstantArgument, DescriptorArgument, RuntimeArgument, TupleArgument
from tilewright.diagnostics import ArgumentKindError, IntegerRangeError, LaunchError
from tilewright.frozen import frozen
from tilewright.kernel_function import KernelFunction, KernelParameter
from tilewright.language.constexpr import constexpr, plain, unwrap
from tilewright.language.dtypes import (
    DTYPES_BY_NAME,
    DTYPES_BY_WORD,
    DType,
    PointerType,
    float32,
    int1,
    int32,
    int64,
    uint64,
)
from tilewright.language.hints import shown as in_words
from tilewright.runtime.arguments.arrays import Array, describe
from tilewright.tools.tensor_descriptor import array_of, is_descriptor, reading

ALIGNMENT = 16  # bytes of an address, or what an integer is a multiple of
FINER = (8, 4, 2)  # what else an integer can be a multiple of
ANNOTATED = {"int": int32, "float": float32, "bool": int1}


@frozen
class Call:
    """See the module docstring. `values` are in the order of the kernel's run-time parameters."""

    arguments: tuple[Argument, ...]
    values: tuple[Any, ...]
    arrays: tuple[tuple[str, Array], ...]
    key: tuple[Any, ...]


class Watched(NamedTuple):
    """What of a parameter's value gets a kernel of its own: that an integer is 1, that 16 divides it or the address."""

    one: bool = True
    divisible: bool = True


def watched(parameter: KernelParameter) -> Watched:
    """What is looked at of a parameter."""
    one = not parameter.do_not_specialize
    return Watched(one, one and not parameter.do_not_specialize_on_alignment)


def specialise(function: KernelFunction, bound: dict[str, Any]) -> Call:
    """The specialisation of a call.

    Raises:
      ArgumentKindError: for an argument that is no array, number or compile-time value.
    """
    arguments: list[Argument] = []
    keys: list[Any] = []
    passed = _Passed()
    for parameter in function.params:
        value = bound[parameter.name]
        try:
            arguments.append(passed.argument(parameter, parameter.name, value, watched(parameter)))
            keys.append(_key(arguments[-1]))
        except LaunchError as error:
            raise error.of(parameter.name)
        except RecursionError:
            text = f"argument {parameter.name} is a tuple that nests too deep, or that contains itself"
            raise ArgumentKindError(text).of(parameter.name) from None
    return Call(tuple(arguments), tuple(passed.values), tuple(passed.arrays), tuple(keys))


def key_of(arguments: tuple[Argument, ...]) -> tuple[Any, ...]:
    """What tells one specialisation from another."""
    return tuple(_key(argument) for argument in arguments)


def describe_argument(argument: Argument) -> str:
    """An argument as in a signature: "*fp32:16", "i32", or a value."""
    if isinstance(argument, RuntimeArgument):
        return f"{argument.element}{f':{argument.divisor}' if argument.divisor > 1 else ''}"
    if isinstance(argument, TupleArgument):
        return f"({', '.join(describe_argument(item) for item in argument.items)})"
    if isinstance(argument, DescriptorArgument):
        padding = "" if argument.padding == "zero" else f", {argument.padding}"
        padding += ", tf32" if argument.rounds_to_tf32 else ""
        known = argument.divisible_by_16  # of some sides only: an entry for each
        fact = "" if not any(known) else ":16" if all(known) else f":{','.join('16' if one else '1' for one in known)}"
        return f"tensordesc<{argument.element}{list(argument.block_shape)}{padding}>{fact}"
    return repr(argument.value)


def _key(argument: Argument) -> Any:
    if isinstance(argument, RuntimeArgument):
        return argument.element, argument.divisor
    if isinstance(argument, TupleArgument):
        return argument.fields, *(_key(item) for item in argument.items)
    if isinstance(argument, DescriptorArgument):
        facts = (argument.block_shape, argument.divisible_by_16, argument.padding, argument.rounds_to_tf32)
        return "descriptor", argument.element, *facts
    return "constant", _constant_key(unwrap(argument.value))


def _constant_key(value: Any) -> Any:
    """What tells a compile-time value from others: its type and content; of a kernel's function also its text."""
    if isinstance(value, (tuple, list)):
        return type(value), *(_constant_key(unwrap(item)) for item in value)
    if isinstance(value, (int, str)):
        return type(value), value
    if value is None or type(value) is float or isinstance(value, DType):  # by the text, since -0.0 is equal to 0.0
        return type(value), repr(value)
    if isinstance(value, KernelFunction):
        return value, value.raw_src
    return _Content(value)


class _Content:
    """An object as a part of a key: the same as any other of its type that is equal to it and has the same text.

    Objects of one text may differ in what it does not show, and those that are equal in what they do not compare. An object
    whose text has changed since is another one; it need not be hashable.
    """

    __slots__ = ("_text", "_value")

    def __init__(self, value: Any) -> None:
        """Takes the text as it is now."""
        self._value, self._text = value, repr(value)

    def __hash__(self) -> int:
        return hash((type(self._value), self._text))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Content):
            return False
        one, another = self._value, other._value
        if type(one) is not type(another) or self._text != other._text:
            return False
        try:
            return one is another or bool(one == another)
        except Exception:  # arrays have no truth
            return False


class _Passed:
    """What a call passes to the kernel, collected argument by argument."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.values: list[Any] = []
        self.arrays: list[tuple[str, Array]] = []

    def argument(self, parameter: KernelParameter, name: str, value: Any, seen: Watched) -> Argument:
        """Takes an argument, or an item of one; what is known of it.

        Raises:
          ArgumentKindError: when it is no array, number or compile-time value.
        """
        if parameter.is_constexpr or value is None or isinstance(value, (constexpr, KernelFunction)):
            rank = getattr(value, "ndim", 0)  # of a class of arrays, or of NumPy itself, no number
            if hasattr(value, "dtype") and isinstance(rank, int) and rank > 0:
                raise ArgumentKindError(
                    f"argument {name} is an array, but {name} is annotated tl.constexpr: leave that out"
                )
            return ConstantArgument(name, plain(value))
        if isinstance(value, (tuple, list)):
            items = (self.argument(parameter, f"{name}[{i}]", item, seen) for i, item in enumerate(value))
            return TupleArgument(name, tuple(items), getattr(value, "_fields", ()))
        value = plain(value)
        if isinstance(value, (bool, int, float)):
            return self._number(name, value, annotated_type(parameter.annotation), seen)
        if is_descriptor(value):
            return self._descriptor(name, value, seen)
        array = describe(value, name)
        if array is not None:
            self.values.append(array.address)
            self.arrays.append((name, array))
            element = PointerType(array.dtype, parameter.is_const)
            return RuntimeArgument(name, element, _divisor(array.address, seen.divisible))
        if isinstance(value, (str, DType)) or callable(value):
            raise ArgumentKindError(
                f"argument {name} is {in_words(value)}, which only a compile-time parameter can take: "
                f"annotate it as {name}: tl.constexpr"
            )
        raise ArgumentKindError(
            f"argument {name} is of type {type(value).__name__}; a kernel takes arrays (torch, CuPy, JAX, NumPy or anything with "
            "an array interface), tensor descriptors, numbers, tuples of these, None, and compile-time values"
        )

    def _descriptor(self, name: str, value: Any, seen: Watched) -> DescriptorArgument:
        """A `TensorDescriptor`: its address, then its shape, then its strides but the last."""
        array = array_of(value, name)
        self.arrays.append((name, array))
        self.values += [array.address, *value.shape, *value.strides[:-1]]
        divisible = tuple(seen.divisible and side % ALIGNMENT == 0 for side in value.shape)
        return DescriptorArgument(name, array.dtype, tuple(value.block_shape), divisible, *reading(value, array.dtype))

    def _number(self, name: str, value: int | float | bool, annotated: DType | None, seen: Watched) -> Argument:
        if annotated is not None:
            is_whole = annotated.is_int() and not annotated.is_bool()
            if is_whole and isinstance(value, float) and not value.is_integer():
                raise ArgumentKindError(
                    f"argument {name} is {value}, but its annotation makes it a {annotated}: pass an integer"
                )
            self.values.append(value)
            return RuntimeArgument(name, annotated, _divisor(int(value), seen.divisible) if is_whole else 1)
        if isinstance(value, bool):
            self.values.append(value)
            return RuntimeArgument(name, int1)
        if isinstance(value, float):
            self.values.append(value)
            return RuntimeArgument(name, float32)
        if value == 1 and seen.one:
            return ConstantArgument(name, 1)
        self.values.append(value)
        return RuntimeArgument(name, integer_type(name, value), _divisor(value, seen.divisible))


def _divisor(value: int, is_watched: bool) -> int:
    return ALIGNMENT if is_watched and value % ALIGNMENT == 0 else 1


def annotated_type(annotation: str) -> DType | None:
    """The type that a parameter's annotation forces on its argument."""
    word = annotation.strip("\"'").rpartition(".")[2]
    return DTYPES_BY_WORD.get(word) or ANNOTATED.get(word) or DTYPES_BY_NAME.get(word)


def integer_type(name: str, value: int) -> DType:
    """The type of an argument that is an integer: not always that of a literal of this value, which may be uint32.

    Raises:
      IntegerRangeError: when 64 bits do not hold it.
    """
    for dtype, low, high in ((int32, -(2**31), 2**31), (int64, -(2**63), 2**63), (uint64, 0, 2**64)):
        if low <= value < high:
            return dtype
    raise IntegerRangeError(f"argument {name} is {in_words(value)}, which does not fit in 64 bits")
