"""What the CPU run must bear: divisions by zero, several threads of Python at once, arrays that touch each other."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.cpu.build import compiler


@triton.jit
def divide_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x // y)
    tl.store(out_ptr + BLOCK + i, x % y)


@pytest.mark.parametrize("dtype", ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"))
def test_divisions_by_zero_go_on(run_everywhere: Any, dtype: str) -> None:
    """x86 stops a program at one; here elements outside of the mask, and some inside, divide by zero."""
    x = (np.arange(50) * 3 - 70).astype(dtype)
    y = (np.arange(50) % 5 - 2).astype(dtype)
    if np.dtype(dtype).kind == "i":
        x[10], y[10] = np.iinfo(dtype).min, -1  # a quotient that does not fit
    out = np.zeros(128, dtype)
    out = run_everywhere(divide_kernel, (1,), x, y, out, 50, BLOCK=64)[2]
    valid = y != 0
    np.testing.assert_array_equal(out[64:114][valid], np.fmod(x[valid], y[valid]))


@triton.jit
def sums_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    tl.store(out_ptr + row, tl.sum(tl.load(x_ptr + row * BLOCK + tl.arange(0, BLOCK))))


def test_threads_run_kernels_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads and the shared memory of a kernel are variables of the process: runs take turns."""
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    x = np.arange(64 * 1024, dtype=np.float32).reshape(64, 1024) % 7
    found: list[bool] = []

    def work() -> None:
        for _ in range(10):
            out = np.zeros(64, np.float32)
            sums_kernel[(64,)](x, out, BLOCK=1024)
            found.append(np.array_equal(out, x.sum(1)))

    work()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 50 and all(found)


def test_a_check_tells_arrays_apart_that_touch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second row starts where the first one ends."""
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    x = np.ones((2, 1024), np.float32)
    out = np.zeros(1, np.float32)
    sums_kernel[(1,)](x[1], out, BLOCK=1024)
    assert out[0] == 1024
    pair = np.full((2, 64), 6, np.int32)
    pair[1] = 4
    quotients = np.zeros(128, np.int32)
    divide_kernel[(1,)](pair[0], pair[1], quotients, 64, BLOCK=64)
    assert (quotients[:64] == 1).all() and (quotients[64:] == 2).all()


@triton.jit
def added(x_ptr, N: tl.constexpr):
    i = tl.arange(0, 16)
    tl.store(x_ptr + i, tl.load(x_ptr + i) + N)


MANY_KERNELS = """
import numpy as np
from test_cpu_run import added
x, mappings = np.zeros(16, np.float32), []
for number in range(3):
    added[(1,)](x, number)
    mappings.append(len(open("/proc/self/maps").readlines()))
assert (x == 3).all() and mappings[2] - mappings[0] < 200, mappings
"""


def test_all_kernels_of_a_process_share_stacks(tmp_path: Path) -> None:
    """Also where libraries share no variables, as those that Clang makes: else there is no room for some thirty kernels."""
    wrapper, flag = tmp_path / "compiler", "-fno-gnu-unique"
    if subprocess.run([compiler(), flag, "-E", "-x", "c++", os.devnull], capture_output=True).returncode:
        flag = ""  # it has no others
    wrapper.write_text(f'#!/bin/sh\nexec {compiler()} {flag} "$@"\n')
    wrapper.chmod(0o755)
    here = str(Path(__file__).parent)
    own = {"CXX": str(wrapper), "TILEWRIGHT_MODE": "cpu", "TILEWRIGHT_CACHE_DIR": str(tmp_path), "PYTHONPATH": here}
    subprocess.run([sys.executable, "-c", MANY_KERNELS], check=True, env={**os.environ, **own})
