r"""Chapter 13: two attention layers, for rewards on a grid."""

from __future__ import annotations

import math
from typing import Any

import sympy as sp
import torch

from .elementary import log, share, unit_roundoff
from .plackett_luce import crowd_rounding, field_crowd
from .queries import field_strangers


def grid_points(gap: float, spread: float) -> int:
    """K = max(2, ⌈3R/Δ⌉): how many points of a grid of Δ/3 the code of a reward has (claim ``two-layers-suffice``).

    One less would do in real arithmetic; the last is room for rounding.
    """
    return max(2, math.ceil(3 * (spread / gap)))


def ranked_stranger_error(
    eta: Any, gamma_beta: Any, score_spread: Any, overlap: Any, responses: Any, queries: Any, diameter: Any
) -> Any:
    r"""2ηD₀ Σ_{k=1}^{N} χ_k/(1+χ_k): what other queries and the sink add to the error of the own terms.

    Claim ``two-layers-suffice``, part queries; χ_k is :func:`icalign.bounds.field_strangers`, also for k = N. The rest
    of the error is :func:`icalign.bounds.constant_depth_error`.

    Args:
        eta: η.
        gamma_beta: γ_β.
        score_spread: R_Z.
        overlap: ρ, 0 ≤ ρ < 1.
        responses: N.
        queries: M.
        diameter: D₀.
    """

    def term(k: Any) -> Any:
        return share(field_strangers(gamma_beta, score_spread, overlap, responses, queries, k))

    if any([isinstance(value, sp.Basic) for value in (eta, gamma_beta, score_spread, overlap, responses, queries)]):
        k = sp.Symbol("k", integer=True)
        return 2 * eta * diameter * sp.Sum(term(k), (k, 1, responses))
    return 2 * eta * diameter * sum([term(k) for k in range(1, responses + 1)])


def ranked_filter(
    tolerance: Any, eta: Any, score_spread: Any, overlap: Any, responses: Any, queries: Any, diameter: Any
) -> Any:
    r"""γ_β = (R_Z + max(0, log(2ηD₀MN²/tol)))/(1−ρ): here :func:`ranked_stranger_error` is at most the tolerance.

    Claim ``two-layers-suffice``, part queries.
    """
    symbols = any([isinstance(v, sp.Basic) for v in (tolerance, eta, responses, queries, diameter)])
    largest = sp.Max if symbols else max
    margin = largest(0, log(2 * eta * diameter * queries * responses**2 / tolerance))
    return (score_spread + margin) / (1 - overlap)


def _largest_knot(gap: float, largest_reward: float, points: int) -> float:
    """a = K + 3 + 3·max|r|/Δ, a bound on the numbers that a ramp of the grid subtracts."""
    return points + 3 + 3 * (largest_reward / gap)


def grid_rounding(dtype: torch.dtype, gap: float, largest_reward: float, points: int) -> float:
    r"""φ: how far ⟨c(r_l), p(r_i)⟩, as computed, may fall short of 1 where r_l − r_i ≥ Δ, and below 0 anywhere.

    A ramp subtracts two numbers of size a = K + 3 + 3·max|r|/Δ at most and is off by 6aε₀; an entry of c, of two
    ramps, by 14aε₀, one of p, of three with weights 1, −2, 1, by 34aε₀. The entries of p add up to 1, those of c are
    at most 1. Their inner product loses (K + 4)ε₀ more, and a gap that falls short of Δ by 4ε₀·max|r| another 4aε₀:

    .. math:: φ = 42\,(K+1)\,a\,ε_0,

    which has room for the products of these small terms. Where r_l ≤ r_i rounding leaves at most
    :func:`grid_graze`.
    """
    return 42 * (points + 1) * _largest_knot(gap, largest_reward, points) * unit_roundoff(dtype)


def grid_graze(dtype: torch.dtype, gap: float, largest_reward: float, points: int) -> float:
    r"""1000a²ε₀²: how large ⟨c(r_l), p(r_i)⟩, as computed, may be where r_l ≤ r_i.

    p is made of falling ramps and c of rising ones, on the same knots. So a product c_k p_k is exactly 0 unless both
    rewards lie at the knot k + 1 to within the error 6aε₀ of a ramp, and then either factor is of that order. It is
    exactly 0 everywhere if a ramp and its mirror image round alike, as they do where products are added in one order.
    """
    return 1000 * (_largest_knot(gap, largest_reward, points) * unit_roundoff(dtype)) ** 2


def two_layers_rounding(
    dtype: torch.dtype,
    eta: float,
    mask: float,
    gap: float,
    largest_reward: float,
    points: int,
    score_spread: float,
    responses: int,
    dim_x: int,
    dim_y: int,
    reach: float,
    radius: float,
) -> float:
    r"""How far y − u from the two layers in floating point can be from what
    :func:`icalign.bounds.constant_depth_error` bounds, at C(1 − φ).

    The logits of the first layer are those of :func:`icalign.bounds.plackett_luce_rounding`, and a live response has
    C·:func:`grid_graze` more. One that is masked sums up to K + d_y + 1 products, of sizes that add up to
    C + reach² or little more. :func:`icalign.bounds.crowd_rounding` covers the rest: A. The second layer's values,
    2ηN(y − tail), are at most 4ηN·radius long and lose four roundings, their mean N + 2. Together, but for a hundredth
    of the first two terms, which is for the products of small ones,

    .. math:: 2ηN A + 4ηN(N + 6)\,\mathrm{radius}\,ε_0 + (\mathrm{radius} + U)\,ε_0 .
    """
    unit, short = unit_roundoff(dtype), grid_rounding(dtype, gap, largest_reward, points)
    if short > 0.25:
        return math.inf
    live = (dim_x + dim_y + 4) / 4 * reach * reach
    live += mask * grid_graze(dtype, gap, largest_reward, points) / unit
    held_back = live + (dim_y + 4) / 2 * reach * reach + (points + dim_y + 8) / 4 * (mask + reach * reach)
    others = field_crowd(mask * (1 - short), score_spread, responses, responses)
    tails = crowd_rounding(dtype, live, held_back, others, responses, radius)
    summing = 4 * eta * responses * (responses + 6) * radius * unit
    return 1.01 * (2 * eta * responses * tails + summing) + (1 + 4 * eta * (responses - 1)) * radius * unit


def filtered_tails_rounding(
    dtype: torch.dtype,
    eta: float,
    crowd: float,
    field_logit: float,
    mask: float,
    graze: float,
    points: int,
    tokens: int,
    responses: int,
    dim_x: int,
    dim_y: int,
    radius: float,
) -> float:
    r"""How far the terms of one query, added up, can be off in floating point where several queries share a prompt.

    As :func:`icalign.bounds.filtered_rounding` for a weighing head: with F the size of a live logit, an exponent is
    off by ℓ = ((2d_x + 2d_y + 12)F + 4)ε₀ + C·graze, and one of the crowd, which weighs q beside the live field, by
    δ = ((2d_x + 2d_y + 2K + 20)(F + C) + 4)ε₀. The layer that forms the term loses 8ε₀·radius. But for a hundredth, as
    in :func:`two_layers_rounding`:

    .. math:: 2ηN\bigl(2\,\mathrm{radius}\,(q(e^δ - 1) + \tanh(ℓ/2)) + (4n + 26)\,ε_0\,\mathrm{radius}\bigr).

    Args:
        dtype: of weights and tokens.
        eta: η.
        crowd: q.
        field_logit: F.
        mask: C.
        graze: :func:`grid_graze`.
        points: K.
        tokens: n, the sink included.
        responses: N.
        dim_x: d_x.
        dim_y: d_y.
        radius: bound on ‖y‖.
    """
    unit = unit_roundoff(dtype)
    live = ((2 * dim_x + 2 * dim_y + 12) * field_logit + 4) * unit + mask * graze
    far = ((2 * dim_x + 2 * dim_y + 2 * points + 20) * (field_logit + mask) + 4) * unit
    if max(live, far, tokens * unit) > 1:
        return math.inf
    means = 2 * radius * (crowd * math.expm1(far) + math.tanh(live / 2)) + (4 * tokens + 26) * unit * radius
    return 1.01 * 2 * eta * responses * means
