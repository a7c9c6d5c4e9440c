"""Chapter 8, Multiple queries II: a filtered head sees its own query, but for some strangers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from icalign import bounds
from icalign.constructions import elimination
from icalign.constructions.multi_query import gamma_beta, own_terms
from icalign.constructions.multi_query import overlap as inner_product
from icalign.constructions.query_selection import gamma_1, gamma_2
from icalign.spec import Block
from icalign.symbols import Delta, W, d_x, d_y, eta, gamma
from icalign.transformer import Transformer

from . import Draw, Outcome, at_most, given, rounding, twin
from .theorem33 import farthest, head_operations, is_unit

HEADS = Block(heads=own_terms(inner_product).heads)  # of the block in which no token is a sink


@dataclass(frozen=True)
class Filtered:
    """M queries with N responses each in block k of query a, and the weights of the filtered block.

    The flags of query a are those of its first k places; those of the others are anything from 0 on.
    """

    x: Tensor
    y: Tensor
    r: Tensor
    tau: Tensor
    f: Tensor
    a: int
    k: int
    W: Tensor
    gamma_1: float
    gamma_2: float
    gamma_beta: float
    gap: float
    low: float
    spread: float
    C: float

    @cached_property
    def attention(self) -> Tensor:
        """Of both heads: head, asking token of query a, answering token."""
        dim_y, dim_x = self.W.shape
        values = {d_x: dim_x, d_y: dim_y, W: self.W, eta: 0.1, gamma_1: self.gamma_1, gamma_2: self.gamma_2}
        values |= {gamma_beta: self.gamma_beta, Delta: self.gap, elimination.R: self.spread, elimination.C: self.C}
        model = Transformer((HEADS,), elimination.stream, values)
        X, rows = torch.zeros(*self.r.shape, model.rows["u"].stop, dtype=torch.float64), model.rows
        X[..., rows["x"]], X[..., rows["y"]], X[..., rows["one"]] = self.x[:, None], self.y, 1
        for name, value in {"sq": self.y.square().sum(-1), "r": self.r, "flag": self.f}.items():
            X[..., rows[name]] = value[..., None]
        return model.attention(X.flatten(0, 1))[0].unflatten(1, self.r.shape)[:, self.a]

    def found(self, head: int) -> Tensor:
        """Σ A y over all tokens, at every token of query a."""
        return self.attention[head] @ self.y.flatten(0, 1)

    @cached_property
    def alone(self) -> Tensor:
        """What the two heads of ``elimination`` find on the tokens of query a alone, at each of them."""
        dim_y, dim_x = self.W.shape
        values = {d_x: dim_x, d_y: dim_y, W: self.W, eta: 0.1, gamma: self.gamma_2, Delta: self.gap}
        values |= {elimination.R: self.spread, elimination.C: self.C}
        heads = Block(heads=(elimination.winner, elimination.field))
        model, y = Transformer((heads,), elimination.stream, values), self.y[self.a]
        X, rows = torch.zeros(len(y), model.rows["u"].stop, dtype=torch.float64), model.rows
        X[:, rows["x"]], X[:, rows["y"]], X[:, rows["one"]] = self.x[self.a], y, 1
        for name, value in {"sq": y.square().sum(-1), "r": self.r[self.a], "flag": self.f[self.a]}.items():
            X[:, rows[name]] = value[:, None]
        return model.attention(X)[0] @ y

    @property
    def scores(self) -> Tensor:
        """Z of all responses at query a."""
        return 2 * self.y @ (self.W @ self.x[self.a]) - self.y.square().sum(-1)

    @property
    def score_spread(self) -> float:
        """R_Z, the length of the interval they lie in."""
        return float(self.scores.max() - self.scores.min())

    @property
    def overlap(self) -> float:
        """ρ: the largest ⟨x^a, x^b⟩; of no account if there is one query."""
        inner = self.x[torch.arange(len(self.x)) != self.a] @ self.x[self.a]
        return float(inner.max()) if len(inner) else 0.5

    @property
    def diameter(self) -> float:
        """D₀."""
        return farthest(self.y.flatten(0, 1), self.y.flatten(0, 1))

    def rounding(self) -> float:
        """Of two means of responses, with the larger logits of the two heads."""
        reward, reach = float(self.r.abs().max()), float(self.W.norm() + self.y.norm(dim=-1).max())
        flag = float(self.f.max())
        selecting = self.gamma_1 + self.gamma_2 * (reward + 2 * (self.spread + self.gap) * flag)
        logit = max(selecting, self.gamma_beta + reach * reach + self.C * flag)
        terms = 2 * self.W.shape[1] + self.W.shape[0] + 4
        return rounding(2 * head_operations(self.r.numel(), terms, logit), self.y.norm(dim=-1).max())


def some_filtered(draw: Draw, heavy: bool, last: bool) -> Filtered:
    """In any block, or in the last one. If strangers are to be heavy, they are at one point, query a at another.

    They are as heavy as can be where all have one inner product with x^a and no flag, their rewards are Δ apart from
    the top down, and the only live response to query a has the lowest; in the head that weighs, where they have the
    larger score and the eliminated no weight.
    """
    queries, responses = draw.integer(2 if heavy else 1, 4), draw.integer(1, 5)
    dim_x, dim_y = draw.integer(1, 4), draw.integer(1, 3)
    a, k = draw.integer(0, queries - 1), responses - 1 if last else draw.integer(0, responses - 1)
    gap, low = draw.integer(1, 4) / 4, draw.integer(-8, 8) / 4
    room = draw.integer(0, 4) / 4
    spread = (responses - 1) * gap + room
    x, W = torch.stack([draw.unit(dim_x) for _ in range(queries)]), draw.normal(dim_y, dim_x)
    y, tau = draw.normal(queries, responses, dim_y), torch.stack([draw.permutation(responses) for _ in range(queries)])
    lower = draw.uniform(0, room, queries, responses).mul(64).floor().div(64).sort(-1).values
    f = draw.uniform(-1, 2, queries, responses).clamp_min(0)
    if heavy:
        others = torch.arange(queries) != a
        x[others] = draw.number(-0.9, 0.9) * x[a]
        lower, f = torch.zeros_like(lower), torch.zeros_like(f)
        lower[a, -1] = room
        here, there = sorted(draw.normal(2, dim_y), key=lambda point: float(2 * point @ W @ x[a] - point @ point))
        y[others], y[a] = there, here
    steps = gap * torch.arange(responses, dtype=torch.float64)
    r = torch.empty_like(lower).scatter(-1, tau, low + spread - steps - lower)
    f[a] = torch.zeros(responses, dtype=torch.float64).index_fill(0, tau[a, :k], 1)
    gamma_2, C = draw.number(0.1, 4) / gap, 40.0 if heavy else draw.number(0, 9)
    it = Filtered(x, y, r, tau, f, a, k, W, 0.0, gamma_2, 0.0, gap, low, spread, C)
    far, farther = draw.number(1, 5) + gamma_2 * spread, draw.number(1, 5) + it.score_spread
    apart = max(1 - it.overlap, 0.05)
    return replace(it, gamma_1=far / apart, gamma_beta=farther / apart)


@twin
def mq_own_term_winner(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """In block k the filtered winner head reads what that of ``elimination`` reads on query a, up to D₀χ/(1+χ),
    χ = (M−1)(1−ξ^N)/(1−ξ) e^{γ₂(R−(N−k−1)Δ)−γ₁(1−ρ)}, ξ = e^{−γ₂Δ}. Broken: N−k for N−k−1.

    Nearly attained in the last block; exactly if N = 1.
    """
    heavy = draw.seed % 2 == 1
    it = some_filtered(draw, heavy, last=heavy)
    responses, ranked = it.r.shape[1], it.r.gather(-1, it.tau)
    given(it.gamma_1 >= 0, it.gamma_2 > 0, it.gap > 0, is_unit(it.x[it.a]), it.f >= 0)
    given(ranked[:, :-1] - ranked[:, 1:] >= it.gap, it.low <= it.r, it.r <= it.low + it.spread)
    place = it.k + (0 if broken else 1)
    chi = bounds.strangers(it.gamma_1, it.gamma_2, it.gap, it.spread, it.overlap, responses, len(it.x), place, sinks=0)
    yield at_most((it.found(0) - it.alone[0]).norm(dim=-1), it.diameter * bounds.share(chi), it.rounding())


@twin
def mq_own_term_field(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """In block k the filtered field head reads what that of ``elimination`` reads on query a, up to D₀χ/(1+χ),
    χ = (M−1)N/(N−k) e^{R_Z−γ_β(1−ρ)}. Broken: M−1 for (M−1)N/(N−k). Attained by strangers of the larger score."""
    it = some_filtered(draw, heavy=draw.seed % 2 == 1, last=False)
    responses = it.r.shape[1]
    given(it.gamma_beta >= 0, it.C >= 0, is_unit(it.x[it.a]), it.f >= 0)
    chi = bounds.field_strangers(it.gamma_beta, it.score_spread, it.overlap, responses, len(it.x), it.k + 1, sinks=0)
    chi *= (responses - it.k) / responses if broken else 1
    yield at_most((it.found(1) - it.alone[1]).norm(dim=-1), it.diameter * bounds.share(chi), it.rounding())


@twin
def mq_own_term_norm(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Two means of responses, of any number and under any weights, are D₀ apart at most; here that of a filtered head
    over all tokens and that of one query's tokens, or of two points with all weight. Broken: half of it."""
    it = some_filtered(draw, heavy=draw.seed % 2 == 1, last=True)
    y, own = it.y.flatten(0, 1), it.y[it.a]
    allowed = rounding(2 * len(y) + 12, 2 * y.norm(dim=-1).max())
    D = farthest(y, own)
    for weights in it.attention[:, 0]:
        other = draw.uniform(0, 1, len(own)).softmax(-1)
        given(weights >= 0, (weights.sum() - 1).abs() <= rounding(2 * len(y), 1), (other.sum() - 1).abs() <= 2.0**-48)
        yield at_most((weights.flatten() @ y - other @ own).norm(), (0.5 if broken else 1) * D, allowed)
    first, second = divmod(int((y[:, None] - own).norm(dim=-1).argmax()), len(own))
    yield at_most((y[first] - own[second]).norm(), (0.5 if broken else 1) * D, allowed)
