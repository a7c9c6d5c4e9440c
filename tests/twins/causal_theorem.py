"""Twins of ``CausalTheorem.v``, chapter 12: with a start token, N − 1 blocks make the online step at every position."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log

import torch

from icalign import bounds
from icalign.constructions import causal
from icalign.symbols import eta

from . import Draw, Outcome, at_most, below, equal, given, holds, rounding, twin
from ._drawn import Rewards, attention, fits, flags, logits, size, tokens, visible
from ._rounds import Rounds
from .masked_block import numbers


@twin
def causal_theorem_live_rounds(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """In round k ≤ i, from 0, response i finds y_τ(k) within D(5/2)e^{−g} and μ_k within D(C·k(5/2)e^{−g}/4 +
    (N−1)e^{1−h}). Broken: a quarter of both; a single response on the edge of its class misses 1/e of the second."""
    case = Rounds.drawn(draw, least=2)
    case.given()
    X, model = case.run(sink=True, rounds=case.n - 1)
    less, allowed = 0.25 if broken else 1.0, rounding(2 * case.effort, 2 * case.query.reach)
    for k in range(case.n - 1):
        winner, field = case.means(X[k], model)
        tilt = case.field_mask * k * 2.5 * exp(-case.g) / 4
        for i in range(k, case.n):
            seen, places = case.query.prefix(i + 1), case.rewards.places(i + 1)
            yield at_most((winner[i + 1] - seen.y[places[k]]).norm(), less * case.D * 2.5 * exp(-case.g), allowed)
            limit = less * case.D * (tilt + (case.n - 1) * exp(1 - case.h))
            yield at_most((field[i + 1] - seen.tail_means(places)[k]).norm(), limit, allowed)


@twin
def causal_theorem_surplus_rounds(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """In round k > i, from 0, response i finds next to nothing: D(5/2)e^{−g} and D(N−1)e^{1−h} at most.
    Broken: a quarter of both; N − 2 responses with the largest score miss 1/e of the second but for (N−2)/(N−1)."""
    case = Rounds.drawn(draw, least=3)
    case.given()
    X, model = case.run(sink=True, rounds=case.n - 1)
    less, allowed = 0.25 if broken else 1.0, rounding(2 * case.effort, case.query.reach)
    for k in range(1, case.n - 1):
        winner, field = case.means(X[k], model)[:, 1 : k + 1].norm(dim=-1)
        yield at_most(winner, less * case.D * 2.5 * exp(-case.g), allowed)
        yield at_most(field, less * case.D * (case.n - 1) * exp(1 - case.h), allowed)


@twin
def causal_theorem_induction(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Before round k < N, from 0, the record of response i is within k(5/2)e^{−g} of the mask of the k best that it
    sees. Broken: an eighth of it; it is not sharp, but γΔ is g + 1 and not more."""
    case = Rounds.drawn(draw)
    case.given()
    X, model = case.run(sink=True, rounds=case.n - 1)
    for k in range(case.n):
        record = X[k][1:, model.rows["m"]]
        for i in range(case.n):
            off = (record[i, : i + 1] - flags(case.rewards.places(i + 1), k)).abs()
            limit = (0.125 if broken else 1) * k * 2.5 * exp(-case.g)
            yield at_most(off, limit, rounding(case.effort, 1))


@twin
def causal_theorem(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """N − 1 blocks leave u at most 2η(N−1)D[(5/2)e^{−g} + (5/16)(N−2)Ce^{−g} + (N−1)e^{1−h}] from ΔW x of the loss of
    the first i + 1 responses, at every i. Broken: a quarter of it; N = 2 on the edge of the class misses 1/e."""
    case = Rounds.drawn(draw)
    case.given()
    X, model = case.run(sink=True, rounds=case.n - 1)
    limit = (0.25 if broken else 1) * case.bound(case.n)
    for i in range(case.n):
        step = case.query.prefix(i + 1).step(case.rewards.places(i + 1), case.eta)
        off = (X[-1][i + 1, model.rows["u"]] - step).norm()
        yield at_most(off, limit, rounding(3 * case.effort, case.query.longest(case.eta)))


@twin
def causal_theorem_norm(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Whatever the tokens and the mask, and with part of what a token sees: what either head writes to u moves by 2ηD
    times its weight of the others at most, D the largest distance of responses that are seen. Attained by two points.
    Broken: half of it."""
    n, turn = size(draw, 1)
    step = draw.number(0, 2)
    values = numbers(draw, n) | {eta: step, causal.sigma: draw.number(-3, 3), causal.sigma_field: draw.number(-3, 3)}
    X, rows = tokens(causal.stream, values, n, draw)
    sees, own = visible(draw, n), draw.uniform(0, 1, n, n) < 0.5
    if turn == 1:  # of all that are seen, those of the part at one point and the others at another
        sees = torch.ones(n, n, dtype=torch.bool)
        own = (torch.arange(n) < draw.integer(1, n)).expand(n, n)
        X[:, rows["y"]] = torch.where(own[:1].mT, X[:1, rows["y"]], X[-1:, rows["y"]])
    part = sees & own
    part |= sees & ~part.any(-1, keepdim=True)  # all of it where nothing would be left
    y = X[:, rows["y"]]
    both = sees[:, :, None] & sees[:, None]
    D = ((y[:, None] - y).norm(dim=-1) * both).flatten(1).max(-1).values
    given(step >= 0, part <= sees, part.any(-1))
    for head in (causal.winner, causal.field):
        run = attention(head, causal.stream, values)
        moved = (run(X, sees) - run(X, part))[:, rows["u"]].norm(dim=-1)
        others = (run.weights(X, sees) * ~part).sum(-1)
        # the same logits, less their maximum, in exp; n terms and a quotient, a mean of n values, times 2η
        noise = rounding(4 * float(logits(run, X).abs().max()) + 4 * n + 16, 4 * step * y.norm(dim=-1).max())
        yield at_most(moved, (0.5 if broken else 1) * 2 * step * D * others, noise)


@twin
def causal_theorem_temperatures(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The g and h for a tolerance are margins that fit, and the bound is at most the tolerance; it is the tolerance
    where that decides both. Broken: half of it."""
    n, _ = size(draw, 2)
    gap, spread, spread_Z = draw.number(0.01, 1), draw.number(0, 2), draw.number(0, 10) * draw.integer(0, 1)
    eta, D = draw.number(0.01, 1), draw.number(0.1, 5)
    U = 2 * eta * (n - 1) * D
    tol = U * 10 ** draw.number(-9, 1)
    given(n > 1, eta > 0, gap > 0, spread >= 0, spread_Z >= 0, D > 0, tol > 0)
    h = max(1, 1 + log(2 * (n - 1) * U / tol))
    C = spread_Z + 2 * h
    ell = log(2.5 * (n - 1) * (2 + spread / gap))
    first = log(2 * U / tol * (2.5 + 5 / 16 * (n - 2) * C))
    g = max(first, log(2.5 * (n - 1) * C), ell + log(2 * ell + 4))
    # logarithms of numbers that a few operations make; g and h up to 40 have their size in exp
    slip = 20 + 2 * g + 2 * h
    yield equal(max(bounds.causal_field_margins(tol, U, n)), h, rounding(10 + h, 1))
    yield equal(max(bounds.causal_margins(tol, U, C, gap, spread, n)), g, rounding(20 + g, 1))
    yield below(0.0, g)
    yield at_most(1.0, h)
    rewards = Rewards(torch.zeros(1), gap, 0.0, spread)
    at_the_edge = g + rounding(slip, 1)  # where equality holds, rounding decides
    yield holds(fits(n, at_the_edge, rewards, C))
    error = bounds.causal_error(U, g, h, C, n)
    yield at_most(error, (0.5 if broken else 1) * tol, rounding(slip, tol))
