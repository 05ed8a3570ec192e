"""Random kernels: the CPU run of the generated text and the interpreter agree, and the text is the same every time."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import tilewright.language as tl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tilewright.runtime.jit import JITFunction

BINARY = ("{} + {}", "{} - {}", "{} * {}", "tl.maximum({}, {})", "tl.minimum({}, {})", "tl.where({} > {}, 1.5, 0.25)")
UNARY = (
    "-{}",
    "tl.abs({})",
    "tl.exp(tl.minimum({}, 1.0))",
    "tl.sqrt(tl.abs({}))",
    "{} * 0.5",
    "tl.floor({})",
    "tl.sigmoid({})",
)
REDUCTIONS = ("tl.sum({}, axis={})", "tl.max({}, axis={})", "tl.min({}, axis={})")


@st.composite
def kernels(draw: Any) -> tuple[str, int, int, int]:
    """(source, rows, columns, number of warps) of a kernel that loads two tiles, computes, and stores one."""
    rows, cols = draw(st.sampled_from((1, 2, 5, 8, 16))), draw(st.sampled_from((1, 3, 16, 32, 50, 64)))
    lines = [
        "def kernel(x_ptr, y_ptr, out_ptr, m, n, R: tl.constexpr, C: tl.constexpr):",
        "    r, c = tl.arange(0, R), tl.arange(0, C)",
        "    offsets = r[:, None] * n + c[None, :]",
        "    inside = (r[:, None] < m) & (c[None, :] < n)",
        "    a = tl.load(x_ptr + offsets, mask=inside, other=0.5)",
        "    b = tl.load(y_ptr + offsets, mask=inside, other=0.25)",
    ]
    names = ["a", "b"]
    for number in range(draw(st.integers(1, 6))):
        pick = st.sampled_from(names)
        kind = draw(st.integers(0, 4))
        if kind <= 1:
            text = draw(st.sampled_from(BINARY)).format(draw(pick), draw(pick))
        elif kind == 2:
            text = draw(st.sampled_from(UNARY)).format(draw(pick))
        elif kind == 3:
            axis = draw(st.integers(0, 1))
            part = draw(st.sampled_from(REDUCTIONS)).format(draw(pick), axis)
            text = f"{draw(pick)} + {part}{'[None, :]' if axis == 0 else '[:, None]'}"
        else:
            name = draw(pick)
            lines += [
                f"    t{'x' * number} = {name}",
                "    for k in range(0, m):",
                f"        t{'x' * number} = {name} * 0.5 + k",
            ]
            text = f"t{'x' * number}"
        lines.append(f"    v{'x' * number} = {text}")
        names.append(f"v{'x' * number}")
    lines.append(f"    tl.store(out_ptr + offsets, {names[-1]}, mask=inside)")
    return "\n".join(lines) + "\n", rows, cols, draw(st.sampled_from((1, 2, 4)))


def make(source: str) -> JITFunction:
    """The kernel of a source text."""
    namespace: dict[str, Any] = {"tl": tl}
    exec(source, namespace)
    return JITFunction(namespace["kernel"], source=source)


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kernels(), st.integers(0, 1000))
def test_all_ways_agree(monkeypatch: pytest.MonkeyPatch, kernel: tuple[str, int, int, int], seed: int) -> None:
    source, rows, cols, warps = kernel
    function = make(source)
    assert next(iter(inspect.signature(function.fn).parameters)) == "x_ptr"
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, rows + 1)), int(rng.integers(1, cols + 1))
    x, y = rng.standard_normal((2, rows, cols), dtype=np.float32)
    results = []
    for mode in ("cpu", "interpret"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        out = np.full((rows, cols), 7.0, np.float32)
        function[(1,)](x, y, out, m, n, R=rows, C=cols, num_warps=warps)
        results.append(out)
    np.testing.assert_allclose(*results, rtol=2e-5, atol=2e-5, err_msg=source)
    signature = f"*fp32:16, *fp32:16, *fp32:16, i32, i32, {rows}, {cols}"
    again = make(source).translate(signature, num_warps=warps).source
    assert function.translate(signature, num_warps=warps).source == again
