"""Twins of ``proofs/Selection.v``: how much attention the winner gets (Lemma C.2)."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from icalign import symbols
from icalign.constructions.selection import block, stream
from icalign.transformer import Transformer

from . import Draw, Outcome, at_most, below, equal, given, holds, rounding, twin
from .prompts import gap_drawn, ladder, led, logits, on_grid, ranks, responses, softmax_count, spaced, tokens


def head(gamma: float, dim_x: int, dim_y: int) -> Transformer:
    """The block with one head, as torch runs it."""
    return Transformer((block,), stream, {symbols.d_x: dim_x, symbols.d_y: dim_y, symbols.gamma: gamma})


def asked(gamma: float, x: Tensor, y: Tensor, r: Tensor) -> tuple[Transformer, Tensor]:
    """The head, and the tokens [x; y_j; r_j; 1; 0]."""
    model = head(gamma, len(x), y.shape[-1])
    return model, tokens(model.rows, len(r), x=x, y=y, r=r[:, None], one=1)


def attention(draw: Draw, gamma: float, r: Tensor) -> Tensor:
    """Whom token i (row) attends to, beside any query and responses."""
    model, X = asked(gamma, draw.normal(draw.integer(1, 4)), draw.normal(len(r), draw.integer(1, 4)), r)
    return model.attention(X)[0][0]


def any_gamma(draw: Draw) -> float:
    """Positive, negative or 0."""
    return draw.number(0.3, 3) * (1, 1, -1, 0)[draw.integer(0, 3)]


def warm(draw: Draw) -> float:
    """γ ≥ 0, now and then 0."""
    return draw.number(0.3, 3) * min(1, draw.integer(0, 4))


def share(q: float) -> float:
    """q/(1+q)."""
    return q / (1 + q)


def geometric(xi: float, n: int) -> float:
    """ξ(1−ξ^{N−1})/(1−ξ^N)."""
    return xi * (1 - xi ** (n - 1)) / (1 - xi**n)


def crowd_rounding(gamma: float, gap: float, r: Tensor) -> float:
    """Of a weight, and of the bound q/(1+q): an exponential and six operations."""
    return rounding(softmax_count(len(r), abs(gamma) * r.abs().max()) + abs(gamma * gap) + 8, 1)


def steps_rounding(gamma: float, gap: float, r: Tensor) -> float:
    """Of a weight, and of the bound in steps of ξ: powers err by N(γΔ + 3), and are divided by 1 − ξ^N."""
    n, per_step = len(r), gamma * gap
    bound = rounding(2 * n * (per_step + 3) + 4, 1 / (1 - math.exp(-n * per_step)))
    return rounding(softmax_count(n, gamma * r.abs().max()), 1) + bound


@twin
def selection_logits(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """(KᵀQ)_ji = γ r_j for tokens of any content, if token i holds 1. Broken: γ r_i."""
    gamma, n = any_gamma(draw), responses(draw)
    model = head(gamma, draw.integer(1, 4), draw.integer(1, 4))
    X, i = draw.normal(n, model.rows["best"].stop), draw.integer(0, n - 1)
    X[i, model.rows["one"]] = 1
    given(X[i, model.rows["one"]] == 1)
    r = X[:, model.rows["r"]][:, 0]
    found = logits(next(model.blocks[0].attention_heads()), X)[i]
    yield equal(found, gamma * (r[i] if broken else r), rounding(2, gamma * r))  # a product on either side


@twin
def selection_logits_prompt(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """KᵀQ_ji = γ r_j on the tokens of a prompt. Broken: rows and columns exchanged."""
    gamma, n = any_gamma(draw), responses(draw)
    r = draw.normal(n)
    model, X = asked(gamma, draw.normal(draw.integer(1, 4)), draw.normal(n, draw.integer(1, 4)), r)
    found = logits(next(model.blocks[0].attention_heads()), X)
    expected = (gamma * r).expand(n, n)
    yield equal(found, expected.T if broken else expected, rounding(2, gamma * r))  # a product on either side


@twin
def selection_bound(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """1 − A_max ≤ q/(1+q), q = (N−1)e^{−γΔ}, for γ ≥ 0 and Δ of any sign. Broken: q = e^{−γΔ}."""
    n, gamma, gap = responses(draw), warm(draw), gap_drawn(draw, -0.5)
    r, won = led(draw, n, gap, tied=draw.integer(0, 1) == 1)
    given(gamma >= 0, r[~won] + gap <= r[won])
    q = (1 if broken else n - 1) * math.exp(-gamma * gap)
    yield at_most(1 - attention(draw, gamma, r)[:, won], share(q), crowd_rounding(gamma, gap, r))


@twin
def selection_bound_tied_losers(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """1 − A_max = q/(1+q) if all losers tie, for any γ and Δ. Broken: q = N e^{−γΔ}."""
    n, gamma, gap = responses(draw), any_gamma(draw), gap_drawn(draw, -0.5)
    r, won = led(draw, n, gap, tied=True)
    given(r[~won] == r[won] - gap)
    q = (n if broken else n - 1) * math.exp(-gamma * gap)
    yield equal(1 - attention(draw, gamma, r)[:, won], share(q), crowd_rounding(gamma, gap, r))


@twin
def selection_bound_strict(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """1 − A_max < q/(1+q) if a loser is further behind, by more than rounding. Broken: without that hypothesis."""
    n, gamma, gap = responses(draw, 2), draw.number(0.3, 3), gap_drawn(draw, -0.5)
    r, won = led(draw, n, gap, tied=True)
    behind = int((~won).nonzero()[draw.integer(0, n - 2)])
    r[behind] -= 0.0 if broken else gap_drawn(draw)
    given(gamma > 0, r[~won] + gap <= r[won], not won[behind], broken or r[behind] + gap < r[won])
    missed = 1 - attention(draw, gamma, r)[:, won]
    yield below(missed + crowd_rounding(gamma, gap, r), share((n - 1) * math.exp(-gamma * gap)))


@twin
def selection_bound_equality(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """1 − A_max = q/(1+q) iff all losers tie. Broken: iff one of them is as near as the gap lets it."""
    n, gamma, gap = responses(draw), draw.number(0.3, 3), gap_drawn(draw, -0.5)
    r, won = led(draw, n, gap, tied=True)
    for loser in (~won).nonzero()[: draw.integer(0, n - 1)]:
        r[loser] -= gap_drawn(draw)
    given(gamma > 0, r[~won] + gap <= r[won])
    off = (1 - attention(draw, gamma, r)[:, won] - share((n - 1) * math.exp(-gamma * gap))).abs()
    near = r[~won] == r[won] - gap
    yield holds((off <= crowd_rounding(gamma, gap, r)) == (near.any() if broken else near.all()))


@twin
def selection_bound_spaced(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """1 − A_max ≤ ξ(1−ξ^{N−1})/(1−ξ^N), ξ = e^{−γΔ}, for gaps of Δ or more. Broken: half of it."""
    n, gamma, gap = responses(draw), draw.number(0.3, 3), gap_drawn(draw)
    r, tau = ladder(draw, n, gap, draw.integer(0, 1) * on_grid(draw.uniform(0, 1, n)))
    given(gamma > 0, gap > 0, spaced(gap, r), r <= r[tau[0]])
    bound = geometric(math.exp(-gamma * gap), n)
    missed = 1 - attention(draw, gamma, r)[:, tau[0]]
    yield at_most(missed, bound / 2 if broken else bound, steps_rounding(gamma, gap, r))


@twin
def selection_bound_free_of_n(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """ξ(1−ξ^{N−1})/(1−ξ^N) < ξ for every N ≥ 1, by more than rounding. Broken: < ξ/2."""
    n, gamma, gap = responses(draw), draw.number(0.1, 3), draw.number(0.1, 2)
    given(n > 0, gamma > 0, gap > 0)
    xi = math.exp(-gamma * gap)
    allowed = rounding(2 * n * (gamma * gap + 3) + 4, xi / (1 - xi**n))  # as in steps_rounding
    yield below(geometric(xi, n) + allowed, xi / 2 if broken else xi)


@twin
def selection_bound_equal_spacing(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """1 − A_max = ξ(1−ξ^{N−1})/(1−ξ^N) for rewards in steps of Δ. Broken: ξ, as for infinitely many."""
    n, gamma, gap = responses(draw), draw.number(0.3, 3), gap_drawn(draw)
    r, tau = ladder(draw, n, gap)
    given(gamma > 0, gap > 0, r[tau] == r[tau[0]] - gap * torch.arange(n))
    xi = math.exp(-gamma * gap)
    missed = 1 - attention(draw, gamma, r)[:, tau[0]]
    yield equal(missed, xi if broken else geometric(xi, n), steps_rounding(gamma, gap, r))


@twin
def selection_bound_unequal_spacing(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """1 − A_max < ξ(1−ξ^{N−1})/(1−ξ^N) if a gap is wider, by more than rounding. Broken: without that hypothesis."""
    n, gamma, gap = responses(draw, 2), draw.number(0.3, 1), gap_drawn(draw)
    k, extra = draw.integer(0, n - 2), torch.zeros(n, dtype=torch.float64)
    extra[k + 1] = 0.0 if broken else gap_drawn(draw)
    r, tau = ladder(draw, n, gap, extra)
    given(gamma > 0, gap > 0, spaced(gap, r), ranks(r, tau), r <= r[tau[0]])
    given(broken or r[tau[k + 1]] + gap < r[tau[k]])
    missed = 1 - attention(draw, gamma, r)[:, tau[0]]
    yield below(missed + steps_rounding(gamma, gap, r), geometric(math.exp(-gamma * gap), n))
