"""Families of random kernels whose tiles have more axes, or are taken apart."""

from __future__ import annotations

from random_products import K_AXIS, LOOPS, M_AXIS, N_AXIS, Writer, dot, loop, operand, start, tiles


def planes(w: Writer, kind: str, even: frozenset[str]) -> str:
    """Products of rank 3: planes of a tile are rows of the matrices."""
    w.put("m0 = tl.program_id(0) * BM", "n0 = tl.program_id(1) * BN")
    w.put(
        "m, n, k = m0 + tl.arange(0, BM), n0 + tl.arange(0, BN), tl.arange(0, BK)",
        f"p = tl.arange(0, {w.pick(1, 2, 4)})",
    )
    count = w.lines[-1].split("tl.arange(0, ")[1][0]
    sums = w.types["sum"]
    w.types["a"] = w.types["b"] = kind
    w.types["c"] = sums
    w.shapes |= {"a": ("M", "K"), "b": ("K", "N"), "c": ("M", "N")}
    w.by_rows |= {"a": True, "b": True, "c": True}
    w.zeroed.add("c")
    extra = f', input_precision="{w.precision}"' if kind == "tl.float32" else ""
    at = w.indent
    w.put(f"total = tl.zeros(({count}, BM, BN), {sums})")
    loop(w, LOOPS[:4])
    w.put("a = tl.load(a_ptr + m[None, :, None] * sa + (k0 + k)[None, None, :] + p[:, None, None] * 0)")
    w.put("b = tl.load(b_ptr + (k0 + k)[None, :, None] * sb + n[None, None, :] + p[:, None, None] * 0)")
    if w.chance(0.5) and kind != "tl.int8":
        w.put(f"b = (b.to(tl.float32) * (p + 1)[:, None, None]).to({kind})")
    if w.chance(0.3):
        w.put("a = tl.trans(tl.trans(a, (0, 2, 1)), (0, 2, 1))")
    w.put(f"total = tl.dot(a, b, total{extra})")
    w.leave(at)
    w.put("result = tl.sum(total, axis=0)" if w.chance(0.5) else "result = tl.max(total, axis=0)")
    w.put("tl.store(c_ptr + m[:, None] * sc + n[None, :], result)")
    return "(tm, tn)"


def halves(w: Writer, kind: str, even: frozenset[str]) -> str:
    """The sum is taken apart before it is stored: by reshapes, splits, or a reduction that keeps several columns."""
    grid = start(w, even)
    sums = w.types["sum"]
    a, b = operand(w, "a", kind, M_AXIS, K_AXIS, even), operand(w, "b", kind, K_AXIS, N_AXIS, even)
    at = w.indent
    w.put(*a.before, *b.before, f"total = tl.zeros((BM, BN), {sums})")
    loop(w)
    tiles(w, a, b)
    w.put(dot(w, kind, "a", "b", "total"))
    w.leave(at)
    w.types["c"] = sums
    w.shapes["c"], w.by_rows["c"] = ("M", "N"), True
    inside = "(m[:, None] < M) & ({0}[None, :] < N)"
    shape = w.pick("columns", "pairs", "rows", "joined", "mean")
    if shape == "columns":
        w.put("left, right = total.reshape(BM, 2, BN // 2).permute(0, 2, 1).split()")
        for name, first in (("left", "n0"), ("right", "n0 + BN // 2")):
            w.put(f"cols = {first} + tl.arange(0, BN // 2)")
            w.put(f"tl.store(c_ptr + m[:, None] * sc + cols[None, :], {name}, mask={inside.format('cols')})")
    elif shape == "pairs":
        w.put("one, other = total.reshape(BM, BN // 2, 2).split()", "total = tl.join(other, one).reshape(BM, BN)")
        w.put(f"tl.store(c_ptr + m[:, None] * sc + n[None, :], total, mask={inside.format('n')})")
    elif shape == "rows":
        w.put(
            "top = tl.sum(total.reshape(BM // 2, 2, BN), axis=1)",
            "total = tl.join(top, top + 1).permute(0, 2, 1).reshape(BM, BN)",
        )
        w.put(f"tl.store(c_ptr + m[:, None] * sc + n[None, :], total, mask={inside.format('n')})")
    elif shape == "joined":
        w.put("total = tl.interleave(total, total * 2)", "cols = n0 // BN * BN + tl.arange(0, 2 * BN)")
        w.put(
            "inside = (m[:, None] < M) & (cols[None, :] < N) & (cols < n0 + BN)[None, :]",
            "tl.store(c_ptr + m[:, None] * sc + cols[None, :], total, mask=inside)",
        )
    else:
        w.put(
            "group = tl.max(total.reshape(BM, BN // 4, 4), axis=2)",
            "total = (total.reshape(BM, BN // 4, 4) - group[:, :, None]).reshape(BM, BN)",
        )
        w.put(f"tl.store(c_ptr + m[:, None] * sc + n[None, :], total, mask={inside.format('n')})")
    return grid
