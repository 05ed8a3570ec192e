"""C++'s operators: how tightly each binds, and texts put together with the parentheses that C needs and no others."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...frozen import frozen

ATOM = 16
UNARY = 15
PRECEDENCE = (
    dict.fromkeys(("*", "/", "%"), 13)
    | dict.fromkeys(("+", "-"), 12)
    | dict.fromkeys(("<<", ">>"), 11)
    | dict.fromkeys(("<", "<=", ">", ">="), 10)
    | dict.fromkeys(("==", "!="), 9)
    | {"&": 8, "^": 7, "|": 6, "&&": 5, "||": 4, "?": 3}
)
MIXED = frozenset(("&", "^", "|", "<<", ">>", "&&", "||"))  # operators whose mixtures compilers warn about
INFIX = re.compile(r"^(\{\w+\}) (\S+) (\{\w+\}|[\w.]+)$")
PREFIX = re.compile(r"^([-!~])(\{\w+\})$")
TERNARY = re.compile(r"^(\{\w+\}) \? (\{\w+\}) : (\{\w+\})$")
OPPOSITES = {"+": "-", "-": "+"}
NEGATIVE = re.compile(r"-(\d[\w.]*|[A-Za-z_]\w*)")  # a number or a name
INNERMOST = re.compile(r"\([^()]*\)|\[[^][]*\]")


@frozen
class Text:
    """Spelled text, how tightly its outermost operator binds, and the integer that it is where that is known."""

    text: str
    precedence: int = ATOM
    operator: str = ""
    number: int | None = None

    def within(self, precedence: int, operator: str = "") -> str:
        """The text as an operand of an operator of this precedence."""
        both = bool(self.operator) and bool(operator) and self.operator != operator
        mixed = both and (operator in MIXED or self.operator in MIXED)
        comparison = self.precedence in (9, 10) and operator in ("&&", "||")
        if self.precedence < precedence or (mixed and not comparison):
            return f"({self.text})"
        return self.text


def placed(spelling: str, operands: dict[str, Text]) -> Text:
    """Puts operands into a spelling of the op table, parenthesised where its outermost operator requires it."""
    if match := INFIX.match(spelling):
        left, operator, right = match.groups()
        precedence = PRECEDENCE[operator]
        first = operands[left[1:-1]].within(precedence, operator)
        second = operands[right[1:-1]].within(precedence + 1, operator) if right.startswith("{") else right
        if operator in OPPOSITES and NEGATIVE.fullmatch(second):  # x + -3 is x - 3
            operator, second = OPPOSITES[operator], second[1:]
        return Text(f"{first} {operator} {second}", precedence, operator)
    if match := PREFIX.match(spelling):
        operator, operand = match.groups()
        return Text(f"{operator}{operands[operand[1:-1]].within(ATOM)}", UNARY, operator)
    if match := TERNARY.match(spelling):
        condition, yes, no = (operands[name[1:-1]] for name in match.groups())
        return Text(f"{condition.within(4)} ? {yes.within(4)} : {no.within(3)}", 3, "?")
    return Text(re.sub(r"\{(\w+)\}", lambda found: operands[found[1]].text, spelling), ATOM)


def added(terms: Iterable[str]) -> str:
    """The sum of some terms; a negative number or name is subtracted."""
    first, *others = terms
    return first + "".join(f" - {one[1:]}" if NEGATIVE.fullmatch(one) else f" + {one}" for one in others)


def loosest(text: str) -> int:
    """Precedence of the loosest operator outside parentheses of an index text."""
    operators = re.findall(r"(?<= )[-+*/%](?= )", outside_parentheses(text))
    return min((PRECEDENCE[operator] for operator in operators), default=ATOM)


def outside_parentheses(text: str) -> str:
    """The text without what stands in parentheses and brackets."""
    while (shorter := INNERMOST.sub("", text)) != text:
        text = shorter
    return text
