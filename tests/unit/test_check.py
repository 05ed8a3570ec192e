"""The check mode: planted faults are found and reported at the kernel's line; correct kernels give no report."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.diagnostics import KernelFaultError
from tilewright.runtime.cpu import check, run
from tilewright.runtime.cpu.build import compiler
from tilewright.runtime.cpu.check import SANITIZER_OPTIONS, Buffer


@triton.jit
def sums(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    total = tl.sum(x, axis=0)
    tl.store(out_ptr + row * n + i, x / total, mask=i < n)


def launch(artifact: Any, n: int, rows: int = 3, stride: int | None = None) -> Any:
    x = np.random.default_rng(1).uniform(1, 2, (rows, n)).astype(np.float32)
    out = np.zeros_like(x)
    buffers = [Buffer(a.ctypes.data, memoryview(a).cast("B"), name) for a, name in ((x, "x_ptr"), (out, "out_ptr"))]
    check(artifact, (rows, 1, 1), [x.ctypes.data, out.ctypes.data, stride or n], buffers)
    return x, out


def test_a_correct_kernel_gives_no_report() -> None:
    x, out = launch(sums.translate("*fp32:16, *fp32:16, i32, 256"), 200)
    np.testing.assert_allclose(out, x / x.sum(1, keepdims=True), rtol=1e-6)


def test_a_missing_barrier_is_a_race() -> None:
    artifact = sums.translate("*fp32:16, *fp32:16, i32, 256")
    broken = dataclasses.replace(artifact, source=artifact.source.replace("    __syncthreads();   //", "    //"))
    assert broken.source != artifact.source
    with pytest.raises(KernelFaultError, match=r"race on .*total_partial.*test_check.py:\d+ \(\.cu line \d+\)"):
        launch(broken, 200)


def test_one_element_past_the_end_is_found() -> None:
    artifact = sums.translate("*fp32, *fp32, i32, 256")
    with pytest.raises(
        KernelFaultError, match=r"out of bounds: read of 4 bytes at test_check.py:\d+ .*past the end of x_ptr"
    ):
        launch(artifact, 200, rows=1, stride=201)


def test_a_false_promise_of_alignment_is_found() -> None:
    artifact = sums.translate("*fp32:16, *fp32:16, i32:16, 256")
    with pytest.raises(KernelFaultError, match="misaligned|out of bounds"):
        launch(artifact, 201)


@triton.jit
def promised(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.multiple_of(n, 16) + tl.arange(0, B)
    x = tl.load(x_ptr + i)  # the line
    tl.store(out_ptr + tl.arange(0, B), x)


def test_a_false_promise_of_a_multiple_is_told_at_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    line = promised.first_line + 3
    with pytest.raises(KernelFaultError, match=rf"misaligned access at test_check.py:{line} "):
        promised[(1,)](np.zeros(1024, np.float32), np.zeros(512, np.float32), 3, B=512)


def test_a_divergent_barrier_is_reported() -> None:
    artifact = sums.translate("*fp32:16, *fp32:16, i32, 256")
    source = artifact.source.replace("    __syncthreads();", "    if (threadIdx.x != 5) __syncthreads();")
    x, out = np.ones(256, np.float32), np.ones(256, np.float32)
    with pytest.raises(KernelFaultError, match=r"divergent|deadlock"):
        run(dataclasses.replace(artifact, source=source), (1, 1, 1), [x.ctypes.data, out.ctypes.data, 256])


def test_check_mode_runs_from_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    x, out = np.ones((2, 100), np.float32), np.zeros((2, 100), np.float32)
    sums[(2,)](x, out, 100, BLOCK=128)
    np.testing.assert_allclose(out, 0.01, rtol=1e-6)
    with pytest.raises(KernelFaultError, match="out of bounds"):
        sums[(3,)](x, out, 100, BLOCK=128)


@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is the Linux loader's")
def test_libraries_that_are_loaded_first_do_not_stand_before_a_sanitizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, library = tmp_path / "first.cpp", tmp_path / "libfirst.so"
    source.write_text("int first;\n")
    subprocess.run([compiler(), "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    launch(sums.translate("*fp32:16, *fp32:16, i32, 256"), 200)


def major_version(program: str) -> int:
    """Of a C++ compiler."""
    return int(
        subprocess.run([program, "-dumpversion"], capture_output=True, text=True, check=True).stdout.partition(".")[0]
    )


def test_what_the_sanitizer_does_to_itself_is_no_access_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames that AddressSanitizer keeps elsewhere (GCC 13 does) end with their fiber, and before GCC 16 the check does, too."""
    artifact = sums.translate("*fp32:16, *fp32:16, i32, 256")
    with monkeypatch.context() as patch:
        patch.setitem(SANITIZER_OPTIONS, "ASAN_OPTIONS", "detect_leaks=0 detect_stack_use_after_return=1")
        ends = pytest.raises(KernelFaultError, match="the check ended with status")
        with ends if major_version(compiler()) < 16 else contextlib.nullcontext():
            launch(artifact, 200)
    monkeypatch.setenv("ASAN_OPTIONS", "detect_stack_use_after_return=1")
    launch(artifact, 200)


def test_the_interpreter_finds_accesses_out_of_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    x, out = np.ones((2, 100), np.float32), np.zeros((2, 100), np.float32)
    with pytest.raises(
        KernelFaultError, match=r"out of bounds read at .*test_check.py:\d+, program \(2, 0, 0\): element 200 of x_ptr"
    ):
        sums[(3,)](x, out, 100, BLOCK=128)


@triton.jit
def tenfold(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 10, mask=i < n)


@pytest.mark.parametrize(
    "x_place, out_place",
    [((0, 16), (8, 16)), ((8, 16), (0, 16)), ((0, 12), (8, 16)), ((1, 16), (8, 16))],
    ids=str,
)
def test_arguments_that_share_memory_see_each_other(
    x_place: tuple[int, int], out_place: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also (1, 16) and (8, 16): the second one's address is a multiple of 16, as it was promised, the first one's not."""
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    memory = np.arange(16, dtype=np.float32)
    expected = memory.copy()
    expected[out_place[0] : out_place[0] + 4] = expected[x_place[0] : x_place[0] + 4] * 10
    tenfold[(1,)](memory[slice(*x_place)], memory[slice(*out_place)], 4, B=4)
    np.testing.assert_array_equal(memory, expected)


def test_the_array_that_ends_where_a_shared_memory_was_left_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    memory = np.arange(16, dtype=np.float32)
    with pytest.raises(KernelFaultError, match=r"write of .* past the end of out_ptr \(32 bytes\)"):
        tenfold[(1,)](memory[:12], memory[8:], 9, B=16)


@triton.jit
def through_a_table(table_ptr, out_ptr):
    address = tl.load(table_ptr).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr, tl.load(address))


def test_addresses_in_memory_are_told_from_slips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    with pytest.raises(KernelFaultError, match="read from memory: .*TILEWRIGHT_MODE=cpu"):
        through_a_table[(1,)](np.array([x.ctypes.data], np.int64), out)


@triton.jit
def endless(x_ptr):
    while tl.load(x_ptr) == 0:
        tl.store(x_ptr + 1, 1)


def running_checks(parent: int) -> list[int]:
    """The checking programs that a process has started."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(child) for child in children if b"kernel.run" in Path(f"/proc/{child}/cmdline").read_bytes()]


def is_running(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def eventually(condition: Callable[[], Any], seconds: float) -> Any:
    """What the condition gives as soon as it is true; what it gives at last, if it never is."""
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


@pytest.mark.skipif(not Path("/proc/thread-self/children").is_file(), reason="looks for processes in /proc")
def test_a_check_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    program = (
        "import sys, numpy; sys.path.insert(0, sys.argv[1]); from unit.test_check import endless; "
        "endless[(1,)](numpy.zeros(2, numpy.int32))"
    )
    environment = {**os.environ, "TILEWRIGHT_MODE": "check", "TMPDIR": str(tmp_path)}
    tests = str(Path(__file__).parent.parent)
    with subprocess.Popen([sys.executable, "-c", program, tests], env=environment) as process:
        found = eventually(lambda: running_checks(process.pid), 60)
        process.kill()
    assert len(found) == 1
    stopped = eventually(lambda: not is_running(found[0]), 10)
    if not stopped:
        os.kill(found[0], signal.SIGKILL)
    assert stopped and not list(tmp_path.glob("tmp*"))
