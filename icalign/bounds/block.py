r"""Chapter 5: one block, and elimination in floating point."""

from __future__ import annotations

import math
from typing import Any

import sympy as sp
import torch

from .elementary import share, unit_roundoff
from .selection import attention_rounding, crowd


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
