"""Twins of ``Recount.v``, chapter 12: without a start token the rounds go round and round the terms of a prefix.

The bound is that of ``causal_theorem``, which is not sharp; the broken twins change what u is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp

import torch

from . import Draw, Outcome, at_most, given, rounding, twin
from ._rounds import Rounds


@twin
def short_prefix_recount(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """N − 1 printed blocks give position i the terms 2η(y_τ(k) − μ_k) of its prefix round and round, N − 1 of them, but
    for the bound of the theorem. Broken: each of them once, as the paper says."""
    case = Rounds.drawn(draw, edge=draw.seed % 4 == 0)
    case = case.far_from_zero(draw) if draw.seed % 3 == 0 else case
    case.given(sink=False)
    X, model = case.run(sink=False, rounds=case.n - 1)
    for i in range(case.n):
        terms = case.query.prefix(i + 1).terms(case.rewards.places(i + 1), case.eta)
        cyclic = terms.sum(0) if broken else terms[torch.arange(case.n - 1) % (i + 1)].sum(0)
        off = (X[-1][i, model.rows["u"]] - cyclic).norm()
        yield at_most(off, case.bound(case.n), rounding(3 * case.effort, case.query.longest(case.eta)))


@twin
def short_prefix_recount_surplus(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """With N − 1 = Q(i+1) + s, u is QΔW x and the first s terms, but for the bound. Broken: Q − 1 for Q."""
    case = Rounds.drawn(draw, edge=draw.seed % 4 == 0)
    case = case.far_from_zero(draw) if draw.seed % 3 == 0 else case
    case.given(sink=False)
    X, model = case.run(sink=False, rounds=case.n - 1)
    for i in range(case.n):
        Q, s = divmod(case.n - 1, i + 1)
        given(case.n - 1 == Q * (i + 1) + s, s < i + 1)
        seen, places = case.query.prefix(i + 1), case.rewards.places(i + 1)
        terms, step = seen.terms(places, case.eta), seen.step(places, case.eta)
        off = (X[-1][i, model.rows["u"]] - ((Q - 1 if broken else Q) * step + terms[:s].sum(0))).norm()
        yield at_most(off, case.bound(case.n), rounding(3 * case.effort, case.query.longest(case.eta)))


@twin
def short_prefix_recount_twice(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Four responses, the second of them: u is 2ΔW x, but for 6ηD(…). Broken: ΔW x, as the paper says."""
    case = Rounds.drawn(draw, 4, 4, edge=draw.seed % 4 == 0)
    case = case.far_from_zero(draw) if draw.seed % 3 == 0 else case
    case.given(sink=False)
    X, model = case.run(sink=False, rounds=3)
    step = case.query.prefix(2).step(case.rewards.places(2), case.eta)
    miss = exp(-case.g)
    limit = 6 * case.eta * case.D * (2.5 * miss + 5 / 8 * case.field_mask * miss + 3 * exp(1 - case.h))
    off = (X[-1][1, model.rows["u"]] - (1 if broken else 2) * step).norm()
    yield at_most(off, limit, rounding(3 * case.effort, case.query.longest(case.eta)))
