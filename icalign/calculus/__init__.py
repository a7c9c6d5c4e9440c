"""What sympy lacks for work at all sizes: sums with symbolic bounds, calculations a = b ≤ c, and witnesses.

Three outcomes are kept apart. A statement is *proved* (every link of a :class:`Chain` decided), *shown false*
(:class:`ShownFalse`, with numbers that refute it) or *not shown* (:class:`NotShown`: the prover may be too weak).
"""

from .chain import Chain, Limit
from .reals import implied
from .signs import nonnegative, positive
from .sums import first, pull, sums_at, zero
from .printing import typeset, typeset_blocks
from .witness import NotShown, Point, ShownFalse, evaluate

__all__ = [
    "Chain",
    "Limit",
    "NotShown",
    "Point",
    "ShownFalse",
    "evaluate",
    "first",
    "implied",
    "nonnegative",
    "positive",
    "pull",
    "sums_at",
    "typeset",
    "typeset_blocks",
    "zero",
]
