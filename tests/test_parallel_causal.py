"""CausalConstantDepth makes the online step at every position in two attention layers, within its promise."""

import math
from itertools import permutations

import pytest
import sympy as sp
import torch
from reference import by_autograd, sample
from torch import Tensor

import icalign
from icalign import bounds
from icalign.constructions import Causal, CausalConstantDepth, parallel_causal
from icalign.symbolic import FeedForwardMatrices, HeadMatrices
from icalign.tasks import AlignmentTask, OutOfClass
from icalign.transformer import Attention, TransformerBlock

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


def of_class(task: AlignmentTask, **given: object) -> CausalConstantDepth:
    """The construction for the class that sample_task draws from by default, of the task's sizes."""
    return CausalConstantDepth(**{"W": task.W, "eta": ETA, "responses": task.responses, "tolerance": 1e-9} | given)


# --- the step at every position -----------------------------------------------------------------------------------


@pytest.mark.parametrize("responses", [2, 3, 5, 8, 12])
def test_every_position_makes_its_online_step(responses: int) -> None:
    task = icalign.sample_task(batch=(20,), responses=responses, seed=responses)
    construction = of_class(task)
    assert construction.error_bound <= 1e-9
    assert bool((off(construction.update(task), task) <= construction.error_bound).all())
    target = task.y - exact(task)
    assert bool(((construction(task) - target).norm(dim=-1) <= construction.error_bound).all())


@pytest.mark.parametrize("tolerance", [1e-9, 1e-3, 10.0])
def test_ten_thousand_instances_keep_the_promise(tolerance: float) -> None:
    instances, each = 0, 1500 if tolerance == 1e-9 else 150
    for responses in range(2, 9):
        construction = of_class(icalign.sample_task(responses=responses, seed=100 + responses), tolerance=tolerance)
        task = sample(construction, each, 100 + responses)
        error = off(construction.update(task), task)
        assert bool((error <= construction.error_bound).all()) and construction.error_bound <= tolerance
        instances += len(error)
    assert instances == 7 * each and (each == 150 or instances >= 10_000)


@pytest.mark.parametrize("responses", [2, 6])
def test_the_step_of_every_prefix_is_that_of_autograd(responses: int) -> None:
    task = icalign.sample_task(batch=(50,), responses=responses, seed=9)
    construction = of_class(task)
    found = construction.update(task)
    for t in range(1, responses + 1):
        prefix = AlignmentTask(task.x, task.y[..., :t, :], task.r[..., :t], task.W)
        apart = found[..., t - 1, :] - by_autograd(prefix, ETA)[..., 0, :]
        assert float(apart.norm(dim=-1).max()) <= construction.error_bound


@pytest.mark.parametrize("tolerance", [1e-9, 1e-2, 10.0])
def test_extreme_instances_keep_the_promise(tolerance: float) -> None:
    """All orders of rewards as close as allowed at either end of the range; responses at the ends of the ball."""
    W = 3 * torch.eye(2, dtype=torch.float64)
    for signs in ([1, -1, 1, -1], [1, 1, 1, 1], [-1, -1, -1, 1], [1, 0, 0, 0]):
        y = 3 * torch.stack([number(signs), torch.zeros(4, dtype=torch.float64)], -1)
        for low in (-1.0, 1.0 - 3 * 0.125):
            rewards = number([[[low + 0.125 * rank for rank in order]] for order in permutations(range(4))])
            x = number([[1.0, 0.0]]).expand(24, 1, 2)
            task = AlignmentTask(x, y.expand(24, 1, 4, 2), rewards, W)
            construction = of_class(task, min_gap=0.125, reward_range=(-1.0, 1.0), tolerance=tolerance)
            assert bool((off(construction.update(task), task) <= construction.error_bound).all())


def at_one_margin(y: Tensor, r: Tensor, slope: float, margin: float) -> tuple[Tensor, Tensor, float]:
    """Errors at every position for responses along Wx, the bound for each, and what rounding can add."""
    W = number([[slope, 0.0], [0.0, 0.0]])
    responses = torch.stack([y, torch.zeros_like(y)], -1)
    task = AlignmentTask(number([[1.0, 0.0]]), responses[None], r[None], W)
    mask = bounds.score_spread(of_class(task, min_gap=0.05).norm, 3.0) + 2 * margin
    construction = of_class(task, min_gap=0.05, tolerance=None, temperatures={"c": float(mask)})
    left, N = construction._least_margin, len(y)
    limits = [bounds.causal_depth_error_at(ETA, left, N, 6.0, i) for i in range(1, N + 1)]
    assert construction.error_bound == pytest.approx(max(limits) + construction._rounding(), rel=1e-12)
    return off(construction.update(task), task), number(limits), construction._rounding()


@pytest.mark.parametrize("margin", [3.0, 10.0, 20.0])
def test_heads_that_are_not_seen_use_most_of_the_bound(margin: float) -> None:
    """All responses where the score is largest: the step is zero, and heads leak ηD₀(N − i)·ie^{−h}/(1 + ie^{−h})."""
    N, extreme = 16, 3.0 * (1 - 1e-12)
    r = 0.0625 * torch.arange(N, dtype=torch.float64)
    error, limit, rounding = at_one_margin(torch.full((N,), extreme, dtype=torch.float64), r, 3.0, margin)
    assert bool((error <= limit + rounding).all())
    leak = [ETA * 6 * (N - i) * i * math.exp(-margin) / (1 + i * math.exp(-margin)) for i in range(1, N + 1)]
    assert float((error - number(leak)).abs().max()) <= rounding + 1e-9 * max(leak)
    used = error / (limit + rounding)
    assert float(used.max()) > 0.85 and float(used[:12].min()) > 0.75


def test_heads_that_are_seen_use_most_of_the_bound() -> None:
    """At the last position, where no head is unseen: the best response at the largest score, the others far off."""
    N, extreme = 8, 3.0 * (1 - 1e-12)
    y = torch.full((N,), -extreme, dtype=torch.float64)
    y[0] = extreme
    r = 1.9 - 0.0625 * torch.arange(N, dtype=torch.float64)
    for margin in (-5.0, -3.0):
        error, limit, rounding = at_one_margin(y, r, 4.0, margin)
        assert bool((error <= limit + rounding).all())
        assert float(error[-1]) > 0.8 * float(limit[-1])


def test_it_agrees_with_the_construction_of_n_minus_1_blocks() -> None:
    task = icalign.sample_task(batch=(20,), responses=7, seed=5)
    deep, wide = Causal(W=task.W, eta=ETA, responses=7, tolerance=1e-9), of_class(task)
    apart = (deep.update(task) - wide.update(task)).norm(dim=-1)
    assert float(apart.max()) <= deep.error_bound + wide.error_bound


def test_the_first_the_second_and_the_last_position() -> None:
    task = icalign.sample_task(batch=(30,), responses=6, seed=8)
    construction = of_class(task)
    u = construction.update(task)[:, 0]
    s, y, r = icalign.scores(task)[:, 0], task.y[:, 0], task.r[:, 0]
    won = torch.where((r[:, 0] > r[:, 1])[:, None], y[:, 0] - y[:, 1], y[:, 1] - y[:, 0])
    ahead = torch.where(r[:, 0] > r[:, 1], s[:, 0] - s[:, 1], s[:, 1] - s[:, 0])
    second = 2 * ETA * won * torch.sigmoid(-ahead)[:, None]
    last = (icalign.gradient_step(task, ETA) @ task.x[:, 0, :, None]).squeeze(-1)
    for found, wanted in [(u[:, 0], torch.zeros_like(last)), (u[:, 1], second), (u[:, 5], last)]:
        assert float((found - wanted).norm(dim=-1).max()) <= construction.error_bound


def test_float32_keeps_what_it_promises() -> None:
    task = icalign.sample_task(batch=(200,), responses=6, seed=4, dtype=torch.float32)
    construction = of_class(task, tolerance=0.01, dtype=torch.float32)
    x = torch.nn.functional.normalize(task.x.double(), dim=-1)
    wide = AlignmentTask(x, task.y.double(), task.r.double(), task.W.double())
    error = off(construction.update(task).double(), wide)
    assert float(error.max()) <= construction.error_bound <= 0.01


def test_rounding_alone_is_covered() -> None:
    """A large c and a W that stretches: nothing but rounding is left of the error."""
    drawn = icalign.sample_task(batch=(200,), seed=3)
    task = AlignmentTask(drawn.x, drawn.y, drawn.r, 30 * drawn.W)
    spread = bounds.score_spread(float(torch.linalg.matrix_norm(task.W, 2)), 3.0)
    cold = of_class(task, tolerance=None, temperatures={"c": spread + 160})
    error = float(off(cold.update(task), task).max())
    assert cold._exact_error() < error <= cold.error_bound


@pytest.mark.parametrize("margin", [-40.0, -1.0, 0.0, 1.0, 5.0])
def test_the_promise_holds_at_every_c(margin: float) -> None:
    task = icalign.sample_task(batch=(300,), responses=5, seed=6)
    spread = bounds.score_spread(of_class(task).norm, 3.0)
    construction = of_class(task, tolerance=None, temperatures={"c": max(0.0, spread + 2 * margin)})
    assert float(off(construction.update(task), task).max()) <= construction.error_bound < math.inf


# --- what the rows hold -------------------------------------------------------------------------------------------


def test_the_board_has_the_rewards_of_the_prefix_and_nothing_else() -> None:
    task = icalign.sample_task(batch=(40,), responses=7, seed=1, reward_range=(-3.0, -1.0))
    construction = of_class(task, reward_range=(-3.0, -1.0))
    rows = construction.transformer.rows
    board = construction.run(task)[..., rows["board"]]
    seen = torch.ones(7, 7).tril().bool()
    wanted = (task.r - -3.0 + 0.1).where(seen, 0.0)
    allowed = bounds.slot_rounding(torch.float64, 0.1, 2.0, 3.0, 7)
    assert float((board[:, 1:] - wanted).abs().max()) <= allowed < 1e-12
    assert bool((board[:, 1:][:, ~seen] == 0).all()) and bool((board[:, 0] == 0).all())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_masks_mark_what_is_better_and_everything_while_the_response_is_to_come(dtype: torch.dtype) -> None:
    task = icalign.sample_task(batch=(40,), responses=6, seed=2, dtype=dtype)
    construction = of_class(task, tolerance=0.01, dtype=dtype)
    X, rows = construction.run(task), construction.transformer.rows
    slip = bounds.mask_slip(dtype, 0.1, 2.0, 2.0, 6)
    r = task.r[:, 0]
    for k in range(6):
        mask = X[:, 1:, rows[f"m_{k + 1}"]]
        for t in range(6):
            wanted = r[:, : t + 1] > r[:, k : k + 1] if k <= t else torch.ones(40, t + 1, dtype=torch.bool)
            found = mask[:, t, : t + 1]
            assert bool((found[~wanted] == 0).all())
            assert bool(((found[wanted] - 1).abs() <= slip).all())


def test_the_first_head_adds_up_the_prefix() -> None:
    construction = of_class(TASK)
    X = construction.embed(TASK)
    (gathering, *_) = construction.transformer.attention(X)
    wanted = torch.ones(9, 9, dtype=torch.float64).tril() / 9
    wanted[:, 0] = number([1 - t / 9 for t in range(9)])
    assert gathering[0].allclose(wanted, rtol=1e-14, atol=1e-16)


def test_an_unseen_head_looks_at_the_start_token() -> None:
    construction = of_class(TASK)
    heads = construction.transformer.attention(construction.embed(TASK))[1]
    for k in range(8):
        at_start = heads[k, :, 0]
        assert bool((1 - at_start[: k + 1] <= 8 * math.exp(-construction.margin)).all())
        assert bool((at_start[k + 1 :] <= math.exp(-construction.margin)).all())


def test_the_start_token_gains_nothing() -> None:
    construction = of_class(TASK)
    X = construction.run(TASK)
    assert torch.equal(X[0], construction.embed(TASK)[0])


# --- one set of weights -------------------------------------------------------------------------------------------


def test_weights_belong_to_the_class() -> None:
    one, other = of_class(TASK), of_class(TASK)
    before = [p.clone() for p in one.transformer.parameters()]
    for seed in range(3):
        one.update(sample(one, 4, seed))
    for mine, kept, made in zip(one.transformer.parameters(), before, other.transformer.parameters(), strict=True):
        assert torch.equal(mine, kept) and torch.equal(mine, made)


def test_batches_of_any_shape() -> None:
    construction = of_class(TASK)
    task = icalign.sample_task((3, 2), W=TASK.W, seed=1)
    found = construction.update(task)
    assert found.shape == (3, 2, 1, 8, 3)
    alone = AlignmentTask(task.x[2, 1], task.y[2, 1], task.r[2, 1], task.W)
    assert float((construction.update(alone) - found[2, 1]).norm(dim=-1).max()) <= 2 * construction.error_bound


def test_heads_share_their_matrix_of_values() -> None:
    *_, last = of_class(TASK).transformer.blocks
    assert isinstance(last, TransformerBlock) and len(last.heads) == 8
    first, *others = last.attention_heads()
    assert all([head.value is first.value for head in others])
    assert len({id(head.query) for head in last.attention_heads()}) == 8
    assert isinstance(first, Attention)


@pytest.mark.parametrize("responses", [2, 4])
def test_every_head_is_the_one_of_a_generic_k(responses: int) -> None:
    """What a chapter proves of head and mask of a symbol k is proved of all of them."""
    generic = sp.Symbol("k", integer=True, positive=True)
    stream, model = parallel_causal.stream(generic), of_class(icalign.sample_task(responses=responses)).symbolic()
    head = HeadMatrices.of(parallel_causal.weigh(generic), stream)
    layer = FeedForwardMatrices.of(parallel_causal.compare(generic), stream)
    common = [name for name in stream.rows if name != f"m_{generic}"]
    for k in range(1, responses + 1):
        for name in ("query", "key", "value"):
            ours, theirs = getattr(head, name), getattr(model.head(2, k - 1), name)
            across = list(stream.rows) if ours.blockshape[0] == len(stream.rows) else range(ours.blockshape[0])
            for a, row in enumerate(across):
                for b, column in enumerate(stream.rows):
                    places = [row, column] if name == "value" else [a, column]
                    there = [_place(model.stream.rows, at, generic, k) for at in places]
                    assert ours.blocks[a, b].subs(generic, k) == theirs.blocks[there[0], there[1]]
        assert len(model.stream.rows) == len(common) + responses
    whole = model.feed_forward(1)
    for k in range(1, responses + 1):
        for unit in range(2):
            board = list(model.stream.rows).index("board")
            mine = layer.first.blocks[unit, list(stream.rows).index("board")].subs(generic, k)
            assert mine == whole.first.blocks[2 * (k - 1) + unit, board]


def _place(rows: dict[str, object], name: object, generic: sp.Symbol, k: int) -> int:
    if isinstance(name, int):
        return name
    return list(rows).index(f"m_{k}" if name == f"m_{generic}" else str(name))


# --- bounds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", [1e-12, 1e-6, 1.0, 1e3])
@pytest.mark.parametrize("responses", [2, 3, 20, 500])
def test_the_margin_meets_the_tolerance(responses: int, tolerance: float) -> None:
    h = max(bounds.causal_depth_margins(tolerance, ETA, responses, 6.0))
    ceiling = bounds.causal_depth_ceiling(ETA, h, responses, 6.0)
    assert bounds.causal_depth_error(ETA, h, responses, 6.0) <= ceiling <= tolerance * (1 + 1e-12)


def test_the_bound_is_the_largest_over_positions() -> None:
    at = [bounds.causal_depth_error_at(ETA, 3.0, 9, 6.0, i) for i in range(1, 10)]
    assert bounds.causal_depth_error(ETA, 3.0, 9, 6.0) == max(at) == at[at.index(max(at))]
    assert at.index(max(at)) not in (0, 8)


def test_rewards_that_the_dtype_cannot_tell_apart_promise_nothing() -> None:
    task = icalign.sample_task(dtype=torch.bfloat16)
    assert of_class(task, tolerance=None, temperatures={"c": 60.0}, dtype=torch.bfloat16).error_bound == math.inf
    with pytest.raises(ValueError, match=r"tolerance: 1.0, torch.bfloat16 promises nothing"):
        of_class(task, tolerance=1.0, dtype=torch.bfloat16)
    far = {"reward_range": (1e6, 1e6 + 2)}
    with pytest.raises(ValueError, match=r"promises nothing"):
        of_class(icalign.sample_task(dtype=torch.float32), tolerance=1.0, dtype=torch.float32, **far)
    assert of_class(TASK, tolerance=1e-6, **far).error_bound <= 1e-6


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tolerance": 1e-14}, r"tolerance: 1e-14, torch.float64 promises no less than"),
        ({"tolerance": 0.0}, r"tolerance: 0.0, expected a positive finite number"),
        ({"tolerance": None}, r"give either tolerance or temperatures"),
        ({"temperatures": {"c": 1.0}}, r"give either tolerance or temperatures"),
        ({"tolerance": None, "temperatures": {"C": 1.0}}, r"expected \['c'\]"),
        ({"tolerance": None, "temperatures": {"c": -1.0}}, r"temperatures\['c'\]: -1.0, expected a finite number ≥ 0"),
        ({"tolerance": None, "temperatures": {"c": 1e308}}, r"expected at most"),
        ({"responses": 1}, r"responses: 1, expected at least 2"),
        ({"responses": 30}, r"the class is empty"),
        ({"eta": -1.0}, r"eta: -1.0"),
        ({"W": TASK.W.float()}, r"W: dtype torch.float32, expected torch.float64"),
        ({"min_gap": 0.0}, r"min_gap: 0.0"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_arguments_are_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CausalConstantDepth(**{"W": TASK.W, "tolerance": 1e-6} | given)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"queries": 2}, r"queries: the task has 2, the class 1"),
        ({"responses": 5}, r"responses: the task has 5, the class 8"),
        ({"min_gap": 0.05}, r"min_gap: the task has a gap of"),
        ({"W": 2 * TASK.W}, r"W: an entry of the task's W differs"),
        ({"radius": 9.0}, r"radius: the task has a response of norm"),
        ({"reward_range": (0.0, 3.0)}, r"reward_range: the task has a reward of"),
    ],
)
def test_tasks_outside_the_class_are_refused(other: dict[str, object], message: str) -> None:
    construction = of_class(TASK)
    task = icalign.sample_task(**{"W": TASK.W, "seed": 3} | other)
    for attempt in (construction, construction.update):
        with pytest.raises(OutOfClass, match=message):
            attempt(task)


def test_a_task_of_another_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match=r"dtype"):
        of_class(TASK).update(icalign.sample_task(dtype=torch.float32))
