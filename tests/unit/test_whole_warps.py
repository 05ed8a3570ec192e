"""Integers of all lanes of a warp are combined by one instruction; floats, and lanes of which only some meet, by exchanges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc

WORDS = {"sum": "add", "max": "max", "min": "min", "xor_sum": "xor"}
FUNCTIONS = {"sum": np.add, "max": np.maximum, "min": np.minimum, "xor_sum": np.bitwise_xor}


@triton.jit
def over_blocks(x_ptr, out_ptr, n, BLOCK: tl.constexpr, OP: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    if OP == "sum":
        total = tl.sum(x, 0)
    elif OP == "max":
        total = tl.max(x, 0)
    elif OP == "min":
        total = tl.min(x, 0)
    else:
        total = tl.xor_sum(x, 0)
    tl.store(out_ptr + tl.program_id(0), total)


@triton.jit
def over_rows(x_ptr, out_ptr, ROWS: tl.constexpr, COLS: tl.constexpr):
    r, c = tl.arange(0, ROWS), tl.arange(0, COLS)
    x = tl.load(x_ptr + r[:, None] * COLS + c[None, :])
    tl.store(out_ptr + r, tl.sum(x, 1))


@pytest.mark.parametrize("op", WORDS)
@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
@pytest.mark.parametrize("warps", [1, 4, 32])
def test_integers_of_a_block(op: str, dtype: Any, warps: int, run_everywhere: Any) -> None:
    x = np.random.default_rng(3).integers(0, 1 << 32, 3000, dtype=np.uint64).astype(np.uint32).astype(dtype)
    out = run_everywhere(over_blocks, (3,), x, np.zeros(3, dtype), 3000, BLOCK=1024, OP=op, num_warps=warps)[1]
    parts = np.pad(x, (0, 72)).reshape(3, 1024)
    np.testing.assert_array_equal(out, FUNCTIONS[op].reduce(parts, axis=1, dtype=dtype))
    word = "u32" if dtype == np.uint32 else "i32"
    artifact = over_blocks.translate(f"*{word}:16, *{word}:16, i32, 1024, '{op}'", num_warps=warps)
    assert f"__reduce_{WORDS[op]}_sync(ALL_LANES, " in artifact.source
    assert "redux.sync" in nvrtc.compile_ptx(artifact)


def test_lanes_of_which_some_meet_and_floats_exchange(run_everywhere: Any) -> None:
    x = np.arange(64 * 32, dtype=np.int32).reshape(64, 32)
    for cols, whole in ((32, False), (1024, True)):
        some = np.resize(x, (64, cols))
        out = run_everywhere(over_rows, (1,), some, np.zeros(64, np.int32), ROWS=64, COLS=cols)[1]
        np.testing.assert_array_equal(out, some.sum(1))
        assert ("__reduce_add_sync" in over_rows.translate(f"*i32:16, *i32:16, 64, {cols}").source) == whole
    assert "__reduce" not in over_blocks.translate("*fp32:16, *fp32:16, i32, 1024, 'sum'").source


def test_the_check_knows_the_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    x, out = np.arange(1024, dtype=np.int32), np.zeros(1, np.int32)
    over_blocks[(1,)](x, out, 1024, BLOCK=1024, OP="sum")
    assert out[0] == 523776
