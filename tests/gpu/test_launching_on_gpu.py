"""Kinds of launches, and who launches: cooperative and dependent grids, graphs, threads, child processes."""

from __future__ import annotations

import multiprocessing
import os
import threading
from pathlib import Path
from typing import Any

import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.diagnostics import CooperativeGridError, ToolchainError
from unit.test_small_offsets import columns_kernel

pytestmark = pytest.mark.gpu
N = 1 << 22


@pytest.fixture(autouse=True)
def where_arrays_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)


@triton.jit
def meet(x_ptr, arrived_ptr, out_ptr, BLOCK: tl.constexpr):
    """Every program writes its block, waits until all have, and reads its neighbour's."""
    pid, count = tl.program_id(0), tl.num_programs(0)
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + pid * BLOCK + i, pid + i)
    tl.debug_barrier()
    tl.atomic_add(arrived_ptr, 1)
    while tl.atomic_add(arrived_ptr, 0) < count:
        pass
    tl.debug_barrier()
    neighbour = (pid + 1) % count
    tl.store(out_ptr + pid * BLOCK + i, tl.load(x_ptr + neighbour * BLOCK + i, volatile=True))


@triton.jit
def step(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Adds one to what the grid before wrote, read from the far end, and takes its time."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.extra.cuda.gdc_launch_dependents()
    tl.extra.cuda.gdc_wait()
    x = tl.load(x_ptr + (n - 1 - i), mask=i < n)
    for _ in range(16):
        x = tl.where(x < 0, tl.exp(x), x)
    tl.store(out_ptr + i, x + 1, mask=i < n)


@triton.jit
def scaled(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A matrix product whose operands the grid before may still be writing."""
    rm, rn = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    tl.extra.cuda.gdc_launch_dependents()
    acc = tl.zeros((BM, BN), tl.float32)
    tl.extra.cuda.gdc_wait()
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rm[:, None] * K + (k + rk)[None, :])
        b = tl.load(b_ptr + (k + rk)[:, None] * N + rn[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.float16))


def test_a_cooperative_grid_meets() -> None:
    import torch

    count, block = 264, 256
    x, out = torch.zeros(2, count * block, dtype=torch.int32, device="cuda")
    options = {"BLOCK": block, "launch_cooperative_grid": True}
    for _ in range(3):  # the long way, then the quick one
        arrived = torch.zeros(1, dtype=torch.int32, device="cuda")
        out.zero_()
        meet[(count,)](x, arrived, out, **options)
        assert torch.equal(out, x.roll(-block)) and int(arrived) == count
    with pytest.raises(CooperativeGridError, match=r"has 100000 programs, and device 0 holds \d+ at once"):
        meet[(100_000,)](x, arrived, out, **options)
    meet[(1,)](x, arrived.zero_(), out, **options)
    torch.cuda.synchronize()


def test_dependent_grids_see_what_they_wait_for() -> None:
    import torch

    def chain(x: Any, y: Any) -> None:
        for _ in range(20):
            step[(triton.cdiv(N, 1024),)](x, y, N, BLOCK=1024, launch_pdl=True)
            step[(triton.cdiv(N, 1024),)](y, x, N, BLOCK=1024, launch_pdl=True)

    x, y = torch.zeros(2, N, device="cuda")
    chain(x, y)
    assert torch.equal(x, torch.full_like(x, 40))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        chain(x, y)
    x.zero_()
    for _ in range(3):
        graph.replay()
    assert torch.equal(x, torch.full_like(x, 120))


def test_tensor_copies_wait_too() -> None:
    import torch

    side = 1024
    sizes = {"BM": 128, "BN": 128, "BK": 64, "num_warps": 8, "launch_pdl": True}
    a = torch.randn(side, side, device="cuda").half() / side**0.5
    first, second, b = (torch.zeros_like(a) for _ in range(3))
    compiled = None
    for number in range(20):
        b.copy_(torch.randn(side, side, device="cuda").half() / side**0.5)
        first.fill_(float("nan"))
        compiled = product[(8, 8)](a, b, first, side, side, side, **sizes)
        product[(8, 8)](first, b, second, side, side, side, **sizes)
        expected = (a.double() @ b.double()).half().double() @ b.double()
        assert (second.double() - expected).abs().max() < 0.02, number
    assert compiled.artifact.dependent and compiled.artifact.tensor_maps


def test_threads_compile_and_launch_at_once() -> None:
    import torch

    kernel = triton.JITFunction(scaled.fn)
    errors: list[BaseException] = []
    torch.zeros(1, device="cuda")

    def work(number: int) -> None:
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                x = torch.full((N // 16,), float(number), device="cuda")
                for turn in range(60):
                    out = torch.empty_like(x)
                    block = 128 << (turn + number) % 4
                    kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), 2.0, BLOCK=block, num_warps=2)
                    if turn % 10 == 0:
                        stream.synchronize()
                        assert bool((out == 2 * number).all()), (number, turn)
                stream.synchronize()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert len(kernel.compilations.made) == 4  # none was made twice


def test_a_launch_that_recurs_is_on_the_stream_of_the_moment() -> None:
    import torch

    kernel = triton.JITFunction(scaled.fn)
    x, out = torch.ones(64, device="cuda"), torch.zeros(64, device="cuda")
    for _ in range(5):  # from the fourth one on it is ready
        kernel[(1,)](x, out, 64, 2.0, BLOCK=64)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel[(1,)](x, out, 64, 3.0, BLOCK=64)
    torch.cuda.synchronize()
    assert bool((out == 2).all())  # what is captured does not run yet
    graph.replay()
    torch.cuda.synchronize()
    assert bool((out == 3).all())
    side = torch.cuda.Stream()
    with torch.cuda.graph(graph2 := torch.cuda.CUDAGraph(), stream=side):
        kernel[(1,)](x, out, 64, 4.0, BLOCK=64, stream=side.cuda_stream)
    graph2.replay()
    torch.cuda.synchronize()
    assert bool((out == 4).all())


def test_a_thread_without_a_context_launches() -> None:
    import torch

    x = torch.ones(1024, device="cuda")
    out = torch.empty_like(x)
    torch.cuda.synchronize()
    thread = threading.Thread(target=lambda: scaled[(1,)](x, out, 1024, 3.0, BLOCK=1024))
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert bool((out == 3).all())


def in_child(results: Any) -> None:
    """Launches in a process that a fork or spawn made."""
    os.environ.pop("TILEWRIGHT_MODE", None)
    try:
        import torch

        x = torch.ones(1024, device="cuda")
        out = torch.empty_like(x)
        scaled[(1,)](x, out, 1024, 5.0, BLOCK=1024)
        results.put(float(out.sum()))
    except Exception as error:
        results.put(repr(error))


def launch_on_inherited(results: Any, address: int) -> None:
    """Launches on memory of the parent, which a forked process cannot use."""
    try:
        memory = type("Memory", (), {})()
        memory.__cuda_array_interface__ = {"shape": (1024,), "typestr": "<f4", "data": (address, False), "version": 3}
        scaled[(1,)](memory, memory, 1024, 5.0, BLOCK=1024)
        results.put("launched")
    except ToolchainError as error:
        results.put(str(error))


def test_children(tmp_path: Path) -> None:
    import torch

    x = torch.ones(1024, device="cuda")
    scaled[(1,)](x, x, 1024, 1.0, BLOCK=1024)
    spawn, fork = multiprocessing.get_context("spawn"), multiprocessing.get_context("fork")
    results = spawn.Queue()
    child = spawn.Process(target=in_child, args=(results,))
    child.start()
    assert results.get(timeout=120) == 5 * 1024
    child.join()
    results = fork.Queue()
    child = fork.Process(target=launch_on_inherited, args=(results, x.data_ptr()))
    child.start()
    assert "start it with multiprocessing's spawn" in results.get(timeout=60)
    child.join()
    scaled[(1,)](x, x, 1024, 2.0, BLOCK=1024)  # the parent goes on
    assert bool((x == 2).all())


@triton.jit
def without_arrays(n, BLOCK: tl.constexpr):
    tl.device_assert(n > BLOCK)


def test_kernels_without_arrays_run_on_the_gpu() -> None:
    """And what a hook was told of them is for it, too."""
    told: list[str] = []
    with triton.knobs.runtime.scope():
        triton.knobs.runtime.jit_cache_hook = lambda **facts: told.append(facts["compile"]["specialization_data"])
        compiled = without_arrays.warmup(9, BLOCK=4, grid=(1,))
    assert compiled.mode == "gpu" and without_arrays[(1,)](9, BLOCK=4).mode == "gpu"
    assert without_arrays.preload(told[0]).hash == compiled.hash


def test_offsets_have_as_many_bits_as_a_launch_needs() -> None:
    """Launched again and again, on the long way and on the quick one, with grids that are near and far by turns."""
    torch = pytest.importorskip("torch")
    side = 1 << 15
    x = torch.zeros(2 * side * side + 4096 * side, dtype=torch.int8, device="cuda")
    for plane in range(3):
        x[plane * side * side :: side][:64] = torch.arange(64, dtype=torch.int8, device="cuda") + plane
    for _ in range(4):
        for planes, fits in ((1, True), (3, False)):
            y = torch.full((planes, 64), 99, dtype=torch.int8, device="cuda")
            assert columns_kernel[(1, planes)](x, y, side, side, BLOCK=64).metadata.guards is fits
            expected = torch.arange(64, device="cuda")[None, :] + torch.arange(planes, device="cuda")[:, None]
            assert torch.equal(y.long(), expected)
