"""Writes docs/walkthrough.md: the prose below with the real texts of every stage. `tests/test_walkthrough.py` keeps it true.

usage: python docs/build_walkthrough.py
"""

from __future__ import annotations

from pathlib import Path

from tilewright.artifact import Options
from tilewright.cli import load_kernel
from tilewright.explain import describe_stage
from tilewright.pipeline import translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target

ROOT = Path(__file__).resolve().parent.parent
SIGNATURE = "*fp32:16, *fp32:16, i32:16, i32:16, i32, i32:16, 1, 4096"

PROSE = """# One kernel through every stage

The softmax of `samples/fused_softmax.py`, as `tilewright translate samples/fused_softmax.py:softmax_kernel --num-warps 8
--signature "{signature}"` translates it. `translator/pipeline.py` is this page in code. This page is written by
`docs/build_walkthrough.py`, and a test keeps it true.

## 1. Source

`translator/kernel_function.py` keeps the text of the function when it is decorated; `translator/frontend/source.py` parses
it with LibCST, so that comments survive.

```python
{source}
```

## 2. Kernel

`translator/frontend/` walks the tree once. Compile-time values are computed by Python, types are inferred through the op
table (`translator/ops/`), casts and broadcasts become explicit, and what loads or reduces gets a name of its own. One source
statement may be several lines here, which share an `Origin`. `docs/ir.md` defines the operations.

```
{kernel}
```

## 3. Prepared

`translator/preparing.py` is a table of passes. Each is a file of `translator/schedule/rewrites/`, takes a typed kernel and gives
one that means the same; `TILEWRIGHT_VERIFY=1` checks the rules of the typed kernel after each. Two of them change this kernel.
The head of the loop has tested `rows < n_rows`, so `settled_masks` takes that out of `mask`. `x` has the type that
`x.to(tl.float32)` asks for, so `copies` leaves a note in its place.

```
{prepared}
```

Facts, schedule and unit together are a plan. How many stages and blocks have room, and whether registers suffice to start
products or loads earlier, is known only of a whole one. So `translator/fitting.py` makes a plain plan first, with fewer stages
where they do not fit. Then it tries what the kernel has a use for: two blocks on a multiprocessor, twice the warps where a
thread cannot hold its tiles, fewer moves between threads, earlier products and loads, small loads ahead. Such a plan is taken if
it fits and is no worse in stages, blocks and registers. A plan may rewrite the kernel, too: loads become tensor copies.
`tilewright explain` shows the plan that was chosen, from `--after prepared` on. This kernel has no product and asks for neither a
second block nor more warps; its plain plan is the only one.

## 4. Facts

`translator/analysis/` finds out what is known before anything is decided. `cols` is an index tile: it follows from `arange`
alone, so every layout that needs it can compute it. `mask` is absorbed: its expression stands where it is used. For each
variable the axis analysis knows runs of consecutive values (contiguity), what divides their first values (divisibility) and
runs of equal ones (constancy); the load is 16 bytes wide because of it, and one test of the mask serves a whole vector.

```
{facts}
```

## 5. Schedule

`translator/schedule/` decides who holds what. The load is the anchor; everything that is combined with it element by element
follows.

```
{schedule}
```

## 6. Unit and text

`translator/lower/` turns each statement into plain values (loops, lines, helpers asked for), and `translator/emit/` writes them
through `templates/`. The result, from the kernel on:

```cuda
{text}
```

## 7. Running it

On a GPU `runtime/building/nvrtc.py` compiles the text to machine code, `runtime/cache.py` keeps it, `runtime/driver.py` loads it,
and `runtime/launching/launcher.py` launches it. On the host `runtime/cpu/build.py` hands the same text to the C++ compiler with
`runtime/cpu/engine.h` in CUDA's place. In Python `translator/interpreter/` runs the function of stage 1 itself.
"""


def walkthrough() -> str:
    """The page."""
    kernel = load_kernel(f"{ROOT / 'samples' / 'fused_softmax.py'}:softmax_kernel")
    arguments = parse_signature(kernel, SIGNATURE)
    stages = translate_stages(kernel, arguments, Options(num_warps=8), find_target("sm_90a"))
    text = stages.artifact.source
    return PROSE.format(
        signature=SIGNATURE,
        source=kernel.raw_src.rstrip(),
        kernel=describe_stage(stages, "kernel").rstrip(),
        prepared=describe_stage(stages, "prepared").rstrip(),
        facts=describe_stage(stages, "facts").rstrip(),
        schedule=describe_stage(stages, "schedule").rstrip(),
        text=text[text.index('extern "C"') :].rstrip(),
    )


if __name__ == "__main__":
    (ROOT / "docs" / "walkthrough.md").write_text(walkthrough(), encoding="utf-8")
