"""Sums whose results nobody reads: several neighbours at a time where memory and the mask allow it, on every architecture."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.diagnostics import KernelFaultError
from tilewright.runtime.building import nvrtc

TYPES = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32}


@triton.jit
def embedding_backward(index_ptr, grad_ptr, out_ptr, n, COLS: tl.constexpr, BLOCK: tl.constexpr, SEM: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(index_ptr + i // COLS, mask=i < n, other=0)
    grad = tl.load(grad_ptr + i, mask=i < n).to(tl.float32)
    tl.atomic_add(out_ptr + COLS * row + i % COLS, grad * 2, mask=i < n, sem=SEM)


@triton.jit
def add_kernel(x_ptr, out_ptr, n, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + FIRST + i, tl.load(x_ptr + i, mask=i < n), mask=i < n, sem="relaxed")


@triton.jit
def add_constant(out_ptr, BLOCK: tl.constexpr, SCOPE: tl.constexpr):
    tl.atomic_add(out_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), 1.0, sem="relaxed", scope=SCOPE)


@triton.jit
def add_and_keep(x_ptr, old_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(old_ptr + i, tl.atomic_add(out_ptr + i, tl.load(x_ptr + i)))


@triton.jit
def add_transposed(x_ptr, out_ptr, ROWS: tl.constexpr, COLS: tl.constexpr):
    row, col = tl.arange(0, ROWS), tl.arange(0, COLS)
    x = tl.load(x_ptr + row[:, None] + col[None, :] * ROWS)
    tl.atomic_add(out_ptr + row[:, None] * COLS + col[None, :], x, sem="relaxed")


@triton.jit
def add_product(a_ptr, b_ptr, out_ptr, N, SIDE: tl.constexpr):
    i = tl.arange(0, SIDE)
    a = tl.load(a_ptr + i[:, None] * SIDE + i[None, :])
    b = tl.load(b_ptr + i[:, None] * SIDE + i[None, :])
    tl.atomic_add(out_ptr + i[:, None] * N + i[None, :], tl.dot(a, b).to(out_ptr.dtype.element_ty), sem="relaxed")


@triton.jit
def add_mixed(x_ptr, half_ptr, float_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.atomic_add(half_ptr + i, x.to(tl.float16))
    tl.atomic_add(float_ptr + i, x)


def small_integers(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers whose sums every type has exactly, in whatever order."""
    return np.random.default_rng(seed).integers(-2, 3, shape)


def body(artifact: Any) -> str:
    return str(artifact.source[artifact.source.index('extern "C"') :])


# ------------------------------------------------------------------------------------------------------- the text


@pytest.mark.parametrize(("arch", "kind", "vector", "needs"), [
    ("sm_90a", "fp16", "VEC", "sm_90"), ("sm_90a", "bf16", "VEC", "sm_90"), ("sm_90a", "fp32", "VEC", "sm_90"),
    ("sm_100", "fp16", "VEC", "sm_90"), ("sm_120", "bf16", "VEC", "sm_90"),
    ("sm_80", "fp16", "PAIR_VEC", "sm_80"), ("sm_80", "bf16", "PAIR_VEC", "sm_80"), ("sm_80", "fp32", "", "sm_80"),
])  # fmt: skip
@pytest.mark.parametrize("grad", ("fp32", "fp16"))
@pytest.mark.parametrize("sem", ("'relaxed'", "None"))
def test_neighbours_are_added_at_once(arch: str, kind: str, vector: str, needs: str, grad: str, sem: str) -> None:
    signature = f"*i64:16, *{grad}:16, *{kind}:16, i32:16, 64, 1024, {sem}"
    made = embedding_backward.translate(signature, arch=arch)
    calls = re.findall(r"(?<!tl\.)\b(atomic\w+(?:<\w+>)?)\(", body(made))
    assert calls == [f"atomic_add_vec<{vector}>" if vector else "atomicAdd"]
    assert made.needs == needs and f"target     {needs} and later" in made.source
    assert "__threadfence" not in made.source  # all that the program has read is what it adds


@pytest.mark.parametrize(("kind", "width"), [("fp16", 8), ("bf16", 8), ("fp32", 4)])
def test_a_kernel_that_only_adds_has_the_vectors_of_stores(kind: str, width: int) -> None:
    text = add_constant.translate(f"*{kind}:16, 1024, 'gpu'").source
    assert f"constexpr int VEC = {width};" in text and "atomic_add_vec<VEC>(" in text


@pytest.mark.parametrize("arch", ("sm_80", "sm_90a"))
@pytest.mark.parametrize("kind", ("fp16", "bf16", "fp32"))
def test_what_is_not_aligned_or_split_by_the_mask(kind: str, arch: str) -> None:
    floats_apart = (kind, arch) == ("fp32", "sm_80")
    bounded = body(add_kernel.translate(f"*{kind}:16, *{kind}:16, i32, 0, 1024", arch=arch))
    assert ("atomic_add_vec_bounded<" in bounded) == (not floats_apart)
    for pointer, first in ((":16", 1), ("", 0)):
        odd = body(add_kernel.translate(f"*{kind}:16, *{kind}{pointer}, i32:16, {first}, 1024", arch=arch))
        assert "atomicAdd(out_ptr + " in odd and "atomic_add_vec" not in odd
    pairs = add_kernel.translate(f"*{kind}:16, *{kind}:16, i32:16, 2, 1024", arch=arch)
    # A thread has no more, so that lanes add side by side.
    assert ("atomic_add_vec<VEC>(" in body(pairs)) == (not floats_apart)
    assert ("constexpr int VEC = 2;" in pairs.source) == (not floats_apart)


@pytest.mark.parametrize(("scope", "suffix"), [("cta", "_block"), ("gpu", ""), ("sys", "_system")])
@pytest.mark.parametrize("kind", ("fp16", "fp32"))
def test_the_scope_is_the_kernels(kind: str, scope: str, suffix: str) -> None:
    text = add_constant.translate(f"*{kind}:16, 1024, '{scope}'").source
    assert f"atomic_add_vec{suffix}<VEC>(" in text
    word = f"red.relaxed.{scope}.global.add.noftz.v4.f16x2" if kind == "fp16" else f"atomicAdd{suffix}(reinterpret"
    assert word in text


@pytest.mark.parametrize("kind", ("fp16", "fp32"))
def test_what_is_read_is_added_one_by_one(kind: str) -> None:
    assert "atomic_add_vec" not in add_and_keep.translate(f"*{kind}:16, *{kind}:16, *{kind}:16, 1024").source


def test_scattered_sums_change_hands_first() -> None:
    for arch in ("sm_90a", "sm_80"):  # by packets, and by pairs
        text = body(add_transposed.translate("*fp16:16, *fp16:16, 64, 64", arch=arch))
        assert "x_moved" in text and "atomic_add_vec<" in text and "atomicAdd(" not in text
    text = body(add_product.translate("*fp16:16, *fp16:16, *fp16:16, i32:16, 64"))
    assert "swap_with_lane<" in text and "atomic_add_vec<" in text


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize("arch", ("sm_80", "sm_90a", "sm_100", "sm_120"))
@pytest.mark.parametrize("kind", ("fp16", "bf16", "fp32"))
def test_nvrtc_takes_the_text(kind: str, arch: str) -> None:
    for made in (
        embedding_backward.translate(f"*i64:16, *fp32:16, *{kind}:16, i32:16, 64, 1024, 'relaxed'", arch=arch),
        add_kernel.translate(f"*{kind}:16, *{kind}:16, i32, 4, 1024", arch=arch),
        add_constant.translate(f"*{kind}:16, 1024, 'cta'", arch=arch),
        add_constant.translate(f"*{kind}:16, 1024, 'sys'", arch=arch),
        add_mixed.translate("*fp32:16, *fp16:16, *fp32:16, 1024", arch=arch),
    ):
        log = nvrtc.compile_text(made, arch).log
        assert "warning" not in log, log


# ---------------------------------------------------------------------------------------------------- what is left

ARCHITECTURES = ("sm_80", "sm_90a")


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(
    ("rows", "cols", "sem"), [(40, 64, "relaxed"), (33, 32, None), (7, 48, None), (11, 50, "release")]
)
def test_rows_are_added_up(
    arch: str, name: str, rows: int, cols: int, sem: str | None, run_everywhere: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    index = np.random.default_rng(rows).integers(0, 5, rows)  # most rows several times
    grad = small_integers(rows, cols).astype(TYPES[name])
    expected = np.zeros((5, cols))
    np.add.at(expected, index, 2 * grad.astype(float))
    arguments = (index, grad, np.zeros((5, cols), TYPES[name]), rows * cols)
    found = run_everywhere(embedding_backward, (triton.cdiv(rows * cols, 512),), *arguments, cols, BLOCK=512, SEM=sem)
    np.testing.assert_array_equal(found[2].astype(float), expected)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(("n", "first"), [(1024, 0), (1001, 0), (997, 4), (1003, 1), (5, 2)])
def test_every_element_is_added_once(
    arch: str, name: str, n: int, first: int, run_everywhere: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    x, out = (small_integers(size, seed=size).astype(TYPES[name]) for size in (n, n + 32))
    found = run_everywhere(add_kernel, (2,), x, out.copy(), n, FIRST=first, BLOCK=512)
    expected = out.astype(float)
    expected[first : first + n] += x.astype(float)
    np.testing.assert_array_equal(found[1].astype(float), expected)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", TYPES)
def test_tiles_that_change_hands_are_added(
    arch: str, name: str, run_everywhere: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    x, out = small_integers(32, 64).astype(TYPES[name]), small_integers(64, 32, seed=1).astype(TYPES[name])
    found = run_everywhere(add_transposed, (1,), x, out.copy(), ROWS=64, COLS=32)
    np.testing.assert_array_equal(found[1].astype(float), x.T.astype(float) + out.astype(float))
    a, b = (small_integers(32, 32, seed=seed).astype(np.float16) for seed in (2, 3))
    found = run_everywhere(add_product, (3,), a, b, np.zeros((32, 32), TYPES[name]), 32, SIDE=32)
    np.testing.assert_array_equal(found[2].astype(float), 3 * (a.astype(float) @ b.astype(float)))


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("scope", ("cta", "gpu", "sys"))
def test_scopes_and_types_of_one_kernel(
    arch: str, scope: str, run_everywhere: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    for dtype in TYPES.values():
        (out,) = run_everywhere(add_constant, (2,), np.ones(512, dtype), BLOCK=256, SCOPE=scope)
        np.testing.assert_array_equal(out.astype(float), np.full(512, 2.0))
    x = small_integers(512).astype(np.float32)
    arrays = (np.zeros(512, np.float16), np.zeros(512, np.float32))
    _, halves, floats = run_everywhere(add_mixed, (2,), x, *arrays, BLOCK=256)
    assert np.array_equal(halves, x) and np.array_equal(floats, x)


@triton.jit
def add_at_a_wrong_place(out_ptr, first, BLOCK: tl.constexpr):
    tl.atomic_add(out_ptr + tl.multiple_of(first, 8) + tl.arange(0, BLOCK), 1.0, sem="relaxed")


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_check_finds_vectors_that_are_not_aligned(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    for name in ("fp16", "bf16"):
        add_at_a_wrong_place[(1,)](np.zeros(264, TYPES[name]), 8, BLOCK=256)
        with pytest.raises(KernelFaultError, match="misaligned"):
            add_at_a_wrong_place[(1,)](np.zeros(264, TYPES[name]), 7, BLOCK=256)
