"""Changes a kernel's source the way a slip of the keyboard or of the mind would: one place, chosen by a seed.

`mutated` takes the text of a module and the names of the functions to change, and returns another text that Python still
parses. Nothing is known of the language here; what becomes of the text is the translator's to say.
"""

from __future__ import annotations

import ast
import io
import random
import re
import tokenize
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from mutation_words import (
    ANNOTATIONS,
    BINARY,
    COMMENTS,
    DECORATORS,
    FUNCTIONS,
    HEADS,
    KEYWORDS,
    NAMES,
    NUMBERS,
    OTHERS,
    STATEMENTS,
    SUBSCRIPTS,
    TYPES,
    WRAPPED,
)


@dataclass
class Place:
    """The module's text and its functions that are to be changed, parsed."""

    text: str
    tree: ast.Module
    functions: list[ast.FunctionDef]
    random: random.Random

    def inside(self, *kinds: type[ast.AST]) -> list[ast.AST]:
        """All nodes of some kinds in the bodies."""
        found = []
        for function in self.functions:
            for statement in function.body:
                found += [node for node in ast.walk(statement) if isinstance(node, kinds)]
        return found

    def pick(self, *kinds: type[ast.AST]) -> ast.AST | None:
        """One of them, or None."""
        found = self.inside(*kinds)
        return self.random.choice(found) if found else None

    def names(self) -> list[str]:
        """What is assigned in the functions, and their parameters."""
        function = self.random.choice(self.functions)
        own = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        return sorted(own | {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)})

    def text_of(self, node: ast.AST) -> str:
        """The text of a node."""
        return ast.get_source_segment(self.text, node) or "0"

    def replaced(self, node: ast.AST, new: str) -> str:
        """The module with another text in a node's place."""
        starts = [0]
        for line in self.text.split("\n"):
            starts.append(starts[-1] + len(line.encode()) + 1)
        data = self.text.encode()
        first = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        last = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        return (data[:first] + new.encode() + data[last:]).decode()

    def with_lines(self, first: int, last: int, new: list[str]) -> str:
        """The module with other lines in the place of lines `first` to `last` (from 1, both included)."""
        lines = self.text.split("\n")
        return "\n".join(lines[: first - 1] + new + lines[last:])


EXPRESSIONS = (
    ast.Name,
    ast.Call,
    ast.BinOp,
    ast.Compare,
    ast.Subscript,
    ast.Attribute,
    ast.Constant,
    ast.Tuple,
    ast.UnaryOp,
)


def _expression(place: Place) -> ast.AST | None:
    found = [
        node for node in place.inside(*EXPRESSIONS)
        if not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
    ]  # fmt: skip
    return place.random.choice(found) if found else None


def swap_expressions(place: Place) -> str | None:
    """One expression where another stands: a tile for a scalar, a pointer for a number."""
    one, other = _expression(place), _expression(place)
    return place.replaced(one, f"({place.text_of(other)})") if one and other else None


def put_constant(place: Place) -> str | None:
    """A constant in the place of an expression."""
    node = _expression(place)
    return place.replaced(node, f"({place.random.choice(NUMBERS + OTHERS)})") if node else None


def change_number(place: Place) -> str | None:
    """Another number in the place of one."""
    node = place.pick(ast.Constant)
    return place.replaced(node, f"({place.random.choice(NUMBERS + OTHERS)})") if node else None


def wrap(place: Place) -> str | None:
    """Something done to an expression."""
    node = _expression(place)
    if node is None:
        return None
    form = place.random.choice(WRAPPED)
    return place.replaced(node, form.format(*[place.text_of(node)] * form.count("{}")))


def change_operator(place: Place) -> str | None:
    """Another operator, or the operands swapped."""
    node = place.pick(ast.BinOp, ast.Compare)
    if node is None:
        return None
    left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.left, node.comparators[0])  # type: ignore[attr-defined]
    operator = place.random.choice(BINARY)
    sides = [f"({place.text_of(left)})", f"({place.text_of(right)})"]
    if place.random.random() < 0.3:
        sides.reverse()
    return place.replaced(node, f"({sides[0]}{operator}{sides[1]})")


def change_call(place: Place) -> str | None:
    """An argument dropped, doubled, moved, misspelt or added."""
    node = place.pick(ast.Call)
    if not isinstance(node, ast.Call):
        return None
    positional = [place.text_of(argument) for argument in node.args]
    named = [
        f"{word.arg}={place.text_of(word.value)}" if word.arg else f"**{place.text_of(word.value)}"
        for word in node.keywords
    ]
    kind, choose = place.random.randrange(9), place.random.choice
    if kind == 0 and positional:
        positional.pop(place.random.randrange(len(positional)))
    elif kind == 1 and named:
        named.pop(place.random.randrange(len(named)))
    elif kind == 2 and positional:
        positional.append(choose(positional))
    elif kind == 3 and named:
        word = choose(named)
        named[named.index(word)] = word[0] + word[2:] if "=" in word[2:] else word
    elif kind == 4:
        place.random.shuffle(positional)
        place.random.shuffle(named)
    elif kind == 5 and named:
        positional.append(named.pop().split("=", 1)[1])
    elif kind == 6:
        positional.append(choose(NUMBERS + OTHERS))
    elif kind == 7 and named:
        number = place.random.randrange(len(named))
        named[number] = named[number].split("=", 1)[0] + "=" + choose((*NUMBERS, *OTHERS, *place.names()))
    else:
        named.append(choose(KEYWORDS))
    return place.replaced(node, f"{place.text_of(node.func)}({', '.join(positional + named)})")


def change_function(place: Place) -> str | None:
    """Another function or type of the language."""
    node = place.pick(ast.Attribute)
    if not isinstance(node, ast.Attribute):
        return None
    words = TYPES if place.random.random() < 0.4 else FUNCTIONS
    return place.replaced(node, f"{place.text_of(node.value)}.{place.random.choice(words)}")


def change_subscript(place: Place) -> str | None:
    """Another subscript."""
    node = place.pick(ast.Subscript)
    if not isinstance(node, ast.Subscript):
        return None
    return place.replaced(node, f"{place.text_of(node.value)}[{place.random.choice(SUBSCRIPTS)}]")


def rename_use(place: Place) -> str | None:
    """Another variable in one place, read or assigned."""
    node = place.pick(ast.Name)
    choices = place.names() + ["undefined", "__x", "self", "threadIdx"]
    return place.replaced(node, place.random.choice(choices)) if node else None


def rename_variable(place: Place) -> str | None:
    """A name that C++, CUDA or the generated text has, for a variable, everywhere."""
    old, new = place.random.choice(place.names() or ["x"]), place.random.choice(NAMES)
    function = place.random.choice(place.functions)
    first, last = function.lineno, function.end_lineno or function.lineno
    lines = place.text.split("\n")[first - 1 : last]
    return place.with_lines(first, last, [re.sub(rf"(?<![\w.]){old}\b", new, line) for line in lines])


def _statement(place: Place) -> ast.stmt | None:
    node = place.pick(ast.stmt)
    return node if isinstance(node, ast.stmt) else None


def _indented(lines: list[str], by: str) -> list[str]:
    return [by + line if line.strip() else line for line in lines]


def _lines_of(place: Place, node: ast.stmt) -> list[str]:
    return place.text.split("\n")[node.lineno - 1 : node.end_lineno]


def delete_statement(place: Place) -> str | None:
    """One statement less."""
    node = _statement(place)
    if node is None:
        return None
    return place.with_lines(node.lineno, node.end_lineno or 0, [" " * node.col_offset + "pass"])


def double_statement(place: Place) -> str | None:
    """A statement twice."""
    node = _statement(place)
    return place.with_lines(node.lineno, node.end_lineno or 0, _lines_of(place, node) * 2) if node else None


def move_statement(place: Place) -> str | None:
    """A statement somewhere else: before or after another, in its block."""
    one, other = _statement(place), _statement(place)
    if one is None or other is None or other.lineno <= one.lineno <= (other.end_lineno or 0):
        return None
    moved = _indented([line[one.col_offset :] for line in _lines_of(place, one)], " " * other.col_offset)
    lines: list[str] = place.text.split("\n")
    hole = [" " * one.col_offset + "pass"] + [""] * ((one.end_lineno or 0) - one.lineno)
    lines[one.lineno - 1 : one.end_lineno] = hole
    lines[other.lineno - 1 : other.lineno - 1] = moved
    return "\n".join(lines)


def enclose_statement(place: Place) -> str | None:
    """A statement in a branch, a loop, or what kernels cannot have."""
    node = _statement(place)
    names = place.names()
    if node is None or not names:
        return None
    blanks, head = " " * node.col_offset, place.random.choice(HEADS).format(place.random.choice(names))
    inner = _indented(_lines_of(place, node), "    ")
    tail = [f"{blanks}finally:", f"{blanks}    pass"] if head == "try:" else []
    if place.random.random() < 0.3 and head.startswith("if"):
        tail = [
            f"{blanks}else:",
            f"{blanks}    {place.random.choice(STATEMENTS).split(chr(10))[0].format(place.random.choice(names))}",
        ]
    return place.with_lines(node.lineno, node.end_lineno or 0, [blanks + head, *inner, *tail])


def add_statement(place: Place) -> str | None:
    """A statement more, before or after one."""
    node, names = _statement(place), place.names()
    if node is None or not names:
        return None
    blanks = " " * node.col_offset
    new = [blanks + line for line in place.random.choice(STATEMENTS).format(place.random.choice(names)).split("\n")]
    at = node.lineno if place.random.random() < 0.5 else (node.end_lineno or 0) + 1
    return place.with_lines(at, at - 1, new)


def change_header(place: Place) -> str | None:
    """Other parameters: defaults, stars, annotations, decorators."""
    function = place.random.choice(place.functions)
    line = place.text.split("\n")[function.lineno - 1]
    first, choose = function.lineno, place.random.choice
    value = choose(NUMBERS + OTHERS)
    pattern, new = choose(
        (
            *((r"\((\w+)", rf"(\1{added}") for added in (", *args", ", *", ", /", ", **names")),
            (r"\((\w+)", r"(self, \1"),
            (r"\((\w+)", rf"(\1={value}"),
            (r"\((\w+)", rf"(\1: {choose(ANNOTATIONS)}"),
            (": tl.constexpr", ""),
            (": tl.constexpr", f": tl.constexpr = {value}"),
            ("def ", "async def "),
            ("^", f"@{choose(DECORATORS)}\n"),
            (r"\):\s*$", ") -> None:"),
        )
    )
    header = re.sub(pattern, new, line, count=1)
    return place.with_lines(first, first, header.split("\n"))


def call_itself(place: Place) -> str | None:
    """A function that calls itself or another with some arguments."""
    node, function, names = _statement(place), place.random.choice(place.functions), place.names()
    if node is None or not names:
        return None
    count = len(function.args.args) + place.random.choice((-1, 0, 0, 1))
    arguments = ", ".join(place.random.choice(names) for _ in range(max(count, 0)))
    blanks = " " * node.col_offset
    target = place.random.choice(("", "z = ", f"{place.random.choice(names)} = "))
    return place.with_lines(node.lineno, node.lineno - 1, [f"{blanks}{target}{function.name}({arguments})"])


def add_comment(place: Place) -> str | None:
    """A comment that means something to C++, above or behind a statement."""
    node = _statement(place)
    if node is None:
        return None
    comment, lines = place.random.choice(COMMENTS), _lines_of(place, node)
    if place.random.random() < 0.5 or lines[0].rstrip().endswith("\\"):
        return place.with_lines(node.lineno, node.lineno - 1, [" " * node.col_offset + comment])
    return place.with_lines(node.end_lineno or 0, node.end_lineno or 0, [f"{lines[-1]}  {comment}"])


def change_layout(place: Place) -> str | None:
    """The same program, written otherwise: line ends, tabs, continuation, long lines."""
    kind = place.random.randrange(7)
    if kind == 0:
        return place.text.replace("\n", "\r\n")
    if kind == 1:
        return re.sub(r"^((?:    )+)", lambda blanks: "\t" * (len(blanks[1]) // 4), place.text, flags=re.M)
    if kind == 2:
        return (
            place.text.replace("    ", "   ")
            if "\n      " not in place.text
            else place.text.replace("\n    ", "\n\x0c    ", 3)
        )
    node = _statement(place)
    if node is None or isinstance(node, (ast.For, ast.If, ast.While, ast.FunctionDef)):
        return None
    lines = _lines_of(place, node)
    if kind == 3:
        spaced = re.sub(r" ([-+*/=]) ", r" \\\n        \1 ", lines[0], count=1)
        return place.with_lines(node.lineno, node.lineno, spaced.split("\n"))
    if kind == 4:
        return place.with_lines(node.lineno, node.end_lineno or 0, [*lines[:-1], f"{lines[-1]}; pass;"])
    if kind == 5:
        return place.with_lines(node.lineno, node.end_lineno or 0, [*lines[:-1], lines[-1] + " " * 500 + "# far"])
    value = getattr(node, "value", None)
    return place.replaced(value, f"({place.text_of(value)}{' + 0' * 120})") if value is not None else None


# Every change, and how often it is taken.
MUTATORS: tuple[tuple[Callable[[Place], str | None], int], ...] = (
    (swap_expressions, 12), (put_constant, 10), (change_number, 6), (wrap, 14), (change_operator, 8), (change_call, 12),
    (change_function, 6), (change_subscript, 4), (rename_use, 6), (rename_variable, 6), (delete_statement, 5),
    (double_statement, 2), (move_statement, 5), (enclose_statement, 7), (add_statement, 14), (change_header, 5),
    (call_itself, 2), (add_comment, 3), (change_layout, 3),
)  # fmt: skip


def mutated(text: str, functions: tuple[str, ...], seed: int, changes: int = 1) -> tuple[str, str]:
    """Another text and the names of the changes; Python parses it, and it differs.

    Args:
      text: a module.
      functions: the names of those that are to be changed.
      seed: which change; the same one gives the same text.
      changes: how many, one after another.
    """
    chooser, names = random.Random(seed), []
    mutators, weights = zip(*MUTATORS, strict=True)
    for _ in range(changes):
        for _ in range(100):
            tree = ast.parse(text)
            chosen = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in functions]
            if not chosen:
                return text, " ".join(names)
            mutator = chooser.choices(mutators, weights)[0]
            new = mutator(Place(text, tree, chosen, chooser))
            if new is not None and new != text and _parses(new):
                text = new
                names.append(mutator.__name__)
                break
    return text, " ".join(names)


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "mutant", "exec", dont_inherit=True)
        list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (SyntaxError, ValueError, tokenize.TokenError):
        return False
    return True
