"""The passes between the frontend and the plans: the kernel without what only looks like work, as the schedule takes it.

In: a kernel as the frontend built it. Out: the same kernel after all `passes`, each of which takes a typed kernel and gives one
that means the same. A pass has the name of its file in `schedule/rewrites/`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .artifact import Options, Target
from .ir.nodes import Kernel
from .schedule.rewrites.bit_counts import with_bit_counts
from .schedule.rewrites.branch_loads import with_branch_loads
from .schedule.rewrites.copies import without_copies
from .schedule.rewrites.counted_whiles import with_counted_whiles
from .schedule.rewrites.found_starts import with_found_starts
from .schedule.rewrites.inlined_copies import without_inlined_copies
from .schedule.rewrites.interleaved import with_interleaved
from .schedule.rewrites.joint_reductions import join_reductions
from .schedule.rewrites.loaded_names import with_loaded_names
from .schedule.rewrites.narrow_integers import with_narrow_integers
from .schedule.rewrites.narrow_reductions import with_narrow_reductions
from .schedule.rewrites.operands import prepare_dots
from .schedule.rewrites.parted_names import with_parted_names
from .schedule.rewrites.row_offsets import with_row_offsets
from .schedule.rewrites.settled_masks import with_settled_masks
from .schedule.rewrites.single_trips import without_single_trips
from .schedule.rewrites.uniform_tiles import with_uniform_tiles
from .schedule.rewrites.unused_results import without_unused_results
from .schedule.rewrites.waiting_loads import with_waiting_loads
from .schedule.rewrites.wraps import without_wraps
from .switches import is_verifying

Pass = Callable[[Kernel], Kernel]


def passes(options: Options, target: Target) -> tuple[tuple[str, Pass], ...]:
    """The passes by name, in order; a comment says why one stands where it does."""
    return (
        # First: what such a loop carried is assigned once afterwards, which most of the others ask of a name.
        ("single_trips", without_single_trips),
        # Behind single_trips: what loops carry, and branches assign, is what is left to part.
        ("parted_names", with_parted_names),
        # Behind single_trips: it follows numbers through the statements that stand in no other loop.
        ("counted_whiles", with_counted_whiles),
        # Behind single_trips: the variable of a loop of one trip is a number by then.
        ("settled_masks", with_settled_masks),
        # Behind settled_masks: a test that is always true hides that an index and a store have the same bound.
        ("wraps", without_wraps),
        # Behind wraps: where nothing wraps any more, a second name for the index is left.
        ("copies", without_copies),
        # Behind single_trips, which gives what a loop of one trip has assigned a name of its own.
        ("inlined_copies", without_inlined_copies),
        # Behind inlined_copies: a function that counts bits has another name for what it is given.
        ("bit_counts", with_bit_counts),
        # Behind copies: `x = x.to(...)` to the type that x has would count as the assignment that follows the load.
        ("loaded_names", with_loaded_names),
        # Behind wraps: a place that wraps around does not count by twos. Behind loaded_names: the names of both make the tile's.
        ("interleaved", with_interleaved),
        # Behind loaded_names: in `flag = tl.load(p); flag = flag & 1` each trip makes the flag anew, not of the last one.
        ("waiting_loads", with_waiting_loads),
        # Behind copies: a second name of an address would be one that is only known inside of the branch.
        ("branch_loads", partial(with_branch_loads, num_warps=options.num_warps)),
        # Behind interleaved: what is two accesses by twos may be one that has its own place.
        ("row_offsets", partial(with_row_offsets, options=options)),
        # Behind wraps: whether an index fits in 32 bits may be known without the wrap-around only. Behind row_offsets, some of
        # whose tiles have 64.
        ("narrow_integers", with_narrow_integers),
        # Behind narrow_integers: only offsets of 32 bits are one instruction away.
        ("found_starts", partial(with_found_starts, num_warps=options.num_warps)),
        ("operands", partial(prepare_dots, target=target)),
        ("narrow_reductions", with_narrow_reductions),
        # Behind operands: an operand that is computed has a name by then. That stays a tile; what it comes of need not.
        ("uniform_tiles", with_uniform_tiles),
        # Behind all that leaves out reads, such as settled_masks those of a mask: nobody may need the result any more.
        ("unused_results", without_unused_results),
        # Behind narrow_reductions, which looks at reductions of one tile.
        ("joint_reductions", partial(join_reductions, num_warps=options.num_warps)),
    )


def prepared(kernel: Kernel, options: Options, target: Target) -> Kernel:
    """The kernel after all passes.

    Raises:
      InvalidKernelError: when a pass broke it, with `TILEWRIGHT_VERIFY=1`.
    """
    for name, rewritten in passes(options, target):
        before, kernel = kernel, rewritten(kernel)
        if kernel is not before:
            check(kernel, name)
    return kernel


def check(kernel: Kernel, after: str) -> None:
    """Checks a kernel against the rules of docs/ir.md where `TILEWRIGHT_VERIFY=1`; `after` is the stage or pass that made it.

    Raises:
      InvalidKernelError: when it breaks one.
      TilewrightError: for another value of that variable than 0 and 1.
    """
    if is_verifying():
        from .ir.verify import verify

        verify(kernel, after)
