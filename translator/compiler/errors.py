"""`triton.compiler.errors`: what a kernel's text can have wrong."""

from tilewright.diagnostics import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct

__all__ = ["CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct"]
