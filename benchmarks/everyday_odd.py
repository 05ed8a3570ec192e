"""Everyday kernels at sizes that no vector divides: rows that are not aligned, and ends within a vector.

usage: python benchmarks/everyday_odd.py [--even] [--only WORD ...] [--case-ms 60] [--output RESULT.json] [--small]

The kernels, checks and options are those of `everyday.py`. Triton has no vectors for such rows either; what counts is how
neighbouring threads share sectors, and what an address takes. With --even all odd sizes are one less, so that 2 divides them.
"""

from __future__ import annotations

import sys
from typing import Any

from everyday import SOURCES, measure

SIZES: dict[str, tuple[int, ...]] = {
    "add_rms_norm": (8192, 4095),
    "masked_softmax": (32, 2047),
    "quantize_rows": (8192, 4095),
    "cosine": (16384, 1023),
    "route": (65536, 63),
    "layer_norm_blocks": (4096, 8191),
    "argmax_blocks": (4096, 31999),
    "group_norm": (16, 32, 16, 4095),
    "column_sums": (16383, 4095),
    "gemv": (16383, 8191),
    "swiglu": (8192, 8191),
    "adamw": (33554431,),
    "transpose": (8191, 8191),
    "dequantize_int4": (8192, 8190),
    "max_pool": (1024, 111, 111),
    "upsample": (512, 127, 127),
    "batch_norm_stats": (32, 256, 3135),
    "embedding": (16384, 50257, 2047),
    "embedding_bag": (4096, 32, 100000, 511),
    "embedding_backward": (16384, 50257, 1023),
    "segment_sum": (65536, 1000, 255),
    "write_cache": (8192, 32768, 1023),
    "layer_norm_rows": (4096, 16383, 32),
    "softmax_columns": (512, 65535),
    "batch_norm_gradients": (64, 256, 3135),
    "mean_pool": (256, 512, 1023),
    "cross_entropy_gradient": (4096, 31999),
    "lstm_cell": (16384, 1023),
    "jacobi": (8191, 8191),
    "mandelbrot": (2047, 3071),
    "norm_quantize": (16384, 4095),
    "gather_tokens": (8192, 4, 4095),
    "sum_experts": (8192, 4, 4095),
    "causal_conv": (4, 8191, 4095),
    "state_update": (256, 4095, 16),
    "recurrence": (16, 2047, 4095),
    "depthwise_conv": (32, 55, 55, 511),
    "divergence": (4096, 31999),
    "normalize_image": (256, 511),
    "bilateral": (4095, 4095),
    "median": (8191, 8191),
    "largest_few": (16384, 3999, 8),
    "sparse_weights": (8192, 4095),
    "nucleus": (1024, 31999),
    "geglu_interleaved": (8192, 11007),
    "avg_pool2d": (2048, 223, 3, 2),
    "heat3d": (256, 511, 511),
    "blur_columns": (4096, 4095, 7),
    "tridiagonal": (256, 65535),
    "cubic_rows": (4096, 4095, 8191),
    "cost_volume": (128, 511, 1023),
    "batch_norm_train": (64, 256, 3135),
    "label_logprobs": (4096, 128255),
    "histogram_rows": (8192, 4095),
    "rms_norm_backward": (16384, 4095),
    "softmax_backward": (16384, 4095),
    "swiglu_packed_backward": (8192, 11007),
    "lattice_boltzmann": (4095, 4095),
    "wave_step": (8191, 8191),
    "yuv_of_rgb": (8191, 8191),
    "dilate": (8191, 8191),
    "warp_affine": (8191, 8191),
    "scale_residual": (32, 768, 3135),
    "gru_cell": (16384, 1023),
    "dice_loss": (64, 1048575),
    "gumbel_argmax": (4096, 32767),
    "penalize": (1024, 32767, 4096),
    "fused_bias_dropout": (16384, 4095),
    "standardize_columns": (8191, 8191),
    "moments": (8191, 8191),
    "absmax_columns": (16383, 8191),
    "advect": (8191, 8191),
    "pressure_rhs": (8191, 8191),
    "space_norm": (16, 256, 16383),
    "blend_experts": (16384, 4, 4095),
    "mask_tokens": (16384, 4095),
    "ema_scan": (64, 2048, 1023),
}


def odd_sources(even: bool = False) -> dict[str, Any]:
    """The kernels that have such sizes, or those that are one less, by file, each once."""
    sizes = {name: tuple(size - (even and size > 64 and size % 2) for size in own) for name, own in SIZES.items()}
    found: dict[str, Any] = {}
    for source, cases in SOURCES.items():
        smalls = {build: small for build, _, small in reversed(cases)}
        odd = tuple((build, sizes[build.__name__], small) for build, small in smalls.items() if build.__name__ in SIZES)
        found |= {source: odd} if odd else {}
    return found


if __name__ == "__main__":
    even = "--even" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--even"]
    measure(odd_sources(even), __doc__)
