"""Twins of ``RecountLimit.v``, chapter 12: the rounds without a start token in the limits of cold attention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log

import torch
from torch import Tensor

from icalign.constructions import causal
from icalign.symbols import N, W, d_x, d_y, eta

from . import Draw, Outcome, at_most, equal, given, rounding, twin
from ._drawn import Query, Rewards, flags, ranks, size, tokens, transformer
from .short_prefix import hot


@dataclass(frozen=True)
class Hot:
    """K rounds of the printed block at γ₁ and C so large that u is within ε of the cyclic sum, and that sum."""

    query: Query
    rewards: Rewards
    eta: float
    factor: float
    rounds: int
    epsilon: float

    @classmethod
    def drawn(cls, draw: Draw, rounds: int | None = None) -> Hot:
        n, turn = size(draw, 1)
        rewards, query = Rewards.drawn(draw, n, tight=turn % 2 == 1), Query.drawn(draw, n)
        factor = float(rewards.r.max() - rewards.r.min()) + draw.integer(1, 8) / 16
        rounds = draw.integer(0, 2 * n) if rounds is None else n - 1
        return cls(query, rewards, draw.number(-1, 1), factor, rounds, 1e-3)

    def run(self, i: int) -> tuple[Tensor, Tensor, float]:
        """u and the record at position i, and their rounding; γ₁ and C are those of the proof for this prefix."""
        query, rewards, K = self.query.prefix(i + 1), self.rewards, self.rounds
        r = rewards.r[: i + 1]
        places, n, y = rewards.places(i + 1), self.query.n, self.query.y
        spread = float(r.max() - r.min())
        given(self.factor > spread, ranks(r, places))
        delta = min([self.factor - spread, *(-r[places].diff()).tolist()])
        Z, D = float(query.reduced.abs().max()), float(query.distances.max())
        share = self.epsilon / (3 * (K * 2 * abs(self.eta) * D + 1))
        C = 2 * Z + log(n / share + 1)
        gamma_1 = hot(n, K, self.factor, delta, min(self.epsilon, share / (1 + C)))
        values = {d_x: query.W.shape[1], d_y: len(query.W), N: n, W: query.W, eta: self.eta}
        values |= {causal.gamma_1: gamma_1, causal.c: gamma_1 * self.factor, causal.c_field: C}
        sq = y.square().sum(-1, keepdim=True)
        rows = {"x": query.x, "y": y, "sq": sq, "r": rewards.r[:, None], "one": 1, "p": torch.eye(n)}
        X, rows = tokens(causal.stream, values, n, **rows)
        X = transformer((causal.printed,) * K, causal.stream, values)(X) if K else X
        # errors of a logit count where a weight is neither 0 nor 1: in the mean of those left, and in ε of the others
        weighing = (2 * query.reach**2 + C * K) * (n + sum(query.W.shape) + 6)
        selecting = gamma_1 * (rewards.largest + self.factor * K) * (n + 4) * self.epsilon
        return X[i, rows["u"]], X[i, rows["m"]], 4 * (K + 1) * (weighing + selecting + 2 * n + 8)


@twin
def short_prefix_recount_counts(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Round k, from 0, takes the response in place k mod n, k < K: K // n times each, and those in the first K mod n
    places once more; Q times each in Qn rounds. Broken: in Q(n − 1) rounds."""
    n, _ = size(draw, 1)
    places, cycles = draw.permutation(n), draw.integer(1, 3)
    for rounds in (draw.integer(0, 3 * n), cycles * (n - broken)):
        taken = torch.zeros(n, dtype=torch.float64)
        for k in range(rounds):
            taken[places[k % n]] += 1
        yield equal(taken, rounds // n + flags(places, rounds % n))
    yield equal(taken, cycles)


@twin
def short_prefix_recount_limit(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """For γ₂ above the spread of the prefix, C and then γ₁ large, K rounds add up the terms round and round, and the
    record holds how often each has been taken, up to ε = 1/1000. Broken: beginning with the second."""
    case = Hot.drawn(draw)
    for i in range(case.query.n):
        u, m, operations = case.run(i)
        places, K = case.rewards.places(i + 1), case.rounds
        terms = case.query.prefix(i + 1).terms(places, case.eta)
        order = (torch.arange(K) + (1 if broken else 0)) % (i + 1)
        counts = torch.zeros(i + 1, dtype=torch.float64).index_add(0, places[order], torch.ones(K).double())
        yield at_most(
            (u - terms[order].sum(0)).norm(), case.epsilon, rounding(operations, case.query.longest(case.eta))
        )
        yield at_most((m[: i + 1] - counts).abs(), case.epsilon, rounding(operations, K))


@twin
def short_prefix_recount_too_many(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """As ``short_prefix_recount_limit`` with N − 1 = Q(i+1) + s rounds: u − ΔW x is near Q − 1 steps and the first s
    terms. Broken: near 0, as the paper says."""
    case = Hot.drawn(draw, rounds=1)
    given((case.query.x.norm() - 1).abs() <= rounding(4, 1))
    for i in range(case.query.n):
        u, _, operations = case.run(i)
        Q, s = divmod(case.query.n - 1, i + 1)
        seen, places = case.query.prefix(i + 1), case.rewards.places(i + 1)
        step = seen.step(places, case.eta)
        surplus = (Q - 1) * step + seen.terms(places, case.eta)[:s].sum(0)
        off = (u - step - (0 if broken else surplus)).norm()
        yield at_most(off, case.epsilon, rounding(operations, case.query.longest(case.eta)))
