"""The typed kernel: a tree of the user's statements.

One source statement becomes one or more IR statements that share an `Origin`. Expressions are trees; elementwise
operations nest as in the source, structured ones (`load`, `reduce`, atomics, …) stand alone on the right of an `Assign`
or in an `Effect`: `frontend/builder.py` gives them names. Casts, broadcasts and promotions are explicit: the operands of an
elementwise `Call` all have its shape and exactly the element types that its row of the op table asks for.

Variables are mutable, as in the source: a name keeps one `Variable` while its type stays, and gets a new one when the
type changes. Facts and decisions about variables and statements live beside the tree, in tables keyed by these.

Example, `z = tl.load(p + offs) * 2.0` of a tile of 128 floats:
  Assign(p_value, Call("load", (Call("ptr_add", (Call("broadcast", (Use(p),)), Use(offs))),)))
  Assign(z, Call("mul", (Use(p_value), Literal(2.0))))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from ..diagnostics import Span
from ..frozen import frozen
from ..outside import Reading
from .static_loops import LoopPlace, Trip
from .symbols import OfTrips, Symbol
from .types import ValueType


@frozen
class Origin:
    """The source statement that an IR statement came from.

    Attributes:
      span: its place; `span.line` is what the generated `// L<line>:` tag shows.
      text: its source lines, verbatim without the common indentation; of a compound statement the header only.
      comments: the user's comment lines above it, without "# ".
      blank_before: whether a blank line stands above it (above its comments) in the source.
      trip: of loops that are written out, such as "i = 0, j = 1", or "".
      note: the translator's remarks, or "".
      file: the name of its file, or "" where that is the kernel's.
    """

    span: Span
    text: str
    comments: tuple[str, ...] = ()
    blank_before: bool = False
    trip: str = ""
    note: str = ""
    file: str = ""

    @property
    def remark(self) -> str:
        """All that is to be said of the statement."""
        return ", ".join(filter(None, (self.trip, self.note)))

    def place(self, line: int) -> str:
        """How one of its lines is called in the text."""
        return f"{self.file}:{line}" if self.file else f"L{line}"

    def noted(self, remark: str) -> Origin:
        """The same with a further remark."""
        return replace(self, note=f"{self.note}, {remark}" if self.note else remark)


LOADED = "_loaded"  # behind the user's name for what is made of them: the name of the elements as they were loaded


@frozen(eq=False)
class Variable:
    """A name of the kernel with one type. Compared by identity; `key` orders variables deterministically.

    Attributes:
      name: the user's name, or a derived one such as "x_max" for a piece of an expression.
      type: element type and shape.
      key: serial number within the kernel, in order of creation.
    """

    name: str
    type: ValueType
    key: int

    @property
    def stem(self) -> str:
        """What belongs to the variable is called after: the user's name, also of elements as they were loaded."""
        return self.name.removesuffix(LOADED)

    def __repr__(self) -> str:
        return f"%{self.name}"


# ---------------------------------------------------------------------------------------------------- expressions


class Hashed:
    """Room for a hash that is computed once: trees are looked up often, and a sum's hash is that of all its terms."""

    __slots__ = ("_hash",)
    _hash: int


@frozen
class Expr(Hashed):
    """Base of expressions: a type and a place."""

    type: ValueType
    span: Span | None = field(default=None, kw_only=True, compare=False)


@frozen
class Literal(Expr):
    """A number known at compile time; of a tile type when every element is that number.

    `symbol` is what the text calls it, an expression of the kernel's constexpr names with this value, or None. `base` is 16
    for an integer that the kernel writes so.
    """

    value: int | float | bool
    symbol: Symbol | None = field(default=None, kw_only=True)
    base: int = field(default=10, kw_only=True, compare=False)

    @property
    def reach(self) -> tuple[int, int]:
        """The least and the greatest integer that it is in the trips of static loops around."""
        return self.trips.reach if self.trips else (int(self.value), int(self.value))

    @property
    def trips(self) -> OfTrips | None:
        """What is known of the integer that it is in other trips of static loops, if it is another there."""
        return self.symbol.trips if self.symbol else None


@frozen
class Use(Expr):
    """The present value of a variable."""

    variable: Variable


@frozen
class Call(Expr):
    """An operation of the op table, or one of the structured operations that `docs/ir.md` lists.

    `attributes` holds compile-time arguments in a fixed order, such as (("axis", 1),).
    """

    op: str
    args: tuple[Expr, ...]
    attributes: tuple[tuple[str, Any], ...] = ()

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            found = hash((self.type, self.op, self.args, self.attributes))
            object.__setattr__(self, "_hash", found)
            return found

    def attribute(self, name: str, default: Any = None) -> Any:
        """The compile-time argument `name`."""
        return dict(self.attributes).get(name, default)


@frozen
class CallFunction(Expr):
    """A call of a device function; applied element by element when the arguments are tiles (all of one shape)."""

    function: DeviceFunction
    args: tuple[Expr, ...]


# ----------------------------------------------------------------------------------------------------- statements


@frozen(eq=False)
class Statement:
    """Base of statements. Compared by identity: two that say the same stay two; `walk.say_the_same` compares what they say."""

    origin: Origin


@frozen(eq=False)
class Assign(Statement):
    """`targets = value`; more than one target only for a structured call with several results."""

    targets: tuple[Variable, ...]
    value: Expr

    @property
    def target(self) -> Variable:
        """The only target."""
        (target,) = self.targets
        return target


@frozen(eq=False)
class Effect(Statement):
    """A call for its effect: `store`, an atomic whose result is not used, `device_print`, `device_assert`, `barrier`."""

    call: Call


@frozen(eq=False)
class If(Statement):
    """A branch on a run-time scalar of type `int1`. `else_origin` tags an `else:`/`elif` line when there is one."""

    condition: Expr
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()
    else_origin: Origin | None = None


@frozen(eq=False)
class For(Statement):
    """`for variable in range(start, stop, step)`: scalars of the variable's type, evaluated once.

    `descending` says that `step` is a negative constant. `options` are those of `tl.range`. `previous` is what the name
    holds before, and still holds after a loop without a trip; None where nothing has given it a number.
    """

    variable: Variable
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[Statement, ...]
    descending: bool = False
    options: tuple[tuple[str, Any], ...] = ()
    previous: Expr | None = None


@frozen(eq=False)
class While(Statement):
    """`while condition`: `prelude` runs before every test and computes what the condition needs.

    `trips` is how many there are, where numbers say it.
    """

    prelude: tuple[Statement, ...]
    condition: Expr
    body: tuple[Statement, ...]
    trips: int | None = None


@frozen(eq=False)
class Return(Statement):
    """Ends the program (in a kernel), or the function with `value` (in a device function)."""

    value: Expr | None = None


@frozen(eq=False)
class Note(Statement):
    """A source statement that became no code; `origin.note` says where it went. With a `trip`, one of a static loop begins."""

    trip: Trip | None = None


@frozen(eq=False)
class Inlined(Statement):
    """The body of a called function that was inlined; `origin` is the call's, `caption` names the function."""

    caption: str
    body: tuple[Statement, ...]


# ------------------------------------------------------------------------------------------------ kernel, functions


@frozen
class Parameter:
    """A run-time argument of the kernel.

    `divisibility` is a known divisor of the value (of the address in bytes, for a pointer): 1 or a power of two up to 16.
    """

    variable: Variable
    divisibility: int = 1


@frozen
class ParameterComments:
    """The user's comments at a parameter, without "# ": the lines above it, and what stands beside it.

    `begins_line` tells whether it is the first in its line: what stands beside a line may be about all parameters in it.
    """

    above: tuple[str, ...] = ()
    beside: str = ""
    begins_line: bool = True


NO_COMMENTS = ParameterComments(begins_line=False)


@frozen(eq=False)
class DeviceFunction:
    """A called function of scalars that keeps its identity in the output. Compared by identity.

    `deciding` are the parameters from which a condition or the bounds of a loop come: no tile is passed for these.
    """

    name: str
    parameters: tuple[Variable, ...]
    result: ValueType
    body: tuple[Statement, ...]
    origin: Origin
    docstring: str = ""
    deciding: frozenset[Variable] = frozenset()


@frozen(eq=False)
class Combine:
    """What a reduction does with two partial results: `body` computes `results` from `left` and `right`.

    `op` names the combination when it is a known one ("sum", "max", "min", "xor", "or", "and", "argmax", "argmin"); then
    the rest is empty. "together" stands for reductions that share an exchange: `parts` has the op and the result's name
    of each. Otherwise `left` and `right` hold one scalar variable per reduced tile and `body` is scalar code
    that ends in assignments to `results`.
    """

    op: str | None
    name: str
    left: tuple[Variable, ...] = ()
    right: tuple[Variable, ...] = ()
    results: tuple[Variable, ...] = ()
    body: tuple[Statement, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()


@frozen
class Kernel:
    """One specialisation of a kernel, typed, with every constexpr folded.

    Attributes:
      name: the user's function name.
      file: the base name of its file.
      line: the line of its `def`.
      docstring: first line of its docstring, or "".
      parameters: run-time arguments in order.
      constants: the constexpr parameters in order, name to value (numbers, strings, dtypes, None, …); arguments equal to
        1 or None that were folded included; then, as `Dim`, the sides of descriptors' blocks.
      numbers: compile-time floats that names in the text stand for otherwise: `BETA: tl.constexpr = 0.9`, or outside.
      body: statements in source order.
      functions: device functions in order of first use.
      globals: the outer values that the kernel read, by reader and name: they are part of what was translated.
      readings: everything that names of the text stood for; None when that cannot be told.
      static_loops: where its loops of `tl.static_range` stand, by their serial numbers.
      parameter_comments: the user's, by the name of the argument; empty where there is none.
      short_rows: tiles of offsets in 32 bits that may need more; a launch is asked for all offsets that are made of them.
    """

    name: str
    file: str
    line: int
    docstring: str
    parameters: tuple[Parameter, ...]
    constants: Mapping[str, Any]
    body: tuple[Statement, ...]
    functions: tuple[DeviceFunction, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)
    globals: tuple[tuple[Any, str, Any], ...] = ()
    readings: tuple[Reading, ...] | None = None
    static_loops: tuple[LoopPlace, ...] = ()
    parameter_comments: Mapping[str, ParameterComments] = field(default_factory=dict)
    short_rows: frozenset[Variable] = frozenset()
