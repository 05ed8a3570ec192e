"""Functions that stand in another file than their kernel: the text and the faults name that file."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilewright.diagnostics import KernelFaultError
from tilewright.runtime import cpu

HELPERS = """\
import tilewright as triton
import tilewright.language as tl


@triton.jit
def exp(x):
    # of halves, too
    y = x.to(tl.float32)
    return tl.exp(y)


@triton.jit
def row(x_ptr, i, n, N: tl.constexpr):
    if N == 1:
        tl.static_print("one")
    cols = tl.arange(0, N)
    tl.device_assert(i < 3, "rows")
    x = tl.load(x_ptr + i * n + cols)
    return x - tl.max(x, 0)
"""
KERNEL = """\
import tilewright as triton
import tilewright.language as tl
from further_functions import exp, row


@triton.jit
def exponentials(x_ptr, y_ptr, n, N: tl.constexpr):
    i = tl.program_id(0)
    x = row(x_ptr, i, n, N)
    tl.store(y_ptr + i * n + tl.arange(0, N), exp(x))
"""
SIGNATURE = "*fp16:16, *fp32:16, i32:16, 256"


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "further_functions.py").write_text(HELPERS)
    (tmp_path / "own_kernel.py").write_text(KERNEL)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("further_functions", "own_kernel"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("own_kernel").exponentials


def line_of(text: str, words: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if words in line)


def test_their_lines_are_quoted_with_the_name_of_their_file(kernel: Any) -> None:
    text = kernel.translate(SIGNATURE).source
    assert "float exp_of_further_functions(" in text
    quoted = re.findall(r"// (further_functions\.py:|L)(\d+): (\S.*)", text)
    assert len(quoted) == 10
    for file, number, line in quoted:
        here = KERNEL if file == "L" else HELPERS
        assert line.partition("    (")[0] == here.splitlines()[int(number) - 1].strip()
    without = f"without L{line_of(HELPERS, 'static_print')}"
    assert f"if N == 1:    (false in this specialisation: {without})" in text and "// of halves, too" in text


@pytest.mark.skipif(not cpu.has_compiler(), reason="no C++ compiler")
def test_faults_are_found_in_their_lines(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    x, y = np.zeros((2, 256), np.float16), np.zeros((2, 256), np.float32)
    place = rf"further_functions\.py:{line_of(HELPERS, 'tl.load')} \(\.cu line"
    with pytest.raises(KernelFaultError, match=f"out of bounds: read of .* at {place}"):
        kernel[(3,)](x, y, 256, 256)
    written = rf"own_kernel\.py:{line_of(KERNEL, 'tl.store')} \(\.cu line"
    with pytest.raises(KernelFaultError, match=f"out of bounds: write of .* at {written}"):
        kernel[(2,)](x, y[:1], 256, 256)


@pytest.mark.skipif(not cpu.has_compiler(), reason="no C++ compiler")
def test_assertions_name_their_lines(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    x, y = np.zeros((4, 256), np.float16), np.zeros((4, 256), np.float32)
    with pytest.raises(KernelFaultError, match=rf"further_functions\.py:{line_of(HELPERS, 'device_assert')}: rows"):
        kernel[(4,)](x, y, 256, 256, debug=True)
