"""What a tuning is about: the kernel's text, the place it runs on, the arguments it was measured with."""

from __future__ import annotations

import hashlib
import platform
import types
from collections.abc import Iterator
from typing import Any

from tilewright.frozen import frozen
from tilewright.kernel_function import KernelFunction
from tilewright.language.constexpr import unwrap
from tilewright.runtime.arguments.arrays import describe
from tilewright.runtime.placement import Placement
from tilewright.tools.tensor_descriptor import is_descriptor
from tilewright.version import VERSION


@frozen
class Subject:
    """Names a tuning for files: equal subjects have the same result.

    Attributes:
      kernel: file and name, as "matmul.py:matmul_kernel".
      source: digest of the kernel's text and of the kernels and numbers that it uses.
      device: the GPU, or the host's kind of processor.
      key: the values that the user tunes for.
      arguments: shapes and element types of the arrays of the measured call, and its compile-time values.
      toolchain: versions of what made and ran the code.
    """

    kernel: str
    source: str
    device: str
    key: str
    arguments: str
    toolchain: str


def subject_of(function: KernelFunction, key: Any, arguments: dict[str, Any], place: Placement) -> Subject:
    """The subject of a call."""
    return Subject(
        f"{function.file}:{function.__name__}",
        source_digest(function),
        device_text(place),
        repr(key),
        arguments_text(function, arguments),
        toolchain_text(place),
    )


def arguments_text(function: KernelFunction, arguments: dict[str, Any]) -> str:
    """Shapes of arrays and compile-time values, in the order of the parameters."""
    constants = {parameter.name for parameter in function.params if parameter.is_constexpr}
    order = {name: number for number, name in enumerate(function.arg_names)}
    parts = []
    for name in sorted((name for name in arguments if name in order), key=order.__getitem__):
        value = arguments[name]
        if name in constants:
            parts.append(f"{name}={unwrap(value)!r}")
            continue
        described = ((item, describe(item, name)) for _, item in flat({name: value}))
        shapes = [f"{array.dtype}{list(getattr(item, 'shape', ()))}" for item, array in described if array is not None]
        parts += [f"{name}: {', '.join(shapes)}"] if shapes else []
    return "; ".join(parts)


def flat(arguments: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Arguments with tuples taken apart, as "name[0]"; a descriptor's array comes first in it, as in the kernel."""
    for name, value in arguments.items():
        if isinstance(value, (tuple, list)):
            yield from flat({f"{name}[{number}]": item for number, item in enumerate(value)})
        elif is_descriptor(value):
            yield f"{name}[0]", value.base
        else:
            yield name, value


def source_digest(function: KernelFunction) -> str:
    """Digest of the text of a kernel and of all kernels and plain globals that it reaches."""
    digest, seen, waiting = hashlib.sha256(), set(), [function]
    while waiting:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        digest.update(current.src.encode() + b"\0")
        names = sorted({*current.fn.__code__.co_names, *current.fn.__code__.co_freevars})
        outer = current.outer_names()
        modules = [value for name in names if isinstance(value := outer.get(name), types.ModuleType)]
        for name in names:
            for value in (outer.get(name), *(vars(module).get(name) for module in modules)):
                if isinstance(value, KernelFunction):
                    waiting.append(value)
                elif isinstance(unwrap(value), (bool, int, float, str)):
                    digest.update(f"{name}={unwrap(value)!r}\0".encode())
    return digest.hexdigest()[:32]


def device_text(place: Placement) -> str:
    """The GPU's name, or the host's processor."""
    if place.mode != "gpu":
        return f"host {platform.machine()}"
    from tilewright.runtime.devices import device_name

    return device_name(place.device)


def toolchain_text(place: Placement) -> str:
    """Versions of tilewright, of the compiler, and of the driver."""
    if place.mode != "gpu":
        from tilewright.runtime.cpu.build import fingerprint

        return f"tilewright {VERSION}, host compiler {fingerprint()[:12]}"
    from tilewright.runtime import driver
    from tilewright.runtime.building import nvrtc

    major, minor = nvrtc.version()
    return (
        f"tilewright {VERSION}, NVRTC {major}.{minor}, driver {driver.checked(driver.bindings().cuDriverGetVersion())}"
    )
