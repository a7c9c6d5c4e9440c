"""Chapter 2: the loss and its gradient, by autograd through the package, and by the formula of Eq. 9."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import icalign
from icalign import bounds

from . import Draw, Outcome, equal, given, rounding, twin
from .alignment_task import draw_scores, draw_task, factors, law, loss_noise, nll, reach, rest, roundings, score

# ── What runs ────────────────────────────────────────────────────────────────────────────────────────────────────────


def loss(W: Tensor, x: Tensor, y: Tensor, order: Tensor) -> Tensor:
    """−log P_PL at the scores of the reward model."""
    return nll(score(W, x, y), order)


def derivative(f: Callable[[Tensor], Tensor], times: int = 1) -> Tensor:
    """Of f(t) at t = 0, by autograd."""
    t = torch.zeros((), dtype=torch.float64, requires_grad=True)
    value = f(t)
    for _ in range(times):
        (value,) = torch.autograd.grad(value, t, create_graph=True)
    return value.detach()


def slope(W: Tensor, V: Tensor, x: Tensor, y: Tensor, order: Tensor) -> Tensor:
    """The derivative of the loss along V, at W."""
    return derivative(lambda t: loss(W + t * V, x, y, order))


def autograd(W: Tensor, x: Tensor, y: Tensor, order: Tensor) -> Tensor:
    """∇_W of the loss."""
    W = W.clone().requires_grad_()
    return torch.autograd.grad(loss(W, x, y, order), W)[0]


def pull(W: Tensor, x: Tensor, y: Tensor, order: Tensor, k: int) -> Tensor:
    """μ_k − y_τ(k): half the gradient of the k-th term of the loss by the prediction Wx."""
    prediction, one = (W @ x)[:, None].requires_grad_(), x.new_ones(1)
    s = score(prediction, one, y)
    return torch.autograd.grad(rest(s, order, k) - rest(s, order, k + 1), prediction)[0][:, 0] / 2


def step(W: Tensor, x: Tensor, y: Tensor, order: Tensor, eta: float) -> Tensor:
    """ΔW = −η∇L for x ≠ 0, by the closed form of the package.

    Its queries have length 1: the length of x goes to W, and ΔW takes it back.
    """
    size = x.norm()
    rewards = -order.argsort().double()
    task = icalign.AlignmentTask((x / size)[None], y[None], rewards[None], W * size)
    found: Tensor = eta * size * icalign.gradient_step(task, 1.0)
    return found


# ── The formulas ─────────────────────────────────────────────────────────────────────────────────────────────────────


def beta(s: Tensor, order: Tensor, k: int) -> Tensor:
    """β^k by place: the softmax of the scores in place k or worse, zero before."""
    weights = torch.zeros_like(s)
    weights[k:] = torch.softmax(s[order[k:]], 0)
    return weights


def squares(W: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """−‖Wx − y‖², in plain torch."""
    return -(y - W @ x).square().sum(-1)


def tail_mean(W: Tensor, x: Tensor, y: Tensor, order: Tensor, k: int) -> Tensor:
    """μ_k, the mean of the responses in place k or worse."""
    return beta(squares(W, x, y), order, k) @ y[order]


def gradient(W: Tensor, x: Tensor, y: Tensor, order: Tensor, behind: int = 0) -> Tensor:
    """2 Σ_{k<N} (μ_k − y_τ(k)) xᵀ; behind = 1 takes the mean of those behind k."""
    total = torch.zeros_like(y[0])
    for k in range(len(y) - 1):
        total = total + tail_mean(W, x, y, order, k + behind) - y[order[k]]
    return 2 * torch.outer(total, x)


# ── What they round ──────────────────────────────────────────────────────────────────────────────────────────────────


def slope_noise(W: Tensor, x: Tensor, y: Tensor) -> float:
    """How far two gradients of the loss can be apart, in Frobenius norm, if they are computed on two ways."""
    noise = bounds.gradient_rounding(torch.float64, len(y), x.shape[0], y.shape[-1], reach(W, x, y))
    return noise * float(x.norm())  # it is for a unit query


def along_noise(W: Tensor, V: Tensor, x: Tensor, y: Tensor) -> float:
    """The same of slopes in the direction V, with the roundings of ⟨G, V⟩, where ‖G‖ ≤ 4N·reach·‖x‖."""
    largest = 4 * len(y) * reach(W, x, y) * x.norm() * V.norm()
    return slope_noise(W, x, y) * float(V.norm()) + rounding(V.numel() + 1, largest)


# ── The claims ───────────────────────────────────────────────────────────────────────────────────────────────────────


@twin
def pl_last_term_factor(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The factor of the last place is 1, k + 1 = N. Broken: also of the last but one, if there is one."""
    n = 1 + draw.seed % 5
    s, order, k = draw_scores(draw, n), draw.permutation(n), n - 1
    given(k + 1 == n)
    if broken and n > 1:
        k = n - 2
    yield equal((rest(s, order, k + 1) - rest(s, order, k)).exp(), 1)
    yield equal(factors(s, order)[k], 1)


@twin
def pl_last_term_factors(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """So the law has N − 1 factors. Broken: N − 2."""
    n = draw.seed % 6
    s, order = draw_scores(draw, n), draw.permutation(n)
    yield equal(law(s, order), factors(s, order)[: max(0, n - 1 - broken)].prod(), rounding(roundings(s), 1))


@twin
def pl_last_term(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """μ_N = y_τ(N), and −2η y_τ(N) + 2η μ_N = 0. Broken: at the last place but one, if there is one."""
    W, x, y, order = draw_task(draw)
    n, eta = len(y), draw.number(-2, 2)
    k = n - 1
    given(k + 1 == n)
    if broken and n > 1:
        k = n - 2
    yield equal(pull(W, x, y, order, k), 0)  # μ_N − y_τ(N), as the package has it
    yield equal(-2 * eta * y[order[k]] + 2 * eta * tail_mean(W, x, y, order, k), 0)


@twin
def pl_gradient_slope(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A score has the derivative ⟨2(y − Wx)xᵀ, V⟩ along V. Broken: without the 2."""
    W, x, y, _ = draw_task(draw)
    V = draw.normal(*W.shape)
    formula = (1 if broken else 2) * torch.outer(y[0] - W @ x, x).mul(V).sum()
    # 2⟨Vx, y − Wx⟩ both ways: two products with x, one of length d_y, or one of all entries; sizes ‖V‖‖x‖·reach
    allowed = rounding(2 * (2 * len(x) + len(W) + V.numel() + 6), 2 * V.norm() * x.norm() * reach(W, x, y))
    yield equal(derivative(lambda t: score(W + t * V, x, y[:1])[0]), formula, allowed)


@twin
def pl_gradient(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The loss has the derivative ⟨2Σ_{k<N}(μ_k − y_τ(k))xᵀ, V⟩. Broken: with the mean of those behind k, without k."""
    W, x, y, order = draw_task(draw)
    G = gradient(W, x, y, order, behind=int(broken))
    for V in (draw.normal(*W.shape), G):
        yield equal(slope(W, V, x, y, order), G.mul(V).sum(), along_noise(W, V, x, y))


@twin
def pl_gradient_targets(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """−ΔW x = ‖x‖² Σ_{k<N} g^k, g^k = −2η y_τ(k) + 2η μ_k. Broken: without ‖x‖², as if x had length 1."""
    W, x, y, order = draw_task(draw)
    eta = draw.number(-2, 2)
    shifts = [2 * eta * (tail_mean(W, x, y, order, k) - y[order[k]]) for k in range(len(y) - 1)]
    moved = (1 if broken else x.square().sum()) * sum(shifts, torch.zeros_like(y[0]))
    # slopes in the directions a xᵀ of the entries a, with ‖x‖² and η rounded once more each
    size = 4 * len(y) * reach(W, x, y) * float(x.square().sum())
    allowed = abs(eta) * (slope_noise(W, x, y) * float(x.norm()) + rounding(2 * len(x) + 8, size))
    yield equal(eta * autograd(W, x, y, order) @ x, moved, allowed)
    if x.any():
        yield equal(-step(W, x, y, order, eta) @ x, moved, allowed)


@twin
def target_shift_scores(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The score of y after the step ΔW is that of y − ΔW x before. Broken: of y + ΔW x."""
    W, x, y, _ = draw_task(draw)
    dW = draw.normal(*W.shape)
    shifted = y + (1 if broken else -1) * (dW @ x)
    # a product with x, sums and squares, twice as the square doubles it; and W + ΔW or y − ΔW x
    allowed = rounding(2 * (2 * len(x) + y.shape[-1] + 8), reach(W.abs() + dW.abs(), x, y) ** 2)
    yield equal(score(W + dW, x, y), score(W, x, shifted), allowed)


@twin
def target_shift(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The loss after the step ΔW is that of the targets y_j − ΔW x before. Broken: y_j + ΔW x."""
    W, x, y, order = draw_task(draw)
    dW = draw.normal(*W.shape)
    shifted = y + (1 if broken else -1) * (dW @ x)
    # two losses, twice each: W + ΔW and y − ΔW x are rounded, which moves scores as the roundings of Wx − y do
    yield equal(loss(W + dW, x, y, order), loss(W, x, shifted, order), 4 * loss_noise(W.abs() + dW.abs(), x, y))
