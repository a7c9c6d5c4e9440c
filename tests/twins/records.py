"""Chapter 9, continued: running maxima of rewards in all orders of arrival, found by ``icalign.patience``."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from icalign.patience import descents
from icalign.rankings import stirling

from . import Draw, Outcome, equal, given, holds, rounding, twin
from .alignment_task import rankings


def draw_rewards(draw: Draw) -> Tensor:
    """N rewards, N from 0 to 6, no two equal: near each other, or of other orders of magnitude."""
    n = draw.seed % 7
    r = draw.normal(n) * (1.0, 1e-9, 1e9)[draw.seed % 3]
    given(r.sort().values.diff() > 0)
    return r


def is_record(r: Tensor) -> Tensor:
    """Which values exceed all before them: those that end no decreasing run but of themselves."""
    return torch.tensor(descents(r.tolist()), dtype=torch.long) == 1


def counts(r: Tensor) -> Tensor:
    """The number of records in each of the N! orders of arrival."""
    return torch.tensor([int(is_record(r[order]).sum()) for order in rankings(len(r))])


# ── The claims ───────────────────────────────────────────────────────────────────────────────────────────────────────


@twin
def records_generating_function(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The mean of z^records over all orders is z(z+1)…(z+N−1)/N!, all z. Broken: (z+1)…(z+N)/N!."""
    r = draw_rewards(draw)
    n, found = len(r), counts(r)
    for z in (0.0, 1.0, draw.number(-2, 2), draw.number(-20, 20)):
        product = math.prod(z + i + broken for i in range(n)) / math.factorial(n)
        # powers, N! additions, a product of N sums; the terms are in all the product at |z|
        size = math.prod(abs(z) + i for i in range(n)) / math.factorial(n)
        allowed = rounding(math.factorial(n) + 3 * n + 4, size)
        yield equal((z ** found.double()).sum() / math.factorial(n), product, allowed)


@twin
def records_law(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The orders with k records are as many as the Stirling number of N and k, all k. Broken: of N and k + 1.

    By the package where N ≥ 1, and by the recursion s(n + 1, k + 1) = s(n, k) + n s(n, k + 1) of the theorem.
    """
    r = draw_rewards(draw)
    n, found = len(r), counts(r)
    falling = stirling(n) if n else [1]
    for k in range(n + 3):
        orders, wanted = int((found == k).sum()), k + broken
        yield holds(orders == recursion(n, wanted))
        yield holds(orders == (falling[n - wanted] if n - len(falling) < wanted <= n else 0))


def recursion(n: int, k: int) -> int:
    """The unsigned Stirling numbers of the first kind."""
    if n == 0:
        return int(k == 0)
    return (recursion(n - 1, k - 1) if k else 0) + (n - 1) * recursion(n - 1, k)


@twin
def records_newcomer(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The newcomer i, last after any order of the others, is a record for one i of the N, which is the same for all
    orders, and adds one record then and none else; these are all the orders. Broken: the least i is that one."""
    r = torch.cat([draw_rewards(draw)[:5], torch.tensor([2e9 + draw.seed], dtype=torch.float64)])
    r = r[draw.permutation(len(r))]
    given(r.sort().values.diff() > 0)
    n, met = len(r) - 1, set()
    best = int(r.argmin() if broken else r.argmax())
    for i in range(n + 1):
        others = torch.tensor([j for j in range(n + 1) if j != i], dtype=torch.long)
        for sigma in rankings(n):
            order = torch.cat([others[sigma], torch.tensor([i])])
            met.add(tuple(order.tolist()))
            before, after = is_record(r[others[sigma]]), is_record(r[order])
            yield holds(bool(after[-1]) == (i == best))
            yield holds(int(after.sum()) == int(before.sum()) + (i == best))
    yield holds(len(met) == math.factorial(n + 1))


@twin
def records_mean(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The mean number of records is H_N = 1 + 1/2 + … + 1/N. Broken: the sum begins with 1/2 and ends with 1/(N+1)."""
    r = draw_rewards(draw)
    n = len(r)
    mean = int(counts(r).sum()) / math.factorial(n)
    yield equal(mean, sum(1 / (k + 1 + broken) for k in range(n)), rounding(2 * n + 1, mean))


@twin
def records_only_last(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A record is the best of all iff there is none after it. Broken: so is what is no record."""
    r = draw_rewards(draw)
    for order in rankings(len(r))[:24]:
        arrived = r[order]
        record = is_record(arrived)
        for i in range(len(r)):
            if record[i] or broken:
                given(broken or record[i])
                best = all(arrived[j] < arrived[i] for j in range(len(r)) if j != i)
                yield holds(best == (not record[i + 1 :].any()))
    if len(r) == 0:
        yield holds(True)  # there is no i
