"""Dots with wgmma: a warpgroup multiplies straight from shared memory, 64 rows at a time."""

from __future__ import annotations

from collections.abc import Callable

from ...frozen import frozen
from ...hardware import CHUNK_BYTES, WARPGROUP_BITS
from ...ir.nodes import Assign, Variable
from ...schedule.products.dot_plan import DotPlan
from ..context import Context
from ..shared.arrays import side_text
from ..text.element import run_at
from ..text.unit import Declaration, Line, Node, const, unrolled
from .formats import (
    box_bytes,
    box_chunks,
    chunk_elements,
    k_per_instruction,
    line_chunks,
    line_elements,
    part_elements,
    pattern_bytes,
    swizzle_bytes,
)
from .operand import OperandPlace
from .running_products import is_running, runs_on

ROWS = 64  # of one instruction
LANE_COLUMNS = 4  # of a row of A, that a lane gives to one instruction


def lower_wgmma(
    context: Context, statement: Assign, plan: DotPlan, a: OperandPlace | None, b: OperandPlace
) -> tuple[Node, ...]:
    """Starts all steps of K; whether it waits for them is `context.around`'s to say. `a` is None in registers.

    Here and below `a` is the operand of the instruction's rows, which is the dot's B where the two are exchanged.
    """
    nodes: tuple[Node, ...] = ()
    if a is None:
        fragments = fragments_of(context, statement, plan)
        if fragments.key not in context.progress.copied:
            nodes = (fragments.declaration, write_fragments(context, plan, fragments))
            context.progress.copied[fragments.key] = fragments.name
    products = start_products(context, statement, plan, a, b)
    name = context.names.variable(statement.target)
    return (*nodes, *products, *after(context, statement, name, plan.instruction.accumulator))


def start_products(
    context: Context, statement: Assign, plan: DotPlan, a: OperandPlace | None, b: OperandPlace
) -> tuple[Node, ...]:
    """The instructions of all steps of K, of an A in shared memory or of fragments that are written."""
    layout, instruction = plan.frame, plan.instruction
    name = context.names.variable(statement.target)
    step = k_per_instruction(context, statement, plan)
    wgmma = wgmma_helper(context, plan, 4 * layout.registers(1), a, b)
    kk, m = context.names.shared_index("kk"), context.names.shared_index("m")
    count = _pieces(context, plan)
    nodes: list[Node] = []
    a_name = _described(context, statement, a, "a", warpgroup_offset(context, layout.axes[0]), nodes) if a else ""
    b_name = _described(context, statement, b, "b", warpgroup_offset(context, layout.axes[1]), nodes)
    nodes += fence(context, statement, name, instruction.accumulator)
    if a is None:
        a_text = fragments_of(context, statement, plan).of_step
    else:
        a_text = f"{a_name}{k_step(context, a, kk)}"
        if count:
            a_text += rows_step(context, a, m)
    b_text = f"{b_name}{k_step(context, b, kk)}"
    multiply: Node = Line(f"{wgmma}({f'&{name}[2 * {m}]' if count else name}, {a_text}, {b_text});")
    if count:
        multiply = unrolled(m, count, (multiply,))
    side = (a or b).depth(context, instruction)
    nodes.append(unrolled(kk, side, (multiply,), step=step))
    return tuple(nodes)


@frozen
class Fragments:
    """The registers that instructions take an A from.

    Attributes:
      key: what they are made of and how: a dot of the same block that multiplies the same has the same fragments.
      name: of the array.
      declaration: of the array, without what it starts with.
      pieces: the constant that counts the pieces of 64 rows; "" for one.
      steps: the text that counts the steps along K; "" for one.
      of_step: the fragment that a step of the products takes.
    """

    key: tuple[Variable, str]
    name: str
    declaration: Declaration
    pieces: str
    steps: str
    of_step: str

    def each(self, context: Context, line: Callable[[str, str, str], Node]) -> Node:
        """A line for every fragment, of (the fragment, the index of its piece, the index of its step), in loops."""
        m, k = context.names.shared_index("m"), context.names.shared_index("k")
        node = line(f"{self.name}{f'[{m}]' * bool(self.pieces)}{f'[{k}]' * bool(self.steps)}", m, k)
        for index, count in ((k, self.steps), (m, self.pieces)):
            if count:
                node = unrolled(index, count, (node,))
        return node


def fragments_of(context: Context, statement: Assign, plan: DotPlan) -> Fragments:
    """The fragments of a dot whose A is in registers."""
    a, target = plan.rows.variable, statement.target.name
    depth = a.type.shape[plan.rows.k_axis]
    kk, m = context.names.shared_index("kk"), context.names.shared_index("m")
    step = k_per_instruction(context, statement, plan)
    pieces = _pieces(context, plan)
    steps = f"{side_text(context, depth).within(13)} / {step}" if depth > plan.instruction.k else ""
    key = (a, f"fragments [{pieces}][{steps}]{' across' * plan.exchanged}")
    own = ("fragments", statement)
    name = context.names.once(f"{a.name}_fragments", own, f"{a.name}_fragments_of_{target}", f"{target}_fragments")
    if statement not in context.schedule.rings.postponed:  # whose fragments another function reads
        name = context.progress.copied.get(key, name)
    sides = f"{f'[{pieces}]' * bool(pieces)}{f'[{steps}]' * bool(steps)}[4]"
    declaration = Declaration("unsigned", name, sides=sides)
    of_step = f"{name}{f'[{m}]' * bool(pieces)}{f'[{kk} / {step}]' * bool(steps)}"
    return Fragments(key, name, declaration, pieces, steps, of_step)


def _pieces(context: Context, plan: DotPlan) -> str:
    tiles = plan.frame.registers(0) // 2
    return context.constants.named("MMA_ROWS", tiles, "pieces of 64 rows per warpgroup") if tiles > 1 else ""


def write_fragments(context: Context, plan: DotPlan, fragments: Fragments) -> Node:
    """What every instruction takes of an A in registers, all of it before the first one."""
    source, helper = context.names.variable(plan.rows.variable), context.use_helper("wgmma_fragment")
    context.use_helper("pack_pair")

    def write(fragment: str, m: str, k: str) -> Node:
        upper, lower = (f"2 * {m}", f"2 * {m} + 1") if fragments.pieces else ("0", "1")
        column = f"{k} * {LANE_COLUMNS}" if fragments.steps else "0"
        rows = ", ".join(run_at(f"{source}[{row}][{column}]") for row in (upper, lower))
        return Line(f"{helper}({fragment}, {rows});")

    return fragments.each(context, write)


def fence(context: Context, statement: Assign, name: str, accumulator: str) -> tuple[Node, ...]:
    """What must stand between ordinary uses of the accumulator and the first instruction."""
    context.use_helper("wgmma_fence")
    if statement in context.around.in_flight or is_running(context, statement):
        return (Line("wgmma_fence();"),)  # earlier products may be on their way: the registers are not to be touched
    if statement in context.own_sums:
        return (pin(context, name, accumulator), Line("wgmma_fence();"))
    return (_of_registers(context, "wgmma_take", name, accumulator), Line("wgmma_fence();"))


def pin(context: Context, name: str, accumulator: str) -> Node:
    """Keeps uses of the accumulator on their side of this line."""
    return _of_registers(context, "wgmma_pin", name, accumulator)


def _of_registers(context: Context, helper: str, name: str, accumulator: str) -> Node:
    return Line(f"{context.needs.overload(helper, accumulator, {'acc': accumulator})}({name});")


def after(context: Context, statement: Assign, name: str, accumulator: str) -> tuple[Node, ...]:
    """Closes the group, unless the loop does that for all its dots, and waits, unless what needs the sum does that."""
    if statement in context.around.in_flight:
        return ()
    for helper in ("wgmma_commit", "wgmma_wait"):
        context.use_helper(helper)
    if runs_on(context, statement):
        return (Line("wgmma_commit();"),)
    return (
        Line("wgmma_commit();"),
        Line("wgmma_wait<0>();", f"{name} is complete"),
        pin(context, name, accumulator),
    )


def wgmma_helper(context: Context, plan: DotPlan, n: int, a: OperandPlace | None, b: OperandPlace) -> str:
    """The helper that starts one instruction; `n` is its columns, `a` None where it reads registers."""
    instruction = plan.instruction
    values: dict[str, object] = {
        "n": n,
        "k": instruction.k,
        "a_type": instruction.a_type,
        "b_type": instruction.b_type,
        "acc": instruction.accumulator,
        "a_registers": a is None,
        "a_transposed": a is not None and not a.k_fast,
        "b_transposed": not b.k_fast,
    }
    transposed = "".join(word for word, place in (("a", a), ("b", b)) if place and not place.k_fast)
    difference = "registers" if a is None else f"transposed_{transposed}" if transposed else "plain"
    return context.needs.distinct_helper("wgmma", f"wgmma_m64n{n}k{instruction.k}", values, difference)


def warpgroup_offset(context: Context, axis: tuple[int, ...]) -> tuple[str, int]:
    """(text of the warpgroup's number along an axis, how many there are); ("0", 1) where there is one."""
    bits = [bit for bit in axis if bit >= WARPGROUP_BITS]
    return (context.axis_names.warpgroup(bits), 1 << len(bits)) if bits else ("0", 1)


def mn_bytes(place: OperandPlace, count: int) -> int:
    """Bytes from one row (of M or N) to the one `count` further, whole boxes when these are contiguous."""
    tile = place.tile
    line_bytes = tile.line * tile.itemsize
    return count * line_bytes if place.k_fast else count // tile.line * tile.lines * line_bytes


def tile_name(context: Context, statement: Assign, place: OperandPlace, word: str) -> str:
    """The name of an operand's descriptor."""
    name, target = place.variable.name, statement.target.name
    key = ("descriptor", statement, word)
    return context.names.once(f"{name}_operand", key, f"{name}_operand_of_{target}")


def descriptor(context: Context, statement: Assign, place: OperandPlace, word: str, part: tuple[str, int]) -> Node:
    """The line that makes the descriptor of the warpgroup's part of an operand."""
    return const("auto", tile_name(context, statement, place, word), _descriptor(context, place, part))


def rows_step(context: Context, a: OperandPlace, m: str) -> str:
    """What pieces of 64 rows add to the descriptor of an A, in units of 16 bytes."""
    name, comment = (
        f"{a.variable.name.upper()}_ROWS_STEP",
        f"chunks from 64 rows of {a.variable.name} to the next",
    )
    return f" + {m} * {context.constants.named(name, mn_bytes(a, ROWS) // CHUNK_BYTES, comment, topic='operands')}"


def _described(
    context: Context, statement: Assign, place: OperandPlace, word: str, part: tuple[str, int], nodes: list[Node]
) -> str:
    """The name of an operand's descriptor; `nodes` gets the line that makes it, unless a dot of the same block has one."""
    key = (place.variable, _descriptor(context, place, part))
    if key not in context.progress.copied:
        nodes.append(descriptor(context, statement, place, word, part))
        context.progress.copied[key] = tile_name(context, statement, place, word)
    return context.progress.copied[key]


def _descriptor(context: Context, place: OperandPlace, part: tuple[str, int]) -> str:
    """The descriptor of a part of an operand (PTX ISA, "Shared memory matrix layout" of wgmma)."""
    tile, upper = place.tile, place.variable.name.upper()
    number, parts = part
    start = place.base
    if number != "0":
        start += f" + {number} * {part_elements(context, tile, place.variable, upper, place.mn_axis, parts)}"
    arguments = [start]
    if not tile.swizzle:  # the strides along K and along M or N change roles
        stride = pattern_bytes(context)
        arguments += ["16" if place.k_fast else stride, stride]
    elif not place.k_fast and tile.boxes > 1:
        arguments.append(box_bytes(context, tile, upper))
    swizzle = swizzle_bytes(context, tile, upper) if tile.swizzle else "0"
    return f"{context.use_helper('wgmma_descriptor')}<{swizzle}>({', '.join(arguments)})"


def k_step(context: Context, place: OperandPlace, kk: str) -> str:
    """What K steps add to a descriptor, in units of 16 bytes."""
    tile, word = place.tile, place.variable.name.upper()
    if not place.k_fast:
        return f" + {kk} * {line_chunks(context, tile, word)}"
    chunk = chunk_elements(context, tile, place.variable, word)
    if tile.boxes == 1:
        return f" + {kk} / {chunk}"
    line, box = line_elements(context, tile, place.variable, word).within(14), box_chunks(context, tile, word)
    return f" + {kk} / {line} * {box} + {kk} % {line} / {chunk}"
