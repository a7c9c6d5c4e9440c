"""Twins of ``StopSink.v``, chapter 12: a start token absorbs the rounds that a short prefix has left over."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp

import torch
from torch import Tensor

from icalign.bounds import stop_logit
from icalign.constructions import causal
from icalign.constructions.base import with_start
from icalign.symbols import N, W, d_x, d_y

from . import Draw, Outcome, at_most, given, rounding, twin
from ._drawn import Query, Rewards, attention, logits, share, size, tokens
from .masked_block import field_products, numbers, record_products


def marked(draw: Draw, n: int, values: dict[object, float | Tensor]) -> tuple[Tensor, dict[str, slice], Tensor]:
    """The start token and n others, with anything in the other rows; and which of them the last one has taken."""
    X, rows = tokens(causal.stream, values, n, draw, one=1, b=0, p=torch.eye(n, values[N]))
    X = with_start(X, rows, "one", "b")
    taken = draw.uniform(0, 1, n) < 0.5
    X[-1, rows["m"]][:n] = taken.double()
    given(X[-1, rows["one"]] == 1, X[1:, rows["b"]] == 0)
    return X, rows, taken


def apart(z: Tensor, taken: Tensor, margin: float, allowed: float) -> Iterator[Outcome]:
    """The start token's logit, the first, lies by a margin below those of live and above those of taken responses."""
    if not taken.all():
        yield at_most(z[0] + margin, z[1:][~taken], allowed)
    if taken.any():
        yield at_most(z[1:][taken] + margin, z[0], allowed)


@twin
def stop_sink_winner_margins(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """With σ = (γ·low + γ·high − c)/2 the start token lies by (c − γ(high − low))/2 below every live and above every
    taken response; attained at the ends of the range. Broken: by c − γ(high − low)."""
    n, turn = size(draw, 1)
    values = numbers(draw, n)
    gamma, low = draw.number(0, 3), draw.number(-2, 2)
    high = low + draw.number(0, 2)
    c = gamma * (high - low) + draw.number(-1, 4)
    values |= {causal.gamma_1: gamma, causal.c: c, causal.sigma: stop_logit(gamma * low, gamma * high, c)}
    X, rows, taken = marked(draw, n, values)
    r = draw.uniform(low, high, n) if turn % 2 else low + (high - low) * taken.double()
    X[1:, rows["r"]] = r[:, None]
    high = max(high, float(r.max()))  # low + (high − low) may be rounded
    given(gamma >= 0, r >= low, r <= high)
    z = logits(attention(causal.winner, causal.stream, values), X)[-1]
    margin = (c - gamma * (high - low)) / (1 if broken else 2)
    # n + 2 products; σ and the margin, of a few operations each
    allowed = rounding(2 * (n + 8), gamma * (abs(low) + abs(high)), c * (1 + record_products(X, rows)[1][-1].max()))
    yield from apart(z, taken, margin, allowed)


@twin
def stop_sink_field_margins(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """With σ′ = (low + high − C)/2 the start token lies by (C − (high − low))/2 below every live and above every taken
    response, for reduced scores in [low, high]; attained at the ends. Broken: by C − (high − low)."""
    n, _ = size(draw, 1)
    values = numbers(draw, n)
    X, rows, taken = marked(draw, n, values)
    X[1:, rows["sq"]] = X[1:, rows["y"]].square().sum(-1, keepdim=True)
    asked = Query(values[W], X[-1, rows["x"]], X[1:, rows["y"]])
    low, high = float(asked.reduced.min()), float(asked.reduced.max()) + draw.integer(0, 1) * draw.number(0, 2)
    mask = high - low + draw.number(-1, 4)
    values |= {causal.c_field: mask, causal.sigma_field: stop_logit(low, high, mask)}
    given(asked.reduced >= low, asked.reduced <= high)
    z = logits(attention(causal.field, causal.stream, values), X)[-1]
    margin = (mask - (high - low)) / (1 if broken else 2)
    scores = 2 * field_products(X, rows, values)[1][-1].max() + X[:, rows["sq"]].max() + abs(low) + abs(high)
    records = record_products(X, rows)[1][-1].max()
    yield from apart(z, taken, margin, rounding(2 * (n + values[d_x] + values[d_y] + 10), scores, mask * (1 + records)))


@twin
def stop_sink_absorbs(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """If the record of response i holds 1 at all that it sees, the start token gets all but q/(1+q) in either head,
    q = (i+1)e^{−(c − γ(high − low))/2} and with scores in place of rewards, and u gains 2ηD·q/(1+q) at most; attained
    by one response with the largest reward and score, N times. What i does not see may be larger. Broken: i for i + 1.
    """
    n, turn = size(draw, 1)
    query, rewards, step, D = Query.drawn(draw, n), Rewards.drawn(draw, n), draw.number(0, 1), draw.number(0, 1)
    low, high, r = rewards.low, rewards.low + rewards.spread, rewards.r
    if draw.seed % 3 == 0:  # low is any number: rewards may be below it
        r = r - draw.number(0, 3) * (draw.uniform(0, 1, n) < 0.5)
    if turn == 1:
        query, r, D = Query(query.W, query.x, query.y[:1].repeat(n, 1)), 0 * r + high, 0.0
    shown = draw.integer(1, n)  # positions, from the first on, that the bounds are for: later responses exceed them
    later = torch.arange(n) >= shown
    query, r = Query(query.W, query.x, query.y * (1 + 2 * later[:, None])), r + 3 * later
    D += float(query.y[:shown].norm(dim=-1).max())
    low_Z, high_Z = float(query.reduced.min()) + draw.number(-1, 1), float(query.reduced[:shown].max())
    gamma, c, C = draw.number(0, 3), draw.number(-1, 8), draw.number(-1, 8)
    values = numbers(draw, n) | {d_x: query.W.shape[1], d_y: len(query.W), W: query.W}
    values |= {causal.gamma_1: gamma, causal.c: c, causal.c_field: C, causal.eta: step}
    values[causal.sigma] = stop_logit(gamma * low, gamma * high, c)
    values[causal.sigma_field] = stop_logit(low_Z, high_Z, C)
    rows = {"x": query.x, "y": query.y, "sq": query.y.square().sum(-1, keepdim=True), "r": r[:, None], "one": 1, "b": 0}
    X, places = tokens(causal.stream, values, n, draw, p=torch.eye(n), **rows)
    X = with_start(X, places, "one", "b")
    X[0, places["m"]], X[0, places["u"]] = draw.normal(n), draw.normal(len(query.W))
    X[1:, places["m"]] = draw.normal(n, n).triu(1) + torch.ones(n, n).tril()
    given(step >= 0, gamma >= 0, r[:shown] <= high, query.reduced[:shown] <= high_Z)
    given(query.y[:shown].norm(dim=-1) <= D, X[1:, places["m"]].tril() == torch.ones(n, n).tril())
    seen = torch.ones(n + 1, n + 1, dtype=torch.bool).tril()
    count = torch.arange(shown).double() + (0 if broken else 1)
    # logits of n + d_x + d_y + 4 products, records of 1 and c; their size in exp, a softmax of n + 1, a mean
    logit = gamma * (abs(low) + abs(high) + 3) + 2 * query.reach**2 + abs(low_Z) + abs(high_Z) + 2 * (abs(c) + abs(C))
    allowed = rounding(4 * (n + sum(query.W.shape) + 8) * logit + 2 * n + 8, 1)
    for head, margin in (
        (causal.winner, (c - gamma * (high - low)) / 2),
        (causal.field, (C - (high_Z - low_Z)) / 2),
    ):
        run, limit = attention(head, causal.stream, values), share(count * exp(-margin))
        yield at_most(1 - run.weights(X, seen)[1 : shown + 1, 0], limit, allowed)
        gained = run(X, seen)[1 : shown + 1, places["u"]].norm(dim=-1)
        yield at_most(gained, 2 * step * D * limit, allowed * 4 * step * query.reach)
