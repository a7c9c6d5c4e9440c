"""Twins of ``DepthBlocks.v``, chapter 13: what the two ReLU layers compute."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from icalign.constructions import parallel
from icalign.constructions.parallel import high, low
from icalign.spec import Block
from icalign.symbols import Delta, N, d_x, d_y

from . import Draw, Outcome, equal, given, rounding, twin
from ._drawn import tokens, transformer

COMPARE = Block(feed_forward=parallel.compare)


@twin
def constant_depth_slots(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """relu(r + (high − low)p − high) is r − low where p = 1, and 0 where p = 0. Broken: for r above high as well."""
    floor = draw.number(-3, 3)
    ceiling = floor + (draw.number(0, 4) if draw.seed % 4 else 0)
    top = ceiling + 1 if broken else ceiling
    r = torch.cat([draw.uniform(floor, top, 6).clamp(max=top), torch.tensor([floor, top], dtype=torch.float64)])[
        :, None
    ]
    p = (draw.uniform(0, 1, len(r), 1) < 0.5).double()
    given(r >= floor, r <= top)
    values = {d_x: 1, d_y: 1, N: 1, low: floor, high: ceiling}
    model = transformer((parallel.post,), parallel.stream, values)
    X, rows = tokens(parallel.stream, values, len(r), r=r, p=p)
    # high − low is rounded as a weight and taken back; two sums
    yield equal(model(X)[:, rows["slot"]], p * (r - floor), rounding(5, 2 * abs(floor) + 2 * abs(top)))


@twin
def constant_depth_comparison(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """For rewards that tie or are ¾Δ apart, clip(2(r_j − r_i)/Δ − ½) is 1 if r_i < r_j, else 0. Broken: ½Δ apart."""
    gap, least = draw.integer(1, 16) / 8, 0.5 if broken else 0.75
    r_i = draw.integer(-64, 64) / 32 + torch.zeros(8, 1).double()  # multiples of 1/32: differences are exact
    apart = torch.tensor([0, 1, 1, -1, -1, 1, 1, -1]).double()[:, None] * least * gap
    apart[3:] *= 1 + torch.tensor([draw.integer(0, 16) / 16 for _ in range(5)])[:, None]
    r_j = r_i + apart
    given(gap > 0, (r_i == r_j) | ((r_j - r_i).abs() >= least * gap))
    values = {d_x: 1, d_y: 1, N: 1, low: 0, Delta: gap}
    model = transformer((COMPARE,), parallel.stream, values)
    X, rows = tokens(parallel.stream, values, len(r_i), r=r_i, board=r_j)
    # the weights 2/Δ are rounded; two products, two sums, a difference
    allowed = rounding(6, 2 * (r_i.abs().max() + r_j.abs().max()) / gap + 2)
    yield equal(model(X)[:, rows["m"]], (r_i < r_j).double(), allowed)
