"""Chapter 6: fewer blocks, fewer terms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from icalign import plackett_luce_nll
from icalign.constructions import elimination
from icalign.transformer import Transformer

from . import Draw, Outcome, at_most, equal, given, holds, rounding, twin
from .theorem33 import LOG_5, Prompt, head_operations, is_unit, some_prompt, some_weights


def top_slope(it: Prompt, places: int) -> Tensor:
    """∇ of −log P(first K places) by autograd, P summed over the rankings that begin as τ does."""
    parameters = it.weights.matrix.requires_grad_()
    score = -(parameters @ it.x - it.y).square().sum(-1)
    order = torch.tensor(list(itertools.permutations(range(it.responses))))
    order = order[(order == it.tau)[:, :places].all(-1)]
    falling = -torch.arange(it.responses, dtype=torch.float64).expand(order.shape)
    loss = -torch.logsumexp(-plackett_luce_nll(score[order], falling), 0)
    return torch.autograd.grad(loss, parameters)[0]


def top_rounding(it: Prompt, size: float) -> float:
    """Of a slope that is a sum over at most N! rankings of N tails each, and of the N tail means on the other side."""
    dim_y, dim_x = it.weights.matrix.shape
    reach = float(it.weights.matrix.norm() * it.x.norm() + it.y.norm(dim=-1).max())
    tails = it.responses * head_operations(it.responses, dim_x + dim_y + 4, reach * reach)
    return rounding(2 * tails + math.factorial(it.responses), 2 * it.responses * reach * size)


@twin
def partial_sums_top_k_gradient(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The slope of −log P(first K places) along V is ⟨2Σ_{k<K} (μ_k − y_τ(k)) xᵀ, V⟩. Broken: μ_{k+1} for μ_k.

    For any x and any K, also K > N.
    """
    responses = draw.integer(1, 5)
    it = some_prompt(draw, some_weights(draw, responses, 1.0), responses)
    it = replace(it, x=draw.normal(len(it.x)))
    V, shift = draw.normal(*it.weights.matrix.shape), 1 if broken else 0
    pulls = [it.tail_mean(min(k + shift, responses - 1)) - it.y[it.tau[k]] for k in range(responses)]
    for places in range(responses + 2):
        found = 2 * torch.outer(sum(pulls[:places], torch.zeros_like(it.y[0])), it.x)
        slope = (top_slope(it, places) * V).sum()
        yield equal(slope, (found * V).sum(), top_rounding(it, float(it.x.norm() * V.norm())))


@twin
def partial_sums_top_k_step(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The step on −log P(first K places) moves the target by the first K terms. Broken: by the first K−1."""
    responses = draw.integer(1, 5)
    it = some_prompt(draw, some_weights(draw, responses, 1.0), responses)
    given(is_unit(it.x))
    for places in range(responses + 2):
        moved = -it.weights.eta * top_slope(it, places) @ it.x
        yield equal(moved, it.first_terms(max(places - 1, 0) if broken else places), top_rounding(it, it.weights.eta))


@twin
def partial_sums_any_block(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """N−1 equal blocks without any one of them are N−2, with any mask and on any tokens. Broken: are N−1.

    Exactly: the same operations in the same order.
    """
    responses = draw.integer(2, 6)
    w, causal = some_weights(draw, responses, LOG_5), bool(draw.seed % 2)
    block = replace(elimination.block, causal=causal)
    without = Transformer((block,) * (responses - 1), elimination.stream, w.values)
    fewer = Transformer((block,) * (responses - (1 if broken else 2)), elimination.stream, w.values)
    gone = draw.integer(0, responses - 2)
    given(gone < responses - 1)
    del without.blocks[gone]
    X = 0.5 * draw.normal(draw.integer(1, 6), without.rows["u"].stop)
    yield equal(without(X), fewer(X))


@twin
def partial_sums_one_more(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Block N adds 0, up to its part of the bound, and flags the last response; m more add m times what the first did.

    Before it the last alone has no flag; the N-th term is zero. Broken: the blocks that follow add nothing.
    """
    responses, more = draw.integer(1, 5), draw.integer(0, 3)
    w = some_weights(draw, responses, LOG_5 * draw.number(1, 5))
    it = some_prompt(draw, w, responses, split=draw.integer(0, responses) if draw.seed % 2 else None)
    given(*it.fits())
    last = it.tau[-1]
    yield equal(
        it.after(responses - 1, "flag")[:, 0], it.flags(responses - 1), rounding(responses * it.flag_rounding, 1)
    )
    yield holds((it.flags(responses - 1) == 0) == (torch.arange(responses) == last))
    yield equal(it.after(responses, "flag"), 1.0, rounding(responses * it.flag_rounding, 1))
    yield equal(it.y[last], it.tail_mean(responses - 1))
    part = it.error_bound(responses) - it.error_bound(responses - 1)
    added = (it.after(responses) - it.after(responses - 1)).norm(dim=-1)
    yield at_most(added, part, it.rounding(responses) + rounding(4 * responses, it.error_bound(responses)))
    later = it.after(responses) + (0 if broken else more) * it.after(1)
    yield equal(it.after(responses + more), later, it.rounding(responses + more))
