"""Arrays and containers outside of a kernel that change in place: what it read of them stands in its text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilewright import diagnostics as errors
from written_kernels import written_kernel

HEADER = """from collections import deque
import numpy as np
import tilewright as triton
import tilewright.language as tl
TABLE = np.array([1.0, 2.0, np.nan], np.float32)
NESTED, QUEUE, MEMBERS = [np.array([1.0, 2.0])], deque([1.0, 2.0]), {1, 2}
@triton.constexpr_function
def from_table(index):
    return float(TABLE[index])
@triton.jit
def kernel(x_ptr):
"""


def kernel_that_reads(read: str, tmp_path: Path) -> tuple[Any, Any]:
    """The kernel that stores what is read, after two launches, and the names of its module."""
    kernel = written_kernel(tmp_path / "reading.py", HEADER, f"tl.store(x_ptr, {read})")
    for _ in range(2):
        kernel[(1,)](np.zeros(1, np.float32))
    return kernel, kernel.fn.__globals__


def change_all(names: Any) -> None:
    """Changes everything of the header in place."""
    for changed in (names["TABLE"], names["NESTED"][0], names["QUEUE"]):
        changed[1] += 1
    names["MEMBERS"].add(7)


@pytest.mark.parametrize(
    "read",
    ["TABLE[1]", "float(TABLE[1:2][0])", "TABLE[:2].max()", "max(TABLE[:2])", "np.sum(TABLE[:2])", "from_table(1)",
     "NESTED[0][1]", "QUEUE[1]", "len(MEMBERS)"],
)  # fmt: skip
def test_a_changed_content_is_noticed(read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    kernel, names = kernel_that_reads(read, tmp_path)
    change_all(names)
    with pytest.raises(errors.GlobalChangedError, match="has changed since we compiled this kernel"):
        kernel[(1,)](np.zeros(1, np.float32))


@pytest.mark.parametrize("read", ["TABLE.shape[0]", "len(TABLE)", "TABLE[0]", "from_table(0) + NESTED[0].ndim"])
def test_what_was_not_read_may_change(read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for what a function of Python may have read of an array: it is not known which elements those were."""
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    kernel, names = kernel_that_reads(read, tmp_path)
    change_all(names)
    if "from_table" in read:
        with pytest.raises(errors.GlobalChangedError):
            kernel[(1,)](np.zeros(1, np.float32))
    else:
        kernel[(1,)](np.zeros(1, np.float32))


def test_the_interpreter_reads_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    kernel, names = kernel_that_reads("TABLE[1]", tmp_path)
    change_all(names)
    x = np.zeros(1, np.float32)
    kernel[(1,)](x)
    assert x[0] == 3


OBJECT = """import tilewright as triton
import tilewright.language as tl
class Settings:
    def __init__(self): self.n = 1
    def get(self): return self.n
    def __getitem__(self, key): return self.n + key
@triton.jit
def kernel(x_ptr, SETTINGS: tl.constexpr):
"""


@pytest.mark.parametrize("read", ["SETTINGS.n", "SETTINGS.get()", "SETTINGS[0]"])
def test_an_argument_that_is_changed_in_place(read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text does not tell, which is what the text of the kernel is found by."""
    kernel = written_kernel(tmp_path / "reading.py", OBJECT, f"tl.store(x_ptr, {read})")
    settings, x = kernel.fn.__globals__["Settings"](), np.zeros(1, np.float32)
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    kernel[(1,)](x, settings)
    settings.n = 2
    with pytest.raises(errors.GlobalChangedError, match=r"Settings\.n has changed"):
        kernel[(1,)](x, settings)
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    kernel[(1,)](x, settings)
    assert x[0] == 2


SHOWN = """import tilewright as triton
import tilewright.language as tl
class Settings:
    n = 1
    def __repr__(self): return f"Settings({self.n})"
@triton.jit
def kernel(x_ptr, SETTINGS: tl.constexpr):
"""


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
def test_an_argument_whose_text_tells_is_another_one(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    kernel = written_kernel(tmp_path / "shown.py", SHOWN, "tl.store(x_ptr, SETTINGS.n)")
    settings, x = kernel.fn.__globals__["Settings"](), np.zeros(1, np.float32)
    for n in (1, 2, 3, 1):
        settings.n = n
        kernel[(1,)](x, settings)
        assert x[0] == n
