r"""Chapters 11 and 12: masks, the start token, and the causal construction."""

from __future__ import annotations

import math
from typing import Any

import torch

from .elementary import exp, log, share, unit_roundoff
from .plackett_luce import crowd_rounding


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
    xi = exp(-margin)
    return xi * (1 + xi) / (1 - xi)


def mask_miss(margin: Any) -> Any:
    """(5/2)e^{−g} ≥ the share of :func:`mask_crowd`, if e^{−g} ≤ 3/7 (claim ``mask-selection``)."""
    return 5 * exp(-margin) / 2


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
    return reach * (missed + leaked + (responses - 1) * exp(1 - field_margin))


def causal_field_margins(tolerance: Any, reach: Any, responses: Any) -> tuple[Any, Any]:
    """What h must be at least, for a tolerance: 1 and 1 + log(2(N−1)U/tol) (claim ``causal-theorem``)."""
    return 1, 1 + log(2 * (responses - 1) * reach / tolerance)


def causal_margins(
    tolerance: Any, reach: Any, field_mask: Any, gap: Any, spread: Any, responses: Any
) -> tuple[Any, Any, Any]:
    r"""What g must be at least, for a tolerance (claim ``causal-theorem``).

    .. math:: \log\frac{2U}{\mathrm{tol}}\bigl(\tfrac52 + \tfrac5{16}(N-2)c'\bigr), \quad \log\tfrac52(N-1)c',
              \quad ℓ + \log(2ℓ+4), \; ℓ = \log\tfrac52(N-1)(2+R/Δ)

    The first meets the tolerance; with the other two (5/2)(N−1)max(c, c′)e^{−g} ≤ 1.
    """
    wide = log(5 * (responses - 1) * (2 + spread / gap) / 2)
    return (
        log(reach * (40 + 5 * (responses - 2) * field_mask) / (8 * tolerance)),
        log(5 * (responses - 1) * field_mask / 2),
        wide + log(2 * wide + 4),
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
