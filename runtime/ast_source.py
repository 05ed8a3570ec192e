"""`triton.compile(ASTSource(...))`: a kernel for types that are given by name, as libraries compile ahead of time.

In: a kernel, a type for each of its parameters, values of the compile-time ones. Out: the `CompiledKernel`, whose `asm` has
the text and the machine code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.artifact import Argument, ConstantArgument, RuntimeArgument, TupleArgument
from tilewright.diagnostics import LaunchError, SignatureError
from tilewright.language.constexpr import plain
from tilewright.language.hints import shown
from tilewright.language.targets import GPUTarget
from tilewright.runtime.arguments.signature import parse_entry
from tilewright.runtime.arguments.specialise import ALIGNMENT
from tilewright.runtime.compiled import CompiledKernel
from tilewright.runtime.jit import JITFunction
from tilewright.runtime.options import make_options
from tilewright.runtime.placement import ON_HOST, device_target, placement_here
from tilewright.runtime.tracebacks import outermost
from tilewright.schedule.targets import find_target

DIVISIBLE = "tt.divisibility"
Path = tuple[int, ...]


@dataclass(frozen=True)
class ASTSource:
    """A kernel and the types to compile it for.

    Attributes:
      fn: the kernel.
      signature: by parameter: a type such as "*fp32", "i32" or "tensordesc<fp16[64, 64]>"; "constexpr"; or a tuple of these.
      constexprs: values by parameter, or by path: `(2,)` is the third parameter, `(2, 0)` the first item of its tuple.
      attrs: by path, pairs such as `["tt.divisibility", 16]`.
    """

    fn: JITFunction
    signature: Mapping[str, Any]
    constexprs: Mapping[str | Path, Any] = field(default_factory=dict)
    attrs: Mapping[Path, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.fn.__name__

    def arguments(self) -> tuple[Argument, ...]:
        """What the kernel is specialised to.

        Raises:
          SignatureError: for a parameter without a type or value, a type that does not exist, or a name of none.
        """
        if not isinstance(self.signature, Mapping):
            raise SignatureError(
                f"the signature of {self.name} is no dict from parameters to types: {shown(self.signature)}"
            )
        names = self.fn.arg_names
        known = self.constexprs or {}
        for name in (*self.signature, *(key for key in known if isinstance(key, str))):
            if name not in names:
                raise SignatureError(f"{self.name} has no parameter {name}; its parameters are {', '.join(names)}")
        values = {(names.index(key),) if isinstance(key, str) else key: value for key, value in known.items()}
        found = []
        for place, name in enumerate(names):
            type_ = self.signature.get(name, "constexpr" if (place,) in values else None)
            if type_ is None:
                raise SignatureError(f"the signature has no type for the parameter {name} of {self.name}")
            found.append(self._argument(name, (place,), type_, values))
        return tuple(found)

    def _argument(self, name: str, path: Path, type_: Any, values: Mapping[Path, Any]) -> Argument:
        if isinstance(type_, (tuple, list)):
            items = (self._argument(f"{name}[{i}]", (*path, i), item, values) for i, item in enumerate(type_))
            return TupleArgument(name, tuple(items), getattr(type_, "_fields", ()))
        if type_ == "constexpr" or path in values:
            if path not in values:
                raise SignatureError(f"constexprs has no value for the compile-time parameter {name} of {self.name}")
            return ConstantArgument(name, plain(values[path]))
        is_divisible = any(key == DIVISIBLE and value % 16 == 0 for key, value in (self.attrs or {}).get(path, ()))
        if not isinstance(type_, str):
            raise SignatureError(
                f'the signature\'s entry for {name} is {shown(type_)}, no text such as "*fp32" or "i32"'
            )
        argument = parse_entry(name, type_, f"the signature's entry for {name}")
        if is_divisible and isinstance(argument, RuntimeArgument):
            return RuntimeArgument(name, argument.element, ALIGNMENT)
        return argument


@outermost
def compile(
    src: ASTSource, target: GPUTarget | None = None, options: Mapping[str, Any] | None = None
) -> CompiledKernel:
    """The kernel for the device in use, or for a `target`, whose machine code need not run here; right for all values.

    Raises:
      LaunchError: for a source of another kind, or in the interpreter.
    """
    if not isinstance(src, ASTSource):
        raise LaunchError(
            f"compile takes an ASTSource, not {type(src).__name__}; intermediate forms of Triton's are none here"
        )
    here = placement_here()
    chosen = make_options({"guards": False, **(options or {})}, src.fn.debug)
    wanted = None if target is None else find_target(f"sm_{target.arch}")
    if wanted is None or (here.mode == "gpu" and wanted == device_target(here.device)):
        return src.fn.compiled_for(src.arguments(), chosen, here)
    return src.fn.compiled_for(src.arguments(), chosen, ON_HOST, wanted)
