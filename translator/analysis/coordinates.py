"""Reads index and pointer expressions as sums of positions in the tile (`affine.py`).

In: an expression, and what the scalar variables in it stand for. Out: its `Sum`; a pointer is a sum in which the pointer
parameter is a term of its own. Casts to wider integers, broadcasts, new axes, permutations and hints leave no trace;
`(start + tl.arange(0, SIDE)) % M` is `start % M` plus the position wherever M is a multiple of SIDE, which is a guard.
Where that is asked for, `(start + tl.arange(0, SIDE)) // 8` is `start // 8` plus positions that eight neighbours share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..ir.nodes import Call, Expr, Literal, Use, Variable
from ..ir.types import ValueType, padded
from ..language.dtypes import DType, PointerType, int1, int32, int64
from .affine import NotAffineError, Sum, Term, along, build, divide, plus, scalar_part, times
from .axis_info import AxisInfo, axis_info

NOT_AFFINE = "offsets are no sum of multiples of positions in the tile"
SIGNS = {"floordiv": "/", "mod": "%", "and": "&", "or": "|", "xor": "^", "shr": ">>"}
LARGEST = 32  # neighbours that share a position
Definition = Callable[[Variable], "Expr | None"]


def no_definition(_: Variable) -> None:
    """Every variable stands for itself."""


class Reader:
    """Reads expressions as sums.

    A scalar variable of the user's is a factor as it stands, unless it is a number, or its definition multiplies a parameter or
    one of `strides`, which must be told apart. With `numeric`, every definition is followed and numbers lose their names: sums
    are then equal when their expressions are.

    Attributes:
      guards: conditions, as scalars over parameters, under which what was read holds.
    """

    def __init__(
        self,
        parameters: frozenset[Variable] = frozenset(),
        definition: Definition = no_definition,
        environment: Mapping[Variable, AxisInfo] | None = None,
        numeric: bool = False,
        strides: frozenset[int] = frozenset(),
        bases: bool = False,
        shared_positions: bool = False,
    ) -> None:
        """`definition` gives the present value of a scalar variable, `environment` what is known of variables.

        With `bases`, a pointer that something is promised of is where a tensor starts, however it is computed. With
        `shared_positions`, neighbours may share one (`Term.sharing`).
        """
        self.parameters = parameters
        self.environment = {} if environment is None else environment
        self.numeric = numeric
        self.guards: dict[Expr, None] = {}
        self._definition = definition
        self._strides, self._bases, self._shared_positions = strides, bases, shared_positions
        self._read: dict[Variable, Sum] = {}

    def sum(self, expr: Expr) -> Sum:
        """The sum that an expression is.

        Raises:
          NotAffineError: when it is none.
        """
        if not expr.type.is_pointer and not expr.type.dtype.is_int():
            raise NotAffineError(NOT_AFFINE)
        match expr:
            case Literal():
                return self._literal(expr)
            case Use() if expr.type.is_tile:
                raise NotAffineError(
                    f"{expr.variable.stem} is loaded or computed, no function of positions in the tile"
                )
            case Use(variable=variable):
                if variable not in self._read:
                    self._read[variable] = self._scalar(expr)
                return self._read[variable]
            case Call():
                return self._call(expr)
        return self._factor(expr)

    def over_parameters(self, terms: Sum) -> bool:
        """Whether a sum consists of integer parameters, their quotients by numbers, and numbers."""
        return all(self.is_parameter(factor) for term in terms for factor in term.unknowns)

    def is_parameter(self, factor: Expr) -> bool:
        """Whether a factor is an integer parameter, or its quotient by a positive number."""
        match factor:
            case Use(variable=variable):
                return variable in self.parameters and not factor.type.is_pointer
            case Call(op="floordiv", args=(Use() as dividend, Literal(value=divisor))):
                return divisor > 0 and self.is_parameter(dividend)
        return False

    # ------------------------------------------------------------------------------------------------------ leaves

    def _literal(self, literal: Literal) -> Sum:
        value = int(literal.value)
        if not literal.trips and (self.numeric or literal.symbol is None or value in (0, 1)):
            return (Term(value),) if value else ()
        element = int32 if -(1 << 31) <= value < 1 << 31 else int64
        return (Term(1, (Literal(ValueType(element), value, symbol=literal.symbol),)),)

    def _scalar(self, use: Use) -> Sum:
        own = (Term(1, (use,)),)
        definition = None if use.variable in self.parameters else self._definition(use.variable)
        if definition is None or (not use.type.is_pointer and not _is_plain(use.type.dtype)):
            return own
        terms = self.sum(definition)
        number = not any(term.unknowns for term in terms)
        return terms if self.numeric or number or use.type.is_pointer or self._holds_strides(terms) else own

    def _holds_strides(self, terms: Sum) -> bool:
        """Whether a sum must be taken apart to find the strides in it."""
        if any(f for term in terms for f in term.unknowns) and self.over_parameters(terms):
            return True
        for term in terms:
            parameters = [factor for factor in term.factors if self.is_parameter(factor)]
            if parameters and (len(term.factors) > 1 or term.coefficient != 1):
                return True
            if term.unknowns and any(term.number % stride == 0 for stride in self._strides):
                return True
        return False

    def _factor(self, expr: Expr) -> Sum:
        """An expression that is no sum and no product, as a scalar."""
        if not isinstance(expr, Call):
            if expr.type.is_tile:
                raise NotAffineError(NOT_AFFINE)
            return (Term(1, (expr,)),)
        if not expr.type.is_tile and (not self.numeric or not _integers(expr)):
            return (Term(1, (expr,)),)
        if not _integers(expr):
            raise NotAffineError(f"{NOT_AFFINE} ({expr.op})")
        sums = [self.sum(arg) for arg in expr.args]
        if any(term.lane is not None for terms in sums for term in terms):
            raise NotAffineError(f"{NOT_AFFINE} ({SIGNS.get(expr.op, expr.op)})")
        args = tuple(build(terms, arg.type.dtype) for terms, arg in zip(sums, expr.args, strict=True))
        return (Term(1, (replace(expr, type=expr.type.with_shape(()), args=args),)),)

    # --------------------------------------------------------------------------------------------------- operations

    def _call(self, call: Call) -> Sum:
        plain = call.type.is_pointer or _is_plain(call.type.dtype)
        match call.op:
            case "add" | "ptr_add" if plain:
                return plus(self.sum(call.args[0]), self.sum(call.args[1]))
            case "sub" if plain:
                return plus(self.sum(call.args[0]), times((Term(-1),), self.sum(call.args[1])))
            case "neg" if plain:
                return times((Term(-1),), self.sum(call.args[0]))
            case "mul" if plain:
                return times(self.sum(call.args[0]), self.sum(call.args[1]))
            case "cast" if _widens(call):
                return self.sum(call.args[0])
            case "hint" if self._bases and call.type.is_pointer and not call.type.is_tile:
                return (Term(1, (call,)),)
            case "broadcast" | "hint":
                return self.sum(call.args[0])
            case "arange":
                start = self._literal(Literal(ValueType(int32), call.attribute("start")))
                return start if call.type.shape[0] == 1 else (*start, Term(1, (), 0))
            case "expand_dims" | "permute" | "reshape":
                return _moved(self.sum(call.args[0]), _axes(call))
            case "mod" if plain and call.type.is_tile:
                return self._mod(call)
            case "floordiv" | "shr" if plain and call.type.is_tile and self._shared_positions:
                return self._shared(call)
        return self._factor(call)

    def _shared(self, call: Call) -> Sum:
        """`(start + position) // number`, of a start that is a multiple of the number and not below zero."""
        terms, by = self.sum(call.args[0]), self.sum(call.args[1])
        lanes = tuple(term for term in terms if term.lane is not None)
        if len(lanes) != 1 or lanes[0].lane is None or lanes[0] != Term(1, (), lanes[0].lane):
            return self._factor(call)
        changes = any(
            isinstance(factor, Literal) and factor.trips is not None for term in by for factor in term.factors
        )
        if len(by) != 1 or by[0].unknowns or by[0].lane is not None or changes or not 0 < by[0].number < LARGEST:
            return self._factor(call)
        number = by[0].number if call.op == "floordiv" else 1 << by[0].number
        side, scalar = int(call.type.shape[lanes[0].lane]), call.type.with_shape(())
        start = build(scalar_part(terms), scalar.dtype)
        known = axis_info(start, self.environment)
        if number >= side or side % number or known.divisibility[0] % number:
            return self._factor(call)
        whole, rest = divide(scalar_part(terms), (Term(number),))
        if rest:
            quotient = Call(scalar, call.op, (start, build(by, scalar.dtype)))
            whole = (Term(1, (quotient,)),)
        return (*whole, replace(lanes[0], sharing=number))

    def _mod(self, call: Call) -> Sum:
        left, modulus = self.sum(call.args[0]), self.sum(call.args[1])
        lanes = tuple(term for term in left if term.lane is not None)
        if not lanes or any(term.lane is not None for term in modulus):
            return self._factor(call)
        (lane,) = lanes if len(lanes) == 1 else (None,)
        if (
            lane is None
            or lane.lane is None
            or along(left, lane.lane) != (Term(1),)
            or not self.over_parameters(modulus)
        ):
            raise NotAffineError(f"{NOT_AFFINE} (%)")
        side, start = int(call.type.shape[lane.lane]), build(scalar_part(left))
        if padded(side) != side or axis_info(start, self.environment).divisibility[0] % side:
            raise NotAffineError(f"what is taken modulo does not start at a known multiple of {side}")
        self._require_multiple(modulus, side)
        scalar = call.type.with_shape(())
        wrapped = Call(scalar, "mod", (build(scalar_part(left), scalar.dtype), build(modulus, scalar.dtype)))
        return (Term(1, (wrapped,)), lane) if scalar_part(left) else (lane,)

    def _require_multiple(self, terms: Sum, side: int) -> None:
        size = build(terms)
        if axis_info(size, self.environment).divisibility[0] % side == 0:
            return
        if self.over_parameters(terms) and not any(term.unknowns for term in terms):
            raise NotAffineError(f"the modulus is no multiple of {side}")
        rest = Call(size.type, "mod", (size, Literal(size.type, side)))
        self.guards[Call(ValueType(int1), "eq", (rest, Literal(size.type, 0)))] = None


def _is_plain(element: DType) -> bool:
    """Whether arithmetic in this type is that of integers, because overflow is undefined."""
    return element.is_int_signed() and element.bits >= 32


def _integers(call: Call) -> bool:
    return bool(call.args) and all(
        not isinstance(arg.type.element, PointerType) and arg.type.element.is_int() and not arg.type.element.is_bool()
        for arg in call.args
    )


def _widens(call: Call) -> bool:
    wanted, source = call.type.element, call.args[0].type.element
    if isinstance(wanted, PointerType) or isinstance(source, PointerType) or not source.is_int():
        return False
    return wanted.is_int_signed() and (wanted.bits > source.bits or wanted == source)


def _axes(call: Call) -> dict[int, int]:
    """Where a new axis, a permutation or a reshape puts the axes that are longer than 1."""
    before, after = call.args[0].type.shape, call.type.shape
    if call.op == "expand_dims":
        return {axis: axis + (axis >= call.attribute("axis")) for axis in range(len(before))}
    if call.op == "permute":
        return {axis: place for place, axis in enumerate(call.attribute("order"))}
    wide_before, wide_after = ([axis for axis, side in enumerate(shape) if side != 1] for shape in (before, after))
    if [before[axis] for axis in wide_before] != [after[axis] for axis in wide_after]:
        raise NotAffineError("offsets are reshaped")
    return dict(zip(wide_before, wide_after, strict=True))


def _moved(terms: Sum, axes: dict[int, int]) -> Sum:
    return tuple(term if term.lane is None else replace(term, lane=axes[term.lane]) for term in terms)
