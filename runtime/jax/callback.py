"""A kernel in a program of JAX as `jax.pure_callback`: it runs on the host, and arrays on a GPU travel there and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from tilewright.runtime.tracing import recorded


def on_host(
    launch: Callable[..., None], shapes: Sequence[jax.ShapeDtypeStruct], vmap_method: str, *arrays: Any
) -> tuple[Any, ...]:
    """The results of `launch(arrays, results)`, which gets NumPy arrays; the results are zero at first."""

    def call(*given: Any) -> tuple[np.ndarray, ...]:
        results = tuple(np.zeros(one.shape, one.dtype) for one in shapes)
        launch([np.asarray(one) for one in given], results)
        return results

    return tuple(jax.pure_callback(call, tuple(shapes), *arrays, vmap_method=vmap_method))


def check(launch: Callable[..., None], shapes: Sequence[jax.ShapeDtypeStruct], arrays: Sequence[Any]) -> None:
    """Raises now what `launch` would raise in the callback, of which XLA makes an error of its own: nothing is started.

    Not with an integer whose number is only known later, for which a kernel may be another one, and right, when it is 1.
    """
    if any(array.shape == () and array.dtype.kind in "iu" for array in arrays):
        return
    content = [np.ones((), one.dtype) if one.shape == () else np.zeros(one.shape, one.dtype) for one in arrays]
    for one in content:
        one.flags.writeable = False  # as XLA's are
    with recorded(lambda value: value):
        launch(content, [np.zeros(one.shape, one.dtype) for one in shapes])
