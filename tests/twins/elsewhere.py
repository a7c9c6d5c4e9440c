"""Twins of ``Elsewhere.v``, chapter 14: what noise in a ranking costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from icalign.constructions import selection
from icalign.rankings import kendall
from icalign.symbols import d_x, d_y, gamma

from . import Draw, Outcome, at_most, equal, given, holds, rounding, twin
from ._drawn import Query, all_rankings, attention, size, tokens


def swapped(places: Tensor, k: int) -> Tensor:
    """The ranking with the places k and k + 1 exchanged."""
    found = places.clone()
    found[[k, k + 1]] = places[[k + 1, k]]
    return found


def step_rounding(query: Query, eta: float) -> float:
    """Two steps, and the norm of their difference."""
    return rounding(3 * query.effort, query.longest(eta))


def law(query: Query, rankings: Tensor) -> Tensor:
    """P_PL by its definition: a product over places."""
    ranked = query.scores[rankings]
    tails = (ranked[:, None, :] - ranked[:, :, None]).exp().triu().sum(-1)  # in units of e^{s_τ(k)}
    return (1 / tails).prod(-1)


@twin
def noise_kendall_means(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Two means of responses, under any weights, are no further apart than two responses, D. Broken: half of it."""
    n, turn = size(draw, 1)
    query = Query.drawn(draw, n)
    D = float(query.distances.max())
    a, b = draw.uniform(0, 1, n).softmax(-1), draw.uniform(0, 1, n).softmax(-1)
    if turn == 1:  # all weight on the two that are furthest apart
        first, second = divmod(int(query.distances.argmax()), n)
        a, b = torch.eye(n, dtype=torch.float64)[[first, second]]
    else:
        D *= draw.number(1, 2)
    given(a >= 0, b >= 0, (a.sum() - 1).abs() <= rounding(n, 1), (b.sum() - 1).abs() <= rounding(n, 1))
    given(query.distances <= D)
    apart = (a @ query.y - b @ query.y).norm()
    yield at_most(apart, (0.5 if broken else 1) * D, rounding(2 * n + 8, 2 * query.reach))  # n weights, n + 1, norms


@twin
def noise_kendall_swap(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Swapping the places k, l = k + 1 leaves μ_p for p ≠ l, and moves the step by 2η(μ_l − μ′_l). Broken: by μ_k."""
    n, _ = size(draw, 2)
    query, places, eta = Query.drawn(draw, n), draw.permutation(n), draw.number(-1, 1)
    k = draw.integer(0, n - 2)
    other = swapped(places, k)
    before, after = query.tail_means(places), query.tail_means(other)
    same = torch.arange(n) != k + 1
    yield equal(before[same], after[same], rounding(query.effort, query.reach))
    moved = query.step(other, eta) - query.step(places, eta)
    changed = k if broken else k + 1
    yield equal(moved, 2 * eta * (before - after)[changed], step_rounding(query, eta))


@twin
def noise_kendall_one_swap(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A swap of neighbours moves the step by at most 2ηD. Broken: half of it."""
    n, turn = size(draw, 2)
    query, places, eta = Query.drawn(draw, n), draw.permutation(n), draw.number(0, 1)
    D, k = float(query.distances.max()), draw.integer(0, n - 2)
    if turn % 2:  # the two that are furthest apart come last: equality
        k, far = n - 2, torch.tensor(divmod(int(query.distances.argmax()), n))
        places = torch.cat([torch.tensor([j for j in range(n) if j not in far]).long(), far])
    given(eta >= 0, query.distances <= D)
    moved = (query.step(swapped(places, k), eta) - query.step(places, eta)).norm()
    yield at_most(moved, (1 if broken else 2) * eta * D, step_rounding(query, eta))


@twin
def noise_kendall_chain(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """As many swaps of neighbours as the Kendall distance make one ranking the other: here those of the proof, each of
    the first two neighbours that the other ranking has the other way round. Broken: one less."""
    n, _ = size(draw, 1)
    places, other = draw.permutation(n), draw.permutation(n)
    of = other.argsort()  # the place in the other ranking
    distance = kendall(places.tolist(), other.tolist())
    for _ in range(distance - (1 if broken else 0)):
        places = swapped(places, int((of[places].diff() < 0).nonzero()[0]))
    yield holds(places == other)


@twin
def noise_kendall(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """At Kendall distance K the step moves by at most 2ηD·min(K, N−1), and the first tail mean is the same.
    Broken: N − 2 in place of N − 1."""
    n, turn = size(draw, 1)
    query, eta = Query.drawn(draw, n), draw.number(0, 1)
    one, other = draw.permutation(n), draw.permutation(n)
    if turn == 1:  # a score that dominates, far from the others, last in one ranking and first in the other
        far = 6 * draw.unit(len(query.W))
        query = Query(torch.outer(far, query.x), query.x, 0 * query.y)
        query.y[0] = far
        one, other = torch.arange(n).roll(-1), torch.arange(n) if n % 2 else torch.arange(n, 0, -1) % n
    D = float(query.distances.max())
    given(eta >= 0, query.distances <= D, (query.x.norm() - 1).abs() <= rounding(4, 1))
    moved = (query.step(one, eta) - query.step(other, eta)).norm()
    places = max(n - 2, 0) if broken else n - 1
    first = [query.tail_means(ranking)[0] for ranking in (one, other)]
    yield equal(*first, rounding(2 * query.effort, query.reach))
    limit = 2 * eta * D * min(kendall(one.tolist(), other.tolist()), places)
    yield at_most(moved, limit, step_rounding(query, eta))


@twin
def noise_kendall_attained(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Swapping the last two places, D apart, is Kendall distance 1 and moves the step by 2ηD. Broken: the first two."""
    n, _ = size(draw, 2)
    query, places, eta = Query.drawn(draw, n), draw.permutation(n), draw.number(0, 1)
    k = 0 if broken else n - 2
    other = swapped(places, k)
    D = float((query.y[places[k]] - query.y[places[k + 1]]).norm())
    given(eta >= 0)
    yield holds(kendall(places.tolist(), other.tolist()) == 1)
    yield equal((query.step(places, eta) - query.step(other, eta)).norm(), 2 * eta * D, step_rounding(query, eta))


@twin
def noise_kendall_first_place(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Under P_PL response j comes first with probability softmax s_j, and y_τ(1) − μ₁ has mean zero, for any length of
    x; the softmax is what a head gives. Broken: y_τ(N) for y_τ(1)."""
    n, _ = size(draw, 1, 4)
    query, rankings = Query.drawn(draw, n, draw.number(0, 1.5)), all_rankings(n)
    weights = law(query, rankings)
    head = attention(selection.winner, selection.stream, {d_x: 1, d_y: 1, gamma: 1})
    X, _ = tokens(selection.stream, {d_x: 1, d_y: 1, gamma: 1}, n, r=query.scores[:, None], one=1)
    allowed = rounding((n + 2) * query.effort + len(rankings), 1)
    first = torch.stack([weights[rankings[:, 0] == j].sum() for j in range(n)])
    yield equal(first, head.weights(X, torch.ones(n, n, dtype=torch.bool))[0], allowed)
    means = torch.stack([query.tail_means(ranking)[0] for ranking in rankings])
    mean = weights @ (query.y[rankings[:, -1 if broken else 0]] - means)
    yield equal(mean, torch.zeros(len(query.W)), allowed * 2 * query.reach)


@twin
def noise_kendall_mean_gradient(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Σ_τ P_PL(τ)∇L_τ = 0, over all rankings, for any length of x. Broken: all rankings alike."""
    n, _ = size(draw, 1, 4)
    query, rankings = Query.drawn(draw, n, draw.number(0, 1.5)), all_rankings(n)
    weights = torch.ones(len(rankings)).double() / len(rankings) if broken else law(query, rankings)
    mean = torch.einsum("p,pab->ab", weights, query.gradients(rankings))
    terms = 4 * n * query.reach * float(query.x.norm())
    # P is a product of n quotients; the weights add up to 1
    yield equal(mean, torch.zeros_like(query.W), rounding((n + 2) * query.effort + len(rankings), terms))


@twin
def noise_kendall_mean(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Σ_τ P_PL(τ)ΔW_τ x = 0, over all rankings. Broken: the law of other parameters, W + 1."""
    n, _ = size(draw, 1, 4)
    query, rankings, eta = Query.drawn(draw, n, draw.number(0, 1.5)), all_rankings(n), draw.number(-1, 1)
    weights = law(replace(query, W=query.W + 1) if broken else query, rankings)
    mean = weights @ query.step(rankings, eta)
    yield equal(mean, torch.zeros(len(query.W)), rounding((n + 2) * query.effort + len(rankings), query.longest(eta)))
