"""Twins of ``Depth.v``, chapter 13: three attention layers of one head each make the step for every N."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import exp, log

import torch
from torch import Tensor

from icalign.constructions import parallel
from icalign.constructions.parallel import C, high, low
from icalign.symbols import Delta, N, W, d_x, d_y, eta

from . import Draw, Outcome, at_most, equal, given, rounding, twin
from ._drawn import Query, Rewards, attention, logits, ranks, share, size, spaced, tokens, transformer


@dataclass(frozen=True)
class Case:
    """A query, rewards ¾Δ apart or more, and what the class says of its scores: a spread R_Z, and distances D."""

    query: Query
    rewards: Rewards
    places: Tensor
    gap: float
    eta: float
    score_spread: float
    D: float

    @classmethod
    def drawn(cls, draw: Draw, least: int = 1, length: float = 1.0) -> Case:
        """Random; every other turn two points, the better responses at the one with the larger score, and no room."""
        n, turn = size(draw, least)
        rewards = Rewards.drawn(draw, n, tight=turn % 2 == 1)
        places = rewards.places(n)
        if turn % 2 and n > 1:
            query = Query.of_two_points(draw, n, places[: draw.integer(1, n - 1)])
            room = 1.0
        else:
            query, room = Query.drawn(draw, n, length), draw.number(1, 1.5)
        spread = float(query.reduced.max() - query.reduced.min()) * room
        gap = rewards.gap * 4 / 3 * (1 - 1e-15)  # so that ¾Δ is at most the least gap after rounding
        return cls(query, rewards, places, gap, draw.number(0, 1), spread, float(query.distances.max()) * room)

    def given(self) -> None:
        """The hypotheses on an input; scores may miss their range by the rounding of the spread."""
        r, z = self.rewards, self.query.reduced
        given(self.gap > 0, spaced(r.r, 0.75 * self.gap), r.low <= r.r, r.r <= r.low + r.spread)
        given(ranks(r.r, self.places), z - z.min() <= self.score_spread, self.query.distances <= self.D)

    def run(self, mask: float) -> tuple[list[Tensor], dict[str, slice]]:
        """The tokens at the start and after each of the four blocks."""
        query, r, n = self.query, self.rewards, self.query.n
        values = {d_x: query.W.shape[1], d_y: len(query.W), N: n, W: query.W, eta: self.eta, Delta: self.gap}
        values |= {low: r.low, high: r.low + r.spread, C: mask}
        model = transformer(parallel.blocks, parallel.stream, values)
        squares = query.y.square().sum(-1, keepdim=True)
        rows = {"x": query.x, "y": query.y, "sq": squares, "r": r.r[:, None], "one": 1, "p": torch.eye(n)}
        found = [tokens(parallel.stream, values, n, **rows)[0]]
        for block in model.blocks:
            found.append(block(found[-1]))
        return found, model.rows

    def crowds(self, mask: float, shift: int = 0) -> Tensor:
        """p_k = k/(N−k)·e^{−(C−R_Z)} for k = 0, …, N−1."""
        k = (torch.arange(self.query.n).double() - shift).clamp(min=0)
        return k / (self.query.n - k) * exp(self.score_spread - mask)

    def slip(self) -> float:
        """Roundings of the board, a sum of n products of slots, and of the comparison by 2/Δ, relative to 1."""
        return (self.query.n + 12) * (2 * self.rewards.largest + self.rewards.spread) * 2 / self.gap + 4

    def effort(self, mask: float) -> float:
        """Roundings of a mean behind the mask, and of the mean that it is compared with."""
        return 2 * self.query.effort + 2 * abs(mask) * (self.slip() + self.query.n + 3)


@twin
def constant_depth_broadcast(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """After two blocks board_j = r_j − low and m_j = 1 if r_i < r_j, else 0, at every token. Broken: for gaps of ½Δ."""
    case = replace(Case.drawn(draw), eta=draw.number(-1, 1))
    case.given()
    r = case.rewards
    if broken:
        case = replace(case, gap=1.5 * case.gap)
        given(spaced(r.r, 0.5 * case.gap))
    X, rows = case.run(mask=draw.number(-5, 5))
    n = case.query.n
    allowed = rounding(n + 12, 2 * r.largest + r.spread)
    yield equal(X[2][:, rows["board"]], (r.r - r.low).expand(n, n), allowed)
    yield equal(X[2][:, rows["m"]], (r.r[:, None] < r.r).double(), rounding(case.slip(), 1))


@twin
def constant_depth_own_rank(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The token in place k finds μ_k but for D·p_k/(1+p_k), p_k = k/(N−k)·e^{−(C−R_Z)}, k from 0; attained by two
    points. Broken: k from 1."""
    case = replace(Case.drawn(draw, length=draw.number(0, 1.5)), eta=draw.number(-1, 1))
    case.given()
    mask = case.score_spread + draw.number(-3, 6)
    X, rows = case.run(mask)
    off = (X[4][case.places][:, rows["mean"]] - case.query.tail_means(case.places)).norm(dim=-1)
    limit = case.D * share(case.crowds(mask, shift=int(broken)))
    yield at_most(off, limit, rounding(case.effort(mask), 2 * case.query.reach))


@twin
def constant_depth(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """‖u − ΔW x‖ ≤ 2ηD Σ_k p_k/(1+p_k) at every token; attained by two responses. Broken: half of it."""
    case = Case.drawn(draw)
    case.given()
    mask = case.score_spread + draw.number(-3, 6)
    X, rows = case.run(mask)
    step = case.query.step(case.places, case.eta)
    off = (X[4][:, rows["u"]] - step).norm(dim=-1)
    limit = (1 if broken else 2) * case.eta * case.D * share(case.crowds(mask)).sum()
    given(case.eta >= 0, (case.query.x.norm() - 1).abs() <= rounding(4, 1))
    yield at_most(off, limit, rounding(2 * case.effort(mask), case.query.longest(case.eta)))


@twin
def constant_depth_mask(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """C = R_Z + max(0, log(2ηDS/tol)), S = Σ_k k/(N−k), keeps ‖u − ΔW x‖ ≤ tol. Broken: ≤ tol/2, which two responses
    exceed."""
    case = Case.drawn(draw)
    case.given()
    n = case.query.n
    size = 2 * case.eta * case.D * sum([k / (n - k) for k in range(n)])
    tol = (size or 1.0) * 10 ** draw.number(-6, 0.5)
    mask = case.score_spread + max(0.0, log(size / tol) if size else 0.0)
    X, rows = case.run(mask)
    off = (X[4][:, rows["u"]] - case.query.step(case.places, case.eta)).norm(dim=-1)
    given(case.eta >= 0, tol > 0, (case.query.x.norm() - 1).abs() <= rounding(4, 1))
    allowed = rounding(2 * case.effort(mask), case.query.longest(case.eta))
    yield at_most(off, (0.5 if broken else 1) * tol, allowed)


@twin
def constant_depth_norm(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """z = u − ΔW x: ‖z‖ is the largest ⟨v, z⟩ over unit v, and ≤ 2η Σ_k ‖mean_τ(k) − μ_k‖, with = for two responses.
    Broken: half of it."""
    case = Case.drawn(draw)
    case.given()
    mask = draw.number(-3, 3)
    X, rows = case.run(mask)
    given(case.eta >= 0, (case.query.x.norm() - 1).abs() <= rounding(4, 1))
    z = X[4][:, rows["u"]] - case.query.step(case.places, case.eta)
    allowed = rounding(2 * case.effort(mask), case.query.longest(case.eta))
    off = (X[4][case.places][:, rows["mean"]] - case.query.tail_means(case.places)).norm(dim=-1)
    yield at_most(z.norm(dim=-1), (1 if broken else 2) * case.eta * off.sum(), allowed)
    along = z[0] / z[0].norm() if z[0].any() else draw.unit(z.shape[1])
    for v in (along, draw.unit(z.shape[1])):
        yield at_most(v @ z[0], z[0].norm(), allowed)
    yield equal(along @ z[0], z[0].norm(), allowed)


@twin
def constant_depth_ranks(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """With the responses in another order σ the head that weighs has the same logits, token by token, the other two
    have 0; the mask of the token in place k marks the k before it; a sum over tokens is one over places.
    Broken: the mask marks k + 1."""
    case = replace(Case.drawn(draw, length=draw.number(0, 1.5)), eta=draw.number(-1, 1))
    case.given()
    n, sigma, mask = case.query.n, draw.permutation(case.query.n), draw.number(-5, 5)
    other = replace(case, query=replace(case.query, y=case.query.y[sigma]))
    other = replace(other, rewards=replace(case.rewards, r=case.rewards.r[sigma]), places=sigma.argsort()[case.places])
    (X, rows), (Y, _) = case.run(mask), other.run(mask)
    values = {d_x: case.query.W.shape[1], d_y: len(case.query.W), N: n, W: case.query.W, eta: case.eta}
    values |= {Delta: case.gap, low: case.rewards.low, high: case.rewards.low + case.rewards.spread, C: mask}
    heads = [attention(block.heads[0], parallel.stream, values) for block in parallel.blocks if block.heads]
    uniform, weighing, total = [(logits(head, X[2]), logits(head, Y[2])) for head in heads]
    allowed = rounding(case.effort(mask), case.query.reach**2 + abs(mask) + 1)
    yield equal(weighing[1], weighing[0][sigma][:, sigma], allowed)
    for logit in (*uniform, *total):
        yield equal(logit, 0)
    for k in range(n):
        expected = (torch.arange(n) < k + broken).double()
        yield equal(X[2][case.places[k], rows["m"]][case.places], expected, rounding(case.slip(), 1))
    F = draw.normal(n)
    yield equal(F.sum(), F[case.places].sum(), rounding(2 * n, F.abs().sum()))
