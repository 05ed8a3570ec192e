"""Executes the waits and arrivals of generated text: who waits for which phase, who fills and who reads which stage.

`ring_text.py` turns the text into generators. Two lanes of every warp, and the loading thread where there is one, execute
them under a random schedule, which also decides when tensor copies arrive. What threads copy themselves is followed by
`ring_shares.py`, which finds a missing wait or barrier under every schedule.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from types import SimpleNamespace
from typing import Any

from ring_shares import WARP_SIZE, ProtocolError, Shares, find_spans
from ring_text import constants, roles
from tilewright.artifact import Artifact

LANES = (0, WARP_SIZE - 1)  # of every warp that are executed
Place = tuple[str, int]  # (array, stage)


@dataclass
class Barrier:
    """An mbarrier: the phase that is under way, arrivals and bytes that it lacks."""

    arrivals: int
    phase: int = 0
    missing: int = 0
    bytes: int = 0
    fills: int = 0

    def __post_init__(self) -> None:
        """Starts the first phase."""
        self.missing = self.arrivals

    def change(self, arrivals: int, bytes: int) -> None:
        """Counts arrivals and bytes; completes the phase when nothing is missing."""
        self.missing -= arrivals
        self.bytes += bytes
        if self.missing < 0:
            raise ProtocolError("more arrivals than a phase takes")
        if self.missing == 0 and self.bytes == 0:
            self.phase, self.missing = self.phase + 1, self.arrivals


@dataclass
class Stage:
    """A stage of a box: which filling it holds, copies to it that are under way, and which threads are reading it."""

    fill: int = 0
    flying: int = 0
    reading: set[int] = field(default_factory=set)


class Simulation:
    """One block of a kernel's text, executed once under a random schedule."""

    def __init__(self, artifact: Artifact, values: dict[str, int], seed: int) -> None:
        """`values` are the scalars of the launch: parameters, `own_block`, `num_blocks`, all programs."""
        text = artifact.source
        self.random = random.Random(seed)
        names = constants(text, values)
        number = names["NUM_WARPS"] * WARP_SIZE
        (usual, *producer), arrays = roles(text, names)
        self.bytes = {m.name: prod(m.box) * m.element.itemsize for m in artifact.tensor_maps}
        self.barriers: dict[Place, Barrier] = {}
        for name, arrivals in re.findall(r"mbarrier_init<\w+>\((\w+), (\w+)\)", text):
            for stage in range(16):
                self.barriers[name, stage] = Barrier(int(names.get(arrivals, arrivals)))
        self.threads = [first + lane for first in range(0, number, WARP_SIZE) for lane in LANES]
        self.actors = {thread: usual(SimpleNamespace(x=thread)) for thread in self.threads}
        if producer:
            self.actors[number] = producer[0](SimpleNamespace(x=number))
        self.boxed = set(re.findall(r"tma_load_\dd\((\w+)\[", text))
        self.sides = {name: eval(array.stages, dict(names)) for name, array in arrays.items()}
        span, owners = find_spans(usual, arrays, number)
        self.shares = Shares(arrays, span, {name: found & set(self.threads) for name, found in owners.items()})
        self.stages: dict[Place, Stage] = {}
        self.open: dict[int, list[Place]] = {actor: [] for actor in self.actors}
        self.groups: dict[int, list[list[Place]]] = {actor: [] for actor in self.actors}
        self.waiting: dict[int, tuple[Barrier, int]] = {}
        self.meeting: dict[int, tuple[Any, Callable[[int], None]]] = {}  # at which barrier a thread is, what follows
        self.passed: dict[tuple[int, str, int], int] = {}  # by a thread, of a barrier
        self.full: dict[str, str] = {}  # the barrier of a box
        self.flying: list[tuple[str, int, str, Barrier]] = []

    def run(self) -> int:
        """Executes everything; returns how many copies were made.

        Raises:
          ProtocolError: when threads wait for ever, a stage is filled too early or read too early.
        """
        copies = 0
        while self.actors:
            ready = [
                a for a in self.actors
                if a not in self.meeting and (a not in self.waiting or self._passes(*self.waiting[a]))
            ]  # fmt: skip
            choices = [*ready, *(["arrival"] if self.flying else [])]
            if not choices:
                raise ProtocolError(f"deadlock: {sorted(self.actors)} wait")
            choice = self.random.choice(choices)
            if choice == "arrival":
                self._deliver()
                copies += 1
                continue
            self.waiting.pop(choice, None)
            try:
                self._step(choice, *next(self.actors[choice]))
            except StopIteration:
                del self.actors[choice]
                if self.open[choice] or self.groups[choice]:
                    raise ProtocolError("a warp ends with products under way") from None
                if self.shares.flying(choice):
                    raise ProtocolError("a thread ends with copies under way") from None
        if self.flying:
            raise ProtocolError("a copy that nobody waited for")
        return copies + self.shares.copies

    @staticmethod
    def _passes(barrier: Barrier, parity: int) -> bool:
        return barrier.phase % 2 != parity

    def _deliver(self) -> None:
        array, stage, name, barrier = self.flying.pop(self.random.randrange(len(self.flying)))
        self.stages[array, stage].flying -= 1
        barrier.change(0, -self.bytes[name])

    def _step(self, actor: int, kind: str, name: str, stage: int, extra: Any) -> None:
        if name in self.sides and not 0 <= stage < self.sides[name]:
            raise ProtocolError(f"{name} has no stage {stage}")
        match kind:
            case "wait":
                self.waiting[actor] = (self.barriers[name, stage], extra)
                self.passed[actor, name, stage] = self.passed.get((actor, name, stage), 0) + 1
            case "expect":
                self.barriers[name, stage].fills += 1
                self.barriers[name, stage].change(1, extra)
            case "arrive":
                self.barriers[name, stage].change(1, 0)
            case "load":
                self._load(name, stage, *extra)
            case "read" | "feed":
                self._read(actor, (name, stage), extra[0], kind == "feed")
            case "copy" | "write":
                self.shares.fill(actor, (name, stage), extra[0], kind == "copy")
            case "enter":
                self.shares.visits.update((actor, array) for array in extra)
            case "fetch":
                self.shares.fetched[actor, name] = extra
            case "group":
                self.shares.end_group(actor)
            case "arrived":
                self.shares.arrived(actor, extra)
            case "fence":
                self.shares.show(actor)
            case "sync":
                self._meet(actor, (name, actor // WARP_SIZE if name == "warp" else 0), lambda thread: None)
            case "commit":
                self.groups[actor].append(self.open[actor])
                self.open[actor] = []
            case "finish":  # of all lanes of a warp together
                self._meet(actor, (kind, actor // WARP_SIZE), lambda thread: self._finish(thread, extra))

    def _meet(self, actor: int, where: Any, then: Callable[[int], None]) -> None:
        """A thread comes to a barrier; the last one opens it."""
        self.meeting[actor] = (where, then)
        members = [t for t in self.threads if where[0] == "block" or t // WARP_SIZE == where[1]]
        members = members or [actor]  # the thread that loads stands for its warp
        if all(t in self.meeting and self.meeting[t][0] == where for t in members):
            self.shares.meet(members)
            for thread in members:
                self.meeting.pop(thread)[1](thread)

    def _read(self, actor: int, place: Place, iteration: Any, by_tensor_cores: bool) -> None:
        name, stage = place
        if by_tensor_cores:
            self.open[actor].append(place)
        if name not in self.boxed:
            self.shares.look(actor, place, iteration, by_tensor_cores)
            return
        held = self.stages.get(place, Stage())
        if held.flying or held.fill == 0 or held.fill != self.passed.get((actor, self.full.get(name, ""), stage)):
            raise ProtocolError(f"{name}[{stage}] is read before its tile has arrived, or after it is gone")
        if by_tensor_cores:
            held.reading.add(actor)

    def _finish(self, actor: int, left: int) -> None:
        """The products of all groups but the last ones are complete."""
        while len(self.groups[actor]) > left:
            finished = self.groups[actor].pop(0)
            still = {place for group in (*self.groups[actor], self.open[actor]) for place in group}
            for place in finished:
                if place[0] not in self.boxed:
                    self.shares.fed(actor, place)
                elif place not in still:
                    self.stages[place].reading.discard(actor)

    def _load(self, array: str, stage: int, name: str, barrier: str) -> None:
        full = self.barriers[barrier, stage]
        place = self.stages.setdefault((array, stage), Stage())
        if place.reading:
            raise ProtocolError(f"{array}[{stage}] is filled while it is read")
        self.full[array] = barrier
        place.fill, place.flying = full.fills, place.flying + 1
        self.flying.append((array, stage, name, full))
