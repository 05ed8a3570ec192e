"""Small kernels around PTX helpers, for tests: the helpers' text from the templates, a hand-written body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilewright.artifact import Artifact, LaunchParameter, TensorMap
from tilewright.emit.helpers import order_helpers
from tilewright.emit.render import _render_helper
from tilewright.language.dtypes import Element
from tilewright.lower.text.header import PROXY_READERS
from tilewright.lower.text.unit import Helper
from tilewright.runtime.cpu import check, run
from tilewright.runtime.cpu.check import Buffer

Asked = tuple[str, str, Mapping[str, Any]]


def helper_text(asked: Sequence[Asked]) -> str:
    """The text of the helpers (template, name, values) and of what they require, as a file has it."""
    helpers = tuple(Helper(template, name, dict(values)) for template, name, values in asked)
    return "\n\n".join(_render_helper(template, values) for template, values in order_helpers(helpers, ()))


def kernel(
    body: str,
    asked: Sequence[Asked],
    parameters: Mapping[str, Element],
    *,
    num_threads: int = 32,
    shared_bytes: int = 0,
    tensor_maps: Sequence[TensorMap] = (),
    target: str = "sm_90a",
    includes: Sequence[str] = (),
) -> Artifact:
    """A kernel named `probe` with the given body; `shared_bytes` are the dynamic ones, 1024-byte aligned."""
    declared = [f"{_ctype(element)} {name}" for name, element in parameters.items()]
    declared += [f"const __grid_constant__ TensorMap {tensor_map.name}" for tensor_map in tensor_maps]
    head = "".join(f"#include <{include}>\n" for include in includes)
    shared = "    extern __shared__ __align__(1024) unsigned char shared_bytes[];\n" if shared_bytes else ""
    source = (
        f"{head}\n{helper_text(asked)}\n\n"
        f'extern "C" __global__ void __launch_bounds__({num_threads}, 1)\nprobe({", ".join(declared)})\n{{\n{shared}{body}}}\n'
    )
    start = source[: source.index("__global__")].count("\n") + 3
    return Artifact(
        source=source,
        kernel_name="probe",
        target=target,
        num_threads=num_threads,
        shared_bytes=shared_bytes,
        parameters=tuple(LaunchParameter(name, element, (i,)) for i, (name, element) in enumerate(parameters.items())),
        lines=tuple((line, "", line) for line in range(start, source.count("\n"))),
        file="probe.cu",
        tensor_maps=tuple(tensor_maps),
        headers=tuple(includes),
        shared_alignment=1024 if shared_bytes else 0,
        proxy_reads=any(template in PROXY_READERS for template, _, _ in asked),
    )


def _ctype(element: Element) -> str:
    inner = getattr(element, "element_ty", None)
    return f"{inner.cuda}*" if inner is not None else element.cuda


def run_probe(
    artifact: Artifact,
    *arrays: NDArray[Any],
    grid: tuple[int, int, int] = (1, 1, 1),
    numbers: Sequence[int] = (),
    schedule: str = "greedy_low",
    delivery: str = "late",
    seed: int = 0,
) -> None:
    """Runs a probe on the CPU; the arrays are its pointer parameters, `numbers` its further ones."""
    values = [array.ctypes.data for array in arrays]
    run(artifact, grid, [*values, *numbers], schedule, seed, delivery)


def check_probe(artifact: Artifact, *arrays: NDArray[Any], numbers: Sequence[int] = ()) -> None:
    """Runs a probe of one block under the sanitizers."""
    pointers = [p.name for p in artifact.parameters][: len(arrays)]
    buffers = [
        Buffer(array.ctypes.data, memoryview(array.view(np.uint8)).cast("B"), name)
        for array, name in zip(arrays, pointers, strict=True)
    ]
    check(artifact, (1, 1, 1), [*(array.ctypes.data for array in arrays), *numbers], buffers)
