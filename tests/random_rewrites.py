"""The same kernel written otherwise: it computes the same.

Some of its statements are moved into functions, stand in both ways of a branch, or in a loop of one trip.
"""

from __future__ import annotations

import ast
import copy
import inspect
import random
import textwrap
from collections.abc import Iterator

from tilewright.runtime.jit import JITFunction

MOST_STATEMENTS = 4  # of a function
LANGUAGE = {"tl", "range", "min", "max", "abs", "float", "int", "len"}


def rewritten(source: str, helpers: dict[str, str], seed: int) -> tuple[str, dict[str, str]]:
    """The kernel's source, and those of its functions: `helpers`, and behind them the new ones."""
    tree = ast.parse(source)
    kernel = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    rewriter = _Rewriter(kernel, {*helpers, *LANGUAGE}, random.Random(seed))
    kernel.body = rewriter.block(kernel.body, {argument.arg for argument in kernel.args.args})
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n", helpers | rewriter.made


def rewritten_kernel(kernel: JITFunction, seed: int) -> tuple[JITFunction, str]:
    """A kernel of a file written otherwise, and the text of it and its new functions."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kernel.fn)))
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    function.decorator_list = []
    if ast.get_docstring(function):
        function.body = function.body[1:]
    source, helpers = rewritten(ast.unparse(tree) + "\n", {}, seed)
    namespace = dict(kernel.fn.__globals__)
    for name, text in (*helpers.items(), (function.name, source)):
        exec(text, namespace)
        namespace[name] = JITFunction(namespace[name], source=text)
    return namespace[function.name], "\n".join((*helpers.values(), source))


class _Rewriter:
    """Functions as they are `made`, and what tells variables from the language's names."""

    def __init__(self, kernel: ast.FunctionDef, others: set[str], rng: random.Random) -> None:
        self.kernel, self.random = kernel, rng
        self.made: dict[str, str] = {}
        self.trips = 0
        self.constants = {argument.arg for argument in kernel.args.args if argument.annotation is not None}
        self.constants |= {
            node.target.id
            for node in ast.walk(kernel)
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }
        named = {node.id for node in ast.walk(kernel) if isinstance(node, ast.Name)}
        self.variables = (named | {argument.arg for argument in kernel.args.args}) - others

    def block(self, body: list[ast.stmt], defined: set[str]) -> list[ast.stmt]:
        """A block with some of its runs of statements rewritten; `defined` are the names that have a value in front of it."""
        result: list[ast.stmt] = []
        known = set(defined)
        while body:
            run = body[: self.random.randint(1, MOST_STATEMENTS)]
            other = self._other(run, known) if self.random.random() < 0.4 else None
            if other is None:
                run = body[:1]
                for node in self._inner(run[0]):
                    counted = (
                        {run[0].target.id}
                        if isinstance(run[0], ast.For) and isinstance(run[0].target, ast.Name)
                        else set()
                    )
                    node[:] = self.block(node, known | counted)
            result += run if other is None else [other]
            known |= _always_stored(run)
            body = body[len(run) :]
        return result

    def _inner(self, statement: ast.stmt) -> Iterator[list[ast.stmt]]:
        for name in ("body", "orelse"):
            if found := getattr(statement, name, None):
                yield found

    def _other(self, run: list[ast.stmt], known: set[str]) -> ast.stmt | None:
        """A statement that does what the statements do; None where there can be none."""
        plain = (ast.Assign, ast.AugAssign, ast.Expr, ast.For, ast.If, ast.While)
        nodes = [node for statement in run for node in ast.walk(statement)]
        if not all(isinstance(s, plain) for s in run) or any(isinstance(n, (ast.Return, ast.AnnAssign)) for n in nodes):
            return None
        if any(isinstance(n, ast.Assign) and isinstance(n.value, (ast.Constant, ast.Tuple, ast.Name)) for n in nodes):
            return None  # perhaps a compile-time value, or the name of one
        stored, always = _stored(run), _always_stored(run)
        if not self._is_inner(stored - always - known, nodes):
            return None  # what only some ways give a value is read behind them
        way = self.random.random()
        if way < 0.3 and "pid" in known:
            text = self.random.choice(("pid >= 0", "pid % 2 == 1", "pid < 0"))
            return ast.If(ast.parse(text, mode="eval").body, run, copy.deepcopy(run))
        if way < 0.5 and "pid" in known and self._is_inner(stored - known, nodes):
            self.trips += 1
            text = self.random.choice(("range(pid, pid + 1)", "range(1)", "tl.range(2 * pid, 2 * pid + 3, 4)"))
            return ast.For(ast.Name(f"once{self.trips}", ast.Store()), ast.parse(text, mode="eval").body, run, [], None)
        return self._call(run, known, stored, always)

    def _is_inner(self, names: set[str], nodes: list[ast.AST]) -> bool:
        """Whether names stand nowhere else in the kernel."""
        inside = sum(isinstance(node, ast.Name) and node.id in names for node in nodes)
        return inside == sum(isinstance(node, ast.Name) and node.id in names for node in ast.walk(self.kernel))

    def _call(self, run: list[ast.stmt], known: set[str], stored: set[str], always: set[str]) -> ast.stmt:
        read = sorted((_loaded(run) | (stored - always)) & known & self.variables)
        results = sorted(stored & (always | known))
        name = f"part{len(self.made)}"
        parameters = ", ".join(f"{one}: tl.constexpr" if one in self.constants else one for one in read)
        last = [f"return {', '.join(results)}"] if results else []
        lines = [line for statement in run for line in ast.unparse(statement).split("\n")] + last
        self.made[name] = f"def {name}({parameters}):\n" + "".join(f"    {line}\n" for line in lines)
        text = f"{name}({', '.join(read)})"
        return ast.parse(f"{', '.join(results)} = {text}" if results else text).body[0]


def _names(run: list[ast.stmt], context: type[ast.expr_context]) -> set[str]:
    nodes = (node for statement in run for node in ast.walk(statement))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, context)}


def _stored(run: list[ast.stmt]) -> set[str]:
    return _names(run, ast.Store)


def _loaded(run: list[ast.stmt]) -> set[str]:
    updated = (node.target for statement in run for node in ast.walk(statement) if isinstance(node, ast.AugAssign))
    return _names(run, ast.Load) | {target.id for target in updated if isinstance(target, ast.Name)}


def _always_stored(run: list[ast.stmt]) -> set[str]:
    """Names that have a value behind the statements, whichever way these go."""
    found: set[str] = set()
    for statement in run:
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            found |= _stored([statement])
        elif isinstance(statement, ast.If):
            found |= _always_stored(statement.body) & _always_stored(statement.orelse)
    return found
