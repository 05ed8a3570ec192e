"""Random kernels with dots: the CPU run of both architectures' text and the interpreter agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright.language as tl
from dot_cases import small_rings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tilewright.runtime.jit import JITFunction

DTYPES = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp32": np.float32,
    "fp64": np.float64,
    "i8": np.int8,
    "e4m3": ml_dtypes.float8_e4m3fn,
}
LOOPS = (
    ("for k0 in range(0, K, BK):",),
    ("for number in range(tl.cdiv(K, BK)):", "k0 = number * BK"),
    ("for k0 in range((K - 1) // BK * BK, -1, -BK):",),
    ("k0 = -BK", "while k0 < K - BK:", "k0 += BK"),
    ("for half in range(0, 2):", "for k0 in range(half * BK, K, 2 * BK):"),
)
UPDATES = ("total = tl.dot(a, b, total)", "total += tl.dot(a, b)", "total = tl.dot(a, b, total * 0.5)",
           "total = tl.dot(tl.trans(tl.trans(a)), b, total)",
           "total = tl.dot(a, b, total)\n{}highest = tl.maximum(highest, total)",
           "if k0 != BK:\n{}    total = tl.dot(a, b, total)")  # fmt: skip
EPILOGUES = ("total * 0.5", "total + tl.load(x_ptr + n, mask=n < N, other=0.0)[None, :]", "tl.maximum(total, 0)",
             "total - tl.sum(total, axis=1)[:, None]", "total + tl.max(total, axis=0)[None, :]", "total + highest",
             "tl.where(m[:, None] > n[None, :], total, 0)")  # fmt: skip


@dataclass(frozen=True)
class Program:
    """A kernel's text and how it is launched; `flags` say which of a, b and c lie by rows."""

    source: str
    dtype: str
    tile: tuple[int, int, int]
    sizes: tuple[int, int, int]
    flags: tuple[bool, bool, bool]
    options: dict[str, int]


def places(name: str, by_rows: bool, row: str, column: str, rows: str, columns: str) -> str:
    """The pointers of a tile of a matrix that lies by rows or by columns."""
    row, column = f"({row})[:, None]", f"({column})[None, :]"
    return f"{name}_ptr + {row} * {columns} + {column}" if by_rows else f"{name}_ptr + {column} * {rows} + {row}"


@st.composite
def programs(draw: Any) -> Program:
    """A product of matrices: loop, masks, what happens to the sum, layouts, types, sizes."""
    dtype, flags = draw(st.sampled_from(tuple(DTYPES))), tuple(draw(st.booleans()) for _ in range(3))
    tile = draw(st.sampled_from(((16, 16, 32), (32, 64, 32), (64, 32, 32), (64, 64, 64), (128, 16, 32),
                                 (1, 32, 32), (8, 4, 16), (32, 1, 16), (5, 24, 40))))  # fmt: skip
    even = draw(st.booleans())
    sizes = tuple(max(side * draw(st.integers(1, 3)) - (0 if even else draw(st.integers(0, 9))), 1) for side in tile)
    acc = {"i8": "tl.int32", "fp64": "tl.float64"}.get(dtype, "tl.float32")
    inner = "k0 + tl.arange(0, BK)"
    lines = [
        "def kernel(a_ptr, b_ptr, x_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):",
        "    m = tl.program_id(0) * BM + tl.arange(0, BM)",
        "    n = tl.program_id(1) * BN + tl.arange(0, BN)",
        f"    total = tl.zeros((BM, BN), {acc})",
        f"    highest = tl.zeros((BM, BN), {acc})",
    ]
    indent = "    "
    for line in draw(st.sampled_from(LOOPS)):
        lines.append(indent + line)
        indent += "    " if line.endswith(":") else ""
    masks = ("m[:, None] < M", "n[None, :] < N")
    k_masks = f"({inner})[None, :] < K", f"({inner})[:, None] < K"
    lines.append(f"{indent}a = tl.load({places('a', flags[0], 'm', inner, 'M', 'K')}, "
                 f"mask=({masks[0]}) & ({k_masks[0]}), other=0.0)")  # fmt: skip
    lines.append(f"{indent}b = tl.load({places('b', flags[1], inner, 'n', 'K', 'N')}, "
                 f"mask=({k_masks[1]}) & ({masks[1]}), other=0.0)")  # fmt: skip
    if draw(st.integers(0, 3)) == 0:
        lines.append(f"{indent}a = (a * 2).to(a.dtype)" if dtype in ("fp16", "bf16", "fp32") else f"{indent}a = a")
    whole = dtype == "i8"
    update = draw(st.sampled_from(UPDATES[:2] if whole else UPDATES))
    lines.append(indent + update.format(indent))
    for text in draw(st.lists(st.sampled_from(EPILOGUES), max_size=2)):
        lines.append(f"    total = ({text}).to({acc})")
    lines.append(f"    tl.store({places('c', flags[2], 'm', 'n', 'M', 'N')}, total, mask=({masks[0]}) & ({masks[1]}))")
    options = {"num_warps": draw(st.sampled_from((1, 4, 4, 8))), "num_stages": draw(st.integers(1, 4))}
    return Program("\n".join(lines) + "\n", dtype, tile, sizes, flags, options)  # type: ignore[arg-type]


def launched(program: Program, seed: int) -> np.ndarray[Any, Any]:
    """The result of a launch in the mode that is set."""
    m, n, k = program.sizes
    rng = np.random.default_rng(seed)
    integers = program.dtype == "i8"
    a, b = (
        (rng.integers(-9, 9, shape) if integers else rng.standard_normal(shape)).astype(np.float32).astype(DTYPES[program.dtype])
        for shape in ((m, k) if program.flags[0] else (k, m), (k, n) if program.flags[1] else (n, k))
    )  # fmt: skip
    x = rng.standard_normal(n).astype(np.float32)
    c = np.full(
        (m, n) if program.flags[2] else (n, m), 2**30 if integers else np.nan, np.int32 if integers else np.float32
    )
    namespace: dict[str, Any] = {"tl": tl}
    exec(program.source, namespace)
    kernel = JITFunction(namespace["kernel"], source=program.source)
    grid = (-(-m // program.tile[0]), -(-n // program.tile[1]))
    blocks = dict(zip(("BM", "BN", "BK"), program.tile, strict=True))
    kernel[grid](a, b, x, c, m, n, k, **blocks, **program.options)
    return c.astype(np.float64)


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(programs(), st.integers(0, 1000))
def test_all_ways_agree(monkeypatch: pytest.MonkeyPatch, program: Program, seed: int) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    expected = launched(program, seed)
    assert np.isfinite(expected).all()
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    small_rings(monkeypatch)
    for arch in ("sm_80", "sm_90a"):
        monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
        allowed = 0.0 if program.dtype == "i8" else 4e-3 if program.dtype == "fp32" else 1e-3
        scale = max(float(np.abs(expected).max()), 1.0)
        np.testing.assert_allclose(
            launched(program, seed), expected, rtol=0, atol=allowed * scale, err_msg=f"{arch}: {program}"
        )
