"""Accesses in which the layout of the tile would have neighbouring threads write to, or read from, distant places.

In: a problem with all its answers. Out: other answers for such accesses: a layout of their own, along the axis that memory
has contiguous. The tile is converted for it, which costs a pass through shared memory; scattered elements cost a sector of 32
bytes each. Transposes are stored so, and tiles whose loads have another axis contiguous than their stores. What goes to memory
one element to an instruction, an atomic or a row that is not aligned, wants neighbouring elements in neighbouring threads: L2
is written sector by sector, be it in runs for the sake of vectors that are loaded. Of a tile that a warp writes in pieces below
a sector, as the sums of tensor cores are held, neighbouring lanes exchange registers instead:

  held    axis 1: REGISTER 0 1 REGISTER REGISTER    halves: 4 lanes write 16 bytes together
  stored  axis 1: REGISTER REGISTER REGISTER 0 1    each lane 16 bytes, together 64
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import replace

from ...hardware import ACCESS_BYTES, LANE_BITS, SECTOR_BYTES, WORD_BYTES
from ...ir.nodes import Effect, For, Kernel, Statement, Variable, While
from ...ir.structured import assigns, is_atomic
from ...ir.walk import in_loops, nested, statements
from ..tiles.access_costs import most_side_by_side
from ..tiles.layout import REGISTER, Layout, bits_of
from ..tiles.layout_problem import Addresses, Node, Path, Problem

GAIN = 2  # times as many bytes side by side make up for the conversion
GAIN_OF_ELEMENTS = 4  # where these go to memory one by one
MANY_COPIES = 4  # of each element: one thread in so many stores anything, so little that a barrier for all costs more
GAIN_OF_LOADS = 8  # the cache has what a warp has not taken of a sector
MOST_BYTES = 64 << 10  # of a tile that is converted: its way leads through shared memory


def coalesce(
    problem: Problem,
    kernel: Kernel,
    own_layout: Callable[[Node], Layout],
    follow: Callable[[Layout, Path], Layout | None],
    multiplied: Container[Variable] | None,
    in_place: bool,
) -> None:
    """Answers anew for stores, atomics and loads; `multiplied` are what products read, None where a kernel has no products.

    `own_layout` is the best layout of a statement's accesses alone; `follow` gives the layout of what a path leads to. Rows that
    are not aligned are stored from where they are held, `in_place`, if shared memory has no room for them on their way.
    """
    coalesce_stores(problem, kernel, own_layout, follow, in_place)
    if multiplied is None:
        coalesce_loads(problem, kernel, own_layout)
    else:
        load_whole_pieces(problem, kernel, multiplied)


def coalesce_stores(
    problem: Problem,
    kernel: Kernel,
    own_layout: Callable[[Node], Layout],
    follow: Callable[[Layout, Path], Layout | None],
    in_place: bool,
) -> None:
    """Answers anew for scattered stores, and for atomics whose results nobody reads.

    Rows that are not aligned, or of which an instruction has few bytes, are stored by neighbours, unless `in_place`, but in
    innermost loops, where every trip's barriers cost more.
    """
    innermost = _in_innermost_loops(kernel)
    for statement in statements(kernel.body):
        node = statement
        if not isinstance(statement, Effect) or node not in problem.answers:
            continue
        if statement.call.op != "store" and not is_atomic(statement.call):
            continue
        (access,) = problem.accesses[node]
        shape = problem.shapes[node]
        if access.itemsize << sum(map(bits_of, shape)) > MOST_BYTES:
            continue
        if statement.call.op == "store" and _copies(problem.answers[node]) >= MANY_COPIES:
            continue
        gain = GAIN if access.at_once > 1 else GAIN_OF_ELEMENTS
        stays = in_place or statement in innermost
        known = replace(access, at_once=most_side_by_side(access))
        if _is_narrow(known):
            if stays:
                continue
            access = known
        elif known.at_once == 1 and (is_atomic(statement.call) or not stays):
            access = replace(access, at_once=1)
            gain = GAIN_OF_ELEMENTS if is_atomic(statement.call) else GAIN
        now, own = _bytes_side_by_side(problem.answers[node], access), own_layout(node)
        if now < SECTOR_BYTES and _bytes_side_by_side(own, access) >= gain * now:
            problem.answers[node] = own
        elif access.at_once > 1:
            pieces = _in_whole_pieces(problem.answers[node], access)
            read = problem.relations_of.get(node, ())
            moved = [r.variable for r in read if follow(pieces, r.path) != problem.answers[r.variable]]
            if all(_is_shuffled(variable, pieces) for variable in moved):
                problem.answers[node] = pieces


def _is_narrow(access: Addresses) -> bool:
    """Whether an instruction stores or loads several elements, but four lanes have less than a sector of them."""
    return not access.adds and access.at_once > 1 and access.itemsize * access.at_once < SECTOR_BYTES // 4


def _copies(layout: Layout) -> int:
    """How many threads hold the same element."""
    return 1 << layout.thread_bits - sum(bit != REGISTER for bits in layout.axes for bit in bits)


def coalesce_loads(problem: Problem, kernel: Kernel, own_layout: Callable[[Node], Layout]) -> None:
    """Answers anew for loads of distant elements.

    In loops they stay: the way through shared memory would be one of every trip. So do vectors of which each element is in
    several threads: a warp reads few, and a barrier for all costs more.
    """
    for node, access in _read_once(problem, kernel):
        if access.repeated or access.itemsize << sum(map(bits_of, problem.shapes[node])) > MOST_BYTES:
            continue
        if len(problem.shapes[node]) == 1 and _copies(problem.answers[node]) >= MANY_COPIES:
            continue
        now, own = _bytes_side_by_side(problem.answers[node], access), own_layout(node)
        if now < SECTOR_BYTES and _bytes_side_by_side(own, access) >= GAIN_OF_LOADS * now:
            problem.answers[node] = own


def load_whole_pieces(problem: Problem, kernel: Kernel, multiplied: Container[Variable]) -> None:
    """Answers anew for what sums of tensor cores are put together with, such as a residual; not for what they multiply."""
    for node, access in _read_once(problem, kernel):
        pieces = _in_whole_pieces(problem.answers[node], access)
        if node not in multiplied and len(problem.shapes[node]) > 1 and _is_shuffled(node, pieces):
            problem.answers[node] = pieces


def _read_once(problem: Problem, kernel: Kernel) -> Iterator[tuple[Variable, Addresses]]:
    """The loads of tiles that one statement reads, as often as they are made, and that stand in no innermost loop."""
    repeated = in_loops(kernel.body)
    innermost = _in_innermost_loops(kernel)
    loads = (s for s in statements(kernel.body) if assigns(s, "load") and s not in innermost)
    for statement in loads:
        node, readers = statement.target, problem.relations_of.get(statement.target, ())
        accesses = problem.accesses.get(node, ())
        if node not in problem.answers or len(accesses) != 1 or len(readers) != 1 or readers[0].variable is not node:
            continue
        if accesses[0].repeated == (readers[0].statement in repeated) and readers[0].statement not in innermost:
            yield node, accesses[0]


def _in_innermost_loops(kernel: Kernel) -> set[Statement]:
    """The statements of loops that hold no other."""
    loops = (statement for statement in statements(kernel.body) if isinstance(statement, (For, While)))
    return {s for loop in loops if not _holds_loop(loop) for s in nested(loop)}


def _holds_loop(loop: For | While) -> bool:
    return any(isinstance(statement, (For, While)) for statement in nested(loop))


def _bytes_side_by_side(layout: Layout, access: Addresses) -> int:
    """What a warp writes or reads from one place on, at the most, along an axis that is contiguous in memory.

    Of elements that lie in a thread's run and go one by one, it is their share of a sector; of few at once, what an instruction
    has. A store has several at once that lie side by side in the thread's array.
    """
    found = access.itemsize
    for axis, bits in enumerate(layout.axes):
        if access.info.contiguity[axis] > 1 or axis in access.side_by_side:
            run = layout.run(axis)
            at_once = access.at_once if access.loads or access.adds else min(access.at_once, layout.vector(axis))
            length = next((k for k, bit in enumerate(bits) if bit != REGISTER and bit >= LANE_BITS), len(bits))
            if _is_narrow(access):
                length = bits_of(run) + _lanes_behind(bits, bits_of(run))
            found_here = access.itemsize << length
            if at_once == 1 or _is_narrow(access):
                found_here = min(found_here, SECTOR_BYTES) // max(run // at_once, 1)
            found = max(found, found_here)
    return found


def _lanes_behind(bits: tuple[int, ...], run: int) -> int:
    """How many bits of lanes follow the first `run` bits of an axis."""
    return next((k for k, bit in enumerate(bits[run:]) if not REGISTER < bit < LANE_BITS), len(bits) - run)


def _in_whole_pieces(layout: Layout, access: Addresses) -> Layout:
    """The layout with some bits of lanes and registers exchanged, where a warp would write less than a sector in a piece."""
    for axis, bits in enumerate(layout.axes):
        run = next((k for k, bit in enumerate(bits) if bit != REGISTER), len(bits))
        lanes = _lanes_behind(bits, run)
        most = min(access.info.contiguity[axis], access.info.divisibility[axis] // access.itemsize)
        wider = min(min(most, ACCESS_BYTES // access.itemsize).bit_length() - 1 - run, lanes)
        rest = bits[run + lanes :]
        if access.itemsize << run < WORD_BYTES or access.itemsize << (run + lanes) >= SECTOR_BYTES:
            continue
        if wider <= 0 or rest[:wider] != (REGISTER,) * wider:
            continue
        moved = (*bits[:run], *rest[:wider], *bits[run : run + lanes], *rest[wider:])
        return Layout((*layout.axes[:axis], moved, *layout.axes[axis + 1 :]), layout.thread_bits)
    return layout


def _is_shuffled(variable: Variable, layout: Layout) -> bool:
    """Whether lanes can exchange a tile for a layout: a row of it, words at a time."""
    numbers = not variable.type.is_pointer and not variable.type.dtype.is_fp8() and variable.type.rank == layout.rank
    return numbers and variable.type.dtype.itemsize in (WORD_BYTES // 2, WORD_BYTES)
