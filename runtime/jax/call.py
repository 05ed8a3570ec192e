"""`call`: a launch that JAX traces. On a GPU it is a custom call of XLA, elsewhere a callback; neither compiles C++."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from tilewright.diagnostics import OperatorError
from tilewright.jax import custom_call
from tilewright.jax.callback import check, on_host
from tilewright.jax.placeholders import Request, record
from tilewright.language.hints import shown
from tilewright.runtime.placement import wanted_mode
from tilewright.runtime.tracebacks import outermost


@outermost
def call(
    *args: Any,
    kernel: Any,
    out_shape: Any,
    grid: Any,
    zeroed: bool = True,
    vmap_method: str = "sequential",
    **options: Any,
) -> Any:
    """Launches a kernel on arrays of JAX and gives new ones; what it gets is never changed.

    Where XLA runs the program on a GPU, the kernel is started on XLA's stream, on the arrays themselves. Elsewhere it runs
    on the host, in the mode that $TILEWRIGHT_MODE names (the CPU run by default), and so it does when a scalar array is
    passed whose number is only known when the program runs. A kernel that needs tuning is tuned on arrays of zeros.

    Args:
      args: the kernel's first arguments: arrays of JAX, also traced ones; NumPy arrays; numbers and None. A scalar array of
        JAX, traced or not, is passed as the number that it holds.
      kernel: a kernel, or what `autotune` or `heuristics` made of one.
      out_shape: shape and type of the arrays that the kernel writes, which are its parameters after `args` and hold zeros
        at first: a `jax.ShapeDtypeStruct`, an array, or a tuple or list of these.
      grid: as in `kernel[grid]`; of numbers known while tracing, or a function of the arguments by name.
      zeroed: False leaves out, on a GPU, setting the results to zero, for kernels that write all of them.
      vmap_method: of `jax.pure_callback`; on a GPU launches always follow one another.
      options: compile-time arguments and options of the launch, by name.

    Returns:
      An array for one shape, otherwise a tuple.

    Raises:
      OperatorError: for a `kernel` that is none, an `out_shape` without shapes and types, an option that is an array of JAX.
      TilewrightError: what the launch itself raises; but as an error of JAX's, when the program runs, where an integer is
        only known then.
    """
    _check_kernel(kernel)
    several = isinstance(out_shape, (tuple, list))
    shapes = tuple(_shape(one) for one in (out_shape if several else (out_shape,)))
    for name, value in options.items():
        if isinstance(value, jax.Array):
            raise OperatorError(f"{name} is an array of JAX; pass run-time arguments by position, before the results")
    given = [value.item() if _is_known_number(value) else value for value in args]
    places = [number for number, value in enumerate(given) if isinstance(value, (jax.Array, np.ndarray))]
    arrays = [given[number] for number in places]

    def launch(content: Sequence[Any], results: Sequence[Any]) -> None:
        merged = list(given)
        for number, array in zip(places, content, strict=True):
            merged[number] = array if array.shape else array[()]
        kernel[grid](*merged, *results, **options)

    host = functools.partial(on_host, launch, shapes, vmap_method)
    number = custom_call.device() if wanted_mode() in ("", "gpu") else None
    if number is None or any(array.shape == () for array in arrays):
        check(launch, shapes, arrays)
        found = host(*arrays)
    else:
        gpu = _recorded(Request(kernel, grid, given, shapes), number, options, zeroed)
        found = jax.lax.platform_dependent(*arrays, cuda=gpu, default=host)
    return tuple(found) if several else found[0]


def _recorded(request: Request, device: int, options: dict[str, Any], zeroed: bool) -> Callable[..., tuple[Any, ...]]:
    """What a kernel launches, as a function of traced arrays; without tensor maps where jaxlib cannot pass them."""
    shapes = request.shapes
    launches, addresses = record(request, device, options)
    if not custom_call.takes_maps(launches, addresses[len(addresses) - len(shapes) :]):
        launches, addresses = record(request, device, {**options, "guards": False})
    return lambda *arrays: tuple(custom_call.calls(launches, addresses, arrays, shapes, zeroed))


def _check_kernel(kernel: Any) -> None:
    """Rejects what cannot be launched.

    Raises:
      OperatorError: says where it stands, and what to write.
    """
    if hasattr(type(kernel), "__getitem__"):
        return
    code = getattr(kernel, "__code__", None)
    place = f", defined at {code.co_filename}:{code.co_firstlineno}," if code is not None else ""
    raise OperatorError(f"kernel is {shown(kernel)}{place} which is no kernel; write @triton.jit above its def")


def _is_known_number(value: Any) -> bool:
    known = isinstance(value, (jax.Array, np.ndarray)) and not isinstance(value, jax.core.Tracer)
    return known and value.shape == ()


def _shape(given: Any) -> jax.ShapeDtypeStruct:
    """Shape and type of one result.

    Raises:
      OperatorError: for something that has none.
    """
    if not hasattr(given, "shape") or not hasattr(given, "dtype"):
        raise OperatorError(
            f"out_shape has {given!r}; expected jax.ShapeDtypeStruct(shape, dtype), or a tuple of these"
        )
    return jax.ShapeDtypeStruct(given.shape, given.dtype)
