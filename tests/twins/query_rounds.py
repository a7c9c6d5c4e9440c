"""Twins of ``QueryRounds.v``, chapter 8: filtered blocks among the tokens of M queries and a sink."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from icalign import bounds
from icalign.constructions import elimination, multi_query
from icalign.constructions.multi_query import coupling, gamma_beta, low, own_terms_beside_sink, stream
from icalign.constructions.multi_query import overlap as inner_product
from icalign.constructions.query_selection import gamma_1, gamma_2
from icalign.constructions.sink import epsilon, lambda_, scale
from icalign.symbols import Delta, M, N, W, d_x, d_y, eta

from . import Draw, Outcome, at_most, equal, given, holds, rounding, twin
from ._drawn import Query, Rewards, attention, flags, logits, transformer
from .query_gradient import Losses
from .theorem33 import is_unit


@dataclass(frozen=True)
class Several:
    """M queries with N responses each, margins g and h, and what their class says of them."""

    W: Tensor
    x: Tensor
    y: Tensor
    rewards: tuple[Rewards, ...]
    eta: float
    g: float
    h: float
    room: float

    @classmethod
    def drawn(cls, draw: Draw, least: int = 1) -> Several:
        """Random, with products of queries up to 0.9; with rewards Δ apart every other time."""
        queries, responses, dim_x = draw.integer(1, 3), draw.integer(least, 4), draw.integer(2, 4)
        rho, x = 1.0, draw.unit(dim_x)[None]
        while rho > 0.9:
            x = torch.stack([draw.unit(dim_x) for _ in range(queries)])
            rho = float((x @ x.T - 2 * torch.eye(queries)).max())
        first = Rewards.drawn(draw, responses, tight=draw.seed % 2 == 1)
        others = [first.r[draw.permutation(responses)] for _ in range(queries - 1)]
        rewards = (first, *[Rewards(r, first.gap, first.low, first.spread) for r in others])
        y = draw.normal(queries, responses, draw.integer(1, 3))
        W, g, h = draw.normal(y.shape[2], dim_x), math.log(9) + draw.number(0, 9), draw.number(0, 9)
        return cls(W, x, y, rewards, draw.number(0, 1), g + 1e-12, h, draw.number(0, 0.5))

    @property
    def r(self) -> Tensor:
        return torch.stack([some.r for some in self.rewards])

    @property
    def rho(self) -> float:
        """ρ, at least 0."""
        return max(0.0, float((self.x @ self.x.T - 2 * torch.eye(len(self.x))).max())) + 2.0**-50

    @cached_property
    def scores(self) -> tuple[float, float]:
        """(Z_lo, R_Z): of all responses at all queries; the interval does not end below 0."""
        z = 2 * torch.einsum("bd,ajd->baj", self.x @ self.W.T, self.y) - self.y.square().sum(-1)
        lowest = float(z.min()) - self.room
        return lowest, max(float(z.max()), 0.0) - lowest

    @property
    def diameter(self) -> float:
        """D₀: no two responses are further apart, and none is longer."""
        points = torch.cat([self.y.flatten(0, 1), torch.zeros(1, self.y.shape[2], dtype=torch.float64)])
        return float(torch.cdist(points, points).max()) * (1 + 1e-12)

    @property
    def reach(self) -> float:
        """U = 2η(N−1)D₀."""
        return 2 * self.eta * (self.y.shape[1] - 1) * self.diameter

    @property
    def own(self) -> float:
        """E_own."""
        return float(bounds.own_terms_error(self.reach, self.g, self.h, self.y.shape[1]))

    @property
    def temperatures(self) -> tuple[float, float, float, float]:
        """γ₁, γ₂, γ_β, C."""
        some, queries = self.rewards[0], len(self.x)
        gamma = self.g / some.gap
        if some.spread == 0:  # of one response: no block runs
            return 1.0, gamma, 1.0, self.scores[1] + self.h
        return bounds.own_terms_temperatures(self.g, self.h, some.gap, some.spread, self.scores[1], self.rho, queries)

    def given(self) -> None:
        """The hypotheses: the class, the ranges of η, g, h and ρ."""
        some, (lowest, spread) = self.rewards[0], self.scores
        given(self.eta >= 0, some.gap > 0, self.g >= math.log(9), self.h >= 0, 0 <= self.rho < 1, is_unit(self.x))
        given(*[each.fit for each in self.rewards], lowest + spread >= 0, self.y.norm(dim=-1) <= self.diameter)

    @property
    def values(self) -> dict[Any, Any]:
        """Numbers for the symbols of the blocks."""
        some, (dim_y, dim_x) = self.rewards[0], self.W.shape
        first, second, third, mask = self.temperatures
        found = {d_x: dim_x, d_y: dim_y, M: len(self.x), N: self.y.shape[1], W: self.W, eta: self.eta, low: some.low}
        found |= {gamma_1: first, gamma_2: second, gamma_beta: third, elimination.C: mask}
        found |= {Delta: some.gap, elimination.R: some.spread}
        return found | {elimination.B: bounds.elimination_mask(some.gap, some.spread) + 0.5}

    def run(self, rounds: int, values: dict[Any, Any] | None = None) -> tuple[Tensor, dict[str, slice]]:
        """The tokens after the rounds, the sink and then query by query, and where their rows are."""
        model = transformer((own_terms_beside_sink(inner_product),), stream, values or self.values)
        (queries, responses, _), rows = self.y.shape, model.rows
        X = torch.zeros(queries * responses + 1, max(place.stop for place in rows.values()), dtype=torch.float64)
        X[0, rows["b"]], X[1:, rows["one"]] = 1, 1
        X[1:, rows["x"]], X[1:, rows["y"]] = self.x.repeat_interleave(responses, 0), self.y.flatten(0, 1)
        X[1:, rows["sq"]], X[1:, rows["r"]] = X[1:, rows["y"]].square().sum(-1, keepdim=True), self.r.reshape(-1, 1)
        for _ in range(rounds):
            X = model(X)
        return X, rows

    def couple(self, X: Tensor, pairs: int, small: float, strong: float) -> Tensor:
        """The tokens after the layer of P pairs at ε and λ."""
        dim_y, dim_x = self.W.shape
        values = {d_x: dim_x, d_y: dim_y, M: len(self.x), N: self.y.shape[1]}
        values |= {epsilon: small, lambda_: strong, scale: math.exp(strong) / (2 * small)}
        found: Tensor = transformer((coupling(pairs),), stream, values)(X)
        return found

    def of_query(self, X: Tensor) -> Tensor:
        """The tokens of the responses, (M, N, width)."""
        return X[1:].unflatten(0, self.y.shape[:2])

    def query(self, a: int) -> Query:
        """Query a alone."""
        return Query(self.W, self.x[a], self.y[a])

    def rounding(self) -> float:
        """Of N − 1 rounds of two means: logits of d_x and d_x + d_y + 4 products, with their size in exp."""
        first, second, third, mask = self.temperatures
        some, n = self.rewards[0], self.y.shape[0] * self.y.shape[1] + 1
        points = float(self.W.norm() + self.y.norm(dim=-1).max())
        logit = first + second * (some.largest + 2 * (some.spread + some.gap)) + third + 2 * points**2 + mask
        operations = 4 * self.y.shape[1] * (2 * n + 8 + (sum(self.W.shape) + 6) * logit)
        return rounding(operations, 2 * self.eta * self.diameter * self.y.shape[1])

    @property
    def losses(self) -> Losses:
        """The losses of all queries under their rankings."""
        return Losses(self.W, self.x, self.y, self.r.argsort(-1, descending=True))


@twin
def mq_theorem_induction(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """After K ≤ N − 1 blocks, of each query the first K places have flags, and every token holds the first K terms of
    its own, up to 2ηKD₀[(5/2)e^{−g} + (N−1)e^{−h}]. Broken: the first K + 1 terms."""
    case = Several.drawn(draw)
    case.given()
    responses = case.y.shape[1]
    K = draw.integer(0, responses - 1)
    X, rows = case.run(K)
    found = case.of_query(X)
    limit = 2 * case.eta * K * case.diameter * (2.5 * math.exp(-case.g) + (responses - 1) * math.exp(-case.h))
    for a, rewards in enumerate(case.rewards):
        places = rewards.places(responses)
        yield equal(
            found[a, :, rows["flag"]][:, 0], flags(places, K), rounding(16 * K * responses, case.temperatures[1])
        )
        first = case.query(a).terms(places, case.eta)[: K + broken].sum(0)
        yield at_most((found[a, :, rows["u"]] - first).norm(dim=-1), limit, case.rounding())


@twin
def mq_theorem_own_terms(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """After N − 1 blocks every token holds the step of its query on its own loss, up to U[(5/2)e^{−g} + (N−1)e^{−h}],
    U = 2η(N−1)D₀. Broken: the step on the loss of all queries."""
    case = Several.drawn(draw)
    case.given()
    X, rows = case.run(case.y.shape[1] - 1)
    joint = -case.eta * case.x @ case.losses.gradient.T
    for a, rewards in enumerate(case.rewards):
        step = joint[a] if broken else case.query(a).step(rewards.places(case.y.shape[1]), case.eta)
        off = (case.of_query(X)[a, :, rows["u"]] - step).norm(dim=-1)
        yield at_most(off, case.own, case.rounding())


@twin
def mq_theorem_sink(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """After any number of blocks, at any temperatures, the sink has zeros in u and joint and a flag ≥ 0. Broken: the
    last response has."""
    case, place = Several.drawn(draw), -1 if broken else 0
    values, gap, rounds = case.values, draw.number(0.1, 1) * (-1) ** draw.seed, draw.integer(0, 5)
    values |= {gamma_1: draw.number(0, 3), gamma_2: draw.number(0, 3), gamma_beta: draw.number(0, 3)}
    values |= {elimination.C: draw.number(-3, 3), elimination.B: draw.number(-3, 3), elimination.R: draw.number(0, 3)}
    values |= {Delta: gap, low: draw.number(-3, 3)}
    given(gap != 0)
    X, rows = case.run(rounds, values)
    allowed = rounding(rounds * (2 * len(X) + 8), 2 * case.eta * case.diameter)
    yield equal(X[place, rows["u"]], torch.zeros(case.y.shape[2]), allowed)
    yield holds(X[place, rows["joint"]] == 0)
    yield holds(X[place, rows["flag"]] >= 0)


@twin
def mq_theorem_sink_key(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """With any flag ≥ 0 the sink's logits are at most γ₁ρ + γ₂low and γ_βρ + Z_lo + R_Z at the responses, and it counts
    as the reward low and the response 0; where it asks, the two heads cancel. Broken: as the reward 0."""
    case = Several.drawn(draw, least=2)
    case = replace(case, g=draw.number(0, 9))
    given(case.y.shape[1] >= 2, case.g >= 0, case.h >= 0, 0 <= case.rho < 1, is_unit(case.x))
    given(*[each.fit for each in case.rewards], sum(case.scores) >= 0, case.y.norm(dim=-1) <= case.diameter)
    X, rows = case.run(0)
    X[:, rows["u"]], X[:, rows["joint"]] = draw.normal(2, len(X), case.y.shape[2])
    X[:, rows["flag"]] = draw.uniform(-2, 2, len(X), 1)
    X[0, rows["flag"]] = draw.number(0, 5) * (draw.seed % 3)
    given(X[0, rows["flag"]] >= 0)
    first, second, third, mask = case.temperatures
    some, (lowest, spread), values = case.rewards[0], case.scores, case.values
    winner = attention(multi_query.winner_beside_sink(inner_product), stream, values)
    field = attention(multi_query.field(inner_product), stream, values)
    flag = float(X[0, rows["flag"]])
    largest = first + second * (some.largest + 2 * (some.spread + some.gap) * flag) + third + abs(lowest) + spread
    allowed = rounding(2 * sum(case.W.shape) + 16, largest + mask * flag)
    yield at_most(logits(winner, X)[1:, 0], first * case.rho + second * some.low, allowed)
    yield at_most(logits(field, X)[1:, 0], third * case.rho + lowest + spread, allowed)
    yield equal((X @ winner.value.T)[0, rows["top"]], 0.0 if broken else some.low, rounding(2, some.low))
    for head in (winner, field):
        yield holds((X @ head.value.T)[0, rows["u"]] == 0)
    all_tokens = torch.ones(len(X), len(X), dtype=torch.bool)
    written = (winner(X, all_tokens) + field(X, all_tokens))[0, rows["u"]]
    yield equal(written, torch.zeros(case.y.shape[2]), rounding(2 * len(X) + 8, 2 * case.eta * case.diameter))
