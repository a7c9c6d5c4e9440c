"""Chapter 6, Theorem 3.3: N−1 blocks are one gradient step on the Plackett–Luce loss.

Blocks and places count from 0, as in the proofs; ``icalign.bounds`` counts blocks from 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from icalign import AlignmentTask, bounds, plackett_luce_nll, scores, symbols
from icalign.constructions import elimination
from icalign.transformer import Transformer

from . import Draw, Outcome, at_most, equal, given, rounding, twin

LOG_5 = math.log(5) * (1 + 2.0**-50)  # a hair above, so that (LOG_5/Δ)·Δ is not below


def head_operations(tokens: int, terms: int, logit: float) -> float:
    """Rounded operations on the path of a softmax mean over the tokens.

    A logit is a sum of so many products with rounded weights, of sizes that add up to ``logit``; the largest is
    subtracted (4 more), exp is good to two units (4). A weight is a quotient of such a term and a sum of them: twice
    that, and tokens + 1; the mean loses tokens + 1.
    """
    return 2 * ((terms + 4) * logit + 4) + 2 * (tokens + 1)


def is_unit(x: Tensor) -> Tensor:
    """Whether vectors have length 1, as well as a float can have it."""
    return (x.norm(dim=-1) - 1).abs() <= 2.0**-50


def farthest(y: Tensor, z: Tensor) -> float:
    """The largest distance between a point of y and a point of z."""
    return float((y[:, None] - z).norm(dim=-1).amax())


@dataclass(frozen=True)
class Weights:
    """What a class of inputs decides: the rows of W, η, γ, the gap Δ, the spread of the rewards, the masks B and C."""

    W: tuple[tuple[float, ...], ...]
    eta: float
    gamma: float
    gap: float
    spread: float
    B: float
    C: float

    @property
    def matrix(self) -> Tensor:
        """W."""
        return torch.tensor(self.W, dtype=torch.float64)

    @property
    def values(self) -> dict[Any, Any]:
        """A number for every symbol of the block."""
        sizes = {symbols.d_x: self.matrix.shape[1], symbols.d_y: len(self.W), symbols.W: self.matrix}
        numbers = {symbols.eta: self.eta, symbols.gamma: self.gamma, symbols.Delta: self.gap}
        return sizes | numbers | {elimination.R: self.spread, elimination.B: self.B, elimination.C: self.C}

    @property
    def block(self) -> Transformer:
        """One block; K equal blocks are this one K times."""
        return built(self)


@cache
def built(weights: Weights) -> Transformer:
    """The block, once for all inputs of a class."""
    return Transformer((elimination.block,), elimination.stream, weights.values)


@dataclass(frozen=True)
class Prompt:
    """One input: a query, responses, their rewards from low to low + spread, and their ranking τ."""

    weights: Weights
    x: Tensor
    y: Tensor
    r: Tensor
    tau: Tensor
    low: float

    @property
    def responses(self) -> int:
        """N."""
        return len(self.r)

    def flags(self, k: int) -> Tensor:
        """1 on the first k places."""
        return torch.zeros_like(self.r).index_fill(0, self.tau[:k], 1)

    def state(self, flags: Tensor, u: Tensor) -> Tensor:
        """Tokens [x; y; ‖y‖²; r; 1; flag; 0; u]."""
        rows = self.weights.block.rows
        X = torch.zeros(self.responses, rows["u"].stop, dtype=torch.float64)
        X[:, rows["x"]], X[:, rows["y"]], X[:, rows["u"]], X[:, rows["one"]] = self.x, self.y, u, 1
        for name, values in {"sq": self.y.square().sum(-1), "r": self.r, "flag": flags}.items():
            X[:, rows[name]] = values[:, None]
        return X

    def tokens(self, blocks: int) -> Tensor:
        """All tokens after so many equal blocks."""
        X = self.state(self.flags(0), torch.zeros_like(self.y[0]))
        for _ in range(blocks):
            X = self.weights.block(X)
        return X

    def after(self, blocks: int, row: str = "u") -> Tensor:
        """The row after so many equal blocks, at every token."""
        return self.tokens(blocks)[:, self.weights.block.rows[row]]

    def top(self, k: int) -> Tensor:
        """r⁺: what the heads of block k put into the row top of every token."""
        (block,) = self.weights.block.blocks
        attended: Tensor = block.attend(self.tokens(k))
        return attended[:, self.weights.block.rows["top"]][:, 0]

    @property
    def flag_rounding(self) -> float:
        """Rounded operations of a block on a flag: the two units that raise it lose 8·max|r|/Δ + 7, and B of a flag."""
        return 8 * float(self.r.abs().max()) / self.weights.gap + 7 + abs(self.weights.B)

    def attention(self, flags: Tensor, u: Tensor) -> Tensor:
        """Of the winner head and of the field head: head, asking token, answering token."""
        return self.weights.block.attention(self.state(flags, u))[0]

    @property
    def reduced(self) -> Tensor:
        """Z_j = 2⟨Wx, y_j⟩ − ‖y_j‖²."""
        return 2 * self.y @ (self.weights.matrix @ self.x) - self.y.square().sum(-1)

    @property
    def score_spread(self) -> float:
        """The length of the interval they lie in."""
        return float(self.reduced.max() - self.reduced.min())

    @property
    def distance(self) -> float:
        """D."""
        return farthest(self.y, self.y)

    def tail_mean(self, k: int) -> Tensor:
        """μ_k, of the responses in place k or worse."""
        y = self.y[self.tau][k:]
        return torch.softmax(-(self.weights.matrix @ self.x - y).square().sum(-1), 0) @ y

    def first_terms(self, terms: int) -> Tensor:
        """2η Σ_{k<K} (y_τ(k) − μ_k)."""
        places = range(min(terms, self.responses))
        parts = [2 * self.weights.eta * (self.y[self.tau[k]] - self.tail_mean(k)) for k in places]
        return sum(parts, torch.zeros_like(self.y[0]))

    def step(self) -> Tensor:
        """ΔW x with ΔW = −η∇L(W), by autograd."""
        parameters = self.weights.matrix.requires_grad_()
        task = AlignmentTask(self.x[None], self.y[None], self.r[None], parameters)
        (slope,) = torch.autograd.grad(plackett_luce_nll(scores(task), task.r).sum(), parameters)
        return -self.weights.eta * slope @ self.x

    def winner_crowd(self, k: int) -> float:
        """q_k."""
        w = self.weights
        return float(bounds.winner_crowd(w.gamma, w.gap, w.spread, self.responses, k + 1))

    def field_crowd(self, k: int) -> float:
        """p_k."""
        return float(bounds.field_crowd(self.weights.C, self.score_spread, self.responses, k + 1))

    def error_bound(self, blocks: int) -> float:
        """2ηD Σ_{k<K} [q_k/(1+q_k) + p_k/(1+p_k)]."""
        shares = [bounds.share(self.winner_crowd(k)) + bounds.share(self.field_crowd(k)) for k in range(blocks)]
        return 2 * self.weights.eta * self.distance * sum(shares)

    def rewards_fit(self) -> tuple[bool | Tensor, ...]:
        """Δ > 0, rewards Δ apart in their range, τ ranks them; all dyadic, so exact."""
        gaps = (self.r[:, None] - self.r).abs() + torch.diag(torch.full_like(self.r, math.inf))
        inside = (self.low <= self.r) & (self.r <= self.low + self.weights.spread)
        return self.weights.gap > 0, gaps >= self.weights.gap, inside, self.r[self.tau].diff() < 0

    def fits(self) -> tuple[bool | Tensor, ...]:
        """The hypotheses of the theorem; the spread of the scores and D are those of the input."""
        w = self.weights
        hot, mask = w.gamma * w.gap >= math.log(5), 1.5 + 2 * w.spread / w.gap <= w.B
        return w.eta >= 0, hot, mask, is_unit(self.x), *self.rewards_fit()

    def operations(self, blocks: int) -> float:
        """Rounded operations of so many blocks on u, whose parts are 2ηy.

        Each block: both heads, 3 for the values, 2 additions to u; its flags are off by 8·max|r|/Δ + 7 + B, which moves
        both logits by that times their masks.
        """
        w, (dim_y, dim_x) = self.weights, self.weights.matrix.shape
        reward = float(self.r.abs().max())
        reach = float(w.matrix.norm() * self.x.norm() + self.y.norm(dim=-1).max())
        selecting, field = w.gamma * (reward + 2 * (w.spread + w.gap)), reach * reach + abs(w.C)
        heads = head_operations(self.responses, 2, selecting)
        heads += head_operations(self.responses, dim_x + dim_y + 4, field)
        flags = blocks * (8 * reward / w.gap + 7 + abs(w.B)) * (selecting + field)
        return blocks * (heads + flags + 3 + 2 * blocks)

    def rounding(self, blocks: int) -> float:
        """What K blocks and the K terms they are compared with may add: the terms lose no more than the blocks."""
        return rounding(2 * self.operations(blocks), 2 * self.weights.eta * self.y.norm(dim=-1).max())


def some_weights(draw: Draw, responses: int, hot: float) -> Weights:
    """Weights for a class with room for so many responses, γΔ = hot; gaps and spreads are dyadic, so exact."""
    dim_x, dim_y = draw.integer(1, 3), draw.integer(1, 3)
    gap = draw.integer(1, 8) / 8
    spread = (responses - 1) * gap + draw.integer(0, 16) / 16
    return Weights(
        W=tuple(map(tuple, draw.normal(dim_y, dim_x).tolist())),
        eta=draw.number(0.05, 1),
        gamma=hot / gap,
        gap=gap,
        spread=spread,
        B=1.5 + 2 * spread / gap + draw.integer(0, 1) * draw.number(0, 1),
        C=draw.number(-1, 12),
    )


def some_prompt(draw: Draw, weights: Weights, responses: int, split: int | None = None, length: float = 1) -> Prompt:
    """An input of the class, but for the length of x.

    If split, the first places are Δ apart from the top of the range down, the others from its bottom up.
    """
    w = weights
    room = w.spread - (responses - 1) * w.gap
    if split is None:
        lower = torch.sort(draw.uniform(0, room, responses).mul(64).floor().div(64)).values
    else:
        lower = room * (torch.arange(responses) >= split).double()
    low, tau = draw.integer(-8, 8) / 4, draw.permutation(responses)
    ranked = low + w.spread - torch.arange(responses, dtype=torch.float64) * w.gap - lower
    r = torch.empty_like(ranked).index_copy(0, tau, ranked)
    x = length * draw.unit(w.matrix.shape[1])
    return Prompt(w, x, draw.normal(responses, w.matrix.shape[0]), r, tau, low)


def at_two_points(draw: Draw, prompt: Prompt, there: Tensor) -> Prompt:
    """The same rewards, but all responses at one of two points: those that are marked at that of the larger score."""
    two = replace(prompt, y=draw.normal(2, prompt.y.shape[1]))
    here, away = two.y[two.reduced.argsort()]
    return replace(prompt, y=torch.where(there[:, None] > 0, away, here))


def some_prompts(draw: Draw) -> Iterator[Prompt]:
    """Any number of responses; and two, Δ apart, for which the bound is attained."""
    responses = draw.integer(1, 6)
    weights = some_weights(draw, responses, draw.number(1, 6) * LOG_5)
    yield some_prompt(draw, weights, responses)
    yield some_prompt(draw, weights, responses, split=draw.integer(0, responses))
    pair = some_weights(draw, 2, LOG_5)
    yield some_prompt(draw, pair, 2, split=2)


@twin
def theorem_3_3_threshold(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """If γΔ ≥ log 5 and B ≥ 3/2 + 2·spread/Δ, |r⁺ − r_τ(k)| ≤ Δ/4 in block k. Broken: γΔ ≥ log 4 is enough."""
    responses = draw.integer(1, 6)
    hot = math.log(4) if broken else LOG_5
    weights = some_weights(draw, responses, hot * (1 if draw.seed % 2 else draw.number(1, 4)))
    for split in (None, 0, responses, draw.integer(0, responses)):
        it = some_prompt(draw, weights, responses, split, length=2)
        k = draw.integer(0, responses - 1)
        mask = 1.5 + 2 * weights.spread / weights.gap <= weights.B
        given(weights.gamma * weights.gap >= math.log(4 if broken else 5), mask, *it.rewards_fit())
        largest = it.r.abs().max()
        logit = weights.gamma * float(largest + 2 * (weights.spread + weights.gap))
        count = head_operations(responses, 2, logit) + 1 + 2 * k * it.flag_rounding * logit
        yield at_most((it.top(k) - it.r[it.tau[k]]).abs(), weights.gap / 4, rounding(count, largest))


@twin
def theorem_3_3_winner_term(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """‖found − y_τ(k)‖ ≤ D q_k/(1+q_k) for the winner head in block k, any γ > 0. Broken: the eliminated weigh nothing.

    Attained where the eliminated are at the top of the range, the live at its bottom, all losers at one point.
    """
    responses = draw.integer(1, 6)
    weights = some_weights(draw, responses, draw.number(0.05, 2))
    k = draw.integer(0, responses - 1)
    sharp = some_prompt(draw, weights, responses, split=k, length=2)
    sharp = at_two_points(draw, sharp, sharp.flags(k + 1) - sharp.flags(k))
    for it in (some_prompt(draw, weights, responses, length=0.5), sharp):
        given(weights.gamma > 0, *it.rewards_fit())
        found = it.attention(it.flags(k), draw.normal(it.y.shape[1]))[0] @ it.y
        xi = math.exp(-weights.gamma * weights.gap)
        crowd = xi * (1 - xi ** (responses - k - 1)) / (1 - xi) if broken else it.winner_crowd(k)
        error = (found - it.y[it.tau[k]]).norm(dim=-1)
        yield at_most(error, it.distance * bounds.share(crowd), it.rounding(1) / (2 * weights.eta))


@twin
def theorem_3_3_field_term(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """‖found − μ_k‖ ≤ D p_k/(1+p_k) for the field head in block k. Broken: p_k = k/N·e^{R_Z−C}.

    Attained where the eliminated are at one point, the live at another of a smaller score.
    """
    responses = draw.integer(1, 6)
    weights = some_weights(draw, responses, 1.0)
    k = draw.integer(0, responses - 1)
    random = some_prompt(draw, weights, responses, length=draw.number(0.1, 2))
    for it in (random, at_two_points(draw, random, random.flags(k))):
        low = it.reduced.min()
        given(low <= it.reduced, it.reduced <= low + it.score_spread * (1 + 2.0**-52))
        found = it.attention(it.flags(k), draw.normal(it.y.shape[1]))[1] @ it.y
        crowd = it.field_crowd(k) * ((responses - k) / responses if broken else 1)
        error = (found - it.tail_mean(k)).norm(dim=-1)
        yield at_most(error, it.distance * bounds.share(crowd), it.rounding(1) / (2 * weights.eta))


@twin
def partial_sums(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """After K ≤ N blocks u is the first K terms, to within 2ηD Σ_{k<K} (…). Broken: half of it.

    Attained by the first of two responses Δ apart.
    """
    for it in some_prompts(draw):
        blocks = 1 if it.responses == 2 else draw.integer(0, it.responses)
        given(blocks <= it.responses, *it.fits())
        error = (it.after(blocks) - it.first_terms(blocks)).norm(dim=-1)
        yield at_most(error, (0.5 if broken else 1) * it.error_bound(blocks), it.rounding(blocks))


@twin
def theorem_3_3_induction(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """After K blocks the tokens are [x; y; ‖y‖²; r; 1; flags of K places; 0; u]; block k errs by its part of the bound.

    For K ≤ N + 1, k < N. Broken: the flags of K + 1 places, and half of the part.
    """
    for it in some_prompts(draw):
        given(*it.fits())
        u = [it.after(K) for K in range(it.responses + 2)]
        rows = it.weights.block.rows
        for K in range(it.responses + 2):
            expected, found = it.state(it.flags(K + broken), u[K][0]), it.tokens(K)
            yield equal(found[:, rows["flag"]], expected[:, rows["flag"]], rounding(K * it.flag_rounding, 1))
            yield equal(found[:, rows["u"]], expected[:, rows["u"]], it.rounding(K))
            for name in ("x", "y", "sq", "r", "one", "top"):
                yield equal(found[:, rows[name]], expected[:, rows[name]])
        for k in range(it.responses):
            term = 2 * it.weights.eta * (it.y[it.tau[k]] - it.tail_mean(k))
            part = it.error_bound(k + 1) - it.error_bound(k)
            error = (u[k + 1] - u[k] - term).norm(dim=-1)
            yield at_most(
                error, (0.5 if broken else 1) * part, it.rounding(k + 1) + rounding(4 * k, it.error_bound(k + 1))
            )


@twin
def theorem_3_3(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """After N−1 blocks ‖u − ΔW x‖ ≤ 2ηD Σ_{k<N−1} [q_k/(1+q_k) + p_k/(1+p_k)]. Broken: without the factor 2.

    Attained by two responses Δ apart.
    """
    for it in some_prompts(draw):
        given(*it.fits())
        blocks = it.responses - 1
        error = (it.after(blocks) - it.step()).norm(dim=-1)
        yield at_most(error, (0.5 if broken else 1) * it.error_bound(blocks), it.rounding(blocks))
