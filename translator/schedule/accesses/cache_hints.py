"""What the cache hints of a load or store ask for, where that is more than plain accesses do."""

from __future__ import annotations

from ...ir.nodes import Call

# Hints that plain accesses follow as well. CUDA's functions for them, such as __ldca, make loads that keep an order among
# threads, which costs a kernel that gathers half of its speed.
USUAL = ("ca", "wb", "evict_last", "evict_normal")


def load_hint(call: Call) -> str:
    """The hint of a load, such as "cs" or "evict_first"; "" where a plain load will do."""
    return "volatile" if call.attribute("volatile") else store_hint(call)


def store_hint(call: Call) -> str:
    """The hint of a store; "" where a plain store will do."""
    hint = str(call.attribute("cache_modifier") or "").lstrip(".") or str(call.attribute("eviction_policy") or "")
    return "" if hint in USUAL else hint
