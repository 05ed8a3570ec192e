"""What a warm launch costs the host: `kernel[grid](...)` and `compiled[grid](...)` with 4 and with 19 arguments.

On a GPU with torch and Triton: all in this process, taken in turns, beside torch.add and what the driver itself takes when it
is called through ctypes with everything written beforehand. Anywhere else: a driver and a torch that do nothing, so
that what is measured is our side alone. Prints microseconds per launch, the least of several rounds, and whether launches go
through the part in C; with `--python` they do not, as where it could not be built.

    python benchmarks/launch.py [--stub] [--python]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROUNDS, LAUNCHES = 15, 2000
FOUR = """
def four(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
"""
NINETEEN = """
def nineteen(a_ptr, b_ptr, c_ptr, d_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn, scale,
             flag, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr):
    i = tl.arange(0, BLOCK_M)
    a = tl.load(a_ptr + i * stride_am, mask=i < M) * scale + tl.load(b_ptr + i * stride_bk, mask=i < N)
    tl.store(c_ptr + i * stride_cm, a + tl.load(d_ptr + i * stride_cn, mask=i < K), mask=i < M)
"""


def kernels(folder: Path, name: str, imports: str) -> tuple[Any, Any]:
    """The two kernels, from a file of their own: their source must be found."""
    import importlib.util

    path = folder / f"{name}.py"
    path.write_text(f"{imports}\n\n\n@triton.jit{FOUR}\n\n@triton.jit{NINETEEN}")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.four, module.nineteen


def launches(pair: tuple[Any, Any], tensor: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
    """A launch per kernel, as users write it."""
    four, nineteen = pair
    a, b, c, d = tensor(), tensor(), tensor(), tensor()
    rest = (512, 500, 256, 256, 1, 512, 1, 512, 1, 0.5, True)
    found = {
        "4 arguments": lambda: four[(4,)](a, b, 1000, BLOCK=256),
        "19 arguments": lambda: nineteen[(4, 2)](a, b, c, d, *rest, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, GROUP=8),
    }
    if hasattr(four, "compile"):
        one, other = (call() for call in found.values())
        found["4 arguments, compiled"] = lambda: one[(4,)](a, b, 1000, 256)
        found["19 arguments, compiled"] = lambda: other[(4, 2)](a, b, c, d, *rest, 64, 64, 32, 8)
    return found


def driver_alone(four: Any, a: Any) -> Callable[[], Any]:
    """The driver's launch through ctypes, with nothing to write."""
    from tilewright.runtime.driver import current_stream
    from tilewright.runtime.launching.ready import STREAM, make_ready

    compiled = four.warmup(a, a, 1000, BLOCK=256)
    made = make_ready(compiled, (4, 1, 1), (a.data_ptr(), a.data_ptr(), 1000), current_stream)
    if made is None:
        raise SystemExit("the kernel is not made for a GPU")
    *_, new_block, pack, behind = made
    memory, start = new_block()
    pack(memory, STREAM, current_stream(0), behind, a.data_ptr(), a.data_ptr())
    return start


def measure(calls: dict[str, Callable[[], Any]], drain: Callable[[], Any]) -> dict[str, float]:
    """Microseconds per call of each, taken in turns."""
    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            drain()
            start = time.perf_counter()
            for _ in range(LAUNCHES // 10):  # few enough for the device's queue
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / (LAUNCHES // 10) * 1e6)
    return best


def main() -> None:
    import tempfile

    if "--python" in sys.argv:
        sys.modules["tilewright.runtime.quick_launch"] = None  # type: ignore[assignment]  # as if it were not there
    from tilewright.runtime.launching.fast_text import quick_launch

    print("launches go through", "Python alone" if quick_launch is None else "the part in C")
    calls: dict[str, Callable[[], Any]] = {}
    drain: Callable[[], Any] = lambda: None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = "import tilewright as triton\nimport tilewright.language as tl"
        if "--stub" in sys.argv:
            sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
            import stub

            stub.load_driver()
            stub.load_torch()
            pair = kernels(folder, "ours", own)
            calls = {
                f"tilewright, stub driver, {k}": v for k, v in launches(pair, lambda: stub.Tensor(1 << 20)).items()
            }
        else:
            import torch

            drain = torch.cuda.synchronize
            for label, imports in (("tilewright", own), ("triton", "import triton\nimport triton.language as tl")):
                pair = kernels(folder, label + "_kernels", imports)
                ready = launches(pair, lambda: torch.zeros(1 << 20, device="cuda"))
                calls |= {f"{label}, {k}": v for k, v in ready.items()}
                if label == "tilewright":
                    copied = torch.zeros(1 << 20, device="cuda")
                    calls["the driver, through ctypes"] = driver_alone(pair[0], copied)
            one, other = torch.ones(1 << 20, device="cuda"), torch.ones(1 << 20, device="cuda")
            calls["torch.add"] = lambda: torch.add(one, other)
        for name, cost in measure(calls, drain).items():
            print(f"{name:<40} {cost:7.2f} us")


if __name__ == "__main__":
    main()
