"""Slips around a kernel: arguments, options and signatures that are none, parameters that contradict the decorator."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors
from tilewright.cli import main


@triton.jit(do_not_specialize=["N"])
def contradicting(x_ptr, N: tl.constexpr):
    tl.store(x_ptr, N)


@triton.jit
def calls_contradicting(x_ptr):
    contradicting(x_ptr, 5)


@triton.jit(do_not_specialize_on_alignment=[1])
def contradicting_on_alignment(
    x_ptr,
    N: tl.constexpr,
):
    tl.store(x_ptr, N)


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
@pytest.mark.parametrize(
    ("kernel", "arguments", "option", "calls", "line"),
    [
        (contradicting, (5,), "do_not_specialize", 0, "def contradicting(x_ptr, N: tl.constexpr):"),
        (calls_contradicting, (), "do_not_specialize", 1, "def contradicting(x_ptr, N: tl.constexpr):"),
        (contradicting_on_alignment, (5,), "do_not_specialize_on_alignment", 0, "    N: tl.constexpr,"),
    ],
)
def test_compile_time_parameters_are_specialised(
    kernel: Any, arguments: Any, option: str, calls: int, line: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(errors.ArgumentError, match=f"N marked as constexpr and listed in {option}\n") as caught:
        kernel[(1,)](np.zeros(1, np.int32), *arguments)
    assert caught.value.span.text == line and f"leave N out of {option}, or" in caught.value.remedy
    assert caught.value.span.text[caught.value.span.column :].startswith("N") and len(caught.value.calls) == calls
    assert linecache.getline(__file__, caught.value.span.line) == f"{line}\n"


@triton.jit
def writes(x_ptr, n: tl.int32):
    tl.store(x_ptr, n)


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((np.float32, 3), "only a compile-time parameter"),
        ((np.zeros(1, np.float32), float("nan")), "pass an integer"),
        ((np.zeros(1, np.float32), 2.5), "pass an integer"),
    ],
)
def test_arguments_that_are_none(arguments: Any, said: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(errors.ArgumentKindError, match=said):
        writes[(1,)](*arguments)


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
def test_a_read_only_array_is_written_nowhere(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    frozen = np.zeros(1, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(errors.ArgumentKindError, match="read-only"):
        writes[(1,)](frozen, 3)
    assert frozen[0] == 0


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
def test_an_array_without_axes_is_an_array(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x = np.zeros((), np.float32)
    writes[(1,)](x, 3)
    assert x == 3


@pytest.mark.parametrize(
    ("signature", "said"),
    [
        ("**fp32, i32", "entry 1"),
        ("*fp32, one", "expected a type"),
        (None, "a signature is a text"),
        (["*fp32", "i32"], "a signature is a text"),
    ],
)
def test_what_is_no_signature(signature: Any, said: str) -> None:
    with pytest.raises(errors.SignatureError, match=said):
        writes.translate(signature)


def test_an_option_with_a_slip() -> None:
    with pytest.raises(KeyError, match="num_warp was specified but unrecognised; did you mean num_warps?"):
        writes[(1,)](np.zeros(1, np.float32), 3, num_warp=4)
    with pytest.raises(errors.LaunchError, match="power of 2"):
        writes.translate("*fp32, i32", num_warps=np.int64(3))


@pytest.mark.parametrize(("option", "said"), [("3", "power of 2"), ("0", "power of 2"), ("64", "threads")])
def test_options_of_the_command_line(option: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["translate", f"{__file__}:writes", "--signature", "*fp32, i32", "--num-warps", option]
    assert main(command) == 1
    assert said in capsys.readouterr().err
