"""Compile-time values of any class: `.value` and `.type` of what `tl.constexpr` wraps, and objects that no text can show."""

from __future__ import annotations

import enum
import os
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors
from tilewright.tools.tensor_descriptor import TensorDescriptor
from written_kernels import written_kernel


class Mode(enum.Enum):
    A = 1
    B = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass(frozen=True)
class Settings:
    value: int = 7
    type: int = 8
    mode: Mode = Mode.B


Pair = namedtuple("Pair", ["value", "other"])
GLOBAL = tl.constexpr(Mode.B)


@triton.jit
def with_default(x, MODE: tl.constexpr = Mode.B):
    return x + (1 if MODE.value == Mode.B else 2)


@triton.jit
def not_annotated(x, mode):
    return x + (1 if mode.value == Mode.B else 2)


@triton.jit
def wrapped_values(o_ptr, MODE: tl.constexpr, LEVEL: tl.constexpr, SETTINGS: tl.constexpr, PAIR: tl.constexpr, x):
    tl.static_assert(MODE == Mode.B)
    tl.static_assert(MODE.value == Mode.B and MODE.value is Mode.B and MODE.name == "B")
    tl.static_assert(MODE.value.value == 2 and GLOBAL.value.value == 2 and Mode.B.value == 2)
    tl.static_assert(MODE.type != 2 and SETTINGS.type != 8)
    tl.static_assert(LEVEL == 2 and LEVEL.value == Level.HIGH and LEVEL.value.value == 2)
    tl.static_assert(SETTINGS.value.value == 7 and SETTINGS.value.type == 8 and SETTINGS.mode.value == 2)
    tl.static_assert(PAIR.value.value == 5 and PAIR.value.other == 6 and PAIR.other == 6)
    plain = MODE
    tl.static_assert(plain.value == 2)
    again: tl.constexpr = MODE.value
    tl.static_assert(again.value == Mode.B)
    i = tl.arange(0, 8)
    tl.static_assert(i.shape[0].value == 8)
    tl.store(o_ptr, with_default(x))
    tl.store(o_ptr + 1, with_default(x, Mode.A))
    tl.store(o_ptr + 2, not_annotated(x, MODE))
    tl.store(o_ptr + 3, not_annotated(x, Mode.B))


def test_value_and_type_are_those_of_the_constexpr(run_everywhere: Any) -> None:
    arguments = (Mode.B, Level.HIGH, Settings(), Pair(5, 6), 100)
    assert run_everywhere(wrapped_values, (1,), np.zeros(4, np.int32), *arguments)[0].tolist() == [101, 102, 101, 102]


@triton.jit
def items_of_a_tuple(o_ptr, MODES: tl.constexpr):
    tl.static_assert(MODES[0].value == 2 and MODES.value[1].value == 1)
    for k in tl.static_range(2):
        tl.store(o_ptr + k, [mode.value for mode in MODES][k])


def test_items_of_a_constexpr_are_not_wrapped(run_everywhere: Any) -> None:
    assert run_everywhere(items_of_a_tuple, (1,), np.zeros(2, np.int32), (Mode.B, Mode.A))[0].tolist() == [2, 1]


class OnTwoLines:
    def __repr__(self) -> str:
        return "OnTwoLines(\n  a=1)"


class WithBackslash:
    def __repr__(self) -> str:
        return "WithBackslash\\"


@triton.jit
def takes_anything(o_ptr, OBJECT: tl.constexpr, WORD: tl.constexpr):
    tl.device_assert(tl.program_id(0) == 0, WORD)
    tl.device_print(WORD)
    tl.store(o_ptr, 1)


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
@pytest.mark.parametrize(
    "value",
    [OnTwoLines(), (OnTwoLines(), 1), WithBackslash(), np.float32, np, np.dtype("float32"), "a\ud800b", "a\nb\u2028",
     TensorDescriptor.from_tensor(np.zeros((16, 16), np.float32), [16, 16])],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_any_object_is_a_compile_time_value(value: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands in a comment at the top of the text, which it must not end, and which shows no paths of a machine."""
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    o = np.zeros(1, np.int32)
    compiled = takes_anything[(1,)](o, value, "half \ud800", debug=True)
    assert o[0] == 1
    if compiled is not None:
        text = compiled.artifact.source
        assert text.encode() and f"{os.sep}numpy" not in text and " at 0x" not in text


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
def test_an_array_is_no_compile_time_value(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(errors.ArgumentKindError, match="OBJECT is an array"):
        takes_anything[(1,)](np.zeros(1, np.int32), np.zeros(3), "")


@pytest.mark.parametrize("name", ["two\nlines.py", "half\udce9.py", "back\\"])
def test_any_name_of_a_file(name: str, tmp_path: Path, run_everywhere: Any) -> None:
    header = "import tilewright as triton\nimport tilewright.language as tl\n@triton.jit\ndef kernel(x_ptr):\n"
    body = 'tl.device_assert(tl.program_id(0) == 0, "first")\ntl.store(x_ptr, 1)'
    kernel = written_kernel(tmp_path / name, header, body)
    assert run_everywhere(kernel, (1,), np.zeros(1, np.int32), debug=True)[0][0] == 1
