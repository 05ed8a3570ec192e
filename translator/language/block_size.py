"""`tl.extra.cuda.num_threads` and `num_warps`: how many of them work on a program's tiles."""

from __future__ import annotations

from .builtin import Builtin

BLOCK_SIZE = {
    "num_warps": Builtin("extra.cuda.num_warps", (), "The option `num_warps`, a compile-time value."),
    "num_threads": Builtin("extra.cuda.num_threads", (), "The threads of so many warps, a compile-time value."),
}
