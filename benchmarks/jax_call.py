"""Kernels in programs of JAX on a GPU, beside what XLA has itself: `python benchmarks/jax_call.py [--rounds N]`.

Microseconds per call of a jitted function, many calls in a row; the median of rounds in which all take turns.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import tilewright as triton
import tilewright.jax
import tilewright.language as tl

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
CALLS = 50


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


def scale(x: Any, zeroed: bool) -> Any:
    grid = (triton.cdiv(x.size, 1024),)
    options = {"n": x.size, "factor": 3.0, "BLOCK": 1024}
    return tilewright.jax.call(x, kernel=scale_kernel, out_shape=x, grid=grid, zeroed=zeroed, **options)


def matmul(a: Any, b: Any, zeroed: bool) -> Any:
    sys.path.insert(0, str(SAMPLES))
    from matmul import matmul_kernel

    (m, k), n = a.shape, b.shape[1]
    grid = (triton.cdiv(m, 128) * triton.cdiv(n, 256),)
    options = {"M": m, "N": n, "K": k, "stride_am": k, "stride_ak": 1, "stride_bk": n, "stride_bn": 1, "stride_cm": n,
               "stride_cn": 1, "BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP_M": 8, "ACTIVATION": "",
               "num_warps": 8}  # fmt: skip
    shape = jax.ShapeDtypeStruct((m, n), a.dtype)
    return tilewright.jax.call(a, b, kernel=matmul_kernel, out_shape=shape, grid=grid, zeroed=zeroed, **options)


def microseconds(function: Callable[..., Any], arrays: tuple[Any, ...]) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        result = function(*arrays)
    jax.block_until_ready(result)
    return (time.perf_counter() - start) / CALLS * 1e6


def main() -> None:
    """Prints a line per program and way."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    side = 4096
    a, b = (jax.random.normal(jax.random.key(seed), (side, side)).astype("float16") for seed in (0, 1))
    programs = [
        ("x * 3 of 4096 fp32", scale, lambda x: x * 3.0, (jax.numpy.ones(4096),)),
        ("x * 3 of 2^26 fp32", scale, lambda x: x * 3.0, (jax.numpy.ones(1 << 26),)),
        ("a @ b of 4096 fp16", matmul, lambda a, b: a @ b, (a, b)),
    ]
    for name, ours, theirs, arrays in programs:
        ways = {"XLA": jax.jit(theirs)}
        ways |= {f"zeroed={zeroed}": jax.jit(functools.partial(ours, zeroed=zeroed)) for zeroed in (True, False)}
        results = [jax.block_until_ready(way(*arrays)).astype("float32") for way in ways.values()]
        worst = max(float(abs(result - results[0]).max()) for result in results[1:])
        times = {way: [] for way in ways}
        for _ in range(rounds):
            for way, function in ways.items():
                times[way].append(microseconds(function, arrays))
        shown = ", ".join(f"{way} {statistics.median(found):.1f} us" for way, found in times.items())
        print(f"{name}: {shown}; largest difference {worst:.2g}")


if __name__ == "__main__":
    main()
