"""Twins of ``ShortPrefix.v``, chapter 12: a short prefix is counted again."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

import torch

from icalign.constructions import causal
from icalign.constructions.causal_printed import greedy_round
from icalign.symbols import N, W, d_x, d_y, eta

from . import Draw, Outcome, at_most, equal, given, holds, rounding, twin
from ._drawn import attention, ranks, size, tokens, transformer, visible
from .masked_block import field_products, numbers, record_products


@twin
def short_prefix_recount_common_shift(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """If the record of a token holds one number at all that it sees, both heads attend as if it were empty.
    Broken: at all but one that it sees."""
    n, _ = size(draw, 1)
    values = numbers(draw, n)
    sees, i, a = visible(draw, n), draw.integer(0, n - 1), draw.number(-4, 4)
    if draw.seed % 3 == 0:
        i = n - 1  # the last one sees all
    scale = 2.0 ** torch.tensor([draw.integer(-2, 2) for _ in range(n)]).double()  # powers of 2: products are exact
    X, rows = tokens(causal.stream, values, n, draw, p=scale.diag())
    X[i, rows["one"]] = 1
    X[i, rows["m"]] = draw.normal(n).where(~sees[i], a / scale)
    products, _ = record_products(X, rows)
    given(X[i, rows["one"]] == 1, products[i, sees[i]] == a)
    if broken:
        X[i, rows["m"]][sees[i].nonzero()[-1]] += 2
    Y = X.clone()
    Y[i, rows["m"]] = 0
    score, winner = field_products(X, rows, values)[1][i].max(), values[causal.gamma_1] * X[:, rows["r"]].abs().max()
    masks = abs(a) * max(abs(values[causal.c]), abs(values[causal.c_field]))
    # logits of n + d_x + d_y + 4 products with their size in exp; a softmax of n
    logit = abs(winner) + 2 * score + X[:, rows["sq"]].abs().max() + masks
    allowed = rounding(4 * (n + values[d_x] + values[d_y] + 6) * logit + 2 * n + 6, 1)
    for head in (causal.printed_winner, causal.printed_field):
        run = attention(head, causal.stream, values)
        yield equal(run.weights(X, sees)[i], run.weights(Y, sees)[i], allowed)


def hot(n: int, rounds: int, factor: float, delta: float, epsilon: float) -> float:
    """γ₁ from which on e = N e^{−γ₁δ/2} is at most ε/(K + 1) and δ/(4|γ₂|K + 1); γ₂ is the factor."""
    target = min(epsilon / (rounds + 1), delta / (4 * abs(factor) * rounds + 1))
    return max(0.0, 2 * log(n / target) / delta)


@twin
def short_prefix_recount_greedy(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """If w_k leads in r − γ₂n by δ in every round k, n the times taken before, then for every ε it gets 1 − ε of the
    attention, and the record is within ε of n; here from :func:`hot` on. Broken: the record of round k holds w_k."""
    n, _ = size(draw, 1)
    i, rounds, factor = draw.integer(0, n - 1), draw.integer(1, 2 * n), draw.number(-1, 3)
    r, counts, taken = draw.normal(n), torch.zeros(n, dtype=torch.float64), []
    history, delta = [counts], 1.0
    for _ in range(rounds):
        value = (r - factor * counts)[: i + 1]
        best = value.sort(descending=True)
        delta = min(delta, float(best.values[0] - best.values[1])) if i else delta
        taken.append(int(best.indices[0]))
        counts = counts + torch.eye(n, dtype=torch.float64)[taken[-1]]
        history.append(counts)
    delta *= 1 - 1e-9
    given(delta > 0)
    y, x = draw.normal(n, 2), draw.normal(2)
    values = {d_x: 2, d_y: 2, N: n, W: draw.normal(2, 2), eta: draw.number(-1, 1), causal.c_field: draw.number(-2, 2)}
    for epsilon in (0.25, 1e-6):
        gamma_1 = draw.number(1, 2) * hot(n, rounds, factor, delta, epsilon)
        values |= {causal.gamma_1: gamma_1, causal.c: gamma_1 * factor}
        sq = y.square().sum(-1, keepdim=True)
        X, rows = tokens(causal.stream, values, n, x=x, y=y, sq=sq, r=r[:, None], one=1, p=torch.eye(n))
        block = transformer((causal.printed,), causal.stream, values).blocks[0]
        # logits of n + 2 products with their size in exp; what a round misses is small, and so is its rounding
        logit = gamma_1 * (r.abs().max() + abs(factor) * rounds)
        allowed = rounding(4 * (n + 4) * logit + 2 * n + 8, 1) * epsilon + rounding(4 * n * (rounds + 1), rounds + 1)
        for k, w in enumerate(taken):
            weight = block.weights(X)[0][i, w]
            yield at_most(weight, 1.0, rounding(2 * n, 1))
            yield at_most(1 - epsilon, weight, allowed)
            wanted = history[k + 1 if broken else k][: i + 1]
            yield at_most((X[i, rows["m"]][: i + 1] - wanted).abs(), epsilon, allowed)
            X = block(X)
        yield at_most((X[i, rows["m"]][: i + 1] - history[-1][: i + 1]).abs(), epsilon, allowed)


@twin
def short_prefix_recount_cyclic(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """When the a best of a prefix have been taken q + 1 times and the others q times, the response in place a has the
    strictly largest r − γ₂n, for all a, iff γ₂ exceeds the spread of the prefix. Broken: iff it is at least that."""
    n, turn = size(draw, 2)
    q, r = draw.integer(0, 3), torch.arange(n).double()[draw.permutation(n)] * draw.integer(1, 8) / 8
    r = r + draw.integer(-16, 16) / 8  # multiples of 1/8: nothing is rounded
    places = r.argsort(descending=True)
    spread = float(r[places[0]] - r[places[-1]])
    factor = spread + (turn % 3 - 1) * draw.integer(1, 8) / 8
    given(ranks(r, places))
    ahead, selected = True, True
    for a in range(n):
        counts = q + (torch.arange(n) < a).long()
        value = r[places] - factor * counts
        ahead &= bool((value < value[a])[torch.arange(n) != a].all())
        of_response = torch.zeros(n, n, dtype=torch.long)
        of_response[-1, places] = counts
        if factor >= 0:
            selected &= bool(greedy_round(r, of_response, factor)[0][-1] == places[a])
    wide = factor >= spread if broken else factor > spread
    yield holds(ahead == wide)
    if 0 <= factor != spread:  # then no two responses tie for the largest value, and the package selects the same
        yield holds(selected == wide)


@twin
def short_prefix_recount_ratio(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Two weights of the second head have the ratio e^{Z_j − Z_l − C(n_j − n_l)}, n_j = ⟨m_i, p_j⟩, if sq = ‖y‖².
    Broken: + C(n_j − n_l)."""
    n, _ = size(draw, 1)
    values = numbers(draw, draw.integer(1, 4))
    sees = visible(draw, n)
    X, rows = tokens(causal.stream, values, n, draw, one=1)
    X[:, rows["sq"]] = X[:, rows["y"]].square().sum(-1, keepdim=True)
    products, sizes = record_products(X, rows)
    scores, score_sizes = field_products(X, rows, values)
    sq, mask = X[:, rows["sq"]].mT, values[causal.c_field]
    given(X[:, rows["one"]] == 1)
    logit = 2 * scores - sq + (1 if broken else -1) * mask * products
    weights = attention(causal.printed_field, causal.stream, values).weights(X, sees)
    size_of_logit = 2 * score_sizes.max() + sq.max() + abs(mask) * sizes.max()
    for i in range(n):
        w, z = weights[i, sees[i]], logit[i, sees[i]]
        # of the logarithm of a ratio: two logits, on both sides, and their size in exp
        allowed = rounding(4 * (values[N] + values[d_x] + values[d_y] + 6) * size_of_logit + 2 * n + 6, 1)
        yield equal((w[:, None] / w).log(), z[:, None] - z, allowed)


@twin
def short_prefix_recount_cycles(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Σ_{k < Qn+s} t(k mod n) = Q Σ_{k<n} t(k) + Σ_{k<s} t(k) for s < n. Broken: Q − 1 for Q."""
    n, _ = size(draw, 1)
    Q, s, t = draw.integer(0, 4), draw.integer(0, n - 1), draw.normal(n)
    given(s < n)
    rounds = torch.arange(Q * n + s) % n
    cycles = (Q - 1 if broken else Q) * t.sum() + t[:s].sum()
    yield equal(t[rounds].sum(), cycles, rounding(Q * n + s + n + 3, (Q + 1) * t.abs().sum()))
