"""What kernels may ask about the GPU that they are translated for: `tl.target_info`."""

from __future__ import annotations

from typing import NamedTuple

from ..hardware import WARP_SIZE
from .builtin import active
from .constexpr import unwrap

LEAST = 80  # the compute capability that every GPU has for which there is text
INTERPRETED = 90  # the one that the interpreter stands for, which has all of its functions


class GPUTarget(NamedTuple):
    """What kernels are compiled for.

    Attributes:
      backend: "cuda", or "cpu" where the text for a GPU runs on the host.
      arch: the compute capability that the text is written for, 90 for 9.0.
      warp_size: lanes of a warp.
    """

    backend: str
    arch: int
    warp_size: int


def current_target() -> GPUTarget:
    """The target: in a kernel its own, elsewhere the least that there is."""
    return GPUTarget("cuda", LEAST if active.get() is None else INTERPRETED, WARP_SIZE)


def cuda_capability_geq(major: int, minor: int = 0) -> bool:
    """Whether the target has at least this compute capability: in a kernel its own, elsewhere the least that there is."""
    return 10 * int(unwrap(major)) + int(unwrap(minor)) <= current_target().arch


def is_cuda() -> bool:
    """Whether the target is one of NVIDIA's: it always is."""
    return True


def is_hip() -> bool:
    """Whether the target is one of AMD's: it never is."""
    return False


TARGET_INFO = {
    "cuda_capability_geq": cuda_capability_geq,
    "current_target": current_target,
    "is_cuda": is_cuda,
    **dict.fromkeys(("is_hip", "is_hip_cdna3", "is_hip_cdna4", "is_hip_gfx1250"), is_hip),
}
