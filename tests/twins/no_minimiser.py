"""Chapter 2, continued: when the loss has no minimiser. Directions are found, or excluded, by ``icalign.rankings``."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from icalign import rankings

from . import Draw, Outcome, at_most, below, given, holds, rounding, twin
from .alignment_task import draw_task, loss_noise, score
from .gradient_step import loss, step


def ahead(values: Tensor) -> Tensor:
    """By how much each place is ahead of each one behind it."""
    first, last = torch.triu_indices(len(values), len(values), 1)
    return values[first] - values[last]


def sending(draw: Draw, x: Tensor, p: Tensor) -> Tensor:
    """A matrix that takes x ≠ 0 to p; what it does to the rest of the space is drawn."""
    W = draw.normal(len(p), len(x))
    return W + torch.outer(p - W @ x, x) / x.square().sum()


def draw_ranked(draw: Draw, n: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x ≠ 0, y, a v, and the ranking by ⟨v, y⟩, with gaps between 0.5 and 1.5 times ‖v‖."""
    m, d = draw.integer(1, 4), draw.integer(1, 4)
    v, y = draw.unit(m), draw.normal(n, m)
    heights = draw.uniform(0.5, 1.5, n).cumsum(0)[draw.permutation(n)]
    y = y + torch.outer(heights - y @ v, v)
    return draw.normal(d), y, draw.number(0.5, 2) * v, heights.argsort(descending=True)


def far_enough(y: Tensor, order: Tensor, v: Tensor, epsilon: float) -> float:
    """The T of the proof: from there on, Wx = tv makes the loss smaller than ε."""
    gap = min([1.0, *ahead((y @ v)[order]).tolist()])  # at most 1, as in the proof, which has no gap for N = 1
    needed: float = (float(y.square().sum()) - math.log(epsilon / (len(y) ** 2 + 1))) / (2 * gap)
    return max(0.0, needed)


# ── The claims ───────────────────────────────────────────────────────────────────────────────────────────────────────


@twin
def pl_no_minimiser_positive(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """0 < L for N ≥ 2. Broken: for N ≥ 1."""
    W, x, y, order = draw_task(draw, least=1 if broken else 2)
    given(broken or len(y) >= 2)
    yield below(loss_noise(W, x, y), loss(W, x, y, order))


@twin
def pl_no_minimiser_only_if(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """L < log(1 + e^{−c}) makes each score exceed those behind it by more than c, the largest c but for rounding.

    Broken: L < e^{−c} does, which is that to first order.
    """
    W, x, y, order = draw_task(draw)
    noise = loss_noise(W, x, y)  # also more than that of a difference of scores
    value = loss(W, x, y, order) + noise
    c = -(value if broken else value.expm1()).log()
    given(value - noise < ((-c).exp() if broken else (-c).exp().log1p()))
    yield holds(c < ahead(score(W, x, y)[order]) + noise)


@twin
def pl_no_minimiser_ranks(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Losses below every ε: so Wx ranks strictly rightly, of the W below ε = log(1 + e^{−c}), c = Σ‖y‖².

    W is the first one below on a way that begins near 0, or, where N = 2, near the response that is to be last: that W
    already prefers the other if it is nearer to 0, although ⟨Wx, y⟩ does not. Broken: W below log 2, c = 0.
    """
    x, y, v, order = draw_ranked(draw, 1 + draw.seed % 5)
    start = 0.1 * draw.normal(len(v))
    if len(y) == 2:
        order = y.norm(dim=-1).argsort()
        v, start = y[order[0]] - y[order[1]], 0.01 * y[order[1]]
    c = 0.0 if broken else float(y.square().sum())
    epsilon = math.log1p(math.exp(-c))
    t = 0.0
    while loss(W := sending(draw, x, start + t * v), x, y, order) >= epsilon:
        t = 2 * t + 0.01
    given(loss(W, x, y, order) < epsilon)
    yield holds(ahead((y @ (W @ x))[order]) > 0)


@twin
def pl_no_minimiser_ranked(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """v ranks strictly rightly: L < ε for Wx = tv, t ≥ T = max(0, (Σ‖y‖² − log(ε/(N² + 1)))/2δ), δ the least gap.

    Broken: from half of T on.
    """
    x, y, v, order = draw_ranked(draw, 1 + draw.seed % 5)
    given(ahead((y @ v)[order]) > 0)
    for epsilon in (1.0, 1e-3, 1e-6):
        T = far_enough(y, order, v, epsilon) * (0.5 if broken else 1)
        for t in (T, T + 0.1, 2 * T):
            W = sending(draw, x, t * v)
            yield below(loss(W, x, y, order) + 2 * loss_noise(W, x, y), epsilon)


@twin
def pl_no_minimiser(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """x ≠ 0: there are losses below every ε iff some v ranks strictly rightly. Broken: also for x = 0.

    Points are integers, so that there is a v, or a certificate λ ≥ 0, Σ_k λ_k (y_τ(k) − y_τ(k+1)) = 0, that there is
    none. With it some score exceeds the next by at most c = Σ_k λ_k (‖y_τ(k+1)‖² − ‖y_τ(k)‖²) / Σ_k λ_k, and no loss is
    below log(1 + e^{−c}): that is checked at W that are drawn, and after a descent from there. N ≥ 2, as that needs.
    """
    n, m, d = 2 + draw.seed % 4, draw.integer(1, 3), draw.integer(1, 3)
    points = [[draw.integer(-2, 2) for _ in range(m)] for _ in range(n)]
    y, order, x = torch.tensor(points).double(), draw.permutation(n), draw.normal(d)
    if draw.seed % 2:  # a ranking that some direction gives, if no two points tie for it
        order = (y @ draw.normal(m)).argsort(descending=True)
    if broken:
        x = torch.zeros(d, dtype=torch.float64)
    given(broken or x.any())
    rows = rankings.demands("direction", points, order.tolist())
    found = rankings.decide(rows)
    given(found.holds(rows))
    if found.parameter is not None:
        v = torch.tensor(found.parameter).double()
        yield holds(ahead((y @ v)[order]) > 0)
        for epsilon in (1.0, 1e-3):
            W = far_enough(y, order, v, epsilon) * torch.outer(v, x / (x.square().sum() if x.any() else 1))
            yield below(loss(W, x, y, order) + 2 * loss_noise(W, x, y), epsilon)
    else:
        weights = torch.tensor(found.combination).double()
        c = weights @ y[order].square().sum(-1).diff() / weights.sum()
        W = draw.normal(m, d)
        for _ in range(5):
            yield at_most((-c).exp().log1p(), loss(W, x, y, order), 2 * loss_noise(W, x, y))
            W = W + step(W, x, y, order, 0.05) if x.any() else W
        for size in (0.0, 3.0, 30.0):
            W = size * draw.normal(m, d)
            yield at_most((-c).exp().log1p(), loss(W, x, y, order), 2 * loss_noise(W, x, y))


@twin
def pl_no_minimiser_decreases(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """v ranks weakly rightly, not with equalities throughout, and t > 0: the loss at W′x = Wx + tv is smaller.

    So no W is a minimiser, as W + vxᵀ is better, t = ‖x‖² > 0. Broken: also with equalities throughout.
    """
    n, m, d = 2 + draw.seed % 4, draw.integer(1, 4), draw.integer(1, 4)
    W, x, y, order = draw.normal(m, d), draw.normal(d), draw.normal(n, m), draw.permutation(n)
    falls = torch.tensor([0, *[draw.integer(0, 1) for _ in range(n - 2)], 1]).double()  # some equal, not all
    y[order, 0] = 0 * falls if broken else -falls.cumsum(0)
    v, square = torch.eye(m, dtype=torch.float64)[0], float(x.square().sum())
    gaps = ahead((y @ v)[order])
    for t in (draw.number(0.1, 2), square):
        after = W + torch.outer(t / square * v, x)
        moved = after @ x - W @ x
        size = (after.abs() + W.abs()) @ x.abs()
        given(gaps >= 0, broken or (gaps > 0).any(), t > 0, (moved - t * v).abs() <= rounding(2 * d + 6, size))
        noise = 4 * loss_noise(after.abs() + W.abs(), x, y)
        yield below(loss(after, x, y, order) + noise, loss(W, x, y, order))


@twin
def pl_no_minimiser_between(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """y = (1, 0, 0), x ≠ 0: log 2 < L for all W, and L < log 2 + ε for Wx = (1 − log(ε/4))/2. Broken: log 2.001."""
    x, order = draw.normal(1 + draw.seed % 4), torch.arange(3)
    y = torch.tensor([[1.0], [0.0], [0.0]], dtype=torch.float64)
    given(x.any())
    infimum = math.log(2.001 if broken else 2)
    for size in (0.0, 1.0, 8.0):
        W = sending(draw, x, torch.tensor([draw.number(-1, 1) * size], dtype=torch.float64))
        yield below(infimum + 2 * loss_noise(W, x, y), loss(W, x, y, order))
    for epsilon in (1.0, 1e-3, 1e-6):
        W = torch.outer(torch.tensor([(1 - math.log(epsilon / 4)) / 2], dtype=torch.float64), x) / x.square().sum()
        value = loss(W, x, y, order)
        yield below(infimum + 2 * loss_noise(W, x, y), value)
        yield below(value + 2 * loss_noise(W, x, y), infimum + epsilon)
