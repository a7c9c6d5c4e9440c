"""Theorem 3.2: on two responses, two heads and no feed-forward layer make one gradient step on the Bradley–Terry loss.

Rows: x, y, sq = ‖y‖², r and 1. Both heads write into y: e becomes e + (0, −ΔW x, 0).
"""

from __future__ import annotations

from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor

from ..spec import Block, Head
from ..stream import Stream
from ..symbols import W, d_x, d_y, eta, gamma
from ..tasks import AlignmentTask

stream = Stream(x=d_x, y=d_y, sq=1, r=1, one=1)
i, j = stream.tokens

winner = Head(logit=gamma * i.one * j.r, write={"y": -2 * eta * j.y})  # −2η y_τ(1)

field = Head(logit=2 * W @ i.x @ j.y - i.one * j.sq, write={"y": 2 * eta * j.y})  # +2η μ₁

block = Block(heads=(winner, field))


def prompt(task: AlignmentTask, rows: Mapping[str, slice]) -> Float[Tensor, "*batch responses width"]:
    """One token for every response of a task with one query: the rows x, y, copy, sq, r and one that ``rows`` has.

    Shapes: task with x (…, 1, d_x), y (…, 1, N, d_y) → (…, N, width); the other rows are 0.
    Raises ValueError: a task with several queries.
    """
    if task.queries != 1:
        raise ValueError(f"task: {task.queries} queries, expected 1")
    y = task.y[..., 0, :, :]
    values = {
        "x": task.x,
        "y": y,
        "copy": y,
        "sq": y.square().sum(-1, keepdim=True),
        "r": task.r[..., 0, :, None],
        "one": y.new_ones(1),
    }
    X = y.new_zeros(*task.batch, task.responses, max(place.stop for place in rows.values()))
    for name, place in rows.items():
        if name in values:
            X[..., place] = values[name]
    return X
