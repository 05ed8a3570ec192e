"""What the tests of `analysis/boxes.py` ask of kernels: the boxes that are found, as plain values, and whether they are right."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from box_machine import Machine, Values, typed
from tilewright.analysis.boxes import Box, NotABox, find_box, parameter_text
from tilewright.analysis.facts import find_facts
from tilewright.analysis.induction import closed_forms
from tilewright.ir.nodes import Statement
from tilewright.ir.printer import print_expr
from tilewright.ir.walk import statements


def outcomes(kernel: Any, signature: str) -> list[tuple[Statement, Box | NotABox]]:
    """Of every load and store of tiles, in order."""
    form = typed(kernel, signature)
    facts = find_facts(form)
    induction = closed_forms(form, facts)
    found = [(s, find_box(s, form, facts, induction)) for s in statements(form.body)]
    return [
        (s, b) for s, b in found if isinstance(b, Box) or b.reason not in ("it is no load or store", "it is a scalar")
    ]


def described(box: Box | NotABox) -> Any:
    """A box as its dimensions, (side, axis, start, size, stride), and its guards; otherwise the reason."""
    if isinstance(box, NotABox):
        return box.reason
    dims = [
        (int(d.side), d.axis, print_expr(d.start), d.size and parameter_text(d.size), parameter_text(d.stride))
        for d in box.dims
    ]
    return dims, [parameter_text(guard) for guard in box.guards]


def check(
    kernel: Any,
    signature: str,
    boxes: int,
    programs: Callable[..., int] = lambda **_: 6,
    **ranges: tuple[int, int, int],
) -> None:
    """Runs programs of random arguments; `ranges` gives (low, high, multiple) of integer parameters by name.

    `programs` gives the number of programs along the first axis from the arguments.

    Every one of the `boxes` must have been compared with brute force.
    """
    form = typed(kernel, signature)
    generator = random.Random(0)
    checked: dict[int, int] = {}
    for _ in range(25):
        arguments: Values = {}
        for number, parameter in enumerate(form.parameters):
            low, high, multiple = ranges.get(parameter.variable.name, (16, 400, parameter.divisibility))
            is_pointer = parameter.variable.type.is_pointer
            value = (number + 1) << 40 if is_pointer else generator.randint(low, high) // multiple * multiple
            arguments[parameter.variable] = np.array(value)
        grid = programs(**{variable.name: int(value) for variable, value in arguments.items()})
        machine = Machine(
            form, arguments, (generator.randrange(grid), generator.randint(0, 3), generator.randint(0, 3))
        )
        machine.run(form.body)
        for key, count in machine.checked.items():
            checked[key] = checked.get(key, 0) + count
    assert len(checked) == boxes
