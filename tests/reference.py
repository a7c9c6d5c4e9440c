"""What several tests compare a construction with: tasks of its class, and the gradient step by autograd."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

import icalign
from icalign import AlignmentTask
from icalign.constructions.gradient import GradientStep


def sample(construction: GradientStep, batch: int, seed: int, **changes: Any) -> AlignmentTask:
    """Random tasks of the construction's class."""
    kind = construction.task_class
    arguments: dict[str, Any] = {
        "queries": kind.queries,
        "responses": kind.responses,
        "dim_x": kind.dim_x,
        "dim_y": kind.dim_y,
        "min_gap": kind.min_gap,
        "reward_range": kind.reward_range,
        "radius": kind.radius,
        "overlap": kind.overlap,
        "W": construction.W,
        "dtype": construction.dtype,
    }
    return icalign.sample_task((batch,), seed=seed, **(arguments | changes))


def by_autograd(task: AlignmentTask, eta: float) -> Tensor:
    """ΔW x at every token, ΔW from autograd through the losses of all queries, in float64."""
    x, y, r = task.x.double(), task.y.double(), task.r.double()
    W = task.W.double().expand(*task.batch, -1, -1).clone().requires_grad_()
    s = -(torch.einsum("...yx,...mx->...my", W, x)[..., None, :] - y).square().sum(-1)
    (gradient,) = torch.autograd.grad(icalign.plackett_luce_nll(s, r).sum(), W)
    return -eta * torch.einsum("...yx,...mx->...my", gradient, x)[..., None, :].expand_as(y)


def drawn(kind: type[GradientStep], few: int, many: int, widest: float) -> Iterator[tuple[Any, AlignmentTask, bool]]:
    """50 classes with N ≤ 16, ``many`` tasks each, then 10 with N up to 64 and ``few``; step sizes drawn with them.

    The tolerance is a fixed share of the longest step. Yields the construction, its tasks, and whether N ≤ 16.
    """
    for seed in range(60):
        draw = torch.rand(6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).tolist()
        responses = 2 + int(15 * draw[0]) if seed < 50 else 24 + 40 * (seed - 50) // 9
        sizes = {"dim_x": 1 + int(6 * draw[1]), "dim_y": 1 + int(6 * draw[2])}
        of: dict[str, Any] = {"responses": responses, "radius": 0.5 + widest * draw[3]}
        of["reward_range"] = (-2 * draw[4], 0.5 + 2 * draw[5])
        of["min_gap"] = 0.5 * (of["reward_range"][1] - of["reward_range"][0]) / (responses - 1)
        tasks = icalign.sample_task((many if seed < 50 else few,), **sizes, **of, seed=seed)
        eta, scale = 10 ** (-2 * draw[1]), 2 * (responses - 1) * of["radius"]
        tolerance = (1e-2, 1e-4, 1e-6)[seed % 3] * scale * eta
        yield kind(W=tasks.W, eta=eta, tolerance=tolerance, **of), tasks, seed < 50
