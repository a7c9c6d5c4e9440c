"""Twins of ``proofs/Choices.v``: temperatures from a tolerance, and one set of weights for a class of inputs."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from icalign import bounds, symbols
from icalign.constructions import elimination
from icalign.transformer import Transformer

from . import Draw, Outcome, at_most, given, rounding, twin
from .prompts import gap_drawn, ladder, on_grid, ranks, responses, spaced, step_by_autograd, tokens


class Input(NamedTuple):
    """A query, responses, rewards and their ranking."""

    x: Tensor
    y: Tensor
    r: Tensor
    tau: Tensor

    def reduced(self, W: Tensor) -> Tensor:
        """2⟨Wx, y_j⟩ − ‖y_j‖²."""
        return 2 * self.y @ W @ self.x - self.y.square().sum(-1)

    def distances(self) -> Tensor:
        """‖y_j − y_l‖."""
        return (self.y[:, None] - self.y).norm(dim=-1)


class Class(NamedTuple):
    """What weights may know: W, η, N, the gap Δ, the spreads R of rewards and R_Z of scores, the distance D."""

    W: Tensor
    eta: float
    n: int
    gap: float
    spread: float
    score_spread: float
    distance: float

    @property
    def reach(self) -> float:
        """U = 2η(N−1)D, the longest that ΔWx can be."""
        return 2 * self.eta * (self.n - 1) * self.distance

    def blocks(self, tolerance: float, blind: bool) -> Transformer:
        """N−1 times the block of the proof, its temperatures from the tolerance; ``blind`` to the spread of scores."""
        scores = 0.0 if blind else self.score_spread
        gamma, mask = math.log(5) * (1 + 2.0**-50) / self.gap, scores  # any will do for a step of zero
        if self.reach > 0:
            gamma, mask = bounds.plackett_luce_temperatures(tolerance, self.reach, self.gap, scores, self.n)
        d_y, d_x = self.W.shape
        numbers = {symbols.d_x: d_x, symbols.d_y: d_y, symbols.W: self.W, symbols.eta: self.eta}
        numbers |= {symbols.gamma: gamma, symbols.Delta: self.gap, elimination.R: self.spread, elimination.C: mask}
        numbers[elimination.B] = bounds.elimination_mask(self.gap, self.spread)
        return Transformer((elimination.block,) * (self.n - 1), elimination.stream, numbers)

    def error(self, model: Transformer, it: Input) -> Tensor:
        """‖u − ΔWx‖ at every token, ΔW from autograd through the Plackett–Luce loss."""
        sq = it.y.square().sum(-1, keepdim=True)
        X = tokens(model.rows, self.n, x=it.x, y=it.y, sq=sq, r=it.r[:, None], one=1)
        step = step_by_autograd(self.W, it.x, it.y, it.tau, self.eta)
        return (model(X)[:, model.rows["u"]] - step).norm(dim=-1)


def inputs(draw: Draw, least: int = 1) -> tuple[Tensor, float, list[Input]]:
    """W, a gap, and three inputs with it: two at random, and one at an edge of their class.

    There rewards are equally spaced, ‖Wx‖ = ‖W‖, and responses at the poles of the ball along Wx: the best where its
    score is highest, the others where theirs is lowest.
    """
    n, gap, W = responses(draw, least), gap_drawn(draw), draw.normal(draw.integer(1, 4), draw.integer(1, 4))
    radius, found = draw.number(0.5, 1.5), []
    for _ in range(2):
        r, tau = ladder(draw, n, gap, on_grid(draw.uniform(0, 1, n)))
        y = draw.normal(n, len(W))
        inside = draw.uniform(0, radius, n, 1).clamp(max=0.8 * radius) / 0.8
        found.append(Input(draw.unit(W.shape[1]), inside * y / y.norm(dim=-1, keepdim=True), r, tau))
    x = torch.linalg.svd(W).Vh[0]
    along = W @ x / (W @ x).norm()
    y = (-radius * along).expand(n, -1).clone()
    r, tau = ladder(draw, n, gap)
    y[tau[0]] = min(radius, float((W @ x).norm())) * along
    return W, gap, [*found, Input(x, y, r, tau)]


def tolerance(draw: Draw, reach: float) -> float:
    """A millionth of the longest step, or more, up to three times that."""
    return 10 ** draw.number(-6, 0.5) * (reach or 1.0)


def step_size(draw: Draw) -> float:
    """η ≥ 0, now and then 0."""
    return draw.number(0.05, 1) * (draw.seed % 8 != 7)


def spread_of(values: Tensor) -> float:
    """The largest minus the smallest."""
    return float(values.max() - values.min())


def unit(x: Tensor) -> Tensor:
    """‖x‖ = 1, as well as it can be computed."""
    return (x.norm() - 1).abs() <= rounding(len(x) + 2, 1)


@twin
def theorem_3_3_temperatures(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """γ and C from a tolerance: log 5 ≤ γΔ, and the bound on the error of N−1 blocks is at most the tolerance.

    Broken: at most half of it. The temperatures are generous: the bound comes up to 5/13 + 1/4 of it, at N = 3.
    """
    n, eta, gap, D = responses(draw, 2), draw.number(0.01, 1), draw.number(0.1, 2), draw.number(0.1, 5)
    spread, scores = draw.number(0, 4) * min(1, draw.integer(0, 4)), draw.number(-1, 9)
    kind = Class(torch.empty(0), eta, n, gap, spread, scores, D)
    tol = tolerance(draw, kind.reach)
    given(n > 1, eta > 0, gap > 0, spread >= 0, D > 0, tol > 0)
    gamma, mask = bounds.plackett_luce_temperatures(tol, kind.reach, gap, scores, n)
    error = bounds.plackett_luce_error(eta, gamma, mask, gap, spread, scores, n, D)
    yield at_most(math.log(5), gamma * gap, rounding(3, gamma * gap))  # a logarithm, a quotient, a product
    # exponentials of up to NγΔ and C − R_Z after logarithms, C as a sum, N − 1 shares of a dozen operations
    count = 3 * (n * gamma * gap + mask - scores + abs(scores)) + 12 * n
    yield at_most(error, tol / 2 if broken else tol, rounding(count, error))


@twin
def theorem_3_3_uniform(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """One block for a class: N−1 of it make ΔWx at every token to within the tolerance, for every input of the class.

    For N ≥ 1, η ≥ 0. The block is that of the proof. Nothing is allowed for rounding: the proof leaves a tenth of the
    tolerance, of which there is more than rounding takes. Broken: its mask C is made without the spread of the scores.
    """
    W, gap, found = inputs(draw)
    spread, scores = max([spread_of(it.r) for it in found]), max([spread_of(it.reduced(W)) for it in found])
    distance = max([float(it.distances().max()) for it in found])
    kind = Class(W, step_size(draw), len(found[0].r), gap, spread, scores, distance)
    tol = tolerance(draw, kind.reach)
    given(kind.eta >= 0, gap > 0, tol > 0)
    model = kind.blocks(tol, blind=broken)
    for it in found:
        given(unit(it.x), spaced(gap, it.r), ranks(it.r, it.tau), spread_of(it.r) <= spread)
        given(spread_of(it.reduced(W)) <= scores, it.distances() <= distance)
        yield at_most(kind.error(model, it), tol)


@twin
def theorem_3_3_class(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The same for the class of rewards in [low, high], ‖y‖ ≤ radius and ‖Wv‖ ≤ ω‖v‖: D = 2·radius, R_Z from both.

    Broken: the mask C is made without the spread of the scores.
    """
    W, gap, found = inputs(draw)
    low, high = min([float(it.r.min()) for it in found]), max([float(it.r.max()) for it in found])
    radius = max([float(it.y.norm(dim=-1).max()) for it in found])
    omega = float(torch.linalg.matrix_norm(W, 2)) * (1 + 1e-12) * (1, 1.5)[draw.integer(0, 1)]
    scores = bounds.score_spread(omega, radius)
    kind = Class(W, step_size(draw), len(found[0].r), gap, high - low, scores, 2 * radius)
    tol = tolerance(draw, kind.reach)
    given(kind.eta >= 0, gap > 0, tol > 0)
    given(torch.linalg.matrix_norm(W, 2) <= omega)  # that is, for all v
    model = kind.blocks(tol, blind=broken)
    for it in found:
        given(unit(it.x), it.y.norm(dim=-1) <= radius, low <= it.r, it.r <= high)
        given(spaced(gap, it.r), ranks(it.r, it.tau))
        yield at_most(kind.error(model, it), tol)
