"""The online loss, patience sorting, and the block of chapter 5 under a causal mask."""

import math
from itertools import combinations, pairwise, permutations

import pytest
import sympy as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import icalign
from icalign import AlignmentTask, bounds
from icalign.constructions import causal_naive, elimination
from icalign.constructions.base import prompt
from icalign.patience import descents
from icalign.symbols import Delta, W, d_x, d_y, eta, gamma
from icalign.transformer import Transformer

GAP, SPREAD, STEP = 0.1, 2.0, 0.1


def model(task: AlignmentTask, product: float, mask: float, blocks: int) -> Transformer:
    """The causal block for the class of sample_task; ``product`` is γΔ, ``mask`` is C."""
    values: dict[object, object] = {d_x: task.dim_x, d_y: task.dim_y, W: task.W, eta: STEP, gamma: product / GAP}
    values |= {Delta: GAP, elimination.R: SPREAD, elimination.C: mask}
    values |= {elimination.B: bounds.elimination_mask(GAP, SPREAD) + 0.5}
    return Transformer((causal_naive.block,) * blocks, elimination.stream, values)


def with_order(order: tuple[int, ...]) -> AlignmentTask:
    """A task whose rewards come in the given order, 0 the smallest."""
    drawn = icalign.sample_task(responses=len(order), seed=3)
    levels = drawn.r[0].sort().values
    return AlignmentTask(drawn.x, drawn.y, levels[torch.tensor(order)][None], drawn.W)


def last_true_update(task: AlignmentTask) -> Tensor:
    return icalign.gradient_step(task, STEP) @ task.x[0]


# Patience sorting


def longest_decreasing_ending_at(values: list[int], last: int) -> int:
    """By trying all subsequences."""
    for size in range(last + 1, 0, -1):
        for chosen in combinations(range(last), size - 1):
            run = [values[place] for place in (*chosen, last)]
            if all(a > b for a, b in pairwise(run)):
                return size
    raise AssertionError("a value alone is a run")


@given(st.lists(st.integers(-4, 4), max_size=8))
def test_a_pile_is_the_longest_decreasing_run_that_ends_there(values: list[int]) -> None:
    assert descents(values) == [longest_decreasing_ending_at(values, place) for place in range(len(values))]


@pytest.mark.parametrize(
    ("values", "piles"),
    [
        ([], []),
        ([3, 1, 4, 1, 5, 9, 2, 6], [1, 2, 1, 2, 1, 1, 2, 2]),
        ([5, 4, 3, 2, 1], [1, 2, 3, 4, 5]),
        ([1, 2, 3], [1, 1, 1]),
        ([2, 2], [1, 1]),  # strictly decreasing: equal values do not make a run
    ],
)
def test_piles_that_one_can_deal_by_hand(values: list[int], piles: list[int]) -> None:
    assert descents(values) == piles


# The hard limit


def test_the_causal_block_is_the_block_of_chapter_5_but_for_the_mask() -> None:
    assert causal_naive.block.heads == elimination.block.heads
    assert causal_naive.block.feed_forward is elimination.block.feed_forward
    assert causal_naive.block.causal and not elimination.block.causal


def test_rounds_of_three_responses_step_by_step() -> None:
    (first, chosen), (second, again) = causal_naive.hard_rounds(torch.tensor([1, 2, 0]), 2)
    assert first.tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert chosen.tolist() == [0, 1, 1]  # both records go
    assert second.tolist() == [[True, False, False], [True, True, False], [False, False, True]]
    assert again.tolist() == [0, 1, 2]  # positions 1 and 2 have nothing left and start again


def test_no_later_response_changes_a_round() -> None:
    rewards = torch.rand(50, 9, generator=torch.Generator().manual_seed(1))
    whole, prefix = causal_naive.hard_rounds(rewards, 8), causal_naive.hard_rounds(rewards[:, :6], 8)
    for (live, chosen), (live_6, chosen_6) in zip(whole, prefix, strict=True):
        assert torch.equal(live[:, :6, :6], live_6) and torch.equal(chosen[:, :6], chosen_6)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_last_position_is_right_for_two_orders(size: int) -> None:
    right = []
    for order in permutations(range(size)):
        task = with_order(order)
        off = causal_naive.hard_update(task, STEP, size - 1)[-1] - last_true_update(task)
        if off.norm() <= 1e-12:
            right.append(order)
    down = tuple(range(size - 1, -1, -1))
    assert sorted(right) == sorted({down, (*down[:-2], down[-1], down[-2])})


def test_the_decreasing_order_is_right_at_the_last_two_positions_and_the_first() -> None:
    task = with_order((5, 4, 3, 2, 1, 0))
    steps = icalign.online_gradient_steps(task, STEP)[0] @ task.x[0]
    off = (causal_naive.hard_update(task, STEP, 5) - steps).norm(dim=-1)
    assert (off[[0, 4, 5]] <= 1e-12).all() and (off[1:4] > 1e-3).all()


def test_the_hard_limit_takes_batches_and_refuses_several_queries() -> None:
    tasks = icalign.sample_task((3, 2), responses=5, seed=4)
    found = causal_naive.hard_update(tasks, STEP, 4)
    assert found.shape == (3, 2, 5, 3)
    one = AlignmentTask(tasks.x[1, 1], tasks.y[1, 1], tasks.r[1, 1], tasks.W)
    assert (found[1, 1] - causal_naive.hard_update(one, STEP, 4)).abs().max() <= 1e-13
    with pytest.raises(ValueError, match="2 queries, expected 1"):
        causal_naive.hard_update(icalign.sample_task(queries=2), STEP, 3)


# The transformer goes to its hard limit


@pytest.mark.parametrize("extra", [0.0, 8.0, 24.0])
def test_the_transformer_keeps_the_bound_to_its_hard_limit(extra: float) -> None:
    tasks = icalign.sample_task((40,), responses=8, seed=5)
    product = GAP * bounds.sure_elimination(GAP, SPREAD, 8) + extra
    omega = float(torch.linalg.matrix_norm(tasks.W, 2))
    spread = bounds.score_spread(omega, 3.0)
    mask, reach = spread + product, float((tasks.x.abs() @ tasks.W.abs().mT).norm(dim=-1).max()) + 3.0
    run = model(tasks, product, mask, 7)
    u = run(prompt(tasks, run.rows))[..., run.rows["u"]]
    errors = (u - causal_naive.hard_update(tasks, STEP, 7)).norm(dim=-1)
    rounding = bounds.causal_naive_rounding(
        torch.float64, STEP, product / GAP, mask, GAP, SPREAD, SPREAD, 8, 7, 4, 3, reach, 3.0
    )
    for t in range(1, 9):
        exact = bounds.causal_naive_error(STEP, product / GAP, mask, GAP, spread, t, 7, 6.0)
        assert errors[:, t - 1].max() <= exact + rounding
    if extra == 24.0:
        assert rounding > exact and rounding < 1e-6  # the coldest run tests the rounding


def test_flags_rise_in_the_round_of_patience_sorting() -> None:
    tasks = icalign.sample_task((40,), responses=8, seed=6)
    run = model(tasks, GAP * bounds.sure_elimination(GAP, SPREAD, 8), 60.0, 7)
    piles = torch.tensor([descents(r) for r in tasks.r[:, 0].tolist()])
    X = prompt(tasks, run.rows)
    for number, block in enumerate(run.blocks, 1):
        X = block(X)
        flags = X[..., run.rows["flag"]].squeeze(-1)
        assert (flags - (piles <= number).double()).abs().max() <= bounds.flag_rounding(torch.float64, SPREAD, GAP)


# Bounds


def test_the_temperature_of_sure_elimination_is_that_of_its_formula() -> None:
    assert bounds.sure_elimination(0.5, 2.0, 5) == pytest.approx(2 * math.log(64), rel=1e-15)
    g, gap, spread = bounds.sure_elimination(0.1, 2.0, 8), 0.1, 2.0
    assert spread * bounds.crowd(g, gap, 8) == pytest.approx(gap / 4, rel=1e-12)


def test_the_naive_error_is_one_formula_for_numbers_and_symbols() -> None:
    values = (0.1, 30.0, 40.0, 0.2, 21.0, 6, 5, 4.5)
    symbols = sp.symbols("eta gamma C Delta R_Z t n D", positive=True)
    formula = bounds.causal_naive_error(*symbols)
    number = float(formula.subs(dict(zip(symbols, map(sp.Rational, values), strict=True))))
    assert bounds.causal_naive_error(*values) == pytest.approx(number, rel=1e-13)
    assert bounds.causal_naive_error(0.1, 30.0, 40.0, 0.2, 21.0, 1, 5, 4.5) == 0  # position 1 sees itself alone


# The online loss


@given(st.permutations(range(6)), st.integers(0, 1000))
def test_prefixes_grow_by_the_increment(order: list[int], seed: int) -> None:
    scores = torch.randn(6, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    losses = icalign.online_plackett_luce_nll(scores, torch.tensor(order, dtype=torch.float64))
    for t in range(1, 6):
        ranked = sorted(range(t), key=lambda j: -order[j])
        n = sum(order[j] > order[t] for j in range(t))
        weight = {j: math.exp(scores[j]) for j in range(t + 1)}
        tails = [sum(weight[j] for j in ranked[k:]) for k in range(t + 1)]
        step = sum(math.log1p(weight[t] / tails[k]) for k in range(n)) + math.log1p(tails[n] / weight[t])
        # two losses of at most 6(6 + log 6), a few roundings for each of their terms
        assert abs(losses[t] - losses[t - 1] - step) <= 1e-13


def test_rankings_that_keep_a_prefix_have_its_probability() -> None:
    scores = torch.tensor([0.3, -1.2, 0.7, 0.1], dtype=torch.float64)
    orders = torch.tensor(list(permutations(range(4))), dtype=torch.float64)
    chances = (-icalign.plackett_luce_nll(scores.expand_as(orders), orders)).exp()
    for t in (1, 2, 3):
        wanted = (-icalign.online_plackett_luce_nll(scores, torch.arange(4.0).double())[t - 1]).exp()
        keeps = (orders[:, :t].argsort(-1) == torch.arange(t)).all(-1)
        assert abs(chances[keeps].sum() - wanted) <= 1e-14


# Refusals


@pytest.mark.parametrize("values", [[1.0, math.nan, 0.5], [math.inf, 1.0], ["a"], [1.0, None]])
def test_piles_of_what_is_no_number_are_refused(unchecked: None, values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"values\[[0-9]\]: "):
        descents(values)


def test_hard_rounds_refuse_ties_and_what_is_not_finite() -> None:
    with pytest.raises(ValueError, match=r"rewards: nan at \(0,\)"):
        causal_naive.hard_rounds(torch.tensor([math.nan, 1.0, 2.0]), 2)
    with pytest.raises(ValueError, match="both have reward 1"):
        causal_naive.hard_rounds(torch.tensor([1, 1, 2, 3]), 2)


@pytest.mark.parametrize("eta", [math.nan, math.inf, 0.0, -1.0])
def test_the_hard_limit_refuses_what_is_no_step_size(eta: float) -> None:
    with pytest.raises(ValueError, match="eta: "):
        causal_naive.hard_update(icalign.sample_task(), eta, 3)
