"""The disk cache of translations: a kernel that some process has translated before is not translated again.

An entry is found by the kernel's own text, the specialisation, options, target and translator; what else the translation
read (see `outside.py`) is kept in the entry and compared with what stands there now. An entry in which anything differs is
none. Neither LibCST nor any stage of the translator is imported for an entry that is found.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from tilewright.artifact import (
    Argument,
    Artifact,
    ConstantArgument,
    DescriptorArgument,
    LaunchParameter,
    Options,
    RuntimeArgument,
    Target,
    TensorMap,
    constants_of,
)
from tilewright.kernel_function import KernelFunction
from tilewright.language.constexpr import unwrap
from tilewright.language.dtypes import DTYPES_BY_NAME, DType, Element, PointerType
from tilewright.outside import Reading, UntoldError, as_read, function_mark, mark, read_again
from tilewright.runtime.building import store
from tilewright.runtime.building.folders import cache_folder
from tilewright.runtime.environment import ALWAYS_COMPILE, is_on
from tilewright.runtime.tracebacks import warn
from tilewright.switches import is_verifying
from tilewright.version import VERSION

TEXT = "kernel.cu"
FROZEN = gc.get_freeze_count()  # objects that the collector never looks at; Python 3.12 begins with some
SHARE = 8  # the store takes at most this part of the cache's bound
Entry = tuple[Artifact, tuple[Reading, ...]]


def root() -> Path:
    """Where translations are kept."""
    return cache_folder() / "translations"


def translated(
    function: KernelFunction,
    arguments: tuple[Argument, ...],
    options: Options,
    target: Target,
    meanwhile: Callable[[], None] | None = None,
) -> tuple[Artifact, bool]:
    """The translation of a specialisation, and whether it was made now; `meanwhile` is called before it is made.

    Raises:
      CompilationError, OutOfResources: as `pipeline.translate`.
    """
    key = _key(function, arguments, options, target)
    found = _read(key, function, arguments) if key is not None else None
    if found is not None:
        return found, False
    if meanwhile is not None:
        meanwhile()
    with _without_collections():
        from tilewright.pipeline import translate

        artifact = translate(function, arguments, options, target)
    if key is not None and artifact.readings is not None:
        _write(key, artifact, artifact.readings)
    return artifact, True


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Holds Python's collector of cycles off: it would look at each of a translation's many objects, and find next to none.

    What is left of them, modules and their classes most of all, counts as old at the end, as if it had been looked at.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_freeze_count() == FROZEN:  # or else somebody keeps objects frozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _key(function: KernelFunction, arguments: tuple[Argument, ...], options: Options, target: Target) -> str | None:
    """Everything that decides a translation but for what its text reads; None when an argument cannot be told."""
    if is_verifying():  # who checks translations wants to see them made
        return None
    made_by = translator_digest()
    if made_by is None:
        return None
    try:
        told = [_told(argument) for argument in arguments]
    except UntoldError:
        return None
    facts = {
        "kernel": function_mark(function, defaults=False), "around": _around(function), "arguments": told,
        "options": asdict(options), "target": asdict(target), "tilewright": VERSION, "translator": made_by,
        "python": sys.version_info[:3],
    }  # fmt: skip
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _told(argument: Argument) -> Any:
    """An argument of the specialisation as JSON.

    Raises:
      UntoldError: for a compile-time value that could change without a sign of it.
    """
    kind = type(argument).__name__
    if isinstance(argument, ConstantArgument):
        return [kind, argument.name, mark(argument.value)]
    if isinstance(argument, RuntimeArgument):
        return [kind, argument.name, _spelled(argument.element), argument.divisor]
    if isinstance(argument, DescriptorArgument):
        facts = (argument.block_shape, argument.divisible_by_16, argument.padding, argument.rounds_to_tf32)
        return [kind, argument.name, _spelled(argument.element), *facts]
    return [kind, argument.name, argument.fields, *(_told(item) for item in argument.items)]


def _around(function: KernelFunction) -> list[str]:
    """Variables of the enclosing function, so that kernels that one function makes have entries of their own."""
    found = []
    for cell in function.fn.__closure__ or ():
        try:
            found.append(mark(cell.cell_contents))
        except (ValueError, UntoldError):  # not assigned yet; what was read of it is compared later
            found.append("")
    return found


@functools.cache
def translator_digest() -> str | None:
    """What changes with any file of the translator: their sizes and times; None when they are no files."""
    try:
        here = [os.path.dirname(import_module(name).__file__ or "") for name in ("tilewright", "tilewright.templates")]
        seen = [fact for folder in here for fact in files_below(folder)]
    except OSError:
        return None
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest() if seen else None


def files_below(folder: str) -> list[tuple[str, int, int]]:
    """Name, size and time of all files below a folder that are not made by Python."""
    found = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda one: one.name):
            if entry.is_dir():
                found += files_below(entry.path) if entry.name not in ("__pycache__", "runtime", "interpreter") else []
            else:
                facts = entry.stat()
                found.append((entry.name, facts.st_size, facts.st_mtime_ns))
    return found


# --------------------------------------------------------------------------------------------------------- entries


def _read(key: str, function: KernelFunction, arguments: tuple[Argument, ...]) -> Artifact | None:
    entry = None if is_on(ALWAYS_COMPILE) else store.read(root(), key)
    if entry is None:
        return None
    facts, files = entry
    try:
        readings = tuple(Reading(_path(path), text, module) for path, text, module in facts["readings"])
        constants = {one.name: unwrap(one.value) for argument in arguments for one in constants_of(argument)}
        values = read_again(readings, function, constants)
        if values is None:
            return None
        known = tuple(
            (owner, str(one.path[-1][1]), as_read(value))
            for one, (owner, value) in zip(readings, values, strict=True)
            if one.module
        )
        return _artifact(facts["artifact"], files[TEXT].decode(), known, readings)
    except (KeyError, TypeError, ValueError):  # of another version, or not written by us
        return None


def _path(steps: list[Any]) -> tuple[tuple[str, str | int], ...]:
    return tuple((kind, name) for kind, name in steps)


def _write(key: str, artifact: Artifact, readings: tuple[Reading, ...]) -> None:
    from tilewright.runtime.building.folders import bound_bytes

    facts = {"artifact": _as_json(artifact), "readings": [(one.path, one.mark, one.module) for one in readings]}
    try:
        if store.place(root(), key).exists():  # of what stood elsewhere before: a whole entry would stay in its place
            store.remove(root(), store.place(root(), key))
        store.write(root(), key, facts, {TEXT: artifact.source.encode()})
        store.shrink(root(), bound_bytes() // SHARE)
    except OSError as error:
        warn(f"the cache cannot be written ({error}); kernels are translated anew each time", UserWarning)


def _as_json(artifact: Artifact) -> dict[str, Any]:
    """All of an artifact but its text, its globals and its readings."""
    return {
        "kernel_name": artifact.kernel_name,
        "target": artifact.target,
        "num_threads": artifact.num_threads,
        "shared_bytes": artifact.shared_bytes,
        "parameters": [(p.name, _spelled(p.element), p.path, p.divisibility, p.finer) for p in artifact.parameters],
        "writes": artifact.writes,
        "lines": artifact.lines,
        "file": artifact.file,
        "tensor_maps": [
            (one.name, one.element.short, one.base, one.sizes, one.strides, one.box, one.swizzle)
            for one in artifact.tensor_maps
        ],
        "guards": artifact.guards,
        "reaches": artifact.reaches,
        "program_axes": artifact.program_axes,
        "in_turns": artifact.in_turns,
        "cooperative": artifact.cooperative,
        "dependent": artifact.dependent,
        "static_shared_bytes": artifact.static_shared_bytes,
        "compiler_flags": artifact.compiler_flags,
        "needs": artifact.needs,
        "title": artifact.title,
        "about": artifact.about,
        "headers": artifact.headers,
        "threads": artifact.threads,
        "shared_alignment": artifact.shared_alignment,
        "proxy_reads": artifact.proxy_reads,
        "for_many": artifact.for_many,
    }


def _artifact(
    facts: dict[str, Any], text: str, known: tuple[tuple[Any, str, Any], ...], readings: tuple[Reading, ...]
) -> Artifact:
    """The artifact of `_as_json`."""
    return Artifact(
        source=text,
        kernel_name=facts["kernel_name"],
        target=facts["target"],
        num_threads=facts["num_threads"],
        shared_bytes=facts["shared_bytes"],
        parameters=tuple(
            LaunchParameter(name, element_of(word), tuple(path), divisor, tuple(finer))
            for name, word, path, divisor, finer in facts["parameters"]
        ),
        writes=tuple(facts["writes"]),
        lines=tuple((generated, file, line) for generated, file, line in facts["lines"]),
        file=facts["file"],
        globals=known,
        readings=readings,
        tensor_maps=tuple(
            TensorMap(name, DTYPES_BY_NAME[word], base, tuple(sizes), tuple(strides), tuple(box), swizzle)
            for name, word, base, sizes, strides, box, swizzle in facts["tensor_maps"]
        ),
        guards=tuple(facts["guards"]),
        reaches=tuple(facts["reaches"]),
        program_axes=facts["program_axes"],
        in_turns=facts["in_turns"],
        cooperative=facts["cooperative"],
        dependent=facts["dependent"],
        static_shared_bytes=facts["static_shared_bytes"],
        compiler_flags=tuple(facts["compiler_flags"]),
        needs=facts["needs"],
        title=facts["title"],
        about=tuple((word, tuple(lines)) for word, lines in facts["about"]),
        headers=tuple(facts["headers"]),
        threads=facts["threads"],
        shared_alignment=facts["shared_alignment"],
        proxy_reads=facts["proxy_reads"],
        for_many=facts["for_many"],
    )


def _spelled(element: Element) -> str:
    return str(element)


def element_of(word: str) -> Element:
    """The type that `_spelled` wrote: "fp32", "*fp32", "*kfp32"."""
    if not word.startswith("*"):
        return DTYPES_BY_NAME[word]
    const = word.startswith("*k")
    element: DType = DTYPES_BY_NAME[word[2:] if const else word[1:]]
    return PointerType(element, const)
