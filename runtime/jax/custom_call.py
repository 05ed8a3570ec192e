"""A kernel in a program that XLA runs on a GPU: jaxlib's custom call for compiled kernels, on XLA's stream, without copies.

While JAX traces, the kernel is run on arrays that are nothing but an address (`placeholders.py`); the launches that it
makes are written down, and each becomes a custom call. So tunings, heuristics and wrappers of users decide as in any launch.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Sequence
from typing import Any

import jax
from tilewright.artifact import Artifact, TensorMap
from tilewright.diagnostics import ArgumentKindError, OperatorError
from tilewright.frozen import frozen
from tilewright.jax import wire
from tilewright.language.dtypes import PointerType
from tilewright.runtime.launching.grids import started
from tilewright.runtime.launching.host_expressions import evaluator
from tilewright.runtime.launching.packing import in_range
from tilewright.runtime.launching.tensor_maps import Shape, integer_places
from tilewright.runtime.placement import device_target
from tilewright.runtime.tracing import RecordedLaunch

TARGET = "triton_kernel_call_ffi"


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


def calls(
    launches: Sequence[RecordedLaunch],
    addresses: Sequence[int],
    arrays: Sequence[Any],
    results: Sequence[Any],
    zeroed: bool = True,
) -> list[Any]:
    """The launches as custom calls, one after another.

    Args:
      launches: in order.
      addresses: of all arrays, those of the results last.
      arrays: the arguments, as JAX traces them.
      results: shape and type of each result.
      zeroed: whether the results are zero before the first launch.

    Raises:
      ArgumentKindError: when a kernel writes an argument.
      OperatorError: for a launch that XLA cannot make.
    """
    inputs, outputs = addresses[: len(arrays)], addresses[len(arrays) :]
    state = _State(dict(zip(outputs, results, strict=True)), dict(zip(inputs, arrays, strict=True)), zeroed)
    for launch in launches:
        _check(launch, inputs)
        _call(launch, state)
    return [state.content(address) for address in outputs]


@frozen
class _State:
    """What stands for the arrays between two calls: shape and type of the results, what is known to be in the arrays."""

    results: dict[int, Any]
    now: dict[int, Any]
    zeroed: bool

    def content(self, address: int) -> Any:
        """An array as it is now; zeros for a result that nothing was written to."""
        if address in self.now:
            return self.now[address]
        return jax.numpy.zeros(self.results[address].shape, self.results[address].dtype)

    def memory(self, address: int) -> Any:
        """The same; for a result that nothing was written to, memory of any content, which the call sets to zero if wanted."""
        if address in self.now:
            return self.now[address]
        return jax.lax.empty(self.results[address].shape, self.results[address].dtype)


def takes_maps(launches: Sequence[RecordedLaunch], results: Sequence[int]) -> bool:
    """Whether the tensor maps of all launches can be passed; `results` are the addresses of the results."""
    written: set[int] = set()
    for launch in launches:
        if launch.compiled.artifact.tensor_maps and _buffers(launch, set(results), written) is None:
            return False
        written |= set(results) & set(launch.values)
    return True


def _check(launch: RecordedLaunch, inputs: Sequence[int]) -> None:
    artifact = launch.compiled.artifact
    for parameter, value in zip(artifact.parameters, launch.values, strict=True):
        if parameter.name in artifact.writes and value in inputs:
            raise ArgumentKindError(
                f"argument {parameter.name} is written by {artifact.kernel_name}, but arrays of JAX never change; give its "
                "shape in out_shape"
            )
    if artifact.cooperative:
        raise OperatorError(f"{artifact.kernel_name}: XLA starts no cooperative grids; launch it outside of jax.jit")


def _needed(launch: RecordedLaunch) -> list[int]:
    """The addresses of the buffers that a launch takes, in order: for its pointers, then for its tensor maps."""
    artifact = launch.compiled.artifact
    numbered = list(zip(artifact.parameters, launch.values, strict=True))
    bases = {parameter.name: value for parameter, value in numbered}
    pointers = [value for parameter, value in numbered if isinstance(parameter.element, PointerType)]
    return pointers + [bases[one.base] for one in artifact.tensor_maps]


def _buffers(launch: RecordedLaunch, results: set[int], written: set[int]) -> tuple[list[int], list[int]] | None:
    """Addresses of the call's operands, and of the results in the order in which it returns them; None if there is no way.

    jaxlib hands out buffers in order, operands before results, each once. So the last ones, as far as they are results and
    differ, are the results' own. A result among the operands shares its buffer with the one that is returned; it must be
    one if something was written to it before, or if it is below a tensor map, which sets nothing to zero.
    """
    needed = _needed(launch)
    split = len(needed)
    while split and needed[split - 1] in results and needed[split - 1] not in needed[split:]:
        split -= 1
    pointers = len(needed) - len(launch.compiled.artifact.tensor_maps)
    while split < len(needed):
        own = [a for place, a in enumerate(needed[split:], split) if a in written or place >= pointers]
        if set(own) <= set(needed[:split]):
            break
        split += 1
    operands, last = needed[:split], needed[split:]
    shared = [address for address in operands if address in results]
    if len(set(shared)) != len(shared):
        return None
    return operands, last + [address for address in shared if address not in last]


def _call(launch: RecordedLaunch, state: _State) -> None:
    """Adds a call to the traced program; the arrays that it writes are others afterwards."""
    artifact = launch.compiled.artifact
    buffers = _buffers(launch, set(state.results), set(state.now))
    if buffers is None:
        raise OperatorError(f"{artifact.kernel_name} takes a result twice and then an argument, which XLA cannot pass")
    operands, returned = buffers
    shapes = [state.results[address] for address in returned]
    aliases = {operands.index(address): place for place, address in enumerate(returned) if address in operands}
    made = jax.ffi.ffi_call(TARGET, shapes, vmap_method="sequential", input_output_aliases=aliases)
    fresh = [(address, one) for address, one in state.results.items() if address not in state.now and state.zeroed]
    zeros = {address: math.prod(one.shape) * one.dtype.itemsize for address, one in fresh}
    opaque = wire.opaque(_described(launch, zeros))
    found = made(*map(state.memory, operands), name=artifact.kernel_name, opaque=opaque)
    state.now.update(zip(returned, found, strict=True))


def _described(launch: RecordedLaunch, zeros: dict[int, int]) -> wire.Launch:
    """The launch for jaxlib; `zeros` says how many bytes to set to zero, by address, where a buffer has no content yet."""
    compiled, artifact = launch.compiled, launch.compiled.artifact
    x, y, z = launch.grid
    values: tuple[Any, ...] = launch.values
    resident = compiled.launcher.resident if compiled.launcher is not None else 0
    if resident:
        (x, y, z), counts = started(launch.grid, artifact.program_axes, resident, artifact.in_turns)
        values = (*values, *counts)
    zeros = dict(zeros)  # each array once
    parameters = []
    for parameter, value in zip(artifact.launch_parameters, in_range(artifact.launch_parameters, values), strict=True):
        if isinstance(parameter.element, PointerType):
            parameters.append(wire.array(zeros.pop(value, 0)))
        else:
            parameters.append(wire.scalar(parameter.element, value))
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
