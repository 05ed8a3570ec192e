"""Kernels in programs of JAX that are traced, and what launches say of JAX's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def scale_kernel(x_ptr, n, factor, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


@pytest.fixture
def jax(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
    return pytest.importorskip("jax")


def scale(x: Any, factor: Any) -> Any:
    import tilewright.jax

    grid = (triton.cdiv(x.size, 64),)
    return tilewright.jax.call(x, x.size, factor, kernel=scale_kernel, out_shape=x, grid=grid, BLOCK=64)


def test_a_kernel_is_part_of_a_traced_program(jax: Any) -> None:
    for dtype in ("float32", "bfloat16"):
        x = jax.numpy.arange(100_000).astype(dtype) % 64
        result = jax.jit(lambda x, factor: scale(x + 1, factor) - 1)(x, 3.0)
        assert result.dtype == x.dtype and jax.numpy.array_equal(result, (x + 1) * 3 - 1)
    rows = jax.vmap(lambda row: scale(row, 2.0))(jax.numpy.ones((2, 5)))
    assert jax.numpy.array_equal(rows, jax.numpy.full((2, 5), 2.0))
    assert jax.numpy.array_equal(scale(np.ones(3, np.float32), 2), jax.numpy.full(3, 2.0))


def test_results_have_the_shapes_that_are_asked_for(jax: Any) -> None:
    import tilewright.jax

    x, shape = jax.numpy.ones(8), jax.ShapeDtypeStruct((4, 2), "float32")
    (found,) = tilewright.jax.call(x, 5, 2.0, kernel=scale_kernel, out_shape=[shape], grid=(1,), BLOCK=8)
    assert found.tolist() == [[2.0, 2.0], [2.0, 2.0], [2.0, 0.0], [0.0, 0.0]]
    with pytest.raises(triton.LaunchError, match="out_shape has 3"):
        tilewright.jax.call(x, kernel=scale_kernel, out_shape=3, grid=(1,))
    with pytest.raises(triton.LaunchError, match="factor is an array of JAX"):
        tilewright.jax.call(x, 8, kernel=scale_kernel, out_shape=shape, grid=(1,), factor=x)


def test_launches_read_arrays_of_jax_and_never_write_them(jax: Any) -> None:
    for dtype in ("float32", "bfloat16"):
        x = jax.numpy.ones(8, dtype)
        out = np.zeros(8, np.float32)
        scale_kernel[(1,)](x, 8, 2.0, out, BLOCK=8)
        assert (out == 2).all()
        with pytest.raises(triton.LaunchError, match="out_ptr is written by scale_kernel, but the array is read-only"):
            scale_kernel[(1,)](x, 8, 2.0, x, BLOCK=8)

    def direct(x: Any) -> Any:
        scale_kernel[(1,)](x, 8, 2.0, np.zeros(8, np.float32), BLOCK=8)

    with pytest.raises(triton.LaunchError, match=r"x_ptr is a tracer of JAX .* launch with tilewright\.jax\.call"):
        jax.jit(direct)(jax.numpy.ones(8))


@triton.jit
def mismatched_kernel(x_ptr, n, factor, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK) + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


@triton.jit
def in_place_kernel(x_ptr, n, factor, out_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), factor)


@pytest.mark.parametrize("mode", ["", "interpret"])
def test_errors_are_the_users_own(jax: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They come while JAX traces: of what a callback raises JAX makes an error of its own."""
    import tilewright.jax

    if mode:
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (scale_kernel, {}, "missing a required argument: 'BLOCK'"),
        (scale_kernel, {"BLOCK": 8, "BLOKC": 8}, "BLOKC was specified but unrecognised"),
        (scale_kernel, {"BLOCK": 8, "grid": (1, 2, 3, 4)}, "the grid must be one to three"),
    ]
    if not mode:  # the interpreter sees a kernel only when it runs
        cases += [
            (mismatched_kernel, {"BLOCK": 8}, r"test_jax\.py:\d+:9: ShapeError"),
            (in_place_kernel, {"BLOCK": 8}, "x_ptr is written by in_place_kernel"),
        ]

    def run(x: Any, factor: Any) -> Any:
        return tilewright.jax.call(x, 8, factor, kernel=kernel, out_shape=x, **{"grid": (1,), **options})

    cases.append(
        (scale_kernel.fn, {"BLOCK": 8}, r"the function scale_kernel, defined at .*test_jax.py:\d+, .*write @triton")
    )
    for kernel, options, said in cases:
        for called in (run, jax.jit(run), jax.vmap(run, (0, None))):
            with pytest.raises(triton.TilewrightError, match=said):
                called(jax.numpy.ones((2, 8)), 2.0)


def test_an_integer_that_is_only_known_later(jax: Any) -> None:
    """The kernel is right for 1 alone, so nothing is said before the number is known."""
    import tilewright.jax

    @triton.jit
    def counted(n, out_ptr):
        tl.store(out_ptr + tl.arange(0, n), 1.0)

    out = jax.ShapeDtypeStruct((1,), "float32")
    run = jax.jit(lambda n: tilewright.jax.call(n, kernel=counted, out_shape=out, grid=(1,)))
    assert run(1).tolist() == [1.0]
    with pytest.raises((RuntimeError, ValueError), match="NotConstexprError"):  # whichever JAX makes of it
        run(2).tolist()
