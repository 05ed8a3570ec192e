"""Arrays of other libraries on a GPU, and kernels inside their programs: torch, JAX, CuPy, DLPack."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).resolve().parents[2]
N = 100_000


@triton.jit
def scale_kernel(x_ptr, n, factor, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


@triton.autotune([triton.Config({"BLOCK": block}) for block in (128, 1024)], key=["n"])
@triton.jit
def tuned_kernel(x_ptr, n, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(out_ptr + i, mask=i < n) + tl.load(x_ptr + i, mask=i < n), mask=i < n)


@pytest.fixture(autouse=True)
def where_arrays_lie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def sample(file: str, name: str) -> Any:
    sys.path.insert(0, str(ROOT / "samples"))
    return getattr(__import__(file), name)


def grid(meta: dict[str, Any]) -> tuple[int]:
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


# --------------------------------------------------------------------------------------------------------------- torch


def test_an_operator_is_compiled_and_exported_on_the_gpu() -> None:
    import tilewright.torch
    import torch

    def run(x: torch.Tensor, factor: float) -> torch.Tensor:
        out = torch.empty_like(x)
        scale_kernel[grid](x, x.numel(), factor, out, BLOCK=512)
        return out

    def backward(ctx: Any, gradient: Any) -> Any:
        return made(gradient.contiguous(), ctx.factor), None

    run.__annotations__ = {"x": torch.Tensor, "factor": float, "return": torch.Tensor}
    made = tilewright.torch.op(
        run, name="tilewright_gpu_tests::scale", backward=backward,
        setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1]),
    )  # fmt: skip

    def program(x: Any) -> Any:
        return made(x * 2, 3.0) + 1

    for mode in (None, "reduce-overhead"):  # the second replays CUDA graphs
        compiled = torch.compile(program, fullgraph=True, mode=mode)
        for _ in range(3):
            x = torch.randn(N, device="cuda", requires_grad=True)
            result = compiled(x)
            torch.testing.assert_close(result, x * 6 + 1)
            result.sum().backward()
            assert torch.equal(x.grad, torch.full_like(x, 6.0))

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return made(x, 3.0)

    shapes = {"x": {0: torch.export.Dim("n")}}
    exported = torch.export.export(Model(), (torch.ones(5, device="cuda"),), dynamic_shapes=shapes)
    assert "tilewright_gpu_tests.scale" in str(exported.graph)
    assert torch.equal(exported.module()(torch.ones(N, device="cuda")), torch.full((N,), 3.0, device="cuda"))


# ----------------------------------------------------------------------------------------------------------------- JAX


@pytest.fixture
def jax() -> Any:
    jax = pytest.importorskip("jax")
    from tilewright.jax import custom_call

    if jax.default_backend() != "gpu" or custom_call.device() is None:
        pytest.skip("JAX has no GPU here, or a jaxlib without the custom call")
    return jax


def test_xla_launches_kernels_on_its_own_arrays(jax: Any) -> None:
    import tilewright.jax

    def program(x: Any, factor: Any) -> Any:
        scaled = tilewright.jax.call(x + 1, x.size, factor, kernel=scale_kernel, out_shape=x, grid=grid, BLOCK=512)
        return scaled - 1

    for dtype in ("float32", "bfloat16", "float16"):
        x = (jax.numpy.arange(N) % 64).astype(dtype)
        run = jax.jit(lambda x: program(x, 3.0))
        assert jax.numpy.array_equal(run(x), (x + 1) * 3 - 1)
        text = run.lower(x).compile().as_text()
        assert "triton_kernel_call_ffi" in text and "callback" not in text
    x = jax.numpy.arange(N).astype("float32")
    assert jax.numpy.array_equal(program(x, 2.0), (x + 1) * 2 - 1)  # outside of jit
    rows = jax.vmap(lambda row: program(row, 2.0))(jax.numpy.ones((3, N)))
    assert jax.numpy.array_equal(rows, jax.numpy.full((3, N), 3.0))
    run = jax.jit(program)  # a number that only the run knows: on the host
    assert jax.numpy.array_equal(run(x, jax.numpy.float32(2)), (x + 1) * 2 - 1)


def test_what_jax_computes_with_is_not_copied_to_the_host(jax: Any) -> None:
    import tilewright.jax

    x = jax.numpy.ones(1 << 26)
    for zeroed in (True, False):
        call = functools.partial(tilewright.jax.call, kernel=scale_kernel, out_shape=x, grid=grid, zeroed=zeroed)
        run = jax.jit(lambda x: call(x, x.size, 2.0, BLOCK=1024))  # noqa: B023 (called in this turn)
        with jax.transfer_guard("disallow"):
            for _ in range(3):
                y = run(x)
        assert bool((y == 2).all())


def test_what_a_kernel_leaves_out_is_zero(jax: Any) -> None:
    import tilewright.jax

    x = jax.numpy.ones(N)
    call = functools.partial(tilewright.jax.call, kernel=scale_kernel, out_shape=x, grid=(3,), BLOCK=1024)
    for run in (lambda x: call(x, N, 2.0), jax.jit(lambda x: call(x, N, 2.0))):
        for _ in range(3):
            poison = jax.numpy.full(N, jax.numpy.nan) + x
            del poison  # its memory may be what the result gets
            assert float(run(x).sum()) == 2 * 3 * 1024


def test_matmul_with_tensor_copies_in_jax(jax: Any) -> None:
    import tilewright.jax

    kernel = sample("matmul", "matmul_kernel")
    m, n, k = 1024, 768, 512
    a = jax.random.normal(jax.random.key(0), (m, k)).astype("float16")
    b = jax.random.normal(jax.random.key(1), (k, n)).astype("float16")
    options = {"M": m, "N": n, "K": k, "stride_am": k, "stride_ak": 1, "stride_bk": n, "stride_bn": 1, "stride_cm": n,
               "stride_cn": 1, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8, "ACTIVATION": ""}  # fmt: skip

    def product(a: Any, b: Any) -> Any:
        shape = jax.ShapeDtypeStruct((m, n), a.dtype)
        return tilewright.jax.call(a, b, kernel=kernel, out_shape=shape, grid=(48,), num_warps=8, **options)

    found = np.asarray(jax.jit(product)(a, b)).astype(np.float64)
    expected = np.asarray(a).astype(np.float64) @ np.asarray(b).astype(np.float64)
    assert np.abs(found - expected).max() < 0.2
    (compiled,) = [one for one in kernel.compilations.made.values() if one.metadata.guards]
    assert compiled.artifact.tensor_maps  # the text with tensor copies is what ran


def test_a_kernel_is_tuned_for_jax(jax: Any) -> None:
    import tilewright.jax

    x = jax.numpy.arange(N).astype("float32")
    run = jax.jit(lambda x: tilewright.jax.call(x, x.size, kernel=tuned_kernel, out_shape=x, grid=grid))
    assert jax.numpy.array_equal(run(x), x) and len(tuned_kernel.cache) == 1


def test_a_launch_reads_arrays_of_jax(jax: Any) -> None:
    import torch

    for dtype in ("float32", "bfloat16"):
        x = jax.numpy.ones(N, dtype) * 3
        out = torch.zeros(N, device="cuda")
        scale_kernel[grid](x, N, 2.0, out, BLOCK=512)
        assert bool((out == 6).all())
        with pytest.raises(triton.LaunchError, match="out_ptr is written by scale_kernel, but the array is read-only"):
            scale_kernel[grid](x, N, 2.0, x, BLOCK=512)


# ---------------------------------------------------------------------------------------------------- CuPy and DLPack


def test_arrays_and_streams_of_cupy() -> None:
    cupy = pytest.importorskip("cupy")
    for dtype in ("float32", "float16", "int32", "float64"):
        x = (cupy.arange(N) % 100).astype(dtype)
        out = cupy.zeros_like(x)
        scale_kernel[grid](x, N, 2, out, BLOCK=512)
        assert bool((out == x * 2).all())
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x = cupy.zeros(1 << 24, dtype=cupy.float32)
        for _ in range(50):
            x += 1
        out = cupy.empty_like(x)
        scale_kernel[grid](x, x.size, 2.0, out, BLOCK=1024)  # after what the stream has been given
        assert bool((out == 100).all())
    explicit = cupy.cuda.Stream(non_blocking=True)
    scale_kernel[grid](out, out.size, 2.0, x, BLOCK=1024, stream=explicit)
    explicit.synchronize()
    assert bool((x == 200).all())
    part = cupy.arange(2 * N, dtype=cupy.float32)[N:]
    out = cupy.zeros_like(part)
    scale_kernel[grid](part, N, 1.0, out, BLOCK=512)
    assert bool((out == part).all())
    with pytest.raises(triton.LaunchError, match="negative strides"):
        scale_kernel[grid](part[::-1], N, 1.0, out, BLOCK=512)


def test_cupy_beside_torch_has_its_own_stream() -> None:
    import torch

    cupy = pytest.importorskip("cupy")
    torch.zeros(1, device="cuda")
    stream = cupy.cuda.Stream(non_blocking=True)
    seen: list[int] = []
    from tilewright.runtime.hooks import LAUNCH_HOOKS

    LAUNCH_HOOKS.enter.append(lambda metadata: seen.append(metadata.get()["stream"]))
    try:
        x, t = cupy.zeros(N, dtype=cupy.float32), torch.zeros(N, device="cuda")
        with stream:
            scale_kernel[grid](x, N, 1.0, x, BLOCK=512)
            scale_kernel[grid](t, N, 1.0, t, BLOCK=512)
    finally:
        LAUNCH_HOOKS.enter.clear()
    assert seen == [stream.ptr, torch.cuda.current_stream().cuda_stream]


class OnlyDLPack:
    """An array of which DLPack alone tells where it lies."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.streams: list[Any] = []

    def __dlpack__(self, stream: Any = None) -> Any:
        self.streams.append(stream)
        return self.tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


def test_arrays_with_dlpack_alone() -> None:
    import torch

    for dtype in (torch.float32, torch.bfloat16, torch.int16):
        x = torch.arange(2 * N, device="cuda").to(dtype)[N:]
        out = torch.zeros(N, device="cuda", dtype=dtype)
        wrapped = OnlyDLPack(x)
        scale_kernel[grid](wrapped, N, 2, OnlyDLPack(out), BLOCK=512)
        assert torch.equal(out, x * 2) and wrapped.streams == [1]
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        scale_kernel[grid](wrapped, N, 2, OnlyDLPack(out), BLOCK=512)
    assert wrapped.streams[-1] == side.cuda_stream
    torch.cuda.synchronize()
    with pytest.raises(triton.LaunchError, match="cannot be passed to a kernel"):
        scale_kernel[grid](OnlyDLPack(torch.zeros(4, device="cuda", dtype=torch.complex64)), 4, 2, out, BLOCK=512)
