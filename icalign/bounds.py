r"""Error bounds in closed form, and the temperatures that meet a tolerance.

Each formula is written once for numbers and for sympy: called with symbols it is the right-hand side that a chapter
proves, called with floats it is the number that a construction promises. So the bound that is proved is the bound
that runs.
"""

from __future__ import annotations

import math
from typing import Any

import sympy as sp
import torch

# Accuracy we assume of one call of torch's exp, in units in the last place (its vectorised library states 1.0).
_EXP_ULP = 2


def unit_roundoff(dtype: torch.dtype) -> float:
    """ε₀, half the spacing of the numbers of the dtype at 1: 2⁻⁵³ for float64, 2⁻²⁴, 2⁻¹¹, 2⁻⁸ (theory §0)."""
    return float(torch.finfo(dtype).eps) / 2


def _exp(x: Any) -> Any:
    return sp.exp(x) if isinstance(x, sp.Basic) else torch.exp(x) if isinstance(x, torch.Tensor) else math.exp(x)


def _log(x: Any) -> Any:
    return sp.log(x) if isinstance(x, sp.Basic) else math.log(x)


def share(q: Any) -> Any:
    """q/(1+q): the part of the attention that goes to a crowd q times as heavy as the winner."""
    return q / (1 + q)


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

    With ε₀ the unit roundoff and L the largest |logit|: a logit made of one product is off by ε₀L, the subtraction of
    the largest logit by 2ε₀L more, a gap that falls short of Δ by the rounding of its rewards by 4ε₀L, so each
    exponential has a relative error below e^{7ε₀L + 4ε₀} − 1 (two units in the last place for exp itself), each
    weight, a quotient by a sum of n such terms, one below twice that plus (n+1)ε₀, and the weighted mean of values in
    a ball of the radius loses (n+1)ε₀ more. Together

    .. math:: \mathrm{radius}\,\bigl(2\,\mathrm{expm1}((7L + 2\cdot 2)\,ε_0) + 2(n+1)\,ε_0\bigr)\,(1 + 4nε_0).

    The last factor covers the products of these small terms. An underflow to zero of a weight below the smallest
    normal number is covered by the same allowance, because the winner's weight is at least 1/n.
    """
    unit = unit_roundoff(dtype)
    exponent = (7 * largest_logit + 2 * _EXP_ULP) * unit
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
    return (responses - 1) * distance**2 * norm**2


def _score_rounding(unit: float, dim_x: int, dim_y: int, reach: float) -> float:
    """How far a computed score −‖Wx − y‖² can be off, with ‖|W||x|‖ + ‖y‖ ≤ reach.

    Wx − y is off by (d_x + 2)·ε₀·reach, the square of its norm by 2·reach times that and (d_y + 1)ε₀·reach² more;
    one unit is added for the products of these small terms.
    """
    return (2 * dim_x + dim_y + 6) * unit * reach**2


def loss_rounding(dtype: torch.dtype, responses: int, dim_x: int, dim_y: int, reach: float) -> float:
    r"""How far the computed Plackett–Luce loss of one query can be off.

    Scores lie in [−reach², 0] and are off by σ. Each of the N terms log S_k − s_k moves by at most 2σ; the tail sums
    gather positive terms, each a product of at most N exponentials, so their relative error is below
    (6N + 16)ε₀ + 2ε₀·reach²; and N terms of size at most reach² + log N are added. Together

    .. math:: N\bigl(2σ + (6N + 16 + 2\,\mathrm{reach}^2)ε_0 + (N + 2)(\mathrm{reach}^2 + \log N)ε_0\bigr).
    """
    unit = unit_roundoff(dtype)
    moved = 2 * _score_rounding(unit, dim_x, dim_y, reach)
    summed = 6 * responses + 16 + 2 * reach**2 + (responses + 2) * (reach**2 + math.log(responses))
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
    kappa = 8 * _score_rounding(unit, dim_x, dim_y, reach) + (8 * reach**2 + 12 * responses + 40) * unit
    if kappa > 1:  # the dtype resolves no weight
        return math.inf
    return 4 * reach * responses * (math.expm1(kappa) + 2 * (responses + dim_x + 6) * unit)
