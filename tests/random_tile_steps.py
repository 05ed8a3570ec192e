"""Statements of random kernels that compute: operations element by element, casts, reductions, other shapes."""

from __future__ import annotations

from dataclasses import replace

from random_tile_places import condition
from random_tile_values import (
    DIGITS,
    INTEGERS,
    UNSIGNED,
    Value,
    bits,
    is_exact,
    limits,
    promoted,
    wrapped,
)
from random_tile_writer import Writer

TAME = 4  # the reach of numbers that are added up


def fitted(w: Writer, shape: tuple[int, ...], fits: object = None) -> tuple[str, Value] | None:
    """An operand for a tile: a variable of its shape, a scalar, or one along one of the axes; its text and what it holds."""

    def is_one(v: Value) -> bool:
        if fits is not None and not fits(v):  # type: ignore[operator]
            return False
        return v.shape in (shape, ()) or (len(v.shape) == 1 and len(shape) > 1 and v.shape[0] in shape)

    found = w.some(is_one)
    if found is None:
        return None
    if found.shape in (shape, ()):
        return found.name, found
    axis = w.pick(*[k for k, side in enumerate(shape) if side == found.shape[0]])
    return found.name + "[" + ", ".join(":" if k == axis else "None" for k in range(len(shape))) + "]", found


def binary(w: Writer) -> Value | None:
    """Two operands, one operation."""
    left = w.some(lambda v: v.dtype in INTEGERS or v.is_float or v.dtype == "int1")
    right = fitted(w, left.shape) if left else None
    if left is None or right is None:
        return None
    text, other = right
    dtype = promoted(left.dtype, other.dtype)
    if dtype not in DIGITS:
        return _of_integers(w, left, text, other, dtype)
    return _of_floats(w, left, text, other, dtype)


def _of_integers(w: Writer, left: Value, text: str, other: Value, dtype: str) -> Value:
    if dtype == "int1":
        return w.let(f"{left.name} {w.pick('&', '|', '^')} {text}", Value("", dtype, left.shape, 0, 1))
    kind = w.pick("+", "+", "-", "*", "&", "|", "^", "minimum", "maximum", "//", "%", ">>", "<<", "where")
    low, high = limits(dtype)
    mixed = left.dtype == "int1" or other.dtype == "int1" or (left.dtype in UNSIGNED) != (other.dtype in UNSIGNED)
    if kind in ("//", "%") and (mixed or dtype == "int1"):
        kind = "^"
    one, two = (
        (low, high) if left.low < low else (left.low, left.high),
        (low, high) if other.low < low else (other.low, other.high),
    )
    if kind == "+":
        low, high = one[0] + two[0], one[1] + two[1]
    elif kind == "-":
        low, high = one[0] - two[1], one[1] - two[0]
    elif kind == "*":
        products = [a * b for a in one for b in two]
        low, high = min(products), max(products)
    elif kind == "&" and one[0] >= 0 and two[0] >= 0:
        low, high = 0, min(one[1], two[1])
    elif kind == "where":
        low, high = min(one[0], two[0]), max(one[1], two[1])
        return w.let(
            f"tl.where({_any_condition(w, left)}, {left.name}, {text})", Value("", dtype, left.shape, low, high)
        )
    elif kind in ("minimum", "maximum"):
        pick = min if kind == "minimum" else max
        low, high = pick(one[0], two[0]), pick(one[1], two[1])
        return w.let(f"tl.{kind}({left.name}, {text})", Value("", dtype, left.shape, low, high))
    elif kind in ("//", "%"):
        text = f"(({text} & {w.pick(1, 3, 7)}) + 1)"  # no division by zero, nor of the least number by -1
        if other.dtype != dtype or other.dtype == "int1":
            text = f"({text}).to(tl.{dtype})"
    elif kind in (">>", "<<"):
        text = f"(({text}) & {w.pick(1, 7, bits(dtype) - 1)})" if bits(other.dtype) >= 8 else "3"
    return w.let(f"{left.name} {kind} {text}", Value("", dtype, left.shape, low, high))


def _any_condition(w: Writer, like: Value) -> str:
    found = w.some(lambda v: v.shape == like.shape and not v.rough)
    return condition(w, found) if found else f"pid < {w.number(0, w.programs)}"


def _of_floats(w: Writer, left: Value, text: str, other: Value, dtype: str) -> Value | None:
    kind = w.pick("+", "-", "+", "-", "*", "*", "minimum", "maximum", "where", "/")
    left_name = left.name
    rough = left.rough or other.rough
    if (left.dtype in INTEGERS and left.reach > 1000) or (other.dtype in INTEGERS and other.reach > 1000):
        return None
    unit, reach = max(left.unit, other.unit), left.reach + other.reach
    if kind == "/":
        if dtype == "float16" or other.dtype not in DIGITS or left.reach > 1e6:
            return None
        divisor = f"(tl.abs({text}) + 1.0)"
        shape, result = left.shape, promoted(left.dtype, other.dtype, division=True)
        return w.let(f"{left_name} / {divisor}", Value("", result, shape, -left.reach, left.reach, rough=True))
    if kind == "*":
        unit, reach = left.unit + other.unit, left.reach * other.reach
        if not rough and not is_exact(dtype, reach, unit):
            return None
        return w.let(f"{left_name} * {text}", Value("", dtype, left.shape, -reach, reach, unit, rough))
    if reach > 1e6 or (dtype == "float16" and reach > 3e4):
        return None
    if kind in ("minimum", "maximum"):
        result = "float32" if dtype == "bfloat16" else dtype
        return w.let(f"tl.{kind}({left_name}, {text})", Value("", result, left.shape, -reach, reach, unit, rough))
    if kind == "where":
        where = f"tl.where({_any_condition(w, left)}, {left_name}, {text})"
        return w.let(where, Value("", dtype, left.shape, -reach, reach, unit, rough))
    return w.let(f"{left_name} {kind} {text}", Value("", dtype, left.shape, -reach, reach, unit, rough))


def with_number(w: Writer) -> Value | None:
    """An operation with a number of the text."""
    v = w.some(lambda v: v.dtype in INTEGERS or v.is_float)
    if v is None:
        return None
    if v.is_float:
        form, reach, unit = w.pick(("{} * 0.5", 0.5, 1), ("{} + 1.5", v.reach + 1.5, 1), ("{} * 2", 2, 0),
                                   ("1 - {}", v.reach + 1, 0),
                                   ("{} * -3.0", 3, 0), ("0.25 + {}", v.reach + 0.25, 2))  # fmt: skip
        times = "*" in form
        reach, unit = (v.reach * reach, v.unit + unit) if times else (reach, max(v.unit, unit))
        if not v.rough and not is_exact(v.dtype, reach, unit):
            return None
        return w.let(form.format(v.name), Value("", v.dtype, v.shape, -reach, reach, unit, v.rough))
    number = w.pick(1, 2, 3, 5, 16, 100) if v.dtype in UNSIGNED else w.pick(-7, -1, 1, 2, 3, 16, 100)
    kind = w.pick("+", "-", "*", "&", "|", "//", "%", "rsub", "shift", "compare", "float")
    low, high = limits(v.dtype)
    if kind in ("//", "%"):
        number = number if number < -1 and kind == "//" else abs(number)
        if number < 0:
            pass
        elif kind == "%":
            low, high = (0 if v.low >= 0 else 1 - number), number - 1
        elif v.low >= 0:
            low, high = v.low // number, v.high // number
    elif kind == "&" and number > 0:
        low, high = 0, number
    elif kind == "+":
        low, high = v.low + number, v.high + number
    elif kind == "*":
        low, high = sorted((v.low * number, v.high * number))
    elif kind == "rsub":
        return w.let(f"{number} - {v.name}", Value("", v.dtype, v.shape, number - v.high, number - v.low))
    elif kind == "shift":
        return w.let(
            f"{v.name} {w.pick('<<', '>>')} {w.number(0, bits(v.dtype) - 1)}", Value("", v.dtype, v.shape, low, high)
        )
    elif kind == "compare":
        sign = w.pick("<", "<=", ">", ">=", "==", "!=")
        return w.let(f"{v.name} {sign} {w.pick(-1, 0, 1, 3, 200)}", Value("", "int1", v.shape, 0, 1))
    elif kind == "float":
        if v.reach > 1000:
            return None
        return w.let(f"{v.name} * 0.5", Value("", "float32", v.shape, v.low * 0.5, v.high * 0.5, 1))
    else:
        low, high = limits(v.dtype)
    return w.let(f"{v.name} {kind} {number}", Value("", v.dtype, v.shape, low, high))


def unary(w: Writer) -> Value | None:
    """An operation of one operand."""
    v = w.some(lambda v: v.dtype in INTEGERS or v.is_float)
    if v is None:
        return None
    if not v.is_float:
        if w.chance(0.5):
            return w.let(f"~{v.name}", replace(v, low=limits(v.dtype)[0], high=limits(v.dtype)[1]))
        if w.chance(0.5):
            return w.let(f"-{v.name}", replace(v, low=-v.high, high=-v.low))
        return w.let(f"tl.abs({v.name})", replace(v, low=min(v.low, 0), high=v.reach))
    if w.chance(0.4) or v.dtype not in ("float32", "float64"):
        form, low = w.pick(("-{}", -v.reach), ("tl.abs({})", 0.0))
        return w.let(form.format(v.name), replace(v, low=low, high=v.reach))
    if not v.rough and w.chance(0.5):
        return w.let(f"tl.{w.pick('floor', 'ceil')}({v.name})", replace(v, low=-v.reach - 1, high=v.reach + 1, unit=0))
    form, reach = w.pick(("tl.exp(tl.minimum({}, 1.0))", 3.0), ("tl.sqrt(tl.abs({}))", max(v.reach, 1.0)),
                         ("tl.sigmoid({})", 1.0),
                         ("tl.log(tl.abs({}) + 1.0)", max(v.reach, 1.0)), ("tl.rsqrt(tl.abs({}) + 1.0)", 1.0),
                         ("tl.exp2(tl.minimum({}, 2.0))", 4.0), ("tl.fma({0}, 0.5, {0})", 1.5 * v.reach))  # fmt: skip
    if v.reach > 1e6:
        return None
    return w.let(form.format(v.name), Value("", v.dtype, v.shape, -reach, reach, rough=True))


def tame(w: Writer, text: str, v: Value, limit: int = TAME) -> tuple[str, Value]:
    """A variable's numbers brought between -limit and limit (or 0 and limit), in units of a quarter at the finest."""
    if not v.is_float:
        if v.dtype == "int1":
            return text, v
        return f"({text} & {limit - 1})", replace(v, low=0, high=limit - 1)
    if v.reach <= limit and v.unit <= 2:
        return text, v
    wide = f"{text}.to(tl.float32)" if v.dtype != "float64" else text
    if v.unit > 2 and not v.rough:
        wide = f"tl.floor({wide})"
    text = f"tl.minimum(tl.maximum({wide}, -{limit}.0), {limit}.0)"
    text = text if v.dtype == "float32" else f"{text}.to(tl.{v.dtype})"
    return text, replace(
        v, low=max(-limit, min(v.low, limit)), high=min(limit, max(v.high, -limit)), unit=0 if v.unit > 2 else v.unit
    )


def cast(w: Writer) -> Value | None:
    """A variable in another type."""
    v = w.some(lambda v: True)
    if v is None:
        return None
    if v.dtype in INTEGERS and w.chance(0.2):
        other = v.dtype[1:] if v.dtype in UNSIGNED else f"u{v.dtype}"
        return w.let(f"{v.name}.to(tl.{other}, bitcast=True)", Value("", other, v.shape, *limits(other)))
    target = w.pick(*INTEGERS, *DIGITS, *DIGITS, "int1")
    if target == v.dtype or (v.rough and target not in DIGITS):
        return None
    text = f"{v.name}.to(tl.{target})" if w.chance(0.8) else f"tl.cast({v.name}, tl.{target})"
    if target == "int1":
        return w.let(text, Value("", target, v.shape, 0, 1))
    if target in INTEGERS:
        low, high = limits(target)
        if v.dtype in DIGITS:
            if v.low < low or v.high > high:
                return None
            return w.let(text, Value("", target, v.shape, int(v.low), int(v.high)))
        return w.let(text, wrapped(Value("", target, v.shape, v.low, v.high)))
    if (not v.rough and not is_exact("float32", v.reach, v.unit)) or v.reach > (3e4 if target == "float16" else 1e9):
        return None  # two roundings, or none
    if w.chance(0.1) and v.dtype == "float32" and target in ("float16", "bfloat16") and not v.rough:
        text = f'{v.name}.to(tl.{target}, fp_downcast_rounding="rtz")'
    elif w.chance(0.1) and v.dtype in ("float32", "float16") and v.reach < 200 and not v.rough:
        eight = w.pick("float8e4nv", "float8e5")
        return w.let(
            f"{v.name}.to(tl.{eight}).to(tl.{target})",
            replace(v, dtype=target, low=-v.reach * 1.2, high=v.reach * 1.2, unit=max(v.unit, 16)),
        )
    return w.let(text, replace(v, dtype=target, low=v.low * 1.01, high=v.high * 1.01))
