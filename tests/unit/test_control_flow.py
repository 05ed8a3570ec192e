"""Ways through a kernel: returns of helpers, names that loops and branches change; on the CPU as in the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors

# ------------------------------------------------------------------------------------------------- returns of helpers


@triton.jit
def stepwise(v, DEEP: tl.constexpr):
    t = tl.arange(0, 4)
    if DEEP:
        if v > 1:
            if v > 4:
                return t + 1
            t = t + 20
        elif v == 1:
            t = t * 2
        t = t + 300
    t = t + 4000
    return t


@triton.jit
def storing(o_ptr, v):
    if v > 1:
        if v > 3:
            tl.store(o_ptr, 1)
            return
        tl.store(o_ptr + 1, 2)
    tl.store(o_ptr + 2, 3)
    if v == 0:
        return
    tl.store(o_ptr + 3, 4)


@triton.jit
def chosen(t, WHICH: tl.constexpr):
    for k in tl.static_range(4):
        if k == WHICH:
            return t + k
    return t - 1


@triton.jit
def returning(o_ptr, n, DEEP: tl.constexpr):
    i = tl.arange(0, 4)
    tl.store(o_ptr + i, stepwise(n, DEEP))
    total = tl.zeros((4,), tl.int32)
    for k in range(n):
        total += stepwise(k, DEEP)
        storing(o_ptr + 8, k)
    tl.store(o_ptr + 4 + i, total)
    tl.store(o_ptr + 12 + i, chosen(i, 2) + chosen(i, 9))


@pytest.mark.parametrize("n", range(7))
@pytest.mark.parametrize("deep", (True, False))
def test_early_returns_of_helpers(run_everywhere: Any, n: int, deep: bool) -> None:
    (found,) = run_everywhere(returning, (1,), np.full(16, -1, np.int32), n, deep)

    def expected(v: int) -> np.ndarray:
        i = np.arange(4)
        if not deep:
            return i + 4000
        return i + 1 if v > 4 else (i + 20 if v > 1 else i * 2 if v == 1 else i) + 4300

    np.testing.assert_array_equal(found[:4], expected(n))
    np.testing.assert_array_equal(found[4:8], sum((expected(k) for k in range(n)), np.zeros(4)))
    assert found[8:12].tolist() == [1 if n > 4 else -1, 2 if n > 2 else -1, 3 if n > 0 else -1, 4 if n > 1 else -1]
    np.testing.assert_array_equal(found[12:], 2 * np.arange(4) + 1)


# --------------------------------------------------------------------------------------- names of loops around and in


@triton.jit
def reused_names(o_ptr, n):
    k = 5
    if n > 3:
        for k in range(3):
            tl.store(o_ptr + 8, k)
    tl.store(o_ptr, k)
    k = 6
    for j in range(n):
        tl.store(o_ptr + 1, k)
        for k in range(j):
            tl.store(o_ptr + 8, k)
    tl.store(o_ptr + 2, k)
    k = 7
    j = 0
    while j < n:
        tl.store(o_ptr + 3, k)
        for k in tl.static_range(3):
            tl.store(o_ptr + 8, k)
        j += 1
    tl.store(o_ptr + 4, k)
    c = 0
    while (n := n - 1) > 0:
        c += 1
    tl.store(o_ptr + 5, c)
    tl.store(o_ptr + 6, n)


@pytest.mark.parametrize("n", (0, 1, 2, 5))
def test_names_of_loops_that_are_used_around_them(run_everywhere: Any, n: int) -> None:
    (found,) = run_everywhere(reused_names, (1,), np.full(9, -1, np.int32), n)
    around = {0: (5, -1, 6, -1, 7), 1: (5, 6, 6, 7, 2), 2: (5, 6, 0, 2, 2), 5: (2, 2, 3, 2, 2)}[n]
    assert found[:7].tolist() == [*around, max(n - 1, 0), min(n - 1, 0)]


@triton.jit
def tile_or_none(v):
    t = tl.arange(0, 4)
    if v > 3:
        return t
    return None


@triton.jit
def returns_from_a_loop(v):
    t = tl.arange(0, 4)
    for k in range(v):
        if k > 3:
            return t + k
    return t


@triton.jit
def no_value(o_ptr, n, B: tl.constexpr):
    tl.store(o_ptr + tl.arange(0, 4), tile_or_none(n))


@triton.jit
def value_from_a_loop(o_ptr, n, B: tl.constexpr):
    tl.store(o_ptr + tl.arange(0, 4), returns_from_a_loop(n))


@triton.jit
def constexpr_that_counts(o_ptr, n, B: tl.constexpr):
    for k in range(n):
        B += 1
    tl.store(o_ptr, B)


@triton.jit
def none_at_first(o_ptr, n, B: tl.constexpr):
    last = None
    for k in range(n):
        if last is not None:
            tl.store(o_ptr, last)
        last = k


@triton.jit
def none_in_the_end(o_ptr, n, B: tl.constexpr):
    last = n * 2
    for k in range(n):
        tl.store(o_ptr, last)
        last = None


@triton.jit
def changed_in_its_own_loop(o_ptr, n, B: tl.constexpr):
    for k in range(n):
        k += 10
        tl.store(o_ptr, k)
    tl.store(o_ptr, k)


@triton.jit
def assigned_in_one_side(o_ptr, n, B: tl.constexpr):
    y = (m := n * 3) if n > 2 else 2
    tl.store(o_ptr, y + m)


@triton.jit
def starred(o_ptr, n, B: tl.constexpr):
    first, *others = (n, 2)
    tl.store(o_ptr + first, others)


@pytest.mark.parametrize(
    ("kernel", "kind", "said"),
    [
        (no_value, errors.DTypeError, "a value on some ways and none on others"),
        (value_from_a_loop, errors.UnsupportedLanguageConstruct, "Cannot have `return`"),
        (constexpr_that_counts, errors.UndefinedVariableError, "cannot reassign constexpr B in the loop"),
        (none_at_first, errors.UndefinedVariableError, "None before the loop, which changes it"),
        (none_in_the_end, errors.UndefinedVariableError, "i32 before the loop, which assigns what no variable"),
        (changed_in_its_own_loop, errors.UndefinedVariableError, "changed inside the loop over it"),
        (assigned_in_one_side, errors.UndefinedVariableError, "m is defined in only one branch"),
        (starred, errors.UnsupportedLanguageConstruct, r"\* in the target"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_what_has_no_meaning_on_all_ways(kernel: Any, kind: Any, said: str) -> None:
    with pytest.raises(kind, match=said) as caught:
        kernel.translate("*i32:16, i32, 8")
    assert "test_control_flow.py:" in str(caught.value) and "^" in str(caught.value)


@triton.jit
def set_in_the_loop_only(o_ptr, n):
    last = None
    kind = tl.int32
    for k in range(n):
        last = k * 2
        kind = tl.int32
        tl.store(o_ptr, tl.full((), last, kind))


def test_compile_time_values_that_no_iteration_hands_on(run_everywhere: Any) -> None:
    (found,) = run_everywhere(set_in_the_loop_only, (1,), np.zeros(1, np.int32), 5)
    assert found[0] == 8


@triton.jit
def loops_in_branches(x_ptr, out_ptr, n, FEW: tl.constexpr, MANY: tl.constexpr):
    total = 0.0
    for j in tl.static_range(FEW):
        total += tl.load(x_ptr + j)
    if n > 3:
        for j in tl.static_range(MANY):
            total *= tl.load(x_ptr + j)
    for i in range(n):
        if i > 1:
            for k in tl.static_range(FEW):
                total += k * i
        else:
            for k in tl.static_range(MANY):
                total -= k
    tl.store(out_ptr, total)


@pytest.mark.parametrize("n", (2, 4))
def test_static_loops_of_other_lengths_in_branches(run_everywhere: Any, n: int) -> None:
    """What their variables held behind the branches was refused as of two types, although nobody reads it."""
    x = np.arange(1, 5, dtype=np.float32)
    run_everywhere(loops_in_branches, (1,), x, np.zeros(1, np.float32), n, FEW=2, MANY=3)


@triton.jit
def read_behind_branches(out_ptr, n):
    if n > 3:
        for k in tl.static_range(2):
            tl.store(out_ptr + k, n)
    else:
        for k in tl.static_range(3):
            tl.store(out_ptr + k, n)
    tl.store(out_ptr, k)


def test_a_number_that_differs_by_the_branch_is_an_error_where_it_is_read() -> None:
    with pytest.raises(
        errors.UndefinedVariableError, match="k holds what loops over it left, which is not the same"
    ) as caught:
        read_behind_branches.translate("*i32, i32")
    assert "tl.store(out_ptr, k)" in str(caught.value)
