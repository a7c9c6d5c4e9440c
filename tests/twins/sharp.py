"""Chapter 6: log 5 is sharp, and so is the bound: attained for N = 2, and with C = 0 approached for every N."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import torch

from . import Draw, Outcome, at_most, below, equal, given, holds, twin
from .theorem33 import LOG_5, Prompt, Weights, is_unit, some_prompt, some_weights


@twin
def theorem_3_3_threshold_sharp(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Below log 5, the rewards 0, −Δ, …, −nΔ put r⁺ further than Δ/4 from the best one. Broken: n = 1 is enough.

    The witness n is that of the proof, the least with (n+2)ξ^{n+1} < (5ξ−1)/4.
    """
    cold = draw.number(0.05, 0.99) * math.log(5)
    weights = some_weights(draw, 2, cold)
    given(weights.gamma > 0, weights.gap > 0, weights.gamma * weights.gap < math.log(5))
    xi, n = math.exp(-cold), 0
    while (n + 2) * xi ** (n + 1) >= (5 * xi - 1) / 4:
        n += 1
    n = 1 if broken else n
    places = torch.arange(n + 1)
    x, y, r = (
        draw.normal(weights.matrix.shape[1]),
        draw.normal(n + 1, weights.matrix.shape[0]),
        -places.double() * weights.gap,
    )
    it = Prompt(weights, x, y, r, tau=places, low=-n * weights.gap)
    given(it.r.diff() <= -weights.gap, it.r <= it.r[0])
    top = it.attention(it.flags(0), torch.zeros_like(y[0]))[0] @ it.r
    yield below(weights.gap / 4, (top - it.r[0]).abs())


@twin
def theorem_3_3_sharp(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """N = 2, rewards Δ apart, any masks: ‖u − ΔW x‖ = 2ηDξ/(1+ξ). Broken: 2ηDξ, the crowd in place of its share."""
    weights = some_weights(draw, 2, draw.number(0.05, 12))
    it = some_prompt(draw, weights, 2, split=2)
    weights = replace(weights, spread=draw.number(0, 3), B=draw.number(-2, 5), C=draw.number(-3, 9))
    it = replace(it, weights=weights)
    given(weights.eta >= 0, weights.gamma > 0, weights.gap > 0, is_unit(it.x))
    given(it.r[it.tau[0]] == it.r[it.tau[1]] + weights.gap)
    promised = it.error_bound(1)
    if broken:
        promised *= 1 + it.winner_crowd(0)
    yield equal((it.after(1) - it.step()).norm(dim=-1), promised, it.rounding(1))


@twin
def theorem_3_3_sharp_limit(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """C = 0, N ≥ 3, one response at ρ, the others at −ρ: error ≥ (1−ε)·bound > 0, for all ρ ≥ ρ₀ and γ ≥ γ₀.

    The witnesses are those of the proof: W = ρ, ρ₀ = 1 + |log(2(N−1)/ε)|, rewards 0, −Δ, …, and e^{γ₀Δ} = 16(N−1)/ε,
    or 5 if that is larger. Broken: a mask C that is strong.
    """
    responses, eps, gap = draw.integer(3, 6), draw.number(0.02, 0.5), draw.integer(1, 8) / 8
    rest = responses - 1
    radius = (1 + abs(math.log(2 * rest / eps))) * draw.integer(2, 4) / 2
    hot = max(LOG_5, math.log(16 * rest / eps)) * draw.integer(2, 4) / 2
    spread, C = rest * gap, 40 + 4 * radius**2 if broken else 0.0
    weights = Weights(((radius,),), draw.number(0.05, 1), hot / gap, gap, spread, 1.5 + 2 * rest, C)
    places = torch.arange(responses)
    y = radius * torch.where(places == 0, 1.0, -1.0).double()[:, None]
    it = Prompt(weights, torch.ones(1, dtype=torch.float64), y, -gap * places.double(), places, -spread)
    given(0 < eps < 1, gap > 0)
    yield holds(torch.stack([torch.as_tensor(fits).all() for fits in it.fits()]))
    yield equal(it.score_spread, 4 * radius**2, it.rounding(1))
    yield equal(it.distance, 2 * radius)
    error = (it.after(rest) - it.step()).norm(dim=-1)
    yield below(0, it.error_bound(rest))
    yield at_most((1 - eps) * it.error_bound(rest), error, it.rounding(rest))
