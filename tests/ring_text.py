"""Turns the text of a kernel into Python generators: what each thread does of the protocol of its rings, and nothing else.

Every statement that mentions an array of a ring, waits, arrives or commits becomes an event; loops, conditions, functions
and the integers that decide them stay. A statement that mentions such an array and is not known is a read, so that none is
missed. Events, as (kind, array or barrier, stage, rest):

  enter   a loop that loads ahead is begun: its arrays          fetch   elements of an iteration go to registers
  copy    an asynchronous copy of a thread is started           write   a thread writes          read   a thread reads
  feed    tensor cores will read                                commit, finish   of their products
  group, arrived   `cp.async` groups: one ends; all but the last n have arrived
  fence   what was written is shown to the asynchronous proxy   sync    a barrier among "block" or "warp"
  wait, expect, arrive, load   mbarriers, and tensor copies
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

Statement = tuple[str, Any]  # (text before ";" or "{", the block between braces or None)
SIZES = {"half": 2, "__nv_bfloat16": 2, "short": 2, "float": 4, "int": 4, "unsigned": 4, "double": 8}
EVENTS = {
    r"mbarrier_wait\(&(\w+)\[(.+?)\], (.+)\)": "'wait', '{0}', {1}, {2}",
    r"mbarrier_arrive_expect\(&(\w+)\[(.+?)\], (.+)\)": "'expect', '{0}', {1}, {2}",
    r"mbarrier_arrive\(&(\w+)\[(.+)\]\)": "'arrive', '{0}', {1}, 0",
    r"tma_load_\dd\((\w+)\[(.+?)\].*?, (\w+_map), .*&(\w+)\[(.+?)\](?:, \w+)?\)": "'load', '{0}', {1}, ('{2}', '{3}')",
    r"wgmma_commit\(\)": "'commit', '', 0, 0",
    r"wgmma_wait<(\d)>\(\)": "'finish', '', 0, {0}",
    r"cp_async_commit\(\)": "'group', '', 0, 0",
    r"cp_async_wait<(.+)>\(\)": "'arrived', '', 0, {0}",
    r"async_proxy_fence\(\)": "'fence', '', 0, 0",
    r"__syncthreads\(\)|named_barrier_sync\(CONSUMER_BARRIER, NUM_THREADS\)": "'sync', 'block', 0, 0",
    r"__syncwarp\(\)": "'sync', 'warp', 0, 0",
}
FUNCTION = r"const auto (\w+) = \[&\]\((.*)\)"
FILLS = r"(cp_async_\d+\w*|copy_rows<.*?>)\("
MOVES = r"(align_rows<.*?>|transpose_bytes<.*?>)\("  # from the second array into the first


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


def closing(text: str, start: int) -> int:
    """Where the bracket at `start` is closed."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in "([") - (text[at] in ")]")
        if depth == 0:
            return at
    raise ValueError(f"a bracket is not closed: {text}")


@dataclass
class Array:
    """A shared array: bytes of an element, stages (C++ text), and the loop's variable whose iteration fills it."""

    size: int
    stages: str
    loop: str = ""


def shared_arrays(text: str) -> dict[str, Array]:
    """The shared arrays that a text declares, on their own or in the struct of dynamic ones, be it by turns."""
    struct = re.search(r"struct alignas\(\d+\) SharedArrays \{(.*?)\n\};", text, re.S)
    declared = re.findall(r"__shared__ (?:__align__\(\d+\) )?(\w[\w ]*?) (\w+\[.*\]);", text)
    lines = [
        (element, *one.groups()) for element, names in declared for one in re.finditer(r"(\w+)(\[.*?\])(?=, |$)", names)
    ]
    if struct:
        lines += re.findall(r"^ {4,}(?:alignas\(\d+\) )?(\w[\w ]*?) (\w+)((?:\[.*\])+);", struct[1], re.M)
    found = {}
    for element, name, sides in lines:
        if element != "Barrier" and name != "shared_bytes":
            first = sides[1 : closing(sides, 0)]
            found[name] = Array(SIZES.get(element, 1), first if len(first) + 2 < len(sides) else "1")
    return found


@dataclass
class Transpiler:
    """Writes Python for blocks of statements.

    Attributes:
      arrays: the arrays of rings.
      functions: names of the functions that have a part in the protocol.
      count: of renamed variables: C++ has scopes where Python has none.
      last: the loop's variable of the function defined last.
      around: the variable of the innermost loop.
    """

    arrays: dict[str, Array]
    functions: set[str] = field(default_factory=set)
    count: int = 0
    last: str = ""
    around: str = ""

    def block(self, block: list[Statement], indent: str, scope: dict[str, str]) -> list[str]:
        """The Python of a block; statements that have no part in the protocol are left out."""
        lines: list[str] = []
        scope = dict(scope)
        for text, inner in block:
            if inner is None and text.startswith("for ("):  # a loop over one statement
                end = closing(text, 4) + 1
                text, inner = text[:end], [(text[end:].strip(), None)]
            if inner is None:
                lines += [indent + line for line in self._single(text, scope)]
            else:
                lines += self._nested(text, inner, indent, scope, lines)
        return lines

    def _declared(self, name: str, scope: dict[str, str]) -> str:
        self.count += 1
        scope[name] = f"{name}_{self.count}"
        return scope[name]

    def _nested(
        self, text: str, inner: list[Statement], indent: str, scope: dict[str, str], before: list[str]
    ) -> list[str]:
        within = dict(scope)
        if match := re.fullmatch(FUNCTION, text):
            return self._function(match[1], match[2], inner, indent, within)
        head = f"if taken(lambda: {python(text[4:-1], scope)}):" if re.fullmatch(r"if \(.*\)", text) else ""
        others: list[str] = []
        if match := re.fullmatch(r"for \((?:int|long long) (\w+) = (.*); \1 ([<>]) (.*); (.*)\)", text):
            name, start, compare, stop, step = match.groups()
            step, *others = step.split(", ")
            advance = re.sub(r"^\+\+\w+", "1", re.sub(r"^--\w+", "-1", step))
            advance = re.sub(r"^\w+ -= ", "-", re.sub(r"^\w+ \+= ", "", advance))
            bounds = ", ".join(python(part, scope) for part in (start, stop, advance))
            head = f"for {self._declared(name, within)} in count({bounds}, '{compare}'):"
            self.around = name
        elif text == "else" and before and before[-1].startswith(indent + " "):
            head = "else:"
        body = self.block(inner, indent + "    ", within)
        body += [f"{indent}    {within.get(name, name)} += 1" for name in (o.removeprefix("++") for o in others)]
        if not any("yield" in line for line in body):
            return []
        if not head:
            raise ValueError(f"a block that the simulator does not know: {text}")
        return [indent + head, *body]

    def _function(
        self, name: str, parameters: str, inner: list[Statement], indent: str, scope: dict[str, str]
    ) -> list[str]:
        names = [parameter.split()[-1] for parameter in parameters.split(", ") if parameter]
        self.last = names[0] if names[:1] != ["stage"] else self.last
        known = [self._declared(parameter, scope) for parameter in names]
        filled = sorted({m[0] for text in _texts(inner) for m in mentions(text, self.arrays)})
        for array in filled:
            self.arrays[array].loop = self.last
        body = self.block(inner, indent + "    ", scope)
        by_registers = any(re.match(r"(for \(.*\) )?\w+_ahead\S* = ", text) for text in _texts(inner))
        if not by_registers and not any("yield" in line for line in body):
            return []
        self.functions.add(name)
        fetch = [f"{indent}    yield 'fetch', '{self.last}', 0, {known[0]}"] if by_registers else []
        enter = [f"{indent}yield 'enter', '', 0, {filled!r}"]
        return [*enter, f"{indent}def {name}({', '.join(known)}):", *fetch, *body]

    def _single(self, text: str, scope: dict[str, str]) -> list[str]:
        if text.startswith("if ("):
            end = closing(text, 3)
            found = self._single(text[end + 1 :].strip(), scope)
            return (
                [f"if taken(lambda: {python(text[4:end], scope)}):", *("    " + line for line in found)]
                if found
                else []
            )
        for pattern, form in EVENTS.items():
            if match := re.fullmatch(pattern, text):
                return [f"yield {form.format(*(python(part, scope) for part in match.groups()))}"]
        if (match := re.fullmatch(r"(\w+)\((.*)\)", text)) and match[1] in self.functions:
            return [f"yield from {match[1]}({python(match[2], scope)})"]
        if match := re.fullmatch(r"\+\+(\w+)", text):
            return [f"{scope.get(match[1], match[1])} += 1"]
        if match := re.fullmatch(r"(?:const )?(?:int|long long) (\w+) = ([^\[\]{}]+)", text):
            value = python(match[2], scope)
            return [f"{self._declared(match[1], scope)} = lazily(lambda: {value})"]
        return [] if text.startswith(("auto&", "__shared__")) else self._accesses(text, scope)

    def _accesses(self, text: str, scope: dict[str, str]) -> list[str]:
        found = mentions(text, self.arrays)
        kinds = ["read"] * len(found)
        width = match[1] if (match := re.match(r"(?:\w+_vec\w*)<(\w+)>", text)) else "1"
        if match := re.match(FILLS, text):
            kinds[0] = "copy"
            number = re.search(r"\d+", match[1])
            width = f"{number[0]} / {self.arrays[found[0][0]].size}" if number else "None"
        elif re.match(MOVES, text):
            kinds, found, width = ["read", "write"], [found[1], found[0]], "None"
            self.arrays[found[1][0]].loop = self.arrays[found[1][0]].loop or self.around
        elif "wgmma_descriptor<" in text:
            kinds = ["feed"] * len(found)
        elif found and (text.startswith("store_") or re.match(rf"{found[0][0]}\[.*?\] [\w|^&+-]*= ", text)):
            kinds = [*kinds[1:], "write"]
            found = [*found[1:], found[0]]
        lines = []
        for kind, (name, stage, place) in zip(kinds, found, strict=True):
            loop = self.arrays[name].loop
            iteration = f"lazily(lambda: {scope[loop]})" if loop in scope else "None"
            where = f"lazily(lambda: {python(place, scope)})" if place else "None"
            lines.append(
                f"yield '{kind}', '{name}', {python(stage, scope)}, ({iteration}, {where}, {python(width, scope)})"
            )
        return lines


def _texts(block: list[Statement]) -> Iterator[str]:
    for text, inner in block:
        yield text
        yield from _texts(inner or [])


def mentions(text: str, arrays: dict[str, Array]) -> list[tuple[str, str, str]]:
    """(array, stage, place) of every place of the arrays that a statement names, place "" for a whole stage."""
    found = []
    for match in re.finditer(r"(?<![\w.])(\w+)", text):
        name = match[1]
        if name not in arrays or (arrays[name].stages != "1" and text[match.end() : match.end() + 1] != "["):
            continue
        subscripts, at = [], match.end()
        while at < len(text) and text[at] == "[":
            end = closing(text, at)
            subscripts.append(text[at + 1 : end])
            at = end + 1
        staged = arrays[name].stages != "1"  # an array of one stage may stand there whole
        stage, places = (subscripts[0], subscripts[1:]) if staged else ("0", subscripts)
        found.append((name, stage, places[0] if places else ""))
    return found


def python(expression: str, scope: dict[str, str] | None = None) -> str:
    """A C++ expression of non-negative integers in Python; None where it is not one."""
    expression = re.sub(r"sizeof\((\w+)\)", lambda match: str(SIZES.get(match[1], 1)), expression)
    expression = re.sub(r"static_cast<[\w ]+>", "", expression)
    expression = re.sub(r"blockIdx\.[xyz]", "own_block", re.sub(r"gridDim\.[xyz]", "num_blocks", expression))
    expression = expression.replace("&&", " and ").replace("||", " or ").replace("/", "//")
    expression = re.sub(r"(?<![.\w])[A-Za-z_]\w*", lambda m: (scope or {}).get(m[0], m[0]), expression)
    if expression.lstrip().startswith("*"):  # what lies at an address: data, and in Python the star would unpack
        return "None"
    try:
        compile(f"({expression},)", "", "eval")
    except SyntaxError:
        return "None"
    return "None" if re.search(r"\w<[^<>]*>\(", expression) else expression  # a function's parameters


def count(start: int, stop: int, step: int, compare: str) -> Iterator[int]:
    """A for loop of C++."""
    while start < stop if compare == "<" else start > stop:
        yield start
        start += step


def lazily(value: Any) -> Any:
    """The value, or None where it is made of what the protocol does not know."""
    try:
        return value()
    except (NameError, TypeError, AttributeError):
        return None


def taken(condition: Any) -> bool:
    """Whether a branch is taken; one that depends on data is."""
    value = lazily(condition)
    return value is None or bool(value)


def constants(text: str, values: dict[str, int]) -> dict[str, Any]:
    """What the generators know: the functions above, the scalars of the launch and the constants of the text."""
    one, first = SimpleNamespace(x=1, y=1, z=1), SimpleNamespace(x=0, y=0, z=0)
    names: dict[str, Any] = {
        "count": count,
        "lazily": lazily,
        "taken": taken,
        "blockIdx": first,
        "gridDim": one,
        **values,
    }
    for name, value in re.findall(r"^constexpr int (\w+) = (.*?);", text, re.M):
        names[name] = eval(python(value), dict(names))
    return names


def roles(text: str, names: dict[str, Any]) -> tuple[list[Any], dict[str, Array]]:
    """(a generator function of a thread's number for each role, the loading thread's last; the arrays of rings)."""
    body = parse(text[text.index('extern "C" __global__') :])
    (kernel,) = [block for head, block in body if "__global__" in head]
    declared = shared_arrays(text)
    fills = r"(?:cp_async_\d+\w*\(&|copy_rows<[^>]*>\(|align_rows<[^>]*>\(|tma_load_\dd\()(\w+)\[|transpose_bytes<[^>]*>\((\w+)"
    ahead = {name for found in re.findall(fills, text) for name in found if name}
    ahead |= set(re.findall(r"^\s+(\w+)\[stage\]\[[^=]*\] = \w+_ahead", text, re.M))  # by way of registers
    arrays = {name: array for name, array in declared.items() if name in ahead}
    number = next((i for i, (head, _) in enumerate(kernel) if head == "if (tid >= NUM_THREADS)"), None)
    blocks, before = [kernel], []
    if number is not None:
        (producer,) = [block for head, block in kernel[number][1] if head == "if (tid == NUM_THREADS)"]
        before = [s for s in kernel[:number] if s[1] is None]
        blocks = [kernel[number + 1][1], producer]
    found = []
    for block in blocks:
        lines = Transpiler(arrays).block([*before, *block], "    ", {})
        scope = dict(names)
        exec("\n".join(["def role(threadIdx):", *lines, "    yield from ()"]), scope)
        found.append(scope["role"])
    return found, arrays
