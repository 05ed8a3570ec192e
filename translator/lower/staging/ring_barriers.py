"""The barriers of rings that tensor copies fill, the names of their stages, and the counts of their uses (`rings.py`)."""

from __future__ import annotations

from ...hardware import LAST_BARRIER, MBARRIER_BYTES, WARP_SIZE
from ...ir.nodes import Variable
from ...schedule.staging.ring_plan import Ring
from ..context import Context
from ..text.unit import Branch, Declaration, Line, Node, Shared, const
from .own_stages import stage_word


def announce_rings(context: Context, maps: list[str]) -> list[Node]:
    """Declares the barriers of all rings; the thread that loads fetches the tensor maps and initialises the barriers.

    It need not wait for the others, and starts its first copies while they are still on their way (`ready`).
    """
    if maps:
        context.use_helper("tensor_map_prefetch")
    nodes: list[Node] = [Line(f"tensor_map_prefetch({name});") for name in dict.fromkeys(maps)]
    those = "multiplying warp" if context.schedule.rings.teams == 1 else "warp of a team"
    for ring in context.schedule.rings.rings:
        if ring.kind != "tma" or ring.like is not None:
            continue
        stages = stages_name(context, ring)
        early = ring.stagger.early if ring.stagger else ()
        others = " and ".join(tile.name for tile in ring.tiles if tile not in early) if early else "the tiles"
        for prefix, what in (("early_", " and ".join(tile.name for tile in early)), ("", others)):
            if not what:
                continue
            for word, comment in (
                ("full", f"completes when {what} of a stage {has(what)} arrived"),
                ("empty", f"completes when every {those} is done with {what if early else 'a stage'}"),
            ):
                name = barrier_name(context, ring, prefix + word)
                size = MBARRIER_BYTES * ring.stages
                key = ring.loop, prefix + word
                context.shared.arrays[key] = Shared(name, "Barrier", f"[{stages}]", size, comment)
            full, empty = (barrier_name(context, ring, prefix + word) for word in ("full", "empty"))
            nodes += [
                Line(f"mbarrier_init<{stages}>({full}, 1);", "the loading thread arrives"),
                Line(f"mbarrier_init<{stages}>({empty}, NUM_WARPS);", f"a lane of each {those} does"),
            ]
        for helper in ("mbarrier_init", "mbarrier_init_fence"):
            context.use_helper(helper)
    return [
        Branch(" && ".join(starts_copies(context)), (*nodes, Line("mbarrier_init_fence();"))),
        Line("__syncwarp();", "the loading warp is together again: what follows is for whole warps"),
    ]


def starts_copies(context: Context) -> tuple[str, ...]:
    """What picks the thread that starts all tensor copies; in its warpgroup, the last of these conditions does."""
    tid = context.axis_names.tid
    teams = context.schedule.rings.teams
    return (f"{tid} == NUM_THREADS",) if teams == 1 else (loads(context), f"{tid} == 0")


def loads(context: Context) -> str:
    """The condition that picks the warpgroup that loads: it comes behind those that multiply."""
    if context.schedule.rings.teams == 1:
        return f"{context.axis_names.tid} >= NUM_THREADS"
    return f"{context.axis_names.team} == {context.num_teams()}"


def ready(context: Context) -> tuple[Node, Node]:
    """What the loading warpgroup and what the others do before anybody uses the barriers."""
    number = context.constants.named(
        "READY_BARRIER", LAST_BARRIER, "named barrier: mbarriers are initialised", topic="threads"
    )
    teams = context.schedule.rings.teams
    value = teams * context.schedule.num_threads + WARP_SIZE
    comment, text = "those that multiply, and the loading warp", f"{context.multiplying_threads()} + WARP_SIZE"
    threads = context.constants.named("READY_THREADS", value, comment, text, topic="threads")
    for helper in ("named_barrier_arrive", "named_barrier_sync"):
        context.use_helper(helper)
    arrive = Branch(
        f"{context.axis_names.tid} < {threads if teams == 1 else 'WARP_SIZE'}",
        (Line(f"named_barrier_arrive({number}, {threads});"),),
        (),
        "the first warp",
    )
    return arrive, Line(f"named_barrier_sync({number}, {threads});", "the mbarriers are initialised")


def stages_name(context: Context, ring: Ring) -> str:
    """The constant that counts a ring's stages."""
    return context.constants.named("NUM_STAGES", ring.stages, "tiles in shared memory at once", topic="stages")


def barrier_name(context: Context, ring: Ring, word: str) -> str:
    """The array of a ring's "full" or "empty" barriers."""
    others = [f"{word}_barriers"] if context.names.is_users(word) else []
    return context.names.once(word, ("barrier", ring.like or ring.loop, word), *others)


def position_name(context: Context, ring: Ring) -> str:
    """What counts the uses of a ring's stages: the loop's variable, or a count that goes on from loop to loop."""
    if not ring.counted:
        return context.names.variable(ring.loop)
    key = ("position", ring.like or ring.loop, context.role.name)
    return context.names.once("filled" if context.role.name == "producer" else "used", key)


def ring_counters(context: Context) -> tuple[Node, ...]:
    """The counts that a role starts with."""
    rings = context.schedule.rings.rings
    shared = {ring.like for ring in rings if ring.like}
    return tuple(
        Declaration(
            "int",
            position_name(context, ring),
            "0",
            comment=f"stages so far{', over all loops that use them' if ring.loop in shared else ''}",
        )
        for ring in rings
        if ring.kind == "tma" and ring.counted and not ring.like
    )


def stage_lines(context: Context, ring: Ring) -> tuple[Node, Node, str]:
    """The declarations of `stage` and of the parity of this use, and the name of the latter."""
    position, stages = position_name(context, ring), stages_name(context, ring)
    parity = context.names.shared_index("parity")
    stage = const("int", stage_word(context, ring), f"{position} % {stages}")
    return stage, const("int", parity, parity_of(position, stages)), parity


def parity_of(count: str, stages: str) -> str:
    """The parity of a use of a ring, given the count of those before it: it changes each time all stages have been used."""
    return f"{count} / {stages} % 2"


def barrier_of(context: Context, ring: Ring, tile: Variable, word: str) -> str:
    """The "full" or "empty" barriers that a tile has part in."""
    early = ring.stagger is not None and tile in ring.stagger.early
    return barrier_name(context, ring, f"early_{word}" if early else word)


def has(what: str) -> str:
    """The verb of what is counted in words."""
    return "have" if " and " in what or what.endswith("tiles") else "has"
