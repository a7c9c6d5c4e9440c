"""Chapter 2, continued: how curved the loss can be, a safe step size, and which way to read out.

Gradients and curvatures are those of autograd through the package, Λ is ``bounds.smoothness``.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from icalign import bounds

from . import Draw, Outcome, at_most, below, equal, given, rounding, twin
from .alignment_task import draw_task, loss_noise, reach, score
from .convexity import curvature_noise, second, variance
from .gradient_step import along_noise, autograd, loss, slope_noise, step
from .no_minimiser import sending

# ── Instances ────────────────────────────────────────────────────────────────────────────────────────────────────────


def distances(y: Tensor) -> Tensor:
    """‖y_i − y_j‖ of all pairs."""
    found: Tensor = (y[:, None] - y).norm(dim=-1)
    return found


def draw_pair(draw: Draw, shift: float = 0.0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x ≠ 0, two responses, and Wx as far from the one as from the other, but for a shift towards the first."""
    m, d = draw.integer(1, 4), draw.integer(1, 4)
    y, x, order = draw.normal(2, m), draw.normal(d), draw.permutation(2)
    apart = y[order[0]] - y[order[1]]
    across = draw.normal(m)
    across = across - (across @ apart) / (apart @ apart) * apart
    return sending(draw, x, y.mean(0) + across + shift * apart), x, y, order


def draw_valley(draw: Draw, shift: float = 0.01) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Four responses and a Wx near the bottom of a valley of the loss: along the gradient the curvature is about Λ.

    In a plane: Wx is 0, midway between the last two at (±D/2, 0), the others lie at (−D/4, ±D/2) and D = 24, so that
    all tails but the last have half of their weight at either end, but for e^{−36}. The gradient is 0 there. The shift
    is of logits.
    """
    m, d, D = draw.integer(2, 4), draw.integer(1, 4), 24.0
    plane = torch.linalg.qr(draw.normal(m, 2)).Q
    placed = D * torch.tensor([[-0.25, 0.5], [-0.25, -0.5], [0.5, 0.0], [-0.5, 0.0]], dtype=torch.float64) @ plane.mT
    x, order = draw.normal(d), draw.permutation(4)
    return sending(draw, x, shift / (2 * D) * plane[:, 0]), x, placed[order.argsort()], order


def draw_curved(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A task of some kind: as drawn, a pair with equal scores, or the valley."""
    return (draw_task, draw_pair, draw_valley)[draw.seed % 3](draw)


def draw_sloped(draw: Draw, length: float = 1.0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """N ≥ 2, ‖x‖ of the length, and a gradient that is not 0."""
    n, m, d = 2 + draw.seed % 4, draw.integer(1, 4), draw.integer(1, 4)
    while True:
        W, x, y, order = draw.normal(m, d), length * draw.unit(d), draw.normal(n, m), draw.permutation(n)
        if float(autograd(W, x, y, order).norm()) > 0.01:
            return W, x, y, order


def step_noise(W: Tensor, V: Tensor, x: Tensor, y: Tensor, eta: float) -> float:
    """How far L(W + V) − L(W) ∓ η‖G‖² can be off, V = ±ηG: two losses, and G, where ‖G‖ ≤ 4N·reach·‖x‖ at both ends.

    It enters V once and the square twice.
    """
    U = W.abs() + V.abs()
    return 2 * loss_noise(U, x, y) + 12 * len(y) * reach(U, x, y) * float(x.norm()) * eta * slope_noise(U, x, y)


def is_unit(x: Tensor) -> Tensor:
    """‖x‖² = 1 but for rounding: each entry by 2⁻⁵³ after a norm of d + 2 operations, then a square."""
    return (x.square().sum() - 1).abs() <= rounding(2 * len(x) + 8, 1)


def square_noise(W: Tensor, W2: Tensor, x: Tensor, V: Tensor) -> float:
    """Of ‖(W + V)x − W′x‖², of entries: d_x + 3 roundings in each, twice for the square, a sum; both sides."""
    size = ((W.abs() + W2.abs() + V.abs()) @ x.abs()).square().sum()
    return rounding(2 * (2 * len(x) + len(W) + 8), size)


# ── How curved the loss is ───────────────────────────────────────────────────────────────────────────────────────────


@twin
def pl_smooth_popoviciu(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Values in an interval of length ℓ have variance ≤ ℓ²/4, equal for half and half at its ends. Broken: ℓ²/4.01."""
    n = 1 + draw.seed % 6
    v = torch.tensor([draw.integer(-40, 40) / 16 for _ in range(n)], dtype=torch.float64)  # exact, as a and ℓ are
    a, length = float(v.min()), float(v.max() - v.min())
    weights = torch.bincount(torch.tensor([draw.integer(0, n - 1) for _ in range(64)]), minlength=n) / 64.0
    ends = torch.zeros(n, dtype=torch.float64)
    ends[v.argmin()] += 0.5
    ends[v.argmax()] += 0.5
    for beta, slack in ((ends, 0.0), (weights.double(), 0.0), (weights.double(), 0.5)):
        given(beta >= 0, beta.sum() == 1, a - slack <= v, v <= a - slack + (length + 2 * slack))
        bound = (length + 2 * slack) ** 2 / (4.01 if broken else 4)
        yield at_most(variance(beta, v), bound, rounding(2 * n + 8, 4 * v.square().max()))
    yield equal(variance(ends, v), length**2 / 4, rounding(2 * n + 8, 4 * v.square().max()))


@twin
def pl_smooth(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """All ‖y_i − y_j‖ ≤ D: the second derivative along V is at most (N−1)D²‖x‖²‖V‖². Broken: by 1 in 1000 less.

    It is attained for two responses at equal distance from Wx, and for more it is the supremum, which the valley nears.
    """
    W, x, y, order = draw_curved(draw)
    D = float(distances(y).max())
    given(distances(y) <= D)
    ends = torch.outer(y[order[-2]] - y[order[-1]], x) if len(y) > 1 else W
    for V in (draw.normal(*W.shape), ends):
        bound = bounds.smoothness(len(y), D, float(x.norm())) * V.square().sum() * (0.999 if broken else 1)
        yield at_most(second(W, V, x, y, order), bound, curvature_noise(W, V, x, y))


@twin
def pl_smooth_taylor(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """L(W − ηG) ≤ L(W) − (η − Λη²/2)‖G‖², all η. Broken: Λ by 1 in 20 less, which pairs and the valley notice."""
    W, x, y, order = draw_curved(draw)
    D = float(distances(y).max())
    given(distances(y) <= D)
    curved = bounds.smoothness(len(y), D, float(x.norm())) * (0.95 if broken else 1)
    G = autograd(W, x, y, order)
    for times in (0.1, 1.0, -1.0, draw.number(-2, 2)):
        eta = times / max(curved, 0.1)
        bound = loss(W, x, y, order) - (eta - curved * eta**2 / 2) * G.square().sum()
        noise = (1 + abs(times)) * step_noise(W, eta * G, x, y, abs(eta))
        yield at_most(loss(W - eta * G, x, y, order), bound, noise)


@twin
def pl_smooth_descent(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """0 ≤ η ≤ 1/Λ: L(W − ηG) ≤ L(W) − (η/2)‖G‖². Broken: η ≤ 1.1/Λ, which the valley notices."""
    W, x, y, order = draw_curved(draw)
    D = float(distances(y).max()) * (1, 1.5)[draw.seed // 3 % 2]
    curved = bounds.smoothness(len(y), D, float(x.norm()))
    G = autograd(W, x, y, order)
    for share in (0.0, draw.number(0, 1), 1.0 - 1e-12):
        eta = share * (1.1 if broken else 1) / max(curved, 0.1)
        given(distances(y) <= D, eta >= 0, broken or eta * curved <= 1)
        bound = loss(W, x, y, order) - eta / 2 * G.square().sum()
        yield at_most(loss(W - eta * G, x, y, order), bound, step_noise(W, eta * G, x, y, eta))


@twin
def pl_smooth_attained(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """N = 2, x ≠ 0: along V = (y₁ − y₂)xᵀ it is Λ‖V‖² iff ‖Wx − y₁‖ = ‖Wx − y₂‖; for y₁ = y₂ both hold.

    Broken: iff ⟨Wx, y₁⟩ = ⟨Wx, y₂⟩.
    """
    shift = (0.0, draw.number(0.2, 1), -draw.number(0.2, 1))[draw.seed % 3]
    W, x, y, order = draw_pair(draw, shift)
    if draw.seed == 9:
        y = y[:1].expand(2, -1)
    apart = y[order[0]] - y[order[1]]
    if (
        broken and apart.any()
    ):  # Wx + c(y₁ − y₂), so that the products with y₁ and y₂ differ by as much as the shift asks for
        W = sending(draw, x, W @ x + (shift - (W @ x) @ apart / (apart @ apart)) * apart)
    given(x.any())
    V = torch.outer(apart, x)
    most = bounds.smoothness(2, float(apart.norm()), float(x.norm())) * V.square().sum()
    if shift == 0:
        yield equal(second(W, V, x, y, order), most, curvature_noise(W, V, x, y))
    else:
        yield below(second(W, V, x, y, order) + curvature_noise(W, V, x, y), most)


@twin
def pl_smooth_direction(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """N = 2: no direction U is more curved than V = (y₁ − y₂)xᵀ, if both are of length 1. Broken: than V = y₁xᵀ."""
    W, x, y, order = draw_pair(draw, draw.number(-1, 1))
    apart = y[order[0]] - y[order[1]]
    V = torch.outer(y[order[0]] if broken else apart, x)
    given(len(y) == 2)
    most, v = second(W, V, x, y, order), V.square().sum()
    for U in (draw.normal(*W.shape), -2 * torch.outer(apart, x), V + 0.01 * draw.normal(*W.shape)):
        u = U.square().sum()
        noise = v * curvature_noise(W, U, x, y) + u * curvature_noise(W, V, x, y)
        yield at_most(second(W, U, x, y, order) * v, most * u, float(noise))


# ── Which way to read out ────────────────────────────────────────────────────────────────────────────────────────────


@twin
def readout_sign_printed(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Wx − ΔW x = (W + ηG)x, ΔW the step of the package, G the gradient of autograd. Broken: (W − ηG)x."""
    W, x, y, order = draw_task(draw)
    eta = draw.number(-2, 2)
    G = autograd(W, x, y, order)
    dW = step(W, x, y, order, eta) if x.any() else -eta * G
    size = reach(W, x, y) + abs(eta) * 4 * len(y) * reach(W, x, y) * float(x.square().sum())  # ‖Wx‖ + ‖ηGx‖
    allowed = abs(eta) * slope_noise(W, x, y) * float(x.norm()) + rounding(2 * len(x) + 6, size)
    yield equal(W @ x - dW @ x, (W + (-eta if broken else eta) * G) @ x, allowed)


@twin
def readout_sign_negated(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A row that starts at −Wx, and to which −ΔW x is added, reads (W + ΔW)x if it is negated. Broken: starts at Wx."""
    W, x, y, order = draw_task(draw)
    dW = step(W, x, y, order, 0.3) if draw.seed % 2 and x.any() else draw.normal(*W.shape)
    start = W @ x if broken else -(W @ x)
    yield equal(-(start - dW @ x), (W + dW) @ x, rounding(2 * len(x) + 2, (W.abs() + dW.abs()) @ x.abs()))


@twin
def readout_sign_tangent(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """L(W) + ⟨G, V⟩ ≤ L(W + V), for small V nearly equal. Broken: with ⟨G, V⟩ by 1 in 100 larger."""
    W, x, y, order = draw_task(draw)
    G = autograd(W, x, y, order)
    for V in (draw.normal(*W.shape), 1e-4 * G, -1e-4 * G):
        slope = G.mul(V).sum() * (1.01 if broken else 1)
        noise = 2 * loss_noise(W.abs() + V.abs(), x, y) + along_noise(W, V, x, y)
        yield at_most(loss(W, x, y, order) + slope, loss(W + V, x, y, order), noise)


@twin
def readout_sign_uphill(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """L(W) + η‖G‖² ≤ L(W + ηG), all η. Broken: ≤ L(W − ηG)."""
    W, x, y, order = draw_curved(draw)
    G = autograd(W, x, y, order)
    for eta in (1e-4, draw.number(0, 1), -draw.number(0, 1)):
        V = (-eta if broken else eta) * G
        bound = loss(W, x, y, order) + eta * G.square().sum()
        yield at_most(bound, loss(W + V, x, y, order), step_noise(W, V, x, y, abs(eta)))


@twin
def readout_sign_downhill(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """0 < η < 2/Λ and G ≠ 0: L(W − ηG) < L(W). Broken: η ≤ 2.1/Λ; in the valley it rises from 2/Λ on."""
    W, x, y, order = draw_valley(draw) if draw.seed % 2 else draw_sloped(draw, draw.number(0.5, 2))
    D, G = float(distances(y).max()), autograd(W, x, y, order)
    curved = bounds.smoothness(len(y), D, float(x.norm()))
    for share in (draw.number(0.05, 1), 0.95):
        eta = share * (2.21 if broken else 2) / curved
        given(distances(y) <= D, eta > 0, broken or eta * curved < 2, G.norm() > slope_noise(W, x, y))
        noise = step_noise(W, eta * G, x, y, eta)
        yield below(loss(W - eta * G, x, y, order) + noise, loss(W, x, y, order))


@twin
def readout_sign_distance(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """‖d ± ηg‖² = ‖d‖² ± 2η⟨d, g⟩ + η²‖g‖², the left side by scores of ∓ηg. Broken: without the 2."""
    m, eta, one = draw.integer(1, 4), draw.number(-2, 2), torch.ones(1, dtype=torch.float64)
    d, g = draw.normal(m), draw.normal(m)
    if draw.seed % 3 == 0:  # parallel, so that one of the two may nearly vanish
        d = draw.number(-2, 2) * g
    for sign in (1, -1):
        left = -score(d[:, None], one, (-sign * eta * g)[None])[0]
        cross = (1 if broken else 2) * sign * eta * (d @ g)
        size = (d.norm() + abs(eta) * g.norm()) ** 2
        yield equal(left, d.square().sum() + cross + eta**2 * g.square().sum(), rounding(2 * m + 10, size))


@twin
def readout_sign_progress(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """⟨G, W − W′⟩ ≥ L(W) − L(W′), and = ⟨Wx − W′x, Gx⟩ for ‖x‖ = 1. Broken: for ‖x‖ = 1.1."""
    W, x, y, order = draw_task(draw)
    W2 = W + (0.1, 2.0, 0.0)[draw.seed % 3] * draw.normal(*W.shape)
    noise = 2 * loss_noise(W.abs() + W2.abs(), x, y) + along_noise(W, W - W2, x, y)
    inner = autograd(W, x, y, order).mul(W - W2).sum()
    yield at_most(loss(W, x, y, order) - loss(W2, x, y, order), inner, noise)
    x = (1.1 if broken else 1) * draw.unit(len(x))
    given(broken or is_unit(x))
    G, V = autograd(W, x, y, order), W - W2
    inner = G.mul(V).sum()
    # on both sides the same G = gxᵀ, rounded once; ‖x‖² is 1 but for 2d_x + 8 roundings; products of length d_x twice
    # and d_y, or one of all entries
    allowed = rounding(4 * len(x) + len(W) + V.numel() + 16, G.norm() * (W.abs() + W2.abs()).norm())
    yield equal((W @ x - W2 @ x) @ (G @ x), inner, allowed)
    noise = 2 * loss_noise(W.abs() + W2.abs(), x, y) + along_noise(W, V, x, y)
    yield at_most(loss(W, x, y, order) - loss(W2, x, y, order), inner, noise)


@twin
def readout_sign_away(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """L(W′) ≤ L(W), 0 < η, Gx ≠ 0: ‖Wx − W′x‖² < ‖(W + ηG)x − W′x‖², any x. Broken: W − ηG."""
    W, x, y, order = draw_sloped(draw, draw.number(0.5, 2))
    W2 = W + (0.1, 2.0, 0.0)[draw.seed % 3] * draw.normal(*W.shape)
    if loss(W2, x, y, order) > loss(W, x, y, order):
        W, W2 = W2, W
    G, eta = autograd(W, x, y, order), draw.number(0.01, 2)
    given(loss(W2, x, y, order) <= loss(W, x, y, order), eta > 0, (G @ x).norm() > slope_noise(W, x, y))
    after = W - eta * G if broken else W + eta * G
    noise = square_noise(W, W2, x, eta * G)
    yield below((W @ x - W2 @ x).square().sum() + noise, (after @ x - W2 @ x).square().sum())


@twin
def readout_sign_closer(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """0 < η < 2⟨Wx − W′x, Gx⟩/‖Gx‖²: ‖(W − ηG)x − W′x‖² < ‖Wx − W′x‖². Broken: η up to 1.01 times that."""
    W, x, y, order = draw_sloped(draw, draw.number(0.5, 2))
    G, W2 = autograd(W, x, y, order), W + draw.normal(*W.shape)
    inner, square = (W @ x - W2 @ x) @ (G @ x), (G @ x).square().sum()
    if inner < 0:
        W2, inner = 2 * W - W2, -inner
    for share in (0.999, draw.number(0.1, 1)):
        eta = share * (1.01 if broken else 1) * float(2 * inner / square)
        given(eta > 0, broken or eta * square < 2 * inner)
        noise = square_noise(W, W2, x, eta * G)
        yield below(((W - eta * G) @ x - W2 @ x).square().sum() + noise, (W @ x - W2 @ x).square().sum())
