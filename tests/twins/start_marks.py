"""Twins of ``StartMarks.v``, chapter 10: without a mark, rewards tell the first token."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

import torch
from torch import Tensor

from icalign.spec import Block, FeedForward, Head, relu
from icalign.stream import Stream
from icalign.symbols import Delta, gamma

from . import Draw, Outcome, at_most, equal, given, rounding, twin
from ._drawn import Rewards, size, spaced, tokens, transformer

stream = Stream(r=1, one=1, a=1, b=1)
i, j = stream.tokens
HEADS = (
    Head(logit=gamma * i.one * j.r, write={"a": j.r}),
    Head(logit=-gamma * i.one * j.r, write={"a": -j.r}),
)
MARK = FeedForward(write={"b": relu(i.one - 2 / Delta * i.a)})


def marked(gap: float, a: Tensor) -> Tensor:
    """What the layer makes of the row b of tokens with that in the row a."""
    values = {gamma: 1.0, Delta: gap}
    X, rows = tokens(stream, values, len(a), a=a[:, None], one=1)
    return transformer((Block(feed_forward=MARK),), stream, values)(X)[:, rows["b"]]


@twin
def nope_needs_a_start_rewards(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The layer writes 1 where a is 0, and 0 where it is the difference of two numbers within Δ/4 of numbers Δ apart.
    Broken: within Δ/3."""
    gap = draw.integer(1, 8) / 4
    yield equal(marked(gap, torch.zeros(1)), 1)
    worst, near = draw.uniform(-2, 2, 50), gap / (3 if broken else 4)
    best = worst + gap * (1 + draw.integer(0, 1) * draw.uniform(0, 1, 50))
    off = draw.uniform(-near, near, 2, 50)
    off[:, 0] = torch.tensor([-near, near])  # where the difference is as small as it can be
    high, low = best + off[0], worst + off[1]
    given(gap > 0, worst + gap <= best + 2.0**-50)
    given((high - best).abs() <= near + 2.0**-50, (low - worst).abs() <= near + 2.0**-50)
    yield equal(marked(gap, high - low), 0, rounding(16, 8 / gap))


@twin
def nope_needs_a_start_marks(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """γ ≥ log(4(N−1)R/Δ)/Δ: at token i the heads write the best and minus the worst reward that it sees, to Δ/4, and
    the layer marks the first token alone. Broken: at a tenth of that γ."""
    n, _ = size(draw, 3 if broken else 1)
    rewards = Rewards.drawn(draw, n, tight=draw.seed % 2 == 1)
    spread = max(rewards.spread, 2.0**-5)
    least = log(4 * (n - 1) * spread / rewards.gap) / rewards.gap if n > 1 else draw.number(-1, 1)
    warm = least / 10 if broken else least + draw.integer(0, 1) * draw.number(0, 3)
    given(rewards.gap > 0, broken or least <= warm, spaced(rewards.r, rewards.gap))
    given(rewards.low <= rewards.r, rewards.r <= rewards.low + spread)
    values = {gamma: warm, Delta: rewards.gap}
    X, rows = tokens(stream, values, n, r=rewards.r[:, None], one=1)
    # a logit of two products, its size in exp; a mean of n rewards; for the layer 2/Δ times that
    allowed = rounding(2 * (4 * abs(warm) * rewards.largest + 2 * n + 8), rewards.largest)
    best, worst = [
        transformer((Block(heads=(head,), causal=True),), stream, values)(X)[:, rows["a"]][:, 0] for head in HEADS
    ]
    yield at_most((best - rewards.r.cummax(0).values).abs(), rewards.gap / 4, allowed)
    yield at_most((worst + rewards.r.cummin(0).values).abs(), rewards.gap / 4, allowed)
    found = transformer((Block(heads=HEADS, feed_forward=MARK, causal=True),), stream, values)(X)[:, rows["b"]]
    yield equal(found[:, 0], (torch.arange(n) == 0).double(), 8 / rewards.gap * allowed)
