"""C++'s operators: how tightly each binds, and texts put together with the parentheses that C needs and no others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import accumulate

from ...frozen import frozen
from ...ir.c_operators import ATOM, PRECEDENCE, UNARY

MIXED = frozenset(("&", "^", "|", "<<", ">>", "&&", "||"))  # operators whose mixtures compilers warn about
SHIFTS = ("<<", ">>")  # whose first operand alone decides on the type of the result
OF_BOOLS = ("<", "<=", ">", ">=", "==", "!=", "&&", "||")  # whose result is a bool
INFIX = re.compile(r"^(\{\w+\}) (\S+) (\{\w+\}|[\w.]+)$")
PREFIX = re.compile(r"^([-!~])(\{\w+\})$")
TERNARY = re.compile(r"^(\{\w+\}) \? (\{\w+\}) : (\{\w+\})$")
OPPOSITES = {"+": "-", "-": "+"}
NEGATIVE = re.compile(
    r"-([\w.]+(\[[^][]*\])*|\([^()]*\))"
)  # a number, a name, an element, or what stands in parentheses
PRODUCT = re.compile(r"\(([\w.]+(?: \* [\w.]+)+)\)")
WORD = re.compile(r"\w+")
WIDE_CAST = "static_cast<long long>("
INNERMOST = re.compile(r"\([^()]*\)|\[[^][]*\]")


@frozen
class Text:
    """Spelled text.

    Attributes:
      text: as C++ has it.
      precedence: how tightly its outermost operator binds.
      operator: that operator.
      number: the integer that it is, where that is known.
      wide: whether it was widened to 64 bits, or one of its operands, so that C computes it in as many.
      narrow: of a cast to 64 bits, what it widens: all that is written where C widens that by itself.
      uncast: of a cast that an assignment makes by itself, or in another way, what is assigned; "" for anything else.
      is_int: whether C makes an int of what the kernel has as a narrower integer: it fits, but braces do not take it.
    """

    text: str
    precedence: int = ATOM
    operator: str = ""
    number: int | None = None
    wide: bool = False
    narrow: Text | None = None
    uncast: str = ""
    is_int: bool = False

    @property
    def assigned(self) -> str:
        """The text as it is assigned to a variable of its type."""
        return self.uncast or self.text

    def within(self, precedence: int, operator: str = "") -> str:
        """The text as an operand of an operator of this precedence."""
        both = bool(self.operator) and bool(operator) and self.operator != operator and self.precedence != UNARY
        mixed = both and (operator in MIXED or self.operator in MIXED)
        comparison = self.precedence in (9, 10) and operator in ("&&", "||")
        if self.precedence < precedence or (mixed and not comparison):
            return f"({self.text})"
        return self.text


ZERO = Text("0", number=0)


def placed(spelling: str, operands: dict[str, Text]) -> Text:
    """Puts operands into a spelling of the op table, parenthesised where its outermost operator requires it."""
    if match := INFIX.match(spelling):
        left, operator, right = match.groups()
        precedence = PRECEDENCE[operator]
        both = [operands[side[1:-1]] if side.startswith("{") else Text(side) for side in (left, right)]
        if operator in SHIFTS and both[1].narrow:  # by how many bits may be an int for a wider number, too
            both[1] = both[1].narrow
        first, second = both[0].within(precedence, operator), both[1].within(precedence + 1, operator)
        deciding = both[:1] if operator in SHIFTS else both
        wide = operator not in OF_BOOLS and any(one.wide for one in deciding)
        if operator in OPPOSITES and NEGATIVE.fullmatch(second):  # x + -3 is x - 3
            operator, second = OPPOSITES[operator], _opposite(second)
        return Text(f"{first} {operator} {second}", precedence, operator, wide=wide)
    if match := PREFIX.match(spelling):
        operator, name = match.groups()
        operand = operands[name[1:-1]]
        return Text(f"{operator}{operand.within(ATOM)}", UNARY, operator, wide=operand.wide and operator != "!")
    if match := TERNARY.match(spelling):
        condition, yes, no = (operands[name[1:-1]] for name in match.groups())
        return Text(f"{condition.within(4)} ? {yes.within(4)} : {no.within(3)}", 3, "?", wide=yes.wide or no.wide)
    if spelling == f"{WIDE_CAST}{{x}})":
        return widened(operands["x"])
    text = re.sub(r"\{(\w+)\}", lambda found: operands[found[1]].text, spelling)
    return Text(text, ATOM, wide=spelling.startswith(WIDE_CAST))


def widened(number: Text) -> Text:
    """An int in 64 bits; of a number that is so many digits, with a suffix."""
    text = f"{number.text}LL" if number.text.isdecimal() else f"{WIDE_CAST}{number.text})"
    return Text(text, number=number.number, wide=True, narrow=number)


def added(terms: Iterable[str]) -> str:
    """The sum of some terms; a negative number or name is subtracted."""
    first, *others = terms
    return first + "".join(f" - {_opposite(one)}" if NEGATIVE.fullmatch(one) else f" + {one}" for one in others)


def _opposite(negative: str) -> str:
    """What a negative term takes away: a product without its parentheses."""
    return product[1] if (product := PRODUCT.fullmatch(negative, 1)) else negative[1:]


def is_word(text: str) -> bool:
    """Whether a text is a name or a number, and not computed."""
    return WORD.fullmatch(text) is not None


def sum_text(*terms: str) -> str:
    """The sum of some terms that a product or sum may be, without those that are nothing; "0" where all are."""
    return " + ".join(term for term in terms if term not in ("", "0")) or "0"


def infix(left: Text, operator: str, right: Text) -> Text:
    """An operation of integers, with the parentheses that C needs."""
    precedence = PRECEDENCE[operator]
    return Text(f"{left.within(precedence)} {operator} {right.within(precedence + 1)}", precedence, operator)


def multiplied(factors: Sequence[Text]) -> Text:
    """The product of some factors; those of a factor stand among the others."""
    return reduce(_product, factors) if factors else Text("1")


def _product(left: Text, right: Text) -> Text:
    whole = right.operator == "*" and not re.search("[/%]", outside_parentheses(right.text))
    return infix(left, "*", Text(right.text) if whole else right)


def summed(terms: Sequence[Text]) -> Text:
    """The sum of some terms, of which none is negative."""
    return reduce(lambda total, term: infix(total, "+", term), terms) if terms else ZERO


def exclusive_or(terms: Sequence[Text]) -> Text:
    """The exclusive or of some indices, sums in parentheses."""
    return Text(" ^ ".join(one.within(13) for one in terms), PRECEDENCE["^"]) if len(terms) > 1 else summed(terms)


def outside_parentheses(text: str) -> str:
    """The text without what stands in parentheses and brackets."""
    while (shorter := INNERMOST.sub("", text)) != text:
        text = shorter
    return text


def without_outer_parentheses(text: str) -> str:
    """What one pair of parentheses holds, where it holds all of a text."""
    depths = list(accumulate((character == "(") - (character == ")") for character in text))
    return text[1:-1] if text[:1] == "(" and depths.index(0) == len(text) - 1 else text


def inverse(test: Text) -> str:
    """The opposite of a condition."""
    match = re.fullmatch(r"([^=!&|?<>]+) ([=!])= ([^=!&|?<>]+)", test.text)
    if match and f" {match[2]}= " in outside_parentheses(test.text):
        return f"{match[1]} {'!' if match[2] == '=' else '='}= {match[3]}"
    return f"!{test.within(15)}"


def conjunction(tests: list[Text], at_once: bool = False) -> Text | None:
    """All of several conditions, on demand without branches."""
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    operator = "&" if at_once else "&&"
    precedence = PRECEDENCE[operator]
    return Text(f" {operator} ".join(test.within(precedence, operator) for test in tests), precedence, operator)
