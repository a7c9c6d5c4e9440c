"""The β head and the layer of squares keep their bounds as weights, and attain them where the chapter says so."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
import sympy as sp
import torch
from torch import Tensor

import icalign
from icalign import AlignmentTask, bounds
from icalign.constructions.base import prompt
from icalign.constructions.field import block, squares, stream
from icalign.spec import Block
from icalign.symbols import W, d_x, d_y
from icalign.transformer import Transformer

B = 3.0


def mean_under_beta(task: AlignmentTask) -> Tensor:
    """Σ_j β_j y_j by softmax of the scores."""
    return torch.einsum("...mn,...mny->...my", torch.softmax(icalign.scores(task), dim=-1), task.y)


def layer(dim_y: int, pieces: int, dtype: torch.dtype = torch.float64) -> Transformer:
    return Transformer((Block(feed_forward=squares(B, 2 * B / pieces)),), stream, {d_x: 1, d_y: dim_y}, dtype)


def filled(y: Tensor, pieces: int) -> Tensor:
    """What the layer writes into sq for responses y."""
    model = layer(y.shape[-1], pieces, y.dtype)
    X = torch.zeros(*y.shape[:-1], model.rows["mean"].stop, dtype=y.dtype)
    X[..., model.rows["y"]] = y
    return model(X)[..., model.rows["sq"]][..., 0]


def interpolated(value: Fraction, knots: list[Fraction]) -> Fraction:
    """The chord over a square: the reference, written without hinges."""
    left, right = next((a, b) for a, b in pairwise(knots) if a <= value <= b)
    return left**2 + (value - left) * (right**2 - left**2) / (right - left)


@pytest.mark.parametrize("pieces", [1, 2, 3, 8])
@pytest.mark.parametrize("dim_y", [1, 3])
def test_the_layer_is_the_piecewise_linear_interpolation(pieces: int, dim_y: int) -> None:
    knots = [-Fraction(3) + Fraction(6, pieces) * k for k in range(pieces + 1)]
    values = [Fraction(n, 16) for n in range(-48, 49)]
    y = torch.tensor([[float(v)] * dim_y for v in values], dtype=torch.float64)
    expected = torch.tensor([float(dim_y * interpolated(v, knots)) for v in values], dtype=torch.float64)
    found = filled(y, pieces)
    # a spacing 6/3 is exact, as are all spacings here
    assert (found - expected).abs().max() <= bounds.square_rounding(torch.float64, dim_y, B, pieces)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("pieces", [1, 2, 7, 64])
def test_squares_are_never_too_small_and_too_large_by_at_most_the_bound(pieces: int, dtype: torch.dtype) -> None:
    """Random coordinates and both ends of the interval."""
    y = 2 * B * torch.rand(2000, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64) - B
    y[0], y[1] = -B, B
    error = filled(y.to(dtype), pieces).double() - y.to(dtype).double().square().sum(-1)
    rounding = bounds.square_rounding(dtype, 4, B, pieces)
    assert -rounding <= error.min()
    assert error.max() <= bounds.square_error(2 * B / pieces, 4) + rounding


def test_the_error_is_attained_halfway_between_knots_and_vanishes_at_knots() -> None:
    halfway = torch.full((1, 3), -2.25, dtype=torch.float64)  # knots at −3, −1.5, 0, …
    assert filled(halfway, 4) - 3 * 2.25**2 == bounds.square_error(1.5, 3) == 1.6875
    at_knots = torch.tensor([[-1.5, 0.0, 3.0]], dtype=torch.float64)
    assert filled(at_knots, 4) == 1.5**2 + 3.0**2


def test_a_single_chord_is_the_coarsest_layer() -> None:
    """h = 2B: one hinge, of slope 0 between −B and B, so the layer writes d_y B² whatever y is."""
    y = torch.tensor([[-3.0, 1.0], [0.5, 3.0]], dtype=torch.float64)
    assert filled(y, 1).tolist() == [18.0, 18.0]


def test_a_layer_alone_builds_no_mask_of_attention() -> None:
    """200 000 tokens: a mask of n × n would take 40 GB."""
    assert (filled(torch.zeros(200_000, 1, dtype=torch.float64), 2) == 0).all()


def test_knots_reach_the_end_when_the_spacing_does_not_divide_the_interval() -> None:
    """2B/h = 3.75: four chords, the last one ends beyond B; on it the bound still holds."""
    uneven = Transformer((Block(feed_forward=squares(B, 1.6)),), stream, {d_x: 1, d_y: 1})
    X = torch.zeros(2, 5, dtype=torch.float64)
    X[:, 1] = torch.tensor([2.6, 3.0])
    error = uneven(X)[:, 2] - X[:, 1].square()
    assert ((error >= 0) & (error <= bounds.square_error(1.6, 1))).all()
    assert uneven.blocks[0].get_parameter("feed_forward.first").shape[0] == 4


def test_the_rounding_allowance_of_the_layer_is_within_a_factor_of_twenty() -> None:
    """64 hinges for one coordinate, its ends and random values; the exact layer in fractions."""
    knots = [-Fraction(3) + Fraction(6, 64) * k for k in range(65)]
    y = 6 * torch.rand(500, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 3
    y[0], y[1] = -3, 3
    exact = torch.tensor([float(interpolated(Fraction(v), knots)) for v in y[:, 0].tolist()], dtype=torch.float64)
    ratio = (filled(y, 64) - exact).abs().max() / bounds.square_rounding(torch.float64, 1, B, 64)
    assert 0.05 < ratio <= 1


@pytest.mark.parametrize(
    ("radius", "spacing", "words"),
    [
        (1.0, 1000.1, "spacing: 1000.1, expected at most twice the radius, 2.0"),
        (sp.Symbol("B", positive=True), 3 * sp.Symbol("B", positive=True), "spacing: 3\\*B, expected at most"),
        (0, 1, "radius: 0, expected a positive number"),
        (-3.0, 1, "radius: -3, expected"),
        (3.0, 0.0, "spacing: 0, expected"),
        (math.nan, 1.0, "nan, expected a finite number"),
        (3.0, math.inf, "inf, expected a finite number"),
        (sp.Symbol("B", positive=True), 1, "2·radius/spacing is .*, expected a number"),
        (sp.Symbol("B"), 1, "radius: B, expected a positive number"),
    ],
)
def test_a_layer_that_cannot_be_built_is_refused(radius: Any, spacing: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        squares(radius, spacing)


@pytest.mark.parametrize("responses", [1, 2, 8, 32])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_the_head_writes_the_mean_under_beta_at_every_token(dtype: torch.dtype, responses: int) -> None:
    task = icalign.sample_task((50,), responses=responses, min_gap=0.01, seed=8, dtype=dtype)
    model = Transformer((block,), stream, {d_x: 4, d_y: 3, W: task.W}, dtype)
    found = model(prompt(task, model.rows))[..., model.rows["mean"]]
    reach = task.W.double().norm().item() + task.radius
    logit, rest = bounds.field_rounding(dtype, 4, 3, responses, reach, task.radius)
    allowed = bounds.field_error(4 * logit, 2 * task.radius) + 2 * rest
    assert (found - mean_under_beta(task)).norm(dim=-1).max() <= allowed


def test_the_prompt_holds_the_squares_only_when_asked_to() -> None:
    task = icalign.sample_task(responses=3)
    model = Transformer((block,), stream, {d_x: 4, d_y: 3, W: task.W})
    assert torch.equal(prompt(task, model.rows)[..., model.rows["sq"]], task.y[0].square().sum(-1, keepdim=True))
    assert (prompt(task, model.rows, without=("sq",))[..., model.rows["sq"]] == 0).all()


def shifted_mean(scores: Tensor, errors: Tensor, values: Tensor) -> Tensor:
    """How far the softmax mean of the values moves when each score falls by its error."""
    weights = torch.softmax(scores - errors, -1) - torch.softmax(scores, -1)
    return (weights[..., None] * values).sum(-2).norm(dim=-1)


@pytest.mark.parametrize("E", [1e-3, 0.3, 2.0, 20.0])
def test_no_errors_of_the_logits_move_the_mean_beyond_the_bound(E: float) -> None:
    """Errors anywhere in [0, E] and at its ends, values in a ball: 20 000 cases."""
    generator = torch.Generator().manual_seed(1)
    scores = 4 * torch.randn(20_000, 5, generator=generator, dtype=torch.float64)
    errors = E * torch.rand(20_000, 5, generator=generator, dtype=torch.float64)
    errors[::2] = E * (errors[::2] > E / 2)
    values = torch.nn.functional.normalize(torch.randn(20_000, 5, 3, generator=generator, dtype=torch.float64), dim=-1)
    moved = shifted_mean(scores, errors, values)
    # softmax of five scores below 40 in size loses a few dozen units
    assert moved.max() <= bounds.field_error(E, 2.0) + 1e3 * bounds.unit_roundoff(torch.float64)


@pytest.mark.parametrize("E", [1e-3, 0.3, 2.0, 20.0])
def test_two_values_attain_the_bound(E: float) -> None:
    scores = torch.tensor([0.0, E / 2], dtype=torch.float64)
    errors = torch.tensor([0.0, E], dtype=torch.float64)
    values = torch.tensor([[2.0], [0.0]], dtype=torch.float64)
    moved = shifted_mean(scores, errors, values).item()
    assert moved == pytest.approx(bounds.field_error(E, 2.0), rel=1e-12)


def test_a_common_error_moves_nothing() -> None:
    """So subtracting E/2 from the row of squares would gain nothing."""
    scores = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    values = torch.eye(3, dtype=torch.float64)
    assert shifted_mean(scores, torch.full((3,), 0.5, dtype=torch.float64), values) <= 1e-15


@pytest.mark.parametrize("tolerance", [1e-9, 1e-3, 0.9, 5.9])
def test_the_spacing_meets_its_tolerance_and_no_larger_one_does(tolerance: float) -> None:
    h = bounds.field_spacing(tolerance, 6.0, 3)
    assert bounds.field_error(bounds.square_error(h, 3), 6.0) == pytest.approx(tolerance, rel=1e-6)
    assert bounds.field_error(bounds.square_error(1.01 * h, 3), 6.0) > tolerance


def test_bounds_with_symbols_and_with_numbers_agree() -> None:
    E, D = sp.symbols("E D", positive=True)
    value = bounds.field_error(E, D).subs({E: sp.Rational(7, 5), D: 3})
    assert float(value) == pytest.approx(bounds.field_error(1.4, 3.0), rel=1e-15)
    error = bounds.field_error(torch.tensor([1.4], dtype=torch.float64), 3.0)
    assert error.item() == pytest.approx(bounds.field_error(1.4, 3.0), rel=1e-15)
    h = bounds.field_spacing(sp.Rational(1, 100), sp.Integer(6), sp.Integer(3))
    assert float(h) == pytest.approx(bounds.field_spacing(0.01, 6.0, 3), rel=1e-15)


def test_beyond_the_logits_the_allowance_is_within_a_factor_of_twenty() -> None:
    """W = 0 and responses of length 0.01, so that logits are next to 0: softmax and mean are all that is rounded."""
    zero = torch.zeros(3, 4)
    task = icalign.sample_task((500,), responses=2, radius=0.01, seed=1, dtype=torch.float32, W=zero)
    model = Transformer((block,), stream, {d_x: 4, d_y: 3, W: task.W}, torch.float32)
    found = model(prompt(task, model.rows))[..., model.rows["mean"]].double()
    x = torch.nn.functional.normalize(task.x.double(), dim=-1)
    exact = AlignmentTask(x, task.y.double(), task.r.double(), zero.double())
    error = (found - mean_under_beta(exact)).norm(dim=-1).max()
    logit, rest = bounds.field_rounding(torch.float32, 4, 3, 2, 0.01, 0.01)
    assert 0.05 < error / (bounds.field_error(2 * logit, 0.02) + rest) <= 1


def test_a_dtype_that_resolves_no_logit_is_promised_nothing() -> None:
    _, rest = bounds.field_rounding(torch.bfloat16, 4, 3, 8, 10.0, 3.0)
    assert rest == math.inf
