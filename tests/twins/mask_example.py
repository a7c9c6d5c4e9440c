"""Twins of ``MaskExample.v``, chapter 11: the paper's example of a mask."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import exp

import torch

from . import Draw, Outcome, at_most, given, rounding, twin
from ._drawn import fits
from ._rounds import Rounds
from .mask import at_any_field


@twin
def mask_example(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """r₁ > r₃ > r₂ > r₄: after two rounds the record of the fourth is within 5e^{−g} of (1, 0, 1, 0).
    Broken: (1, 1, 0, 0), the order of arrival; the bound is not sharp."""
    case = at_any_field(Rounds.drawn(draw, 4, 4), draw)
    ranked = case.rewards.r.sort(descending=True).values
    case = replace(case, rewards=replace(case.rewards, r=ranked[[0, 2, 1, 3]]))
    r = case.rewards.r
    given(case.g > 0, case.rewards.gap > 0, fits(4, case.g, case.rewards), case.rewards.fit)
    given(r[3] < r[1], r[1] < r[2], r[2] < r[0])
    X, model = case.run(sink=False, rounds=2)
    expected = torch.tensor([1.0, 1, 0, 0] if broken else [1.0, 0, 1, 0]).double()
    off = (X[2][3, model.rows["m"]] - expected).abs()
    yield at_most(off, 5 * exp(-case.g), rounding(case.effort, 1))
