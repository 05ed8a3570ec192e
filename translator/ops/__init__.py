"""The op table: what every elementwise operation takes, returns and means, and how CUDA spells it."""

# The language derives functions from the table, whose rows are written in the language's types: with the language first,
# its types exist before the rows do, whichever of the two packages is imported first.
from .. import language  # noqa: F401
from .table import OPS

__all__ = ["OPS"]
