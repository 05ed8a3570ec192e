"""Sums that are added by vectors, on a GPU: those of the CPU run, and many rows that meet in few places."""

from __future__ import annotations

import pytest
import tilewright as triton
from test_on_gpu import run_everywhere
from unit.test_vector_atomics import (
    embedding_backward,
    test_every_element_is_added_once,
    test_rows_are_added_up,
    test_scopes_and_types_of_one_kernel,
    test_tiles_that_change_hands_are_added,
)

__all__ = (
    "run_everywhere",
    "test_every_element_is_added_once",
    "test_rows_are_added_up",
    "test_scopes_and_types_of_one_kernel",
    "test_tiles_that_change_hands_are_added",
)
pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("arch", ("sm_80", ""))
@pytest.mark.parametrize("name", ("float16", "bfloat16", "float32"))
@pytest.mark.parametrize("sem", ("relaxed", None))
@pytest.mark.parametrize(("rows", "cols"), [(4096, 1024), (4001, 768), (777, 513)])
def test_many_rows_meet(
    arch: str, name: str, sem: str | None, rows: int, cols: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
    if arch:
        monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    torch.manual_seed(rows)
    index = torch.randint(0, 90, (rows,), device="cuda")
    grad = torch.randint(-1, 2, (rows, cols), device="cuda").to(getattr(torch, name))  # every sum of them is exact
    n, room = rows * cols, 64
    memory = torch.zeros(90 * cols + room, dtype=grad.dtype, device="cuda")
    made = embedding_backward[(triton.cdiv(n, 1024),)](index, grad, memory, n, cols, BLOCK=1024, SEM=sem)
    out = memory[: 90 * cols].view(90, cols)
    expected = torch.zeros(90, cols, dtype=torch.float64, device="cuda").index_add_(0, index, 2 * grad.double())
    assert torch.equal(out.double(), expected) and not memory[90 * cols :].any()
    floats_too = not arch and torch.cuda.get_device_capability() >= (9, 0)
    assert ("atomic_add_vec<" in made.source) == (cols % 16 == 0 and (name != "float32" or floats_too))
