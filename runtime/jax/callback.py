"""`call`: a launch that JAX traces, as `jax.pure_callback`, which needs no compiler of C++ on the user's machine."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from tilewright.diagnostics import OperatorError


def call(*args: Any, kernel: Any, out_shape: Any, grid: Any, vmap_method: str = "sequential", **options: Any) -> Any:
    """Launches a kernel on arrays of JAX and gives new ones; what it gets is never changed.

    The kernel runs on the host, in the mode that $TILEWRIGHT_MODE names: the CPU run by default. Arrays on a GPU travel to
    the host and back.

    Args:
      args: the kernel's first arguments: arrays of JAX, also traced ones; NumPy arrays; numbers and None. A scalar array of
        JAX, traced or not, is passed as the number that it holds.
      kernel: a kernel, or what `autotune` or `heuristics` made of one.
      out_shape: shape and type of the arrays that the kernel writes, which are its parameters after `args` and hold zeros
        at first: a `jax.ShapeDtypeStruct`, an array, or a tuple or list of these.
      grid: as in `kernel[grid]`; of numbers known while tracing, or a function of the arguments by name.
      vmap_method: of `jax.pure_callback`.
      options: compile-time arguments and options of the launch, by name.

    Returns:
      An array for one shape, otherwise a tuple.

    Raises:
      OperatorError: for an `out_shape` without shapes and types, and for an option that is an array of JAX.
    """
    several = isinstance(out_shape, (tuple, list))
    shapes = tuple(_shape(one) for one in (out_shape if several else (out_shape,)))
    for name, value in options.items():
        if isinstance(value, jax.Array):
            raise OperatorError(f"{name} is an array of JAX; pass run-time arguments by position, before the results")
    places = [number for number, value in enumerate(args) if isinstance(value, (jax.Array, np.ndarray))]

    def launch(*arrays: Any) -> tuple[np.ndarray, ...]:
        given = list(args)
        for number, array in zip(places, arrays, strict=True):
            content = np.asarray(array)
            given[number] = content if content.shape else content[()]
        results = tuple(np.zeros(one.shape, one.dtype) for one in shapes)
        kernel[grid](*given, *results, **options)
        return results

    found = jax.pure_callback(launch, shapes, *(args[number] for number in places), vmap_method=vmap_method)
    return tuple(found) if several else found[0]


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
