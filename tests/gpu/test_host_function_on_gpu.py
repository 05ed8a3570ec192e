"""Exported `.cu` files with their C++ launch function, built by nvcc into a program, against the launch from Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tilewright as triton
import tilewright.language as tl

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")]

ARCH = ("-gencode", "arch=compute_90a,code=sm_90a")
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name not in ("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS")
}
PROGRAM = """
#include <cstdio>
#include <cstdlib>
#include <vector>

template <typename T> T* on_gpu(const char* path, size_t count)
{
    std::vector<T> host(count);
    std::FILE* file = std::fopen(path, "rb");
    if (!file || std::fread(host.data(), sizeof(T), count, file) != count) std::exit(10);
    std::fclose(file);
    T* memory = nullptr;
    if (cudaMalloc(&memory, count * sizeof(T)) != cudaSuccess) std::exit(11);
    cudaMemcpy(memory, host.data(), count * sizeof(T), cudaMemcpyHostToDevice);
    return memory;
}

template <typename T> void to_file(const T* memory, const char* path, size_t count)
{
    std::vector<T> host(count);
    if (cudaDeviceSynchronize() != cudaSuccess) std::exit(12);
    cudaMemcpy(host.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost);
    std::FILE* file = std::fopen(path, "wb");
    std::fwrite(host.data(), sizeof(T), count, file);
    std::fclose(file);
}

int main(int, char** path)
{
    @BODY@
    return 0;
}
"""


@triton.jit
def waits_for_all(x_ptr, arrived_ptr, out_ptr, BLOCK: tl.constexpr):
    """Every program writes its block, waits until all have, and reads its neighbour's."""
    pid, count = tl.program_id(0), tl.num_programs(0)
    i = tl.arange(0, BLOCK)
    tl.extra.cuda.gdc_wait()
    tl.store(x_ptr + pid * BLOCK + i, tl.load(x_ptr + pid * BLOCK + i) + 1)
    tl.debug_barrier()
    tl.atomic_add(arrived_ptr, 1)
    while tl.atomic_add(arrived_ptr, 0) < count:
        pass
    tl.debug_barrier()
    neighbour = (pid + 1) % count
    tl.store(out_ptr + pid * BLOCK + i, tl.load(x_ptr + neighbour * BLOCK + i, volatile=True))
    tl.extra.cuda.gdc_launch_dependents()


@dataclass(frozen=True)
class Case:
    """A kernel, its signature and options, and the C++ that calls its launch function on `path[1]`, `path[2]`, ... ."""

    kernel: Any
    signature: str
    options: dict[str, Any]
    body: str


def sample(file: str, name: str) -> Any:
    sys.path.insert(0, str(ROOT / "samples"))
    return getattr(__import__(file), name)


def cpp_result(case: Case, inputs: list[Any], out: Any, tmp_path: Path) -> Any:
    """What the program leaves in `out`."""
    import torch

    made = case.kernel.translate(case.signature, host=True, **case.options)
    source, program = tmp_path / "kernel.cu", tmp_path / "program"
    source.write_text(made.source + PROGRAM.replace("@BODY@", case.body), encoding="utf-8")
    built = subprocess.run(
        ["nvcc", "-std=c++17", *ARCH, "-Werror", "all-warnings", "-o", str(program), str(source)],
        capture_output=True, text=True, env=ENVIRONMENT,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    files = []
    for number, tensor in enumerate((*inputs, out)):
        files.append(tmp_path / f"{number}.bin")
        files[-1].write_bytes(tensor.view(torch.uint8).cpu().numpy().tobytes())
    done = subprocess.run([program, *map(str, files)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (done.returncode, done.stdout + done.stderr)
    content = bytearray(files[-1].read_bytes())
    return torch.frombuffer(content, dtype=torch.uint8).view(out.dtype).view(out.shape)


def test_vector_add(tmp_path: Path) -> None:
    import torch

    n = 98_433
    x, y = torch.randn(2, n, device="cuda")
    body = f"""
    float* x = on_gpu<float>(path[1], {n});
    float* y = on_gpu<float>(path[2], {n});
    float* out = on_gpu<float>(path[3], {n});
    if (launch_add_kernel(x, y, out, {n}, dim3({triton.cdiv(n, 1024)}), nullptr) != cudaSuccess) return 1;
    to_file(out, path[3], {n});"""
    case = Case(sample("vector_add", "add_kernel"), "*fp32:16, *fp32:16, *fp32:16, i32, 1024", {}, body)
    out = torch.full((n,), float("nan"), device="cuda")
    assert torch.equal(cpp_result(case, [x, y], out, tmp_path), (x + y).cpu())


M, N, K = 3072, 2560, 512
BLOCKS = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}
POINTERS = "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16"
PROGRAMS = 100


@pytest.mark.parametrize("file", ("matmul", "matmul_persistent"))
def test_matmul(file: str, tmp_path: Path) -> None:
    """Tensor maps, guards, dynamic shared memory, and more tiles than blocks."""
    import torch

    kernel = sample(file, f"{file}_kernel")
    a, b = torch.randn(M, K, device="cuda").half(), torch.randn(K, N, device="cuda").half()
    expected = torch.full((M, N), float("nan"), device="cuda").half()
    if file == "matmul":
        numbers, constants, grid = (M, N, K, K, 1, N, 1, N, 1), {"ACTIVATION": ""}, M // 128 * (N // 128)
        signature = f"{POINTERS}, i32:16, i32:1, i32:16, i32:1, i32:16, i32:1, 128, 128, 64, 8, ''"
    else:
        numbers, constants, grid = (M, N, K), {"NUM_PROGRAMS": PROGRAMS}, PROGRAMS
        signature, b = f"{POINTERS}, 128, 128, 64, 8, {PROGRAMS}", b.T.contiguous()
    compiled = kernel[(grid,)](a, b, expected, *numbers, **BLOCKS, **constants, num_warps=8)
    assert compiled.artifact.tensor_maps and (file != "matmul" or compiled.artifact.persistent)
    passed = ", ".join(str(number) for number in numbers if number != 1)
    body = f"""
    half* a = on_gpu<half>(path[1], {M * K});
    half* b = on_gpu<half>(path[2], {K * N});
    half* c = on_gpu<half>(path[3], {M * N});
    if (launch_{file}_kernel(a, b, c, {passed}, dim3({grid}), nullptr) != cudaSuccess) return 1;
    to_file(c, path[3], {M * N});
    // what no tensor map can hold is refused
    if (launch_{file}_kernel(a, b, c, {passed.replace(str(M), "0", 1)}, dim3({grid}), nullptr) == cudaSuccess) return 2;"""
    out = torch.full((M, N), float("nan"), device="cuda").half()
    found = cpp_result(Case(kernel, signature, {"num_warps": 8}, body), [a, b], out, tmp_path)
    assert torch.equal(found, expected.cpu())
    b = b if file == "matmul" else b.T
    assert (found.double() - (a.double() @ b.double()).cpu()).abs().max() < 0.2


def test_batched_matmul(tmp_path: Path) -> None:
    """Programs of three axes, more than fit; and a grid without any."""
    import torch

    batches, m, n, k = 40, 256, 384, 192
    kernel = sample("batched_matmul", "batched_matmul_kernel")
    a, b = torch.randn(batches, m, k, device="cuda").half(), torch.randn(batches, k, n, device="cuda").half()
    numbers = (m, n, k, m * k, k, k * n, n, m * n, n)
    strided = "i32:16, i32:16, i32:1"
    signature = f"*fp16:16, *fp16:16, *fp32:16, i32:16, i32:16, i32:16, {strided}, {strided}, {strided}, 128, 128, 64"
    call = f"launch_batched_matmul_kernel(a, b, c, {', '.join(map(str, numbers))}, dim3(2, 3, {{}}), nullptr)"
    body = f"""
    half* a = on_gpu<half>(path[1], {a.numel()});
    half* b = on_gpu<half>(path[2], {b.numel()});
    float* c = on_gpu<float>(path[3], {batches * m * n});
    if ({call.format(0)} != cudaSuccess) return 1;
    if ({call.format(batches)} != cudaSuccess) return 2;
    to_file(c, path[3], {batches * m * n});"""
    out = torch.full((batches, m, n), float("nan"), device="cuda")
    found = cpp_result(Case(kernel, signature, {"num_warps": 8}, body), [a, b], out, tmp_path)
    assert (found.double() - (a.double() @ b.double()).cpu()).abs().max() < 0.01


def test_kinds_of_launches(tmp_path: Path) -> None:
    """Programs that wait for each other; a grid that does not fit is refused, not started."""
    import torch

    count, block = 96, 128
    body = f"""
    float* x = on_gpu<float>(path[1], {count * block});
    int* arrived = on_gpu<int>(path[2], 1);
    float* out = on_gpu<float>(path[3], {count * block});
    if (launch_waits_for_all(x, arrived, out, dim3(100000), nullptr) != cudaErrorCooperativeLaunchTooLarge) return 1;
    cudaGetLastError();
    if (launch_waits_for_all(x, arrived, out, dim3({count}), nullptr) != cudaSuccess) return 2;
    to_file(out, path[3], {count * block});"""
    x, arrived = torch.randn(count * block, device="cuda"), torch.zeros(1, dtype=torch.int32, device="cuda")
    options = {"launch_cooperative_grid": True, "launch_pdl": True}
    case = Case(waits_for_all, f"*fp32:16, *i32:16, *fp32:16, {block}", options, body)
    found = cpp_result(case, [x, arrived], torch.zeros_like(x), tmp_path)
    assert torch.equal(found, (x + 1).roll(-block).cpu())
