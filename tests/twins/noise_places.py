"""Twins of ``NoisePlaces.v``, chapter 14: given the places before, each term has expectation zero."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from icalign import plackett_luce_nll

from . import Draw, Outcome, equal, rounding, twin
from ._drawn import Query, all_rankings, size


@twin
def noise_kendall_places(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Over the rankings σ with the same first k places, Σ P_PL(σ)(y_σ(k) − μ_k) = 0. Broken: the first k + 1 places."""
    n, _ = size(draw, 1, 4)
    query, places, rankings = Query.drawn(draw, n, draw.number(0, 1.5)), draw.permutation(n), all_rankings(n)
    law = (-plackett_luce_nll(query.scores.expand(len(rankings), n), -rankings.argsort(-1).double())).exp()
    for k in range(n):
        fixed = k + 1 if broken else k
        begins = (rankings[:, :fixed] == places[:fixed]).all(-1)
        off = [query.y[sigma[k]] - query.tail_means(sigma)[k] for sigma in rankings[begins]]
        # the exponent of P adds up n scores
        allowed = rounding((n + 2) * query.effort + len(rankings), 2 * query.reach)
        yield equal(law[begins] @ torch.stack(off), torch.zeros(len(query.W)), allowed)
