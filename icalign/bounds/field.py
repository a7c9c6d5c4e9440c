r"""Chapter 4: the β head, its scores, and the row of squares made by ReLUs."""

from __future__ import annotations

import math
from typing import Any

import sympy as sp
import torch

from .elementary import exp, log, unit_roundoff
from .selection import attention_rounding


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
        return distance * (exp(quarter) - exp(-quarter)) / (exp(quarter) + exp(-quarter))
    return distance * (torch.tanh(quarter) if isinstance(quarter, torch.Tensor) else math.tanh(quarter))


def field_spacing(tolerance: Any, distance: Any, dim_y: Any) -> Any:
    r"""The largest spacing h with D·tanh(E/4) ≤ ε, E = d_y h²/4: √(8·log((D+ε)/(D−ε))/d_y) (claim ``square-by-relu``).

    Args:
        tolerance: ε, 0 < ε < D.
        distance: D.
        dim_y: d_y.
    """
    squared = 8 * log((distance + tolerance) / (distance - tolerance)) / dim_y
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
