"""The arithmetic of tensor maps and guards: Python's meaning, and an error for everything else."""

from __future__ import annotations

import pytest
from tilewright.diagnostics import HostExpressionError
from tilewright.runtime.launching.host_expressions import evaluate

VALUES = {"M": 130, "N": -7, "stride_am": 64}


@pytest.mark.parametrize("text", ["M", "12", "M + N * 2", "(M + 127) // 128 * 128", "M % 128 == 0", "stride_am * 2", "-M - -N",
                                  "M // 7 % 5", "M >= 130", "M != 130", "N < 0", " M "])  # fmt: skip
def test_it_means_what_python_means(text: str) -> None:
    assert evaluate(text, VALUES) == eval(text.strip(), {}, VALUES)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("K + 1", "K is no integer argument"),
        ("M / 2", "M / 2 is no such arithmetic"),
        ("min(M, 2)", "no such arithmetic"),
        ("1 < M < 2", "no such arithmetic"),
        ("M and 1", "no such arithmetic"),
        ("M.real", "no such arithmetic"),
        ("1.5 * M", "1.5 is no such arithmetic"),
        ("M +", "does not parse"),
        ("M % (N + 7)", "divides by zero"),
    ],
)
def test_anything_else_is_an_error_that_says_so(text: str, reason: str) -> None:
    with pytest.raises(HostExpressionError, match=reason.replace("(", r"\(")):
        evaluate(text, VALUES)
