r"""Chapter 8: linear attention from pairs of softmax heads and a sink."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import sympy as sp
import torch

from .elementary import exp, log, sinh, unit_roundoff


@cache
def sink_coefficients(pairs: int) -> tuple[sp.Rational, ...]:
    r"""a_1, …, a_P with Σ a_k = 1 and Σ a_k k^{2m} = 0 for 0 < m < P: how P pairs of heads at ε, 2ε, … are combined.

    .. math:: a_k = \frac{2\,(-1)^{k-1}\,(P!)^2}{(P-k)!\,(P+k)!}

    Lagrange's interpolation at 0 through the nodes 1, 4, …, P² (claim ``sink-linear-attention``).
    """
    square = math.factorial(pairs) ** 2
    places = range(1, pairs + 1)
    below = [math.factorial(pairs - k) * math.factorial(pairs + k) for k in places]
    return tuple([sp.Rational(2 * (-1) ** (k - 1) * square, n) for k, n in zip(places, below, strict=True)])


def over_pairs(term: Any, epsilon: Any, pairs: int) -> Any:
    """Σ_k |a_k| term(kε)/(kε)."""
    exact = isinstance(epsilon, sp.Basic)
    sizes = [abs(a) if exact else float(abs(a)) for a in sink_coefficients(pairs)]
    return sum([size * term(k * epsilon) / (k * epsilon) for k, size in enumerate(sizes, 1)])


def sink_curvature(epsilon: Any, pairs: int = 1) -> Any:
    r"""|Σ_k a_k sinh(kε)/(kε) − 1|: what P pairs are off by because exponentials bend (``sink-linear-attention``).

    sinh ε/ε − 1 for one pair, (1 − sinh ε/ε·(4 − cosh ε)/3) for two. Symbols get this form, numbers its series, whose
    terms have one sign: Σ_{m≥P} |Σ_k a_k k^{2m}| ε^{2m}/(2m+1)!; ∞ for Pε > 720, where sinh is beyond any float.

    Args:
        epsilon: ε > 0.
        pairs: P.
    """
    if isinstance(epsilon, sp.Basic):
        parts = enumerate(sink_coefficients(pairs), 1)
        total = sum([a * sinh(k * epsilon) / (k * epsilon) for k, a in parts])
        return (-1) ** (pairs - 1) * (total - 1)
    furthest = pairs * epsilon
    if furthest > 720:  # sinh(Pε) is beyond any float
        return math.inf
    total, size = 0.0, 1.0  # (Pε)^{2m}/(2m+1)!, from m = 0 on
    moments = _curvature_moments(pairs, 40 + math.ceil(furthest))
    for m in range(1, pairs + len(moments)):
        size *= furthest * furthest / (2 * m * (2 * m + 1))
        total += moments[m - pairs] * size if m >= pairs else 0.0
    return total


@cache
def _curvature_moments(pairs: int, count: int) -> list[float]:
    """|Σ_k a_k (k/P)^{2m}| for m from P on. Beyond 40 + Pε of them the terms of the series no longer matter."""
    coefficients = [Fraction(int(a.p), int(a.q)) for a in sink_coefficients(pairs)]
    nodes = [Fraction(k, pairs) ** 2 for k in range(1, pairs + 1)]
    parts = [a * node**pairs for a, node in zip(coefficients, nodes, strict=True)]
    found = []
    for _ in range(count):
        found.append(abs(float(sum(parts))))
        parts = [part * node for part, node in zip(parts, nodes, strict=True)]
    return found


def sink_leak(epsilon: Any, lambda_: Any, tokens: Any, pairs: int = 1) -> Any:
    r"""n e^{−λ} Σ_k |a_k| sinh(2kε)/(kε): what P pairs are off by because n tokens weigh something beside the sink.

    n e^{−λ} sinh(2ε)/ε for one pair (claim ``sink-linear-attention``).

    Args:
        epsilon: ε > 0.
        lambda_: λ, the logit of the sink.
        tokens: n, those beside the sink.
        pairs: P.
    """
    return tokens * exp(-lambda_) * over_pairs(lambda x: sinh(2 * x), epsilon, pairs)


def sink_error(epsilon: Any, lambda_: Any, tokens: Any, pairs: int = 1) -> Any:
    """:func:`sink_curvature` + :func:`sink_leak`: how far Σ w_j v_j is from Σ z_j v_j, |z_j| ≤ 1, over Σ‖v_j‖.

    Claim ``sink-linear-attention``.
    """
    return sink_curvature(epsilon, pairs) + sink_leak(epsilon, lambda_, tokens, pairs)


def sink_order(epsilon: Any, pairs: int = 1) -> Any:
    r"""(P!)²/(2P+1)!·(2 sinh(ε/2))^{2P} ≥ :func:`sink_curvature`, and equal to it to leading order ε^{2P}."""
    size = sp.Rational(math.factorial(pairs) ** 2, math.factorial(2 * pairs + 1))
    return (size if isinstance(epsilon, sp.Basic) else float(size)) * (2 * sinh(epsilon / 2)) ** (2 * pairs)


def sink_spacing(curvature: Any, pairs: int = 1) -> Any:
    r"""The ε at which :func:`sink_order` is the given number (claim ``sink-linear-attention``).

    .. math:: 2\sinh(ε/2) = \bigl((2P+1)!/(P!)^2\;\mathrm{curvature}\bigr)^{1/2P}
    """
    order = math.factorial(2 * pairs + 1) // math.factorial(pairs) ** 2 * curvature
    if isinstance(curvature, sp.Basic):
        half = order ** sp.Rational(1, 2 * pairs) / 2
        return 2 * sp.log(half + sp.sqrt(half**2 + 1))
    return 2 * math.asinh(order ** (1 / (2 * pairs)) / 2)


def sink_logit(epsilon: Any, leak: Any, tokens: Any, pairs: int = 1) -> Any:
    r"""The λ at which :func:`sink_leak` is the given number: log(n Σ_k |a_k| sinh(2kε)/(kε) / leak)."""
    return log(sink_leak(epsilon, sp.Integer(0) if isinstance(leak, sp.Basic) else 0.0, tokens, pairs) / leak)


def sink_rounding(dtype: torch.dtype, epsilon: float, lambda_: float, tokens: int, dim: int, pairs: int = 1) -> float:
    r"""How far P pairs in floating point can be from the same pairs in real arithmetic, over Σ‖v_j‖ (with the sink's).

    A head's logits kε⟨x,x′⟩ lose (d + 4)kε·ε₀, and the subtraction of λ from them loses (λ + kε)ε₀. Exponentials,
    quotients, scaled values lose 8ε₀, the sums over n tokens and the sink 2(n+1)ε₀. All this is relative to what the
    head adds, at most |a_k|e^{kε}/(2kε); 2P heads are added up, each with one more rounding of the sum so far. λ itself
    is rounded alike in all heads, which moves the result by λε₀ of itself. Together, with T = Σ_k |a_k|e^{kε}/(kε),

    .. math:: T\,(λ + 2n + 2P + 12 + (d + 5)Pε)\,ε_0 + (λ + 4)\,ε_0 \sum_k |a_k| \sinh(kε)/(kε),

    and a hundredth of it for the products of these small terms. So it is about (λ + 2n + 14)ε₀/ε for one pair; the n
    is what sums can lose at worst and seldom do. ∞ where the weights e^{−λ−Pε} are below the normal range.
    """
    unit = unit_roundoff(dtype)
    if lambda_ + pairs * epsilon > -math.log(torch.finfo(dtype).smallest_normal) - 1:
        return math.inf
    added = over_pairs(exp, epsilon, pairs)
    units = lambda_ + 2 * tokens + 2 * pairs + 12 + (dim + 5) * pairs * epsilon
    if units * unit > 0.01:
        return math.inf
    return float(1.01 * unit * (added * units + (lambda_ + 4) * over_pairs(sinh, epsilon, pairs)))
