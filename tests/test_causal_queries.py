"""Several queries under a causal mask, in any order: the own and the joint step at every token, against autograd."""

import math
from typing import Any

import pytest
import torch
from reference import sample
from torch import Tensor

import icalign
from icalign import AlignmentTask, OutOfClass, bounds
from icalign.constructions import Causal
from icalign.constructions import causal_queries as formulas
from icalign.constructions.order import interleaved, standing

ETA = 0.1
W = icalign.sample_task(seed=3).W
TARGETS = ["own", "joint"]


def made(**changes: Any) -> Causal:
    """A construction for the class of sample_task, for three queries of overlap up to 0.9."""
    arguments: dict[str, Any] = {"W": W, "eta": ETA, "queries": 3, "overlap": 0.9}
    arguments |= {"tolerance": None if "temperatures" in changes else 1e-8} | changes
    return Causal(**arguments)


def orders(queries: int, responses: int, batch: int, seed: int) -> dict[str, Any]:
    """Blocked, one response to each query in turn, and a random order for every task."""
    generator = torch.Generator().manual_seed(seed)
    blocked = torch.arange(queries).repeat_interleave(responses)
    shuffle = torch.rand(batch, queries * responses, generator=generator).argsort(-1)
    return {"blocked": None, "interleaved": interleaved(queries, responses), "random": blocked[shuffle]}


def prompt_order(order: Any, task: AlignmentTask) -> Tensor:
    """The query of every token, one row a task."""
    if order is None:
        order = torch.arange(task.queries).repeat_interleave(task.responses)
    return torch.as_tensor(order).expand(*task.batch, -1)


def by_autograd(task: AlignmentTask, order: Any) -> tuple[Tensor, Tensor]:
    """(own, joint) step at every token by autograd: the loss is that of what the first t tokens of the prompt show.

    Each query's loss is written out, Σ_i (log Σ_{j: r_j ≤ r_i} e^{s_j} − s_i) over what is visible.
    """
    rows, (batch,) = prompt_order(order, task), task.batch
    x, y, r = task.x.double(), task.y.double(), task.r.double()
    W = task.W.double().expand(batch, -1, -1).clone().requires_grad_()
    s = -(torch.einsum("byx,bmx->bmy", W, x)[:, :, None] - y).square().sum(-1)
    behind = r[..., None, :] <= r[..., :, None]
    visible = torch.zeros_like(r, dtype=torch.bool)
    own, joint, each = torch.zeros_like(y), torch.zeros_like(y), torch.arange(batch)
    for t in range(rows.shape[1]):
        query = rows[:, t]
        place = (rows[:, :t] == query[:, None]).sum(-1)
        visible = visible.clone()
        visible[each, query, place] = True
        tails = s[..., None, :].masked_fill(~(behind & visible[..., None, :]), -math.inf).logsumexp(-1)
        losses = (tails - s).where(visible, torch.zeros(())).sum(-1)
        for target, loss in ((own, losses[each, query]), (joint, losses.sum(-1))):
            (gradient,) = torch.autograd.grad(loss.sum(), W, retain_graph=True)
            target[each, query, place] = -ETA * torch.einsum("byx,bx->by", gradient, x[each, query])
    return own, joint


def target_of(construction: Causal, task: AlignmentTask, order: Any) -> Tensor:
    return by_autograd(task, order)[TARGETS.index(construction.target)]


def allowance(construction: Causal) -> float:
    """What the construction promises, and the rounding of the reference, which is in float64."""
    kind = construction.task_class
    other = bounds.gradient_rounding(torch.float64, kind.responses, kind.dim_x, kind.dim_y, construction.reach)
    return construction.error_bound + construction.eta * kind.queries * other


def off(construction: Causal, task: AlignmentTask, order: Any) -> float:
    found = construction.update(task, order).double() - target_of(construction, task, order)
    return float(found.norm(dim=-1).max())


def equiangular(queries: int, dim: int, overlap: float, generator: torch.Generator) -> Tensor:
    """Unit queries, every two of which have the same inner product."""
    gram = torch.full((queries, queries), overlap, dtype=torch.float64)
    x = torch.zeros(queries, dim, dtype=torch.float64)
    x[:, :queries] = torch.linalg.cholesky(gram.fill_diagonal_(1.0))
    frame = torch.linalg.qr(torch.randn(dim, dim, generator=generator, dtype=torch.float64)).Q
    return torch.nn.functional.normalize(x @ frame, dim=-1)


def extreme(construction: Causal, trials: int) -> AlignmentTask:
    """Tasks at the edges: all overlaps ρ, all gaps Δ, queries at either end of the rewards, responses at two poles."""
    kind, generator = construction.task_class, torch.Generator().manual_seed(trials)
    (M, N, (low, high)), found = (kind.queries, kind.responses, kind.reward_range), []
    assert kind.overlap is not None
    for trial in range(trials):
        x = equiangular(M, kind.dim_x, kind.overlap, generator)
        pole = torch.nn.functional.normalize(torch.randn(kind.dim_y, generator=generator, dtype=torch.float64), dim=0)
        sign = torch.sign(torch.randn(M, N, 1, generator=generator, dtype=torch.float64))
        if trial % 3 == 0:  # the first query against the rest
            sign[:], sign[0] = -1, 1
        steps = torch.rand(M, N, generator=generator).argsort(-1).double() * kind.min_gap * (1 + 1e-12)
        down = torch.tensor([(a + trial) % 2 == 0 for a in range(M)])[:, None]
        r = torch.where(down, low + steps, high - steps).clamp(low, high).double()
        found.append((x, kind.radius * (1 - 1e-12) * sign * pole, r))
    return AlignmentTask(*[torch.stack(part) for part in zip(*found, strict=True)], construction.W)


# --- the step at every token --------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("order", ["blocked", "interleaved", "random"])
@pytest.mark.parametrize(("queries", "responses"), [(2, 2), (3, 5), (4, 8)])
def test_every_token_makes_its_step(queries: int, responses: int, order: str, target: str) -> None:
    construction = made(queries=queries, responses=responses, target=target)
    assert construction.error_bound <= 1e-8
    task = sample(construction, 20, queries)
    found = orders(queries, responses, 20, 1)[order]
    step = target_of(construction, task, found)
    for answer, exact in ((construction.update(task, found), step), (construction(task, found), task.y - step)):
        assert float((answer - exact).norm(dim=-1).max()) <= allowance(construction)


def test_three_thousand_random_tasks_keep_the_promise() -> None:
    """Sizes, overlaps, ranges and step sizes vary, as do tolerances, targets and orders."""
    instances = 0
    for seed in range(30):
        queries, responses = 2 + seed % 3, 2 + seed % 5
        construction = made(
            W=icalign.sample_task(dim_x=3 + seed % 3, dim_y=1 + seed % 4, seed=seed).W,
            queries=queries,
            responses=responses,
            overlap=[0.9, 0.6, 0.1][seed % 3],
            min_gap=[0.05, 0.1][seed % 2],
            reward_range=[(0.0, 2.0), (-1.0, 0.5), (7.0, 8.5)][seed % 3],
            radius=[3.0, 0.8][seed % 2],
            tolerance=[1e-8, 1e-5, 1e-2, 0.3, 100.0][seed % 5],
            target=TARGETS[seed // 3 % 2],
            positions=["given", "derived"][seed // 2 % 2],
        )
        task = sample(construction, 100, seed)
        order = list(orders(queries, responses, 100, seed).values())[seed % 3]
        assert off(construction, task, order) <= allowance(construction)
        instances += 100
    assert instances >= 3000


@pytest.mark.slow
def test_ten_thousand_random_tasks_keep_the_promise() -> None:
    for seed in range(40):
        queries, responses = 2 + seed % 3, 2 + seed % 7
        tolerance = 10.0 ** -(seed % 9)
        construction = made(queries=queries, responses=responses, tolerance=tolerance, target=TARGETS[seed % 2])
        task = sample(construction, 250, 100 + seed)
        order = list(orders(queries, responses, 250, seed).values())[seed % 3]
        assert off(construction, task, order) <= allowance(construction)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("overlap", [0.9, 0.0, -0.2])
@pytest.mark.parametrize("tolerance", [30.0, 1e-3, 1e-8])
def test_the_tolerance_holds_at_the_edges_of_the_class(overlap: float, tolerance: float, target: str) -> None:
    for queries, responses in [(2, 2), (3, 4), (4, 6)]:
        construction = made(
            queries=queries,
            responses=responses,
            overlap=overlap,
            reward_range=(5.0, 6.0),
            tolerance=tolerance,
            target=target,
        )
        assert construction.error_bound <= tolerance
        task = extreme(construction, 12)
        for order in orders(queries, responses, 12, 2).values():
            assert off(construction, task, order) <= allowance(construction)


def test_the_own_step_is_that_of_one_query() -> None:
    """A token's own step is that of the single-query construction on its query alone, whatever the order."""
    construction = made(responses=6)
    task = sample(construction, 30, 4)
    alone = Causal(W=W, eta=ETA, responses=6, tolerance=1e-9)
    for order in orders(3, 6, 30, 3).values():
        found = construction.update(task, order)
        for a in range(3):
            one = AlignmentTask(task.x[:, a : a + 1], task.y[:, a : a + 1], task.r[:, a : a + 1], W)
            apart = (found[:, a] - alone.update(one)[:, 0]).norm(dim=-1).max()
            assert float(apart) <= construction.error_bound + alone.error_bound


def test_the_joint_step_depends_on_the_order_and_ends_in_the_full_step() -> None:
    construction = made(target="joint", responses=4)
    task = sample(construction, 10, 5)
    whole = (task.x @ icalign.gradient_step(task, ETA).mT)[:, 2]
    found = [
        construction.update(task, order) for order in orders(3, 4, 10, 4).values() if not isinstance(order, Tensor)
    ]
    for u in found:  # the last token of both prompts is the last response to the last query
        assert float((u[:, 2, -1] - whole).norm(dim=-1).max()) <= allowance(construction)
    assert float((found[0] - found[1]).norm(dim=-1).max()) > 0.1


def test_one_query_is_the_construction_of_one_query() -> None:
    task = icalign.sample_task(batch=(5,), responses=6, seed=1)
    plain = Causal(W=task.W, responses=6, tolerance=1e-9)
    for given in ({"target": "joint"}, {"target": "own", "overlap": 0.2}):
        named = Causal(W=task.W, responses=6, tolerance=1e-9, queries=1, **given)
        assert type(named) is Causal and named.error_bound == plain.error_bound
        assert torch.equal(named.update(task), plain.update(task))
        assert torch.equal(named(task, [0] * 6), plain(task))
    with pytest.raises(ValueError, match="order: query 1, expected 0 to 0"):
        plain(task, [0, 0, 0, 1, 0, 0])


# --- how it does it -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_no_token_sees_what_comes_after_it(target: str) -> None:
    construction = made(target=target, responses=4)
    task = sample(construction, 8, 6)
    order = interleaved(3, 4)
    y = task.y.clone()
    y[:, :, 2:] = -y[:, :, 2:]  # tokens 7 to 12 of the prompt
    other = AlignmentTask(task.x, y, task.r, task.W)
    first, second = construction.update(task, order), construction.update(other, order)
    assert torch.equal(first[:, :, :2], second[:, :, :2])
    assert not torch.equal(first[:, :, 2:], second[:, :, 2:])


def test_the_start_token_gathers_nothing() -> None:
    construction = made(target="joint")
    X, rows = construction.run(sample(construction, 5, 7)), construction.transformer.rows
    for row in ("u", "m", "before", "joint"):
        assert bool((X[:, 0, rows[row]] == 0).all())


def test_the_previous_token_of_the_query_is_fetched() -> None:
    construction = made(target="joint", responses=5)
    task = sample(construction, 20, 8)
    order = orders(3, 5, 20, 5)["random"]
    rows, X = construction.transformer.rows, construction.run(task, order)[:, 1:]
    reach = construction.longest + construction.error_bound
    allowed = 5 * reach * math.exp(-construction.temperatures["kappa"]) + 1e-13
    for task_, queries in enumerate(order.tolist()):
        last: dict[int, Tensor] = {}
        for t, query in enumerate(queries):
            before = X[task_, t, rows["before"]]
            assert float((before - last.get(query, torch.zeros(3))).norm()) <= allowed
            last[query] = X[task_, t, rows["u"]]


def test_masks_stay_within_their_bound() -> None:
    construction = made(tolerance=10.0, responses=5)
    task = sample(construction, 50, 9)
    order = orders(3, 5, 50, 6)["random"]
    r = task.r.flatten(1).take_along_dim(standing(order, 3, 5, (50,)).argsort(-1), -1)
    same = (order[:, :, None] == order[:, None, :]).tril()  # [t, j]: j is of t's query and no later
    better = same[:, :, :, None] & same[:, :, None, :] & (r[:, None, None, :] > r[:, None, :, None])
    for k, X in enumerate(construction.rounds(task, order)):
        exact = same & (better.sum(-1) < k)
        error = (X[..., construction.transformer.rows["m"]] - exact.double()).abs().amax()
        assert float(error) <= k * bounds.mask_miss(construction.margin)


def test_filters_are_those_of_the_closed_forms() -> None:
    construction, t = made(target="joint"), made(target="joint").temperatures
    logs = math.log(24)
    assert t["gamma_q"] == pytest.approx((t["c"] + logs) / 0.1)
    assert t["gamma_beta"] == pytest.approx((t["c_field"] + logs) / 0.1)
    assert t["gamma_p"] == pytest.approx((24 * t["kappa"] + logs) / 0.1)
    sigma = bounds.stop_logit(0.0, 2 * t["gamma_1"], t["c"])
    assert construction.values[formulas.sigma] == pytest.approx(sigma)


@pytest.mark.parametrize("tolerance", [1e-9, 1e-5, 1e-2, 1.0])
@pytest.mark.parametrize(("queries", "responses"), [(2, 2), (3, 8), (5, 20)])
def test_the_shares_of_a_tolerance_add_up(queries: int, responses: int, tolerance: float) -> None:
    reach = 5.0
    own, strength, part = bounds.joint_causal_shares(tolerance, queries, responses, reach)
    fetched = bounds.fetch_error(reach, own, strength)
    total = bounds.joint_causal_error(queries, responses, reach, own, fetched, 2 * part)
    assert total <= tolerance * (1 + 1e-12) and strength >= math.log(7 / 3)
    h = max(bounds.causal_queries_field_margins(own, reach, responses))
    mask = 17.0 + 2 * h
    g = max(bounds.causal_margins(own, reach, mask, 0.1, 2.0, responses))
    assert bounds.causal_queries_error(reach, g, h, mask, responses) <= own * (1 + 1e-12)
    assert bounds.share(bounds.causal_queries_crowd(g)) <= bounds.mask_miss(g)


def test_increments_are_no_longer_than_their_bound() -> None:
    for responses in range(2, 9):
        task = icalign.sample_task((200,), responses=responses, seed=responses)
        steps = (icalign.online_gradient_steps(task, ETA) @ task.x[..., None, :, None]).squeeze(-1)[:, 0]
        lengths = steps.diff(dim=-2).norm(dim=-1)  # the first step is zero
        reach = 2 * ETA * (responses - 1) * 6.0
        each = torch.arange(1, responses) * 2 * ETA * 6.0
        assert bool((lengths <= each + 1e-12).all())
        assert float(lengths.sum(-1).max()) <= bounds.increments_length(1, responses, reach)


@pytest.mark.parametrize("target", TARGETS)
def test_temperatures_too_small_for_the_theorem_promise_nothing(target: str) -> None:
    good = made(tolerance=1e-3, target=target)
    pairs = good.pairs if target == "joint" else None
    by_hand = made(temperatures=good.temperatures, target=target, pairs=pairs)
    assert by_hand.error_bound <= 1e-3
    for name in good.temperatures:
        if name in ("epsilon", "lambda"):  # these only enlarge the error
            continue
        worse = made(temperatures=good.temperatures | {name: good.temperatures[name] / 30}, target=target)
        assert worse.error_bound == math.inf


def test_weak_filters_mix_the_queries() -> None:
    good = made()
    task = sample(good, 20, 10)
    for name in ("gamma_q", "gamma_beta"):
        leaky = made(temperatures=good.temperatures | {name: good.temperatures[name] / 30})
        assert off(leaky, task, None) > 0.1


def test_accumulators_do_not_add_up_to_the_joint_step() -> None:
    """The sum over tokens counts every prefix of a query; the joint step is none of the own ones."""
    construction = made(target="joint", responses=4)
    task = sample(construction, 30, 11)
    rows, X = construction.transformer.rows, construction.run(task)[:, 1:]
    gram = X[..., rows["x"]] @ X[..., rows["x"]].mT
    summed = (gram.tril() @ X[..., rows["u"]]).unflatten(1, (3, 4))
    own, joint = by_autograd(task, None)
    for wrong in (summed, own):
        assert float((wrong - joint).norm(dim=-1).mean()) > 0.1


def test_float32_keeps_what_it_promises() -> None:
    for target in TARGETS:
        construction = made(W=W.float(), dtype=torch.float32, tolerance=0.05, target=target)
        task = sample(construction, 100, 12)
        x = torch.nn.functional.normalize(task.x.double(), dim=-1)
        wide = AlignmentTask(x, task.y.double(), task.r.double(), task.W.double())
        order = interleaved(3, 8)
        apart = construction.update(task, order).double() - target_of(construction, wide, order)
        assert construction.error_bound <= 0.05
        assert float(apart.norm(dim=-1).max()) <= allowance(construction)


def test_a_small_tolerance_takes_more_pairs() -> None:
    found = [made(target="joint", tolerance=tolerance).pairs for tolerance in (1e-2, 1e-7, 5e-10)]
    assert found == [1, 2, 3]
    with pytest.raises(ValueError, match=r"tolerance: 1e-08, torch.float64 promises no less than .*e-0[67]"):
        made(target="joint", pairs=1)


# --- orders -------------------------------------------------------------------------------------------------------


def test_where_responses_stand() -> None:
    assert standing([1, 0, 0, 1], 2, 2, ()).tolist() == [1, 2, 0, 3]
    assert standing(None, 2, 2, (3,)).tolist() == [[0, 1, 2, 3]] * 3
    assert standing(torch.tensor([[0, 1], [1, 0]]), 2, 1, (2,)).tolist() == [[0, 1], [1, 0]]
    assert interleaved(3, 2) == [0, 1, 2, 0, 1, 2]


def test_tasks_without_a_batch_and_with_two_dimensions_of_it() -> None:
    construction = made(responses=3)
    task = icalign.sample_task((2, 2), queries=3, responses=3, overlap=0.9, W=W, seed=1)
    order = interleaved(3, 3)
    whole = construction.update(task, order)
    assert whole.shape == (2, 2, 3, 3, 3)
    one = AlignmentTask(task.x[1, 0], task.y[1, 0], task.r[1, 0], W)
    assert float((construction.update(one, order) - whole[1, 0]).abs().max()) <= 2 * construction.error_bound


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 1, 2], r"order: shape \(3,\), expected \(9,\) or \(4, 9\)"),
        (torch.zeros(5, 9, dtype=torch.int64), r"order: shape \(5, 9\), expected \(9,\) or \(4, 9\)"),
        ([0, 0, 0, 0, 1, 1, 1, 2, 2], r"order: query 0 comes 4 times, expected 3, once for each response"),
        ([0, 0, 0, 1, 1, 1, 2, 2, 3], r"order: query 3, expected 0 to 2"),
        ([0, 0, 0, 1, 1, 1, 2, 2, -1], r"order: query -1, expected 0 to 2"),
        ([0.0] * 9, r"order: torch.float32, expected integers"),
        ([True] * 9, r"order: torch.bool, expected integers"),
        ("interleaved", r"order: 'interleaved', expected the query, 0 to 2, of each of the 9 tokens"),
        ([[0], [1, 2]], r"order: \[\[0\], \[1, 2\]\], expected the query"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_orders_that_do_not_fit_are_refused(order: Any, message: str) -> None:
    construction = made(responses=3, tolerance=1e-3)
    task = sample(construction, 4, 1)
    for call in (construction, construction.update, construction.rounds):
        with pytest.raises(ValueError, match=message):
            call(task, order)


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": "both"}, r"target: 'both', expected 'own' or 'joint'"),
        ({"queries": 0}, r"queries: 0, expected at least 1"),
        ({"queries": 2.0}, r"queries: 2.0, expected an integer"),
        ({"overlap": 1.0}, r"overlap: 1.0, expected a bound"),
        ({"overlap": math.nan}, r"overlap: nan"),
        ({"sink": False}, r"sink: False with several queries, expected True"),
        ({"sink": 0}, r"sink: 0, expected True or False"),
        ({"positions": "none"}, r"positions: 'none'"),
        ({"pairs": 0}, r"pairs: 0, expected at least 1"),
        ({"tolerance": 1e-14}, r"tolerance: 1e-14, torch.float64 promises no less than .*e-11"),
        ({"tolerance": 1e-14, "target": "joint"}, r"promises no less than .*e-10"),
        ({"tolerance": 5e-324, "target": "joint"}, r"tolerance: 5e-324"),
        ({"tolerance": 1e-300}, r"promises no less than"),
        ({"tolerance": None, "temperatures": {"gamma_1": 1.0}}, r"expected \['c', 'c_field', 'gamma_1', 'gamma_beta'"),
        ({"responses": 1}, r"responses: 1, expected at least 2"),
        ({"responses": 30}, r"the class is empty"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_arguments_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Causal(**{"W": W, "queries": 3, "tolerance": 1e-6} | given)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("target", TARGETS)
def test_half_types_promise_nothing(dtype: torch.dtype, target: str) -> None:
    with pytest.raises(ValueError, match="promises"):
        Causal(W=W.to(dtype), queries=3, tolerance=1.0, target=target, dtype=dtype)


@pytest.mark.parametrize("target", TARGETS)
def test_the_smallest_promise_is_kept(target: str) -> None:
    with pytest.raises(ValueError, match="no less than") as refused:
        made(tolerance=1e-15, target=target)
    least = float(str(refused.value).split("no less than ")[1].split()[0])
    assert made(tolerance=least, target=target).error_bound <= least
    with pytest.raises(ValueError, match="no less than"):
        made(tolerance=0.99 * least, target=target)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"queries": 2}, r"queries: the task has 2, the class 3"),
        ({"responses": 5}, r"responses: the task has 5, the class 8"),
        ({"min_gap": 0.05}, r"min_gap: the task has a gap of"),
        ({"W": 2 * W}, r"W: an entry of the task's W differs"),
        ({"overlap": None, "queries": 3, "seed": 2}, r"overlap: the task has two queries with"),
    ],
)
def test_tasks_outside_the_class_are_refused(other: dict[str, Any], message: str) -> None:
    construction = made(overlap=0.5, tolerance=1e-3)
    task = sample(construction, 20, **({"seed": 3} | other))
    with pytest.raises(OutOfClass, match=message):
        construction.update(task)


def test_more_positions_than_the_dtype_derives_are_refused() -> None:
    with pytest.raises(ValueError, match=r"responses: 80, expected at most"):
        Causal(W=W.half(), queries=4, responses=20, tolerance=1.0, positions="derived", dtype=torch.float16)
