"""Errors about a call of the user's show where it stands, and which argument is wrong."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def stored(x_ptr, n, B: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, B), n)


X = np.zeros(64, np.float32)
CONFIGS = [triton.Config({"B": 16}), triton.Config({"B": 32})]
tuned = triton.autotune(CONFIGS, key=[])(stored)
größe = 3


def decorated_by_autotune() -> Any:
    @triton.autotune(
        configs=CONFIGS, key=["n"],
        restore_value=["y"],
    )  # fmt: skip
    @triton.jit
    def kernel(x_ptr, n, B: tl.constexpr):
        tl.store(x_ptr + tl.arange(0, B), n)


def decorated_by_heuristics() -> Any:
    @triton.heuristics({"B": 16})
    @triton.jit
    def kernel(x_ptr, n, B: tl.constexpr):
        tl.store(x_ptr + tl.arange(0, B), n)


def decorated_by_jit() -> Any:
    @triton.jit(numwarps=4)
    def kernel(x_ptr):
        tl.store(x_ptr, 0)


def above_no_kernel() -> Any:
    @triton.heuristics({"B": lambda arguments: 16})
    def kernel(x_ptr):
        tl.store(x_ptr, 0)


def over_several_lines() -> Any:
    stored[(1,)](X,
        B=16, n="3")  # fmt: skip


CALLS: list[tuple[Callable[[], Any], str]] = [
    (decorated_by_autotune, 'restore_value=["y"]'),
    (decorated_by_heuristics, '{"B": 16}'),
    (decorated_by_jit, "numwarps=4"),
    (above_no_kernel, 'triton.heuristics({"B": lambda arguments: 16})'),
    (lambda: triton.autotune(CONFIGS, 3)(stored), "3"),
    (lambda: triton.autotune([{"B": 16}], key=[])(stored), '[{"B": 16}]'),
    (lambda: triton.autotune(CONFIGS, [], do_bench=1)(stored), "do_bench=1"),
    (lambda: triton.autotune(CONFIGS, [], prune_configs_by=größe)(stored), "prune_configs_by=größe"),
    (lambda: [triton.Config(größe) for _ in "ü"], "größe"),
    (lambda: triton.Config({}, num_warp=3), "num_warp=3"),
    (lambda: triton.Config({}, pre_hook=3), "pre_hook=3"),
    (lambda: triton.jit(lambda x_ptr: None), "triton.jit(lambda x_ptr: None)"),
    (lambda: stored[(1.5,)](X, 3, B=16), "(1.5,)"),
    (lambda: stored[lambda meta: None](X, 3, B=16), "lambda meta: None"),
    (lambda: stored[(1,)](X, "3", B=16), '"3"'),
    (lambda: tuned[(1,)](X, object()), "object()"),
    (lambda: stored[(1,)](*[X], object(), B=16), "stored[(1,)](*[X], object(), B=16)"),
    (lambda: stored[(1,)](X, 3, B=16, num_warps=3), "num_warps=3"),
    (lambda: stored[(1,)](X, 3, B=16, num_warps=64), "num_warps=64"),
    (lambda: stored[(1,)](X, 3, C=16), "C=16"),
    (lambda: stored[(1,)](X), "stored[(1,)](X)"),
    (lambda: stored(X), "stored(X)"),
    (over_several_lines, 'n="3"'),
]


@pytest.mark.parametrize(("call", "shown"), CALLS)
def test_the_argument_is_shown(call: Callable[[], Any], shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    with pytest.raises(triton.TilewrightError) as caught:
        call()
    first, source, carets, *_ = str(caught.value).splitlines()
    place, line, column, kind = first.split(":")[:4]
    assert place == __file__ and kind == f" {type(caught.value).__name__}"
    assert source[4:] == Path(__file__).read_text(encoding="utf-8").splitlines()[int(line) - 1]
    if sys.version_info >= (3, 11):  # which knows more of a call than its line
        start = carets.index("^")
        assert source[start : start + carets.count("^")] == shown and int(column) == start - 3
    for other in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):
        assert str(other) == str(caught.value)


def test_source_that_is_nowhere_has_a_line_and_no_caret() -> None:
    with pytest.raises(triton.LaunchError) as caught:
        exec("\nstored[(1.5,)](X, 3, B=16)", globals())
    assert str(caught.value).startswith("<string>:2:1: GridError: the grid") and "\n" not in str(caught.value)


def test_calls_of_our_own_have_no_place(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    file.write_text("import tilewright as triton\n@triton.jit\ndef kernel(x_ptr):\n    pass\n")
    from tilewright.cli import main

    assert main(["translate", f"{file}:kernel", "--signature", "*fp32", "--num-warps", "3"]) != 0
    assert "num_warps must be a power of 2" in (said := capsys.readouterr().err) and "^" not in said
