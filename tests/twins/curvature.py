"""Chapter 2, continued: the largest curvature over unit directions, and how near to Λ it comes.

Curvatures are those of autograd through the package, Λ is ``bounds.smoothness``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from icalign import bounds

from . import Draw, Outcome, at_most, equal, given, rounding, twin
from .alignment_task import draw_task
from .convexity import covariances, curvature_noise, second
from .no_minimiser import sending
from .smoothness import distances


@twin
def pl_smooth_norm(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """|⟨Vx, y_i − y_j⟩| ≤ ‖V‖‖x‖D; the largest eigenvalue λ is that of the unit directions: λ‖V‖² bounds all others.

    It is taken by its eigenvector, so no less serves, and it is at most Λ. Broken: the first by 1 in 1000 less, which
    is seen where V = (y_i − y_j)xᵀ.
    """
    W, x, y, order = draw_task(draw)
    D = float(distances(y).max())
    given(distances(y) <= D)
    i, j = divmod(int(distances(y).argmax()), len(y))
    for V in (draw.normal(*W.shape), torch.outer(y[i] - y[j], x)):
        bound = V.norm() * x.norm() * D * (0.999 if broken else 1)
        values = y @ (V @ x)
        size = float((V.abs() @ x.abs()).norm() * y.norm(dim=-1).max() + V.norm() * x.norm() * D)
        yield at_most((values[:, None] - values).abs(), bound, rounding(2 * V.numel() + 2 * len(x) + 16, size))
    # ∇²L = 4 (Σ_k Cov) ⊗ xxᵀ: its largest eigenvalue is that of the covariances times 4‖x‖², at g xᵀ
    found = torch.linalg.eigh(covariances(W, x, y, order))
    largest = 4 * found.eigenvalues[-1] * x.square().sum()
    direction = x / x.norm() if x.any() else torch.eye(len(x), dtype=torch.float64)[0]
    top = torch.outer(found.eigenvectors[:, -1], direction)
    yield equal(second(W, top, x, y, order), largest, 2 * curvature_noise(W, top, x, y))
    V = draw.normal(*W.shape)
    noise = curvature_noise(W, V, x, y) + curvature_noise(W, top, x, y) * float(V.square().sum())
    yield at_most(second(W, V, x, y, order), largest * V.square().sum(), 2 * noise)
    yield at_most(largest, bounds.smoothness(len(y), D, float(x.norm())), 2 * curvature_noise(W, top, x, y))


@twin
def pl_smooth_supremum(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """N ≥ 2, d_y ≥ 2: a task whose largest distance is D, and a unit V along which the curvature is ≥ (1 − ε)Λ.

    In the last two places (±D/2, 0), in the others (0, D/2), and Wx = (0, −t) with e^{−tD} = ε/N, in some plane.
    Broken: (1 + ε)Λ.
    """
    n, m, d = 2 + draw.seed % 5, draw.integer(2, 4), draw.integer(1, 4)
    D, epsilon = draw.number(0.5, 4), draw.number(0.01, 0.5)
    plane, x, order = torch.linalg.qr(draw.normal(m, 2)).Q, draw.normal(d), draw.permutation(n)
    t = -math.log(epsilon / n) / D
    placed = torch.tensor([[0.0, D / 2]] * (n - 2) + [[D / 2, 0.0], [-D / 2, 0.0]], dtype=torch.float64) @ plane.mT
    y = placed[order.argsort()]
    W, V = sending(draw, x, -t * plane[:, 1]), torch.outer(plane[:, 0], x / x.norm())
    given(n >= 2, m >= 2, x.any(), D > 0, epsilon > 0)
    yield equal(distances(y).max(), D, rounding(4 * m + 40, 2 * D))
    yield equal(V.square().sum(), 1, rounding(2 * V.numel() + 40, 2))
    near = (1 + (epsilon if broken else -epsilon)) * bounds.smoothness(n, D, float(x.norm()))
    yield at_most(near, second(W, V, x, y, order), curvature_noise(W, V, x, y))
