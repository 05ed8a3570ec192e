"""What values are computed from, and that finding it out takes one walk over a kernel."""

from __future__ import annotations

from typing import Any

import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.frontend import build_kernel
from tilewright.ir import walk
from tilewright.ir.nodes import Effect, For, If, Kernel, Literal, Statement, Variable
from tilewright.ir.types import ValueType
from tilewright.language.dtypes import int1
from tilewright.lower.text.unit import Branch, Line, Node, every
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.accesses import releases
from tilewright.schedule.targets import find_target


@triton.jit
def chain_kernel(x_ptr, y_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, c, d = tl.load(x_ptr + i), tl.load(x_ptr + N + i), tl.load(x_ptr + 2 * N + i), tl.load(y_ptr + i)
    e = tl.load(y_ptr + N + i)
    for _ in range(n):  # in one trip nothing reaches `a` but `b`
        a += b
        b += c
        c += d
    tl.store(y_ptr + i, a + e)
    tl.atomic_add(x_ptr, tl.sum(e))


@pytest.fixture
def kernel() -> Kernel:
    return build_kernel(
        chain_kernel, parse_signature(chain_kernel, "*fp32, *fp32, i32, 32"), Options(), find_target("sm_80")
    )


def _variable(kernel: Kernel, name: str) -> Variable:
    return next(v for s in walk.statements(kernel.body) for v in walk.assigned_variables(s) if v.name == name)


def _parameter(kernel: Kernel, name: str) -> Variable:
    return next(p.variable for p in kernel.parameters if p.variable.name == name)


def test_where_values_are_from_is_found_in_one_walk(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    first, walks = _variable(kernel, "a"), []
    whole = walk.statements

    def counted(body: Any) -> Any:
        walks.extend([body] if body is kernel.body else [])
        return whole(body)

    monkeypatch.setattr(walk, "statements", counted)
    for given in ([first], iter([first])):
        walks.clear()
        names = {variable.name for variable in walk.where_from(kernel.body, given)}
        assert {"a", "b", "c", "d", "i", "x_ptr", "y_ptr"} <= names and "e" not in names
        assert len(walks) == 1


def test_what_a_value_follows_from_and_what_follows_from_it(kernel: Kernel) -> None:
    def names(variables: Any) -> set[str]:
        return {variable.name for variable in variables}

    a, b = (_variable(kernel, name) for name in "ab")
    by_data, by_control = walk.computed_from(kernel.body), walk.follows_from(kernel.body)
    assert names(by_data[a]) == {"x_ptr", "i", "a", "b"}
    assert by_control[a] - by_data[a] == {_parameter(kernel, "n")}  # how often the loop adds to it
    assert names(walk.computed_with(walk.statements(kernel.body))[b]) == {"a", "b"}
    loop = next(statement for statement in kernel.body if isinstance(statement, For))
    assert walk.in_loops(kernel.body) == set(walk.nested(loop)) and loop not in walk.in_loops(kernel.body)


def test_what_an_atomic_is_made_of_is_not_asked_where_a_store_stands_before_it(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: Any) -> None:
        raise AssertionError("what it is made of does not matter")

    monkeypatch.setattr(releases, "where_from", asked)
    effects = (s for s in walk.statements(kernel.body) if isinstance(s, Effect))
    atomic = next(s for s in effects if s.call.op == "atomic_add")
    assert releases.has_to_release(kernel, atomic)


def test_walks_go_as_deep_as_statements_do(kernel: Kernel) -> None:
    first, *others = kernel.body
    nest: Statement = first
    for _ in range(5000):  # by recursion each of them would pass 5000 generators, and Python's stack end before
        nest = If(first.origin, Literal(ValueType(int1), True), (first, nest), (first,))
    found, rest = list(walk.statements((nest, *others))), list(walk.statements(tuple(others)))
    assert found[:3] == [nest, first, nest.then[1]] and found[15001:] == rest  # type: ignore[attr-defined]
    text: Node = Line("x = 1;")
    for _ in range(5000):
        text = Branch("x", (Line("before;"), text), (Line("behind;"),))
    lines = [node.text for node in every([text]) if isinstance(node, Line)]
    assert lines == ["before;"] * 5000 + ["x = 1;"] + ["behind;"] * 5000
