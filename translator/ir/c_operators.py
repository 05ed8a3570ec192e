"""How tightly C++'s operators bind."""

from __future__ import annotations

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
