"""Names that are first bound in a loop or in one branch end with it, in the interpreter as in the other modes."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def of_loop(x_ptr, n):
    for i in range(n):
        last = i * 2
    tl.store(x_ptr, last)


@triton.jit
def of_while(x_ptr, n):
    i = 0
    while i < n:
        doubled = i + i
        i += 1
    tl.store(x_ptr, doubled)


@triton.jit
def of_branch(x_ptr, n):
    if n > 2:
        y = 3.0
    tl.store(x_ptr, y)


@triton.jit
def of_other_branch(x_ptr, n):
    if n > 9:
        x = 3.0
    else:
        y = 3.0
        x = 4.0
    tl.store(x_ptr, x + y)


@triton.jit
def of_inner_loop(x_ptr, n):
    for i in range(n):
        for j in range(2):
            y = i + j
        tl.store(x_ptr + i, y)


@triton.jit
def changed_index(x_ptr, n):
    for i in range(n):
        i += 1
    tl.store(x_ptr, i)


@triton.jit
def of_earlier_trip(x_ptr, n):
    for i in range(n):
        if i > 0:
            tl.store(x_ptr + i, y)  # noqa: F821
        y = i + 1  # noqa: F841


@triton.jit
def with_end(n):
    if n > 2:
        y = 5
    else:
        return 7
    return y


@triton.jit
def allowed(x_ptr, n, FLAG: tl.constexpr):
    z = 0
    for i in tl.static_range(3):
        y = i + 1
    if FLAG:
        w = y + 1
    if n > 3:
        v = 1
    else:
        v = 2
    for j in range(n):
        z += j
        k = z
        tl.store(x_ptr + 4, k)
    for j in range(n):
        k = j + 10
        tl.store(x_ptr + 5, k)
    if n > 3:
        k = 20
        tl.store(x_ptr + 6, k)
    tl.store(x_ptr, y)
    tl.store(x_ptr + 1, w + v)
    tl.store(x_ptr + 2, z + j)
    tl.store(x_ptr + 3, with_end(n))


REFUSED = [of_loop, of_while, of_branch, of_other_branch, of_inner_loop, changed_index, of_earlier_trip]


@pytest.mark.parametrize("kernel", REFUSED, ids=lambda kernel: kernel.__name__)
def test_all_modes_refuse_them_in_the_same_words(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    for mode in ("cpu", "interpret"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        with pytest.raises(triton.CompilationError) as caught:
            kernel[(1,)](np.zeros(8, np.int32), 4)
        assert type(caught.value).__name__ == "UndefinedVariableError"
        error, span = caught.value, caught.value.span
        knows_columns = sys.version_info >= (3, 11)  # before, the interpreter shows the whole line
        said.append(str(error) if knows_columns else (error.cause, error.remedy, span.file, span.line))
    assert said[0] == said[1]


def test_what_is_allowed_stays(run_everywhere: Any) -> None:
    out = run_everywhere(allowed, (1,), np.zeros(8, np.int32), 4, FLAG=True)[0]
    assert out.tolist() == [3, 5, 9, 5, 6, 13, 20, 0]
