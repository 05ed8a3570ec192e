"""The launch of a kernel as a C++ function: guards, tensor maps, shared memory, `<<<...>>>`. From an artifact alone."""

from __future__ import annotations

import dataclasses
import re

from ..artifact import (
    TENSOR_MAP_TYPES,
    WIDE_ROW,
    Artifact,
    LaunchParameter,
    TensorMap,
    in_cpp,
    launch_conditions,
    program_counts,
    small,
)
from ..hardware import MOST_PROGRAMS
from ..ir.c_names import RESERVED, RUNTIME
from ..ir.c_tokens import IDENTIFIER, identifiers
from ..language.dtypes import Element, PointerType
from ..lower.context import memory_ctype
from ..lower.text.includes import TYPE_HEADERS
from .ascii_code import ascii_code
from .templates import environment
from .wrap import field_lines, wrap_code, wrap_comment

GROWS = re.compile(r"[-+*]")  # what only divides and compares stays within its type
# What the function itself declares.
OWN = frozenset(
    """grid stream status device multiprocessors blocks others resident most Count quotient number by programs fewest least
    read x y z rounds attributes config""".split()
)
ATTRIBUTES = (  # of a cooperative grid, of one that may start before the last one has ended: name, member of the value
    ("cudaLaunchAttributeCooperative", "cooperative"),
    ("cudaLaunchAttributeProgrammaticStreamSerialization", "programmaticStreamSerializationAllowed"),
)


def with_host_function(artifact: Artifact) -> Artifact:
    """The artifact with `launch_<kernel>` after its text."""
    return dataclasses.replace(artifact, source=artifact.source + ascii_code(host_function(artifact)))


def host_header(artifact: Artifact) -> str:
    """The text of a header that declares `launch_<kernel>`."""
    elements = [p.element.element_ty if isinstance(p.element, PointerType) else p.element for p in artifact.parameters]
    headers = {TYPE_HEADERS[element.name] for element in elements if element.name in TYPE_HEADERS}
    return (
        environment()
        .get_template("host.h.j2")
        .render(
            comment="\n".join(_comment(artifact)),
            headers=[*sorted(headers), "cuda_runtime.h"],
            signature="\n".join(wrap_code(_head(artifact), 0)),
        )
        + "\n"
    )


def _comment(artifact: Artifact) -> list[str]:
    """What a caller must know of the block at the top of a text."""
    fields = [line for word, lines in artifact.about for line in field_lines(word, lines)]
    return [*wrap_comment(artifact.title, 0), "//", *fields]


def host_function(artifact: Artifact) -> str:
    """The text of `launch_<kernel>`, for nvcc; NVRTC and the CPU run pass over it."""
    taken, names = _taken(artifact), _names(artifact)
    encode_map = _free("encode_map", {*identifiers(artifact.source), *names.values()})
    counts = [_free(name, {*taken, *names.values()}) for name in program_counts(artifact.program_axes)]
    conditions = [text for text in launch_conditions(artifact) if text not in map(small, artifact.reaches)]
    texts = [text for one in artifact.tensor_maps for text in (*one.sizes, *one.strides)] + [*conditions]
    real = {
        name: _free(f"{name}_real", {*taken, *names.values()}) for text in artifact.reaches for name in _names_in(text)
    }
    computed = dict.fromkeys(name for text in texts if GROWS.search(text) for name in _names_in(text))
    wide = {name: _free(f"{name}_wide", {*taken, *names.values(), *counts}) for name in computed}
    passed = [*names.values(), *counts, *(one.name for one in artifact.tensor_maps)]
    kinds = zip(ATTRIBUTES, (artifact.cooperative, artifact.dependent), strict=True)
    attributes = [names for names, wanted in kinds if wanted]
    launch = wrap_code(f"return cudaLaunchKernelEx({', '.join(['&config', artifact.kernel_name, *passed])});", 4)
    return (
        environment()
        .get_template("host.cu.j2")
        .render(
            kernel=artifact.kernel_name,
            signature="\n".join(wrap_code(_head(artifact), 0)),
            promises=[
                f"{_number(p, names)} % {p.divisibility} != 0" for p in artifact.parameters if p.divisibility > 1
            ],
            guards=[line for text in artifact.guards for line in _condition(text, names, wide)],
            sides=[
                line for text in conditions if text not in artifact.guards for line in _condition(text, names, wide)
            ],
            reaches=[line for reach in artifact.reaches for line in _refusal(cpp(small(reach), real))],
            real=[(real[name], names.get(name) or f"grid.{name[-1]}") for name in real],
            wide=[(wide[name], names[name]) for name in wide],
            maps=[_map(one, names, wide, encode_map) for one in artifact.tensor_maps],
            encode_map=encode_map,
            wide_row=WIDE_ROW,
            persistent=[*zip(counts, "xyz", strict=False)],
            in_turns=artifact.in_turns,
            too_many=" || ".join(f"grid.{axis} > {most}" for axis, most in zip("xyz", MOST_PROGRAMS, strict=True)),
            num_threads=artifact.threads or artifact.num_threads,
            shared_bytes="sizeof(SharedArrays)" if artifact.shared_bytes else 0,
            attributes=attributes,
            needs=artifact.needs,
            unfit=_unfit(artifact.needs),
            flags=" ".join((_nvcc_target(artifact.target), *artifact.compiler_flags)),
            launch="\n".join(launch),
        )
        + "\n"
    )


def _taken(artifact: Artifact) -> set[str]:
    """The names that no parameter of the function can have."""
    return {one.name for one in artifact.tensor_maps} | RESERVED | OWN | {artifact.kernel_name}


def _names(artifact: Artifact) -> dict[str, str]:
    """What the function calls the kernel's parameters."""
    taken, own = _taken(artifact), {p.name for p in artifact.parameters}
    return {name: _free(name, taken | own - {name}) for name in (p.name for p in artifact.parameters)}


def _head(artifact: Artifact) -> str:
    names = _names(artifact)
    typed = [f"{_ctype(p.element, p.name in artifact.writes)} {names[p.name]}" for p in artifact.parameters]
    return f"cudaError_t launch_{artifact.kernel_name}({', '.join([*typed, 'dim3 grid', 'cudaStream_t stream'])})"


def _nvcc_target(arch: str) -> str:
    """What tells nvcc to compile for an architecture; of "sm_90a" no more: -arch=sm_90a compiles for sm_90 as well."""
    return f"-gencode arch=compute_{arch[3:]},code={arch}" if arch.endswith("a") else f"-arch={arch}"


def _unfit(needs: str) -> str:
    """The preprocessor's condition for an architecture that lacks the text's instructions."""
    if needs.endswith("a"):
        return f"!defined(__CUDA_ARCH_FEAT_SM{needs[3:-1]}_ALL)"
    return f"__CUDA_ARCH__ < {needs[3:]}0"


def _free(name: str, taken: set[str]) -> str:
    name += "_" * bool(RUNTIME.fullmatch(name))
    while name in taken:
        name += "_"
    return name


def _ctype(element: Element, writes: bool) -> str:
    if isinstance(element, PointerType):
        return f"{'' if writes else 'const '}{memory_ctype(element)}*"
    return element.cuda


def _names_in(text: str) -> list[str]:
    """The names in host arithmetic, in which // divides."""
    return IDENTIFIER.findall(text)


def cpp(text: str, names: dict[str, str]) -> str:
    """Host arithmetic as C++: its names under those of the function, division of what is not negative."""
    return in_cpp(IDENTIFIER.sub(lambda match: names[match[0]], text))


def _number(parameter: LaunchParameter, names: dict[str, str]) -> str:
    """The value of an integer, the address of a pointer."""
    name = names[parameter.name]
    return f"reinterpret_cast<size_t>({name})" if isinstance(parameter.element, PointerType) else name


def _condition(text: str, names: dict[str, str], wide: dict[str, str]) -> list[str]:
    return _refusal(_spelled(text, names, wide))


def _refusal(condition: str) -> list[str]:
    return wrap_code(f"if (!({condition})) return cudaErrorInvalidValue;", 4)


def _spelled(text: str, names: dict[str, str], wide: dict[str, str]) -> str:
    return cpp(text, wide if GROWS.search(text) else names)


def _map(one: TensorMap, names: dict[str, str], wide: dict[str, str], encode_map: str) -> dict[str, object]:
    def number(text: str) -> str:
        return text if text.isdigit() else f"static_cast<cuuint64_t>({_spelled(text, names, wide)})"

    lists = (map(number, one.sizes), map(number, one.strides), map(str, one.box))
    sizes, strides, box = (f"{{{', '.join(texts)}}}" for texts in lists)
    kind = f"CU_TENSOR_MAP_DATA_TYPE_{TENSOR_MAP_TYPES.get(one.element.short, 'UINT8')}"
    swizzle = f"CU_TENSOR_MAP_SWIZZLE_{f'{one.swizzle}B' if one.swizzle else 'NONE'}"
    values = (one.name, kind, str(one.element.itemsize), names[one.base], sizes, strides, box, swizzle)
    return {
        "name": one.name,
        "comment": f"boxes of {' x '.join(map(str, one.box))} elements, the contiguous dimension first",
        "encoding": "\n".join(wrap_code(f"status = {encode_map}({', '.join(values)});", 4)),
    }
