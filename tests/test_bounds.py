"""One formula for numbers and symbols; temperatures meet their tolerance, and rounding keeps its allowance."""

import math
from collections.abc import Callable

import mpmath
import pytest
import sympy as sp
import torch
from torch import Tensor

import icalign
from icalign import AlignmentTask, bounds
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


# Terms written out, at numbers that one can follow by hand

U64, U32 = 2.0**-53, 2.0**-24


def test_what_a_commit_loses() -> None:
    assert bounds.commit_rounding(torch.float64, 3, 2.0) == 8 * U64


def test_what_a_coupled_error_is() -> None:
    assert bounds.coupled_error(2, 3.0, 5.0, 7.0) == 2 * 5 + 2 * (3 + 5) * 7


def test_strangers_count_the_sink() -> None:
    """γ₂Δ = log 2 and γ₁ = 0: two strangers of weights 1 and 1/2 at the top, and the sink, one as heavy as the best."""
    warm = (0.0, math.log(2), 1.0, 1.0, 0.0, 2, 2, 1)
    assert bounds.strangers(*warm, 1) == pytest.approx(2.5)
    assert bounds.strangers(*warm, 0) == pytest.approx(1.5)
    assert bounds.field_strangers(0.0, 0.0, 0.0, 2, 2, 1, 1) == 1.5
    assert bounds.field_strangers(0.0, 0.0, 0.0, 2, 2, 1, 0) == 1.0


def test_what_masked_rounds_lose() -> None:
    """g = 20: the crowd weighs q. κ = 4ε₀ for the one token, κ′ = (16L + 4)ε₀ for the crowd, L = 50."""
    xi = math.exp(-20)
    q = xi * (1 + xi) / (1 - xi)
    off = 2 * math.expm1(4 * U32) + 12 * U32  # n = 5 tokens, the winner alone
    crowd = 2 * q * math.exp(4 * U32) / (1 + q * math.exp(4 * U32)) * math.expm1(2 * 804 * U32)
    wanted = 3 * (off * (1 + 20 * U32) + crowd) + 6 * U32
    assert bounds.mask_rounding(torch.float32, 20.0, 50.0, 5, 3.0) == pytest.approx(wanted, rel=1e-12, abs=0)


def test_a_mask_holds_up_to_its_limit() -> None:
    """(N−1)·max(c, c′)·(q/(1+q) + slip) ≤ 1 with N = 5, c = 10: the slip may be 1/40 less q/(1+q)."""
    q = bounds.mask_crowd(20.0)
    most = 1 / 40 - q / (1 + q)
    for masks in ((10.0, 1.0), (1.0, 10.0)):
        assert bounds.mask_holds(masks, 20.0, most * (1 - 1e-9), 5)
        assert not bounds.mask_holds(masks, 20.0, most * (1 + 1e-9), 5)
    assert not bounds.mask_holds((1e-9,), 0.0, 0.0, 5)


def test_what_the_masked_step_loses() -> None:
    """N = 4, so that n = 3 and five tokens; d_x + d_y = 5, reach 2, radius 1, η = 1/2."""
    eta, n, g, h, field_mask = 0.5, 3, 20.0, 8.0, 30.0
    slip = bounds.mask_rounding(torch.float32, g, 50.0, 5)
    live = (5 + 6) * (4 + 1.0)
    field = bounds.crowd_rounding(torch.float32, live, live + 4 * field_mask, n * math.exp(1 - h), 5, 1.0)
    adding = 8 * eta * n + 2 * n * (4 * eta * n + 2 * eta) + 1 + 4 * eta * n
    wanted = 2 * eta * n * (slip + field) + adding * U32 + 2 * eta * 2 * n * (n - 1) * field_mask * slip / 8
    found = bounds.causal_rounding(torch.float32, eta, g, 50.0, h, field_mask, 4, 3, 2, 2.0, 1.0)
    assert found == pytest.approx(wanted, rel=1e-12, abs=0)


def test_what_the_blocks_lose() -> None:
    """N = 3, so that n = 2: selecting, weighing, and the sums, each of them a good part of the whole."""
    eta, n, gamma, mask, reach = 0.5, 2, 1.7, 12.0, 2.0
    winner = max(bounds.winner_crowd(gamma, 1.0, 2.0, 3, k) for k in (1, 2))
    selecting = bounds.crowd_rounding(torch.float32, 0.0, 2 * gamma * (5 + 2 * 3), winner, 3, 1.0)
    live = (3 + 2 + 4) / 4 * reach**2
    held_back = bounds.field_crowd(mask, 9.0, 3, 2)
    weighing = bounds.crowd_rounding(torch.float32, live, live + 6 / 2 * reach**2 + 2 * mask, held_back, 3, 1.0)
    adding = (8 * eta * n + 2 * n * (4 * eta * n + 2 * eta) + 1 + 4 * eta * n) * U32
    wanted = 2 * eta * n * (selecting + weighing) + adding
    found = bounds.plackett_luce_rounding(torch.float32, eta, gamma, mask, 1.0, 2.0, 5.0, 9.0, 3, 3, 2, reach, 1.0)
    assert found == pytest.approx(wanted, rel=1e-12, abs=0)
    assert min(2 * eta * n * selecting, 2 * eta * n * weighing, adding) > 0.03 * wanted


def test_what_filtered_blocks_lose() -> None:
    """N = 3, n = 7 tokens, d_x = 4, d_y = 2; L = 40, F = 30, a crowd of 1/10."""
    eta, radius = 0.5, 2.0
    delta, ell = (8 * 4 + 64) * 40 * U32, ((8 + 4 + 12) * 30 + 4) * U32
    means = 2 * radius * (0.1 * math.expm1(delta) + math.tanh(ell / 2)) + (4 * 7 + 18) * U32 * radius
    adding = (2 * 2 + 2 * 6) * U32 * 4 * eta * 2 * radius
    wanted = 1.01 * (2 * eta * 2 * means + adding)
    found = bounds.filtered_rounding(torch.float32, eta, 0.1, 40.0, 30.0, 7, 3, 4, 2, radius)
    assert found == pytest.approx(wanted, rel=1e-12, abs=0)
    parts = (0.1 * math.expm1(delta), math.tanh(ell / 2), 23 * U32, adding / (4 * eta * 2 * radius))
    assert min(parts) > 0.01 * sum(parts)


def test_what_the_sink_pairs_lose() -> None:
    """One pair, ε = 1/2, λ = 10, n = 6, d = 4: T = 2√e, sinh(1/2)/(1/2)."""
    units = 10 + 2 * 6 + 2 + 12 + 9 * 0.5
    wanted = 1.01 * U64 * (2 * math.sqrt(math.e) * units + 14 * 2 * math.sinh(0.5))
    assert bounds.sink_rounding(torch.float64, 0.5, 10.0, 6, 4) == pytest.approx(wanted, rel=1e-12, abs=0)


def test_what_the_naive_causal_blocks_lose() -> None:
    """Flags off by φ = (8·5 + 7)ε₀, in units of ε₀: logits larger by 48. Three tokens, two rounds."""
    eta, n, gamma, mask, reach = 0.5, 2, 2.0, 12.0, 2.0
    selecting = bounds.attention_rounding(torch.float64, 2 * gamma * (5 + 2 * 3) * 48, 3, 1.0)
    weighing = bounds.attention_rounding(torch.float64, (3 + 2 + 6) * (reach**2 + mask) * 48, 3, 1.0)
    adding = (8 * eta * n + 2 * n * (4 * eta * n + 2 * eta)) * U64
    wanted = 2 * (2 * eta * n * (selecting + weighing) + adding)
    found = bounds.causal_naive_rounding(torch.float64, eta, gamma, mask, 1.0, 2.0, 5.0, 3, n, 3, 2, reach, 1.0)
    assert found == pytest.approx(wanted, rel=1e-12, abs=0)


def test_norms_beyond_the_radius_count() -> None:
    assert bounds.radius_excess(torch.float64, 3) == 14 * U64
    assert bounds.radius_rounding(torch.float64, 3, 5.0) == pytest.approx(2 * 5 * 14 * U64, abs=0)
    assert bounds.radius_rounding(torch.float64, 3, 5.0, 2.0) == pytest.approx(2 * 5 * 14 * U64 * 3, abs=0)
    assert bounds.gap_shortfall(torch.float64, 7.0) == 28 * U64


def first_false(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Where a condition that holds at low stops to hold."""
    assert holds(low) and not holds(high)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high


def test_flags_are_exact_down_to_log_5() -> None:
    """Where rounding is next to nothing: Δξ/(1−ξ) ≤ Δ/4 exactly if ξ ≤ 1/5."""
    edge = first_false(lambda g: bounds.flags_are_exact(torch.float64, g, 1.0, 2.0, 2.0, 3), 3.0, 1.0)
    assert edge == pytest.approx(math.log(5), rel=1e-12, abs=0)
    assert edge > math.log(5)


def test_flags_are_exact_up_to_the_first_rewards_whose_rounding_is_too_large() -> None:
    """γΔ = 7/4, N = 2, R = Δ = 1, rewards up to L: top_deviation + ρ + φ/2 + 4ε₀L is 1/4 at the edge."""
    edge = first_false(lambda L: bounds.flags_are_exact(torch.float32, 1.75, 1.0, 1.0, L, 2), 1.0, 1e6)
    xi, q = math.exp(-1.75), bounds.winner_crowd(1.75, 1.0, 1.0, 2, 1)
    rho = bounds.crowd_rounding(torch.float32, 0.0, 3.5 * (edge + 4), q, 2, edge)
    assert xi / (1 - xi) + rho + (8 * edge + 7) * U32 / 2 + 4 * U32 * edge == pytest.approx(0.25, rel=1e-9, abs=0)


@pytest.mark.parametrize("spread", [1.0, 30.0])
def test_cold_flags_are_exact_until_a_raised_one_may_fall(spread: float) -> None:
    """γΔ = 12: ρ ≤ Δ/16 decides for few responses and (B + 1)φ ≤ 1/4 for a wide range."""
    edge = first_false(lambda L: bounds.flags_are_exact(torch.float32, 12.0, 1.0, spread, L, 2), 1.0, 1e6)
    rho = bounds.crowd_rounding(
        torch.float32, 0.0, 24 * (edge + 2 * spread + 2), bounds.winner_crowd(12.0, 1.0, spread, 2, 1), 2, edge
    )
    held = (2 + 2 * spread + 1) * (8 * edge + 7) * U32
    assert (rho if spread == 1 else held) == pytest.approx(1 / 16 if spread == 1 else 1 / 4, rel=1e-9, abs=0)
    assert rho <= (1 + 1e-9) / 16 and held <= (1 + 1e-9) / 4


def test_flags_among_strangers_are_exact_up_to_their_limits() -> None:
    def exact(gamma_2: float, crowd: float, others: float, spread: float, reward: float) -> bool:
        return bounds.flags_are_exact_among(
            torch.float32, gamma_2, crowd, others, 10.0, 1.0, spread, reward, tokens=5, dim_x=4
        )

    def off(crowd: float, reward: float) -> float:
        return reward * (2 * crowd * math.expm1(96 * 10 * U32) + 16 * U32)

    x = first_false(lambda x: exact(2.0, 0.1, x, 3.0, 3.0), 0.0, 1.0)
    top = math.exp(-2) / (1 - math.exp(-2))
    rest = off(0.1, 3.0) + 31 * U32 / 2 + 12 * U32
    assert top + 3 * x / (1 + x) + rest == pytest.approx(0.25, rel=1e-9, abs=0)
    reward = first_false(lambda r: exact(2.0, 0.0, 0.0, 1.0, r), 1.0, 1e6)
    assert top + off(0.0, reward) + (8 * reward + 7) * U32 / 2 + 4 * U32 * reward == pytest.approx(
        0.25, rel=1e-9, abs=0
    )
    reward = first_false(lambda r: exact(40.0, 0.1, 0.0, 1.0, r), 1.0, 1e6)
    assert off(0.1, reward) == pytest.approx(1 / 16, rel=1e-9, abs=0)
    reward = first_false(lambda r: exact(40.0, 0.0, 0.0, 30.0, r), 1.0, 1e6)
    assert 63 * (8 * reward + 7) * U32 == pytest.approx(0.25, rel=1e-9, abs=0)
