"""What users may name, and which types functions take: cases that programs in the wild have met."""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.diagnostics import KernelFaultError


@triton.jit
def swap_kernel(x_ptr, old_ptr, expected: tl.constexpr, value: tl.constexpr):
    i = tl.arange(0, 8)
    dtype = x_ptr.dtype.element_ty
    wanted, new = tl.full((8,), expected, tl.float32).to(dtype), tl.full((8,), value, tl.float32).to(dtype)
    tl.store(old_ptr + i, tl.atomic_cas(x_ptr + i, wanted, new))


@pytest.mark.parametrize(
    "dtype", ["int16", "uint16", "int32", "uint64", "float16", ml_dtypes.bfloat16, "float32", "float64"]
)
def test_compare_and_swap_goes_by_the_bits(run_everywhere: Any, dtype: Any) -> None:
    x = np.array([3, 0, 3, 5, 7, 3, 1, 2]).astype(dtype)
    new, old = run_everywhere(swap_kernel, (1,), x, np.zeros(8, dtype), 3.0, 9.0)
    np.testing.assert_array_equal(old, x)
    np.testing.assert_array_equal(new, np.where(x == 3, np.array(9).astype(dtype), x))


def test_zeros_of_two_signs_are_not_swapped(run_everywhere: Any) -> None:
    x = np.array([0.0, -0.0] * 4, np.float32)
    new, _ = run_everywhere(swap_kernel, (1,), x, np.zeros(8, np.float32), 0.0, 9.0)
    assert new.tolist() == [9.0, 0.0] * 4


@triton.jit
def swap_all_kernel(i16, u16, f16, b16, i64, f32, f64):
    tl.atomic_cas(i16, 1, 2)
    tl.atomic_cas(u16, 1, 2)
    tl.atomic_cas(f16, 1.0, 2.0)
    tl.atomic_cas(b16, 1.0, 2.0)
    tl.atomic_cas(i64, 1, 2)
    tl.atomic_cas(f32, 1.0, 2.0)
    tl.store(f64, tl.atomic_cas(f64, 1.0, 2.0))
    tl.atomic_xchg(f64, 1.0)


def test_swaps_of_all_types_compile() -> None:
    from tilewright.runtime.building import nvrtc

    nvrtc.compile_text(swap_all_kernel.translate("*i16, *u16, *fp16, *bf16, *i64, *fp32, *fp64"))


@triton.jit
def builtin_names_kernel(out_ptr, type, str: tl.constexpr, dict, tuple: tl.constexpr = 3):
    tl.store(out_ptr + tl.arange(0, 4), tl.arange(0, 4) * type + dict + tuple if str == "sum" else 0)


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_parameters_may_have_the_names_of_pythons_own_functions(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    out = np.zeros(4, np.int32)
    for _ in range(2):
        builtin_names_kernel[(1,)](out, 2, "sum", 5)
    assert out.tolist() == [8, 10, 12, 14]


@triton.jit
def without_parameters_kernel():
    tl.static_assert(tl.num_programs(0).dtype == tl.int32)


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_a_kernel_needs_no_parameters(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    without_parameters_kernel[(2,)]()
    without_parameters_kernel[(2,)](num_warps=8)


@triton.jit
def many_batches_kernel(a_ptr, b_ptr, out_ptr):
    i = tl.arange(0, 1024)
    a = tl.trans(tl.load(a_ptr + i).reshape([2, 2, 16, 16]))
    b = tl.load(b_ptr + i).reshape([2, 2, 16, 16])
    tl.store(out_ptr + i, tl.dot(a, b).reshape([1024]))


def test_a_transposed_operand_may_have_several_batch_axes(run_everywhere: Any) -> None:
    a, b = (np.arange(start, start + 1024).reshape(4, 16, 16).astype(np.float16) % 7 for start in (0, 3))
    *_, out = run_everywhere(many_batches_kernel, (1,), a, b, np.zeros((4, 16, 16), np.float32))
    np.testing.assert_array_equal(out, a.swapaxes(1, 2).astype(np.float32) @ b.astype(np.float32))


@triton.jit
def checked_sum(a, b):
    tl.device_assert(a + b < 1000, "the sum is large")
    return a + b


@triton.jit
def checked_reduction_kernel(x_ptr, out_ptr):
    tl.store(out_ptr, tl.reduce(tl.load(x_ptr + tl.arange(0, 256)), 0, checked_sum))


def test_a_combination_may_assert(run_everywhere: Any) -> None:
    _, out = run_everywhere(checked_reduction_kernel, (1,), np.ones(256, np.int32), np.zeros(1, np.int32), debug=True)
    assert out[0] == 256
    from tilewright.runtime.building import nvrtc

    nvrtc.compile_text(checked_reduction_kernel.translate("*i32:16, *i32:16", debug=True))


@triton.jit
def idle_kernel(x_ptr, n):
    pid = tl.program_id(0)
    tl.static_assert(pid.dtype == tl.int32)


def test_a_kernel_that_does_nothing_compiles_without_a_warning() -> None:
    from tilewright.runtime.building import nvrtc

    artifact = idle_kernel.translate("*i32:16, i32")
    assert "tid" not in artifact.source and "warning" not in nvrtc.compile_text(artifact).log


@triton.jit
def single_elements_kernel(x_ptr, out_ptr):
    one = tl.load(x_ptr + tl.arange(0, 1))
    small = tl.load(x_ptr + tl.arange(0, 2)[:, None] + tl.arange(0, 1)[None, :])
    if one == 5:
        tl.store(out_ptr, one.item() + 1)
    if tl.sum(small, axis=0, keep_dims=True) > 100:
        tl.store(out_ptr + 1, 1)
    tl.store(out_ptr + 2, tl.full((1, 1), 7, tl.int32).item())
    tl.store(out_ptr + 3, tl.load(x_ptr).item())


def test_a_tile_of_one_element_is_a_condition_and_has_an_item(run_everywhere: Any) -> None:
    _, out = run_everywhere(single_elements_kernel, (1,), np.array([5, 6], np.int32), np.zeros(4, np.int32))
    assert out.tolist() == [6, 0, 7, 5]


@triton.jit
def lists_and_slices_kernel(out_ptr, n, NAME: tl.constexpr):
    i = tl.arange(0, 4)
    tl.static_assert(i.shape == [4])
    tl.static_assert(i[None, None:].shape == [1, 4])
    tl.static_assert(i[:None, None].shape == [size for size in (4, 1)])
    total = 0
    while tl.condition(total < n, disable_licm=True):
        total += 2
    tl.store(out_ptr + i, getattr(tl, NAME)(i, total, propagate_nan=tl.PropagateNan.ALL))


def test_lists_are_tuples_and_attributes_have_computed_names(run_everywhere: Any) -> None:
    (out,) = run_everywhere(lists_and_slices_kernel, (1,), np.zeros(4, np.int32), 1, "maximum")
    assert out.tolist() == [2, 2, 2, 3]


@triton.jit
def one_bit_sum_kernel(x_ptr, out_ptr):
    x = tl.load(x_ptr + tl.arange(0, 64)[:, None] * 2 + tl.arange(0, 2)[None, :]) > 0
    tl.store(out_ptr + tl.arange(0, 2), tl.sum(x, axis=0, dtype=tl.int1).to(tl.int32))
    tl.store(out_ptr + 2, tl.sum(x, dtype=tl.int1).to(tl.int32))


def test_one_bit_sums_wrap(run_everywhere: Any) -> None:
    x = np.random.default_rng(3).integers(0, 2, (64, 2), dtype=np.int32)
    _, out = run_everywhere(one_bit_sum_kernel, (1,), x, np.zeros(3, np.int32))
    assert out.tolist() == [*(x.sum(axis=0) % 2), x.sum() % 2]


class Closure(NamedTuple):
    """A function and what it takes besides its argument."""

    function: Any
    captured: tuple[Any, ...]


@triton.jit
def times(x, factor):
    return x * factor


@triton.jit
def plus(x, term):
    return x + tl.load(term)


@triton.jit
def apply_kernel(x_ptr, closure, sizes):
    tl.static_assert(sizes[1] == 8)
    i = tl.arange(0, sizes[1])
    x = tl.load(x_ptr + i, mask=i < sizes[0], other=0)
    tl.store(x_ptr + i, closure.function(x, *closure.captured), mask=i < sizes[0])


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_named_tuples_functions_and_constants_are_arguments(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x, term = np.arange(8, dtype=np.int32), np.array([100], np.int32)
    apply_kernel[(1,)](x, Closure(times, (3,)), (7, tl.constexpr(8)))
    assert x.tolist() == [0, 3, 6, 9, 12, 15, 18, 7]
    apply_kernel[(1,)](x, Closure(plus, (term,)), (7, tl.constexpr(8)))
    assert x.tolist() == [100, 103, 106, 109, 112, 115, 118, 7]


def scaled_by(number: int) -> Any:
    factor = tl.constexpr(number)

    @triton.jit
    def scaled(x):
        return x * factor

    return scaled


@triton.jit
def map_kernel(x_ptr, out_ptr, FUNCTION: tl.constexpr):
    tl.store(out_ptr, FUNCTION(tl.load(x_ptr)))


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_functions_of_one_name_are_different_arguments(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x, out = np.array([3], np.int32), np.zeros(1, np.int32)
    for number in (2, 5):
        map_kernel[(1,)](x, out, scaled_by(number))
        assert out[0] == 3 * number


@triton.jit
def classes_kernel(x_ptr, out_ptr):
    pair = tl.tuple([1, 2])
    tl.static_assert(isinstance(pair, tl.tuple) and len(pair + tl.tuple((3,))) == 3)
    tl.static_assert(
        isinstance(x_ptr.dtype, tl.pointer_type) and not isinstance(x_ptr.dtype.element_ty, tl.pointer_type)
    )
    i = tl.arange(0, 4)
    tl.static_assert(isinstance(i.type, tl.block_type) and i.type.element_ty == tl.int32)
    tl.store(out_ptr, (pair == (1, 2)) + tl.load(x_ptr))


def test_classes_of_the_language_are_asked_for_and_made(run_everywhere: Any) -> None:
    _, out = run_everywhere(classes_kernel, (1,), np.array([4], np.int32), np.zeros(1, np.int32))
    assert out[0] == 5


@triton.jit
def extremes_kernel(x_ptr, small_ptr, large_ptr, old_ptr):
    i = tl.arange(0, 64)
    x = tl.load(x_ptr + i)
    tl.atomic_min(small_ptr + i % 4, x)
    tl.store(old_ptr + i, tl.atomic_max(large_ptr + i // 16, x, scope="cta"))


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_extremes_of_16_bit_floats(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.runtime.building import nvrtc

    x = np.random.default_rng(5).standard_normal(64).astype(dtype)
    for mode in ("cpu", "interpret"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        small, large = np.full(4, 9, dtype), np.full(4, -9, dtype)
        extremes_kernel[(1,)](x, small, large, np.zeros(64, dtype))
        np.testing.assert_array_equal(small, x.reshape(16, 4).min(axis=0))
        np.testing.assert_array_equal(large, x.reshape(4, 16).max(axis=1))
    word = "fp16" if dtype == "float16" else "bf16"
    nvrtc.compile_text(extremes_kernel.translate(", ".join([f"*{word}"] * 4)))


@triton.jit
def modules_kernel(out_ptr, N: tl.core.constexpr):
    rank: tl.constexpr = tl.core._log2(N)
    wide = tl.arange(0, N).to(tl.core.get_int_dtype(64, signed=True))
    tl.static_assert(wide.dtype == tl.int64 and isinstance(rank.type, tl.constexpr_type) and tl.core.CONSTEXPR_0 == 0)
    tl.store(out_ptr, tl.standard.sum(wide) + rank)


def test_modules_behind_the_language_are_named(run_everywhere: Any) -> None:
    (out,) = run_everywhere(modules_kernel, (1,), np.zeros(1, np.int64), 8)
    assert out[0] == 31


def test_names_that_users_import() -> None:
    import tilewright.language.core as core
    from tilewright.language.standard import max as largest
    from tilewright.runtime import InterpreterError, TensorWrapper
    from tilewright.runtime.errors import PTXASError
    from tilewright.runtime.jit import reinterpret

    assert core.arange is tl.arange and largest is tl.max and reinterpret is triton.runtime.reinterpret
    assert isinstance(reinterpret(np.zeros(1, np.int8), tl.float8e5), TensorWrapper)
    assert issubclass(PTXASError, InterpreterError) and issubclass(triton.CompilationError, InterpreterError)
    assert tl.str_to_ty("*kfp32").const and tl.str_to_ty("i8") == tl.int8


@triton.jit
def attributes_kernel(x_ptr, count_ptr, n, NAME: tl.constexpr = "dtype"):
    if x_ptr is not None and hasattr(x_ptr, NAME) and getattr(x_ptr, NAME).element_ty == tl.int32:
        old = tl.atomic_add(count_ptr, n)
        tl.static_assert(old.dtype == tl.int32 and not hasattr(old, "nothing") and getattr(old, "nothing", 3) == 3)


def test_attributes_of_run_time_values_and_results_that_nobody_reads(run_everywhere: Any) -> None:
    from tilewright.runtime.building import nvrtc

    _, count = run_everywhere(attributes_kernel, (2,), np.zeros(1, np.int32), np.zeros(1, np.int32), 3)
    assert count[0] == 6
    artifact = attributes_kernel.translate("*i32, *i32, i32, 'dtype'")
    assert "warning" not in nvrtc.compile_text(artifact).log


class Sizes(NamedTuple):
    """Two numbers."""

    rows: int
    columns: int


def same(value: Any) -> Any:
    return value


@triton.jit
def passed_through_kernel(out_ptr):
    tl.store(out_ptr, same(Sizes(3, 4)).columns + same((1, 2))[1])


def test_namedtuples_pass_through_compile_time_functions(run_everywhere: Any) -> None:
    (out,) = run_everywhere(passed_through_kernel, (1,), np.zeros(1, np.int32))
    assert out[0] == 6


@triton.jit
def stepping_kernel(out_ptr, n, step):
    total = 0
    for i in range(0, n, step):
        total += i
    tl.store(out_ptr, total)


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_a_step_of_zero_is_a_fault_with_debug(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    out = np.zeros(1, np.int32)
    stepping_kernel[(1,)](out, 7, 3, debug=True)
    assert out[0] == 9
    with pytest.raises(KernelFaultError, match="step of a range is 0|trapped; test_names_and_types.py"):
        stepping_kernel[(1,)](out, 7, 0, debug=True)


@triton.jit
def doubles_kernel(x_ptr, y_ptr, out_ptr, FACTOR: tl.constexpr, TERM: tl.constexpr, N: tl.constexpr):
    x, y = tl.load(x_ptr), tl.load(y_ptr)
    tl.store(out_ptr, x * FACTOR + float(N))
    tl.store(out_ptr + 1, x % FACTOR)
    tl.store(out_ptr + 2, y * FACTOR)
    tl.store(out_ptr + 3, y + TERM)


def test_compile_time_floats_keep_the_precision_of_doubles(run_everywhere: Any) -> None:
    x, y = np.array([3.0]), np.array([3.0], np.float32)
    *_, out = run_everywhere(doubles_kernel, (1,), x, y, np.zeros(4), 0.1, 0.7, 16777217)
    wanted = [3 * 0.1 + 16777217, np.fmod(3.0, 0.1), float(y[0] * np.float32(0.1)), float(y[0] + np.float32(0.7))]
    assert out.tolist() == wanted
    from tilewright.runtime.building import nvrtc

    nvrtc.compile_text(doubles_kernel.translate("*fp64, *fp32, *fp64, 0.1, 0.7, 16777217"))


@triton.jit
def quotient_kernel(x_ptr, out_ptr, EXACT: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, 4))
    tl.store(out_ptr + tl.arange(0, 4), tl.fdiv(x, 3.0, ieee_rounding=EXACT) + tl.softmax(x, ieee_rounding=EXACT))


@pytest.mark.parametrize("exact", [True, False])
def test_quotients_are_rounded_to_nearest_on_demand(exact: bool) -> None:
    text = quotient_kernel.translate(f"*fp32, *fp32, {exact}").source
    assert text.count("__fdiv_rn(") == 2 * exact and ("divide(" in text) == (not exact)


@triton.jit
def mixed_shift_kernel(x_ptr, n_ptr, out_ptr, wide_ptr):
    i = tl.arange(0, 4)
    shifted = tl.load(x_ptr + i) >> tl.load(n_ptr + i)
    tl.static_assert(shifted.dtype == n_ptr.dtype.element_ty)
    tl.store(out_ptr + i, shifted)
    tl.store(wide_ptr + i, (shifted >> 1).to(tl.float64))


@pytest.mark.parametrize(
    ("signed", "unsigned"), [("int32", "uint32"), ("int8", "uint32"), ("int64", "uint64"), ("int8", "uint8")]
)
def test_signs_are_shifted_in_by_unsigned_counts(run_everywhere: Any, signed: str, unsigned: str) -> None:
    x, n = np.array([-1, -8, 100, -128], signed), np.array([0, 1, 3, 7], unsigned)
    *_, out, wide = run_everywhere(mixed_shift_kernel, (1,), x, n, np.zeros(4, unsigned), np.zeros(4))
    expected = (x.astype(np.int64) >> n.astype(np.int64)).astype(unsigned)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(wide, (expected >> np.ones(4, unsigned)).astype(np.float64))
