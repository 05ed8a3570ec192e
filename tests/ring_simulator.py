"""Executes the waits and arrivals of generated text: who waits for which phase, who fills and who reads which stage.

The text of the loading thread and of the multiplying warps is turned into Python, statement by statement, without all that
has no part in the protocol. A random schedule then decides who goes on, and when copies arrive.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from types import SimpleNamespace
from typing import Any

from tilewright.artifact import Artifact

Statement = tuple[str, Any]  # (text before ";" or "{", the block between braces or None)
EVENTS = {
    r"mbarrier_wait\(&(\w+)\[(.+?)\], (.+)\)": "'wait', '{0}', {1}, {2}",
    r"mbarrier_arrive_expect\(&(\w+)\[(.+?)\], (.+)\)": "'expect', '{0}', {1}, {2}",
    r"mbarrier_arrive\(&(\w+)\[(.+)\]\)": "'arrive', '{0}', {1}, 0",
    r"tma_load_\dd\((\w+)\[(.+?)\].*?, (\w+_map), .*&(\w+)\[(.+?)\](?:, \w+)?\)": "'load', '{0}', {1}, ('{2}', '{3}')",
    r"const auto \w+ = wgmma_descriptor<\w+>\((\w+)\[(.+?)\].*": "'read', '{0}', {1}, 0",
    r"wgmma_commit\(\)": "'commit', '', 0, 0",
    r"wgmma_wait<(\d)>\(\)": "'finish', '', 0, {0}",
}


SIZES = {"half": 2, "__nv_bfloat16": 2, "float": 4, "int": 4}
FIRST = SimpleNamespace(x=0, y=0, z=0)  # of each warp the first lane does what the protocol asks


class ProtocolError(AssertionError):
    """What would go wrong on the device."""


def parse(text: str) -> list[Statement]:
    """The statements of a text without comments, blocks nested."""
    text = re.sub(r"//[^\n]*|#[^\n]*", "", text)
    stack: list[list[Statement]] = [[]]
    heads: list[str] = []
    current, depth = "", 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "{" and depth == 0 and not current.rstrip().endswith("="):
            heads.append(" ".join(current.split()))
            stack.append([])
            current = ""
        elif letter == "}" and depth == 0 and "=" not in current:
            block = stack.pop()
            stack[-1].append((heads.pop(), block))
            current = ""
        elif letter == ";" and depth == 0:
            stack[-1].append((" ".join(current.split()), None))
            current = ""
        else:
            current += letter
    return stack[0]


def python(expression: str) -> str:
    """A C++ expression of non-negative integers in Python."""
    expression = re.sub(r"sizeof\((\w+)\)", lambda match: str(SIZES.get(match[1], 1)), expression)
    expression = expression.replace("blockIdx.x", "own_block").replace("gridDim.x", "num_blocks")
    return expression.replace("&&", " and ").replace("/", "//")


def event(text: str) -> str | None:
    """The event of a statement, as the Python that yields it."""
    for pattern, form in EVENTS.items():
        if match := re.fullmatch(pattern, text):
            return f"yield {form.format(*map(python, match.groups()))}"
    return None


def transpile(block: list[Statement], indent: str) -> list[str]:
    """The Python of a block; statements that have no part in the protocol are left out."""
    lines: list[str] = []
    for text, inner in block:
        condition = re.match(r"if \((.*?)\) (\w+\(.*)", text)
        if inner is not None:
            body = transpile(inner, indent + "    ")
            if not any("yield" in line for line in body):
                continue
            if match := re.fullmatch(r"for \((?:int|long long) (\w+) = (.*); \1 ([<>]) (.*); (.*)\)", text):
                name, start, compare, stop, step = match.groups()
                step, *others = step.split(", ")
                body += [f"{indent}    {other.removeprefix('++')} += 1" for other in others]
                advance = re.sub(r"^\+\+\w+", "1", re.sub(r"^--\w+", "-1", step))
                advance = re.sub(r"^\w+ -= ", "-", re.sub(r"^\w+ \+= ", "", advance))
                head = f"for {name} in count({python(start)}, {python(stop)}, {python(advance)}, '{compare}')"
            elif match := re.fullmatch(r"if \((.*)\)", text):
                head = f"if {python(match[1])}"
            else:
                raise ValueError(f"a block that the simulator does not know: {text}")
            lines += [f"{indent}{head}:", *body]
        elif found := event(text):
            lines.append(indent + found)
        elif condition and (found := event(condition[2])):
            lines += [f"{indent}if {python(condition[1])}:", f"{indent}    {found}"]
        elif match := re.fullmatch(r"\+\+(\w+)", text):
            lines.append(f"{indent}{match[1]} += 1")
        elif match := re.fullmatch(r"(?:const )?int (\w+) = ([\w\s+*/%()<>?:.-]+)", text):
            lines.append(f"{indent}{match[1]} = lazily(lambda: {python(match[2])})")
    return lines


def count(start: int, stop: int, step: int, compare: str) -> Iterator[int]:
    """A for loop of C++."""
    while start < stop if compare == "<" else start > stop:
        yield start
        start += step


def lazily(value: Any) -> Any:
    """The value, or None where it is made of what the protocol does not know."""
    try:
        return value()
    except (NameError, TypeError, SyntaxError):
        return None


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
    """A stage of a tile: which filling it holds, copies to it that are under way, and which warps are reading it."""

    fill: int = 0
    flying: int = 0
    reading: set[int] = field(default_factory=set)


class Simulation:
    """One block of a kernel's text, executed once under a random schedule."""

    def __init__(self, artifact: Artifact, values: dict[str, int], seed: int) -> None:
        """`values` are the scalars of the launch: parameters, `own_block`, `num_blocks`, `num_programs`."""
        text = artifact.source
        self.random = random.Random(seed)
        names: dict[str, Any] = {"count": count, "lazily": lazily, "threadIdx": FIRST, "blockIdx": FIRST, **values}
        names |= {"sizeof": int, "half": 2, "float": 4}
        for name, value in re.findall(r"^constexpr int (\w+) = (.*?);", text, re.M):
            names[name] = eval(python(value), dict(names))
        self.bytes = {m.name: prod(m.box) * m.element.itemsize for m in artifact.tensor_maps}
        self.warps = names["NUM_WARPS"]
        self.barriers: dict[tuple[str, int], Barrier] = {}
        for name, arrivals in re.findall(r"mbarrier_init<\w+>\((\w+), (\w+)\)", text):
            for stage in range(16):
                self.barriers[name, stage] = Barrier(int(names.get(arrivals, arrivals)))
        roles = self._roles(text, names)
        self.actors = {0: roles[0](), **{1 + warp: roles[1]() for warp in range(self.warps)}}
        self.stages: dict[tuple[str, int], Stage] = {}
        self.open: dict[int, list[tuple[str, int]]] = {actor: [] for actor in self.actors}
        self.groups: dict[int, list[list[tuple[str, int]]]] = {actor: [] for actor in self.actors}
        self.waiting: dict[int, tuple[Barrier, int]] = {}
        self.passed: dict[tuple[int, str, int], int] = {}  # by a warp, of a barrier
        self.full: dict[str, str] = {}  # the barrier of a tile
        self.flying: list[tuple[str, int, str, Barrier]] = []

    @staticmethod
    def _roles(text: str, names: dict[str, Any]) -> list[Any]:
        body = parse(text[text.index('extern "C" __global__') :])
        (kernel,) = [block for head, block in body if "__global__" in head]
        number = next(i for i, (head, _) in enumerate(kernel) if head == "if (tid >= NUM_THREADS)")
        (producer,) = [block for head, block in kernel[number][1] if head == "if (tid == NUM_THREADS)"]
        assert kernel[number + 1][0] == "else"
        before = transpile([s for s in kernel[:number] if s[1] is None], "    ")
        roles = []
        for block in (producer, kernel[number + 1][1]):
            lines = ["def role():", *before, *transpile(block, "    "), "    yield from ()"]
            scope = dict(names)
            exec("\n".join(lines), scope)
            roles.append(scope["role"])
        return roles

    def run(self) -> int:
        """Executes everything; returns how many copies were made.

        Raises:
          ProtocolError: when threads wait for ever, a stage is filled too early or read too early.
        """
        copies = 0
        while self.actors:
            ready = [a for a in self.actors if a not in self.waiting or self._passes(*self.waiting[a])]
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
        if self.flying:
            raise ProtocolError("a copy that nobody waited for")
        return copies

    @staticmethod
    def _passes(barrier: Barrier, parity: int) -> bool:
        return barrier.phase % 2 != parity

    def _deliver(self) -> None:
        tile, stage, name, barrier = self.flying.pop(self.random.randrange(len(self.flying)))
        self.stages[tile, stage].flying -= 1
        barrier.change(0, -self.bytes[name])

    def _step(self, actor: int, kind: str, name: str, stage: int, extra: Any) -> None:
        if kind == "wait":
            self.waiting[actor] = (self.barriers[name, stage], extra)
            self.passed[actor, name, stage] = self.passed.get((actor, name, stage), 0) + 1
        elif kind == "expect":
            self.barriers[name, stage].fills += 1
            self.barriers[name, stage].change(1, extra)
        elif kind == "arrive":
            self.barriers[name, stage].change(1, 0)
        elif kind == "load":
            self._load(name, stage, *extra)
        elif kind == "read":
            place = self.stages.get((name, stage), Stage())
            if (
                place.flying
                or place.fill == 0
                or place.fill != self.passed.get((actor, self.full.get(name, ""), stage))
            ):
                raise ProtocolError(f"{name}[{stage}] is read before its tile has arrived, or after it is gone")
            place.reading.add(actor)
            self.open[actor].append((name, stage))
        elif kind == "commit":
            self.groups[actor].append(self.open[actor])
            self.open[actor] = []
        else:
            while len(self.groups[actor]) > extra:
                finished = self.groups[actor].pop(0)
                still = {place for group in (*self.groups[actor], self.open[actor]) for place in group}
                for place in set(finished) - still:
                    self.stages[place].reading.discard(actor)

    def _load(self, tile: str, stage: int, name: str, barrier: str) -> None:
        full = self.barriers[barrier, stage]
        place = self.stages.setdefault((tile, stage), Stage())
        if place.reading:
            raise ProtocolError(f"{tile}[{stage}] is filled while it is read")
        self.full[tile] = barrier
        place.fill, place.flying = full.fills, place.flying + 1
        self.flying.append((tile, stage, name, full))
