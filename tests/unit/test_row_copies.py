"""Boxes whose rows start anywhere: copied as they lie in memory, shifted into the format of dots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dot_kernels_more as more
import ml_dtypes
import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
import tilewright.runtime.cpu as cpu
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tilewright.artifact import Artifact, Options
from tilewright.pipeline import translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.runtime.building import nvrtc
from tilewright.schedule.targets import find_target

WAYS = (("greedy_low", "late"), ("reverse", "early"), ("random", "mixed"))
STRIDES = {"N": "i32, i32:1", "T": "i32:1, i32"}
SUMS = {"fp16": tl.float32, "bf16": tl.float32, "e4m3": tl.float32, "int8": tl.int32, "fp32": tl.float32}
DTYPES = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "int8": np.int8,
    "fp32": np.float32,
}


def placed(
    planes: int, rows: int, cols: int, layout: str, dtype: str, spare: int, offset: int
) -> tuple[Any, Any, int, tuple[int, int]]:
    """Matrices in memory of which every other element is NaN: (memory, float64 matrices, plane stride, strides)."""
    lines, width = (rows, cols) if layout == "N" else (cols, rows)
    stride = width + spare
    plane = lines * stride + 3 if planes > 1 else 0
    values = (
        np.random.default_rng((lines, width, stride, offset))
        .integers(-8, 8, (planes, lines, width))
        .astype(DTYPES[dtype])
    )
    memory = np.full(
        offset + (planes - 1) * plane + (lines - 1) * stride + width, 77 if dtype == "int8" else np.nan, DTYPES[dtype]
    )
    size = memory.itemsize
    view = np.lib.stride_tricks.as_strided(memory[offset:], values.shape, (plane * size, stride * size, size))
    view[:] = values
    matrices = values.astype(np.float64)
    return (
        memory,
        matrices if layout == "N" else matrices.swapaxes(1, 2),
        plane,
        (stride, 1) if layout == "N" else (1, stride),
    )


@dataclass(frozen=True)
class Product:
    """A product of two matrices that lie anywhere: `spare` elements between rows, `offsets` before the first."""

    sizes: tuple[int, int, int]
    layouts: str
    dtype: str = "fp16"
    tile: tuple[int, int, int] = (64, 32, 32)
    spare: tuple[int, int] = (0, 0)
    offsets: tuple[int, int] = (0, 0)
    turns: int = 1
    planes: int = 1

    def launch(self, kernel: Any, **options: int) -> None:
        """Runs it; the result must be exact."""
        m, n, k = self.sizes
        a, left, a_plane, a_strides = placed(
            self.planes, m, k, self.layouts[0], self.dtype, self.spare[0], self.offsets[0]
        )
        b, right, b_plane, b_strides = placed(
            self.planes, k, n, self.layouts[1], self.dtype, self.spare[1], self.offsets[1]
        )
        c = (
            np.full((self.planes, m, n), -1, np.int32)
            if self.dtype == "int8"
            else np.full((self.planes, m, n), np.nan, np.float32)
        )
        places = (m, n, k, *self.offsets, a_plane, b_plane, *a_strides, *b_strides)
        zero = 0 if self.dtype == "int8" else 0.0
        grid = (-(-m // self.tile[0]), -(-n // self.tile[1]), self.planes)
        kernel[grid](a, b, c, *places, self.turns, SUMS[self.dtype], zero, *self.tile, **options)
        np.testing.assert_array_equal(c, self.turns * (left @ right))

    def run(self, monkeypatch: pytest.MonkeyPatch, arch: str = "sm_90a", **options: int) -> Artifact:
        """Runs it on the CPU, in all ways; returns the artifact."""
        monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
        monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
        kernel, run, artifacts = triton.jit(more.by_strides.fn), cpu.run, []
        for way in WAYS:

            def with_way(artifact: Any, grid: Any, values: Any, way: tuple[str, str] = way) -> None:
                artifacts.append(artifact)
                run(artifact, grid, values, schedule=way[0], seed=3, delivery=way[1])

            with monkeypatch.context() as patch:
                patch.setattr(cpu, "run", with_way)
                self.launch(kernel, **options)
        return artifacts[0]


@pytest.mark.parametrize("arch", ("sm_80", "sm_90a"))
@pytest.mark.parametrize("layouts", ("NN", "NT", "TN", "TT"))
def test_every_layout(layouts: str, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = Product((71, 67, 101), layouts).run(monkeypatch, arch)
    assert artifact.source.count(" copy_rows<") == 2 and not artifact.guards
    assert "wgmma_wait<0>" in artifact.source or arch == "sm_80"


@pytest.mark.parametrize("dtype", ("bf16", "e4m3", "int8"))
def test_every_size_of_elements(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Product((66, 35, 99), "NT", dtype, spare=(3, 0), offsets=(1, 5)).run(monkeypatch).source
    assert source.count(" copy_rows<") == 2


@pytest.mark.parametrize(
    ("product", "options"),
    [
        (Product((70, 41, 33), "NN"), {"num_stages": 5}),  # fewer trips than stages
        (Product((70, 41, 0), "NN"), {}),
        (
            Product((70, 40, 97), "NT", turns=2),
            {"num_stages": 2},
        ),  # no time for rows to arrive but the iteration before
        (Product((71, 41, 97), "TN", turns=3), {"num_stages": 4}),  # a ring that goes on counting
        (Product((130, 141, 71), "NN", tile=(128, 128, 64)), {"num_warps": 8}),
        (Product((131, 21, 70), "TN", tile=(128, 16, 64)), {"num_warps": 1}),  # fewer threads than rows
        (Product((20, 20, 41), "NT", tile=(16, 16, 16)), {"num_warps": 8}),  # fewer chunks than threads
        (Product((70, 70, 71), "NN", spare=(16, 3)), {}),
        (Product((35, 33, 50), "TN", planes=3, offsets=(1, 0)), {}),
    ],
)
def test_shapes_of_rings_and_tiles(product: Product, options: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    assert " copy_rows<" in product.run(monkeypatch, **options).source


def test_rows_beside_whole_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    # The stride of a is a multiple of 16 elements, that of b is not.
    source = Product((72, 67, 96), "NN").run(monkeypatch, num_stages=4).source
    assert source.count(" copy_rows<") == 1 and "cp_async_16(&a[stage]" in source


@pytest.mark.parametrize(
    ("product", "copy"),
    [
        (Product((66, 68, 34), "NN"), "cp_async_4"),
        (Product((66, 68, 36), "NT"), "cp_async_8"),
        (Product((132, 68, 35), "TN", offsets=(4, 8)), "cp_async_8"),
        (Product((66, 68, 36), "NN", "e4m3"), "cp_async_4"),
        (Product((66, 66, 34), "NN", "e4m3"), " copy_rows<"),  # of two bytes there is no copy
        (Product((66, 68, 34), "NN", "fp32"), "cp_async_8"),
    ],
)
def test_rows_of_words_are_copied_by_words(product: Product, copy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = product.run(monkeypatch).source
    assert copy in source and (" copy_rows<" in source) == (copy == " copy_rows<")


@pytest.mark.parametrize("product", (Product((65, 33, 75), "NN"), Product((65, 33, 75), "TT", offsets=(3, 8))))
def test_no_sanitizer_has_a_complaint(product: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    product.launch(triton.jit(more.by_strides.fn))


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_anywhere_in_memory(monkeypatch: pytest.MonkeyPatch, data: st.DataObject) -> None:
    sides = st.integers(1, 90)
    few = st.integers(0, 19)
    product = Product(
        (data.draw(sides), data.draw(sides), data.draw(sides)), data.draw(st.sampled_from(("NN", "NT", "TN", "TT"))),
        spare=(data.draw(few), data.draw(few)), offsets=(data.draw(few), data.draw(few)),
    )  # fmt: skip
    product.run(monkeypatch, data.draw(st.sampled_from(("sm_80", "sm_90a"))))


# --------------------------------------------------------------------------------------------------------- decisions


def planned(signature: str, arch: str = "sm_90a", **options: Any) -> Any:
    arguments = parse_signature(more.by_strides, signature)
    return translate_stages(more.by_strides, arguments, Options(**options), find_target(arch))


def signature(layouts: str, tile: str, base: str = "*fp16:16") -> str:
    strides = f"{STRIDES[layouts[0]]}, {STRIDES[layouts[1]]}"
    return f"{base}, {base}, *fp32:16, i32, i32, i32, i32, i32, i32, i32, {strides}, 1, fp32, 0.0, {tile}"


def test_nothing_need_be_known_but_where_the_tensor_starts() -> None:
    for guards in (True, False):
        found = planned(signature("NN", "64, 64, 32"), guards=guards)
        (ring,) = found.schedule.rings.rings
        assert (ring.kind, len(ring.rows), ring.overlapped) == ("cp_async", 2, True)
        assert not found.artifact.guards
    (ring,) = planned(signature("NN", "64, 64, 32", "*fp16")).schedule.rings.rings
    assert not ring.rows, "what lies before the tensor may not be there"


def test_stages_of_rows() -> None:
    for stages in (2, 3, 5):
        found = planned(signature("NN", "128, 128, 64"), num_warps=8, num_stages=stages)
        (ring,) = found.schedule.rings.rings
        assert ring.stages == stages and {tile.stages for tile in found.schedule.staged.values()} == {2}
        rows = (stages - 1) * (128 * (64 + 8) + 64 * (128 + 8)) * 2
        beside = found.artifact.shared_bytes - (2 * (128 * 64 + 64 * 128) * 2 + rows)
        assert beside == (128 * 128 * 4 if stages == 3 else 0), (
            "sums move through the ring where a block or a stage needs the room"
        )
    (ring,) = planned(signature("NN", "128, 128, 128"), num_warps=8).schedule.rings.rings
    assert ring.rows and ring.stages == 2, "three do not fit"


@pytest.mark.parametrize("layouts", ("NN", "NT", "TN"))
@pytest.mark.parametrize("tile", ("128, 256, 64", "256, 128, 64", "128, 128, 64"))
def test_large_tiles_do_not_spill(tile: str, layouts: str) -> None:
    artifact = planned(signature(layouts, tile), num_warps=8).artifact
    cubin = nvrtc.compile_text(artifact, "sm_90a")
    assert cubin.spill_bytes == 0 and "warning" not in cubin.log and nvrtc.SERIALISED not in cubin.log, cubin.log
