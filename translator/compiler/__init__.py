"""`tilewright.compiler`: compiling for types given by name; see `tilewright.runtime.ast_source`."""

from tilewright.compiler import errors
from tilewright.diagnostics import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct
from tilewright.runtime.ast_source import ASTSource, compile
from tilewright.runtime.compiled import CompiledKernel

__all__ = [
    "ASTSource", "CompilationError", "CompileTimeAssertionFailure", "CompiledKernel", "UnsupportedLanguageConstruct", "compile",
    "errors",
]  # fmt: skip
