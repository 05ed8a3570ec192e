"""join, split, interleave, cat, and reshapes between sides that are no powers of two: values, text, every error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors
from tilewright.ir.reshapes import keeps_places
from tilewright.runtime.building import nvrtc

RNG = np.random.default_rng(11)


@triton.jit
def rotate_pairs(x_ptr, cos_ptr, sin_ptr, out_ptr, N: tl.constexpr):
    # Rotary embedding of neighbouring elements.
    n = tl.arange(0, N)
    x = tl.load(x_ptr + tl.arange(0, 2 * N))
    even, odd = tl.split(x.reshape(N, 2))
    cos, sin = tl.load(cos_ptr + n), tl.load(sin_ptr + n)
    out = tl.interleave(even * cos - odd * sin, even * sin + odd * cos)
    tl.store(out_ptr + tl.arange(0, 2 * N), out)


def test_pairs_are_rotated(run_everywhere: Any) -> None:
    n = 1024
    x, angle = RNG.standard_normal(2 * n, dtype=np.float32), RNG.standard_normal(n, dtype=np.float32)
    cos, sin = np.cos(angle), np.sin(angle)
    *_, out = run_everywhere(rotate_pairs, (1,), x, cos, sin, np.zeros_like(x), N=n, tolerance=1e-6)
    even, odd = x[::2], x[1::2]
    expected = np.stack([even * cos - odd * sin, even * sin + odd * cos], -1).ravel()
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
    text = rotate_pairs.translate("*fp32:16, *fp32:16, *fp32:16, *fp32:16, 1024").source
    assert "__shared__" not in text, "both elements of a pair are in one thread's registers"
    text = rotate_pairs.translate("*fp16:16, *fp16:16, *fp16:16, *fp16:16, 64").source
    assert text.count("moves within each warp") == 1, "both halves come of one exchange"


@triton.jit
def two_scalars(x_ptr, out_ptr):
    first, second = tl.split(tl.load(x_ptr + tl.arange(0, 2)))
    tl.store(out_ptr, second)
    tl.store(out_ptr + 1 + tl.arange(0, 2), tl.join(first, second))


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "uint64", "bool"])
def test_two_elements_are_two_scalars(run_everywhere: Any, dtype: str) -> None:
    x = np.array([-0.0, np.nan] if dtype.startswith("float") else [0, 1], dtype)
    _, out = run_everywhere(two_scalars, (1,), x, np.zeros(3, dtype))
    np.testing.assert_array_equal(out.view(np.uint8), x[[1, 0, 1]].view(np.uint8))


@triton.jit
def odd_reshape(x_ptr, out_ptr, place_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, L: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    for i in range(2):
        x = (x + i).reshape(K, L).reshape(M, N)
    tl.store(out_ptr + tl.arange(0, K)[:, None] * L + tl.arange(0, L)[None, :], tl.reshape(x, K, L))
    tl.store(place_ptr, tl.argmax(x, axis=None))


@pytest.mark.parametrize("shape", [(3, 5, 5, 3), (6, 4, 3, 8), (12, 10, 15, 8), (7, 1, 1, 7), (24, 40, 15, 64)])
def test_odd_sides_are_reshaped(run_everywhere: Any, shape: tuple[int, ...]) -> None:
    m, n, rows, columns = shape
    x = RNG.permutation(m * n).astype(np.float32).reshape(m, n)
    blank = np.zeros((rows, columns), np.float32), np.zeros(1, np.int32)
    _, out, place = run_everywhere(odd_reshape, (1,), x, *blank, M=m, N=n, K=rows, L=columns)
    np.testing.assert_array_equal(out, x.reshape(rows, columns) + 1)
    assert place[0] == x.argmax()


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_the_text_compiles_without_a_warning() -> None:
    artifacts = [
        odd_reshape.translate("*fp16:16, *fp16:16, *i32:16, 12, 10, 15, 8"),
        rotate_pairs.translate("*fp16:16, *fp16:16, *fp16:16, *fp16:16, 64"),
        two_scalars.translate("*i1, *i1"),
    ]
    for artifact in artifacts:
        assert "warning" not in nvrtc.compile_text(artifact, "sm_80").log


def test_places_are_kept_where_padding_moves_nothing() -> None:
    assert keeps_places((4, 8), (2, 16)) and keeps_places((3, 5), (3, 1, 5)) and keeps_places((5,), (1, 5, 1))
    assert keeps_places((3, 4, 2), (3, 8)) and keeps_places((3, 8), (3, 2, 4)) and keeps_places((), (1,))
    assert not keeps_places((3, 5), (5, 3)) and not keeps_places((3, 2), (6,)) and not keeps_places((6,), (2, 3))


@triton.jit
def join_kernel(x_ptr, WHAT: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, 4))
    if WHAT == "types":
        tl.join(x, tl.arange(0, 4))
    elif WHAT == "shapes":
        tl.interleave(x, tl.zeros((8,), tl.float32))
    elif WHAT == "side":
        tl.split(x)
    elif WHAT == "scalars":
        tl.cat(1.0, 2.0)
    elif WHAT == "axis":
        tl.cat(x, x, dim=1)
    else:
        tl.cat(x[None, :], x[None, :], can_reorder=True)


ERRORS = [
    ("types", errors.DTypeError, "same type", "tl.join"),
    ("shapes", errors.ShapeError, "Cannot make shapes compatible", "tl.interleave"),
    ("side", errors.ShapeError, "last side is 2", "tl.split"),
    ("scalars", errors.ShapeError, "not scalars", "tl.cat"),
    ("axis", errors.ArgumentError, "axis 1", "tl.cat"),
    ("order", errors.ArgumentError, "one axis", "tl.cat"),
]


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
@pytest.mark.parametrize(("what", "kind", "said", "marked"), ERRORS)
def test_errors(what: str, kind: Any, said: str, marked: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(kind, match=said) as caught:
        join_kernel[(1,)](np.zeros(4, np.float32), WHAT=what)
    assert marked in str(caught.value) and "^^^" in str(caught.value)
