"""Whether an index can be negative: copies of boxes fill with zeros what lies before a tensor's start, loads do not.

In: a scalar. Out: the parameters, and sums of such, that must not be negative for the scalar not to be, or None where it
cannot be told.
Taken for granted: divisors are positive, and steps of loops that no number says otherwise of; what is loaded from memory to be
used as an index is not negative, nor is what a loop adds up to an index from what it loads, such as the distances from one block
of a list to the next. A variable that loops and branches change is not negative if no value is that it gets, where none that it
had before was.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from ..frozen import frozen
from ..ir.nodes import (
    Assign,
    Call,
    CallFunction,
    Effect,
    Expr,
    For,
    Literal,
    Note,
    Return,
    Statement,
    Use,
    Variable,
)
from ..ir.rewrite import substituted
from ..ir.structured import is_elementwise
from ..ir.walk import path_to, statements, top_statements, used_variables
from .affine import NotAffineError, Sum, Term, build, minus, plus, times
from .axis_info import axis_info
from .box_dimensions import Site
from .coordinates import Reader
from .facts import Facts
from .induction import Induction, Source

Needed = frozenset[Expr] | None  # what must not be negative, of parameters; None: unknown
NOTHING: frozenset[Expr] = frozenset()
MOST_ASSUMPTIONS = 2  # at once: variables that change each other are asked about in every order


@frozen
class Signs:
    """What is known of signs at one statement.

    Attributes:
      site: where the scalars are used.
      loops: the loop of every loop variable.
      assigned: the assignments of every other variable.
      assumed: variables that `tl.assume` promises not to be negative, wherever the statement is reached; and those of which
        it is to be shown for a value under the assumption that it holds for all earlier ones.
      loaded: variables whose values come from memory or from a reduction.
      readable, numeric: readers of scalars at the statement.
      assumptions: how many of `assumed` are to be shown.
    """

    site: Site
    loops: dict[Variable, For]
    assigned: dict[Variable, list[Assign]]
    assumed: frozenset[Variable]
    loaded: frozenset[Variable]
    readable: Reader
    numeric: Reader
    assumptions: int = 0

    @property
    def facts(self) -> Facts:
        """Of the kernel."""
        return self.site.facts

    @property
    def induction(self) -> Induction:
        """Of the kernel."""
        return self.site.induction

    @property
    def statement(self) -> Statement:
        """Where the scalars are used."""
        return self.site.statement

    def needed(self, expr: Expr) -> Needed:
        """The parameters, and sums of such, that must not be negative for `expr` not to be negative."""
        found = self._sum(self.readable.sum(expr))
        return self._by_numbers(self.numeric.sum(expr)) if found is None else found

    def _sum(self, terms: Sum) -> Needed:
        if any(term.coefficient < 0 for term in terms):
            return None
        return _all([self._factor(factor) for term in terms for factor in term.factors])

    def _factor(self, factor: Expr) -> Needed:
        match factor:
            case Literal(value=int(), reach=(least, _)):
                return NOTHING if least >= 0 else None
            case Use(variable=variable):
                return self._variable(variable)
            case Call():
                return self._call(factor)
            case CallFunction():
                inlined = _inlined(factor)
                return None if inlined is None else self.needed(inlined)
        return None

    def _variable(self, variable: Variable) -> Needed:
        if variable in self.assumed or variable in self.loaded:
            return NOTHING
        if variable in self.readable.parameters:
            return frozenset((Use(variable.type, variable),))
        if variable in self.loops:
            return self._loop_variable(self.loops[variable])
        definition = self.induction.definition(variable, self.statement)
        if definition is not None:
            return self.needed(definition)
        known = self.facts.environments.get(self.statement, {}).get(variable)
        if (known is not None and known.nonnegative) or self._adds_up_loaded(variable):
            return NOTHING
        return self._each_value(variable)

    def _each_value(self, variable: Variable) -> Needed:
        """What every assignment of a variable needs, if none of its earlier values was negative."""
        assignments = self.assigned.get(variable, [])
        if not assignments or not all(len(s.targets) == 1 and is_elementwise(s.value) for s in assignments):
            return None
        if self.assumptions == MOST_ASSUMPTIONS:
            return None
        found = []
        for assignment in assignments:
            there = find_signs(self.site.at(assignment))
            assumed = there.assumed | self.assumed | {variable}
            there = replace(there, assumed=assumed, assumptions=self.assumptions + 1)
            try:
                found.append(there.needed(assignment.value))
            except NotAffineError:
                return None
        return _all(found)

    def _adds_up_loaded(self, variable: Variable) -> bool:
        """Whether a loop changes a variable by numbers from memory, and by no other; or whether it is a total of such."""
        updates = [update for update, total in self.induction.totals.items() if variable in used_variables(total)]
        steps = [
            step for steps in self.induction.steps.values() for changed, step in steps.items()
            if changed is variable or step.update in updates
        ]  # fmt: skip
        return bool(steps) and all(self._is_from_memory(step.amount) for step in steps)

    def _is_from_memory(self, expr: Expr) -> bool:
        found: set[Variable] = set()
        pending = list(used_variables(expr))
        while pending:
            variable = pending.pop()
            if variable not in found:
                found.add(variable)
                pending += used_variables(self.facts.definitions.get(variable, Use(variable.type, variable)))
        return bool(found & self.loaded)

    def _loop_variable(self, loop: For) -> Needed:
        first = self._first(loop)
        return None if first is None else self.needed(first)

    def _first(self, loop: For) -> Expr | None:
        """The least value of a loop's variable, or less; behind the loop it may also hold what it held before."""
        inside = self.induction.versions[self.statement].get(loop.variable)
        if loop.previous is not None and (inside is None or inside.source is not Source.ASSIGNED):
            return None
        if not loop.descending:
            return self.induction.value_from(loop.start, loop, self.statement)
        stop = self.induction.value_from(loop.stop, loop, self.statement)
        # Multiples of a number that stay above another multiple of it stay above by so much.
        environment = self.facts.environments.get(self.statement, {})
        apart = gcd(*(axis_info(bound, environment).everywhere(0) for bound in (loop.start, loop.stop, loop.step)))
        return None if stop is None else Call(stop.type, "add", (stop, Literal(stop.type, apart)))

    def _call(self, call: Call) -> Needed:
        match call.op:
            case "program_id" | "num_programs":
                return NOTHING
            case "floordiv" | "mod" | "hint" | "shr":
                return self.needed(call.args[0])
            case "cast" if call.args[0].type.element.is_int():
                return self.needed(call.args[0])
            case "add" | "sub" | "mul":
                return self._of_sum(call)
            case "minimum":
                return _all([self.needed(arg) for arg in call.args])
            case "where":
                return _all([self.needed(arg) for arg in call.args[1:]])
            case "maximum":
                ways = (found for arg in call.args if (found := self.needed(arg)) is not None)
                return min(ways, key=len, default=None)  # one that is not negative is enough: that which needs least
        return None

    def _of_sum(self, call: Call) -> Needed:
        """The same as `needed` of a sum, difference or product, of which nothing is known where no reader takes it apart.

        Those that wrap around, in unsigned or in fewer bits, are factors of their own.
        """
        terms = self.readable.sum(call)
        if _has_factor(terms, call):
            return None
        found = self._sum(terms)
        if found is not None:
            return found
        terms = self.numeric.sum(call)
        return None if _has_factor(terms, call) else self._by_numbers(terms)

    def _by_numbers(self, terms: Sum) -> Needed:
        """The same for a sum that is read by numbers: its part that is arithmetic in parameters, if the rest is not negative."""
        terms = self._from_first_trip(terms)
        found, fixed = self._difference(terms), self._undecided(terms)
        if found is None and fixed and (rest := self._difference(minus(terms, fixed))) is not None:
            return rest | {build(fixed)}
        return found

    def _undecided(self, terms: Sum) -> Sum:
        """What is subtracted that is arithmetic in parameters, with what of such is added; nothing where numbers decide."""
        fixed = tuple(t for t in terms if all(_is_of_parameters(f, self.readable.parameters) for f in t.factors))
        subtracted = [term for term in fixed if term.coefficient < 0]
        if all(term.unknowns for term in subtracted):  # what has no factor in common makes the sum only greater
            factors = {factor for term in subtracted for factor in term.factors}
            fixed = tuple(term for term in fixed if term in subtracted or factors.intersection(term.factors))
        return fixed if subtracted and any(term.unknowns for term in fixed) else ()

    def _difference(self, terms: Sum) -> Needed:
        """The same for a sum of which what is subtracted may be a part of what is added."""
        terms = self._without_remainders(terms)
        for term in terms if any(term.coefficient < 0 for term in terms) else ():
            match term.factors:
                case (Call(op="minimum", args=args),) if term.coefficient > 0:
                    others, times_over = minus(terms, (term,)), (Term(term.coefficient),)
                    ways = [plus(others, times(times_over, self.numeric.sum(arg))) for arg in args]
                    return _all([self._difference(way) for way in ways])
        return self._sum(terms)

    def _without_remainders(self, terms: Sum) -> Sum:
        """A sum, or less than it: without differences of a divisor and a remainder by it, which are positive."""
        for term in terms:
            match term.factors:
                case (Call(op="mod", args=(_, divisor)),) if term.coefficient < 0:
                    distance = minus(self.numeric.sum(divisor), (replace(term, coefficient=1),))
                    rest = plus(terms, times((Term(term.coefficient),), distance))
                    if sum(t.coefficient < 0 for t in rest) < sum(t.coefficient < 0 for t in terms):
                        return self._without_remainders(rest)
        return terms

    def _from_first_trip(self, terms: Sum) -> Sum:
        """Every loop variable as its least value plus something that is not negative: `k - start` then is not."""
        for variable, loop in self.loops.items():
            use = Use(variable.type, variable)
            first = self._first(loop) if any(use in term.factors for term in terms) else None
            if first is None or use in {f for t in self.numeric.sum(first) for f in t.factors}:
                continue
            distance = (Term(1, (Call(use.type, "maximum", (Literal(use.type, 0), use)),)),)
            parts = [self._replaced(term, use, plus(self.numeric.sum(first), distance)) for term in terms]
            terms = plus(*parts)
        return terms

    def _replaced(self, term: Term, use: Use, value: Sum) -> Sum:
        if use not in term.factors:
            return (term,)
        factors = list(term.factors)
        factors.remove(use)
        return times((replace(term, factors=tuple(factors)),), value)


def find_signs(site: Site) -> Signs:
    """Prepares questions about signs at a statement."""
    kernel, facts, statement = site.kernel, site.facts, site.statement
    all_statements = list(statements(kernel.body))
    loops = {s.variable: s for s in all_statements if isinstance(s, For)}
    assigned: dict[Variable, list[Assign]] = {}
    for assignment in (s for s in all_statements if isinstance(s, Assign)):
        for variable in assignment.targets:
            assigned.setdefault(variable, []).append(assignment)
    always = (s for block, _ in path_to(kernel.body, statement) or () for s in top_statements(block))
    conditions = [s.call.args[0] for s in always if isinstance(s, Effect) and s.call.op == "assume"]
    loaded = {v for s in all_statements if isinstance(s, Assign) and not is_elementwise(s.value) for v in s.targets}
    once = frozenset(v for v in loaded if facts.assignments[v] == 1)
    promised = frozenset(v for condition in conditions for v in _promised(condition) if facts.assignments[v] <= 1)
    return Signs(site, loops, assigned, promised, once, site.reader(numeric=False), site.numeric)


def _inlined(call: CallFunction) -> Expr | None:
    """What a function returns that consists of assignments and a return; None for any other."""
    values: dict[Variable, Expr] = dict(zip(call.function.parameters, call.args, strict=True))
    for statement in call.function.body:
        match statement:
            case Assign(targets=(target,), value=value):
                values[target] = substituted(value, values)
            case Return(value=Expr() as value):
                return substituted(value, values)
            case Note():
                continue
            case _:
                return None
    return None


def _promised(condition: Expr) -> list[Variable]:
    """The variables that a condition promises not to be negative."""
    if not isinstance(condition, Call):
        return []
    if condition.op in ("and", "logical_and"):
        return [v for arg in condition.args for v in _promised(arg)]
    if condition.op not in ("ge", "gt", "le", "lt"):
        return []
    large, small = condition.args if condition.op in ("ge", "gt") else reversed(condition.args)
    least = -1 if condition.op in ("gt", "lt") else 0
    if isinstance(large, Use) and isinstance(small, Literal) and small.value >= least:
        return [large.variable]
    return []


def _is_of_parameters(expr: Expr, parameters: frozenset[Variable]) -> bool:
    """Whether an expression is arithmetic that the launcher can do."""
    match expr:
        case Use(variable=variable):
            return variable in parameters and not variable.type.is_pointer
        case Call(op="add" | "mul" | "floordiv", args=args):
            return all(_is_of_parameters(arg, parameters) for arg in args)
    return isinstance(expr, Literal)


def _has_factor(terms: Sum, expr: Expr) -> bool:
    return any(factor == expr for term in terms for factor in term.factors)


def _all(found: list[Needed]) -> Needed:
    result = NOTHING
    for needed in found:
        if needed is None:
            return None
        result |= needed
    return result
