"""From source to a typed kernel: LibCST, compile-time evaluation, and the IR of `docs/ir.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..artifact import Argument, ConstantArgument, Options, Target, TupleArgument

if TYPE_CHECKING:
    from ..ir.nodes import Kernel
    from ..kernel_function import KernelFunction


def build_kernel(function: KernelFunction, arguments: tuple[Argument, ...], options: Options, target: Target) -> Kernel:
    """Translates the text of one specialisation into a typed kernel.

    Raises:
      CompilationError: with the place, when the text is at fault.
    """
    from ..ir.nodes import Kernel, Parameter
    from .builder import Builder
    from .calls import source_of
    from .statements import visit_block

    source = source_of(function)
    builder = Builder(source, options, target)
    parameters: list[Parameter] = []
    constants: dict[str, Any] = {}
    for argument in arguments:
        builder.scope[argument.name] = _parameter_value(builder, argument, argument.name, parameters, constants)
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
        constants=constants,
        body=tuple(builder.statements),
        functions=tuple(builder.functions.values()),
        globals=tuple((module, name, value) for (module, name), value in builder.globals.items()),
    )


def _parameter_value(
    builder: Any, argument: Argument, name: str, parameters: list[Any], constants: dict[str, Any]
) -> Any:
    from ..ir.nodes import Parameter, Use
    from ..ir.types import ValueType
    from .values import Const, Tuple

    if isinstance(argument, ConstantArgument):
        constants[name] = argument.value
        is_number = isinstance(argument.value, (int, float))
        if type(argument.value) in (tuple, list):
            return Tuple(tuple(Const(item) for item in argument.value))
        return Const(argument.value, name if is_number else None)
    if isinstance(argument, TupleArgument):
        words = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
        items = (
            _parameter_value(builder, item, f"{name}_{words[number % len(words)]}", parameters, constants)
            for number, item in enumerate(argument.items)
        )
        return Tuple(tuple(items))
    variable = builder.variable(name, ValueType(argument.element))
    builder.protected.add(variable)
    parameters.append(Parameter(variable, 16 if argument.divisible_by_16 else 1))
    return Use(variable.type, variable)
