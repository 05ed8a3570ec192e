"""Forms of Python's that kernels do not have are the same error at the same place wherever the kernel runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tilewright import diagnostics as errors
from written_kernels import written_kernel

HEADER = """import tilewright as triton
import tilewright.language as tl
@triton.jit
def added(a, b=2):
    return a + b
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
"""
FORMS = [
    ("a, *b = 1, 2, 3", r"\* in the target of an assignment"),
    ("a = b = 2", "a chained assignment"),
    ("f = lambda x: x", "Lambda expressions"),
    ("def f(x):\n    return x", "def statements"),
    ("class A: pass", "class statements"),
    ("try:\n    pass\nexcept Exception:\n    pass", "Try statements"),
    ("with n:\n    pass", "With statements"),
    ("global m", "Global statements"),
    ("m = 1\ndel m", "del statements"),
    ("y = {'a': 1}", "Dict expressions"),
    ("y = {1, 2}", "Set expressions"),
    ("y = {i for i in (1, 2)}", "SetComp expressions"),
    ("y = tuple(i for i in (1, 2))", "GeneratorExp expressions"),
    ("y = [i + j for i in (1, 2) for j in (1, 2)]", "this form of comprehension"),
    ("y = [i for i, j in ((1, 2), (3, 4))]", "this form of comprehension"),
    ("y = added(1, **B)", r"\*\*kwargs in a call"),
    ("match n:\n    case 1:\n        pass", "Match statements"),
    ("for i in range(n):\n    break", "Break statements"),
    ("for i in range(n):\n    pass\nelse:\n    pass", "else of a loop"),
    ("while n > 9:\n    n -= 1\n\n# behind\nelse:\n\n    elsewhere = 1", "else of a loop"),
    ("m: tl.constexpr = 3\nm: tl.constexpr = 4", "a constexpr cannot be defined twice"),
    ("for i in tl.static_range(2):\n    m: tl.constexpr = i", "a constexpr cannot be defined twice"),
]


@pytest.mark.parametrize(("body", "said"), FORMS, ids=lambda text: text.split("\n")[0])
def test_a_form_is_refused_everywhere(body: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = written_kernel(tmp_path / "form.py", HEADER, f"tl.store(x_ptr, 1.0)\n{body}")
    places = []
    for mode in ("cpu", "interpret"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        with pytest.raises(errors.CompilationError, match=said) as caught:
            kernel[(1,)](np.zeros(1, np.float32), 7, B=8)
        assert caught.value.span is not None
        places.append(caught.value.span.line)
    assert places[0] == places[1]


@pytest.mark.parametrize(
    "body",
    [
        "if B > 8:\n    f = lambda x: x",
        "m: tl.constexpr\nm = 3",
        "n: tl.constexpr = 3",
        "(a, b) = (1, 2)",
        "a, (b, c) = 1, (2, 3)",
    ],
)
def test_what_kernels_have_is_taken_everywhere(body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not reached, declarations, one that takes the name of an argument of 1, and tuples as targets."""
    kernel = written_kernel(tmp_path / "form.py", HEADER, f"{body}\ntl.store(x_ptr, 1.0)")
    for mode in ("cpu", "interpret"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        x = np.zeros(1, np.float32)
        kernel[(1,)](x, 1, B=8)
        assert x[0] == 1
