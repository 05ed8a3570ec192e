"""Arguments of launches: what is specialised, which arrays are taken, where kernels run."""

from __future__ import annotations

import math
import multiprocessing
import os
import struct
import threading
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import ConstantArgument
from tilewright.diagnostics import ArgumentKindError
from tilewright.runtime.arguments.specialise import specialise
from tilewright.runtime.building import nvrtc
from tilewright.runtime.cpu.run import pack
from tilewright.runtime.forks import ENGINE
from tilewright.runtime.interpreted import prepare


@triton.jit
def kernel(x_ptr, n, scale, BLOCK: tl.constexpr = 64):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(x_ptr + i, x * scale, mask=i < n)


def key(*args: Any) -> Any:
    names = ("x_ptr", "n", "scale", "BLOCK")
    return specialise(kernel, dict(zip(names, (*args, 64), strict=True))).key


def test_values_share_a_specialisation_as_in_triton() -> None:
    x = np.zeros(80, np.float32)
    assert key(x, 5, 2.0) == key(x, 7, 3.5) != key(x, 16, 2.0) == key(x, 32, 2.0)
    assert key(x, 1, 2.0) not in (key(x, 5, 2.0), key(x, 16, 2.0))
    assert key(x, 2**31, 2.0) not in (key(x, 16, 2.0), key(x, 2**63, 2.0))
    assert key(x, 5, 2.0) != key(x.astype(np.float16), 5, 2.0)
    offset = 1 + (-x.ctypes.data // 4) % 4
    assert key(x[offset:], 5, 2.0) != key(x[offset + 3 :], 5, 2.0)


def test_an_integer_equal_to_one_is_folded() -> None:
    call = specialise(kernel, {"x_ptr": np.zeros(8, np.float32), "n": 1, "scale": 1.0, "BLOCK": 8})
    assert isinstance(call.arguments[1], ConstantArgument) and len(call.values) == 2


@triton.jit
def annotated(out_ptr, whole: tl.int8, half: tl.bfloat16, flag: tl.int1, wide: tl.float64):
    tl.store(out_ptr, whole + half + flag + wide)


def test_scalars_of_other_libraries_are_numbers() -> None:
    x = np.zeros(8, np.float32)
    for scalar in (np.longdouble(1.5), ml_dtypes.bfloat16(1.5), ml_dtypes.float8_e5m2(1.5), np.float16(1.5)):
        call = specialise(kernel, {"x_ptr": x, "n": 5, "scale": scalar, "BLOCK": 8})
        assert call.values[2] == 1.5 and type(call.values[2]) is float and call.key == key(x, 5, 2.0)[:3] + call.key[3:]
    for scalar, words in ((np.complex64(1), "complex64"), (np.datetime64("2020"), "datetime64"), (np.str_("a"), "'a'")):
        with pytest.raises(ArgumentKindError, match=words):
            key(x, scalar, 2.0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((200, 1.01171875, 0.5, 3), (-56, 1.015625, 1, 3.0)),
        ((2**70 - 1, 10**400, 0, -(10**400)), (-1, math.inf, 0, -math.inf)),
    ],
)
def test_numbers_get_the_type_of_an_annotation_in_every_mode(
    values: tuple[Any, ...], expected: tuple[Any, ...]
) -> None:
    out = np.zeros(1)
    bound = dict(zip(annotated.arg_names, (out, *values), strict=True))
    interpreted = [prepare(annotated, bound)[0][name].values.item() for name in annotated.arg_names[1:]]
    packed = struct.pack("<4Q", *pack(annotated.translate("*fp64:16, i8, bf16, i1, fp64"), (0, *values))[1:])
    whole, bits, flag, wide = struct.unpack("<b7xH6x?7xd", packed)
    (half,) = struct.unpack("<f", struct.pack("<I", bits << 16))
    assert [float(one) for one in interpreted] == [whole, half, flag, wide] == list(expected)


def test_torch_tensors_run_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x = torch.arange(40, dtype=dtype)
        kernel[(1,)](x, 40, 2.0)
        assert torch.equal(x, torch.arange(40, dtype=dtype) * 2)


def test_grids_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    x = np.ones(64, np.float32)
    kernel[lambda meta: (meta["BLOCK"] // 64,)](x, 64, 2.0, BLOCK=64, num_warps=1)
    kernel[1,](x, 64, 2.0)
    assert (x == 4).all()
    kernel[(0,)](x, 64, 2.0)
    assert (x == 4).all()
    compiled = kernel.warmup(x, 64, 2.0)
    assert compiled is not None and "kernel(float* x_ptr" in compiled.source and (x == 4).all()


FACTOR = 3


@triton.jit
def global_kernel(x_ptr):
    tl.store(x_ptr, FACTOR)


def test_a_changed_global_is_not_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    x = np.zeros(1, np.float32)
    global_kernel[(1,)](x)
    assert x[0] == 3
    monkeypatch.setitem(globals(), "FACTOR", 4)
    with pytest.raises(RuntimeError, match="FACTOR has changed since we compiled this kernel, from 3 to 4"):
        global_kernel[(1,)](x)


@triton.jit
def called(x):
    return x + 1


@triton.jit
def calling_kernel(x_ptr, n):
    tl.store(x_ptr, called(n))


def test_a_function_that_is_defined_anew_is_called_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    x = np.zeros(1, np.float32)
    calling_kernel[(1,)](x, 3)

    @triton.jit
    def anew(x):
        return x + 2

    before, now = (rf".*test_runtime.py:{called.first_line}", rf".*test_runtime.py:{anew.first_line}")
    monkeypatch.setitem(globals(), "called", anew)
    with pytest.raises(
        RuntimeError, match=f"^Function called has changed {before}, {now}; define calling_kernel again"
    ):
        calling_kernel[(1,)](x, 3)


def test_launches_from_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    arrays = [np.full(64, number, np.float32) for number in range(4)]
    threads = [threading.Thread(target=lambda x=x: kernel[(1,)](x, 64, 2.0)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((x == 2 * number).all() for number, x in enumerate(arrays))


def launch_with(size: int, scale: Any = None) -> float:
    """Runs in another process; `scale` is a kernel that came with the call."""
    os.environ["TILEWRIGHT_MODE"] = "cpu"
    x = np.ones(64, np.float32)
    (scale or kernel)[(1,)](x, size, 2.0)
    return float(x.sum())


@pytest.mark.parametrize("method", ("fork", "spawn", "forkserver"))
def test_other_processes_launch(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    # multiprocessing's Pool would lose the task of a worker that dies, and wait for it; an executor says that one died.
    context = multiprocessing.get_context(method)
    with kernel.compilations._lock, ProcessPoolExecutor(3, mp_context=context) as pool:  # as if a thread were compiling
        found = [pool.submit(launch_with, *arguments) for arguments in ((64,), (32, kernel), (3,))]
        assert [one.result(timeout=300) for one in found] == [128.0, 96.0, 67.0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_handler_of_signals_may_fork_while_a_grid_ends() -> None:
    """Handlers run in the main thread, which may be the one that has just run a grid and holds the engine."""
    with ENGINE:
        assert ENGINE.acquire(timeout=1), "a launch in the handler, or a fork, would wait for ever"
        ENGINE.release()
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


@triton.jit
def reducing(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK))))


@pytest.mark.parametrize("arch", ("sm_80", "sm_90a", "sm_120"))
def test_shared_memory_is_read_from_the_cubin(arch: str) -> None:

    if not nvrtc.is_available():
        pytest.skip("NVRTC is not installed")
    cubin = nvrtc.compile_text(reducing.translate("*fp32:16, 512", arch=arch))
    assert cubin.static_shared_bytes == 16 and f"Used {cubin.registers} registers" in cubin.log


def test_the_cubin_of_every_architecture() -> None:

    if not nvrtc.is_available():
        pytest.skip("NVRTC is not installed")
    for arch in ("sm_80", "sm_90", "sm_90a", "sm_100", "sm_120"):
        artifact = kernel.translate("*fp32:16, i32, fp32, 64", arch=arch)
        cubin = nvrtc.compile_text(artifact)
        assert cubin.code[:4] == b"\x7fELF" and f"Used {cubin.registers} registers" in cubin.log
    with pytest.raises(triton.TilewrightError, match="unknown architecture"):
        kernel.translate("*fp32:16, i32, fp32, 64", arch="sm_12")


def test_a_compilation_without_a_word_changes_no_bytes_of_pythons() -> None:
    """An empty log is one byte long, and Python shares objects of one byte: NVRTC must not write to those."""
    if not nvrtc.is_available():
        pytest.skip("NVRTC is not installed")
    status, log, code = nvrtc._run(nvrtc.NOTHING, "nothing.cu", ["--gpu-architecture=sm_90a"], "CUBIN")
    assert (status, log) == (0, "") and code[:4] == b"\x7fELF"
    assert bytes([32]).hex() == "20" and bytes([0]).hex() == "00" and (b" " * len(b"x")).hex() == "20"


@triton.jit(do_not_specialize=["steps"])
def widened_kernel(out_ptr, steps):
    tl.store(out_ptr, steps.to(tl.int64) << 40)


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_an_integer_that_is_not_specialised_has_a_type_if_it_is_one(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    out = np.zeros(1, np.int64)
    for steps in (1, 5):
        widened_kernel[(1,)](out, steps)
        assert out[0] == steps << 40
