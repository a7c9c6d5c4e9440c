"""Chapter 8: what P pairs of heads beside a sink are off by because exponentials bend is of order ε^{2P}."""

from __future__ import annotations

import math
from collections.abc import Iterator

from icalign import bounds

from . import Draw, Outcome, at_most, given, rounding, twin


def coefficients(pairs: int) -> list[float]:
    """a_k = 2(−1)^{k−1}(P!)²/((P−k)!(P+k)!)."""
    square, places = math.factorial(pairs) ** 2, range(1, pairs + 1)
    below = [math.factorial(pairs - k) * math.factorial(pairs + k) for k in places]
    return [2 * (-1) ** (k - 1) * square / product for k, product in zip(places, below, strict=True)]


def bent(epsilon: float, pairs: int) -> float:
    """Σ_k a_k sinh(kε)/(kε) − 1."""
    parts = [a * math.sinh(k * epsilon) / (k * epsilon) for k, a in enumerate(coefficients(pairs), 1)]
    return sum(parts) - 1


@twin
def sink_order(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """|Σ_k a_k sinh(kε)/(kε) − 1| ≤ (P!)²/(2P+1)! (2 sinh(ε/2))^{2P}. Broken: ε^{2P} for the power.

    Equal to leading order. The coefficients are those that the package's heads have.
    """
    for pairs in range(6):
        epsilon = draw.number(0.3, 3)
        given(epsilon > 0)
        parts = [
            float(a) * math.sinh(k * epsilon) / (k * epsilon) for k, a in enumerate(bounds.sink_coefficients(pairs), 1)
        ]
        power = (epsilon if broken else 2 * math.sinh(epsilon / 2)) ** (2 * pairs)
        size = math.factorial(pairs) ** 2 / math.factorial(2 * pairs + 1)
        # a part is a product of four rounded numbers; the sum has P + 1
        yield at_most(abs(sum(parts) - 1), size * power, rounding(pairs + 6, 1 + sum([abs(part) for part in parts])))
