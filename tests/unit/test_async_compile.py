"""`triton.AsyncCompileMode`: warmups compile on an executor's threads, launches take what is there or make it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import knobs


class Waiting(Executor):
    """An executor that does nothing until it is told to."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Future[Any], Callable[..., Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # type: ignore[override]
        future: Future[Any] = Future()
        self.jobs.append((future, fn))
        return future

    def work(self) -> None:
        for future, fn in self.jobs:
            try:
                future.set_result(fn())
            except Exception as error:
                future.set_exception(error)
        self.jobs.clear()


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")


def filled(out_ptr, VALUE: tl.constexpr):
    tl.static_assert(VALUE >= 0, "VALUE is negative")
    tl.store(out_ptr + tl.arange(0, 4), VALUE)


def test_warmups_return_at_once_and_are_made_once() -> None:
    kernel, pool, out = triton.JITFunction(filled), Waiting(), np.zeros(4, np.float32)
    with triton.AsyncCompileMode(pool):
        pending = [kernel.warmup(tl.float32, value) for value in (1, 2, 1, 2, 1)]
        assert len(pool.jobs) == 2 and pending[0] is pending[2] is pending[4] and pending[1] is pending[3]
        assert all(isinstance(one, triton.FutureKernel) for one in pending)
        assert len(kernel.device_caches[0][0]) == 0, "nothing has been compiled"
        made = kernel[(1,)](out, 2)
        assert (out == 2).all() and len(kernel.device_caches[0][0]) == 1, (
            "a launch does not wait for what has not begun"
        )
        pool.work()
        assert pending[1].result() is made and len(kernel.device_caches[0][0]) == 2
    assert kernel[(1,)](out, 1) is pending[0].result() and (out == 1).all()
    assert kernel.warmup(tl.float32, 1) is pending[0].result()


def test_threads_compile_and_the_end_waits() -> None:
    kernel = triton.JITFunction(filled)
    told: list[Any] = []
    with knobs.runtime.scope(), ThreadPoolExecutor(2) as pool:
        knobs.runtime.jit_post_compile_hook = lambda **facts: told.append(facts["compile"]["is_warmup"])
        with triton.AsyncCompileMode(pool):
            pending = [kernel.warmup(tl.float32, value) for value in range(4)]
        assert all(one.future.done() for one in pending) and told == [True] * 4


def test_errors_come_at_the_end() -> None:
    kernel = triton.JITFunction(filled)
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(triton.CompileTimeAssertionFailure, match="is negative"), triton.AsyncCompileMode(pool):
            kernel.warmup(tl.float32, -1)
        with triton.AsyncCompileMode(pool, ignore_errors=True):
            failed, made = kernel.warmup(tl.float32, -2), kernel.warmup(tl.float32, 2)
        assert failed.result(ignore_errors=True) is None and made.result().metadata.name == "filled"
        with pytest.raises(triton.LaunchError, match="active already"), triton.AsyncCompileMode(pool):
            triton.AsyncCompileMode(pool).__enter__()
        with triton.AsyncCompileMode(pool):
            assert kernel.warmup(tl.float32, 5).result() is kernel.warmup(tl.float32, 5).result()


def test_the_end_waits_for_all_before_it_raises() -> None:
    kernel = triton.JITFunction(filled)
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(triton.CompileTimeAssertionFailure, match="is negative"), triton.AsyncCompileMode(pool):
            pending = [kernel.warmup(tl.float32, value) for value in (-1, 6, 7)]
        assert all(one.future.done() for one in pending) and pending[2].result().metadata.name == "filled"


def test_a_block_that_fails_waits_for_nothing() -> None:
    kernel, pool = triton.JITFunction(filled), Waiting()
    with pytest.raises(KeyError, match="of the block"), triton.AsyncCompileMode(pool):
        pending = kernel.warmup(tl.float32, 1)
        raise KeyError("of the block")
    assert pending.future.cancelled()


def test_tunings_compile_as_always() -> None:
    configs = [triton.Config({"VALUE": value}) for value in (3, 4)]
    tuned = triton.autotune(configs, [])(triton.JITFunction(filled))
    out = np.zeros(4, np.float32)
    with ThreadPoolExecutor(2) as pool, triton.AsyncCompileMode(pool):
        assert [one.metadata.name for one in tuned.warmup(tl.float32)] == ["filled"] * 2
        tuned[(1,)](out)
    assert out[0] in (3, 4)
