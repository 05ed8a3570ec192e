"""That the protocol in the generated text neither blocks nor overwrites, for every kind of ring; and that this would be seen."""

from __future__ import annotations

import dataclasses
import re

import dot_kernels as kernels
import dot_kernels_more as more
import pytest
import test_own_stages as own
import test_row_copies as rows
from ring_shares import THREAD, WARP, ProtocolError
from ring_simulator import Simulation
from test_rings import PLAIN, TILE, USUAL, planned
from tilewright.artifact import Artifact
from tilewright.schedule.staging.rings import JOINED_STAGES

UNALIGNED = PLAIN.replace("*fp16:16", "*fp16", 1)
SUMS = "*fp32:16, *fp32:16, *fp32:16, i32, i32, i32:16, 256, {}"
PACKED = "*fp16:16, *i32:16, *fp16:16, *fp32:16, i32, i32:16, i32:16, 4, False, 16, 64, 32"
SCALED = "*fp32:16, *fp32:16, *fp32:16, *fp16:16, *fp32:16, i32, 256, 3"

BOXES = {
    "overlapped": (kernels.product, PLAIN),
    "not overlapped": (more.rescaled, f"{USUAL}, {TILE}"),
    "two rings": (kernels.two_loops, f"{USUAL}, {TILE}"),
    "inner loop": (kernels.loop_in_loop, f"{USUAL}, {TILE}"),
    "boxes side by side": (kernels.product, f"{USUAL}, 0, 1, 64, 128, 32"),
    "downwards": (kernels.product, f"{USUAL}, 0, -1, {TILE}"),
    "shared operand": (more.shared_operand, f"{USUAL}, {TILE}"),
    "transposed": (kernels.product, PLAIN.replace("fp16", "fp8e4nv")),
    "dot in a condition": (kernels.dot_in_condition, f"{USUAL}, {TILE}"),
}
COPIES = {  # kernel, signature, architecture, the kinds of the rings, tiles by rows, tiles that threads hold themselves
    "mma": (kernels.product, PLAIN, "sm_80", ["cp_async"], 0, 0),
    "wgmma": (kernels.product, PLAIN.replace("0, 1,", "0, -1,"), "sm_90a", ["cp_async"], 0, 0),
    "by way of registers": (kernels.product, UNALIGNED, "sm_90a", ["cp_async"], 0, 0),
    "two loops": (kernels.two_loops, f"{USUAL}, {TILE}", "sm_80", ["cp_async", "cp_async"], 0, 0),
    "inner loop": (kernels.loop_in_loop, f"{USUAL}, {TILE}", "sm_80", ["cp_async"], 0, 0),
    "rows": (more.by_strides, rows.signature("NN", "64, 64, 32"), "sm_90a", ["cp_async"], 2, 0),
    "rows, mma": (more.by_strides, rows.signature("TN", "64, 64, 32"), "sm_80", ["cp_async"], 2, 0),
    "own": (own.row_sums, SUMS.format(3), "sm_90a", ["own"], 0, 2),
    "own, one stage": (own.row_sums, SUMS.format(2), "sm_90a", ["own"], 0, 2),
    "own, scalars too": (own.scaled_rows, SCALED, "sm_90a", ["own"], 0, 4),
    "own, of a warp": (own.columns, "*fp16:16, *i32:16, *fp32:16, i32:16, 16, 128, 64", "sm_90a", ["own"], 0, 1),
    "own beside dots": (own.dequantised, PACKED, "sm_90a", ["cp_async"], 0, 2),
    "boxes and copies": (
        kernels.outer_tile_after_inner_loop, f"*fp16:16, {USUAL}, {TILE}", "sm_90a", ["cp_async", "tma"], 0, 0,
    ),
}  # fmt: skip
STRIDES = dict.fromkeys(("a_offset", "b_offset", "a_plane", "b_plane", "stride_am", "stride_bk"), 8)


def simulate(artifact: Artifact, trips: int, seed: int) -> int:
    """Executes the protocol of a block that runs several programs or columns; returns the number of copies."""
    columns = 128 * trips if "\ncolumns(" in artifact.source else 96
    values = dict(M=64, N=columns, K=128 * trips, own_block=0, num_blocks=1, rows=trips, cols=256, stride=256, TURNS=2)
    programs = dict(num_programs=3, num_programs_x=3, num_programs_y=2)
    return Simulation(artifact, values | programs | STRIDES, seed).run()


def copied(name: str, stages: int, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    """The text of one of COPIES."""
    monkeypatch.setattr("tilewright.schedule.staging.rings.MOST_STAGES", 2)
    monkeypatch.setattr("tilewright.fitting.wants_more_blocks", lambda *_: False)  # the simulation knows no unions
    kernel, signature, arch, kinds, num_rows, num_own = COPIES[name]
    found = planned(kernel, signature, arch, num_stages=stages, guards=name != "wgmma")
    plans = found.schedule.rings.rings
    assert [ring.kind for ring in plans] == kinds
    assert (sum(len(ring.rows) for ring in plans), sum(len(ring.own) for ring in plans)) == (num_rows, num_own)
    return found.artifact


@pytest.mark.parametrize("stages", (2, 3, 4, 5))
@pytest.mark.parametrize("name", BOXES)
def test_boxes(name: str, stages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.schedule.staging.rings.MOST_STAGES", 2)
    kernel, signature = BOXES[name]
    found = planned(kernel, signature, num_stages=stages)
    for ring in found.schedule.rings.rings:
        assert ring.kind == "tma" and ring.stages == (min(stages, JOINED_STAGES) if ring.trips > 1 else stages)
    copies = {trips: simulate(found.artifact, trips, seed) for trips in range(3 * stages + 1) for seed in range(3)}
    assert copies[0] == 0 and copies[2] == 2 * copies[1] > 0 and copies[3 * stages] == 3 * stages * copies[1]


@pytest.mark.parametrize("stages", (2, 3, 5))
@pytest.mark.parametrize("name", COPIES)
def test_copies_by_threads(name: str, stages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = copied(name, stages, monkeypatch)
    copies = {trips: simulate(artifact, trips, seed) for trips in range(2 * stages + 2) for seed in range(2)}
    assert copies[2] - copies[0] == 2 * (copies[1] - copies[0]) > 0


def test_who_shares_places(monkeypatch: pytest.MonkeyPatch) -> None:
    def spans(artifact: Artifact) -> dict[str, int]:
        values = dict(rows=3, cols=256, stride=256, K=96, N=384, M=16, own_block=0, num_blocks=1)
        return Simulation(artifact, values, 0).shares.span

    found = spans(copied("own beside dots", 3, monkeypatch))
    assert found["word_ahead"] in (THREAD, WARP) and found["a"] > WARP
    # Lanes that copy for others of their warp must wait for one another, before they read and before they copy again.
    assert spans(copied("own, of a warp", 3, monkeypatch))["word_ahead"] == WARP
    assert spans(copied("own", 3, monkeypatch)) == {"x_ahead": THREAD, "y_ahead": THREAD}
    artifact = copied("own", 3, monkeypatch)
    text = artifact.source.replace("x_ahead[stage][tid ", "x_ahead[stage][(tid ^ 31) ", 1)
    assert spans(dataclasses.replace(artifact, source=text))["x_ahead"] == WARP
    arrival, again = "cp_async_wait<NUM_STAGES - 1>();", "const int ahead"
    for before, after, told in (
        ("", "", "is read before"),
        ("", "__syncwarp();", "is read before"),
        ("__syncwarp();", "", "while another thread may still read"),
    ):
        source = text.replace(arrival, arrival + before).replace(again, after + again)
        with pytest.raises(ProtocolError, match=told):
            for seed in range(20):
                simulate(dataclasses.replace(artifact, source=source), 4, seed)
    source = text.replace(arrival, f"{arrival} __syncwarp();").replace(again, f"__syncwarp(); {again}")
    assert simulate(dataclasses.replace(artifact, source=source), 7, 0)
    with pytest.raises(ProtocolError, match="which nobody copies"):
        simulate(dataclasses.replace(artifact, source=artifact.source.replace("[tid * VEC]", "[tid]", 1)), 4, 0)


# ----------------------------------------------------------------------------------------------- what must be noticed

PARTS = re.compile(
    r"^[ \t]*(?:if \([^\n;]*\) )?(?:mbarrier_wait|mbarrier_arrive\w*|cp_async_commit|cp_async_wait<[^;]*>|__syncthreads"
    r"|__syncwarp|wgmma_wait<\d>|wgmma_commit|async_proxy_fence|named_barrier_sync)\((?!READY)[^;]*;",
    re.M,
)


def noticed(artifact: Artifact, source: str) -> bool:
    """Whether the simulator finds what is wrong with a changed text."""
    assert source != artifact.source
    try:
        for trips in (1, 4, 9, 20):
            for seed in range(4):
                simulate(dataclasses.replace(artifact, source=source), trips, seed)
    except ProtocolError:
        return True
    return False


def kernel_parts(text: str) -> list[re.Match[str]]:
    """The waits, arrivals and barriers of a ring: those of a tile that is stored after it are no part of it."""
    apart = "tma_store" in text or "moves through shared memory" in text
    start, end = text.index('extern "C"'), text.index("tl.store(") if apart else len(text)
    return list(PARTS.finditer(text, start, end))


@pytest.mark.parametrize(
    "name",
    ["mma", "wgmma", "by way of registers", "rows", "own", "own, one stage", "own, of a warp", "own beside dots"],
)
@pytest.mark.parametrize("stages", (2, 3, 4))
def test_nothing_can_be_left_out_of_copies(name: str, stages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = copied(name, stages, monkeypatch)
    text = artifact.source
    parts = kernel_parts(text)
    if name == "rows":
        parts = parts[1:]  # before the loop: rows are aligned an iteration ahead, so that its own barriers would do
    assert len(parts) >= 3
    for part in parts:
        assert noticed(artifact, text[: part.start()] + text[part.end() :]), part[0]


@pytest.mark.parametrize("name", ("overlapped", "not overlapped", "inner loop", "shared operand", "transposed"))
def test_nothing_can_be_left_out_of_boxes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.schedule.staging.rings.MOST_STAGES", 2)
    artifact = planned(*BOXES[name]).artifact
    text = artifact.source
    parts = [part for part in kernel_parts(text) if "__syncwarp" not in part[0]]  # a wait for products does as well
    assert len(parts) >= 5
    for part in parts:
        assert noticed(artifact, text[: part.start()] + text[part.end() :]), part[0]


@pytest.mark.parametrize("stages", (3, 4))
@pytest.mark.parametrize(
    "name", ("mma", "wgmma", "by way of registers", "rows", "own", "own, of a warp", "own beside dots")
)
def test_a_stage_too_few_is_noticed(name: str, stages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = copied(name, stages, monkeypatch)
    text = artifact.source
    word = "ROW_STAGES" if name == "rows" else "NUM_STAGES"
    assert noticed(artifact, text.replace(f"% {word}", f"% ({word} - 1)"))
    assert noticed(artifact, text.replace(f"[{word}][", f"[{word} - 1][")), "an array without its last stage"
    waits = re.findall(r"cp_async_wait<(.+?)>\(\)", text)
    for wait in waits:
        assert noticed(artifact, text.replace(f"cp_async_wait<{wait}>()", f"cp_async_wait<{wait} + 1>()")), wait
    if name == "rows":
        assert noticed(artifact, text.replace("% ALIGNED_STAGES", "% (ALIGNED_STAGES - 1)"))


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("parity ^ 1);", "parity);", "deadlock|filled while|read before"),
        ("wgmma_wait<1>();", "", "filled while it is read"),
        ("mbarrier_arrive(&empty[(used - 1) % NUM_STAGES]);", "mbarrier_arrive(&empty[used % NUM_STAGES]);", "."),
        ("    mbarrier_wait(&full[stage], parity);", "", "read before|a copy that nobody"),
        ("constexpr int STAGE_BYTES = ", "constexpr int STAGE_BYTES = 16 + ", "deadlock"),
        ("mbarrier_init<NUM_STAGES>(empty, NUM_WARPS)", "mbarrier_init<NUM_STAGES>(empty, 1)", "."),
        ("[NUM_STAGES][BM", "[NUM_STAGES - 1][BM", "has no stage"),
    ],
)
def test_the_simulator_notices(right: str, wrong: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.schedule.staging.rings.MOST_STAGES", 2)
    artifact = planned(kernels.product, PLAIN).artifact
    assert right in artifact.source
    broken = dataclasses.replace(artifact, source=artifact.source.replace(right, wrong))
    with pytest.raises(ProtocolError, match=told):
        for seed in range(60):
            simulate(broken, 7, seed)
