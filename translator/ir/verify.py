"""The rules of the typed kernel, by name: what every stage after the frontend relies on.

In: a `Kernel`. Out: the violations, each a rule's name with the statement that breaks it. A violation is a fault of the
translator, never of the user's kernel. `TILEWRIGHT_VERIFY=1` checks every translation, behind the frontend and behind
each pass of `translator/preparing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..frozen import frozen
from .expression_rules import expression_problems
from .nodes import (
    Assign,
    Call,
    Combine,
    DeviceFunction,
    Effect,
    For,
    If,
    Inlined,
    Kernel,
    Return,
    Statement,
    Variable,
    While,
)
from .printer import print_expr
from .structured import is_elementwise, reads_what_it_writes
from .walk import assigned_variables, bodies, expressions, statements, subexpressions, used_variables

Block = tuple[Statement, ...]


class InvalidKernelError(Exception):
    """A typed kernel that breaks rules: a fault of the translator. `violations` lists them."""

    def __init__(self, kernel: Kernel, violations: tuple[Violation, ...], after: str) -> None:
        """`str()` of it is the list, a line each, under the stage or pass that the kernel comes from, if that is known."""
        self.violations = violations
        where = f" after {after}" if after else ""
        title = f"{kernel.name} breaks {len(violations)} rules of docs/ir.md{where}:"
        lines = [title, *(f"  {one}" for one in violations)]
        super().__init__("\n".join(lines))


@frozen
class Violation:
    """One broken rule: its name, what is wrong, and the line of the statement in the user's file."""

    rule: str
    detail: str
    line: int

    def __str__(self) -> str:
        return f"{self.rule} (line {self.line}): {self.detail}"


def verify(kernel: Kernel, after: str = "") -> None:
    """Checks every rule; `after` is the stage or pass that the kernel comes from.

    Raises:
      InvalidKernelError: when one does not hold.
    """
    violations = find_violations(kernel)
    if violations:
        raise InvalidKernelError(kernel, violations, after)


def find_violations(kernel: Kernel) -> tuple[Violation, ...]:
    """What is wrong with the kernel and its device functions, in source order."""
    found: list[Violation] = []
    parameters = {parameter.variable for parameter in kernel.parameters}
    for body, given in [(kernel.body, parameters), *((f.body, set(f.parameters)) for f in kernel.functions)]:
        found += _statement_violations(body)
        found += _undefined_uses(body, given)
        found += _changed_parameters(body, given)
    found += [violation for function in kernel.functions for violation in _wrong_returns(function)]
    return tuple(found)


# ------------------------------------------------------------------------------------------------- single statements


def _assigned_type(statement: Statement) -> Iterator[str]:
    """A variable is assigned values of its own type."""
    if isinstance(statement, Assign) and len(statement.targets) == 1 and statement.target.type != statement.value.type:
        yield f"{statement.target.name}: {statement.target.type} = a value of type {statement.value.type}"


def _single_target(statement: Statement) -> Iterator[str]:
    """Only a reduction has several results, one per operand."""
    if not isinstance(statement, Assign) or len(statement.targets) == 1:
        return
    value = statement.value
    if not isinstance(value, Call) or value.op != "reduce" or len(value.args) != len(statement.targets):
        yield f"{len(statement.targets)} targets of {print_expr(value)}"
        return
    for target, operand in zip(statement.targets, value.args, strict=True):
        if target.type != value.type.with_element(operand.type.element):
            yield f"{target.name}: {target.type} takes a result reduced from {operand.type}"


def _stands_alone(statement: Statement) -> Iterator[str]:
    """Structured operations are the whole right side of an assignment, or an effect."""
    for expr in expressions(statement):
        alone = isinstance(statement, (Assign, Effect))
        inner = (part for child in getattr(expr, "args", ()) for part in subexpressions(child)) if alone else ()
        for part in inner if alone else subexpressions(expr):
            if not is_elementwise(part):
                yield f"{print_expr(part)} stands inside an expression"


def _own_results(statement: Statement) -> Iterator[str]:
    """No reduction reads its results, no load other elements of its result than the one that it loads."""
    if isinstance(statement, Assign):
        for target in statement.targets:
            if reads_what_it_writes(statement, target):
                yield f"{target.name} is read by the statement that assigns it"


def _effects_are_structured(statement: Statement) -> Iterator[str]:
    """An effect is a call with an effect."""
    if isinstance(statement, Effect) and is_elementwise(statement.call):
        yield f"{print_expr(statement.call)} has no effect"


def _scalar_conditions(statement: Statement) -> Iterator[str]:
    """Branches and loops test a scalar of type int1."""
    if isinstance(statement, (If, While)) and str(statement.condition.type) != "i1":
        yield f"the condition has the type {statement.condition.type}"


def _loop_bounds(statement: Statement) -> Iterator[str]:
    """Bounds and step are scalars of the loop variable's integer type."""
    if not isinstance(statement, For):
        return
    type_ = statement.variable.type
    if type_.is_tile or type_.is_pointer or not type_.dtype.is_int():
        yield f"the loop variable has the type {type_}"
    for bound in (statement.start, statement.stop, statement.step):
        if bound.type != type_:
            yield f"a bound has the type {bound.type}, the variable {type_}"


def _typed_expressions(statement: Statement) -> Iterator[str]:
    """Every expression follows the rule of its operation."""
    for expr in expressions(statement):
        for part in subexpressions(expr):
            for problem in expression_problems(part):
                yield f"{problem} in {print_expr(part)}"


STATEMENT_RULES: dict[str, Callable[[Statement], Iterator[str]]] = {
    "assigned-type": _assigned_type,
    "single-target": _single_target,
    "stands-alone": _stands_alone,
    "own-results": _own_results,
    "effects": _effects_are_structured,
    "scalar-conditions": _scalar_conditions,
    "loop-bounds": _loop_bounds,
    "typed-expressions": _typed_expressions,
}


def _statement_violations(block: Block) -> Iterator[Violation]:
    for statement in statements(block):
        for name, rule in STATEMENT_RULES.items():
            for detail in rule(statement):
                yield Violation(name, detail, statement.origin.span.line)
        for combine in _combinations(statement):
            yield from _statement_violations(combine.body)
            yield from _undefined_uses(combine.body, {*combine.left, *combine.right})


def _combinations(statement: Statement) -> Iterator[Combine]:
    if isinstance(statement, Assign) and isinstance(statement.value, Call) and statement.value.op == "reduce":
        yield statement.value.attribute("combine")


# ------------------------------------------------------------------------------------------------------ whole bodies


def _undefined_uses(block: Block, given: set[Variable]) -> list[Violation]:
    """defined: every variable is assigned on each way to its use. A loop's variable counts after the loop, too."""
    found: list[Violation] = []
    _defined_after(block, frozenset(given), found)
    return found


def _defined_after(block: Block, defined: frozenset[Variable], found: list[Violation]) -> frozenset[Variable] | None:
    """The variables that are defined after a block; None when the block returns."""
    for statement in block:
        before = defined
        if isinstance(statement, While):
            before = _defined_after(statement.prelude, defined, found) or defined
        for expr in expressions(statement):
            for variable in used_variables(expr):
                if variable not in before:
                    found.append(Violation("defined", f"{variable.name} may be undefined", statement.origin.span.line))
        after = _after_statement(statement, before, found)
        if after is None:
            return None
        defined = after
    return defined


def _after_statement(
    statement: Statement, before: frozenset[Variable], found: list[Violation]
) -> frozenset[Variable] | None:
    if isinstance(statement, Return):
        return None
    if isinstance(statement, If):
        then = _defined_after(statement.then, before, found)
        otherwise = _defined_after(statement.otherwise, before, found)
        if then is None or otherwise is None:
            return otherwise if then is None else then
        return then & otherwise
    if isinstance(statement, Inlined):
        return _defined_after(statement.body, before, found)
    inside = before | set(assigned_variables(statement))
    if isinstance(statement, (For, While)):
        _defined_after(statement.body, inside, found)
    return inside


def _changed_parameters(block: Block, given: set[Variable]) -> Iterator[Violation]:
    """constant-parameters: nothing assigns to a parameter, or to a loop's variable inside the loop."""
    for statement in block:
        if isinstance(statement, Assign):
            for variable in set(statement.targets) & given:
                yield Violation("constant-parameters", f"{variable.name} is assigned", statement.origin.span.line)
        inner = given | {statement.variable} if isinstance(statement, For) else given
        for body in bodies(statement):
            yield from _changed_parameters(body, inner)


def _wrong_returns(function: DeviceFunction) -> Iterator[Violation]:
    """returned-type: a device function returns a scalar of its result type on every way."""
    line = function.origin.span.line
    if _defined_after(function.body, frozenset(function.parameters), []) is not None:
        yield Violation("returned-type", f"{function.name} may end without a value", line)
    for statement in statements(function.body):
        if isinstance(statement, Return) and (statement.value is None or statement.value.type != function.result):
            yield Violation("returned-type", f"{function.name} returns another type than {function.result}", line)
