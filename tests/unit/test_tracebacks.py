"""What stands above the message of an error that the user caused: the user's own lines, and next to nothing of ours."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.log import _topics


@triton.jit
def mismatched(x_ptr, n, B: tl.constexpr):
    at = tl.arange(0, B) + tl.arange(0, 2 * B)
    tl.store(x_ptr + at, at)


@triton.jit
def stored(x_ptr, n, B: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, B), n)


tuned = triton.autotune([triton.Config({"B": 16}), triton.Config({"B": 32})], key=[])(mismatched)
X = np.zeros(64, np.float32)
LAUNCHES: list[Callable[[], Any]] = [
    lambda: mismatched[(1,)](X, 3, B=16),
    lambda: mismatched.warmup(X, 3, B=16, grid=(1,)),
    lambda: stored[(1,)](X, 3),
    lambda: stored[(1,)](X, object(), B=16),
    lambda: tuned[(1,)](X, 3),
    lambda: triton.jit(len),
    lambda: triton.jit(debug=True)(lambda x: x),
    lambda: triton.jit(bogus=1),
    lambda: mismatched.translate("*fp32, i32, 16"),
    lambda: mismatched.translate("*fp33, i32, 16"),
    lambda: mismatched.compile("*fp32, i32, 16"),
    lambda: mismatched.preload("{}"),
    lambda: triton.autotune([], key=3)(mismatched),
    lambda: triton.autotune([], key=[], restore_value=["y"])(mismatched),
    lambda: triton.heuristics({"B": lambda arguments: 16})(len),
    lambda: triton.heuristics({"B": 16}),
    lambda: triton.load_tuned("no/such.json"),
    lambda: triton.compile("source"),
    lambda: stored.compile("*fp32, fp32, 16").export(__file__),
    lambda: triton.testing.do_bench_cudagraph(lambda: None),
    lambda: triton.tools.disasm.get_sass(b"no machine code"),
    lambda: triton.tools.tensor_descriptor.TensorDescriptor(X, [64], [2], [64]),
    lambda: triton.tools.tensor_descriptor.TensorDescriptor.from_tensor(X[::2], [64]),
]


def frames(launch: Callable[[], Any]) -> list[str]:
    """Functions of a launch's error, from `launch` on, that are tilewright's or the kernel's."""
    with pytest.raises(triton.TilewrightError) as caught:
        launch()
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    return names[names.index("<lambda>") + 1 :]


@pytest.mark.parametrize("launch", LAUNCHES)
def test_few_frames_are_ours(launch: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    shown = frames(launch)
    assert len(shown) <= 2
    monkeypatch.setenv("TILEWRIGHT_LOG", "compile,traceback")
    assert len(frames(launch)) > len(shown)


@pytest.mark.parametrize("launch", LAUNCHES)
def test_nor_are_they_those_that_torch_wraps_around_a_launch(
    launch: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does in every program that has imported torch.compile's tracer."""
    pytest.importorskip("torch._dynamo")
    test_few_frames_are_ours(launch, monkeypatch)


def test_a_launch_after_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """There the function that is written for the types of the first one calls."""
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    stored[(1,)](X, 3, B=16)
    assert len(frames(lambda: stored[(1,)](X, object(), B=16))) <= 4


def test_the_kernels_own_lines_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    assert frames(lambda: mismatched[(1,)](X, 3, B=16))[-1] == "mismatched"


def test_lines_of_functions_that_a_launch_calls_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")

    def grid(arguments: dict[str, Any]) -> tuple[int]:
        stored[(1,)](X, object(), B=16)
        return (1,)

    assert "grid" in frames(lambda: stored[grid](X, 3, B=16))


@pytest.mark.parametrize("tuned_too", [False, True], ids=["a kernel", "a tuned one"])
def test_what_a_function_of_the_user_raises_has_few_of_our_frames(
    tuned_too: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    choice = triton.heuristics({"B": lambda arguments: 16})(stored)
    kernel = choice if tuned_too else stored
    options = {} if tuned_too else {"B": 16}

    def raised() -> list[str]:
        with pytest.raises(KeyError, match="BLOCK") as caught:
            kernel[lambda meta: (meta["BLOCK"],)](X, 3, **options)
        return [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]

    few = raised()
    assert few[0] == "raised" and few[-1] == "<lambda>" and len(few) <= 5
    monkeypatch.setenv("TILEWRIGHT_LOG", "traceback")
    assert len(raised()) > len(few)


def test_what_we_raise_keeps_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setattr(triton.runtime.jit, "specialise", lambda *_: triton.cdiv(1, 0))
    with pytest.raises(ZeroDivisionError) as caught:
        triton.jit(stored.fn)[(1,)](X, 3, B=16)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-1] == "cdiv" and "launch" in names


def test_warnings_name_the_users_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many calls of ours lie between: here those of a launch, of a decorator and of one that is given options."""
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_LOG", "compile,other")
    _topics.cache_clear()
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    with pytest.warns(RuntimeWarning) as said:
        stored[(1,)](X, 3.5, B=32)
        triton.autotune([triton.Config({"B": 16})], key=["y"])(mismatched)
        triton.jit(do_not_specialize=["y"])(stored.fn)
    assert len(said) == 3 and {one.filename for one in said} == {__file__}
