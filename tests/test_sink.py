"""Softmax with a sink as linear attention: against the sum itself, with the bound, the rate and the rounding."""

import math
from fractions import Fraction
from functools import cache

import mpmath
import pytest
import sympy as sp
import torch
from torch import Tensor

from icalign import bounds
from icalign.constructions import sink
from icalign.symbols import d_x, d_y
from icalign.transformer import Transformer

PAIRS = [1, 2, 3, 4]


@cache
def model(epsilon: float, lambda_: float, pairs: int, dim_x: int = 4, dim_y: int = 3) -> Transformer:
    numbers = {d_x: dim_x, d_y: dim_y, sink.epsilon: epsilon, sink.lambda_: lambda_}
    numbers[sink.scale] = math.exp(lambda_) / (2 * epsilon)
    return Transformer((sink.block(pairs),), sink.stream, numbers)


def attended(epsilon: float, lambda_: float, pairs: int, x: Tensor, v: Tensor) -> Tensor:
    """What every token but the sink, the first, finds in its row sum."""
    built = model(epsilon, lambda_, pairs, x.shape[-1], v.shape[-1])
    rows = built.rows
    X = torch.zeros(len(x) + 1, rows["sum"].stop, dtype=torch.float64)
    X[1:, rows["x"]], X[1:, rows["v"]], X[1:, rows["one"]], X[0, rows["b"]] = x, v, 1, 1
    return built(X)[1:, rows["sum"]]


def random_tokens(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.nn.functional.normalize(torch.randn(n, 4, generator=generator, dtype=torch.float64), dim=-1)
    return x, torch.randn(n, 3, generator=generator, dtype=torch.float64)


def promised(epsilon: float, lambda_: float, n: int, pairs: int) -> float:
    """Per Σ‖v_j‖; the target, a sum of n products of unit vectors and values, loses (n + 8)ε₀ itself."""
    rounding = bounds.sink_rounding(torch.float64, epsilon, lambda_, n, 4, pairs) + (n + 8) * 2**-53
    return bounds.sink_error(epsilon, lambda_, n, pairs) + rounding


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("epsilon", [1.0, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("lambda_", [2.0, 20.0, 45.0])
def test_it_is_linear_attention_to_within_its_bound(pairs: int, epsilon: float, lambda_: float) -> None:
    for n in (1, 5, 40):
        x, v = random_tokens(n, seed=n)
        error = (attended(epsilon, lambda_, pairs, x, v) - x @ x.mT @ v).norm(dim=-1).max() / v.norm(dim=-1).sum()
        assert error <= promised(epsilon, lambda_, n, pairs)


@pytest.mark.parametrize("pairs", PAIRS)
def test_the_first_term_is_attained_by_equal_tokens(pairs: int) -> None:
    x, v = torch.ones(3, 1, dtype=torch.float64), torch.ones(3, 1, dtype=torch.float64)
    error = abs(attended(0.5, 40.0, pairs, x, v)[0, 0] / 3 - 1)
    # at λ = 40 the second term is 3e^{−40} times less than 10, and rounding is derived
    rest = bounds.sink_leak(0.5, 40.0, 3, pairs) + bounds.sink_rounding(torch.float64, 0.5, 40.0, 3, 1, pairs) + 2**-50
    assert abs(error - bounds.sink_curvature(0.5, pairs)) <= rest


def test_the_second_term_is_attained_by_equal_tokens_at_a_small_epsilon() -> None:
    """Ratio (2 + σ)/(2(1 + σ)²), σ = n e^{−λ}: 1 − 1.5σ + O(σ²) at σ = 3e^{−8} ≈ 0.001."""
    x, v = torch.ones(3, 1, dtype=torch.float64), torch.ones(3, 1, dtype=torch.float64)
    error = float(1 - attended(1e-4, 8.0, 1, x, v)[0, 0] / 3)
    assert 0.998 < error / bounds.sink_leak(1e-4, 8.0, 3) <= 1


@pytest.mark.parametrize("pairs", PAIRS)
def test_more_pairs_raise_the_order(pairs: int) -> None:
    coarse, fine = [bounds.sink_curvature(epsilon, pairs) for epsilon in (2e-2, 1e-2)]
    # the next order is ε² times a number below 4
    assert abs(math.log2(coarse / fine) - 2 * pairs) < 1e-2
    x, v = random_tokens(6)
    errors = [float((attended(e, 60.0, pairs, x, v) - x @ x.mT @ v).norm()) for e in (0.6, 0.3)]
    assert abs(math.log2(errors[0] / errors[1]) - 2 * pairs) < 0.3


@pytest.mark.parametrize("pairs", PAIRS)
def test_the_coefficients_cancel_the_powers_in_between(pairs: int) -> None:
    found = [Fraction(int(a.p), int(a.q)) for a in bounds.sink_coefficients(pairs)]
    assert sum(found) == 1
    for m in range(1, pairs):
        assert sum(a * k ** (2 * m) for k, a in enumerate(found, 1)) == 0
    assert sum(a * k ** (2 * pairs) for k, a in enumerate(found, 1)) != 0
    if pairs == 2:
        assert found == [Fraction(4, 3), Fraction(-1, 3)]


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("epsilon", [1.5, 0.2, 1e-3])
def test_the_series_is_the_closed_form(pairs: int, epsilon: float) -> None:
    symbol = sp.Symbol("epsilon", positive=True)
    with mpmath.workdps(60):
        exact = bounds.sink_curvature(symbol, pairs).subs(symbol, sp.Rational(epsilon)).evalf(60)
        assert abs(bounds.sink_curvature(epsilon, pairs) / exact - 1) < 1e-14
        order = bounds.sink_order(symbol, pairs).subs(symbol, sp.Rational(epsilon)).evalf(60)
    assert exact <= order
    assert abs(bounds.sink_order(epsilon, pairs) / order - 1) < 1e-13


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("tolerance", [0.1, 1e-4, 1e-9])
def test_temperatures_meet_their_shares(pairs: int, tolerance: float) -> None:
    epsilon = bounds.sink_spacing(tolerance, pairs)
    lambda_ = bounds.sink_logit(epsilon, tolerance / 2, 24, pairs)
    assert bounds.sink_curvature(epsilon, pairs) <= tolerance
    assert math.isclose(bounds.sink_order(epsilon, pairs), tolerance, rel_tol=1e-12)
    assert math.isclose(bounds.sink_leak(epsilon, lambda_, 24, pairs), tolerance / 2, rel_tol=1e-12)


def test_the_rounding_is_infinite_where_weights_leave_the_normal_range() -> None:
    assert bounds.sink_rounding(torch.float64, 0.1, 700.0, 9, 4) < math.inf
    assert bounds.sink_rounding(torch.float64, 0.1, 708.0, 9, 4) == math.inf
    assert bounds.sink_rounding(torch.float32, 0.1, 90.0, 9, 4) == math.inf
    assert bounds.sink_rounding(torch.float16, 0.1, 5.0, 9, 4) == math.inf


def test_without_the_sink_it_is_no_linear_attention() -> None:
    """The same heads without the token that makes the weights small: they are normalised, and far off."""
    x, v = random_tokens(5)
    built = model(1e-2, 20.0, 1)
    X = torch.zeros(5, built.rows["sum"].stop, dtype=torch.float64)
    X[:, built.rows["x"]], X[:, built.rows["v"]], X[:, built.rows["one"]] = x, v, 1
    error = (built(X)[:, built.rows["sum"]] - x @ x.mT @ v).norm(dim=-1).max() / v.norm(dim=-1).sum()
    assert error > 1e3 * promised(1e-2, 20.0, 5, 1)


@pytest.mark.parametrize(
    ("epsilon", "pairs"), [(100.0, 1), (60.0, 1), (700.0, 1), (40.0, 2), (30.0, 4), (20.0, 4), (150.0, 4), (1.0, 60)]
)
def test_the_curvature_counts_all_terms_of_a_large_epsilon(epsilon: float, pairs: int) -> None:
    """Forty terms, which do for Pε up to 10, are less than a thirtieth of it at (100, 1)."""
    with mpmath.workdps(400):
        total = mpmath.mpf(0)
        for k, a in enumerate(bounds.sink_coefficients(pairs), 1):
            total += mpmath.mpf(int(a.p)) / int(a.q) * mpmath.sinh(k * mpmath.mpf(epsilon)) / (k * mpmath.mpf(epsilon))
        ratio = float(bounds.sink_curvature(epsilon, pairs) / abs(total - 1))
    assert abs(ratio - 1) < 1e-12  # a few roundings for each of up to 700 factors


def test_the_curvature_beyond_any_float_is_infinite() -> None:
    assert bounds.sink_curvature(721.0) == bounds.sink_curvature(800.0, 3) == math.inf
    assert bounds.sink_leak(800.0, 30.0, 5) == math.inf
    assert bounds.sink_error(800.0, 30.0, 5, 4) == math.inf
