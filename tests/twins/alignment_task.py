"""Chapter 1: the Plackett–Luce law on rankings, as the losses of the package give it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import permutations

import torch
from torch import Tensor

import icalign
from icalign import bounds

from . import Draw, Outcome, equal, rounding, twin

# ── What runs ────────────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def rankings(n: int) -> Tensor:
    """All of them, a row each: the k-th entry is the response in place k."""
    return torch.tensor(list(permutations(range(n))), dtype=torch.long).reshape(math.factorial(n), n)


def nll(s: Tensor, order: Tensor) -> Tensor:
    """−log P_PL of rankings (…, N) at scores, by the package; of no response, which it refuses, 0."""
    if order.shape[-1] == 0:
        return s.new_zeros(order.shape[:-1])
    rewards = -order.argsort(-1).double()
    return icalign.plackett_luce_nll(s.expand(rewards.shape), rewards)


def law(s: Tensor, order: Tensor) -> Tensor:
    """P_PL of the rankings."""
    return (-nll(s, order)).exp()


def rest(s: Tensor, order: Tensor, K: int) -> Tensor:
    """−log P_PL of the responses in place K or worse, in their order."""
    behind = order[K:]
    return nll(s[behind], torch.arange(len(behind)))


def score(W: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The reward model of the package on responses y (N, d_y).

    Its queries have length 1, those of the theorems any: the query is 1 here, and its parameters the column Wx.
    """
    one, rewards = y.new_ones(1, 1), torch.arange(len(y), dtype=y.dtype)
    return icalign.scores(icalign.AlignmentTask(one, y[None], rewards[None], (W @ x)[:, None]))[0]


# ── The formulas ─────────────────────────────────────────────────────────────────────────────────────────────────────


def factors(s: Tensor, order: Tensor) -> Tensor:
    """In each place, exp of the score there over the sum of exp in that place or worse."""
    a = s[order].exp()
    return a / a.flip(-1).cumsum(-1).flip(-1)


def reduced(W: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """2⟨Wx, y⟩ − ‖y‖²."""
    return 2 * (y @ (W @ x)) - y.square().sum(-1)


# ── Instances, and what they round ───────────────────────────────────────────────────────────────────────────────────


def draw_scores(draw: Draw, n: int) -> Tensor:
    """All equal, near each other, or far apart."""
    return (0.0, 1.0, 10.0)[draw.seed % 3] * draw.normal(n)


def roundings(s: Tensor) -> float:
    """How many roundings a probability of a ranking at these scores carries, in itself or in its logarithm.

    Of the package: N terms log Z_k + (top_k − s_k), where Z_k gathers products 2·log₂N deep; they are as large as
    log N + spread, and their sum is rounded N + 2 times (tests/test_preferences.py); then exp. A product of N shares
    has N(N + 4): it adds to that.
    """
    n = len(s)
    if n == 0:
        return 0.0
    size = math.log(n) + float(s.max() - s.min())
    return n * (4 * math.log2(n) + 3 + math.log(n)) + (n + 2) * n * size + 2 + n * (n + 4)


def reach(W: Tensor, x: Tensor, y: Tensor) -> float:
    """‖|W||x|‖ + max ‖y‖, at least the length of all differences Wx − y."""
    return float((W.abs() @ x.abs()).norm() + y.norm(dim=-1).max())


def loss_noise(W: Tensor, x: Tensor, y: Tensor) -> float:
    """How far the loss that the package computes from W, x, y can be off."""
    return bounds.loss_rounding(torch.float64, len(y), x.shape[0], y.shape[-1], reach(W, x, y))


def draw_task(draw: Draw, least: int = 1) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """W, x, y and a ranking: N ≥ least, d_x and d_y up to 4; also equal responses, long ones, and x = 0."""
    n = least + draw.seed % (6 - least)
    m, d = draw.integer(1, 4), draw.integer(1, 4)
    y = (1.0, 0.2, 3.0)[draw.seed % 3] * draw.normal(n, m)
    if draw.seed % 4 == 3:
        y[-1] = y[0]
    return draw.normal(m, d), draw.normal(d) * float(draw.seed != 8), y, draw.permutation(n)


# ── The claims ───────────────────────────────────────────────────────────────────────────────────────────────────────


@twin
def pl_normalised_first_place(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The shares of the first place sum to 1: P_PL with k first over P_PL of the others. Broken: the last has none."""
    n = 1 + draw.seed % 6
    s = draw_scores(draw, n)
    orders = [torch.tensor([k, *range(k), *range(k + 1, n)]) for k in range(n - broken)]
    shares = [float((rest(s, order, 1) - rest(s, order, 0)).exp()) for order in orders]
    # two losses, their difference, exp, and n additions
    yield equal(sum(shares), 1, rounding(2 * roundings(s) + n + 3, 1))


@twin
def pl_normalised_induction(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """P_PL of i first, then σ, is e^{s_i}/Σe^{s_j} times P_PL of σ on the others; so 1 in sum, if theirs is.

    Broken: i last.
    """
    n = 1 + draw.seed % 5
    s, i = draw_scores(draw, n), draw.integer(0, n - 1)
    others = torch.tensor([j for j in range(n) if j != i], dtype=torch.long)
    sigma = rankings(n - 1)
    parts = [others[sigma], torch.full((len(sigma), 1), i)]
    probabilities = law(s, torch.cat(parts if broken else parts[::-1], -1))
    chosen = s.softmax(0)[i]
    yield equal(probabilities, chosen * law(s[others], sigma), rounding(2 * roundings(s) + n + 6, 1))
    yield equal(law(s[others], sigma).sum(), 1, rounding(roundings(s) + len(sigma), 1))
    yield equal(law(s, rankings(n)).sum(), 1, rounding(roundings(s) + math.factorial(n), 1))


@twin
def pl_normalised(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The probabilities of all rankings sum to 1. Broken: of all but the last."""
    n = draw.seed % 6
    s = draw_scores(draw, n)
    probabilities = law(s, rankings(n))
    yield equal(probabilities[: len(probabilities) - broken].sum(), 1, rounding(roundings(s) + math.factorial(n), 1))


@twin
def pl_shift(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A common shift of all scores leaves the law of every ranking. Broken: a shift of the first one alone."""
    n, c = 1 + draw.seed % 5, draw.number(-30, 30)
    s = draw_scores(draw, n)
    shifted = s + c * (torch.arange(n) < (1 if broken else n))
    # s + c is rounded, and a loss moves by at most 2N times that
    off = 2 * n * float((s.abs() + abs(c)).max())
    yield equal(law(shifted, rankings(n)), law(s, rankings(n)), rounding(2 * roundings(s) + off, 1))


@twin
def pl_shift_reduced(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """−‖Wx − y‖² = 2⟨Wx, y⟩ − ‖y‖² − ‖Wx‖². Broken: + ‖Wx‖²."""
    W, x, y, _ = draw_task(draw)
    square = (W @ x).square().sum()
    # Wx, a difference or a product, a sum of squares: d_x + d_y + 3 on either side, and twice the roundings of Wx
    allowed = rounding(2 * (2 * len(x) + y.shape[-1] + 6), reach(W, x, y) ** 2)
    yield equal(score(W, x, y), reduced(W, x, y) + (square if broken else -square), allowed)


@twin
def pl_shift_serves(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The reduced scores give the same law. Broken: with ⟨Wx, y⟩ in place of 2⟨Wx, y⟩."""
    W, x, y, _ = draw_task(draw)
    z, all_of_them = reduced(W * (0.5 if broken else 1), x, y), rankings(len(y))
    # both losses come from W, x, y, with scores of at most reach²; exp of a loss rounds by 2, the law is at most 1
    yield equal(law(score(W, x, y), all_of_them), law(z, all_of_them), 2 * loss_noise(W, x, y) + rounding(4, 1))


@twin
def pl_bradley_terry(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """For two responses the law is σ(s_τ(1) − s_τ(2)). Broken: σ of the other difference."""
    s = draw_scores(draw, 2)
    for order in rankings(2):
        margin = s[order[0]] - s[order[1]]
        sigmoid = 1 / (1 + (margin if broken else -margin).exp())
        allowed = rounding(roundings(s) + float(margin.abs()) + 5, 1)  # a difference, exp, a sum, a quotient
        yield equal(law(s, order), sigmoid, allowed)
        yield equal((-icalign.bradley_terry_nll(s, -order.argsort().double())).exp(), sigmoid, allowed)


@twin
def pl_infonce(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """−log of the first factor is −s_τ(1) + log Σ_j exp s_j, all j. Broken: the sum is over the others (if any)."""
    n = 1 + draw.seed % 5
    s, order = draw_scores(draw, n), draw.permutation(n)
    first = rest(s, order, 0) - rest(s, order, 1)
    summed = order[1:] if broken and n > 1 else order
    # the two losses; exp, a sum of n and a logarithm; and the last operation on each side, of numbers of that size
    largest = n * (math.log(n) + float(s.max() - s.min())) + float(s.abs().max())
    allowed = rounding(2 * roundings(s) + n + 4, 1) + rounding(3, largest)
    yield equal(first, -s[order[0]] + s[summed].exp().sum().log(), allowed)


@twin
def pl_top_k_split(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The law is the first K factors times the law of the rest. Broken: factors that compare the first K alone."""
    n = draw.seed % 6
    s, order = draw_scores(draw, n), draw.permutation(n)
    for K in range(n + 1):
        first = factors(s, order[:K]) if broken else factors(s, order)[:K]
        allowed = rounding(2 * roundings(s) + 3, 1)  # two laws, exp and a product
        yield equal(law(s, order), first.prod() * (-rest(s, order, K)).exp(), allowed)


@twin
def pl_top_k(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Rankings with the first K places of τ have the probability Π_{k<K}. Broken: with these K responses, any order."""
    n = draw.seed % 6
    s, order = draw_scores(draw, n), draw.permutation(n)
    everything, probabilities = rankings(n), law(s, rankings(n))
    for K in range(n + 2):
        found, wanted = everything[:, :K], order[:K]
        if broken:
            found, wanted = found.sort(-1).values, wanted.sort().values
        chosen = (found == wanted).all(-1)
        allowed = rounding(roundings(s) + math.factorial(n), 1)
        yield equal(probabilities[chosen].sum(), factors(s, order)[:K].prod(), allowed)
