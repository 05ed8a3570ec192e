"""From source to a typed kernel: LibCST, compile-time evaluation, and the IR of `docs/ir.md`."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, Any

from ..artifact import Argument, ConstantArgument, DescriptorArgument, Options, Target, TupleArgument, constants_of

if TYPE_CHECKING:
    from ..ir.nodes import Kernel
    from ..ir.static_loops import LoopPlace
    from ..kernel_function import KernelFunction
    from ..language.dtypes import Element

SIDES = ("GROUPS", "VOLUMES", "PLANES", "ROWS", "COLS")  # of blocks, the contiguous one last


def build_kernel(
    function: KernelFunction,
    arguments: tuple[Argument, ...],
    options: Options,
    target: Target,
    written_out: Set[LoopPlace] = frozenset(),
) -> Kernel:
    """Translates the text of one specialisation into a typed kernel; `written_out` are static loops whose trips differ.

    Raises:
      CompilationError: with the place, when the text is at fault.
    """
    from ..ir.nodes import Kernel, Parameter
    from .builder import Builder
    from .calls import source_of
    from .parameter_comments import parameter_comments
    from .statements import visit_block
    from .unread import without_unread_results

    source = source_of(function)
    source.check_parameters()
    builder = Builder(source, options, target)
    builder.written_out_loops = frozenset(written_out)
    parameters: list[Parameter] = []
    constants: dict[str, Any] = {}
    sides: dict[str, Any] = {}
    for argument in arguments:
        for constant in constants_of(argument):
            builder.outside.argument(constant.name, constant.value)
        builder.scope[argument.name] = _parameter_value(builder, argument, argument.name, parameters, constants, sides)
    for parameter in function.params:
        if parameter.is_constexpr:
            builder.constexpr_names.add(parameter.name)
    visit_block(builder, source.definition.body)
    return Kernel(
        name=function.__name__,
        file=function.file,
        line=source.line,
        docstring=source.docstring,
        parameters=tuple(parameters),
        constants=constants | sides,
        body=without_unread_results(tuple(builder.statements)),
        functions=tuple(dict.fromkeys(builder.functions.values())),
        numbers={name: number for name, number in builder.numbers.items() if number is not None},
        globals=tuple(builder.globals.values()),
        readings=builder.outside.readings,
        static_loops=tuple(builder.static_loops),
        parameter_comments=parameter_comments(source.definition),
    )


def _parameter_value(
    builder: Any,
    argument: Argument,
    name: str,
    parameters: list[Any],
    constants: dict[str, Any],
    sides: dict[str, Any],
) -> Any:
    """What an argument is in the kernel; `parameters`, `constants` and `sides` of descriptors' blocks get what it needs."""
    from ..ir.c_names import can_be_global
    from ..ir.symbols import Name
    from ..ir.types import ORDINALS
    from .values import Const, Tuple, known_value, with_wrapper

    if isinstance(argument, ConstantArgument):
        constants[name] = argument.value
        is_number = isinstance(argument.value, (int, float))
        if type(argument.value) in (tuple, list):
            return with_wrapper(known_value(argument.value), True)
        return Const(argument.value, Name(name) if is_number and can_be_global(name) else None)
    if isinstance(argument, TupleArgument):
        labels = argument.fields or tuple(ORDINALS[number % len(ORDINALS)] for number in range(len(argument.items)))
        items = (
            _parameter_value(builder, item, f"{name}_{label}", parameters, constants, sides)
            for label, item in zip(labels, argument.items, strict=True)
        )
        return Tuple(tuple(items), argument.fields)
    if isinstance(argument, DescriptorArgument):
        return _descriptor(builder, argument, name, parameters, sides)
    return _parameter(builder, name, argument.element, argument.divisor, parameters)


def _parameter(builder: Any, name: str, element: Element, divisibility: int, parameters: list[Any]) -> Any:
    from ..ir.nodes import Parameter, Use
    from ..ir.types import ValueType

    variable = builder.variable(name, ValueType(element))
    builder.protected.add(variable)
    parameters.append(Parameter(variable, divisibility))
    return Use(variable.type, variable)


def _descriptor(
    builder: Any, argument: DescriptorArgument, name: str, parameters: list[Any], sides: dict[str, Any]
) -> Any:
    from ..language.dtypes import PointerType, int32, int64
    from .values import Descriptor

    base = _parameter(builder, name, PointerType(argument.element), 16, parameters)
    shape = tuple(
        _parameter(builder, f"{name}_shape_{axis}", int32, 16 if known else 1, parameters)
        for axis, known in enumerate(argument.divisible_by_16)
    )
    builder.nonnegative |= {side.variable for side in shape}
    strides = tuple(
        _parameter(builder, f"{name}_stride_{axis}", int64, 16 // argument.element.itemsize, parameters)
        for axis in range(len(shape) - 1)
    )
    block = _named_sides(builder, argument.block_shape, name, sides)
    return Descriptor(base, shape, strides, block, argument.padding, argument.rounds_to_tf32)


def _named_sides(builder: Any, block: tuple[int, ...], name: str, constants: dict[str, Any]) -> tuple[int, ...]:
    """The sides of a descriptor's blocks, as constants with names of their own: A_ROWS and A_COLS of a_desc."""
    from ..ir.symbols import Name
    from ..ir.types import Dim

    stem = name.removesuffix("_desc").removesuffix("_descriptor").upper()
    words = ("ELEMS",) if len(block) == 1 else SIDES[len(SIDES) - len(block) :]
    names = [f"{stem}_{word}" for word in words]
    if set(names) & {parameter.name for parameter in builder.source.function.params}:
        return block
    sides = {word: Dim(int(side), Name(word)) for word, side in zip(names, block, strict=True)}
    constants |= sides
    return tuple(sides.values())
