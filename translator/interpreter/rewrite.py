"""Rewrites a kernel's Python where Python cannot be overloaded, keeping every line and column where it is.

Assignments turn numbers into typed scalars; `and`, `or`, `not`, `is`, `in` and chained comparisons work on tiles and
compile-time values; calls and loops go through `support.py`. Everything else is the user's own code, so that breakpoints
and tracebacks show the user's lines.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import partial
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

from ..deep import with_room
from ..kernel_function import KernelFunction
from .bound import ending_with, ending_with_trip, reads
from .places import KERNEL, SUPPORT, parameter_span

# The name that a rewritten function is defined under: not its own, by which it may call the kernel that it came from.
DEFINED = f"{SUPPORT}function"
END_OF_LINE = 1 << 10  # a column behind that of every line
# What the translator refuses, by its words for the nodes, which are mostly those of Python. An import is none of them: so
# that a debugger other than `breakpoint()` can be called.
REFUSED = {"Delete": "Del", "AsyncFunctionDef": "FunctionDef"} | {
    kind: kind
    for kind in (
        "Break", "ClassDef", "Continue", "Dict", "DictComp", "FunctionDef", "GeneratorExp", "Global", "Lambda", "Match",
        "Nonlocal", "Set", "SetComp", "Try", "TryStar", "With",
    )
}  # fmt: skip
_compiled: WeakKeyDictionary[KernelFunction, tuple[str, CodeType]] = WeakKeyDictionary()


def python_function(function: KernelFunction, support: Any) -> Any:
    """The rewritten function, ready to be called with tiles; its globals are those that the function sees now."""
    known = _compiled.get(function)
    if known is None or known[0] != function.raw_src:
        known = _compiled[function] = (function.raw_src, with_room(lambda: _compile(function)))
    namespace = function.outer_names() | {SUPPORT: support, KERNEL: function}
    exec(known[1], namespace)
    return namespace[DEFINED]


def _compile(function: KernelFunction) -> CodeType:
    source, first_line = function.raw_src, function.first_line
    if source[:1] in (" ", "\t"):  # the function stands in another one: an `if` above keeps its columns
        source, first_line = f"if True:\n{source}", first_line - 1
    tree = ast.parse(source)
    definition = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    for parameter in function.params:
        parameter.check(partial(parameter_span, function, definition.args, parameter.name, first_line - 1))
    compile_time = {parameter.name for parameter in function.params if parameter.is_constexpr}
    definition.name = DEFINED
    definition.decorator_list = []
    definition.returns = None
    definition.args.args = [*definition.args.posonlyargs, *definition.args.args]  # they are passed by their names
    definition.args.posonlyargs = []
    definition.args.defaults = [ast.Constant(None) for _ in definition.args.defaults]
    definition.args.kw_defaults = [ast.Constant(None) for _ in definition.args.kw_defaults]
    for argument in ast.walk(definition.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    at_run_time = {parameter.name for parameter in function.params} - compile_time
    rewriter = _Rewriter(compile_time, at_run_time, source.split("\n"), reads([definition]), first_line - 1)
    definition.body = rewriter.generic_visit(ast.Module(definition.body, [])).body  # type: ignore[attr-defined]
    ast.increment_lineno(tree, first_line - 1)
    module = compile(ast.fix_missing_locations(ast.Module([definition], [])), function.path, "exec")
    return _renamed(module, function.__name__)


def _renamed(module: CodeType, name: str) -> CodeType:
    """The module's code with the function called `name` in tracebacks and debuggers."""
    constants = tuple(
        part.replace(co_name=name) if isinstance(part, CodeType) and part.co_name == DEFINED else part
        for part in module.co_consts
    )
    return module.replace(co_consts=constants)


def _form(target: ast.expr) -> Any:
    """How the names of a target nest: a tuple for each tuple, None for a name."""
    return tuple(map(_form, target.elts)) if isinstance(target, (ast.Tuple, ast.List)) else None


class _Rewriter(ast.NodeTransformer):
    """Names in `compile_time` are declared `tl.constexpr`: what they are assigned stays a compile-time value.

    Names in `at_run_time` are those of other parameters, which may hold one all the same, such as an integer of 1.
    `lines` are those of the source; `read` counts how often each name is read, `above` the lines in front of them in the file.
    """

    def __init__(
        self, compile_time: set[str], at_run_time: set[str], lines: list[str], read: Counter[str], above: int
    ) -> None:
        self.compile_time, self.at_run_time, self.lines, self.read = compile_time, at_run_time, lines, read
        self.kept, self.branches, self.above = 0, 0, above

    def _call(self, name: str, *args: ast.expr, at: ast.expr | None = None) -> ast.Call:
        """A call of a function of `support.py`, at the place of its last argument, or `at` another."""
        function = ast.Attribute(ast.Name(SUPPORT, ast.Load()), name, ast.Load())
        call = ast.copy_location(ast.Call(function, list(args), []), at or args[-1])
        for node in (function, function.value):
            ast.copy_location(node, call)
        return call

    def _keep(self, value: ast.expr) -> tuple[ast.expr, ast.expr]:
        """`value`, evaluated once and remembered, and the expression that recalls it."""
        self.kept += 1
        name = f"{SUPPORT}{self.kept}"
        stored = ast.copy_location(ast.NamedExpr(ast.Name(name, ast.Store()), value), value)
        ast.copy_location(stored.target, value)
        return stored, ast.copy_location(ast.Name(name, ast.Load()), value)

    def _bound(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """What an assignment of `value` to `target` binds."""
        declared = isinstance(target, ast.Name) and target.id in self.compile_time
        return self._call("rebound" if declared else "assigned", value)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if len(node.targets) > 1:
            return self._refused("ChainedAssign", node)
        if any(isinstance(part, ast.Starred) for part in ast.walk(node.targets[0])):
            return self._refused("StarredTarget", node)
        if any(
            isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) for part in ast.walk(node.targets[0])
        ):
            return self._refused("AttributeTarget", node)
        self.generic_visit(node)
        node.value = self._bound(node.targets[0], node.value)
        if isinstance(node.targets[0], (ast.Tuple, ast.List)):
            form = ast.copy_location(ast.Constant(_form(node.targets[0])), node.value)
            node.value = self._call("taken_apart", node.value, form, at=node.targets[0])
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        self.generic_visit(node)
        node.value = self._bound(node.target, node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        before = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        value = self._bound(node.target, ast.copy_location(ast.BinOp(before, node.op, node.value), node))
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        declared = isinstance(node.target, ast.Name) and "constexpr" in ast.unparse(node.annotation)
        if declared and isinstance(node.target, ast.Name):
            self.compile_time.add(node.target.id)
        self.generic_visit(node)
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        value = self._bound(node.target, node.value) if not declared else self._declared(node.target, node.value)
        return ast.copy_location(ast.Assign([node.target], value), node)

    def _declared(self, target: Any, value: ast.expr) -> ast.expr:
        if target.id in self.at_run_time or self.branches:  # what a branch declares ends with it
            return self._call("compile_time", value)
        return self._call("declared", ast.copy_location(ast.Constant(target.id), value), value)

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        ending = self._ending(node)
        self.branches += 1
        self.generic_visit(node)
        self.branches -= 1
        if not ending:
            return [node]
        begin, bound = self._bound_before(node, node.test)
        node.test = self._call("branch", bound, node.test)
        return [begin, node, *self._deleted(ending, bound)]

    def _ending(self, node: ast.For | ast.While | ast.If) -> dict[str, str]:
        """The names that may end with a statement and are read outside of it, and why they end."""
        inside = reads([node])
        return {name: why for name, why in ending_with(node).items() if self.read[name] > inside[name]}

    def _bound_before(self, node: ast.stmt, at: ast.expr) -> tuple[ast.stmt, ast.expr]:
        """A statement that notes what is bound in front of another one, and what recalls it."""
        line = ast.copy_location(ast.Constant(node.lineno + self.above), at)
        begin, bound = self._keep(self._call("Bound", line))
        return ast.copy_location(ast.Expr(begin), at), bound

    def _deleted(self, ending: dict[str, str], bound: ast.expr) -> list[ast.stmt]:
        """What deletes names behind a statement."""
        found: list[ast.stmt] = []
        for name, why in ending.items():
            words = [ast.copy_location(ast.Constant(word), bound) for word in (name, why)]
            deletion = ast.copy_location(ast.Delete([ast.copy_location(ast.Name(name, ast.Del()), bound)]), bound)
            found.append(ast.copy_location(ast.If(self._call("ends", bound, *words), [deletion], []), bound))
        return found

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        return self._joined("and" if isinstance(node.op, ast.And) else "or", node.values, node)

    def _joined(self, word: str, values: list[ast.expr], node: ast.expr) -> ast.expr:
        """Operands of `and` or `or`: a compile-time one may decide alone, run-time ones are all evaluated."""
        result = values[0]
        for value in values[1:]:
            stored, again = self._keep(result)
            op = ast.copy_location(ast.Constant(word), node)
            test = self._call("needs_next", op, stored)
            result = ast.copy_location(ast.IfExp(test, self._call("joined", op, again, value), again), node)
        return result

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        """A compile-time value in a text is shown as Python shows it."""
        self.generic_visit(node)
        node.value = self._call("plain", node.value)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return self._call("negated", node.operand, at=node) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        left, parts = node.left, []
        for number, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True), 1):
            again = right
            if number < len(node.ops):
                right, again = self._keep(right)
            if isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
                left, right = self._call("plain", left), self._call("plain", right)
            parts.append(ast.copy_location(ast.Compare(left, [op], [right]), node))
            left = again
        return self._joined("and", list(parts), node)

    def _refused(self, kind: str, node: ast.stmt) -> ast.stmt:
        """An error, when it is reached, in place of a statement that kernels do not have."""
        return ast.copy_location(ast.Expr(self._refused_here(kind, node)), node)

    def _refused_here(self, kind: str, node: ast.stmt | ast.expr) -> ast.Call:
        place = ast.copy_location(ast.Constant(kind), node)
        if place.end_lineno != place.lineno:  # of a call on several lines Python keeps the last one
            place.end_lineno, place.end_col_offset = place.lineno, END_OF_LINE
        return self._call("refused", place)

    def visit(self, node: ast.AST) -> Any:
        """Whatever is not in `REFUSED` is visited by the method for its kind."""
        kind = type(node).__name__
        if kind not in REFUSED:
            return super().visit(node)
        if isinstance(node, ast.stmt):
            return self._refused(REFUSED[kind], node)
        return self._refused_here(REFUSED[kind], node)  # type: ignore[arg-type]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        ending, early = self._ending(node), ending_with_trip(node)
        self.generic_visit(node)
        node.orelse = [self._refused("Else", self._else_of(one)) for one in node.orelse[:1]]
        if not ending and not early:
            node.iter = self._call("loop", node.iter)
            return [node]
        begin, bound = self._bound_before(node, node.iter)
        node.iter = self._call("loop", node.iter, bound, at=node.iter)
        node.body = [*self._deleted(early, bound), *node.body]
        return [begin, node, *self._deleted(ending, bound)]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        ending, early = self._ending(node), ending_with_trip(node)
        self.generic_visit(node)
        note, bound = self._bound_before(node, node.test)
        begin, trips = self._keep(self._call("Trips", at=node.test))
        node.test = self._call("repeats", trips, node.test)
        node.orelse = [self._refused("Else", self._else_of(one)) for one in node.orelse[:1]]
        whole: list[ast.stmt] = [ast.copy_location(ast.Expr(begin), node.test), node]
        if not ending and not early:
            return whole
        node.test = self._call("branch", bound, node.test)
        node.body = [*self._deleted(early, bound), *node.body]
        return [note, *whole, *self._deleted(ending, bound)]

    def _else_of(self, first: ast.stmt) -> ast.stmt:
        """A statement at the place of the word `else` in front of `first`: it is the first one of its line."""
        line = first.lineno
        while not (found := re.match(r"\s*else\b", self.lines[line - 1])):
            line -= 1
        column = found.end() - len("else")
        return ast.Pass(lineno=line, col_offset=column, end_lineno=line, end_col_offset=column + len("else:"))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if any(keyword.arg is None for keyword in node.keywords):
            return self._refused_here("Keywords", node)
        if not node.args and not node.keywords:
            return node  # nothing to check, and debuggers are entered from the user's own frame
        node.func = self._call("callee", node.func)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """A call as a statement of its own."""
        self.generic_visit(node)
        if isinstance(node.value, ast.Call) and (node.value.args or node.value.keywords):
            node.value.func, again = self._keep(node.value.func)
            node.value = self._call("alone", node.value, again)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """`.value` and `.type` are attributes of every compile-time value."""
        self.generic_visit(node)
        if node.attr in ("value", "type") and isinstance(node.ctx, ast.Load):
            name = ast.copy_location(ast.Constant(node.attr), node.value)
            node.value = self._call("owner", name, node.value)
        return node

    def visit_List(self, node: ast.List) -> ast.AST:
        """A list is a tuple in a kernel: equal to a shape, and fixed."""
        self.generic_visit(node)
        return ast.copy_location(ast.Tuple(node.elts, node.ctx), node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        if len(node.generators) > 1 or not isinstance(node.generators[0].target, ast.Name):
            return self._refused_here("NestedComprehension", node)
        self.generic_visit(node)
        items = ast.copy_location(ast.Starred(node, ast.Load()), node)
        return ast.copy_location(ast.Tuple([items], ast.Load()), node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        message = node.msg if node.msg is not None else ast.copy_location(ast.Constant(""), node)
        return ast.copy_location(ast.Expr(self._call("asserted", node.test, message)), node)
