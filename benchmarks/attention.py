"""Times attention forward: one source through tilewright and through Triton, beside torch's. Needs torch and a GPU.

usage: python benchmarks/attention.py [--depths 64,128] [--lengths 4096] [--heads 64] [--dtypes fp16] [--case-ms 300]

Both tune over the same configs (`attention_kernels.configs`). Every contender is checked against float64 on a poisoned
output (two heads), captured into a CUDA graph and timed by events, in turns, with the L2 cache overwritten before each
replay; the median counts (contest.py). Operations are counted as 4 N^2 D per head, half of them where it is causal.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from types import ModuleType

import torch
import torch.nn.functional as F
from contest import FLUSH_BYTES, HEADER, Case, conclusion, load_both, run_case, table_line

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
TOLERANCES = {torch.float16: 2e-3, torch.bfloat16: 1e-2}
CHECKED_HEADS = 2


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """The result in float64, of tensors [heads, N, D]."""
    q, k, v = q.double(), k.double(), v.double()
    scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[2])
    if causal:
        after = torch.ones(scores.shape[1:], dtype=torch.bool, device=scores.device).triu(1)
        scores.masked_fill_(after, -math.inf)
    return torch.softmax(scores, 2) @ v


def attention(
    modules: dict[str, ModuleType], heads: int, length: int, depth: int, causal: bool, dtype: torch.dtype
) -> Case:
    """One problem: `heads` heads (of all batches) of `length` queries and keys."""
    q, k, v = torch.randn(3, heads, length, depth, device="cuda", dtype=dtype)
    out = torch.empty_like(q)
    scale = math.log2(math.e) / math.sqrt(depth)

    def ours(module: ModuleType) -> object:
        grid = lambda meta: (length // meta["BLOCK_M"], heads)
        return module.attention_kernel[grid](q, k, v, out, scale, length, D=depth, CAUSAL=causal)

    def torch_result() -> None:
        result = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]
        out[checked].copy_(result[checked])

    checked = slice(CHECKED_HEADS)
    contenders = {name: (lambda module=module: ours(module)) for name, module in modules.items()}
    name = f"{heads} heads x {length} x {depth} {'causal' if causal else 'full'} {str(dtype).removeprefix('torch.')}"
    return Case(
        name=name,
        contenders=contenders | {"torch": torch_result},
        output=out[checked],
        reference=lambda: reference(q[checked], k[checked], v[checked], causal),
        tolerance=TOLERANCES[dtype],
        work=4 * heads * length * length * depth / (2 if causal else 1),
    )


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depths", default="64,128")
    parser.add_argument("--lengths", default="4096")
    parser.add_argument("--heads", type=int, default=64)
    parser.add_argument("--dtypes", default="fp16")
    parser.add_argument("--case-ms", type=float, default=300.0, help="milliseconds of timing a case")
    options = parser.parse_args()
    torch.manual_seed(0)
    flush = torch.empty(FLUSH_BYTES, device="cuda", dtype=torch.uint8)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        modules = load_both(Path(__file__).with_name("attention_kernels.py"), Path(folder))
        print(*HEADER, sep="\n", flush=True)
        for dtype in options.dtypes.split(","):
            for length in map(int, options.lengths.split(",")):
                for depth in map(int, options.depths.split(",")):
                    for causal in (False, True):
                        case = attention(modules, options.heads, length, depth, causal, DTYPES[dtype])
                        rows.append(run_case(case, flush, options.case_ms))
                        print(table_line(rows[-1]), flush=True)
    print("", *conclusion(rows), sep="\n")


if __name__ == "__main__":
    main()
