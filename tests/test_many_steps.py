"""T gradient steps with the same weights: against autograd, where errors grow and where not, exact resets, refusals."""

import math
from typing import Any

import pytest
import sympy as sp
import torch
from torch import Tensor

import icalign
from icalign import AlignmentTask, OutOfClass, bounds
from icalign.calculus.sums import zero
from icalign.constructions import PlackettLuce, elimination, plackett_luce
from icalign.spec import Block
from icalign.symbols import d_x, d_y, eta
from icalign.transformer import Transformer

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def numbers(values: list[Any], dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.tensor(values, dtype=dtype)


def on_a_line(y: tuple[float, ...], W: float, r: tuple[float, ...] = (2.5, 1.5, 0.0)) -> AlignmentTask:
    """Responses on a line, x = 1."""
    return AlignmentTask(numbers([[1.0]]), numbers([[[each] for each in y]]), numbers([list(r)]), numbers([[W]]))


def made(task: AlignmentTask, relative: float, steps: int, **changes: Any) -> PlackettLuce:
    """T steps of size relative/Λ on the class of the task."""
    kind: dict[str, Any] = {"responses": task.responses, "radius": 1.0, "dtype": task.dtype} | changes
    if "temperatures" not in kind:
        kind.setdefault("tolerance", 1e-6)
    rate = relative / bounds.smoothness(task.responses, 2 * kind["radius"])
    return PlackettLuce(W=task.W, eta=rate, steps=steps, **kind)


def descended(task: AlignmentTask, rate: float, steps: int) -> Tensor:
    """(W_t − W)x after 1, 2, … steps of autograd in float64, the query normalised."""
    x = torch.nn.functional.normalize(task.x.double(), dim=-1)
    W = start = task.W.double().expand(*task.batch, -1, -1)
    path = []
    for _ in range(steps):
        W = W.detach().requires_grad_()
        misses = (x @ W.mT)[..., None, :] - task.y.double()
        loss = icalign.plackett_luce_nll(-misses.square().sum(-1), task.r.double()).sum()
        W = (W - rate * torch.autograd.grad(loss, W)[0]).detach()
        path.append(x @ (W - start).mT)
    return torch.stack(path)


def shifts(construction: PlackettLuce, task: AlignmentTask) -> Tensor:
    """v after every loop, at every token."""
    X, rows, kept = construction.embed(task), construction.transformer.rows, []
    for number, block in enumerate(construction.transformer.blocks, 1):
        X = block(X)
        if number % (task.responses - 1) == 0:
            kept.append(X[..., rows["v"]].double())
    return torch.stack(kept)


def off(construction: PlackettLuce, task: AlignmentTask) -> Tensor:
    """The largest error after each loop."""
    found = shifts(construction, task) - descended(task, construction.eta, construction.steps)
    return found.norm(dim=-1).flatten(1).amax(1)


def promised(construction: PlackettLuce) -> Tensor:
    """The bound after each loop, with the rounding of the reference."""
    kind = construction.task_class
    Lam = bounds.smoothness(kind.responses, kind.diameter)
    reach = construction.reach + construction.steps * construction.longest
    other = bounds.gradient_rounding(torch.float64, kind.responses, kind.dim_x, kind.dim_y, reach)
    once = construction.error_bound / construction.growth + construction.eta * other
    counts = range(1, construction.steps + 1)
    return numbers([once * bounds.many_steps_growth(construction.eta, Lam, count) for count in counts])


# The promise


@pytest.mark.parametrize("responses", [2, 3, 8])
@pytest.mark.parametrize(("relative", "steps"), [(0.3, 2), (1.0, 7), (2.0, 20), (3.0, 5)])
def test_v_is_the_sum_of_the_steps_to_within_the_tolerance(responses: int, relative: float, steps: int) -> None:
    task = icalign.sample_task((40,), responses=responses, radius=1.0, seed=responses)
    construction = made(task, relative, steps)
    assert construction.error_bound <= 1e-6
    assert (off(construction, task) <= promised(construction)).all()
    assert torch.equal(construction.update(task).squeeze(1), shifts(construction, task)[-1])
    moved = task.y - descended(task, construction.eta, steps)[-1].unsqueeze(-2)
    assert (construction(task) - moved).norm(dim=-1).max() <= promised(construction)[-1]


@pytest.mark.parametrize("responses", [2, 3, 5])
@pytest.mark.parametrize("relative", [0.5, 3.0])
def test_the_bound_holds_at_the_edges_of_the_class(responses: int, relative: float) -> None:
    """‖Wx‖ = ω on either side of responses at two poles, gaps of Δ at either end of the range, γΔ near log 5."""
    pole = torch.nn.functional.normalize(numbers([[3.0, 4.0]]), dim=-1)
    one = numbers([[1.0]])
    for side in (-20.0, -0.5, 0.5):
        heat = {"gamma": 17.0, "C": 4 * (abs(side) + 8 * relative) + 3.0}
        construction = None
        for pattern in range(2**responses):
            signs = numbers([[1.0 if pattern >> place & 1 else -1.0] for place in range(responses)])
            r = 0.1 * torch.arange(responses, dtype=torch.float64) + (0.0 if pattern % 2 else 1.0)
            task = AlignmentTask(one, (1 - 1e-12) * signs[None] * pole, r[None], side * pole.mT)
            construction = construction or made(task, relative, 3, temperatures=heat)
            assert (off(construction, task) <= promised(construction)).all(), (side, pattern)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_other_dtypes_keep_their_promise_where_they_give_one(dtype: torch.dtype) -> None:
    kind: dict[str, Any] = {"responses": 3, "min_gap": 1.0, "radius": 0.5, "reward_range": (0.0, 2.5)}
    W = torch.zeros(1, 1, dtype=dtype)
    task = icalign.sample_task((100,), dim_x=1, dim_y=1, **kind, W=W, seed=2, dtype=dtype)
    construction = made(task, 1.0, 4, temperatures={"gamma": 8.0, "C": 24.0}, **kind)
    assert (off(construction, task) <= promised(construction)).all()
    if dtype == torch.float32:
        assert construction.error_bound < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_rounding_alone_is_within_its_allowance(seed: int) -> None:
    task = icalign.sample_task((500,), responses=5, radius=1.0, seed=seed, dtype=torch.float32)
    construction = made(task, 2.0, 8, temperatures={"gamma": 400.0, "C": 300.0})
    assert construction._exact_error() < 1e-9 < construction._rounding()
    error = off(construction, task)[-1]
    assert construction._rounding() / 1e5 < error <= construction._rounding()  # the allowance is for ‖v‖ = TU


def test_the_bound_is_attained_where_the_loss_is_flat() -> None:
    """Errors add up: Tδ. Two poles, the better one far ahead: exact steps do not move, the winner head always leaks."""
    task = on_a_line((1.0, -1.0), 30.0, (1.0, 0.0))
    kind: dict[str, Any] = {"responses": 2, "min_gap": 1.0, "reward_range": (0.0, 1.0)}
    construction = made(task, 0.2, 8, temperatures={"gamma": 12.0, "C": 200.0}, **kind)
    ratio = float(off(construction, task)[-1]) / construction.error_bound
    assert 0.999 < ratio <= 1


@pytest.mark.parametrize(("relative", "grows"), [(0.5, False), (2.0, False), (2.5, True), (4.0, True)])
def test_errors_grow_at_a_sharp_minimiser_beyond_two_over_the_curvature(relative: float, grows: bool) -> None:
    task = on_a_line((-0.5, 0.5, -0.5), math.log(2) / 4)
    kind: dict[str, Any] = {"min_gap": 1.0, "reward_range": (0.0, 2.5), "radius": 0.5}
    heat = {"gamma": 16.0, "C": 400.0}
    construction = made(task, relative, 12, temperatures=heat, **kind)
    error = off(construction, task)
    assert (error <= promised(construction)).all()
    rate = (error[-1] / error[3]) ** (1 / 8)
    assert (rate > 0.95 * (relative - 1)) if grows else (error.max() <= 3 * error[0])


@pytest.mark.parametrize(("reserve", "kept"), [(20, True), (0, False)])
def test_the_mask_must_know_how_far_v_can_go(reserve: int, kept: bool) -> None:
    task = on_a_line((0.5, -0.4, -0.5), 0.0)
    rate = 1 / bounds.smoothness(3, 1.0)
    longest = 4 * rate
    _, mask = bounds.plackett_luce_temperatures(
        1e-6 * longest, longest, 1.0, bounds.score_spread(reserve * longest, 0.5), 3
    )
    kind: dict[str, Any] = {"min_gap": 1.0, "reward_range": (0.0, 2.5), "radius": 0.5}
    construction = made(task, 1.0, 20, temperatures={"gamma": 60.0, "C": mask}, **kind)
    pledge = 2 * rate * bounds.share(bounds.field_crowd(mask, bounds.score_spread(reserve * longest, 0.5), 3, 2))
    assert bool(off(construction, task)[-1] <= 20 * pledge) is kept
    assert off(construction, task)[-1] <= promised(construction)[-1]  # what it promises uses the true range


# The reset


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_loop_leaves_flag_top_and_u_exactly_zero_and_v_rounded_once(dtype: torch.dtype) -> None:
    kind: dict[str, Any] = {"responses": 4, "min_gap": 0.5, "radius": 1.0, "reward_range": (0.0, 2.0)}
    task = icalign.sample_task((30,), **kind, seed=3, dtype=dtype)
    construction = made(task, 1.0, 3, temperatures={"gamma": 16.0, "C": 30.0}, **kind)
    rows, X = construction.transformer.rows, construction.embed(task)
    for number, block in enumerate(construction.transformer.blocks, 1):
        visible = block.visible(X)  # type: ignore[operator]
        attended = X
        for head in block.attention_heads():  # type: ignore[operator]
            attended = attended + head(X, visible)
        X = block(X)
        if number % 3 == 0:
            assert all([bool((X[..., rows[row]] == 0).all()) for row in ("flag", "top", "u")])
            assert torch.equal(X[..., rows["v"]], attended[..., rows["v"]] + attended[..., rows["u"]])
            assert (attended[..., rows["u"]] != 0).any()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_layer_commits_any_numbers_exactly(dtype: torch.dtype) -> None:
    layer = Transformer((Block(feed_forward=plackett_luce.commit),), plackett_luce.stream, {d_x: 4, d_y: 3}, dtype)
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(200, 18, generator=generator) * 2.0 ** torch.randint(-9, 9, (200, 18), generator=generator)
    X = X.to(dtype)
    out, rows = layer(X), layer.rows
    assert torch.equal(out[:, rows["v"]], X[:, rows["v"]] + X[:, rows["u"]])
    for name, place in rows.items():
        if name != "v":
            assert torch.equal(out[:, place], 0 * X[:, place] if name in ("flag", "top", "u") else X[:, place])


def test_a_loop_is_two_blocks_shared_by_all_steps() -> None:
    task = icalign.sample_task(responses=5, radius=1.0)
    blocks = made(task, 1.0, 6).transformer.blocks
    assert len(blocks) == 4 * 6
    assert len({id(block) for block in blocks}) == 2
    assert plackett_luce.turn.heads[0] is elimination.winner


@pytest.mark.parametrize("broken", ["deaf", "flags", "u"])
def test_a_broken_loop_is_far_off(broken: str) -> None:
    """A β head that does not read v, flags that stay up, a u that is not emptied."""
    task = icalign.sample_task((20,), responses=5, radius=1.0, seed=7)
    construction = made(task, 1.0, 4)
    write = dict(plackett_luce.commit.write)
    left_out = {"deaf": None, "flags": "flag", "u": "u"}[broken]
    if left_out:
        del write[left_out]
    heads = (elimination.winner, elimination.field) if broken == "deaf" else plackett_luce.heads
    last = Block(heads=heads, feed_forward=plackett_luce.FeedForward(write))
    turn = Block(heads=heads, feed_forward=elimination.eliminate)
    model = Transformer(((turn,) * 3 + (last,)) * 4, plackett_luce.stream, construction.values)
    found = model(construction.embed(task))[..., model.rows["v"]]
    wanted = descended(task, construction.eta, 4)[-1]
    assert (found - wanted).norm(dim=-1).amax(-1).min() > 1e3 * construction.error_bound


# Bounds


def test_growth_is_one_formula_for_numbers_and_symbols() -> None:
    T, Lam = sp.Symbol("T", integer=True, positive=True), sp.Symbol("Lambda", nonnegative=True)
    formula = bounds.many_steps_growth(eta, Lam, T)
    for rate, curvature, steps in [(0.5, 1, 7), (2, 1, 7), (3.5, 1, 6), (0.25, 40, 4)]:
        exact = formula.subs({eta: sp.Rational(rate), Lam: curvature, T: steps}).doit()
        assert abs(bounds.many_steps_growth(rate, curvature, steps) - float(exact)) <= 4 * steps * 2**-53 * float(exact)
    assert bounds.many_steps_growth(2.0, 1.0, 9) == 9
    assert bounds.many_steps_growth(1e6, 1e6, 100) == math.inf
    assert bounds.expansion(0.1, 1.0) == 1
    assert bounds.many_steps_gap(0.5, 3.0, 4) == 0.75


def test_weights_beyond_any_float_count_as_infinite() -> None:
    assert bounds.field_crowd(0.0, 1e4, 5, 2) == math.inf
    assert bounds.field_crowd(0.0, 1e4, 5, 1) == 0
    assert bounds.share(math.inf) == 1


@pytest.mark.parametrize("relative", [1e9, 1e200, 1e306])
def test_steps_that_are_far_too_long_promise_nothing(relative: float) -> None:
    task = icalign.sample_task(responses=5, radius=1.0)
    with pytest.raises(ValueError, match=r"tolerance: 1e-06, torch\.float64 promises"):
        made(task, relative, 50)
    assert made(task, 1e9, 3, temperatures={"gamma": 100.0, "C": 100.0}).error_bound > 1


def test_the_tolerance_it_says_it_can_promise_is_one_it_promises() -> None:
    task = icalign.sample_task(responses=5, radius=1.0)
    with pytest.raises(ValueError, match="promises no less than") as refusal:
        made(task, 4.0, 20)
    least = float(str(refusal.value).split("no less than ")[1].split()[0])
    assert made(task, 4.0, 20, tolerance=least).error_bound <= least


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize(("off_by", "taken"), [(1e-15, True), (9e-10, False)])
def test_a_query_whose_norm_is_off_by_more_than_rounding_is_refused(steps: int, off_by: float, taken: bool) -> None:
    """u knows nothing of ‖x‖, and ΔW x has its square: 9e-10 once broke a promise of 1e-9."""
    task = icalign.sample_task(responses=5, radius=1.0)
    long = AlignmentTask(task.x * (1 + off_by), task.y, task.r, task.W)
    construction = made(task, 1.0, steps)
    if taken:
        construction(long)
    else:
        with pytest.raises(OutOfClass, match=r"x: the norm of a query is 1 to within 9e-10, expected 1.78e-15"):
            construction(long)


# What the prover learned for the layer


def test_relu_of_a_number_minus_relu_of_its_negative_is_the_number() -> None:
    a, b = sp.symbols("a b", real=True)
    u, k, n = sp.IndexedBase("u", real=True), sp.Symbol("k", integer=True), sp.Symbol("n", integer=True, positive=True)
    difference = sp.Max(a, 0) - sp.Max(-a, 0)
    assert zero(difference - a)
    assert not zero(difference - 2 * a)
    assert not zero(difference + a)
    assert zero(sp.Max(a, b) - sp.Max(a - b, 0) - b)
    assert not zero(sp.Max(a, b, 0) - sp.Max(a, b))
    relus = sp.Sum(sp.Max(u[k], 0) - sp.Max(-u[k], 0), (k, 1, n))
    assert zero(relus - sp.Sum(u[k], (k, 1, n)))
