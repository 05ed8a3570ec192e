"""What options and atomics of the language take."""

from __future__ import annotations

MOST_ELEMENTS = 1 << 20  # of a tile

LOAD_MODIFIERS = ("", ".ca", ".cg", ".cs", ".cv")
STORE_MODIFIERS = ("", ".wb", ".cg", ".cs", ".wt")
EVICTION_POLICIES = ("", "evict_first", "evict_last", "evict_normal")
MEMORY_ORDERS = ("", "acquire", "release", "acq_rel", "relaxed")
SCOPES = ("", "gpu", "cta", "sys")

_INTEGERS = ("i32", "u32", "i64", "u64")
# Element types by the atomic that takes them.
ATOMIC_TYPES = {
    "add": (*_INTEGERS, "fp16", "bf16", "fp32", "fp64"),
    "max": (*_INTEGERS, "fp16", "bf16", "fp32", "fp64"),
    "min": (*_INTEGERS, "fp16", "bf16", "fp32", "fp64"),
    "and": _INTEGERS,
    "or": _INTEGERS,
    "xor": _INTEGERS,
    "xchg": (*_INTEGERS, "fp32", "fp64"),
    "cas": (*_INTEGERS, "i16", "u16", "fp16", "bf16", "fp32", "fp64"),  # by their bits
}
