"""Dots with `mma.sync` whose B is in registers already (`schedule/products/held_operands.py`): A follows B's order of K.

A lane reads runs of its rows of A, as long as its runs of B; pairs of both go to the instruction as they lie there. Where A lies
along its rows, a lane would find each element of a run in another line: there ldmatrix reads it, which takes lines in any order.
"""

from __future__ import annotations

from ...ir.nodes import Assign
from ...schedule.products.dot_plan import DotPlan, HeldOperand
from ..context import Context, ctype
from ..text.operators import sum_text
from ..text.unit import Assignment, Comment, Declaration, Line, Loop, Node, unrolled
from .dot_mma import mma_helper
from .formats import pieces_per_warp
from .operand import OperandPlace, place_line


def lower_held(context: Context, statement: Assign, plan: DotPlan, a: OperandPlace) -> tuple[Node, ...]:
    """Steps through the runs of K; of each, every lane multiplies as many pairs as the run has."""
    held, layout = plan.held, plan.layout
    if held is None:
        raise TypeError("not a dot with an operand in registers")
    index, name = context.names.shared_index, context.names.variable(plan.b.variable)
    mi, kk, i = index("mi"), index("kk"), index("i")
    run = context.constants.named("RUN", held.run, "consecutive elements of K in a lane", topic="operands")
    pieces = layout.registers(0) // 2
    rows = context.constants.named("MMA_ROWS", pieces, "pieces of 16 rows per warp") if pieces > 1 else ""
    context.use_helper("pack_pair")
    several = held.layout.registers(held.k_axis) > held.run
    products = _products(context, statement, plan, mi if rows else "", f"{kk} / 4 + {i}" if several else i)
    read, fragment = (_matrices if held.by_matrices else _runs)(context, plan, a, held, run, rows)
    steps = f"{i} < {run} / 2; {i} += 2" if held.apart > 1 else f"{i} < {run}; {i} += 4"
    body = (*read, Loop(f"for (int {i} = 0; {steps})", _each(mi, rows, (*fragment, *products)), unroll=True))
    side = a.depth(context, plan.instruction)
    return (
        Comment(
            f"Four lanes take {4 * held.run} neighbouring elements of K, in the order in which {name} is computed."
        ),
        unrolled(kk, side, body, step=f"4 * {run}"),
    )


def _each(index: str, count: str, body: tuple[Node, ...]) -> tuple[Node, ...]:
    """A body for every index below a count; for the only one where the count is ""."""
    if not count:
        return body
    return (unrolled(index, count, body),)


def _pairs(first: str, held: HeldOperand) -> tuple[tuple[str, str], tuple[str, str]]:
    """The places of the two pairs that one instruction takes, by the place of the first element."""
    if held.apart == 1:
        return (first, f"{first} + 1"), (f"{first} + 2", f"{first} + 3")
    return (first, f"{first} + {held.apart}"), (f"{first} + 1", f"{first} + {held.apart + 1}")


def _runs(
    context: Context, plan: DotPlan, a: OperandPlace, held: HeldOperand, run: str, rows: str
) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """How A is read in runs: the text that reads them, and the one that makes a fragment of them."""
    index = context.names.shared_index
    mi, i, a_run = index("mi"), index("i"), index("a_run")
    piece = f"[{mi}]" if rows else ""
    pairs = [
        f"pack_pair({a_run}{piece}[{half}][{first}], {a_run}{piece}[{half}][{second}])"
        for first, second in _pairs(i, held)
        for half in (0, 1)
    ]
    sides, comment = f"{f'[{rows}]' * bool(rows)}[2][{run}]", "of a row and of the one 8 below it"
    array = Declaration(ctype(plan.a.variable.type), a_run, sides=sides, comment=comment)
    fragment = Declaration("unsigned", index("a_frag"), f"{{{', '.join(pairs)}}}", sides="[4]", constant=True)
    return (array, *_read_runs(context, plan, a, held, run, rows)), (fragment,)


def _matrices(
    context: Context, plan: DotPlan, a: OperandPlace, held: HeldOperand, run: str, rows: str
) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """How ldmatrix reads A: nothing ahead, and the text that reads a fragment, whose lines are those of the lane's K."""
    index, lane = context.names.shared_index, context.axis_names.lane()
    mi, i, a_frag = index("mi"), index("i"), index("a_frag")
    pair, second = (
        (f"{lane} % 2 * {held.apart}", f"{lane} / 16") if held.apart > 1 else (f"{lane} % 2", f"{lane} / 16 * 2")
    )
    k = f"{index('kk')} + {lane} % 8 / 2 * {run} + {i} + {second} + {pair}"
    row = sum_text(f"{mi} * 16" if rows else "", f"{lane} / 8 % 2 * 8")
    naming, offset = place_line(context, a.place(context, row, k), a.variable.name, True)
    helper = context.use_helper("ldmatrix", "ldmatrix_x4_trans", count=4, trans=True)
    registers = ", ".join(f"{a_frag}[{number}]" for number in range(4))
    return (), (
        Declaration("unsigned", a_frag, sides="[4]"),
        *naming,
        Line(f"{helper}({registers}, &{a.base}[{offset}]);"),
    )


def _read_runs(
    context: Context, plan: DotPlan, a: OperandPlace, held: HeldOperand, run: str, rows: str
) -> tuple[Node, ...]:
    """A lane's runs of A: whole where they are contiguous in shared memory, else element by element."""
    index, lane = context.names.shared_index, context.axis_names.lane()
    mi, h, kk, i = index("mi"), index("h"), index("kk"), index("i")
    row = f"{h} * 8 + {context.axis_names.thread_text(plan.layout.axes[0], 'row').text}"
    if plan.layout.registers(0) > 2:
        row = f"{mi} * 16 + {row}"
    target, first = f"{index('a_run')}{f'[{mi}]' * bool(rows)}[{h}]", f"{kk} + {lane} % 4 * {run}"
    read: tuple[Node, ...]
    if a.k_fast:
        naming, offset = place_line(context, a.place(context, row, first), a.variable.name, True)
        context.needs.packets.add(held.run * plan.a.variable.type.dtype.itemsize)
        helper = context.use_helper("load_vec", "load_vec", kind="", modifier="", bools=False)
        read = (*naming, Line(f"{helper}<{run}>({target}, &{a.base}[{offset}]);"))
    else:
        naming, offset = place_line(context, a.place(context, row, f"{first} + {i}"), a.variable.name, True)
        read = _each(i, run, (*naming, Assignment(f"{target}[{i}]", f"{a.base}[{offset}]")))
    return _each(mi, rows, _each(h, "2", read))


def _columns_of_sum(piece: str, pieces: int, together: int) -> tuple[str, str]:
    """Which of its columns a lane's two sums of a piece are: pieces whose columns are neighbours in B are so in the sum."""
    if pieces == 1:
        return "0", "1"
    if together == 1:
        return f"2 * {piece}", f"2 * {piece} + 1"
    first = piece if together == pieces else f"{piece} / {together} * {together} + {piece}"
    return first, f"{first} + {together}"


def _products(context: Context, statement: Assign, plan: DotPlan, mi: str, k: str) -> tuple[Node, ...]:
    """The products of a piece of A with all pieces of B.

    `mi` is the number of the piece of A, "" for the only one.
    """
    held, layout, ni = plan.held, plan.layout, context.names.shared_index("ni")
    if held is None:
        raise TypeError("not a dot with an operand in registers")
    sum_, b = context.names.variable(statement.target), context.names.variable(plan.b.variable)
    mma, pieces = mma_helper(context, plan.instruction, steps=1), layout.registers(1) // 2
    count = pieces_per_warp(context, statement, "MMA_COLS", pieces, "pieces of 8 columns per warp")

    def element(place: str) -> str:
        texts = {held.k_axis: place, 1 - held.k_axis: ni}
        return b + "".join(f"[{texts[axis]}]" for axis in held.layout.array_axes())

    b_pairs = [f"pack_pair({element(first)}, {element(second)})" for first, second in _pairs(k, held)]
    rows = (f"2 * {mi}", f"2 * {mi} + 1") if mi else ("0", "1")
    columns = _columns_of_sum(ni, pieces, held.columns)
    places = [[f"{sum_}[{row}][{col}]" for col in columns] for row in rows]
    a_frag, b_frag, upper, lower = map(context.names.shared_index, ("a_frag", "b_frag", "upper", "lower"))
    halves, kind = list(zip((upper, lower), places, strict=True)), ctype(statement.target.type)
    body: tuple[Node, ...] = (
        Declaration("unsigned", b_frag, f"{{{', '.join(b_pairs)}}}", sides="[2]", constant=True),
        *(Declaration(kind, word, f"{{{', '.join(pair)}}}", sides="[2]") for word, pair in halves),
        Line(f"{mma}({upper}, {lower}, {a_frag}, {b_frag});"),
        *(Assignment(place, f"{word}[{column}]") for word, pair in halves for column, place in enumerate(pair)),
    )
    return _each(ni, count, body)
