"""What tests of public kernels import from Triton: `triton.tools.mxfp`, `triton._internal_testing`; and names that are absent."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import _internal_testing as helpers
from tilewright.language.targets import GPUTarget


@pytest.mark.parametrize(
    ("module", "name", "said"),
    (
        ("runtime.cache", "FileCacheManager", "TILEWRIGHT_CACHE_DIR"),
        ("runtime.cache", "default_cache_dir", r"triton\.knobs\.cache\.dir"),
        ("runtime", "RemoteCacheBackend", "TILEWRIGHT_CACHE_DIR"),
        ("runtime.driver", "set_activ", r"did you mean triton\.runtime\.driver\.set_active\?"),
        ("compiler", "IRSource", r"kernel\.translate"),
        ("language", "cumsum", "is not supported yet; sum up to each element"),
        ("language.math", "cumsum", "is not supported yet"),
        ("_internal_testing", "is_cude", r"did you mean triton\._internal_testing\.is_cuda\?"),
    ),
)
def test_an_import_of_what_is_absent_says_what_there_is(module: str, name: str, said: str) -> None:
    with pytest.raises(ImportError, match=f"has no '{name}'.*{said}|{name} {said}"):
        exec(f"from tilewright.{module} import {name}", {})
    with pytest.raises(AttributeError, match=said):
        eval(f"module.{name}", {"module": sys.modules[f"tilewright.{module}"]})
    assert not hasattr(sys.modules[f"tilewright.{module}"], name)


def test_numbers_of_four_bits() -> None:
    torch = pytest.importorskip("torch")
    from tilewright.tools.mxfp import MXFP4Tensor

    every = MXFP4Tensor(size=16)
    every.data = torch.arange(16, dtype=torch.uint8)
    values = every.to(torch.float32)
    assert values[:8].tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6] and values[9:].tolist() == (-values[1:8]).tolist()
    assert math.copysign(1, values[8]) == -1
    assert MXFP4Tensor(data=values).data.tolist() == every.data.tolist()
    between = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 5.1, -0.26, 1e9, math.inf, -math.inf, math.nan])
    assert MXFP4Tensor(data=between).to(torch.float32).tolist() == [0, 1, 1, 2, 2, 4, 4, 6, -0.5, 6, 6, -6, 6]
    torch.manual_seed(0)
    for shape, dim in (((4, 6), 0), ((4, 6), 1), ((3, 5), 0), ((3, 5, 7), 1)):
        one = MXFP4Tensor(size=shape).random()
        packed = one.to_packed_tensor(dim)
        assert packed.shape[dim] == (shape[dim] + 1) // 2
        first = packed.select(dim, 0)
        assert torch.equal(first & 15, one.data.select(dim, 0)) and torch.equal(first >> 4, one.data.select(dim, 1))
        assert torch.equal(one.unpack_packed_tensor(packed, dim, shape), one.data)
    with pytest.raises(triton.TilewrightError, match="dim is 2; it must be from 0 to 1"):
        MXFP4Tensor(size=(2, 2)).random().to_packed_tensor(2)
    with pytest.raises(triton.TilewrightError, match="takes data, a tensor of floats, or a size"):
        MXFP4Tensor()
    with pytest.raises(triton.TilewrightError, match="must be a tensor of floats, not list"):
        MXFP4Tensor(data=[1.0])


def test_scales_are_powers_of_two() -> None:
    torch = pytest.importorskip("torch")
    from tilewright.tools.mxfp import MXScaleTensor

    values = torch.tensor([1.0, 1.99, 2.0, 0.5, 3e38, 2**-126, 2**-149, 0.0, -1.0, math.inf, math.nan])
    assert MXScaleTensor(data=values).data.tolist() == [127, 127, 128, 126, 254, 1, 0, 255, 255, 255, 255]
    every = MXScaleTensor(size=256)
    every.data = torch.arange(256, dtype=torch.uint8)
    floats = every.to(torch.float32)
    assert floats[:255].tolist() == [2.0 ** (one - 127) for one in range(255)] and math.isnan(floats[255])
    drawn = MXScaleTensor(size=(1000,)).random(low=1 / 128, high=3.0).data
    assert (int(drawn.min()), int(drawn.max())) == (120, 128)
    with pytest.raises(triton.TilewrightError, match="low not above high"):
        MXScaleTensor(size=(1,)).random(low=4, high=1)


@triton.jit
def scaled_kernel(a_ptr, scale_ptr, b_ptr, out_ptr, N: tl.constexpr, K: tl.constexpr):
    i, k, packed, group = tl.arange(0, N), tl.arange(0, K), tl.arange(0, K // 2), tl.arange(0, K // 32)
    a = tl.load(a_ptr + i[:, None] * (K // 2) + packed[None, :])
    scale = tl.load(scale_ptr + i[:, None] * (K // 32) + group[None, :])
    b = tl.load(b_ptr + k[:, None] * N + i[None, :])
    tl.store(out_ptr + i[:, None] * N + i[None, :], tl.dot_scaled(a, scale, "e2m1", b, None, "bf16"))


def test_a_scaled_product_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from tilewright.tools.mxfp import MXFP4Tensor, MXScaleTensor

    torch.manual_seed(1)
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    a, scale = MXFP4Tensor(size=(32, 64)).random(), MXScaleTensor(size=(32, 2)).random(0.25, 4.0)
    b, out = torch.randn(64, 32).bfloat16(), torch.zeros(32, 32)
    scaled_kernel[(1,)](a.to_packed_tensor(1), scale.data, b, out, N=32, K=64)
    whole = a.to(torch.float32) * scale.to(torch.float32).repeat_interleave(32, 1)
    torch.testing.assert_close(out, whole @ b.float(), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("arch", "backend"), ((80, "cuda"), (90, "cuda"), (100, "cuda"), (120, "cuda"), (90, "cpu")))
def test_which_gpu_there_is(arch: int, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target = GPUTarget(backend, arch, 32)
    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
    monkeypatch.setattr(type(triton.runtime.driver.active), "get_current_target", lambda self: target)
    names = "cuda ampere_or_newer hopper hopper_or_newer blackwell sm12x hip hip_cdna3 xpu interpreter".split()
    found = {name for name in names if getattr(helpers, f"is_{name}")()}
    newest = {80: set(), 90: {"hopper", "hopper_or_newer"}, 100: {"blackwell", "hopper_or_newer"}}
    newest[120] = {"sm12x", "hopper_or_newer"}
    assert found == ({"cuda", "ampere_or_newer"} | newest[arch] if backend == "cuda" else set())
    assert helpers.get_arch() == str(arch)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert helpers.is_interpreter() and not helpers.is_cuda() and helpers.get_current_target() is None


@pytest.mark.parametrize("name", [*helpers.dtypes_with_bfloat16, "bool", "float8e5"])
def test_arrays_go_to_tensors_and_back(name: str) -> None:
    pytest.importorskip("torch")
    x = helpers.numpy_random((5, 7), name)
    assert np.array_equal(x, helpers.numpy_random((5, 7), name)) and x.shape == (5, 7)
    tensor = helpers.to_triton(x, "cpu", dst_type=name)
    assert helpers.unwrap_tensor(tensor).shape == (5, 7)
    if "float8" not in name:
        assert np.array_equal(helpers.to_numpy(tensor), x)
    if name in helpers.dtypes:
        assert x.dtype == name and helpers.torch_dtype_name(helpers.str_to_triton_dtype(name)) == name
    if name in helpers.integral_dtypes:
        assert (x != 0).all() and np.ptp(helpers.numpy_random(99, name, low=3, high=9)) < 6


def test_what_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(triton.TilewrightError, match="no random numbers of the type 'int7'"):
        helpers.numpy_random(3, "int7")
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "tilewright.tools.mxfp", raising=False)
    with pytest.raises(ImportError, match="pip install torch"):
        import tilewright.tools.mxfp  # noqa: F401


def test_they_are_found_by_the_names_of_triton() -> None:
    names = "triton.tools.mxfp.MXFP4Tensor; triton._internal_testing.is_cuda"
    code = f"import tilewright as triton; {names}; from tilewright._internal_testing import requires_tma"
    pytest.importorskip("torch")
    subprocess.run([sys.executable, "-c", code], check=True)
