r"""Chapter 2: the smoothness of the loss, and the rounding of the losses and gradients that are compared with."""

from __future__ import annotations

import math
from typing import Any

import torch

from .elementary import radius_excess, unit_roundoff


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


def radius_rounding(dtype: torch.dtype, dim_y: int, longest: float, reach: float = 0.0) -> float:
    r"""2Uδ(1 + reach²/2): what norms that exceed the radius by :func:`radius_excess`, δ, add to the error of a step.

    A bound on it is a sum of shares times 2ηD. D grows by δ of itself, hence the bound, which says nothing beyond 2U.
    The spread R_Z of the reduced scores grows by at most 2δ·reach², which moves each of two shares by a fourth of that;
    the reach is 0 where what is allowed for the rounding of logits covers this.
    """
    return 2 * longest * radius_excess(dtype, dim_y) * (1 + reach * reach / 2)
