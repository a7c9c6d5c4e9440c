"""The block of the paper's Theorem 3.3 under a causal mask, as it is, and what it does in the hard limit γ, C → ∞.

The paper says that this fails (its appendix, §2; F.2 in the camera-ready). What it does instead: in every round each
position selects its best live response, and a response goes out of play when its *own* position selects it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from ..preferences import scores, step_size
from ..tasks import AlignmentTask, refuse_non_finite, refuse_ties
from . import elimination

block = replace(elimination.block, causal=True)


def hard_rounds(
    rewards: Shaped[Tensor, "*batch tokens"], rounds: int
) -> Iterator[tuple[Bool[Tensor, "*batch tokens tokens"], Int[Tensor, "*batch tokens"]]]:
    """For each round, which tokens (last) every position (second last) weighs, and the one that it selects.

    A position weighs the tokens in play among those it sees. When none is, all it sees are lowered alike, softmax
    does not notice, and it weighs them all. Rewards are compared and nothing else: integers and floats are exact.
    Raises ValueError: rewards that are not finite, or equal.
    Source: claim ``naive-causal-patience``.
    """
    refuse_non_finite("rewards", rewards)
    refuse_ties("rewards", rewards)
    return _hard_rounds(rewards, rounds)


def _hard_rounds(
    rewards: Shaped[Tensor, "*batch tokens"], rounds: int
) -> Iterator[tuple[Bool[Tensor, "*batch tokens tokens"], Int[Tensor, "*batch tokens"]]]:
    places = torch.arange(rewards.shape[-1])
    seen = places <= places[:, None]
    worst_first = rewards.argsort(-1).argsort(-1)
    gone = torch.zeros_like(rewards, dtype=torch.bool)
    for _ in range(rounds):
        live = seen & ~gone[..., None, :]
        live = torch.where(live.any(-1, keepdim=True), live, seen)
        selected = worst_first[..., None, :].masked_fill(~live, -1).argmax(-1)
        yield live, selected
        gone = gone | (selected == places)


def hard_update(task: AlignmentTask, eta: float, rounds: int) -> Shaped[Tensor, "*batch tokens dim_y"]:
    r"""The accumulator at every position after that many rounds.

    .. math:: u_t = 2η \sum_k \Bigl( y_{\text{selected}} - \sum_{j \text{ weighed}} β_j y_j \Bigr)

    Shapes: task with one query → (…, N, d_y).
    Raises ValueError: a task with several queries, or a step size that is not positive and finite.
    Source: claim ``naive-causal-fails``.
    """
    if task.queries != 1:
        raise ValueError(f"task: {task.queries} queries, expected 1")
    eta = step_size(eta, task.dtype)
    y, s = task.y[..., 0, :, :], scores(task)[..., 0, None, :]
    u = torch.zeros_like(y)
    for live, selected in hard_rounds(task.r[..., 0, :], rounds):
        mean = s.masked_fill(~live, float("-inf")).softmax(-1) @ y
        u = u + 2 * eta * (y.take_along_dim(selected[..., None], -2) - mean)
    return u
