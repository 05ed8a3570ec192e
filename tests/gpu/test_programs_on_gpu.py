"""Blocks that run programs of all axes of the grid: every program runs, whatever the grid's sides, also in graphs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import tilewright as triton

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))
from test_joined_trips import product, unmasked
from test_programs import batched, lower_blocks
from test_teams import by_pointers, layer

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def where_arrays_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)


@pytest.mark.parametrize(
    "sizes",
    [(700, 64, 16, 64), (1, 40000, 16, 48), (1, 64, 5008, 32), (7, 190, 80, 48), (1, 2, 16, 16), (41, 500, 272, 1040)],
)
def test_all_programs_run(sizes: tuple[int, ...]) -> None:
    import torch

    batches, m, n, k = sizes
    a, b = (torch.randn(shape, device="cuda").half() for shape in ((batches, m, k), (batches, k, n)))
    c = torch.empty(batches, m, n, device="cuda")
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 16), batches)
    places = torch.empty(grid[::-1], dtype=torch.int32, device="cuda")
    z, y, x = (torch.arange(side, dtype=torch.int32, device="cuda") for side in grid[::-1])
    at = 10000 * z[:, None, None] + 100 * y[:, None] + x + 1000000 * batches
    expected = a.double() @ b.double()

    def run() -> None:
        made = batched[grid](a, b, c, places, m, n, k, BM=64, BN=16, BK=32)
        assert made.artifact.program_axes == 3

    def judge() -> None:
        torch.cuda.synchronize()
        assert torch.equal(places, at)
        assert (c.double() - expected).norm() <= 1e-3 * expected.norm()
        c.fill_(float("nan"))
        places.fill_(-1)

    for _ in range(4):  # the long way, the quick way, ready, ready again
        c.fill_(float("nan"))
        places.fill_(-1)
        run()
        judge()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    for _ in range(2):
        graph.replay()
        judge()


@pytest.mark.parametrize("m", [64, 200, 4096])
@pytest.mark.parametrize("when", ["below", "touched", "above", "band", "square"])
def test_programs_that_do_something_run_and_no_others(when: str, m: int) -> None:
    import torch

    a = torch.randn(m, 256, device="cuda").half()
    c = torch.full((m, m), 7.0, device="cuda")
    grid = (triton.cdiv(m, 64), triton.cdiv(m, 32))
    i, j = (torch.arange(m, device="cuda") // side for side in (64, 32))
    i = i[:, None]
    useful = {
        "below": i >= j, "touched": i * 64 + 64 > j * 32, "above": j > i, "square": i * i >= j,
        "band": (i * 64 <= j * 32 + 64) & (i * 64 + 64 > j * 32),
    }[when]  # fmt: skip
    expected = torch.where(useful, a.double() @ a.T.double(), 7.0)
    for _ in range(3):
        c.fill_(7.0)
        made = lower_blocks[grid](a, c, m, 256, WHEN=when, BM=64, BN=32, BK=32)
        assert made.artifact.in_turns
        torch.testing.assert_close(c.double(), expected, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("tile", [(64, 64, 64), (128, 128, 64), (64, 64, 32), (128, 64, 16)])
@pytest.mark.parametrize(
    "sizes", [(64, 64, 64), (500, 496, 1040), (4096, 2048, 208), (20_000, 1040, 48), (1, 40_000, 528), (4096, 4096, 0)]
)
def test_teams_take_turns(sizes: tuple[int, ...], tile: tuple[int, ...]) -> None:
    import torch

    m, n, k = sizes
    x, w = torch.randn(m, k, device="cuda").half(), torch.randn(n, k, device="cuda").half()
    b, y = torch.randn(n, device="cuda"), torch.empty(m, n, dtype=torch.float16, device="cuda")
    expected = (x.double() @ w.double().T + b).relu()
    for _ in range(4):
        y.fill_(float("nan"))
        made = layer[triton.cdiv(m, tile[0]), triton.cdiv(n, tile[1])](
            x, w, b, y, m, n, k, BM=tile[0], BN=tile[1], BK=tile[2]
        )
        few = (
            triton.cdiv(m, tile[0]) * triton.cdiv(n, tile[1])
            <= torch.cuda.get_device_properties(0).multi_processor_count
        )
        assert made.artifact.num_threads == (256 if few else 384) or k == 0
        assert (y.double() - expected).norm() <= 1e-3 * expected.norm()
    c = torch.full((m, n), float("nan"), device="cuda")
    grid = (triton.cdiv(m, tile[0]) * triton.cdiv(n, tile[1]),)
    by_pointers[grid](x, w, c, m, n, k, BM=tile[0], BN=tile[1], BK=tile[2])
    sums = x.double() @ w.double().T
    assert (c.double() - sums).norm() <= 1e-3 * sums.norm()


@pytest.mark.parametrize("k", [16, 32, 48, 96, 1040])
@pytest.mark.parametrize("tile", [(64, 64, 32), (64, 32, 16), (128, 64, 32)])
def test_several_trips_are_one(k: int, tile: tuple[int, ...]) -> None:
    import torch

    m, n = 400, 304
    a, b = torch.randn(m, k, device="cuda").half(), torch.randn(n, k, device="cuda").half()
    c = torch.full((m, n), float("nan"), device="cuda")
    sides = dict(zip(("BM", "BN", "BK"), tile, strict=True))
    made = product[triton.cdiv(m, tile[0]), triton.cdiv(n, tile[1])](a, b, c, m, n, k, **sides)
    assert f"{128 // (2 * tile[2])} trips at once" in " ".join(made.artifact.source.replace("//", "").split())
    expected = a.double() @ b.double().T
    assert (c.double() - expected).norm() <= 1e-3 * expected.norm()
    rounded = -(-k // tile[2]) * tile[2]  # where no mask says where K ends, the last trip reads on
    room = torch.full((m * k + 4096,), float("nan"), device="cuda").half()
    room[: m * k + rounded - k] = torch.randn(m * k + rounded - k, device="cuda").half()
    below = torch.full((rounded + 128, 320), float("nan"), device="cuda").half()
    below[:rounded] = torch.randn(rounded, 320, device="cuda").half()
    below[k:rounded] = 0
    rows = m // tile[0]
    c = torch.full((rows * tile[0], 320), float("nan"), device="cuda")
    unmasked[rows, 320 // tile[1]](room, below, c, 320, k, **sides)
    a = room[: rows * tile[0] * k].view(-1, k).double()
    expected = a @ below[:k].double()
    assert (c.double() - expected).norm() <= 1e-3 * expected.norm()
