"""The β head (E.3–E.5): softmax weighs each response by its Plackett–Luce factor; and a ReLU layer for the squares.

Claims ``beta-head``, ``square-by-relu``.

Rows: x, y, sq = ‖y‖², 1 and mean, which the head fills with μ = Σ_j β_j y_j.
"""

from __future__ import annotations

from typing import Any

import sympy as sp
from sympy.matrices.expressions.special import OneMatrix

from ..forms import PiecewiseLinear, exact_number
from ..spec import Block, FeedForward, Head, relu
from ..stream import Stream
from ..symbols import W, d_x, d_y

stream = Stream(x=d_x, y=d_y, sq=1, one=1, mean=d_y)
i, j = stream.tokens

field = Head(logit=2 * W @ i.x @ j.y - i.one * j.sq, write={"mean": j.y})

block = Block(heads=(field,))


def knot(k: Any, radius: Any, spacing: Any) -> Any:
    """t_k = −B + kh."""
    return -radius + k * spacing


def hinge(k: Any, radius: Any, spacing: Any) -> PiecewiseLinear:
    r"""Σ_c a_k relu(y_c − t_k) with the change of slope at t_k, :math:`a_0 = t_0 + t_1` and :math:`a_k = 2h`."""
    change = 2 * spacing if k != 0 else knot(0, radius, spacing) + knot(1, radius, spacing)
    rises: PiecewiseLinear = change * (OneMatrix(1, d_y) @ relu(i.y - knot(k, radius, spacing)))
    return rises


def squares(radius: Any, spacing: Any) -> FeedForward:
    r"""A ReLU layer that adds to the row sq the squares of y, interpolated linearly between knots.

    .. math:: \mathrm{sq} \mathrel{+}= \sum_{c=1}^{d_y} [B^2 + \sum_{k=0}^{n-1} a_k\,\mathrm{relu}(y_c - t_k)],
              \quad t_k = -B + kh,\; n = \lceil 2B/h \rceil

    For :math:`|y_c| \le B` the row is too large by at least 0 and at most d_y h²/4 (claim ``square-by-relu``).

    Args:
        radius: B > 0, a bound on the coordinates of y; a bound on ‖y‖ is one. Number or sympy expression.
        spacing: h, 0 < h ≤ 2B, such that 2B/h is a number.

    Raises:
        ValueError: a number that is not positive and finite, 2B/h not a number, or h > 2B: no second knot in [−B, B].
    """
    B, h = [exact_number(v) if isinstance(v, int | float) else sp.sympify(v) for v in (radius, spacing)]
    for name, value in (("radius", B), ("spacing", h)):
        if not value.is_positive:
            raise ValueError(f"{name}: {value}, expected a positive number")
    pieces = sp.ceiling(2 * B / h)
    if not pieces.is_Integer:
        raise ValueError(f"spacing: 2·radius/spacing is {pieces}, expected a number")
    if 2 * B / h < 1:
        raise ValueError(f"spacing: {spacing}, expected at most twice the radius, {2 * radius}")
    hinges = [hinge(k, B, h) for k in range(int(pieces))]
    return FeedForward(write={"sq": sum(hinges[1:], hinges[0]) + d_y * B**2})
