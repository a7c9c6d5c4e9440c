"""What several tests compare a construction with: tasks of its class, and the gradient step by autograd."""

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
