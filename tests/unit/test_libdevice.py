"""Every function of libdevice: its CUDA spelling compiles with NVRTC and on the host, and agrees with its NumPy meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright.language as tl
from tilewright.diagnostics import DTypeError
from tilewright.language.dtypes import DTYPES_BY_WORD, float32, float64, int32, int64, uint32, uint64
from tilewright.language.extra import libdevice
from tilewright.ops import OPS
from tilewright.ops.registry import Operand
from tilewright.runtime.building import nvrtc
from tilewright.runtime.jit import JITFunction

NAMES = sorted(name.removeprefix("libdevice.") for name in OPS if name.startswith("libdevice."))
TYPES = (float32, float64, int32, uint32, int64, uint64)
LETTERS = {"float32": "f", "float64": "d", "int32": "i", "uint32": "u", "int64": "l", "uint64": "w"}
# Where the inputs of the test leave the function's domain.
SMALL_INPUTS = ("acos", "asin", "atanh", "erfinv", "normcdfinv", "erfcinv")
BATCH = 12


def overloads(name: str) -> list[tuple[str, ...]]:
    """The operand types that a function takes."""
    op = OPS[f"libdevice.{name}"]
    found = []
    choices: list[tuple[Any, ...]] = [()]
    for _ in op.parameters:
        choices = [(*choice, dtype) for choice in choices for dtype in TYPES]
    for choice in choices:
        try:
            op.rule(tuple(Operand(dtype) for dtype in choice))
        except DTypeError:
            continue
        found.append(tuple(dtype.word for dtype in choice))
    return found


CALLS = [(name, types) for name in NAMES for types in overloads(name)]
BATCHES = [CALLS[start : start + BATCH] for start in range(0, len(CALLS), BATCH)]


def kernel_of(batch: list[tuple[str, tuple[str, ...]]]) -> JITFunction:
    """A kernel that calls each function of a batch and stores its results one after the other."""
    lines = [
        "def kernel(f_ptr, g_ptr, d_ptr, i_ptr, u_ptr, l_ptr, w_ptr, out_ptr, N: tl.constexpr):",
        "    k = tl.arange(0, N)",
    ]
    for letter in "fgdiulw":
        lines.append(f"    {letter} = tl.load({letter}_ptr + k)")
    for number, (name, types) in enumerate(batch):
        args = [LETTERS[word] for word in types]
        args = ["g" if letter == "f" and name in SMALL_INPUTS else letter for letter in args]
        args = ["d * 0.125" if letter == "d" and name in SMALL_INPUTS else letter for letter in args]
        lines.append(f"    tl.store(out_ptr + {number} * N + k, libdevice.{name}({', '.join(args)}).to(tl.float64))")
    source = "\n".join(lines) + "\n"
    namespace: dict[str, Any] = {"tl": tl, "libdevice": libdevice}
    exec(source, namespace)
    return JITFunction(namespace["kernel"], source=source)


@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: f"{batch[0][0]}-{batch[-1][0]}")
def test_libdevice(batch: list[tuple[str, tuple[str, ...]]], run_everywhere: Any) -> None:
    rng = np.random.default_rng(3)
    n = 32
    f = rng.uniform(1.1, 4.0, n).astype(np.float32)
    g = rng.uniform(0.05, 0.9, n).astype(np.float32)
    d = rng.uniform(1.1, 4.0, n)
    i, u, long, wide = (rng.integers(1, 9, n).astype(t) for t in (np.int32, np.uint32, np.int64, np.uint64))
    kernel = kernel_of(batch)
    out = run_everywhere(kernel, (1,), f, g, d, i, u, long, wide, np.zeros((len(batch), n)), N=n, tolerance=2e-5)[-1]
    assert np.isfinite(out).all()
    if nvrtc.is_available():
        artifact = kernel.translate("*fp32, *fp32, *fp64, *i32, *u32, *i64, *u64, *fp64, 32")
        assert nvrtc.compile_text(artifact).registers > 0


def test_the_table_is_complete() -> None:
    assert len(NAMES) >= 197
    for name in NAMES:
        assert getattr(libdevice, name).op == f"libdevice.{name}" and OPS[f"libdevice.{name}"].doc
    assert all(word in DTYPES_BY_WORD for _, types in CALLS for word in types)
