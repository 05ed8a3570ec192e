"""What programmatic dependent launch saves: a chain of kernels, each reading what the one before wrote.

Microseconds per kernel in a CUDA graph of 100, with and without `launch_pdl=True`, in turns; the median of rounds. Needs a
GPU from sm_90: `python benchmarks/dependent_launch.py [--rounds N]`.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import tilewright as triton
import tilewright.language as tl
import torch

KERNELS = 100


@triton.jit
def step_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.extra.cuda.gdc_launch_dependents()
    tl.extra.cuda.gdc_wait()
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm, rn = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    tl.extra.cuda.gdc_wait()
    for k in range(0, N, BK):
        a = tl.load(a_ptr + rm[:, None] * N + (k + rk)[None, :])
        b = tl.load(b_ptr + (k + rk)[:, None] * N + rn[None, :])
        acc = tl.dot(a, b, acc)
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.float16))


def steps(n: int, pdl: bool) -> Any:
    """A chain of additions to `n` floats, and the check of what it leaves."""
    x, y = torch.zeros(2, n, device="cuda")

    def chain() -> None:
        for _ in range(KERNELS // 2):
            for source, target in ((x, y), (y, x)):
                step_kernel[(triton.cdiv(n, 1024),)](source, target, n, BLOCK=1024, launch_pdl=pdl)

    chain()
    assert bool((x == KERNELS).all())
    return chain


def products(side: int, pdl: bool) -> Any:
    """A chain of products by a rotation, which leaves the matrix as it was."""
    turn = torch.eye(side, device="cuda").half().roll(1, 0).contiguous()
    first = torch.randn(side, side, device="cuda").half()
    x, y = first.clone(), torch.zeros_like(first)

    def chain() -> None:
        for _ in range(KERNELS // 2):
            for source, target in ((x, y), (y, x)):
                matmul_kernel[(side // 128, side // 128)](
                    source, turn, target, side, BM=128, BN=128, BK=64, num_warps=8, launch_pdl=pdl
                )

    chain()
    assert torch.equal(x, first.roll(-KERNELS, 1)), "the chain of products is wrong"
    return chain


def captured(chain: Any) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        chain()
    return graph


def microseconds(graph: torch.cuda.CUDAGraph) -> float:
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    start.record()
    graph.replay()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / KERNELS * 1e3


def main() -> None:
    """Prints a line per kernel and size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    for name, made, sizes in (
        ("addition of {} fp32", steps, (1 << 12, 1 << 20)),
        ("product of {} fp16", products, (512, 1024)),
    ):
        for size in sizes:
            graphs = {pdl: captured(made(size, pdl)) for pdl in (False, True)}
            times = {pdl: [] for pdl in graphs}
            for _ in range(rounds):
                for pdl, graph in graphs.items():
                    times[pdl].append(microseconds(graph))
            plain, dependent = (statistics.median(times[pdl]) for pdl in (False, True))
            print(
                f"{name.format(size)}: {plain:.2f} us in order, {dependent:.2f} us dependent ({plain / dependent:.2f} times)"
            )


if __name__ == "__main__":
    main()
