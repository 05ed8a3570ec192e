"""The language, feature by feature: each kernel runs on the CPU and in the interpreter and must agree with NumPy."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.language.extra import libdevice

RNG = np.random.default_rng(7)


@triton.jit
def binary_kernel(x_ptr, y_ptr, out_ptr, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    if OP == "add":
        z = x + y
    elif OP == "sub":
        z = x - y
    elif OP == "mul":
        z = x * y
    elif OP == "floordiv":
        z = x // y
    elif OP == "mod":
        z = x % y
    elif OP == "and":
        z = x & y
    elif OP == "or":
        z = x | y
    elif OP == "xor":
        z = x ^ y
    elif OP == "shl":
        z = x << (y & 7)
    elif OP == "shr":
        z = x >> (y & 7)
    elif OP == "lt":
        z = x < y
    elif OP == "max":
        z = tl.maximum(x, y)
    else:
        z = tl.minimum(x, y)
    tl.store(out_ptr + i, z, mask=i < n)


@triton.jit
def booleans_kernel(x_ptr, y_ptr, both_ptr, either_ptr, n, POLICY: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=True, eviction_policy=POLICY)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(both_ptr + i, x & y, mask=i < n, eviction_policy=POLICY)
    tl.store(either_ptr + i, x | y)


@pytest.mark.parametrize("policy", ("", "evict_first", "evict_last"))
@pytest.mark.parametrize("n", (1000, 1024))
def test_booleans_are_bytes_in_memory(run_everywhere: Any, policy: str, n: int) -> None:
    """Neighbours are read and written at once, whatever is wished of the cache."""
    x, y = RNG.random((2, n)) < 0.5
    both, either = np.zeros(n + 8, bool), np.zeros(1024, bool)
    arrays = run_everywhere(booleans_kernel, (2,), x, y, both, either, n, POLICY=policy, BLOCK=512)
    both, either = arrays[2:]
    np.testing.assert_array_equal(both[:n], x & y)
    np.testing.assert_array_equal(either[:n], x | y)
    assert not both[n:].any() and either[n:].all()
    text = booleans_kernel.translate(f"*i1:16, *i1:16, *i1:16, *i1:16, i32:16, '{policy}', 512").source
    assert len(re.findall(r" load_bools\w*<VEC>", text)) == len(re.findall(r" store_bools\w*<VEC>", text)) == 2


@triton.jit
def chosen_kernel(flags_ptr, x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    flags = tl.load(flags_ptr + row * BLOCK + i, mask=row < rows, other=True)
    tl.store(out_ptr + row * BLOCK + i, tl.where(flags, tl.load(x_ptr + i), 0.0))


def test_booleans_that_are_not_loaded(run_everywhere: Any) -> None:
    """What is loaded or not stays bytes until after the choice, so that the choice is one for all elements."""
    flags, x = RNG.random((2, 512)) < 0.5, RNG.standard_normal(512).astype(np.float32)
    out = run_everywhere(chosen_kernel, (3,), flags, x, np.zeros((3, 512), np.float32), 2, BLOCK=512)[2]
    np.testing.assert_array_equal(out, np.where(np.vstack([flags, np.ones((1, 512), bool)]), x, 0))
    text = chosen_kernel.translate("*i1:16, *fp32:16, *fp32:16, i32, 512").source
    assert "if (inside) packet = *" in text


INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    "op", ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "shl", "shr", "lt", "max", "min")
)
def test_integer_operators_wrap_and_truncate(run_everywhere: Any, dtype: str, op: str) -> None:
    info = np.iinfo(dtype)
    x = RNG.integers(info.min, info.max, 77, dtype=dtype, endpoint=True)
    y = RNG.integers(info.min, info.max, 77, dtype=dtype, endpoint=True)
    y[y == 0] = 3
    if info.min < 0:
        y[y == -1] = 5  # the one quotient that does not fit is undefined
    out = run_everywhere(binary_kernel, (1,), x, y, np.zeros_like(x), 77, OP=op, BLOCK=128)[2]
    quotient = np.array(
        [abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(x, y, strict=True)]
    )
    with np.errstate(over="ignore"):
        expected = {
            "add": x + y, "sub": x - y, "mul": x * y, "floordiv": quotient, "mod": np.fmod(x, y), "and": x & y, "or": x | y,
            "xor": x ^ y, "shl": x << (y & 7), "shr": x >> (y & 7), "lt": x < y, "max": np.maximum(x, y), "min": np.minimum(x, y),
        }[op]  # fmt: skip
    np.testing.assert_array_equal(out, expected.astype(dtype))


@triton.jit
def float_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=1.0)
    y = tl.load(y_ptr + i, mask=m, other=1.0)
    z = x * y + 0.5
    z = tl.where(x > y, z, -z)
    tl.store(out_ptr + i, z, mask=m)


@pytest.mark.parametrize("dtype", (np.float16, ml_dtypes.bfloat16, np.float32, np.float64))
@pytest.mark.parametrize("n", (1, 5, 128, 333))
def test_float_types(run_everywhere: Any, dtype: Any, n: int) -> None:
    x, y = (RNG.standard_normal(n).astype(dtype) for _ in range(2))
    out = run_everywhere(float_kernel, (triton.cdiv(n, 64),), x, y, np.zeros_like(x), n, BLOCK=64)[2]
    z = (x * y).astype(dtype) + np.asarray(0.5, dtype)
    np.testing.assert_array_equal(out, np.where(x > y, z, -z).astype(dtype))


@triton.jit
def math_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1.0)
    y = tl.exp(x) + tl.log(x) + tl.sqrt(x) + tl.rsqrt(x) + tl.sin(x) + tl.cos(x) + tl.erf(x) + tl.exp2(x) + tl.log2(x)
    y += tl.floor(x) + tl.ceil(x) + tl.abs(-x) + tl.sigmoid(x) + tl.fma(x, x, x) + tl.clamp(x, 0.5, 1.5) + 1 / x
    y += libdevice.tanh(x) + libdevice.pow(x, x) + libdevice.atan2(x, x) + libdevice.cbrt(x) + libdevice.erfinv(x / 10)
    tl.store(out_ptr + i, y, mask=i < n)


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_math(run_everywhere: Any, dtype: Any) -> None:
    x = RNG.uniform(0.1, 3.0, 100).astype(dtype)
    tolerance = 1e-5 if dtype == np.float32 else 1e-9
    run_everywhere(math_kernel, (1,), x, np.zeros_like(x), 100, BLOCK=128, tolerance=tolerance)


@triton.jit
def reduce_kernel(
    x_ptr, out_ptr, index_ptr, stride, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, OP: tl.constexpr
):
    r, c = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + r[:, None] * stride + c[None, :])
    i = tl.arange(0, N) if AXIS == 0 else tl.arange(0, M)
    if OP == "sum":
        tl.store(out_ptr + i, tl.sum(x, axis=AXIS))
    elif OP == "max":
        tl.store(out_ptr + i, tl.max(x, axis=AXIS))
    elif OP == "min":
        tl.store(out_ptr + i, tl.min(x, axis=AXIS))
    else:
        value, index = tl.max(x, axis=AXIS, return_indices=True)
        tl.store(out_ptr + i, value)
        tl.store(index_ptr + i, index)


@pytest.mark.parametrize("shape", ((1, 1), (2, 64), (16, 8), (7, 33), (100, 3), (64, 64)))
@pytest.mark.parametrize("axis", (0, 1))
@pytest.mark.parametrize("op", ("sum", "max", "min", "argmax"))
def test_reductions(run_everywhere: Any, shape: tuple[int, int], axis: int, op: str) -> None:
    m, n = shape
    x = RNG.standard_normal(shape, dtype=np.float32)
    out, index = np.zeros(n if axis == 0 else m, np.float32), np.full(n if axis == 0 else m, -1, np.int32)
    result = run_everywhere(
        reduce_kernel, (1,), x, out, index, n, M=m, N=n, AXIS=axis, OP=op, num_warps=2, tolerance=1e-5
    )  # fmt: skip
    expected = {"sum": x.sum(axis), "max": x.max(axis), "min": x.min(axis), "argmax": x.max(axis)}[op]
    np.testing.assert_allclose(result[1], expected, rtol=1e-5, atol=1e-5)
    if op == "argmax":
        np.testing.assert_array_equal(result[2], x.argmax(axis))


@triton.jit
def whole_kernel(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a, b, c = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    x = tl.load(x_ptr + (a[:, None, None] * B + b[None, :, None]) * C + c[None, None, :])
    tl.store(out_ptr, tl.sum(x))
    tl.store(out_ptr + 1, tl.max(x))
    tl.store(out_ptr + 2, tl.sum(tl.sum(x, axis=1, keep_dims=True)))
    y = tl.sum(x, axis=2)
    tl.store(out_ptr + 3 + a[:, None] * B + b[None, :], y)


@pytest.mark.parametrize("shape", ((2, 4, 8), (3, 5, 7), (1, 16, 32)))
def test_rank_three(run_everywhere: Any, shape: tuple[int, int, int]) -> None:
    x = RNG.standard_normal(shape, dtype=np.float32)
    out = np.zeros(3 + shape[0] * shape[1], np.float32)
    _, out = run_everywhere(whole_kernel, (1,), x, out, A=shape[0], B=shape[1], C=shape[2], tolerance=1e-5)
    np.testing.assert_allclose(out[:3], [x.sum(), x.max(), x.sum()], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(out[3:], x.sum(2).ravel(), rtol=1e-5, atol=1e-5)


@triton.jit
def welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    delta = mean_b - mean_a
    share = n_b / n
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


@triton.jit
def combine_max(a, b):
    return tl.maximum(a, b)


@triton.jit
def custom_reduce_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    mean, m2, count = tl.reduce((x, tl.zeros_like(x), tl.full((N,), 1.0, tl.float32)), 0, welford)
    tl.store(out_ptr, mean)
    tl.store(out_ptr + 1, m2 / count)
    tl.store(out_ptr + 2, tl.reduce(x, 0, combine_max))


@pytest.mark.parametrize("n", (1, 2, 37, 256, 1000))
def test_custom_reduction(run_everywhere: Any, n: int) -> None:
    x = RNG.standard_normal(n, dtype=np.float32)
    _, out = run_everywhere(custom_reduce_kernel, (1,), x, np.zeros(3, np.float32), N=n, tolerance=1e-5)
    np.testing.assert_allclose(out, [x.mean(), x.var(), x.max()], rtol=1e-4, atol=1e-5)


@triton.jit
def zeros_of_all_kinds(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    nowhere = tl.zeros_like(i < 3)
    places = tl.zeros_like(x_ptr + i).to(tl.int64)
    tl.store(out_ptr + i, tl.where(nowhere | (i < 2), 1, tl.zeros_like(i)) + places.to(tl.int32))


def test_zeros_like_tiles_of_conditions_and_pointers(run_everywhere: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")
    _, out = run_everywhere(zeros_of_all_kinds, (1,), np.ones(8, np.float32), np.full(8, 7, np.int32), N=8)
    assert out.tolist() == [1, 1, 0, 0, 0, 0, 0, 0]


@triton.jit
def shape_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    r, c = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + r[:, None] * N + c[None, :])
    t = tl.trans(x) + 1.0
    flat = tl.reshape(t, (M * N,))
    back = tl.reshape(flat, (N, M)).T
    y = back + tl.broadcast_to(tl.sum(x, axis=0)[None, :], (M, N)) * 2.0
    tl.store(out_ptr + r[:, None] * N + c[None, :], y)


@pytest.mark.parametrize("shape", ((8, 16), (32, 4), (2, 64), (64, 64)))
def test_shapes_move_elements(run_everywhere: Any, shape: tuple[int, int]) -> None:
    x = RNG.standard_normal(shape, dtype=np.float32)
    _, out = run_everywhere(shape_kernel, (1,), x, np.zeros_like(x), M=shape[0], N=shape[1], tolerance=1e-5)
    np.testing.assert_allclose(out, x + 1 + 2 * x.sum(0)[None, :], rtol=1e-5, atol=1e-5)


@triton.jit
def transpose_kernel(x_ptr, y_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    r, c = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + r[:, None] * N + c[None, :])
    y = tl.load(y_ptr + c[:, None] * M + r[None, :])
    tl.store(out_ptr + c[:, None] * M + r[None, :], x.T - y)


@pytest.mark.parametrize("shape", ((16, 16), (8, 64), (30, 20)))
def test_layouts_are_converted(run_everywhere: Any, shape: tuple[int, int]) -> None:
    x = RNG.standard_normal(shape, dtype=np.float32)
    y = RNG.standard_normal(shape[::-1], dtype=np.float32)
    _, _, out = run_everywhere(transpose_kernel, (1,), x, y, np.zeros_like(y), M=shape[0], N=shape[1])
    np.testing.assert_array_equal(out, x.T - y)


@triton.jit
def control_kernel(x_ptr, out_ptr, n, limit):
    pid = tl.program_id(0)
    if pid >= n:
        return
    total = 0.0
    i = 0
    while i < pid and total < limit:
        total += tl.load(x_ptr + i)
        i += 1
    for k in range(pid, 0, -1):
        total = total * 0.5 + k
    if pid % 2 == 0:
        scale = 2.0
    else:
        scale = 3.0
    for j in tl.static_range(3):
        total += j * scale
    value = total if pid > 2 else -total
    tl.store(out_ptr + pid, value)


def test_control_flow(run_everywhere: Any) -> None:
    x = RNG.uniform(0, 1, 8).astype(np.float32)
    _, out = run_everywhere(control_kernel, (10,), x, np.zeros(10, np.float32), 8, 2.5, tolerance=1e-6)
    expected = np.zeros(10, np.float32)
    for pid in range(8):
        total, i = np.float32(0), 0
        while i < pid and total < 2.5:
            total += x[i]
            i += 1
        for k in range(pid, 0, -1):
            total = total * 0.5 + k
        total += 3 * (2.0 if pid % 2 == 0 else 3.0)
        expected[pid] = total if pid > 2 else -total
    np.testing.assert_allclose(out, expected, rtol=1e-5)


@triton.jit
def scaled(x, factor):
    if factor > 1.0:
        return x * factor
    return x


@triton.jit
def row_max(x, mask):
    hidden = tl.where(mask, x, -float("inf"))
    return tl.max(hidden, axis=0), hidden


@triton.jit
def nested_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    largest, hidden = row_max(x, mask)
    y = scaled(hidden - largest, factor)
    tl.store(out_ptr + i, y, mask=mask)


@pytest.mark.parametrize("factor", (0.5, 2.0))
def test_nested_functions(run_everywhere: Any, factor: float) -> None:
    x = RNG.standard_normal(50, dtype=np.float32)
    _, out = run_everywhere(nested_kernel, (1,), x, np.zeros_like(x), 50, factor, BLOCK=64)
    np.testing.assert_allclose(out, (x - x.max()) * max(factor, 1.0), rtol=1e-6)


@triton.jit
def tuple_kernel(xs, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(xs[0] + i), tl.load(xs[1] + i)
    a, b = b, a
    tl.static_assert(len(xs) == 2)
    tl.store(out_ptr + i, a * 10 + b)


def test_tuples(run_everywhere: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, out = np.arange(8, dtype=np.int32), np.arange(8, dtype=np.int32) + 1, np.zeros(8, np.int32)
    for mode in ("cpu", "interpret"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        tuple_kernel[(1,)]((x, y), out, BLOCK=8)
        np.testing.assert_array_equal(out, y * 10 + x)
        out[:] = 0


@triton.jit
def pointer_loop_kernel(x_ptr, out_ptr, n_steps, BLOCK: tl.constexpr):
    pointers = x_ptr + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for _ in range(n_steps):
        total += tl.load(pointers)
        pointers += BLOCK
    x_ptr += 1
    tl.store(out_ptr + tl.arange(0, BLOCK), total + tl.load(x_ptr))


def test_pointers_move_in_loops(run_everywhere: Any) -> None:
    x = RNG.standard_normal((5, 64), dtype=np.float32)
    _, out = run_everywhere(pointer_loop_kernel, (1,), x, np.zeros(64, np.float32), 5, BLOCK=64, tolerance=1e-6)
    np.testing.assert_allclose(out, x.sum(0) + x[0, 1], rtol=1e-5, atol=1e-6)


@triton.jit
def print_kernel(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.device_print("x", tl.load(x_ptr + i))
    tl.device_print("scalar", tl.load(x_ptr + 5))
    tl.device_print("", i)
    tl.device_print("both ", i, i)


def test_device_print_has_tritons_format(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = []
    for mode in ("cpu", "interpret"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        print_kernel[(1,)](np.arange(16, dtype=np.int32), BLOCK=16)
        outputs.append(sorted(capfd.readouterr().out.splitlines()))
    assert outputs[0] == outputs[1]
    for line in ("idx ( 7) x: 7", "idx ( 9): 9", "idx ( 9) both: (operand 1) 9"):
        assert outputs[0].count(f"pid (0, 0, 0) {line}") == 1
    assert outputs[0].count("pid (0, 0, 0) idx () scalar: 5") == 128  # as in Triton, every thread prints it
