"""Chapters 2 and 6: what a test token reads out, with the weights of Theorem 3.3."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from . import Draw, Outcome, at_most, given, rounding, twin
from .theorem33 import some_prompts


@twin
def readout_sign_test_token(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A token that sees the N responses, and that none sees, holds y and u after N−1 blocks, up to the error of 3.3:

    y = Wx: y − u is (W + ηG)x, as printed, and y + u is (W − ηG)x; y = −Wx: −(y − u) is (W − ηG)x. Its rows sq, r,
    flag and top hold anything. Broken: the signs of u exchanged.
    """
    for it in some_prompts(draw):
        w, rows, blocks = it.weights, it.weights.block.rows, it.responses - 1
        prompt = it.state(it.flags(0), torch.zeros_like(it.y[0]))
        here, step = w.matrix @ it.x, it.step()
        seen = torch.ones(it.responses + 1, it.responses + 1, dtype=torch.bool)
        seen[:, -1] = False
        (block,) = w.block.blocks
        for start in (here, -here):
            test = draw.normal(prompt.shape[1])
            test[rows["x"]], test[rows["one"]], test[rows["u"]], test[rows["y"]] = it.x, 1, 0, start
            given(*it.fits(), test[rows["x"]] == it.x, test[rows["one"]] == 1, test[rows["u"]] == 0)
            X = torch.cat([prompt, test[None]])
            for _ in range(blocks):
                X = X + sum(head(X, seen) for head in block.attention_heads())
                X = X + block.feed_forward(X)
            y, u = X[-1, rows["y"]], X[-1, rows["u"]] * (-1 if broken else 1)
            allowed = it.rounding(blocks) + rounding(6 + 2 * len(it.x), here.norm() + step.norm())
            if start is here:
                yield at_most((y - u - (here - step)).norm(), it.error_bound(blocks), allowed)
                yield at_most((y + u - (here + step)).norm(), it.error_bound(blocks), allowed)
            else:
                yield at_most((-(y - u) - (here + step)).norm(), it.error_bound(blocks), allowed)
