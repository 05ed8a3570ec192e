"""Times attention, forward or backward: one source through tilewright and through Triton, beside torch's. Needs torch and a GPU.

usage: python benchmarks/attention.py [--backward] [--depths 64,128] [--lengths 4096] [--heads 64] [--dtypes fp16]
                                      [--config N] [--case-ms 300]
       python benchmarks/attention.py [--backward] --small    (checks small sizes on the CPU, without a GPU and Triton)

Both tune over the same configs (`attention_kernels.configs`, `attention_backward_kernels.configs`); --config takes one of
them. Every contender is checked against float64 on a poisoned output (two heads), captured into a CUDA graph and timed by
events, in turns, with the L2 cache overwritten before each replay; the median counts (contest.py). Operations are counted
as 4 N^2 D per head forward and 14 N^2 D backward (seven products), half of them where it is causal.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import torch
import torch.nn.functional as F
from contest import HEADER, Case, Row, check, conclusion, l2_flush, load_both, run_case, table_line

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
TOLERANCES = {torch.float16: 2e-3, torch.bfloat16: 1e-2}
CHECKED_HEADS = 2
ROWS = 64  # that a program of `row_sums_kernel` takes
DEVICE = ["cuda"]  # where arrays are made; --small checks on the CPU


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
    q, k, v = torch.randn(3, heads, length, depth, device=DEVICE[0]).to(dtype)
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
    return Case(
        name=name_of("", q, causal),
        contenders=contenders | {"torch": torch_result},
        output=out[checked],
        reference=lambda: reference(q[checked], k[checked], v[checked], causal),
        tolerance=TOLERANCES[dtype],
        work=4 * heads * length * length * depth / (2 if causal else 1),
    )


def attention_backward(
    modules: dict[str, ModuleType], heads: int, length: int, depth: int, causal: bool, dtype: torch.dtype
) -> Case:
    """The same, backward: dq, dk and dv, from what the forward pass leaves."""
    q, k, v, d_out = torch.randn(4, heads, length, depth, device=DEVICE[0]).to(dtype)
    gradients = torch.empty(CHECKED_HEADS, 3, length, depth, device=DEVICE[0], dtype=dtype)
    dq, dk, dv = (torch.empty_like(q) for _ in range(3))
    delta = torch.empty(heads, length, device=DEVICE[0])
    scale = math.log2(math.e) / math.sqrt(depth)
    inputs = [t.detach().requires_grad_() for t in (q, k, v)]
    forward = F.scaled_dot_product_attention(*(t[None] for t in inputs), is_causal=causal)
    out, sums = forward.detach()[0], log_sums(q, k, scale, causal)

    def ours(module: ModuleType) -> object:
        module.row_sums_kernel[(length // ROWS, heads)](out, d_out, delta, length, BLOCK=ROWS, D=depth)
        grid = lambda meta: (length // meta["BLOCK"], heads)
        arguments = (q, k, v, d_out, sums, delta, dq, dk, dv, scale, length)
        compiled = module.attention_backward_kernel[grid](*arguments, D=depth, CAUSAL=causal)
        keep(dq, dk, dv)
        return compiled

    def torch_result() -> None:
        found = torch.autograd.grad(forward, inputs, d_out[None], retain_graph=True)
        keep(*found)

    def keep(*found: torch.Tensor) -> None:
        for number, gradient in enumerate(found):
            gradients[:, number].copy_(gradient[:CHECKED_HEADS])

    def expected() -> torch.Tensor:
        checked = [t[:CHECKED_HEADS].double().requires_grad_() for t in (q, k, v)]
        result = reference(*checked, causal)
        return torch.stack(torch.autograd.grad(result, checked, d_out[:CHECKED_HEADS].double()), 1)

    contenders = {name: (lambda module=module: ours(module)) for name, module in modules.items()}
    return Case(
        name=name_of("backward, ", q, causal),
        contenders=contenders | {"torch": torch_result},
        output=gradients,
        reference=expected,
        tolerance=TOLERANCES[dtype],
        work=14 * heads * length * length * depth / (2 if causal else 1),
    )


def log_sums(q: torch.Tensor, k: torch.Tensor, scale: float, causal: bool) -> torch.Tensor:
    """The logarithm, of base 2, of each row's sum of exponentials: [heads, N] in fp32."""
    sums = torch.empty(q.shape[:2], device=q.device)
    for head in range(q.shape[0]):
        scores = (q[head].float() @ k[head].float().T) * scale
        if causal:
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)
        sums[head] = torch.logsumexp(scores * math.log(2), 1) / math.log(2)
    return sums


def name_of(what: str, q: torch.Tensor, causal: bool) -> str:
    """A case as it stands in the table."""
    heads, length, depth = q.shape
    kind = "causal" if causal else "full"
    return f"{what}{heads} heads x {length} x {depth} {kind} {str(q.dtype).removeprefix('torch.')}"


def main() -> None:
    """Prints a table; with --small, a line per case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--depths", default="64,128")
    parser.add_argument("--lengths", default="4096")
    parser.add_argument("--heads", type=int, default=64)
    parser.add_argument("--dtypes", default="fp16")
    parser.add_argument("--config", type=int, help="the number of the only config, instead of tuning")
    parser.add_argument("--case-ms", type=float, default=300.0, help="milliseconds of timing a case")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    if options.small:
        DEVICE[0] = "cpu"
        os.environ.setdefault("TILEWRIGHT_MODE", "cpu")
        options.lengths, options.heads = "256", CHECKED_HEADS
    source = "attention_backward_kernels.py" if options.backward else "attention_kernels.py"
    with tempfile.TemporaryDirectory() as folder:
        modules = load_both(Path(__file__).with_name(source), Path(folder))
        cases = cases_of(options, modules)
        if options.small:
            for case in cases:
                row = Row(case.name)
                check(case, row)
                print(row.case, row.error, row.failed or "", flush=True)
            return
        flush = l2_flush()
        rows = []
        print(*HEADER, sep="\n", flush=True)
        for case in cases:
            rows.append(run_case(case, flush, options.case_ms))
            print(table_line(rows[-1]), flush=True)
    print("", *conclusion(rows), sep="\n")


def cases_of(options: argparse.Namespace, modules: dict[str, ModuleType]) -> Iterator[Case]:
    """All cases that the command line names."""
    build, kernel = attention, "attention_kernel"
    if options.backward:
        build, kernel = attention_backward, "attention_backward_kernel"
    if options.small:
        modules = {"tilewright": modules["tilewright"]}
    if options.config is not None or options.small:
        for module in modules.values():
            tuned = getattr(module, kernel)
            tuned.configs = [tuned.configs[options.config or 0]]
    for dtype in options.dtypes.split(","):
        for length in map(int, options.lengths.split(",")):
            for depth in map(int, options.depths.split(",")):
                for causal in (False, True):
                    yield build(modules, options.heads, length, depth, causal, DTYPES[dtype])


if __name__ == "__main__":
    main()
