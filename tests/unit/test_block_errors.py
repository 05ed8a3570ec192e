"""What block pointers and descriptors refuse, and how they say it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors
from tilewright.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def wrong_kernel(x_ptr, n, n64, WHAT: tl.constexpr):
    p = tl.make_block_ptr(x_ptr, (n, n), (n, 1), (0, 0), (8, 8), (1, 0))
    d = tl.make_tensor_descriptor(x_ptr, [n, n], [n, 1], [8, 8])
    i = tl.arange(0, 8)
    if WHAT == "ranks":
        tl.make_block_ptr(x_ptr, (n,), (n, 1), (0, 0), (8, 8), (1, 0))
    elif WHAT == "order":
        tl.make_block_ptr(x_ptr, (n, n), (n, 1), (0, 0), (8, 8), (1, 1))
    elif WHAT == "base":
        tl.make_block_ptr(n, (n, n), (n, 1), (0, 0), (8, 8), (1, 0))
    elif WHAT == "no base":
        tl.make_block_ptr(None, (n, n), (n, 1), (0, 0), (8, 8), (1, 0))
    elif WHAT == "float":
        tl.make_block_ptr(x_ptr, (n, n), (n, 1), (0.5, 0), (8, 8), (1, 0))
    elif WHAT == "mask":
        tl.load(p, mask=i[:, None] < n)
    elif WHAT == "axis":
        tl.load(p, boundary_check=(2,))
    elif WHAT == "twice":
        tl.load(p, boundary_check=(1, -1))
    elif WHAT == "padding":
        tl.load(p, boundary_check=(1,), padding_option="one")
    elif WHAT == "nan":
        tl.load(p, boundary_check=(1,), padding_option="nan")
    elif WHAT == "pointer":
        tl.load(x_ptr + i, boundary_check=(0,))
    elif WHAT == "advance":
        tl.advance(x_ptr, (0, 1))
    elif WHAT == "advance ranks":
        tl.advance(p, (0,))
    elif WHAT == "last stride":
        tl.make_tensor_descriptor(x_ptr, [n, n], [1, n], [8, 8])
    elif WHAT == "last stride 2":
        tl.make_tensor_descriptor(x_ptr, [n, n], [n, 2], [8, 8])
    elif WHAT == "narrow":
        tl.make_tensor_descriptor(x_ptr, [n, n], [n, 1], [8, 2])
    elif WHAT == "rank 6":
        tl.make_tensor_descriptor(x_ptr, [n, n, n, n, n, n], [n, n, n, n, n, 1], [1, 1, 1, 1, 1, 8])
    elif WHAT == "i64":
        d.load([n64, 0])
    elif WHAT == "offsets":
        d.load([0])
    elif WHAT == "value":
        d.store([0, 0], i)
    elif WHAT == "gather":
        d.gather(i, 0)
    elif WHAT == "attribute":
        d.lod([0, 0])
    elif WHAT == "store":
        tl.store_tensor_descriptor(x_ptr, [0, 0], i)
    elif WHAT == "form":
        for _ in range(n):
            p = tl.make_block_ptr(x_ptr, (n, n), (n, 1), (0, 0), (16, 8), (1, 0))


WRONG = [
    ("ranks", errors.ArgumentError, "shape has 1, strides has 2"),
    ("order", errors.ArgumentError, "Expected a permutation"),
    (
        "base",
        errors.DTypeError,
        "expected `base` to be a pointer to the tensor's first element, got a value of type i32",
    ),
    ("no base", errors.DTypeError, "first element, got the compile-time value None"),
    ("float", errors.DTypeError, "an entry of offsets must be an integer"),
    ("mask", errors.ArgumentError, "boundary_check"),
    ("axis", errors.ArgumentError, "axis 2 of a block of rank 2"),
    ("twice", errors.ArgumentError, "Duplicate dimension"),
    ("padding", errors.ArgumentError, "'one' not supported"),
    ("nan", errors.ArgumentError, "not supported for integer"),
    ("pointer", errors.ArgumentError, "need a block pointer"),
    ("advance", errors.ArgumentError, "moves block pointers"),
    ("advance ranks", errors.ArgumentError, "offsets has 1, block_shape has 2"),
    ("last stride", errors.NotConstexprError, "last dim must be 1"),
    ("last stride 2", errors.ArgumentError, "last dim must be 1 but got 2"),
    ("narrow", errors.ArgumentError, "2 * 4 = 8 bytes"),
    ("rank 6", errors.ArgumentError, "but got 6"),
    ("i64", errors.DTypeError, "int32, not i64"),
    ("offsets", errors.ArgumentError, "offsets has 1, block_shape has 2"),
    ("value", errors.ShapeError, "the descriptor's blocks the shape [8, 8]"),
    ("gather", errors.ArgumentError, "blocks of 1 row"),
    ("attribute", errors.UnknownNameError, "no attribute"),
    ("store", errors.DTypeError, "expected a tensor descriptor"),
]


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
@pytest.mark.parametrize(("what", "kind", "said"), WRONG, ids=[case[0] for case in WRONG])
def test_errors(what: str, kind: Any, said: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(kind, match=re.escape(said)) as caught:
        wrong_kernel[(1,)](np.zeros((64, 64), np.int32), 8, 2**40, what)
    lines = str(caught.value).splitlines()
    carets = next(number for number, line in enumerate(lines) if re.fullmatch(r"\s*\^+", line))
    with open(__file__, encoding="utf-8") as source:
        text = source.read().splitlines()
    branch = next(number for number, line in enumerate(text) if line.strip().endswith(f'WHAT == "{what}":'))
    assert lines[carets - 1].strip() == text[branch + 1].strip()


def test_a_loop_keeps_the_form_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    with pytest.raises(errors.DTypeError, match="p changes its form in the loop"):
        wrong_kernel[(1,)](np.zeros((64, 64), np.int32), 8, 2**40, "form")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"shape": [8]}, "one entry per axis"),
        ({"shape": [0, 8]}, "shape must be positive"),
        ({"shape": [8, 7.5]}, "must be lists of integers"),
        ({"block_shape": 8}, "must be lists of integers"),
        ({"strides": [8, 2]}, "last stride must be 1"),
        ({"strides": [7, 1]}, "strides must be 16-byte aligned"),
        ({"base": np.zeros((9, 8), np.float32).reshape(-1)[1:]}, "base must be 16-byte aligned"),
        ({"base": 7}, "base must be an array, not int"),
        ({"padding": "one"}, "padding must be 'zero' or 'nan'"),
        ({"base": np.zeros((8, 8), np.int32), "padding": "nan"}, "for floats"),
        ({"shape": [2**31, 8]}, "too long a side"),
    ],
)
def test_errors_of_host_descriptors(change: Any, said: str) -> None:
    given = {"base": np.zeros((8, 8), np.float32), "shape": [8, 8], "strides": [8, 1], "block_shape": [8, 8]}
    with pytest.raises(errors.ArgumentKindError, match=said):
        TensorDescriptor(**(given | change))
    with pytest.raises(errors.ArgumentKindError, match="from_tensor takes an array, not int"):
        TensorDescriptor.from_tensor(5, [8])  # type: ignore[arg-type]


@triton.jit
def scaled_kernel(x_desc, out_desc, scale, B: tl.constexpr):
    out_desc.store([0, 0], x_desc.load([0, 0]) * scale)


@pytest.mark.parametrize("text", ["tensordesc<fp17[8, 8]>", "tensordesc<fp16>", "tensordesc"])
def test_errors_of_signatures(text: str) -> None:
    with pytest.raises(errors.SignatureError, match="tensordesc<fp16"):
        scaled_kernel.translate(f"{text}, tensordesc<fp16[8, 8]>, fp32, 32")
