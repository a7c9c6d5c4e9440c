"""One block: two heads for two responses, the clipped step beside the printed elimination, and what z3 is given."""

import math
from itertools import pairwise

import pytest
import sympy as sp
import torch
from torch import Tensor

import icalign
from icalign import AlignmentTask, bounds
from icalign.constructions import bradley_terry, elimination
from icalign.constructions.base import prompt
from icalign.spec import Block, FeedForward, relu
from icalign.symbolic import SymbolicTransformer
from icalign.symbols import Delta, W, d_x, d_y, eta, gamma
from icalign.transformer import Transformer

ETA, GAP, SPREAD = 0.1, 0.1, 2.0


def clipped(
    *, weight: float | None = None, product: float = 12.0, seed: int = 0, dtype: torch.dtype = torch.float64
) -> Transformer:
    """The whole block for the class of sample_task, W as with that seed; ``product`` is γΔ, ``weight`` is B."""
    values: dict[object, object] = {
        d_x: 4,
        d_y: 3,
        eta: ETA,
        gamma: product / GAP,
        Delta: GAP,
        elimination.R: SPREAD,
        elimination.C: 60,
    }
    values[elimination.B] = bounds.elimination_mask(GAP, SPREAD) + 0.5 if weight is None else weight
    values[W] = icalign.sample_task(seed=seed).W
    return Transformer((elimination.block,), elimination.stream, values, dtype)


def printed(taken: float, inverse_temperature: float, blocks: int = 1) -> Transformer:
    """The block of E.6 and E.7 with the given ε."""
    values = {d_x: 4, d_y: 3, eta: ETA, gamma: inverse_temperature, elimination.epsilon: taken}
    return Transformer((elimination.printed_block,) * blocks, elimination.printed_stream, values)


def with_rewards(*rewards: float) -> AlignmentTask:
    drawn = icalign.sample_task(responses=len(rewards), seed=2)
    return AlignmentTask(drawn.x, drawn.y, torch.tensor([rewards], dtype=torch.float64), drawn.W)


def layer_alone(model: Transformer, **rows: list[float]) -> dict[str, Tensor]:
    """The tokens after the feed-forward layer alone, by row; rows that are not given are 0."""
    X = torch.zeros(len(next(iter(rows.values()))), max(place.stop for place in model.rows.values()))
    X = X.double()
    for name, values in rows.items():
        X[:, model.rows[name]] = torch.tensor(values, dtype=torch.float64)[:, None]
    X = X + model.blocks[0].feed_forward(X)  # type: ignore[operator]
    return {name: X[:, place] for name, place in model.rows.items()}


# What z3 is given is what torch runs


@pytest.mark.parametrize("row", ["flag", "top", "u", "x"])
def test_the_layer_read_with_sympy_is_the_layer_that_runs(row: str) -> None:
    symbolic = SymbolicTransformer(elimination.stream, (elimination.block,), given={"one": 1})
    names = list(elimination.stream.rows)
    added = symbolic.feed_forward().added(symbolic.tokens(1), names.index(row))
    model = clipped(weight=8.0)
    generator = torch.Generator().manual_seed(1)
    for r, top, flag in (torch.randint(-8, 9, (40, 3), generator=generator) / 64).tolist():
        values = {"r": r, "top": top, "flag": flag}
        at = {sp.MatrixSymbol(name, 1, 1)[0, 0]: sp.Rational(value) for name, value in values.items()}
        exact = added.subs(at).subs({Delta: sp.Rational(GAP), elimination.B: 8})
        before = values.get(row, 0.0)
        found = layer_alone(model, **{name: [value] for name, value in values.items()})[row][0, 0].item() - before
        # numbers up to 8 + 2·20/8, at most eight operations
        assert abs(found - float(exact)) <= 8 * 13 * 2**-53


def test_a_component_of_a_row_of_several_is_read_too() -> None:
    symbolic = SymbolicTransformer(elimination.printed_stream, (elimination.printed_block,), given={"one": 1})
    names = list(elimination.printed_stream.rows)
    component = sp.Symbol("c", integer=True, nonnegative=True)
    added = symbolic.feed_forward().added(symbolic.tokens(1), names.index("copy"), component)
    r = sp.MatrixSymbol("r", 1, 1)[0, 0]
    assert added == -gamma / elimination.epsilon * sp.Max(r, 0)


def test_hidden_units_of_several_components_are_refused() -> None:
    i, _ = elimination.stream.tokens
    wide = Block(feed_forward=FeedForward(write={"u": sp.MatrixSymbol("M", d_y, d_y) @ relu(i.y)}))
    symbolic = SymbolicTransformer(elimination.stream, (wide,), given={})
    row = list(elimination.stream.rows).index("u")
    with pytest.raises(ValueError, match="hidden unit 0 has d_y components, expected 1 or a diagonal"):
        symbolic.feed_forward().added(symbolic.tokens(1), row)


# The clipped step


@pytest.mark.parametrize(
    ("lag", "flag"),
    [(-20, 1), (-0.25, 1), (0, 1), (0.25, 1), (0.375, 0.75), (0.5, 0.5), (0.625, 0.25), (0.75, 0), (1, 0), (20, 0)],
)
def test_the_flag_by_how_far_the_reward_is_behind_in_gaps(lag: float, flag: float) -> None:
    """Δ = 1/8 and multiples of 1/64: every number of the computation is exact."""
    values = {d_x: 4, d_y: 3, Delta: 0.125, elimination.B: 40}
    model = Transformer((Block(feed_forward=elimination.eliminate),), elimination.stream, values)
    found = layer_alone(model, top=[1.0], r=[1.0 - lag / 8], flag=[0.0])
    assert found["flag"].item() == flag
    assert found["top"].item() == 0


@pytest.mark.parametrize(("short", "kept"), [(0.0, True), (0.5, False)])
def test_the_least_weight_that_protects_a_flag(short: float, kept: bool) -> None:
    """The worst token: the reward high is out of play, r⁺ is low. R = 2 and Δ = 1/8 are exact."""
    weight = bounds.elimination_mask(0.125, 2.0) - short
    assert weight == 33.5 - short
    values = {d_x: 4, d_y: 3, Delta: 0.125, elimination.B: weight}
    model = Transformer((Block(feed_forward=elimination.eliminate),), elimination.stream, values)
    assert (layer_alone(model, top=[-1.0], r=[1.0], flag=[1.0])["flag"].item() == 1) is kept


def test_the_bound_on_the_weight_is_the_same_for_symbols() -> None:
    R = elimination.R
    assert sp.expand(bounds.elimination_mask(Delta, R) - sp.Rational(3, 2) - 2 * R / Delta) == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_the_flags_after_every_block_are_those_of_the_ranking(dtype: torch.dtype) -> None:
    task = icalign.sample_task(batch=(300,), seed=4, dtype=dtype)
    model = clipped(dtype=dtype)
    rank = task.r[:, 0].argsort(dim=-1, descending=True).argsort(dim=-1)
    X = prompt(task, model.rows)
    for block in range(7):
        before, X = X, model(X)
        flag = X[..., model.rows["flag"]].squeeze(-1)
        untouched = rank != block
        assert torch.equal(flag[untouched], before[..., model.rows["flag"]].squeeze(-1)[untouched])
        assert (flag[~untouched] - 1).abs().max() <= bounds.flag_rounding(dtype, 2.0, GAP)
        assert bool((X[..., model.rows["top"]] == 0).all())
        for name in ("x", "y", "sq", "r", "one"):
            assert torch.equal(X[..., model.rows[name]], before[..., model.rows[name]])


def test_the_allowance_for_a_flag_is_within_a_factor_of_twenty() -> None:
    """The layer alone, Δ = 2, rewards in [−1, 1] and r⁺ within Δ/4: products so small that both sums are rounded."""
    values = {d_x: 4, d_y: 3, Delta: 2.0, elimination.B: 4.0}
    model = Transformer((Block(feed_forward=elimination.eliminate),), elimination.stream, values)
    u = 2 * torch.rand(2, 5000, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 1
    top = (u[0] + u[1] / 2).clamp(-1, 1)
    error = (layer_alone(model, r=u[0].tolist(), top=top.tolist())["flag"] - 1).abs().max()
    assert 0.05 < error / bounds.flag_rounding(torch.float64, 1.0, 2.0) <= 1


def drift(product: float, responses: int = 40, gap: float = 0.1) -> tuple[list[float], bool]:
    """How far flags that should stay move in each block, equal gaps; and whether ``flags_are_exact`` promises 0."""
    drawn = icalign.sample_task(responses=responses, min_gap=1e-3, seed=2)
    r = gap * torch.arange(responses, dtype=torch.float64)[None]
    task = AlignmentTask(drawn.x, drawn.y, r, drawn.W)
    spread = task.reward_range[1]
    values = {d_x: 4, d_y: 3, eta: ETA, gamma: product / task.min_gap, Delta: task.min_gap, elimination.R: spread}
    values[elimination.B] = bounds.elimination_mask(task.min_gap, spread) + 0.5
    block = Block(heads=(elimination.winner,), feed_forward=elimination.eliminate)
    model = Transformer((block,), elimination.stream, values)
    X, found = prompt(task, model.rows), []
    for number in range(responses - 1):
        before, X = X, model(X)
        moved = (X - before)[:, model.rows["flag"]][:, 0]
        moved[responses - 1 - number] = 0  # the winner's
        found.append(moved.abs().max().item())
    promised = bounds.flags_are_exact(torch.float64, product / gap, task.min_gap, spread, spread, responses)
    return found, promised


def test_at_the_edge_of_the_hypothesis_rounding_is_amplified_and_with_a_margin_no_flag_drifts() -> None:
    found, promised = drift(math.log(5) * (1 + 4 * 2**-53))
    assert not promised
    assert found[0] == 0
    assert max(found) > 0.9
    rising = [value for value in found if 0 < value < 0.1]
    assert all([10 < later / sooner < 100 for sooner, later in pairwise(rising)])
    found, promised = drift(1.7)
    assert promised
    assert max(found) == 0


@pytest.mark.parametrize("start", [0.0, 1.0])
def test_one_block_adds_the_first_term(start: float) -> None:
    """u grows by 2η(y_τ(1) − μ₁), from wherever it starts, up to the leak of the winner head, e^{-γΔ} of 6."""
    task = icalign.sample_task(batch=(300,), seed=4)
    model = clipped(product=30.0, seed=4)
    X = prompt(task, model.rows)
    X[..., model.rows["u"]] = start
    u = model(X)[..., model.rows["u"]] - start
    beta = torch.softmax(icalign.scores(task), dim=-1)
    mean = (beta[..., None] * task.y).sum(-2)
    best = task.y.take_along_dim(task.r.argmax(-1)[..., None, None], dim=-2)[..., 0, :]
    error = (u - 2 * ETA * (best - mean)).norm(dim=-1)
    heads = bounds.attention_rounding(torch.float64, 30 / GAP * 2 * 4, 8, 3.0)
    weighed = bounds.attention_rounding(torch.float64, 13 * 8.0**2, 8, 3.0)  # as in bounds.bradley_terry_rounding
    leak = 6 * bounds.share(bounds.crowd_in_steps(30.0, 1.0, 8))
    adding = 4 * (start + 1.2) * 2**-53 * math.sqrt(3)  # two terms of at most 2η·radius each, and the subtraction
    assert error.max() <= 2 * ETA * (leak + heads + 2 * weighed) + adding


def test_a_gap_below_three_quarters_takes_the_runner_up_out_of_play_too() -> None:
    for part, flagged in [(0.76, False), (0.74, True)]:
        task = with_rewards(0.5, 1.5 - part * GAP, 1.5)
        model = clipped(product=40.0)  # so that r⁺ is the best reward but for e^{-30}
        out = model(prompt(task, model.rows))
        assert (out[1, model.rows["flag"]].item() > 0.01) is flagged


# The printed elimination


def taken(task: AlignmentTask, inverse_temperature: float) -> float:
    """ε = max r − r⁺ of the task, from the definition."""
    r = task.r[0]
    return float(r.max() - (torch.softmax(inverse_temperature * r, -1) * r).sum())


def second_winner(model: Transformer, task: AlignmentTask) -> int:
    """The response with the most attention in the second block."""
    return int(model.attention(prompt(task, model.rows))[1][0, 0].argmax())


def test_the_printed_layer_works_where_its_epsilon_comes_from_and_not_on_wider_gaps() -> None:
    own, wider = with_rewards(0.0, 1.0, 2.0), with_rewards(0.0, 2.0, 4.0)
    model = printed(taken(own, 8.0), 8.0, blocks=2)
    assert second_winner(model, own) == 1
    assert second_winner(model, wider) == 2
    assert second_winner(printed(taken(wider, 8.0), 8.0, blocks=2), wider) == 1


def test_on_its_own_input_the_printed_layer_need_not_eliminate() -> None:
    """γ = 1 is less than the distance 5 of the rewards: the old winner takes 98 % of the second block."""
    task = with_rewards(0.0, 5.0, 10.0)
    model = printed(taken(task, 1.0), 1.0, blocks=2)
    weights = model.attention(prompt(task, model.rows))[1][0, 0]
    assert weights[2] == pytest.approx(0.982, abs=1e-3)
    left = model.blocks[0](prompt(task, model.rows))[:, model.rows["r"]][:, 0]
    # r⁺ and ε are differences of numbers up to 10, and ε = 0.034 is known to 20 units of 2⁻⁵³·10/ε
    assert left[2] - left[1] == pytest.approx(5 - 1, abs=1e-12)
    near = with_rewards(0.0, 1.9, 2.0)
    model = printed(taken(near, 0.5), 0.5, blocks=1)
    lowered = prompt(near, model.rows) - model(prompt(near, model.rows))
    assert (lowered[1, model.rows["copy"]] > 0.5 / 2).all()


def test_where_epsilon_vanishes() -> None:
    assert bounds.vanishing_epsilon(torch.float64, 3.0, 3.0) == pytest.approx(53 * math.log(2))
    assert bounds.vanishing_epsilon(torch.float32, 8.0, 1.0) == pytest.approx(21 * math.log(2))
    assert taken(with_rewards(7.0, 8.0), 34.66 - 0.7) > 0
    assert taken(with_rewards(7.0, 8.0), 36.8) <= 0


# Two responses


def test_the_error_of_two_heads() -> None:
    assert bounds.bradley_terry_error(0.1, 0.0, 1.0, 4.0) == 0.4  # ηD without any selection
    assert bounds.bradley_terry_error(0.1, 1e6, 1.0, 4.0) == 0  # no overflow
    t = math.log(3)
    assert bounds.bradley_terry_error(0.5, t, 1.0, 1.0) == pytest.approx(1 / 4)
    printed_form = 2 * eta / (1 + sp.exp(gamma * Delta))
    assert sp.expand(sp.together(bounds.bradley_terry_error(eta, gamma, Delta, 1) / printed_form)).equals(1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_two_heads_are_a_gradient_step(dtype: torch.dtype) -> None:
    task = icalign.sample_task(batch=(300,), responses=2, seed=8, dtype=dtype)
    reach = float((task.x.abs() @ task.W.abs().mT).norm(dim=-1).max()) + 3
    for inverse_temperature in (0.0, 3.0, 60.0):
        values = {d_x: 4, d_y: 3, W: task.W, eta: ETA, gamma: inverse_temperature}
        model = Transformer((bradley_terry.block,), bradley_terry.stream, values, dtype)
        out = model(prompt(task, model.rows))[..., model.rows["y"]].double()
        wanted = task.y[:, 0].double() - (task.x @ icalign.gradient_step(task, ETA).mT).double()
        apart = (task.y[:, 0, 0] - task.y[:, 0, 1]).double().norm(dim=-1)
        gap = (task.r[:, 0, 0] - task.r[:, 0, 1]).abs().double()
        exact = bounds.bradley_terry_error(ETA, inverse_temperature, gap, apart)
        heads = bounds.bradley_terry_rounding(dtype, ETA, 2 * inverse_temperature, 4, 3, reach, 3.0)
        room = heads + ETA * bounds.gradient_rounding(dtype, 2, 4, 3, reach)
        # ΔW x has the factor ‖x‖², and a task accepts queries that are unit up to rounding
        room += 2 * ETA * apart.max().item() * (task.x.double().square().sum(-1) - 1).abs().max().item()
        assert ((out - wanted).norm(dim=-1) - exact[:, None]).abs().max() <= room


@pytest.mark.parametrize(("dtype", "off"), [(torch.float64, 9e-10), (torch.float32, 9e-6)], ids=["64", "32"])
def test_a_query_that_is_unit_only_within_the_tolerance_costs_its_square(dtype: torch.dtype, off: float) -> None:
    """Without that part of the allowance the error is beyond it, in float64 many times over."""
    drawn = icalign.sample_task(batch=(50,), responses=2, seed=1, dtype=dtype)
    task = AlignmentTask(drawn.x * (1 + off), drawn.y, drawn.r, drawn.W)
    reach = float((task.x.abs() @ task.W.abs().mT).norm(dim=-1).max()) + 3
    values = {d_x: 4, d_y: 3, W: task.W, eta: ETA, gamma: 600.0}
    model = Transformer((bradley_terry.block,), bradley_terry.stream, values, dtype)
    out = model(prompt(task, model.rows))[..., model.rows["y"]].double()
    wanted = task.y[:, 0].double() - (task.x @ icalign.gradient_step(task, ETA).mT).double()
    apart = (task.y[:, 0, 0] - task.y[:, 0, 1]).double().norm(dim=-1)
    exact = bounds.bradley_terry_error(ETA, 600.0, (task.r[:, 0, 0] - task.r[:, 0, 1]).abs().double(), apart)
    error = ((out - wanted).norm(dim=-1) - exact[:, None]).abs().max()
    room = bounds.bradley_terry_rounding(dtype, ETA, 2 * 600.0, 4, 3, reach, 3.0)
    room += ETA * bounds.gradient_rounding(dtype, 2, 4, 3, reach)
    assert error <= room + 2 * ETA * apart.max() * (task.x.double().square().sum(-1) - 1).abs().max()
    if dtype == torch.float64:
        assert error > room


def rounding_ratio(task: AlignmentTask, step: float, inverse_temperature: float) -> float:
    """The two heads in float32 against themselves in real arithmetic, in units of their allowance."""
    values = {d_x: 4, d_y: 3, W: task.W, eta: step, gamma: inverse_temperature}
    model = Transformer((bradley_terry.block,), bradley_terry.stream, values, torch.float32)
    out = model(prompt(task, model.rows))[..., model.rows["y"]].double()
    x, y, r, w = task.x.double(), task.y[:, 0].double(), task.r[:, 0].double(), task.W.double()
    logits = 2 * (y * (x @ w.mT)).sum(-1) - y.square().sum(-1)
    moved = torch.softmax(logits, -1) - torch.softmax(inverse_temperature * r, -1)
    exact = y + 2 * step * (moved[..., None] * y).sum(-2, keepdim=True)
    largest, reach = inverse_temperature * float(r.max()), float((x.abs() @ w.abs().mT).norm(dim=-1).max())
    allowed = bounds.bradley_terry_rounding(torch.float32, step, largest, 4, 3, reach + task.radius, task.radius)
    return float((out - exact).norm(dim=-1).max()) / allowed


def test_the_allowance_for_two_heads_is_within_a_factor_of_a_hundred() -> None:
    """A tiny step, where the additions to y are all there is; and near ties at a large γ, where the logits are."""
    task = icalign.sample_task((500,), responses=2, radius=0.1, seed=0, dtype=torch.float32)
    assert 0.2 < rounding_ratio(task, 1e-4, 0.5) <= 1
    drawn = icalign.sample_task((300,), responses=2, min_gap=1e-6, radius=0.3, seed=3, dtype=torch.float32)
    r = 1.3 + torch.rand(300, 1, 2, generator=torch.Generator().manual_seed(1)) / 3e4
    r[:, 0, 1] += (r[:, 0, 0] == r[:, 0, 1]) / 3e4
    tied = AlignmentTask(drawn.x, drawn.y, r, torch.zeros_like(drawn.W))
    assert 0.01 < rounding_ratio(tied, 10.0, 3e4) <= 1


def test_a_prompt_lists_the_responses_query_by_query() -> None:
    task = icalign.sample_task((5,), queries=2, responses=3)
    X = prompt(task, {"x": slice(0, 4), "y": slice(4, 7)})
    assert X.shape == (5, 6, 7)
    assert torch.equal(X[:, 3:, :4], task.x[:, 1:].expand(-1, 3, -1))
    assert torch.equal(X[:, :3, 4:], task.y[:, 0])


def test_a_prompt_fills_the_rows_it_is_asked_for() -> None:
    task = icalign.sample_task(responses=3)
    rows = clipped().rows
    X = prompt(task, rows)
    assert torch.equal(X[:, rows["y"]], task.y[0])
    assert torch.equal(X[:, rows["r"]][:, 0], task.r[0])
    assert torch.equal(X[:, rows["x"]], task.x.expand(3, -1))
    assert torch.equal(X[:, rows["sq"]][:, 0], task.y[0].square().sum(-1))
    assert bool((X[:, rows["one"]] == 1).all())
    assert bool((X[:, rows["flag"].start :] == 0).all())
