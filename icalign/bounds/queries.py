r"""Chapter 8: the step of several queries."""

from __future__ import annotations

import math
from typing import Any

import sympy as sp
import torch

from .block import elimination_mask, flag_rounding
from .elementary import exp, gap_shortfall, log, share, unit_roundoff
from .plackett_luce import top_deviation


def strangers(
    gamma_1: Any,
    gamma_2: Any,
    gap: Any,
    spread: Any,
    overlap: Any,
    responses: Any,
    queries: Any,
    block: Any,
    sinks: Any = 1,
) -> Any:
    r"""In block k, the weight of other queries' responses and the sink beside the best live response of the own query.

    .. math:: \Bigl((M-1)\frac{1-ξ^N}{1-ξ} + \mathrm{sinks}\Bigr)\,e^{γ_2(R-(N-k)Δ) - γ_1(1-ρ)}, \quad ξ = e^{-γ_2Δ}

    Claim ``mq-theorem``: the rewards of a query are Δ apart, none is above high, and the best live one is (N−k)Δ above
    low at least. The sink counts as a response of reward low to a query that is orthogonal to all.

    Args:
        gamma_1: γ₁.
        gamma_2: γ₂ > 0.
        gap: Δ.
        spread: R.
        overlap: ρ < 1; at least 0 if there is a sink.
        responses: N.
        queries: M.
        block: k, from 1 to N − 1.
        sinks: 1 with a sink, 0 without.
    """
    xi, live = exp(-gamma_2 * gap), responses - block
    crowds = (queries - 1) * (1 - xi**responses) / (1 - xi) + sinks
    return crowds * exp(gamma_2 * (spread - live * gap) - gamma_1 * (1 - overlap))


def field_strangers(
    gamma_beta: Any, score_spread: Any, overlap: Any, responses: Any, queries: Any, block: Any, sinks: Any = 1
) -> Any:
    r"""In block k, the weight of other queries' responses and the sink beside the live field of the own query.

    .. math:: \frac{(M-1)N + \mathrm{sinks}}{N-k+1}\,e^{R_Z - γ_β(1-ρ)}

    Claim ``mq-theorem``; arguments as :func:`strangers`, R_Z the spread of the reduced scores. The sink counts as a
    response y = 0, whose reduced score 0 lies in their range.
    """
    others = (queries - 1) * responses + sinks
    return others / (responses - block + 1) * exp(score_spread - gamma_beta * (1 - overlap))


def stranger_error(
    eta: Any,
    gamma_1: Any,
    gamma_2: Any,
    gamma_beta: Any,
    gap: Any,
    spread: Any,
    score_spread: Any,
    overlap: Any,
    responses: Any,
    queries: Any,
    diameter: Any,
    sinks: Any = 1,
) -> Any:
    r"""2ηD₀ Σ_k [x_k/(1+x_k) + y_k/(1+y_k)]: what other queries add to the error of N−1 blocks (``mq-theorem``).

    x_k is :func:`strangers`, y_k :func:`field_strangers`; the rest of the error is :func:`plackett_luce_error`.
    """

    def term(k: Any) -> Any:
        selected = strangers(gamma_1, gamma_2, gap, spread, overlap, responses, queries, k, sinks)
        return share(selected) + share(field_strangers(gamma_beta, score_spread, overlap, responses, queries, k, sinks))

    if any([isinstance(value, sp.Basic) for value in (gamma_1, gamma_2, gamma_beta, gap, spread, responses, queries)]):
        k = sp.Symbol("k", integer=True)
        return 2 * eta * diameter * sp.Sum(term(k), (k, 1, responses - 1))
    return 2 * eta * diameter * sum([term(k) for k in range(1, responses)])


def own_terms_error(reach: Any, selecting: Any, weighing: Any, responses: Any) -> Any:
    r"""E_own = U[(5/2)e^{−g} + (N−1)e^{−h}]: the error of the own terms at :func:`own_terms_temperatures`.

    Claim ``mq-theorem``, part own-terms.

    Args:
        reach: U = 2η(N−1)D₀.
        selecting: g ≥ log 9.
        weighing: h ≥ 1.
        responses: N.
    """
    half = sp.Rational(5, 2) if isinstance(selecting, sp.Basic) else 2.5
    return reach * (half * exp(-selecting) + (responses - 1) * exp(-weighing))


def own_terms_margins(tolerance: Any, reach: Any, responses: Any) -> tuple[Any, Any]:
    r"""(g, h) at which :func:`own_terms_error` is at most the tolerance (claim ``mq-theorem``, part choice).

    .. math:: g = \max(\log 9, \log(5U/\mathrm{tol})), \qquad h = \max(1, \log(2(N-1)U/\mathrm{tol}))
    """
    symbols = any([isinstance(v, sp.Basic) for v in (tolerance, reach, responses)])
    largest, nine = (sp.Max, sp.Integer(9)) if symbols else (max, 9)
    return largest(log(nine), log(5 * reach / tolerance)), largest(1, log(2 * (responses - 1) * reach / tolerance))


def own_terms_temperatures(
    selecting: Any, weighing: Any, gap: Any, spread: Any, score_spread: Any, overlap: Any, queries: Any
) -> tuple[Any, Any, Any, Any]:
    r"""(γ₁, γ₂, γ_β, C) for margins g and h (claim ``mq-theorem``).

    .. math:: γ_2 = g/Δ,\quad γ_1 = \frac{γ_2R + g + \log(MR/Δ)}{1-ρ},\quad γ_β = \frac{R_Z + h + \log M}{1-ρ},
              \quad C = R_Z + h
    """
    gamma_2 = selecting / gap
    gamma_1 = (gamma_2 * spread + selecting + log(queries * spread / gap)) / (1 - overlap)
    gamma_beta = (score_spread + weighing + log(queries)) / (1 - overlap)
    return gamma_1, gamma_2, gamma_beta, score_spread + weighing


def coupled_error(queries: Any, reach: Any, own: Any, sink: Any) -> Any:
    r"""M·E_own + M(U + E_own)·E_sink: the error of the step on all queries (claim ``mq-theorem``).

    Args:
        queries: M.
        reach: U.
        own: E_own, how far each token's own term is off.
        sink: E_sink, :func:`sink_error` with n = MN.
    """
    return queries * own + queries * (reach + own) * sink


def filtered_rounding(
    dtype: torch.dtype,
    eta: float,
    crowd: float,
    selecting_logit: float,
    field_logit: float,
    tokens: int,
    responses: int,
    dim_x: int,
    dim_y: int,
    radius: float,
) -> float:
    r"""How far u after N−1 filtered blocks in floating point can be from the same blocks in real arithmetic.

    Flags must be exact (:func:`flags_are_exact_among`). With ε₀ the unit roundoff, n tokens, L and F the largest sums
    of sizes of products in a logit of the selecting and of the field head:

    - selecting: an exponent is off by δ = (8d_x + 64)Lε₀ (:func:`selecting_slack`), which moves weights that make up
      a crowd q beside 1, by at most 2·radius·q(e^δ − 1) in the mean; strangers beside the live field, part of the q
      given here, likewise;
    - weighing: an exponent is off by ℓ = ((2d_x + 2d_y + 12)F + 4)ε₀ (queries d_x + 2, the squares d_y, the products
      d_x + d_y + 4, the subtraction 2), the mean by 2·radius·tanh(ℓ/2) (:func:`field_error`);
    - both: sums, quotients and products lose (2n + 6)ε₀·radius, values 2ηy three roundings, u is added to 2(N−1) times
      and is at most U = 4η(N−1)radius long; radii are known to (d_y + 4)·2ε₀.
    """
    n, unit = responses - 1, unit_roundoff(dtype)
    slack = selecting_slack(dtype, selecting_logit, dim_x)
    weighing = ((2 * dim_x + 2 * dim_y + 12) * field_logit + 4) * unit
    if max(slack, weighing, tokens * unit) > 1:
        return math.inf
    means = 2 * radius * (crowd * math.expm1(slack) + math.tanh(weighing / 2)) + (4 * tokens + 18) * unit * radius
    adding = (2 * n + 2 * (dim_y + 4)) * unit * 4 * eta * n * radius
    return 1.01 * (2 * eta * n * means + adding)


def selecting_slack(dtype: torch.dtype, largest_logit: float, dim_x: int) -> float:
    r"""(8d_x + 64)Lε₀: how far a difference of two logits of the filtered selecting head can be from the class's bound.

    Each of two logits of d_x + 3 products, of sizes that add up to L, loses (d_x + 7)ε₀L, the subtraction 2ε₀L. Norms
    and overlaps of queries are known to (d_x + 4)·2ε₀, gaps of rewards to 4ε₀·max|r|.
    """
    return (8 * dim_x + 64) * largest_logit * unit_roundoff(dtype)


def flags_are_exact_among(
    dtype: torch.dtype,
    gamma_2: float,
    crowd: float,
    others: float,
    selecting_logit: float,
    gap: float,
    spread: float,
    largest_reward: float,
    tokens: int,
    dim_x: int,
) -> bool:
    r"""Whether in floating point every block raises one flag of each query and changes no other, strangers present.

    As :func:`flags_are_exact`, for n tokens of several queries: the strangers' share x/(1+x) moves r⁺ by at most R of
    it, and r⁺ is off by rounding by ρ = 2·max|r|·q(e^δ − 1) + (2n + 6)ε₀·max|r|, as in :func:`filtered_rounding`.

    Args:
        dtype: of weights and tokens.
        gamma_2: γ₂.
        crowd: q, the weight of all others beside the best live response, in any block.
        others: x, that of the strangers among them.
        selecting_logit: L.
        gap: Δ.
        spread: R.
        largest_reward: max|r|.
        tokens: n.
        dim_x: d_x.
    """
    slack = selecting_slack(dtype, selecting_logit, dim_x)
    if slack > 1:
        return False
    flag, mask = flag_rounding(dtype, largest_reward, gap), elimination_mask(gap, spread) + 0.5
    off = largest_reward * (2 * crowd * math.expm1(slack) + (2 * tokens + 6) * unit_roundoff(dtype))
    far = top_deviation(gamma_2, gap) + spread * share(others) + gap_shortfall(dtype, largest_reward)
    return far + off + flag * gap / 2 <= gap / 4 and off <= gap / 16 and (mask + 1) * flag <= 0.25
