"""Chapter 7, Multiple queries I: how much attention the winner of a query has, at finite temperatures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from icalign import bounds

from . import Draw, Outcome, at_most, below, equal, given, rounding, twin
from .query_selection import Queries
from .theorem33 import farthest, is_unit


@dataclass(frozen=True)
class Input:
    """Queries, responses and rewards, of which query a is looked at; Δ, ρ and the range of the rewards."""

    x: Tensor
    y: Tensor
    r: Tensor
    a: int
    best: int
    gap: float
    overlap: float
    low: float
    spread: float

    @property
    def others(self) -> Tensor:
        """Which queries are not a."""
        return torch.arange(len(self.x)) != self.a

    @property
    def losers(self) -> Tensor:
        """Which responses are not the best."""
        return torch.arange(self.r.shape[1]) != self.best

    @property
    def distances(self) -> tuple[float, float]:
        """D within query a, and D₀ from anywhere to it."""
        return farthest(self.y[self.a], self.y[self.a]), farthest(self.y.flatten(0, 1), self.y[self.a])

    def at(self, gamma_1: float, gamma_2: float, by_id: bool = False) -> Queries:
        """The head at these temperatures."""
        return Queries(self.x, self.y, self.r, gamma_1, gamma_2, by_id)

    def own(self, gamma_2: float) -> float:
        """(N−1)e^{−γ₂Δ}."""
        return (self.r.shape[1] - 1) * math.exp(-gamma_2 * self.gap)

    def leak(self, gamma_1: float, gamma_2: float) -> float:
        """(M−1)N e^{−(γ₁(1−ρ)−γ₂R)}."""
        exponent = gamma_1 * (1 - self.overlap) - gamma_2 * self.spread
        return (len(self.x) - 1) * self.r.shape[1] * math.exp(-exponent)

    def apart(self) -> tuple[Tensor, ...]:
        """‖x^a‖ = 1 and ⟨x^a, x^b⟩ ≤ ρ, up to its rounding."""
        inner = self.x[self.others] @ self.x[self.a]
        return is_unit(self.x[self.a]), inner <= self.overlap + 2.0**-50

    def ranked(self) -> tuple[Tensor, Tensor]:
        """r_j^a + Δ ≤ r_best^a, and all rewards in the range; they are dyadic, so this is exact."""
        inside = (self.low <= self.r) & (self.r <= self.low + self.spread)
        return self.r[self.a][self.losers] + self.gap <= self.r[self.a, self.best], inside


def some_input(draw: Draw, kind: int, least_queries: int = 1, least_responses: int = 1) -> Input:
    """Of one of three kinds: anything; strangers as heavy as they can be; losers as heavy as they can be.

    Strangers are so where all have the largest reward, the winner the least that its losers leave room for, and ρ is
    their inner product with x^a; losers where all are Δ behind. Either are then at one point, all others at another.
    """
    queries, responses = draw.integer(max(least_queries, 2 if kind == 1 else 1), 4), draw.integer(least_responses, 5)
    a, low, spread = draw.integer(0, queries - 1), draw.integer(-8, 8) / 4, draw.integer(1, 8) / 4
    x, y = draw.normal(queries, draw.integer(1, 4)), draw.normal(queries, responses, draw.integer(1, 3))
    x = x / x.norm(dim=-1, keepdim=True) * draw.uniform(0.3, 0.95, queries, 1)  # only x^a has to be a unit vector
    x[a] /= x[a].norm()
    r = low + draw.uniform(0, spread, queries, responses).mul(64).ceil().div(64)
    others, best = torch.arange(queries) != a, int(r[a].argmax())
    losers = torch.arange(responses) != best
    inner = x[others] @ x[a]
    overlap = float(inner.max()) if queries > 1 else draw.number(-1, 0.9)
    if kind == 1:
        x[others] += (overlap - inner)[:, None] * x[a]
        r[others], r[a, losers], r[a, best] = low + spread, low, low + (spread / 2 if responses > 1 else 0)
        y[others], y[a] = y[0, 0].clone(), y[-1, -1] + 1
    if kind == 2:
        r[a, losers], r[a, best] = low, low + spread * draw.integer(1, 4) / 4
        y[a, losers], y[a, best] = y[0, 0].clone(), y[-1, -1] + 1
    gap = float(r[a, best] - r[a, losers].max()) if responses > 1 else draw.number(0.1, 1)
    return Input(x, y, r, a, best, gap, overlap, low, spread)


def some_temperatures(draw: Draw, it: Input, kind: int) -> tuple[float, float]:
    """Any, or those at which the bound is small and only what is as heavy as can be counts: (γ₁, γ₂)."""
    if kind == 0:
        return draw.number(0, 20), draw.number(0, 20)
    gamma_2 = draw.number(3, 8) / it.gap if kind == 2 else draw.number(0, 2)
    margin = draw.number(3, 8) if kind == 1 else 40
    return (gamma_2 * it.spread + margin) / (1 - it.overlap), gamma_2


def with_one_response(it: Input) -> Input:
    """The same with the best response of query a and the first of the others."""
    keep = torch.zeros(len(it.x), dtype=torch.long).index_fill(0, torch.tensor(it.a), it.best)
    queries = torch.arange(len(it.x))
    return replace(it, y=it.y[queries, keep][:, None], r=it.r[queries, keep][:, None], best=0)


def miss(it: Input, head: Queries, s: int) -> Tensor:
    """1 − A at the token s of query a, as the sum of all others."""
    attention = head.attention[it.a, s].clone()
    attention[it.a, it.best] = 0
    return attention.sum()


def bound_cases(draw: Draw, by_id: bool = False) -> Iterator[tuple[Input, Queries, float, float]]:
    """An instance, the head on it, and the two terms of the bound; with identifiers ρ = 0, whatever the queries."""
    kind = draw.seed % 3
    it = some_input(draw, kind)
    if kind == 1:  # no losers, so the winner can have the least reward
        it = with_one_response(it)
        it.r[it.a] = it.low
    if by_id:
        same = draw.integer(0, 3) * it.x[:1].expand_as(it.x)
        it = replace(it, x=it.x if draw.seed % 2 else same, overlap=0.0)
    gamma_1, gamma_2 = some_temperatures(draw, it, kind)
    given(gamma_1 >= 0, gamma_2 >= 0, *it.ranked(), *(() if by_id else it.apart()))
    yield it, it.at(gamma_1, gamma_2, by_id), it.own(gamma_2), it.leak(gamma_1, gamma_2)


def selected_error(it: Input, head: Queries, s: int) -> Tensor:
    """‖selected − y_best^a‖ at the token s of query a."""
    return (head.selected[it.a, s] - it.y[it.a, it.best]).norm()


def outcome_rounding(it: Input, head: Queries) -> float:
    """A mean of responses and the subtraction; exponents of the bound lose no more than logits."""
    return rounding(head.operations + 1, it.y.norm(dim=-1).max())


@twin
def mq_bound(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """1 − A ≤ (N−1)e^{−γ₂Δ} + (M−1)N e^{−(γ₁(1−ρ)−γ₂R)}. Broken: half of it.

    For a small bound nearly attained, either by losers or by strangers.
    """
    for it, head, own, leak in bound_cases(draw):
        s, bound = draw.integer(0, it.r.shape[1] - 1), own + leak
        allowed = rounding(2 * head.operations, bound)  # of weights that are all positive, so relative
        yield at_most(miss(it, head, s), (0.5 if broken else 1) * bound, allowed)


@twin
def mq_bound_not_enough(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """With p = (N−1)e^{−γ₂R} > 0, for every γ₁: the losers of query a have p times what its best has, at least, and
    1 − A ≥ p/(1+p). Broken: N in place of N−1. Attained by a winner R ahead of all losers, the second as γ₁ grows."""
    kind = draw.seed % 3
    it = some_input(draw, kind, least_responses=2)
    if kind:
        it.r[it.a] = it.low + it.spread * ~it.losers
    gamma_2, s, responses = draw.number(0, 4), draw.integer(0, it.r.shape[1] - 1), it.r.shape[1]
    given(responses >= 2, gamma_2 >= 0, it.ranked()[1])
    p = (responses if broken else responses - 1) * math.exp(-gamma_2 * it.spread)
    yield below(0.0, bounds.share(p))
    for gamma_1 in (-5.0, 0.0, draw.number(0, 10), 200.0):
        head = it.at(gamma_1, gamma_2)
        A, allowed = head.attention[it.a, s, it.a], rounding(2 * head.operations, 1.0)
        yield at_most(p * A[it.best], A[it.losers].sum(), allowed)
        yield at_most(bounds.share(p), miss(it, head, s), allowed)


@twin
def mq_bound_losers(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The losers of query a have p/(1 + p + leak) together, at least; so γ₁ alone will not do. Broken: p/(1 + p).

    Attained at γ₂ = 0 if ρ is what all strangers have in common with x^a.
    """
    it = some_input(draw, 1, least_responses=2)
    s, responses = draw.integer(0, it.r.shape[1] - 1), it.r.shape[1]
    for gamma_2 in (0.0, draw.number(0, 3)):
        p = (responses - 1) * math.exp(-gamma_2 * it.spread)
        for gamma_1 in (0.0, draw.number(0, 10), 200.0):
            given(responses >= 2, gamma_1 >= 0, gamma_2 >= 0, *it.apart(), it.ranked()[1])
            head, leak = it.at(gamma_1, gamma_2), 0.0 if broken else it.leak(gamma_1, gamma_2)
            least = p / (1 + p + leak)
            losers = head.attention[it.a, s, it.a][it.losers].sum()
            yield at_most(least, losers, rounding(2 * head.operations, least))


def tempered(draw: Draw, kind: int) -> tuple[Input, float, float, float]:
    """An instance of the class with M, N ≥ 2, an ε > 0, and the temperatures of the claim, which may be negative."""
    it, most = some_input(draw, kind, least_queries=2, least_responses=2), 30 if draw.seed % 4 == 3 else 1.99
    tolerance = draw.number(0.001, most)
    given(len(it.x) >= 2, it.r.shape[1] >= 2, it.gap > 0, it.overlap < 1, tolerance > 0)
    given(*it.apart(), *it.ranked())
    sizes = it.gap, it.spread, it.overlap, it.r.shape[1], len(it.x)
    gamma_1, gamma_2 = bounds.query_temperatures(tolerance, *sizes)
    return it, tolerance, float(gamma_1), float(gamma_2)


@twin
def mq_bound_temperatures(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """At γ₂ = log(2(N−1)/ε)/Δ, γ₁ = (γ₂R + log(2(M−1)N/ε))/(1−ρ): 1 − A ≤ ε. Broken: γ₁ not divided by 1 − ρ.

    Not sharp, by a factor near 2: losers and strangers are not as heavy as can be at once.
    """
    it, tolerance, gamma_1, gamma_2 = tempered(draw, draw.seed % 3)
    head = it.at(gamma_1 * ((1 - it.overlap) if broken else 1), gamma_2)
    s = draw.integer(0, it.r.shape[1] - 1)
    yield at_most(miss(it, head, s), tolerance, rounding(2 * head.operations, tolerance))


@twin
def mq_outcome(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """‖selected − y_best^a‖ ≤ D(N−1)e^{−γ₂Δ} + D₀(M−1)N e^{−(γ₁(1−ρ)−γ₂R)}. Broken: D in place of D₀.

    For a small bound nearly attained, either by losers or by strangers.
    """
    for it, head, own, leak in bound_cases(draw):
        near, far = it.distances
        promised = near * own + (near if broken else far) * leak
        error = selected_error(it, head, draw.integer(0, it.r.shape[1] - 1))
        yield at_most(error, promised, outcome_rounding(it, head) + rounding(head.operations, promised))


@twin
def mq_outcome_norm(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """‖z‖ is the largest ⟨v, z⟩ over unit v: random ones, and z/‖z‖ or, for z = 0, any. Broken: half of it."""
    d = draw.integer(1, 4)
    z = draw.normal(d) * (0 if draw.seed % 4 == 0 else draw.number(0, 3))
    norm, allowed = z.norm(), rounding(2 * d + 8, z.norm())
    for _ in range(5):
        yield at_most(draw.unit(d) @ z, norm, allowed)
    v = z / norm if norm > 0 else draw.unit(d)
    given(is_unit(v))
    yield equal(v @ z, (0.5 if broken else 1) * norm, allowed)


@twin
def mq_outcome_limit(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """At the temperatures for ε, ‖selected − y_best^a‖ ≤ (D + D₀)ε/2. Broken: Dε/2."""
    it, tolerance, gamma_1, gamma_2 = tempered(draw, draw.seed % 3)
    (near, far), head = it.distances, it.at(gamma_1, gamma_2)
    promised = (near + (0 if broken else far)) * tolerance / 2
    error = selected_error(it, head, draw.integer(0, it.r.shape[1] - 1))
    yield at_most(error, promised, outcome_rounding(it, head) + rounding(head.operations, promised))


@twin
def mq_duplicates_growth(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """0 < ε < 1/2, ρ the largest product of two queries: from [γ₂R + log(2(M−1)N/ε)]/(1−ρ) on, γ₂ = log(2(N−1)/ε)/Δ,
    every winner keeps 1 − ε; where every one does, at any γ₁ and γ₂, log(1/ε − 1)/(1−ρ) ≤ γ₁. Broken: log(2/ε).

    The second is attained by two queries of one response each; there ε is what is missing, and a billionth more.
    """
    queries, responses = draw.integer(2, 4), draw.integer(2, 5)
    gap, low, epsilon = draw.integer(1, 4) / 4, draw.integer(-8, 8) / 4, draw.number(0.001, 0.499)
    x = torch.stack([draw.unit(draw.seed % 3 + 2) for _ in range(1)])
    x = torch.cat([x, torch.nn.functional.normalize(x + draw.normal(queries - 1, x.shape[1]), dim=-1)])
    r = low + gap * torch.stack([draw.permutation(responses) for _ in range(queries)]).double()
    spread, y, best = gap * (responses - 1), draw.normal(queries, responses, 1), r.argmax(-1)
    inner = (x @ x.T - 2 * torch.eye(queries)).max()
    rho, every = float(inner), torch.arange(queries)
    given(is_unit(x), rho < 1, r >= low, r <= low + spread)

    def missing(gamma_1: float, gamma_2: float, r: Tensor, y: Tensor, best: Tensor) -> Tensor:
        attention = Queries(x, y, r, gamma_1, gamma_2).attention.clone()
        attention[every, :, every, best] = 0
        return attention.flatten(2).sum(-1).max()

    gamma_2 = math.log(2 * (responses - 1) / epsilon) / gap
    enough = gamma_2 * spread + math.log(2 * (queries - 1) * responses / epsilon)
    for gamma_1 in (enough / (1 - rho), draw.number(1, 3) * enough / (1 - rho)):
        operations = Queries(x, y, r, gamma_1, gamma_2).operations
        yield at_most(missing(gamma_1, gamma_2, r, y, best), epsilon, rounding(2 * operations, epsilon))
    x, every = x[divmod(int((x @ x.T - 2 * torch.eye(queries)).argmax()), queries), :], torch.arange(2)
    r, y, gamma_2 = r[:2, :1] * draw.integer(0, 1), y[:2, :1], draw.number(-2, 2)
    best, gamma_1 = torch.zeros(2, dtype=torch.long), draw.number(1, 9) / (1 - rho) + abs(gamma_2) * spread
    epsilon = float(missing(gamma_1, gamma_2, r, y, best)) * (1 + 1e-9)
    if epsilon < 0.5:
        least = math.log(1 / epsilon - 1)
        yield below(0.0, least)
        floor = (math.log(2 / epsilon) if broken else least) / (1 - rho)
        operations = Queries(x, y, r, gamma_1, gamma_2).operations
        yield at_most(floor, gamma_1, rounding(2 * operations, 1 / (1 - rho)))
