"""Random products with weights that several share a byte with, or that are found in tables: how others quantise.

A weight is what `each` neighbours along K, or along N, have in a word; its number may choose an entry of a table, and a scale or
an offset may come by column, by row, by group, or by a list of groups.
"""

from __future__ import annotations

from random_product_sums import LOOPS
from random_products import K_AXIS, M_AXIS, Writer, dot, finish, loop, operand, place, start


def words(w: Writer, kind: str, even: frozenset[str]) -> str:
    """B is unpacked from words in a loop over K, which is a multiple of BK."""
    if kind not in ("tl.float16", "tl.bfloat16"):
        kind = "tl.float16"
        w.types["sum"] = "tl.float32"
    grid = start(w, even)
    a = operand(w, "a", kind, M_AXIS, K_AXIS, even)
    w.types["b"], w.by_rows["b"], w.shapes["b"] = "tl.int8", w.chance(0.6), ("K", "N")
    each, at = w.pick(1, 2, 2, 4), w.indent
    doubled = each > 1 and "N" in even and w.chance(0.25)  # along N, and interleaved with themselves
    w.put(*a.before, f"total = tl.zeros((BM, BN), {w.types['sum']})")
    loop(w, LOOPS[:6])
    w.put(*(_doubled(w, each) if doubled else _along_k(w, each, even)))
    _weights(w, each, "n[None, :]" if doubled else "(k0 + k)[:, None]")
    _scaled(w, kind)
    w.put(*a.text.split("\n"), dot(w, kind, "a", "b", "total"))
    w.leave(at)
    w.tolerance = max(w.tolerance, 1e-2 if kind == "tl.bfloat16" else 2e-3)
    finish(w, even)
    return grid


def _along_k(w: Writer, each: int, even: frozenset[str]) -> list[str]:
    """Loads the word of each element, `each` neighbours along K the same."""
    bits = {1: 0, 2: 1, 4: 2}[each]
    rows = w.pick(f"((k0 + k) // {each})", f"((k0 + k) >> {bits})", f"(k0 // {each} + k // {each})")
    tests = ["(n[None, :] < N)"] if "N" not in even or w.chance(0.3) else []
    tests += w.pick([], [], ["((k0 + k)[:, None] < K)"], [f"({rows}[:, None] < K // {each})"])
    masked = f", mask={' & '.join(tests)}, other=0" if tests else ""
    return [f"word = tl.load({place('b', rows, 'n', w.by_rows['b'])}{masked})"]


def _doubled(w: Writer, each: int) -> list[str]:
    """Loads each word once, and repeats it along N."""
    lines = [f"cols = n0 // {each} + tl.arange(0, BN // {each})"]
    lines.append(f"word = tl.load({place('b', '(k0 + k)', 'cols', w.by_rows['b'])})")
    return lines + ["word = tl.interleave(word, word)"] * {2: 1, 4: 2}[each]


def _weights(w: Writer, each: int, number: str) -> None:
    """What a word holds for an element, and what that stands for."""
    bits = 8 // each
    w.put(f"b = (word >> ({number} % {each} * {bits})) & {(1 << bits) - 1}" if each > 1 else "b = word")
    found = w.pick(None, None, "table", "other table")
    if found is not None:
        w.put(f"b = tl.load(x_ptr + (b & 15){'' if found == 'table' else ' + 16 * (k0 // BK)'})")


def _scaled(w: Writer, kind: str) -> None:
    """Rounds the weights to what is multiplied, after a scale and an offset or without."""
    offset = w.pick(None, "- 2", "- tl.load(x_ptr + n)[None, :]", "+ tl.load(x_ptr + k0 // BK * 8 + n)[None, :]")
    scale = w.pick(
        None,
        "tl.load(x_ptr + n)[None, :]",
        "tl.load(x_ptr + (k0 + k) // 4)[:, None]",
        "tl.load(x_ptr + (k0 + k)[:, None] // 8 * 2 + n[None, :])",
        "tl.load(x_ptr + tl.load(j_ptr + k0 + k)[:, None] + n[None, :])",
        "tl.load(x_ptr + k0 // BK)",
    )
    text = "b.to(tl.float32)" if offset or scale else "b"
    text = f"({text} {offset})" if offset else text
    w.put(f"b = ({text} * {scale}).to({kind})" if scale else f"b = {text}.to({kind})")
