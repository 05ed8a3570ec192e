"""Executes typed kernels with NumPy and compares, at every access, what `analysis/boxes.py` claims with brute force.

Where a load or store is a box, its coordinates are evaluated with the values that variables hold right there, so a start
that is stale, or wrong in any trip, shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tilewright.analysis.boxes import Box, NotABox, find_box, parameter_text
from tilewright.analysis.facts import find_facts
from tilewright.analysis.induction import closed_forms
from tilewright.artifact import Options
from tilewright.frontend import build_kernel
from tilewright.ir.nodes import (
    Assign,
    Call,
    CallFunction,
    Effect,
    Expr,
    For,
    If,
    Inlined,
    Kernel,
    Literal,
    Statement,
    Use,
    Variable,
    While,
)
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target

Values = dict[Variable, Any]
OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "ptr_add": np.add,
    "floordiv": lambda x, y: (x - np.fmod(x, y)) // y, "mod": np.fmod, "minimum": np.minimum, "maximum": np.maximum,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    "and": np.bitwise_and, "or": np.bitwise_or, "logical_and": np.logical_and, "where": np.where, "hint": lambda x: x,
    "cast": lambda x: x, "shl": np.left_shift,
}  # fmt: skip


class Machine:
    """One program of a kernel, with every integer in 64 bits; what is loaded is a small number per element."""

    def __init__(self, kernel: Kernel, arguments: Values, program: tuple[int, int, int]) -> None:
        self.values, self.program = dict(arguments), program
        self.facts = find_facts(kernel)
        self.induction = closed_forms(kernel, self.facts)
        self.kernel = kernel
        self.checked: dict[Statement, int] = {}
        self.known: dict[Statement, tuple[Expr | None, Box | NotABox]] = {}

    def value(self, expr: Expr) -> Any:
        shape = expr.type.shape
        match expr:
            case Literal(value=value):
                return np.full(shape, value)
            case Use(variable=variable):
                return self.values[variable]
            case CallFunction(function=function, args=args):
                inner = Machine.__new__(Machine)
                inner.values, inner.program = (
                    dict(zip(function.parameters, map(self.value, args), strict=True)),
                    self.program,
                )
                return inner.run_function(function.body)
        assert isinstance(expr, Call)
        match expr.op:
            case "program_id":
                return np.array(self.program[expr.attribute("axis")])
            case "num_programs":
                return np.array(7)
            case "arange":
                return np.arange(expr.attribute("start"), expr.attribute("end"))
            case "broadcast":
                return np.broadcast_to(self.value(expr.args[0]), shape)
            case "expand_dims" | "reshape":
                return np.reshape(self.value(expr.args[0]), shape)
            case "permute":
                return np.transpose(self.value(expr.args[0]), expr.attribute("order"))
            case "load":
                return np.zeros(shape, int) + 3
        if expr.op in OPERATIONS and not expr.type.element.is_floating():
            return OPERATIONS[expr.op](*(self.value(arg) for arg in expr.args))
        return np.zeros(shape)

    def run_function(self, body: tuple[Statement, ...]) -> Any:
        for statement in body:
            if isinstance(statement, Assign):
                self.values[statement.target] = self.value(statement.value)
            elif getattr(statement, "value", None) is not None:
                return self.value(statement.value)  # type: ignore[attr-defined]
        raise AssertionError("a function without a value")

    def run(self, block: tuple[Statement, ...]) -> None:
        for statement in block:
            match statement:
                case Assign():
                    self.check(statement, statement.value)
                    value = self.value(statement.value)
                    self.values |= dict.fromkeys(statement.targets, value)
                case Effect():
                    self.check(statement, statement.call)
                case If():
                    self.run(statement.then if self.value(statement.condition) else statement.otherwise)
                case For():
                    bounds = (int(self.value(e)) for e in (statement.start, statement.stop, statement.step))
                    for trip in range(*bounds):
                        self.values[statement.variable] = np.array(trip)
                        self.run(statement.body)
                case While():
                    self.run(statement.prelude)
                    while self.value(statement.condition):
                        self.run(statement.body)
                        self.run(statement.prelude)
                case Inlined():
                    self.run(statement.body)

    def check(self, statement: Statement, call: Expr) -> None:
        """Closed forms have the pointer's value; of a box whose guards hold, addresses and mask are those of the access."""
        if not isinstance(call, Call) or call.op not in ("load", "store"):
            return
        if statement not in self.known:
            box = find_box(statement, self.kernel, self.facts, self.induction)
            self.known[statement] = self.induction.value_at(call.args[0], statement), box
        closed, box = self.known[statement]
        assert closed is None or (self.value(closed) == self.value(call.args[0])).all(), statement.origin.text
        if isinstance(box, NotABox) or not all(self.value(guard) for guard in box.guards):
            return
        names = {v.name: int(x) for v, x in self.values.items() if np.ndim(x) == 0}
        assert all(eval(parameter_text(guard), {}, names) for guard in box.guards)
        shape = call.args[0].type.shape
        addresses, inside = self.values[box.base] + np.zeros(shape, int), np.ones(shape, bool)
        for dim in box.dims:
            position = np.zeros(shape, int)
            if dim.axis is not None:
                assert dim.side == shape[dim.axis]
                line = [-1 if axis == dim.axis else 1 for axis in range(len(shape))]
                position = position + np.arange(dim.side).reshape(line)
            coordinate = self.value(dim.start) + position
            inside &= coordinate >= 0
            if dim.size is not None:
                assert eval(parameter_text(dim.size), {}, names) == self.value(dim.size)
                inside &= coordinate < self.value(dim.size)
            addresses = addresses + coordinate * self.value(dim.stride)
        operands = call.args[1:] if call.op == "load" else call.args[2:]
        mask = np.broadcast_to(self.value(operands[0]) if operands else True, shape)
        assert (mask == inside).all(), statement.origin.text
        assert (self.value(call.args[0]) == addresses)[mask].all(), statement.origin.text
        self.checked[statement] = self.checked.get(statement, 0) + 1


def typed(kernel: Any, signature: str) -> Kernel:
    return build_kernel(kernel, parse_signature(kernel, signature), Options(), find_target("sm_90a"))
