"""Three attention layers keep the tolerance for every number of responses, and each does its part exactly."""

import math
import resource
import time
from collections.abc import Iterator
from typing import Any

import pytest
import sympy as sp
import torch
from reference import by_autograd, drawn, sample
from torch import Tensor

import icalign
from icalign import AlignmentTask, OutOfClass, bounds
from icalign.constructions import ConstantDepth, PlackettLuce, parallel
from icalign.symbols import N

TOLERANCE = 1e-6
W = icalign.sample_task(seed=3).W


def made(**changes: Any) -> ConstantDepth:
    """A construction for the class of sample_task."""
    arguments: dict[str, Any] = {"W": W, "tolerance": None if "temperatures" in changes else TOLERANCE} | changes
    return ConstantDepth(**arguments)


def allowance(construction: ConstantDepth) -> float:
    """What the construction promises and, for autograd, the rounding of another route to the gradient."""
    kind = construction.task_class
    other = bounds.gradient_rounding(construction.dtype, kind.responses, kind.dim_x, kind.dim_y, construction.reach)
    return construction.error_bound + construction.eta * other


def worst(construction: ConstantDepth, task: AlignmentTask) -> float:
    """The largest error of u over tokens and tasks."""
    return float((construction.update(task) - by_autograd(task, construction.eta)).norm(dim=-1).max())


def extreme(construction: ConstantDepth, seed: int = 0) -> Iterator[AlignmentTask]:
    """Gaps of Δ at either end of the range, or wide ones; the better part at the one best score, the rest far off."""
    kind, w = construction.task_class, construction.W
    low, high = kind.reward_range
    best_first = torch.arange(kind.responses, dtype=torch.float64)
    x = torch.linalg.svd(w.double()).Vh[:1]  # ‖Wx‖ = ω
    pole = torch.nn.functional.normalize(x @ w.double().mT, dim=-1) * kind.radius * (1 - 1e-12)
    best = min(1.0, construction.norm / kind.radius)  # y = Wx, if it is in reach, has the largest score
    order = torch.randperm(kind.responses, generator=torch.Generator().manual_seed(seed))
    spreads = [high - best_first * kind.min_gap, low + best_first.flip(0) * kind.min_gap]
    spreads.append(torch.linspace(high, low, kind.responses).double())
    for r in spreads:
        for better in sorted({0, 1, kind.responses // 2, kind.responses - 1}):
            for near, far in ((best, -1.0), (-1.0, best), (1.0, -1.0), (0.0, -1.0)):
                y = torch.where(best_first < better, near, far)[:, None] * pole
                x_y_r = (x, y[None, order], r[None, order].clamp(low, high))
                yield AlignmentTask(*[tensor.to(w.dtype) for tensor in x_y_r], w)


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
    """And it is no idle promise: some task uses two fifths of it at least."""
    construction = made(responses=responses, tolerance=tolerance)
    errors = [worst(construction, task) for task in extreme(construction)]
    assert len(errors) >= 24
    assert 0.4 * construction.error_bound <= max(errors) <= allowance(construction)


def test_the_bound_is_attained() -> None:
    """Two responses at the poles, the better of the larger score: the leak into the second rank is the whole bound."""
    wide = 4 * W / torch.linalg.matrix_norm(W, 2)  # ω > radius: scores of −y and y are R_Z apart
    construction = made(W=wide, responses=2, temperatures={"C": 60.0})
    errors = [worst(construction, task) for task in extreme(construction)]
    assert construction._exact_error() * (1 - 1e-9) <= max(errors) <= construction.error_bound


def test_a_mask_of_zero_leaves_a_bound_that_holds() -> None:
    construction = made(temperatures={"C": 0.0})
    assert construction.error_bound < math.inf
    errors = [worst(construction, task) for task in extreme(construction)]
    assert construction.longest / 10 < max(errors) <= construction.error_bound


@pytest.mark.slow
def test_every_one_of_many_random_tasks_keeps_the_promise() -> None:
    """10,000 tasks with N ≤ 16 and 400 with more, classes and step sizes drawn with them."""
    ratios, count = [], 0
    for construction, tasks, small in drawn(ConstantDepth, 40, 200, 1.5):
        found = (construction.update(tasks) - by_autograd(tasks, construction.eta)).norm(dim=-1)
        assert found.max() <= allowance(construction), construction.task_class
        ratios.append(float(found.max()) / construction.error_bound)
        count += tasks.batch[0] if small else 0
    assert count >= 10_000
    print(f"{count} tasks with N ≤ 16: largest error {max(ratios):.2f} of the bound, the least class {min(ratios):.1e}")
    assert max(ratios) > 0.5


@pytest.mark.slow
def test_512_responses_take_three_layers_and_fit_into_memory() -> None:
    """Float64, batch 8; the bound at a cold mask is rounding alone."""
    start = time.perf_counter()
    kind: dict[str, Any] = {"responses": 512, "min_gap": 2 / 1024}
    construction = made(temperatures={"C": 500.0}, **kind)
    built = time.perf_counter()
    task = sample(construction, 8, 1)
    error, passed = worst(construction, task), time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(f"N = 512, batch 8: built in {built - start:.1f} s, run in {passed - built:.1f} s, at most {peak:.1f} GB")
    print(f"error {error:.1e}, promised {construction.error_bound:.1e}")
    assert error <= allowance(construction)
    assert construction.error_bound < 1e-9
    assert peak < 8


# What each layer does


def stages(construction: ConstantDepth, task: AlignmentTask) -> tuple[dict[str, slice], list[Tensor]]:
    """The places of the rows, and the tokens after each block."""
    X, found = construction.embed(task), []
    for block in construction.transformer.blocks:
        X = block(X)
        found.append(X)
    return construction.transformer.rows, found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("responses", [2, 7, 16])
@pytest.mark.parametrize("reward_range", [(0.0, 2.0), (-1.5, 0.1), (100.0, 102.3)], ids=str)
def test_every_token_learns_exactly_who_is_better(
    responses: int, dtype: torch.dtype, reward_range: tuple[float, float]
) -> None:
    """Slots are empty but at the own position; the mask is 0 exactly, or 1 to within its rounding."""
    construction = made(
        responses=responses, W=W.to(dtype), temperatures={"C": 30.0}, reward_range=reward_range, dtype=dtype
    )
    for task in [sample(construction, 200, 5), *extreme(construction)]:
        rows, (spread, compared, *_) = stages(construction, task)
        r, (low, high) = task.r[..., 0, :], reward_range
        slots, unit = spread[..., rows["slot"]], bounds.unit_roundoff(dtype)
        largest = max(abs(low), abs(high))
        own = torch.eye(responses, dtype=torch.bool)
        assert not slots.masked_fill(own, 0).any()
        assert (slots.diagonal(dim1=-2, dim2=-1).double() - (r.double() - low)).abs().max() <= 9 * largest * unit
        board = compared[..., rows["board"]].double()
        assert (board - (r.double() - low)[..., None, :]).abs().max() <= 19 * largest * unit
        better = r[..., None, :] > r[..., :, None]
        mask = compared[..., rows["m"]]
        assert not mask[~better].any()
        rounding = bounds.comparison_rounding(dtype, largest, construction.task_class.min_gap)
        assert (mask[better].double() - 1).abs().max() <= rounding


def test_each_token_holds_the_mean_of_its_own_rank() -> None:
    construction = made(temperatures={"C": 200.0})
    task = icalign.sample_task((50,), W=W, seed=6)
    rows, (*_, weighed, _) = stages(construction, task)
    r, s, y = task.r[..., 0, :], icalign.scores(task)[..., 0, :], task.y[..., 0, :, :]
    live = r[..., None, :] <= r[..., :, None]
    mean = s[..., None, :].expand_as(live).masked_fill(~live, -math.inf).softmax(-1) @ y
    assert (weighed[..., rows["mean"]] - mean).abs().max() < 1e-12  # two routes of sums of eight numbers up to 3
    lowest = r.argmin(-1)
    of_last = weighed[..., rows["mean"]].take_along_dim(lowest[..., None, None], -2)
    assert (of_last - y.take_along_dim(lowest[..., None, None], -2)).abs().max() < 1e-14  # its mean is itself


def test_the_answer_does_not_depend_on_the_order_of_the_prompt() -> None:
    construction = made(temperatures={"C": 200.0})
    task = icalign.sample_task((20,), W=W, seed=7)
    turn = torch.randperm(8, generator=torch.Generator().manual_seed(1))
    turned = AlignmentTask(task.x, task.y[..., turn, :], task.r[..., turn], W)
    apart = (construction.update(task) - construction.update(turned)).norm(dim=-1).max()
    assert apart <= 2 * construction.error_bound
    assert construction.error_bound < 1e-12


def test_it_agrees_with_the_blocks_that_it_replaces() -> None:
    task = icalign.sample_task((50,), W=W, seed=8)
    deep, flat = PlackettLuce(W=W, tolerance=1e-9), made(tolerance=1e-9)
    assert (deep(task) - flat(task)).norm(dim=-1).max() <= deep.error_bound + flat.error_bound


def test_the_depth_is_the_same_for_every_number_of_responses() -> None:
    for responses in (2, 20):
        blocks = made(responses=responses, tolerance=1e-3).transformer.blocks
        assert [len(block.heads) for block in blocks] == [0, 1, 1, 1]
        units = [block.feed_forward.first.shape[0] for block in blocks if block.feed_forward is not None]
        assert units == [responses, 2 * responses]
    assert parallel.stream.width.coeff(N) == 4


# What it needs


@pytest.mark.parametrize(("gap", "mask"), [(0.1, 1.0), (0.075, 1.0), (0.06, 0.7), (0.025, 0.0), (0.01, 0.0)])
def test_a_gap_below_three_quarters_gets_a_part_of_a_mask(gap: float, mask: float) -> None:
    """The class asks for Δ, with room for rounding: m is 1 down to 3Δ/4, and nothing from Δ/4 on."""
    construction = made(responses=3, temperatures={"C": 200.0})
    task = icalign.sample_task((50,), responses=3, W=W, seed=9)
    r = torch.tensor([0.5, 1.0, 1.0 + gap], dtype=torch.float64).expand(50, 1, 3)
    close = AlignmentTask(task.x, task.y, r, W)
    rows, (_, compared, _, X) = stages(construction, close)  # past the check, which refuses it
    assert compared[..., 1, rows["m"]][..., 2] == pytest.approx(mask, abs=1e-12)
    assert not compared[..., 2, rows["m"]].any()
    error = (X[..., rows["u"]] - by_autograd(close, 0.1)[:, 0]).norm(dim=-1).amax(-1)
    assert (error <= construction.error_bound).all() if mask else error.median() > 0.01
    if gap < 0.1:
        with pytest.raises(OutOfClass, match="min_gap"):
            construction(close)


def test_without_positions_it_does_not_rank() -> None:
    """Every slot stays empty, so no response is better than another: N times the first mean."""
    construction = made(temperatures={"C": 200.0})
    task = icalign.sample_task((50,), W=W, seed=10)
    X = construction.embed(task)
    rows = construction.transformer.rows
    X[..., rows["p"]] = 0
    u = construction.transformer(X)[..., rows["u"]]
    mean = torch.softmax(icalign.scores(task), -1)[..., None, :] @ task.y
    wrong = 0.2 * (task.y.sum(-2) - 8 * mean[..., 0, :])
    assert (u - wrong).norm(dim=-1).max() < 1e-12
    assert (u - by_autograd(task, 0.1)[:, 0]).norm(dim=-1).min() > 0.1


# Other dtypes, and the rounding that is allowed for


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_other_dtypes_keep_their_promise_where_they_give_one(dtype: torch.dtype) -> None:
    """In half types a class with wide gaps; the reference is the exact step of the rounded task."""
    kind: dict[str, Any] = {"responses": 2, "min_gap": 1.0, "radius": 0.25, "reward_range": (-0.5, 0.625)}
    weights = torch.zeros(1, 1, dtype=dtype) if dtype != torch.float32 else W.to(dtype)
    if dtype == torch.float32:
        kind = {"responses": 6, "min_gap": 0.25, "radius": 1.0, "reward_range": (0.0, 2.5)}
    construction = ConstantDepth(W=weights, eta=0.25, temperatures={"C": 10.0}, dtype=dtype, **kind)
    assert construction.error_bound < construction.longest / 3
    sizes = {"dim_x": weights.shape[1], "dim_y": weights.shape[0]}
    task = icalign.sample_task((200,), **sizes, **kind, W=weights, seed=2, dtype=dtype)
    unit = torch.nn.functional.normalize(task.x.double(), dim=-1)
    double = AlignmentTask(unit, task.y.double(), task.r.double(), task.W.double())
    error = (construction.update(task).double() - by_autograd(double, 0.25)).norm(dim=-1).max()
    assert 0 < error <= construction.error_bound


def test_rewards_that_the_dtype_cannot_tell_apart_are_no_promise() -> None:
    """Its comparisons are exact as long as 70·max|r|/Δ units of roundoff are half a one."""
    limit = 2**24 / 140 * 0.1
    near, far = [
        ConstantDepth(
            W=W.float(), temperatures={"C": 60.0}, responses=2, reward_range=(c, c + 0.2), dtype=torch.float32
        ).error_bound
        for c in (0.9 * limit, 1.1 * limit)
    ]
    assert near < math.inf
    assert far == math.inf
    with pytest.raises(ValueError, match="promises nothing for this class"):
        ConstantDepth(
            W=W.float(), tolerance=1e-2, responses=2, reward_range=(1.1 * limit, 1.1 * limit + 1), dtype=torch.float32
        )


def test_the_rounding_allowance_is_within_a_factor_of_what_happens() -> None:
    """Where rounding is all there is, two responses far out come within a factor of 200."""
    drawn = icalign.sample_task((4000,), responses=2, W=W.float(), seed=5, dtype=torch.float32)
    construction = made(responses=2, temperatures={"C": 90.0}, W=W.float(), dtype=torch.float32)
    along = torch.nn.functional.normalize(drawn.x @ W.float().mT, dim=-1)[..., None, :]
    across = torch.nn.functional.normalize(drawn.y - (drawn.y * along).sum(-1, keepdim=True) * along, dim=-1)
    y = 3 * (1 - 1e-5) * (0.4 * along + math.sqrt(1 - 0.4**2) * across)
    task = AlignmentTask(drawn.x, y, drawn.r, drawn.W)
    x = torch.nn.functional.normalize(task.x.double(), dim=-1)
    exact = by_autograd(AlignmentTask(x, y.double(), task.r.double(), task.W.double()), 0.1)
    error = float((construction.update(task).double() - exact).norm(dim=-1).max())
    assert construction._exact_error() < 1e-9
    assert construction._rounding() / 200 <= error <= construction._rounding()


def test_it_runs_on_tasks_it_has_never_seen_and_stays_as_it_is() -> None:
    construction = made()
    before = {name: value.clone() for name, value in construction.transformer.state_dict().items()}
    construction(icalign.sample_task((5,), W=W, seed=9))
    assert all(torch.equal(value, before[name]) for name, value in construction.transformer.state_dict().items())
    again = made().transformer.state_dict()
    assert all(torch.equal(value, before[name]) for name, value in again.items())


# Bounds


@pytest.mark.parametrize("count", [2, 3, 11])
def test_numbers_and_symbols_agree(count: int) -> None:
    C, spread = sp.symbols("C R_Z", nonnegative=True)
    eta, D, tol = sp.symbols("eta D tol", positive=True)
    values = {C: 7, spread: 3, eta: sp.Rational(1, 4), D: 5, tol: sp.Rational(1, 1024), N: count}
    exact = bounds.constant_depth_error(eta, C, spread, N, D).subs(values).doit()
    assert bounds.constant_depth_error(0.25, 7.0, 3.0, count, 5.0) == pytest.approx(float(exact), rel=1e-14)
    mask = bounds.constant_depth_mask(tol, eta, spread, N, D).subs(values).doit()
    assert bounds.constant_depth_mask(1 / 1024, 0.25, 3.0, count, 5.0) == pytest.approx(float(mask), rel=1e-14)
    harmonic = count * sp.harmonic(count - 1) - count + 1
    assert bounds.crowds_of_all_ranks(count) == pytest.approx(float(harmonic), rel=1e-14)


def test_the_mask_of_a_tolerance_meets_it_and_no_much_smaller_one_does() -> None:
    for count in (2, 5, 50, 500):
        for tolerance in (1.0, 1e-3, 1e-9):
            C = bounds.constant_depth_mask(tolerance, 0.1, 12.0, count, 6.0)
            assert bounds.constant_depth_error(0.1, C, 12.0, count, 6.0) <= tolerance * (1 + 1e-12)
            if tolerance < 1e-2:
                assert bounds.constant_depth_error(0.1, C - 0.01, 12.0, count, 6.0) > tolerance


# What it refuses


def changed(**changes: Tensor) -> AlignmentTask:
    task = icalign.sample_task(W=W, seed=1)
    return AlignmentTask(**({"x": task.x, "y": task.y, "r": task.r, "W": task.W} | changes))


def test_each_failed_hypothesis_is_named_with_its_value_and_limit() -> None:
    construction, task = made(), icalign.sample_task(W=W, seed=1)
    with pytest.raises(OutOfClass, match=r"min_gap: the task has a gap of .*, the class asks for 0\.1"):
        construction(changed(r=task.r / 2))
    short = torch.arange(8, dtype=torch.float64)[None] * (0.1 - 1e-9)
    with pytest.raises(OutOfClass, match=r"a gap of 0\.1, the class asks for 0\.1, 1e-09 more"):
        construction(changed(r=short))
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
    with pytest.raises(ValueError, match=r"dtype torch.float32, expected torch.float64"):
        construction.embed(icalign.sample_task(W=W.float(), dtype=torch.float32))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"W": W[0]}, r"W: shape \(4,\), expected \(d_y, d_x\)"),
        ({"W": W * math.nan}, "W: nan at .*, expected finite"),
        ({"eta": 0.0}, "eta: 0.0, expected a positive finite step size"),
        ({"responses": 1}, "responses: 1, expected at least 2 to rank"),
        ({"responses": 22}, "the class is empty"),
        ({"tolerance": None}, "give either tolerance or temperatures: neither came"),
        ({"temperatures": {"C": 1.0}, "tolerance": 1.0}, "give either tolerance or temperatures: both came"),
        ({"temperatures": {"gamma": 1.0}}, "temperatures: .*expected .*'C'"),
        ({"temperatures": {"C": -1.0}}, "temperatures.*-1.0, expected a finite number"),
        ({"tolerance": 1e-15}, r"tolerance: 1e-15, torch.float64 promises no less than .*e-12"),
        ({"tolerance": 1e-3, "dtype": torch.float16, "W": W.half()}, "promises nothing for this class"),
        (
            {"temperatures": {"C": 6e4}, "dtype": torch.float16, "W": W.half()},
            r"temperatures: C = 60000 make logits of \(‖|W||x|‖",
        ),
    ],
)
def test_arguments_out_of_range_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        made(**changes)
