"""What the twins of chapters 9 to 14 draw: queries with responses, rewards, tokens, and the steps by autograd."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations
from math import exp

import torch
from torch import Tensor

from icalign import plackett_luce_nll
from icalign.bounds import mask_temperatures
from icalign.spec import Block, Head
from icalign.stream import Stream
from icalign.symbols import N, d_x, d_y
from icalign.transformer import Attention, Transformer, Values

from . import Draw


def size(draw: Draw, least: int, most: int = 6) -> tuple[int, int]:
    """N, which takes all values in turn, and how many turns came before."""
    turn, step = divmod(draw.seed, most + 1 - least)
    return least + step, turn


def all_rankings(n: int) -> Tensor:
    """All rankings of n responses, (n!, n)."""
    return torch.tensor(list(permutations(range(n))))


@dataclass(frozen=True)
class Query:
    """A query x with responses y, and the parameters W of the reward model."""

    W: Tensor
    x: Tensor
    y: Tensor

    @classmethod
    def drawn(cls, draw: Draw, n: int, length: float = 1.0) -> Query:
        """Random, in dimensions from 1 to 4; ‖x‖ is the length."""
        d_x, d_y = draw.integer(1, 4), draw.integer(1, 4)
        return cls(draw.normal(d_y, d_x), length * draw.unit(d_x), draw.normal(n, d_y))

    @classmethod
    def of_two_points(cls, draw: Draw, n: int, first: Tensor) -> Query:
        """The responses of ``first`` at one point and the others at another, of a smaller score."""
        one = cls.drawn(draw, 2)
        better, worse = one.y[one.reduced.argsort(descending=True)]
        y = worse.repeat(n, 1)
        y[first] = better
        return replace(one, y=y)

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def scores(self) -> Tensor:
        """−‖Wx − y_j‖²."""
        return -(self.W @ self.x - self.y).square().sum(-1)

    @property
    def reduced(self) -> Tensor:
        """2⟨Wx, y_j⟩ − ‖y_j‖²."""
        return 2 * self.y @ (self.W @ self.x) - self.y.square().sum(-1)

    @property
    def distances(self) -> Tensor:
        """‖y_i − y_j‖."""
        return (self.y[:, None] - self.y).norm(dim=-1)

    @property
    def reach(self) -> float:
        """‖|W||x|‖ + max ‖y‖."""
        return float((self.W.abs() @ self.x.abs()).norm() + self.y.norm(dim=-1).max())

    @property
    def effort(self) -> float:
        """Roundings of a mean of responses under a softmax of scores, relative to the longest.

        A score, of reach² at most, rounds d_x + d_y + 3 times and has that size in exp; a weight is a quotient of such
        an exponential and a sum of n; a mean has n + 1 more.
        """
        return 2 * (sum(self.W.shape) + 4) * self.reach**2 + 2 * self.n + 6

    def longest(self, eta: float) -> float:
        """4|η|n·reach·‖x‖²: the terms of a step, and the residuals Wx − y that autograd adds up, are no longer."""
        return 4 * abs(eta) * self.n * self.reach * float(self.x.norm()) ** 2

    def prefix(self, t: int) -> Query:
        """The first t responses."""
        return replace(self, y=self.y[:t])

    def gradients(self, places: Tensor) -> Tensor:
        """∇L by autograd, for the rankings ``places`` (…, n): in place k stands the response places[k]."""
        W = self.W.expand(*places.shape[:-1], *self.W.shape).clone().requires_grad_()
        scores = -((W @ self.x)[..., None, :] - self.y).square().sum(-1)
        (found,) = torch.autograd.grad(plackett_luce_nll(scores, -places.argsort(-1).double()).sum(), W)
        return found

    def step(self, places: Tensor, eta: float) -> Tensor:
        """ΔW x, ΔW = −η∇L, by autograd."""
        return -eta * self.gradients(places) @ self.x

    def tail_means(self, places: Tensor, scores: Tensor | None = None) -> Tensor:
        """μ_k for every place k, (n, d_y), by its definition."""
        ranked = (self.scores if scores is None else scores)[places]
        odds = (ranked - ranked.max()).exp().expand(self.n, -1).triu()
        return (odds / odds.sum(-1, keepdim=True)) @ self.y[places]

    def terms(self, places: Tensor, eta: float) -> Tensor:
        """2η(y_τ(k) − μ_k) for every place k, (n, d_y)."""
        return 2 * eta * (self.y[places] - self.tail_means(places))


@dataclass(frozen=True)
class Rewards:
    """Rewards at least ``gap`` apart in [low, low + spread]; multiples of 1/32, so that all comparisons are exact."""

    r: Tensor
    gap: float
    low: float
    spread: float

    @classmethod
    def drawn(cls, draw: Draw, n: int, tight: bool = False) -> Rewards:
        """Random; if tight, all gaps are Δ and there is no room at either end."""
        gap, low = draw.integer(1, 8) / 16, draw.integer(-32, 16) / 16
        more = [0 if tight else draw.integer(0, 8) / 32 for _ in range(n + 1)]
        ranked = low + more[0] + torch.tensor([sum(more[1 : k + 1]) + k * gap for k in range(n)], dtype=torch.float64)
        return cls(ranked[draw.permutation(n)], gap, low, float(ranked[-1]) - low + more[n])

    @property
    def fit(self) -> Tensor:
        """The gaps are at least Δ, the rewards in their range."""
        return spaced(self.r, self.gap) & (self.low <= self.r).all() & (self.r <= self.low + self.spread).all()

    def places(self, t: int) -> Tensor:
        """The ranking of the first t responses."""
        return self.r[:t].argsort(descending=True)

    @property
    def largest(self) -> float:
        return float(self.r.abs().max())


def spaced(r: Tensor, gap: float) -> Tensor:
    """Whether any two rewards are at least that far apart."""
    return ((r[:, None] - r).abs() >= gap).logical_or(torch.eye(len(r), dtype=torch.bool)).all()


def ranks(r: Tensor, places: Tensor) -> Tensor:
    """Whether the rewards fall from place to place."""
    return (r[places].diff() < 0).all()


def flags(places: Tensor, k: int) -> Tensor:
    """1 at the responses in the first k places."""
    return (places.argsort() < k).double()


def share(q: float | Tensor) -> float | Tensor:
    """q/(1 + q)."""
    return q / (1 + q)


def fits(n: int, g: float, rewards: Rewards, field_mask: float = 0.0) -> bool:
    """(5/2)(N−1) max(c, c′) e^{−g} ≤ 1."""
    _, c = mask_temperatures(g, rewards.gap, rewards.spread)
    return bool(2.5 * (n - 1) * max(c, field_mask) * exp(-g) <= 1)


def least_margin(n: int, rewards: Rewards, field_mask: float = 0.0) -> float:
    """The least g > 0 that fits, from above."""
    low, high = 0.0, 64.0
    while high - low > 1e-13 * high and high > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(n, middle, rewards, field_mask) else (middle, high)
    return high


@cache
def slices(stream: Stream, sizes: tuple[tuple[object, int], ...]) -> dict[str, slice]:
    """Where the rows of a token are."""
    return stream.at(dict(sizes)).slices


def tokens(
    stream: Stream, values: Values, n: int, draw: Draw | None = None, **rows: Tensor | float
) -> tuple[Tensor, dict[str, slice]]:
    """n tokens with the given rows, and where their rows are; other rows are 0, or random if there is a draw."""
    places = slices(stream, tuple([(size, value) for size, value in values.items() if size in (d_x, d_y, N)]))
    width = max(place.stop for place in places.values())
    X = draw.normal(n, width) if draw else torch.zeros(n, width, dtype=torch.float64)
    for name, value in rows.items():
        X[:, places[name]] = torch.as_tensor(value, dtype=torch.float64)
    return X, places


BUILT: dict[object, Transformer | Attention] = {}


def key(values: Values) -> tuple[object, ...]:
    """The numbers, to look them up by: instances come back, in the broken twin and in others."""
    numbers = [value.tolist() if isinstance(value, Tensor) else value for value in values.values()]
    return tuple(zip(values, map(str, numbers), strict=True))


def attention(head: Head, stream: Stream, values: Values) -> Attention:
    """The head as it runs."""
    if (name := (head, key(values))) not in BUILT:
        BUILT[name] = Attention(head, stream, values, torch.float64).requires_grad_(False)
    return BUILT[name]


def transformer(blocks: tuple[Block, ...], stream: Stream, values: Values) -> Transformer:
    """The blocks as they run."""
    if (name := (blocks, key(values))) not in BUILT:
        BUILT[name] = Transformer(blocks, stream, values)
    return BUILT[name]


def logits(head: Attention, X: Tensor) -> Tensor:
    """⟨W_K e_j, W_Q e_i⟩ for tokens i (rows) and j (columns)."""
    return (X @ head.query.T) @ (X @ head.key.T).mT


def visible(draw: Draw, n: int) -> Tensor:
    """A random mask under which every token sees some; for every third draw a causal one."""
    if draw.seed % 3 == 0:
        return torch.ones(n, n, dtype=torch.bool).tril()
    sees = draw.uniform(0, 1, n, n) < 0.5
    sees[torch.arange(n), draw.permutation(n)] = True
    return sees
