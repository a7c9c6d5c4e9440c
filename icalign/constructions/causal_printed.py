"""What the causal construction does as the paper prints it, in the hard limit of its temperatures.

Every position runs N−1 rounds. Once a short prefix is used up, all its responses are masked equally, softmax does not
notice, and the rounds start again.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from ..preferences import scores, step_size
from ..tasks import AlignmentTask, refuse_non_finite, refuse_non_numbers, refuse_ties


def greedy_round(
    rewards: Shaped[Tensor, "*batch tokens"], counts: Int[Tensor, "*batch tokens tokens"], gamma_2: float
) -> tuple[Int[Tensor, "*batch tokens"], Bool[Tensor, "*batch tokens tokens"]]:
    """The token that every position selects, argmax_{j≤i}(r_j − γ₂n_j), and those that it weighs, of the least count.

    Args:
        rewards: r.
        counts: n_j, how often a position (second last) has selected a token (last).
        gamma_2: γ₂ = c/γ₁ ≥ 0; γ₂ = ∞ if it is larger than every spread.

    Raises ValueError: rewards that are not finite, or equal, or another γ₂.
    Source: claim ``short-prefix-recount``.
    """
    refuse_non_finite("rewards", rewards)
    refuse_ties("rewards", rewards)
    refuse_non_numbers(gamma_2=gamma_2)
    if not gamma_2 >= 0:
        raise ValueError(f"gamma_2: {gamma_2}, expected a number ≥ 0, or ∞")
    places = torch.arange(rewards.shape[-1])
    seen = places <= places[:, None]
    least = counts.masked_fill(~seen, torch.iinfo(counts.dtype).max).amin(-1, keepdim=True)
    weighed = seen & (counts == least)
    if gamma_2 == float("inf"):
        value = rewards[..., None, :].where(weighed, float("-inf"))
    else:
        value = (rewards[..., None, :] - gamma_2 * counts).where(seen, float("-inf"))
    return value.argmax(-1), weighed


def hard_update(
    task: AlignmentTask, eta: float, gamma_2: float = float("inf")
) -> Shaped[Tensor, "*batch tokens dim_y"]:
    r"""The accumulator at every position after N−1 printed rounds, in the limit γ₁, c′ → ∞.

    .. math:: u_i = 2η \sum_{k=1}^{N-1} \Bigl( y_{\text{selected}} - \sum_{j \text{ weighed}} β_j y_j \Bigr)

    If γ₂ exceeds the spread of a prefix, that is the cyclic sum of its terms t_k = 2η(y_τ(k) − μ_k),

    .. math:: u_i = \sum_{k=1}^{N-1} t_{((k-1) \bmod i) + 1} .

    Shapes: task with one query → (…, N, d_y).
    Raises ValueError: a task with several queries, a step size that is not positive and finite, or a γ₂ below 0.
    Source: claim ``short-prefix-recount``.
    """
    if task.queries != 1:
        raise ValueError(f"task: {task.queries} queries, expected 1")
    eta = step_size(eta, task.dtype)
    rewards, y, s = task.r[..., 0, :], task.y[..., 0, :, :], scores(task)[..., 0, None, :]
    counts = torch.zeros(*rewards.shape, task.responses, dtype=torch.int64)
    u = torch.zeros_like(y)
    for _ in range(task.responses - 1):
        selected, weighed = greedy_round(rewards, counts, gamma_2)
        mean = s.masked_fill(~weighed, float("-inf")).softmax(-1) @ y
        u = u + 2 * eta * (y.take_along_dim(selected[..., None], -2) - mean)
        counts = counts + torch.nn.functional.one_hot(selected, task.responses)
    return u


def cyclic_update(task: AlignmentTask, eta: float) -> Shaped[Tensor, "*batch tokens dim_y"]:
    r"""The cyclic sum of :func:`hard_update`, term by term: :math:`\sum_{k=1}^{N-1} t_{((k-1) \bmod i) + 1}`.

    Shapes: task with one query → (…, N, d_y). Position N has N−1 terms, each once.
    Raises ValueError: a task with several queries, or a step size that is not positive and finite.
    Source: claim ``short-prefix-recount``.
    """
    if task.queries != 1:
        raise ValueError(f"task: {task.queries} queries, expected 1")
    eta = step_size(eta, task.dtype)
    rewards, y, s = task.r[..., 0, :], task.y[..., 0, :, :], scores(task)[..., 0, :]
    found = []
    for i in range(1, task.responses + 1):
        best_first = rewards[..., :i].argsort(-1, descending=True)
        ranked, score = y.take_along_dim(best_first[..., None], -2), s.gather(-1, best_first)
        means = [(score[..., k:].softmax(-1)[..., None] * ranked[..., k:, :]).sum(-2) for k in range(i)]
        terms = 2 * eta * (ranked - torch.stack(means, -2))
        found.append(terms[..., torch.arange(task.responses - 1) % i, :].sum(-2))
    return torch.stack(found, -2)
