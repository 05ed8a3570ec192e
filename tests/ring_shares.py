"""What threads copy to rings themselves: whose share a stage holds, of which iteration, and who may know of it.

Vector clocks: every thread counts its steps, and knows up to which step it has heard of each other thread, by barriers. A
read is right if it has heard of the end of every copy that it reads, a copy if it has heard of every read of what it
replaces. Whether a thread reads only what it has copied itself, or its warp, is found by evaluating the places of all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from types import SimpleNamespace
from typing import Any

from ring_text import Array

THREAD, WARP, BLOCK = 1, 32, 1 << 20  # how many neighbouring threads share places
WARP_SIZE = 32
MOST_EVENTS = 3000  # of a thread that are looked at for its places
Place = tuple[str, int]  # (array, stage)


class ProtocolError(AssertionError):
    """What would go wrong on the device."""


def find_spans(role: Any, arrays: dict[str, Array], num_threads: int) -> tuple[dict[str, int], dict[str, set[int]]]:
    """(how many neighbouring threads share the places of each array, BLOCK where the text does not tell; who fills it).

    Raises:
      ProtocolError: when a thread reads what nobody copies.
    """
    writers: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    readers: dict[str, set[tuple[int, int]]] = defaultdict(set)
    unknown: set[str] = set()
    owners: dict[str, set[int]] = {name: set() for name in arrays}
    for thread in range(num_threads):
        for kind, name, _, rest in islice(role(SimpleNamespace(x=thread)), MOST_EVENTS):
            if kind not in ("copy", "write", "read", "feed"):
                continue
            _, place, width = rest
            if kind in ("copy", "write"):
                owners[name].add(thread)
            if not isinstance(place, int) or not isinstance(width, int):
                unknown.add(name)
            elif kind == "read":
                readers[name] |= {(thread, place + k) for k in range(width)}
            else:
                for k in range(width):
                    writers[name][place + k].add(thread)
    found = dict.fromkeys(arrays, BLOCK)
    for name in readers.keys() - unknown:
        found[name] = THREAD
        for thread, place in readers[name]:
            if not writers[name][place]:
                raise ProtocolError(f"thread {thread} reads place {place} of {name}, which nobody copies")
            for writer in writers[name][place]:
                same_warp = writer // WARP_SIZE == thread // WARP_SIZE
                found[name] = max(found[name], THREAD if writer == thread else WARP if same_warp else BLOCK)
    return found, owners


@dataclass
class Share:
    """What a thread has put into a stage: of which iteration, copies under way, and its step when it knew of their end."""

    content: Any
    flying: int = 0
    done: int | None = None
    shown: int | None = None  # its step when it showed that to the asynchronous proxy


@dataclass
class Shares:
    """All stages that threads fill.

    Attributes:
      arrays, span: the arrays of the text, and how many neighbouring threads share their places.
      owners: the threads, of those that are executed, that copy to an array at all.
    """

    arrays: dict[str, Array]
    span: dict[str, int]
    owners: dict[str, set[int]]
    clocks: dict[int, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    shares: dict[Place, dict[int, Share]] = field(default_factory=lambda: defaultdict(dict))
    read: dict[Place, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    feeding: dict[Place, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    visits: Counter[tuple[int, str]] = field(default_factory=Counter)
    fetched: dict[tuple[int, str], Any] = field(default_factory=dict)
    groups: dict[int, list[list[Share]]] = field(default_factory=lambda: defaultdict(lambda: [[]]))
    copies: int = 0

    def step(self, thread: int) -> int:
        """Another step of a thread."""
        self.clocks[thread][thread] += 1
        return self.clocks[thread][thread]

    def _with(self, thread: int, other: int, array: str) -> bool:
        return thread // self.span[array] == other // self.span[array]

    def _content(self, thread: int, array: str, iteration: Any) -> Any:
        if iteration is None:
            iteration = self.fetched.get((thread, self.arrays[array].loop))
        return self.visits[thread, array], iteration

    def fill(self, thread: int, place: Place, iteration: Any, asynchronous: bool) -> None:
        """A copy, or elements that a thread writes."""
        array, stage = place
        for reader, step in self.read[place].items():
            if reader != thread and self._with(thread, reader, array) and step > self.clocks[thread][reader]:
                raise ProtocolError(f"{array}[{stage}] is filled while another thread may still read it")
        if any(count and self._with(thread, reader, array) for reader, count in self.feeding[place].items()):
            raise ProtocolError(f"{array}[{stage}] is filled while it is read by tensor cores")
        content, share = self._content(thread, array, iteration), self.shares[place].get(thread)
        if share is None or share.content != content:
            if share is not None and share.flying:
                raise ProtocolError(f"{array}[{stage}] is filled twice at a time")
            share = self.shares[place][thread] = Share(content)
        share.shown = share.done = None
        if asynchronous:
            share.flying += 1
            self.groups[thread][-1].append(share)
            self.copies += 1
        else:
            share.done = self.step(thread)

    def look(self, thread: int, place: Place, iteration: Any, by_tensor_cores: bool) -> None:
        """A thread reads a stage, or has tensor cores read it."""
        array, stage = place
        content, known = self._content(thread, array, iteration), self.clocks[thread]
        for owner in self.owners[array]:
            if not self._with(thread, owner, array):
                continue
            share = self.shares[place].get(owner)
            if share is None or share.content != content:
                held = "nothing" if share is None else share.content
                raise ProtocolError(f"{array}[{stage}] is read for {content}, but holds {held}")
            if share.done is None:
                raise ProtocolError(f"{array}[{stage}] is read before its copies have arrived")
            if owner != thread and share.done > known[owner]:
                raise ProtocolError(f"{array}[{stage}] is read before another thread's copies are known to be there")
            if by_tensor_cores and (share.shown is None or (owner != thread and share.shown > known[owner])):
                raise ProtocolError(f"{array}[{stage}] is read before tensor cores see what threads wrote")
        if by_tensor_cores:
            self.feeding[place][thread] += 1
        else:
            self.read[place][thread] = self.step(thread)

    def fed(self, thread: int, place: Place) -> None:
        """Tensor cores are done with what a thread had them read."""
        self.feeding[place][thread] -= 1
        self.read[place][thread] = self.step(thread)

    def flying(self, thread: int) -> bool:
        """Whether copies of a thread are under way."""
        return any(thread in held and held[thread].flying for held in self.shares.values())

    def end_group(self, thread: int) -> None:
        """`cp.async.commit_group`."""
        self.groups[thread].append([])

    def arrived(self, thread: int, left: int) -> None:
        """`cp.async.wait_group`: all groups but the last `left` are complete."""
        if left < 0:
            raise ProtocolError("a wait for fewer than no groups")
        closed = self.groups[thread][:-1]
        now = self.step(thread)
        for share in (share for group in closed[: max(len(closed) - left, 0)] for share in group):
            share.flying -= 1
            share.done = now if not share.flying else None
        self.groups[thread] = self.groups[thread][max(len(closed) - left, 0) :]

    def show(self, thread: int) -> None:
        """`fence.proxy.async`."""
        now = self.step(thread)
        for held in self.shares.values():
            if thread in held and held[thread].done is not None and held[thread].shown is None:
                held[thread].shown = now

    def meet(self, threads: Iterable[int]) -> None:
        """A barrier."""
        threads = list(threads)
        all_known: Counter[int] = Counter()
        for thread in threads:
            all_known |= self.clocks[thread]
        for thread in threads:
            self.clocks[thread] = Counter(all_known)
            self.step(thread)
