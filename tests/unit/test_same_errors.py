"""Mistakes that a kernel's author makes are told in the same words, at the same place, by the translator and the interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tilewright import diagnostics as errors
from written_kernels import written_kernel

HEADER = """import tilewright as triton
import tilewright.language as tl
from functools import partial
streamed = partial(tl.load, cache_modifier=".cg")
SIZES = {"small": 4}
@triton.jit
def both(a, b):
    return a, b
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
"""
MISTAKES = [
    "tl.store(x_ptr + i, x, mask=i)",
    "tl.store(x_ptr + i, x.dtyp)",
    "x = x.float()",
    "x = tl.load(x + i)",
    "x = tl.load(x_ptr + x)",
    "x = tl.cat(x, i)",
    "x = x + None",
    "x = x < None",
    "y = both(x, x)\ntl.store(x_ptr + i, y)",
    "y = x + 1,\ntl.store(x_ptr + i, y)",
    "a, b, c = both(x, x)",
    "a, b = x",
    "tl.store(x_ptr, y)",
    "tl.store(x_ptr, ofset)\nofset = 1",
    "size = 1\ntl.store(x_ptr, sise)",
    "if n > 3:\n    y = x\ntl.store(x_ptr + i, y)",
    "for k in range(n):\n    y = x\ntl.store(x_ptr + i, y)",
    "tl.laod(x_ptr + i)",
    "x = tl.tanh(x)",
    "x = tl.sort(x)",
    "x = tl.rand(0, i)",
    "x = x + triton.cidv(B, 3)",
    "tl.store(x_ptr, x)",
    "tl.store(x_ptr, 1.0, mask=i < n)",
    "tl.atomic_add(x_ptr + i[None, :], x[:, None])",
    "x = x + tl.zeros((2, 4), tl.float32)",
    "x = x[:, None] + tl.zeros((4, 2, 8), tl.float32)",
    "x = x_ptr + x_ptr",
    "x = tl.split(x)",
    "x = not x",
    "if x > 1:\n    n = 2",
    "x = x if x > 1 else -x",
    "x = max(x)",
    "x = n + tl.constexpr(n)",
    "x = 1 / (B - 16)",
    "d = tl.make_tensor_descriptor(x_ptr, [n, n], [n, 1], [4, 4])\nd.store([0, 0], x)",
    "x = tl.mean(x)",
    "x = x.float()",
    "x = (x > 0).any()",
    "x = any(x > 0)",
    "x = tl.zeros((B,), x_ptr.dtype)",
    "x = len(B)",
    "x = streamed(x_ptr + i)",
    "x = i ^ n.to(tl.int64) ^ (1 << 63)",
    "x = n.to(tl.pointer_type(tl.float32))",
]


@pytest.mark.parametrize("body", MISTAKES)
def test_an_error_is_the_same_wherever_the_kernel_runs(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = written_kernel(tmp_path / "mistake.py", HEADER, body)
    told = []
    for mode in ("cpu", "interpret"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        with pytest.raises(errors.CompilationError) as caught:
            kernel[(1,)](np.zeros(16, np.float32), 7, B=16)
        told.append(str(caught.value).replace("AmbiguousTruthError", "DTypeError"))
    assert told[0] == told[1]
    assert "mistake.py:" in told[0] and "^" in told[0]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("a, (b, c) = both(x, x)", "cannot unpack a single value into 2 names\n.*\n.*\n  help: write as many names"),
        ("x = tl.mean(x)", "tl has no 'mean'; divide the sum, as tl.sum"),
        ("x = tl.half", "tl has no 'half'; write tl.float16"),
        ("x = x.half()", r"help: write x.to\(tl.float16\)"),
        ("x = (x > 0).any()", r"help: take the maximum, as tl.max\(condition.to\(tl.int32\), axis\) > 0"),
        ("x = all(x > 0)", r"help: take the minimum, as tl.min\(condition.to\(tl.int32\), axis\) > 0"),
        ("x = tl.zeros((4,), x_ptr.dtype)", "help: .* what a pointer points to has dtype.element_ty"),
        ("x = SIZES['large']", "no key 'large'.*\n.*\n.*\n  help: "),
        ("x = both(n, n)[2]", "tuple index out of range.*\n.*\n.*\n  help: the items of a tuple are counted from 0"),
        ("x = n.to(tl.int64) + (1 << 63)", r"out of range for type int64\n.*\n.*\n  help: cast .* x.to\(tl.uint64\)"),
        ("x = n + (1 << 31)", r"out of range for type int32\n.*\n.*\n  help: cast .* a wider one, as x.to\(tl.int64\)"),
        (
            "x = n.to(tl.pointer_type(tl.int8))",
            r"64-bit integers only\n.*\n.*\n  help: an address is an int64",
        ),
    ],
)
@pytest.mark.parametrize("mode", ("cpu", "interpret"))
def test_what_helps(body: str, said: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = written_kernel(tmp_path / "mistake.py", HEADER, body)
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(errors.CompilationError, match=said):
        kernel[(1,)](np.zeros(16, np.float32), 7, B=16)
