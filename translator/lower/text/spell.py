"""Expressions as CUDA C++ text, at one element of a tile.

In: an expression and the `Point` at which it is evaluated. Out: text with the parentheses that C needs and no others.
The spelling of every operation comes from the op table; this file only places operands.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from ...analysis.long_computations import invites_branch, takes_long
from ...analysis.ranges import fits, never_overflows
from ...diagnostics import CompilationError
from ...frozen import frozen
from ...ir.c_operators import ATOM, UNARY
from ...ir.nodes import Assign, Call, CallFunction, DeviceFunction, Expr, Literal, Use, Variable
from ...ir.symbols import AsFloat, Name, Symbol, precedence, spelled
from ...ir.walk import MOVES, used_variables
from ...language.dtypes import DType, PointerType, int32
from ...ops.casts import TOWARD_ZERO, cuda_cast, rounded
from ...ops.registry import OPS
from ...schedule.tiles.paths import Axes
from .integers import (
    NARROW,
    WIDENING,
    comes_to_nothing,
    has_product,
    integer_as_float,
    is_int_in_c,
    is_integer,
    is_narrow,
    is_widened,
    unchanged_operand,
    without_cast,
)
from .literals import CONVERSIONS, literal_text
from .needs import Used
from .operators import INFIX, Text, added, placed, widened
from .point import Point, PointBit

WRAPS = {"wrap_add": "+", "wrap_sub": "-", "wrap_mul": "*"}
WRAPPED = {"add": "wrap_add", "sub": "wrap_sub", "neg": "wrap_sub", "mul": "wrap_mul"}
C_CONVERTS = frozenset(
    ("add", "sub", "mul", "div", "lt", "le", "gt", "ge")
)  # of a float and an integer it makes two floats
COMMON = frozenset(("lt", "le", "gt", "ge", "floordiv", "mod", "shr", "and"))  # neighbours may share the result


@frozen
class Arithmetic:
    """What operators alone do not say.

    Attributes:
      wrapping: operations that overflow, which C++ leaves undefined.
      doubles: the constants in fp64.
      small: offsets of pointers that do not overflow, as a launch has made sure.
    """

    wrapping: frozenset[Call] = frozenset()
    doubles: frozenset[str] = frozenset()
    small: frozenset[Expr] = frozenset()


class Words(Protocol):
    """What the speller leaves to a lowering: how variables, functions, places and indices are called there."""

    def variable_text(self, variable: Variable, point: Point | None, wide: bool) -> Text:
        """A variable at a point, None for scalars."""

    def coordinate(self, point: Point) -> Text:
        """The coordinate of a point with one axis."""

    def function_name(self, function: DeviceFunction) -> str:
        """The name of a device function."""

    def launch_word(self, op: str, axis: int) -> str:
        """A program's index, or the number of programs, along an axis, as what has it: CUDA's word is unsigned."""

    def launch_int(self, op: str, axis: int) -> str:
        """The same as an int."""

    def infinity(self, negative: bool) -> str:
        """An infinity of fp32."""

    def may_stay_unused(self, variable: Variable) -> bool:
        """Whether the compiler is silent about a variable that nothing reads."""

    def points_to_const(self, pointer: Variable) -> bool:
        """Whether a pointer points to what is only read."""

    def first_of_vector(self, call: Call, point: Point) -> tuple[Point, str] | None:
        """Where to find once what neighbours have in common, and what to add to their remainders."""


class Speller:
    """Spells expressions."""

    def __init__(
        self,
        definitions: Mapping[Variable, Expr],
        written_out: Mapping[Variable, Expr],
        arithmetic: Arithmetic,
        used: Used,
        words: Words,
    ) -> None:
        """What is known, and who spells what the speller does not.

        Args:
          definitions: the values of variables that are assigned once.
          written_out: those of variables that have no name in the text.
          arithmetic: what must be spelled otherwise than the operators would have it.
          used: where what is spelled leaves what it needs.
          words: the lowering.
        """
        self.definitions, self.written_out = definitions, written_out
        self.arithmetic, self.used, self._words = arithmetic, used, words
        self._called: Mapping[Expr, Variable] = {}
        self._calls: set[Variable] = set()
        self.tiles: Mapping[Expr, tuple[Variable, Assign]] = {}
        self._elements: dict[Expr, Axes[PointBit]] | None = None
        self._assigned: Set[Variable] = frozenset()

    @contextmanager
    def calling(
        self, names: Mapping[Expr, Variable], tiles: Mapping[Expr, tuple[Variable, Assign]]
    ) -> Iterator[Set[Variable]]:
        """Has scalars called by variables; yields those of them that were. `tiles` have names where elements are named."""
        outer = self._called, self._calls, self.tiles
        self._called, self._calls, self.tiles = names, set(), tiles
        yield self._calls
        self._called, self._calls, self.tiles = outer

    @contextmanager
    def naming_elements(self) -> Iterator[Mapping[Expr, Axes[PointBit]]]:
        """Has elements of the `tiles` called by their variables; yields which of them were, and at which coordinates.

        One variable stands for one element: what is read elsewhere as well is written out there.
        """
        outer, self._elements = self._elements, {}
        yield self._elements
        self._elements = outer

    @contextmanager
    def assigning(self, statement: Assign) -> Iterator[None]:
        """While a statement is spelled, each element of its targets is read at its own place: the others may be new."""
        read = set(used_variables(statement.value))
        outer, self._assigned = self._assigned, {one for one in statement.targets if one.type.is_tile and one in read}
        yield
        self._assigned = outer

    def definition(self, expr: Expr, point: Point) -> str:
        """The text of an element that has a name, written out."""
        return self._call(expr, point, False).text if isinstance(expr, Call) else self.text(expr, point)

    def text(self, expr: Expr, point: Point | None = None, wide: bool = False) -> str:
        """The text of an expression as a whole statement's right side, or as an argument."""
        return self.spell(expr, point, wide).text

    def spell(self, expr: Expr, point: Point | None = None, wide: bool = False) -> Text:
        """The text of an expression; `wide` multiplies integers in 64 bits (offsets of pointers)."""
        match expr:
            case Literal():
                return self._literal(expr)
            case Use(variable=variable):
                return self._words.variable_text(variable, point if expr.type.is_tile else None, wide)
            case CallFunction():
                self.used.functions.setdefault(expr.function, expr)
                args = ", ".join(self.text(arg, self._down(expr, arg, point)) for arg in expr.args)
                return Text(f"{self._words.function_name(expr.function)}({args})")
            case Call() if (called := self._called.get(expr)) is not None:
                self._calls.add(called)
                return self._words.variable_text(called, None, wide)
            case Call() if point is not None and self._has_element_named(expr, point):
                return self._words.variable_text(self.tiles[expr][0], None, wide)
            case Call():
                return self._call(expr, point, wide)
        raise CompilationError(f"cannot write {type(expr).__name__}", expr.span)

    def _has_element_named(self, expr: Call, point: Point) -> bool:
        if self._elements is None or expr not in self.tiles:
            return False
        return self._elements.setdefault(expr, point.axes) == point.axes

    def takes_long(self, expr: Expr) -> bool:
        """The same as the function, but for what has a name."""
        return takes_long(expr, self.tiles if self._elements is not None else ())

    def offset(self, expr: Expr, point: Point | None) -> Text:
        """The text of an offset of a pointer, in 64 bits where it might overflow."""
        return self.spell(expr, point, wide=self.offset_is_wide(expr))

    def offset_is_wide(self, expr: Expr) -> bool:
        """Whether an offset of a pointer might overflow in 32 bits."""
        return expr not in self.arithmetic.small and not never_overflows(expr, self.definitions, self.written_out)

    def _down(self, call: Expr, operand: Expr, point: Point | None) -> Point | None:
        if point is None or not operand.type.is_tile:
            return None
        below = point.operand(call, operand)
        if below is None:
            raise ValueError(f"{call.type} and {operand.type} do not hold their elements in the same places")
        return below

    def _literal(self, literal: Literal) -> Text:
        element = literal.type.element
        if isinstance(element, PointerType):
            return Text("nullptr")
        if literal.symbol is not None and is_integer(element):
            number = None if literal.trips else int(literal.value)
            inner = symbol_text(literal.symbol, number)
            if element.short == "i32":
                return inner
            narrow = inner if element.short == "i64" else None
            return Text(f"static_cast<{element.cuda}>({inner.text})", number=number, narrow=narrow)
        text = literal_text(literal.value, element, literal.base, self._words.infinity)
        # Of infinity and NaN, CUDA's words make no constant of the file.
        is_number = not element.is_floating() or math.isfinite(rounded(float(literal.value), element))
        match literal.symbol:
            case AsFloat(integer=integer) if element.name in CONVERSIONS:
                return Text(f"{CONVERSIONS[element.name]}({spelled(integer)})")
            case Name(word=word) if is_number and element.short in ("fp32", "fp64", "i1"):
                is_double = word in self.arithmetic.doubles and element.name == "fp32"
                return Text(f"static_cast<float>({word})" if is_double else word)
        number = int(literal.value) if is_integer(element) else None
        precedence = UNARY if text.startswith("-") else ATOM
        digits = text.removesuffix("LL")
        narrow = Text(digits, precedence, number=number) if digits.isdecimal() and digits != text else None
        return Text(text, precedence, number=number, narrow=narrow)

    def _call(self, call: Call, point: Point | None, wide: bool) -> Text:
        below = [self._down(call, arg, point) for arg in call.args]
        match call.op:
            case "program_id" | "num_programs":
                index = call.op, call.attribute("axis")
                as_int, word = self._words.launch_int(*index), self._words.launch_word(*index)
                return Text(as_int, uncast="" if word == as_int else word)
            case "arange":
                return self._arange(call, point)
            case op if op in MOVES or op == "select":
                return self.spell(call.args[0], below[0], wide)
            case "cast":
                return self._cast(call, below[0], wide)
            case "ptr_add":
                left = self.spell(call.args[0], below[0])
                right = self.offset(call.args[1], below[1])
                moved = added((left.within(12, "+"), right.within(12, "+")))
                return left if right.number == 0 else Text(moved, 12, "+")
        shared = self._in_common(call, point)
        if shared is None:
            return self._operation(call, below, wide)
        start, further = shared
        first = self._operation(call, [self._down(call, arg, start) for arg in call.args], wide)
        if not further:
            return first
        return Text(f"{first.within(12, '+')} + {further}", 12, "+", wide=first.wide, is_int=first.is_int)

    def _in_common(self, call: Call, point: Point | None) -> tuple[Point, str] | None:
        """See `Words.first_of_vector`; None, too, for what is made of a tile that the statement is changing."""
        if point is None or not _may_be_common(call):
            return None
        if self._assigned and not self._assigned.isdisjoint(used_variables(call)):
            return None
        return self._words.first_of_vector(call, point)

    def _arange(self, call: Call, point: Point | None) -> Text:
        if point is None:
            raise CompilationError("tl.arange outside a tile", call.span)
        coordinate = self._words.coordinate(point)
        start = call.attribute("start")
        if coordinate.text == "0":
            return Text(str(start), UNARY if start < 0 else ATOM, number=start)
        if start:
            coordinate = Text(added((coordinate.within(12), str(start))), 12, "+")
        return coordinate

    def _cast(self, call: Call, below: Point | None, wide: bool) -> Text:
        source, wanted = call.args[0].type.element, call.type.element
        widening = wide and isinstance(source, DType) and isinstance(wanted, DType) and wanted.short == "i64"
        if widening and isinstance(source, DType) and source.short == "i32" and has_product(call.args[0]):
            return self.spell(call.args[0], below, wide=True)
        index = _launch_call(call.args[0]) if isinstance(wanted, DType) and wanted.short == "i64" else None
        if index:
            # As an int, it makes cheaper products with ints of 64 bits than as an unsigned number.
            as_int, word = self._words.launch_int(*index), self._words.launch_word(*index)
            return replace(widened(Text(word)), uncast="" if word == as_int else as_int)
        if isinstance(wanted, PointerType) and any(
            v.type.is_pointer and self._words.points_to_const(v) for v in used_variables(call.args[0])
        ):
            wanted = PointerType(wanted.element_ty, const=True)
        spelling = cuda_cast(source, wanted, call.attribute("rounding"), bool(call.attribute("bitcast")))
        if spelling.startswith(TOWARD_ZERO):
            self.used.helpers.setdefault(TOWARD_ZERO)
        operand = self.spell(call.args[0], below)
        number = operand.number if is_integer(wanted) else None
        return replace(placed(spelling, {"x": operand}), number=number, uncast=operand.text if is_widened(call) else "")

    def as_int(self, expr: Expr, point: Point | None) -> Text | None:
        """An integer narrower than int as C has it, in int, where that is the same number; None for anything else."""
        if not is_narrow(expr.type.element):
            return None
        if isinstance(expr, Literal):
            return without_cast(expr)
        if not isinstance(expr, Call) or not fits(expr, self.definitions):
            return None
        below = [self._down(expr, arg, point) for arg in expr.args]
        source = expr.args[0].type.element
        if expr.op == "cast" and isinstance(source, DType) and (source.bits < 32 or source == int32):
            return self.as_int(expr.args[0], below[0]) or self.spell(expr.args[0], below[0])
        return self._operation(expr, below, False, narrowed=False) if expr.op in NARROW else None

    def _operation(self, call: Call, below: list[Point | None], wide: bool, narrowed: bool = True) -> Text:
        op = OPS[call.op]
        element = call.args[0].type.element if call.args else call.type.element
        if call.op == "where":
            element = call.args[1].type.element
        self.used.ops.setdefault(call.op)
        if op.helper and (called := re.search(rf"\b{op.helper}\w*", op.spelling(element))):
            self.used.helpers.setdefault(called[0])
        keep_wide = wide and call.op in ("add", "sub", "mul") and element == int32
        keeps = [keep_wide and self._needs_wide(call, arg) for arg in call.args]
        operands = [self.spell(*operand) for operand in zip(call.args, below, keeps, strict=True)]
        if is_integer(element) and (same := unchanged_operand(call.op, operands)) is not None:
            return operands[same]
        if is_integer(element) and comes_to_nothing(call.op, operands) and self._leaves_nothing_unused(call):
            return Text("0", number=0)
        if not wide and call in self.arithmetic.wrapping:
            return self._wrapped(call, operands)
        if INFIX.match(op.spelling(element)):  # C computes in int what is narrower
            whole = [self.as_int(arg, at) for arg, at in zip(call.args, below, strict=True)]
            operands = [text or narrow for text, narrow in zip(whole, operands, strict=True)]
        named = [integer_as_float(arg) for arg in call.args] if call.op in C_CONVERTS else []
        if named.count(None) == 1:  # C makes a float of an integer beside one
            operands = [symbol_text(one) if one else operand for one, operand in zip(named, operands, strict=True)]
        if keep_wide and call.op == "mul" and not any(operand.wide for operand in operands):
            operands[0] = widened(operands[0])
        if call.op in WIDENING and is_widened(call.args[1]) and (narrow := operands[1].narrow):
            # C widens it, as the other operand has 64 bits. A sum in it was made in 32: it stays one, in parentheses.
            operands[1] = replace(narrow, operator="")
        elif call.op in WIDENING and is_widened(call.args[0]) and not is_widened(call.args[1]):
            narrow = operands[0].narrow if INFIX.match(op.spelling(element)) else None
            operands[0] = replace(narrow, operator="") if narrow else operands[0]
        if call.op == "add" and element.is_int() and operands[1].operator == "+":
            # Sums of integers need no parentheses: (a + b) + c and a + (b + c) are the same number.
            operands[1] = replace(operands[1], precedence=13)
        if call.op == "where" and isinstance(element, DType) and any(map(invites_branch, call.args[1:])):
            self.used.helpers.setdefault("choose")
            type_ = f"<{element.cuda}>" if element.is_int() else ""  # C computes in int what is narrower
            return Text(f"choose{type_}({', '.join(operand.text for operand in operands)})")
        text = placed(op.spelling(element), dict(zip(op.parameters, operands, strict=True)))
        result = call.type.element
        if narrowed and call.op in NARROW and isinstance(result, DType) and is_narrow(result):
            return Text(f"static_cast<{result.cuda}>({text.text})")
        return replace(text, is_int=True) if is_int_in_c(call, op.spelling(element), text, operands) else text

    def _leaves_nothing_unused(self, call: Call) -> bool:
        """Whether all that a call reads may stay without use, if the call is not written."""
        pending, seen = set(used_variables(call)), set[Variable]()
        while pending:
            variable = pending.pop()
            if variable in self.written_out and variable not in seen:
                pending |= set(used_variables(self.written_out[variable]))
            elif variable not in self.written_out and not self._words.may_stay_unused(variable):
                return False
            seen.add(variable)
        return True

    def _needs_wide(self, call: Call, operand: Expr) -> bool:
        """Whether an operand of a sum or product in 64 bits is computed in as many: one that might overflow in 32.

        So is a product that is a term of a sum, since one instruction multiplies and adds to 64 bits.
        """
        term = call.op != "mul" and isinstance(operand, Call) and operand.op == "mul"
        return term or self.offset_is_wide(operand)

    def _wrapped(self, call: Call, operands: list[Text]) -> Text:
        """A sum, difference or product that wraps where it overflows."""
        name, texts = WRAPPED[call.op], [operand.text for operand in operands]
        self.used.helpers.setdefault(name)
        return Text(f"{name}<{call.type.dtype.cuda}>({', '.join(texts if len(texts) > 1 else ['0', *texts])})")


def symbol_text(symbol: Symbol, number: int | None = None) -> Text:
    """An integer's name or expression; `number` is its value, where that is the same in all trips."""
    binding = precedence(symbol)
    return Text(spelled(symbol), binding, {12: "+", 13: "*"}.get(binding, ""), number)


def _may_be_common(call: Call) -> bool:
    """Whether a call compares integers, or divides them: neighbours may have the answer in common."""
    element = call.args[1].type.element if len(call.args) == 2 else None
    return call.op in COMMON and isinstance(element, DType) and element.is_int()


def _launch_call(expr: Expr) -> tuple[str, int] | None:
    """(operation, axis) of an expression that is a program's index or their number."""
    known = isinstance(expr, Call) and expr.op in ("program_id", "num_programs")
    return (expr.op, expr.attribute("axis")) if known else None  # type: ignore[attr-defined]
