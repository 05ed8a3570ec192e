"""`op`: a Python function that launches kernels, as an operator of torch."""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Iterable
from typing import Any

import torch
from tilewright.diagnostics import OperatorError
from tilewright.language.hints import shown
from tilewright.runtime.tracebacks import outermost
from tilewright.runtime.tracing import without_launches

Function = Callable[..., Any]


@outermost
def op(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    mutates_args: str | Iterable[str] = (),
    fake: Function | None = None,
    backward: Function | None = None,
    setup_context: Function | None = None,
    schema: str | None = None,
) -> Any:
    """Makes an operator of a function that allocates with torch and launches kernels.

    Under torch.compile (with `fullgraph=True` too) and torch.export the operator is one node of the graph. Its shapes are
    found by running the function on tensors without memory, where launches do nothing. What comes back is torch's
    `CustomOpDef`: call it; `register_fake`, `register_autograd`, `register_vmap` and `register_kernel` add to it.

    Args:
      function: annotated with torch's types (Tensor, int, float, bool, str, dtype, lists and optionals of these).
      name: "library::name"; by default the function's module, dots as underscores, and its name.
      mutates_args: names of the tensors that the function writes; all others must stay as they are.
      fake: makes the results' shapes and types from the arguments, for a function that also reads numbers of its tensors or
        does more with sizes than arithmetic.
      backward: `backward(ctx, *gradients)`, gives the gradients of all arguments; launches in it belong into an op again.
        Gradients may have any strides, 0 included: pass `gradient.contiguous()` on.
      setup_context: `setup_context(ctx, inputs, output)`, keeps what `backward` needs.
      schema: torch's text for the types, instead of annotations.

    Raises:
      OperatorError: for a function that torch cannot take: without annotations, or which has no name of its own;
        and for what is no name of one.
    """
    if function is None:
        return functools.partial(
            op, name=name, mutates_args=mutates_args, fake=fake, backward=backward,
            setup_context=setup_context, schema=schema,
        )  # fmt: skip
    if not callable(function):
        raise OperatorError(f"op makes an operator of a function, not of {function!r}; its name is passed as name=...")
    if setup_context is not None and backward is None:
        raise OperatorError(f"{_named(function)}: setup_context keeps what backward needs; pass backward as well")
    own = _own_name(function) if name is None else _checked_name(name, function)
    try:
        made = torch.library.custom_op(own, _annotated(function, schema), mutates_args=mutates_args, schema=schema)
    except (
        ValueError,
        TypeError,
        NameError,
        RuntimeError,
        AttributeError,
        SyntaxError,
    ) as error:  # the last of annotations
        raise OperatorError(f"{_named(function)} cannot be an operator of torch: {error}") from error
    made.register_fake(fake or _without_memory(function))
    if backward is not None:
        made.register_autograd(backward, setup_context=setup_context)
    return functools.update_wrapper(made, function)


def _named(function: Function) -> str:
    """What messages call a function; objects that can be called, such as a `functools.partial`, have no name."""
    return getattr(function, "__name__", None) or shown(function)


def _checked_name(name: str, function: Function) -> str:
    """The name that the user gives an operator.

    Raises:
      OperatorError: when it is none, such as one without a library.
    """
    if not isinstance(name, str) or re.fullmatch(r"[A-Za-z_]\w*::[A-Za-z_]\w*", name, re.ASCII) is None:
        raise OperatorError(
            f"{name!r} is no name of an operator; it needs a library in front, as in {_example(function)}"
        )
    return name


def _example(function: Function) -> str:
    own = getattr(function, "__name__", "scale")
    return f'op(name="mylib::{re.sub(r"[^0-9A-Za-z_]", "", own)}")'


def _own_name(function: Function) -> str:
    """A function's name as torch wants it.

    Raises:
      OperatorError: for a lambda or a function inside another, whose name others may have as well, and for what has none.
    """
    whole = getattr(function, "__qualname__", None) or shown(function)
    if not whole.isidentifier():
        raise OperatorError(f"{whole} is no function of a module; name the operator, as in {_example(function)}")
    return f"{function.__module__.replace('.', '_')}::{function.__name__}"


def _annotated(function: Function, schema: str | None) -> Function:
    """The function with its annotations as types, also where `from __future__ import annotations` made text of them."""
    if schema is not None:
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    hints = typing.get_type_hints(function)
    signature = inspect.signature(function)
    parameters = [p.replace(annotation=hints.get(n, p.annotation)) for n, p in signature.parameters.items()]
    result = hints.get("return", signature.return_annotation)
    result = None if result is type(None) else result
    call.__signature__ = signature.replace(parameters=parameters, return_annotation=result)  # type: ignore[attr-defined]
    return call


def _without_memory(function: Function) -> Function:
    @functools.wraps(function)
    def shapes(*args: Any, **kwargs: Any) -> Any:
        with without_launches():
            return function(*args, **kwargs)

    return shapes
