"""Families of random kernels in which one dot's result is an operand of another, or goes from trip to trip."""

from __future__ import annotations

from random_products import (
    K_AXIS,
    LOOPS,
    M_AXIS,
    N_AXIS,
    Axis,
    Writer,
    dot,
    finish,
    load,
    loop,
    operand,
    tiles,
)

T_AXIS = Axis("t0", "BM", "M", "(t0 + m_)")


def chained(w: Writer, kind: str, even: frozenset[str]) -> str:
    """Attention without and with softmax: what a dot leaves is an operand of the next; N is the depth, one tile wide."""
    w.put("m0 = tl.program_id(0) * BM", "n0 = 0", "m, n, k = m0 + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)")
    sums = w.types["sum"]
    a = operand(w, "a", kind, M_AXIS, N_AXIS, even)
    b, v = operand(w, "b", kind, K_AXIS, N_AXIS, even), operand(w, "w", kind, K_AXIS, N_AXIS, even)
    outside = w.chance(0.7)
    w.put(*a.before, *b.before, *v.before, f"total = tl.zeros((BM, BN), {sums})")
    soft = sums == "tl.float32" and w.chance(0.6)
    if outside:
        tiles(w, a)
    if soft:
        w.tolerance = max(w.tolerance, 2e-2)
        w.put('highest = tl.full((BM,), float("-inf"), tl.float32)', "weight = tl.zeros((BM,), tl.float32)")
    else:
        w.tolerance = max(w.tolerance, 1e-2)
    at = w.indent
    loop(w, LOOPS[:6])
    w.put(*([] if outside else a.text.split("\n")))
    late = w.chance(0.5)
    tiles(w, *((b,) if late else (b, v)))
    extra = f', input_precision="{w.precision}"' if kind == "tl.float32" else ""
    w.put(w.pick(f"s = tl.dot(a, tl.trans(b){extra})", f"s = tl.dot(a, b.T{extra})"))
    if soft:
        w.put("s = tl.where((k0 + k)[None, :] < K, s * 0.25, -1.0e9)")
        if w.chance(0.4):
            w.put("s = tl.where(m[:, None] >= (k0 + k)[None, :] - K // 2, s, -1.0e9)")
        w.put(
            "now = tl.maximum(highest, tl.max(s, axis=1))",
            "p = tl.exp(s - now[:, None])",
            "alpha = tl.exp(highest - now)",
        )
        w.put("weight = weight * alpha + tl.sum(p, axis=1)", "total = total * alpha[:, None]", "highest = now")
    else:
        w.put("p = s * 0.25" if sums != "tl.int32" else "p = s % 5")
        if w.chance(0.3) and sums != "tl.int32":
            w.put("p = tl.where(m[:, None] >= (k0 + k)[None, :], p, 0.0)")
    if late:
        tiles(w, v)
    w.put(f"p = p.to({kind})", dot(w, kind, "p", "w", "total"))
    w.leave(at)
    if soft:
        w.put("total = total / weight[:, None]")
    finish(w, even)
    w.shapes |= {"a": ("M", "N"), "b": ("K", "N"), "w": ("K", "N")}
    return "(tm,)"


def backward(w: Writer, kind: str, even: frozenset[str]) -> str:
    """As of attention's backward pass: a program keeps a tile of K, and sums over M in two ways; transposed operands."""
    w.put(
        "k0 = tl.program_id(0) * BK",
        "n0 = 0",
        "n, k = tl.arange(0, BN), k0 + tl.arange(0, BK)",
        "m_ = tl.arange(0, BM)",
    )
    sums = w.types["sum"]
    k_axis = Axis("k0", "BK", "K", "k")
    a, b = operand(w, "a", kind, T_AXIS, N_AXIS, even), operand(w, "b", kind, k_axis, N_AXIS, even)
    v = operand(w, "w", kind, T_AXIS, N_AXIS, even)
    w.tolerance = max(w.tolerance, 1e-2)
    w.put(*a.before, *b.before, *v.before, f"total = tl.zeros((BK, BN), {sums})", f"also = tl.zeros((BK, BN), {sums})")
    tiles(w, b)
    at = w.indent
    w.put(w.pick("for t0 in range(0, M, BM):", "for t0 in range(k0 // BM * BM, M, BM):"))
    extra = f', input_precision="{w.precision}"' if kind == "tl.float32" else ""
    tiles(w, a, v)
    if w.chance(0.5):
        w.put(f"s = tl.dot(a, tl.trans(b){extra})")
        turned = "tl.trans({})"
    else:
        w.put(f"s = tl.dot(b, tl.trans(a){extra})")
        turned = "{}"
    factor = "s * 0.125" if sums != "tl.int32" else "s % 3"
    w.put(f"p = ({factor}).to({kind})")
    if w.chance(0.5) and sums != "tl.int32":
        first = "t0 + m_" if turned != "{}" else "k"
        shape = (f"({first})[:, None] >= k[None, :]") if turned != "{}" else "k[:, None] <= (t0 + m_)[None, :]"
        w.put(f"p = tl.where({shape}, p.to(tl.float32), 0.0).to({kind})")
    w.put(dot(w, kind, turned.format("p"), "w", "total"))
    if w.chance(0.6):
        other = f"tl.dot(w, tl.trans(b){extra})" if turned != "{}" else f"tl.dot(b, tl.trans(w){extra})"
        w.put(f"dp = {other}", f"ds = (p.to({sums}) * dp * {2 if sums == 'tl.int32' else 0.125}).to({kind})")
        w.put(dot(w, kind, turned.format("ds"), "a", "also"))
        if w.chance(0.5) and sums == "tl.float32":
            w.zeroed.add("d")
            w.types["d"] = "tl.float32"
            w.shapes["d"], w.by_rows["d"] = ("M", "N"), True
            form = f"tl.dot(ds, b{extra})" if turned != "{}" else f"tl.dot(tl.trans(ds), b{extra})"
            w.put(f"tl.atomic_add(d_ptr + (t0 + m_)[:, None] * sc + n[None, :], {form}, mask=(t0 + m_)[:, None] < M)")
    w.leave(at)
    w.types["c"] = sums
    w.shapes |= {"a": ("M", "N"), "b": ("K", "N"), "w": ("M", "N"), "c": ("K", "N")}
    w.by_rows["c"] = True
    w.put("tl.store(c_ptr + k[:, None] * sc + n[None, :], total - also, mask=k[:, None] < K)")
    return "(tk,)"


def state(w: Writer, kind: str, even: frozenset[str]) -> str:
    """Linear attention by chunks: a state [BK, BN] goes from trip to trip, and every trip stores a tile."""
    w.put(
        "n0 = tl.program_id(0) * BN", "k0 = 0", "n, k, m_ = n0 + tl.arange(0, BN), tl.arange(0, BK), tl.arange(0, BM)"
    )
    sums = w.types["sum"]
    w.tolerance = max(w.tolerance, 1e-2)
    k_axis = Axis("k0", "BK", "K", "k")
    a, b = operand(w, "a", kind, T_AXIS, k_axis, even), operand(w, "b", kind, T_AXIS, k_axis, even)
    v = operand(w, "w", kind, T_AXIS, N_AXIS, even)
    w.put(*a.before, *b.before, *v.before, f"h = tl.zeros((BK, BN), {sums})")
    at = w.indent
    w.put(w.pick("for t0 in range(0, M, BM):", "for t0 in tl.range(0, M, BM):"))
    tiles(w, a, b, v)
    extra = f', input_precision="{w.precision}"' if kind == "tl.float32" else ""
    decay = "h * 0.5" if sums != "tl.int32" else "h % 7"
    lines = [f"o = tl.dot(a, h.to({kind}){extra})"]
    if w.chance(0.6):
        scale = "s * 0.125" if sums != "tl.int32" else "s % 3"
        lines += [f"s = tl.dot(a, tl.trans(b){extra})", f"s = tl.where(m_[:, None] >= m_[None, :], {scale}, 0)",
                  f"o += tl.dot(s.to({kind}), w{extra})"]  # fmt: skip
    update = [f"h = {decay}", f"h += tl.dot(tl.trans(b), w{extra})"]
    if w.chance(0.5):
        w.put(*lines, *update)
    else:
        w.put(*update, *lines)
    w.types["c"] = sums
    w.shapes |= {"a": ("M", "K"), "b": ("M", "K"), "w": ("M", "N"), "c": ("M", "N")}
    w.by_rows["c"] = True
    w.put("tl.store(c_ptr + (t0 + m_)[:, None] * sc + n[None, :], o, mask=((t0 + m_)[:, None] < M) & (n[None, :] < N))")
    w.leave(at)
    return "(tn,)"


def through_memory(w: Writer, kind: str, even: frozenset[str]) -> str:
    """A trip stores a tile that the next one loads and multiplies; N and K are one square tile, BN == BK."""
    w.put(
        "m0 = tl.program_id(0) * BM",
        "m, n, k = m0 + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)",
        "n0 = 0",
        "k0 = 0",
    )
    k_axis = Axis("k0", "BK", "K", "k")
    sums = w.types["sum"]
    w.tolerance = max(w.tolerance, 1e-2)
    w.types["a"] = w.types["d"] = w.types["b"] = kind
    w.shapes |= {"d": ("M", "K"), "a": ("M", "K"), "b": ("K", "N"), "c": ("M", "N")}
    w.by_rows |= {"d": True, "a": True, "c": True}
    b = load(w, "b", k_axis, N_AXIS, even, ways=("pointers", "descriptor", "block"))
    inside = w.pick("", ", mask=m[:, None] < M") if "M" in even else ", mask=m[:, None] < M"
    other = ", other=0.0" if inside else ""
    w.put(*b.before)
    extra = f', input_precision="{w.precision}"' if kind == "tl.float32" else ""
    w.put("first = tl.load(a_ptr + m[:, None] * sa + k[None, :]" + inside + other + ")")
    w.put("pointers = d_ptr + m[:, None] * sc + k[None, :]", "tl.store(pointers, first" + inside + ")")
    barrier = w.chance(0.5)
    if barrier:
        w.put("tl.debug_barrier()")
    hoisted = w.chance(0.5)
    if hoisted:
        w.put(f"b = {b.text}")
    w.put("steps = 2 + tl.load(i_ptr) % 3")
    w.put(f"total = tl.zeros((BM, BN), {sums})")
    at = w.indent
    w.put(
        w.pick("for step in range(steps):", "for step in range(0, 4):", "for step in tl.range(0, steps, num_stages=3):")
    )
    if not hoisted:
        w.put(f"b = {b.text}")
    reload = w.pick("pointers", "d_ptr + m[:, None] * sc + k[None, :]")
    w.put(f"tile = tl.load({reload}{inside}{other})")
    scale = "total % 5" if sums == "tl.int32" else "total * 0.125"
    w.put(w.pick(f"total = tl.dot(tile, b{extra})", f"total = tl.dot(tile, b, total{extra})"))
    where = w.pick("pointers", "d_ptr + m[:, None] * sc + n[None, :]")
    w.put(f"tl.store({where}, ({scale}).to({kind}){inside})")
    if barrier:
        w.put("tl.debug_barrier()")
    w.leave(at)
    w.types["c"] = sums
    w.put("tl.store(c_ptr + m[:, None] * sc + n[None, :], total, mask=m[:, None] < M)")
    return "(tm,)"


def powers(w: Writer, kind: str, even: frozenset[str]) -> str:
    """A square tile that is multiplied by itself again and again: both operands are what the last dot left."""
    w.put("m0 = tl.program_id(0) * BM", "n0 = 0", "m, n, k = m0 + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)")
    w.types["a"], w.types["c"] = kind, w.types["sum"]
    w.shapes |= {"a": ("M", "N"), "c": ("M", "N")}
    w.by_rows |= {"a": True, "c": True}
    w.tolerance = max(w.tolerance, 2e-2)
    extra = f', input_precision="{w.precision}"' if kind == "tl.float32" else ""
    w.put("x = tl.load(a_ptr + m[:, None] * sa + n[None, :])", f"y = tl.zeros((BM, BN), {w.types['sum']})")
    at = w.indent
    w.put(w.pick("for _ in range(3):", "for _ in range(tl.load(i_ptr) % 4):", "for _ in tl.static_range(2):"))
    form = w.pick("tl.dot(x, x{})", "tl.dot(tl.trans(x), x{})", "tl.dot(x, tl.trans(x){})").format(extra)
    w.put(f"y = {form}", f"x = ({'y % 7' if kind == 'tl.int8' else 'y * 0.0625'}).to({kind})")
    w.leave(at)
    w.put("tl.store(c_ptr + m[:, None] * sc + n[None, :], y)")
    return "(tm,)"
