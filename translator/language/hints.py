"""What to write in a kernel instead of a call of Python's, NumPy's or torch's functions."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import ModuleType, NoneType
from typing import Any

from ..absent import closest
from ..diagnostics import ArgumentError, DTypeError, ShapeError
from . import control
from .constexpr import constexpr
from .dtypes import DTYPES_BY_NAME, DTYPES_BY_WORD, DType, Element, PointerType, of_this_gpu
from .limits import MOST_ELEMENTS
from .missing import BY_OTHER_MEANS, TYPES
from .values import PropagateNan, tensor

_MODULES = {"tilewright": "triton", "tilewright.language": "tl"}  # as kernels call them
_STATIC_INTEGER = "each is a compile-time integer: a number, or a parameter that is annotated tl.constexpr"
MAKE_CONSTANT = "pass it as a parameter annotated tl.constexpr, or use a literal"
KNOWN_INDEX = "count with tl.static_range, whose numbers are known, or use a literal"
NOTHING = "a function that returns nothing has the value None, and so has an argument that was left out"
LONGEST = 60  # characters of a value that a message shows
MOST_ITEMS = 8  # of a tuple that a message shows
NO_RANGE = (
    "a kernel's for loop runs over range, tl.range or tl.static_range only",
    "index with a range, or write the iterations out",
)
_FORMS = {  # by words of our own where Python has none
    "Else": ("else of a loop", "loops of kernels have no break, so write what stands there behind the loop"),
    "ChainedAssign": ("a chained assignment", "write one assignment per line"),
    "StarredTarget": ("* in the target of an assignment", "name each item, or index the tuple: rest = items[1:]"),
    "AttributeTarget": ("assignment to an attribute", "assign to a plain name"),
    "MatrixMultiply": (
        "the operator @ is not supported on run-time values",
        "tl.dot multiplies matrices: write tl.dot(x, y)",
    ),
    "Keywords": ("**kwargs in a call", "name the arguments"),
    "NestedComprehension": ("this form of comprehension", "write it with one `for` and one name"),
}
_STATEMENTS = {"FunctionDef": "def", "ClassDef": "class", "Del": "del", "ImportFrom": "from ... import"}
_INSTEAD_OF_STATEMENTS = {
    "Break": "put the condition into the loop's bounds or use a while loop",
    "Continue": "put the rest of the body under an if",
    "Try": "check the condition outside the kernel",
    "TryStar": "check the condition outside the kernel",
    "TypeAlias": "write it outside the kernel",
    "With": "open it outside the kernel",
    "FunctionDef": "define the function outside and mark it @triton.jit",
    "Import": "import at the top of the file",
    "ImportFrom": "import at the top of the file",
    "Global": "pass the value as a parameter",
    "Raise": "use tl.static_assert or tl.device_assert",
    "ClassDef": "define the class outside the kernel",
    "Match": "write it with if and elif",
    "Del": "leave it out: names end with the kernel",
    "Nonlocal": "pass the value as a parameter",
}
_TAKEN_OUT = {  # arguments of earlier versions, by function and keyword
    ("tl.dot", "trans_a"): "tl.dot(tl.trans(x), y)",
    ("tl.dot", "trans_b"): "tl.dot(x, tl.trans(y))",
}
_LIBRARIES = frozenset(("builtins", "math", "cmath", "numpy", "torch", "tilewright"))


def shown(value: Any) -> str:
    """A compile-time value in words, for messages: without addresses and paths, which differ from run to run."""
    if isinstance(value, (bool, int, float, str, bytes, NoneType)):
        text = repr(value)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    if isinstance(value, (tuple, list)):
        items = [shown(item) for item in value[:MOST_ITEMS]] + ["..."] * (len(value) > MOST_ITEMS)
        return f"({', '.join(items)}{',' if len(value) == 1 else ''})"
    if isinstance(value, DType):
        return f"tl.{value.word}"
    if isinstance(value, PointerType):
        return f"tl.pointer_type(tl.{value.element_ty.word})"
    if isinstance(value, ModuleType):
        return f"the module {_MODULES.get(value.__name__, value.__name__)}"
    try:
        return _shown_object(value)
    except Exception:  # of the user's, who may answer to every name and not show itself
        return f"an object of type {type(value).__name__}"


def _shown_object(value: Any) -> str:
    name = getattr(value, "__name__", None) or getattr(value, "name", None)
    if isinstance(value, type):
        return f"the class {name}"
    text = repr(value)
    if text.startswith("<tl."):
        return text[1:-1]
    if callable(value) and isinstance(name, str):
        return f"the function {name}"
    return f"an object of type {type(value).__name__}" if is_unfit(text) or len(text) > LONGEST else text


def is_unfit(text: str) -> bool:
    """Whether a value's text is none for a sentence: of several lines, or with an address, which differs from run to run."""
    return " at 0x" in text or not text.isprintable()


def element_type(value: Any) -> Element:
    """The element type that a kernel gives as a type, or by its short name.

    Raises:
      DTypeError: for anything else, and for types of other GPUs.
    """
    dtype = DTYPES_BY_NAME.get(value, value) if isinstance(value, str) else value
    if isinstance(dtype, (DType, PointerType)):
        return of_this_gpu(dtype)
    named = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None) or str(dtype).rpartition(".")[2]
    word = TYPES.get(named, named)  # of a type of Python, NumPy or torch
    meant = word if word in DTYPES_BY_WORD else closest(word, DTYPES_BY_WORD)
    remedy = f"write tl.{meant}" if meant else "write one of tl's types"
    raise DTypeError(f"expected a type such as tl.float32, got {shown(dtype)}", None, remedy)


# By what the frontend and the interpreter both call them; a tuple of the interpreter's is Python's own.
_OBJECTS = {
    "BlockPointer": "a block pointer",
    "Descriptor": "a tensor descriptor",
    "Method": "a method",
    "Tuple": "a tuple",
}
_INSTEAD_OF_OBJECTS = {
    "BlockPointer": "read it with tl.load",
    "Descriptor": "read a block of it, as x.load([row, column])",
    "Method": "call it, with parentheses",
}


def described(value: Any) -> str:
    """What stands where a number or a tile is needed, in words: a compile-time value, or an object of a kernel."""
    if isinstance(value, (tuple, list)):
        return "a tuple"
    if type(value).__name__ in _OBJECTS:
        return _OBJECTS[type(value).__name__]
    is_plain = value is None or isinstance(value, (int, float, str))
    return f"the compile-time value {shown(value)}" if is_plain else shown(value)


def instead_of(value: Any) -> str:
    """What to write where a number or a tile is needed and something else stands."""
    if value is None:
        return NOTHING
    if isinstance(value, DType):
        return f"a type is no value: write tl.cast(x, tl.{value.word}), or tl.zeros(shape, tl.{value.word})"
    if isinstance(value, (tuple, list)):
        return "take one of its items, as x[0], or one name for each, as a, b = x"
    if isinstance(value, ModuleType):
        return f"write a name of it, as {_MODULES.get(value.__name__, value.__name__)}.name"
    if type(value).__name__ in _INSTEAD_OF_OBJECTS:
        return _INSTEAD_OF_OBJECTS[type(value).__name__]
    if isinstance(value, str):
        return "a text can be compared, as x == 'text', and chosen by; of a number in it, pass the number"
    if isinstance(value, enum.Enum):
        return "take its number: of a parameter MODE, whose own .value is the member, as MODE.value.value"
    of = type(value)  # an object itself may import what it is asked for
    if hasattr(of, "shape") and hasattr(of, "dtype"):
        return "pass an array as an argument that is not annotated tl.constexpr, and read it with tl.load"
    if callable(value):
        return "" if isinstance(value, type) else "call it, with parentheses"
    return "take a number that is a member of it, as x.name"


def no_form(kind: str) -> tuple[str, str]:
    """What is wrong with a form of Python's that kernels do not have, and what to do; `kind` is Python's word for its node."""
    if kind in _FORMS:
        return _FORMS[kind]
    if kind in _INSTEAD_OF_STATEMENTS:
        return f"{_STATEMENTS.get(kind, kind)} statements cannot stand in a kernel", _INSTEAD_OF_STATEMENTS[kind]
    return f"{kind} expressions cannot stand in a kernel", "compute the value outside the kernel and pass it in"


def only_scalars(name: str, shape: Sequence[int]) -> tuple[str, str]:
    """What is wrong with a tile as the condition of a function, and what to do about it."""
    sides = [int(side) for side in shape]
    return (
        f"{name} takes a condition that is a scalar, not a tile of shape {sides}",
        "reduce it first, with tl.min(x, axis)",
    )


def unfitting(name: str, signature: object, given: Iterable[str]) -> str:
    """What to do about arguments that a function does not take; `given` are the keywords among them."""
    for keyword in given:
        if instead := _TAKEN_OUT.get((name, keyword)):
            return f"Triton has taken {keyword} out: for True write {instead}, for False leave it out"
    return f"the signature is {name}{signature}"


def too_few_axes(element: Any, shape: Sequence[int]) -> tuple[str, str]:
    """What is wrong with an index that has more `:` than a value has axes, and what to do about it."""
    axes = f"the {len(shape)} axes" if len(shape) > 1 else "the one axis"
    return f"the index has more : than {axes} of {element}{[int(side) for side in shape]}", "leave one out"


def no_two_axes(type_: object) -> tuple[str, str]:
    """What is wrong with a value that is to be transposed, and what to do about it."""
    return f"trans of {type_}: there are no two axes to exchange", "give it a second one, as x[None, :]"


def no_permutation(type_: object, order: tuple[Any, ...], rank: int) -> tuple[str, str]:
    """What is wrong with an order of a tile's axes, and what to do about it."""
    axes = ", ".join(map(str, range(rank)))
    return f"permute of {type_} by {shown(order)}: each axis must occur once", f"name each of the axes {axes} once"


def no_grid_axis(function: str, axis: Any) -> tuple[str, str]:
    """What is wrong with an axis of the grid, and what to do about it."""
    return f"{function} axis must be 0, 1, or 2 but got {shown(axis)}", f"a grid has three axes: write tl.{function}(0)"


def check_arange(start: Any, end: Any) -> None:
    """Rejects what `tl.arange` cannot count.

    Raises:
      ArgumentError: says what it can.
    """
    if not isinstance(start, int) or not isinstance(end, int):
        raise ArgumentError(
            f"arange's arguments must be integers, not {shown(start)} and {shown(end)}", None, _STATIC_INTEGER
        )
    if end <= start:
        counted = f"it counts from {start} to {end} - 1: write tl.arange(0, BLOCK), where BLOCK is 1 or more"
        raise ArgumentError("arange's end argument must be greater than the start argument", None, counted)
    if not -(2**31) <= start < end < 2**31:
        raise ArgumentError(
            "arange's arguments must fit in 32 bits",
            None,
            "add the rest to it: start + tl.arange(0, BLOCK)",
        )


def no_static_condition(given: Any) -> tuple[str, str]:
    """What is wrong with the condition of `tl.static_assert`, and what to do about it."""
    cause = f"Assertion condition could not be determined at compile-time: it is {shown(given)}"
    return cause, "write a comparison of compile-time values; tl.device_assert tests at run time"


def no_static_bound(given: Any) -> tuple[str, str]:
    """What is wrong with a bound of `tl.static_range`, and what to do about it."""
    return f"a bound of tl.static_range must be an integer, not {shown(given)}", _STATIC_INTEGER


def no_side(what: str, given: Any) -> tuple[str, str]:
    """What is wrong with the side of a tile, and what to do about it."""
    return f"{what} must be a positive integer, not {shown(given)}", _STATIC_INTEGER


def no_integer(what: str, given: str) -> tuple[str, str]:
    """What is wrong with an offset or a side of memory, and what to do about it; `given` is it in words."""
    return f"{what} must be an integer scalar, not {given}", "write an integer for each axis, as (row, 0)"


def cannot_compute(error: Exception, sign: str, *operands: Any) -> tuple[str, str]:
    """What is wrong with compile-time operands of an operator, and what to do about it; `error` is Python's."""
    if not isinstance(error, TypeError):
        return f"cannot compute this at compile time: {error}", "test the numbers first, with tl.static_assert"
    strange = next((one for one in operands if not isinstance(one, (int, float))), operands[0])
    cause = f"cannot compute this at compile time: {sign} does not take {' and '.join(map(shown, operands))}"
    return cause, instead_of(strange) or "give it numbers"


def no_axis(axis: Any, rank: int, added: int = 0) -> tuple[str, str]:
    """What is wrong with an axis of a tile, and what to do about it; `added` of the axes are new, the axis is to be one."""
    axes = " or ".join(map(str, range(rank)))
    if added:
        old = f"a tile of rank {rank - added}" if rank > added else "a scalar"
        return f"{shown(axis)} is no place for a new axis of {old}", f"write {axes}"
    return f"axis {shown(axis)} of a tile of rank {rank}", f"write {axes}" if rank else "a scalar has no axes"


def uncallable(function: Any) -> tuple[str, str]:
    """What is wrong with calling what is no function, or Python's on values of run time, and what to do about it."""
    if isinstance(function, DType):
        word = function.word
        return (
            f"tl.{word} is a type and cannot be called",
            f"convert with x.to(tl.{word}), or tl.cast(3, tl.{word}) of a number",
        )
    kind = type(function)
    if kind.__module__.startswith("tilewright.runtime.tuning"):
        name = getattr(function, "__name__", "the kernel")
        return (
            f"{name} is tuned at launches, and cannot be called from a kernel",
            "call a function that has @triton.jit alone, and pass it what its configs or heuristics would set",
        )
    if kind.__name__ == "Held" and kind.__module__.startswith("tilewright."):  # what kernel[grid] gives
        return no_launch("other")
    if not callable(function):
        return (
            f"{shown(function)} is called, but it is no function",
            "look at what gives it its value, such as an import",
        )
    if isinstance(function, type) and issubclass(function, (control.range, range)):
        name = "tl.static_range" if issubclass(function, control.static_range) else "range"
        return f"{name} stands in the head of a for loop only", f"write for i in {name}(start, stop, step):"
    if function is tensor:
        return "tl.tensor is the class of tiles and cannot be called", "make a tile with tl.full, tl.zeros or tl.arange"
    if function is constexpr:
        return "tl.constexpr of a value that is known at run time only", "pass it as a parameter annotated tl.constexpr"
    if isinstance(function, partial):
        name = shown(function.func)
        return f"{name} is called by way of functools.partial", f"write a @triton.jit function that calls {name}"
    name = getattr(function, "__name__", repr(function))
    cause = f"{name} is a Python function and its arguments are known at run time only"
    library = (getattr(function, "__module__", None) or type(function).__module__).partition(".")[0]
    if library not in _LIBRARIES:
        return cause, f"Did you forget to add @triton.jit to {name}?"
    if name in TYPES:
        return cause, f"convert with x.to(tl.{TYPES[name]})"
    if name in BY_OTHER_MEANS:
        return cause, BY_OTHER_MEANS[name]
    from .. import language

    if name in language.__all__:
        return cause, f"write tl.{name}"
    return cause, f"use functions of tl, which has no {name}, or pass the result of {name} as an argument"


def no_power(exponent: Any) -> tuple[str, str]:
    """What is wrong with `**`, and what to do about it; `exponent` is the compile-time value that it has, or None."""
    small = type(exponent) in (int, float) and exponent in (2, 3, 4)
    remedy = f"write {' * '.join('x' * int(exponent))}" if small else "write tl.extra.libdevice.pow(x, y)"
    return "** on a run-time value", "write tl.sqrt(x)" if exponent == 0.5 else remedy


def no_item(is_pointer: bool, base: str = "x", index: str = "offsets") -> str:
    """What to do instead of `base[index]`, which is no new axis."""
    if is_pointer:
        return f"a pointer is no array: write tl.load({base} + {index})"
    return "only : and None can index a tile, as in x[:, None]; load the part that you need instead"


def no_key(word: str, value: Any, key: Any) -> tuple[str, str]:
    """What is wrong with `word[key]` of a compile-time value without such an item, and what there is instead."""
    if isinstance(value, Mapping):
        return f"{word} has no key {shown(key)}", f"its keys are {', '.join(map(shown, value)) or 'none'}"
    return f"{word} has no item {shown(key)}", f"it has {len(value)}, counted from 0"


def no_assignment(is_pointer: bool, base: str = "x", index: str = "offsets") -> str:
    """What to do instead of `base[index] = value`."""
    if is_pointer:
        return f"a pointer is no array: write tl.store({base} + {index}, value)"
    return "a tile changes as a whole: write x = tl.where(condition, value, x)"


def no_extremum(name: str, second: Any) -> tuple[str, str]:
    """What is wrong with `tl.max(x, y)` of two values, and what to do about it; `second` is y in words."""
    cause = f"tl.{name} reduces a tile along an axis, and {second} is no axis"
    return cause, f"of two values, write tl.{name}imum(x, y)"


def no_launch(name: str) -> tuple[str, str]:
    """What is wrong with `name[grid](…)` inside of a kernel, and what to do about it."""
    return (
        "a kernel cannot launch another one",
        f"call it without a grid, as {name}(…): it then is a part of this kernel",
    )


def no_bounds(types: Sequence[str], has_tile: bool) -> tuple[str, str]:
    """What is wrong with bounds of a range that are no integers, and what to do about it.

    Conditions are none: Python takes True for 1, Triton for -1.
    """
    remedy = "a bound is one number: take one, as with tl.max(x, axis=0)" if has_tile else "cast them to tl.int32"
    if any(text.startswith("*") for text in types):
        remedy = "load the number that a pointer points to, with tl.load"
    elif "i1" in types:
        remedy = "write an if for a condition, or make a number of it, as condition.to(tl.int32)"
    return f"For loop bounds and step must all be ints, are ({', '.join(types)})", remedy


def no_carried_type(name: str, before: object, after: object) -> tuple[str, str]:
    """What is wrong with a variable that a loop makes one of another type, and what to do about it."""
    cause = (
        f"Loop-carried variable {name} has initial type {before} but is re-assigned to {after} in loop! "
        "Please make sure that the type stays consistent."
    )
    return cause, f"give {name} its final type and shape before the loop"


def no_range_argument(name: str, hints: Iterable[str]) -> tuple[str, str]:
    """What is wrong with a name in a call of a range that has these hints, and what to do about it."""
    return f"this range takes no argument {name!r}", f"it takes {', '.join(('step', *hints))}"


def no_condition(value: Any, is_tuple: bool) -> tuple[str, str]:
    """What is wrong with a mask that is no number or tile, and what to do about it."""
    if is_tuple:
        return "a mask is a condition, not a tuple", "a comma behind the condition makes a tuple of it: take it away"
    return f"a mask is a condition, not {shown(value)}", "compare something, as offsets < n"


def no_mask(type_: str) -> tuple[str, str]:
    """What is wrong with a mask of this type, and what to do about it."""
    remedy = "load what it points to" if type_.startswith("*") else "compare it, as mask != 0"
    return f"Mask must have boolean scalar type, not {type_}", remedy


def no_order(left: str, right: str, has_none: bool) -> tuple[str, str]:
    """What is wrong with `<` between values of which one, perhaps None, has no order, and what to do about it."""
    remedy = (
        "test with `is None` first"
        if has_none
        else "only numbers and tiles of numbers have an order; == compares others"
    )
    return f"cannot compare {left} with {right}", remedy


def check_ordered(values: Iterable[Any]) -> None:
    """Rejects compile-time values whose `min` and `max` in Python depend on the order of the arguments.

    Raises:
      ArgumentError: for NaN and -0.0, as in Triton.
    """
    for value in values:
        if isinstance(value, float) and (math.isnan(value) or (value == 0 and math.copysign(1, value) < 0)):
            raise ArgumentError(
                f"min and max of compile-time values take no {value}", None, "compare it before, or use tl.minimum"
            )


def propagates_nan(option: Any) -> bool:
    """Whether the argument `propagate_nan` has NaN win.

    Raises:
      ArgumentError: for anything but a `tl.PropagateNan` and None.
    """
    if option is not None and not isinstance(option, PropagateNan):
        remedy = "of three values, write the call twice, as tl.minimum(tl.minimum(x, y), z)"
        raise ArgumentError(f"propagate_nan must be a tl.PropagateNan, not {shown(option)}", None, remedy)
    return option is PropagateNan.ALL


def check_size(shape: Sequence[int]) -> None:
    """Rejects a tile of more elements than tiles have.

    Raises:
      ShapeError: says how many there would be.
    """
    if math.prod(shape) > MOST_ELEMENTS:
        shown = [int(side) for side in shape]
        raise ShapeError(
            f"a tile of the shape {shown} has {math.prod(shape)} elements, but a tile has at most {MOST_ELEMENTS}",
            None,
            "use smaller blocks, and a loop or more programs",
        )
