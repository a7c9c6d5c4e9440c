"""Chapter 2, continued: when the loss has a minimiser. A certificate says that it has; Newton's method finds it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from . import Draw, Outcome, at_most, equal, given, rounding, twin
from .alignment_task import loss_noise
from .convexity import covariances
from .gradient_step import autograd, gradient, loss, slope_noise
from .no_minimiser import draw_ranked, sending


def draw_tied(draw: Draw, n: int) -> tuple[Tensor, Tensor, Tensor, Tensor, int]:
    """x, y, a ranking, weights λ > 0 with Σ_k λ_k (y_τ(k) − y_τ(k+1)) = 0, and the rank r of these differences.

    With them, a v that ranks weakly rightly has ⟨v, y⟩ equal throughout: the gaps are ≥ 0, and Σ λ_k gap_k = 0. The
    differences span the first r coordinates. All numbers are small multiples of 1/4, so that the sum is exactly zero.
    """
    m, d = draw.integer(1, 4), draw.integer(1, 4)
    r = min(m, n - 2, draw.integer(1, 3))
    weights = torch.tensor([*[draw.integer(1, 3) for _ in range(n - 2)], 1]).double()
    gaps = torch.zeros(n - 1, m, dtype=torch.float64)
    for k in range(n - 2):
        for a in range(min(k, r)):
            gaps[k, a] = draw.integer(-2, 2) / 4
        if k < r:
            gaps[k, k] = 1 / 4
    gaps[-1] = -(weights[:-1] @ gaps[:-1])
    given(weights > 0, weights @ gaps == 0, gaps[:, r:] == 0)
    placed = torch.cat([torch.zeros_like(gaps[:1]), -gaps.cumsum(0)]) + draw.integer(-4, 4) / 4
    order = draw.permutation(n)
    return draw.normal(d) * float(draw.seed != 8), placed[order.argsort()], order, weights, r


def newton(y: Tensor, order: Tensor, r: int) -> Tensor:
    """A prediction where the loss has no slope, if there is one, in the first r coordinates.

    15 steps get there. Where there is none, a step takes the loss down by a factor near e only.
    """
    p, one = torch.zeros_like(y[:1].T), torch.ones(1, dtype=torch.float64)
    for _ in range(15 if r else 0):
        slope, curvature = gradient(p, one, y, order), 4 * covariances(p, one, y, order)
        step = torch.zeros_like(p)
        step[:r] = torch.linalg.lstsq(curvature[:r, :r], slope[:r]).solution
        t = 1.0
        while t > 1e-3 and loss(p - t * step, one, y, order) > loss(p, one, y, order):
            t /= 2
        p = p - t * step
    return p[:, 0]


def level_bound(x: Tensor, y: Tensor, order: Tensor, weights: Tensor, r: int, c: float) -> float:
    """The B of the theorem: L ≤ c leaves each gap of scores above −a, and Σ λ_k gap_k = 0 bounds it from above.

    Each gap 2⟨Wx, y_τ(k) − y_τ(k+1)⟩ − ‖y_τ(k)‖² + ‖y_τ(k+1)‖² is at least −log(e^c − 1).
    """
    if r == 0 or not x.any():
        return 0.0
    placed = y[order]
    least = (-math.log(math.expm1(c)) - placed.square().sum(-1).diff()) / 2  # of ⟨Wx, y_τ(k) − y_τ(k+1)⟩
    most = least - (weights @ least) / weights
    sizes = torch.maximum(least.abs(), most.abs())
    values = torch.linalg.svdvals(placed.diff(dim=0)[:, :r])
    smallest = float(values[-1]) - rounding(8 * len(y), values[0])
    return float(sizes.norm() / smallest / x.norm())


# ── The claims ───────────────────────────────────────────────────────────────────────────────────────────────────────


@twin
def pl_no_minimiser_attained(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """v that rank weakly rightly do so with equalities: at W₀ the loss has no slope, and it is least there.

    It is compared with W near, far, and on the ray through W₀. Broken: some v ranks strictly rightly.
    """
    n = 2 + draw.seed % 4
    x, y, order, _, r = draw_tied(draw, n)
    if broken:
        x, y, _, order = draw_ranked(draw, n)
        r = y.shape[-1]
    W0 = sending(draw, x, newton(y, order, r)) if x.any() else draw.normal(y.shape[-1], len(x))
    yield at_most(autograd(W0, x, y, order).norm(), 0, slope_noise(W0, x, y))
    moves = [size * draw.normal(*W0.shape) for size in (1e-3, 0.1, 1.0, 10.0)]
    for W in (*[W0 + V for V in moves], *[t * W0 for t in (0.0, 0.9, 1.1, 3.0)]):
        noise = loss_noise(W, x, y) + loss_noise(W0, x, y) + slope_noise(W0, x, y) * float((W - W0).norm())
        yield at_most(loss(W0, x, y, order), loss(W, x, y, order), noise)


@twin
def pl_no_minimiser_sublevel(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """L(W) ≤ c: some V along which L is constant has ‖W + V‖ ≤ B, which c fixes. And limits of such W are such W.

    Broken: V = −W.
    """
    n = 2 + draw.seed % 4
    x, y, order, weights, r = draw_tied(draw, n)
    m, square = y.shape[-1], float(x.square().sum())
    for size in (0.3, 1.0, 5.0):
        W, U = size * draw.normal(m, len(x)), draw.normal(m, len(x))
        c = float(loss(W, x, y, order) + loss_noise(W, x, y))
        given(loss(W, x, y, order) <= c)
        kept = (torch.arange(m) < r) * (W @ x)
        V = -W if broken or square == 0 else torch.outer(kept, x) / square - W
        B = level_bound(x, y, order, weights, r, c)
        # Wx, an outer product, a quotient, a difference, a norm, and as many for B
        yield at_most((W + V).norm(), B, rounding(4 * W.numel() + 8, W, V, B))
        for t in (1.0, -2.0):
            noise = 4 * loss_noise(U.abs() + abs(t) * (V.abs() + W.abs()), x, y)
            yield equal(loss(U + t * V, x, y, order), loss(U, x, y, order), noise)
        near = [W + 2.0**-j * U for j in range(20, 50)]
        level = max(float(loss(N, x, y, order)) for N in near[10:])
        # the last is as near to W as rounding lets it be, and the loss is as steep as 2N times the longest response
        steep = 4 * n * float(y.norm(dim=-1).max()) * float((near[-1] - W).abs().sum() * x.norm())
        yield at_most(loss(W, x, y, order), level, 2 * loss_noise(W, x, y) + steep)
