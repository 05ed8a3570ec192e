"""A random kernel and its functions as if one file had them, one behind the other."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import tilewright.language as tl
from tilewright.runtime.jit import JITFunction

NONE: Mapping[str, int] = MappingProxyType({})


def file_of(helpers: Mapping[str, str], source: str) -> str:
    """The file's text: the functions, and behind them the kernel."""
    return "".join((*helpers.values(), source))


def kernel_of(helpers: Mapping[str, str], source: str, constants: Mapping[str, int] = NONE) -> JITFunction:
    """The file's kernel, which is called `kernel`; its lines and those of the functions are the file's.

    The `constants` are global compile-time numbers.
    """
    namespace: dict[str, Any] = {"tl": tl} | {name: tl.constexpr(number) for name, number in constants.items()}
    above = ""
    for name, text in (*helpers.items(), ("kernel", source)):
        placed = "\n" * above.count("\n") + text
        exec(placed, namespace)
        namespace[name] = JITFunction(namespace[name], source=placed)
        above += text
    return namespace["kernel"]  # type: ignore[no-any-return]
