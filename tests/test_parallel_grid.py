"""Two attention layers without positions: the code of rewards, the step against autograd, several queries, refusals."""

import itertools
import math
from typing import Any

import pytest
import sympy as sp
import torch
from reference import by_autograd, sample
from torch import Tensor

import icalign
from icalign import AlignmentTask, OutOfClass, bounds
from icalign.constructions import TwoLayers, TwoLayersMultiQuery
from icalign.constructions.gradient import GradientStep
from icalign.constructions.parallel_grid import K, code, differences, stream
from icalign.spec import FeedForward, relu
from icalign.symbolic import FeedForwardMatrices, SymbolicTransformer, bands

W = icalign.sample_task(seed=3).W


def made(**changes: Any) -> TwoLayers:
    """A construction for the class of sample_task."""
    return TwoLayers(**({"W": W, "tolerance": None if "temperatures" in changes else 1e-9} | changes))


def joint(**changes: Any) -> TwoLayersMultiQuery:
    """The same for three queries of overlap up to 0.9."""
    return TwoLayersMultiQuery(**({"W": W, "tolerance": None if "temperatures" in changes else 1e-8} | changes))


def allowance(construction: GradientStep) -> float:
    """What the construction promises and the rounding of autograd."""
    kind = construction.task_class
    other = bounds.gradient_rounding(construction.dtype, kind.responses, kind.dim_x, kind.dim_y, construction.reach)
    return construction.error_bound + construction.eta * kind.queries * other


def worst(construction: GradientStep, task: AlignmentTask) -> float:
    return float((construction.update(task) - by_autograd(task, construction.eta)).norm(dim=-1).max())


def products(construction: TwoLayers, r: Tensor) -> Tensor:
    """⟨c(r_l), p(r_i)⟩ for rewards r (n,): entry [l, i]."""
    X = torch.zeros(len(r), construction.transformer.rows["u"].stop, dtype=r.dtype)
    X[:, construction.transformer.rows["r"]], X[:, construction.transformer.rows["one"]] = r[:, None], 1
    X = construction.transformer.blocks[0](X)
    rows = construction.transformer.rows
    return X[:, rows["c"]] @ X[:, rows["p"]].mT


def rewards(construction: GradientStep, trial: int) -> Tensor:
    """Rewards (M, N) at the edges of the class: all gaps Δ, at either end of the range or off the grid."""
    kind, generator = construction.task_class, torch.Generator().manual_seed(trial)
    low, high = kind.reward_range
    steps = kind.min_gap * torch.arange(kind.responses, dtype=torch.float64)
    room = high - low - float(steps[-1])
    offsets = [0.0, room, room / 3, room * float(torch.rand((), generator=generator, dtype=torch.float64))]
    each = [offsets[(trial + query) % 4] for query in range(kind.queries)]
    r = (low + torch.tensor(each, dtype=torch.float64)[:, None] + steps).clamp(low, high)
    order = torch.stack([torch.randperm(kind.responses, generator=generator) for _ in range(kind.queries)])
    return r.gather(-1, order)


def extreme(construction: GradientStep, trial: int) -> AlignmentTask:
    """Rewards at the edges of the class, and responses at two poles, the better half or the best against the rest."""
    kind, generator = construction.task_class, torch.Generator().manual_seed(trial)
    task = sample(construction, 1, trial)
    r = rewards(construction, trial)
    pole = torch.nn.functional.normalize(construction.W @ task.x[0, 0], dim=0)
    if trial % 2:
        pole = torch.nn.functional.normalize(torch.randn(kind.dim_y, generator=generator, dtype=torch.float64), dim=0)
    ranks = r.argsort(-1, descending=True).argsort(-1)
    better = ranks < (1 if trial % 3 == 0 else kind.responses // 2)
    sign = torch.where(better, 1.0, -1.0)[..., None] * (1 if trial % 5 else -1)
    y = kind.radius * (1 - 1e-12) * sign * pole
    return AlignmentTask(task.x, y[None].to(construction.dtype), r[None].to(construction.dtype), construction.W)


# The code


@pytest.mark.parametrize("reward_range", [(0.0, 2.0), (-1.0, 1.0), (7.03, 9.1), (-4.5, -3.217)])
@pytest.mark.parametrize("min_gap", [0.1, 0.25, 1 / 7])
def test_a_product_of_codes_compares_rewards(reward_range: tuple[float, float], min_gap: float) -> None:
    """On the grid and off it: 1 a gap above and more, to within φ; 0 at equality and below."""
    construction = made(reward_range=reward_range, min_gap=min_gap, responses=4)
    (low, high), grid = reward_range, torch.arange(construction.points + 1, dtype=torch.float64)
    on = (low + grid * min_gap / 3).clamp(low, high)
    off = low + (high - low) * torch.rand(300, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    apart = (torch.cat([on, off])[:, None] + min_gap * torch.arange(-2, 3)).flatten()
    r = torch.cat([torch.tensor([low, high], dtype=torch.float64), apart[(apart >= low) & (apart <= high)]])
    found, ahead = products(construction, r), r[:, None] - r
    graze = bounds.grid_graze(torch.float64, min_gap, construction.task_class.largest_reward, construction.points)
    assert found[ahead <= 0].abs().max() <= graze < bounds.unit_roundoff(torch.float64)
    least = min_gap - bounds.gap_shortfall(torch.float64, construction.task_class.largest_reward)
    short = bounds.grid_rounding(torch.float64, min_gap, construction.task_class.largest_reward, construction.points)
    assert (ahead >= least).any()
    assert (found[ahead >= least] - 1).abs().max() <= short < 1e-9


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_no_rounding_makes_a_worse_response_mask_a_better_one(dtype: torch.dtype) -> None:
    """Neighbouring numbers of the dtype around every knot: 0 if a ramp and its mirror image round alike, or nearly."""
    construction = TwoLayers(W=W.to(dtype), temperatures={"C": 1.0}, reward_range=(0.3, 1.7), dtype=dtype)
    knots = 0.3 + torch.arange(construction.points + 1, dtype=torch.float64) / 30
    near = torch.stack([knots.to(dtype)] * 7)
    for steps, away in itertools.product(range(3), (-9.0, 9.0)):
        row = 1 + 2 * steps + int(away > 0)
        near[row] = torch.nextafter(near[max(0, row - 2)], torch.tensor(away, dtype=dtype))
    r = near.flatten().clamp(0.3, 1.7)
    graze = bounds.grid_graze(dtype, 0.1, 1.7, construction.points)
    assert products(construction, r)[r[:, None] <= r].abs().max() <= graze < bounds.unit_roundoff(dtype)


@pytest.mark.parametrize(("gap", "expected"), [(0.1, 1.0), (1 / 15, 0.75), (0.05, 0.5), (0.0, 0.0)])
def test_gaps_below_the_least_mask_in_part(gap: float, expected: float) -> None:
    """For a reward halfway between two knots: Σ_k c_k(z + d) p_k(z) with d = 3·gap/Δ."""
    construction = made()
    z, d = 4.5, 30 * gap
    r = torch.tensor([z / 30, (z + d) / 30], dtype=torch.float64)
    hat = {k: max(0.0, 1 - abs(z - k)) for k in range(60)}
    by_hand = sum(hat[k] * min(1.0, max(0.0, z + d - k - 1)) for k in range(60))
    assert by_hand == pytest.approx(expected, abs=1e-12)
    assert float(products(construction, r)[1, 0]) == pytest.approx(by_hand, abs=1e-12)


def test_the_number_of_relus_is_twice_the_grid_and_three() -> None:
    construction = made()
    assert construction.points == bounds.grid_points(0.1, 2.0) == 60
    layer = construction.transformer.blocks[0].feed_forward
    assert layer.first.shape[0] == 2 * 60 + 3  # type: ignore[union-attr, index]
    assert bounds.grid_points(0.4, 0.2) == 2


def test_a_band_reads_ramps_of_its_own_row_and_the_next() -> None:
    model = SymbolicTransformer(stream, TwoLayersMultiQuery(W=W, tolerance=1e-3).symbolic().blocks[:1], {"one": 1})
    k = sp.Symbol("k", integer=True, nonnegative=True)
    names = list(stream.rows)
    p_k = model.feed_forward().added(model.tokens(1), names.index("p"), k)
    assert len(p_k.atoms(sp.Max)) == 3
    assert bands(differences(1, -2, 1)) == {0: 1, 1: -2, 2: 1}
    assert bands(sp.Identity(K)) == {}
    a, b = sp.symbols("a b", integer=True)
    assert bands(sp.FunctionMatrix(K, K, sp.Lambda((a, b), a + b))) == {}
    assert bands(sp.FunctionMatrix(K, K, sp.Lambda((a, b), sp.KroneckerDelta(2 * a, b)))) == {}
    leaves = sp.FunctionMatrix(K, K, sp.Lambda((a, b), sp.KroneckerDelta(b, a + 1)))
    i, _ = stream.tokens
    layer = FeedForwardMatrices.of(FeedForward(write={"p": leaves @ relu(i.c)}), stream)
    with pytest.raises(ValueError, match="leaves the K columns"):
        layer.added(model.tokens(1), names.index("p"), k)
    assert code.write.keys() == {"p", "c"}


# One query


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6, 1e-9])
@pytest.mark.parametrize("responses", [2, 5, 21])
def test_it_is_one_gradient_step(tolerance: float, responses: int) -> None:
    construction = made(tolerance=tolerance, responses=responses)
    assert construction.error_bound <= tolerance
    task = sample(construction, 100, responses)
    assert worst(construction, task) <= allowance(construction)
    moved = task.y - by_autograd(task, construction.eta)
    assert (construction(task) - moved).norm(dim=-1).max() <= allowance(construction)


def test_two_thousand_random_tasks_keep_the_promise() -> None:
    seen = 0
    for seed in range(24):
        construction = made(
            W=icalign.sample_task(dim_x=3 + seed % 3, dim_y=1 + seed % 4, seed=seed).W,
            eta=[0.02, 0.1, 0.7][seed % 3],
            responses=2 + seed % 9,
            min_gap=[0.05, 0.1, 1 / 9][seed % 3],
            reward_range=[(0.0, 2.0), (-1.0, 0.5), (7.0, 8.5), (-0.013, 1.3)][seed % 4],
            radius=[3.0, 0.8][seed % 2],
            tolerance=[1e-9, 1e-5, 1e-2, 0.3][seed % 4],
        )
        assert worst(construction, sample(construction, 90, seed)) <= allowance(construction)
        seen += 90
    assert seen >= 2000


@pytest.mark.parametrize("responses", [2, 3, 8, 11])
@pytest.mark.parametrize("reward_range", [(0.0, 1.0), (5.0, 6.0), (-0.37, 0.71)])
@pytest.mark.parametrize("tolerance", [3.0, 1e-3, 1e-9])
def test_the_tolerance_holds_at_the_edges_of_the_class(
    responses: int, reward_range: tuple[float, float], tolerance: float
) -> None:
    construction = made(responses=responses, reward_range=reward_range, tolerance=tolerance)
    for trial in range(20):
        assert worst(construction, extreme(construction, trial)) <= allowance(construction)


def test_the_bound_is_nearly_attained() -> None:
    """Two responses at the ends of the largest range of scores: the last one's mean leaks towards the best one."""
    x = torch.linalg.svd(W).Vh[:1]
    pole = torch.nn.functional.normalize(x @ W.mT, dim=-1)[0]
    radius = 0.9 * float(torch.linalg.matrix_norm(W, 2))  # below ω the largest score is at the pole
    y = radius * (1 - 1e-12) * torch.stack([pole, -pole])
    task = AlignmentTask(x, y[None], torch.tensor([[1.0, 0.0]], dtype=torch.float64), W)
    spread = bounds.score_spread(float(torch.linalg.matrix_norm(W, 2)), radius)
    for above in (0.0, 3.0, 8.0):
        construction = made(responses=2, radius=radius, temperatures={"C": spread + above})
        ratio = worst(construction, task) / construction.error_bound
        assert 1 - 1e-6 < ratio <= 1


def test_thousands_of_responses_fit_in_a_grid() -> None:
    construction = made(responses=401, min_gap=0.01, reward_range=(0.0, 5.0), tolerance=1e-6)
    assert construction.points == 1500
    assert worst(construction, sample(construction, 1, 5)) <= allowance(construction)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rounding_is_what_is_left_at_a_large_mask(dtype: torch.dtype) -> None:
    """The allowance holds where nothing else is left, and falls with the unit of the dtype."""
    construction = TwoLayers(W=W.to(dtype), temperatures={"C": 200.0}, dtype=dtype)
    unit = bounds.unit_roundoff(dtype)
    for trial in range(20):
        error = worst(construction, extreme(construction, trial))
        assert error <= construction.error_bound < 1e7 * unit
    assert worst(construction, sample(construction, 300, 7)) <= construction.error_bound


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_promise_nothing(dtype: torch.dtype) -> None:
    assert TwoLayers(W=W.to(dtype), temperatures={"C": 50.0}, dtype=dtype).error_bound == math.inf
    with pytest.raises(ValueError, match="promises"):
        TwoLayers(W=W.to(dtype), tolerance=1.0, dtype=dtype)


def test_weights_of_attention_are_uniform_in_the_last_layer() -> None:
    construction = made()
    weights = construction.transformer.attention(construction.embed(sample(construction, 4, 2)))
    assert len(weights) == 2  # two layers of one head
    assert [w.shape[0] for w in weights] == [1, 1]
    assert (weights[1] == 1 / 8).all()


def test_one_set_of_weights_serves_the_class() -> None:
    construction = made()
    before = [p.clone() for p in construction.transformer.parameters()]
    construction(sample(construction, 3, 11))
    assert all(torch.equal(a, b) for a, b in zip(before, construction.transformer.parameters(), strict=True))
    one = sample(construction, 5, 12)
    alone = [construction(AlignmentTask(one.x[n], one.y[n], one.r[n], one.W)) for n in range(5)]
    assert (construction(one) - torch.stack(alone)).abs().max() <= 2 * construction.error_bound


# Several queries


@pytest.mark.parametrize("queries", [1, 2, 4])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-6, 1e-8])
def test_it_is_one_joint_gradient_step(queries: int, tolerance: float) -> None:
    construction = joint(queries=queries, tolerance=tolerance)
    assert construction.error_bound <= tolerance
    assert worst(construction, sample(construction, 80, queries)) <= allowance(construction)
    attended = [w.shape[0] for w in construction.transformer.attention(construction.embed(sample(construction, 1, 1)))]
    assert attended == [1, 2 * construction.pairs]


def test_a_thousand_random_tasks_of_several_queries_keep_the_promise() -> None:
    for seed in range(16):
        construction = joint(
            W=icalign.sample_task(dim_x=4 + seed % 2, dim_y=1 + seed % 4, seed=seed).W,
            eta=[0.02, 0.1, 0.7][seed % 3],
            queries=1 + seed % 4,
            responses=2 + seed % 7,
            overlap=[0.9, 0.5, 0.1][seed % 3],
            reward_range=[(0.0, 2.0), (-1.0, 0.5), (7.0, 8.5)][seed % 3],
            radius=[3.0, 0.8][seed % 2],
            tolerance=[1e-7, 1e-5, 1e-2, 0.3][seed % 4],
        )
        assert worst(construction, sample(construction, 70, seed)) <= allowance(construction)


@pytest.mark.parametrize("reward_range", [(0.0, 1.0), (5.0, 6.0), (-6.0, -5.0)])
@pytest.mark.parametrize("tolerance", [30.0, 1e-3, 1e-7])
def test_the_joint_tolerance_holds_at_the_edges(reward_range: tuple[float, float], tolerance: float) -> None:
    construction = joint(reward_range=reward_range, tolerance=tolerance)
    for trial in range(12):
        assert worst(construction, extreme(construction, trial)) <= allowance(construction)


def test_the_sink_offers_exactly_nothing() -> None:
    """It asks like a token and fills its own mean; the layer leaves its term empty all the same."""
    construction = joint(reward_range=(-1.0, 1.0))
    X = construction.embed(sample(construction, 20, 9))
    for block in construction.transformer.blocks[:2]:
        X = block(X)
    rows = construction.transformer.rows
    assert (X[:, 0, rows["mean"]].norm(dim=-1) > 0.01).all()
    assert (X[:, 0, rows["own"]] == 0).all()


def test_without_room_at_the_sink_the_result_is_destroyed() -> None:
    construction = joint()
    task = sample(construction, 5, 10)
    X = construction.embed(task)
    for block in construction.transformer.blocks[:2]:
        X = block(X)
    rows = construction.transformer.rows
    X[:, 0, rows["own"]] = -0.2 * X[:, 0, rows["mean"]]
    spoilt = construction.responses(construction.transformer.blocks[2](X))[..., rows["joint"]]
    off = (spoilt - by_autograd(task, construction.eta)).norm(dim=-1).max()
    assert off > 100 * construction.error_bound


@pytest.mark.parametrize("strength", [1.0, 3.0, 6.0])
def test_the_joint_bound_counts_strangers(strength: float) -> None:
    """Where the filter is weak the errors stay below the bound."""
    spread = bounds.score_spread(float(torch.linalg.matrix_norm(W, 2)), 3.0)
    t = {"gamma_beta": (spread + strength) / 0.1, "C": spread + 60, "epsilon": 1e-3, "lambda": 25.0}
    construction = joint(temperatures=t, responses=3)
    errors = [worst(construction, extreme(construction, trial)) for trial in range(12)]
    assert max(errors) <= allowance(construction) < math.inf


def test_strangers_at_their_largest_come_near_the_bound() -> None:
    """Own responses at the lowest score, those of an orthogonal query at the highest: two of three counted."""
    left, sizes, right = torch.linalg.svd(W)
    pole, radius = left[:, 0], 0.9 * float(sizes[0])
    spread = bounds.score_spread(float(sizes[0]) * (1 + 1e-12), radius)
    t = {"gamma_beta": spread + 4.0, "C": spread + 60.0, "epsilon": 1e-3, "lambda": 25.0}
    construction = joint(queries=2, responses=2, overlap=0.0, radius=radius, temperatures=t)
    y = radius * (1 - 1e-12) * torch.stack([-pole, -pole, pole, pole]).reshape(2, 2, -1)
    r = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    task = AlignmentTask(right[:2].contiguous(), y, r, W)
    error = worst(construction, task)
    assert 0.2 * construction.error_bound < error <= allowance(construction)


def test_a_small_tolerance_takes_more_pairs() -> None:
    assert joint(tolerance=1e-3).pairs == 1
    assert joint(tolerance=1e-8).pairs == 2
    with pytest.raises(ValueError, match="promises no less than"):
        joint(tolerance=1e-8, pairs=1)


# Refusals


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"responses": 1}, "responses: 1, expected at least 2"),
        ({"min_gap": 1e-4}, "min_gap: 0.0001 in a reward_range of length 2 makes a grid of 60000 points"),
        ({"min_gap": 0.5}, r"min_gap|reward_range"),
        ({"temperatures": {"gamma": 1.0}}, "expected .*'C'"),
        ({"tolerance": 1e-9, "temperatures": {"C": 1.0}}, "both came"),
        ({"tolerance": 1e-14}, "promises no less than"),
        ({"eta": 0.0}, "eta"),
        ({"temperatures": {"C": 1e308}}, "make logits of .*2C"),
    ],
)
def test_bad_arguments_are_refused(unchecked: None, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        made(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"overlap": 1.0}, "overlap: 1.0"),
        ({"pairs": 0}, "pairs: 0, expected at least 1"),
        ({"queries": 0}, "queries: 0"),
        ({"temperatures": {"C": 1.0}}, "expected .*'epsilon'"),
        ({"temperatures": {"gamma_beta": 1.0, "C": 1.0, "epsilon": 0.0, "lambda": 3.0}}, "epsilon > 0"),
        ({"tolerance": 1e-300}, "promises no less than"),
    ],
)
def test_bad_arguments_for_several_queries_are_refused(unchecked: None, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        joint(**changes)


def test_tasks_of_another_class_are_refused() -> None:
    for construction in (made(), joint()):
        for changes, words in [({"radius": 4.0}, "radius"), ({"min_gap": 0.05}, "min_gap"), ({"responses": 3}, "resp")]:
            with pytest.raises(OutOfClass, match=words):
                construction(sample(construction, 20, 3, **changes))
        other = sample(construction, 2, 4, W=icalign.sample_task(seed=4).W)
        with pytest.raises(OutOfClass, match="W: an entry"):
            construction(other)
