"""A kernel in a program that XLA runs on a GPU: jaxlib's custom call for compiled kernels, on XLA's stream, without copies.

While JAX traces, the kernel is run on arrays that are nothing but an address (`Placeholder`); the launches that it makes
are written down, and each becomes a custom call. So tunings, heuristics and wrappers of users decide as in any launch.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from tilewright.artifact import Artifact, TensorMap
from tilewright.diagnostics import ArgumentKindError, OperatorError
from tilewright.jax import wire
from tilewright.language.dtypes import PointerType
from tilewright.runtime.choices import device_target
from tilewright.runtime.driver import bindings, checked, in_context
from tilewright.runtime.host_expressions import evaluator
from tilewright.runtime.packing import in_range
from tilewright.runtime.tensor_maps import Shape, integer_places
from tilewright.runtime.tracing import RecordedLaunch, recorded

TARGET = "triton_kernel_call_ffi"
STEP = 1 << 20  # between the addresses of placeholders; a multiple of every alignment


class Placeholder:
    """An array that has a shape and type, and instead of memory an address that tells it from others."""

    def __init__(self, shape: Sequence[int], dtype: Any, number: int, device: int) -> None:
        """`number` counts the arrays of a call."""
        self.shape, self.dtype, self.device_number = tuple(shape), np.dtype(dtype), device
        self.address = (number + 1) * STEP
        self.device = type("Device", (), {"id": device})

    def data_ptr(self) -> int:
        """What a launch takes for its address."""
        return self.address

    def numel(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))


class Memory:
    """Memory of a GPU that holds zeros, for the time of a tuning."""

    def __init__(self, like: Placeholder) -> None:
        """As large as the array."""
        self.shape, self.dtype, self.device = like.shape, like.dtype, like.device
        self._bytes = max(like.numel() * self.dtype.itemsize, 1)
        self._device = like.device_number
        with in_context(self._device):
            self._address = int(checked(bindings().cuMemAlloc(self._bytes)))
            checked(bindings().cuMemsetD32Async(self._address, 0, self._bytes // 4, 0))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": "|V1", "data": (self._address, False), "version": 3}

    def __del__(self) -> None:
        with in_context(self._device):
            bindings().cuCtxSynchronize()
            bindings().cuMemFree(ctypes.c_void_p(self._address))


@functools.cache
def device() -> int | None:
    """The GPU that kernels are compiled for; None where jaxlib has none, or no custom call that takes machine code."""
    try:
        found = jax.local_devices(backend="cuda")
        from jaxlib import gpu_triton
    except (RuntimeError, ImportError):
        return None
    if not found or not hasattr(gpu_triton, "create_tma_descriptor_parameter"):  # added after machine code, 0.11.2
        return None
    return int(getattr(found[0], "local_hardware_id", None) or 0)


def record(
    kernel: Any, grid: Any, args: Sequence[Any], shapes: Sequence[Any], options: dict[str, Any], number: int
) -> tuple[list[RecordedLaunch], list[int]]:
    """What a kernel launches on arrays of these shapes, and the addresses that stand for the arrays in it.

    Args:
      kernel: what is launched.
      grid: as in `kernel[grid]`.
      args: the kernel's first arguments; arrays among them count by shape and type.
      shapes: of the results.
      options: compile-time arguments and options of the launch.
      number: the device's.
    """
    given: list[Any] = []
    addresses: list[int] = []
    for value in (*args, *shapes):
        if hasattr(value, "shape") and hasattr(value, "dtype") and value.shape != ():
            placeholder = Placeholder(value.shape, value.dtype, len(addresses), number)
            addresses.append(placeholder.address)
            value = placeholder
        given.append(value)
    known: dict[int, Memory] = {}

    def with_memory(value: Any) -> Any:
        return known.setdefault(value.address, Memory(value)) if isinstance(value, Placeholder) else value

    with recorded(with_memory) as made:
        kernel[grid](*given, **options)
    return made.launches, addresses


def calls(
    launches: Sequence[RecordedLaunch], addresses: Sequence[int], arrays: Sequence[Any], results: Sequence[Any]
) -> list[Any]:
    """The launches as custom calls, one after another.

    Args:
      launches: in order.
      addresses: of all arrays, those of the results last.
      arrays: the arguments, as JAX traces them.
      results: shape and type of each result.

    Raises:
      ArgumentKindError: when a kernel writes an argument.
    """
    fresh = [jax.numpy.zeros(one.shape, one.dtype) for one in results]
    now = dict(zip(addresses, (*arrays, *fresh), strict=True))
    inner = addresses[: len(arrays)]
    for launch in launches:
        _check(launch, inner)
        _call(launch, now, set(addresses[len(arrays) :]))
    return [now[address] for address in addresses[len(arrays) :]]


def takes_maps(launches: Sequence[RecordedLaunch], results: Sequence[int]) -> bool:
    """Whether the tensor maps of all launches can be passed; `results` are the addresses of the results."""
    return all(
        not one.compiled.artifact.tensor_maps or _buffers(one.compiled.artifact, one.values, set(results)) is not None
        for one in launches
    )


def _check(launch: RecordedLaunch, inputs: Sequence[int]) -> None:
    artifact = launch.compiled.artifact
    for parameter, value in zip(artifact.parameters, launch.values, strict=True):
        if parameter.name in artifact.writes and value in inputs:
            raise ArgumentKindError(
                f"argument {parameter.name} is written by {artifact.kernel_name}, but arrays of JAX never change; give its "
                "shape in out_shape"
            )
    if launch.compiled.metadata.launch_cooperative_grid:
        raise OperatorError(f"{artifact.kernel_name}: XLA starts no cooperative grids; launch it outside of jax.jit")


def _buffers(artifact: Artifact, values: Sequence[Any], results: set[int]) -> tuple[list[int], list[int]] | None:
    """Addresses of the call's operands, and of the results in the order in which it returns them; None if there is no way.

    jaxlib hands out buffers in order, operands before results, each once: to the pointers, then to the tensor maps. A result
    is an operand too, since it has a content. Where it is needed a second time, its own buffer is handed out, and from there
    on only results can follow.
    """
    numbered = list(zip(artifact.parameters, values, strict=True))
    bases = {parameter.name: value for parameter, value in numbered}
    needed = [value for parameter, value in numbered if isinstance(parameter.element, PointerType)]
    needed += [bases[one.base] for one in artifact.tensor_maps]
    seen: set[int] = set()
    split = len(needed)
    for place, address in enumerate(needed):
        if address in results and address in seen:
            split = place
            break
        seen.add(address)
    operands, again = needed[:split], needed[split:]
    returned = [address for address in operands if address in results]
    if len(set(again)) != len(again) or not set(again) <= set(returned):
        return None
    return operands, again + [address for address in returned if address not in again]


def _call(launch: RecordedLaunch, now: dict[int, Any], results: set[int]) -> None:
    """Adds a call to the traced program; the arrays that it writes are others afterwards."""
    artifact, values = launch.compiled.artifact, launch.values
    buffers = _buffers(artifact, values, results)
    if buffers is None:
        raise OperatorError(f"{artifact.kernel_name} takes a result twice and then an argument, which XLA cannot pass")
    operands, returned = buffers
    arrays = [now[address] for address in operands]
    shapes = [jax.ShapeDtypeStruct(now[address].shape, now[address].dtype) for address in returned]
    aliases = {operands.index(address): place for place, address in enumerate(returned)}
    made = jax.ffi.ffi_call(TARGET, shapes, vmap_method="sequential", input_output_aliases=aliases)
    found = made(*arrays, name=artifact.kernel_name, opaque=wire.opaque(_described(launch)))
    now.update(zip(returned, found, strict=True))


def _described(launch: RecordedLaunch) -> wire.Launch:
    compiled, artifact = launch.compiled, launch.compiled.artifact
    x, y, z = launch.grid
    values: tuple[Any, ...] = launch.values
    resident = compiled.launcher.resident if compiled.launcher is not None else 0
    if resident:
        values, x = (*values, x), min(x, max(resident // (y * z), 1))
    parameters = [
        wire.array() if isinstance(parameter.element, PointerType) else wire.scalar(parameter.element, value)
        for parameter, value in zip(
            artifact.launch_parameters, in_range(artifact.launch_parameters, values), strict=True
        )
    ]
    parameters += [wire.tensor_map(_shape(one, artifact, values)) for one in artifact.tensor_maps]
    code = compiled.asm["cubin"]
    if isinstance(code, str):
        raise TypeError("machine code is no text")
    digest = hashlib.sha256(code).hexdigest()
    capability = device_target(compiled.device).capability
    return wire.Launch(
        artifact.kernel_name, code, digest, capability, artifact.num_threads, artifact.shared_bytes, (x, y, z),
        tuple(parameters),
    )  # fmt: skip


def _shape(one: TensorMap, artifact: Artifact, values: Sequence[Any]) -> Shape:
    places = integer_places(artifact)
    return Shape(one, 0, evaluator(one.sizes, places)(values), evaluator(one.strides, places)(values))
