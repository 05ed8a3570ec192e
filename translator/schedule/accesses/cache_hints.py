"""What the cache hints of a load or store ask for, where that is more than plain accesses do."""

from __future__ import annotations

from ...ir.nodes import Call

# Hints that plain accesses follow as well. CUDA's functions for them, such as __ldca, make loads that keep an order among
# threads, which costs a kernel that gathers half of its speed. What is loaded element by element to be kept is gathered.
USUAL = ("ca", "wb", "evict_last", "evict_normal")
LEAST_KEPT = 2  # bytes of an access by PTX, which has no registers of a byte
MOST_KEPT = 2  # accesses of a thread for one load: each of them takes registers for an address of its own


def load_hint(call: Call) -> str:
    """The hint of a load, such as "cs" or "evict_first"; "" where a plain load will do."""
    return "volatile" if call.attribute("volatile") else store_hint(call)


def vector_hint(call: Call, access_bytes: int, accesses: int) -> str:
    """The hint of a load by vectors of so many bytes; where they are few, caches are told of those, too, that shall stay."""
    stays = call.attribute("eviction_policy") == "evict_last" and not call.attribute("cache_modifier")
    worth_it = access_bytes >= LEAST_KEPT and accesses <= MOST_KEPT
    return load_hint(call) or ("evict_last" if stays and worth_it else "")


def store_hint(call: Call) -> str:
    """The hint of a store; "" where a plain store will do."""
    hint = str(call.attribute("cache_modifier") or "").lstrip(".") or str(call.attribute("eviction_policy") or "")
    return "" if hint in USUAL else hint
