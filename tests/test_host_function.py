"""The C++ function that launches a kernel: its text, and that CUDA's and the host's compilers take it."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from exported_cases import launches
from exported_programs import build_example, build_flags, declaration, exported, nvcc
from tilewright.artifact import Artifact, program_counts
from tilewright.cli import main
from tilewright.diagnostics import OutputExistsError, SignatureError, TilewrightError
from tilewright.emit.host import OWN, host_function
from tilewright.runtime.building import nvrtc
from tilewright.runtime.launching.grids import started
from unit.test_launching import artifact

GOLDEN = Path(__file__).resolve().parent / "goldens" / "host_function.txt"
KERNEL = """
#include <cuda_fp16.h>
struct alignas(64) TensorMap { unsigned char opaque[128]; };
struct SharedArrays { unsigned char bytes[200000]; };
extern "C" __global__ void fabricated(const half* a_ptr, int M, long long stride, float scale, int num_programs,
                                      const __grid_constant__ TensorMap a_map,
                                      const __grid_constant__ TensorMap row_map)
{
}
"""
RUNTIME = """
#include <cstdio>
#include <cuda.h>
#define CUDART_VERSION 13000
enum cudaError_t { cudaSuccess, cudaErrorInvalidValue, cudaErrorNotSupported, cudaErrorInvalidConfiguration };
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess };
enum { cudaEnableDefault, cudaFuncAttributeMaxDynamicSharedMemorySize, cudaDevAttrMultiProcessorCount };
using cudaStream_t = void*;
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
};
struct half { short bits; };
struct alignas(64) TensorMap { unsigned char opaque[128]; };
struct SharedArrays { unsigned char bytes[200000]; };

static CUresult encoded_by_cuda(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void*, const cuuint64_t* sizes,
                                const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t*, CUtensorMapInterleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill)
{
    std::printf("map %u of type %d: %llu x %llu x 0, stride %llu, box %u x %u, swizzle %d, promotion %d\\n", rank, type,
                static_cast<unsigned long long>(sizes[0]), static_cast<unsigned long long>(rank > 1 ? sizes[1] : 0),
                static_cast<unsigned long long>(rank > 1 ? strides[0] : 0), box[0], rank > 1 ? box[1] : 0, swizzle, promotion);
    return CUDA_SUCCESS;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** found, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult*)
{
    *found = reinterpret_cast<void*>(encoded_by_cuda);
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) { *device = 3; return cudaSuccess; }
template <typename F> cudaError_t cudaFuncSetAttribute(F, int, int bytes)
{
    std::printf("allowed %d\\n", bytes);
    return cudaSuccess;
}
template <typename F> cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F, int, int)
{
    *blocks = 2;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, int, int) { *value = 5; return cudaSuccess; }
static dim3 grid_of_blocks;
template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...), Arguments... arguments)
{
    if (config->blockDim.x != 384 || config->dynamicSmemBytes != 200000) return cudaErrorInvalidValue;
    grid_of_blocks = config->gridDim;
    kernel(arguments...);
    return cudaSuccess;
}
void fabricated(const half*, int M, long long stride, float scale, int num_programs, TensorMap, TensorMap)
{
    std::printf("kernel %d %lld %g, %d programs in %u blocks\\n", M, stride, scale, num_programs, grid_of_blocks.x);
}
"""
PRINTING_CALLER = """
int main()
{
    alignas(16) static half data[8];
    const int right = launch_fabricated(data, 256, 1500000000, 1.5f, dim3{70, 5, 1}, nullptr);
    const int uneven = launch_fabricated(data, 256, 64, 1.5f, dim3{70, 3, 1}, nullptr);
    const int guarded = launch_fabricated(data, 100, 64, 1.5f, dim3{1, 1, 1}, nullptr);
    const int wide = launch_fabricated(data, 512, 1LL << 40, 1.5f, dim3{1, 1, 1}, nullptr);
    std::printf("%d %d %d %d\\n", right, uneven, guarded, wide);
    for (const dim3 grid : {dim3{1u << 31}, dim3{1, 65536}, dim3{1, 1, 65536}, dim3{1, 1u << 16, 1u << 16}}) {
        std::printf("%d ", launch_fabricated(data, 256, 64, 1.5f, grid, nullptr) == cudaErrorInvalidConfiguration);
    }
}
"""
CALLER = """
#include <cstdio>
int main()
{
    half* data;
    if (cudaMalloc(&data, 1 << 20) != cudaSuccess) return 2;
    const cudaError_t wrong = launch_fabricated(data, 100, 64, 1.5f, dim3(3, 2), nullptr);
    if (wrong != cudaErrorInvalidValue) return 3;
    for (int i = 0; i < 2; ++i) {
        if (launch_fabricated(data, 256, 64, 1.5f, dim3(3, 2), nullptr) != cudaSuccess) return 4;
    }
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 5;
}
"""


def wide_artifact(axes: int = 1) -> Artifact:
    """The fabricated kernel as a persistent one, with arithmetic of every kind in its guards and tensor maps."""
    return artifact(guards=("M % 128 == 0", "M * stride < 400000000000"), program_axes=axes)


def test_the_text(request: pytest.FixtureRequest) -> None:
    text = host_function(wide_artifact())
    if request.config.getoption("--update-goldens"):
        GOLDEN.write_text(text, encoding="ascii", newline="\n")
    assert GOLDEN.read_text(encoding="ascii") == text, "run `make goldens` and review the difference"
    assert max(map(len, text.splitlines())) <= 110


def printed(text: str, tmp_path: Path) -> list[str]:
    """What a program prints with CUDA's own `cuda.h` and RUNTIME, whose kernel is called, not started."""
    folder = nvrtc.header_folder() if nvrtc.is_available() else None
    if folder is None:
        pytest.skip("CUDA's headers are not installed")
    from tilewright.runtime.cpu.build import compiler

    text = text.replace("#include <cuda_runtime.h>", "")
    file = tmp_path / "kernel.cpp"
    file.write_text(text)
    flags = ["-std=c++17", "-D__CUDACC__", "-Wall", "-Werror", "-Wno-unused-parameter", f"-I{folder}"]
    done = subprocess.run([compiler(), *flags, str(file), "-o", str(tmp_path / "run")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return subprocess.run([tmp_path / "run"], capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_host_runs_it(tmp_path: Path) -> None:
    assert printed(RUNTIME + host_function(wide_artifact()) + PRINTING_CALLER, tmp_path) == [
        "map 2 of type 6: 64 x 256 x 0, stride 3000000000, box 64 x 128, swizzle 3, promotion 2",
        "map 1 of type 6: 256 x 0 x 0, stride 0, box 256 x 0, swizzle 0, promotion 3",
        "allowed 200000",
        "kernel 256 1500000000 1.5, 70 programs in 2 blocks",
        "map 2 of type 6: 64 x 256 x 0, stride 128, box 64 x 128, swizzle 3, promotion 2",
        "map 1 of type 6: 256 x 0 x 0, stride 0, box 256 x 0, swizzle 0, promotion 3",
        "allowed 200000",  # anew: a reset of the device, and another context, have it forgotten
        "kernel 256 64 1.5, 70 programs in 70 blocks",  # 21 rounds, where 3 blocks would each run 24 programs
        "0 0 1 1",
        "1 1 1 1 ",
    ]


@pytest.mark.parametrize(("axes", "turns"), [(2, False), (3, False), (1, True), (2, True), (3, True)])
def test_the_host_starts_the_blocks_that_python_starts(axes: int, turns: bool, tmp_path: Path) -> None:
    counts = [f"num_programs_{axis}" for axis in "xyz"[:axes]]
    runtime = (
        RUNTIME[: RUNTIME.index("void fabricated")]
        + f"""
void fabricated(const half*, int, long long, float, {", ".join(f"int {one}" for one in counts)})
{{
    const dim3 grid = grid_of_blocks;
    std::printf("{" x ".join(["%d"] * axes)} in %u x %u x %u\\n", {", ".join(counts)}, grid.x, grid.y, grid.z);
}}
"""
    )
    grids = [(7, 5, 4), (3, 2, 1), (4, 4, 64), (32, 32, 1), (5, 1, 7), (3, 70, 20), (70000, 65535, 3)]
    calls = "".join(
        f"    if (launch_fabricated(data, 128, 64, 1.5f, dim3({', '.join(map(str, grid))}), nullptr)) return 1;\n"
        for grid in [*grids, (0, 5, 4), (7, 0, 1), (7, 1, 0)]
    )
    made = host_function(artifact(tensor_maps=(), program_axes=axes, in_turns=turns))
    assert max(map(len, made.splitlines())) <= 110
    found = printed(runtime + made + f"\nint main()\n{{\n    static half data[8];\n{calls}}}\n", tmp_path)
    expected = [
        (grid[:axes], started(grid, axes, 10, turns)[0]) for grid in grids
    ]  # 2 blocks on each of 5 multiprocessors
    shown = [f"{' x '.join(map(str, sides))} in {' x '.join(map(str, blocks))}" for sides, blocks in expected]
    assert found == [line for one in shown for line in ("allowed 200000", one)]


def test_the_host_refuses_offsets_that_pass_32_bits(tmp_path: Path) -> None:
    kernel = 'void fabricated(const half*, int M, long long, float) { std::printf("%d ", M); }\n'
    runtime = RUNTIME[: RUNTIME.index("void fabricated")] + kernel
    calls = [
        (7, 9, (2, 3)),
        (1 << 15, 1 << 15, (9, 1)),
        (1 << 15, 1 << 15, (9, 3)),
        (2**31 - 1, 2**62, (9, 65535)),
        (3, 0, (1,)),
    ]
    reaches = ("num_programs_y * M * stride + num_programs_x * 64 // stride",)
    made = host_function(artifact(tensor_maps=(), guards=("stride > 0",), reaches=reaches))
    launched = "".join(
        f'    std::printf("%d\\n", launch_fabricated(data, {m}, {stride}, 1.5f, dim3{{{", ".join(map(str, grid))}}}, nullptr));\n'
        for m, stride, grid in calls
    )
    found = printed(runtime + made + f"\nint main()\n{{\n    static half data[8];\n{launched}}}\n", tmp_path)
    assert found == ["allowed 200000", "7 0", "allowed 200000", "32768 0", "1", "1", "1"]


def test_a_parameter_that_is_called_as_ours() -> None:
    one = dataclasses.replace(artifact().parameters[1], name="num_programs")
    text = host_function(artifact(tensor_maps=(), guards=(), parameters=(one,), program_axes=1))
    assert "launch_fabricated(int num_programs, dim3 grid, cudaStream_t stream)" in text
    assert "const int num_programs_ = static_cast<int>(grid.x);" in text and ", num_programs, num_programs_);" in text
    both = (dataclasses.replace(one, name="grid"), dataclasses.replace(one, name="grid_"))
    text = host_function(artifact(tensor_maps=(), guards=(), parameters=both))
    assert "launch_fabricated(int grid__, int grid_, dim3 grid, cudaStream_t stream)" in text


# A type's last word, perhaps with a pointer's star, and a name; further names of a declaration; a new name of a type.
DECLARED = re.compile(
    r"\b(?!return |using |else |const )(?=[A-Za-z_]\w*[*&]* (?P<first>[A-Za-z_]\w*))|, (?P<next>\w+)(?= = |;)"
)
ALIAS = re.compile(r"\busing (\w+) =")
WORDS_OF_TYPES = frozenset("unsigned long int".split())


def declared_names(text: str) -> set[str]:
    """The parameters and local variables of `launch_<kernel>`, those of blocks and lambda functions inside included."""
    function = re.sub("//.*", "", text[text.index("cudaError_t launch_") :])
    found = {match["first"] or match["next"] for match in DECLARED.finditer(function)} | set(ALIAS.findall(function))
    return {name for name in found - WORDS_OF_TYPES if not name.startswith("launch_")}


def test_what_declares_a_name_is_recognised() -> None:
    text = """cudaError_t launch_it(const float* x_ptr, long long n, dim3 grid)   // with a comment on it
{
    const unsigned others = grid.y * grid.z, most = others / 2;
    using Count = unsigned long long;
    const dim3 programs = grid;
    const auto half_of = [](Count number) { return number / 2; };
    for (unsigned x = 1; x <= most && x * n < 7; ++x) {
        if (half_of(x) > 2) continue;
        grid = dim3(x, most, n);
    }
    cudaLaunchAttribute attributes[2] = {};
    int first, second;
    return cudaLaunchKernelEx(&config, it, x_ptr, n);
}
"""
    names = "x_ptr n grid others most Count programs half_of number x attributes first second"
    assert declared_names(text) == set(names.split())


@pytest.mark.parametrize("has_maps", (False, True))
@pytest.mark.parametrize("axes", (0, 1, 2, 3))
def test_no_name_of_the_function_is_left_to_a_parameter(axes: int, has_maps: bool) -> None:
    """A kernel's parameter may have any name; one that the function itself declares gets an underscore there."""
    one = dataclasses.replace(wide_artifact(axes), cooperative=True, dependent=True)
    one = one if has_maps else dataclasses.replace(one, tensor_maps=())
    found, parameters = declared_names(host_function(one)), {parameter.name for parameter in one.parameters}
    given = {*parameters, *(made.name for made in one.tensor_maps), *program_counts(axes)}
    assert found >= {*given, "grid", "stream", "status", "attributes", "config"}
    wide = {f"{name}_wide" for name in parameters}  # those that are free
    assert found - given - wide - OWN == set()


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_nvcc_builds_it_and_it_launches(tmp_path: Path) -> None:
    file = tmp_path / "kernel.cu"
    file.write_text(KERNEL + host_function(wide_artifact()) + CALLER)
    command = [
        "nvcc",
        "-std=c++17",
        "-gencode",
        "arch=compute_90a,code=sm_90a",
        "-Werror",
        "all-warnings",
        "-o",
        str(tmp_path / "run"),
        str(file),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


TWO_KERNELS = """
#include <cstdio>
#include <cuda_runtime.h>
cudaError_t launch_copy_wide(const float* x_ptr, float* new_, dim3 grid, cudaStream_t stream);
cudaError_t launch_copy_any(const float* x_ptr, float* new_, dim3 grid, cudaStream_t stream);
int main()
{
    float* odd = reinterpret_cast<float*>(20);
    std::printf("%d %d\\n", launch_copy_wide(nullptr, odd, dim3(1), nullptr) == cudaErrorInvalidValue,
                launch_copy_any(nullptr, odd, dim3(0), nullptr) == cudaSuccess);
}
"""


@triton.jit
def copy_kernel(x_ptr, new, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(new + i, tl.load(x_ptr + i))


def test_exported_text(capsys: pytest.CaptureFixture[str]) -> None:
    made = copy_kernel.translate("*fp32:16, *fp32:16, 128", host=True)
    assert "launch_copy_kernel(const float* x_ptr, float* new_, dim3 grid, cudaStream_t stream)" in made.source
    assert "return cudaLaunchKernelEx(&config, copy_kernel, x_ptr, new_);" in made.source
    if nvrtc.is_available():
        assert (
            nvrtc.compile_text(made).code == nvrtc.compile_text(copy_kernel.translate("*fp32:16, *fp32:16, 128")).code
        )
    spec = f"{__file__}:copy_kernel"
    assert main(["translate", spec, "--signature", "*fp32:16, *fp32:16, 128", "--host", "--no-guards"]) == 0
    assert capsys.readouterr().out == made.source


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_two_translations_of_a_kernel_link_into_one_program(tmp_path: Path) -> None:
    """Each has a name of its own and is called from a file that CUDA's compiler never sees; alignment is checked."""
    for name, pointer in (("copy_wide", "*fp32:16"), ("copy_any", "*fp32")):
        made = copy_kernel.translate(f"{pointer}, {pointer}, 128", host=True, name=name)
        assert made.kernel_name == name
        (tmp_path / f"{name}.cu").write_text(made.source)
    (tmp_path / "main.cpp").write_text(TWO_KERNELS)
    files = [str(tmp_path / file) for file in ("copy_wide.cu", "copy_any.cu", "main.cpp")]
    command = ["nvcc", "-gencode", "arch=compute_90a,code=sm_90a", "-Werror", "all-warnings", *files]
    done = subprocess.run([*command, "-o", str(tmp_path / "run")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([tmp_path / "run"], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["1", "1"]


@triton.jit
def positive_kernel(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.device_assert(tl.load(x_ptr + i) > 0, "positive numbers only")


def test_assertions_are_kept_on_demand(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    spec, texts = f"{__file__}:positive_kernel", []
    for flags in ((), ("--debug",)):
        assert main(["translate", spec, "--signature", "*fp32:16, 128", "--host", *flags]) == 0
        texts.append(capsys.readouterr().out)
    assert "assert((" not in texts[0] and "assert((" in texts[1]
    assert "#include <cassert>" not in texts[0] and "#include <cassert>" in texts[1]
    if shutil.which("nvcc"):  # which, other than NVRTC, knows of assert from a header alone
        file = tmp_path / "kernel.cu"
        file.write_text(texts[1])
        nvcc(*build_flags(texts[1]), "-c", file, "-o", tmp_path / "kernel.o")


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize(("name", "wrong"), [("matmul_kernel_fp16", "-arch=sm_90"), ("add_kernel_fp32", "-arch=sm_75")])
def test_an_architecture_that_lacks_the_instructions_is_told(name: str, wrong: str, tmp_path: Path) -> None:
    """Nvcc's own words would be those of the assembler; -arch=sm_90a goes through sm_90."""
    (launch,) = (one for one in launches() if one.name == name)
    text, file = exported(launch.golden, name).source, tmp_path / "kernel.cu"
    file.write_text(text)
    with pytest.raises(AssertionError, match=f"{name} needs sm_[89]0a?: nvcc {' '.join(build_flags(text))}"):
        nvcc(wrong, "-c", file, "-o", tmp_path / "kernel.o", strict=False)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_the_worked_example_is_built_as_it_says(tmp_path: Path) -> None:
    assert build_example(tmp_path).exists()


@triton.jit
def joined(a, b):
    return a * b + a + b


@triton.jit
def reducing_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.reduce(x, 0, joined) + tl.sum(x, 0))
    tl.store(out_ptr + 1, tl.argmax(x, 0))


def test_no_function_is_seen_by_other_files() -> None:
    """With -rdc=true the linker keeps one of several functions of a name, of which another file may mean another."""
    text = reducing_kernel.translate("*fp32:16, *fp32:16, 1024").source
    assert len(re.findall(r"__device__ __forceinline__ \w+ combine\(", text)) == 3
    assert not re.search(r"__device__ (?!__forceinline__)[\w ]+\(", text)


def test_the_header(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It declares what the text defines, and brings the types that this names; an existing one is kept."""
    spec = f"{Path(__file__).parent.parent / 'samples' / 'matmul_descriptor.py'}:matmul_descriptor_kernel"
    block = "tensordesc<{}[64, 64]>"
    signature = ", ".join([block.format("fp16"), block.format("fp16"), block.format("fp16"), "64", "64", "64", "8"])
    text, header = tmp_path / "kernel.cu", tmp_path / "kernel.h"
    command = ["translate", spec, "--signature", signature, "--host", "-o", str(text), "--header", str(header)]
    assert main(command) == 0
    lines = header.read_text().splitlines()
    assert (
        lines[0].startswith("// matmul_descriptor_kernel: generated by tilewright")
        and lines[1] == "// regenerate instead."
    )
    assert (
        any(line.startswith("//   constexpr  BLOCK_M = 64, BLOCK_N = 64") for line in lines) and "#pragma once" in lines
    )
    assert not any("launch  " in line or "tiles  " in line for line in lines)  # not the caller's
    assert declaration(text.read_text()) in header.read_text()
    assert main(command) == 1 and "kernel.cu exists" in capsys.readouterr().err
    assert main([*command[:4], "--header", str(tmp_path / "other.h")]) == 1
    assert "pass --host too" in capsys.readouterr().err and not (tmp_path / "other.h").exists()
    if shutil.which("nvcc"):
        caller = tmp_path / "caller.cpp"
        caller.write_text(
            '#include "kernel.h"\n#include "kernel.h"\nauto* called = &launch_matmul_descriptor_kernel;\n'
        )
        nvcc("-c", caller, "-o", tmp_path / "caller.o")


def test_what_a_launch_took_is_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    x, out = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    compiled = copy_kernel[(1,)](x, out, N=128)
    assert (out == x).all()
    compiled.export(tmp_path / "copy.cu")
    assert (tmp_path / "copy.cu").read_text().startswith(compiled.source)
    assert [file.name for file in tmp_path.iterdir()] == ["copy.cu"]
    compiled.export(tmp_path / "copy.cu", header=tmp_path / "copy.h", name="copy_f32", force=True)
    text = (tmp_path / "copy.cu").read_text()
    assert "cudaError_t launch_copy_f32(" in text and compiled.name == "copy_kernel"
    assert declaration(text) in (tmp_path / "copy.h").read_text()
    with pytest.raises(SignatureError, match="32"):
        compiled.export(tmp_path / "copy.cu", name="32", force=True)
    assert (tmp_path / "copy.cu").read_text() == text


def test_an_export_keeps_files_that_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    compiled = copy_kernel[(1,)](np.zeros(128, np.float32), np.zeros(128, np.float32), N=128)
    header = tmp_path / "copy.h"
    header.write_text("mine")
    with pytest.raises(OutputExistsError, match=r"copy\.h exists; pass force=True"):
        compiled.export(tmp_path / "copy.cu", header=header)
    assert [file.name for file in tmp_path.iterdir()] == ["copy.h"] and header.read_text() == "mine"
    with pytest.raises(TilewrightError, match="cannot be written: No such file"):
        compiled.export(tmp_path / "missing" / "copy.cu")


def test_another_name(capsys: pytest.CaptureFixture[str]) -> None:
    spec, signature = f"{__file__}:copy_kernel", "*fp32:16, *fp32:16, 128"
    assert main(["translate", spec, "--signature", signature, "--host", "--name", "copy_f32"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("// copy_f32: generated by tilewright")
    assert "\ncopy_f32(const float* x_ptr" in text and "cudaError_t launch_copy_f32(" in text
    assert main(["translate", spec, "--signature", signature, "--name", "32"]) == 1
    assert "not '32'" in capsys.readouterr().err


def test_the_kernels_own_file_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "kernel.py"
    source = "import tilewright as triton\n\n\n@triton.jit\ndef nothing(x_ptr):\n    pass\n"
    file.write_text(source)
    assert main(["translate", f"{file}:nothing", "--signature", "*fp32", "-o", str(file), "--force"]) == 1
    assert "the program's own file" in capsys.readouterr().err
    assert file.read_text() == source


def test_kinds_of_launches(capsys: pytest.CaptureFixture[str]) -> None:
    spec = f"{__file__}:copy_kernel"
    flags = ["--host", "--launch-cooperative-grid", "--launch-pdl"]
    assert main(["translate", spec, "--signature", "*fp32:16, *fp32:16, 128", *flags]) == 0
    text = capsys.readouterr().out
    assert "//              cooperative: all blocks are on the device at once" in text
    assert "attributes[0].val.cooperative = 1;" in text and "attributes[1].val.programmaticStream" in text
    assert "return cudaLaunchKernelEx(&config, copy_kernel, x_ptr, new_);" in text
