"""Builds C++ programs of exported kernels, as an engineer does: every `.cu` by the line in it, a `main.cpp`, one link."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from exported_cases import Launch
from golden_cases import GoldenCase
from tilewright.artifact import Artifact
from tilewright.cli import load_kernel

HERE = Path(__file__).resolve().parent
DECLARATION = re.compile(r"^cudaError_t launch_[^{]*(?=\n\{)", re.MULTILINE)
BUILD_LINE = re.compile(r"^//     nvcc (.*)$", re.MULTILINE)
STRICT = ("-O3", "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror")
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name not in ("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS")
}
HEAD = """#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include "device_array.h"

"""
MAIN = """
int main(int count, char** words)
{{
    const std::string folder = words[1];
    for (int i = 2; i < count; ++i) {{
        const std::string name = words[i];
        std::fprintf(stderr, "%s\\n", words[i]);
{cases}
    }}
    return 0;
}}
"""


def exported(golden: GoldenCase, name: str = "") -> Artifact:
    """The kernel of a golden with its C++ function, under a name of its own if one is given."""
    kernel = load_kernel(f"{HERE.parent / 'samples' / golden.sample}.py:{golden.kernel}")
    made: Artifact = kernel.translate(golden.signature, arch=golden.arch, host=True, name=name, **golden.options)
    return made


def declaration(text: str) -> str:
    """What another file must say to call the function."""
    found = DECLARATION.search(text)
    assert found is not None
    return f"{found[0]};"


def build_flags(text: str) -> list[str]:
    """The words after nvcc in the exported text."""
    found = BUILD_LINE.search(text)
    assert found is not None
    return found[1].split()


def nvcc(*words: str | Path, strict: bool = True) -> None:
    """Runs nvcc; what it says of a failure is the test's."""
    command = ["nvcc", *(STRICT if strict else ()), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"


def compiled(sources: Iterable[tuple[Path, list[str]]], folder: Path) -> list[Path]:
    """Object files of sources with their flags, compiled side by side; every other one as C++20."""

    def one(numbered: tuple[int, tuple[Path, list[str]]]) -> Path:
        number, (source, flags) = numbered
        target = folder / f"{source.stem}.o"
        nvcc(f"-std=c++{17 + number % 2 * 3}", *flags, "-I", HERE, "-c", source, "-o", target)
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, enumerate(sources)))


def write_inputs(launch: Launch, folder: Path) -> None:
    """The arrays of a launch, as files `<index of the parameter>` in a folder of the launch's name."""
    place = folder / launch.name
    place.mkdir(parents=True, exist_ok=True)
    for index, value in enumerate(launch.arguments):
        if isinstance(value, np.ndarray):
            (place / str(index)).write_bytes(value.tobytes())


def check_outputs(launch: Launch, folder: Path) -> None:
    """Compares what the program left with the reference."""
    for index in launch.expected:
        given: Any = launch.arguments[index]
        found = np.frombuffer((folder / launch.name / str(index)).read_bytes(), given.dtype).reshape(given.shape)
        launch.check(index, found)


def runner(launch: Launch, text: str) -> str:
    """The declaration of a launch's function, and a C++ function that runs it on the files of its folder."""
    arrays, passed = [], []
    for index, value in enumerate(launch.arguments):
        if isinstance(value, np.ndarray):
            arrays.append(f'    DeviceArray array_{index}(folder + "/{index}", {launch.offset});')
            passed.append(f"array_{index}")
        else:
            passed.append(f"{value!r}f" if isinstance(value, float) else str(value))
    grid = f"dim3({', '.join(map(str, launch.grid))})"
    lines = [
        declaration(text),
        f"static void run_{launch.name}(const std::string& folder)",
        "{",
        *arrays,
        "    Stream stream;",
        f"    CHECK(launch_{launch.name}({', '.join([*passed, grid, 'stream'])}));",
        "    CHECK(cudaStreamSynchronize(stream));",
        *(f'    array_{index}.write(folder + "/{index}");' for index in launch.expected),
        "}",
        "",
    ]
    return "\n".join(lines)


def build_program(launches: list[Launch], folder: Path, exact: bool = False) -> Path:
    """One program of all launches: `program FOLDER NAME...` runs those that are named.

    With `exact`, nothing lies behind the arrays, so that a memory checker sees every access beside them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sources, runners, cases = [], [], []
    for launch in launches:
        made = exported(launch.golden, launch.name)
        source = folder / f"{launch.name}.cu"
        source.write_text(made.source, encoding="utf-8")
        sources.append((source, build_flags(made.source)))
        runners.append(runner(launch, made.source))
        cases.append(f'        if (name == "{launch.name}") run_{launch.name}(folder + "/" + name);')
        write_inputs(launch, folder)
    main = folder / "main.cpp"
    head = f"#define EXACT {int(exact)}\n" + HEAD
    main.write_text(head + "\n".join(runners) + MAIN.format(cases="\n".join(cases)), encoding="utf-8")
    objects = compiled([(main, []), *sources], folder)
    program = folder / "program"
    nvcc(*objects, "-o", program, strict=False)
    return program


def build_example(folder: Path) -> Path:
    """The program of `samples/matmul_main.cpp`, by the lines in it."""
    root = HERE.parent
    lines = [
        line[7:] for line in (root / "samples" / "matmul_main.cpp").read_text("utf-8").splitlines() if "//     " in line
    ]
    translate, build, run = (shlex.split(line) for line in lines)
    assert (translate[0], build[0], run) == ("tilewright", "nvcc", ["./matmul"])
    (folder / "samples").symlink_to(root / "samples")
    command = [sys.executable, "-m", *translate]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(build, cwd=folder, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "matmul"
