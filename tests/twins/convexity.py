"""Chapter 2, continued: the loss is convex; second derivatives by autograd, twice through the package."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from icalign import bounds

from . import Draw, Outcome, at_most, below, equal, given, rounding, twin
from .alignment_task import draw_task, loss_noise, nll, reach, score
from .gradient_step import beta, derivative, loss, squares

Query = tuple[Tensor, Tensor, Tensor]  # x, y, and the ranking of these responses


def second(W: Tensor, V: Tensor, *query: Tensor) -> Tensor:
    """The second derivative of the loss along V, at W."""
    return derivative(lambda t: loss(W + t * V, *query), 2)


def total_loss(W: Tensor, queries: list[Query]) -> Tensor:
    """The sum of the losses of several queries."""
    return torch.stack([loss(W, *query) for query in queries]).sum()


# ── The formulas ─────────────────────────────────────────────────────────────────────────────────────────────────────


def variance(weights: Tensor, values: Tensor) -> Tensor:
    """The mean square of what the values differ from their mean by."""
    return weights @ (values - weights @ values).square()


def curvature(W: Tensor, V: Tensor, x: Tensor, y: Tensor, order: Tensor) -> Tensor:
    """4 Σ_k Var_{β^k}⟨Vx, y⟩."""
    s, v = squares(W, x, y), (y @ (V @ x))[order]
    return 4 * torch.stack([variance(beta(s, order, k), v) for k in range(len(y))]).sum()


def covariances(W: Tensor, x: Tensor, y: Tensor, order: Tensor) -> Tensor:
    """Σ_k Cov_{β^k}(y)."""
    s, total = squares(W, x, y), torch.zeros(len(W), len(W), dtype=torch.float64)
    for k in range(len(y)):
        weights = beta(s, order, k)
        apart = y[order] - weights @ y[order]
        total = total + (weights[:, None] * apart).mT @ apart
    return total


# ── Instances, and what they round ───────────────────────────────────────────────────────────────────────────────────


def draw_queries(draw: Draw) -> tuple[Tensor, list[Query]]:
    """W, and one to three queries of other lengths, with other numbers of responses."""
    W = draw.normal(draw.integer(1, 3), draw.integer(1, 3))
    m, d = W.shape
    sizes = [1 + (draw.seed + a) % 5 for a in range(1 + draw.seed % 3)]
    return W, [(draw.normal(d), draw.normal(n, m), draw.permutation(n)) for n in sizes]


def curvature_noise(W: Tensor, V: Tensor, x: Tensor, y: Tensor) -> float:
    """How far two second derivatives along V can be apart, if they are computed on two ways.

    They are the gradient's sums with one more factor: 4·reach·N·ρ is ``gradient_rounding``, ρ a relative error. The N
    terms are means of squares of slopes, less squares of means, at most (2‖Vx‖·reach)² each, and by autograd also
    means of 2‖Vx‖², twice. Each has two weights or two slopes, and there are two sweeps: 4ρ.
    """
    r, pushed = reach(W, x, y), float((V.abs() @ x.abs()).norm())
    relative = bounds.gradient_rounding(torch.float64, len(y), x.shape[0], y.shape[-1], r) / (4 * r * len(y))
    return 4 * relative * len(y) * (2 * (2 * r) ** 2 + 4) * pushed**2


# ── The claims ───────────────────────────────────────────────────────────────────────────────────────────────────────


@twin
def pl_convex_second_derivative(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The second derivative along V is 4 Σ_k Var_{β^k}⟨Vx, y⟩. Broken: 2 in place of 4."""
    W, x, y, order = draw_task(draw)
    V = draw.normal(*W.shape)
    formula = curvature(W, V, x, y, order) * (0.5 if broken else 1)
    yield equal(second(W, V, x, y, order), formula, curvature_noise(W, V, x, y))


@twin
def pl_convex_variance(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Var_β(v) = ½ Σ_i Σ_j β_i β_j (v_i − v_j)² ≥ 0. Broken: without the ½."""
    n = 1 + draw.seed % 6
    # 64 equal parts, given to the n weights in some way: they sum to 1 without rounding
    weights = torch.bincount((n * draw.uniform(0, 1, 64) ** (1 + draw.seed % 4)).long(), minlength=n) / 64.0
    weights, v = weights.double(), draw.normal(n) * 10 ** draw.number(-3, 3)
    given(weights >= 0, weights.sum() == 1)
    found = variance(weights, v)
    pairs = torch.outer(weights, weights) * (v[:, None] - v).square()
    # means and squares of n values, n² products, of size max v² with a factor 4 for a square of differences
    yield equal(found, (1 if broken else 0.5) * pairs.sum(), rounding(n * n + 2 * n + 12, 4 * v.square().max()))
    yield at_most(0, found)


@twin
def pl_convex_kronecker(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """It is vᵀ [4 (Σ_k Cov_{β^k}(y)) ⊗ xxᵀ] v, v the rows of V one after the other. Broken: the columns."""
    W, x, y, order = draw_task(draw)
    V = draw.normal(*W.shape)
    hessian = 4 * torch.kron(covariances(W, x, y, order), torch.outer(x, x))
    v = (V.mT if broken else V).flatten()
    # Σ_p Σ_q has (d_x d_y)² terms that can cancel: their sizes add up to the same with |V| and |x|, at most
    spread = len(y) * 4 * reach(W, x, y) ** 2 * (V.norm() * x.norm()) ** 2 * V.numel()
    allowed = curvature_noise(W, V, x, y) + rounding(2 * V.numel() + 2 * len(y) + 8, spread)
    yield equal(curvature(W, V, x, y, order), v @ hessian @ v, allowed)
    yield equal(second(W, V, x, y, order), v @ hessian @ v, allowed)


@twin
def pl_convex_hessian(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The second derivative is ≥ 0 in every direction, also where it is 0. Broken: > 0."""
    W, x, y, order = draw_task(draw)
    for V in (draw.normal(*W.shape), W):
        if broken:
            yield below(0, second(W, V, x, y, order))
        else:
            yield at_most(0, second(W, V, x, y, order), curvature_noise(W, V, x, y))


@twin
def pl_convex_jensen(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """L((1 − λ)W + λW′) ≤ (1 − λ)L(W) + λL(W′), L summed over queries. Broken: λ and 1 − λ change places."""
    W, queries = draw_queries(draw)
    W2 = W + draw.normal(*W.shape) * (3, 0.1)[draw.seed % 2]
    noise = sum(4 * loss_noise(W.abs() + W2.abs(), x, y) for x, y, _ in queries)  # a mean of losses, and a loss of one
    first, last = total_loss(W, queries), total_loss(W2, queries)
    for share in (float(draw.seed % 2), draw.number(0, 1)):
        given(0 <= share <= 1)
        mean = share * first + (1 - share) * last if broken else (1 - share) * first + share * last
        yield at_most(total_loss((1 - share) * W + share * W2, queries), mean, noise)


@twin
def pl_convex_queries(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The sum over queries has a second derivative h ≥ 0; it is the sum of theirs. Broken: their mean."""
    W, queries = draw_queries(draw)
    V = draw.normal(*W.shape)
    h = torch.stack([curvature(W, V, *query) for query in queries]).sum() / (len(queries) if broken else 1)
    noise = sum(curvature_noise(W, V, x, y) for x, y, _ in queries)
    yield equal(derivative(lambda t: total_loss(W + t * V, queries), 2), h, noise)
    yield at_most(0, h)


@twin
def pl_convex_across_queries(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """One response, at 0, for each of the queries 0 and 1, the first ranked before the second: L(±1) < L(0).

    So the mean of L(±1) is below L(0) as well, which is the middle: L is not convex.

    The theorem is about this one task; instances differ in nothing. Broken: the second ranked before the first.
    """
    queries, y = torch.tensor([[0.0], [1.0]], dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
    order = torch.tensor([1, 0] if broken else [0, 1])

    def across(w: float) -> Tensor:
        W = torch.full((1, 1), w, dtype=torch.float64)
        return nll(torch.cat([score(W, x, y) for x in queries]), order)

    yield below(across(1), across(0))
    yield below(across(-1), across(0))
    yield below((across(-1) + across(1)) / 2, across(0))
