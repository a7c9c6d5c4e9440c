"""The head that selects per query keeps its bound, finds the winner above the critical ratio and not below it."""

from __future__ import annotations

import math

import pytest
import sympy as sp
import torch
from torch import Tensor

import icalign
from icalign import AlignmentTask, bounds
from icalign.constructions.base import prompt
from icalign.constructions.query_selection import block, block_by_id, gamma_1, gamma_2, identified, stream
from icalign.symbols import M, d_x, d_y
from icalign.transformer import Transformer

GAP, SPREAD, RADIUS = 0.1, 2.0, 3.0


def sample(queries: int, responses: int, overlap: float = 0.9, dtype: torch.dtype = torch.float64) -> AlignmentTask:
    return icalign.sample_task(
        (40,), queries=queries, responses=responses, overlap=overlap, radius=RADIUS, seed=3, dtype=dtype
    )


def run(
    task: AlignmentTask, inner: float, reward: float, x: Tensor | None = None, by_id: bool = False
) -> tuple[Tensor, Tensor]:
    """Attention (…, M, tokens), one row a query, and what its tokens receive (…, M, N, d_y); x replaces the queries."""
    values = {d_x: task.dim_x, d_y: task.dim_y, M: task.queries, gamma_1: inner, gamma_2: reward}
    model = Transformer((block_by_id if by_id else block,), identified if by_id else stream, values, task.dtype)
    X = prompt(task, model.rows)
    if x is not None:
        X[..., model.rows["x"]] = x.repeat_interleave(task.responses, -2)
    if by_id:
        X[..., model.rows["id"]] = torch.eye(task.queries, dtype=task.dtype).repeat_interleave(task.responses, 0)
    attention = model.attention(X)[0][0][..., :: task.responses, :]
    return attention, model(X)[..., model.rows["best"]].unflatten(-2, task.r.shape[-2:])


def winners(task: AlignmentTask) -> Tensor:
    return task.r.argmax(-1) + task.responses * torch.arange(task.queries)


def missing(attention: Tensor, task: AlignmentTask) -> Tensor:
    """1 − A, added up from the weights of all others."""
    return attention.scatter(-1, winners(task)[..., None], 0.0).sum(-1)


def error(received: Tensor, task: AlignmentTask) -> Tensor:
    best = task.y.take_along_dim(task.r.argmax(-1)[..., None, None], dim=-2)
    return (received - best).norm(dim=-1)


@pytest.mark.parametrize("overlap", [0.5, 0.9, 0.99])
@pytest.mark.parametrize(("queries", "responses"), [(2, 2), (3, 8), (8, 3)])
@pytest.mark.parametrize("tolerance", [0.5, 1e-3, 1e-8])
def test_the_temperatures_meet_their_tolerance(tolerance: float, queries: int, responses: int, overlap: float) -> None:
    """In float64; D₀ bounds all distances."""
    task = sample(queries, responses, overlap)
    inner, reward = bounds.query_temperatures(tolerance, GAP, SPREAD, overlap, responses, queries)
    crowd = bounds.query_crowd(inner, reward, GAP, SPREAD, overlap, responses, queries)
    assert crowd == pytest.approx(tolerance, rel=1e-9)
    attention, received = run(task, inner, reward)
    tokens = queries * responses
    rounding = bounds.query_selection_rounding(torch.float64, inner, reward, 2.0, tokens, 4, 1.0)
    assert missing(attention, task).max() <= tolerance + rounding
    promised = bounds.query_selection_error(
        inner, reward, GAP, SPREAD, overlap, responses, queries, 2 * RADIUS, 2 * RADIUS
    )
    assert promised == pytest.approx(2 * RADIUS * tolerance, rel=1e-9)
    assert error(received, task).max() <= promised + RADIUS * rounding


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_what_floating_point_adds_keeps_its_allowance(dtype: torch.dtype) -> None:
    """Against the same queries, responses and rewards with the softmax in float64."""
    task, inner, reward = sample(3, 4, dtype=dtype), 200.0, 20.0
    _, received = run(task, inner, reward)
    x, r, y = task.x.double(), task.r.double(), task.y.double().flatten(-3, -2)
    x = torch.nn.functional.normalize(x, dim=-1).repeat_interleave(4, -2)
    exact = torch.softmax(inner * x @ x.mT + reward * r.flatten(-2)[..., None, :], dim=-1) @ y
    allowed = bounds.query_selection_rounding(dtype, inner, reward, 2.0, 12, 4, RADIUS)
    assert allowed < 0.7
    assert (received.double().flatten(-3, -2) - exact).norm(dim=-1).max() <= allowed


def test_the_worst_task_of_a_class_attains_the_crowd() -> None:
    """Losers Δ behind, strangers at overlap ρ, all but a hair R ahead: q/(1+q) is the value."""
    rho, inner, reward = 0.6, 12.0, 5.0
    x = torch.tensor([[1.0, 0.0], [rho, math.sqrt(1 - rho**2)]], dtype=torch.float64)
    hair = 2.0**-40
    r = torch.tensor([[0.0, -0.1], [2.0, 2.0 - hair]], dtype=torch.float64)
    task = AlignmentTask(x, torch.zeros(2, 2, 1).double(), r, torch.zeros(1, 2).double())
    attention, _ = run(task, inner, reward)
    share = bounds.share(bounds.query_crowd(inner, reward, 0.1, 2.0, rho, 2, 2))
    assert missing(attention, task)[0] == pytest.approx(share, rel=1e-10)


@pytest.mark.parametrize("norm", [0.5, 1.0, 3.0])
def test_a_hair_above_the_critical_ratio_the_winner_is_selected_and_a_hair_below_it_is_not(norm: float) -> None:
    task = sample(2, 3)
    best = task.r.amax(-1)
    ahead, overlap = (best[:, 1] - best[:, 0]).abs(), (task.x[:, 0] * task.x[:, 1]).sum(-1)
    for n in range(10):
        one = AlignmentTask(task.x[n], task.y[n], task.r[n], task.W)
        ratio = float(bounds.critical_ratio(ahead[n], norm**2 * overlap[n], norm**2))
        for factor, right in ((1 + 1e-6, True), (1 - 1e-6, False)):
            attention, _ = run(one, factor * ratio, 1.0, x=norm * one.x)
            assert bool((attention.argmax(-1) == winners(one)).all()) is right


def test_a_longer_query_that_points_the_same_way_takes_the_attention() -> None:
    task = sample(2, 4, overlap=0.9)
    longer = torch.stack([task.x[:, 0], 2 * task.x[:, 0]], dim=-2)
    attention, _ = run(task, 500.0, 10.0, x=longer)
    assert attention[:, 0, :4].sum(-1).max() < 1e-9
    assert attention[:, 1, 4:].sum(-1).min() > 1 - 1e-9


def test_orthogonal_queries_of_any_norms_keep_apart() -> None:
    task = icalign.sample_task((40,), queries=3, responses=4, orthonormal=True, seed=5)
    lengths = torch.tensor([0.5, 1.0, 7.0], dtype=torch.float64)[:, None]
    attention, _ = run(task, 400.0, 10.0, x=lengths * task.x)
    own = attention.unflatten(-1, (3, 4)).sum(-1).diagonal(dim1=-2, dim2=-1)
    assert own.min() > 1 - 1e-9  # γ₁ · 0.25 − γ₂R = 80


def test_identifiers_serve_equal_queries_which_inner_products_do_not() -> None:
    task = sample(3, 4)
    equal = task.x[:, :1].expand_as(task.x)
    inner, reward = bounds.query_temperatures(1e-6, GAP, SPREAD, 0.0, 4, 3)
    by_id, _ = run(task, inner, reward, x=equal, by_id=True)
    assert missing(by_id, task).max() <= 1e-6 * (1 + 1e-6)
    by_x, _ = run(task, inner, reward, x=equal)
    assert torch.equal(by_x[:, 0], by_x[:, 1])
    assert missing(by_x, task).amax(-1).min() > 0.4


def test_no_smaller_inner_temperature_than_the_floor_is_enough() -> None:
    """Two queries with equal best rewards: at the floor, the other winner alone takes ε."""
    for rho in (-0.5, 0.0, 0.99):
        for tolerance in (0.3, 1e-4):
            floor = bounds.query_temperature_floor(tolerance, rho)
            assert bounds.share(math.exp(-floor * (1 - rho))) == pytest.approx(tolerance, rel=1e-9)


def test_bounds_with_symbols_and_with_numbers_agree() -> None:
    g1, g2, gap, spread, rho = sp.symbols("g1 g2 gap spread rho", positive=True)
    values = {g1: 20, g2: 4, gap: sp.Rational(1, 2), spread: 2, rho: sp.Rational(1, 4)}
    exact = bounds.query_crowd(g1, g2, gap, spread, rho, 5, 3).subs(values)
    assert float(exact) == pytest.approx(bounds.query_crowd(20.0, 4.0, 0.5, 2.0, 0.25, 5, 3), rel=1e-13)
    chosen = bounds.query_temperatures(sp.Rational(1, 100), gap, spread, rho, 5, 3)
    numbers = bounds.query_temperatures(0.01, 0.5, 2.0, 0.25, 5, 3)
    assert [float(value.subs(values)) for value in chosen] == pytest.approx(numbers, rel=1e-13)
