"""Likelihoods of rankings and their gradient steps, against definitions written out place by place.

Tolerances. Let u be the unit roundoff and lg = log₂N. A tail sum relative to its largest term, Z_k, is a sum of
positive numbers, each the product of at most 2·lg rounded factors, added 2·lg deep; an exponential exp(−a) of a
difference that is rounded by u·a is off by u·(a·exp(−a) + 1) ≤ 1.4u of the largest term. So Z_k has relative error
(4·lg + 3)u at most.
- log Z_k + (top_k − s_k) is off by (4·lg + 3)u, by the rounding of the logarithm (≤ u·log N) and by u·(top_k − s_k) for
  the difference, at most u times the term itself; adding N terms costs ≤ N·u·L:
      |error of L| ≤ u·[N·(4·lg + 3 + log N) + (N + 2)·L]                                       (`loss_error`).
- w_j = Σ_{k≤j} β_j^k is a running sum of quotients, of relative error (4·lg + 3) + 1 + (4·lg + 3) + 2, and Σ_j w_j = N.
  Then Σ_j (1 − w_j) y_j has N terms and Σ_j |1 − w_j| ≤ 2N, so that with ‖y‖ ≤ radius
      |error of ΔW| ≤ 2ηM·radius·u·[N·(8·lg + 9) + 2N·(N + M + 4)]                              (`step_tolerance`),
  and a score, itself rounded by δ = (d_x + d_y + 3)·u·max|s|, moves each of the N − 1 tail means by at most δ·diameter.
The references below use the same arithmetic and are no more exact (direct sums: N in place of lg; the chain rule:
‖Wx − y‖ ≤ ω + radius in place of radius), so their own allowance is added. Nothing else is.
"""

import inspect
import itertools
import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from icalign import (
    AlignmentTask,
    bradley_terry_nll,
    gradient_step,
    online_gradient_steps,
    online_plackett_luce_nll,
    plackett_luce_nll,
    sample_task,
    scores,
)

EXTREME = 1e4
FORWARD_MODE = (
    "ignore:.torch.jit.script. is deprecated:DeprecationWarning"  # torch's own, on its first forward-mode use
)


def unit_roundoff(values: Tensor) -> float:
    return torch.finfo(values.dtype).eps / 2


def loss_error(loss: Tensor, responses: int) -> Tensor:
    depth = 4 * math.log2(responses) + 3 + math.log(responses)
    return unit_roundoff(loss) * (responses * depth + (responses + 2) * loss)


def reference_loss_error(loss: Tensor, responses: int) -> Tensor:
    return unit_roundoff(loss) * (responses * (responses + 3 + math.log(responses)) + (responses + 2) * loss)


def loss_tolerance(loss: Tensor, responses: int) -> Tensor:
    """Of a loss against its definition."""
    return loss_error(loss, responses) + reference_loss_error(loss, responses)


def step_tolerance(task: AlignmentTask, eta: float) -> float:
    """Of a step against autograd."""
    n, m, omega = task.responses, task.queries, float(torch.linalg.matrix_norm(task.W, 2))
    closed = n * (8 * math.log2(n) + 9) + 2 * n * (n + m + 4)
    reference = n * (2 * n + 9) + 2 * n * (n + m + 4 + task.dim_x + task.dim_y)
    score_error = (task.dim_x + task.dim_y + 3) * float(scores(task).abs().max())
    lengths = task.radius * closed + (omega + task.radius) * reference + 2 * (n - 1) * 2 * task.radius * score_error
    return 2 * eta * m * unit_roundoff(task.W) * lengths


def by_definition(scores: Tensor, rewards: Tensor) -> Tensor:
    """−log Π_k exp(s_τ(k)) / Σ_{j≥k} exp(s_τ(j)), place by place."""
    ranked = scores.gather(-1, rewards.argsort(-1, descending=True))
    places = range(ranked.shape[-1])
    return torch.stack([(ranked[..., k:] - ranked[..., [k]]).logsumexp(-1) for k in places]).sum(0)


def step_by_autograd(task: AlignmentTask, eta: float, prefix: int) -> Tensor:
    """−η∇_W of the loss by definition of the first `prefix` responses, summed over queries, in float64."""

    def loss(W: Tensor, x: Tensor, y: Tensor, r: Tensor) -> Tensor:
        s = -((x @ W.mT).unsqueeze(-2) - y).square().sum(-1)
        return by_definition(s[..., :prefix], r[..., :prefix]).sum()

    gradient = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0, 0))
    x, y, r, W = (getattr(task, name).double() for name in "xyrW")
    flat = (x.reshape(-1, *x.shape[-2:]), y.reshape(-1, *y.shape[-3:]), r.reshape(-1, *r.shape[-2:]))
    return -eta * gradient(W, *flat).reshape(*task.batch, task.dim_y, task.dim_x)


@st.composite
def scored_rankings(draw: st.DrawFn, min_size: int = 1, max_size: int = 9) -> tuple[Tensor, Tensor]:
    n = draw(st.integers(min_size, max_size))
    values = draw(st.lists(st.floats(-60.0, 60.0), min_size=n, max_size=n))
    ranking = draw(st.permutations(range(n)))
    return torch.tensor(values, dtype=torch.float64), torch.tensor(ranking, dtype=torch.float64)


def tasks(**fixed: int) -> st.SearchStrategy[dict[str, object]]:
    """Arguments of `sample_task`. A test calls it itself: type checks draw from `random`, which strategies may not."""
    return st.fixed_dictionaries(
        {
            "batch": st.just((2,)),
            "responses": st.integers(1, 12),
            "dim_x": st.integers(1, 4),
            "dim_y": st.integers(1, 4),
            "radius": st.sampled_from([0.1, 1.0, 3.0, 20.0]),
            "seed": st.integers(0, 2**31 - 1),
        }
        | {name: st.just(value) for name, value in fixed.items()}
    )


# ---------------------------------------------------------------- the losses


@given(scored_rankings())
def test_the_loss_is_minus_the_log_of_the_product_of_shares(example: tuple[Tensor, Tensor]) -> None:
    s, r = example
    expected = by_definition(s, r)
    assert (plackett_luce_nll(s, r) - expected).abs() <= loss_tolerance(expected, len(s))


@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.floats(-30.0, 30.0), min_size=n, max_size=n)))
def test_the_probabilities_of_all_rankings_sum_to_one(values: list[float]) -> None:
    n = len(values)
    rewards = torch.tensor(list(itertools.permutations(range(n))), dtype=torch.float64)
    losses = plackett_luce_nll(torch.tensor(values, dtype=torch.float64).expand_as(rewards), rewards)
    # exp turns an error of the loss into a relative error, and rounds; N! ≤ 120 terms are added.
    probabilities = (-losses).exp()
    tolerance = (probabilities * (loss_error(losses, n) + 2**-53 * (losses + 1 + len(losses)))).sum()
    assert (probabilities.sum() - 1).abs() <= tolerance


@given(scored_rankings(), st.floats(-1e4, 1e4))
def test_one_constant_added_to_all_scores_changes_nothing(example: tuple[Tensor, Tensor], shift: float) -> None:
    s, r = example
    loss, shifted = plackett_luce_nll(s, r), plackett_luce_nll(s + shift, r)
    # The shifted scores are rounded by u·max|s + c|, and Σ_j |∂L/∂s_j| ≤ 2N.
    rounding = 2 * len(s) * 2**-53 * (s + shift).abs().max()
    assert (loss - shifted).abs() <= 2 * loss_error(torch.maximum(loss, shifted), len(s)) + rounding


@given(scored_rankings(), st.randoms(use_true_random=False))
def test_the_order_in_which_responses_are_listed_does_not_matter(example: tuple[Tensor, Tensor], random) -> None:
    s, r = example
    order = torch.tensor(random.sample(range(len(s)), len(s)))
    assert plackett_luce_nll(s, r) == plackett_luce_nll(s[order], r[order])  # exactly: the sorted scores are the same


@given(tasks(), st.randoms(use_true_random=False))
def test_a_step_does_not_depend_on_the_order_of_responses(arguments: dict[str, object], random) -> None:
    task = sample_task(**arguments)
    order = torch.tensor(random.sample(range(task.responses), task.responses))
    listed = replace(task, y=task.y[..., order, :], r=task.r[..., order])
    # The scores may be summed in another order, so equal to rounding only.
    assert (gradient_step(task, 0.5) - gradient_step(listed, 0.5)).abs().max() <= step_tolerance(task, 0.5)


@given(scored_rankings(min_size=2, max_size=2))
def test_two_responses_are_bradley_terry(example: tuple[Tensor, Tensor]) -> None:
    s, r = example
    pair = bradley_terry_nll(s, r)
    assert (pair - plackett_luce_nll(s, r)).abs() <= 2 * loss_error(pair, 2)
    best, worst = s[r.argmax()], s[r.argmin()]
    assert (pair - torch.log1p((worst - best).exp())).abs() <= 2 * loss_error(pair, 2)


@given(scored_rankings())
def test_each_online_loss_is_the_loss_of_its_prefix(example: tuple[Tensor, Tensor]) -> None:
    s, r = example
    online = online_plackett_luce_nll(s, r)
    assert online[0] == 0
    for t in range(1, len(s) + 1):
        expected = by_definition(s[:t], r[:t])
        # Masked places cost roundings too: the allowance is that of N responses.
        assert (online[t - 1] - expected).abs() <= loss_tolerance(expected, len(s))
    full = plackett_luce_nll(s, r)
    assert (online[-1] - full).abs() <= 2 * loss_error(full, len(s))


def test_leading_dimensions_are_independent_instances() -> None:
    task = sample_task(batch=(2, 3), queries=2, responses=7, orthonormal=True)
    s = scores(task)
    losses, online = plackett_luce_nll(s, task.r), online_plackett_luce_nll(s, task.r)
    assert s.shape == (2, 3, 2, 7) and losses.shape == (2, 3, 2) and online.shape == (2, 3, 2, 7)
    for index in itertools.product(range(2), range(3), range(2)):
        single = plackett_luce_nll(s[index], task.r[index])
        assert (losses[index] - single).abs() <= 2 * loss_error(single, 7)  # vectorised exponentials may differ
        prefixes = online_plackett_luce_nll(s[index], task.r[index])
        assert ((online[index] - prefixes).abs() <= 2 * loss_error(prefixes, 7)).all()


def test_one_response_costs_nothing_and_moves_nothing() -> None:
    task = sample_task(responses=1)
    assert plackett_luce_nll(scores(task), task.r).item() == 0
    assert online_plackett_luce_nll(scores(task), task.r).tolist() == [[0.0]]
    assert not gradient_step(task, 1.0).any() and not online_gradient_steps(task, 1.0).any()


def test_scores_are_minus_squared_distances() -> None:
    W, x = torch.tensor([[1.0, 2.0], [0.0, -1.0]]), torch.tensor([[0.6, 0.8]])
    y = torch.tensor([[[2.2, -0.8], [0.2, -0.8], [2.2, 2.2]]])
    task = AlignmentTask(x, y, torch.tensor([[1.0, 2.0, 3.0]]), W)
    # Wx = (2.2, −0.8): distances 0, 2, 3. Entries up to 3 are rounded to u a few times, then squared.
    assert torch.allclose(scores(task), torch.tensor([[0.0, -4.0, -9.0]]), rtol=0, atol=2 * 3 * 2 * 4 * 2**-24)


# ---------------------------------------------------------------- gradient steps


@given(tasks())
def test_a_step_is_minus_eta_times_the_gradient(arguments: dict[str, object]) -> None:
    task = sample_task(**arguments)
    error = (gradient_step(task, 0.3) - step_by_autograd(task, 0.3, task.responses)).abs().max()
    assert error <= step_tolerance(task, 0.3)


@given(tasks(queries=3))
def test_a_step_sums_over_queries_and_agrees_with_autograd_through_the_loss(arguments: dict[str, object]) -> None:
    task = sample_task(**arguments)
    W = task.W.clone().requires_grad_()
    losses = plackett_luce_nll(scores(replace(task, W=W)), task.r)
    steps = gradient_step(task, 0.3)
    for index in range(2):
        (gradient,) = torch.autograd.grad(losses[index].sum(), W, retain_graph=True)
        assert (steps[index] + 0.3 * gradient).abs().max() <= step_tolerance(task, 0.3)


@given(tasks())
def test_each_online_step_is_the_step_of_its_prefix(arguments: dict[str, object]) -> None:
    task = sample_task(**arguments)
    steps = online_gradient_steps(task, 0.3)
    assert not steps[..., 0, :, :].any()
    for t in range(1, task.responses + 1):
        error = (steps[:, 0, t - 1] - step_by_autograd(task, 0.3, t)).abs().max()
        assert error <= step_tolerance(task, 0.3)


def test_online_steps_keep_the_queries_apart() -> None:
    task = sample_task(batch=(2,), queries=3, responses=5)
    steps = online_gradient_steps(task, 0.3)
    assert steps.shape == (2, 3, 5, 3, 4)
    for a in range(3):
        alone = replace(task, x=task.x[:, [a]], y=task.y[:, [a]], r=task.r[:, [a]])
        assert (steps[:, a, -1] - step_by_autograd(alone, 0.3, 5)).abs().max() <= step_tolerance(task, 0.3)
    assert (steps[:, :, -1].sum(1) - gradient_step(task, 0.3)).abs().max() <= step_tolerance(task, 0.3)


@pytest.mark.filterwarnings(FORWARD_MODE)
def test_the_hessian_is_the_covariance_of_the_tails() -> None:
    task = sample_task(responses=6)
    x, y, ranking = task.x[0], task.y[0], task.r[0].argsort(descending=True)
    expected = torch.zeros(12, 12, dtype=torch.float64)
    for k in range(6):
        tail = ranking[k:]
        weights = scores(task)[0, tail].softmax(0)
        centred = y[tail] - weights @ y[tail]
        expected += 4 * torch.kron((weights[:, None] * centred).mT @ centred, torch.outer(x, x))

    def loss(W: Tensor) -> Tensor:
        return plackett_luce_nll(scores(replace(task, W=W)), task.r).squeeze(0)

    hessian = torch.func.hessian(loss)(task.W).reshape(12, 12)
    # Each of the N terms is a second moment of vectors 2(Wx − y), no longer than 2(ω + radius), with weights of
    # relative error (8·lg + 9)u; sums of N products add N roundings. The scores' curvature enters times Σ(1 − w) = 0.
    size = 6 * 6 * (2 * (float(torch.linalg.matrix_norm(task.W, 2)) + 3)) ** 2
    assert (hessian - expected).abs().max() <= 2**-53 * (8 * math.log2(6) + 9) * size


@pytest.mark.filterwarnings(FORWARD_MODE)
@pytest.mark.parametrize("loss", [plackett_luce_nll, online_plackett_luce_nll, bradley_terry_nll])
@pytest.mark.parametrize("tied", [False, True])
def test_first_and_second_derivatives_of_the_losses(loss: Callable[[Tensor, Tensor], Tensor], tied: bool) -> None:
    n = 2 if loss is bradley_terry_nll else 5
    generator = torch.Generator().manual_seed(0)
    s = torch.randn(3, n, generator=generator, dtype=torch.float64)
    s = (torch.ones_like(s) if tied else s).requires_grad_()  # equal scores must not split a gradient between maxima
    r = torch.rand(3, n, generator=generator, dtype=torch.float64)
    # torch's defaults: central differences of step 1e-6 in float64 leave about 1e-10 / 1e-6, far below atol = 1e-5.
    assert torch.autograd.gradcheck(lambda s: loss(s, r), s)
    assert torch.autograd.gradgradcheck(lambda s: loss(s, r), s)
    assert torch.autograd.gradcheck(lambda s: loss(s, r), s, check_forward_ad=True)


# ---------------------------------------------------------------- extreme scores


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_scores_of_ten_thousand_give_the_exact_loss_and_gradient(dtype: torch.dtype) -> None:
    s = torch.tensor([EXTREME, -EXTREME, EXTREME, -EXTREME], dtype=dtype, requires_grad=True)
    r = torch.tensor([1.0, 4.0, 2.0, 3.0], dtype=dtype)
    # Ranking −, −, +, + (responses 1, 3, 2, 0): 2·(2e4 + log 2) + log 2. Each + is expected to win half of the first
    # three rounds; response 0 wins the fourth too, alone.
    loss = plackett_luce_nll(s, r)
    expected = torch.tensor(4 * EXTREME + 3 * math.log(2), dtype=dtype)
    assert (loss - expected).abs() <= loss_error(expected, 4) + unit_roundoff(expected) * expected
    (gradient,) = torch.autograd.grad(loss, s)
    assert torch.equal(gradient, torch.tensor([1.5, -1.0, 0.5, -1.0], dtype=dtype))
    # Prefixes: {0}; {0, 1}: the − first, loss 2e4; {0, 1, 2}: −, then + and +.
    online = online_plackett_luce_nll(s, r)
    prefixes = torch.tensor([0, 2 * EXTREME, 2 * EXTREME + 2 * math.log(2), 4 * EXTREME + 3 * math.log(2)], dtype=dtype)
    assert ((online - prefixes).abs() <= loss_error(prefixes, 4) + unit_roundoff(prefixes) * prefixes).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@given(seed=st.integers(0, 2**31 - 1), n=st.integers(2, 40))
def test_extreme_scores_leave_everything_finite_and_right(dtype: torch.dtype, seed: int, n: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    s = (EXTREME * (2 * torch.rand(4, n, generator=generator) - 1)).to(dtype)
    s[1] = EXTREME * s[1].sign()  # ties at both ends
    s[2] = s[2] / 1e3
    r = torch.rand(4, n, generator=generator).argsort(-1).to(dtype)
    s.requires_grad_()
    losses = plackett_luce_nll(s, r)
    expected = by_definition(s.double(), r.double())
    allowed = loss_error(expected.to(dtype), n) + reference_loss_error(expected, n)
    assert ((losses - expected).abs() <= allowed).all()
    online = online_plackett_luce_nll(s, r)
    assert (online[:, -1] - losses).abs().sub(2 * loss_error(losses, n)).max() <= 0
    (first,) = torch.autograd.grad(losses.sum() + online.sum(), s, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), s)
    assert first.isfinite().all() and second.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_steps_are_finite_and_right_when_scores_reach_ten_thousand(dtype: torch.dtype) -> None:
    task = sample_task(batch=(8,), responses=16, radius=100.0, dtype=dtype)
    assert scores(task).min() < -0.9 * EXTREME
    full, online = gradient_step(task, 0.1), online_gradient_steps(task, 0.1)
    allowed = step_tolerance(task, 0.1)
    assert (full - step_by_autograd(task, 0.1, 16)).abs().max() <= allowed
    for t in range(1, 17):
        assert (online[:, 0, t - 1] - step_by_autograd(task, 0.1, t)).abs().max() <= allowed


def test_two_thousand_responses_run_online() -> None:
    task = sample_task(responses=2048, dim_x=5, dim_y=5, min_gap=1e-5)
    s = scores(task)
    full = plackett_luce_nll(s, task.r)
    assert (online_plackett_luce_nll(s, task.r)[0, -1] - full).abs() <= 2 * loss_error(full, 2048)
    last = online_gradient_steps(task, 0.1)[0, -1]
    assert (last - gradient_step(task, 0.1)).abs().max() <= step_tolerance(task, 0.1)


# ---------------------------------------------------------------- a test that these tests can fail

WRONG_LOSSES = {
    "every tail is the whole field": lambda s, r: len(s) * s.logsumexp(0) - s.sum(),
    "worst first": lambda s, r: by_definition(s, -r),
    "the winner leaves before its own round": lambda s, r: sum(
        s[r < r[j]].logsumexp(0) - s[j] for j in range(len(s)) if r[j] > r.min()
    ),
    "the two worst responses are left out": lambda s, r: by_definition(s[r > 1], r[r > 1]),
}


@pytest.mark.parametrize("case", WRONG_LOSSES)
def test_the_tolerance_rejects_a_wrong_loss(case: str) -> None:
    s, r = torch.tensor([0.3, -1.2, 0.9, 2.0], dtype=torch.float64), torch.tensor([2.0, 0.0, 3.0, 1.0]).double()
    loss = plackett_luce_nll(s, r)
    assert (WRONG_LOSSES[case](s, r) - loss).abs() > 1e6 * loss_tolerance(loss, 4)


def test_the_tolerance_rejects_a_wrong_step() -> None:
    task = sample_task(responses=6)
    step, tolerance = gradient_step(task, 0.3), step_tolerance(task, 0.3)
    field_mean = 2 * 0.3 * task.y[0].mean(0)[:, None] * task.x  # one tail mean replaced by the plain mean
    wrong = {
        "ascent": -step,
        "no factor 2": step / 2,
        "one response more": step_by_autograd(task, 0.3, 5),
        "one term off": step + field_mean,
        "off in the tenth digit": step * (1 + 1e-10),
    }
    for name, other in wrong.items():
        assert (other - step).abs().max() > 10 * tolerance, name


# ---------------------------------------------------------------- refusals

GOOD = torch.tensor([0.0, 1.0, 2.0])
REFUSED = {
    "shapes differ": (GOOD, GOOD[:2], "rewards: shape (2,), expected (3,): one reward for each score"),
    "no responses": (GOOD[:0], GOOD[:0], "scores: shape (0,), expected (…, N) with N ≥ 1 responses"),
    "a number": (torch.tensor(1.0), torch.tensor(1.0), "scores: shape (), expected (…, N) with N ≥ 1 responses"),
    "integers": (GOOD, GOOD.long(), "rewards: dtype torch.int64, expected a floating torch tensor"),
    "NaN score": (torch.tensor([0.0, math.nan, 1.0]), GOOD, "scores: nan at (1,), expected finite values"),
    "infinite score": (torch.tensor([0.0, 1.0, -math.inf]), GOOD, "scores: -inf at (2,), expected finite values"),
    "NaN reward": (GOOD, torch.tensor([math.nan, 1.0, 0.0]), "rewards: nan at (0,), expected finite values"),
    "tied rewards": (
        GOOD.expand(2, 3),
        torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0]]),
        "rewards: responses 0 and 2 of query (1,) both have reward 1.0, expected distinct rewards",
    ),
}


@pytest.mark.parametrize("loss", [plackett_luce_nll, online_plackett_luce_nll, bradley_terry_nll])
@pytest.mark.parametrize("case", REFUSED)
def test_a_loss_refuses_bad_input(loss: Callable[[Tensor, Tensor], Tensor], case: str) -> None:
    s, r, message = REFUSED[case]
    with pytest.raises(ValueError) as refusal:  # noqa: PT011  # the message is compared just below, without escapes
        inspect.unwrap(loss)(s, r)  # without the tests' type checks, which would speak first
    assert message in str(refusal.value)


@pytest.mark.parametrize("n", [1, 3])
def test_bradley_terry_compares_a_pair(n: int) -> None:
    with pytest.raises(ValueError, match=rf"scores: shape \({n},\) has {n} responses, expected exactly 2"):
        bradley_terry_nll(GOOD[:n].reshape(n), GOOD[:n])


@pytest.mark.parametrize("eta", [0.0, -0.1, math.inf, math.nan])
@pytest.mark.parametrize("step", [gradient_step, online_gradient_steps])
def test_a_step_size_is_positive_and_finite(step: Callable[[AlignmentTask, float], Tensor], eta: float) -> None:
    with pytest.raises(ValueError, match=f"eta: {eta}, expected a positive finite step size"):
        step(sample_task(), eta)


def test_scores_that_overflow_are_refused() -> None:
    task = sample_task()
    with pytest.raises(ValueError, match=r"scores: -inf at \(0, 0\), expected finite values"):
        gradient_step(replace(task, y=task.y * 1e200), 0.1)


# ---------------------------------------------------------------- results beyond the dtype

HALVES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", HALVES)
def test_a_prefix_is_finite_whatever_comes_after_it(dtype: torch.dtype) -> None:
    largest = torch.finfo(dtype).max
    s = torch.tensor([largest, largest, -largest], dtype=dtype, requires_grad=True)  # the last gap overflows
    better_first = torch.tensor([2.0, 1.0, 0.0], dtype=dtype)
    online = online_plackett_luce_nll(s, better_first)
    # The last response wins no round: every prefix of more than one has the loss log 2 of two equal scores.
    expected = torch.tensor([0.0, math.log(2), math.log(2)], dtype=dtype)
    assert ((online - expected).abs() <= loss_error(expected, 3)).all() and online[0] == 0
    assert (plackett_luce_nll(s, better_first) - expected[-1]).abs() <= loss_error(expected[-1], 3)
    (first,) = torch.autograd.grad(online.sum(), s, create_graph=True)
    assert torch.equal(first, torch.tensor([-1.0, 1.0, 0.0], dtype=dtype))
    (second,) = torch.autograd.grad(first.square().sum(), s)
    assert second.isfinite().all()
    assert bradley_terry_nll(s[1:], better_first[1:]) == 0


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("loss", [plackett_luce_nll, online_plackett_luce_nll, bradley_terry_nll])
def test_a_loss_that_overflows_is_refused(loss: Callable[[Tensor, Tensor], Tensor], dtype: torch.dtype) -> None:
    s = 0.6 * torch.tensor([1, -1], dtype=dtype) * torch.finfo(dtype).max
    with pytest.raises(ValueError, match=rf"loss: inf at .*: −log P of the ranking overflows {dtype}, whose largest"):
        loss(s, torch.tensor([0.0, 1.0], dtype=dtype))
    assert loss(s / 2, torch.tensor([0.0, 1.0], dtype=dtype)).isfinite().all()  # the gap is 0.6 of the largest number


def test_a_sum_of_finite_terms_that_overflows_is_refused() -> None:
    s = torch.tensor([40000.0, 0.0, 0.0], dtype=torch.float16)
    r = torch.tensor([0.0, 1.0, 2.0], dtype=torch.float16)
    for loss in (plackett_luce_nll, online_plackett_luce_nll):
        with pytest.raises(ValueError, match=r"loss: inf at .* overflows torch.float16, whose largest number is 65504"):
            loss(s, r)


@pytest.mark.parametrize("step", [gradient_step, online_gradient_steps])
@pytest.mark.parametrize(
    ("dtype", "eta", "radius"),
    [
        (torch.float16, 1000.0, 200.0),
        (torch.float32, 1e38, 3.0),
        (torch.bfloat16, 1e38, 3.0),
        (torch.float64, 1e308, 3.0),
    ],
)
def test_a_step_that_overflows_is_refused(
    step: Callable[[AlignmentTask, float], Tensor], dtype: torch.dtype, eta: float, radius: float
) -> None:
    task = sample_task(dtype=dtype, radius=radius, W=torch.zeros(3, 4, dtype=dtype))
    eta_named = re.escape(f"{eta:.6g}")
    with pytest.raises(ValueError, match=rf"steps?: (nan|-?inf) at .*: ΔW with eta = {eta_named} overflows {dtype}, "):
        step(task, eta)
    assert step(task, 1e-3).isfinite().all()


@pytest.mark.parametrize("step", [gradient_step, online_gradient_steps])
@pytest.mark.parametrize("dtype", HALVES)
def test_a_step_of_one_response_is_zero_for_every_step_size(
    step: Callable[[AlignmentTask, float], Tensor], dtype: torch.dtype
) -> None:
    task = sample_task(responses=1, dtype=dtype)
    assert not step(task, torch.finfo(dtype).max).any()


@pytest.mark.parametrize("step", [gradient_step, online_gradient_steps])
def test_a_step_size_beyond_the_dtype_is_refused(step: Callable[[AlignmentTask, float], Tensor]) -> None:
    with pytest.raises(ValueError, match=r"eta: 1e\+39, expected at most 3.40282e\+38, the largest number of torch.fl"):
        step(sample_task(responses=1, dtype=torch.float32), 1e39)


def test_scores_that_overflow_name_the_dtype() -> None:
    task = sample_task(dtype=torch.float16, radius=300.0)
    with pytest.raises(ValueError, match=r"scores: -inf at .*: −‖Wx − y‖² overflows torch.float16, whose largest numb"):
        scores(task)


# ---------------------------------------------------------------- arguments of another kind

NO_STEP_SIZE = {
    "text": ("0.1", "eta: '0.1', expected a real number"),
    "nothing": (None, "eta: None, expected a real number"),
    "a truth value": (True, "eta: True, expected a real number"),
    "an integer no float holds": (10**400, "expected a number that a float holds"),
    "several": (torch.tensor([0.1]), "eta: torch.float32 of shape (1,), expected a number"),
    "a parameter": (
        torch.tensor(0.1, requires_grad=True),
        "eta: torch.float32 of shape () that requires grad, expected a number, or a real tensor of shape () without",
    ),
    "complex": (torch.tensor(1j), "eta: torch.complex64 of shape (), expected a number"),
    "a negative tensor": (torch.tensor(-1.0), "eta: -1.0, expected a positive finite step size"),
    "a boolean tensor": (torch.tensor(True), "eta: True, expected a real number"),
}


@pytest.mark.parametrize("case", NO_STEP_SIZE)
@pytest.mark.parametrize("step", [gradient_step, online_gradient_steps])
def test_what_is_no_step_size_is_refused(step: Callable[..., Tensor], case: str) -> None:
    eta, message = NO_STEP_SIZE[case]
    with pytest.raises(ValueError) as refusal:  # noqa: PT011  # the message is compared just below, without escapes
        inspect.unwrap(step)(sample_task(), eta)  # without the tests' type checks, which would speak first
    assert message in str(refusal.value)


@pytest.mark.parametrize("step", [gradient_step, online_gradient_steps])
def test_a_step_size_may_be_a_tensor_of_one_number(step: Callable[..., Tensor]) -> None:
    task = sample_task()
    assert torch.equal(step(task, torch.tensor(0.1, dtype=torch.float64)), step(task, 0.1))


@pytest.mark.parametrize("function", [scores, gradient_step, online_gradient_steps])
def test_what_is_no_task_is_refused(function: Callable[..., Tensor]) -> None:
    arguments = (3,) if function is scores else (3, 0.1)
    with pytest.raises(ValueError, match="task: int, expected an AlignmentTask"):
        inspect.unwrap(function)(*arguments)
