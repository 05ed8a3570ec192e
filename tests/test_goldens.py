"""The generated text of the samples: kept in the repository, reviewed as the product, compiled without a warning."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from exported_programs import build_flags, exported, nvcc
from golden_cases import GOLDEN_CASES, GoldenCase
from tilewright.artifact import Artifact
from tilewright.cli import load_kernel
from tilewright.runtime.building import nvrtc

ROOT = Path(__file__).resolve().parent.parent
GOLDENS = ROOT / "tests" / "goldens"
by_case = pytest.mark.parametrize("case", GOLDEN_CASES, ids=lambda case: case.path)


wherever_it_runs = pytest.mark.parametrize(
    ("case", "arch"),
    [(case, arch) for case in GOLDEN_CASES for arch in case.archs],
    ids=lambda value: getattr(value, "path", value),
)


def generate(case: GoldenCase, arch: str = "") -> Artifact:
    """The text of a case as it is generated now, for its own architecture unless another is named."""
    kernel = load_kernel(f"{ROOT / 'samples' / case.sample}.py:{case.kernel}")
    return kernel.translate(case.signature, arch=arch or case.arch, **case.options)


@by_case
def test_golden_is_what_is_generated(case: GoldenCase, request: pytest.FixtureRequest) -> None:
    path, text = GOLDENS / case.path, generate(case).source
    if request.config.getoption("--update-goldens"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii", newline="\n")
    assert path.exists(), f"{path} is missing: run `make goldens` and review what it writes"
    assert path.read_text(encoding="ascii") == text, (
        "the generated text changed: run `make goldens` and review the difference"
    )


@wherever_it_runs
@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_golden_compiles_without_a_warning(case: GoldenCase, arch: str) -> None:
    cubin = nvrtc.compile_text(generate(case, arch), arch)
    assert cubin.registers > 0
    assert "warning" not in cubin.log and nvrtc.SERIALISED not in cubin.log


@by_case
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_golden_compiles_with_nvcc(case: GoldenCase, tmp_path: Path) -> None:
    """With its C++ function, by the line in the text, and as C++20, the standard after nvcc's own."""
    text, file = exported(case).source, tmp_path / "kernel.cu"
    file.write_text(text, encoding="utf-8")
    nvcc(*build_flags(text), "-std=c++20", "-c", file, "-o", tmp_path / "kernel.o")


def test_the_bytes_depend_on_nothing_else(tmp_path: Path) -> None:
    """Other hash seeds, another working directory and another copy of the sources give the same text."""
    case = GOLDEN_CASES[2]
    expected = generate(case).source
    copy = shutil.copytree(ROOT / "samples", tmp_path / "elsewhere" / "samples")
    command = [sys.executable, "-m", "tilewright.cli", "translate", f"{copy / case.sample}.py:{case.kernel}"]
    command += ["--signature", case.signature, "--num-warps", str(case.options["num_warps"])]
    for seed in ("0", "4711"):
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin"}
        )
        assert done.stdout == expected, done.stderr


def test_no_golden_is_left_over() -> None:
    written = {str(path.relative_to(GOLDENS)) for path in GOLDENS.rglob("*.cu")}
    assert written == {case.path for case in GOLDEN_CASES}
