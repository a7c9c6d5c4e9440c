"""The paper's Theorem 3.3 as a construction: against autograd, on random and on extreme tasks, and what it refuses."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from reference import by_autograd, drawn
from torch import Tensor

import icalign
from icalign import AlignmentTask, OutOfClass, bounds
from icalign.constructions import PlackettLuce

W = icalign.sample_task(seed=3).W
TOLERANCE = 1e-9


def made(**changes: Any) -> PlackettLuce:
    """A construction for the class of sample_task."""
    arguments: dict[str, Any] = {"W": W, "tolerance": None if "temperatures" in changes else TOLERANCE} | changes
    return PlackettLuce(**arguments)


def allowance(construction: PlackettLuce) -> float:
    """What the construction promises and, for autograd, the rounding of another route to the gradient."""
    kind = construction.task_class
    other = bounds.gradient_rounding(construction.dtype, kind.responses, kind.dim_x, kind.dim_y, construction.reach)
    return construction.error_bound + construction.eta * other


def worst(construction: PlackettLuce, task: AlignmentTask) -> float:
    """The largest error of u over tokens and tasks."""
    return float((construction.update(task) - by_autograd(task, construction.eta)).norm(dim=-1).max())


def extreme(kind: Any, W: Tensor, seed: int = 0) -> Iterator[AlignmentTask]:
    """Tasks at the edges of a class: all gaps Δ, at either end of the range; responses at two poles, equal, or zero."""
    low, high = kind.reward_range
    N, one = kind.responses, torch.ones(kind.responses, dtype=torch.float64)
    steps = torch.arange(N, dtype=torch.float64)
    x = torch.linalg.svd(W.double()).Vh[:1]  # ‖Wx‖ = ω
    pole = torch.nn.functional.normalize(x @ W.double().mT, dim=-1) * kind.radius * (1 - 1e-12)
    order = torch.randperm(N, generator=torch.Generator().manual_seed(seed))
    spreads = [low + steps * kind.min_gap, high - steps.flip(0) * kind.min_gap, torch.linspace(low, high, N).double()]
    signs = [one, -one, torch.where(steps == N - 1, -1.0, 1.0), torch.where(steps < N / 2, 1.0, -1.0), 0 * one]
    for r in spreads:
        for sign in signs:
            y = sign[:, None] * pole
            yield AlignmentTask(
                *[tensor.to(W.dtype) for tensor in (x, y[None, order], r[None, order].clamp(low, high))], W
            )


@pytest.mark.parametrize("responses", [2, 3, 8, 17])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-6, 1e-9])
def test_it_is_one_gradient_step_to_within_the_tolerance(responses: int, tolerance: float) -> None:
    construction = made(responses=responses, tolerance=tolerance)
    assert construction.error_bound <= tolerance
    task = icalign.sample_task((100,), responses=responses, W=W, seed=responses)
    assert worst(construction, task) <= allowance(construction)
    moved = task.y - by_autograd(task, 0.1)
    assert (construction(task) - moved).norm(dim=-1).max() <= allowance(construction)


@pytest.mark.parametrize("responses", [2, 3, 5, 16])
@pytest.mark.parametrize("tolerance", [0.3, 1e-3, 1e-9])
def test_the_tolerance_holds_at_the_edges_of_the_class(responses: int, tolerance: float) -> None:
    construction = made(responses=responses, tolerance=tolerance)
    errors = [worst(construction, task) for task in extreme(construction.task_class, W)]
    assert len(errors) == 15
    assert max(errors) <= allowance(construction)


def test_the_bound_is_attained() -> None:
    """One response at a pole and the rest opposite, gaps of Δ: the first block's error is 2ηD₀·q₁/(1+q₁), one block."""
    construction = made(responses=2, temperatures={"gamma": 60.0, "C": 60.0})
    errors = [worst(construction, task) for task in extreme(construction.task_class, W)]
    assert construction.error_bound * (1 - 1e-9) <= max(errors) <= construction.error_bound


@pytest.mark.slow
def test_every_one_of_many_random_tasks_keeps_the_promise() -> None:
    """12,000 tasks with N ≤ 16 and 600 with more, classes and step sizes drawn with them; and it is no idle promise."""
    ratios, count = [], 0
    for construction, tasks, small in drawn(PlackettLuce, 60, 240, 3.0):
        found = (construction.update(tasks) - by_autograd(tasks, construction.eta)).norm(dim=-1)
        assert found.max() <= allowance(construction), construction.task_class
        ratios.append(float(found.max()) / construction.error_bound)
        count += tasks.batch[0] if small else 0
    assert count >= 10_000
    print(f"{count} tasks with N ≤ 16: largest error {max(ratios):.2f} of the bound, the least class {min(ratios):.1e}")
    assert max(ratios) > 0.05


def test_flags_are_exact_after_every_block() -> None:
    """One flag more in each block, 1 to within its rounding; all others exactly what they were; top exactly empty."""
    construction = made(tolerance=4.0)  # γΔ is as low as a tolerance can make it
    task = icalign.sample_task((300,), W=W, seed=4)
    rows, X = construction.transformer.rows, construction.embed(task)
    rank = task.r[:, 0].argsort(-1, descending=True).argsort(-1)
    rounding = bounds.flag_rounding(torch.float64, 2.0, 0.1)
    for number, block in enumerate(construction.transformer.blocks):
        before, X = X[..., rows["flag"]], block(X)
        flags = X[..., rows["flag"]]
        assert torch.equal(flags[rank != number], before[rank != number])
        assert ((flags[rank == number] - 1).abs() <= rounding).all()
        assert (X[..., rows["top"]] == 0).all()


def test_the_theorem_promises_nothing_below_log_5() -> None:
    below, above = [made(temperatures={"gamma": g / 0.1, "C": 80.0}).error_bound for g in (math.log(5) - 1e-3, 1.7)]
    assert below == math.inf
    assert above < math.inf


def test_the_rewards_of_neighbours_can_mislead_r_plus_below_log_5() -> None:
    """Equally spaced rewards, many of them, ξ = 1/4: r⁺ is Δ/3 short, and the runner-up's flag rises to 3/2 − 4/3."""
    low = made(responses=20, temperatures={"gamma": math.log(4) / 0.1, "C": 80.0})
    task = next(extreme(low.task_class, W))
    flags = low.transformer.blocks[0](low.embed(task))[..., low.transformer.rows["flag"]].flatten()
    runner_up = flags[task.r.flatten().argsort()[-2]].item()
    assert runner_up == pytest.approx(1 / 6, abs=1e-3)  # 4⁻²⁰·N is the tail of the sum


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_other_dtypes_keep_their_promise_where_they_give_one(dtype: torch.dtype) -> None:
    """In half types a class with wide gaps; the reference is the exact step of the rounded task."""
    kind: dict[str, Any] = {"responses": 3, "min_gap": 1.0, "radius": 0.5, "reward_range": (0.0, 2.5)}
    weights = torch.zeros(1, 1, dtype=dtype) if dtype != torch.float32 else W.to(dtype)
    if dtype == torch.float32:
        kind |= {"responses": 6, "min_gap": 0.25, "radius": 1.0}
    construction = PlackettLuce(W=weights, eta=0.25, temperatures={"gamma": 8.0, "C": 10.0}, dtype=dtype, **kind)
    sizes = {"dim_x": weights.shape[1], "dim_y": weights.shape[0]}
    task = icalign.sample_task((200,), **sizes, **kind, W=weights, seed=2, dtype=dtype)
    double = AlignmentTask(
        torch.nn.functional.normalize(task.x.double(), dim=-1), task.y.double(), task.r.double(), task.W.double()
    )
    error = (construction.update(task).double() - by_autograd(double, 0.25)).norm(dim=-1).max()
    normalised = 4 * bounds.unit_roundoff(dtype) * construction.longest  # the query's own rounding
    assert error <= construction.error_bound + normalised
    assert error > 0


def test_the_rounding_allowance_is_within_a_factor_of_what_happens() -> None:
    """Where rounding is all there is: two responses far out, with nearly equal scores, come within a factor of 100."""
    drawn = icalign.sample_task((4000,), responses=2, W=W.float(), seed=5, dtype=torch.float32)
    construction = made(responses=2, temperatures={"gamma": 300.0, "C": 80.0}, W=W.float(), dtype=torch.float32)
    along = torch.nn.functional.normalize(drawn.x @ W.float().mT, dim=-1)[..., None, :]
    across = torch.nn.functional.normalize(drawn.y - (drawn.y * along).sum(-1, keepdim=True) * along, dim=-1)
    y = 3 * (1 - 1e-5) * (0.4 * along + math.sqrt(1 - 0.4**2) * across)
    task = AlignmentTask(drawn.x, y, drawn.r, drawn.W)
    x = torch.nn.functional.normalize(task.x.double(), dim=-1)
    exact = by_autograd(AlignmentTask(x, y.double(), task.r.double(), task.W.double()), 0.1)
    error = float((construction.update(task).double() - exact).norm(dim=-1).max())
    assert construction._exact_error() < 1e-9
    assert construction._rounding() / 100 <= error <= construction._rounding()


def test_it_runs_on_tasks_it_has_never_seen_and_stays_as_it_is() -> None:
    construction = made()
    before = {name: value.clone() for name, value in construction.transformer.state_dict().items()}
    construction(icalign.sample_task((5,), W=W, seed=9))
    assert all(torch.equal(value, before[name]) for name, value in construction.transformer.state_dict().items())


# What it refuses


def changed(**changes: Tensor) -> AlignmentTask:
    task = icalign.sample_task(W=W, seed=1)
    return AlignmentTask(**({"x": task.x, "y": task.y, "r": task.r, "W": task.W} | changes))


def test_each_failed_hypothesis_is_named_with_its_value_and_limit() -> None:
    construction, task = made(), icalign.sample_task(W=W, seed=1)
    near = task.r.clone()
    near[0, 0] = near[0].amax() - 0.05 if near[0, 0] < near[0].amax() else near[0, 1:].amax() + 0.05
    with pytest.raises(OutOfClass, match=r"min_gap: the task has a gap of 0\.0[0-9]+, the class asks for 0\.1"):
        construction(changed(r=near))
    with pytest.raises(OutOfClass, match=r"reward_range: the task has a reward of .*, the class ends at 2"):
        construction(changed(r=task.r + 2))
    with pytest.raises(OutOfClass, match=r"reward_range: the task has a reward of -.*, the class starts at 0"):
        construction(changed(r=task.r - 2))
    with pytest.raises(OutOfClass, match=r"radius: the task has a response of norm .*, the class allows 3"):
        construction(changed(y=2 * task.y))
    with pytest.raises(OutOfClass, match=r"W: an entry of the task's W differs by 0\.5"):
        construction(changed(W=W + 0.5))
    with pytest.raises(OutOfClass, match="responses: the task has 5, the class 8"):
        construction(icalign.sample_task(responses=5, W=W))
    with pytest.raises(OutOfClass, match="queries: the task has 2, the class 1"):
        construction.update(icalign.sample_task(queries=2, W=W))
    with pytest.raises(ValueError, match=r"responses 0 and 1 of query .* both have reward"):
        changed(r=torch.zeros(1, 8, dtype=torch.float64))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"W": W[0]}, r"W: shape \(4,\), expected \(d_y, d_x\)"),
        ({"W": W.float()}, "W: dtype torch.float32, expected torch.float64"),
        ({"W": W * math.nan}, "W: nan at .*, expected finite"),
        ({"W": "W"}, "W: str, expected a floating torch tensor"),
        ({"eta": 0.0}, "eta: 0.0, expected a positive finite step size"),
        ({"eta": "1"}, "eta: '1', expected a real number"),
        ({"steps": 0}, "steps: 0, expected at least 1"),
        ({"steps": 1.5}, "steps: 1.5, expected an integer"),
        ({"responses": 1}, "responses: 1, expected at least 2 to rank"),
        ({"responses": 22}, "the class is empty"),
        ({"tolerance": None}, "give either tolerance or temperatures: neither came"),
        (
            {"tolerance": 1.0, "temperatures": {"gamma": 1.0, "C": 1.0}},
            "give either tolerance or temperatures: both came",
        ),
        ({"tolerance": None, "temperatures": {"gamma": 1.0}}, "temperatures: .*expected .*'C', 'gamma'"),
        ({"tolerance": 1e-15}, r"tolerance: 1e-15, torch.float64 promises no less than .*e-12"),
        ({"tolerance": 1e-3, "dtype": torch.float16, "W": W.half()}, "promises nothing for this class"),
        (
            {"tolerance": None, "temperatures": {"gamma": 2e4, "C": 9.0}, "dtype": torch.float16, "W": W.half()},
            r"temperatures: gamma = 20000, C = 9 make logits of γ\(max|r|",
        ),
    ],
)
def test_arguments_out_of_range_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        made(**changes)


def test_the_tolerance_it_says_it_can_promise_is_one_it_promises() -> None:
    with pytest.raises(ValueError, match="promises no less than") as refusal:
        made(tolerance=1e-15)
    least = float(str(refusal.value).split("no less than ")[1].split()[0])
    assert made(tolerance=least).error_bound <= least
    with pytest.raises(ValueError, match="promises no less than"):
        made(tolerance=least * 0.98)


# Terms of the promise that a task makes visible


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("dim_y", [8, 64, 1024])
def test_norms_that_exceed_the_radius_by_their_rounding_are_allowed_for(dim_y: int, steps: int) -> None:
    """Two opposite responses as long as the class lets pass, W = 0 and a warm head: the error is as large as can be."""
    radius, draw = 1e-3, torch.randn(dim_y, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    w = torch.zeros(dim_y, 1)
    kind: dict[str, Any] = {"responses": 2, "min_gap": 1.0, "reward_range": (0.0, 1.0), "radius": radius}
    heat = {"gamma": math.log(5.01), "C": 0.0}
    construction = PlackettLuce(W=w, eta=10.0, temperatures=heat, steps=steps, dtype=torch.float32, **kind)
    longest = radius * (1 + 0.97 * (dim_y + 4) * 2 * 2**-24)
    y = longest * torch.stack([draw, -draw]) / draw.norm()
    task = AlignmentTask(torch.ones(1, 1), y[None].float(), torch.tensor([[1.0, 0.0]]), w)
    v = torch.zeros(1, 1, 1, dim_y, dtype=torch.float64)
    for _ in range(steps):
        s = -(v[0] - task.y.double()).square().sum(-1)
        v = v + 20 * (task.y[:, :1].double() - (s.softmax(-1)[..., None] * task.y.double()).sum(-2, keepdim=True))
    error = float((construction.update(task).double() - v).norm(dim=-1).max())
    assert 0.99 < error / construction.error_bound <= 1
    if (steps, dim_y) == (1, 1024):  # more than all else that is allowed for
        assert error > construction.error_bound - bounds.radius_rounding(torch.float32, dim_y, construction.longest)


def test_the_norm_of_a_query_is_squared_in_the_step() -> None:
    """Many small components: norms are known to 272ε₀, and all else is next to nothing."""
    w = torch.zeros(1, 64)
    kind: dict[str, Any] = {"responses": 2, "min_gap": 1.0, "reward_range": (0.0, 1.0), "radius": 1e-3}
    construction = PlackettLuce(W=w, eta=10.0, temperatures={"gamma": 40.0, "C": 40.0}, dtype=torch.float32, **kind)
    x = torch.full((1, 64), 1 / 8 * (1 + 0.9 * construction.norm_rounding))
    y = torch.tensor([[[1e-3], [-1e-3]]])
    task = AlignmentTask(x, y, torch.tensor([[1.0, 0.0]]), w)
    error = float((construction.update(task).double() - by_autograd_of(x, y)).abs().max())
    assert 0.3 < error / construction.error_bound <= 1


def by_autograd_of(x: Tensor, y: Tensor) -> Tensor:
    """2η‖x‖²·y₁, the step for W = 0 and y₂ = −y₁, η = 10."""
    return 20 * x.double().square().sum() * y[0, 0].double()
