r"""Chapter 6: N−1 blocks."""

from __future__ import annotations

import math
from typing import Any

import sympy as sp
import torch

from .block import elimination_mask, flag_rounding
from .elementary import EXP_ULP, exp, gap_shortfall, log, share, unit_roundoff
from .selection import attention_rounding


def winner_crowd(gamma: Any, gap: Any, spread: Any, responses: Any, block: Any) -> Any:
    r"""q_k: in block k, the weight of all others beside the best live response (claim ``theorem-3-3``).

    .. math:: q_k = \frac{ξ - ξ^{N-k+1}}{1-ξ} + e^{-γ(R+(N-k+2)Δ)}\,\frac{1-ξ^{k-1}}{1-ξ}, \quad ξ = e^{-γΔ}

    The first term is the live losers, Δ apart or more; the second the k−1 eliminated ones, at least Δ apart, of rewards
    at most high, and held back by 2γ(R + Δ).

    Args:
        gamma: γ > 0.
        gap: Δ.
        spread: R.
        responses: N.
        block: k, from 1 to N − 1.
    """
    xi, live = exp(-gamma * gap), responses - block
    back = exp(-gamma * (spread + (live + 2) * gap))
    return xi * (1 - xi**live) / (1 - xi) + back * (1 - xi ** (block - 1)) / (1 - xi)


def field_crowd(mask: Any, score_spread: Any, responses: Any, block: Any) -> Any:
    r"""p_k = (k−1)/(N−k+1)·e^{−(C−R_Z)}: in block k, the weight of the eliminated beside the live responses.

    Claim ``theorem-3-3``: k−1 scores, held back by C, against N−k+1; scores spread over R_Z.
    """
    each = (block - 1) / (responses - block + 1)
    return each if each == 0 else each * exp(score_spread - mask)  # the weight may be ∞, and 0·∞ is no number


def plackett_luce_error(
    eta: Any, gamma: Any, mask: Any, gap: Any, spread: Any, score_spread: Any, responses: Any, distance: Any
) -> Any:
    r"""2ηD Σ_{k=1}^{N−1} [q_k/(1+q_k) + p_k/(1+p_k)] ≥ ‖u − ΔW x‖, if γΔ ≥ log 5 (claim ``theorem-3-3``).

    Args:
        eta: η.
        gamma: γ.
        mask: C, by which the flag lowers a score.
        gap: Δ.
        spread: R.
        score_spread: R_Z.
        responses: N.
        distance: D, or the class's D₀.
    """

    def term(k: Any) -> Any:
        winner = share(winner_crowd(gamma, gap, spread, responses, k))
        return winner + share(field_crowd(mask, score_spread, responses, k))

    if any([isinstance(value, sp.Basic) for value in (gamma, mask, gap, spread, score_spread, responses)]):
        k = sp.Symbol("k", integer=True)
        total = sp.Sum(term(k), (k, 1, responses - 1))
    else:
        total = sum([term(k) for k in range(1, responses)])
    return 2 * eta * distance * total


def plackett_luce_temperatures(
    tolerance: Any, reach: Any, gap: Any, score_spread: Any, responses: Any
) -> tuple[Any, Any]:
    r"""(γ, C) that give an error of at most the tolerance (claim ``theorem-3-3``).

    .. math:: γ = \max(\log 5, \log(2.6\,U/\mathrm{tol}))/Δ, \quad C = R_Z + \max(0, \log(U\max(1, N-2)/\mathrm{tol}))

    Args:
        tolerance: tol > 0.
        reach: U = 2η(N−1)D₀, the longest that u can be.
        gap: Δ.
        score_spread: R_Z.
        responses: N ≥ 2.
    """
    largest = sp.Max if any([isinstance(v, sp.Basic) for v in (tolerance, reach, gap, responses)]) else max
    gamma = largest(log(sp.Integer(5) if largest is sp.Max else 5), log(13 * reach / (5 * tolerance))) / gap
    return gamma, score_spread + largest(0, log(reach * largest(1, responses - 2) / tolerance))


def top_deviation(gamma: Any, gap: Any) -> Any:
    r"""Δξ/(1−ξ), ξ = e^{−γΔ} ≤ 1/5: how far r⁺ can be from the best live reward, in any block.

    Claim ``theorem-3-3``, part threshold.
    """
    xi = exp(-gamma * gap)
    return gap * xi / (1 - xi)


def crowd_rounding(
    dtype: torch.dtype, logit: float, crowd_logit: float, crowd: float, tokens: int, radius: float
) -> float:
    r"""As :func:`attention_rounding`, for a head in which some tokens, the crowd, are light but have larger logits.

    The crowd's weight beside the others is at most q, its logits at most L′ in size, the others' at most L. Errors of
    the others are covered by :func:`attention_rounding` and can make the crowd heavier by e^κ, κ = (8L + 4)ε₀. The
    crowd's own exponentials are off by e^{±κ′}, κ′ = (8L′ + 4)ε₀, hence its weights by no more than e^{2κ′}, which
    moves the mean by at most its share times that, times the distance 2·radius:

    .. math:: 2\,\mathrm{radius}\;\frac{q e^{κ}}{1 + q e^{κ}}\;(e^{2κ'} - 1).

    A head that selects has a single token beside its crowd: L = 0, as softmax sees differences only.
    """
    unit = unit_roundoff(dtype)
    kappa, larger = [(8 * size + 2 * EXP_ULP) * unit for size in (logit, crowd_logit)]
    if max(kappa, larger) > 1:  # the dtype resolves no difference of logits
        return math.inf
    moved = 2 * radius * share(crowd * math.exp(kappa)) * math.expm1(2 * larger)
    return float(attention_rounding(dtype, logit, tokens, radius) + moved)


def flags_are_exact(
    dtype: torch.dtype, gamma: float, gap: float, spread: float, largest_reward: float, responses: int
) -> bool:
    r"""Whether in floating point, too, every block raises one flag to 1 (within its rounding) and changes no other.

    With φ = :func:`flag_rounding`, B = 2 + 2R/Δ and ρ the rounding of r⁺, itself a head's output:

    - the winner's z ≥ 1 and the live losers' z ≤ 0 survive rounding, if
      :func:`top_deviation` + ρ + φΔ/2 + s ≤ Δ/4: z has the slope 2/Δ and is itself off by at most φ, and a gap may fall
      short of Δ by s = 4ε₀·max|r|;
    - a raised flag, 1 − φ or more, makes z ≤ 3/2 + 2(R + ρ)/Δ − B(1 − φ) + φ < 0 if ρ ≤ Δ/16 and (B + 1)φ ≤ 1/4.
    """
    flag = flag_rounding(dtype, largest_reward, gap)
    mask = elimination_mask(gap, spread) + 0.5
    off = _selecting_rounding(dtype, gamma, gap, spread, largest_reward, responses, largest_reward)
    short = gap_shortfall(dtype, largest_reward)
    close = top_deviation(gamma, gap) + off + flag * gap / 2 + short <= gap / 4
    return close and off <= gap / 16 and (mask + 1) * flag <= 0.25


def _selecting_rounding(
    dtype: torch.dtype, gamma: float, gap: float, spread: float, largest_reward: float, responses: int, radius: float
) -> float:
    """The rounding of the selecting head in any block: logits γ(r − 2(R + Δ)·flag), sums of two products."""
    logit = 2 * gamma * (largest_reward + 2 * (spread + gap))
    others = max([winner_crowd(gamma, gap, spread, responses, k) for k in range(1, responses)])
    return crowd_rounding(dtype, 0.0, logit, others, responses, radius)


def plackett_luce_rounding(
    dtype: torch.dtype,
    eta: float,
    gamma: float,
    mask: float,
    gap: float,
    spread: float,
    largest_reward: float,
    score_spread: float,
    responses: int,
    dim_x: int,
    dim_y: int,
    reach: float,
    radius: float,
) -> float:
    r"""How far y − u after N−1 blocks in floating point can be from the same blocks in real arithmetic.

    Flags must be exact (:func:`flags_are_exact`); an unraised flag is 0 and adds nothing to a logit, a raised one makes
    its token part of the crowd. The selecting head's logits are sums of two products. Those of the field head,
    2⟨Wx,y⟩ − ‖y‖² − C·flag, lose 2(d_x + d_y + 3)ε₀·reach² (:func:`field_rounding`) and 2ε₀·reach² more when the
    largest is subtracted: as much as logits of size (d_x + d_y + 4)/4·reach² and, for the crowd, of twice C more, and
    of (d_y + 4)/2·reach², as norms may exceed the radius by (d_y + 4)·2ε₀.
    :func:`crowd_rounding` covers the rest. Values 2ηy are rounded twice, which costs
    4η·radius·ε₀ a head, and u, at most U = 4ηn·radius long, n = N−1, is added to twice a block and once to y. Together

    .. math:: 2ηn(A_1 + A_2) + \bigl(8ηn + 2n(4ηn + 2η) + 1 + 4ηn\bigr)\,\mathrm{radius}\,ε_0.
    """
    n, unit = responses - 1, unit_roundoff(dtype)
    selecting = _selecting_rounding(dtype, gamma, gap, spread, largest_reward, responses, radius)
    live = (dim_x + dim_y + 4) / 4 * reach * reach
    others = max([field_crowd(mask, score_spread, responses, k) for k in range(1, responses)])
    held_back = live + (dim_y + 4) / 2 * reach * reach + 2 * mask
    weighing = crowd_rounding(dtype, live, held_back, others, responses, radius)
    adding = 8 * eta * n + 2 * n * (4 * eta * n + 2 * eta) + 1 + 4 * eta * n
    return 2 * eta * n * (selecting + weighing) + adding * radius * unit
