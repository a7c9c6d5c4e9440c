"""Chapter 9: the online loss, Plackett–Luce on every prefix of the responses."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

import icalign

from . import Draw, Outcome, equal, given, rounding, twin
from .alignment_task import draw_scores, draw_task, law, rankings, reach, rest, roundings, score
from .gradient_step import along_noise, autograd, derivative, gradient, slope_noise, tail_mean


def inserted(order: Tensor, k: int, i: int) -> Tensor:
    """The ranking of one response more, i in place k; the others, numbered without it, in their order."""
    renumbered = order + (order >= i)
    return torch.cat([renumbered[:k], torch.tensor([i]), renumbered[k:]])


def online(s: Tensor, order: Tensor) -> Tensor:
    """The online losses of the package: entry t is that of the first t responses, so entry 0 is 0."""
    losses = icalign.online_plackett_luce_nll(s, -order.argsort().double())
    return torch.cat([s.new_zeros(1), losses])


def online_slope(W: Tensor, V: Tensor, x: Tensor, y: Tensor, order: Tensor, t: int) -> Tensor:
    """The derivative along V of the loss of the first t."""
    return derivative(lambda u: online(score(W + u * V, x, y), order)[t])


def tails(s: Tensor, order: Tensor) -> Tensor:
    """S_k, the sums of exp over the place k or worse; after the last place 0."""
    return torch.stack([s[order[k:]].exp().sum() for k in range(len(order) + 1)])


# ── The claims ───────────────────────────────────────────────────────────────────────────────────────────────────────


@twin
def online_marginal_one_place(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Summed over the places of one response, the law of the others is left. Broken: but the last, if n > 0."""
    n = draw.seed % 6
    s, order, i = draw_scores(draw, n + 1), draw.permutation(n), draw.integer(0, n)
    orders = torch.stack([inserted(order, k, i) for k in range(n + 1 - (broken and n > 0))])
    others = torch.cat([s[:i], s[i + 1 :]])
    yield equal(law(s, orders).sum(), law(others, order), rounding(2 * roundings(s) + n, 1))


@twin
def online_marginal(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The rankings that put the first t responses in the order ρ have the probability onlinePL(t) of ρ, all t ≤ N.

    Broken: the rankings that begin with ρ.
    """
    n = 1 + draw.seed % 5
    s, everything = draw_scores(draw, n), rankings(n)
    probabilities, places = law(s, everything), everything.argsort(-1)
    for t in range(n + 1):
        given(t <= n)
        order = draw.permutation(t)
        found = everything[:, :t] if broken else places[:, :t].argsort(-1)
        chosen = (found == order).all(-1)
        # any ranking of all whose first t are in the order ρ: the others come after them
        first = online(s, torch.cat([order, torch.arange(t, n)]))[t]
        yield equal(probabilities[chosen].sum(), (-first).exp(), rounding(2 * roundings(s) + math.factorial(n), 1))


@twin
def online_incremental(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A newcomer in place k, w = exp of its score, adds Σ_{j<k} log(1 + w/S_j) + log(1 + S_k/w). Broken: Σ_{j≤k}."""
    t = draw.seed % 6
    s, order = draw_scores(draw, t + 1), draw.permutation(t)
    w, S = s[t].exp(), tails(s[:t], order)
    for k in range(t + 1):
        losses = online(s, inserted(order, k, t))
        gain = (1 + w / S[: min(k + broken, t)]).log().sum() + (1 + S[k] / w).log()
        # two losses; in each of k + 1 logarithms at most t + 5; logarithms and their sums are no larger than losses
        size = (t + 1) * (math.log(t + 1) + float(s.max() - s.min()))
        allowed = rounding(2 * roundings(s) + (t + 1) * (t + 5), 1) + rounding(t + 3, size)
        yield equal(losses[t + 1] - losses[t], gain, allowed)


@twin
def online_gradient(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The loss of the first t has the slopes ⟨G, V⟩; if ‖x‖ = 1, ΔW x = −ηGx = 2η Σ_{k<t} (y_τ(k) − μ_k), of these t.

    Both sides of the package, the online loss and the online steps. Broken: one response more, if there is one.
    """
    W, x, y, order = draw_task(draw)
    eta, n, V = draw.number(-2, 2), len(y), draw.normal(*W.shape)
    for t in range(1, n + 1):
        seen = min(t + broken, n)
        G = gradient(W, x, y[:seen], (-order.argsort()[:seen]).argsort(descending=True))
        yield equal(online_slope(W, V, x, y, order, t), G.mul(V).sum(), along_noise(W, V, x, y))
    x = draw.unit(len(x))
    given((x.square().sum() - 1).abs() <= rounding(2 * len(x) + 8, 1))
    rewards = -order.argsort().double()
    steps = eta * icalign.online_gradient_steps(icalign.AlignmentTask(x[None], y[None], rewards[None], W), 1.0)[0]
    for t in range(1, n + 1):
        seen = min(t + broken, n)
        y_t, order_t = y[:seen], rewards[:seen].argsort(descending=True)
        pulls = [y_t[order_t[k]] - tail_mean(W, x, y_t, order_t, k) for k in range(seen - 1)]
        # a gradient on two ways, in the direction of each entry; products with x and η
        size = 4 * n * reach(W, x, y)
        allowed = abs(eta) * (slope_noise(W, x, y) + rounding(3 * len(x) + 12, size))
        yield equal(steps[t - 1] @ x, 2 * eta * sum(pulls, torch.zeros_like(y[0])), allowed)


@twin
def online_gradient_first(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Position 1 gets zero. Broken: position 2."""
    W, x, y, order = draw_task(draw, 2)
    n = 2 if broken else 1
    y, order = y[:n], torch.arange(n)
    yield equal(autograd(W, x, y, order), 0)
    yield equal(gradient(W, x, y, order), 0)
    task = icalign.AlignmentTask(draw.unit(len(x))[None], y[None], -order[None].double(), W)
    yield equal(icalign.online_gradient_steps(task, 1.0)[0, n - 1], 0)


@twin
def online_marginal_factor(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A newcomer in place k multiplies the probability by Π_{j<k} S_j/(S_j + w) · w/(S_k + w). Broken: Π_{j≤k}."""
    t = draw.seed % 6
    s, order = draw_scores(draw, t + 1), draw.permutation(t)
    w, S = s[t].exp(), tails(s[:t], order)
    for k in range(t + 1):
        losses = online(s, inserted(order, k, t))
        passed = S[: min(k + broken, t)]
        factor = (passed / (passed + w)).prod() * w / (S[k] + w)
        # two laws, and k + 1 quotients of sums, each t + 5
        allowed = rounding(2 * roundings(s) + (t + 1) * (t + 5) + 2, 1)
        yield equal((-losses[t + 1]).exp(), (-losses[t]).exp() * factor, allowed)
        yield equal(law(s, inserted(order, k, t)), (-rest(s[:t], order, 0)).exp() * factor, allowed)
