"""The CPU run's wgmma against NumPy: every pair of types, both majors, all swizzles, A in registers, waits and groups."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from ptx_kernels import Asked, check_probe, kernel, run_probe
from test_cpu_matrix_words import MMA_PAIRS, a_fragment, accumulator, matrix
from tile_models import Tile, along_k, along_rows
from tilewright.diagnostics import KernelFaultError
from tilewright.language.dtypes import PointerType, int32, uint8, uint32

REST: list[Asked] = [
    (name, name, {}) for name in ("wgmma_descriptor", "wgmma_fence", "wgmma_commit", "wgmma_wait", "async_proxy_fence")
]
FILL = """
    const int tid = threadIdx.x;
    for (int i = tid; i < BYTES; i += 128) shared_bytes[i] = image[i];
    async_proxy_fence();
    __syncthreads();
"""
MULTIPLY = """
    wgmma_pin(acc);
    wgmma_fence();
    wgmma_probe(acc, a, b);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_pin(acc);
"""


def multiply(
    a: Any, b: Any, a_tile: Tile | None, b_tile: Tile, types: tuple[int, str, str], delivery: str, **flags: bool
) -> Any:
    """`start + a @ b.T` by one wgmma; a [64, K], b [N, K]; without a tile, A goes through registers."""
    k, a_type, b_type = types
    acc, ctype, element = accumulator(a_type)
    n = len(b)
    a_bytes = 0 if a_tile is None else -(-a_tile.image.size // 1024) * 1024
    image = np.zeros(a_bytes + b_tile.image.size, np.uint8)
    if a_tile is not None:
        image[: a_tile.image.size] = a_tile.image
    image[a_bytes:] = b_tile.image
    held = np.stack([a_fragment(a[thread // 32 * 16 : thread // 32 * 16 + 16], thread % 32) for thread in range(128)])
    start = np.random.default_rng(3).integers(-9, 9, (64, n)).astype(element)
    result = start.copy()
    a_text = "const unsigned a[4] = {held[tid * 4], held[tid * 4 + 1], held[tid * 4 + 2], held[tid * 4 + 3]}"
    if a_tile is not None:
        a_text = f"const unsigned long long a = {descriptor(a_tile, 0)}"
    body = f"""{FILL.replace("BYTES", str(image.size))}
    const int row = tid / 32 * 16 + tid % 32 / 4;
    {ctype}* result = reinterpret_cast<{ctype}*>(out);
    {ctype} acc[2][{n // 4}];
    for (int c = 0; c < {n // 4}; ++c) {{
        acc[0][c] = result[row * {n} + c / 2 * 8 + tid % 4 * 2 + c % 2];
        acc[1][c] = result[(row + 8) * {n} + c / 2 * 8 + tid % 4 * 2 + c % 2];
    }}
    {a_text};
    const unsigned long long b = {descriptor(b_tile, a_bytes)};
    {MULTIPLY}
    for (int c = 0; c < {n // 4}; ++c) {{
        result[row * {n} + c / 2 * 8 + tid % 4 * 2 + c % 2] = acc[0][c];
        result[(row + 8) * {n} + c / 2 * 8 + tid % 4 * 2 + c % 2] = acc[1][c];
    }}
"""
    values = {"n": n, "k": k, "a_type": a_type, "b_type": b_type, "acc": acc, "a_registers": a_tile is None, **flags}
    asked = [*REST, ("wgmma_pin", "wgmma_pin", {"acc": acc}), ("wgmma", "wgmma_probe", values)]
    pointers = {"image": PointerType(uint8), "held": PointerType(uint32), "out": PointerType(int32)}
    probe = kernel(body, asked, pointers, num_threads=128, shared_bytes=image.size)
    run_probe(probe, image, held, result, delivery=delivery)
    expected = start + (a.astype(np.float64) @ b.astype(np.float64).T).astype(element)
    np.testing.assert_array_equal(result, expected)


def descriptor(tile: Tile, at: int) -> str:
    start = f"shared_bytes + {at} + {tile.offset}"
    return f"wgmma_descriptor<{tile.swizzle}>({start}, {tile.leading}, {tile.stride})"


@pytest.mark.parametrize("pair", MMA_PAIRS, ids=lambda pair: "-".join(map(str, pair)))
@pytest.mark.parametrize("registers", [False, True])
def test_every_pair_of_types(pair: tuple[int, str, str], registers: bool) -> None:
    k, a_type, b_type = pair
    a, b = matrix(a_type, (64, k), 1), matrix(b_type, (32, k), 2)
    a_tile = None if registers else along_k(a, 128, step=1)
    multiply(a, b, a_tile, along_k(b, 128, step=3), pair, "late")


@pytest.mark.parametrize("n", [8, 16, 64, 128, 256])
def test_every_width(n: int) -> None:
    a, b = matrix("bf16", (64, 16), 1), matrix("bf16", (n, 16), 2)
    multiply(a, b, along_k(a, 64, step=1), along_k(b, 128), (16, "bf16", "bf16"), "early")


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("a_transposed", [False, True])
@pytest.mark.parametrize("b_transposed", [False, True])
def test_both_majors_and_all_swizzles(swizzle: int, a_transposed: bool, b_transposed: bool) -> None:
    a, b = matrix("f16", (64, 16), 1), matrix("f16", (128, 16), 2)
    a_tile = along_rows(a, swizzle) if a_transposed else along_k(a, swizzle)
    b_tile = along_rows(b, swizzle) if b_transposed else along_k(b, swizzle)
    types = (16, "f16", "f16")
    multiply(a, b, a_tile, b_tile, types, "mixed", a_transposed=a_transposed, b_transposed=b_transposed)


def test_a_transposed_b_with_rows_in_registers() -> None:
    a, b = matrix("bf16", (64, 16), 1), matrix("bf16", (64, 16), 2)
    multiply(a, b, None, along_rows(b, 128), (16, "bf16", "bf16"), "late", b_transposed=True)


@pytest.mark.parametrize(("swizzle", "mode"), [(0, 0), (128, 1), (64, 2), (32, 3)])
def test_the_bits_of_a_descriptor_are_the_manuals(swizzle: int, mode: int) -> None:
    """The CPU run has descriptors of its own; here the text's arithmetic runs, on an address of 20 bits."""
    body = f"    *reinterpret_cast<unsigned long long*>(out) = wgmma_descriptor<{swizzle}>(out, 0x1230, 0x3fff0);\n"
    probe = kernel(body, [REST[0]], {"out": PointerType(int32)})
    source = probe.source.replace("shared_address(start)", "0xa7f50u").replace("wgmma_descriptor", "descriptor_bits")
    assert source.count("0xa7f50u") == 1
    out = np.zeros(2, np.uint32)
    run_probe(dataclasses.replace(probe, source=source), out)
    value = int(out.view(np.uint64)[0])
    fields = (value & 0x3FFF, value >> 16 & 0x3FFF, value >> 32 & 0x3FFF, value >> 62)
    assert fields == (0x27F50 >> 4, 0x1230 >> 4, 0x3FFF0 >> 4, mode)
    assert value & ~(0x3FFF | 0x3FFF << 16 | 0x3FFF << 32 | 3 << 62) == 0


# ------------------------------------------------------------------------------------------------- waits and races

TWO_STEPS = """
    const int tid = threadIdx.x;
    for (int i = tid; i < 4096; i += 128) reinterpret_cast<unsigned short*>(shared_bytes)[i] = 0x3f80;   // 1 in bf16
    async_proxy_fence();
    __syncthreads();
    float acc[2][2] = {};
    const unsigned long long a = wgmma_descriptor<32>(shared_bytes, 16, 256);
    const unsigned long long b = wgmma_descriptor<32>(shared_bytes + 4096, 16, 256);
    wgmma_fence();
    wgmma_probe(acc, a, b);
    wgmma_commit();
    wgmma_probe(acc, a, b);
    wgmma_commit();
    wgmma_wait<PENDING>();
    reinterpret_cast<float*>(out)[tid] = acc[0][0];
    wgmma_wait<0>();
"""
ONE_BY_ONE: Asked = ("wgmma", "wgmma_probe", {"n": 8, "k": 16, "a_type": "bf16", "b_type": "bf16", "acc": "f32"})


def steps(pending: int, body: str = TWO_STEPS) -> Any:
    text = body.replace("PENDING", str(pending))
    return kernel(text, [*REST, ONE_BY_ONE], {"out": PointerType(int32)}, num_threads=128, shared_bytes=8192)


@pytest.mark.parametrize(("pending", "steps_seen"), [(0, 32.0), (1, 16.0), (2, 0.0)])
def test_a_late_result_is_there_after_its_wait_only(pending: int, steps_seen: float) -> None:
    out = np.zeros(128, np.float32)
    run_probe(steps(pending), out, delivery="late")
    assert out.min() == steps_seen  # of the thread that goes on first; its last wait is the others' too
    run_probe(steps(pending), out, delivery="early")
    np.testing.assert_array_equal(out, 32.0)


def test_a_result_read_before_its_wait_is_a_race() -> None:
    out = np.zeros(128, np.float32)
    check_probe(steps(0), out)
    with pytest.raises(KernelFaultError, match=r"race on .*(wgmma of warp \d|CUDA thread \d+)"):
        check_probe(steps(1), out)


def test_a_tile_overwritten_under_a_wgmma_is_a_race() -> None:
    body = TWO_STEPS.replace("wgmma_wait<0>();", "shared_bytes[tid] = 0;\n    wgmma_wait<0>();")
    with pytest.raises(KernelFaultError, match=r"race on .*wgmma of warp \d"):
        check_probe(
            steps(2, body.replace("reinterpret_cast<float*>(out)[tid] = acc[0][0];", "")), np.zeros(128, np.float32)
        )


def test_a_tile_written_without_a_barrier_is_a_race() -> None:
    body = TWO_STEPS.replace("__syncthreads();", "")
    with pytest.raises(KernelFaultError, match=r"race on .*wgmma of warp \d"):
        check_probe(steps(0, body), np.zeros(128, np.float32))


def test_a_tile_written_without_a_proxy_fence_is_a_race() -> None:
    body = TWO_STEPS.replace("async_proxy_fence();", "")
    with pytest.raises(KernelFaultError, match=r"race on .*wgmma of warp \d.*needs a barrier and an async_proxy_fence"):
        check_probe(steps(0, body), np.zeros(128, np.float32))
    after = TWO_STEPS.replace("async_proxy_fence();", "").replace(
        "__syncthreads();", "__syncthreads(); async_proxy_fence(); __syncthreads();"
    )
    check_probe(steps(0, after), np.zeros(128, np.float32))  # a fence of whoever knows of the writes will do


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("wgmma_fence();", ""), "a wgmma without a wgmma_fence before it"),
        (("wgmma_wait<0>();", ""), "a wgmma is still under way when its thread returns"),
        (("shared_bytes + 4096", "shared_bytes + 4096 + 8"), "misaligned wgmma"),
        (("shared_bytes + 4096", "shared_bytes + 4096 + tid / 64 * 16"), "descriptors of a wgmma differ"),
        (("wgmma_fence();", "wgmma_fence(); if (tid < 64) return;"), "deadlock"),
    ],
)
def test_misuse_is_reported_at_its_line(change: tuple[str, str], fault: str) -> None:
    assert change[0] in TWO_STEPS
    with pytest.raises(KernelFaultError, match=f"{fault}.*probe.cu:\\d+"):
        run_probe(steps(2, TWO_STEPS.replace(*change)), np.zeros(128, np.float32), delivery="late")
