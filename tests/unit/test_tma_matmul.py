"""A matrix product as a person would write it for Hopper, one warpgroup loading, one multiplying, through the CPU run."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ptx_kernels import Asked, check_probe, kernel, run_probe
from tilewright.artifact import Artifact, TensorMap
from tilewright.diagnostics import KernelFaultError
from tilewright.language.dtypes import PointerType, bfloat16, float32, int32
from tilewright.runtime.building import nvrtc
from tilewright.runtime.cpu.run import DELIVERIES, SCHEDULES

ASKED: list[Asked] = [
    *(
        (name, name, {})
        for name in ("mbarrier_init", "mbarrier_init_fence", "mbarrier_arrive", "mbarrier_arrive_expect", "mbarrier_wait",
                     "async_proxy_fence", "named_barrier_sync", "warpgroup_shrink", "warpgroup_grow", "wgmma_descriptor",
                     "wgmma_fence", "wgmma_commit", "wgmma_wait", "wgmma_pin", "tma_store_wait")
    ),
    ("tma_load", "tma_load_2d", {"rank": 2}),
    ("tma_store", "tma_store_2d", {"rank": 2}),
    ("wgmma", "wgmma_m64n32k16", {"n": 32, "k": 16, "a_type": "bf16", "b_type": "bf16", "b_transposed": True}),
]  # fmt: skip

# C [M, N] = A [M, K] * B [K, N] in tiles of 64x32x64; B's tile has its rows along N.
BODY = """
    __nv_bfloat16* a_tiles = reinterpret_cast<__nv_bfloat16*>(shared_bytes);
    __nv_bfloat16* b_tiles = a_tiles + 2 * 64 * 64;
    float* c_tile = reinterpret_cast<float*>(b_tiles + 2 * 64 * 32);
    Barrier* full = reinterpret_cast<Barrier*>(c_tile + 64 * 32);
    Barrier* empty = full + 2;
    const int tid = threadIdx.x % 128;
    const int num_k = (K + 63) / 64;
    if (threadIdx.x == 0) {
        mbarrier_init<2>(full, 1);
        mbarrier_init<2>(empty, 4);
        mbarrier_init_fence();
    }
    __syncthreads();   // nobody touches a barrier before it is initialised

    if (threadIdx.x >= 128) {
        warpgroup_shrink<40>();
        if (tid == 0) {
            for (int k = 0; k < num_k; ++k) {
                const int stage = k % 2;
                mbarrier_wait(&empty[stage], k / 2 % 2 ^ 1);
                mbarrier_arrive_expect(&full[stage], (64 + 32) * 64 * 2);
                tma_load_2d(a_tiles + stage * 64 * 64, a_map, blockIdx.x * 64, k * 64, &full[stage]);
                tma_load_2d(b_tiles + stage * 64 * 32, b_map, k * 64, blockIdx.y * 32, &full[stage]);
            }
        }
    } else {
        warpgroup_grow<232>();
        float acc[2][8] = {};
        for (int k = 0; k < num_k; ++k) {
            const int stage = k % 2;
            mbarrier_wait(&full[stage], k / 2 % 2);
            const unsigned long long a = wgmma_descriptor<128>(a_tiles + stage * 64 * 64, 16, 1024);
            const unsigned long long b = wgmma_descriptor<64>(b_tiles + stage * 64 * 32, 16, 512);
            wgmma_pin(acc);
            wgmma_fence();
            for (int kk = 0; kk < 4; ++kk) wgmma_m64n32k16(acc, a + kk * 2, b + kk * 64);
            wgmma_commit();
            wgmma_wait<1>();   // the product of tile k - 1 has finished
            if (k > 0 && tid % 32 == 0) mbarrier_arrive(&empty[(k - 1) % 2]);
        }
        wgmma_wait<0>();
        wgmma_pin(acc);
        const int row = tid / 32 * 16 + tid % 32 / 4;
        for (int c = 0; c < 8; ++c) {
            const int col = c / 2 * 8 + tid % 4 * 2 + c % 2;
            c_tile[row * 32 + col] = acc[0][c];
            c_tile[(row + 8) * 32 + col] = acc[1][c];
        }
        async_proxy_fence();
        named_barrier_sync(1, 128);   // the tile is complete
        if (tid == 0) {
            tma_store_2d(c_map, blockIdx.x * 64, blockIdx.y * 32, c_tile);
            tma_store_wait<0>();
        }
    }
"""
MAPS = (
    TensorMap("a_map", bfloat16, "a_ptr", ("K", "M"), ("K * 2",), (64, 64), 128),
    TensorMap("b_map", bfloat16, "b_ptr", ("N", "K"), ("N * 2",), (32, 64), 64),
    TensorMap("c_map", float32, "c_ptr", ("N", "M"), ("N * 4",), (32, 64)),
)
PARAMETERS = {"a_ptr": PointerType(bfloat16), "b_ptr": PointerType(bfloat16), "c_ptr": PointerType(float32),
              "M": int32, "N": int32, "K": int32}  # fmt: skip


def matmul(change: tuple[str, str] = ("", "")) -> Artifact:
    assert change[0] in BODY
    body = BODY.replace(*change) if change[0] else BODY
    bytes_of_tiles = 2 * (64 * 64 + 64 * 32) * 2 + 64 * 32 * 4 + 4 * 8
    return kernel(body, ASKED, PARAMETERS, num_threads=256, shared_bytes=bytes_of_tiles, tensor_maps=MAPS,
                  includes=["cuda_bf16.h"])  # fmt: skip


def operands(m: int, n: int, k: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(5)
    a, b = rng.integers(-3, 4, (m, k)), rng.integers(-3, 4, (k, n))
    return a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16), np.zeros((m, n), np.float32)


def product(a: Any, b: Any) -> Any:
    return a.astype(np.float32) @ b.astype(np.float32)


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_product_under_every_schedule_and_delivery(schedule: str, delivery: str) -> None:
    m, n, k = 100, 40, 184  # three steps, and edges on all sides
    a, b, c = operands(m, n, k)
    run_probe(matmul(), a, b, c, grid=(2, 2, 1), numbers=[m, n, k], schedule=schedule, delivery=delivery, seed=11)
    np.testing.assert_array_equal(c, product(a, b))


def test_the_product_under_the_sanitizers() -> None:
    a, b, c = operands(64, 32, 192)
    check_probe(matmul(), a, b, c, numbers=[64, 32, 192])
    np.testing.assert_array_equal(c, product(a, b))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("mbarrier_wait(&full[stage], k / 2 % 2);", ""), "race on shared_bytes|deadlock|more arrivals at an mbarrier"),
        (("mbarrier_wait(&empty[stage], k / 2 % 2 ^ 1);", ""), "race on shared_bytes|deadlock"),
        (("mbarrier_arrive(&empty[(k - 1) % 2])", "mbarrier_arrive(&empty[k % 2])"), "race on shared_bytes|deadlock"),
        (("named_barrier_sync(1, 128);", ""), "race on shared_bytes: .*TMA store"),
        (("        async_proxy_fence();\n", ""), "race on shared_bytes: .*TMA store.*async_proxy_fence"),
        (("        wgmma_wait<0>();\n", ""), "race|still under way"),
    ],
)
def test_a_missing_wait_is_found(change: tuple[str, str], fault: str) -> None:
    a, b, c = operands(64, 32, 320)
    with pytest.raises(KernelFaultError, match=fault):
        check_probe(matmul(change), a, b, c, numbers=[64, 32, 320])


def test_a_wait_behind_the_use_gives_a_wrong_result_when_copies_are_late() -> None:
    a, b, c = operands(64, 32, 320)
    wait = "mbarrier_wait(&full[stage], k / 2 % 2);"
    early = matmul((wait, ""))
    late = dataclasses.replace(early, source=early.source.replace("wgmma_wait<1>();", f"wgmma_wait<0>(); {wait}"))
    run_probe(late, a, b, c, numbers=[64, 32, 320], delivery="late")
    assert not np.array_equal(c, product(a, b))


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_the_same_text_compiles_for_the_gpu() -> None:
    cubin = nvrtc.compile_text(matmul())
    assert cubin.registers > 0 and "warning" not in cubin.log and nvrtc.SERIALISED not in cubin.log


def test_a_step_takes_milliseconds() -> None:
    """A step of 64x32x64 costs half a MiB of multiplications; many of them bound the time of one."""
    a, b, c = operands(64, 32, 64 * 200)
    probe = matmul()
    run_probe(probe, *operands(64, 32, 64), numbers=[64, 32, 64])  # built and loaded
    before = time.perf_counter()
    run_probe(probe, a, b, c, numbers=[64, 32, 64 * 200])
    seconds = (time.perf_counter() - before) / 200
    np.testing.assert_array_equal(c, product(a, b))
    assert seconds < 0.02  # measured: well below 1 ms; the bound leaves room for a busy machine
