"""Functions that are inlined and whose results take the place of what they were given: they work on the caller's variables."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl


@triton.jit
def add_blocks(total, most, x_ptr, first, last, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    for start in range(first, last, BLOCK):
        x = tl.load(x_ptr + start + offs)
        most = tl.maximum(most, x)
        total = total + x * most
    return total, most


@triton.jit
def in_two_parts(x_ptr, out_ptr, n, m, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    most = tl.zeros((BLOCK,), tl.float32)
    total, most = add_blocks(total, most, x_ptr, 0, n, BLOCK)
    total, most = add_blocks(total, most, x_ptr, n, m, BLOCK)
    tl.store(out_ptr + tl.arange(0, BLOCK), total + most)


def expected(x: np.ndarray) -> np.ndarray:
    """What `in_two_parts` stores, block by block."""
    most = total = np.zeros(64, np.float32)
    for block in x.reshape(-1, 64):
        most = np.maximum(most, block)
        total = total + block * most
    return total + most


def test_a_function_that_is_called_twice_works_on_the_callers_variables(run_everyhow: Callable[..., Any]) -> None:
    x = np.random.default_rng(0).standard_normal(64 * 7).astype(np.float32)
    for arguments in run_everyhow(in_two_parts, (1,), [x, np.zeros(64, np.float32), 64 * 3, 64 * 7], BLOCK=64):
        np.testing.assert_allclose(arguments[1], expected(x), rtol=1e-6)
    text = in_two_parts.translate("*fp32, *fp32, i32, i32, 64").source
    assert "total_" not in text and "most_" not in text
    quoted = re.findall(r"// L\d+: (?:total, most = add_blocks|for start in)", text)
    assert len(quoted) == len(set(quoted)) + 1 == 4


@triton.jit
def with_what_was_before(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32) + 1.0
    most = tl.zeros((BLOCK,), tl.float32)
    more, most = add_blocks(total, most, x_ptr, 0, n, BLOCK)
    tl.store(out_ptr + tl.arange(0, BLOCK), total + more * 2 + most)


@triton.jit
def in_every_trip(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    most = tl.zeros((BLOCK,), tl.float32)
    for _ in range(3):
        before = total
        total, most = add_blocks(total, most, x_ptr, 0, n, BLOCK)
        total += before
    most, total = add_blocks(most, total, x_ptr, 0, n, BLOCK)
    tl.store(out_ptr + tl.arange(0, BLOCK), total - most)


def test_what_is_read_afterwards_is_not_touched(run_everyhow: Callable[..., Any]) -> None:
    x = np.random.default_rng(1).standard_normal(64 * 2).astype(np.float32)
    one, other = x.reshape(2, 64)
    first = np.maximum(one, 0)
    second = np.maximum(first, other)
    total = 1 + one * first + other * second
    for arguments in run_everyhow(with_what_was_before, (1,), [x, np.zeros(64, np.float32), 128], BLOCK=64):
        np.testing.assert_allclose(arguments[1], 1 + total * 2 + second, rtol=1e-5)


def test_in_a_loop_and_with_names_exchanged(run_everyhow: Callable[..., Any]) -> None:
    x = np.random.default_rng(2).standard_normal(64 * 2).astype(np.float32)

    def add(total: Any, most: Any) -> tuple[Any, Any]:
        for block in x.reshape(-1, 64):
            most = np.maximum(most, block)
            total = total + block * most
        return total, most

    total = most = np.zeros(64, np.float32)
    for _ in range(3):
        before = total
        total, most = add(total, most)
        total = total + before
    most, total = add(most, total)
    for arguments in run_everyhow(in_every_trip, (1,), [x, np.zeros(64, np.float32), 128], BLOCK=64):
        np.testing.assert_allclose(arguments[1], total - most, rtol=1e-5, atol=1e-6)


@triton.jit
def beside_two_results(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    greatest, place = tl.max(tl.load(x_ptr + tl.arange(0, BLOCK)), axis=0, return_indices=True)
    total = tl.zeros((BLOCK,), tl.float32)
    most = tl.zeros((BLOCK,), tl.float32)
    total, most = add_blocks(total, most, x_ptr, 0, n, BLOCK)
    tl.store(out_ptr + tl.arange(0, BLOCK), total + greatest + place)


def test_beside_an_operation_of_two_results(run_everyhow: Callable[..., Any]) -> None:
    x = np.random.default_rng(3).standard_normal(64 * 2).astype(np.float32)
    first = np.maximum(x[:64], 0)
    most = np.maximum(first, x[64:])
    total = x[:64] * first + x[64:] * most
    for arguments in run_everyhow(beside_two_results, (1,), [x, np.zeros(64, np.float32), 128], BLOCK=64):
        np.testing.assert_allclose(arguments[1], total + x[:64].max() + x[:64].argmax(), rtol=1e-5, atol=1e-5)


@triton.jit
def row_and_block(x_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    row, _ = pid // 2, pid % 2
    return row, tl.make_block_ptr(x_ptr, (n,), (1,), (row * BLOCK,), (BLOCK,), order=(0,)), (row + 1, pid)


@triton.jit
def along_a_block(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, block, others = row_and_block(x_ptr, n, BLOCK)
    for step in range(2):
        x = tl.load(block, boundary_check=(0,), padding_option="zero")
        tl.store(out_ptr + (row * 2 + step) * BLOCK + tl.arange(0, BLOCK), x * others[0])
        block = tl.advance(block, (BLOCK,))


def test_a_bundle_may_be_made_of_another_result(run_everyhow: Callable[..., Any], monkeypatch: Any) -> None:
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")
    x = np.random.default_rng(4).standard_normal(64 * 3).astype(np.float32)
    blocks = np.concatenate([x, np.zeros(64, np.float32)]).reshape(4, 64)
    result = np.concatenate([blocks[:2], blocks[1:3] * 2])
    for arguments in run_everyhow(along_a_block, (4,), [x, np.zeros(64 * 4, np.float32), 64 * 3], BLOCK=64):
        np.testing.assert_allclose(arguments[1], result.reshape(-1), rtol=1e-6)


@triton.jit
def one_step(x, most, total):
    # What came before shrinks.
    higher = tl.maximum(most, x)
    total = total * (most - higher) + x
    total = total + 1.0
    return higher, total


@triton.jit
def step_by_step(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    most = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + start + offs)
        most, total = one_step(x, most, total)
    tl.store(out_ptr + offs, total + most)


def test_what_a_function_makes_of_its_parameter_is_the_callers_variable(run_everyhow: Callable[..., Any]) -> None:
    x = np.random.default_rng(5).standard_normal(64 * 3).astype(np.float32)
    most = total = np.zeros(64, np.float32)
    for block in x.reshape(3, 64):
        higher = np.maximum(most, block)
        most, total = higher, total * (most - higher) + block + 1
    for arguments in run_everyhow(step_by_step, (1,), [x, np.zeros(64, np.float32), 64 * 3], BLOCK=64):
        np.testing.assert_allclose(arguments[1], total + most, rtol=1e-5, atol=1e-5)
    text = step_by_step.translate("*fp32, *fp32, i32, 64").source
    assert "total_" not in text and "total = total * (most - higher) + x" in text
    assert re.search(r"// L\d+: return higher, total    \(goes back to L\d+\)\n *most = higher;", text)


@triton.jit
def step_with_both(x, total, before):
    total = total + x
    return total, before * total


@triton.jit
def step_over(x, total, before):
    total = total + x
    more = before * total
    return more, total


@triton.jit
def what_it_held_is_needed(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    total = x + 1.0
    total, first = step_with_both(x, total, total)
    second, total = step_over(x, total, total)
    tl.store(out_ptr + offs, total + first + second)


def test_what_the_callers_variable_held_may_be_needed_until_the_end(run_everyhow: Callable[..., Any]) -> None:
    x = np.random.default_rng(6).standard_normal(64).astype(np.float32)
    total = x + 1
    first, total = total * (total + x), total + x
    second, total = total * (total + x), total + x
    for arguments in run_everyhow(what_it_held_is_needed, (1,), [x, np.zeros(64, np.float32)], BLOCK=64):
        np.testing.assert_allclose(arguments[1], total + first + second, rtol=1e-5, atol=1e-5)
