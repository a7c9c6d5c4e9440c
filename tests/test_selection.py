"""Selection keeps its promise on its whole class, and refuses what lies outside."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import icalign
from icalign import AlignmentTask, OutOfClass
from icalign.bounds import crowd_in_steps, share
from icalign.constructions import Selection

Sample = dict[str, Any]


def errors(selection: Selection, task: AlignmentTask) -> Tensor:
    """max over tokens of ‖c(task) − y⁺‖ for every task of the batch, in float64."""
    best = task.r.argmax(-1)[..., None, None].expand(*task.r.shape[:-1], 1, task.dim_y)
    distance = (selection(task).double() - task.y.double().gather(-2, best)).norm(dim=-1)
    return distance.amax((-1, -2))


def task_with(r: Any, y: Any | None = None, dtype: torch.dtype = torch.float64, dim_x: int = 4) -> AlignmentTask:
    """One task with the given rewards; responses at the ends of a diameter unless they are given."""
    rewards = torch.as_tensor(r, dtype=torch.float64)
    if y is None:
        y = torch.zeros(*rewards.shape, 3, dtype=torch.float64)
        y[..., 0] = torch.where(rewards == rewards.amax(-1, keepdim=True), 3.0, -3.0)
    x = torch.zeros(1, dim_x, dtype=torch.float64)
    x[..., 0] = 1
    W = torch.zeros(3, dim_x, dtype=dtype)
    return AlignmentTask(x.to(dtype), torch.as_tensor(y)[None].to(dtype), rewards[None].to(dtype), W)


SETTINGS: list[tuple[torch.dtype, float, Sample]] = [
    (torch.float64, 1e-9, {}),
    (torch.float64, 1e-3, {"responses": 2, "min_gap": 0.5}),
    (torch.float64, 1e-6, {"responses": 21, "min_gap": 0.1}),  # (N − 1)Δ = R: only equally spaced rewards fit
    (torch.float64, 1e-2, {"responses": 3, "reward_range": (-7.0, 5.0), "radius": 0.01, "min_gap": 1e-3}),
    (torch.float32, 1e-2, {}),
    (torch.float32, 1e-1, {"responses": 2, "min_gap": 1.0, "reward_range": (0.0, 1.0)}),
    (torch.bfloat16, 4.0, {"responses": 2, "min_gap": 1.0, "reward_range": (0.0, 1.0)}),
]


@pytest.mark.parametrize(("dtype", "tolerance", "kind"), SETTINGS, ids=str)
def test_the_promise_is_kept_on_random_tasks(dtype: torch.dtype, tolerance: float, kind: Sample) -> None:
    """7 × 2000 tasks; the promise holds for each, and the exact part of it is not idle: errors come within a factor."""
    selection = Selection(tolerance=tolerance, dtype=dtype, **kind)
    assert selection.error_bound <= tolerance
    task = icalign.sample_task(batch=(2000,), dtype=dtype, seed=5, **kind)
    found = errors(selection, task)
    assert bool((found <= selection.error_bound).all()), (found.max() / selection.error_bound).item()


def ratio_at_the_extreme(selection: Selection) -> float:
    """Error over exact bound for equally spaced rewards and the losers all opposite the winner."""
    kind = selection.task_class
    spaced = [kind.reward_range[0] + k * kind.min_gap for k in range(kind.responses)]
    found = errors(selection, task_with(spaced)).item()
    return found / (kind.diameter * share(crowd_in_steps(selection.gamma, kind.min_gap, kind.responses)))


@pytest.mark.parametrize("gamma", [0.0, 1e-3, 1.0, 20.0, 100.0])
@pytest.mark.parametrize("responses", [2, 3, 16])
def test_the_exact_bound_is_attained(gamma: float, responses: int) -> None:
    """Equally spaced rewards, all losers opposite the winner: the error is D₀·q/(1+q) itself, up to rounding."""
    selection = Selection(temperatures={"gamma": gamma}, responses=responses, min_gap=0.125)
    # spacing 1/8 is exact; rounding is allowed error_bound − exact, at most a few hundred ε of the radius 3
    exact = 6.0 * share(crowd_in_steps(gamma, 0.125, responses))
    slack = (selection.error_bound - exact) / exact
    assert slack >= 0
    assert abs(ratio_at_the_extreme(selection) - 1) <= slack
    assert slack < 1e-10 or gamma > 50


EXTREME: list[tuple[str, Any]] = [
    ("bottom of the range", lambda low, high, gap, count: [low + k * gap for k in range(count)]),
    ("top of the range", lambda low, high, gap, count: [high - k * gap for k in range(count)]),
    ("both ends", lambda low, high, gap, count: [low + k * gap for k in range(count - 1)] + [high]),
    ("winner just ahead", lambda low, high, gap, count: [low + k * gap for k in range(count - 2)] + [high - gap, high]),
]


@pytest.mark.parametrize(("name", "rewards"), EXTREME, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_the_promise_is_kept_at_the_ends_of_the_class(name: str, rewards: Any, count: int, dtype: torch.dtype) -> None:
    low, high, gap = -1.0, 3.0, 0.25
    for gamma in (0.0, 0.5, 8.0, 40.0, 1e5):
        kind = {"responses": count, "min_gap": gap, "reward_range": (low, high)}
        selection = Selection(temperatures={"gamma": gamma}, dtype=dtype, **kind)
        found = errors(selection, task_with(rewards(low, high, gap, count), dtype=dtype)).item()
        assert found <= selection.error_bound
        assert math.isfinite(found)


def test_at_temperature_zero_every_response_counts_alike() -> None:
    selection = Selection(temperatures={"gamma": 0.0}, responses=4)
    task = icalign.sample_task(responses=4)
    # a mean of four numbers of norm ≤ 3: five roundings
    assert (selection(task) - task.y.mean(-2, keepdim=True)).norm(dim=-1).max() <= 5 * 3 * 2**-53 * 4
    assert selection.error_bound >= 6.0 * 3 / 4


def test_a_temperature_beyond_the_dtype_promises_nothing_or_raises() -> None:
    assert Selection(temperatures={"gamma": 1e6}, dtype=torch.bfloat16).error_bound == math.inf
    with pytest.raises(OverflowError):
        Selection(temperatures={"gamma": 1e6}, dtype=torch.float16)


def test_the_answer_stands_at_every_token() -> None:
    selection = Selection(tolerance=1e-9)
    task = icalign.sample_task(batch=(2, 3))
    answer = selection(task)
    assert answer.shape == (2, 3, 1, 8, 3)
    # all tokens have one query, so that logits and answer are the same
    assert (answer - answer[..., :1, :]).abs().max() <= 1e-12
    assert torch.equal(selection.read(selection.transformer(selection.embed(task))), answer)


def test_weights_do_not_depend_on_the_task() -> None:
    selection = Selection(tolerance=1e-6)
    before = {name: p.clone() for name, p in selection.transformer.state_dict().items()}
    selection(icalign.sample_task(seed=1))
    selection(icalign.sample_task(seed=2, batch=(4,)))
    after = selection.transformer.state_dict()
    assert all([torch.equal(before[name], after[name]) for name in before])
    again = Selection(tolerance=1e-6).transformer.state_dict()
    assert all([torch.equal(before[name], again[name]) for name in before])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "either tolerance or temperatures"),
        ({"tolerance": 1e-3, "temperatures": {"gamma": 1.0}}, "either tolerance or temperatures"),
        ({"tolerance": math.nan}, "tolerance: nan"),
        ({"tolerance": math.inf}, "tolerance: inf"),
        ({"tolerance": -1.0}, "tolerance: -1.0"),
        ({"tolerance": 0.0}, "tolerance: 0.0"),
        ({"tolerance": 1e-16}, "tolerance: 1e-16, torch.float64 promises no less"),
        ({"tolerance": 1e-300}, "tolerance: 1e-300"),
        ({"tolerance": 1e-6, "dtype": torch.float32}, "torch.float32 promises no less"),
        ({"tolerance": 1e-2, "dtype": torch.bfloat16}, "torch.bfloat16 promises no less"),
        ({"temperatures": {}}, r"temperatures: \[\], expected \['gamma'\]"),
        ({"temperatures": {"beta": 1.0}}, r"temperatures: \['beta'\]"),
        ({"temperatures": {"gamma": -1.0}}, "-1.0, expected a finite number"),
        ({"temperatures": {"gamma": math.nan}}, "nan, expected a finite number"),
        ({"temperatures": {"gamma": math.inf}}, "inf, expected a finite number"),
        ({"tolerance": 1e-3, "responses": 1}, "responses: 1, expected at least 2"),
        ({"tolerance": 1e-3, "responses": 0}, "responses: 0, expected at least 1"),
        ({"tolerance": 1e-3, "dim_x": 0}, "dim_x: 0"),
        ({"tolerance": 1e-3, "dim_y": -1}, "dim_y: -1"),
        ({"tolerance": 1e-3, "min_gap": 0.0}, "min_gap: 0.0"),
        ({"tolerance": 1e-3, "min_gap": math.nan}, "min_gap: nan"),
        ({"tolerance": 1e-3, "radius": -3.0}, "radius: -3.0"),
        ({"tolerance": 1e-3, "radius": math.inf}, "radius: inf"),
        ({"tolerance": 1e-3, "reward_range": (2.0, 0.0)}, r"reward_range: \(2.0, 0.0\)"),
        ({"tolerance": 1e-3, "reward_range": (0.0, math.inf)}, "reward_range"),
        ({"tolerance": 1e-3, "responses": 22, "min_gap": 0.1}, "span 2.1, expected at most R = 2: the class is empty"),
    ],
)
def test_bad_arguments_are_refused(arguments: Sample, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Selection(**arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"responses": 7}, "responses: the task has 7, the class 8"),
        ({"dim_x": 5}, "dim_x: the task has 5, the class 4"),
        ({"dim_y": 2}, "dim_y: the task has 2, the class 3"),
        ({"queries": 2}, "queries: the task has 2, the class 1"),
        ({"min_gap": 0.05, "seed": 3}, "min_gap: the task has a gap of .*, the class asks for 0.1"),
        ({"reward_range": (-1.0, 1.0)}, "reward_range: the task has a reward of .*, the class starts at 0"),
        ({"reward_range": (0.0, 9.0)}, "reward_range: the task has a reward of .*, the class ends at 2"),
        ({"radius": 30.0}, "radius: the task has a response of norm .*, the class allows 3"),
    ],
)
def test_a_task_outside_the_class_is_refused(arguments: Sample, words: str) -> None:
    selection = Selection(tolerance=1e-6)
    with pytest.raises(OutOfClass, match=words) as refused:
        selection(icalign.sample_task(**arguments))
    assert isinstance(refused.value, ValueError)


def test_one_bad_task_in_a_batch_is_enough() -> None:
    task = icalign.sample_task(batch=(5,))
    r = task.r.clone()
    r[3, 0] = torch.linspace(0.0, 0.5, 8)
    with pytest.raises(OutOfClass, match="min_gap"):
        Selection(tolerance=1e-6)(AlignmentTask(task.x, task.y, r, task.W))


def test_a_task_of_another_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match=r"dtype torch.float32, expected torch.float64"):
        Selection(tolerance=1e-6)(icalign.sample_task(dtype=torch.float32))


def test_a_gap_that_only_rounding_has_shortened_belongs_to_the_class() -> None:
    """0.3 − 0.2 is below 0.1 in float64."""
    rewards = [0.2, 0.3]
    assert rewards[1] - rewards[0] < 0.1
    selection = Selection(tolerance=1e-6, responses=2)
    assert errors(selection, task_with(rewards)).item() <= selection.error_bound
