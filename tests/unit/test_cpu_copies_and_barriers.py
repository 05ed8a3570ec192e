"""The CPU run's asynchronous copies and barriers: what they copy, when it is there, and what is said of a missing wait."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from ptx_kernels import Asked, check_probe, kernel, run_probe
from tile_models import swizzled
from tilewright.artifact import Artifact, TensorMap
from tilewright.diagnostics import HostExpressionError, KernelFaultError
from tilewright.language.dtypes import PointerType, bfloat16, float32, int32, uint8
from tilewright.runtime.cpu.run import DELIVERIES, SCHEDULES

COPIES: list[Asked] = [
    *(("cp_async", f"cp_async_{size}", {"bytes": size}) for size in (4, 8, 16)),
    ("cp_async_commit", "cp_async_commit", {}),
    ("cp_async_wait", "cp_async_wait", {}),
]
BARRIERS: list[Asked] = [
    (name, name, {})
    for name in ("mbarrier_init", "mbarrier_init_fence", "mbarrier_arrive", "mbarrier_arrive_expect", "mbarrier_wait",
                 "named_barrier_sync", "named_barrier_arrive", "async_proxy_fence")
]  # fmt: skip
STORES: list[Asked] = [("tma_store_wait", "tma_store_wait", {})]
every_delivery = pytest.mark.parametrize("delivery", DELIVERIES)


def tma(rank: int) -> list[Asked]:
    return [(f"tma_{way}", f"tma_{way}_{rank}d", {"rank": rank}) for way in ("load", "store")]


# ---------------------------------------------------------------------------------------------------------- cp.async


@every_delivery
@pytest.mark.parametrize("size", [4, 8, 16])
def test_a_copy_fills_its_tail_with_zeros(size: int, delivery: str) -> None:
    source = np.random.default_rng(1).integers(1, 255, 32 * size).astype(np.uint8)
    out = np.full(32 * size, 255, np.uint8)
    body = f"""
    const int tid = threadIdx.x;
    cp_async_{size}(shared_bytes + tid * {size}, source + tid * {size}, tid % {size + 1});
    cp_async_commit();
    cp_async_wait<0>();
    for (int i = 0; i < {size}; ++i) out[tid * {size} + i] = shared_bytes[tid * {size} + i];
"""
    run_probe(kernel(body, COPIES, bytes_in_and_out(), shared_bytes=512), source, out, delivery=delivery)
    expected = source.reshape(32, size) * (np.arange(size) < (np.arange(32) % (size + 1))[:, None])
    np.testing.assert_array_equal(out.reshape(32, size), expected)


def bytes_in_and_out() -> dict[str, Any]:
    return {"source": PointerType(uint8), "out": PointerType(uint8)}


GROUPS = """
    const int tid = threadIdx.x;
    cp_async_4(shared_bytes + tid * 4, source + tid * 4, 4);
    cp_async_commit();
    cp_async_4(shared_bytes + 128 + tid * 4, source + 128 + tid * 4, 4);
    cp_async_commit();
    cp_async_commit();
    cp_async_wait<PENDING>();
    __syncthreads();
    out[tid] = shared_bytes[(tid + 4) % 32 * 4];
    out[tid + 32] = shared_bytes[128 + (tid + 4) % 32 * 4];
    cp_async_wait<0>();
"""


@pytest.mark.parametrize(("pending", "arrived"), [(0, 2), (1, 2), (2, 1), (3, 0)])
def test_a_wait_covers_all_but_the_last_groups(pending: int, arrived: int) -> None:
    """What no wait covers is late: it finds the 0xff that shared memory starts with."""
    source, out = np.full(256, 7, np.uint8), np.zeros(64, np.uint8)
    probe = kernel(GROUPS.replace("PENDING", str(pending)), COPIES, bytes_in_and_out(), shared_bytes=256)
    run_probe(probe, source, out, delivery="late", schedule="round_robin")
    np.testing.assert_array_equal(out[31::32] == 7, np.arange(2) < arrived)
    run_probe(probe, source, out, delivery="early")
    assert (out == 7).all()


def test_a_copy_that_no_wait_covers_is_a_race() -> None:
    source, out = np.full(256, 7, np.uint8), np.zeros(64, np.uint8)
    check_probe(kernel(GROUPS.replace("PENDING", "1"), COPIES, bytes_in_and_out(), shared_bytes=256), source, out)
    assert (out == 7).all()
    broken = kernel(GROUPS.replace("PENDING", "2"), COPIES, bytes_in_and_out(), shared_bytes=256)
    with pytest.raises(KernelFaultError, match=r"race on shared_bytes: .*cp.async of CUDA thread \d+"):
        check_probe(broken, source, out)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("cp_async_wait<0>();", ""), "a cp.async is still under way when its thread returns"),
        (("source + tid * 4, 4)", "source + tid * 4 + 1, 4)"), "misaligned cp.async: the address in global memory"),
        (
            ("(shared_bytes + tid * 4,", "(shared_bytes + tid * 4 + 2,"),
            "misaligned cp.async: the address in shared memory",
        ),
        (("source + tid * 4, 4)", "source + tid * 4, 5)"), "more bytes than it has"),
    ],
)
def test_misuse_of_cp_async_is_reported(change: tuple[str, str], fault: str) -> None:
    text = GROUPS.replace("PENDING", "2")
    assert change[0] in text
    probe = kernel(text.replace(*change), COPIES, bytes_in_and_out(), shared_bytes=256)
    with pytest.raises(KernelFaultError, match=f"{fault}.*probe.cu:\\d+"):
        run_probe(probe, np.zeros(512, np.uint8), np.zeros(64, np.uint8))


def test_a_copy_past_the_end_is_found() -> None:
    probe = kernel(GROUPS.replace("PENDING", "0"), COPIES, bytes_in_and_out(), shared_bytes=256)
    with pytest.raises(KernelFaultError, match=r"out of bounds: read of 1 bytes .*past the end of source"):
        check_probe(probe, np.zeros(252, np.uint8), np.zeros(64, np.uint8))


# --------------------------------------------------------------------------------------------------------------- TMA


def load_box(rank: int, tensor_map: TensorMap, start: tuple[int, ...], size: int) -> Artifact:
    """One thread loads a box at `start` (outermost first); all copy its bytes out."""
    body = f"""
    const int tid = threadIdx.x;
    Barrier* full = reinterpret_cast<Barrier*>(shared_bytes + {size});
    if (tid == 0) {{
        mbarrier_init<1>(full, 1);
        mbarrier_init_fence();
    }}
    __syncthreads();
    if (tid == 0) {{
        mbarrier_arrive_expect(full, {size});
        tma_load_{rank}d(shared_bytes, map, {", ".join(map(str, start))}, full);
    }}
    mbarrier_wait(full, 0);
    for (int i = tid; i < {size}; i += 32) out[i] = shared_bytes[i];
"""
    asked = [*BARRIERS, *tma(rank)]
    parameters = {"source": PointerType(float32), "out": PointerType(uint8), "rows": int32}
    return kernel(body, asked, parameters, shared_bytes=size + 8, tensor_maps=[tensor_map])


def box_of(tensor: Any, start: tuple[int, ...], box: tuple[int, ...]) -> Any:
    """The box at `start`, zeros outside the tensor; outermost first."""
    result = np.zeros(box, tensor.dtype)
    for index in np.ndindex(*box):
        place = tuple(s + i for s, i in zip(start, index, strict=True))
        if all(0 <= p < size for p, size in zip(place, tensor.shape, strict=True)):
            result[index] = tensor[place]
    return result


@every_delivery
@pytest.mark.parametrize(
    ("shape", "box", "start"),
    [
        ((40,), (16,), (32,)),
        ((40,), (16,), (-4,)),
        ((6, 20), (4, 8), (1, 4)),
        ((6, 20), (4, 8), (4, 16)),
        ((6, 20), (4, 8), (-2, -4)),
        ((6, 20), (4, 8), (9, 0)),
        ((3, 5, 8), (2, 4, 8), (2, -1, 4)),
        ((2, 3, 4, 8), (2, 2, 2, 8), (1, 2, -1, 4)),
        ((2, 2, 3, 3, 8), (1, 2, 2, 2, 8), (1, 1, 2, -1, -4)),
    ],
)
def test_a_box_and_what_is_outside(shape: Any, box: Any, start: Any, delivery: str) -> None:
    tensor = np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
    rank = len(shape)
    strides = [str(step) for step in tensor.strides[-2::-1]] if rank > 1 else []
    sizes = [str(size) for size in shape[::-1]]
    sizes[-1] = "rows"  # an argument of the launch
    tensor_map = TensorMap("map", float32, "source", tuple(sizes), tuple(strides), tuple(box[::-1]))
    size = int(np.prod(box)) * 4
    out = np.zeros(size, np.uint8)
    run_probe(load_box(rank, tensor_map, start, size), tensor, out, numbers=[shape[0]], delivery=delivery)
    np.testing.assert_array_equal(out.view(np.float32).reshape(box), box_of(tensor, start, box))


@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_a_swizzled_box(swizzle: int) -> None:
    box = (24, swizzle // 4)
    tensor = np.arange(1, 40 * 64 + 1, dtype=np.float32).reshape(40, 64)
    tensor_map = TensorMap("map", float32, "source", ("64", "rows * 2"), ("64 * 4",), box[::-1], swizzle)
    size = 24 * swizzle
    out = np.zeros(size, np.uint8)
    check_probe(load_box(2, tensor_map, (20, 16), size), tensor, out, numbers=[20])
    np.testing.assert_array_equal(out, swizzled(box_of(tensor, (20, 16), box).view(np.uint8).ravel(), swizzle))


def test_a_box_read_before_its_arrival_is_a_race() -> None:
    tensor = np.ones((4, 16), np.float32)
    tensor_map = TensorMap("map", float32, "source", ("16", "rows"), ("64",), (16, 4))
    probe = load_box(2, tensor_map, (0, 0), 256)
    check_probe(probe, tensor, np.zeros(256, np.uint8), numbers=[4])
    copy = "    for (int i = tid; i < 256; i += 32) out[i] = shared_bytes[i];\n"
    wait = "    mbarrier_wait(full, 0);\n"
    assert wait + copy in probe.source
    early = dataclasses.replace(probe, source=probe.source.replace(wait + copy, copy + wait))
    with pytest.raises(KernelFaultError, match=r"race on shared_bytes: .*TMA load"):
        check_probe(early, tensor, np.zeros(256, np.uint8), numbers=[4])


def test_a_box_of_a_tensor_larger_than_its_memory_is_found() -> None:
    tensor_map = TensorMap("map", float32, "source", ("16", "rows"), ("64",), (16, 4))
    with pytest.raises(KernelFaultError, match=r"out of bounds: .*past the end of source"):
        check_probe(
            load_box(2, tensor_map, (3, 0), 256), np.ones((4, 16), np.float32), np.zeros(256, np.uint8), numbers=[5]
        )


STORE = """
    const int tid = threadIdx.x;
    unsigned short* tile = reinterpret_cast<unsigned short*>(shared_bytes);
    for (int i = tid; i < 8 * 16; i += 32) tile[i] = i + 1;
    async_proxy_fence();
    __syncthreads();
    if (tid == 0) {
        tma_store_2d(map, 3, -8, tile);
        WAIT
    }
    __syncthreads();
    for (int i = tid; i < 8 * 16; i += 32) tile[i] = 0;
    if (tid == 0) tma_store_wait<0>();
"""


def store(wait: str) -> Artifact:
    tensor_map = TensorMap("map", bfloat16, "out", ("24", "rows"), ("48",), (16, 8))
    parameters = {"out": PointerType(bfloat16), "rows": int32}
    asked = [*BARRIERS, *tma(2), *STORES]
    return kernel(STORE.replace("WAIT", wait), asked, parameters, shared_bytes=256, tensor_maps=[tensor_map],
                  includes=["cuda_bf16.h"])  # fmt: skip


def stored_box() -> Any:
    expected = np.zeros((10, 24), np.uint16)
    expected[3:9, :8] = np.arange(1, 129, dtype=np.uint16).reshape(8, 16)[:6, 8:]
    return expected


def test_a_stored_box_stays_inside_the_tensor() -> None:
    for delivery in DELIVERIES:
        out = np.zeros((10, 24), np.uint16)
        run_probe(store("tma_store_wait<0>();"), out, numbers=[9], delivery=delivery)
        np.testing.assert_array_equal(out, stored_box())
    check_probe(store("tma_store_wait<0>();"), out, numbers=[9])


def test_a_tile_reused_under_its_store_shows() -> None:
    out = np.zeros((10, 24), np.uint16)
    run_probe(store(""), out, numbers=[9], delivery="late")
    assert not np.array_equal(out, stored_box())
    with pytest.raises(KernelFaultError, match="race on shared_bytes: .*TMA store"):
        check_probe(store("tma_store_wait<1>();"), out, numbers=[9])


def test_a_store_without_a_proxy_fence_is_a_race() -> None:
    artifact = store("tma_store_wait<0>();")
    source = artifact.source.replace("    async_proxy_fence();\n    __sync", "    __sync")
    assert source != artifact.source
    with pytest.raises(KernelFaultError, match=r"race on .*TMA store.*needs a barrier and an async_proxy_fence"):
        check_probe(dataclasses.replace(artifact, source=source), np.zeros((10, 24), np.uint16), numbers=[9])


def test_a_store_that_nobody_waits_for() -> None:
    artifact = store("")
    source = artifact.source.replace("    if (tid == 0) tma_store_wait<0>();\n", "")
    assert source != artifact.source
    with pytest.raises(KernelFaultError, match=r"a TMA store still reads shared memory .*probe.cu:\d+"):
        run_probe(dataclasses.replace(artifact, source=source), np.zeros((10, 24), np.uint16), numbers=[9])


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"strides": ("50",)}, "a stride of the tensor is not divisible by 16"),
        ({"box": (12, 8)}, "the rows of a TMA box are not a multiple of 16 bytes"),
        ({"box": (16, 300)}, "a TMA box has 1 to 256 elements"),
        ({"swizzle": 32, "box": (32, 8)}, "the rows of a TMA box exceed its swizzle"),
        ({"sizes": ("24",), "strides": (), "box": (16,)}, "another rank"),
    ],
)
def test_a_map_that_the_hardware_refuses(change: dict[str, Any], fault: str) -> None:
    artifact = store("tma_store_wait<0>();")
    changed = dataclasses.replace(artifact.tensor_maps[0], **change)
    with pytest.raises(KernelFaultError, match=f"{fault}.*probe.cu:\\d+"):
        run_probe(dataclasses.replace(artifact, tensor_maps=(changed,)), np.zeros((10, 24), np.uint16), numbers=[9])


def test_a_box_that_starts_between_multiples_of_16_bytes() -> None:
    artifact = store("tma_store_wait<0>();")
    source = artifact.source.replace("(map, 3, -8, tile)", "(map, 3, -2, tile)")
    with pytest.raises(KernelFaultError, match=r"a box does not start at a multiple of 16 bytes.*probe.cu:\d+"):
        run_probe(dataclasses.replace(artifact, source=source), np.zeros((10, 24), np.uint16), numbers=[9])


def test_a_map_of_unknown_arguments() -> None:
    tensor_map = TensorMap("map", float32, "source", ("cols",), (), (16,))
    with pytest.raises(HostExpressionError, match="cols is no integer argument.*rows"):
        run_probe(load_box(1, tensor_map, (0,), 64), np.zeros(16, np.float32), np.zeros(64, np.uint8), numbers=[1])


# ----------------------------------------------------------------------------------------------------------- barriers

RING = """
    Barrier* full = reinterpret_cast<Barrier*>(shared_bytes);
    Barrier* empty = full + 1;
    int* slot = reinterpret_cast<int*>(shared_bytes + 16);
    if (threadIdx.x == 0) {
        mbarrier_init<1>(full, 32);
        mbarrier_init<1>(empty, 32);
    }
    __syncthreads();
    const int lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        for (int i = 0; i < 5; ++i) {
            mbarrier_wait(empty, i % 2 ^ 1);
            slot[lane] = i * 100 + lane;
            mbarrier_arrive(full);
        }
    } else {
        for (int i = 0; i < 5; ++i) {
            mbarrier_wait(full, i % 2);
            out[i * 32 + lane] = slot[31 - lane];
            mbarrier_arrive(empty);
        }
    }
"""


def ring(change: tuple[str, str] = ("", ""), asked: list[Asked] = BARRIERS) -> Artifact:
    assert change[0] in RING
    return kernel(RING.replace(*change, 1), asked, {"out": PointerType(int32)}, num_threads=64, shared_bytes=16 + 128)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_phases_of_mbarriers_order_producer_and_consumer(schedule: str) -> None:
    out = np.zeros((5, 32), np.int32)
    run_probe(ring(), out, schedule=schedule, seed=3)
    np.testing.assert_array_equal(out, np.arange(5)[:, None] * 100 + np.arange(31, -1, -1))


def test_a_ring_without_its_waits_is_a_race() -> None:
    out = np.zeros((5, 32), np.int32)
    check_probe(ring(), out)
    for missing in ("mbarrier_wait(empty, i % 2 ^ 1);", "mbarrier_wait(full, i % 2);"):
        with pytest.raises(KernelFaultError, match=r"race on shared_bytes|deadlock"):
            check_probe(ring((missing, "")), out)
    with pytest.raises(KernelFaultError, match=r"race on shared_bytes|before it is initialised"):
        check_probe(ring(("__syncthreads();", "")), out)


@pytest.mark.parametrize(
    ("change", "report"),
    [
        (("mbarrier_init<1>(full, 32)", "mbarrier_init<1>(full, 33)"),
         r"deadlock.*threads 32-63 wait at mbarrier_wait, probe.cu:\d+ \(.cu line \d+\) "
         r"\(for the end of the phase of parity 0, which lacks 1 arrivals and 0 bytes\)"),
        (("mbarrier_arrive(full);", "mbarrier_arrive_expect(full, 64);"), "lacks 0 arrivals and 2048 bytes"),
        (("mbarrier_init<1>(empty, 32)", "(void)empty"), "an mbarrier is used before it is initialised"),
        (("mbarrier_init<1>(full, 32)", "mbarrier_init<1>(full, 0)"), "takes 1 to"),
        (("mbarrier_arrive(full);", "mbarrier_arrive_expect(full, 1 << 18);"), "counts at most"),
        (("full + 1", "reinterpret_cast<Barrier*>(shared_bytes + 12)"), "not divisible by 8"),
        (("mbarrier_wait(full, i % 2)", "mbarrier_wait(full, i)"), "parity of an mbarrier's phase is 0 or 1"),
    ],
)  # fmt: skip
def test_a_wrong_barrier_is_reported_with_who_waits_where(change: tuple[str, str], report: str) -> None:
    with pytest.raises(KernelFaultError, match=f"(?s){report}") as error:
        run_probe(ring(change), np.zeros((5, 32), np.int32))
    assert "probe.cu:" in str(error.value)


NAMED = """
    int* slot = reinterpret_cast<int*>(shared_bytes);
    const int tid = threadIdx.x;
    if (tid < 64) {
        slot[tid] = tid;
        named_barrier_sync(1, 64);
        out[tid] = slot[63 - tid];
    } else {
        slot[tid] = tid;
        named_barrier_sync(2, 32);
        out[tid] = slot[159 - tid];
    }
"""


def named(change: tuple[str, str] = ("", "")) -> Artifact:
    assert change[0] in NAMED
    text = NAMED.replace(*change)
    return kernel(text, BARRIERS, {"out": PointerType(int32)}, num_threads=96, shared_bytes=96 * 4)


def test_named_barriers_take_their_threads_only() -> None:
    out = np.zeros(96, np.int32)
    check_probe(named(), out)
    np.testing.assert_array_equal(out, [*range(63, -1, -1), *range(95, 63, -1)])
    with pytest.raises(KernelFaultError, match="race on shared_bytes"):
        check_probe(named(("named_barrier_sync(1, 64);", "named_barrier_sync(1, 32);")), out)


ONE_WAY = """
    int* slot = reinterpret_cast<int*>(shared_bytes);
    const int tid = threadIdx.x;
    if (tid < 32) {
        slot[tid] = tid;
        named_barrier_arrive(1, 64);
        out[tid] = tid;
    } else {
        named_barrier_sync(1, 64);
        out[tid] = slot[63 - tid];
    }
"""


def test_who_arrives_at_a_barrier_does_not_wait_there() -> None:
    def one_way(text: str) -> Artifact:
        return kernel(text, BARRIERS, {"out": PointerType(int32)}, num_threads=64, shared_bytes=32 * 4)

    out = np.zeros(64, np.int32)
    check_probe(one_way(ONE_WAY), out)
    np.testing.assert_array_equal(out, [*range(32), *range(31, -1, -1)])
    with pytest.raises(
        KernelFaultError, match="race on shared_bytes"
    ):  # the first write is not ordered by what follows it
        check_probe(one_way(ONE_WAY.replace("out[tid] = tid;", "slot[tid] = out[tid] = tid;")), out)
    with pytest.raises(KernelFaultError, match=r"wait at named_barrier_sync, .*\(32 of 64 threads are there\)"):
        run_probe(one_way(ONE_WAY.replace("named_barrier_arrive(1, 64);", "")), out)


@pytest.mark.parametrize(
    ("change", "report"),
    [
        (("(2, 32)", "(2, 64)"), r"threads 64-95 wait at named_barrier_sync, .*\(32 of 64 threads are there\)"),
        (("(2, 32)", "(2, 40)"), "a multiple of 32 threads"),
        (("(2, 32)", "(16, 32)"), "barriers 0 to 15"),
        (("(1, 64)", "(1, 64 - tid / 32 * 32)"), "with different numbers of threads"),
    ],
)
def test_a_wrong_named_barrier_is_reported(change: tuple[str, str], report: str) -> None:
    with pytest.raises(KernelFaultError, match=f"(?s){report}"):
        run_probe(named(change), np.zeros(96, np.int32), schedule="round_robin")
