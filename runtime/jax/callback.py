"""A kernel in a program of JAX as `jax.pure_callback`: it runs on the host, and arrays on a GPU travel there and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np


def on_host(
    launch: Callable[..., None], shapes: Sequence[jax.ShapeDtypeStruct], vmap_method: str, *arrays: Any
) -> tuple[Any, ...]:
    """The results of `launch(arrays, results)`, which gets NumPy arrays; the results are zero at first."""

    def call(*given: Any) -> tuple[np.ndarray, ...]:
        results = tuple(np.zeros(one.shape, one.dtype) for one in shapes)
        launch([np.asarray(one) for one in given], results)
        return results

    return tuple(jax.pure_callback(call, tuple(shapes), *arrays, vmap_method=vmap_method))
