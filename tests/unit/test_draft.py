"""What is undone where a loop or branch is translated again: all that it wrote, in the containers that others hold."""

from dataclasses import fields

import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.frontend.builder import Builder
from tilewright.frontend.draft import Draft
from tilewright.frontend.source import Source
from tilewright.ir.nodes import Variable
from tilewright.ir.types import ValueType
from tilewright.kernel_function import KernelFunction
from tilewright.schedule.targets import find_target

# What a translation of a loop leaves as it is: what is fixed, what is shared by all functions of a kernel and holds for either
# translation, what a statement or block sets and puts back itself, and what is found out about bundles.
LASTING = {
    "source", "options", "target", "parent", "root", "file", "outside", "calls", "scalar_only",
    "decided", "globals", "numbers", "functions", "static_loops", "written_out_loops", "changing", "signed",
    "following", "unrolled", "loops_around", "results",
    "result", "returned", "written_out",  # of returns, which no loop has
}  # fmt: skip


def kernel(n):
    """Does nothing."""


def builder() -> Builder:
    return Builder(Source(KernelFunction(kernel)), Options(), find_target("sm_90a"))


def test_all_fields_are_put_back_in_their_containers():
    x, y = (Variable(name, ValueType(tl.int32), key) for key, name in enumerate("xy"))
    others = {
        dict: {x: y},
        set: {x},
        list: [7],
        int: 7,
        str: "seven",
        frozenset: frozenset({7}),
        tuple: (7,),
        type(None): y,
    }
    one = builder()
    before = one.saved()
    containers = {}
    for field in fields(Draft):
        value = getattr(one, field.name)
        if isinstance(value, (dict, set, list)):
            containers[field.name] = value
            value.clear()
            value.update(others[type(value)]) if not isinstance(value, list) else value.append(7)
        else:
            setattr(one, field.name, others[type(value)])
        assert getattr(one, field.name) != getattr(before, field.name), field.name
    one.go_back_to(before)
    for field in fields(Draft):
        assert getattr(one, field.name) == getattr(before, field.name), field.name
        assert getattr(one, field.name) is containers.get(field.name, getattr(one, field.name))


def test_a_new_field_is_put_back_or_said_to_last():
    assert vars(builder()).keys() - {field.name for field in fields(Draft)} == LASTING
