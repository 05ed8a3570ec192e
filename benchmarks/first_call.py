"""What the first launch of a kernel costs in a new process: the plain matmul, cold and from the disk cache.

Every measurement is a process of its own. The clock starts when torch is imported and the arguments exist, and stops when the
first launch has returned (on a GPU: has finished): import, decoration, translation, compilation, loading. Cold means an empty
cache of kernels, with Python's own bytecode in place, as an installation has it. On a GPU with Triton both are measured, in
turns. With --stub a driver and a torch that do nothing stand behind the launch, on any machine with NVRTC. `--lines` measures
translation alone, for kernels of growing length.

    python benchmarks/first_call.py [--stub] [--rounds N]
    python benchmarks/first_call.py --lines
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SHAPE = 4096
LENGTHS = (250, 500, 1000, 2000)
EPILOGUE = "    accumulator = accumulator * {k}.5 + 0.25\n"


# ------------------------------------------------------------------------------------------------ one process


def first_call(language: str, stub: bool) -> dict[str, float]:
    """Milliseconds in this process, which has imported neither language."""
    if stub:
        sys.path.insert(0, str(HERE.parent / "tests"))
        import numpy  # noqa: F401  (a process that has arrays has imported this, and what it needs)
        import stub as no_gpu

        no_gpu.load_torch()
        a, b, c = (no_gpu.Tensor(address << 24, "float16") for address in (1, 2, 3))
        finish: Any = lambda: None
    else:
        import torch

        a, b, c = (torch.ones((SHAPE, SHAPE), dtype=torch.float16, device="cuda") for _ in range(3))
        finish = torch.cuda.synchronize
    finish()
    start, busy = time.perf_counter(), time.process_time()
    sys.path.insert(0, os.environ["KERNELS"])
    from kernel_of_first_call import matmul_kernel

    decorated = time.perf_counter()
    grid = ((SHAPE // 128) * (SHAPE // 256),)
    strides = (SHAPE, 1) * 3
    matmul_kernel[grid](a, b, c, SHAPE, SHAPE, SHAPE, *strides, 128, 256, 64, 8, num_warps=8)
    finish()
    end = time.perf_counter()
    seconds = {"import": decorated - start, "launch": end - decorated, "all": end - start}
    return {part: one * 1e3 for part, one in {**seconds, "processor": time.process_time() - busy}.items()}


# ---------------------------------------------------------------------------------------------- all processes


def kernel_text(language: str) -> str:
    """A module with the plain matmul of `matmul_kernels.py`, for one of the two."""
    text = (HERE / "matmul_kernels.py").read_text()
    start = text.index("@triton.jit\ndef tile_of")
    end = text.index("\n@triton.jit", text.index("def matmul_kernel"))
    head = f"import {language} as triton\nimport {language}.language as tl\n\n\n" if language == "tilewright" else (
        "import triton\nimport triton.language as tl\n\n\n"
    )  # fmt: skip
    return head + text[start:end]


def measured(language: str, folder: Path, bytecode: str, stub: bool) -> dict[str, float]:
    """One new process, with the caches in `folder` and Python's in `bytecode`."""
    (folder / "kernel_of_first_call.py").write_text(kernel_text(language))
    environment = {
        **os.environ, "KERNELS": str(folder), "TILEWRIGHT_CACHE_DIR": str(folder / "kept_by_tilewright"),
        "TRITON_CACHE_DIR": str(folder / "kept_by_triton"), "CUDA_CACHE_PATH": str(folder / "kept_by_driver"),
        "PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": "",
    }  # fmt: skip
    if stub:
        sys.path.insert(0, str(HERE.parent / "tests"))
        import stub as no_gpu

        environment["LD_LIBRARY_PATH"] = no_gpu.folder()
    command = [sys.executable, __file__, "--child", language, *(["--stub"] if stub else [])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(languages: list[str], rounds: int, stub: bool) -> None:
    """Cold and warm processes in turns; prints the medians."""
    times: dict[tuple[str, str], list[dict[str, float]]] = {}
    bytecode = tempfile.mkdtemp()
    for number in range(rounds + 1):
        for language in languages:
            with tempfile.TemporaryDirectory() as name:
                for state in ("cold", "warm"):
                    found = measured(language, Path(name), bytecode, stub)
                    if number:  # the first round fills the file system's cache and Python's
                        times.setdefault((language, state), []).append(found)
    shutil.rmtree(bytecode)
    for (language, state), found in times.items():
        middle = {part: statistics.median(one[part] for one in found) for part in found[0]}
        least = min(one["all"] for one in found)
        print(
            f"{language:<10} {state}: {middle['all']:7.1f} ms = import and decoration {middle['import']:6.1f} "
            f"+ launch {middle['launch']:7.1f}; least {least:7.1f}; processor time {middle['processor']:7.1f}"
        )
    if "triton" in languages:
        for state in ("cold", "warm"):
            ours, theirs = (statistics.median(one["all"] for one in times[name, state]) for name in languages)
            print(f"{state}: {ours / theirs:.2f} of Triton's time")


def lengths() -> None:
    """Processor time of a translation, without and with ever more lines behind the product."""
    import importlib.util

    signature = ", ".join(["*fp16:16"] * 3 + ["i32:16"] * 3 + ["i32:16", "i32:1"] * 3 + ["128, 256, 64, 8"])
    folder = Path(tempfile.mkdtemp())
    text = kernel_text("tilewright")
    behind_the_loop = text.index("    c = accumulator")
    for lines in (0, 0, *LENGTHS):
        path = folder / f"of_{lines}_lines.py"
        more = "".join(EPILOGUE.format(k=k % 7 + 1) for k in range(lines))
        path.write_text(text[:behind_the_loop] + more + text[behind_the_loop:])
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise SystemExit(f"{path} is no kernel")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        start = time.process_time()
        module.matmul_kernel.translate(signature, num_warps=8)
        print(f"{lines:>5} more lines: {(time.process_time() - start) * 1e3:7.1f} ms")
    shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stub", action="store_true")
    parser.add_argument("--lines", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        print(json.dumps(first_call(chosen.child, chosen.stub)))
    elif chosen.lines:
        lengths()
    else:
        from importlib.util import find_spec

        with_triton = not chosen.stub and find_spec("triton") is not None
        compare(["tilewright", "triton"] if with_triton else ["tilewright"], chosen.rounds, chosen.stub)


if __name__ == "__main__":
    main()
