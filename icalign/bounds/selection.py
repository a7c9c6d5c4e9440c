r"""Chapter 3: how much attention the winner gets, and the temperature for a tolerance."""

from __future__ import annotations

import math
from typing import Any

import sympy as sp
import torch

from .elementary import EXP_ULP, exp, log, unit_roundoff


def crowd(gamma: Any, gap: Any, responses: Any) -> Any:
    r"""q = (N−1)e^{−γΔ₁}, the weight of N−1 losers beside a winner ahead by Δ₁ (claim ``selection-bound``).

    Args:
        gamma: inverse temperature γ ≥ 0.
        gap: Δ₁, best reward minus second best.
        responses: N.
    """
    return (responses - 1) * exp(-gamma * gap)


def crowd_in_steps(gamma: Any, gap: Any, responses: Any) -> Any:
    r"""Σ_{k=1}^{N−1} e^{−kγΔ}: the weight of the losers when neighbours in rank are at least Δ apart.

    Numbers get the closed form ξ(1−ξ^{N−1})/(1−ξ), ξ = e^{−γΔ}, free of cancellation; symbols the sum itself
    (claim ``selection-bound``).
    """
    if any([isinstance(value, sp.Basic) for value in (gamma, gap, responses)]):
        k = sp.Symbol("k", integer=True)
        return sp.Sum(exp(-k * gamma * gap), (k, 1, responses - 1))
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
    return log((responses - 1) * (distance / tolerance - 1)) / gap


def selection_temperature_all_gaps(tolerance: Any, gap: Any, distance: Any) -> Any:
    r"""γ = log(D/ε)/Δ: error at most ε for every N when all gaps are at least Δ (claim ``selection-temperature``)."""
    return log(distance / tolerance) / gap


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
    exponent = (8 * largest_logit + 2 * EXP_ULP) * unit
    if exponent > 1:  # the dtype resolves no difference of logits
        return math.inf
    return radius * (2 * math.expm1(exponent) + 2 * (tokens + 1) * unit) * (1 + 4 * tokens * unit)
