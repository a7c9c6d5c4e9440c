"""Twins of ``QueryClass.v``, chapter 8: one list of blocks for a class of inputs and a tolerance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from icalign import bounds

from . import Draw, Outcome, at_most, given, twin
from ._drawn import Rewards
from .query_rounds import Several
from .theorem33 import is_unit


@dataclass(frozen=True)
class OfClass(Several):
    """An input, and what its class says: all that weights depend on, besides W, η, M, N and the margins."""

    omega: float
    radius: float
    overlap: float

    @property
    def rho(self) -> float:
        return max(0.0, self.overlap)

    @cached_property
    def scores(self) -> tuple[float, float]:
        return bounds.score_range(self.omega, self.radius)[0], bounds.score_spread(self.omega, self.radius)

    @property
    def diameter(self) -> float:
        return 2 * self.radius


def some_queries(draw: Draw, queries: int, dim: int, alike: bool) -> Tensor:
    """Units with products of at most 0.9; if they are to be alike, that is the product of the first with any other."""
    if alike:
        x, v = torch.linalg.qr(draw.normal(dim, 2)).Q.T
        return torch.stack([x, 0.9 * x + math.sqrt(0.19) * v, 0.9 * x - math.sqrt(0.19) * v][:queries])
    while True:
        x = torch.stack([draw.unit(dim) for _ in range(queries)])
        if float((x @ x.T - 2 * torch.eye(queries)).max()) <= 0.9:
            return x


def some_rewards(draw: Draw, n: int, kind: Rewards) -> Rewards:
    """Others of the same class."""
    room = int(32 * (kind.spread - (n - 1) * kind.gap))
    more = torch.tensor(sorted([draw.integer(0, room) / 32 for _ in range(n)]), dtype=torch.float64)
    return replace(kind, r=(kind.low + more + kind.gap * torch.arange(n))[draw.permutation(n)])


@twin
def mq_theorem_class(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """One block N − 1 times and one layer of P pairs make ΔW x^a to within any tolerance, for all inputs of a class:
    unit queries with products of at most ρ < 1, ‖y‖ ≤ radius, rewards Δ apart in [low, high], ‖Wv‖ ≤ ω‖v‖; η ≥ 0.

    The blocks are those of the proof. Nothing is allowed for rounding: the proof leaves a quarter of the tolerance.
    Broken: they are made for orthogonal queries.
    """
    queries, responses, pairs = draw.integer(1, 3), draw.integer(1, 4), draw.integer(1, 4)
    W, radius = draw.normal(draw.integer(1, 3), draw.integer(2, 4)), draw.number(0.5, 1.5)
    omega = float(torch.linalg.matrix_norm(W, 2)) * (1 + 1e-12) * draw.number(1, 1.5)
    eta, kind = draw.number(0.05, 1) * (draw.seed % 8 != 7), Rewards.drawn(draw, responses)
    inputs = []
    for alike in (False, True):
        y = draw.normal(queries, responses, len(W))
        y *= draw.uniform(0, radius, queries, responses, 1) / y.norm(dim=-1, keepdim=True)
        rewards = tuple([some_rewards(draw, responses, kind) for _ in y])
        inputs.append((some_queries(draw, queries, W.shape[1], alike), y, rewards))
    overlap = max([float((x @ x.T - 2 * torch.eye(queries)).max()) for x, _, _ in inputs])
    longest = queries * 2 * eta * (responses - 1) * 2 * radius
    tolerance = 10 ** draw.number(-4, 0.5) * (longest or 1.0)
    g, h, small, strong = math.log(9), 0.0, 1.0, 0.0
    if longest > 0:
        t = min(tolerance, longest)
        g, h = bounds.own_terms_margins(t / (3 * queries), longest / queries, responses)
        small = min(1.0, float(bounds.sink_spacing(5 * t / (36 * longest), pairs)))
        strong = float(bounds.sink_logit(small, t / (6 * longest), queries * responses, pairs))
    given(eta >= 0, overlap < 1, tolerance > 0, torch.linalg.matrix_norm(W, 2) <= omega)
    for x, y, rewards in inputs:
        case = OfClass(W, x, y, rewards, eta, float(g) + 1e-12, float(h), 0.0, omega, radius, overlap)
        given(is_unit(x), x @ x.T - 2 * torch.eye(queries) <= overlap, y.norm(dim=-1) <= radius)
        given(*[each.fit for each in rewards])
        step = -eta * x @ case.losses.gradient.T
        case = replace(case, overlap=0.0) if broken else case
        X, rows = case.run(responses - 1)
        joint = case.of_query(case.couple(X, pairs, small, strong))[..., rows["joint"]]
        yield at_most((joint - step[:, None]).norm(dim=-1), tolerance)
