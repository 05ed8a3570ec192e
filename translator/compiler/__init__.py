"""`tilewright.compiler`: compiling for types given by name; see `tilewright.runtime.ast_source`."""

from typing import Any

from tilewright.absent import absent
from tilewright.diagnostics import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct
from tilewright.runtime.ast_source import ASTSource, compile
from tilewright.runtime.compiled import CompiledKernel

from . import compiler, errors

__all__ = [
    "ASTSource", "CompilationError", "CompileTimeAssertionFailure", "CompiledKernel", "UnsupportedLanguageConstruct", "compile",
    "compiler", "errors",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise absent("triton.compiler", name, __all__)
