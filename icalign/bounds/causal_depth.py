r"""Chapter 13, under a causal mask: N heads in one layer in place of N−1 blocks."""

from __future__ import annotations

import math
from typing import Any

import sympy as sp
import torch

from .block import flag_rounding
from .elementary import exp, gap_shortfall, log, share, unit_roundoff
from .plackett_luce import crowd_rounding
from .selection import attention_rounding


def prefix_logit(responses: Any, position: Any) -> Any:
    r"""log(N+1−i): the start token's logit at position i that makes every response weigh 1/(N+1), if theirs are 0.

    .. math:: \frac{1}{e^{\log(N+1-i)} + i} = \frac1{N+1}

    A head with these weights and the values (N+1)v_j adds up the prefix (claim ``causal-constant-depth``, part sum).
    """
    return log(responses + 1 - position)


def seen_crowd(margin: Any, prefix: Any, rank: Any) -> Any:
    r"""q: what start token and better responses weigh beside the others, in the head of a response of this rank.

    .. math:: q = \frac{e^{-h} + (k-1)\,e^{-2h}}{i-k+1}

    Claim ``causal-constant-depth``, part heads. The i − k + 1 responses from rank k down have scores in a range of
    width R_Z; the start token lags at least h behind all of them, the k − 1 better ones 2h.

    Args:
        margin: h = (c − R_Z)/2.
        prefix: i, how many responses the position sees.
        rank: k, from 1 to i.
    """
    return (exp(-margin) + (rank - 1) * exp(-2 * margin)) / (prefix - rank + 1)


def unseen_crowd(margin: Any, prefix: Any) -> Any:
    r"""i·e^{−h}: what i responses weigh beside the start token, in the head of one that is still to come.

    Claim ``causal-constant-depth``, part unseen.
    """
    return prefix * exp(-margin)


def causal_depth_error_at(eta: Any, margin: Any, responses: Any, distance: Any, position: Any) -> Any:
    r"""How far u is from the online step at position i, for every c ≥ 0 (claim ``causal-constant-depth``).

    .. math:: 2ηD_0 \sum_{k=1}^{i} \frac{q_k}{1+q_k} + ηD_0\,(N-i)\,\frac{i e^{-h}}{1 + i e^{-h}},
              \qquad q_k = \frac{e^{-h} + (k-1)e^{-2h}}{i-k+1}

    Args:
        eta: η.
        margin: h = (c − R_Z)/2.
        responses: N.
        distance: D₀, twice the radius.
        position: i.
    """

    def term(k: Any) -> Any:
        return share(seen_crowd(margin, position, k))

    if any([isinstance(value, sp.Basic) for value in (margin, position)]):
        k = sp.Symbol("k", integer=True)
        seen = sp.Sum(term(k), (k, 1, position))
    else:
        seen = sum([term(k) for k in range(1, position + 1)])
    unseen = (responses - position) * share(unseen_crowd(margin, position))
    return eta * distance * (2 * seen + unseen)


def causal_depth_error(eta: float, margin: float, responses: int, distance: float) -> float:
    """The largest of :func:`causal_depth_error_at` over all positions."""
    at = [causal_depth_error_at(eta, margin, responses, distance, i) for i in range(1, responses + 1)]
    return float(max(at))


def causal_depth_ceiling(eta: Any, margin: Any, responses: Any, distance: Any) -> Any:
    r"""ηD₀(N+4)²e^{−h}/4: no less than :func:`causal_depth_error_at` at any position, if h ≥ log N.

    Claim ``causal-constant-depth``, part tolerance.
    """
    return eta * distance * (responses + 4) ** 2 * exp(-margin) / 4


def causal_depth_margins(tolerance: Any, eta: Any, responses: Any, distance: Any) -> tuple[Any, Any]:
    r"""What h must be at least, for a tolerance: log N and log(ηD₀(N+4)²/(4·tol)).

    Claim ``causal-constant-depth``, part tolerance.
    """
    return log(responses), log(eta * distance * (responses + 4) ** 2 / (4 * tolerance))


def slot_rounding(dtype: torch.dtype, gap: float, spread: float, largest_reward: float, responses: int) -> float:
    r"""How far a slot of the row ``board`` in floating point can be from r_k − low + Δ; an empty one is exactly 0.

    The slot itself is made of r, high and R + Δ, two of them rounded, and two sums: 3(2L + R + Δ)ε₀, L = max|r|. One
    weight of a head of N + 1 tokens whose logits are at most log N is off by 2(e^{(8\log N + 4)ε₀} − 1) + (N+2)ε₀ of
    itself (:func:`attention_rounding`); N + 1, its product with the slot and that with the weight are rounded: 3ε₀.
    One unit in all is for the products of these small terms.
    """
    unit = unit_roundoff(dtype)
    exponent = (8 * math.log(responses) + 4) * unit
    if exponent > 1 or responses * unit > 1:
        return math.inf
    weight = 2 * math.expm1(exponent) + (responses + 5) * unit
    return 3 * (2 * largest_reward + spread + gap) * unit + (spread + gap) * (weight + unit)


def mask_slip(dtype: torch.dtype, gap: float, spread: float, largest_reward: float, responses: int) -> float:
    """How far an entry 1 of a mask m_k can be off in floating point, by its clipped step: :func:`flag_rounding`.

    The step compares slots, which are at most R + Δ, and their rounding, in place of rewards.
    """
    return flag_rounding(dtype, spread + gap + slot_rounding(dtype, gap, spread, largest_reward, responses), gap)


def masks_are_exact(dtype: torch.dtype, gap: float, spread: float, largest_reward: float, responses: int) -> bool:
    r"""Whether masks in floating point are exactly 0 where they should be, and 1 up to :func:`mask_slip` elsewhere.

    The step z = 2(s_j − s_k)/Δ − 1/2 needs z ≤ 0 and z ≥ 1; it has 1/2 to spare on either side. Slots are off by
    :func:`slot_rounding`, gaps short by :func:`gap_shortfall`, and z itself off by :func:`mask_slip` at most.
    """
    off = 2 * slot_rounding(dtype, gap, spread, largest_reward, responses) + gap_shortfall(dtype, largest_reward)
    return 2 * off / gap + mask_slip(dtype, gap, spread, largest_reward, responses) <= 0.5


def causal_depth_rounding(
    dtype: torch.dtype,
    eta: float,
    margin: float,
    mask: float,
    responses: int,
    dim_x: int,
    dim_y: int,
    reach: float,
    radius: float,
) -> float:
    r"""How far y − u in floating point can be from what :func:`causal_depth_error` bounds, for exact masks.

    All heads see at most N + 1 tokens. The first adds up values of length 2η(N+1)·radius with logits at most log N:
    A₀ = :func:`attention_rounding`. In the others the logits of responses are at most reach² in size, and lose
    (d_x + d_y + 6)ε₀ of that, an eighth of what is allowed for, which covers norms that exceed the radius by their
    rounding; marked responses and the start token have at most 2c more. Where the response is seen these are the crowd,
    A₁; else the start token has the responses as its crowd, A₂; :func:`crowd_rounding`. The margin is
    h − cφ, as a mask may be less than 1 by φ = :func:`mask_slip`. Values are rounded twice; partial sums are at most
    4ηN·radius long; and u is subtracted from y once. Together

    .. math:: 2η\bigl((N+1)A_0 + N\max(A_1, A_2)\bigr) + \bigl(4ηN^2 + 12ηN + 4η + 1\bigr)\,\mathrm{radius}\,ε_0.
    """
    n, tokens = responses, responses + 1
    gathering = attention_rounding(dtype, math.log(n), tokens, radius)
    live = (dim_x + dim_y + 6) * reach * reach
    seen = crowd_rounding(dtype, live, live + 4 * mask, seen_crowd(margin, n, n), tokens, radius)
    unseen = crowd_rounding(dtype, 0.0, live + 4 * mask, unseen_crowd(margin, n - 1), tokens, radius)
    adding = 4 * eta * n * n + 12 * eta * n + 4 * eta + 1
    heads = 2 * eta * (tokens * gathering + n * max(seen, unseen))
    return heads + adding * radius * unit_roundoff(dtype)
