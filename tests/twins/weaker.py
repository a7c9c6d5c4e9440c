"""Chapter 6: the weaker, simpler form of Theorem 3.3's bound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from icalign import bounds

from . import Draw, Outcome, at_most, given, twin
from .theorem33 import Prompt, is_unit, some_prompt, some_weights


def simple_bound(it: Prompt) -> float:
    """2ηD Σ_{k<N−1} of the shares of (N−k−1)e^{−γΔ} + k e^{−γ(R+2Δ)} and of k e^{−(C−R_Z)}."""
    w, n = it.weights, it.responses
    live, back = math.exp(-w.gamma * w.gap), math.exp(-w.gamma * (w.spread + 2 * w.gap))
    eliminated = math.exp(it.score_spread - w.C)
    shares = [bounds.share((n - k - 1) * live + k * back) + bounds.share(k * eliminated) for k in range(n - 1)]
    return 2 * w.eta * it.distance * sum(shares)


@twin
def theorem_3_3_weaker(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """If (N−1)e^{−γΔ}R ≤ Δ/4: ‖u − ΔW x‖ ≤ the bound with the simpler crowds. Broken: half of it.

    Attained by two responses Δ apart.
    """
    for responses in (draw.integer(1, 6), 2):
        weights = some_weights(draw, responses, 1.0)
        needed = math.log(max(1.0, 4 * (responses - 1) * weights.spread / weights.gap))
        hot = needed * (1 + 2.0**-50) + (draw.seed % 2) * draw.number(0.1, 3) + 0.01
        weights = replace(weights, gamma=hot / weights.gap)
        it = some_prompt(draw, weights, responses, split=draw.integer(0, responses) if draw.seed % 3 else 0)
        crowd = (responses - 1) * math.exp(-weights.gamma * weights.gap)
        given(weights.gamma > 0, crowd * weights.spread <= weights.gap / 4)
        given(weights.eta >= 0, 1.5 + 2 * weights.spread / weights.gap <= weights.B, is_unit(it.x), *it.rewards_fit())
        error = (it.after(responses - 1) - it.step()).norm(dim=-1)
        yield at_most(error, (0.5 if broken else 1) * simple_bound(it), it.rounding(responses - 1))
