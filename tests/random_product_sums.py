"""Families of random kernels that sum products over K: what stands around the dot differs."""

from __future__ import annotations

from random_products import (
    K_AXIS,
    LOOPS,
    M_AXIS,
    N_AXIS,
    Writer,
    dot,
    finish,
    loop,
    operand,
    place,
    start,
    tiles,
)


def plain(w: Writer, kind: str, even: frozenset[str]) -> str:
    """Sums of products over K, perhaps two that share an operand, perhaps rescaled, perhaps under a condition."""
    grid = start(w, even)
    a, b = operand(w, "a", kind, M_AXIS, K_AXIS, even), operand(w, "b", kind, K_AXIS, N_AXIS, even)
    second = w.pick(None, None, None, "right", "left")
    other = None
    if second == "right":
        other = operand(w, "w", kind, K_AXIS, N_AXIS, even)
    elif second == "left":
        other = operand(w, "w", kind, M_AXIS, K_AXIS, even)
    sums = w.types["sum"]
    at = w.indent
    w.put(*a.before, *b.before, *(other.before if other else ()))
    w.put(f"total = tl.zeros((BM, BN), {sums})")
    if other:
        w.put(f"also = tl.zeros((BM, BN), {sums})")
    extra = w.pick(None, None, None, "rescale", "max", "sum of a", "column sums of b", "running", "count")
    if extra in ("sum of a",):
        w.put("rows = tl.zeros((BM,), tl.float32)")
    if extra == "column sums of b":
        w.put("columns = tl.zeros((BN,), tl.float32)")
    if extra == "max":
        w.put(f"highest = tl.zeros((BM, BN), {sums})")
    if extra == "count":
        w.put("count = 0")
    loop(w)
    inner = w.indent
    condition = w.pick(
        None, None, None, None, "if k0 != BK:", "if tl.load(i_ptr + k0 // BK) % 2 == 0:", "if (k0 // BK) % 3 == 1:"
    )
    before = w.chance(0.5)
    if condition and before:
        w.put(condition)
    tiles(w, a, b, *((other,) if other else ()))
    if condition and not before:
        w.put(condition)
    w.put(dot(w, kind, "a", "b", "total"))
    if second == "right":
        w.put(dot(w, kind, "a", "w", "also"))
    elif second == "left":
        w.put(dot(w, kind, "w", "b", "also"))
    if condition and w.chance(0.5):
        w.leave(inner)
    if extra == "rescale" and sums != "tl.int32":
        w.put("total = total * 0.5")
    elif extra == "max":
        w.put("highest = tl.maximum(highest, total)")
    elif extra == "sum of a" and not (condition and before):
        w.put("rows += tl.sum(a.to(tl.float32), axis=1)")
    elif extra == "column sums of b" and not (condition and before):
        w.put("columns += tl.sum(b.to(tl.float32), axis=0)")
    elif extra == "running":
        w.put("tl.store(d_ptr + (tl.program_id(0) + tl.program_id(1) * 64 + tl.program_id(2) * 64) * 0 + k0 // BK, k0)")
    elif extra == "count":
        w.put("count += tl.load(j_ptr + k0 // BK) % 3")
    w.leave(at)
    if extra == "sum of a":
        w.put("total += rows[:, None]" if sums != "tl.int32" else "total += rows[:, None].to(tl.int32)")
    elif extra == "column sums of b":
        w.put(f"total += columns[None, :].to({sums})")
    elif extra == "max":
        w.put("total += highest")
    elif extra == "count":
        w.put("total += count")
    if other:
        w.put(w.pick("total = total - also", "total = tl.where(total > 0, also, total)"))
    finish(w, even)
    return grid


def two_loops(w: Writer, kind: str, even: frozenset[str]) -> str:
    """Two loops one after the other, or an outer one around a tile's own loop and its epilogue."""
    grid = start(w, even)
    sums = w.types["sum"]
    a, b = operand(w, "a", kind, M_AXIS, K_AXIS, even), operand(w, "b", kind, K_AXIS, N_AXIS, even)
    v = operand(w, "w", kind, K_AXIS, N_AXIS, even)
    w.put(*a.before, *b.before, *v.before)
    at = w.indent
    w.put(f"total = tl.zeros((BM, BN), {sums})")
    shape = w.pick("after", "after", "nested", "apart")
    if shape == "nested":
        w.put(f"for turn in range({w.pick('2', 'tl.load(i_ptr) % 3', '1')}):")
    if shape == "nested" and w.chance(0.5):
        w.put("bias = tl.load(x_ptr + turn * 16 + n)")
        w.put(f"total += bias[None, :].to({sums})")
    between = w.indent
    loop(w)
    tiles(w, a, b)
    w.put(dot(w, kind, "a", "b", "total"))
    w.leave(between)
    middle = w.pick(
        None, "total = total * 2", "total = tl.maximum(total, 0)", "total += tl.max(total, axis=1)[:, None]"
    )
    if middle:
        w.put(middle)
    if shape == "apart":
        w.put(f"other = tl.zeros((BM, BN), {sums})")
    target = "other" if shape == "apart" else "total"
    if w.chance(0.3):
        w.put(w.pick("if tl.load(i_ptr + m0 // BM) % 2 == 0:", "if n0 != 0:", "if K > 2 * BK:"))
    loop(w)
    tiles(w, a, v)
    w.put(dot(w, kind, "a", "w", target))
    w.leave(at)
    if shape == "apart":
        w.put(w.pick("total = total - other", "total = tl.maximum(total, other)"))
    finish(w, even)
    return grid


def ragged(w: Writer, kind: str, even: frozenset[str]) -> str:
    """Bounds of the loop come from memory and differ between programs: none, one, or many trips."""
    grid = start(w, even)
    a, b = operand(w, "a", kind, M_AXIS, K_AXIS, even), operand(w, "b", kind, K_AXIS, N_AXIS, even)
    at = w.indent
    w.put(*a.before, *b.before, f"total = tl.zeros((BM, BN), {w.types['sum']})", "blocks = K // BK")
    w.put("first = tl.load(i_ptr + m0 // BM) % (blocks + 1)", "last = tl.load(j_ptr + n0 // BN) % (blocks + 1)")
    early = w.chance(0.3) and at == 1
    if early:
        w.zeroed.add("c")
        w.put("if first == last:", "return")
        w.leave(at)
    w.put(*w.pick(("for block in range(first, last):", "k0 = block * BK"), ("for k0 in range(first * BK, last * BK, BK):",),
                  ("block = first", "while block < last:", "k0 = block * BK", "block += 1")))  # fmt: skip
    tiles(w, a, b)
    w.put(dot(w, kind, "a", "b", "total"))
    w.leave(at)
    finish(w, even)
    return grid


def carried(w: Writer, kind: str, even: frozenset[str]) -> str:
    """Operands that a trip takes over from the one before it, which has fetched them, or zeros at first."""
    grid = start(w, even)
    ways = ("pointers", "pointers", "descriptor", "block")
    a = operand(w, "a", kind, M_AXIS, K_AXIS, even - {"K"}, ways=ways)  # the last trip fetches what lies behind K
    b = operand(w, "b", kind, K_AXIS, N_AXIS, even - {"K"}, ways=ways)
    at = w.indent
    w.put(*a.before, *b.before, f"total = tl.zeros((BM, BN), {w.types['sum']})", "k0 = 0")
    taken, rest = w.pick(((a,), (b,)), ((b,), (a,)), ((a, b), ()))
    late = bool(rest) and w.chance(0.5)
    if late:
        w.put(f"a = tl.zeros((BM, BK), {kind})" if taken == (a,) else f"b = tl.zeros((BK, BN), {kind})")
    else:
        tiles(w, *taken)
    w.put(w.pick("for t in range(tl.cdiv(K, BK)):", "for t in range(0, tl.cdiv(K, BK)):"), "k0 = t * BK")
    tiles(w, *rest)
    w.put(dot(w, kind, "a", "b", "total"))
    if not late:
        w.put("k0 = (t + 1) * BK")
    tiles(w, *taken)
    w.leave(at)
    finish(w, even)
    return grid


def parts(w: Writer, kind: str, even: frozenset[str]) -> str:
    """K is shared out among programs, which add up with atomics; or among steps of one trip."""
    w.put(
        "m0 = tl.program_id(0) * BM",
        "n0 = tl.program_id(1) * BN",
        "part = tl.program_id(2)",
        "parts = tl.num_programs(2)",
    )
    w.put("m, n, k = m0 + tl.arange(0, BM), n0 + tl.arange(0, BN), tl.arange(0, BK)")
    sums = w.types["sum"]
    a, b = operand(w, "a", kind, M_AXIS, K_AXIS, even), operand(w, "b", kind, K_AXIS, N_AXIS, even)
    at = w.indent
    w.put(*a.before, *b.before, f"total = tl.zeros((BM, BN), {sums})")
    w.put(*w.pick(("for k0 in range(part * BK, K, parts * BK):",), ("each = tl.cdiv(tl.cdiv(K, BK), parts) * BK",
                  "for k0 in range(part * each, min(part * each + each, K), BK):"),
                  ("for t in range(part, tl.cdiv(K, BK), parts):", "k0 = t * BK")))  # fmt: skip
    tiles(w, a, b)
    w.put(dot(w, kind, "a", "b", "total"))
    w.leave(at)
    w.types["c"] = sums if sums != "tl.float64" else "tl.float64"
    w.shapes["c"], w.by_rows["c"] = ("M", "N"), w.chance(0.7)
    w.zeroed.add("c")
    if w.chance(0.3):
        w.put("if part == 0:", f"total += tl.load(x_ptr + n)[None, :].to({sums})")
        w.leave(at)
    w.put(f"tl.atomic_add({place('c', 'm', 'n', w.by_rows['c'])}, total, mask=(m[:, None] < M) & (n[None, :] < N))")
    return str(w.pick("(tm, tn, 3)", "(tm, tn, 1)", "(tm, tn, 7)"))


def packed(w: Writer, kind: str, even: frozenset[str]) -> str:
    """Weights of four bits, two in a byte along K, or bytes, with a scale per column, per group, or none."""
    if kind not in ("tl.float16", "tl.bfloat16"):
        kind = "tl.float16"
        w.types["sum"] = "tl.float32"
    grid = start(w, even)
    a = operand(w, "a", kind, M_AXIS, K_AXIS, even)
    w.types["b"] = "tl.int8"
    w.by_rows["b"] = w.chance(0.5)
    w.shapes["b"] = ("K", "N")
    at = w.indent
    w.put(*a.before, f"total = tl.zeros((BM, BN), {w.types['sum']})")
    loop(w, LOOPS[:6])
    inside = ", mask=n[None, :] < N, other=0" if "N" not in even else ""
    four = w.chance(0.6)
    rows = "((k0 + k) // 2)" if four else "(k0 + k)"
    w.put(f"packed = tl.load({place('b', rows, 'n', w.by_rows['b'])}{inside})")
    if four:
        w.put(w.pick("b = (packed >> ((k0 + k) % 2 * 4)[:, None]) & 0xF", "b = (packed >> (k % 2 * 4)[:, None]) & 15"))
    else:
        w.put("b = packed")
    scaled = w.pick(None, "columns", "groups", "rows")
    w.put(w.pick(f"b = b.to({kind})", f"b = b.to(tl.float32).to({kind})", f"b = (b - {8 if four else 1}).to({kind})"))
    if scaled == "columns":
        w.put(f"b = (b * tl.load(x_ptr + n)[None, :]).to({kind})")
    elif scaled == "groups":
        w.put("scale = tl.load(x_ptr + k0 // BK * 16 + n)", f"b = b * scale[None, :].to({kind})")
    elif scaled == "rows":
        w.put(f"b = (b * tl.load(x_ptr + k0 + k)[:, None]).to({kind})")
    w.put(*a.text.split("\n"), dot(w, kind, "a", "b", "total"))
    w.leave(at)
    w.tolerance = max(w.tolerance, 1e-2 if kind == "tl.bfloat16" else 2e-3)
    finish(w, even)
    return grid


def either(w: Writer, kind: str, even: frozenset[str]) -> str:
    """Branches in the loop that load from different places, multiply other tiles, or leave early."""
    grid = start(w, even)
    sums = w.types["sum"]
    w.types["a"] = w.types["w"] = kind
    a, b = operand(w, "a", kind, M_AXIS, K_AXIS, even), operand(w, "b", kind, K_AXIS, N_AXIS, even)
    v = operand(w, "w", kind, M_AXIS, K_AXIS, even)
    at = w.indent
    w.put(*a.before, *b.before, *v.before, f"total = tl.zeros((BM, BN), {sums})")
    shape = w.pick("loads", "dots", "exit", "state")
    test = w.pick("k0 // BK % 2 == 0", "tl.load(i_ptr + k0 // BK) % 2 == 0", "m0 > n0", "k0 >= m0")
    if shape == "exit":
        w.put("k0 = 0", "going = 1", "while (k0 < K) & (going > 0):")
        tiles(w, a, b)
        w.put(dot(w, kind, "a", "b", "total"))
        w.put(
            w.pick(
                "going = tl.load(j_ptr + k0 // BK) % 4",
                "going = tl.where(tl.max(total) > 40, 0, 1)" if sums == "tl.float32" else "going = 1",
            )
        )
        w.put("k0 += BK")
    else:
        loop(w, LOOPS[:5])
        inner = w.indent
        tiles(w, b)
        if shape == "loads":
            w.put(f"if {test}:", *a.text.split("\n"))
            w.leave(inner)
            w.put(
                "else:",
                *[
                    line.replace("w = ", "a = ", 1) if number == 0 else "a = w"
                    for number, line in enumerate([v.text.split("\n")[0]])
                ],
            )
            w.leave(inner)
            w.put(f"a = a.to({kind})", dot(w, kind, "a", "b", "total"))
        elif shape == "dots":
            w.put(f"if {test}:", *a.text.split("\n"), dot(w, kind, "a", "b", "total"))
            w.leave(inner)
            w.put("else:", *v.text.split("\n"), dot(w, kind, "w", "b", "total"))
        else:
            tiles(w, a)
            w.put(f"if {test}:", dot(w, kind, "a", "b", "total"))
            w.leave(inner)
            w.put("else:", "total = total + tl.load(x_ptr + n)[None, :].to(" + sums + ")")
    w.leave(at)
    finish(w, even)
    return grid
