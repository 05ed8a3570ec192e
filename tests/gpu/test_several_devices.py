"""Several GPUs in one process: a launch goes where its arrays lie, whatever device is current."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.diagnostics import DeviceError

N = 1 << 20


def count() -> int:
    """How many GPUs there are."""
    try:
        import torch
    except ImportError:
        return 0
    return int(torch.cuda.device_count())


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(count() < 2, reason="needs two GPUs")]


@pytest.fixture(autouse=True)
def where_arrays_lie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Launches run where their arrays lie, and leave this thread's current device as it was."""
    import torch

    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    yield
    assert torch.cuda.current_device() == 0


@triton.jit
def scaled(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


@triton.jit
def product(a_ptr, b_ptr, c_ptr, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm, rn = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, N, BK):
        a = tl.load(a_ptr + rm[:, None] * N + (k + rk)[None, :])
        b = tl.load(b_ptr + (k + rk)[:, None] * N + rn[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.float16))


def grid(meta: dict[str, Any]) -> tuple[int]:
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def test_a_launch_goes_where_its_arrays_lie() -> None:
    """Every order of devices, the long way and the quick one, whichever device is current."""
    import torch

    for turn in range(3):
        for current in (0, 1):
            for device in (1, 0):
                torch.cuda.set_device(current)
                x = torch.full((N,), float(turn + device), device=f"cuda:{device}")
                out = torch.empty_like(x)
                compiled = scaled[grid](x, out, N, 2.0, BLOCK=1024)
                assert compiled.device == device and torch.cuda.current_device() == current
                assert bool((out == 2.0 * (turn + device)).all())
    torch.cuda.set_device(0)
    assert len({one.device for one in scaled.compilations.made.values()}) == 2  # loaded once on each


def test_a_thread_keeps_its_current_device() -> None:
    """Also one that has used no GPU yet."""
    import torch

    x = torch.ones(N, device="cuda:1")
    torch.cuda.synchronize(1)
    seen: list[int] = []

    def work() -> None:
        scaled[grid](x, x, N, 2.0, BLOCK=1024)
        seen.append(torch.cuda.current_device())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    torch.cuda.synchronize(1)
    assert seen == [0] and bool((x == 2).all())


def test_tensor_maps_and_persistence_on_the_second_device() -> None:
    import torch

    for device in (1, 0, 1):
        a, b = (torch.randn(2048, 2048, device=f"cuda:{device}").half() for _ in range(2))
        c = torch.full_like(a, float("nan"))
        compiled = product[(16, 16)](a, b, c, 2048, BM=128, BN=128, BK=64, num_warps=8)
        assert compiled.artifact.tensor_maps and compiled.device == device
        assert (c.double() - a.double() @ b.double()).abs().max() < 0.3


def test_every_device_has_its_streams() -> None:
    import torch

    streams = [torch.cuda.Stream(device=device) for device in (0, 1)]
    x = [torch.zeros(N * 16, device=f"cuda:{device}") for device in (0, 1)]
    out = [torch.empty_like(one) for one in x]
    torch.cuda.synchronize(0), torch.cuda.synchronize(1)
    with torch.cuda.stream(streams[0]), torch.cuda.stream(streams[1]):  # current on both; device 1 is current
        for device in (0, 1):
            with torch.cuda.device(device):
                for _ in range(30):
                    x[device].add_(1)
        for device in (0, 1):  # after what the stream of its device was given
            scaled[grid](x[device], out[device], N * 16, 2.0, BLOCK=1024)
    for device in (0, 1):
        streams[device].synchronize()
        assert bool((out[device] == 60).all())


def test_arrays_of_two_devices_are_an_error() -> None:
    import torch

    x, y = torch.zeros(N, device="cuda:0"), torch.zeros(N, device="cuda:1")
    for _ in range(2):
        with pytest.raises(DeviceError, match="all arrays must lie on one device: x_ptr on cuda:0, out_ptr on cuda:1"):
            scaled[grid](x, y, N, 2.0, BLOCK=1024)
        scaled[grid](x, x, N, 2.0, BLOCK=1024)
        scaled[grid](y, y, N, 2.0, BLOCK=1024)


def test_tuning_on_the_second_device() -> None:
    import torch

    configs = [triton.Config({"BLOCK": block}) for block in (256, 1024)]
    kernel = triton.autotune(configs, key=["n"])(scaled)
    torch.cuda.set_device(0)
    x = torch.ones(N, device="cuda:1")
    out = torch.zeros_like(x)
    kernel[grid](x, out, N, 3.0)
    assert bool((out == 3).all()) and kernel.best_config in configs and torch.cuda.current_device() == 0
    y = torch.ones(N, device="cuda:0")
    out = torch.zeros_like(y)
    kernel[grid](y, out, N, 3.0)
    assert bool((out == 3).all())


def test_graphs_of_the_second_device() -> None:
    import torch

    with torch.cuda.device(1):
        x = torch.ones(N, device="cuda:1")
        out = torch.zeros_like(x)
        scaled[grid](x, out, N, 2.0, BLOCK=1024)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            scaled[grid](x, out, N, 2.0, BLOCK=1024)
        x.fill_(5)
        graph.replay()
        torch.cuda.synchronize()
        assert bool((out == 10).all())


def test_a_thread_per_device() -> None:
    import torch

    errors: list[BaseException] = []

    def work(device: int) -> None:
        try:
            torch.cuda.set_device(device)
            x = torch.full((N,), float(device + 1), device=f"cuda:{device}")
            for _ in range(200):
                out = torch.empty_like(x)
                scaled[grid](x, out, N, 2.0, BLOCK=512)
            assert bool((out == 2 * (device + 1)).all())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(device,)) for device in (0, 1, 0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_cupy_on_the_second_device() -> None:
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Device(1):
        x = cupy.ones(N, dtype=cupy.float32)
        out = cupy.zeros_like(x)
    with cupy.cuda.Device(0):
        compiled = scaled[grid](x, out, N, 4.0, BLOCK=1024)
    with cupy.cuda.Device(1):
        cupy.cuda.runtime.deviceSynchronize()
        assert compiled.device == 1 and bool((out == 4).all())


def test_jax_on_the_second_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax")
    import tilewright.jax
    import torch
    from tilewright.jax import custom_call

    if custom_call.device() is None:
        pytest.skip("JAX has no GPU here, or a jaxlib without the custom call")
    run = jax.jit(
        lambda x: tilewright.jax.call(x, kernel=doubled, out_shape=x, grid=(triton.cdiv(N, 1024),), n=N, BLOCK=1024)
    )
    for device in jax.devices()[:2]:
        x = jax.device_put(jax.numpy.arange(N).astype("float32"), device)
        y = run(x)
        assert y.devices() == {device} and jax.numpy.array_equal(y, x * 2)
        out = torch.zeros(N, device=f"cuda:{device.id}")
        torch.cuda.set_device(0)  # JAX itself changes it
        compiled = scaled[grid](y, out, N, 2.0, BLOCK=1024)
        assert compiled.device == device.id and torch.cuda.current_device() == 0
        assert bool((out == 4 * torch.arange(N, device=out.device)).all())


@triton.jit
def doubled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)
