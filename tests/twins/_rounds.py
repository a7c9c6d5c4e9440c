"""What the twins of chapters 11 and 12 run: the block with a record, as printed or with a start token."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp

import torch
from torch import Tensor

from icalign.bounds import mask_temperatures, stop_logit
from icalign.constructions import causal
from icalign.constructions.base import with_start
from icalign.symbols import N, W, d_x, d_y, eta
from icalign.transformer import Transformer

from . import Draw, given, rounding
from ._drawn import Query, Rewards, fits, least_margin, ranks, size, tokens, transformer


@dataclass(frozen=True)
class Rounds:
    """An input, and what its class says: margins g and h, distances D; Z in [Z_lo, Z_lo + R_Z]."""

    query: Query
    rewards: Rewards
    eta: float
    g: float
    h: float
    score_low: float
    score_spread: float
    D: float

    @classmethod
    def drawn(cls, draw: Draw, least: int = 1, most: int = 6, edge: bool | None = None) -> Rounds:
        """Random; on the edge, every other turn, N times one response, rewards Δ apart, and no room in any bound."""
        n, turn = size(draw, least, most)
        edge = turn % 2 == 1 if edge is None else edge
        rewards, query = Rewards.drawn(draw, n, tight=edge), Query.drawn(draw, n)
        room, colder = draw.number(0, 1), draw.number(0, 14)
        h = 1 + colder
        if edge:
            query, room, h = replace(query, y=query.y[:1].repeat(n, 1)), 0.0, draw.number(4, 6)
        z = query.reduced
        low_Z = float(z.min()) - room
        spread_Z = float(z.max()) - low_Z + room
        D = (1 + room) * max(float(query.distances.max()), float(query.y.norm(dim=-1).max()))
        g = least_margin(n, rewards, spread_Z + 2 * h)
        g = max(g, h + 4) if edge else g + draw.integer(0, 1) * colder
        return cls(query, rewards, draw.number(0, 1), g, h, low_Z, spread_Z, D)

    @property
    def n(self) -> int:
        return self.query.n

    @property
    def field_mask(self) -> float:
        """C = R_Z + 2h."""
        return self.score_spread + 2 * self.h

    def far_from_zero(self, draw: Draw) -> Rounds:
        """The same with responses of any length, no further from each other than D."""
        away = replace(self.query, y=self.query.y + draw.number(0, 2) * draw.unit(self.query.y.shape[1]))
        z = away.reduced
        low, spread = float(z.min()), float(z.max() - z.min()) * (1 + 2.0**-40)
        D = max(float(away.distances.max()), 0.01)
        g = max(self.g, least_margin(self.n, self.rewards, spread + 2 * self.h))
        return replace(self, query=away, score_low=low, score_spread=spread, D=D, g=g)

    def given(self, sink: bool = True) -> None:
        """The hypotheses of the theorems of chapter 12, for every prefix; with a sink ‖y‖ ≤ D too."""
        query, r = self.query, self.rewards
        given(self.eta >= 0, self.g > 0, r.gap > 0, self.h >= 1, fits(self.n, self.g, r, self.field_mask))
        given((query.x.norm() - 1).abs() <= rounding(4, 1), r.fit, query.reduced >= self.score_low)
        given(query.reduced - self.score_low <= self.score_spread)
        given(query.distances <= self.D, not sink or query.y.norm(dim=-1) <= self.D)
        given(*[ranks(r.r[:t], r.places(t)) for t in range(1, self.n + 1)])

    def run(self, sink: bool, rounds: int) -> tuple[list[Tensor], Transformer]:
        """The tokens before the first round and after each; with the start token if there is a sink."""
        query, r = self.query, self.rewards
        gamma, c = mask_temperatures(self.g, r.gap, r.spread)
        values = {d_x: query.W.shape[1], d_y: len(query.W), N: self.n, W: query.W, eta: self.eta}
        values |= {causal.gamma_1: gamma, causal.c: c, causal.c_field: self.field_mask}
        values[causal.sigma] = stop_logit(gamma * r.low, gamma * (r.low + r.spread), c)
        values[causal.sigma_field] = stop_logit(self.score_low, self.score_low + self.score_spread, self.field_mask)
        model = transformer((causal.block if sink else causal.printed,) * rounds, causal.stream, values)
        squares = query.y.square().sum(-1, keepdim=True)
        rows = {"x": query.x, "y": query.y, "sq": squares, "r": r.r[:, None], "one": 1, "p": torch.eye(self.n)}
        X, places = tokens(causal.stream, values, self.n, **rows)
        found = [with_start(X, places, "one", "b") if sink else X]
        for block in model.blocks:
            found.append(block(found[-1]))
        return found, model

    def means(self, X: Tensor, model: Transformer) -> Tensor:
        """What the two heads find at every token, (2, tokens, d_y)."""
        return model.blocks[0].weights(X) @ X[:, model.rows["y"]]

    def bound(self, places: int) -> float:
        """(5/2)e^{−g} + (5/16)(N−2)C e^{−g} + (N−1)e^{1−h}, times 2η(N−1)D."""
        inner = 2.5 * exp(-self.g) + 5 / 16 * (places - 2) * self.field_mask * exp(-self.g)
        return 2 * self.eta * (places - 1) * self.D * (inner + (places - 1) * exp(1 - self.h))

    @property
    def effort(self) -> float:
        """Roundings of what a head finds, relative to its longest value.

        The logits are γr − cm and Z − Cm, m up to the number of rounds: sums of n + 2 and n + d_x + d_y + 4 products,
        with their size in exp. What the record is off by counts c or C times in the next round, for weights that are
        e^{−g} or less; as c(N−1)e^{−g} ≤ 1 that is no more than once a round.
        """
        gamma, c = mask_temperatures(self.g, self.rewards.gap, self.rewards.spread)
        selecting = (gamma * self.rewards.largest + self.n * c) * (self.n + 4)
        weighing = (self.query.reach**2 + self.n * abs(self.field_mask)) * (self.n + sum(self.query.W.shape) + 6)
        return 2 * self.n * (selecting + weighing + 2 * self.n + 6)
