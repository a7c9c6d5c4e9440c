"""What the twins of heads and blocks share: rewards, tokens and masks, how logits are read, how a softmax rounds."""

from collections.abc import Mapping

import torch
from torch import Tensor

import icalign
from icalign.transformer import Attention

from . import Draw


def responses(draw: Draw, least: int = 1) -> int:
    """N, from the least to 6; the instances take them in turn."""
    return least + draw.seed % (7 - least)


def on_grid(value: Tensor) -> Tensor:
    """To the nearest multiple of 2⁻²⁰: sums and differences are exact, so that hypotheses are met, or met with =."""
    return (value * 2**20).round() / 2**20


def gap_drawn(draw: Draw, low: float = 0.25, high: float = 2.0) -> float:
    """A gap on the grid, a quarter of which is on it as well."""
    return 4 * float(on_grid(draw.uniform(low / 4, high / 4)))


def led(draw: Draw, n: int, gap: float, tied: bool, winners: int = 1) -> tuple[Tensor, Tensor]:
    """Rewards, and which share the first place; the others are behind by the gap, if they are ``tied``, or by more."""
    won = draw.permutation(n) < winners
    behind = gap + (0.0 if tied else 1.0) * on_grid(draw.uniform(0, 1, n))
    return on_grid(draw.uniform(-1, 1)) - torch.where(won, 0.0, behind), won


def ladder(draw: Draw, n: int, gap: float, extra: Tensor | float = 0.0) -> tuple[Tensor, Tensor]:
    """Rewards in steps of the gap and the extra, and their ranking."""
    tau, r = draw.permutation(n), torch.empty(n, dtype=torch.float64)
    steps = gap + extra * torch.ones(n, dtype=torch.float64)
    r[tau] = on_grid(draw.uniform(-1, 1)) - (steps.cumsum(0) - steps[0])
    return r, tau


def spaced(gap: float, r: Tensor) -> Tensor:
    """All gaps between two rewards are at least that."""
    return ((r[:, None] - r).abs() >= gap) | torch.eye(len(r), dtype=torch.bool)


def ranks(r: Tensor, tau: Tensor) -> Tensor:
    """A better place has the larger reward."""
    return r[tau].diff() < 0


def tokens(rows: Mapping[str, slice], n: int, **content: Tensor | float) -> Tensor:
    """n tokens with that in their rows, and 0 in the others."""
    X = torch.zeros(n, max(place.stop for place in rows.values()), dtype=torch.float64)
    for name, value in content.items():
        X[:, rows[name]] = value
    return X


def mask(draw: Draw, n: int) -> Tensor:
    """Which keys (columns) each query sees, one at least: all, those that do not come later, or any."""
    if draw.seed % 3 < 2:
        full = torch.ones(n, n, dtype=torch.bool)
        return full.tril() if draw.seed % 3 else full
    seen = draw.uniform(0, 1, n, n) < 0.5
    return seen | torch.eye(n, dtype=torch.bool)[draw.permutation(n)]


def logits(head: Attention, X: Tensor) -> Tensor:
    """(KᵀQ)_ji in row i, column j, from the matrices of the head."""
    return (X @ head.query.T) @ (X @ head.key.T).T


def reach(head: Attention, X: Tensor) -> float:
    """The largest sum of the sizes of all products that make up a logit."""
    return float(((X.abs() @ head.query.abs().T) @ (X.abs() @ head.key.abs().T).T).max())


def weights(logit: Tensor, seen: Tensor) -> Tensor:
    """e^{z_j} over their sum, for the keys that are seen; by the definition."""
    e = logit.exp() * seen
    return e / e.sum(-1, keepdim=True)


def softmax_count(n: int, largest: float | Tensor, each: float = 1) -> float:
    """Roundings of a weight among n, if logits have ``each`` of their largest size on their path.

    A logit, the subtraction of the largest (a result of up to twice the size), both once for the weight's own
    exponential and once for all others; exp itself twice, by two; the sum n − 1; the quotient.
    """
    return 2 * (each + 2) * float(largest) + n + 4


def score(W: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """−‖Wx − y_j‖² for every response."""
    return -(W @ x - y).square().sum(-1)


def field_reach(W: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """(‖|W||x|‖ + ‖y‖)²: all products that make up a score, or 2⟨Wx, y⟩ − ‖y‖², or ‖Wx‖², add up to at most that."""
    return ((W.abs() @ x.abs()).norm() + y.norm(dim=-1).max()).square()


def field_count(W: Tensor) -> float:
    """Roundings of a score, or of 2⟨Wx, y⟩ − sq − C flag: dot products of d_x and d_y terms, a square, two sums."""
    return sum(W.shape) + 6


def step_by_autograd(W: Tensor, x: Tensor, y: Tensor, tau: Tensor, eta: float) -> Tensor:
    """ΔW x, ΔW = −η∇L, L the Plackett–Luce loss of the ranking τ."""
    leaf = W.clone().requires_grad_()
    places = torch.argsort(tau).double()
    (gradient,) = torch.autograd.grad(icalign.plackett_luce_nll(score(leaf, x, y), -places), leaf)
    return -eta * gradient @ x
