"""What programs written for Triton call around their kernels: the driver in use, allocators, handles, options without effect."""

from __future__ import annotations

import importlib.util
import math

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime import driver
from tilewright.runtime.building import nvrtc
from tilewright.runtime.driver import is_available


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, 0))


@pytest.mark.skipif(is_available(), reason="asks about a host without a GPU")
def test_the_active_driver_speaks_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    active = triton.runtime.driver.active
    assert active is driver.active
    target = active.get_current_target()
    assert (target.backend, target.arch, target.warp_size) == ("cpu", 90, 32)
    properties = active.utils.get_device_properties(active.get_current_device())
    assert properties["warpSize"] == 32 and properties["multiprocessor_count"] >= 1
    assert properties["max_shared_mem"] == 227 * 1024 and properties["max_num_regs"] == 65536
    assert active.get_current_stream(0) == 0
    assert active.get_benchmarker() is triton.testing.do_bench
    torch = pytest.importorskip("torch")
    assert active.get_active_torch_device() == torch.device("cpu")
    assert active.get_device_interface() is getattr(torch, target.backend), "libraries look for the module by this name"
    monkeypatch.setattr("tilewright.runtime.active.CACHE_BYTES", 64)
    cache = active.get_empty_cache_for_benchmark()
    cache.fill_(3)
    active.clear_cache(cache)
    assert cache.shape == (16,) and not cache.any()


def test_the_driver_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="has no 'passive'; did you mean triton.runtime.driver.active"):
        _ = driver.passive
    with pytest.raises(AttributeError, match=r"taken out: pass a .*TensorDescriptor to the kernel"):
        _ = driver.active.utils.fill_2d_tma_descriptor
    assert not hasattr(driver.active.utils, "load_binary")


def test_there_is_one_driver() -> None:
    from tilewright.runtime.driver import driver as by_name

    assert by_name.active is driver.default is driver.active
    driver.set_active(driver.active)
    driver.reset_active()
    with pytest.raises(triton.LaunchError, match="one driver, not object"):
        driver.set_active(object())


def test_programs_ask_for_the_version_of_the_language() -> None:
    from tilewright.version import VERSION

    major, minor, *_ = triton.__version__.split(".")
    assert (int(major), int(minor)) == (3, 6) and triton.__version__ >= "3.2.0"
    assert triton.__version__.endswith(f"+tilewright{VERSION}"), "whose build it is, as local versions tell it"
    version = pytest.importorskip("packaging.version")
    assert version.parse(triton.__version__) >= version.parse("3.6.0")


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_a_compiled_kernel_tells_what_it_needs() -> None:
    x, out = np.ones((3, 200), np.float32), np.zeros(3, np.float32)
    compiled = row_sum_kernel.warmup(x, out, 200, BLOCK=256, grid=(1,), num_warps=4)
    compiled._init_handles()
    assert 8 <= compiled.n_regs <= 64 and compiled.n_spills == 0
    assert compiled.metadata.shared == 4 * 4, "one partial sum per warp"
    compiled[(3, 1, 1)](x, out, 200, 256)
    np.testing.assert_array_equal(out, 200)


def test_options_without_effect_are_taken() -> None:
    x, out = np.ones((2, 16), np.float32), np.zeros(2, np.float32)
    for _ in range(2):  # the second launch goes the quick way, where there is one
        row_sum_kernel[(2,)](x, out, 16, BLOCK=16, extern_libs={"libdevice": "libdevice.10.bc"}, warp_size=32)
    np.testing.assert_array_equal(out, 16)


@triton.constexpr_function
def half_of(size):
    return size // 2


@triton.jit
def halves_kernel(out_ptr, N: tl.constexpr):
    half: tl.constexpr = half_of(N)
    tl.store(out_ptr + tl.arange(0, half), tl.full([half], N, tl.float32))


def test_compile_time_functions() -> None:
    assert half_of(6) == 3 and tl.constexpr_function is triton.constexpr_function
    out = np.zeros(16, np.float32)
    halves_kernel[(1,)](out, 16)
    np.testing.assert_array_equal(out, [16] * 8 + [0] * 8)


@triton.jit
def described_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [n], [1], [BLOCK]).load([0])
    tl.store(out_ptr + tl.arange(0, BLOCK), x)


def test_descriptors_need_no_allocator() -> None:
    def refuse(size: int, alignment: int, stream: object) -> None:
        raise AssertionError("nothing is to be allocated")

    triton.set_allocator(refuse)
    x, out = np.arange(20, dtype=np.float32), np.ones(32, np.float32)
    described_kernel[(1,)](x, out, 20, BLOCK=32)
    np.testing.assert_array_equal(out, [*range(20), *[0] * 12])


@triton.jit
def squashed_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    bounded = tl.math.min(tl.math.max(x, tl.libdevice.max(-2, i - 64)), 1.5)
    tl.store(out_ptr + i, tl.math.tanh(bounded) + tl.libdevice.erf(x))


def test_the_device_math_library_where_triton_2_had_it() -> None:
    from tilewright.language.libdevice import erf
    from tilewright.language.math import tanh

    assert (tanh, erf) == (tl.math.tanh, tl.libdevice.erf)
    x, out = np.linspace(-2, 2, 32, dtype=np.float32), np.zeros(32, np.float32)
    squashed_kernel[(1,)](x, out, N=32)
    expected = [math.tanh(min(one, 1.5)) + math.erf(one) for one in x]
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


@triton.jit
def widened_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i).to(tl.float32))


@pytest.mark.parametrize("library", ("numpy", "torch"))
@pytest.mark.parametrize("mode", ("cpu", "interpret"))
def test_reinterpreted_arrays(monkeypatch: pytest.MonkeyPatch, mode: str, library: str) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x, out = np.array([0x38, 0x40, 0xB8, 0x30], np.uint8), np.zeros(4, np.float32)
    given = (x, out)
    if library == "torch":
        torch = pytest.importorskip("torch")
        given = (torch.from_numpy(x), torch.from_numpy(out))
    for _ in range(3):
        widened_kernel[(1,)](triton.reinterpret(given[0], tl.float8e4nv), given[1], N=4)
        np.testing.assert_array_equal(out, [1, 2, -1, 0.5])
        out[...] = 0
    wrapped = triton.reinterpret(given[0], tl.float8e5)
    assert wrapped.dtype == tl.float8e5 and tuple(wrapped.shape) == (4,)
    assert triton.reinterpret(wrapped, given[0].dtype) is given[0]


def test_modules_of_triton_by_their_names() -> None:
    from tilewright.runtime import autotuner, errors

    assert autotuner.Autotuner is triton.Autotuner and autotuner.Config is triton.Config
    assert autotuner.Heuristics is triton.Heuristics and autotuner.autotune is triton.autotune
    assert errors.OutOfResources is triton.OutOfResources is autotuner.OutOfResources
    assert errors.AutotunerError is triton.AutotunerError
    assert triton.compiler.errors.CompilationError is triton.CompilationError
    assert triton.compiler.compiler.GPUTarget is triton.backends.compiler.GPUTarget


@pytest.mark.parametrize("name", ("math", "extra", "extra.libdevice", "extra.cuda", "extra.cuda.libdevice", "core"))
def test_programs_can_ask_whether_there_is_a_module(name: str) -> None:
    found = importlib.util.find_spec(f"tilewright.language.{name}")
    assert found is not None and found.name.startswith("tilewright.language")


def test_what_triton_has_taken_out_names_what_is_there_now() -> None:
    with pytest.raises(AttributeError, match=r"taken out: tensor descriptors are tl.make_tensor_descriptor"):
        _ = tl._experimental_descriptor_load
    with pytest.raises(AttributeError, match=r"tl.extra.cuda has no .*taken out"):
        _ = tl.extra.cuda.experimental_device_tensormap_create2d


def test_peaks_follow_from_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"mem_clock_rate": 3_201_000, "mem_bus_width": 6144, "multiprocessor_count": 132}
    monkeypatch.setattr("tilewright.runtime.active.DeviceUtilities.get_device_properties", lambda self, device: known)
    half, single = np.dtype(np.float16), np.dtype(np.float32)
    assert triton.testing.get_dram_gbps(0) == pytest.approx(4917, rel=1e-3)
    assert triton.testing.get_max_tensorcore_tflops(half, 1_830_000, 0) == pytest.approx(494.7, rel=1e-3)
    assert triton.testing.get_max_simd_tflops(single, 1_830_000, 0) == pytest.approx(30.9, rel=1e-2)
    with pytest.raises(ValueError, match="no peak for float64"):
        triton.testing.get_max_simd_tflops(np.dtype(np.float64), 1_830_000, 0)


def test_a_launch_does_not_choose_its_architecture() -> None:
    x, out = np.ones((1, 64), np.float32), np.zeros(1, np.float32)
    row_sum_kernel[(1,)](x, out, 64, BLOCK=64, arch=None)
    assert out[0] == 64
    with pytest.raises(triton.LaunchError, match="TILEWRIGHT_ARCH does"):
        row_sum_kernel[(1,)](x, out, 64, BLOCK=64, arch="sm_80")
    row_sum_kernel[(1,)](x, out, 64, BLOCK=64, ir_override=None)
    with pytest.raises(triton.LaunchError, match="run a file of its intermediate forms"):
        row_sum_kernel[(1,)](x, out, 64, BLOCK=64, ir_override="kernel.ttgir")
