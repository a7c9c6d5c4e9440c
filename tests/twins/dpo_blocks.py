"""Twins of ``DpoBlocks.v``, chapter 14: N − 1 blocks with the head of DPO make its gradient step."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

import torch

from icalign import plackett_luce_nll
from icalign.bounds import elimination_mask, plackett_luce_error
from icalign.constructions import direct, elimination
from icalign.symbols import Delta, W, d_x, d_y, eta, gamma

from . import Draw, Outcome, at_most, given, rounding, twin
from ._drawn import Query, Rewards, ranks, size, tokens, transformer
from .dpo import implicit_rewards, reward_rounding


@twin
def dpo_blocks(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """‖u − ΔWx‖ is at most the bound of ``theorem_3_3`` with ηβ for η and the spread of the logits for R_Z, ΔW = −η∇L
    by autograd through implicit rewards. Attained by two responses Δ apart. Broken: a quarter of it."""
    n, turn = size(draw, 2)
    n = 2 if turn == 1 else n
    query, rewards, beta = Query.drawn(draw, n), Rewards.drawn(draw, n, tight=turn == 1), draw.number(0.1, 1)
    W_ref, step, places = draw.normal(*query.W.shape), draw.number(0.1, 1), rewards.places(n)
    logits = 2 * beta * query.y @ ((query.W - W_ref) @ query.x)
    spread_Z, D = float(logits.max() - logits.min()), float(query.distances.max())
    warm = log(5) / rewards.gap * (1 + 1e-12) * (1 if turn == 1 else draw.number(1, 3))
    mask, B = draw.number(-1, 9), elimination_mask(rewards.gap, rewards.spread)
    values = {d_x: query.W.shape[1], d_y: len(query.W), W: query.W, direct.W_ref: W_ref, direct.beta: beta}
    values |= {eta: step, gamma: warm, Delta: rewards.gap, elimination.R: rewards.spread}
    values |= {elimination.B: B, elimination.C: mask}
    given(step * beta >= 0, log(5) <= warm * rewards.gap, 1.5 + 2 * rewards.spread / rewards.gap <= B, rewards.fit)
    given(ranks(rewards.r, places), (query.x.norm() - 1).abs() <= rounding(4, 1), query.distances <= D)
    model = transformer((direct.block,) * (n - 1), direct.stream, values)
    X, rows = tokens(direct.stream, values, n, x=query.x, y=query.y, r=rewards.r[:, None], one=1)
    leaf = query.W.clone().requires_grad_()
    scores = implicit_rewards(beta, leaf, W_ref, query.x, query.y)
    (gradient,) = torch.autograd.grad(plackett_luce_nll(scores, -places.argsort().double()), leaf)
    error = (model(X)[:, rows["u"]] + step * gradient @ query.x).norm(dim=-1)
    bound = plackett_luce_error(step * beta, warm, mask, rewards.gap, rewards.spread, spread_Z, n, D)
    # the logits of both heads, flags that a step of relus rounds, and B and C times these; the rewards' own rounding
    hot = warm * 4 * (rewards.largest + rewards.spread + rewards.gap) + abs(mask) + 2 * float(logits.abs().max())
    effort = n * (2 * (sum(query.W.shape) + 12) * (hot + B) + 4 * n + 16)
    allowed = rounding(effort, 8 * step * beta * n * query.reach)
    allowed += 8 * step * beta * n * query.reach * reward_rounding(beta, query, W_ref)
    yield at_most(error, (0.25 if broken else 1) * bound, allowed)
