"""What is said about names of Triton's modules and objects that tilewright does not have: what there is in their place."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from opcode import opname

NO_IR = "kernels become CUDA C++, and there is no Triton IR: see compiled.asm['cu'] and kernel.translate(...)"
FILES = "what is compiled is kept in files, in $TILEWRIGHT_CACHE_DIR"
OWN_FILES = f"{FILES}, and by no class that programs replace; keep files of your own where you like"
FOLDER = "it is triton.knobs.cache.dir"
INSTEAD = {
    "triton.aggregate": "aggregates are not supported yet; pass a tuple",
    "triton.compiler.IRSource": NO_IR,
    "triton.compiler.OutOfResources": "it is triton.OutOfResources",
    "triton.compiler.make_backend": "the target is the argument arch of kernel.translate, or $TILEWRIGHT_ARCH",
    "triton.compiler.get_cache_key": "kernel.cache_key is the key of a kernel",
    "triton.runtime.RemoteCacheBackend": FILES,
    "triton.runtime.RedisRemoteCacheBackend": FILES,
    "triton.runtime.cache.FileCacheManager": OWN_FILES,
    "triton.runtime.cache.CacheManager": OWN_FILES,
    "triton.runtime.cache.RemoteCacheManager": OWN_FILES,
    "triton.runtime.cache.get_cache_manager": OWN_FILES,
    "triton.runtime.cache.get_dump_manager": "see compiled.source, and compiled.export(...), which writes it",
    "triton.runtime.cache.get_override_manager": "nothing takes the place of generated text: change the kernel's Python",
    "triton.runtime.cache.default_cache_dir": FOLDER,
    "triton.runtime.cache.default_dump_dir": FOLDER,
    "triton.runtime.cache.default_override_dir": FOLDER,
    "triton.runtime.cache.triton_key": "triton.__version__ says of what version kernels are",
    "triton._internal_testing._fresh_knobs_impl": "a block under triton.knobs.runtime.scope() puts settings back at its end",
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


def absent(owner: str, name: str, known: Iterable[str]) -> AttributeError | ImportError:
    """The error for `owner.name`, to be raised by `__getattr__`; `known` are the names that there are."""
    text = f"{owner} has no {name!r}"
    if f"{owner}.{name}" in INSTEAD:
        text = f"{text}: {INSTEAD[f'{owner}.{name}']}"
    elif meant := closest(name, (one for one in known if not one.startswith("_"))):
        text = f"{text}; did you mean {owner}.{meant}?"
    return unfound(text)


def unfound(text: str) -> AttributeError | ImportError:
    """The error of a text, for a function to return that `__getattr__` calls.

    `from module import name` says nothing of an AttributeError's text: it gets an ImportError.
    """
    asking = sys._getframe(3)
    is_import = asking.f_lasti >= 0 and opname[asking.f_code.co_code[asking.f_lasti]] == "IMPORT_FROM"
    return ImportError(text) if is_import else AttributeError(text)
