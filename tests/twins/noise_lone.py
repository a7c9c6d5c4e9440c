"""Twins of ``NoiseLone.v``, chapter 14: a lone response, ranked last, moves up by K places."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log

import torch
from torch import Tensor

from icalign.rankings import kendall

from . import Draw, Outcome, at_most, equal, given, holds, rounding, twin
from ._drawn import Query, size
from .elsewhere import step_rounding


def some_lone(draw: Draw, least: int, length: float = 1.0) -> tuple[Query, Tensor, Tensor, Tensor, int]:
    """A query, the lone response and another, the ranking in which it is last, and its place in the other ranking."""
    n, _ = size(draw, least)
    one = Query.drawn(draw, 2, length)
    rest, lone, place = draw.permutation(n - 1), draw.integer(0, n - 1), draw.integer(0, n - 1)
    y = one.y[1].repeat(n, 1)
    y[lone] = one.y[0]
    places = torch.cat([rest + (rest >= lone), torch.tensor([lone])])
    return Query(one.W, one.x, y), one.y[0], one.y[1], places, place


def moved_up(places: Tensor, place: int) -> Tensor:
    """The last response at the place, the others in their order."""
    return torch.cat([places[:place], places[-1:], places[place:-1]])


def ahead(query: Query, lone: Tensor, other: Tensor) -> float:
    """How much larger its score is."""
    return float((query.W @ query.x - other).square().sum() - (query.W @ query.x - lone).square().sum())


@twin
def noise_kendall_lone(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """From last of N to place a, from 0: Kendall distance N − 1 − a; the tails up to a are the same, those behind it
    lose e^s/(e^s + q)·(y_lone − p), q the others in it. Broken: with q + 1."""
    query, lone, other, places, a = some_lone(draw, 1, draw.number(0.2, 1.5))
    up, s, n = moved_up(places, a), ahead(query, lone, other), query.n
    yield holds(kendall(places.tolist(), up.tolist()) == n - 1 - a)
    off = query.tail_means(places) - query.tail_means(up)
    allowed = rounding(2 * query.effort, 2 * query.reach)
    yield equal(off[: a + 1], 0, allowed)
    for k in range(a + 1, n):
        q = n - 1 - k + (1 if broken else 0)
        yield equal(off[k], exp(s) / (exp(s) + q) * (lone - other), allowed)


@twin
def noise_kendall_nearly(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The step moves by 2η Σ_{q<K} De^s/(e^s + q), which over 2ηD·min(K, N−1) is within δ of 1 from e^s = N/δ on.
    A multiple of (y_lone − p)xᵀ has any s. Broken: from e^s = 1/(4δ) on, and half of the sum."""
    query, lone, other, places, a = some_lone(draw, 2)
    a, eta, close, n = min(a, query.n - 2), draw.number(0.1, 1), 10 ** draw.number(-6, -1), query.n
    up, D, less = moved_up(places, a), float((lone - other).norm()), 0.5 if broken else 1.0
    given(D > 0, eta > 0, (query.x.norm() - 1).abs() <= rounding(4, 1))
    for least in (draw.number(-2, 2), log(n / close) if not broken else log(0.25 / close)):
        t = (least + lone.square().sum() - other.square().sum()) / (2 * D * D)
        it = Query(t * torch.outer(lone - other, query.x), query.x, query.y)
        s = ahead(it, lone, other)
        yield equal(s, least, rounding(4 * sum(it.W.shape) + 16, it.reach**2))
        moved = (it.step(places, eta) - it.step(up, eta)).norm()
        tails = sum([D * exp(s) / (exp(s) + q) for q in range(n - 1 - a)])
        yield equal(moved, less * 2 * eta * tails, step_rounding(it, eta))
        bound = 2 * eta * D * min(kendall(places.tolist(), up.tolist()), n - 1)
        if least == log(n / close):
            yield at_most((moved / bound - 1).abs(), close, step_rounding(it, eta) / bound)
