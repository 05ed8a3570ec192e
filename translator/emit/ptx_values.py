"""What the templates of PTX instructions need besides a caller's values: operand lists, constraints, spelled-out types.

In: the values that `use_helper` was given. Out: further values for `templates/helpers`. Operands of an `asm` are numbered
in the order in which they stand, outputs first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..hardware import BOX_COORDINATES

REGISTERS = ("r0", "r1", "r2", "r3")
WORDS = {
    "f16": "fp16",
    "bf16": "bf16",
    "tf32": "tf32",
    "e4m3": "fp8 e4m3",
    "e5m2": "fp8 e5m2",
    "s8": "int8",
    "u8": "uint8",
}
SIXTEEN_BITS = ("f16", "bf16")
REGISTERS_PER_LINE = 16
FRAGMENTS_PER_LINE = 8


def _tma_load(rank: int, hinted: bool = False) -> dict[str, Any]:
    names = BOX_COORDINATES[-rank:]  # PTX wants the innermost first
    operands = _operands(2, rank)
    return {"outer_first": names, "inner_first": names[::-1], "operands": operands, "last_operand": f"%{rank + 2}",
            "policy": f"%{rank + 3}" if hinted else ""}  # fmt: skip


def _tma_store(rank: int) -> dict[str, Any]:
    names = BOX_COORDINATES[-rank:]
    operands = _operands(1, rank)
    return {"outer_first": names, "inner_first": names[::-1], "operands": operands, "last_operand": f"%{rank + 1}"}


def _cp_async(bytes: int, read_once: bool = False) -> dict[str, Any]:
    return {"read_once": read_once, "cache": "cg" if bytes == 16 else "ca"}  # only copies of 16 bytes can pass by L1


def _ldmatrix(count: int, trans: bool = False) -> dict[str, Any]:
    operands = _operands(0, count)
    return {"registers": REGISTERS[:count], "operands": operands, "last_operand": f"%{count}", "trans": trans}


def _stmatrix(count: int, trans: bool = False) -> dict[str, Any]:
    return {"registers": REGISTERS[:count], "operands": _operands(1, count), "trans": trans}


def _mma(k: int, a_type: str, b_type: str, acc: str = "f32") -> dict[str, Any]:
    return {"inputs": _inputs(a_type, b_type), "acc": acc, **_accumulator(acc)}


def _mma_double(rows: int, k: int) -> dict[str, Any]:
    halves, b_count = rows // 8, k // 4
    a_count, sums = halves * b_count, 2 * halves
    return {
        "a_count": a_count,
        "b_count": b_count,
        "sums": _operands(0, sums),
        "a_operands": _operands(sums, a_count),
        "b_operands": _operands(sums + a_count, b_count),
        "places": ["upper[0]", "upper[1]", "lower[0]", "lower[1]"] if halves == 2 else ["sums[0]", "sums[1]"],
    }


def _mma_split(steps: int, parts: int, **_: Any) -> dict[str, Any]:
    several = steps > 1
    return {
        "dims": f"[{steps}][{parts}]" if several else f"[{parts}]",
        "steps": [f"[{s}]" for s in range(steps)] if several else [""],
    }


def _wgmma_registers(acc: str = "f32", **_: Any) -> dict[str, Any]:
    return _accumulator(acc)


def _wgmma(
    n: int,
    k: int,
    a_type: str,
    b_type: str,
    acc: str = "f32",
    a_registers: bool = False,
    a_transposed: bool = False,
    b_transposed: bool = False,
) -> dict[str, Any]:
    registers = n // 2
    immediates, meaning = ["1"], "scale-d"
    if acc == "f32":
        immediates += ["1", "1"]
        meaning = "scale-d, scale-a, scale-b"
    if a_type in SIXTEEN_BITS:
        transposed = [b_transposed] if a_registers else [a_transposed, b_transposed]
        immediates += [str(int(flag)) for flag in transposed]
        meaning += f"; {_transposition(a_transposed and not a_registers, b_transposed)} transposed"
    a_operands = [f"%{registers + i}" for i in range(4 if a_registers else 1)]
    return {
        "inputs": _inputs(a_type, b_type),
        "elements": n // 4,
        "accumulators": _lines(_operands(0, registers), REGISTERS_PER_LINE),
        "fragments": _lines([str(f) for f in range(n // 8)], FRAGMENTS_PER_LINE),
        "a_operand": f"{{{', '.join(a_operands)}}}" if a_registers else a_operands[0],
        "b_operand": f"%{registers + len(a_operands)}",
        "immediates": immediates,
        "meaning": meaning,
        "acc": acc,
        "a_registers": a_registers,
        **_accumulator(acc),
    }


# Template to the function that completes its values.
PTX_VALUES: dict[str, Callable[..., dict[str, Any]]] = {
    "tma_load": _tma_load,
    "tma_store": _tma_store,
    "cp_async": _cp_async,
    "ldmatrix": _ldmatrix,
    "stmatrix": _stmatrix,
    "mma": _mma,
    "mma_double": _mma_double,
    "mma_split": _mma_split,
    "wgmma_take": _wgmma_registers,
    "wgmma_pin": _wgmma_registers,
    "wgmma": _wgmma,
}


def _operands(first: int, count: int) -> list[str]:
    return [f"%{first + number}" for number in range(count)]


def _lines(items: Sequence[str], length: int) -> list[list[str]]:
    return [list(items[start : start + length]) for start in range(0, len(items), length)]


def _accumulator(acc: str) -> dict[str, str]:
    return {"ctype": "int", "constraint": "r"} if acc == "s32" else {"ctype": "float", "constraint": "f"}


def _inputs(a_type: str, b_type: str) -> str:
    return WORDS[a_type] if a_type == b_type else f"{WORDS[a_type]} and {WORDS[b_type]}"


def _transposition(a_transposed: bool, b_transposed: bool) -> str:
    words = {(False, False): "neither operand", (True, False): "only a", (False, True): "only b", (True, True): "both"}
    return words[a_transposed, b_transposed]
