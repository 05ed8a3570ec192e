"""Kernels with one thing changed: an error of ours that shows the place, or a text that compiles and means one thing."""

from __future__ import annotations

import copy
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mutations
import numpy as np
import pytest
from golden_cases import GOLDEN_CASES
from tilewright.diagnostics import (
    CompilationError,
    KernelFaultError,
    NoSourceError,
    TilewrightError,
    UndefinedVariableError,
)
from tilewright.runtime.building import nvrtc
from tilewright.runtime.jit import JITFunction

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
HEADER = "import tilewright as triton\nimport tilewright.language as tl\n\n\n"
# Kernels that write every element once, whatever becomes of their offsets: no two threads write to one place.
SMALL = {
    "branches": """@triton.jit
def branches(x_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = x * scale if n > 10 else x + 1.0
    step = 1
    while step < 5:
        y += step
        step += 2
    tl.store(out_ptr + tl.arange(0, 32), tl.where(i < n, y, -1.0))
""",
    "helpers": """@triton.jit
def squared(x, y):
    return x * x + y


@triton.jit
def helpers(x_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(3):
        total = squared(x - tl.max(x, axis=0), total + k)
    tl.store(out_ptr + tl.arange(0, 32), total / tl.sum(total, axis=0) * scale)
""",
}


def kernel_of(text: str, name: str, file: Path) -> Any:
    """The kernel of a module's text, or None where Python itself does not take the module."""
    file.write_text(text, encoding="utf-8", newline="")
    space: dict[str, Any] = {"__name__": file.stem}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(text, str(file), "exec"), space)
    except (NameError, TypeError, NoSourceError):
        return None  # an unknown decorator
    found = space.get(name)
    return found if isinstance(found, JITFunction) else None


class EndlessError(BaseException):
    """A mutant that runs for ever."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Ends what Python runs after some seconds, where there are signals."""

    def end(*_: Any) -> None:
        raise EndlessError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def check_error(error: TilewrightError, text: str) -> None:
    """Every error about a text shows a line of it, with a caret."""
    if isinstance(error, CompilationError):
        assert error.span is not None, str(error)
        assert error.cause, str(error)
        assert error.span.text.strip() in text
        assert "^" in str(error)
        assert " at 0x" not in str(error), "an address differs from run to run"


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize("seed", range(40))
def test_samples_with_one_thing_changed(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")
    monkeypatch.syspath_prepend(str(SAMPLES))
    case = GOLDEN_CASES[seed % len(GOLDEN_CASES)]
    before = (SAMPLES / f"{case.sample}.py").read_text(encoding="utf-8")
    text, _ = mutations.mutated(before, (case.kernel,), seed)
    kernel = kernel_of(text, case.kernel, tmp_path / "mutant.py")
    if kernel is None:
        return
    try:
        artifact = kernel.translate(case.signature, arch=case.arch, **case.options)
    except TilewrightError as error:
        check_error(error, text)
        return
    assert "warning" not in nvrtc.compile_text(artifact, case.arch).log


@pytest.mark.filterwarnings("ignore:the condition of tl.where")
@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no signals, and no CPU run")
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("name", SMALL)
def test_small_kernels_mean_the_same(name: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")
    text, _ = mutations.mutated(HEADER + SMALL[name], (name, "squared"), seed)
    kernel = kernel_of(text, name, tmp_path / "mutant.py")
    if kernel is None:
        return
    given = (np.linspace(-2, 3, 32, dtype=np.float32), np.zeros(32, np.float32), 20, 1.5, 32)
    found: list[Any] = []
    for mode in ("interpret", "cpu"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        own = copy.deepcopy(given)
        try:
            with limited(2 if mode == "interpret" else 60):
                kernel[(1,)](*own)
        except (KernelFaultError, EndlessError):
            return  # an access out of bounds, which the CPU run need not find
        except OSError:
            return  # `with open("x")`, which the interpreter does as Python
        except TilewrightError as error:
            check_error(error, text)
            if isinstance(error, UndefinedVariableError):
                return  # Python looks for no global of a name that is assigned further down; the translator does
            found.append(None)
        else:
            found.append(own[1])
    if all(one is not None for one in found):
        np.testing.assert_allclose(*found, rtol=2e-5, atol=2e-5, err_msg=text)
    assert found[0] is not None or found[1] is None, f"only the interpreter refuses this:\n{text}"
