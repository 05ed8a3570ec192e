"""Kernels and functions whose Python names mean something else in C++, or cannot be written there."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.lower.text.names import entry_name
from tilewright.runtime.building import nvrtc

TAKEN = (
    "double",
    "exp",
    "fabs",
    "memcpy",
    "write",
    "sigmoid",
    "printf",
    "float4",
    "dim3",
    "half",
    "NUM_THREADS",
    "main",
)


def kernel_named(name: str) -> Any:
    source = f"""def {name}(x_ptr, n, BLOCK: tl.constexpr):
    # größer
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.sigmoid(tl.exp(tl.load(x_ptr + i, mask=i < n))), mask=i < n)
"""
    scope: dict[str, Any] = {"tl": tl, "__name__": __name__}
    exec(source, scope)
    return triton.JITFunction(scope[name], source=source)


@pytest.mark.parametrize("name", (*TAKEN, "größe", "σ", "__shfl_sync", "BLOCK"))  # noqa: RUF001
def test_every_name_compiles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    x = np.zeros(40, np.float32)
    compiled = kernel_named(name)[(1,)](x, 40, BLOCK=64)
    expected = {"größe": "gru00f6u00dfe", "σ": "sigma", "__shfl_sync": "shfl_sync_kernel"}.get(name, f"{name}_kernel")  # noqa: RUF001
    assert compiled.name == expected and f"\n{expected}(float* x_ptr" in compiled.source
    np.testing.assert_allclose(x, 1 / (1 + np.exp(-1)), rtol=1e-6)
    if nvrtc.is_available():
        assert nvrtc.compile_text(compiled.artifact).registers > 0


def test_a_plain_name_stays() -> None:
    assert [entry_name(name) for name in ("softmax", "exp_kernel", "_private", "add")] == [
        "softmax", "exp_kernel", "_private", "add",
    ]  # fmt: skip
    assert entry_name("BLOCK", ["BLOCK", "BLOCK_kernel"]) == "BLOCK_kernel_kernel"
    assert entry_name("load_vec", ["kernel_load_vec"]) == "kernel_load_vec_kernel"


@triton.jit
def cbrt(α):
    return α * α * α


@triton.jit
def greek(x_ptr, alpha, N: tl.constexpr):
    i = tl.arange(0, N)
    α = tl.load(x_ptr + i)
    x̂ = cbrt(α) + alpha
    x = x̂ * 2
    tl.store(x_ptr + i, x - x̂)


def test_letters_that_assemblers_do_not_know(run_everywhere: Any) -> None:
    (x,) = run_everywhere(greek, (1,), np.arange(8, dtype=np.float32), 0.5, N=8)
    assert (x == np.arange(8, dtype=np.float32) ** 3 + 0.5).all()
    text = greek.translate("*fp32:16, fp32, 8").source
    assert "const float alpha_second = " in text and "// L" in text and "x̂ = cbrt(α) + alpha" in text  # noqa: RUF001
    code = "\n".join(line.partition("//")[0] for line in text.splitlines())
    assert code.isascii() and "cbrt_of_greek(" in code
    if nvrtc.is_available():
        assert nvrtc.compile_text(greek.translate("*fp32:16, fp32, 8")).registers > 0


@triton.jit
def marked(out̂_ptr, n̂, B̂: tl.constexpr):
    x̂ = tl.arange(0, B̂)  # an index that is written where it is used
    α = x̂ * 2
    for k̂ in range(n̂):
        ŷ = tl.load(out̂_ptr + α + k̂)
        tl.store(out̂_ptr + α, ŷ * B̂ + x̂)


def test_marks_above_letters(run_everywhere: Any) -> None:
    (x,) = run_everywhere(marked, (1,), np.arange(18, dtype=np.float32), 1, 8)
    assert x[:16:2].tolist() == [17 * i for i in range(8)]
    source = marked.translate("*fp32:16, i32, 8").source
    assert "constexpr int Bu0302 = 8;" in source and "constexpr  B̂ = 8" in source
    if nvrtc.is_available():
        assert nvrtc.compile_text(marked.translate("*fp32:16, i32, 8")).registers > 0


@triton.jit
def unused_sides_kernel(x_ptr, out_ptr, a: tl.constexpr, state: tl.constexpr, S: tl.constexpr):
    # `a` and `state` are parameters of helpers too, and the kernel reads neither.
    rows, columns = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    x = tl.load(x_ptr + rows * S + columns)
    out = tl.dot(x, x)
    tl.store(out_ptr + rows * S + columns, out - tl.max(out, 1)[:, None])


@triton.jit
def joined(first, second):
    return first * second + first


@triton.jit
def unused_operands_kernel(x_ptr, out_ptr, a: tl.constexpr, state: tl.constexpr, first: tl.constexpr, S: tl.constexpr):
    # `first` is a parameter of the function that joins, `a` one of those that sum and compare.
    x = tl.load(x_ptr + tl.arange(0, S))
    tl.store(out_ptr, tl.reduce(x, 0, joined) + tl.sum(x) + tl.argmax(x, 0))


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_a_constant_that_only_a_reduction_seems_to_read_is_left_out() -> None:
    artifact = unused_operands_kernel.translate("*fp32:16, *fp32:16, 3, 5, 7, 256")
    assert not re.search(r"constexpr int (a|state|first) ", artifact.source)
    assert "warning" not in nvrtc.compile_text(artifact).log


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_a_constant_that_only_a_helper_seems_to_read_is_left_out() -> None:
    artifact = unused_sides_kernel.translate("*fp32:16, *fp32:16, 3, 5, 64")
    assert "constexpr int a " not in artifact.source and "constexpr int state " not in artifact.source
    assert "warning" not in nvrtc.compile_text(artifact).log


@triton.jit
def letters_of_cuda_kernel(x_ptr, out_ptr, x: tl.constexpr, f: tl.constexpr, S: tl.constexpr):
    # What the kernel does not read: `x`, a member of blockIdx, and `f`, the suffix of a number.
    at = tl.program_id(0) * S + tl.arange(0, S)
    tl.store(out_ptr + at, tl.load(x_ptr + at) * 0.5)


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_a_constant_that_is_only_a_letter_of_cuda_is_left_out() -> None:
    artifact = letters_of_cuda_kernel.translate("*fp32:16, *fp32:16, 3, 5, 256")
    assert "blockIdx.x" in artifact.source and "0.5f" in artifact.source
    assert "constexpr int x =" not in artifact.source and "constexpr int f =" not in artifact.source
    assert "warning" not in nvrtc.compile_text(artifact).log


@triton.jit
def unused_letters_kernel(x_ptr, out_ptr, a: tl.constexpr, b: tl.constexpr, d: tl.constexpr, S: tl.constexpr):
    # `a`, `b` and `d` are operands of wgmma, and the helper for it says in a comment that only b is transposed.
    rows, columns = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    x = tl.load(x_ptr + rows * S + columns)
    out = tl.dot(x, x)
    tl.store(out_ptr + rows * S + columns, out)


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_a_constant_that_only_a_comment_mentions_is_left_out() -> None:
    artifact = unused_letters_kernel.translate("*fp16:16, *fp32:16, 3, 5, 7, 64")
    assert "only b transposed" in artifact.source
    assert not any(f"constexpr int {name} =" in artifact.source for name in "abd")
    assert "warning" not in nvrtc.compile_text(artifact).log


@triton.jit
def words_of_ptx_kernel(x_ptr, out_ptr, tf32: tl.constexpr, row: tl.constexpr, S: tl.constexpr):
    # What the kernel does not read: two words of its instructions' PTX.
    rows, columns = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    x = tl.load(x_ptr + rows * S + columns)
    tl.store(out_ptr + rows * S + columns, tl.dot(x, x, input_precision="tf32"))


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_a_constant_that_is_only_a_word_of_ptx_is_left_out() -> None:
    artifact = words_of_ptx_kernel.translate("*fp32:16, *fp32:16, 3, 5, 32", arch="sm_80")
    assert ".row.col.f32.tf32" in artifact.source
    assert "constexpr int tf32 =" not in artifact.source and "constexpr int row =" not in artifact.source
    assert "warning" not in nvrtc.compile_text(artifact).log


@triton.jit
def short_names_kernel(x_ptr, w_ptr, out_ptr, N, stride, S: tl.constexpr, C: tl.constexpr):
    # r and c are what loops over registers are called where the user has no such names.
    rows, columns = tl.arange(0, S), tl.arange(0, S)
    out = tl.zeros([S, S], tl.float32)
    for r in range(2):
        for c in range(0, N, C):
            inner = c + tl.arange(0, C)
            x = tl.load(x_ptr + (rows * N)[:, None] + (stride * inner)[None, :], mask=(inner < N)[None, :])
            w = tl.load(w_ptr + (stride * inner * S)[:, None] + columns[None, :], mask=(inner < N)[:, None])
            out += tl.dot(x, w, input_precision="ieee") * (r + 1)
    tl.store(out_ptr + rows[:, None] * S + columns[None, :], out)


@pytest.mark.parametrize("warps", (1, 4))
def test_loops_of_the_user_do_not_hide_loops_over_registers(run_everywhere: Any, warps: int) -> None:
    side, n = 64, 40
    generator = np.random.default_rng(1)
    x = generator.integers(-2, 3, (side, n)).astype(np.float32)
    w = generator.integers(-2, 3, (n, side)).astype(np.float32)
    start = np.zeros((side, side), np.float32)
    *_, out = run_everywhere(short_names_kernel, (1,), x, w, start, n, 1, S=side, C=16, num_warps=warps)
    np.testing.assert_array_equal(out, 3 * (x @ w))


@triton.jit
def scaled_kernel(x_ptr, out_ptr, n, index, round: tl.constexpr, gamma: tl.constexpr, NUM_WARPS: tl.constexpr,
                  float4: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i * index, mask=i < n)
    tl.store(out_ptr + i, x * gamma + round + NUM_WARPS + float4, mask=i < n)


def test_constants_whose_names_mean_something_else(run_everywhere: Any) -> None:
    """Among them a number that the user calls as the text calls the number of warps, which is another one."""
    x = np.arange(100, dtype=np.float32)
    out = run_everywhere(
        scaled_kernel, (1,), x, np.zeros(100, np.float32), 100, 1, round=3, gamma=0.5, NUM_WARPS=4, float4=7, BLOCK=128,
        num_warps=2,
    )[1]  # fmt: skip
    np.testing.assert_array_equal(out, x * 0.5 + 14)
    text = scaled_kernel.translate("*fp32, *fp32, i32, i32:1, 3, 0.5, 4, 7, 128", num_warps=2)
    if nvrtc.is_available():
        assert nvrtc.compile_text(text).registers > 0


@triton.jit
def a(x_ptr):
    tl.store(x_ptr + tl.arange(0, 8), 1.0)


@triton.jit
def engine(x_ptr):
    tl.store(x_ptr + tl.arange(0, 8), 2.0)


@triton.jit
def launch(x_ptr):
    tl.store(x_ptr + tl.arange(0, 8), 3.0)


@triton.jit
def tilewright_run(x_ptr):
    tl.store(x_ptr + tl.arange(0, 8), 4.0)


@triton.jit
def tilewright_switch(x_ptr):
    tl.store(x_ptr + tl.arange(0, 8), 5.0)


OWN = [(a, 1.0), (engine, 2.0), (launch, 3.0), (tilewright_run, 4.0), (tilewright_switch, 5.0)]


@pytest.mark.parametrize(("kernel", "value"), OWN)
def test_names_of_the_cpu_run_are_free(run_everywhere: Any, kernel: Any, value: float) -> None:
    (x,) = run_everywhere(kernel, (1,), np.zeros(8, np.float32))
    assert np.all(x == value)
