"""The specialisations whose generated text is kept in the repository, and the architectures that it is meant to run on."""

from __future__ import annotations

from typing import Any, NamedTuple

EVERYWHERE = ("sm_80", "sm_90a", "sm_100a", "sm_120a")
HOPPER = ("sm_90a",)  # wgmma


class GoldenCase(NamedTuple):
    """One generated file: `goldens/<sample>/<kernel>_<configuration>.cu`."""

    sample: str
    kernel: str
    configuration: str
    signature: str
    options: dict[str, Any]
    arch: str = "sm_90a"
    archs: tuple[str, ...] = EVERYWHERE  # where the text is meant to run

    @property
    def path(self) -> str:
        """Where the file lies, below `tests/goldens`."""
        return f"{self.sample}/{self.kernel}_{self.configuration}.cu"


HALF3 = "*fp16:16, *fp16:16, *fp16:16"
HALF4 = "*fp16:16, *fp16:16, *fp16:16, *fp16:16"
# a, b, c, M, N, K and the strides of row-major matrices
ROW_MAJOR = "i32:16, i32:16, i32:16, i32:16, i32:1, i32:16, i32:1, i32:16, i32:1"
LARGE = {"num_warps": 8}
GOLDEN_CASES = [
    GoldenCase("vector_add", "add_kernel", "fp32", "*fp32:16, *fp32:16, *fp32:16, i32, 1024", {}),
    GoldenCase("vector_add", "add_kernel", "bf16_unaligned", "*bf16, *bf16, *bf16, i32, 512", {"num_warps": 2}),
    GoldenCase(
        "fused_softmax", "softmax_kernel", "fp32", "*fp32:16, *fp32:16, i32:16, i32:16, i32, i32:16, 1, 4096", {"num_warps": 8}
    ),
    GoldenCase("fused_softmax", "softmax_kernel", "odd", "*fp32:16, *fp32:16, i32, i32, i32, i32, 1, 1024", {}),
    GoldenCase(
        "fused_softmax", "softmax_kernel", "fp16_wide", "*fp16:16, *fp16:16, i32:16, i32:16, i32:16, i32:16, 1, 32768",
        {"num_warps": 16},
    ),
    GoldenCase(
        "layer_norm", "layer_norm_fwd", "fp16", f"{HALF4}, *fp32:16, *fp32:16, i32:16, fp32, 16384, 1, 16384",
        {"num_warps": 16},
    ),
    GoldenCase(
        "layer_norm", "layer_norm_bwd_dx", "fp16",
        "*fp16:16, *fp16:16, *fp32:16, *fp32:16, *fp16:16, *fp16:16, *fp32:16, *fp32:16, i32:16, 8192, 8192",
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
    GoldenCase(
        "matmul", "matmul_kernel", "fp16", f"{HALF3}, {ROW_MAJOR}, 128, 256, 64, 8, ''", LARGE, archs=HOPPER
    ),
    GoldenCase(
        "matmul", "matmul_kernel", "fp16_no_guards", f"{HALF3}, {ROW_MAJOR}, 128, 256, 64, 8, ''",
        {"num_warps": 8, "guards": False}, archs=HOPPER,
    ),
    GoldenCase(
        "matmul", "matmul_kernel", "fp16_activation", f"{HALF3}, {ROW_MAJOR}, 128, 128, 64, 8, 'leaky_relu'", LARGE,
        archs=HOPPER,
    ),
    GoldenCase(
        "matmul", "matmul_kernel", "fp16_small", f"{HALF3}, {ROW_MAJOR}, 64, 64, 32, 8, 'leaky_relu'", {}, archs=HOPPER
    ),
    GoldenCase(
        "matmul", "matmul_kernel", "fp16_unaligned",
        f"{HALF3}, i32, i32, i32, i32, i32:1, i32, i32:1, i32, i32:1, 128, 256, 64, 8, ''", LARGE, archs=HOPPER,
    ),
    GoldenCase("matmul", "matmul_kernel", "fp16_ampere", f"{HALF3}, {ROW_MAJOR}, 128, 128, 64, 8, ''", LARGE, "sm_80"),
    GoldenCase(
        "matmul_block_ptr", "matmul_block_ptr_kernel", "bf16",
        "*bf16:16, *bf16:16, *bf16:16, i32:16, i32:16, i32:16, i32:16, i32:1, i32:1, i32:16, i32:16, i32:1, 128, 128, 64, 8",
        LARGE, archs=HOPPER,
    ),
    GoldenCase(
        "matmul_descriptor", "matmul_descriptor_kernel", "fp16",
        "tensordesc<fp16[128, 64]>, tensordesc<fp16[256, 64]>, tensordesc<fp16[128, 256]>:16, 128, 256, 64, 8",
        LARGE, archs=HOPPER,
    ),
    GoldenCase(
        "matmul_persistent", "matmul_persistent_kernel", "fp16", f"{HALF3}, i32:16, i32:16, i32:16, 128, 256, 64, 8, 132",
        LARGE, archs=HOPPER,
    ),
    GoldenCase(
        "batched_matmul", "batched_matmul_kernel", "tf32",
        "*fp32:16, *fp32:16, *fp32:16, i32, i32, i32, i32:16, i32:16, i32:1, i32:16, i32:16, i32:1, i32:16, i32:16, i32:1, "
        "64, 64, 32",
        {},
    ),
    GoldenCase(
        "grouped_gemm", "grouped_gemm_kernel", "fp16", "*fp16:16, *fp16:16, *fp16:16, *i32:16, *i64:16, i32, 64, 64, 32",
        {}, archs=HOPPER,
    ),
    GoldenCase(
        "grouped_gemm_descriptor", "grouped_gemm_descriptor_kernel", "fp16",
        "*fp16:16, *fp16:16, *fp16:16, *i32:16, *i64:16, i32, 128, 128, 64", LARGE, archs=HOPPER,
    ),
    GoldenCase(
        "split_k_matmul", "split_k_matmul_kernel", "fp16", "*fp16:16, *fp16:16, *fp32:16, i32, i32:16, i32:16, 16, 64, 64, 4",
        {},
    ),
    GoldenCase(
        "int4_matmul", "int4_matmul_kernel", "fp16",
        "*fp16:16, *i32:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, 64, 64, 64, 64", {}, archs=HOPPER,
    ),
    GoldenCase(
        "int4_matmul", "int4_matmul_kernel", "fp16_few_rows",
        "*fp16:16, *i32:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, 16, 128, 64, 64", {"num_stages": 4},
    ),
    GoldenCase(
        "fp8_matmul", "fp8_matmul_kernel", "e4m3",
        "tensordesc<fp8e4nv[128, 128]>, tensordesc<fp8e4nv[128, 128]>, tensordesc<bf16[128, 128]>:16, *fp32:16, *fp32:16, "
        "i32:16, i32:16, i32:16, 128, 128, 128",
        LARGE, archs=HOPPER,
    ),
]  # fmt: skip
