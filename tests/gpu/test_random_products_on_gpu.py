"""Random kernels with dots in unusual surroundings, on a GPU: what two launches of each of two sizes leave, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_product_cases import Program, arguments, difference, make, program
from tilewright.diagnostics import OutOfResources

pytestmark = pytest.mark.gpu
RESULTS = ("c_ptr", "d_ptr")
GUARD = 256  # bytes in front of every array and behind it
UNTOUCHED = 0xA5


class Guarded:
    """An array of the host on the GPU, between bytes that must stay as they are; `value` is what a kernel gets."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        """Copies it."""
        import torch

        self.shape, self.dtype, self.size = array.shape, array.dtype, array.nbytes
        self.memory = torch.full((self.size + 2 * GUARD,), UNTOUCHED, dtype=torch.uint8, device="cuda")
        own = self.memory[GUARD : GUARD + self.size]
        own.copy_(torch.from_numpy(np.ascontiguousarray(array).reshape(-1).view(np.uint8).copy()))
        self.value = own.view(getattr(torch, str(array.dtype)))

    def result(self) -> np.ndarray[Any, Any]:
        """What it holds now.

        Raises:
          AssertionError: when something was written beside it.
        """
        memory = self.memory.cpu().numpy()
        assert (memory[:GUARD] == UNTOUCHED).all() and (memory[GUARD + self.size :] == UNTOUCHED).all()
        found: np.ndarray[Any, Any] = memory[GUARD : GUARD + self.size].view(self.dtype).reshape(self.shape)
        return found


def launch(one: Program, kernel: Any, values: dict[str, Any], grid: tuple[int, ...], expected: dict[str, Any]) -> None:
    """Starts a program and compares its results."""
    import torch

    own = {name: Guarded(value) if isinstance(value, np.ndarray) else value for name, value in values.items()}
    given = {name: value.value if isinstance(value, Guarded) else value for name, value in own.items()}
    kernel[grid](**given, **one.options)
    torch.cuda.synchronize()
    found = {name: value.result() for name, value in own.items() if isinstance(value, Guarded)}
    wrong = [text for name in RESULTS if (text := difference(one, name, found[name], expected[name]))]
    assert not wrong, f"{wrong}\n{one.source}"


@pytest.mark.parametrize("arch", ["", "sm_80"])
@pytest.mark.parametrize("seed", range(100, 148))
def test_launches_agree_with_the_interpreter(seed: int, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = program(seed)
    kernel = make(one)
    for scale in (3, 6):
        values, grid = arguments(one, scale, seed)
        expected = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in values.items()}
        with monkeypatch.context() as patch:
            patch.setenv("TILEWRIGHT_MODE", "interpret")
            make(one)[grid](**expected, **one.options)
        monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
        if arch:
            monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
        try:
            for _ in range(2):
                launch(one, kernel, values, grid, expected)
        except OutOfResources:
            return  # its tiles are too large for this GPU
