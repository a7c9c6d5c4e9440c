r"""Error bounds in closed form, and the temperatures that meet a tolerance.

Each formula is written once for numbers and for sympy: called with symbols it is the right-hand side that a chapter
proves, called with floats it is the number that a construction promises. So the bound that is proved is the bound
that runs.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import sympy as sp
import torch

# Accuracy we assume of one call of torch's exp, in units in the last place (its vectorised library states 1.0).
_EXP_ULP = 2


def unit_roundoff(dtype: torch.dtype) -> float:
    """ε₀, half the spacing of the numbers of the dtype at 1: 2⁻⁵³ for float64, 2⁻²⁴, 2⁻¹¹, 2⁻⁸ (theory §0)."""
    return float(torch.finfo(dtype).eps) / 2


def _exp(x: Any) -> Any:
    if isinstance(x, sp.Basic | torch.Tensor):
        return sp.exp(x) if isinstance(x, sp.Basic) else torch.exp(x)
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _log(x: Any) -> Any:
    return sp.log(x) if isinstance(x, sp.Basic) else math.log(x)


def share(q: Any) -> Any:
    """q/(1+q): the part of the attention that goes to a crowd q times as heavy as the winner."""
    return 1.0 if isinstance(q, float) and q == math.inf else q / (1 + q)


def crowd(gamma: Any, gap: Any, responses: Any) -> Any:
    r"""q = (N−1)e^{−γΔ₁}, the weight of N−1 losers beside a winner ahead by Δ₁ (claim ``selection-bound``).

    Args:
        gamma: inverse temperature γ ≥ 0.
        gap: Δ₁, best reward minus second best.
        responses: N.
    """
    return (responses - 1) * _exp(-gamma * gap)


def crowd_in_steps(gamma: Any, gap: Any, responses: Any) -> Any:
    r"""Σ_{k=1}^{N−1} e^{−kγΔ}: the weight of the losers when neighbours in rank are at least Δ apart.

    Numbers get the closed form ξ(1−ξ^{N−1})/(1−ξ), ξ = e^{−γΔ}, free of cancellation; symbols the sum itself
    (claim ``selection-bound``).
    """
    if any([isinstance(value, sp.Basic) for value in (gamma, gap, responses)]):
        k = sp.Symbol("k", integer=True)
        return sp.Sum(_exp(-k * gamma * gap), (k, 1, responses - 1))
    a = gamma * gap
    return responses - 1 if a == 0 else math.exp(-a) * math.expm1(-(responses - 1) * a) / math.expm1(-a)


def selection_temperature(tolerance: Any, gap: Any, responses: Any, distance: Any) -> Any:
    r"""The least γ ≥ 0 with D·q/(1+q) ≤ ε: log((N−1)(D/ε−1))/Δ₁, where positive (claim ``selection-temperature``).

    Args:
        tolerance: ε, 0 < ε < D.
        gap: Δ₁.
        responses: N ≥ 2.
        distance: D, the largest distance between two responses.
    """
    return _log((responses - 1) * (distance / tolerance - 1)) / gap


def selection_temperature_all_gaps(tolerance: Any, gap: Any, distance: Any) -> Any:
    r"""γ = log(D/ε)/Δ: error at most ε for every N when all gaps are at least Δ (claim ``selection-temperature``)."""
    return _log(distance / tolerance) / gap


def attention_rounding(dtype: torch.dtype, largest_logit: float, tokens: int, radius: float) -> float:
    r"""How far one softmax head in floating point can be from the same head in real arithmetic.

    With ε₀ the unit roundoff and L the largest |logit|: a logit made of one product with γ, which is rounded itself,
    is off by 2ε₀L, the subtraction of the largest logit by 2ε₀L more, a gap that falls short of Δ by the rounding of
    its rewards by 4ε₀L, so each exponential has a relative error below e^{8ε₀L + 4ε₀} − 1 (two units in the last place
    for exp itself), each weight, a quotient by a sum of n such terms, one below twice that plus (n+1)ε₀, and the
    weighted mean of values in a ball of the radius loses (n+1)ε₀ more. Together

    .. math:: \mathrm{radius}\,\bigl(2\,\mathrm{expm1}((8L + 2\cdot 2)\,ε_0) + 2(n+1)\,ε_0\bigr)\,(1 + 4nε_0).

    The last factor covers the products of these small terms. An underflow to zero of a weight below the smallest
    normal number is covered by the same allowance, because the winner's weight is at least 1/n.
    """
    unit = unit_roundoff(dtype)
    exponent = (8 * largest_logit + 2 * _EXP_ULP) * unit
    if exponent > 1:  # the dtype resolves no difference of logits
        return math.inf
    return radius * (2 * math.expm1(exponent) + 2 * (tokens + 1) * unit) * (1 + 4 * tokens * unit)


def smoothness(responses: Any, distance: Any, norm: Any = 1) -> Any:
    r"""Λ = (N−1)D²‖x‖², the largest curvature of the loss along a unit direction (claim ``pl-smooth``).

    Args:
        responses: N.
        distance: D, the largest distance between two responses.
        norm: ‖x‖, 1 for a unit query.
    """
    return (responses - 1) * distance * distance * norm**2


def _score_rounding(unit: float, dim_x: int, dim_y: int, reach: float) -> float:
    """How far a computed score −‖Wx − y‖² can be off, with ‖|W||x|‖ + ‖y‖ ≤ reach.

    Wx − y is off by (d_x + 2)·ε₀·reach, the square of its norm by 2·reach times that and (d_y + 1)ε₀·reach² more;
    one unit is added for the products of these small terms.
    """
    return (2 * dim_x + dim_y + 6) * unit * reach * reach


def loss_rounding(dtype: torch.dtype, responses: int, dim_x: int, dim_y: int, reach: float) -> float:
    r"""How far the computed Plackett–Luce loss of one query can be off.

    Scores lie in [−reach², 0] and are off by σ. Each of the N terms log S_k − s_k moves by at most 2σ; the tail sums
    gather positive terms, each a product of at most N exponentials, so their relative error is below
    (6N + 16)ε₀ + 2ε₀·reach²; and N terms of size at most reach² + log N are added. Together

    .. math:: N\bigl(2σ + (6N + 16 + 2\,\mathrm{reach}^2)ε_0 + (N + 2)(\mathrm{reach}^2 + \log N)ε_0\bigr).
    """
    unit = unit_roundoff(dtype)
    moved = 2 * _score_rounding(unit, dim_x, dim_y, reach)
    square = reach * reach
    summed = 6 * responses + 16 + 2 * square + (responses + 2) * (square + math.log(responses))
    return responses * (moved + summed * unit)


def gradient_rounding(dtype: torch.dtype, responses: int, dim_x: int, dim_y: int, reach: float) -> float:
    r"""How far two computed gradients of the Plackett–Luce loss of a unit query can be apart, in Frobenius norm.

    Both routes, closed form and autograd, weigh each response by w_j = Σ_{k≤j} β_j^k, Σ_j w_j = N, made of sums,
    products and quotients of positive numbers: scores off by σ and subtracted once, at most N exponentials and 2N
    roundings in numerator and in denominator give w_j a relative error below e^κ − 1 with

    .. math:: κ = 8σ + (8\,\mathrm{reach}^2 + 12N + 40)\,ε_0.

    The gradient is 2Σ_j (w_j − 1) z_j xᵀ with ‖z_j‖ ≤ reach (z_j is y_j in one route, y_j − Wx in the other). It
    inherits 2·reach·N(e^κ − 1), and 4·reach·N(N + d_x + 6)ε₀ from the roundings of z_j, of the products and of the
    sum. The two routes can differ by twice the total.
    """
    unit = unit_roundoff(dtype)
    kappa = 8 * _score_rounding(unit, dim_x, dim_y, reach) + (8 * reach * reach + 12 * responses + 40) * unit
    if kappa > 1:  # the dtype resolves no weight
        return math.inf
    return 4 * reach * responses * (math.expm1(kappa) + 2 * (responses + dim_x + 6) * unit)


def elimination_mask(gap: Any, spread: Any) -> Any:
    """B = 3/2 + 2R/Δ: the least weight of the flag that keeps it unchanged once set (claim ``elimination-step``).

    Args:
        gap: Δ, the least gap between two rewards.
        spread: R, high − low.
    """
    return sp.Rational(3, 2) + 2 * spread / gap if isinstance(gap, sp.Basic) else 1.5 + 2 * spread / gap


def bradley_terry_error(eta: Any, gamma: Any, gap: Any, distance: Any) -> Any:
    r"""2ηD/(1+e^{γΔ}): how far two heads are from a step on two responses at distance D (claim ``bt-two-heads``)."""
    return 2 * eta * distance * share(crowd(gamma, gap, 2))


def bradley_terry_rounding(
    dtype: torch.dtype,
    eta: float,
    largest_logit: float,
    dim_x: int,
    dim_y: int,
    reach: float,
    radius: float,
) -> float:
    r"""How far y − ΔW x from the two heads in floating point can be from the two heads in real arithmetic.

    The selecting head has the largest logit γ·max|r|. The logits 2⟨Wx,y⟩ − ‖y‖² of the other are at most reach² in
    size, with ‖|W||x|‖ + ‖y‖ ≤ reach, and sums of products that lose (d_x + d_y + 6)ε₀·reach²: as much as one product
    that is larger by that factor. Each head is then covered by :func:`attention_rounding`. Its values 2ηy, rounded
    twice, lose 4η·radius·ε₀, and the two additions to y lose (2 + 6η)·radius·ε₀.
    """
    spread_out = (dim_x + dim_y + 6) * reach * reach
    heads = sum([attention_rounding(dtype, logit, 2, radius) for logit in (largest_logit, spread_out)])
    return 2 * eta * heads + (3 + 15 * eta) * radius * unit_roundoff(dtype)


def vanishing_epsilon(dtype: torch.dtype, largest_reward: float, gap: float) -> float:
    r"""p·ln 2 − log(r_1/Δ): here ε = r_1 − r⁺, as computed, is first not positive (claim ``elimination-printed``).

    For two rewards, the larger r_1 = max|r|. There ε = Δ/(1 + e^{γΔ}), and numbers at r_1 are 2^{−p}·r_1 to
    2^{1−p}·r_1 apart, so ε is half a spacing at this γΔ or by up to ln 2 above it. The weights and the mean are rounded
    too: r⁺ is off by about a spacing, and ε may vanish earlier, or later. The measured onset is within 2·ln 2. Beyond
    it ε is rounding noise, which may be positive again.

    Args:
        dtype: with ε₀ = 2^{−p}.
        largest_reward: r_1 > 0.
        gap: Δ.
    """
    return -math.log(unit_roundoff(dtype)) - math.log(largest_reward / gap)


def flag_rounding(dtype: torch.dtype, largest_reward: float, gap: float) -> float:
    r"""How far a flag that the clipped step sets can be from 1 in floating point (claim ``elimination-step``).

    The two units relu(z) and relu(z − 1) have one dot product (2/Δ)r_j − (2/Δ)r⁺, whose rounded products and sum can
    differ from one unit to the other by 2·(4L/Δ + 1/2)ε₀, L the largest |reward|. Adding 3/2 and 1/2 loses 3ε₀, taking
    the difference and adding it to the flag 2ε₀ more, and one unit is for the products of these small terms.
    """
    return (8 * largest_reward / gap + 7) * unit_roundoff(dtype)


def square_error(spacing: Any, dim_y: Any) -> Any:
    r"""E = d_y h²/4: how much too large a sum of d_y squares, interpolated between knots at spacing h, can be.

    Claim ``square-by-relu``; attained when every coordinate lies halfway between two knots.
    """
    return dim_y * spacing**2 / 4


def field_error(logit_error: Any, distance: Any) -> Any:
    r"""D·tanh(E/4): how far a softmax mean can move when each logit falls by a number in [0, E] of its own.

    Claim ``square-by-relu``; attained by two values at distance D. For symbols tanh is written in exponentials.

    Args:
        logit_error: E ≥ 0; only the spread of the errors counts, as softmax ignores a common shift.
        distance: D, the largest distance between two of the values.
    """
    quarter = logit_error / 4
    if isinstance(quarter, sp.Basic):
        return distance * (_exp(quarter) - _exp(-quarter)) / (_exp(quarter) + _exp(-quarter))
    return distance * (torch.tanh(quarter) if isinstance(quarter, torch.Tensor) else math.tanh(quarter))


def field_spacing(tolerance: Any, distance: Any, dim_y: Any) -> Any:
    r"""The largest spacing h with D·tanh(E/4) ≤ ε, E = d_y h²/4: √(8·log((D+ε)/(D−ε))/d_y) (claim ``square-by-relu``).

    Args:
        tolerance: ε, 0 < ε < D.
        distance: D.
        dim_y: d_y.
    """
    squared = 8 * _log((distance + tolerance) / (distance - tolerance)) / dim_y
    return sp.sqrt(squared) if isinstance(squared, sp.Basic) else math.sqrt(squared)


def square_rounding(dtype: torch.dtype, dim_y: int, radius: float, pieces: int) -> float:
    r"""How far the row of squares that a ReLU layer computes can be from the same layer in real arithmetic.

    A coordinate meets one hinge of slope at most 2B and n−1 of slope 2h, of height at most 2B: the products add up to
    at most 8B², with the bias to 9B². The n·d_y + 1 of them are added with a relative error of (n·d_y + 2)ε₀, weights
    are rounded once, and y_c − t_k, off by at most 4ε₀B, is multiplied by slopes that add up to 6B. If h ≤ 2B and no
    product underflows, together less than

    .. math:: 9\,d_y B^2\,(n\,d_y + 8)\,ε_0.
    """
    return 9 * dim_y * radius**2 * (pieces * dim_y + 8) * unit_roundoff(dtype)


def field_rounding(
    dtype: torch.dtype, dim_x: int, dim_y: int, tokens: int, reach: float, radius: float
) -> tuple[float, float]:
    r"""How far the mean of the β head can be off in floating point: (through its logits, beyond them).

    Logits 2⟨Wx,y⟩ − ‖y‖², and the scores −‖Wx−y‖² as well, are at most reach² in size, with ‖|W||x|‖ + ‖y‖ ≤ reach.
    The products Wx, of d_x terms, query times key, of d_y + 1, and ‖y‖², of d_y, leave either of them off by at most

    .. math:: 2\,(d_x + d_y + 3)\,ε_0\,\mathrm{reach}^2.

    The rest, softmax and mean, is :func:`attention_rounding`.
    """
    logit = 2 * (dim_x + dim_y + 3) * unit_roundoff(dtype) * reach * reach
    return logit, attention_rounding(dtype, reach * reach, tokens, radius)


def score_range(omega: Any, radius: Any) -> tuple[Any, Any]:
    r"""(Z_lo, Z_hi): where the reduced scores Z = 2⟨Wx,y⟩ − ‖y‖² of a class lie (theory §0).

    With ‖Wx‖ ≤ ω and ‖y‖ ≤ B, the radius, −2ωB − B² ≤ Z ≤ c(2ω − c) = ω² − (ω − c)², c = min(ω, B).

    Args:
        omega: ω, the spectral norm of W for unit queries, or another bound on ‖Wx‖.
        radius: bound on ‖y‖.
    """
    closest = sp.Min(omega, radius) if isinstance(omega, sp.Basic) else min(omega, radius)
    return -2 * omega * radius - radius * radius, closest * (2 * omega - closest)


def score_spread(omega: Any, radius: Any) -> Any:
    """R_Z = Z_hi − Z_lo: (ω + B)² if ω ≤ B, else 4ωB (theory §0)."""
    low, high = score_range(omega, radius)
    return high - low


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
    xi, live = _exp(-gamma * gap), responses - block
    back = _exp(-gamma * (spread + (live + 2) * gap))
    return xi * (1 - xi**live) / (1 - xi) + back * (1 - xi ** (block - 1)) / (1 - xi)


def field_crowd(mask: Any, score_spread: Any, responses: Any, block: Any) -> Any:
    r"""p_k = (k−1)/(N−k+1)·e^{−(C−R_Z)}: in block k, the weight of the eliminated beside the live responses.

    Claim ``theorem-3-3``: k−1 scores, held back by C, against N−k+1; scores spread over R_Z.
    """
    each = (block - 1) / (responses - block + 1)
    return each if each == 0 else each * _exp(score_spread - mask)  # the weight may be ∞, and 0·∞ is no number


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
    gamma = largest(_log(sp.Integer(5) if largest is sp.Max else 5), _log(13 * reach / (5 * tolerance))) / gap
    return gamma, score_spread + largest(0, _log(reach * largest(1, responses - 2) / tolerance))


def top_deviation(gamma: Any, gap: Any) -> Any:
    r"""Δξ/(1−ξ), ξ = e^{−γΔ} ≤ 1/5: how far r⁺ can be from the best live reward, in any block.

    Claim ``theorem-3-3``, part threshold.
    """
    xi = _exp(-gamma * gap)
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
    kappa, larger = [(8 * size + 2 * _EXP_ULP) * unit for size in (logit, crowd_logit)]
    if max(kappa, larger) > 1:  # the dtype resolves no difference of logits
        return math.inf
    moved = 2 * radius * share(crowd * math.exp(kappa)) * math.expm1(2 * larger)
    return float(attention_rounding(dtype, logit, tokens, radius) + moved)


def gap_shortfall(dtype: torch.dtype, largest_reward: float) -> float:
    """4ε₀·max|r|: how far a gap may fall short of Δ, by the rounding of its two rewards, in a task of the class."""
    return 4 * unit_roundoff(dtype) * largest_reward


def radius_excess(dtype: torch.dtype, dim_y: int) -> float:
    """(d_y + 4)·2ε₀: by how much of itself a norm may exceed the radius of the class, by its own rounding."""
    return (dim_y + 4) * 2 * unit_roundoff(dtype)


def radius_rounding(dtype: torch.dtype, dim_y: int, longest: float, reach: float = 0.0) -> float:
    r"""2Uδ(1 + reach²/2): what norms that exceed the radius by :func:`radius_excess`, δ, add to the error of a step.

    A bound on it is a sum of shares times 2ηD. D grows by δ of itself, hence the bound, which says nothing beyond 2U.
    The spread R_Z of the reduced scores grows by at most 2δ·reach², which moves each of two shares by a fourth of that;
    the reach is 0 where what is allowed for the rounding of logits covers this.
    """
    return 2 * longest * radius_excess(dtype, dim_y) * (1 + reach * reach / 2)


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


def expansion(eta: Any, curvature: Any) -> Any:
    r"""max(1, ηΛ−1): how much farther apart than before two starts can be after a step (claim ``many-steps-stable``).

    Args:
        eta: η.
        curvature: Λ, :func:`smoothness`.
    """
    excess = eta * curvature - 1
    return sp.Max(1, excess) if isinstance(excess, sp.Basic) else max(1.0, excess)


def many_steps_growth(eta: Any, curvature: Any, steps: Any) -> Any:
    r"""Σ_{t<T} max(1, ηΛ−1)^t: how the error δ of one step adds up over T steps (claim ``many-steps-stable``).

    T for η ≤ 2/Λ; ∞ for numbers that no float holds.

    Args:
        eta: η.
        curvature: Λ, :func:`smoothness`.
        steps: T.
    """
    factor = expansion(eta, curvature)
    if any([isinstance(value, sp.Basic) for value in (eta, curvature, steps)]):
        t = sp.Symbol("t", integer=True)
        return sp.Sum(factor**t, (t, 0, steps - 1))
    try:
        return math.fsum([factor**t for t in range(steps)])
    except OverflowError:
        return math.inf


def many_steps_gap(eta: Any, distance_squared: Any, steps: Any) -> Any:
    r"""‖(W₀−W*)x‖²/(2ηT): how far the loss can be above that of any W* after T steps with η ≤ 1/Λ.

    Claim ``many-steps-stable``, part rate.

    Args:
        eta: η.
        distance_squared: ‖(W₀−W*)x‖².
        steps: T.
    """
    return distance_squared / (2 * eta * steps)


def commit_rounding(dtype: torch.dtype, steps: int, longest: float) -> float:
    r"""(T+1)Uε₀: what moving u to v can lose in one of T steps (claim ``many-steps``, part commit).

    relu(u) − relu(−u) is exactly u, and v + u, at most TU long, is rounded once; one unit of U is for the products of
    small terms. In the rows flag, top and u the layer subtracts what stands there: they are exactly 0.

    Args:
        dtype: of the computation.
        steps: T.
        longest: U = 2η(N−1)D₀.
    """
    return (steps + 1) * longest * unit_roundoff(dtype)


def sure_elimination(gap: Any, spread: Any, responses: Any) -> Any:
    r"""γ = log(4(N−1)R/Δ)/Δ: from here on |r⁺ − m| ≤ Δ/4, whatever is flagged (claim ``naive-causal-patience``).

    N−1 others, each γΔ or more behind the best live response, move r⁺ by at most R(N−1)e^{−γΔ}.

    Args:
        gap: Δ.
        spread: R.
        responses: N ≥ 2.
    """
    return _log(4 * (responses - 1) * spread / gap) / gap


def causal_naive_error(
    eta: Any, gamma: Any, mask: Any, gap: Any, score_spread: Any, tokens: Any, rounds: Any, distance: Any
) -> Any:
    r"""How far u is from its hard limit at a position that sees t tokens (claim ``naive-causal-fails``).

    .. math:: 2ηDn \left( \frac{q}{1+q} + \frac{p}{1+p} \right), \quad q = (t-1)e^{-γΔ}, \quad p = (t-1)e^{-(C-R_Z)}

    Args:
        eta: η.
        gamma: γ.
        mask: C, by which the flag lowers a score.
        gap: Δ.
        score_spread: R_Z.
        tokens: t.
        rounds: n, the number of blocks.
        distance: D.
    """
    flagged = (tokens - 1) * _exp(score_spread - mask)
    return 2 * eta * distance * rounds * (share(crowd(gamma, gap, tokens)) + share(flagged))


def causal_naive_rounding(
    dtype: torch.dtype,
    eta: float,
    gamma: float,
    mask: float,
    gap: float,
    spread: float,
    largest_reward: float,
    tokens: int,
    rounds: int,
    dim_x: int,
    dim_y: int,
    reach: float,
    radius: float,
) -> float:
    r"""How far the accumulator of that many blocks, and its hard limit, can be off in floating point.

    A flag may be off by φ, :func:`flag_rounding`, in units of ε₀ as much as logits larger by the factor 1 + φ/ε₀. The
    selecting head has logits, sums of two products, of at most 2γ(max|r| + 2(R + Δ)); those of the other, and the
    scores of the hard limit, are at most reach² + C and lose (d_x + d_y + 6)ε₀ of their size. Both are then covered by
    :func:`attention_rounding`. Values 2ηy are rounded twice, and u, at most 4ηn·radius after n rounds, is added to
    twice a round: (8ηn + 2n(4ηn + 2η))·radius·ε₀, and once more for the hard limit.
    """
    unit = unit_roundoff(dtype)
    flags = 1 + flag_rounding(dtype, largest_reward, gap) / unit
    selecting = 2 * gamma * (largest_reward + 2 * (spread + gap)) * flags
    weighing = (dim_x + dim_y + 6) * (reach * reach + mask) * flags
    heads = sum([attention_rounding(dtype, logit, tokens, radius) for logit in (selecting, weighing)])
    adding = 8 * eta * rounds + 2 * rounds * (4 * eta * rounds + 2 * eta)
    return 2 * (2 * eta * rounds * heads + adding * radius * unit)


def digits(dtype: torch.dtype) -> int:
    """p, how many binary digits the numbers of the dtype have: ε₀ = 2^{−p}."""
    return round(-math.log2(unit_roundoff(dtype)))


def first_collision(p: int) -> int:
    r"""The least t for which 1/t and 1/(t+1) are one number when rounded to p binary digits, p ≥ 3.

    .. math:: t = \Bigl\lfloor \tfrac14\bigl(a + \sqrt{a^2 - 2^{2p+3}}\,\bigr) \Bigr\rfloor,
              \quad a = 2\,\bigl\lfloor 2^{p+1/2} + \tfrac12 \bigr\rfloor + 1

    With Q = 2^{2p−1}, the numbers of p digits around 1/t are the multiples of 1/Q for 2^{p−1} ≤ t ≤ 2^p. There t and
    t + 1 collide exactly if t + Q/t and (t+1) + Q/(t+1) are not rounded to one whole number, and the result is the last
    t before t + Q/t exceeds a/2 (claim ``position-precision``, part law).
    """
    Q = 2 ** (2 * p - 1)
    a = 2 * ((math.isqrt(16 * Q) + 1) // 2) + 1
    return (a + math.isqrt(a * a - 16 * Q)) // 4


def reciprocal_rounding(dtype: torch.dtype) -> float:
    """2ε₀: how far the z of a uniform head at token t can be from 1/t, relative to it (claim ``nope-reciprocal``).

    All logits are 0 and all exponentials 1; the value of the start token is 1, the other terms are 0. Only the quotient
    1/t is rounded: once, or twice where it is computed in a wider format first.
    """
    return 2 * unit_roundoff(dtype)


def position_rounding(dtype: torch.dtype, positions: int) -> float:
    r"""7(n+1)ε₀: how far the hats in floating point can be from a one-hot code (claim ``position-precision``).

    At token s, z = (1+δ)/s with |δ| ≤ 2ε₀. A ramp relu(1 − kz) is off by at most ε₀ where kz < 1, by ε₀kz from the
    product and ε₀(1 − kz) from the difference; where kz ≥ 1 it is exactly 0, since rounding is monotone. Hat t weighs
    three ramps with t, −2t and t, and 2 ≤ t ≤ n:

    - t ≥ s + 2: all three ramps are 0, so the hat is exactly 0.
    - t = s + 1: one ramp, which is at most δ + ε₀; tδ + tε₀ ≤ 3nε₀.
    - t = s: slopes beside the peak are at most t(t+1), which moves it by (t+1)δ; the ramps 3tε₀, products and sums
      3ε₀; 5(n+1)ε₀.
    - t = s − 1: the slope t(t+1) at most beside the end of the hat, tδ; the ramps 4tε₀; products and sums, of terms
      that add up to 4, 12ε₀; 6(t+2)ε₀ ≤ 6(n+1)ε₀.
    - t < s − 1: a line runs through the three ramps and δ cancels; the ramps 4tε₀; three roundings of terms that add
      up to 4t(1 − t/s); together at most 16s/3·ε₀, at t = 2s/3.

    One more unit is for the products of these small terms, while the total is below 1.
    """
    return 7 * (positions + 1) * unit_roundoff(dtype)


def rising_rounding(dtype: torch.dtype, positions: int) -> float:
    r"""20(n+1)²ε₀: the same for hats made of ramps relu(kz − 1), which rise with z (claim ``position-precision``).

    At token s a ramp is at most (k/s)(1+δ), and its product and difference lose ε₀k/s each: 8t(t+1)ε₀/s in a hat.
    Products and sums of terms that add up to 4t(t/s − 1) lose three roundings, 12t²ε₀/s; δ acts as on falling ramps.
    """
    return 20 * (positions + 1) ** 2 * unit_roundoff(dtype)


def most_positions(dtype: torch.dtype) -> int:
    """The largest n with :func:`position_rounding` ≤ 1/4, from which a second layer makes the code exact.

    It counts the start token, and is less than :func:`first_collision` (claim ``position-precision``).
    """
    return math.floor(1 / (28 * unit_roundoff(dtype))) - 1


def query_leak(gamma_1: Any, gamma_2: Any, spread: Any, overlap: Any, responses: Any, queries: Any) -> Any:
    r"""(M−1)N e^{−(γ₁(1−ρ)−γ₂R)}: the weight of all responses to other queries, beside a winner of 1 (``mq-bound``).

    Args:
        gamma_1: γ₁, the inverse temperature of the queries' inner products.
        gamma_2: γ₂, that of the rewards.
        spread: R, high − low.
        overlap: ρ, the largest inner product of two queries; 0 with one-hot identifiers (claim ``mq-query-ids``).
        responses: N.
        queries: M.
    """
    return (queries - 1) * responses * _exp(-(gamma_1 * (1 - overlap) - gamma_2 * spread))


def query_crowd(gamma_1: Any, gamma_2: Any, gap: Any, spread: Any, overlap: Any, responses: Any, queries: Any) -> Any:
    r"""q = (N−1)e^{−γ₂Δ} + (M−1)N e^{−(γ₁(1−ρ)−γ₂R)}: all losers beside a winner of weight 1 (claim ``mq-bound``).

    The query's own losers, :func:`crowd`, and the rest, :func:`query_leak`; Δ is the gap.
    """
    return crowd(gamma_2, gap, responses) + query_leak(gamma_1, gamma_2, spread, overlap, responses, queries)


def query_temperatures(
    tolerance: Any, gap: Any, spread: Any, overlap: Any, responses: Any, queries: Any
) -> tuple[Any, Any]:
    r"""(γ₁, γ₂) at which :func:`query_crowd` is ε (claim ``mq-bound``).

    .. math:: γ_2 = \log(2(N-1)/ε)/Δ, \qquad γ_1 = \bigl(γ_2R + \log(2(M-1)N/ε)\bigr)/(1-ρ)

    Args:
        tolerance: ε, 0 < ε < 2.
        gap: Δ.
        spread: R.
        overlap: ρ < 1.
        responses: N ≥ 2.
        queries: M ≥ 2.
    """
    gamma_2 = _log(2 * (responses - 1) / tolerance) / gap
    return (gamma_2 * spread + _log(2 * (queries - 1) * responses / tolerance)) / (1 - overlap), gamma_2


def query_temperature_floor(tolerance: Any, overlap: Any) -> Any:
    r"""log(1/ε − 1)/(1−ρ): no smaller γ₁ leaves every winner 1 − ε, whatever γ₂ is (claim ``mq-duplicates``)."""
    return _log(1 / tolerance - 1) / (1 - overlap)


def critical_ratio(advantage: Any, overlap: Any, norm_squared: Any = 1) -> Any:
    r"""(r^b − r^a)/(‖x^a‖² − ⟨x^a,x^b⟩): above this γ₁/γ₂, query a prefers its own response (``mq-critical-ratio``).

    Args:
        advantage: r^b − r^a, by how much the response to query b has the larger reward.
        overlap: ⟨x^a, x^b⟩.
        norm_squared: ‖x^a‖², larger than the overlap.
    """
    return advantage / (norm_squared - overlap)


def query_selection_error(
    gamma_1: Any,
    gamma_2: Any,
    gap: Any,
    spread: Any,
    overlap: Any,
    responses: Any,
    queries: Any,
    distance: Any,
    diameter: Any,
) -> Any:
    r"""D(N−1)e^{−γ₂Δ} + D₀(M−1)N e^{−(γ₁(1−ρ)−γ₂R)} ≥ ‖best − y₁^a‖ (claim ``mq-outcome``).

    Args:
        gamma_1: γ₁.
        gamma_2: γ₂.
        gap: Δ.
        spread: R.
        overlap: ρ.
        responses: N.
        queries: M.
        distance: D, the largest distance between responses to one query.
        diameter: D₀, the largest between responses to any.
    """
    own = distance * crowd(gamma_2, gap, responses)
    return own + diameter * query_leak(gamma_1, gamma_2, spread, overlap, responses, queries)


def query_selection_rounding(
    dtype: torch.dtype, gamma_1: float, gamma_2: float, largest_reward: float, tokens: int, dim_x: int, radius: float
) -> float:
    r"""How far the head that selects per query, in floating point, can be from the same head in real arithmetic.

    A logit γ₁⟨x,x′⟩ + γ₂r is a sum of d_x + 1 products whose first factors are rounded: it loses at most (d_x + 3)ε₀
    of L = γ₁ + γ₂·max|r|. The norms and overlaps of unit queries are known to (d_x + 4)ε₀, which costs as much again.
    So a logit is as good as a single product that is larger by d_x + 4, and :func:`attention_rounding` covers the rest.
    """
    largest = gamma_1 + gamma_2 * largest_reward
    return attention_rounding(dtype, (dim_x + 4) * largest, tokens, radius)


def mask_temperatures(margin: Any, gap: Any, spread: Any) -> tuple[Any, Any]:
    """(γ₁, c) = ((g+1)/Δ, (g+1)(2+R/Δ)): every margin of a masked round is at least g (claim ``mask-selection``).

    Args:
        margin: g > 0.
        gap: Δ.
        spread: R.
    """
    return (margin + 1) / gap, (margin + 1) * (2 + spread / gap)


def mask_margin(gamma: float, mask: float, gap: float, spread: float) -> float:
    r"""g = min(γ₁Δ, (c − γ₁R)/2) − 1: the margin that γ₁ and c give; :func:`mask_temperatures` gives them for g."""
    return min(gamma * gap, (mask - gamma * spread) / 2) - 1


def mask_crowd(margin: Any) -> Any:
    r"""ξ(1+ξ)/(1−ξ), ξ = e^{−g}: what all others weigh beside the next best, for every N (claim ``mask-selection``).

    Live responses, and a start token after them, have margins g, 2g, …; those taken have 2g, 3g, ….
    """
    xi = _exp(-margin)
    return xi * (1 + xi) / (1 - xi)


def mask_miss(margin: Any) -> Any:
    """(5/2)e^{−g} ≥ the share of :func:`mask_crowd`, if e^{−g} ≤ 3/7 (claim ``mask-selection``)."""
    return 5 * _exp(-margin) / 2


def stop_logit(low: Any, high: Any, mask: Any) -> Any:
    """(low + high − c)/2: the start token's logit, for logits in [low, high] that c lowers (claim ``stop-sink``).

    σ for the ends γ₁·low, γ₁·high and the mask c; σ′ for Z_lo, Z_hi and c′.
    """
    return (low + high - mask) / 2


def causal_error(reach: Any, margin: Any, field_margin: Any, field_mask: Any, responses: Any) -> Any:
    r"""How far u is from the online step at any position, if (5/2)(N−1)max(c, c′)e^{−g} ≤ 1 (claim ``causal-theorem``).

    .. math:: U\,\bigl[\tfrac52 e^{-g} + \tfrac5{16}(N-2)\,c' e^{-g} + (N-1)\,e^{1-h}\bigr], \quad U = 2η(N-1)D_0

    Args:
        reach: U, the longest that u can be.
        margin: g.
        field_margin: h = (c′ − R_Z)/2; below 1 the last term exceeds U, so the bound is true and says nothing.
        field_mask: c′.
        responses: N.
    """
    missed = mask_miss(margin)
    leaked = (responses - 2) * field_mask * missed / 8
    return reach * (missed + leaked + (responses - 1) * _exp(1 - field_margin))


def causal_field_margins(tolerance: Any, reach: Any, responses: Any) -> tuple[Any, Any]:
    """What h must be at least, for a tolerance: 1 and 1 + log(2(N−1)U/tol) (claim ``causal-theorem``)."""
    return 1, 1 + _log(2 * (responses - 1) * reach / tolerance)


def causal_margins(
    tolerance: Any, reach: Any, field_mask: Any, gap: Any, spread: Any, responses: Any
) -> tuple[Any, Any, Any]:
    r"""What g must be at least, for a tolerance (claim ``causal-theorem``).

    .. math:: \log\frac{2U}{\mathrm{tol}}\bigl(\tfrac52 + \tfrac5{16}(N-2)c'\bigr), \quad \log\tfrac52(N-1)c',
              \quad ℓ + \log(2ℓ+4), \; ℓ = \log\tfrac52(N-1)(2+R/Δ)

    The first meets the tolerance; with the other two (5/2)(N−1)max(c, c′)e^{−g} ≤ 1.
    """
    wide = _log(5 * (responses - 1) * (2 + spread / gap) / 2)
    return (
        _log(reach * (40 + 5 * (responses - 2) * field_mask) / (8 * tolerance)),
        _log(5 * (responses - 1) * field_mask / 2),
        wide + _log(2 * wide + 4),
    )


def mask_rounding(dtype: torch.dtype, margin: float, largest_logit: float, tokens: int, radius: float = 1.0) -> float:
    r"""How far rounding moves what the selecting head of a masked round writes, for values no longer than the radius.

    Its logits are sums of two products, as much as one product twice as large, and all but one of the tokens weigh
    :func:`mask_crowd` together: :func:`crowd_rounding`. An entry of m, at most 2, is added to besides: 2ε₀, here times
    the radius. With radius 1 this is the slip of claims ``mask-selection`` and ``causal-theorem`` in floating point.
    """
    head = crowd_rounding(dtype, 0.0, 2 * largest_logit, mask_crowd(margin), tokens, radius)
    return head + 2 * radius * unit_roundoff(dtype)


def mask_holds(masks: tuple[float, ...], margin: float, slip: float, responses: int) -> bool:
    r"""Whether the induction of ``mask-selection`` goes through for masks that each round moves by the slip as well.

    With E = (N−1)(q/(1+q) + slip), q = :func:`mask_crowd`, it needs g > 0 and cE ≤ 1, c′E ≤ 1.
    """
    return margin > 0 and max(masks) * (responses - 1) * (share(mask_crowd(margin)) + slip) <= 1


def causal_rounding(
    dtype: torch.dtype,
    eta: float,
    margin: float,
    selecting_logit: float,
    field_margin: float,
    field_mask: float,
    responses: int,
    dim_x: int,
    dim_y: int,
    reach: float,
    radius: float,
) -> float:
    r"""How far y − u after N−1 masked rounds in floating point can be from what :func:`causal_error` bounds.

    The heads see N+1 tokens. For the selecting one, A₁ = :func:`mask_rounding`. The logits of the other are at most
    reach² + 1 on live tokens, and lose (d_x + d_y + 6)ε₀ of that, an eighth of what is allowed for, which covers norms
    that exceed the radius by their rounding; on the others 2c′ more, and these weigh (N−1)e^{1−h}
    at most: A₂ = :func:`crowd_rounding`. Values and sums round as in :func:`plackett_luce_rounding`, n = N−1:

    .. math:: 2ηn(A_1 + A_2) + \bigl(8ηn + 2n(4ηn + 2η) + 1 + 4ηn\bigr)\,\mathrm{radius}\,ε_0.

    Besides, a round moves the mask by the slip μ, :func:`mask_rounding` with radius 1, beyond (5/2)e^{−g}. As in the
    theorem, (k−1)μ in round k moves the mean by D₀c′(k−1)μ/4, in all rounds by 2ηD₀·n(n−1)c′μ/8.
    """
    n, tokens, unit = responses - 1, responses + 1, unit_roundoff(dtype)
    selecting = mask_rounding(dtype, margin, selecting_logit, tokens, radius)
    live = (dim_x + dim_y + 6) * (reach * reach + 1)
    weighing = crowd_rounding(dtype, live, live + 4 * field_mask, n * math.exp(1 - field_margin), tokens, radius)
    adding = 8 * eta * n + 2 * n * (4 * eta * n + 2 * eta) + 1 + 4 * eta * n
    moved = n * (n - 1) * field_mask * mask_rounding(dtype, margin, selecting_logit, tokens) / 2
    return 2 * eta * n * (selecting + weighing) + (adding * unit + eta * moved) * radius


@cache
def sink_coefficients(pairs: int) -> tuple[sp.Rational, ...]:
    r"""a_1, …, a_P with Σ a_k = 1 and Σ a_k k^{2m} = 0 for 0 < m < P: how P pairs of heads at ε, 2ε, … are combined.

    .. math:: a_k = \frac{2\,(-1)^{k-1}\,(P!)^2}{(P-k)!\,(P+k)!}

    Lagrange's interpolation at 0 through the nodes 1, 4, …, P² (claim ``sink-linear-attention``).
    """
    square = math.factorial(pairs) ** 2
    places = range(1, pairs + 1)
    below = [math.factorial(pairs - k) * math.factorial(pairs + k) for k in places]
    return tuple([sp.Rational(2 * (-1) ** (k - 1) * square, n) for k, n in zip(places, below, strict=True)])


def _over_pairs(term: Any, epsilon: Any, pairs: int) -> Any:
    """Σ_k |a_k| term(kε)/(kε)."""
    exact = isinstance(epsilon, sp.Basic)
    sizes = [abs(a) if exact else float(abs(a)) for a in sink_coefficients(pairs)]
    return sum([size * term(k * epsilon) / (k * epsilon) for k, size in enumerate(sizes, 1)])


def _sinh(x: Any) -> Any:
    if isinstance(x, sp.Basic):
        return (sp.exp(x) - sp.exp(-x)) / 2
    try:
        return math.sinh(x)
    except OverflowError:
        return math.inf


def sink_curvature(epsilon: Any, pairs: int = 1) -> Any:
    r"""|Σ_k a_k sinh(kε)/(kε) − 1|: what P pairs are off by because exponentials bend (``sink-linear-attention``).

    sinh ε/ε − 1 for one pair, (1 − sinh ε/ε·(4 − cosh ε)/3) for two. Symbols get this form, numbers its series, whose
    terms have one sign: Σ_{m≥P} |Σ_k a_k k^{2m}| ε^{2m}/(2m+1)!; ∞ for Pε > 720, where sinh is beyond any float.

    Args:
        epsilon: ε > 0.
        pairs: P.
    """
    if isinstance(epsilon, sp.Basic):
        parts = enumerate(sink_coefficients(pairs), 1)
        total = sum([a * _sinh(k * epsilon) / (k * epsilon) for k, a in parts])
        return (-1) ** (pairs - 1) * (total - 1)
    furthest = pairs * epsilon
    if furthest > 720:  # sinh(Pε) is beyond any float
        return math.inf
    total, size = 0.0, 1.0  # (Pε)^{2m}/(2m+1)!, from m = 0 on
    moments = _curvature_moments(pairs, 40 + math.ceil(furthest))
    for m in range(1, pairs + len(moments)):
        size *= furthest * furthest / (2 * m * (2 * m + 1))
        total += moments[m - pairs] * size if m >= pairs else 0.0
    return total


@cache
def _curvature_moments(pairs: int, count: int) -> list[float]:
    """|Σ_k a_k (k/P)^{2m}| for m from P on. Beyond 40 + Pε of them the terms of the series no longer matter."""
    coefficients = [Fraction(int(a.p), int(a.q)) for a in sink_coefficients(pairs)]
    nodes = [Fraction(k, pairs) ** 2 for k in range(1, pairs + 1)]
    parts = [a * node**pairs for a, node in zip(coefficients, nodes, strict=True)]
    found = []
    for _ in range(count):
        found.append(abs(float(sum(parts))))
        parts = [part * node for part, node in zip(parts, nodes, strict=True)]
    return found


def sink_leak(epsilon: Any, lambda_: Any, tokens: Any, pairs: int = 1) -> Any:
    r"""n e^{−λ} Σ_k |a_k| sinh(2kε)/(kε): what P pairs are off by because n tokens weigh something beside the sink.

    n e^{−λ} sinh(2ε)/ε for one pair (claim ``sink-linear-attention``).

    Args:
        epsilon: ε > 0.
        lambda_: λ, the logit of the sink.
        tokens: n, those beside the sink.
        pairs: P.
    """
    return tokens * _exp(-lambda_) * _over_pairs(lambda x: _sinh(2 * x), epsilon, pairs)


def sink_error(epsilon: Any, lambda_: Any, tokens: Any, pairs: int = 1) -> Any:
    """:func:`sink_curvature` + :func:`sink_leak`: how far Σ w_j v_j is from Σ z_j v_j, |z_j| ≤ 1, over Σ‖v_j‖.

    Claim ``sink-linear-attention``.
    """
    return sink_curvature(epsilon, pairs) + sink_leak(epsilon, lambda_, tokens, pairs)


def sink_order(epsilon: Any, pairs: int = 1) -> Any:
    r"""(P!)²/(2P+1)!·(2 sinh(ε/2))^{2P} ≥ :func:`sink_curvature`, and equal to it to leading order ε^{2P}."""
    size = sp.Rational(math.factorial(pairs) ** 2, math.factorial(2 * pairs + 1))
    return (size if isinstance(epsilon, sp.Basic) else float(size)) * (2 * _sinh(epsilon / 2)) ** (2 * pairs)


def sink_spacing(curvature: Any, pairs: int = 1) -> Any:
    r"""The ε at which :func:`sink_order` is the given number (claim ``sink-linear-attention``).

    .. math:: 2\sinh(ε/2) = \bigl((2P+1)!/(P!)^2\;\mathrm{curvature}\bigr)^{1/2P}
    """
    order = math.factorial(2 * pairs + 1) // math.factorial(pairs) ** 2 * curvature
    if isinstance(curvature, sp.Basic):
        half = order ** sp.Rational(1, 2 * pairs) / 2
        return 2 * sp.log(half + sp.sqrt(half**2 + 1))
    return 2 * math.asinh(order ** (1 / (2 * pairs)) / 2)


def sink_logit(epsilon: Any, leak: Any, tokens: Any, pairs: int = 1) -> Any:
    r"""The λ at which :func:`sink_leak` is the given number: log(n Σ_k |a_k| sinh(2kε)/(kε) / leak)."""
    return _log(sink_leak(epsilon, sp.Integer(0) if isinstance(leak, sp.Basic) else 0.0, tokens, pairs) / leak)


def sink_rounding(dtype: torch.dtype, epsilon: float, lambda_: float, tokens: int, dim: int, pairs: int = 1) -> float:
    r"""How far P pairs in floating point can be from the same pairs in real arithmetic, over Σ‖v_j‖ (with the sink's).

    A head's logits kε⟨x,x′⟩ lose (d + 4)kε·ε₀, and the subtraction of λ from them loses (λ + kε)ε₀. Exponentials,
    quotients, scaled values lose 8ε₀, the sums over n tokens and the sink 2(n+1)ε₀. All this is relative to what the
    head adds, at most |a_k|e^{kε}/(2kε); 2P heads are added up, each with one more rounding of the sum so far. λ itself
    is rounded alike in all heads, which moves the result by λε₀ of itself. Together, with T = Σ_k |a_k|e^{kε}/(kε),

    .. math:: T\,(λ + 2n + 2P + 12 + (d + 5)Pε)\,ε_0 + (λ + 4)\,ε_0 \sum_k |a_k| \sinh(kε)/(kε),

    and a hundredth of it for the products of these small terms. So it is about (λ + 2n + 14)ε₀/ε for one pair; the n
    is what sums can lose at worst and seldom do. ∞ where the weights e^{−λ−Pε} are below the normal range.
    """
    unit = unit_roundoff(dtype)
    if lambda_ + pairs * epsilon > -math.log(torch.finfo(dtype).smallest_normal) - 1:
        return math.inf
    added = _over_pairs(_exp, epsilon, pairs)
    units = lambda_ + 2 * tokens + 2 * pairs + 12 + (dim + 5) * pairs * epsilon
    if units * unit > 0.01:
        return math.inf
    return float(1.01 * unit * (added * units + (lambda_ + 4) * _over_pairs(_sinh, epsilon, pairs)))


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
    xi, live = _exp(-gamma_2 * gap), responses - block
    crowds = (queries - 1) * (1 - xi**responses) / (1 - xi) + sinks
    return crowds * _exp(gamma_2 * (spread - live * gap) - gamma_1 * (1 - overlap))


def field_strangers(
    gamma_beta: Any, score_spread: Any, overlap: Any, responses: Any, queries: Any, block: Any, sinks: Any = 1
) -> Any:
    r"""In block k, the weight of other queries' responses and the sink beside the live field of the own query.

    .. math:: \frac{(M-1)N + \mathrm{sinks}}{N-k+1}\,e^{R_Z - γ_β(1-ρ)}

    Claim ``mq-theorem``; arguments as :func:`strangers`, R_Z the spread of the reduced scores. The sink counts as a
    response y = 0, whose reduced score 0 lies in their range.
    """
    others = (queries - 1) * responses + sinks
    return others / (responses - block + 1) * _exp(score_spread - gamma_beta * (1 - overlap))


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
    return reach * (half * _exp(-selecting) + (responses - 1) * _exp(-weighing))


def own_terms_margins(tolerance: Any, reach: Any, responses: Any) -> tuple[Any, Any]:
    r"""(g, h) at which :func:`own_terms_error` is at most the tolerance (claim ``mq-theorem``, part choice).

    .. math:: g = \max(\log 9, \log(5U/\mathrm{tol})), \qquad h = \max(1, \log(2(N-1)U/\mathrm{tol}))
    """
    symbols = any([isinstance(v, sp.Basic) for v in (tolerance, reach, responses)])
    largest, nine = (sp.Max, sp.Integer(9)) if symbols else (max, 9)
    return largest(_log(nine), _log(5 * reach / tolerance)), largest(1, _log(2 * (responses - 1) * reach / tolerance))


def own_terms_temperatures(
    selecting: Any, weighing: Any, gap: Any, spread: Any, score_spread: Any, overlap: Any, queries: Any
) -> tuple[Any, Any, Any, Any]:
    r"""(γ₁, γ₂, γ_β, C) for margins g and h (claim ``mq-theorem``).

    .. math:: γ_2 = g/Δ,\quad γ_1 = \frac{γ_2R + g + \log(MR/Δ)}{1-ρ},\quad γ_β = \frac{R_Z + h + \log M}{1-ρ},
              \quad C = R_Z + h
    """
    gamma_2 = selecting / gap
    gamma_1 = (gamma_2 * spread + selecting + _log(queries * spread / gap)) / (1 - overlap)
    gamma_beta = (score_spread + weighing + _log(queries)) / (1 - overlap)
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


def causal_filters(mask: Any, field_mask: Any, overlap: Any, tokens: Any) -> tuple[Any, Any]:
    r"""(γ_q, γ_β) = ((c + log n)/(1−ρ), (c′ + log n)/(1−ρ)): masked heads keep to a query (``causal-multi-query``).

    Args:
        mask: c.
        field_mask: c′.
        overlap: ρ < 1.
        tokens: n, the responses to all queries.
    """
    return (mask + _log(tokens)) / (1 - overlap), (field_mask + _log(tokens)) / (1 - overlap)


def causal_queries_crowd(margin: Any) -> Any:
    r"""ξ(1+ξ)/(1−ξ) + ξ/e, ξ = e^{−g}: as :func:`mask_crowd`, among other queries (claim ``causal-multi-query``).

    In a live round the others weigh ξ^{L+2} together, one more term after L losers and the start token. In a surplus
    round they weigh e^{−(g+1)} together beside the start token.
    """
    return mask_crowd(margin) + _exp(-margin - 1)


def causal_queries_error(reach: Any, margin: Any, field_margin: Any, field_mask: Any, responses: Any) -> Any:
    r"""U[(5/2)e^{−g} + (5/16)(N−2)c′e^{−g} + N e^{1−h}]: :func:`causal_error` among other queries.

    Claim ``causal-multi-query``; arguments as there. The others are one more token in the last term.
    """
    return causal_error(reach, margin, field_margin, field_mask, responses) + reach * _exp(1 - field_margin)


def causal_queries_field_margins(tolerance: Any, reach: Any, responses: Any) -> tuple[Any, Any]:
    """What h must be at least, for a tolerance: 1 and 1 + log(2NU/tol) (claim ``causal-multi-query``).

    The other half of the tolerance is for g, from :func:`causal_margins`.
    """
    return 1, 1 + _log(2 * responses * reach / tolerance)


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
    return (strength * tokens + _log(tokens)) / (1 - overlap)


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
    return tolerance / (4 * queries), _log(25 * most / tolerance), 2 * tolerance / (9 * most)


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
    values = 3 * unit * _over_pairs(_exp, epsilon, pairs) * 2 * tokens * longest
    norms = 4 * (dim_x + 4) * 2 * unit * length
    coupled = more * sink_error(epsilon, lambda_, tokens, pairs) + length * pair + values + norms
    return float(1.01 * (queries * own_rounding + tokens * fetching + coupled))
