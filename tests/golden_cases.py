"""The specialisations whose generated text is kept in the repository: (sample, kernel, configuration, signature, options)."""

from __future__ import annotations

from typing import Any, NamedTuple


class GoldenCase(NamedTuple):
    """One generated file: `goldens/<sample>/<kernel>_<configuration>.cu`."""

    sample: str
    kernel: str
    configuration: str
    signature: str
    options: dict[str, Any]

    @property
    def path(self) -> str:
        """Where the file lies, below `tests/goldens`."""
        return f"{self.sample}/{self.kernel}_{self.configuration}.cu"


HALF4 = "*fp16:16, *fp16:16, *fp16:16, *fp16:16"
GOLDEN_CASES = [
    GoldenCase("vector_add", "add_kernel", "fp32", "*fp32:16, *fp32:16, *fp32:16, i32, 1024", {}),
    GoldenCase("vector_add", "add_kernel", "bf16_unaligned", "*bf16, *bf16, *bf16, i32, 512", {"num_warps": 2}),
    GoldenCase(
        "fused_softmax", "softmax_kernel", "fp32", "*fp32:16, *fp32:16, i32:16, i32:16, i32, i32:16, 4096", {"num_warps": 8}
    ),
    GoldenCase("fused_softmax", "softmax_kernel", "odd", "*fp32:16, *fp32:16, i32, i32, i32, i32, 1024", {}),
    GoldenCase(
        "fused_softmax", "softmax_kernel", "fp16_wide", "*fp16:16, *fp16:16, i32:16, i32:16, i32:16, i32:16, 32768",
        {"num_warps": 16},
    ),
    GoldenCase(
        "layer_norm", "layer_norm_fwd", "fp16", f"{HALF4}, *fp32:16, *fp32:16, i32:16, i32:16, fp32, 8192", {"num_warps": 16}
    ),
    GoldenCase(
        "layer_norm", "layer_norm_bwd_dx", "fp16",
        "*fp16:16, *fp16:16, *fp32:16, *fp32:16, *fp16:16, *fp16:16, *fp32:16, *fp32:16, i32:16, i32:16, i32:16, 8192",
        {"num_warps": 16},
    ),
    GoldenCase(
        "layer_norm", "layer_norm_bwd_dwdb", "fp32", "*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, i32:16, 32, 128", {}
    ),
    GoldenCase("rms_norm", "rms_norm_kernel", "fp16", "*fp16:16, *fp16:16, *fp16:16, i32, i32, fp32, 1024", {}),
    GoldenCase("cross_entropy", "cross_entropy_kernel", "fp32", "*fp32:16, *i32:16, *fp32:16, *fp32:16, i32, i32, 1024", {}),
    GoldenCase("rope", "rope_kernel", "fp32", "*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, 128, 4", {}),
    GoldenCase(
        "row_reductions", "row_reductions_kernel", "odd", "*fp32:16, *fp32:16, *fp32:16, *i32:16, i32, i32, 4, 333",
        {"num_warps": 1},
    ),
]  # fmt: skip
