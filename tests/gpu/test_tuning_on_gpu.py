"""Tuning and timing on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.diagnostics import TuningInCaptureError
from tilewright.testing import assert_close, do_bench, do_bench_cudagraph

pytestmark = pytest.mark.gpu
N = 1 << 24
CONFIGS = [triton.Config({"BLOCK": block}, num_warps=warps) for block in (128, 1024, 4096) for warps in (1, 4)]
CONFIGS += [triton.Config({"BLOCK": 1024}, num_warps=64)]


@triton.jit
def increment(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


def grid(meta: dict[str, Any]) -> tuple[int]:
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


@pytest.fixture(autouse=True)
def fresh_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)


@pytest.mark.parametrize(
    "options", ({}, {"use_cuda_graph": True}, {"do_bench": lambda f, quantiles: do_bench(f, 1, 5)})
)
def test_arguments_are_as_passed_and_the_choice_is_good(options: dict[str, Any]) -> None:
    import torch

    kernel = triton.autotune(CONFIGS, ["n"], **options)(increment)
    x = torch.zeros(N, device="cuda")
    kernel[grid](x, N)
    assert_close(x, torch.ones_like(x), atol=0)
    assert kernel.best_config in CONFIGS[:-1] and "threads" in kernel.dropped[CONFIGS[-1]]
    measured = {config: row for config, row in kernel.configs_timings.items() if config is not CONFIGS[-1]}
    if not options:
        assert min(row[0] for row in measured.values()) > 8 * N / 5e12 * 1e3  # milliseconds at 5 TB/s
    again = triton.autotune(CONFIGS, ["n"])(increment)
    again[grid](x, N), again[grid](x, N)
    assert_close(x, torch.full_like(x, 3), atol=0)


def test_a_capture_is_no_place_to_tune() -> None:
    import torch

    kernel, x = triton.autotune(CONFIGS, ["n"])(increment), torch.zeros(N, device="cuda")
    with pytest.raises(TuningInCaptureError, match="launch it once"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        kernel[grid](x, N)
    torch.cuda.synchronize()
    kernel[grid](x, N)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel[grid](x, N)
    graph.replay()
    assert_close(x, torch.full_like(x, 2), atol=0)


def test_times_are_those_of_the_gpu() -> None:
    import torch

    x = torch.zeros(1 << 26, device="cuda")
    for bench in (do_bench, do_bench_cudagraph):
        low, middle, high = bench(lambda: x.add_(1), quantiles=(0.2, 0.5, 0.8))
        assert 0.05 < low <= middle <= high < 5 and high < 2 * low
    # Free memory is the GPU's, and other processes may take some between the two readings: what leaks here leaks every time.
    assert any(_keeps_memory(lambda: do_bench(lambda: x.add_(1), rep=5)) for _ in range(10))


def _keeps_memory(action: Callable[[], object]) -> bool:
    import torch

    free = torch.cuda.mem_get_info()[0]
    action()
    return torch.cuda.mem_get_info()[0] >= free


def test_a_user_stream_is_waited_for() -> None:
    import torch

    kernel, x = triton.autotune(CONFIGS, ["n"])(increment), torch.zeros(N, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())  # which sets x to zero
    with torch.cuda.stream(stream):
        for _ in range(20):
            x.add_(1)
        kernel[grid](x, N)
    torch.cuda.synchronize()
    assert_close(x, torch.full_like(x, 21), atol=0)
