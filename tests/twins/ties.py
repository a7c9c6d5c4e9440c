"""Twins of ``proofs/Ties.v``: as γ grows, tied winners share the attention, and the output tends to their average."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from . import Draw, Outcome, at_most, given, rounding, twin
from .prompts import gap_drawn, led, responses, softmax_count
from .selection import asked

GROWING = (2.0, 8.0, 32.0)  # γΔ


def tied(draw: Draw) -> tuple[float, Tensor, Tensor]:
    """A gap, rewards with tied winners that are ahead of the others by it, and which these are."""
    n, gap = responses(draw), gap_drawn(draw)
    r, won = led(draw, n, gap, tied=draw.integer(0, 1) == 1, winners=draw.integer(1, n))
    given(gap > 0, won.any(), r[won] == r[won][0], r[~won] + gap <= r[won][0])
    return gap, r, won


@twin
def selection_ties_limit(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """1/(w + ne^{−γΔ}) → 1/w as γ → ∞, real w > 0 and n of any sign. Broken: → 1/(w + n).

    At growing γ, from |n|e^{−γΔ} = w/2 on: within 2|n|e^{−γΔ}/w².
    """
    w, n, gap = draw.number(0.1, 6), draw.number(-6, 6), draw.number(0.1, 2)
    given(w > 0, gap > 0)
    start = max(0.0, math.log(2 * abs(n) / w))
    for product in [start + more for more in GROWING]:
        e = math.exp(-(product / gap) * gap)
        given(abs(n) * e <= w / 2)
        off = abs(1 / (w + n * e) - 1 / (w + n if broken else w))
        yield at_most(off, 2 * abs(n) * e / w**2, rounding(6, 2 / w))  # quotients of up to 2/w, a product and a sum


@twin
def selection_ties_weights(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """As γ → ∞, weights tend to 1/w on the w winners and to 0 elsewhere. Broken: to 1/N on all.

    At growing γ: within (N−w)/w·e^{−γΔ}, the mass outside the winners.
    """
    gap, r, won = tied(draw)
    n, w = len(r), int(won.sum())
    x, y = draw.normal(draw.integer(1, 4)), draw.normal(n, draw.integer(1, 4))
    limit = torch.full((n,), 1 / n).double() if broken else won / torch.tensor(w).double()
    for gamma in [product / gap for product in GROWING]:
        model, X = asked(gamma, x, y, r)
        off = (model.attention(X)[0][0] - limit).abs()
        yield at_most(off, (n - w) / w * math.exp(-gamma * gap), rounding(softmax_count(n, gamma * r.abs().max()), 1))


@twin
def selection_ties_average(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """As γ → ∞, each component of the output tends to that of the winners' average. Broken: of everyone's.

    At growing γ: within (N−w)/w·e^{−γΔ} times the largest distance of a component from its limit.
    """
    gap, r, won = tied(draw)
    n, w = len(r), int(won.sum())
    x, y = draw.normal(draw.integer(1, 4)), draw.normal(n, draw.integer(1, 4))
    limit = y.mean(0) if broken else y[won].sum(0) / w
    for gamma in [product / gap for product in GROWING]:
        model, X = asked(gamma, x, y, r)
        off = (model(X)[:, model.rows["best"]] - limit).abs()
        count = softmax_count(n, gamma * r.abs().max()) + 2 * n + 2  # a weight, a sum of products, an average
        outside = (n - w) / w * math.exp(-gamma * gap)
        yield at_most(off, outside * (y - limit).abs().amax(0), rounding(count, y.abs().max()))
