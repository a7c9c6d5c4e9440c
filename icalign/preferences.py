"""The reward model, the likelihoods of a ranking under it, and one gradient step on them in closed form.

A ranking enters every loss through its *tail sums* S_k = Σ exp(s_j) over the responses ranked k-th or worse. They are
computed for all k (and all prefixes t) at once, each relative to its own largest term: no score is too large.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from icalign.tasks import (
    AlignmentTask,
    refuse_non_finite,
    refuse_non_floating,
    refuse_non_numbers,
    refuse_non_tasks,
    refuse_overflow,
    refuse_ties,
)


def scores(task: AlignmentTask) -> Float[Tensor, "*batch queries responses"]:
    r"""Reward model on every response of a task.

    .. math:: s_j = r_W(x, y_j) = -\lVert W x - y_j \rVert^2

    Shapes: task with x (…, M, d_x), y (…, M, N, d_y), W (d_y, d_x) → (…, M, N).
    Raises ValueError: a score that overflows the dtype.
    Source: the reward model of the paper's section 3.
    """
    refuse_non_tasks("task", task)
    prediction = task.x @ task.W.mT
    scores = -(prediction.unsqueeze(-2) - task.y).square().sum(-1)
    refuse_overflow("scores", scores, "−‖Wx − y‖²")
    return scores


def plackett_luce_nll(
    scores: Float[Tensor, "*batch responses"], rewards: Float[Tensor, "*batch responses"]
) -> Float[Tensor, "*batch"]:
    r"""Negative log-likelihood of the ranking by reward under the Plackett–Luce model.

    .. math:: L = -\log P_{PL}(τ) = \sum_{k=1}^{N} \Bigl( \log \sum_{j \ge k} e^{s_{τ(j)}} - s_{τ(k)} \Bigr),
              \qquad r_{τ(1)} > … > r_{τ(N)}

    Shapes: scores and rewards (…, N), N ≥ 1 → (…). One response has one ranking: N = 1 gives 0.
    Memory O(N) per ranking, also for derivatives of any order.
    Raises ValueError: shapes that differ, values not finite, rewards of one ranking that tie, a loss that overflows
    the dtype.
    Source: `pl-normalised`, `pl-shift`, `pl-last-term`; the paper's Plackett–Luce objective.
    """
    _validate(scores, rewards)
    order = _worst_first(rewards)
    return _nll(_rank(scores, order), live=order >= 0)


def online_plackett_luce_nll(
    scores: Float[Tensor, "*batch responses"], rewards: Float[Tensor, "*batch responses"]
) -> Float[Tensor, "*batch responses"]:
    r"""Plackett–Luce loss of every prefix: entry t compares responses 1..t under their own ranking.

    .. math:: L_t = -\log P_{PL}(τ_t)
              = \sum_{k=1}^{t} \Bigl( \log \sum_{k \le j \le t} e^{s_{τ_t(j)}} - s_{τ_t(k)} \Bigr)

    Shapes: scores and rewards (…, N), N ≥ 1 → (…, N); the first entry is 0, the last is :func:`plackett_luce_nll`.
    Memory O(N²) per ranking, also for derivatives of any order.
    Raises ValueError: as :func:`plackett_luce_nll`.
    Source: `online-gradient`, `online-marginal`; section 2 of the v2 appendix (F.2 in the camera-ready).
    """
    _validate(scores, rewards)
    order = _worst_first(rewards)
    return _nll(_rank(scores, order).unsqueeze(-1), live=_prefixes(order))


def bradley_terry_nll(
    scores: Float[Tensor, "*batch responses"], rewards: Float[Tensor, "*batch responses"]
) -> Float[Tensor, "*batch"]:
    r"""Negative log-likelihood that the better of two responses wins.

    .. math:: L = -\log σ(s_{τ(1)} - s_{τ(2)})

    Shapes: scores and rewards (…, 2) → (…).
    Raises ValueError: as :func:`plackett_luce_nll`, and when there are not exactly two responses.
    Source: `pl-bradley-terry`; Theorem 3.2's objective.
    """
    _validate(scores, rewards)
    if scores.shape[-1] != 2:
        raise ValueError(
            f"scores: shape {tuple(scores.shape)} has {scores.shape[-1]} responses, "
            "expected exactly 2: Bradley–Terry compares a pair"
        )
    winner = rewards.argmax(-1, keepdim=True)
    margin = scores.take_along_dim(winner, -1) - scores.take_along_dim(1 - winner, -1)
    loss = -torch.nn.functional.logsigmoid(margin.squeeze(-1))
    refuse_overflow("loss", loss, "−log P of the ranking")
    return loss


def gradient_step(task: AlignmentTask, eta: float | Float[Tensor, ""]) -> Float[Tensor, "*batch dim_y dim_x"]:
    r"""One gradient step on the Plackett–Luce loss summed over queries, in closed form.

    .. math:: ΔW = -η \nabla_W \sum_a L_a = 2η \sum_a \sum_{k<N} \bigl( y^a_{τ(k)} - μ^a_k \bigr) (x^a)^\top

    with μ_k = Σ_{j≥k} β_j^k y_τ(j) the mean of the k-th tail. It is computed response by response, as the wins above
    expectation: Σ_{k<N} (y_τ(k) − μ_k) = Σ_j (1 − w_j) y_τ(j) with w_j = Σ_{k≤j} β_j^k.

    Shapes: task (…) → (…, d_y, d_x). N = 1 gives 0: there is nothing to compare.
    Raises ValueError: η not positive, or beyond the dtype; a step that overflows it. A tensor η is read as a number:
    it must have one entry and no gradient.
    Source: `pl-gradient`, `mq-gradient`; Prop. 3.1, Eq. 9.
    """
    refuse_non_tasks("task", task)
    eta = step_size(eta, task.dtype)
    order = _worst_first(task.r)
    surplus = _surplus_wins(_rank(scores(task), order), live=order >= 0)
    pull = torch.einsum("k...,...kd->...d", surplus, task.y.take_along_dim(order.movedim(0, -1).unsqueeze(-1), -2))
    # Doubled last: 2η alone may overflow. The product is the same, for doubling rounds nothing.
    step = (2 * (eta * pull)).mT @ task.x
    refuse_overflow("step", step, f"ΔW with eta = {eta:.6g}")
    return step


def online_gradient_steps(
    task: AlignmentTask, eta: float | Float[Tensor, ""]
) -> Float[Tensor, "*batch queries responses dim_y dim_x"]:
    r"""The gradient step of every prefix of every query, each on that query's loss alone, in closed form.

    .. math:: ΔW_t = -η \nabla_W L_t = 2η \sum_{k<t} \bigl( y_{τ_t(k)} - μ_{t,k} \bigr) x^\top

    Shapes: task (…, M, N) → (…, M, N, d_y, d_x); the first prefix gets zero. Memory O(N² + N·d_y·d_x) per query.
    Raises ValueError: η not positive, or beyond the dtype; a step that overflows it. A tensor η is read as a number:
    it must have one entry and no gradient.
    Source: `online-gradient`; section 2 of the v2 appendix (F.2 in the camera-ready).
    """
    refuse_non_tasks("task", task)
    eta = step_size(eta, task.dtype)
    order = _worst_first(task.r)
    surplus = _surplus_wins(_rank(scores(task), order).unsqueeze(-1), live=_prefixes(order))
    pull = torch.einsum("k...t,...kd->...td", surplus, task.y.take_along_dim(order.movedim(0, -1).unsqueeze(-1), -2))
    steps = 2 * (eta * pull).unsqueeze(-1) * task.x[..., None, None, :]
    refuse_overflow("steps", steps, f"ΔW with eta = {eta:.6g}")
    return steps


class _Tails(NamedTuple):
    """Sums of exp(s_j) over live responses from rank k down, S_k = total_k · exp(top_k); rank first, worst first."""

    weight: Tensor
    """1 where live, 0 elsewhere."""
    behind: Tensor
    """top_k − s_k ≥ 0, where top_k is the largest score from rank k down: a constant, only s_k has derivatives."""
    odds: Tensor
    """exp(s_k − top_k) ≤ 1."""
    link: Tensor
    """exp(top_k − top_{k+1}) ≤ 1, what a sum at one rank counts for at the next better."""
    total: Tensor
    """Σ_j exp(s_j − top_k); at least 1 where k is live, set to at least 1 elsewhere."""


def _tails(ranked: Tensor, live: Tensor) -> _Tails:
    """A response that is not live takes the lowest score with weight 0: it changes no sum, and no infinity enters."""
    score = ranked.where(live, ranked.detach().amin(0))
    top = score.detach().cummax(0).values
    behind = top - score
    odds = (-behind).exp()
    link = (top[:-1] - top[1:]).exp()
    weight = live.to(score.dtype)
    return _Tails(weight, behind, odds, link, _recurrence(link, weight * odds).clamp_min(1))


def _recurrence(link: Tensor, term: Tensor) -> Tensor:
    """T_0 = term_0, T_k = link_{k−1} · T_{k−1} + term_k along the first dimension, by parallel prefix.

    Join neighbours, recurse on half as many, fill in between: log₂N vectorised levels of halving sizes, O(N) work and
    memory (also for what autograd keeps), and no term passes more than 2·log₂N additions.
    """
    size = len(term)
    if size == 1:
        return term
    odd = _recurrence(link[1:-1:2] * link[2::2], torch.addcmul(term[1::2], link[::2], term[:-1:2]))
    even = torch.addcmul(term[2::2], link[1::2], odd[: (size - 1) // 2])
    woven = torch.stack([odd[: len(even)], even], 1).flatten(0, 1)
    return torch.cat([term[:1], woven, odd[len(even) :]])


def _nll(ranked: Tensor, live: Tensor) -> Tensor:
    """Σ_k (log S_k − s_k) over the live responses; rank first, worst first."""
    tails = _tails(ranked, live)
    # Chosen, not weighed: a response that is not live may be behind by more than the dtype holds, and 0 · ∞ is NaN.
    loss = (tails.total.log() + tails.behind).where(live, 0).sum(0)
    refuse_overflow("loss", loss, "−log P of the ranking")
    return loss


def _surplus_wins(ranked: Tensor, live: Tensor) -> Tensor:
    """−∂L/∂s_j = 1 − Σ_{k ≤ rank of j} exp(s_j)/S_k, the wins above expectation; rank first, worst first."""
    tails = _tails(ranked, live)
    rounds = _recurrence(tails.link.flip(0), (tails.weight / tails.total).flip(0)).flip(0)
    return tails.weight * (1 - rounds * tails.odds)


def _worst_first(rewards: Tensor) -> Tensor:
    """Entry (k, …): the index of the response at place k from below. Rank comes first: sums along it are fastest."""
    return rewards.argsort(-1).movedim(-1, 0).contiguous()


def _rank(scores: Tensor, order: Tensor) -> Tensor:
    return scores.movedim(-1, 0).gather(0, order)


def _prefixes(order: Tensor) -> Tensor:
    """Entry (k, …, t): is the response at place k among the first t + 1 responses?"""
    return order.unsqueeze(-1) <= torch.arange(len(order))


def _validate(scores: Tensor, rewards: Tensor) -> None:
    for name, values in (("scores", scores), ("rewards", rewards)):
        refuse_non_floating(name, values)
        if values.ndim == 0 or values.shape[-1] == 0:
            raise ValueError(f"{name}: shape {tuple(values.shape)}, expected (…, N) with N ≥ 1 responses")
    if scores.shape != rewards.shape:
        raise ValueError(
            f"rewards: shape {tuple(rewards.shape)}, expected {tuple(scores.shape)}: one reward for each score"
        )
    refuse_non_finite("scores", scores)
    refuse_non_finite("rewards", rewards)
    refuse_ties("rewards", rewards)


def step_size(eta: object, dtype: torch.dtype) -> float:
    """η as a number.

    Raises:
        ValueError: no number, not positive and finite, or beyond the dtype.
    """
    if isinstance(eta, Tensor):
        if eta.ndim > 0 or eta.requires_grad or eta.is_complex():
            raise ValueError(
                f"eta: {eta.dtype} of shape {tuple(eta.shape)}{' that requires grad' * eta.requires_grad}, "
                "expected a number, or a real tensor of shape () without grad"
            )
        eta = eta.item()
    refuse_non_numbers(eta=eta)
    value = float(eta)  # type: ignore[arg-type]
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"eta: {eta}, expected a positive finite step size")
    if value > torch.finfo(dtype).max:
        raise ValueError(f"eta: {eta}, expected at most {torch.finfo(dtype).max:.6g}, the largest number of {dtype}")
    return value
