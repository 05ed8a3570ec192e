"""What errors tell users to write instead, for what programs of NumPy, torch and Triton make them try first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors
from written_kernels import written_kernel

HEADER = """import numpy as np
import tilewright as triton
import tilewright.language as tl
@triton.jit
def other(x_ptr):
    tl.store(x_ptr, 1.0)
@triton.autotune(configs=[triton.Config({"N": 16})], key=[])
@triton.jit
def tuned(x_ptr, N: tl.constexpr):
    tl.store(x_ptr, N)
@triton.jit
def kernel(x_ptr, n):
    offs = tl.arange(0, 8)
    x = tl.load(x_ptr + offs)
"""
UNSUPPORTED = errors.UnsupportedLanguageConstruct


class Torch16:
    """A type of torch, as it shows itself."""

    def __repr__(self) -> str:
        return "torch.float16"


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
@pytest.mark.parametrize(
    ("line", "kind", "remedy"),
    [
        ("x = x ** 2", UNSUPPORTED, "write x * x"),
        ("x = x ** 3.0", UNSUPPORTED, "write x * x * x"),
        ("x = x ** 0.5", UNSUPPORTED, "write tl.sqrt(x)"),
        ("x = x ** x", UNSUPPORTED, "write tl.extra.libdevice.pow(x, y)"),
        ("x = 2 ** x", UNSUPPORTED, "write tl.extra.libdevice.pow(x, y)"),
        ("x_ptr[offs] = x", UNSUPPORTED, "a pointer is no array: write tl.store(x_ptr + offs, value)"),
        ("x_ptr[offs] += x", (UNSUPPORTED, errors.ShapeError), "a pointer is no array: write tl.store(x_ptr + offs, value)"),
        ("x[0] = 1.0", UNSUPPORTED, "a tile changes as a whole: write x = tl.where(condition, value, x)"),
        ("x = x_ptr[offs]", errors.ShapeError, "a pointer is no array: write tl.load(x_ptr + offs)"),
        ("x = tl.max(x, x)", errors.ArgumentError, "of two values, write tl.maximum(x, y)"),
        ("x = tl.min(x, 0.0)", errors.ArgumentError, "of two values, write tl.minimum(x, y)"),
        ("other[(1,)](x_ptr)", UNSUPPORTED, "call it without a grid, as other(…)"),
        ("tuned(x_ptr)", UNSUPPORTED, "call a function that has @triton.jit alone"),
        ("tl.store(x_ptr + offs, x_ptr + offs)", errors.DTypeError, "did you forget tl.load?"),
        ("for i in range(offs): pass", errors.DTypeError, "a bound is one number: take one, as with tl.max(x, axis=0)"),
        ("x = x.to(np.float32)", errors.DTypeError, "write tl.float32"),
        ("x = tl.zeros((8,), np.dtype('int16'))", errors.DTypeError, "write tl.int16"),
    ],
)  # fmt: skip
def test_remedies(
    tmp_path: Path, line: str, kind: Any, remedy: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(kind) as caught:
        written_kernel(tmp_path / "tried.py", HEADER, line)[(1,)](np.zeros(8, np.float32), 3)
    if mode == "interpret":  # which knows no names: Python has looked them up
        remedy = remedy.partition(" (x_ptr")[0].partition("tl.store(x_ptr")[0].partition("tl.load(x_ptr")[0]
    assert remedy in caught.value.remedy and "tried.py:" in str(caught.value) and "^" in str(caught.value)


def test_types_of_torch() -> None:
    from tilewright.language.hints import element_type

    with pytest.raises(errors.DTypeError) as caught:
        element_type(Torch16())
    assert caught.value.remedy == "write tl.float16"


def test_a_breakpoint_stops_in_no_code_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    with pytest.raises(UNSUPPORTED) as caught:
        written_kernel(tmp_path / "tried.py", HEADER, "breakpoint()")[(1,)](np.zeros(8, np.float32), 3)
    assert "TILEWRIGHT_MODE=interpret" in caught.value.remedy


@triton.jit
def powers(x_ptr):
    x = tl.load(x_ptr)
    tl.store(x_ptr, tl.extra.libdevice.pow(x, 3.0) + x * x)


def test_what_the_remedies_say_can_be_written(run_everywhere: Any) -> None:
    assert run_everywhere(powers, (1,), np.full(1, -2, np.float32))[0].tolist() == [-4]
