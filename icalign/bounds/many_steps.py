r"""Chapter 6, the second page: T steps with the same weights."""

from __future__ import annotations

import math
from typing import Any

import sympy as sp
import torch

from .elementary import unit_roundoff


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
