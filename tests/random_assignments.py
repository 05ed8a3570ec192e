"""Random programs whose names are assigned again and again: in tuples, loops of all kinds, branches and functions.

Other random kernels (random_tiles.py) give each value a name of its own and keep account of what it may be; here everything is
an integer of few bits (random_assigned_values.py), so that any name may take any value of its kind, at any place.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from random_assigned_values import FLOAT_TILES, FLOATS, HELPERS, PLACES, Expressions
from random_lines import Lines
from random_modules import kernel_of
from tilewright.runtime.jit import JITFunction

SIDES = ((16, 16), (16, 4), (32, 8), (32, 32), (64, 16), (256, 8), (48, 12), (24, 24))
PROGRAMS = 3
NUMBERS = 1 << 13  # of each array that is read
SLOT = 4096  # elements of a result that belong to one name
OWN_SLOTS = 4  # two for what atomics exchange, two for what is stored and loaded again
MOST_TRIPS = 24
HEAD = (
    "pid = tl.program_id(0)",
    "column, row = tl.arange(0, N), tl.arange(0, R)",
    "at = row[:, None] * N + column[None, :]",
)
RESULTS = ("s", "i", "v", "m", "f", "r", "mv", "vf", "rs", "iv")  # kinds of what a function returns


@dataclass(frozen=True)
class Function:
    """A function of the program: kinds of what it takes and of what it returns."""

    name: str
    parameters: str
    results: str


@dataclass(frozen=True)
class Program:
    """A kernel's text, those of its functions, the sides of its tiles and how many slots a result has, and its warps."""

    seed: int
    source: str
    helpers: dict[str, str]
    constants: dict[str, int]
    warps: int


class Writer(Lines):
    """Writes the statements of one body; `expressions` and the functions are those of the whole program."""

    def __init__(self, expressions: Expressions, functions: list[Function], results: str = "") -> None:
        """A function's body returns values of kinds `results`, a kernel's stores."""
        self.random, self.expressions = expressions.random, expressions
        self.functions, self.results = functions, results
        self.lines: list[str] = []
        self.indent, self.names, self.trips, self.loops = 1, 0, 1, 0
        self.exchanged = ""  # kinds that an atomic has taken from memory

    def value(self, kind: str, scope: dict[str, str], depth: int = 1) -> str:
        """See `Expressions.value`."""
        return self.expressions.value(kind, scope, depth)

    def target(self, kind: str, scope: dict[str, str], others: tuple[str, ...] = ()) -> str:
        """A name to assign: mostly one that is there, never one of `others` or a loop's."""
        known = [name for name, other in scope.items() if other == kind and name[0] == kind and name not in others]
        if known and self.chance(0.7):
            return str(self.pick(*known))
        self.names += 1
        return f"{kind}{self.names}"

    def targets(self, kinds: str, scope: dict[str, str]) -> tuple[str, ...]:
        """Several names, each once."""
        found: tuple[str, ...] = ()
        for kind in kinds:
            found = (*found, self.target(kind, scope, found))
        return found

    def block(self, scope: dict[str, str], steps: int, depth: int) -> None:
        """Statements at the present depth; what they assign first is not known behind a block."""
        at = self.indent
        for _ in range(steps):
            step = self.pick(
                self.assign, self.assign, self.assign, self.update, self.exchange, self.exchange, self.bundle, self.branch,
                self.loop, self.loop, self.memory, self.memory, self.call, self.leave_early,
            )  # fmt: skip
            step(scope, depth)
            self.leave(at)
        self.put("pass")

    def assign(self, scope: dict[str, str], depth: int) -> None:
        kind = self.pick(*"siifvvvrrmmmm")
        name = self.target(kind, scope)
        self.put(f"{name} = {self.value(kind, scope, 0)}")
        scope[name] = kind

    def update(self, scope: dict[str, str], depth: int) -> None:
        kind = self.pick(*"sivrm")
        name = self.target(kind, scope)
        if name in scope:
            sign = self.pick(*("+-*" if kind in FLOATS else "+-^"))
            self.put(f"{name} {sign}= {self.value(self.pick(kind, 'f' if kind in FLOATS else 's'), scope)}")
            self.put(f"{name} = {f'kept({name})' if kind in FLOATS else f'{name} & 511'}")

    def exchange(self, scope: dict[str, str], depth: int) -> None:
        """An assignment to several names, one of which may be a tuple's."""
        kinds = "".join(self.pick(*"sifvrm") for _ in range(self.pick(2, 2, 3)))
        names, values = self.targets(kinds, scope), [self.value(kind, scope, self.pick(1, 3)) for kind in kinds]
        if len(kinds) == 3 and self.chance(0.4):
            self.put(f"({names[0]}, {names[1]}), {names[2]} = ({values[0]}, {values[1]}), {values[2]}")
        else:
            self.put(f"{', '.join(names)} = {', '.join(values)}")
        scope.update(zip(names, kinds, strict=True))

    def bundle(self, scope: dict[str, str], depth: int) -> None:
        """A tuple with a name, and parts of it."""
        self.names += 1
        kinds, name = self.pick(*"sfvrm") + self.pick(*"sfvrm"), f"t{self.names}"
        self.put(f"{name} = ({self.value(kinds[0], scope)}, {self.value(kinds[1], scope)})")
        for number, kind in enumerate(kinds):
            part = self.target(kind, scope)
            self.put(f"{part} = {name}[{number - self.pick(0, 2)}]")
            scope[part] = kind

    def branch(self, scope: dict[str, str], depth: int) -> None:
        if depth > 2:
            return
        at = self.indent
        for line in (f"if {self.condition(scope)}:", f"elif {self.condition(scope)}:", "else:"):
            if line.startswith("if") or self.chance(0.45):
                self.put(line)
                self.block(dict(scope), self.pick(1, 2, 3), depth + 1)
                self.leave(at)

    def condition(self, scope: dict[str, str]) -> str:
        """One of scalars, which may depend on the program."""
        return self.expressions.condition("s", scope)

    def loop(self, scope: dict[str, str], depth: int) -> None:
        trips = self.random.randint(0, 4)
        if depth > 2 or self.trips * trips > MOST_TRIPS:
            return
        self.names += 1
        counter = f"k{self.names}"
        bounds = (f"range({trips})", f"range(n - n, n - n + {trips})", f"range({trips}, 0, -1)", f"tl.static_range({trips})",
                  f"tl.range(({self.value('s', scope)}) & 3, {trips})", f"tl.range(0, {trips}, num_stages=3)")  # fmt: skip
        header = f"for {counter} in {self.pick(*bounds)}:"
        if counts := self.chance(0.2):
            header = f"while {counter} < {trips} and ({self.condition(scope)}):"
            self.put(f"{counter} = pid * 0")
        self.trips, self.loops = self.trips * max(trips, 1), self.loops + 1
        self.put(header)
        self.block(dict(scope) | {counter: "s"}, self.pick(1, 2, 3), depth + 1)
        if counts:
            self.put(f"{counter} += 1")
        self.trips, self.loops = self.trips // max(trips, 1), self.loops - 1

    def memory(self, scope: dict[str, str], depth: int) -> None:
        """A name is stored, and maybe loaded again; or it takes what an exchange with memory finds there."""
        names = [name for name, kind in scope.items() if kind in FLOAT_TILES]
        if self.results or not names:
            return
        name = self.pick(*names)
        kind = scope[name]
        if kind not in self.exchanged and self.chance(0.25):  # once: threads do not wait between two that meet
            self.exchanged += kind
            other, start = self.target(kind, scope), "mvr".index(kind) * SLOT // 2
            self.put(f"{other} = tl.atomic_xchg(out_ptr + pid * SLOTS * {SLOT} + {start} + {PLACES[kind]}, {name})")
            scope[other] = kind
            return
        places = f"out_ptr + (pid * SLOTS + {self.pick(2, 3)}) * {SLOT} + {PLACES[kind]}"
        mask = f", mask={self.expressions.condition(kind, scope)}" if self.chance(0.4) else ""
        self.put(f"tl.store({places}, {name}{mask})")
        if self.chance(0.4):
            other = self.target(kind, scope)
            self.put(f"{other} = tl.load({places})")
            scope[other] = kind

    def call(self, scope: dict[str, str], depth: int) -> None:
        if not self.functions:
            return
        function = self.pick(*self.functions)
        names = self.targets(function.results, scope)
        given = ", ".join(self.value(kind, scope) for kind in function.parameters)
        self.put(f"{', '.join(names)} = {function.name}(x_ptr, k_ptr, n, {given})")
        scope.update(zip(names, function.results, strict=True))

    def leave_early(self, scope: dict[str, str], depth: int) -> None:
        if self.loops or self.chance(0.5):
            return
        if self.results:
            self.put(f"if {self.condition(scope)}:", f"return {self.returned(scope)}")
        elif depth == 0:
            self.put(f"if pid == {self.random.randint(1, 6)}:", "return")

    def returned(self, scope: dict[str, str]) -> str:
        """What a function returns."""
        return ", ".join(self.value(kind, scope) for kind in self.results)


def program(seed: int) -> Program:
    """The program of a seed."""
    source = random.Random(seed)
    columns, rows = source.choice(SIDES)
    expressions, functions, helpers = Expressions(source, columns == rows), list[Function](), dict(HELPERS)
    for number in range(source.randint(0, 2)):
        parameters = "".join(source.choice("sifvvrmm") for _ in range(source.randint(1, 3)))
        function = Function(f"part_{'abc'[number]}", parameters, source.choice(RESULTS))
        helpers[function.name] = _function(Writer(expressions, list(functions), function.results), function)
        functions.append(function)
    writer, scope = Writer(expressions, functions), dict[str, str]()
    writer.put(*HEAD)
    for kind in source.sample("sivrmf", source.randint(3, 6)):
        name = writer.target(kind, scope)
        writer.put(f"{name} = {writer.value(kind, scope)}")
        scope[name] = kind
    writer.block(scope, source.randint(4, 10), 0)
    for slot, (name, kind) in enumerate(scope.items(), OWN_SLOTS):
        places = f"(pid * SLOTS + {slot}) * {SLOT}{f' + {PLACES[kind]}' if kind in PLACES else ''}"
        writer.put(f"tl.store({'out' if kind in FLOATS else 'number'}_ptr + {places}, {name})")
    constants = {"N": columns, "R": rows, "SLOTS": len(scope) + OWN_SLOTS}
    text = "def kernel(x_ptr, k_ptr, out_ptr, number_ptr, n):\n" + "\n".join(writer.lines) + "\n"
    return Program(seed, text, helpers, constants, source.choice((1, 1, 2, 4, 8)))


def _function(writer: Writer, function: Function) -> str:
    """The text of a function, which may call those before it."""
    names = [f"{kind}{number}" for number, kind in enumerate(function.parameters, 100)]
    writer.put(*HEAD)
    scope = dict(zip(names, function.parameters, strict=True))
    writer.block(scope, writer.pick(1, 2, 3), 0)
    writer.put(f"return {writer.returned(scope)}")
    return f"def {function.name}(x_ptr, k_ptr, n, {', '.join(names)}):\n" + "\n".join(writer.lines) + "\n"


def make(one: Program) -> JITFunction:
    """The kernel of a program."""
    return kernel_of(one.helpers, one.source, one.constants)


def arguments(one: Program) -> list[Any]:
    """The arrays that a program reads, those that it writes, with numbers that it does not store, and its number."""
    rng, length = np.random.default_rng(one.seed), PROGRAMS * one.constants["SLOTS"] * SLOT
    floats, numbers = rng.integers(-9, 60, NUMBERS).astype(np.float32), rng.integers(0, 100, NUMBERS).astype(np.int32)
    return [floats, numbers, np.full(length, 7, np.float32), np.full(length, 7, np.int32), PROGRAMS]
