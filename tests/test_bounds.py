"""One formula for numbers and symbols; temperatures meet their tolerance, and rounding keeps its allowance."""

import math
from collections.abc import Callable

import mpmath
import pytest
import sympy as sp
import torch
from torch import Tensor

import icalign
from icalign import AlignmentTask
from icalign.bounds import (
    attention_rounding,
    crowd,
    crowd_in_steps,
    field_error,
    field_rounding,
    gradient_rounding,
    loss_rounding,
    selection_temperature,
    selection_temperature_all_gaps,
    share,
    unit_roundoff,
)
from icalign.constructions import field
from icalign.constructions.base import prompt
from icalign.symbols import W, d_x, d_y
from icalign.transformer import Transformer

N = sp.Symbol("N", integer=True, positive=True)
g, gap, eps, D = sp.symbols("g gap epsilon D", positive=True)


def test_the_unit_roundoff_is_half_a_spacing() -> None:
    for dtype, digits in ((torch.float64, 53), (torch.float32, 24), (torch.float16, 11), (torch.bfloat16, 8)):
        assert unit_roundoff(dtype) == 2.0**-digits


@pytest.mark.parametrize(("gv", "gapv", "count"), [(0.0, 0.1, 2), (1.5, 0.1, 8), (300.0, 0.25, 100), (1e-12, 1e-3, 7)])
def test_numbers_and_symbols_agree(gv: float, gapv: float, count: int) -> None:
    values = {g: sp.Rational(gv), gap: sp.Rational(gapv), N: count}
    for formula in (crowd, crowd_in_steps):
        exact = mpmath.mpf(str(sp.N(formula(g, gap, N).subs(values).doit(), 40)))
        # kγΔ, k < N, is off by at most 2ε of itself, which moves exp by as much; exp and expm1 add a few ε more
        tolerance = (8 + 4 * count * gv * gapv) * 2**-53 * exact
        assert abs(formula(gv, gapv, count) - exact) <= tolerance
        assert abs(share(formula(gv, gapv, count)) - exact / (1 + exact)) <= 3 * tolerance


def test_the_crowd_in_steps_is_free_of_cancellation() -> None:
    assert crowd_in_steps(0.0, 1.0, 5) == 4
    assert crowd_in_steps(1e-300, 1.0, 5) == pytest.approx(4, rel=1e-15)
    assert crowd_in_steps(1e5, 1.0, 5) == 0.0
    assert crowd_in_steps(3.0, 1.0, 2) == pytest.approx(math.exp(-3), rel=1e-15)


def test_the_crowd_in_steps_is_at_most_the_crowd() -> None:
    for gv in (0.0, 0.1, 1.0, 10.0):
        for count in (2, 3, 50):
            assert crowd_in_steps(gv, 0.3, count) <= crowd(gv, 0.3, count)


def test_a_temperature_meets_its_tolerance_and_no_smaller_one_does() -> None:
    for tolerance in (1e-1, 1e-6, 1e-12):
        for count in (2, 8, 1000):
            best = selection_temperature(tolerance, 0.1, count, 6.0)
            error = 6.0 * share(crowd(best, 0.1, count))
            # exact at γ*; γ*Δ < 50 is rounded three times, each an error of 50·ε in the exponent
            assert error == pytest.approx(tolerance, rel=200 * 2**-53)
            assert 6.0 * share(crowd(best - 1e-6, 0.1, count)) > tolerance


def test_one_temperature_serves_all_numbers_of_responses() -> None:
    for tolerance in (1e-1, 1e-9):
        temperature = selection_temperature_all_gaps(tolerance, 0.1, 6.0)
        for count in (2, 3, 100, 10**6):
            assert 6.0 * share(crowd_in_steps(temperature, 0.1, count)) <= tolerance * (1 + 200 * 2**-53)
    symbolic = selection_temperature_all_gaps(eps, gap, D)
    assert symbolic == sp.log(D / eps) / gap


def test_where_the_dtype_resolves_nothing_the_allowance_is_infinite() -> None:
    assert attention_rounding(torch.bfloat16, 1e4, 8, 1.0) == math.inf
    assert attention_rounding(torch.float64, 1e300, 8, 1.0) == math.inf


def test_the_allowance_grows_with_all_it_depends_on() -> None:
    base = attention_rounding(torch.float32, 10.0, 8, 3.0)
    assert 0 < base < 1e-3
    assert attention_rounding(torch.float32, 20.0, 8, 3.0) > base
    assert attention_rounding(torch.float32, 10.0, 16, 3.0) > base
    assert attention_rounding(torch.float32, 10.0, 8, 6.0) == 2 * base
    assert attention_rounding(torch.float64, 10.0, 8, 3.0) < base * 2**-28
    more = attention_rounding(torch.float64, 20.0, 8, 1.0) - attention_rounding(torch.float64, 10.0, 8, 1.0)
    assert more / (10 * unit_roundoff(torch.float64)) == pytest.approx(16)  # twice 8ε₀L; γ's own rounding is one of 8


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_a_softmax_head_keeps_the_allowance(dtype: torch.dtype) -> None:
    """The head in the dtype against exact weights in 60 digits, on the same rounded inputs."""
    generator = torch.Generator().manual_seed(0)
    for scale in (0.5, 3.0):
        for _ in range(20):
            r = (scale * torch.randn(6, 1, generator=generator)).to(dtype)
            y = (torch.rand(6, 1, generator=generator) * 2 - 1).to(dtype)
            gamma = torch.tensor([[2.0]], dtype=dtype)
            found = (torch.softmax((torch.ones(1, 1, dtype=dtype) @ gamma) @ r.mT, -1) @ y).double().item()
            with mpmath.workdps(60):
                terms = [mpmath.exp(mpmath.mpf(2) * v) for v in r.double().flatten().tolist()]
                mean = sum([a * b for a, b in zip(terms, y.double().flatten().tolist(), strict=True)]) / sum(terms)
                error = abs(found - mean)
            allowed = attention_rounding(dtype, 2 * r.abs().max().item(), 6, 1.0)
            assert error <= allowed, (dtype, error, allowed)


@pytest.mark.parametrize("gamma", [300.0, 3e3, 3e4])
def test_rounded_logits_are_what_the_allowance_is_for(gamma: float) -> None:
    """Two nearly equal rewards and a large γ: the logits' own rounding, εγr, decides how the weight is divided.

    The error must come to a hundredth of what is allowed, else nothing would show that logits belong in it.
    """
    generator = torch.Generator().manual_seed(1)
    worst = 0.0
    for _ in range(60):
        r = (1.3 + torch.rand(2, 1, generator=generator) / gamma).to(torch.float32)
        y = torch.tensor([[1.0], [-1.0]])
        found = (torch.softmax((torch.ones(1, 1) * gamma) @ r.mT, -1) @ y).double().item()
        with mpmath.workdps(60):
            first, second = [mpmath.exp(mpmath.mpf(gamma) * v) for v in r.double().flatten().tolist()]
            error = float(abs(found - (first - second) / (first + second)))
        allowed = attention_rounding(torch.float32, gamma * r.max().item(), 2, 1.0)
        assert error <= allowed
        worst = max(worst, error / allowed)
    assert worst > 1e-2


def nearly_tied(count: int = 2000, scale: float = 10.0) -> AlignmentTask:
    """Responses p ± d to a prediction p much shorter than d, d_x = d_y = 1, float32: equal scores but for rounding."""
    d = scale * (0.2 + torch.rand(count, 1, 1, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64))
    p = torch.full((1, 1), scale / 10, dtype=torch.float64)
    y = torch.cat([p + d, p - d], dim=-2).float()
    return AlignmentTask(torch.ones(count, 1, 1), y, torch.tensor([1.0, 0.0]).expand(count, 1, 2), p.float())


def exact_weights(task: AlignmentTask) -> tuple[Tensor, Tensor]:
    """(scores, β) of the two responses of each task, in float64."""
    distance = task.x[:, 0].double() @ task.W.double().mT - task.y[:, 0, :, 0].double()
    return -distance.square(), torch.softmax(-distance.square(), dim=-1)


def worst_ratio(errors: Tensor, task: AlignmentTask, allowance: Callable[[float, float], float]) -> float:
    """The largest error in units of what is allowed at the reach and the radius of its task."""
    radii = task.y.double().abs().amax((-3, -2, -1)).tolist()
    allowed = [allowance(radius + task.W.abs().item(), radius) for radius in radii]
    return float((errors.double() / torch.tensor(allowed, dtype=torch.float64)).max())


def test_the_allowance_for_a_loss_is_within_a_factor_of_a_hundred() -> None:
    task = nearly_tied()
    s, _ = exact_weights(task)
    exact = torch.logsumexp(s, -1) - s[:, 0]
    error = (icalign.plackett_luce_nll(icalign.scores(task), task.r)[:, 0].double() - exact).abs()
    ratio = worst_ratio(error, task, lambda reach, _: loss_rounding(torch.float32, 2, 1, 1, reach))
    assert 0.01 < ratio <= 1


def test_the_allowance_for_a_gradient_is_within_a_factor_of_a_thousand() -> None:
    """Half of it: one computed gradient against the exact one, η = 1."""
    task = nearly_tied()
    _, beta = exact_weights(task)
    z = task.W.double() - task.y[:, 0, :, 0].double()
    exact = -2 * ((torch.tensor([1.0, 0.0], dtype=torch.float64) - beta) * z).sum(-1)
    error = (icalign.gradient_step(task, 1.0).double().flatten() - exact).abs()
    ratio = worst_ratio(error, task, lambda reach, _: gradient_rounding(torch.float32, 2, 1, 1, reach) / 2)
    assert 0.002 < ratio <= 1


def test_the_allowance_for_the_beta_head_is_within_a_factor_of_a_hundred() -> None:
    """Its logits for themselves, and the mean, which they move by D·tanh(E/4) with E twice their error."""
    task = nearly_tied()
    model = Transformer((field.block,), field.stream, {d_x: 1, d_y: 1, W: task.W}, torch.float32)
    X = prompt(task, model.rows)
    s, beta = exact_weights(task)
    head = next(model.blocks[0].attention_heads())  # type: ignore[operator]
    logits = ((X @ head.query.T) @ (X @ head.key.T).mT)[:, 0].double()
    error = (logits - s - task.W.double().square()).abs().amax(-1)
    assert 0.02 < worst_ratio(error, task, lambda reach, c: field_rounding(torch.float32, 1, 1, 2, reach, c)[0]) <= 1

    def allowed(reach: float, radius: float) -> float:
        logit, rest = field_rounding(torch.float32, 1, 1, 2, reach, radius)
        return field_error(2 * logit, 2 * radius) + rest

    mean = (beta * task.y[:, 0, :, 0].double()).sum(-1)
    error = (model(X)[..., model.rows["mean"]][..., 0].double() - mean[:, None]).abs().amax(-1)
    assert 0.01 < worst_ratio(error, task, allowed) <= 1
