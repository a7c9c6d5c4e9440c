"""What sympy lacks for work at all sizes: sums with symbolic bounds, calculations a = b ≤ c, and witnesses.

Three outcomes are kept apart. A statement is *proved* (every link of a :class:`Chain` decided), *shown false*
(:class:`ShownFalse`, with numbers that refute it) or *not shown* (:class:`NotShown`: the prover may be too weak).
"""

from .chain import Chain, Limit
from .printing import Shown, show, show_blocks, typeset
from .reals import implied
from .signs import nonnegative, positive
from .sums import first, pull, split_at, sums_at, zero
from .witness import NotShown, Point, ShownFalse, evaluate

__all__ = [
    "Chain",
    "Limit",
    "NotShown",
    "Point",
    "Shown",
    "ShownFalse",
    "evaluate",
    "first",
    "implied",
    "nonnegative",
    "positive",
    "pull",
    "show",
    "show_blocks",
    "split_at",
    "sums_at",
    "typeset",
    "zero",
]
