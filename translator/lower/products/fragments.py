"""Fragments: what a lane holds of the operands of `mma.sync`, read from swizzled shared memory.

In: an operand's place and the instruction. Out: the lines that read the instruction's rows of A, or columns of B, for one
step of K. ldmatrix reads whole 16-byte chunks; elements of 8 bytes, and those of 4 that are not contiguous along K, are
read one by one. The rows and columns that a short tile lacks are copies of those that it has.

Fragments of narrower parts of floats (`Split`) are made of fragments of the floats: in TF32 element by element; in bfloat16
of two floats each, whose order along K does not matter as long as A and B have the same.
"""

from __future__ import annotations

from collections.abc import Callable

from ...frozen import frozen
from ...ir.types import padded
from ...schedule.products.dot_plan import Side
from ...schedule.products.instructions import Instruction
from ..context import Context
from ..text.operators import sum_text
from ..text.unit import Assignment, Declaration, Line, Node, unrolled
from .operand import OperandPlace, place_line

MATRIX = 8  # rows of a matrix of ldmatrix, columns of an instruction
FLOATS = 8  # elements of K in a fragment of 32-bit elements
Read = Callable[[list[str], str], tuple[Node, ...]]


@frozen
class Step:
    """A step of K of an instruction, and where its fragments lie as text: the first K, the plane of a batch; the lane's name."""

    instruction: Instruction
    k: str
    lane: str
    batch: str


def fragment(instruction: Instruction, name: str, count: str, steps: int, side: Side) -> Declaration:
    """The declaration of the fragments of `count` pieces ("" for one), of several steps where they are multiplied together."""
    depth = instruction.k // 4 if instruction.a_type == "f64" else 2
    registers = depth * instruction.rows // MATRIX if side is Side.A else depth
    parts = f"[{steps}]" * (steps > 1) + (f"[{instruction.split.parts}]" if instruction.split else "")
    element = "double" if instruction.a_type == "f64" else "unsigned"
    return Declaration(element, name, sides=f"{f'[{count}]' if count else ''}{parts}[{registers}]")


def read_a(context: Context, a: OperandPlace, step: Step, name: str, row: str, piece: str) -> tuple[Node, ...]:
    """The instruction's rows from `row` + `piece` on, into the fragment `name`."""
    if not a.by_matrices:
        return _by_elements(context, a, step, name, sum_text(row, piece))

    def read(registers: list[str], k: str) -> tuple[Node, ...]:
        lane, side = step.lane, padded(a.variable.type.shape[a.mn_axis])
        if a.k_fast:
            rows, depth = sum_text(row, _of(lane, 2 * MATRIX, side)), f"{k} + {lane} / 16 * {a.tile.chunk}"
            place = a.place(context, rows, depth, step.batch, piece)
        else:
            second = f"{lane} / 8 % 2 * 8" if side > MATRIX else ""
            place = a.place(context, sum_text(row, piece, second), f"{lane} / 16 * 8 + {lane} % 8", step.batch, k)
        return _load(context, a, registers, place, True)

    return _parts(context, step, [name], 4, (0, 2, 1, 3), read)


def read_b(
    context: Context, b: OperandPlace, step: Step, names: list[str], column: str, piece: str
) -> tuple[Node, ...]:
    """Eight columns from `column` + `piece` on into a fragment, or sixteen into two."""
    if not b.by_matrices:
        return _by_elements(context, b, step, names[0], sum_text(column, piece))

    def read(registers: list[str], k: str) -> tuple[Node, ...]:
        lane, side, both = step.lane, padded(b.variable.type.shape[b.mn_axis]), len(names) > 1
        second = f"{lane} / 16 * 8" if both else ""
        if b.k_fast:
            across = sum_text(column, second, _of(lane, MATRIX, side))
            place = b.place(context, across, f"{k} + {lane} / 8 % 2 * {b.tile.chunk}", step.batch, piece)
        else:
            place = b.place(context, sum_text(column, piece, second), f"{lane} % 16", step.batch, k)
        return _load(context, b, registers, place, both or step.instruction.split is not None)

    return _parts(context, step, names, 2, (0, 1), read)


def _load(context: Context, operand: OperandPlace, registers: list[str], place: str, in_loop: bool) -> tuple[Node, ...]:
    count = len(registers)
    suffix = "" if operand.k_fast else "_trans"
    helper = context.use_helper("ldmatrix", f"ldmatrix_x{count}{suffix}", count=count, trans=not operand.k_fast)
    naming, offset = place_line(context, place, operand.variable.name, in_loop)
    return (*naming, Line(f"{helper}({', '.join(registers)}, &{operand.base}[{offset}]);"))


def _parts(
    context: Context, step: Step, names: list[str], count: int, pairs: tuple[int, ...], read: Read
) -> tuple[Node, ...]:
    """Reads fragments of `count` registers and splits them where the instruction multiplies parts.

    `pairs` is the order in which the registers of neighbouring halves of K stand side by side.
    """
    split = step.instruction.split
    if split is None:
        return read([f"{name}[{i}]" for name in names for i in range(count)], step.k)
    if split.type == "tf32":
        helper = context.use_helper("split_tf32")
        registers = [f"{name}[0][{i}]" for name in names for i in range(count)]
        return (*read(registers, step.k), *(Line(f"{helper}({name});") for name in names))
    h = context.names.shared_index("h")
    whole = context.names.shared_index("whole")
    wholes = [f"{whole}[{i}]" if len(names) > 1 else whole for i in range(len(names))]
    registers = [f"{one}[{sum_text(f'{count} * {h}', str(i))}]" for one in wholes for i in pairs]
    body = read(registers, f"{step.k} + {h} * {FLOATS}")
    return (
        Declaration("unsigned", whole, sides=f"{f'[{len(names)}]' * (len(names) > 1)}[{2 * count}]"),
        unrolled(h, 2, body),
        *_split_bf16(context, names, wholes),
    )


def _split_bf16(context: Context, names: list[str], wholes: list[str]) -> tuple[Node, ...]:
    helper = context.use_helper("split_bf16")
    return tuple(Line(f"{helper}({name}, {whole});") for name, whole in zip(names, wholes, strict=True))


def _by_elements(context: Context, place: OperandPlace, step: Step, name: str, first: str) -> tuple[Node, ...]:
    """A fragment that lanes read element by element: `lane / 4` of M or N, `lane % 4` of K, and the same further on."""
    instruction = step.instruction
    split, side = instruction.split, padded(place.variable.type.shape[place.mn_axis])
    pairs = split is not None and split.type != "tf32"
    halves = instruction.rows // MATRIX if place.operand.side is Side.A else 1
    count, i = halves * instruction.k // 4, context.names.shared_index("i")
    half, quarter = (f"{i} / 2 % 2", f"{i} / 4 * 8 + {i} % 2 * 4") if pairs else (f"{i} % 2", f"{i} / 2 * 4")
    if halves == 1:
        half, quarter = "", f"{i} * 4"
    if instruction.k == 4:
        quarter = ""
    if count == 1:
        i = "0"
    row = sum_text(first, f"{half} * 8" if half and side > MATRIX else "", _of(f"{step.lane} / 4", MATRIX, side, True))
    at = place.place(context, row, sum_text(step.k, quarter, f"{step.lane} % 4"), step.batch)
    naming, offset = place_line(context, at, place.variable.name, count > 1)
    value = f"{place.base}[{offset}]"
    value = value if instruction.a_type == "f64" else f"__float_as_uint({value})"
    whole = context.names.shared_index("whole")
    target = whole if pairs else f"{name}[0]" if split else name
    read = (*naming, Assignment(f"{target}[{i}]", value))
    nodes: list[Node] = [unrolled(i, count, read)] if count > 1 else [*read]
    if pairs:
        return (Declaration("unsigned", whole, sides=f"[{count}]"), *nodes, *_split_bf16(context, [name], [whole]))
    if split:
        nodes.append(Line(f"{context.use_helper('split_tf32')}({name});"))
    return tuple(nodes)


def _of(index: str, count: int, side: int, whole: bool = False) -> str:
    """Which of `side` rows is read for row `index` of `count`; `whole` says that the index is already below the count."""
    if side == 1:
        return ""
    return index if whole and side >= count else f"{index} % {min(side, count)}"
