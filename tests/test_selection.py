"""Selection keeps its promise on its whole class, and refuses what lies outside."""

import math
import re
from typing import Any

import pytest
import torch
from torch import Tensor

import icalign
from icalign import AlignmentTask, OutOfClass, symbols
from icalign.bounds import crowd_in_steps, share
from icalign.constructions import Selection
from icalign.constructions.base import TaskClass, build
from icalign.constructions.selection import block, stream

Sample = dict[str, Any]
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


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
    with pytest.raises(
        ValueError, match=r"temperatures\['gamma'\]: 1e\+06 makes the largest logit γ·max\|r\| = 2.00000e\+6"
    ):
        Selection(temperatures={"gamma": 1e6}, dtype=torch.float16)


OVERFLOWING: list[tuple[Sample, str]] = [
    (
        {"temperatures": {"gamma": 1e308}, "reward_range": (0.0, 20.0)},
        "temperatures['gamma']: 1e+308 makes the largest logit γ·max|r| = 2.00000e+309, expected at most 1.79769e+308, "
        "which is a few roundings below 1.79769e+308, the largest number of torch.float64",
    ),
    (
        {"temperatures": {"gamma": 6e4}, "dtype": torch.float16},
        "temperatures['gamma']: 60000 makes the largest logit γ·max|r| = 120000, expected at most 65248.1, "
        "which is a few roundings below 65504, the largest number of torch.float16",
    ),
    (
        {"temperatures": {"gamma": 4e4}, "reward_range": (-1.0, 1.0), "dtype": torch.float16},
        "temperatures['gamma']: 40000 makes the largest difference γR = 80000, expected at most 65248.1",
    ),
    (
        {"temperatures": {"gamma": 1e38}, "reward_range": (-2.0, 2.0), "dtype": torch.float32},
        "temperatures['gamma']: 1e+38 makes the largest difference γR = 4.00000e+38, expected at most 3.40282e+38",
    ),
    (
        {"temperatures": {"gamma": 1e6}, "reward_range": (0.0, 0.001), "min_gap": 1e-4, "dtype": torch.float16},
        "temperatures: gamma = 1e+06, expected weights that the dtype holds: 1.00000e+6 is beyond torch.float16, whose",
    ),
    (
        {"tolerance": 0.1, "radius": 4e4, "dtype": torch.float16},
        "radius: 40000.0, expected at most 32752: D₀ = 2·radius",
    ),
    ({"tolerance": 0.1, "reward_range": (0.0, 1e5), "dtype": torch.float16}, "reward_range: (0.0, 100000.0), expected"),
]


@pytest.mark.parametrize(("arguments", "message"), OVERFLOWING)
def test_weights_and_logits_beyond_the_dtype_are_refused(arguments: Sample, message: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011  # the message is compared just below, without escapes
        Selection(**arguments)
    assert message in str(refusal.value)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("ends", [(0.0, 2.0), (-2.0, 0.0), (-1.0, 1.0), (-0.5, 0.001)])
def test_logits_just_below_the_largest_number_give_an_answer(dtype: torch.dtype, ends: tuple[float, float]) -> None:
    """Nothing is promised, but every answer is finite: the response with the largest reward, as no two logits tie."""
    gap = (ends[1] - ends[0]) / 16
    task = icalign.sample_task(batch=(50,), reward_range=ends, min_gap=gap, dtype=dtype)
    largest = torch.finfo(dtype).max * (1 - 5 * torch.finfo(dtype).eps) / max(ends[1] - ends[0], *map(abs, ends))
    if largest < torch.finfo(dtype).max:
        selection = Selection(temperatures={"gamma": largest}, reward_range=ends, min_gap=gap, dtype=dtype)
        assert selection.error_bound == math.inf
        # a weight of 1 on y⁺, which two products and a sum with zeros leave as it is
        assert errors(selection, task).max() <= 4 * torch.finfo(dtype).eps * 3


@pytest.mark.parametrize("scale", [2.0, 1e3, 1e30])
def test_a_weight_beyond_the_dtype_is_refused_with_its_temperature(scale: float) -> None:
    gamma = scale * torch.finfo(torch.float32).max
    values = {symbols.d_x: 4, symbols.d_y: 3, symbols.gamma: gamma}
    words = "temperatures: gamma = .*, expected weights that the dtype holds: .* is beyond torch.float32"
    with pytest.raises(ValueError, match=words):
        build((block,), stream, values, torch.float32, {"gamma": gamma})


UNATTAINED: list[Sample] = [
    {"tolerance": 1e-16},
    {"tolerance": 1e-300},
    {"tolerance": 5e-324},
    {"tolerance": 1e-14, "responses": 2},
    {"tolerance": 1e-12, "reward_range": (90.0, 100.0)},
    {"tolerance": 1e-10, "radius": 1e4},
    {"tolerance": 1e-306, "radius": 1e-290},
    {"tolerance": 1e280, "radius": 1e300},
    {"tolerance": 1e-6, "dtype": torch.float32},
    {"tolerance": 1e-2, "dtype": torch.bfloat16},
    {"tolerance": 1e-2, "dtype": torch.float16},
    {"tolerance": 1e-2, "dtype": torch.float16, "reward_range": (0.0, 1e-3), "min_gap": 1e-4},  # γ ≤ 65504 decides
    {"tolerance": 1e-3, "reward_range": (0.0, 1e300), "min_gap": 1e250},
    {"tolerance": 1e-3, "min_gap": 1e-320},  # no γ > 0 is a number: only a tolerance of the whole ball is left
]


@pytest.mark.parametrize("arguments", UNATTAINED)
def test_the_tolerance_that_a_refusal_names_is_the_least_that_is_granted(arguments: Sample) -> None:
    with pytest.raises(ValueError, match="promises no less than") as refusal:
        Selection(**arguments)
    stated = float(re.search(r"no less than (\S+) for", str(refusal.value))[1])
    for factor in (1, 1.01, 2, 100):
        assert Selection(**arguments | {"tolerance": stated * factor}).error_bound <= stated * factor
    # three digits, rounded up: one unit of the third is at most 1 % of the number
    with pytest.raises(ValueError, match=f"promises no less than {re.escape(f'{stated:.3g}')}"):
        Selection(**arguments | {"tolerance": stated * 0.985})


def test_the_least_tolerance_of_the_largest_ball() -> None:
    with pytest.raises(ValueError, match="promises no less than") as refusal:
        Selection(tolerance=1.0, radius=8e307)  # twice its diameter is no number
    stated = float(re.search(r"no less than (\S+) for", str(refusal.value))[1])
    assert Selection(tolerance=stated, radius=8e307).error_bound <= stated < 1e300


def test_a_tolerance_of_more_than_the_ball_needs_no_temperature() -> None:
    for radius, tolerance in ((3.0, 1e300), (1e-300, 1e30), (3.0, 12.0)):
        assert Selection(radius=radius, tolerance=tolerance).gamma == 0


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
        ({}, "either tolerance or temperatures: neither came"),
        (
            {"tolerance": 1e-3, "temperatures": {"gamma": 1.0}},
            "either tolerance or temperatures: both came, 0.001 and {'gamma': 1.0}",
        ),
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
        (
            {"tolerance": 1e-3, "responses": 22, "min_gap": 0.1},
            r"span \(N−1\)Δ = 2.1, expected at most high − low = 2: the class",
        ),
    ],
)
def test_bad_arguments_are_refused(arguments: Sample, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Selection(**arguments)


OTHER_KINDS: list[tuple[Sample, str]] = [
    ({"responses": 2.5}, "responses: 2.5, expected an integer, at least 1"),
    ({"responses": True}, "responses: True, expected an integer, at least 1"),
    ({"dim_x": 2.0}, "dim_x: 2.0, expected an integer, at least 1"),
    ({"dim_y": "3"}, "dim_y: '3', expected an integer, at least 1"),
    ({"min_gap": "a"}, "min_gap: 'a', expected a real number"),
    ({"min_gap": None}, "min_gap: None, expected a real number"),
    ({"radius": "a"}, "radius: 'a', expected a real number"),
    ({"radius": 1e308}, "radius: 1e+308, expected at most 8.98847e+307: D₀ = 2·radius overflows torch.float64"),
    ({"reward_range": 5}, "reward_range: 5, expected a pair (low, high)"),
    ({"reward_range": (0, 1, 2)}, "reward_range: (0, 1, 2), expected a pair (low, high)"),
    ({"reward_range": (0.0, "a")}, "reward_range[1]: 'a', expected a real number"),
    ({"reward_range": (-1e308, 1e308)}, "reward_range: (-1e+308, 1e+308), expected rewards and high − low = inf"),
    ({"dtype": torch.int32}, "dtype: torch.int32, expected a floating type: one of torch.float64, torch.float32"),
    ({"dtype": "float64"}, "dtype: 'float64', expected a floating type"),
    ({"dtype": torch.float8_e5m2}, "dtype: torch.float8_e5m2, expected a floating type"),
    ({"tolerance": "a"}, "tolerance: 'a', expected a real number"),
    ({"tolerance": True}, "tolerance: True, expected a real number"),
    ({"tolerance": None, "temperatures": 5}, "temperatures: 5, expected a number for each of ['gamma'], as a dict"),
    ({"tolerance": None, "temperatures": {"gamma": "a"}}, "temperatures['gamma']: 'a', expected a real number"),
    ({"tolerance": None, "temperatures": {"gamma": torch.ones(2)}}, "expected a real number"),
    ({"tolerance": None, "temperatures": {1: 1.0, "gamma": 1.0}}, "temperatures: [1, 'gamma'], expected ['gamma']"),
]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("arguments", "message"), OTHER_KINDS)
def test_arguments_of_another_kind_are_refused_by_name(arguments: Sample, message: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011  # the message is compared just below, without escapes
        Selection(**({"tolerance": 1e-3} | arguments))
    assert message in str(refusal.value)


@pytest.mark.usefixtures("unchecked")
def test_queries_of_a_class_are_counted() -> None:
    with pytest.raises(ValueError, match=r"queries: 1.5, expected an integer, at least 1"):
        TaskClass(dim_x=1, dim_y=1, responses=2, min_gap=1.0, reward_range=(0.0, 1.0), radius=1.0, queries=1.5)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", ["embed", "__call__"])
def test_only_tasks_of_its_sizes_and_dtype_are_embedded(name: str) -> None:
    method = getattr(Selection(tolerance=1e-6), name)
    with pytest.raises(ValueError, match="task: int, expected an AlignmentTask"):
        method(3)
    with pytest.raises(OutOfClass, match="responses: the task has 7, the class 8"):
        method(icalign.sample_task(responses=7))
    with pytest.raises(OutOfClass, match="queries: the task has 2, the class 1"):
        method(icalign.sample_task(queries=2))
    with pytest.raises(ValueError, match=r"dtype torch.float32, expected torch.float64"):
        method(icalign.sample_task(dtype=torch.float32))


def test_a_construction_shows_its_class_and_its_promise() -> None:
    selection = Selection(tolerance=1e-3, responses=5, dtype=torch.float32, radius=1.0)
    assert repr(selection) == (
        "Selection(dim_x=4, dim_y=3, responses=5, min_gap=0.1, reward_range=(0.0, 2.0), radius=1.0, "
        f"dtype=torch.float32, error_bound={selection.error_bound:.3g})"
    )


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


@pytest.mark.parametrize("dim_y", [8, 64, 256])
def test_norms_that_exceed_the_radius_by_their_rounding_are_allowed_for(dim_y: int) -> None:
    kind: dict[str, Any] = {"responses": 2, "min_gap": 1.0, "reward_range": (0.0, 1.0), "radius": 1.0}
    made = Selection(dim_x=1, dim_y=dim_y, temperatures={"gamma": 0.5}, dtype=torch.float32, **kind)
    draw = torch.randn(dim_y, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    y = (1 + 0.97 * (dim_y + 4) * 2 * 2**-24) * torch.stack([draw, -draw]) / draw.norm()
    rewards = torch.tensor([[1.0, 0.0]])
    task = icalign.AlignmentTask(torch.ones(1, 1), y[None].float(), rewards, torch.zeros(dim_y, 1))
    error = float((made(task).double() - task.y[0, 0].double()).norm(dim=-1).max())
    assert 0.999 < error / made.error_bound <= 1
