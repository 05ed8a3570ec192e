"""Dots with `mma.sync` whose B is in registers already (`schedule/held_operands.py`): A follows B's order of K.

A lane reads runs of its rows of A, as long as its runs of B; pairs of both go to the instruction as they lie there.
"""

from __future__ import annotations

from ..ir.nodes import Assign
from ..schedule.dots import DotPlan, HeldOperand
from .context import Context, ctype
from .dot_mma import mma_helper
from .operand import OperandPlace, place_line
from .shared import side_text
from .unit import Comment, Line, Loop, Node


def lower_held(context: Context, statement: Assign, plan: DotPlan, a: OperandPlace) -> tuple[Node, ...]:
    """Steps through the runs of K; of each, every lane multiplies as many pairs as the run has."""
    held, layout = plan.held, plan.layout
    if held is None:
        raise TypeError("not a dot with an operand in registers")
    name, b = context.names.variable(statement.target), context.names.variable(plan.b.variable)
    index = context.names.shared_index
    mi, ni, kk, step, half = (index(word) for word in ("mi", "ni", "kk", "i", "h"))
    run = context.constant("RUN", held.run, "consecutive elements of K in a lane", topic="operands")
    m_count = context.constant("MMA_ROWS", layout.registers(0) // 2, "pieces of 16 rows per warp")
    pieces = layout.registers(1) // 2
    n_count = context.constant("MMA_COLS", pieces, "pieces of 8 columns per warp")
    lane, element = context.lane(), ctype(plan.b.variable.type)
    context.use_helper("pack_pair")
    row = f"{mi} * 16 + {half} * 8 + {lane} / 4" if layout.registers(0) > 2 else f"{half} * 8 + {lane} / 4"
    place = a.place(context, row, f"{kk} + {lane} % 4 * {run}")
    naming, offset = place_line(context, place, a.variable.name, True)
    target = f"a_run[{mi}][{half}]"
    read: tuple[Node, ...]
    if a.k_fast:
        context.packets.add(held.run * plan.b.variable.type.dtype.itemsize)
        load = context.use_helper("load_vec", "load_vec", kind="", modifier="")
        read = (*naming, Line(f"{load}<{run}>({target}, &{a.base}[{offset}]);"))
    else:
        single = a.place(context, row, f"{kk} + {lane} % 4 * {run} + {step}")
        read = (
            Loop(
                f"for (int {step} = 0; {step} < {run}; ++{step})",
                (Line(f"{target}[{step}] = {a.base}[{single}];"),),
                unroll=True,
            ),
        )
    side = side_text(context, a.side_of_k())
    rows = (f"a_run[{mi}][0]", f"a_run[{mi}][1]")
    a_pairs = [f"pack_pair({one}[{first}], {one}[{second}])" for first, second in _pairs(step, held) for one in rows]
    registers = f"{kk} / 4 + {step}" if layout_runs(held) > 1 else step
    b_pairs = [
        f"pack_pair({_b(b, held, ni, first, pieces)}, {_b(b, held, ni, second, pieces)})"
        for first, second in _pairs(registers, held)
    ]
    multiply = _multiply(context, plan, name, mi, ni, pieces, b_pairs)
    products: tuple[Node, ...] = (Loop(f"for (int {ni} = 0; {ni} < {n_count}; ++{ni})", multiply, unroll=True),)
    body: list[Node] = [
        Line(
            f"{element} a_run[{m_count}][2][{run}];", "of rows lane / 4 and lane / 4 + 8, in the order of b's elements"
        ),
        Loop(
            f"for (int {mi} = 0; {mi} < {m_count}; ++{mi})",
            (Loop(f"for (int {half} = 0; {half} < 2; ++{half})", read, unroll=True),),
            unroll=True,
        ),
    ]
    advance = 2 if held.apart > 1 else 4
    limit = f"{run} / 2" if held.apart > 1 else run
    each = Loop(
        f"for (int {mi} = 0; {mi} < {m_count}; ++{mi})",
        (Line(f"const unsigned a_frag[4] = {{{', '.join(a_pairs)}}};"), *products),
        unroll=True,
    )
    if held.run == 4:
        body += [Line(f"constexpr int {step} = 0;"), each]
    else:
        body.append(Loop(f"for (int {step} = 0; {step} < {limit}; {step} += {advance})", (each,), unroll=True))
    note = Comment(f"Four lanes take 4 * {run} neighbouring elements of K, in the order in which {b} is computed.")
    return (note, Loop(f"for (int {kk} = 0; {kk} < {side}; {kk} += 4 * {run})", tuple(body), unroll=True))


def layout_runs(held: HeldOperand) -> int:
    """Runs of K in a lane."""
    return held.layout.registers(held.k_axis) // held.run


def _pairs(first: str, held: HeldOperand) -> tuple[tuple[str, str], tuple[str, str]]:
    """The places of the two pairs that one instruction takes, by the place of the first element."""
    if held.apart == 1:
        return (first, f"{first} + 1"), (f"{first} + 2", f"{first} + 3")
    return (first, f"{first} + {held.apart}"), (f"{first} + 1", f"{first} + {held.apart + 1}")


def _b(name: str, held: HeldOperand, piece: str, k: str, pieces: int) -> str:
    """The register of B at a piece's column and an element of K."""
    texts = {held.k_axis: k, 1 - held.k_axis: piece}
    return name + "".join(f"[{texts[axis]}]" for axis in held.layout.array_axes())


def _multiply(
    context: Context, plan: DotPlan, name: str, mi: str, ni: str, pieces: int, b_pairs: list[str]
) -> tuple[Node, ...]:
    """One product; the sum's columns of a piece lie as many registers apart as there are pieces."""
    mma = mma_helper(context, plan.instruction)
    element = "int" if plan.instruction.accumulator == "s32" else "float"
    sums = [[f"{name}[{2} * {mi}{half}][{ni}{right}]" for right in ("", f" + {pieces}")] for half in ("", " + 1")]
    words = ("upper", "lower")
    return (
        Line(f"const unsigned b_frag[2] = {{{', '.join(b_pairs)}}};"),
        *(Line(f"{element} {word}[2] = {{{', '.join(pair)}}};") for word, pair in zip(words, sums, strict=True)),
        Line(f"{mma}({', '.join(words)}, a_frag, b_frag);"),
        *(
            Line(f"{place} = {word}[{i}];")
            for word, pair in zip(words, sums, strict=True)
            for i, place in enumerate(pair)
        ),
    )
