"""Twins of ``proofs/Temperature.v``: how far the selected response is from the best, the temperature, and ties."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from icalign import bounds

from . import Draw, Outcome, at_most, below, equal, given, holds, rounding, twin
from .prompts import gap_drawn, ladder, led, on_grid, responses, softmax_count, spaced
from .selection import any_gamma, asked, attention, crowd_rounding, share, warm


class Selected(NamedTuple):
    """What a prompt makes of the head: attention to the best, how far each token's row best is off, and rounding."""

    won: Tensor
    off: Tensor
    allowed: float


def selected(draw: Draw, gamma: float, y: Tensor, r: Tensor, best: int | Tensor) -> Selected:
    """From the head with γ on the tokens [x; y_j; r_j; 1; 0]."""
    model, X = asked(gamma, draw.normal(draw.integer(1, 4)), y, r)
    # a weight, n products and their sum, the difference, a norm; twice, as a bound is D times a share of exponentials
    count = 2 * (softmax_count(len(r), abs(gamma) * r.abs().max()) + len(r) + y.shape[-1] + 8)
    off = model(X)[:, model.rows["best"]] - y[best]
    return Selected(model.attention(X)[0][0][:, best], off, rounding(count, 3 * y.norm(dim=-1).max()))


def poles(draw: Draw, n: int, best: int | Tensor) -> Tensor:
    """Responses of which all but the best are at one point."""
    d = draw.integer(1, 4)
    y = draw.normal(d).expand(n, d).clone()
    y[best] = draw.normal(d)
    return y


def some(draw: Draw, n: int, best: int | Tensor) -> Tensor:
    """Responses at random, or all but the best at one point."""
    return poles(draw, n, best) if draw.seed % 2 else draw.normal(n, draw.integer(1, 4))


def furthest(y: Tensor, best: int | Tensor) -> Tensor:
    """D, the largest distance from the best."""
    return (y - y[best]).norm(dim=-1).max()


@twin
def selection_output_projected(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """⟨v, selected − y⁺⟩ ≤ D(1 − A⁺), any γ and r, unit v: random, and along the difference. Broken: half of it."""
    n, gamma = responses(draw), any_gamma(draw)
    r, best = draw.normal(n), draw.integer(0, n - 1)
    y = some(draw, n, best)
    it = selected(draw, gamma, y, r, best)
    along = it.off[0] if it.off[0].norm() > 0 else draw.normal(y.shape[-1])
    v, D = torch.stack([draw.unit(y.shape[-1]), along / along.norm()]), furthest(y, best)
    given((v.norm(dim=-1) - 1).abs() <= rounding(y.shape[-1] + 2, 1), (y - y[best]).norm(dim=-1) <= D)
    yield at_most(it.off @ v.T, (0.5 if broken else 1) * D * (1 - it.won[:, None]), it.allowed)


@twin
def selection_output_norm(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """z = selected − y⁺: ‖z‖ is the largest ⟨v, z⟩ over unit v, |⟨v, y_j − y⁺⟩| ≤ D, ‖z‖ ≤ D(1 − A⁺).

    Any γ and r; v at random, and along z. Broken: half of it.
    """
    n, gamma = responses(draw), any_gamma(draw)
    r, best = draw.normal(n), draw.integer(0, n - 1)
    y = some(draw, n, best)
    it, D = selected(draw, gamma, y, r, best), furthest(y, best)
    given((y - y[best]).norm(dim=-1) <= D)
    size = rounding(y.shape[-1] + 6, D)
    along = it.off / it.off.norm(dim=-1, keepdim=True) if it.off.any(-1).all() else draw.unit(y.shape[-1]).expand(n, -1)
    for v in (along, draw.unit(y.shape[-1]).expand(n, -1)):
        yield at_most((v * it.off).sum(-1), it.off.norm(dim=-1), size)
        yield at_most((v @ (y - y[best]).T).abs(), D, size)
    yield equal((along * it.off).sum(-1), it.off.norm(dim=-1), size)
    yield at_most(it.off.norm(dim=-1), (0.5 if broken else 1) * D * (1 - it.won), it.allowed)


@twin
def selection_output(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """‖selected − y⁺‖ ≤ D(1 − A⁺) ≤ D·q/(1+q), q = (N−1)e^{−γΔ}, γ ≥ 0. Broken: q = e^{−γΔ}."""
    n, gamma, gap = responses(draw), warm(draw), gap_drawn(draw, -0.5)
    r, won = led(draw, n, gap, tied=draw.integer(0, 1) == 1)
    best = int(won.nonzero())
    y = some(draw, n, best)
    it, D = selected(draw, gamma, y, r, best), furthest(y, best)
    given(gamma >= 0, r[~won] + gap <= r[best], (y - y[best]).norm(dim=-1) <= D)
    q = (1 if broken else n - 1) * math.exp(-gamma * gap)
    yield at_most(it.off.norm(dim=-1), D * (1 - it.won), it.allowed)
    yield at_most(D * (1 - it.won), D * share(q), it.allowed)


@twin
def selection_output_spaced(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """‖selected − y⁺‖ < De^{−γΔ} for gaps of Δ or more, γ of any sign, by more than rounding. Broken: half of it."""
    n, gamma, gap = responses(draw), draw.number(0.3, 2) if draw.seed % 3 else draw.number(-1, 0), gap_drawn(draw)
    r, tau = ladder(draw, n, gap, draw.integer(0, 1) * on_grid(draw.uniform(0, 1, n)))
    y, best = some(draw, n, tau[0]), tau[0]
    it, D = selected(draw, gamma, y, r, best), max(furthest(y, best), draw.uniform(0.1, 1))
    given(gap > 0, D > 0, spaced(gap, r), r <= r[best], (y - y[best]).norm(dim=-1) <= D)
    yield below(it.off.norm(dim=-1) + it.allowed, (0.5 if broken else 1) * D * math.exp(-gamma * gap))


@twin
def selection_output_sharp(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """‖selected − y⁺‖ = D·q/(1+q) for losers tied at one point at distance D, any γ and Δ. Broken: q = e^{−γΔ}."""
    n, gamma, gap = responses(draw), any_gamma(draw), gap_drawn(draw, -0.5)
    r, won = led(draw, n, gap, tied=True)
    best = int(won.nonzero())
    y = poles(draw, n, best)
    it, D = selected(draw, gamma, y, r, best), furthest(y, best)
    given(r[~won] == r[best] - gap, y[~won] == y[~won][:1], (y - y[best]).norm(dim=-1)[~won] == D)
    q = (1 if broken else n - 1) * math.exp(-gamma * gap)
    yield equal(it.off.norm(dim=-1), D * share(q), it.allowed)


@twin
def selection_temperature(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """‖selected − y⁺‖ ≤ ε if γ ≥ max(0, log((N−1)(D/ε−1))/Δ); mostly with =, N = 1 too. Broken: without N−1."""
    n, gap = responses(draw), gap_drawn(draw)
    r, won = led(draw, n, gap, tied=True)
    best = int(won.nonzero())
    y = some(draw, n, best)
    D = furthest(y, best) + (1 if n == 1 else 0)
    eps = draw.number(0.02, 0.9) * D
    least = max(0.0, float(torch.log((1 if broken else n - 1) * (D / eps - 1)) / gap))
    gamma = least + draw.integer(0, 2) // 2 * draw.number(0, 1)
    given(gap > 0, eps > 0, eps < D, least <= gamma)
    given(r[~won] + gap <= r[best], (y - y[best]).norm(dim=-1) <= D)
    it = selected(draw, gamma, y, r, best)
    conditioned = rounding(4 * D / (D - eps), eps)  # of the logarithm of D/ε − 1
    yield at_most(it.off.norm(dim=-1), eps, it.allowed + conditioned)


@twin
def selection_temperature_meets(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """D·q/(1+q) = ε at γ = log(n(D/ε−1))/Δ, q = ne^{−γΔ}, real n > 0. Broken: D/ε for D/ε − 1."""
    n, gap, D = draw.number(0.1, 6), draw.number(0.1, 2), draw.number(0.1, 5)
    eps = draw.number(0.02, 0.9) * D
    given(n > 0, gap > 0, eps > 0, eps < D)
    gamma = math.log(n * D / eps) / gap if broken else bounds.selection_temperature(eps, gap, n + 1, D)
    count = 3 * abs(gamma * gap) + 4 * D / (D - eps) + 10 + 2 / n  # (n + 1) − 1 in the package; log and exp; 1 + q
    yield equal(D * share(n * math.exp(-gamma * gap)), eps, rounding(count, eps))


@twin
def selection_temperature_decreasing(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """D·q/(1+q), q = ne^{−γΔ}, falls as γ grows, real n > 0, γ of any sign. Broken: it grows."""
    n, gap, D = draw.number(0.1, 6), draw.number(0.1, 2), draw.number(0.1, 5)
    gamma = draw.number(-4, 4)
    later = gamma + draw.number(0.1, 3)
    given(n > 0, gap > 0, D > 0, gamma < later)
    sooner, afterwards = [D * share(n * math.exp(-g * gap)) for g in (gamma, later)]
    allowed = rounding(2 * (7 * gap + 8), D)  # two exponentials, of exponents up to 7Δ, with six operations each
    yield below(sooner + allowed, afterwards) if broken else below(afterwards + allowed, sooner)


@twin
def selection_temperature_smallest(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """For losers tied at one point at distance D, and γ ≥ 0: error ≤ ε iff γ ≥ max(0, log((N−1)(D/ε−1))/Δ).

    At γ a millionth above the threshold or below; one response too, where it is 0. Broken: N for N−1.
    """
    n, gap = responses(draw), gap_drawn(draw)
    r, won = led(draw, n, gap, tied=True)
    best = int(won.nonzero())
    y = poles(draw, n, best)
    D = furthest(y, best) + (1 if n == 1 else 0)  # for one response p is any point
    eps = draw.number(0.02, 0.9) * D
    least, claimed = [float(torch.log(m * (D / eps - 1)) / gap) for m in (n - 1, n if broken else n - 1)]
    gamma = max(0.0, least + (1e-6 if draw.integer(0, 1) else -1e-6))
    it = selected(draw, gamma, y, r, best)
    given(gap > 0, eps > 0, eps < D, gamma >= 0, r[~won] == r[best] - gap, y[~won] == y[~won][:1])
    given((y - y[best]).norm(dim=-1)[~won] == D, (it.off.norm(dim=-1) - eps).abs() > it.allowed)
    yield holds((it.off.norm(dim=-1) <= eps) == (max(0.0, claimed) <= gamma))


@twin
def selection_temperature_free_of_n(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """γ ≥ log(D/ε)/Δ, of any sign: Dξ ≤ ε, equal at the least γ; and ‖selected − y⁺‖ < ε for gaps of Δ or more.

    Broken: if γ ≥ log(D/(2ε))/Δ.
    """
    n, gap = responses(draw), gap_drawn(draw)
    r, tau = ladder(draw, n, gap, draw.integer(0, 1) * on_grid(draw.uniform(0, 1, n)))
    y, best = some(draw, n, tau[0]), tau[0]
    D = float(max(furthest(y, best), draw.uniform(0.1, 1)))
    eps = draw.number(0.02, 1.5) * D
    least = math.log(D / ((2 if broken else 1) * eps)) / gap
    given(gap > 0, eps > 0)
    for gamma in (least, least + draw.number(0, 2)):
        # a quotient, a logarithm, a quotient, a product, exp, a product: 2 and the size of log each, but once for D
        allowed = rounding(8 + 4 * abs(gamma * gap), eps)
        yield at_most(D * math.exp(-gamma * gap), eps, allowed)
    given(spaced(gap, r), r <= r[best], (y - y[best]).norm(dim=-1) <= D)
    it = selected(draw, least, y, r, best)
    yield below(it.off.norm(dim=-1) + it.allowed, eps)
    it = selected(draw, draw.number(-1, 1), y[best].expand_as(y), r, best)  # D = 0, any γ
    yield below(it.off.norm(dim=-1) + it.allowed, eps)


@twin
def selection_never_exact_positive(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """0 < A_ij for every N, any γ and r. Broken: 1/N ≤ A_ij."""
    n, gamma = responses(draw), any_gamma(draw)
    r = draw.uniform(-2, 2, n)
    A, allowed = attention(draw, gamma, r), rounding(softmax_count(n, abs(gamma) * r.abs().max()), 1)
    yield at_most(1 / n, A, allowed) if broken else below(0.0, A)


@twin
def selection_never_exact(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """0 < A_ij < 1 for N ≥ 2, any γ and r; by more than rounding. Broken: for N ≥ 1."""
    n, gamma = responses(draw, 1 if broken else 2), any_gamma(draw)
    r = draw.uniform(-2, 2, n)
    given(n >= (1 if broken else 2))
    A, allowed = attention(draw, gamma, r), rounding(softmax_count(n, abs(gamma) * r.abs().max()), 1)
    yield below(0.0, A)
    yield below(A + allowed, 1.0)


@twin
def selection_ties_share(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A_ij = A_il if r_j = r_l, any γ. Broken: without that hypothesis."""
    n, gamma = responses(draw), any_gamma(draw)
    r, j, k = draw.normal(n), draw.integer(0, n - 1), draw.integer(0, n - 1)
    r[k] = r[k] if broken else r[j]
    given(broken or r[j] == r[k])
    A = attention(draw, gamma, r)
    yield equal(A[:, j], A[:, k], rounding(softmax_count(n, abs(gamma) * r.abs().max()), 1))


@twin
def selection_ties_outside(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The mass outside w winners is at most q/(1+q), q = (N−w)/w·e^{−γΔ}, γ ≥ 0. Broken: (N−w)/N."""
    n, gamma, gap = responses(draw), warm(draw), gap_drawn(draw, -0.5)
    w = draw.integer(1, n)
    r, won = led(draw, n, gap, tied=draw.integer(0, 1) == 1, winners=w)
    given(gamma >= 0, int(won.sum()) == w, r[won] == r[won][0], r[~won] + gap <= r[won][0])
    q = (n - w) / (n if broken else w) * math.exp(-gamma * gap)
    outside = attention(draw, gamma, r)[:, ~won].sum(-1)
    yield at_most(outside, share(q), crowd_rounding(gamma, gap, r) + rounding(n, 1))


@twin
def selection_ties_least(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """1/(w + (N−w)e^{−γΔ}) ≤ A_ij ≤ 1/w for each of w winners j, γ ≥ 0. Broken: with e^{−2γΔ}."""
    n, gamma, gap = responses(draw), warm(draw), gap_drawn(draw, -0.5)
    w = draw.integer(1, n)
    r, won = led(draw, n, gap, tied=draw.integer(0, 1) == 1, winners=w)
    given(gamma >= 0, int(won.sum()) == w, r[won] == r[won][0], r[~won] + gap <= r[won][0])
    A = attention(draw, gamma, r)[:, won]
    yield at_most(1 / (w + (n - w) * math.exp(-(2 if broken else 1) * gamma * gap)), A, crowd_rounding(gamma, gap, r))
    yield at_most(A, 1 / w, crowd_rounding(gamma, gap, r))
