"""Loads of what is read once (`eviction_policy="evict_first"`) are made ahead like others; their copies tell L2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.pipeline import translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target


@triton.jit
def product(a_ptr, b_ptr, scale_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # B, by columns, is read once: 8-bit integers that become floats in registers, and the scales of their blocks.
    m, k = tl.arange(0, BM), tl.arange(0, BK)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (start + k)[None, :], eviction_policy="evict_last")
        b = tl.load(b_ptr + (start + k)[:, None] + n[None, :] * K, eviction_policy="evict_first")
        scale = tl.load(scale_ptr + start // BK, eviction_policy="evict_first")
        total += tl.dot(a, b.to(tl.float16)) * scale
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)


@triton.jit
def plain_product(a_ptr, b_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, k = tl.arange(0, BM), tl.arange(0, BK)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (start + k)[None, :])
        b = tl.load(b_ptr + (start + k)[:, None] * N + n[None, :], eviction_policy="evict_first")
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)


def text_of(kernel: object, signature: str, num_warps: int = 1) -> str:
    """The text for sm_80, where no tensor copies are."""
    return translate_stages(
        kernel, parse_signature(kernel, signature), Options(num_warps=num_warps, num_stages=3), find_target("sm_80")
    ).artifact.source


def test_own_elements_and_scalars_tell_l2() -> None:
    text = text_of(product, "*fp16:16, *i8:16, *fp32:16, *fp32:16, i32:16, i32:16, 16, 64, 64")
    loop = text[text.index('extern "C"') :]
    assert "cp_async_16(&a[stage]" in loop and "cp_async_16_evict_first(&b_ahead[stage]" in loop
    assert "cp_async_4_evict_first(&scale_ahead[stage]" in loop
    assert "load_vec_evict_first" not in text and "__ldcs" not in text  # from shared memory they are read as any other
    assert text.count("createpolicy.fractional.L2::evict_first") == 2  # in a helper for each size


def test_operands_in_shared_memory_tell_l2() -> None:
    text = text_of(plain_product, "*fp16:16, *fp16:16, *fp32:16, i32:16, i32:16, 32, 64, 64")
    assert "cp_async_16(&a[stage]" in text and "cp_async_16_evict_first(&b[stage]" in text


@pytest.mark.parametrize("mode", ["cpu", "check"])
def test_products_are_exact(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_80")
    rng = np.random.default_rng(3)
    n, k = 128, 256
    a, b = rng.integers(-4, 5, (16, k)).astype(np.float16), rng.integers(-4, 5, (n, k)).astype(np.int8)
    scale, c = np.array([0.5, 2.0, 1.0, -1.0], np.float32), np.full((16, n), np.nan, np.float32)
    product[(2,)](a, b, scale, c, n, k, BM=16, BN=64, BK=64, num_warps=1, num_stages=3)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ (b.T * np.repeat(scale, 64)[:, None].astype(np.float64)))


@triton.jit
def packed_product(a_ptr, b_ptr, scale_ptr, c_ptr, M, N: tl.constexpr, K: tl.constexpr, BN: tl.constexpr,
                   BK: tl.constexpr, PARTS: tl.constexpr):  # fmt: skip
    # Weights of 4 bits, eight along K in a word, with a scale for 128 of them and a column; parts of K are added up.
    part = tl.program_id(1)
    blocks = K // BK
    first = part * blocks // PARTS
    m, k = tl.arange(0, 16), tl.arange(0, BK)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    a_ptrs = a_ptr + m[:, None] * K + (first * BK + k)[None, :]
    b_ptrs = b_ptr + (first * (BK // 8) + k // 8)[:, None] * N + n[None, :]
    shifts = (k % 8) * 4
    total = tl.zeros((16, BN), dtype=tl.float32)
    for block in range(first, (part + 1) * blocks // PARTS):
        a = tl.load(a_ptrs, mask=m[:, None] < M, other=0.0)
        words = tl.load(b_ptrs, eviction_policy="evict_first")
        scale = tl.load(scale_ptr + block * BK // 128 * N + n, eviction_policy="evict_first")
        b = (((words >> shifts[:, None]) & 15) - 8).to(tl.float16)
        total = tl.dot(a, b * scale[None, :], total)
        a_ptrs += BK
        b_ptrs += BK // 8 * N
    tl.atomic_add(c_ptr + m[:, None] * N + n[None, :], total, mask=m[:, None] < M)


def test_copies_with_a_policy_run(run_everywhere: Any) -> None:
    """A copy got its policy from another register by ptxas of CUDA 13.0 to 13.3, unless the place it copies to is masked."""
    rng = np.random.default_rng(6)
    a = rng.integers(-2, 3, (16, 1024)).astype(np.float16)
    words = rng.integers(-(2**31), 2**31, (128, 128)).astype(np.int32)
    scale = rng.integers(1, 3, (8, 128)).astype(np.float16)
    args = (a, words, scale, np.zeros((16, 128), np.float32), 16, 128, 1024, 64, 128, 2)
    c = run_everywhere(packed_product, (2, 2), *args, num_warps=4, num_stages=3)[3]
    nibbles = (words[:, None, :] >> np.arange(0, 32, 4)[None, :, None]) & 15
    weights = (nibbles.reshape(1024, 128) - 8.0) * np.repeat(scale.astype(float), 128, 0)
    np.testing.assert_array_equal(c, a.astype(float) @ weights)
    text = text_of(packed_product, "*fp16:16, *i32:16, *fp16:16, *fp32:16, i32:16, 128, 1024, 64, 128, 2", 4)
    assert text.count('"r"(shared_address(dst) & 0xffffff), "l"(src), "r"(bytes), "l"(policy)') == 2
