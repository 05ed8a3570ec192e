"""What is said about names of Triton's modules and objects that tilewright does not have: what there is in their place."""

from __future__ import annotations

from collections.abc import Iterable

NO_IR = "kernels become CUDA C++, and there is no Triton IR: see compiled.asm['cu'] and kernel.translate(...)"
FILES = "what is compiled is kept in files, in $TILEWRIGHT_CACHE_DIR"
INSTEAD = {
    "triton.aggregate": "aggregates are not supported yet; pass a tuple",
    "triton.compiler.IRSource": NO_IR,
    "triton.compiler.OutOfResources": "it is triton.OutOfResources",
    "triton.compiler.make_backend": "the target is the argument arch of kernel.translate, or $TILEWRIGHT_ARCH",
    "triton.compiler.get_cache_key": "kernel.cache_key is the key of a kernel",
    "triton.runtime.RemoteCacheBackend": FILES,
    "triton.runtime.RedisRemoteCacheBackend": FILES,
    "triton.runtime.build": "no C is compiled for launches; kernels go through NVRTC",
    "triton.runtime.interpreter": "set TILEWRIGHT_MODE=interpret",
    "triton.runtime.driver.active.launcher_cls": "launch with kernel[grid](...) or compiled[grid](...)",
    "triton.testing.cuda_memcheck": "set TILEWRIGHT_MODE=check, which finds races and accesses out of bounds",
    "triton.testing.set_gpu_clock": "lock the clocks with nvidia-smi --lock-gpu-clocks; tunings measure their configs in turns",
    "triton.testing.do_bench_proton": "measure with triton.testing.do_bench",
    "triton.testing.do_bench_cudagraph_proton": "measure with triton.testing.do_bench_cudagraph",
    "CompiledKernel.packed_metadata": "see metadata",
    "CompiledKernel.src": "see source, the generated CUDA",
    "CompiledKernel.kernel": "see asm['cubin'], the machine code",
    "CompiledKernel.module": "see function, the handle of the loaded kernel",
    "CompiledKernel.n_max_threads": "a block has 32 * metadata.num_warps threads, or more where warps only load",
    "CompiledKernel.run": "launch with compiled[grid](...)",
    "CompiledKernel.launch_metadata": "see triton.knobs.runtime.launch_enter_hook, which is told it",
}


def closest(name: str, known: Iterable[str]) -> str:
    """The name that was meant, in whatever capitals; empty when none is near."""
    import difflib  # only for an error

    spelled = {one.lower(): one for one in known}
    close = difflib.get_close_matches(name.lower(), list(spelled), n=1)
    return spelled[close[0]] if close else ""


def absent(owner: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for `owner.name`; `known` are the names that there are."""
    text = f"{owner} has no {name!r}"
    if f"{owner}.{name}" in INSTEAD:
        return AttributeError(f"{text}: {INSTEAD[f'{owner}.{name}']}")
    meant = closest(name, (one for one in known if not one.startswith("_")))
    return AttributeError(text + (f"; did you mean {owner}.{meant}?" if meant else ""))
