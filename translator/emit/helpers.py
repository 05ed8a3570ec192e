"""Which helpers a file needs, in which order: what a helper calls stands above it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from ..ir.device_helpers import HELPERS
from ..lower.text.unit import Helper
from .ptx_values import PTX_VALUES

REQUIRES = {helper.template: helper.requires for helper in HELPERS}
ORDER = {helper.template: number for number, helper in enumerate(HELPERS)}

READS = {"cg": "__ldcg", "cs": "__ldcs", "cv": "__ldcv", "volatile": "__ldcv"}
WRITES = {"cg": "__stcg", "cs": "__stcs", "wt": "__stwt", "wb": "__stwb"}
KEPT = "load_packet_kept"  # CUDA has no function for it
EVICTION_READS = {"evict_first": "__ldcs", "evict_last": KEPT}
EVICTION_WRITES = {"evict_first": "__stcs"}
# From a float's bits and back.
FLOAT_BITS = {
    "half": ("__half_as_ushort", "__ushort_as_half"),
    "__nv_bfloat16": ("__bfloat16_as_ushort", "__ushort_as_bfloat16"),
    "float": ("__float_as_uint", "__uint_as_float"),
    "double": ("__double_as_longlong", "__longlong_as_double"),
}

PAIRS = {"half": "f16x2", "__nv_bfloat16": "bf16x2"}  # PTX's types of two elements

PACKETS = {16: "uint4", 8: "uint2", 4: "unsigned", 2: "unsigned short", 1: "unsigned char"}


def order_helpers(helpers: tuple[Helper, ...], packets: tuple[int, ...]) -> list[tuple[str, dict[str, Any]]]:
    """(template, values) of every helper needed, those that helpers need included, in order."""
    needed: dict[str, tuple[str, dict[str, Any]]] = {}
    structs = any(helper.template == "combine_state" for helper in helpers)  # of several fields, exchanged one by one
    rounding = [helper.values for helper in helpers if helper.template == "round_pairs"]
    computed = {
        values["ctype"] for values in rounding if not values["of_array"]
    }  # elements that are rounded as they come
    for helper in helpers:
        if helper.template == "warp_reduce":
            helper = replace(helper, values={**helper.values, "structs": structs})
        if helper.template == "round_pairs":
            through = helper.values["of_array"] and helper.values["ctype"] in computed
            helper = replace(helper, values={**helper.values, "through": through})
        for entry_name, template, values in _with_requirements(helper, packets):
            needed.setdefault(entry_name, (template, values))
    entries = sorted(needed.items(), key=lambda item: (ORDER[item[1][0]], _rank(item[1][1])))
    return [entry for _, entry in entries]


def _rank(values: dict[str, Any]) -> int:
    """Plain accesses, and what rounds computed elements, before those that call them."""
    return 0 if values.get("kind", "") == "" and not values.get("through") else 1


def _with_requirements(helper: Helper, packets: tuple[int, ...]) -> list[tuple[str, str, dict[str, Any]]]:
    values = {"name": helper.name, **helper.values}
    if helper.template in ("load_vec", "store_vec"):
        modifier = values["modifier"]
        whole = helper.name.replace("_bounded", "").replace("_if", "")
        single = PACKETS[packets[0]] if len(packets) == 1 else ""
        common = {"whole": whole, "packet": single or "Whole", "single": bool(single)} | _access(modifier)
        hint = str(common["read"]).removeprefix("__ld").removeprefix("load_packet_")
        masked = helper.template == "load_vec" and values["kind"] == "if" and not values["bools"]
        own = f"load_packet_if_{hint}" if hint and masked and 1 not in packets else ""  # PTX has no registers of a byte
        common |= _in_memory(values["bools"])
        entries = [(helper.name, helper.template, values | common | {"predicated": own})]
        entries.insert(0, (whole, helper.template, values | {"name": whole, "kind": ""} | common))
        entries += [(f"{own} {size}", "load_packet_if", _packet_by_ptx(own, hint, size)) for size in packets if own]
        if common["read"] == KEPT:
            entries += [(f"{KEPT} {size}", KEPT, _packet_by_ptx(KEPT, hint, size)) for size in packets]
        sizes = [(size, PACKETS[size]) for size in packets]
        return entries if single else [("packet", "packet", {"sizes": sizes}), *entries]
    if helper.template == "load_one":
        return [(helper.name, helper.template, values | _access(values["modifier"]))]
    if helper.template in ("load_if", "store_if"):
        hint = _access(values.get("modifier", ""))["write"].removeprefix("__st")
        spelled = _element_if(values["ctype"]) | {"hint": f".{hint}" if hint else ""}
        return [(helper.name, helper.template, values | spelled)]
    if helper.template == "atomic_float":
        same = values["function"]
        other = same.replace("Max", "Min") if values["maximum"] else same.replace("Min", "Max")
        return [(helper.name, helper.template, values | {"same": same, "opposite": other})]
    if helper.template == "atomic_half":
        swap = re.sub("Max|Min", "CAS", values["function"])
        return [(helper.name, helper.template, values | _bits(values["ctype"], values["bits"]) | {"swap": swap})]
    if helper.template == "atomic_add_vec":
        return [(helper.name, helper.template, values | {"pair": PAIRS.get(values["ctype"], "")})]
    if helper.template == "atomic_bits":
        return [(helper.name, helper.template, values | _bits(values["ctype"], values["bits"]))]
    if helper.template in PTX_VALUES:
        values |= PTX_VALUES[helper.template](**helper.values)
    required = [(name, name, {"name": name}) for name in REQUIRES[helper.template]]
    return [*required, (helper.name, helper.template, values)]


def _packet_by_ptx(name: str, hint: str, size: int) -> dict[str, Any]:
    """The spelling of a load of so many bytes, predicated or with a policy for the caches."""
    words, kept = max(size // 4, 1), hint == "kept"
    fields = ["packet"] if words == 1 else [f"packet.{field}" for field in "xyzw"[:words]]
    registers = ", ".join(f"%{number}" for number in range(words))
    return {
        "name": name, "packet": PACKETS[size], "held": PACKETS[max(size, 2)], "words": words,
        "kept": kept, "hint": "L1::evict_last.L2::cache_hint" if kept else hint,
        "type": (f"v{words}." if words > 1 else "") + f"u{8 * min(size, 4)}",
        "registers": f"{{{registers}}}" if words > 1 else registers,
        "outputs": ", ".join(f'"{"=" if name == KEPT else "+"}{"r" if size >= 4 else "h"}"({field})' for field in fields),
    }  # fmt: skip


# PTX's type and the constraint of an operand, of elements that are operands as they are.
OPERANDS = {
    "float": ("f32", "f"), "double": ("f64", "d"), "int": ("s32", "r"), "unsigned": ("u32", "r"), "short": ("s16", "h"),
    "unsigned short": ("u16", "h"), "long long": ("s64", "l"), "unsigned long long": ("u64", "l"),
}  # fmt: skip


def _element_if(ctype: str) -> dict[str, str]:
    """The spelling of a predicated load of an element."""
    type_, constraint = OPERANDS.get(ctype, ("u16", "h"))
    to_bits, from_bits = ("", "") if ctype in OPERANDS else FLOAT_BITS[ctype]
    return {"type": type_, "constraint": constraint, "to_bits": to_bits, "from_bits": from_bits}


def _bits(ctype: str, width: int) -> dict[str, str]:
    """The unsigned type of a width, and the functions that turn values of a type into it and back."""
    unsigned = {16: "unsigned short", 32: "unsigned", 64: "unsigned long long"}[width]
    to_bits, from_bits = FLOAT_BITS.get(ctype, ("static_cast<Bits>", f"static_cast<{ctype}>"))
    return {"unsigned": unsigned, "to_bits": to_bits, "from_bits": from_bits}


def _in_memory(bools: bool) -> dict[str, str]:
    """How the elements of a vector lie in memory: booleans, which have no packet of their own, are bytes there."""
    template, register, memory, bytes_, nonzero, elements = (
        ("template <int N>", "bool", "unsigned char", "N", " != 0", "booleans, a byte each")
        if bools
        else ("template <int N, typename T>", "T", "T", "N * sizeof(T)", "", "elements")
    )
    return {
        "template": template, "register": register, "memory": memory, "bytes": bytes_, "nonzero": nonzero,
        "elements": elements,
    }  # fmt: skip


def _access(modifier: str) -> dict[str, str]:
    read = READS.get(modifier) or EVICTION_READS.get(modifier, "")
    write = WRITES.get(modifier) or EVICTION_WRITES.get(modifier, "")
    return {"read": read, "write": write}
