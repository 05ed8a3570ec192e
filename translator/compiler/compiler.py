"""`triton.compiler.compiler`, where programs look for the same names."""

from tilewright.language.targets import GPUTarget
from tilewright.runtime.ast_source import ASTSource, compile
from tilewright.runtime.compiled import CompiledKernel

__all__ = ["ASTSource", "CompiledKernel", "GPUTarget", "compile"]
