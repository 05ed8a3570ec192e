"""Canonical text of a typed kernel.

In: a `Kernel`. Out: one line per statement, blocks indented: what `tilewright explain` shows after
`kernel` and `prepared`.
"""

from __future__ import annotations

from collections.abc import Iterator

from .nodes import (
    Assign,
    Call,
    CallFunction,
    Combine,
    Effect,
    Expr,
    For,
    If,
    Inlined,
    Kernel,
    Literal,
    Note,
    Return,
    Statement,
    Use,
    While,
)
from .symbols import spelled


def print_kernel(kernel: Kernel) -> str:
    """The whole kernel, its device functions first."""
    lines: list[str] = []
    for function in kernel.functions:
        parameters = ", ".join(f"{v.name}: {v.type}" for v in function.parameters)
        lines += [f"function {function.name}({parameters}) -> {function.result}", *_block(function.body, 1)]
    parameters = ", ".join(
        f"{p.variable.name}: {p.variable.type}" + (f":{p.divisibility}" if p.divisibility > 1 else "")
        for p in kernel.parameters
    )
    constants = ", ".join(f"{name}={value}" for name, value in kernel.constants.items())
    lines += [f"kernel {kernel.name}({parameters}) [{constants}]", *_block(kernel.body, 1)]
    return "\n".join(lines) + "\n"


def _block(block: tuple[Statement, ...], depth: int) -> Iterator[str]:
    for statement in block:
        yield from _statement(statement, depth)


def _statement(statement: Statement, depth: int) -> Iterator[str]:
    pad = "  " * depth
    match statement:
        case Assign():
            targets = ", ".join(f"{v.name}: {v.type}" for v in statement.targets)
            yield f"{pad}{targets} = {print_expr(statement.value)}"
        case Effect():
            yield f"{pad}{print_expr(statement.call)}"
        case If():
            yield f"{pad}if {print_expr(statement.condition)}"
            yield from _block(statement.then, depth + 1)
            if statement.otherwise:
                yield f"{pad}else"
                yield from _block(statement.otherwise, depth + 1)
        case For():
            bounds = ", ".join(print_expr(e) for e in (statement.start, statement.stop, statement.step))
            yield f"{pad}for {statement.variable.name}: {statement.variable.type} in ({bounds})"
            yield from _block(statement.body, depth + 1)
        case While():
            yield from _block(statement.prelude, depth)
            yield f"{pad}while {print_expr(statement.condition)}"
            yield from _block(statement.body, depth + 1)
        case Return():
            yield f"{pad}return" + (f" {print_expr(statement.value)}" if statement.value else "")
        case Inlined():
            yield f"{pad}inlined {statement.caption}"
            yield from _block(statement.body, depth + 1)
        case Note():
            yield f"{pad}# {statement.origin.text} ({statement.origin.remark})"


def print_expr(expr: Expr) -> str:
    """An expression in prefix form."""
    match expr:
        case Literal():
            number = expr.value if expr.trips or not expr.symbol else spelled(expr.symbol)
            return f"{number}" + (f":{expr.type}" if expr.type.is_tile else "")
        case Use():
            return expr.variable.name
        case Call():
            parts = [print_expr(arg) for arg in expr.args]
            parts += [
                f"{name}={_attribute(value)}" for name, value in expr.attributes if value not in ("", None, False)
            ]
            return f"{expr.op}({', '.join(parts)})"
        case CallFunction():
            return f"{expr.function.name}({', '.join(print_expr(arg) for arg in expr.args)})"
    return "?"


def _attribute(value: object) -> str:
    return value.name if isinstance(value, Combine) else repr(value)
