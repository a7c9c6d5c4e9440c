r"""Chapter 12, the second page: several queries under a causal mask."""

from __future__ import annotations

import math
from typing import Any

import torch

from .causal import causal_error, mask_crowd, mask_miss
from .elementary import exp, log, share, unit_roundoff
from .queries import filtered_rounding, selecting_slack
from .sink import over_pairs, sink_error, sink_rounding


def causal_filters(mask: Any, field_mask: Any, overlap: Any, tokens: Any) -> tuple[Any, Any]:
    r"""(γ_q, γ_β) = ((c + log n)/(1−ρ), (c′ + log n)/(1−ρ)): masked heads keep to a query (``causal-multi-query``).

    Args:
        mask: c.
        field_mask: c′.
        overlap: ρ < 1.
        tokens: n, the responses to all queries.
    """
    return (mask + log(tokens)) / (1 - overlap), (field_mask + log(tokens)) / (1 - overlap)


def causal_queries_crowd(margin: Any) -> Any:
    r"""ξ(1+ξ)/(1−ξ) + ξ/e, ξ = e^{−g}: as :func:`mask_crowd`, among other queries (claim ``causal-multi-query``).

    In a live round the others weigh ξ^{L+2} together, one more term after L losers and the start token. In a surplus
    round they weigh e^{−(g+1)} together beside the start token.
    """
    return mask_crowd(margin) + exp(-margin - 1)


def causal_queries_error(reach: Any, margin: Any, field_margin: Any, field_mask: Any, responses: Any) -> Any:
    r"""U[(5/2)e^{−g} + (5/16)(N−2)c′e^{−g} + N e^{1−h}]: :func:`causal_error` among other queries.

    Claim ``causal-multi-query``; arguments as there. The others are one more token in the last term.
    """
    return causal_error(reach, margin, field_margin, field_mask, responses) + reach * exp(1 - field_margin)


def causal_queries_field_margins(tolerance: Any, reach: Any, responses: Any) -> tuple[Any, Any]:
    """What h must be at least, for a tolerance: 1 and 1 + log(2NU/tol) (claim ``causal-multi-query``).

    The other half of the tolerance is for g, from :func:`causal_margins`.
    """
    return 1, 1 + log(2 * responses * reach / tolerance)


def causal_queries_slip(dtype: torch.dtype, margin: float, largest_logit: float, tokens: int, dim_x: int) -> float:
    r"""How far a round moves the mask, beyond (5/2)e^{−g}, in floating point: :func:`mask_rounding` among n tokens.

    Weights that make up a crowd q are off by q(e^δ − 1), δ = :func:`selecting_slack`, and the winner's by as much; sums
    and quotients lose (2n + 6)ε₀, an entry of m, at most 2, is added to: 2ε₀.
    """
    slack = selecting_slack(dtype, largest_logit, dim_x)
    if slack > 1:
        return math.inf
    return float(2 * causal_queries_crowd(margin) * math.expm1(slack) + (2 * tokens + 8) * unit_roundoff(dtype))


def causal_queries_hold(masks: tuple[float, ...], margin: float, slip: float, responses: int) -> bool:
    r"""Whether masks stay good enough for the next round: :func:`mask_holds` among other queries."""
    if not margin > 0:
        return False
    return bool(max(masks) * (responses - 1) * (share(causal_queries_crowd(margin)) + slip) <= 1)


def causal_queries_rounding(
    dtype: torch.dtype,
    eta: float,
    margin: float,
    selecting_logit: float,
    field_margin: float,
    field_mask: float,
    field_logit: float,
    tokens: int,
    responses: int,
    dim_x: int,
    dim_y: int,
    radius: float,
) -> float:
    r"""How far u after N−1 masked rounds among n tokens in floating point can be from the same in real arithmetic.

    The heads round as in :func:`filtered_rounding`, where the crowd, whatever is not selected or not live, weighs
    :func:`causal_queries_crowd` and N e^{1−h}; the start token has logits γ_q + σ, γ_β + σ′, no larger than others. A
    slip μ of the mask a round moves the mean of round k by D₀c′(k−1)μ/4, as in :func:`causal_rounding`.

    Args:
        dtype: of weights and tokens.
        eta: η.
        margin: g.
        selecting_logit: the largest sum of sizes of products in a logit of the selecting head.
        field_margin: h ≥ 1.
        field_mask: c′.
        field_logit: that of the other head.
        tokens: n, the start token included.
        responses: N.
        dim_x: d_x.
        dim_y: d_y.
        radius: bound on ‖y‖.
    """
    crowd = causal_queries_crowd(margin) + responses * math.exp(1 - field_margin)
    heads = filtered_rounding(dtype, eta, crowd, selecting_logit, field_logit, tokens, responses, dim_x, dim_y, radius)
    slip = causal_queries_slip(dtype, margin, selecting_logit, tokens, dim_x)
    return heads + eta * (responses - 1) * (responses - 2) * field_mask * slip / 2 * radius


def fetch_filter(strength: Any, overlap: Any, tokens: Any) -> Any:
    r"""γ_p = (κn + log n)/(1−ρ): the fetching head keeps to a query (claim ``causal-multi-query``, previous-token).

    Args:
        strength: κ, by which a token is ahead of the one before it.
        overlap: ρ < 1.
        tokens: n.
    """
    return (strength * tokens + log(tokens)) / (1 - overlap)


def fetch_error(reach: Any, own: Any, strength: Any) -> Any:
    r"""2(U+E)·(5/2)e^{−κ}: how far what is fetched is from the accumulator of the previous token of the query.

    All others weigh :func:`mask_crowd` at κ, and accumulators are at most U + E long (``causal-multi-query``).

    Args:
        reach: U.
        own: E, how far an accumulator is from the own step.
        strength: κ ≥ log(7/3).
    """
    return 2 * (reach + own) * mask_miss(strength)


def increments_length(queries: Any, responses: Any, reach: Any) -> Any:
    r"""MNU/2 ≥ Σ_j ‖v_j‖, v_j the exact increment of the online step at token j (claim ``causal-multi-query``).

    The t-th response to a query changes at most t − 1 terms, each by no more than 2ηD₀.
    """
    return queries * responses * reach / 2


def joint_causal_error(queries: Any, responses: Any, reach: Any, own: Any, fetched: Any, sink: Any) -> Any:
    r"""M·E + MN·F + MN(U/2 + 2E + F)·E_sink: the error of the joint step at any position (``causal-multi-query``).

    Errors E of accumulators telescope, those F of fetching do not.

    Args:
        queries: M.
        responses: N.
        reach: U = 2η(N−1)D₀.
        own: E, how far an accumulator is from the own step.
        fetched: F, :func:`fetch_error`.
        sink: E_sink, :func:`sink_error` with n = MN.
    """
    tokens = queries * responses
    length = increments_length(queries, responses, reach) + tokens * (2 * own + fetched)
    return queries * own + tokens * fetched + length * sink


def joint_causal_shares(tolerance: Any, queries: Any, responses: Any, reach: Any) -> tuple[Any, Any, Any]:
    r"""(E, κ, curvature = leak) that make :func:`joint_causal_error` at most a tolerance ≤ MU.

    .. math:: E = \frac{\mathrm{tol}}{4M}, \qquad κ = \log\frac{25MNU}{\mathrm{tol}},
              \qquad \frac{2\,\mathrm{tol}}{9MNU}

    The last is for each of the two terms of the sink pair's error (claim ``causal-multi-query``).
    """
    most = queries * responses * reach
    return tolerance / (4 * queries), log(25 * most / tolerance), 2 * tolerance / (9 * most)


def joint_causal_rounding(
    dtype: torch.dtype,
    queries: int,
    responses: int,
    reach: float,
    own: float,
    fetched: float,
    own_rounding: float,
    strength: float,
    fetch_logit: float,
    epsilon: float,
    lambda_: float,
    pairs: int,
    dim_x: int,
) -> float:
    r"""How far the row joint in floating point can be from what :func:`joint_causal_error` bounds.

    - Accumulators are off by ρ more, which telescopes: Mρ. They are at most A = U + E + ρ long.
    - The fetching head, with n = MN + 1 tokens, is off by 2Aq(e^δ − 1) + (2n + 8)ε₀A =: F₁, q = :func:`mask_crowd` at
      κ and δ = :func:`selecting_slack`; and by 2ρ times its crowd's share: MN(F₁ + 5ρe^{−κ}).
    - What is added is longer by MN(2ρ + F₁ + 5ρe^{−κ}), all of it V long: the pairs' E_sink of that, and V times
      :func:`sink_rounding`. Queries whose norms are known to ν change E_sink's |z_j| ≤ 1 by 2ν: 4Vν.
    - A value s(u − u′) loses 3ε₀s(‖u‖ + ‖u′‖), in all heads T·3ε₀·2MNA, T = Σ_k |a_k|e^{kε}/(kε).

    Args:
        dtype: of weights and tokens.
        queries: M.
        responses: N.
        reach: U.
        own: E.
        fetched: F.
        own_rounding: ρ, :func:`causal_queries_rounding`.
        strength: κ.
        fetch_logit: the largest sum of sizes of products in a logit of the fetching head.
        epsilon: ε.
        lambda_: λ.
        pairs: P.
        dim_x: d_x.
    """
    unit, tokens = unit_roundoff(dtype), queries * responses
    slack = selecting_slack(dtype, fetch_logit, dim_x)
    pair = sink_rounding(dtype, epsilon, lambda_, tokens + 1, dim_x, pairs)
    if slack > 1 or math.inf in (pair, own_rounding):
        return math.inf
    longest = reach + own + own_rounding
    fetching = longest * (2 * mask_crowd(strength) * math.expm1(slack) + (2 * tokens + 10) * unit)
    fetching += 2 * own_rounding * mask_miss(strength)
    more = tokens * (2 * own_rounding + fetching)
    length = increments_length(queries, responses, reach) + tokens * (2 * own + fetched) + more
    values = 3 * unit * over_pairs(exp, epsilon, pairs) * 2 * tokens * longest
    norms = 4 * (dim_x + 4) * 2 * unit * length
    coupled = more * sink_error(epsilon, lambda_, tokens, pairs) + length * pair + values + norms
    return float(1.01 * (queries * own_rounding + tokens * fetching + coupled))
