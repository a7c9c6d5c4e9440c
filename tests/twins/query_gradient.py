"""Chapter 8, Multiple queries II: the gradient step on the losses of M queries that share one W."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from icalign import plackett_luce_nll

from . import Draw, Outcome, equal, given, holds, rounding, twin
from .query_selection import overlaps, pairs
from .theorem33 import head_operations, is_unit


@dataclass(frozen=True)
class Losses:
    """M queries x with N responses y each, their rankings τ, and the W that they share."""

    W: Tensor
    x: Tensor
    y: Tensor
    tau: Tensor

    @property
    def gradient(self) -> Tensor:
        """∇ Σ_b L_b by autograd."""
        W = self.W.clone().requires_grad_()
        scores = -((self.x @ W.T)[:, None] - self.y).square().sum(-1)
        falling = -torch.arange(self.tau.shape[1], dtype=torch.float64).expand(self.tau.shape)
        return torch.autograd.grad(plackett_luce_nll(scores.gather(-1, self.tau), falling).sum(), W)[0]

    def pull(self, shift: int = 0) -> Tensor:
        """G_b = Σ_{k<N} (y_τ(k) − μ_k), one row a query; shifted, the means are those of later tails."""
        found = torch.zeros(len(self.x), self.y.shape[2], dtype=torch.float64)
        for b, (x, y) in enumerate(zip(self.x, self.y, strict=True)):
            ranked = y[self.tau[b]]
            z = 2 * ranked @ (self.W @ x) - ranked.square().sum(-1)
            for k in range(len(ranked) - 1):
                found[b] += ranked[k] - torch.softmax(z[k + shift :], 0) @ ranked[k + shift :]
        return found

    def rounding(self, size: float) -> float:
        """Of M·N softmax means of the responses on either side."""
        (queries, responses), (dim_y, dim_x) = self.tau.shape, self.W.shape
        radius = float(self.y.norm(dim=-1).max())
        reach = float(self.W.norm() * self.x.norm(dim=-1).max()) + radius
        means = queries * responses * head_operations(responses, dim_x + dim_y + 4, reach * reach)
        return rounding(2 * means, 2 * radius * size)


def some_losses(draw: Draw, x: Tensor) -> Losses:
    """Random responses to these queries, ranked at random."""
    responses, dim_y = draw.integer(1, 5), draw.integer(1, 3)
    tau = torch.stack([draw.permutation(responses) for _ in x])
    return Losses(draw.normal(dim_y, x.shape[1]), x, draw.normal(len(x), responses, dim_y), tau)


def orthonormal(draw: Draw) -> Tensor:
    """Up to four of them."""
    dim = draw.integer(1, 4)
    frame: Tensor = torch.linalg.qr(draw.normal(dim, dim)).Q
    return frame[: draw.integer(1, dim)]


def cancelling(draw: Draw) -> Losses:
    """x¹ = (x² + x³)/√2, x² ⊥ x³, all responses to x¹ equal, y³ = −y², Wx³ = −Wx²: G₁ = 0, G₃ = −G₂."""
    dim, responses, dim_y = draw.integer(2, 4), draw.integer(2, 5), draw.integer(1, 3)
    second, third = torch.linalg.qr(draw.normal(dim, dim)).Q[:2]
    first = (second + third) / 2**0.5
    W, y = draw.normal(dim_y, dim), draw.normal(responses, dim_y)
    y = torch.stack([y[:1].expand_as(y), y, -y])
    tau = draw.permutation(responses).expand(3, -1)
    return Losses(W - torch.outer(W @ first, first), torch.stack([first, second, third]), y, tau)


@twin
def mq_gradient_slope(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The slope of Σ_b L_b along V is ⟨2 Σ_b Σ_{k<N} (μ_k^b − y_τ(k)^b) x^bᵀ, V⟩. Broken: μ_{k+1} for μ_k."""
    it = some_losses(draw, draw.normal(draw.integer(1, 4), draw.integer(1, 4)))
    V = draw.normal(*it.W.shape)
    formula = -2 * it.pull(shift=1 if broken else 0).T @ it.x
    allowed = it.rounding(float(2 * it.x.norm() * V.norm()))
    yield equal((it.gradient * V).sum(), (formula * V).sum(), allowed)


@twin
def mq_gradient(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """ΔW x^a = 2η Σ_b ⟨x^b, x^a⟩ G_b. Broken: the own term alone, b = a."""
    it, eta = some_losses(draw, draw.normal(draw.integer(1, 4), draw.integer(1, 4))), draw.number(-1, 1)
    inner = torch.diag(it.x.square().sum(-1)) if broken else overlaps(it.x)
    allowed = it.rounding(abs(2 * eta) * float(it.x.square().sum()))
    yield equal(-eta * it.x @ it.gradient.T, 2 * eta * inner @ it.pull(), allowed)


@twin
def mq_own_term_iff(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """η ≠ 0, unit queries: ΔW x^a = 2ηG_a for all a iff Σ_{b≠a} ⟨x^b, x^a⟩G_b = 0 for all a. Broken: iff the queries
    are orthogonal.

    Either side is zero up to rounding or larger by orders: for orthonormal queries, for three that cancel without being
    so, for random ones.
    """
    eta, kind = draw.number(0.01, 1) * (-1) ** (draw.seed // 3), draw.seed % 3
    random = torch.stack([draw.unit(4) for _ in range(draw.integer(1, 4))])
    it = cancelling(draw) if kind == 0 else some_losses(draw, orthonormal(draw) if kind == 1 else random)
    given(eta != 0, is_unit(it.x))
    others = overlaps(it.x) * (1 - torch.eye(len(it.x)))
    missing = (-eta * it.x @ it.gradient.T - 2 * eta * it.pull()).abs().max()
    cross = others.abs().max() if broken else (others @ it.pull()).abs().max()
    allowed = it.rounding(len(it.x))
    given((missing <= 2 * abs(eta) * allowed) | (missing > 1e6 * abs(eta) * allowed))
    yield holds((missing <= 2 * abs(eta) * allowed) == (cross <= allowed))


@twin
def mq_own_term_orthonormal(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Orthonormal queries: ΔW x^a = 2ηG_a. Broken: for all unit queries."""
    x, eta = orthonormal(draw), draw.number(-1, 1)
    x = torch.stack([draw.unit(x.shape[1]) for _ in x]) if broken else x
    it = some_losses(draw, x)
    given(is_unit(x), broken or pairs(overlaps(x)).abs() <= 2.0**-48)
    allowed = it.rounding(abs(2 * eta) * len(x)) + 2.0**-48 * abs(2 * eta) * float(it.pull().norm(dim=-1).sum())
    yield equal(-eta * x @ it.gradient.T, 2 * eta * it.pull(), allowed)
