"""How many blocks a multiprocessor has at once, by architecture: what texts tell the compiler must be possible there."""

from __future__ import annotations

import re

import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.hardware import RESERVED_BYTES
from tilewright.schedule.targets import TARGETS, find_target
from tilewright.schedule.tiles.registers import blocks_that_fit

# Shared memory of a multiprocessor in KiB, its threads and its blocks: CUDA C++ Programming Guide, "Technical Specifications
# per Compute Capability".
LIMITS = {
    "sm_80": (164, 2048, 32), "sm_86": (100, 1536, 16), "sm_89": (100, 1536, 24),
    "sm_90a": (228, 2048, 32), "sm_100a": (228, 2048, 32), "sm_120a": (100, 1536, 24),
}  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
def test_the_numbers_are_the_guides(name: str) -> None:
    target = find_target(name)
    shared, threads, blocks = LIMITS[name]
    assert target.shared_of_multiprocessor == shared << 10
    assert target.max_dynamic_shared_bytes == target.shared_of_multiprocessor - RESERVED_BYTES
    assert (target.threads_of_multiprocessor, target.blocks_of_multiprocessor) == (threads, blocks)
    for num_threads in (32, 64, 128, 256, 512, 1024):
        few = blocks_that_fit(0, num_threads, target)
        assert few * num_threads <= threads and few <= blocks
    assert blocks_that_fit(8, 1024, target) == threads // 1024


@triton.jit
def products(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(a_ptr + at) * tl.load(b_ptr + at))


@pytest.mark.parametrize("name", TARGETS)
def test_what_the_compiler_is_told_is_possible(name: str) -> None:
    text = products.translate("*fp32:16, *fp32:16, *fp32:16, 1024", arch=name, num_warps=1).source
    blocks = re.search(r"MIN_BLOCKS = (\d+)", text)
    assert blocks and int(blocks[1]) == min(LIMITS[name][2], 25), "registers leave room for 25"
