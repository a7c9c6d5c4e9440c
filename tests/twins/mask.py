"""Twins of ``Mask.v``, chapter 11: with records that are nearly exact, every live round selects the next best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import exp

import torch

from icalign.bounds import mask_temperatures
from icalign.constructions import causal
from icalign.symbols import N, d_x, d_y, eta

from . import Draw, Outcome, at_most, equal, given, rounding, twin
from ._drawn import attention, fits, flags, logits, ranks
from ._rounds import Rounds


def at_any_field(case: Rounds, draw: Draw) -> Rounds:
    """The same selection, with the rest as free as the theorems leave it: the length of x, η and C."""
    query = replace(case.query, x=draw.number(0, 2) * case.query.x)
    return replace(case, query=query, eta=draw.number(-1, 1), h=draw.number(-3, 3))


@twin
def mask_selection_margins(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """In round k, from 0, whose records the blocks before it have written, the response in place k of what i sees leads
    all others by g. Broken: by g + 2; with rewards Δ apart it leads by g + 1, up to what the record takes off."""
    case = at_any_field(Rounds.drawn(draw, least=2), draw)
    rewards, n = case.rewards, case.n
    given(case.g > 0, rewards.gap > 0, fits(n, case.g, rewards), rewards.fit)
    X, _ = case.run(sink=False, rounds=n - 1)
    gamma, c = mask_temperatures(case.g, rewards.gap, rewards.spread)
    values = {d_x: case.query.W.shape[1], d_y: len(case.query.W), N: n, eta: case.eta}
    winner = attention(causal.printed_winner, causal.stream, values | {causal.gamma_1: gamma, causal.c: c})
    # a logit is a product and n more with their sum; γ and c are rounded, and so is what the record may take off
    allowed = rounding(3 * case.effort, gamma * rewards.largest, 2 * c, case.g)
    for i in range(1, n):
        places = rewards.places(i + 1)
        given(ranks(rewards.r[: i + 1], places))
        for k in range(i + 1):
            z = logits(winner, X[k])[i, places]
            yield at_most(z[torch.arange(i + 1) != k] + case.g + (2 if broken else 0), z[k], allowed)


@twin
def mask_selection(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Round k, from 0, gives the response in place k all but (5/2)e^{−g}; then the record is within k + 1 times
    that of the mask of k + 1 places, and 0 at what is not seen. Broken: an eighth of it; it is not sharp, but γΔ is
    g + 1 and not more."""
    case = at_any_field(Rounds.drawn(draw, least=2), draw)
    rewards, n = case.rewards, case.n
    given(case.g > 0, rewards.gap > 0, fits(n, case.g, rewards), rewards.fit)
    miss = (0.125 if broken else 1) * 2.5 * exp(-case.g)
    X, model = case.run(sink=False, rounds=n)
    allowed = rounding(case.effort, 1)
    for k in range(n):
        weights = model.blocks[0].weights(X[k])[0]
        record = X[k + 1][:, model.rows["m"]]
        for i in range(k, n):
            places = rewards.places(i + 1)
            given(ranks(rewards.r[: i + 1], places))
            yield at_most(1 - miss, weights[i, places[k]], allowed)
            yield at_most((record[i, : i + 1] - flags(places, k + 1)).abs(), (k + 1) * miss, allowed)
        yield equal(record.triu(1), torch.zeros(n, n))


@twin
def mask_selection_mask_error(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Round k, from 0, adds at most (5/2)e^{−g} to what each entry of the record that i sees is off by. Broken: an
    eighth of it; it is not sharp, but γΔ is g + 1 and not more."""
    case = at_any_field(Rounds.drawn(draw, least=2), draw)
    rewards, n = case.rewards, case.n
    given(case.g > 0, rewards.gap > 0, fits(n, case.g, rewards), rewards.fit)
    X, model = case.run(sink=False, rounds=n)
    miss = (0.125 if broken else 1) * 2.5 * exp(-case.g)
    for k in range(n):
        before, after = [X[round][:, model.rows["m"]] for round in (k, k + 1)]
        for i in range(k, n):
            places = rewards.places(i + 1)
            given(ranks(rewards.r[: i + 1], places))
            off = (before[i, : i + 1] - flags(places, k)).abs()
            off_next = (after[i, : i + 1] - flags(places, k + 1)).abs()
            yield at_most(off_next, off + miss, rounding(case.effort, 1))
