"""Twins of ``Dpo.v``, chapter 14: direct preference optimisation needs no row of squares."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.distributions import Normal

from icalign import plackett_luce_nll
from icalign.constructions import direct
from icalign.constructions.elimination import C
from icalign.spec import Block
from icalign.symbols import W, d_x, d_y, eta

from . import Draw, Outcome, equal, given, rounding, twin
from ._drawn import Query, attention, logits, size, tokens, transformer

HEAD = Block(heads=(direct.field,))


def log_density(W: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Log of the density of N(Wx, I/2) at every y, by torch.distributions."""
    return Normal(W @ x, 0.5**0.5).log_prob(y).sum(-1)


def implicit_rewards(beta: float, W: Tensor, W_ref: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """β log(π/π_ref)."""
    return beta * (log_density(W, x, y) - log_density(W_ref, x, y))


def reward_rounding(beta: float, query: Query, W_ref: Tensor) -> float:
    """Of implicit rewards: residuals of d_x + 2 roundings, their squares, two constants below 1, d_y + 3 more."""
    reach = query.reach + Query(W_ref, query.x, query.y).reach
    return rounding(2 * query.W.shape[1] + len(query.W) + 10, abs(beta) * (reach**2 + 2 * len(query.W)))


@twin
def dpo_needs_no_square(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The implicit reward is 2β⟨(W − W_ref)x, y⟩ + c for every y, c = β(‖W_ref x‖² − ‖Wx‖²). Broken: without the 2."""
    query, beta = Query.drawn(draw, 6, draw.number(0, 2)), draw.number(-2, 2)
    W_ref = query.W + draw.number(0, 2) * draw.normal(*query.W.shape)
    found = implicit_rewards(beta, query.W, W_ref, query.x, query.y)
    constant = beta * ((W_ref @ query.x).square().sum() - (query.W @ query.x).square().sum())
    slope = (1 if broken else 2) * beta * query.y @ ((query.W - W_ref) @ query.x)
    yield equal(found, slope + constant, 2 * reward_rounding(beta, query, W_ref))  # both sides


@twin
def dpo_head(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The logit of any tokens with one_i = 1 is 2β⟨(W − W_ref)x_i, y_j⟩ − C·flag_j. Broken: + C·flag_j."""
    n, _ = size(draw, 1)
    query, beta, mask = Query.drawn(draw, n), draw.number(-2, 2), draw.number(-5, 5)
    W_ref = draw.normal(*query.W.shape)
    values = {d_x: query.W.shape[1], d_y: len(query.W), W: query.W, direct.W_ref: W_ref}
    values |= {direct.beta: beta, eta: draw.number(-1, 1), C: mask}
    X, rows = tokens(direct.stream, values, n, draw, one=1)
    x, y, flag = [X[:, rows[name]] for name in ("x", "y", "flag")]
    given(X[:, rows["one"]] == 1)
    product = 2 * beta * (x @ (query.W - W_ref).mT) @ y.mT
    sizes = 2 * abs(beta) * (x.abs() @ (query.W.abs() + W_ref.abs()).mT) @ y.abs().mT, mask * flag
    # both sides: the weights 2β(W − W_ref) and their products, d_x + d_y + 4, then the flag
    allowed = rounding(2 * (sum(query.W.shape) + 5), *sizes)
    found = logits(attention(direct.field, direct.stream, values), X)
    yield equal(found, product + (1 if broken else -1) * mask * flag.mT, allowed)


@twin
def dpo_head_weights(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """With no flag set the attention is a softmax of implicit rewards. Broken: of β log π, without the reference."""
    n, _ = size(draw, 1)
    query, beta = Query.drawn(draw, n), draw.number(-1, 1)
    W_ref = draw.normal(*query.W.shape)
    values = {d_x: query.W.shape[1], d_y: len(query.W), W: query.W, direct.W_ref: W_ref}
    values |= {direct.beta: beta, eta: draw.number(0, 1), C: draw.number(-5, 5)}
    model = transformer((HEAD,), direct.stream, values)
    X, rows = tokens(direct.stream, values, n, draw, one=1, flag=0, y=query.y)
    (weights,) = model.attention(X)[0]
    for i in range(n):
        x = X[i, rows["x"]]
        rewards = implicit_rewards(beta, query.W, W_ref, x, query.y)
        if broken:
            rewards = beta * log_density(query.W, x, query.y)
        # an error of the rewards is one of the logarithm of a weight, on either side and in its normalisation
        allowed = 4 * reward_rounding(beta, Query(query.W, x, query.y), W_ref)
        yield equal(weights[i], rewards.softmax(-1), allowed + rounding(2 * (n + 3 + rewards.abs().max()), 1))


@twin
def dpo_gradient(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """dL/dt along V is ⟨2β Σ_{k<N} (μ_k − y_τ(k))xᵀ, V⟩, with tails of implicit rewards. Broken: without the β."""
    n, _ = size(draw, 1)
    query, places, beta = Query.drawn(draw, n, draw.number(0, 1.5)), draw.permutation(n), draw.number(-1, 1)
    W_ref, V = draw.normal(*query.W.shape), draw.normal(*query.W.shape)
    t = torch.zeros((), dtype=torch.float64, requires_grad=True)
    loss = plackett_luce_nll(
        implicit_rewards(beta, query.W + t * V, W_ref, query.x, query.y), -places.argsort().double()
    )
    (slope,) = torch.autograd.grad(loss, t)
    rewards = implicit_rewards(beta, query.W, W_ref, query.x, query.y)
    pull = (query.tail_means(places, rewards) - query.y[places])[: n - 1].sum(0)
    gradient = 2 * (1 if broken else beta) * torch.outer(pull, query.x)
    # two residuals of either policy for every term; weights with the rounding of the rewards, on both sides
    terms = 8 * abs(beta) * n * query.reach * float(query.x.norm() * V.norm())
    weights = 4 * reward_rounding(beta, query, W_ref) + rounding(2 * query.effort, 1)
    yield equal(slope, (gradient * V).sum(), weights * terms)
