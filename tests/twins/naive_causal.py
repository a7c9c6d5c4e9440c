"""Twins of ``NaiveCausal.v``, chapter 9: the block of Theorem 3.3 under a causal mask."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp

import torch

from icalign.constructions import causal_naive, elimination
from icalign.spec import Block
from icalign.symbols import Delta, d_x, d_y, eta, gamma

from . import Draw, Outcome, at_most, given, rounding, twin
from ._drawn import Rewards, share, size, tokens, transformer

WINNER = Block(heads=causal_naive.block.heads[:1], causal=True)


@twin
def records_falsely_maximal(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A running maximum at position i, from 0, attends to itself but for q/(1+q), q = i·e^{−γΔ}; attained for i = 1 and
    for γ = 0. Only the rewards before it are Δ from its own. Broken: i − 1 in place of i."""
    n, turn = size(draw, 1)
    rewards = Rewards.drawn(draw, n, tight=draw.seed % 2 == 0)
    r, gap, heat = rewards.r.clone(), rewards.gap, draw.number(0, 12)
    if turn == 1:  # ties, and a Δ that is not positive
        r[draw.integer(0, n - 1)], gap = r[0], draw.integer(-2, 0) / 8
        heat *= draw.integer(0, 1)
    r = torch.cat([r, r[draw.integer(0, n - 1)][None] - gap / 4])  # the last one too close to another
    values = {d_x: 1, d_y: 1, gamma: heat, Delta: gap, elimination.R: rewards.spread, eta: draw.number(0, 1)}
    model = transformer((WINNER,), elimination.stream, values)
    X, _ = tokens(elimination.stream, values, n + 1, y=draw.normal(n + 1, 1), r=r[:, None], one=1)
    (weights,) = model.attention(X)[0]
    for i in range(n + 1):
        if bool((r[:i] < r[i]).all()):
            given(heat >= 0, (r[i] - r[:i]).abs() >= gap)
            limit = share(max(i - broken, 0) * exp(-heat * gap))
            # the logit, its size in exp, i + 1 of them and their quotient, on both sides
            yield at_most(1 - weights[i, i], limit, rounding(6 * heat * (float(r.abs().max()) + abs(gap)) + n + 9, 1))
