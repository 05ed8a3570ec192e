"""Names, kinds of errors and warnings that programs written for Triton ask for, beside what kernels compute."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors
from tilewright.tools.tensor_descriptor import TensorDescriptor

MODES = ("cpu", "interpret")


def test_types_have_names_and_lists_of_names() -> None:
    assert [t.name for t in (tl.int1, tl.int32, tl.uint8, tl.float32, tl.bfloat16, tl.float8e5)] == [
        "int1", "int32", "uint8", "fp32", "bf16", "fp8e5",
    ]  # fmt: skip
    integers = [tl.dtype(name) for name in tl.dtype.SINT_TYPES + tl.dtype.UINT_TYPES]
    assert tl.int1 in integers and tl.uint64 in integers and all(one.is_int() for one in integers)
    floats = [tl.dtype(name) for name in tl.dtype.STANDARD_FP_TYPES]
    assert floats == [tl.float16, tl.bfloat16, tl.float32, tl.float64] and {*tl.dtype.OTHER_TYPES} == {"void"}
    assert {*tl.dtype.STANDARD_FP_TYPES} < {*tl.dtype.FP_TYPES}


@triton.must_use_result("It changes nothing.")
@triton.jit
def cube(x):
    return x * x * x


@triton.jit
def cube_kernel(x_ptr, UNUSED: tl.constexpr):
    x = tl.load(x_ptr)
    if UNUSED:
        cube(x)
    x = cube(x)
    tl.store(x_ptr, x)


@triton.jit
def advance_kernel(x_ptr):
    p = tl.make_block_ptr(x_ptr, (8,), (1,), (0,), (8,), (0,))
    p.advance((8,))


@pytest.mark.parametrize("mode", MODES)
def test_results_that_must_be_used(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x = np.array([3.0], np.float32)
    cube_kernel[(1,)](x, UNUSED=False)
    assert x[0] == 27
    with pytest.raises(errors.ArgumentError, match="result of cube is not being used. It changes nothing."):
        cube_kernel[(1,)](x, UNUSED=True)
    with pytest.raises(errors.ArgumentError, match="gives another block pointer"):
        advance_kernel[(1,)](np.zeros(8, np.float32))


@triton.jit
def extremum_kernel(out_ptr, A: tl.constexpr, B: tl.constexpr):
    tl.store(out_ptr, min(A, B) + max(A, B))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("b", (float("nan"), -0.0))
def test_extrema_of_compile_time_values_have_an_order(mode: str, b: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    out = np.zeros(1, np.float32)
    extremum_kernel[(1,)](out, 1.0, 3.0)
    assert out[0] == 4
    with pytest.raises(errors.ArgumentError, match="min and max of compile-time values"):
        extremum_kernel[(1,)](out, 1.0, b)


@triton.jit
def where_kernel(out_ptr):
    i = tl.arange(0, 8)
    tl.store(out_ptr + i, tl.where(i & 1, 1.0, 2.0))


@pytest.mark.parametrize("mode", MODES)
def test_conditions_that_are_numbers_warn(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    out = np.zeros(8, np.float32)
    with pytest.warns(UserWarning, match="condition of tl.where is of type i32") as caught:
        where_kernel[(1,)](out)
    first = where_kernel.fn.__code__.co_firstlineno
    assert {(Path(one.filename).name, one.lineno) for one in caught} == {("test_names_of_triton.py", first + 3)}
    assert out.tolist() == [2, 1] * 4


def test_errors_are_of_the_kinds_that_programs_catch() -> None:
    out = np.zeros(1, np.float32)
    with pytest.raises(AssertionError, match="num_warps must be a power of 2"):
        extremum_kernel[(1,)](out, 1.0, 2.0, num_warps=3)
    with pytest.raises(AssertionError, match="strides must be 16-byte aligned"):
        TensorDescriptor(np.zeros((8, 7), np.float32), [8, 7], [7, 1], [8, 4])
    assert issubclass(triton.compiler.errors.CompileTimeAssertionFailure, triton.CompilationError)
    with pytest.raises(OverflowError, match="does not fit in 64 bits"):
        where_kernel[(1,)](2**64)
    with pytest.raises(triton.CompilationError) as caught:
        where_kernel[(1,)](7)
    assert caught.value.error_message == caught.value.cause
    with pytest.raises(RuntimeError, match=r"write extremum_kernel\[grid\]"):
        extremum_kernel(out, 1.0, 2.0)
    scope: dict[str, Any] = {}
    exec("def typed_in(x_ptr): pass", scope)
    with pytest.raises(ValueError, match="must be defined in a file"):
        triton.jit(scope["typed_in"])
    with pytest.raises(TypeError, match="@jit has no option specialize"):
        triton.jit(specialize=False)


@triton.jit
def colon_kernel(x_ptr, out_ptr):
    offs = tl.arange(0, 8)
    total = tl.max(tl.load(x_ptr + offs))
    tl.store(out_ptr[None, None, :] + tl.arange(0, 1)[:, None], total[None, :][:, None])
    rows = tl.zeros([2, 4], tl.float32) + total[:, None]  # a row's maximum, where there is one row
    tl.store(out_ptr + 1 + offs, tl.reshape(rows * total[:, :, None], [8]))


@pytest.mark.parametrize("mode", MODES)
def test_a_scalar_may_be_indexed_by_colons(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x, out = np.arange(8, dtype=np.float32), np.zeros(9, np.float32)
    colon_kernel[(1,)](x, out)
    assert out.tolist() == [7] + [49] * 8


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("triton.aggregate", "not supported yet"),
        ("triton.cdvi", "did you mean triton.cdiv"),
        ("tl.math.sigmoid", "tl.math has no 'sigmoid'; it is tl.sigmoid"),
        ("triton.testing.set_gpu_clock", "nvidia-smi"),
        ("triton.testing.do_bnech", "did you mean triton.testing.do_bench"),
        ("triton.compiler.IRSource", "no Triton IR"),
        ("triton.runtime.RemoteCacheBackend", "TILEWRIGHT_CACHE_DIR"),
        ("triton.runtime.driver.active.launcher_cls", "launch with kernel"),
        ("launched.packed_metadata", "see metadata"),
        ("launched.metdata", "did you mean CompiledKernel.metadata"),
    ],
)
def test_names_that_there_are_not(asked: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    launched = extremum_kernel.warmup(tl.float32, 1.0, 2.0, grid=(1,))
    with pytest.raises(AttributeError, match=said):
        eval(asked, {**globals(), "launched": launched})
    assert issubclass(triton.OutOfResources, triton.TritonError) and triton.InterpreterError is triton.TritonError


def test_names_in_place_of_absent_ones_exist() -> None:
    """What is told to be in the place of a name is no other one that there is not, and what is absent is."""
    from tilewright.absent import INSTEAD

    for path, text in INSTEAD.items():
        owner, _, name = path.rpartition(".")
        known = dir(triton.CompiledKernel) if owner == "CompiledKernel" else dir(eval(owner))
        assert name not in known
        for told in re.findall(r"triton(?:\.\w+)+", text):
            eval(told)


FACTOR = tl.constexpr(3)


@triton.jit
def plus(self, grid):
    return self + grid


@triton.jit
def named_self(self, x):
    tl.store(self, plus(self=x, grid=FACTOR.value))


@pytest.mark.parametrize("mode", MODES)
def test_a_parameter_may_be_called_self(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    for launch in (named_self[(1,)], lambda **given: named_self.run(grid=(1,), **given)):
        out = np.zeros(1, np.int32)
        named_self.warmup(self=out, x=4)
        for _ in range(2):
            launch(self=out, x=4)
        assert out[0] == 7


def test_what_tools_ask_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    assert named_self.module == __name__ and named_self.hash == named_self.cache_key
    assert [one.name for one in named_self.parse().body] == ["named_self"]
    named_self.forget()
    assert not named_self.used_global_vals
    named_self.warmup(np.zeros(1, np.int32), 4)
    assert named_self.used_global_vals == {("FACTOR", id(globals())): (3, globals())}
