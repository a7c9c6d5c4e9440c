"""Causal makes the online step at every position, within its promise; the printed form counts short prefixes again."""

import math
from itertools import permutations

import pytest
import torch
from torch import Tensor

import icalign
from icalign import bounds
from icalign.constructions import Causal
from icalign.constructions import causal as formulas
from icalign.constructions.causal_printed import cyclic_update, greedy_round, hard_update
from icalign.tasks import AlignmentTask, OutOfClass

ETA = 0.1
TASK = icalign.sample_task(seed=3)


def number(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def exact(task: AlignmentTask, eta: float = ETA) -> Tensor:
    """ΔW_t x at every position, in closed form."""
    steps = icalign.online_gradient_steps(task, eta)
    return (steps @ task.x[..., None, :, None]).squeeze(-1)


def off(found: Tensor, task: AlignmentTask) -> Tensor:
    """The error of an update, (…, N)."""
    return (found - exact(task)).norm(dim=-1)[..., 0, :]


def of_class(task: AlignmentTask, **given: object) -> Causal:
    """The construction for the class that sample_task draws from by default, of the task's sizes."""
    return Causal(**{"W": task.W, "eta": ETA, "responses": task.responses, "tolerance": 1e-9} | given)


# --- the step at every position -----------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", ["given", "derived"])
@pytest.mark.parametrize("responses", [2, 3, 5, 8])
def test_every_position_makes_its_online_step(responses: int, positions: str) -> None:
    task = icalign.sample_task(batch=(20,), responses=responses, seed=responses)
    construction = of_class(task, positions=positions)
    assert construction.error_bound <= 1e-9
    assert bool((off(construction.update(task), task) <= construction.error_bound).all())
    target = task.y - exact(task)
    assert bool(((construction(task) - target).norm(dim=-1) <= construction.error_bound).all())


@pytest.mark.parametrize("tolerance", [1e-9, 1e-3, 10.0])
def test_ten_thousand_instances_keep_the_promise(tolerance: float) -> None:
    instances = 0
    for responses in range(2, 9):
        task = icalign.sample_task(batch=(1500,), responses=responses, seed=100 + responses)
        construction = of_class(task, tolerance=tolerance)
        error = off(construction.update(task), task)
        assert bool((error <= construction.error_bound).all()) and construction.error_bound <= tolerance
        instances += len(error)
    assert instances >= 10_000


def test_the_step_is_that_of_autograd() -> None:
    task = icalign.sample_task(responses=6, seed=9)
    W = task.W.clone().requires_grad_()
    score = -(task.x @ W.mT - task.y[0]).square().sum(-1)
    losses = icalign.online_plackett_luce_nll(score, task.r[0])
    steps = torch.stack([-ETA * torch.autograd.grad(loss, W, retain_graph=True)[0] for loss in losses])
    construction = of_class(task)
    apart = (construction.update(task)[0] - steps @ task.x[0]).norm(dim=-1)
    assert float(apart.max()) <= construction.error_bound


def test_extreme_instances_keep_the_promise() -> None:
    """All orders of rewards as close as allowed at either end of the range; responses at the ends of the ball."""
    W = 3 * torch.eye(2, dtype=torch.float64)
    y = 3 * number([[1, 0], [-1, 0], [1, 0], [-1, 0]])
    for low in (-1.0, 1.0 - 3 * 0.125):
        for tolerance in (1e-9, 1e-2, 10.0):
            kind = {"min_gap": 0.125, "reward_range": (-1.0, 1.0), "tolerance": tolerance}
            rewards = number([[[low + 0.125 * place for place in order]] for order in permutations(range(4))])
            x = number([[1.0, 0.0]]).expand(24, 1, 2)
            task = AlignmentTask(x, y.expand(24, 1, 4, 2), rewards, W)
            construction = of_class(task, **kind)
            assert bool((off(construction.update(task), task) <= construction.error_bound).all())


def test_float32_keeps_what_it_promises() -> None:
    task = icalign.sample_task(batch=(200,), responses=6, seed=4, dtype=torch.float32)
    construction = of_class(task, tolerance=0.01, dtype=torch.float32)
    x = torch.nn.functional.normalize(task.x.double(), dim=-1)
    wide = AlignmentTask(x, task.y.double(), task.r.double(), task.W.double())
    error = off(construction.update(task).double(), wide)
    assert construction.error_bound <= 0.01
    assert float(error.max()) <= construction.error_bound


def test_the_start_token_selects_nothing_and_gains_nothing() -> None:
    construction = of_class(TASK)
    X = construction.run(TASK)
    rows = construction.transformer.rows
    assert bool((X[0, rows["m"]] == 0).all()) and bool((X[0, rows["u"]] == 0).all())


def test_masks_stay_within_their_bound() -> None:
    task = icalign.sample_task(batch=(300,), responses=7, seed=5)
    construction = of_class(task, tolerance=10.0)
    place = task.r[:, 0, None, :] > task.r[:, 0, :, None]  # [a, b]: b is better than a
    rounds = construction.rounds(task)
    assert len(rounds) == 7
    for k, X in enumerate(rounds):
        mask = X[..., construction.transformer.rows["m"]]
        for t in range(1, 8):
            above = place[:, :t, :t].sum(-1)  # rank of each response in the prefix, from 0
            error = (mask[:, t - 1, :t] - (above < k).double()).abs().amax()
            assert float(error) <= k * bounds.mask_miss(construction.margin)
            assert bool((mask[:, t - 1, t:] == 0).all())


def test_sink_and_masks_are_those_of_the_closed_forms() -> None:
    construction = of_class(TASK, reward_range=(-1.0, 2.0))
    t, values = construction.temperatures, construction.values
    assert t["gamma_1"] == pytest.approx((construction.margin + 1) / 0.1)
    assert t["c"] == pytest.approx((construction.margin + 1) * (2 + 3.0 / 0.1))
    assert values[formulas.sigma] == pytest.approx((t["gamma_1"] * 1.0 - t["c"]) / 2)
    low, high = bounds.score_range(construction.norm, 3.0)
    assert values[formulas.sigma_field] == pytest.approx((low + high - t["c_field"]) / 2)
    assert construction.field_margin == pytest.approx((t["c_field"] - (high - low)) / 2)


@pytest.mark.parametrize("tolerance", [1e-9, 1e-6, 1e-2, 1.0, 1e3])
@pytest.mark.parametrize("responses", [2, 3, 20])
def test_the_temperatures_meet_the_tolerance_and_the_hypotheses(responses: int, tolerance: float) -> None:
    reach, spread = 5.0, 17.0
    h = max(bounds.causal_field_margins(tolerance, reach, responses))
    mask = spread + 2 * h
    g = max(bounds.causal_margins(tolerance, reach, mask, 0.1, 2.0, responses))
    _, c = bounds.mask_temperatures(g, 0.1, 2.0)
    assert bounds.causal_error(reach, g, h, mask, responses) <= tolerance * (1 + 1e-12)
    assert 2.5 * (responses - 1) * max(c, mask) * math.exp(-g) <= 1 + 1e-12
    assert bounds.share(bounds.mask_crowd(g)) <= bounds.mask_miss(g)
    assert bounds.mask_margin(*bounds.mask_temperatures(g, 0.1, 2.0), 0.1, 2.0) == pytest.approx(g)


def test_temperatures_too_small_for_the_theorem_promise_nothing() -> None:
    good = of_class(TASK, tolerance=1e-3).temperatures
    assert of_class(TASK, tolerance=None, temperatures=good).error_bound <= 1e-3
    for name in good:
        worse = good | {name: good[name] / 10}
        assert of_class(TASK, tolerance=None, temperatures=worse).error_bound == math.inf


# --- the printed form ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("responses", range(2, 9))
def test_the_printed_form_counts_short_prefixes_again(responses: int) -> None:
    task = icalign.sample_task(batch=(200,), responses=responses, seed=20 + responses)
    printed, sink = of_class(task, sink=False), of_class(task)
    assert printed.error_bound == math.inf and printed.temperatures == sink.temperatures
    found = printed.update(task)
    predicted = cyclic_update(task, ETA)
    assert float((found[:, 0] - predicted).norm(dim=-1).max()) <= sink.error_bound
    wrong = off(found, task).median(0).values > 0.1  # a single instance may have small surplus terms
    wanted = [2 <= position <= responses - 2 for position in range(1, responses + 1)]
    right = off(found, task).amax(0) <= sink.error_bound
    assert wrong.tolist() == wanted and (~right).tolist() == wanted


def test_at_four_responses_position_two_takes_twice_its_step() -> None:
    task = icalign.sample_task(responses=4, seed=1)
    twice = 2 * exact(task)[0, 1]
    printed = of_class(task, sink=False)
    assert float((printed.update(task)[0, 1] - twice).norm()) <= of_class(task).error_bound
    assert torch.allclose(hard_update(task, ETA)[1], twice)


def test_a_mask_factor_below_the_spread_selects_greedily() -> None:
    orders = list(permutations(range(5)))
    drawn = icalign.sample_task(batch=(len(orders),), responses=5, seed=7)
    rewards = number([[[0.1 * place for place in order]] for order in orders])
    task = AlignmentTask(drawn.x, drawn.y, rewards, drawn.W)
    gamma_2 = 0.33  # below the spread 0.4; values r − γ₂n that differ do so by 0.01 or more
    temperatures = {"gamma_1": 4000.0, "c": 4000.0 * gamma_2, "c_field": 80.0}
    printed = of_class(task, sink=False, tolerance=None, temperatures=temperatures)
    apart = (printed.update(task)[:, 0] - hard_update(task, ETA, gamma_2)).norm(dim=-1)
    assert float(apart.max()) < 1e-9
    cyclic = (hard_update(task, ETA, gamma_2) - cyclic_update(task, ETA)).norm(dim=-1)
    assert float(cyclic.max()) > 0.1


def test_greedy_rounds_at_exact_rewards() -> None:
    rewards = torch.tensor([30, 10, 20])
    counts = torch.zeros(3, 3, dtype=torch.int64)
    chosen = []
    for _ in range(4):
        selected, _ = greedy_round(rewards, counts, 15.0)
        counts += torch.nn.functional.one_hot(selected, 3)
        chosen.append(selected[2].item())
    assert chosen == [0, 2, 0, 1]  # 30, 20, 15, 10: the best once more before the last


def test_the_cyclic_sum_is_the_hard_limit() -> None:
    task = icalign.sample_task(batch=(50,), responses=7, seed=8)
    allowed = 1e-13 * of_class(task).longest
    assert float((cyclic_update(task, ETA) - hard_update(task, ETA)).abs().max()) <= allowed
    assert torch.equal(hard_update(task, ETA), hard_update(task, ETA, 2.5))


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sink": 1}, r"sink: 1, expected True or False"),
        ({"positions": "learned"}, r"positions: 'learned', expected 'given' or 'derived'"),
        ({"positions": "derived", "sink": False}, r"positions: 'derived' needs a start token"),
        ({"tolerance": 1e-14}, r"tolerance: 1e-14, torch.float64 promises no less than"),
        ({"tolerance": 5e-324}, r"tolerance: 5e-324"),
        ({"tolerance": None}, r"give either tolerance or temperatures"),
        ({"tolerance": None, "temperatures": {"gamma_1": 1.0}}, r"expected \['c', 'c_field', 'gamma_1'\]"),
        ({"responses": 1}, r"responses: 1, expected at least 2"),
        ({"responses": 30}, r"the class is empty"),
        ({"eta": -1.0}, r"eta: -1.0"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_arguments_are_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Causal(**{"W": TASK.W, "tolerance": 1e-6} | given)


def test_more_positions_than_the_dtype_derives_are_refused() -> None:
    with pytest.raises(ValueError, match=r"responses: 80, expected at most"):
        Causal(W=TASK.W.half(), responses=80, min_gap=0.02, tolerance=1.0, positions="derived", dtype=torch.float16)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"queries": 2}, r"queries: the task has 2, the class 1"),
        ({"responses": 5}, r"responses: the task has 5, the class 8"),
        ({"min_gap": 0.05}, r"min_gap: the task has a gap of"),
        ({"W": 2 * TASK.W}, r"W: an entry of the task's W differs"),
        ({"radius": 9.0}, r"radius: the task has a response of norm"),
    ],
)
def test_tasks_outside_the_class_are_refused(other: dict[str, object], message: str) -> None:
    construction = of_class(TASK)
    task = icalign.sample_task(**{"W": TASK.W, "seed": 3} | other)
    with pytest.raises(OutOfClass, match=message):
        construction.update(task)
    with pytest.raises(OutOfClass, match=message):
        construction.rounds(task)


def test_the_printed_prediction_is_for_one_query() -> None:
    for predict in (hard_update, cyclic_update):
        with pytest.raises(ValueError, match=r"task: 2 queries, expected 1"):
            predict(icalign.sample_task(queries=2), ETA)


# --- terms of the promise -----------------------------------------------------------------------------------------


def test_rounding_alone_is_covered() -> None:
    """Cold temperatures and a W that stretches: nothing but rounding is left of the error."""
    drawn = icalign.sample_task(batch=(200,), seed=3)
    task = AlignmentTask(drawn.x, drawn.y, drawn.r, 30 * drawn.W)
    spread = bounds.score_spread(float(torch.linalg.matrix_norm(task.W, 2)), 3.0)
    heat = {"gamma_1": 610.0, "c": 1342.0, "c_field": spread + 160}
    cold = of_class(task, tolerance=None, temperatures=heat)
    error = float(off(cold.update(task), task).max())
    assert cold._exact_error() < error <= cold.error_bound


def test_rounds_of_derived_positions_are_those_of_given_ones() -> None:
    given, derived = of_class(TASK), of_class(TASK, positions="derived")
    pairs = list(zip(given.rounds(TASK), derived.rounds(TASK), strict=True))
    assert len(pairs) == TASK.responses
    for mine, other in pairs:
        assert torch.equal(mine[..., given.transformer.rows["m"]], other[..., derived.transformer.rows["m"]])


def test_a_small_step_is_not_refused_as_if_nothing_could_be_promised() -> None:
    with pytest.raises(ValueError, match=r"tolerance: 1e-20, torch.float64 promises no less than .*e-16"):
        of_class(TASK, eta=1e-25, tolerance=1e-20)


@pytest.mark.parametrize("value", [math.nan, -1.0, -math.inf])
def test_the_printed_prediction_refuses_what_is_no_mask_factor(value: float) -> None:
    for attempt in (
        lambda: hard_update(TASK, ETA, value),
        lambda: greedy_round(number([1.0, 2.0]), torch.zeros(2, 2, dtype=torch.int64), value),
    ):
        with pytest.raises(ValueError, match="gamma_2: "):
            attempt()


@pytest.mark.parametrize("eta", [math.nan, math.inf, 0.0, -1.0])
def test_the_printed_prediction_refuses_what_is_no_step_size(eta: float) -> None:
    for predict in (hard_update, cyclic_update):
        with pytest.raises(ValueError, match="eta: "):
            predict(TASK, eta)


def test_greedy_rounds_refuse_ties_and_what_is_not_finite() -> None:
    counts = torch.zeros(3, 3, dtype=torch.int64)
    with pytest.raises(ValueError, match="both have reward 2"):
        greedy_round(torch.tensor([2, 1, 2]), counts, 1.0)
    with pytest.raises(ValueError, match=r"rewards: nan at \(1,\)"):
        greedy_round(number([2.0, math.nan, 1.0]), counts, 1.0)
