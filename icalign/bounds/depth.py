r"""Chapter 13: three attention layers in place of N−1 blocks."""

from __future__ import annotations

from typing import Any

import sympy as sp
import torch

from .elementary import log, share, unit_roundoff
from .plackett_luce import crowd_rounding, field_crowd


def constant_depth_error(eta: Any, mask: Any, score_spread: Any, responses: Any, distance: Any) -> Any:
    r"""2ηD Σ_{k=1}^{N} p_k/(1+p_k) ≥ ‖u − ΔW x‖, with p_k = :func:`field_crowd` (claim ``constant-depth``).

    Token i weighs the field of its own rank k, where the k−1 better responses leak; ranks go up to N here.

    Args:
        eta: η.
        mask: C, by which a better response loses.
        score_spread: R_Z.
        responses: N.
        distance: D, or the class's D₀.
    """
    if any([isinstance(value, sp.Basic) for value in (mask, score_spread, responses)]):
        better = sp.Symbol("b", integer=True)  # k − 1, the number of the token when the best is number 0
        total = sp.Sum(share(field_crowd(mask, score_spread, responses, better + 1)), (better, 0, responses - 1))
    else:
        total = sum([share(field_crowd(mask, score_spread, responses, k)) for k in range(1, responses + 1)])
    return 2 * eta * distance * total


def crowds_of_all_ranks(responses: Any) -> Any:
    r"""S = Σ_{k=1}^{N} (k−1)/(N−k+1) = Σ_{b=0}^{N−1} b/(N−b), the sum of all p_k at C = R_Z (claim ``constant-depth``).

    It is N·H − N + 1 with the harmonic number H of N − 1, about N log N.
    """
    if isinstance(responses, sp.Basic):
        better = sp.Symbol("b", integer=True)
        return sp.Sum(better / (responses - better), (better, 0, responses - 1))
    return sum([better / (responses - better) for better in range(responses)])


def constant_depth_mask(tolerance: Any, eta: Any, score_spread: Any, responses: Any, distance: Any) -> Any:
    r"""C = R_Z + max(0, log(2ηD·S/tol)): the error is at most the tolerance (claim ``constant-depth``).

    Args:
        tolerance: tol > 0.
        eta: η.
        score_spread: R_Z.
        responses: N ≥ 2, for S = :func:`crowds_of_all_ranks`.
        distance: D, or the class's D₀.
    """
    largest = sp.Max if any([isinstance(value, sp.Basic) for value in (tolerance, eta, responses, distance)]) else max
    return score_spread + largest(0, log(2 * eta * distance * crowds_of_all_ranks(responses) / tolerance))


def comparison_rounding(dtype: torch.dtype, largest_reward: float, gap: float) -> float:
    r"""(36L/Δ + 8)ε₀: how far m_ij, where it should be 1, can be from 1 in floating point, L = max|r|.

    The units relu(z) and relu(z − 1), z = 2(b_j + low − r_i)/Δ − 1/2, share the rounding of the row b = r − low. Each
    loses 6(L/Δ)ε₀ in the products, as R ≤ 2L, as much in their sum, and with the bias, which is itself rounded,
    (6L/Δ + 5/2)ε₀. Their difference is rounded once, and two units are for the products of these small terms.
    """
    return (36 * largest_reward / gap + 8) * unit_roundoff(dtype)


def comparison_is_exact(dtype: torch.dtype, largest_reward: float, gap: float) -> bool:
    r"""Whether m_ij in floating point is 0 exactly where r_j ≤ r_i, and 1 within its rounding elsewhere.

    z is −1/2 or less where r_j ≤ r_i, and else 3/2 or more, less 2s/Δ for the gap that falls short by s = 4ε₀L. It may
    be off by 1/2 less that. With L = max|r| and R ≤ 2L:

    - a slot, relu(r + Rp − high), loses 8Lε₀: 2L for R, 3L for its sum with r, L for high, 2L for the last difference;
      where p = 0 it is exactly 0, as rounding is monotone;
    - the uniform head reads N·slot, of at most NR: the weights N and 1/N, the latter rounded twice, and two products,
      5Rε₀ or 10Lε₀;
    - z multiplies these 18Lε₀ by 2/Δ. Its weight, the products and their sum lose 6(L/Δ)ε₀ each, the bias and its
      addition (6L/Δ + 3)ε₀.

    Together (60L/Δ + 3)ε₀, here with 2L/Δ + 1 more for the products of these small terms.
    """
    return (70 * largest_reward / gap + 4) * unit_roundoff(dtype) <= 0.5


def own_mean_rounding(
    dtype: torch.dtype,
    mask: float,
    slip: float,
    score_spread: float,
    responses: int,
    dim_x: int,
    dim_y: int,
    reach: float,
    radius: float,
) -> float:
    r"""A: how far the mean of a token's own rank in floating point can be from that head in real arithmetic.

    The comparison must be exact (:func:`comparison_is_exact`): live responses have no mask in their logits. As in
    :func:`plackett_luce_rounding` these lose as much as logits of size L = (d_x + d_y + 5)/4·reach² would, with one
    term more in the sum. For the masked ones (d_y + 4)/2·reach² allows for norms, and C, rounded as a weight, as a
    product, in up to d_y + 1 sums and in the subtraction of the largest, is (d_y + 4)/8·C, here twice that. A mask may
    be as little as 1 − φ, so that they weigh up to p_N at C(1 − φ) together. Then :func:`crowd_rounding`.

    Args:
        dtype: of weights and tokens.
        mask: C.
        slip: φ, :func:`comparison_rounding`.
        score_spread: R_Z.
        responses: N.
        dim_x: d_x.
        dim_y: d_y.
        reach: a bound on ‖|W||x|‖ + ‖y‖.
        radius: a bound on ‖y‖.
    """
    live = (dim_x + dim_y + 5) / 4 * reach * reach
    masked = live + (dim_y + 4) / 2 * reach * reach + (dim_y + 4) / 4 * mask
    crowd = field_crowd(mask * (1 - slip), score_spread, responses, responses)
    return crowd_rounding(dtype, live, masked, crowd, responses, radius)


def constant_depth_rounding(
    dtype: torch.dtype,
    eta: float,
    mask: float,
    slip: float,
    score_spread: float,
    responses: int,
    dim_x: int,
    dim_y: int,
    reach: float,
    radius: float,
) -> float:
    r"""How far y − u from the three layers in floating point can be from what :func:`constant_depth_error` bounds.

    The mean of every rank loses :func:`own_mean_rounding`, A. The last head reads 2ηN(y − mean). A value is at most
    V = 4ηN·radius long; weight, products and difference lose 3Vε₀, and the mean over N of them, with weights 1/N
    rounded twice, (N + 2)Vε₀. Reading y − u loses (radius + V)ε₀. With a unit of V and one of the radius for the
    products of these small terms

    .. math:: 2ηN\,A + \bigl(4ηN(N + 7) + 2\bigr)\,\mathrm{radius}\,ε_0.
    """
    weighing = own_mean_rounding(dtype, mask, slip, score_spread, responses, dim_x, dim_y, reach, radius)
    adding = 4 * eta * responses * (responses + 7) + 2
    return 2 * eta * responses * weighing + adding * radius * unit_roundoff(dtype)
