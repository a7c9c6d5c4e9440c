r"""What the bounds are made of: exp and log for numbers and symbols, the share of a crowd, the grain of a dtype."""

from __future__ import annotations

import math
from typing import Any

import sympy as sp
import torch

# Accuracy we assume of one call of torch's exp, in units in the last place (its vectorised library states 1.0).
EXP_ULP = 2


def unit_roundoff(dtype: torch.dtype) -> float:
    """ε₀, half the spacing of the numbers of the dtype at 1: 2⁻⁵³ for float64, 2⁻²⁴, 2⁻¹¹, 2⁻⁸ (theory §0)."""
    return float(torch.finfo(dtype).eps) / 2


def exp(x: Any) -> Any:
    """e^x of a number, a tensor or an expression; ∞ where a float would overflow."""
    if isinstance(x, sp.Basic | torch.Tensor):
        return sp.exp(x) if isinstance(x, sp.Basic) else torch.exp(x)
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def log(x: Any) -> Any:
    """Log x of a number or an expression."""
    return sp.log(x) if isinstance(x, sp.Basic) else math.log(x)


def share(q: Any) -> Any:
    """q/(1+q): the part of the attention that goes to a crowd q times as heavy as the winner."""
    return 1.0 if isinstance(q, float) and q == math.inf else q / (1 + q)


def gap_shortfall(dtype: torch.dtype, largest_reward: float) -> float:
    """4ε₀·max|r|: how far a gap may fall short of Δ, by the rounding of its two rewards, in a task of the class."""
    return 4 * unit_roundoff(dtype) * largest_reward


def radius_excess(dtype: torch.dtype, dim_y: int) -> float:
    """(d_y + 4)·2ε₀: by how much of itself a norm may exceed the radius of the class, by its own rounding."""
    return (dim_y + 4) * 2 * unit_roundoff(dtype)


def digits(dtype: torch.dtype) -> int:
    """p, how many binary digits the numbers of the dtype have: ε₀ = 2^{−p}."""
    return round(-math.log2(unit_roundoff(dtype)))


def sinh(x: Any) -> Any:
    """Sinh x of a number or an expression."""
    if isinstance(x, sp.Basic):
        return (sp.exp(x) - sp.exp(-x)) / 2
    try:
        return math.sinh(x)
    except OverflowError:
        return math.inf
