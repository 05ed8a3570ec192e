"""Rewrites a kernel's Python where Python cannot be overloaded, keeping every line where it is.

Assignments turn numbers into typed scalars, `and`/`or`/`not` and `min`/`max` work on tiles, loop indices are int32
scalars. Everything else is the user's own code, so breakpoints and tracebacks show the user's lines.
"""

from __future__ import annotations

import ast
import textwrap
from typing import Any

from ..kernel_function import KernelFunction

SUPPORT = "__tilewright__"
CALLS = {"min": "smaller", "max": "larger", "range": "loop_range", "len": "length"}


class _Rewriter(ast.NodeTransformer):
    def _call(self, name: str, *args: ast.expr) -> ast.expr:
        function = ast.Attribute(ast.Name(SUPPORT, ast.Load()), name, ast.Load())
        return ast.Call(function, list(args), [])

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        node.value = ast.copy_location(self._call("assigned", node.value), node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        left = ast.Name(node.target.id, ast.Load())
        value = self._call("assigned", ast.BinOp(left, node.op, node.value))
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is None or not isinstance(node.target, ast.Name):
            return node
        compile_time = "constexpr" in ast.unparse(node.annotation)
        value = self._call("compile_time" if compile_time else "assigned", node.value)
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        word = ast.Constant("and" if isinstance(node.op, ast.And) else "or")
        empty = ast.arguments([], [], None, [], [], None, [])
        later = [ast.Lambda(empty, value) for value in node.values]
        return ast.copy_location(self._call("boolean", word, *later), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return ast.copy_location(self._call("negated", node.operand), node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        empty = ast.arguments([], [], None, [], [], None, [])
        lefts = [node.left, *node.comparators[:-1]]
        parts = [
            ast.Lambda(empty, ast.Compare(left, [op], [right]))
            for left, op, right in zip(lefts, node.ops, node.comparators, strict=True)
        ]
        return ast.copy_location(self._call("boolean", ast.Constant("and"), *parts), node)

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = ast.copy_location(self._call("loop", node.iter), node.iter)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in CALLS:
            attribute = ast.Attribute(ast.Name(SUPPORT, ast.Load()), CALLS[node.func.id], ast.Load())
            node.func = ast.copy_location(attribute, node.func)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        message = node.msg if node.msg is not None else ast.Constant("")
        return ast.copy_location(ast.Expr(self._call("asserted", node.test, message)), node)


def python_function(function: KernelFunction, support: Any) -> Any:
    """The rewritten function, ready to be called with tiles."""
    tree = ast.parse(textwrap.dedent(function.raw_src))
    definition = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    definition.decorator_list = []
    definition.args.defaults = [ast.Constant(None) for _ in definition.args.defaults]
    for argument in (*definition.args.args, *definition.args.kwonlyargs):
        argument.annotation = None
    definition.body = [_Rewriter().visit(statement) for statement in definition.body]
    ast.increment_lineno(tree, function.first_line - 1)
    module = ast.fix_missing_locations(ast.Module([definition], []))
    namespace = function.outer_names() | {SUPPORT: support}
    exec(compile(module, function.path, "exec"), namespace)
    return namespace[definition.name]
