"""Exported kernels in C++ programs on a GPU: built as the exported text says, linked, run, and without Python."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tilewright as triton
import tilewright.language as tl
from exported_cases import launches
from exported_programs import (
    HERE,
    build_example,
    build_flags,
    build_program,
    check_outputs,
    compiled,
    declaration,
    nvcc,
)
from tilewright.cli import load_kernel

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")]

LAUNCHES = launches()
POINTERS = "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, i32:16, i32:1, i32:16, i32:1, i32:16, i32:1"


@triton.jit
def step(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.extra.cuda.gdc_launch_dependents()
    tl.extra.cuda.gdc_wait()
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def shows(x_ptr):
    i = tl.arange(0, 4)
    tl.device_print("found", tl.load(x_ptr + i))


@triton.jit
def asserts(x_ptr):
    i = tl.arange(0, 4)
    tl.device_assert(tl.load(x_ptr + i) > 0, "nothing negative is expected")


def behaviour_kernels() -> list[tuple[str, Any, str, dict[str, Any]]]:
    """Names, kernels, signatures and options of what `exported_behaviour.cpp` calls."""
    add = load_kernel(f"{HERE.parent / 'samples' / 'vector_add.py'}:add_kernel")
    matmul = load_kernel(f"{HERE.parent / 'samples' / 'matmul.py'}:matmul_kernel")
    wide = f"{POINTERS}, 128, 256, 64, 8, ''"
    return [
        ("add_wide", add, "*fp32:16, *fp32:16, *fp32:16, i32, 1024", {}),
        ("add_any", add, "*fp32, *fp32, *fp32, i32, 512", {"guards": False}),
        ("matmul_tma", matmul, wide, {"num_warps": 8}),
        ("matmul_all", matmul, wide, {"num_warps": 8, "guards": False}),
        ("step", step, "*fp32:16, *fp32:16, i32, 1024", {"launch_pdl": True}),
        ("shows", shows, "*fp32:16", {}),
        ("asserts", asserts, "*fp32:16", {"debug": True}),
    ]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of all goldens; its arrays lie beside it."""
    return build_program(LAUNCHES, tmp_path_factory.mktemp("exported"))


@pytest.fixture(scope="module")
def behaviour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of `exported_behaviour.cpp`."""
    return build_behaviour(tmp_path_factory.mktemp("behaviour"))


def build_behaviour(folder: Path, *flags: str) -> Path:
    """Builds it, with more flags for nvcc."""
    sources, declarations = [], ["#pragma once", "#include <cuda_runtime.h>"]
    for name, kernel, signature, options in behaviour_kernels():
        made = kernel.translate(signature, host=True, name=name, **options)
        source = folder / f"{name}.cu"
        source.write_text(made.source, encoding="utf-8")
        sources.append((source, [*build_flags(made.source), *flags]))
        declarations.append(declaration(made.source))
    (folder / "declarations.h").write_text("\n".join(declarations) + "\n", encoding="utf-8")
    main = HERE / "exported_behaviour.cpp"
    objects = compiled([(main, ["-I", str(folder), "-DEXACT=0"]), *sources], folder)
    program = folder / "program"
    nvcc(*flags, *build_flags(made.source), *objects, "-o", program, strict=False)
    return program


def run(program: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done


@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="compute-sanitizer is not installed")
def test_memory_checkers_find_nothing(tmp_path: Path) -> None:
    """Of all goldens: accesses beside the arrays, barriers that not all threads reach, and races in shared memory."""
    program = build_program(LAUNCHES, tmp_path, exact=True)
    for tool in ("memcheck", "synccheck", "racecheck"):
        done = run(Path("compute-sanitizer"), "--tool", tool, program, tmp_path, *(one.name for one in LAUNCHES))
        assert re.search(r"ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards", done.stdout), done.stdout


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.name)
def test_a_golden_from_cpp(launch: Any, program: Path) -> None:
    run(program, program.parent, launch.name)
    check_outputs(launch, program.parent)


@pytest.mark.parametrize(
    "name", ("errors", "earlier_error", "threads", "graph", "dependent_launches", "reset", "contexts", "devices")
)
def test_what_a_program_relies_on(name: str, behaviour: Path) -> None:
    run(behaviour, name)


def test_the_worked_example(tmp_path: Path) -> None:
    assert "largest difference from float64" in run(build_example(tmp_path)).stdout


def test_a_kernel_that_prints(behaviour: Path) -> None:
    lines = run(behaviour, "prints").stdout.splitlines()
    assert sorted(lines) == [f"pid (0, 0, 0) idx ({i}) found: {i:f}" for i in range(4)]


def test_an_assertion_that_fails(behaviour: Path) -> None:
    said = run(behaviour, "asserts")
    assert "nothing negative is expected" in said.stdout + said.stderr


def test_relocatable_device_code(tmp_path: Path) -> None:
    """Device code that is linked: helpers of the same name in several files are each file's own."""
    program = build_behaviour(tmp_path, "-rdc=true")
    for name in ("errors", "threads"):
        run(program, name)
