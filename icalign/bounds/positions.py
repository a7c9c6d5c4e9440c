r"""Chapter 10: positions from the mask alone."""

from __future__ import annotations

import math

import torch

from .elementary import unit_roundoff


def first_collision(p: int) -> int:
    r"""The least t for which 1/t and 1/(t+1) are one number when rounded to p binary digits, p ≥ 3.

    .. math:: t = \Bigl\lfloor \tfrac14\bigl(a + \sqrt{a^2 - 2^{2p+3}}\,\bigr) \Bigr\rfloor,
              \quad a = 2\,\bigl\lfloor 2^{p+1/2} + \tfrac12 \bigr\rfloor + 1

    With Q = 2^{2p−1}, the numbers of p digits around 1/t are the multiples of 1/Q for 2^{p−1} ≤ t ≤ 2^p. There t and
    t + 1 collide exactly if t + Q/t and (t+1) + Q/(t+1) are not rounded to one whole number, and the result is the last
    t before t + Q/t exceeds a/2 (claim ``position-precision``, part law).
    """
    Q = 2 ** (2 * p - 1)
    a = 2 * ((math.isqrt(16 * Q) + 1) // 2) + 1
    return (a + math.isqrt(a * a - 16 * Q)) // 4


def reciprocal_rounding(dtype: torch.dtype) -> float:
    """2ε₀: how far the z of a uniform head at token t can be from 1/t, relative to it (claim ``nope-reciprocal``).

    All logits are 0 and all exponentials 1; the value of the start token is 1, the other terms are 0. Only the quotient
    1/t is rounded: once, or twice where it is computed in a wider format first.
    """
    return 2 * unit_roundoff(dtype)


def position_rounding(dtype: torch.dtype, positions: int) -> float:
    r"""7(n+1)ε₀: how far the hats in floating point can be from a one-hot code (claim ``position-precision``).

    At token s, z = (1+δ)/s with |δ| ≤ 2ε₀. A ramp relu(1 − kz) is off by at most ε₀ where kz < 1, by ε₀kz from the
    product and ε₀(1 − kz) from the difference; where kz ≥ 1 it is exactly 0, since rounding is monotone. Hat t weighs
    three ramps with t, −2t and t, and 2 ≤ t ≤ n:

    - t ≥ s + 2: all three ramps are 0, so the hat is exactly 0.
    - t = s + 1: one ramp, which is at most δ + ε₀; tδ + tε₀ ≤ 3nε₀.
    - t = s: slopes beside the peak are at most t(t+1), which moves it by (t+1)δ; the ramps 3tε₀, products and sums
      3ε₀; 5(n+1)ε₀.
    - t = s − 1: the slope t(t+1) at most beside the end of the hat, tδ; the ramps 4tε₀; products and sums, of terms
      that add up to 4, 12ε₀; 6(t+2)ε₀ ≤ 6(n+1)ε₀.
    - t < s − 1: a line runs through the three ramps and δ cancels; the ramps 4tε₀; three roundings of terms that add
      up to 4t(1 − t/s); together at most 16s/3·ε₀, at t = 2s/3.

    One more unit is for the products of these small terms, while the total is below 1.
    """
    return 7 * (positions + 1) * unit_roundoff(dtype)


def rising_rounding(dtype: torch.dtype, positions: int) -> float:
    r"""20(n+1)²ε₀: the same for hats made of ramps relu(kz − 1), which rise with z (claim ``position-precision``).

    At token s a ramp is at most (k/s)(1+δ), and its product and difference lose ε₀k/s each: 8t(t+1)ε₀/s in a hat.
    Products and sums of terms that add up to 4t(t/s − 1) lose three roundings, 12t²ε₀/s; δ acts as on falling ramps.
    """
    return 20 * (positions + 1) ** 2 * unit_roundoff(dtype)


def most_positions(dtype: torch.dtype) -> int:
    """The largest n with :func:`position_rounding` ≤ 1/4, from which a second layer makes the code exact.

    It counts the start token, and is less than :func:`first_collision` (claim ``position-precision``).
    """
    return math.floor(1 / (28 * unit_roundoff(dtype))) - 1
