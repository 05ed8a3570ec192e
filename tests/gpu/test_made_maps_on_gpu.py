"""Tensor maps that kernels make, on a GPU: groups of any size, launches side by side, and in a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.test_grouped_descriptors import grouped
from unit.test_made_maps import rows_of_expert, rows_of_groups

pytestmark = pytest.mark.gpu


class Groups:
    """Products of matrices that lie apart; what lies between rows is NaN."""

    def __init__(self, shapes: list[tuple[int, int, int]], seed: int) -> None:
        import torch

        rng = np.random.default_rng(seed)
        self.shapes, self.matrices = shapes, []
        for m, n, k in shapes:
            sides = ((m, k, torch.float16), (n, k, torch.float16), (m, n, torch.float32))
            a, b, c = (torch.full((max(r, 1), w + 8), float("nan"), dtype=t, device="cuda") for r, w, t in sides)
            for matrix, width in ((a, k), (b, k)):
                values = rng.integers(-4, 5, (len(matrix), width)).astype(np.float16)
                matrix[:, :width] = torch.from_numpy(values).cuda()
            self.matrices.append((a, b, c))
        self.places = [torch.tensor([one[n].data_ptr() for one in self.matrices]).cuda() for n in range(3)]
        self.sizes = torch.tensor(shapes, dtype=torch.int32).cuda()
        self.strides = torch.tensor(
            [[one.stride(0) for one in three] for three in self.matrices], dtype=torch.int32
        ).cuda()

    def launch(self) -> None:
        sizes = {"PROGRAMS": 100, "BM": 128, "BN": 128, "BK": 64}
        grouped[(100,)](*self.places, self.sizes, self.strides, len(self.shapes), **sizes, num_warps=8)

    def clear(self) -> None:
        for _, _, c in self.matrices:
            c.fill_(float("nan"))

    def check(self) -> None:
        for (m, n, k), (a, b, c) in zip(self.shapes, self.matrices, strict=True):
            np.testing.assert_array_equal(c[:m, :n].cpu(), (a[:m, :k].double() @ b[:, :k].double().T).cpu())
            assert bool(c[:, n:].isnan().all())


def some_groups(seed: int, count: int) -> Groups:
    rng = np.random.default_rng(seed)
    shapes = [tuple(int(side) * 8 for side in rng.integers((0, 1, 1), (60, 60, 60))) for _ in range(count)]
    return Groups([*shapes, (0, 64, 64), (8, 8, 8)], seed)  # type: ignore[list-item]


def test_groups_of_any_size() -> None:
    for seed in range(3):
        groups = some_groups(seed, 20)
        for _ in range(3):
            groups.clear()
            groups.launch()
            groups.check()


def test_launches_side_by_side() -> None:
    import torch

    several = [some_groups(seed, 12) for seed in range(3)]
    streams = [torch.cuda.Stream() for _ in several]
    for _ in range(10):
        for groups in several:
            groups.clear()
        torch.cuda.synchronize()
        for _ in range(3):
            for groups, stream in zip(several, streams, strict=True):
                with torch.cuda.stream(stream):
                    groups.launch()
        torch.cuda.synchronize()
        for groups in several:
            groups.check()


def test_in_a_graph() -> None:
    import torch

    groups, stream, graph = some_groups(5, 10), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        groups.launch()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            groups.launch()
    groups.clear()
    graph.replay()
    torch.cuda.synchronize()
    groups.check()


def integers(rng: np.random.Generator, *shape: int) -> Any:
    import torch

    return torch.from_numpy(rng.integers(-4, 5, shape).astype(np.float16)).cuda()


@pytest.mark.parametrize("warps", (4, 8))
def test_rows_of_groups_behind_each_other(warps: int) -> None:
    import torch

    rng = np.random.default_rng(1)
    n, k, rows = 272, 336, [int(size) * 8 for size in rng.integers(0, 40, 40)]
    ends = np.cumsum([0, *rows]).astype(np.int32)
    a, b = integers(rng, ends[-1], k), integers(rng, len(rows), n, k)
    c = torch.full((len(a), n), float("nan"), device="cuda")
    tiles = {"BM": 16 * warps, "BN": 128, "BK": 64, "num_warps": warps}
    rows_of_groups[(132,)](a, b, c, torch.from_numpy(ends).cuda(), n, k, len(rows), **tiles)
    for group, (first, last) in enumerate(zip(ends, ends[1:], strict=False)):
        expected = (a[first:last].double() @ b[group].double().T).cpu()
        np.testing.assert_array_equal(c[first:last].cpu(), expected)


def test_more_programs_than_slots() -> None:
    import torch

    rng = np.random.default_rng(2)
    n, k, blocks, experts = 256, 128, 5000, 16
    starts = torch.arange(blocks, dtype=torch.int32, device="cuda") * 64
    chosen = rng.integers(-1, experts, blocks).astype(np.int32)
    ends = torch.full((experts,), blocks * 64 - 4, dtype=torch.int32, device="cuda")
    a, b = integers(rng, blocks * 64, k), integers(rng, experts, n, k)
    c = torch.full((len(a), n), float("nan"), device="cuda")
    expert = torch.from_numpy(chosen).cuda()
    rows_of_expert[(blocks,)](a, b, c, expert, starts, ends, n, k, BM=64, BN=128, BK=64)
    of_blocks = torch.bmm(a.view(blocks, 64, k).float(), b.float()[expert.clamp(min=0).long()].transpose(1, 2))
    found, expected = c.view(blocks, 64, n), of_blocks
    expected[expert < 0] = float("nan")
    expected[-1, -4:] = float("nan")
    assert bool(((found == expected) | (found.isnan() & expected.isnan())).all())
