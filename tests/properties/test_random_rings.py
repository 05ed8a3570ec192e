"""Random plans of rings: no schedule blocks, no stage is overwritten or read too early, whatever the scheduler has chosen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
import tilewright.language as tl
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from ring_simulator import Simulation
from tilewright.artifact import Options
from tilewright.diagnostics import OutOfResources
from tilewright.pipeline import Translation, translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.runtime.jit import JITFunction
from tilewright.schedule.targets import find_target

AHEAD = re.compile("cp_async|tma_load")  # in no text whose tiles all come by way of registers
HEAD = """def kernel(a_ptr, b_ptr, x_ptr, c_ptr, i_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
"""
LOOPS = (
    ("for k0 in range(0, K, BK):",),
    ("for block in range(K // BK):", "k0 = block * BK"),
    ("for k0 in range(K - BK, -1, -BK):",),
    ("for k0 in range(BK, K, 2 * BK):",),
    ("for turn in range(2):", "for k0 in range(turn * BK, K, 2 * BK):"),
    ("for turn in range(2):", "w = tl.load(x_ptr + turn * N + n)", "for k0 in range(0, K, BK):"),
)
LOADS = {  # by rows, or by columns; by numbers from memory
    "a": ("a_ptr + m[:, None] * K + (k0 + k)[None, :]", "a_ptr + m[:, None] + (k0 + k)[None, :] * M"),
    "b": (
        "b_ptr + (k0 + k)[:, None] * N + n[None, :]",
        "b_ptr + (k0 + k)[:, None] + n[None, :] * K",
        "b_ptr + (tl.load(i_ptr + k0 // BK) * BK + k)[:, None] * N + n[None, :]",
        "b_ptr + tl.load(i_ptr + tl.load(i_ptr + k0 + k))[:, None] * N + n[None, :]",
    ),
}
UPDATES = (
    ("total = tl.dot(a, b, total)",),
    ("total += tl.dot(a, b)", "total = total * 0.5"),
    ("x = tl.load(x_ptr + k0 // BK * N + n).to(tl.float32)",  # bytes are for products and storage alone
     "total = tl.dot(a, (b.to(tl.float32) * x[None, :]).to(b.dtype), total)"),
    ("x = tl.load(x_ptr + k0 // BK * N + n).to(tl.float32)", "total = tl.dot(a, b, total)", "total += x[None, :]"),
    ("if k0 != BK:", "    total = tl.dot(a, b, total)"),
)  # fmt: skip
SUMS = (
    ("total += tl.load(a_ptr + (tl.load(i_ptr + k0) + m)[:, None] * N + n[None, :])",),
    ("total += tl.load(a_ptr + (k0 + m)[:, None] * N + n[None, :])",),
    ("x = tl.load(x_ptr + k0 * N + n, mask=n < N, other=0.0)",
     "total += x[None, :] * tl.load(a_ptr + (k0 + m)[:, None] * N + n[None, :], mask=n[None, :] < N)"),
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """A kernel's text, what is known of its arguments, and how it is translated."""

    source: str
    signature: str
    arch: str
    options: Options


@st.composite
def plans(draw: Any) -> Plan:
    """Loops, loads, what uses them; alignment, sides, types, warps, stages."""
    lines, indent = list(draw(st.sampled_from(LOOPS))), "    "
    loop = len(lines) - 1 if lines[-1].startswith("for") else len(lines) - 2
    if with_dots := draw(st.integers(0, 3)) > 0:
        masked = draw(st.booleans())
        for name, ways in LOADS.items():
            mask = f", mask={'m[:, None] < M' if name == 'a' else 'n[None, :] < N'}, other=0.0" if masked else ""
            lines.append(f"{name} = tl.load({draw(st.sampled_from(ways))}{mask})")
    else:
        stages = draw(st.sampled_from(("None", "2", "3", "4")))
        lines[loop] = lines[loop].replace("range(", "tl.range(").replace("):", f", num_stages={stages}):")
    lines += draw(st.sampled_from(UPDATES if with_dots else SUMS))
    text = HEAD
    for line in lines:
        text += f"{indent}{line}\n"
        indent += "    " if line.startswith("for") else ""
    text += "    tl.store(c_ptr + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))\n"
    known = [draw(st.sampled_from((*[":16"] * 7, ""))) for _ in range(4)]
    dtype = draw(st.sampled_from(("fp16", "fp16", "bf16", "fp32", "fp8e4nv"))) if with_dots else "fp16"
    tile = draw(st.sampled_from(((64, 32, 32), (64, 64, 64), (128, 32, 32), (16, 64, 32), (32, 16, 64))))
    sizes = ", ".join(f"i32{draw(st.sampled_from((*[':16'] * 5, '')))}" for _ in range(3))
    signature = f"*{dtype}{known[0]}, *{dtype}{known[1]}, *{dtype}{known[2]}, *fp32{known[3]}, *i32:16, {sizes}"
    arch = draw(st.sampled_from(("sm_80", "sm_90a", "sm_90a")))
    options = Options(
        num_warps=draw(st.sampled_from((1, 4, 4, 8))), num_stages=draw(st.integers(2, 5)), guards=draw(st.booleans())
    )
    return Plan(text, f"{signature}, {', '.join(map(str, tile))}", arch, options)


def translated(plan: Plan) -> Translation:
    """All stages of the translation."""
    namespace: dict[str, Any] = {"tl": tl}
    exec(plan.source, namespace)
    kernel = JITFunction(namespace["kernel"], source=plan.source)
    return translate_stages(kernel, parse_signature(kernel, plan.signature), plan.options, find_target(plan.arch))


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(plans(), st.integers(0, 1000))
def test_no_plan_blocks_or_overwrites(monkeypatch: pytest.MonkeyPatch, plan: Plan, seed: int) -> None:
    monkeypatch.setattr("tilewright.schedule.staging.rings.MOST_STAGES", 3)
    try:
        found = translated(plan)
    except OutOfResources:
        return
    rings = found.schedule.rings.rings
    kinds = {f"{r.kind}{', rows' * bool(r.rows)}{', own' * bool(r.own)}{', numbers' * bool(r.ahead)}" for r in rings}
    event(" and ".join(sorted(kinds)) or "none")
    deep = int(plan.signature.split(", ")[-1])
    for trips in (0, 1, 2, *(ring.stages + seed % 3 for ring in rings), 11) if rings else ():
        values = dict(M=64, N=96, K=deep * trips, own_block=0, num_blocks=1)
        values |= dict.fromkeys(("num_programs", "num_programs_x", "num_programs_y"), 2)
        try:
            copies = Simulation(found.artifact, values, seed).run()
        except Exception as error:
            raise AssertionError(f"{trips} trips: {plan}\n{plan.source}") from error
        assert copies or trips < 2 or not AHEAD.search(found.artifact.source)
