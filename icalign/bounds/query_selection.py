r"""Chapter 7: the winners of several queries."""

from __future__ import annotations

from typing import Any

import torch

from .elementary import exp, log
from .selection import attention_rounding, crowd


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
    return (queries - 1) * responses * exp(-(gamma_1 * (1 - overlap) - gamma_2 * spread))


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
    gamma_2 = log(2 * (responses - 1) / tolerance) / gap
    return (gamma_2 * spread + log(2 * (queries - 1) * responses / tolerance)) / (1 - overlap), gamma_2


def query_temperature_floor(tolerance: Any, overlap: Any) -> Any:
    r"""log(1/ε − 1)/(1−ρ): no smaller γ₁ leaves every winner 1 − ε, whatever γ₂ is (claim ``mq-duplicates``)."""
    return log(1 / tolerance - 1) / (1 - overlap)


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
