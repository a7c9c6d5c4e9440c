"""Chapter 7, Multiple queries I: which response wins, from the logits.

Ties are drawn with queries along the axes and dyadic numbers: there every logit is exact, and < is < in floats as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from icalign import bounds
from icalign.constructions.query_selection import block, block_by_id, gamma_1, gamma_2, identified, stream
from icalign.symbols import M, d_x, d_y
from icalign.transformer import Attention, Transformer

from . import Draw, Outcome, below, equal, given, holds, rounding, twin
from .theorem33 import head_operations, is_unit


@dataclass(frozen=True)
class Queries:
    """M queries x with N responses y each, their rewards r, and the head that tells queries apart by x or by number."""

    x: Tensor
    y: Tensor
    r: Tensor
    gamma_1: float
    gamma_2: float
    by_id: bool = False

    @cached_property
    def model(self) -> Transformer:
        """The block."""
        values = {d_x: self.x.shape[1], d_y: self.y.shape[2], M: len(self.x)}
        values |= {gamma_1: self.gamma_1, gamma_2: self.gamma_2}
        return Transformer((block_by_id if self.by_id else block,), identified if self.by_id else stream, values)

    @cached_property
    def tokens(self) -> Tensor:
        """[x; y; r; 1; 0], query by query; with identifiers their query's in front of the 0."""
        rows = self.model.rows
        X = torch.zeros(*self.r.shape, rows["best"].stop, dtype=torch.float64)
        X[..., rows["x"]], X[..., rows["y"]], X[..., rows["one"]] = self.x[:, None], self.y, 1
        X[..., rows["r"]] = self.r[..., None]
        if self.by_id:
            X[..., rows["id"]] = torch.eye(len(self.x), dtype=torch.float64)[:, None]
        return X.flatten(0, 1)

    def by_query(self, of_tokens: Tensor) -> Tensor:
        """Asking query, asking response, answering query, answering response."""
        return of_tokens.reshape(*self.r.shape, *self.r.shape)

    @cached_property
    def logits(self) -> Tensor:
        """From the weights of the head: (M, N, M, N)."""
        return self.by_query(logits_of(self.model, self.tokens))

    @cached_property
    def attention(self) -> Tensor:
        """(M, N, M, N)."""
        return self.by_query(self.model.attention(self.tokens)[0][0])

    @cached_property
    def selected(self) -> Tensor:
        """What every token finds in its row best: (M, N, d_y)."""
        found: Tensor = self.model(self.tokens)[:, self.model.rows["best"]]
        return found.unflatten(0, self.r.shape)

    @property
    def largest(self) -> float:
        """The largest that the sizes of the products in a logit can add up to."""
        inner = 1.0 if self.by_id else float(self.x.square().sum(-1).max())
        return abs(self.gamma_1) * inner + abs(self.gamma_2) * float(self.r.abs().max())

    @property
    def operations(self) -> float:
        """Of the softmax mean at one token."""
        terms = (len(self.x) if self.by_id else self.x.shape[1]) + 1
        return head_operations(self.r.numel(), terms, self.largest)

    @property
    def logit_rounding(self) -> float:
        """Of a sum of d_x + 1 products, or M + 1, with rounded weights, on either side."""
        return rounding(2 * (max(self.x.shape[1], len(self.x)) + 4), self.largest)


def logits_of(model: Transformer, X: Tensor) -> Tensor:
    """⟨W_K e_j, W_Q e_i⟩ for the only head: asking token i, answering token j."""
    (head,) = model.blocks[0].heads
    assert isinstance(head, Attention)
    return (X @ head.query.T) @ (X @ head.key.T).T


def some_rewards(draw: Draw, queries: int, responses: int) -> Tensor:
    """Multiples of 1/8, no two of one query equal."""
    return torch.stack([draw.permutation(16)[:responses] / 8.0 for _ in range(queries)]).double() - 1


def along_axes(draw: Draw, queries: int, dim: int) -> Tensor:
    """Different unit vectors along the axes, at most two an axis."""
    axes = torch.cat([torch.eye(dim, dtype=torch.float64), -torch.eye(dim, dtype=torch.float64)])
    return axes[draw.permutation(2 * dim)[:queries]]


def some_queries(draw: Draw, x: Tensor, responses: int, ratio: float) -> Queries:
    """With γ₁/γ₂ the ratio and γ₂ a power of 2, so that nothing is rounded."""
    y, small = draw.normal(len(x), responses, draw.integer(1, 3)), 2.0 ** draw.integer(-2, 2)
    return Queries(x, y, some_rewards(draw, len(x), responses), ratio * small, small)


def winners_ahead(it: Queries, best: Tensor) -> bool:
    """At every token, the best response to its query has the only largest logit."""
    everyone = it.logits.flatten(2)
    winner = (torch.arange(len(it.x)) * it.r.shape[1] + best)[:, None, None].expand(-1, it.r.shape[1], 1)
    others = everyone.scatter(-1, winner, -math.inf)
    return bool((others < everyone.gather(-1, winner)).all())


def pairs(of_pairs: Tensor) -> Tensor:
    """The entries (a, b) with a ≠ b."""
    return of_pairs[~torch.eye(len(of_pairs), dtype=torch.bool)]


def overlaps(x: Tensor) -> Tensor:
    """⟨x^a, x^b⟩."""
    return (x[:, None] * x).sum(-1)


def lead(x: Tensor) -> Tensor:
    """‖x^a‖² − ⟨x^a, x^b⟩."""
    return x.square().sum(-1)[:, None] - overlaps(x)


def different(x: Tensor) -> Tensor:
    """Whether x^a ≠ x^b, for all a ≠ b."""
    return pairs((x[:, None] != x).any(-1))


@twin
def mq_logits(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Any tokens, one_i = 1: the logit of j at i is γ₁⟨x_i, x_j⟩ + γ₂r_j. Broken: at tokens without a one as well."""
    g, h, dim = draw.normal(), draw.normal(), draw.integer(1, 4)
    model = Transformer((block,), stream, {d_x: dim, d_y: draw.integer(1, 3), gamma_1: float(g), gamma_2: float(h)})
    X, rows = draw.normal(draw.integer(1, 6), model.rows["best"].stop), model.rows
    X[::2, rows["one"]] = 1
    asking = slice(None) if broken else slice(None, None, 2)
    given(broken or X[asking, rows["one"]] == 1)
    x, r = X[:, rows["x"]], X[:, rows["r"]][:, 0]
    allowed = rounding(2 * (dim + 4), g.abs() * x.square().sum(-1).max(), h.abs() * r.abs().max())
    yield equal(logits_of(model, X)[asking], (g * overlaps(x) + h * r)[asking], allowed)


@twin
def mq_logits_prompt(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The logit of (b, j) at (a, i) is γ₁⟨x^a, x^b⟩ + γ₂r_j^b. Broken: γ₂r_j^a."""
    queries, responses = draw.integer(1, 4), draw.integer(1, 5)
    x, y = draw.normal(queries, draw.integer(1, 4)), draw.normal(queries, responses, draw.integer(1, 3))
    it = Queries(x, y, draw.normal(queries, responses), draw.number(-3, 3), draw.number(-3, 3))
    inner, r = overlaps(x)[:, None, :, None], it.r[:, None, None] if broken else it.r
    yield equal(it.logits, it.gamma_1 * inner + it.gamma_2 * r, it.logit_rounding)


@twin
def mq_chain_first_link(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """γ₂ > 0: within query a the best response has the largest logit, strictly. Broken: γ₂ = 0 will do."""
    x = draw.normal(draw.integer(1, 3), draw.integer(1, 4))
    it = some_queries(draw, x, draw.integer(2, 5), ratio=draw.number(-2, 2))
    it = Queries(x, it.y, it.r, it.gamma_1, 0.0 if broken else it.gamma_2)
    a, best = draw.integer(0, len(x) - 1), it.r.argmax(-1)
    losers = torch.arange(it.r.shape[1]) != best[a]
    given(broken or it.gamma_2 > 0, it.r[a][losers] < it.r[a, best[a]])
    yield below(it.logits[a, :, a][:, losers], it.logits[a, :, a, best[a], None])


@twin
def mq_chain_pair(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """γ₂ > 0, ‖x^a‖ = 1, ⟨x^a, x^b⟩ < 1: the logit of (b, j) is below that of (a, i) iff
    (r_j^b − r_i^a)/(1 − ⟨x^a, x^b⟩) < γ₁/γ₂. Broken: iff ≤."""
    dim, exact = draw.integer(1, 4), draw.seed % 3 == 0
    own, other = along_axes(draw, 1, dim)[0] if exact else draw.unit(dim), draw.normal(dim).mul(4).round().div(4)
    apart = float(draw.integer(1, 2)) if exact else draw.number(0.1, 3)
    x = torch.stack([own, other + (1 - apart - own @ other) * own])
    it = some_queries(draw, x, draw.integer(1, 5), 0.0)
    i, j, s = [draw.integer(0, it.r.shape[1] - 1) for _ in range(3)]
    critical = float((it.r[1, j] - it.r[0, i]) / apart)
    for ratio in (critical - 0.01, *((critical,) if exact else ()), critical + 0.01):
        at = Queries(x, it.y, it.r, ratio * it.gamma_2, it.gamma_2)
        given(at.gamma_2 > 0, is_unit(own), x[0] @ x[1] < 1)
        ahead = at.logits[0, s, 1, j] < at.logits[0, s, 0, i]
        yield holds(ahead == (critical <= ratio if broken else critical < ratio))


def unit_queries(draw: Draw, least: int) -> tuple[Tensor, bool]:
    """Different unit queries, and whether they lie along axes."""
    dim, exact = draw.integer(1, 4), draw.seed % 3 == 0
    queries = min(draw.integer(least, 4), 2 * dim)
    if exact or dim == 1:
        return along_axes(draw, queries, dim), exact
    return torch.stack([draw.unit(dim) for _ in range(queries)]), exact


def around(critical: Tensor, exact: bool) -> list[float]:
    """Ratios γ₁/γ₂ below and above the largest critical one, and that itself where nothing is rounded."""
    largest = float(critical.max()) if len(critical) else 0.0
    return [largest - 0.0625, *([largest] if exact else []), largest + 0.0625]


@twin
def mq_chain(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """γ₂ > 0, different unit queries, N ≥ 2: the printed chain holds for all a, i, b, j iff
    (max r^b − min r^a)/(1 − ⟨x^a, x^b⟩) < γ₁/γ₂ for all a ≠ b. Broken: max r^b − max r^a."""
    x, exact = unit_queries(draw, 1)
    it = some_queries(draw, x, draw.integer(2, 5), 0.0)
    best, worst, s = it.r.argmax(-1), it.r.argmin(-1), draw.integer(0, it.r.shape[1] - 1)
    top, bottom = it.r.amax(-1), it.r.amin(-1)
    strict = it.r.scatter(-1, best[:, None], -math.inf).amax(-1) < top
    critical = pairs((top - bottom[:, None]) / (1 - overlaps(x)))
    claimed = pairs((top - top[:, None]) / (1 - overlaps(x))) if broken else critical
    for ratio in around(critical, exact):
        at = Queries(x, it.y, it.r, ratio * it.gamma_2, it.gamma_2)
        given(at.gamma_2 > 0, is_unit(x), different(x), strict, it.r >= it.r.gather(-1, worst[:, None]))
        chain = []
        for a in range(len(x)):
            seen, losers = at.logits[a, s], torch.arange(it.r.shape[1]) != best[a]
            strangers = seen[torch.arange(len(x)) != a].flatten()
            chain += [seen[a][losers] < seen[a, best[a]], (strangers[:, None] < seen[a][losers]).flatten()]
        yield holds(bool(torch.cat(chain).all()) == bool((claimed < ratio).all()))


def queries_of_any_norm(draw: Draw, least: int) -> tuple[Tensor, bool]:
    """Queries with ⟨x^a, x^b⟩ < ‖x^a‖² for a ≠ b, and whether they are powers of 2 along axes."""
    while True:
        x, exact = unit_queries(draw, least)
        lengths = [2.0 ** draw.integer(-1, 1) if exact else draw.number(0.5, 2) for _ in x]
        x = x * torch.tensor(lengths, dtype=torch.float64)[:, None]
        if bool((pairs(lead(x)) > 1e-3).all()):
            return x, exact and bool((pairs(overlaps(x)) == 0).all())


@twin
def mq_critical_ratio_pair(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """γ₂ > 0, ⟨x^a, x^b⟩ < ‖x^a‖²: the logit of (b, j) is below that of (a, i) iff
    (r_j^b − r_i^a)/(‖x^a‖² − ⟨x^a, x^b⟩) < γ₁/γ₂. Broken: 1 − ⟨x^a, x^b⟩, as for unit queries."""
    x, exact = queries_of_any_norm(draw, 2)
    it = some_queries(draw, x, draw.integer(1, 5), 0.0)
    i, j, s = [draw.integer(0, it.r.shape[1] - 1) for _ in range(3)]
    ahead = it.r[1, j] - it.r[0, i]
    critical = ahead / lead(x)[0, 1]
    claimed = ahead / (1 - overlaps(x)[0, 1]) if broken else critical
    for ratio in around(critical[None], exact):
        at = Queries(x, it.y, it.r, ratio * it.gamma_2, it.gamma_2)
        given(at.gamma_2 > 0, overlaps(x)[0, 1] < x[0] @ x[0])
        yield holds((at.logits[0, s, 1, j] < at.logits[0, s, 0, i]) == (claimed < ratio))


@twin
def mq_critical_ratio(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """γ₂ > 0, ⟨x^a, x^b⟩ < ‖x^a‖²: the winners are ahead iff (max r^b − max r^a)/(‖x^a‖² − ⟨x^a, x^b⟩) < γ₁/γ₂
    for all a ≠ b. Broken: for one pair."""
    x, exact = queries_of_any_norm(draw, 1)
    it = some_queries(draw, x, draw.integer(1, 5), 0.0)
    best = it.r.argmax(-1)
    critical = pairs(bounds.critical_ratio(it.r.amax(-1) - it.r.amax(-1)[:, None], overlaps(x), lead(x) + overlaps(x)))
    strict = it.r.scatter(-1, best[:, None], -math.inf).amax(-1) < it.r.amax(-1)
    for ratio in around(critical, exact):
        at = Queries(x, it.y, it.r, ratio * it.gamma_2, it.gamma_2)
        given(at.gamma_2 > 0, pairs(lead(x)) > 0, strict)
        claimed = bool((critical < ratio).any() if broken else (critical < ratio).all())
        yield holds(winners_ahead(at, best) == claimed)


@twin
def mq_critical_ratio_unit(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The same for different unit queries, at the pair where (max r^b − max r^a)/(1 − ⟨x^a, x^b⟩) is largest.
    Broken: ≤ γ₁/γ₂ will do."""
    x, exact = unit_queries(draw, 2)
    it = some_queries(draw, x, draw.integer(1, 5), 0.0)
    best = it.r.argmax(-1)
    critical = pairs((it.r.amax(-1) - it.r.amax(-1)[:, None]) / (1 - overlaps(x)))
    strict = it.r.scatter(-1, best[:, None], -math.inf).amax(-1) < it.r.amax(-1)
    for ratio in around(critical, exact):
        at = Queries(x, it.y, it.r, ratio * it.gamma_2, it.gamma_2)
        given(at.gamma_2 > 0, is_unit(x), different(x), strict)
        yield holds(winners_ahead(at, best) == bool(critical.max() <= ratio if broken else critical.max() < ratio))


@twin
def mq_critical_ratio_weaker(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """N ≥ 2, ⟨x^a, x^b⟩ < 1: the critical ratio is below that of the chain. Broken: also for one response."""
    responses = 1 if broken else draw.integer(2, 5)
    x, r = draw.normal(2, draw.integer(1, 4)), some_rewards(draw, 2, responses)
    x = x / x.norm(dim=-1).max() / 2
    best = r[0].argmax()
    given(broken or responses >= 2, overlaps(x)[0, 1] < 1, r[0][torch.arange(responses) != best] < r[0, best])
    chain = (r[1].max() - r[0].min()) / (1 - overlaps(x)[0, 1])
    yield below(bounds.critical_ratio(r[1].max() - r[0].max(), overlaps(x)[0, 1]), chain)


@twin
def mq_unit_norm(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Some γ₁ ≥ 0, γ₂ > 0 put the winners ahead for all rewards of a class iff ⟨x^a, x^b⟩ < ‖x^a‖² for all a ≠ b.
    Broken: iff all queries are different.

    Where they exist the proof's, (R + 1)/min(‖x^a‖² − ⟨x^a, x^b⟩) and 1, stand the test of rewards that are drawn and
    of the extreme ones; where they do not, these and others fail. Queries are dyadic: the logits that decide are exact.
    """
    queries, dim, others = draw.integer(1, 4), draw.integer(1, 4), draw.integer(0, 3)
    x = draw.normal(queries, dim).mul(4).round().div(4)
    if draw.seed % 3 == 0:  # none longer than another
        x = along_axes(draw, min(queries, 2 * dim), dim)
    elif draw.seed % 3 == 1 and queries > 1:
        x[1] = draw.integer(1, 2) * x[0]
    gap, low = draw.integer(1, 4) / 4, draw.integer(-4, 4) / 4
    spread = others * gap + draw.integer(0, 4) / 4
    given(gap > 0, others * gap <= spread)
    steps = gap * torch.arange(others + 1, dtype=torch.float64)
    rewards = [(low + spread - steps).expand(len(x), -1)]  # the proof's: the same for all queries
    for a in range(len(x)):  # the worst: one query low, the others high
        rewards += [torch.where(torch.arange(len(x))[:, None] == a, low + steps.flip(0), low + spread - steps)]
    for _ in range(2):
        room = draw.uniform(0, spread - others * gap + 1e-9, len(x), 1)
        rewards += [torch.stack([row[draw.permutation(others + 1)] for row in low + room.mul(8).floor() / 8 + steps])]
    for r in rewards:
        given(others == 0 or r.sort(-1).values.diff() >= gap, low <= r, r <= low + spread)
    y, apart = draw.normal(len(x), others + 1, draw.integer(1, 3)), pairs(lead(x))
    least = float(apart.min()) if len(apart) else 1.0
    ratios = [0.0, 1.0, 64.0, 4096.0, *([(spread + 1) / least] if least > 0 else [])]
    found = any(all(winners_ahead(Queries(x, y, r, g, 1.0), r.argmax(-1)) for r in rewards) for g in ratios)
    yield holds(found == (bool(different(x).all()) if broken else least > 0))


@twin
def mq_unit_norm_unit(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """‖x‖ = ‖x′‖, x ≠ x′: ⟨x, x′⟩ < ‖x‖². Broken: also for x′ = x."""
    x = draw.normal(draw.integer(1, 4))
    turned = torch.where(draw.uniform(-1, 1, len(x)) < 0, -1, 1) * x[draw.permutation(len(x))]
    other = turned if draw.seed % 2 else x.norm() * draw.unit(len(x))
    other = x if broken else -x if torch.allclose(other, x) else other
    given((x.norm() - other.norm()).abs() <= 2.0**-50 * x.norm(), broken or (x != other).any())
    yield below(x @ other, x @ x)


@twin
def mq_unit_norm_orthogonal(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """x ≠ 0, ⟨x, x′⟩ = 0: ⟨x, x′⟩ < ‖x‖². Broken: also for x = 0."""
    dim = draw.integer(1, 4)
    mine = torch.arange(dim) <= draw.integer(0, dim - 1)  # which coordinates are x's
    x, other = draw.normal(dim) * mine, draw.number(0, 30) * draw.normal(dim) * ~mine
    x = 0 * x if broken else x
    given(broken or (x != 0).any(), x @ other == 0)
    yield below(x @ other, x @ x)


@twin
def mq_duplicates_inseparable(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """x^a = x^b: the same logits for both, and the winners are not ahead, for any temperatures, rewards and winners.
    Broken: for parallel x^a and x^b as well."""
    queries, responses = draw.integer(2, 4), draw.integer(1, 5)
    x = draw.normal(queries, draw.integer(1, 4)).mul(4).round().div(4) + 0.125
    a, b = draw.permutation(queries)[:2].tolist()
    x[b] = 2 * x[a] if broken else x[a]
    it = some_queries(draw, x, responses, ratio=draw.integer(-16, 16) / 4)
    it = Queries(x, it.y, it.r, it.gamma_1, it.gamma_2 * draw.integer(-1, 1))
    best = it.r.argmax(-1) if draw.seed % 2 else torch.stack([draw.permutation(responses)[0] for _ in x])
    given(a != b, broken or x[a] == x[b])
    yield equal(it.logits[a], it.logits[b])
    yield holds(not winners_ahead(it, best))
