"""Several queries in one prompt: against the closed form and autograd, with and without the last layer; refusals."""

import math
from typing import Any

import pytest
import torch
from reference import by_autograd, sample
from torch import Tensor

import icalign
from icalign import AlignmentTask, OutOfClass, bounds
from icalign.constructions import MultiQuery
from icalign.constructions.base import TaskClass

W = icalign.sample_task(seed=3).W
TOLERANCE = 1e-9
ALL = dict.fromkeys(["gamma_1", "gamma_2", "gamma_beta", "C", "epsilon", "lambda"], 1.0)


def made(**changes: Any) -> MultiQuery:
    """A construction for the class of sample_task, for queries of overlap up to 0.9."""
    arguments: dict[str, Any] = {"W": W, "tolerance": None if "temperatures" in changes else TOLERANCE} | changes
    return MultiQuery(**arguments)


def each_alone(task: AlignmentTask) -> AlignmentTask:
    """The same queries, each as a task of its own."""
    return AlignmentTask(task.x.unsqueeze(-2), task.y.unsqueeze(-3), task.r.unsqueeze(-2), task.W)


def step(construction: MultiQuery, task: AlignmentTask) -> Tensor:
    """What u should be at every token: the joint step, or each query's own in the printed form."""
    if construction.cross_terms:
        return (task.x @ icalign.gradient_step(task, construction.eta).mT)[..., None, :]
    alone = each_alone(task)
    return alone.x @ icalign.gradient_step(alone, construction.eta).mT


def allowance(construction: MultiQuery) -> float:
    """What the construction promises and the rounding of the closed form."""
    kind = construction.task_class
    other = bounds.gradient_rounding(construction.dtype, kind.responses, kind.dim_x, kind.dim_y, construction.reach)
    return construction.error_bound + construction.eta * kind.queries * other


def worst(construction: MultiQuery, task: AlignmentTask) -> float:
    return float((construction.update(task) - step(construction, task)).norm(dim=-1).max())


def equiangular(queries: int, dim: int, overlap: float, generator: torch.Generator) -> Tensor:
    """Unit queries, every two of which have the same inner product."""
    gram = torch.full((queries, queries), overlap, dtype=torch.float64)
    gram.fill_diagonal_(1.0)
    x = torch.zeros(queries, dim, dtype=torch.float64)
    x[:, :queries] = torch.linalg.cholesky(gram)
    frame = torch.linalg.qr(torch.randn(dim, dim, generator=generator, dtype=torch.float64)).Q
    return torch.nn.functional.normalize(x @ frame, dim=-1)


def extreme(construction: MultiQuery, trial: int) -> AlignmentTask:
    """A task at the edges: all overlaps ρ, all gaps Δ, some queries low and some high, responses at two poles."""
    kind, generator = construction.task_class, torch.Generator().manual_seed(trial)
    M, N, (low, high) = kind.queries, kind.responses, kind.reward_range
    x = equiangular(M, kind.dim_x, 0.0 if kind.overlap is None else kind.overlap, generator)
    pole = torch.nn.functional.normalize(torch.randn(kind.dim_y, generator=generator, dtype=torch.float64), dim=0)
    sign = torch.sign(torch.randn(M, N, 1, generator=generator, dtype=torch.float64))
    if trial % 3 == 0:  # the best against the rest
        sign[:] = -1
        sign[:, 0] = 1
    if trial % 3 == 1:  # the first query against the rest
        sign[:] = -1
        sign[0] = 1
    steps = kind.min_gap * torch.arange(N - 1, -1, -1, dtype=torch.float64)
    lowest = [a == 0 if trial % 3 == 1 else (a + trial) % 2 == 0 for a in range(M)]
    starts = torch.tensor([[low if down else high - steps[0]] for down in lowest], dtype=torch.float64)
    r = (starts + steps).clamp(low, high)
    return AlignmentTask(x, kind.radius * (1 - 1e-12) * sign * pole, r, construction.W)


@pytest.mark.parametrize("query_ids", [False, True])
@pytest.mark.parametrize("queries", [1, 2, 3, 4])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-6, 1e-9])
def test_it_is_one_joint_gradient_step(queries: int, tolerance: float, query_ids: bool) -> None:
    construction = made(queries=queries, tolerance=tolerance, query_ids=query_ids)
    assert construction.error_bound <= tolerance
    task = sample(construction, 100, queries)
    assert worst(construction, task) <= allowance(construction)
    moved = task.y - step(construction, task)
    assert (construction(task) - moved).norm(dim=-1).max() <= allowance(construction)


def test_two_thousand_random_tasks_keep_the_promise() -> None:
    """Sizes, overlaps, ranges and step sizes vary; the printed form is held to the own step."""
    seen = 0
    for seed in range(24):
        construction = made(
            W=icalign.sample_task(dim_x=3 + seed % 3, dim_y=1 + seed % 4, seed=seed).W,
            eta=[0.02, 0.1, 0.7][seed % 3],
            queries=1 + seed % 4,
            responses=2 + seed % 7,
            overlap=[0.9, 0.6, 0.1][seed % 3],
            min_gap=[0.05, 0.1][seed % 2],
            reward_range=[(0.0, 2.0), (-1.0, 0.5), (7.0, 8.5)][seed % 3],
            radius=[3.0, 0.8][seed % 2],
            tolerance=[1e-8, 1e-5, 1e-2, 0.3][seed % 4],
            cross_terms=seed % 5 > 0,
            query_ids=seed % 7 == 0,
        )
        task = sample(construction, 90, seed)
        assert worst(construction, task) <= allowance(construction)
        seen += 90
    assert seen >= 2000


@pytest.mark.slow
def test_twenty_thousand_random_tasks_keep_the_promise() -> None:
    for seed in range(40):
        construction = made(queries=1 + seed % 4, tolerance=10.0 ** -(seed % 10), cross_terms=seed % 3 > 0)
        assert worst(construction, sample(construction, 500, 100 + seed)) <= allowance(construction)


@pytest.mark.parametrize("cross_terms", [True, False])
@pytest.mark.parametrize(("queries", "responses"), [(1, 2), (2, 2), (3, 4), (4, 8)])
@pytest.mark.parametrize("overlap", [0.9, 0.0, -0.2])
@pytest.mark.parametrize("tolerance", [30.0, 1e-3, 1e-9])
def test_the_tolerance_holds_at_the_edges_of_the_class(
    queries: int, responses: int, overlap: float, tolerance: float, cross_terms: bool
) -> None:
    construction = made(
        queries=queries,
        responses=responses,
        overlap=overlap,
        reward_range=(5.0, 6.0),
        tolerance=tolerance,
        cross_terms=cross_terms,
    )
    assert construction.error_bound <= tolerance
    for trial in range(12):
        assert worst(construction, extreme(construction, trial)) <= allowance(construction)


def barely_filtered(strength: float, queries: int = 4, overlap: float = 0.9) -> MultiQuery:
    """Temperatures at which strangers weigh e^{−strength} in the worst case, much more than own losers."""
    spread, gamma_2, apart = 1.0, 300.0, 1 - overlap
    temperatures = {
        "gamma_1": (gamma_2 * (spread - 0.1) + strength) / apart,
        "gamma_2": gamma_2,
        "gamma_beta": (bounds.score_spread(float(torch.linalg.matrix_norm(W, 2)), 3.0) + 60) / apart,
        "C": 80.0,
    }
    return made(
        queries=queries,
        overlap=overlap,
        responses=2,
        reward_range=(5.0, 6.0),
        temperatures=temperatures,
        cross_terms=False,
    )


@pytest.mark.parametrize("strength", [3.0, 5.0, 9.0])
def test_the_bound_counts_the_strangers(strength: float) -> None:
    """Where the other queries are what limits the filter, errors come near the bound and stay below it."""
    construction = barely_filtered(strength)
    if strength == 3.0:  # r⁺ may be off by R·share(3e^{−3}) > Δ/4: nothing is promised
        assert construction.error_bound == math.inf
        return
    errors = [worst(construction, extreme(construction, trial)) for trial in range(12)]
    assert max(errors) <= allowance(construction) < math.inf
    assert max(errors) > 0.8 * construction.error_bound


def test_orthonormal_queries_need_no_cross_terms() -> None:
    whole, printed = made(), made(cross_terms=False)
    task = sample(whole, 50, 5, orthonormal=True)
    joint = step(whole, task)
    assert (step(printed, task) - joint).norm(dim=-1).max() <= whole.eta * 3 * 1e-12
    for construction in (whole, printed):
        assert (construction.update(task) - joint).norm(dim=-1).max() <= allowance(construction)


def test_the_printed_form_misses_the_other_queries() -> None:
    printed = made(cross_terms=False)
    task = sample(printed, 50, 6)
    joint = (task.x @ icalign.gradient_step(task, printed.eta).mT)[..., None, :]
    missing = (step(printed, task) - joint).norm(dim=-1)
    assert worst(printed, task) <= allowance(printed)
    assert (missing / joint.norm(dim=-1)).median() > 0.3


def test_with_identifiers_even_equal_queries_are_told_apart() -> None:
    construction = made(query_ids=True)
    free = sample(construction, 20, 7)
    same = AlignmentTask(free.x[:, :1].expand(-1, 3, -1).clone(), free.y, free.r, free.W)
    assert same.overlap > 1 - 1e-12
    assert worst(construction, same) <= allowance(construction)


@pytest.mark.parametrize(
    ("dtype", "tolerance", "pairs"), [(torch.float32, 3e-2, 1), (torch.float64, 1e-9, 2), (torch.float64, 1e-10, 4)]
)
def test_a_small_tolerance_takes_more_pairs(dtype: torch.dtype, tolerance: float, pairs: int) -> None:
    construction = MultiQuery(W=W.to(dtype), tolerance=tolerance, dtype=dtype)
    assert construction.pairs == pairs
    assert len(construction.transformer.blocks[-1].heads) == 2 * pairs  # type: ignore[arg-type]
    task = sample(construction, 50, 8)
    error = (construction.update(task) - by_autograd(task, construction.eta)).norm(dim=-1).max()
    # autograd in float64 rounds as the closed form
    assert error <= allowance(construction)
    assert construction.error_bound <= tolerance


def test_one_pair_promises_less_than_several() -> None:
    assert made(tolerance=1e-9).pairs > 1
    with pytest.raises(ValueError, match=r"tolerance: 1e-09, torch.float64 promises no less than .*e-0[78]"):
        made(tolerance=1e-9, pairs=1)
    with pytest.raises(ValueError, match=r"promises no less than .*e-1[01]"):
        made(tolerance=1e-13)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_promise_nothing(dtype: torch.dtype) -> None:
    with pytest.raises(ValueError, match="promises"):
        MultiQuery(W=W.to(dtype), tolerance=1.0, dtype=dtype)


@pytest.mark.parametrize("tolerance", [5e-324, 1e-300, 1e-30])
def test_tolerances_beyond_any_number_are_refused(tolerance: float) -> None:
    with pytest.raises(ValueError, match="promises no less than"):
        made(tolerance=tolerance)


def test_the_smallest_promise_is_kept() -> None:
    with pytest.raises(ValueError, match="no less than") as refused:
        made(tolerance=1e-15)
    least = float(str(refused.value).split("no less than ")[1].split()[0])
    assert made(tolerance=least).error_bound <= least
    with pytest.raises(ValueError, match="no less than"):
        made(tolerance=0.99 * least)


def test_the_sink_gathers_nothing_and_is_overlooked() -> None:
    construction = made()
    X = construction.embed(sample(construction, 20, 9))
    for block in construction.transformer.blocks[:-1]:
        weights = block.weights(X)  # type: ignore[operator]
        assert weights[..., 1:, 0].max() < 1e-9  # it is a stranger, and these weigh e^{−g} or e^{−h} at most
        assert torch.equal(weights[0, :, 0], weights[1, :, 0])
        X = block(X)
    assert torch.equal(X[:, 0, construction.transformer.rows["u"]], torch.zeros(20, 3, dtype=torch.float64))


def test_a_sink_with_a_row_of_ones_destroys_the_result() -> None:
    """It asks like any token, so that its own u fills, and the last layer multiplies that by e^λ/(2ε)."""
    construction = made()
    task = sample(construction, 5, 10)
    X = construction.embed(task)
    X[:, 0, construction.transformer.rows["one"]] = 1
    u = construction.responses(construction.transformer(X))[..., construction.transformer.rows["joint"]]
    assert (u - step(construction, task)).norm(dim=-1).max() > 1e3 * construction.error_bound


def test_near_duplicate_queries_are_refused_with_the_number() -> None:
    construction = made(overlap=0.9)
    near = made(overlap=0.97)
    x = equiangular(3, 4, 0.95, torch.Generator().manual_seed(0))
    task = sample(construction, 1, 0)
    close = AlignmentTask(x[None], task.y, task.r, task.W)
    with pytest.raises(OutOfClass, match=r"overlap: the task has two queries with .* = 0.95, the class allows 0.9"):
        construction(close)
    assert worst(near, close) <= allowance(near)
    exactly = AlignmentTask(
        equiangular(3, 4, 0.9, torch.Generator().manual_seed(0))[None], task.y, task.r, task.W
    )  # the computed overlap may be a rounding above
    assert worst(construction, exactly) <= allowance(construction)


def test_non_unit_queries_are_refused_with_the_number() -> None:
    task = sample(made(), 1, 0)
    with pytest.raises(ValueError, match=r"query .* has norm 1.01, expected 1"):
        AlignmentTask(task.x * 1.01, task.y, task.r, task.W)
    almost = AlignmentTask(task.x * (1 + 5e-10), task.y, task.r, task.W)
    with pytest.raises(OutOfClass, match="x: the norm of a query is 1 to within 5e-10"):
        made()(almost)


@pytest.mark.parametrize("overlap", [1.0, 1.5, -1.1, math.nan, math.inf, "0.5", True])
def test_an_overlap_out_of_range_is_refused(unchecked: None, overlap: Any) -> None:
    with pytest.raises(ValueError, match="overlap"):
        made(overlap=overlap)


def test_a_class_without_an_overlap_takes_any_queries() -> None:
    sizes = {"dim_x": 4, "dim_y": 3, "responses": 8, "min_gap": 0.1, "reward_range": (0.0, 2.0), "radius": 3.0}
    task = icalign.sample_task(queries=3, seed=1)
    TaskClass(**sizes, queries=3).check(task)
    TaskClass(**sizes, queries=3, overlap=task.overlap).check(task)
    with pytest.raises(OutOfClass, match="overlap"):
        TaskClass(**sizes, queries=3, overlap=task.overlap - 1e-9).check(task)
    TaskClass(**sizes, queries=1, overlap=-1.0).check(icalign.sample_task())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"queries": 0}, "queries: 0, expected at least 1"),
        ({"responses": 1}, "responses: 1, expected at least 2"),
        ({"pairs": 0}, "pairs: 0, expected at least 1"),
        ({"tolerance": 1e-9, "temperatures": {}}, "both came"),
        ({"temperatures": {"gamma_1": 1.0}}, "expected .*'epsilon'.*'lambda'"),
        ({"cross_terms": False, "temperatures": {"gamma_1": 1.0, "lambda": 2.0}}, "temperatures"),
        ({"temperatures": ALL | {"epsilon": 0}}, "epsilon > 0"),
    ],
)
def test_bad_arguments_are_refused(unchecked: None, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        made(**changes)


def test_a_task_of_another_class_is_refused() -> None:
    construction = made()
    for changes, words in [
        ({"queries": 2}, "queries: the task has 2, the class 3"),
        ({"radius": 4.0}, "radius"),
        ({"min_gap": 0.05}, "min_gap"),
    ]:
        with pytest.raises(OutOfClass, match=words):
            construction(sample(construction, 20, 3, **changes))
    other = icalign.sample_task(queries=3, overlap=0.9, seed=4)
    with pytest.raises(OutOfClass, match="W: an entry"):
        construction(other)


def test_weights_do_not_depend_on_the_task() -> None:
    construction = made()
    before = [p.clone() for p in construction.transformer.parameters()]
    construction(sample(construction, 3, 11))
    assert all(torch.equal(a, b) for a, b in zip(before, construction.transformer.parameters(), strict=True))


def test_its_name_tells_its_class() -> None:
    shown = repr(made())
    assert "queries=3" in shown
    assert "overlap=0.9" in shown
    assert "overlap" not in repr(made(query_ids=True))


def test_no_temperature_promises_nothing() -> None:
    assert made(temperatures=dict.fromkeys(ALL, 0.0) | {"epsilon": 0.1}).error_bound == math.inf


# The sink


@pytest.mark.parametrize("reward_range", [(-1002.0, -999.0), (-1000.0, -997.0)])
def test_rewards_far_below_zero_do_not_let_the_sink_win(reward_range: tuple[float, float]) -> None:
    """Without γ₂·low in its logit it would be the best token of all. Its flag rises, once a block, and does no harm."""
    N, M = 4, 2
    longest = 2 * 0.1 * (N - 1) * 6
    kind: dict[str, Any] = {"queries": M, "responses": N, "min_gap": 1.0, "overlap": 0.0}
    construction = made(**kind, reward_range=reward_range, tolerance=0.9 * M * longest)
    for trial in range(12):
        assert worst(construction, extreme(construction, trial)) <= allowance(construction)
    X, rows = construction.embed(extreme(construction, 0)), construction.transformer.rows
    for number, block in enumerate(construction.transformer.blocks[:-1], 1):
        X = block(X)
        assert X[0, rows["flag"]] == pytest.approx(number, abs=1e-6)
        assert (X[0, rows["u"]] == 0).all()


def alone_with_the_sink(**changes: Any) -> MultiQuery:
    """One query beside the sink, which weighs e^{−3} at most beside the worst winner there can be."""
    t = {"gamma_1": 6.0, "gamma_2": 3.0, "gamma_beta": 100.0, "C": 100.0, "epsilon": 1e-4, "lambda": 30.0} | changes
    kind: dict[str, Any] = {"queries": 1, "responses": 3, "min_gap": 1.0, "overlap": 0.0}
    return made(**kind, reward_range=(1e6, 1e6 + 2), temperatures=t)


def test_the_sink_counts_as_the_lowest_reward() -> None:
    """With a reward of 0 its weight of e^{−12} would lower r⁺, which is about 10⁶, by six gaps."""
    construction = alone_with_the_sink()
    assert construction.error_bound < math.inf
    for trial in range(6):
        task = extreme(construction, trial)
        assert worst(construction, task) <= allowance(construction)
        X, rows = construction.embed(task), construction.transformer.rows
        for number, block in enumerate(construction.transformer.blocks[:-1], 1):
            X = block(X)
            flags = construction.responses(X)[0, :, rows["flag"]].flatten()
            assert (flags - (task.r[0].argsort(descending=True).argsort() < number).double()).abs().max() < 1e-6


def test_the_sink_is_a_stranger() -> None:
    """Where it is the only one, and own losers are cold: two responses, of which the runner-up is the winner's twin."""
    t = {"gamma_1": 3.0, "gamma_2": 40.0, "gamma_beta": 100.0, "C": 100.0, "epsilon": 1e-4, "lambda": 30.0}
    kind: dict[str, Any] = {"queries": 1, "responses": 2, "min_gap": 1.0, "overlap": 0.0, "reward_range": (0.0, 1.0)}
    construction = made(**kind, temperatures=t | {"gamma_1": 3.0})
    assert construction._own_error() > construction.longest / 30  # e^{−3}, though nobody else is there
    field = made(
        **kind, temperatures=t | {"gamma_1": 100.0, "gamma_beta": bounds.score_spread(construction.norm, 3.0) + 3}
    )
    assert field._own_error() > field.longest / 60
    for each in (construction, field):
        for trial in range(6):
            assert worst(each, extreme(each, trial)) <= allowance(each)


@pytest.mark.parametrize(("epsilon", "pairs", "lambda_"), [(100.0, 1, 600.0), (30.0, 4, 500.0), (40.0, 2, 500.0)])
def test_an_epsilon_far_too_large_is_counted(epsilon: float, pairs: int, lambda_: float) -> None:
    t = {"gamma_1": 300.0, "gamma_2": 60.0, "gamma_beta": 300.0, "C": 100.0, "epsilon": epsilon, "lambda": lambda_}
    kind: dict[str, Any] = {"queries": 1, "responses": 2, "min_gap": 1.0, "overlap": 0.0, "reward_range": (0.0, 1.0)}
    construction = made(**kind, temperatures=t, pairs=pairs)
    x = torch.linalg.svd(W).Vh[:1]
    pole = torch.nn.functional.normalize(x @ W.mT, dim=-1)[0]
    y = 3 * (1 - 1e-12) * torch.stack([-pole, pole])
    task = AlignmentTask(x, y[None], torch.tensor([[1.0, 0.0]], dtype=torch.float64), W)
    error = worst(construction, task)
    assert 0.99 < error / construction.error_bound <= 1
