"""tilewright: tile programs in Triton's language, as CUDA C++ that a person can review.

    import tilewright as triton
    import tilewright.language as tl

Everything here is looked up when it is first used, so that the import is quick. This module is the one place in which
`translator/` reaches into `runtime/`: it is the package's public face.
"""

from __future__ import annotations

import importlib
from typing import Any

from .version import LANGUAGE_VERSION as __version__

_HOMES = {
    "jit": "tilewright.runtime.jit",
    "JITFunction": "tilewright.runtime.jit",
    "CompiledKernel": "tilewright.runtime.compiled",
    "KernelInterface": "tilewright.runtime.kernel_interface",
    "autotune": "tilewright.runtime.tuning.autotune",
    "Autotuner": "tilewright.runtime.tuning.autotune",
    "Config": "tilewright.runtime.tuning.config",
    "heuristics": "tilewright.runtime.tuning.heuristics",
    "Heuristics": "tilewright.runtime.tuning.heuristics",
    "load_tuned": "tilewright.runtime.tuning.store",
    "cdiv": "tilewright.host",
    "next_power_of_2": "tilewright.host",
    "constexpr_function": "tilewright.host",
    "set_allocator": "tilewright.host",
    "must_use_result": "tilewright.host",
    "compile": "tilewright.runtime.ast_source",
    "reinterpret": "tilewright.runtime.reinterpreted",
    "TensorWrapper": "tilewright.runtime.reinterpreted",
    "MockTensor": "tilewright.runtime.mock_tensor",
    "AsyncCompileMode": "tilewright.runtime.async_compile",
    "FutureKernel": "tilewright.runtime.async_compile",
    "InterpreterError": "tilewright.runtime.errors",
    "Artifact": "tilewright.artifact",
    "Options": "tilewright.artifact",
} | dict.fromkeys(
    ("TilewrightError", "CompilationError", "OutOfResources", "LaunchError", "KernelFaultError", "ToolchainError",
     "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct", "AutotunerError"),
    "tilewright.diagnostics",
)  # fmt: skip
_MODULES = {
    "language": "tilewright.language",
    "tl": "tilewright.language",
    "testing": "tilewright.testing",
    "knobs": "tilewright.knobs",
    "compiler": "tilewright.compiler",
    "backends": "tilewright.backends",
    "runtime": "tilewright.runtime",
    "tools": "tilewright.tools",
    "errors": "tilewright.errors",
}

__all__ = ["__version__", *_HOMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(_MODULES[name])
    elif name == "_internal_testing":
        value = importlib.import_module("tilewright._internal_testing")
    elif name == "TritonError":
        value = __getattr__("TilewrightError")
    else:
        from .absent import absent

        raise absent("triton", name, __all__)
    globals()[name] = value
    return value
