"""What every construction with a tolerance promises: the least one, larger ones, the terms of the promise, refusals."""

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

import icalign
from icalign import bounds
from icalign.constructions import (
    Causal,
    CausalConstantDepth,
    ConstantDepth,
    MultiQuery,
    PlackettLuce,
    Selection,
    TwoLayers,
    TwoLayersMultiQuery,
)
from icalign.constructions.base import TaskClass, least_tolerance
from icalign.constructions.gradient import GradientStep

pytestmark = pytest.mark.usefixtures("unchecked")  # a least tolerance takes hundreds of small sums

W = icalign.sample_task(seed=3).W
Maker = Callable[..., Any]

MADE: dict[str, tuple[Maker, dict[str, Any]]] = {
    "step": (PlackettLuce, {}),
    "steps": (PlackettLuce, {"steps": 3, "eta": 0.01, "radius": 1.0}),
    "queries": (MultiQuery, {}),
    "queries printed": (MultiQuery, {"cross_terms": False}),
    "causal": (Causal, {}),
    "causal own": (Causal, {"queries": 3}),
    "causal joint": (Causal, {"queries": 3, "target": "joint"}),
    "constant depth": (ConstantDepth, {}),
    "two layers": (TwoLayers, {}),
    "two layers queries": (TwoLayersMultiQuery, {}),
    "selection": (Selection, {}),
}
ONE_STEP = [name for name in MADE if name not in ("steps", "selection")]


def make(name: str, dtype: torch.dtype = torch.float64, **changes: Any) -> Any:
    """A construction for three responses with gaps of 1/2."""
    kind, extra = MADE[name]
    given: dict[str, Any] = {"responses": 3, "min_gap": 0.5, "dtype": dtype} | extra
    if kind is not Selection:
        given["W"] = W.to(dtype)
    return kind(**given | changes)


def least(words: str) -> float:
    found = re.search(r"promises no less than (\S+) for", words)
    assert found, words
    return float(found[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", MADE)
def test_the_least_tolerance_is_kept_and_nothing_smaller_is_promised(name: str, dtype: torch.dtype) -> None:
    with pytest.raises(ValueError, match="promises no less than") as refusal:
        make(name, dtype, tolerance=1e-18)
    tolerance = least(str(refusal.value))
    assert make(name, dtype, tolerance=tolerance).error_bound <= tolerance
    with pytest.raises(ValueError, match="promises no less than"):
        make(name, dtype, tolerance=0.98 * tolerance)


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("factor", [1.0, 1.5, 30.0, 1e4, 1e100, 1e290])
def test_every_larger_tolerance_is_promised(name: str, factor: float) -> None:
    """In float32, where far rewards leave little room for warm temperatures."""
    kind: dict[str, Any] = {"reward_range": (100.0, 102.0), "min_gap": 1.0}
    with pytest.raises(ValueError, match="promises no less than") as refusal:
        make(name, torch.float32, tolerance=1e-18, **kind)
    tolerance = factor * least(str(refusal.value))
    assert make(name, torch.float32, tolerance=tolerance, **kind).error_bound <= tolerance


@pytest.mark.parametrize("tolerance", [1e300, 1000.0, 10.0, 2.0, 1.0, 0.1, 0.01])
def test_a_tolerance_that_warm_temperatures_miss_is_met_by_colder_ones(tolerance: float) -> None:
    """At the warmest temperature the crowd is so heavy that r⁺, rounded at rewards of 1000, might miss Δ/4."""
    kind: dict[str, Any] = {"responses": 3, "min_gap": 1.0, "reward_range": (1000.0, 1002.0), "dtype": torch.float32}
    construction = PlackettLuce(W=W.float(), tolerance=tolerance, **kind)
    assert construction.error_bound <= min(tolerance, 0.011)
    warm = {"gamma": math.log(13 * 2 / 5), "C": construction.temperatures["C"]}  # what half of U asks for
    assert PlackettLuce(W=W.float(), temperatures=warm, **kind).error_bound == math.inf
    with pytest.raises(ValueError, match=r"promises no less than 0\.000") as refusal:
        PlackettLuce(W=W.float(), tolerance=1e-5, **kind)
    assert PlackettLuce(W=W.float(), tolerance=least(str(refusal.value)), **kind).error_bound <= 3e-4


@pytest.mark.parametrize("name", ONE_STEP)
@pytest.mark.parametrize("eta", [1e-320, 1e-200, 1e-25, 1e300])
def test_a_step_size_out_of_the_way_still_has_a_least_tolerance(name: str, eta: float) -> None:
    """With a tiny one the rounding of y is what remains."""
    with pytest.raises(ValueError, match="promises no less than") as refusal:
        make(name, eta=eta, tolerance=1e-20)
    assert eta == 1e300 or 1e-16 < least(str(refusal.value)) < 1e-14
    assert make(name, eta=eta, tolerance=1.01 * least(str(refusal.value))).error_bound < math.inf


def test_steps_that_grow_have_a_least_tolerance_as_well() -> None:
    with pytest.raises(ValueError, match="promises no less than") as refusal:
        PlackettLuce(W=W, radius=1.0, responses=5, eta=1.0, steps=30, tolerance=1e-6)
    tolerance = least(str(refusal.value))
    assert tolerance > 1e20
    for larger in (tolerance, 1e300):
        assert PlackettLuce(W=W, radius=1.0, responses=5, eta=1.0, steps=30, tolerance=larger).error_bound <= larger


def test_the_least_tolerance_lies_below_the_first_that_is_attained() -> None:
    assert least_tolerance(lambda t: 0.25 <= t <= 4.0, 1e-9, 1e6) == pytest.approx(0.25, rel=0.01)
    assert least_tolerance(lambda t: t >= 7.0, 1e-300, 1e308) == pytest.approx(7.0, rel=0.01)
    assert least_tolerance(lambda _: False, 1e-300, 1e308) == math.inf


# The terms of a promise, put together once more from their formulas


def sums_up(construction: GradientStep, exact: float, rounding: float) -> None:
    assert construction._exact_error() == pytest.approx(exact, rel=1e-12, abs=0)
    assert construction._rounding() == pytest.approx(rounding, rel=1e-12, abs=0)
    assert construction.error_bound == pytest.approx(exact + rounding, rel=1e-12, abs=0)


def of_norms(construction: GradientStep, reach: float = 0.0) -> float:
    """ΔW x has ‖x‖², known to 2ν with ν = (d_x + 4)·2ε₀; and norms of y are known to (d_y + 4)·2ε₀."""
    unit, U = bounds.unit_roundoff(construction.dtype), construction.longest
    nu = 2 * (construction.task_class.dim_x + 4) * unit
    delta = 2 * (construction.task_class.dim_y + 4) * unit
    return U * 2 * nu * (1 + nu) + 2 * U * delta * (1 + reach**2 / 2)


def test_the_promise_of_several_steps_has_all_its_terms() -> None:
    """A class in which every term is seen: few steps, rewards far out, a warm head."""
    g, c, T, eta, N, D = 2.5, 12.0, 3, 0.05, 3, 2.0
    kind: dict[str, Any] = {"responses": N, "min_gap": 1.0, "reward_range": (100.0, 102.0), "radius": 1.0}
    w, dtype = W.float(), torch.float32
    made = PlackettLuce(W=w, eta=eta, steps=T, temperatures={"gamma": g, "C": c}, dtype=dtype, **kind)
    U, flag = 2 * eta * (N - 1) * D, (8 * 102 + 7) * 2**-24
    spread = bounds.score_spread(made.norm + T * U, 1.0)
    once = bounds.plackett_luce_error(eta, g, c * (1 - flag), 1.0, 2 - 6 * flag, spread, N, D)
    reach = float(torch.linalg.matrix_norm(w.double().abs(), 2)) + 1 + T * U
    rounding = bounds.plackett_luce_rounding(
        dtype, eta, g, c, 1.0, 2.0, 102.0, spread, N, w.shape[1] + 1, w.shape[0], reach, 1.0
    )
    commit = 4 * U * 2**-24
    nu, delta = 16 * 2**-24, 14 * 2**-24
    other = U * 2 * nu * (1 + nu) + 2 * U * delta
    growth = 1 + max(1, eta * 8 - 1) + max(1, eta * 8 - 1) ** 2  # Λ = (N−1)D² = 8
    assert rounding > 2 * 0.05 * 2 * 2**-24
    assert made.error_bound < math.inf
    # norms are rounded upwards, by 10⁻¹⁵ or so of themselves
    assert made._exact_error() == pytest.approx(growth * once, rel=1e-12, abs=0)
    assert made._rounding() == pytest.approx(growth * (rounding + commit + other), rel=1e-12, abs=0)
    assert made.error_bound == made._exact_error() + made._rounding()


@pytest.mark.parametrize("cross_terms", [True, False])
def test_the_promise_for_several_queries_has_all_its_terms(cross_terms: bool) -> None:
    M, N, eta, rho = 2, 3, 0.1, -0.5
    t = {"gamma_1": 30.0, "gamma_2": 6.0, "gamma_beta": 60.0, "C": 40.0}
    t |= {"epsilon": 1e-3, "lambda": 12.0} if cross_terms else {}
    made = MultiQuery(
        W=W,
        eta=eta,
        queries=M,
        responses=N,
        overlap=rho,
        min_gap=1.0,
        radius=1.0,
        temperatures=t,
        cross_terms=cross_terms,
    )
    U, D, unit, sinks = 2 * eta * (N - 1) * 2, 2.0, 2**-53, int(cross_terms)
    overlap, spread = (0.0 if cross_terms else rho), bounds.score_spread(made.norm, 1.0)
    flag, tokens, reach = (8 * 2 + 7) * unit, M * N + sinks, made.reach
    own = bounds.plackett_luce_error(eta, 6.0, 40.0 * (1 - flag), 1.0, 2 - 6 * flag, spread, N, D)
    own += bounds.stranger_error(eta, 30.0, 6.0, 60.0, 1.0, 2.0, spread, overlap, N, M, D, sinks)
    blocks = (1, 2)
    crowd = max(bounds.winner_crowd(6.0, 1.0, 2.0, N, k) for k in blocks)
    crowd += max(bounds.strangers(30.0, 6.0, 1.0, 2.0, overlap, N, M, k, sinks) for k in blocks)
    crowd += max(bounds.field_strangers(60.0, spread, overlap, N, M, k, sinks) for k in blocks)
    logits = (30 + 6 * (2 + 2 * 3), 60 + reach**2 + 40)
    rounding = bounds.filtered_rounding(torch.float64, eta, crowd, max(logits), logits[1], tokens, N, 4, 3, 1.0)
    norms = of_norms(made, reach)
    nu = 16 * unit
    rounding += norms - U * 2 * nu * (1 + nu)
    if not cross_terms:
        sums_up(made, own, rounding + U * 2 * nu * (1 + nu) + (1 + U) * unit)
        return
    sink = bounds.sink_error(1e-3, 12.0, M * N, 1)
    pair = bounds.sink_rounding(torch.float64, 1e-3, 12.0, tokens, 4, 1)
    last = M * rounding * (1 + sink) + M * (U + own + rounding) * pair
    sums_up(made, M * own + M * (U + own) * sink, last + (1 + M * U * (1 + 4 * nu / unit)) * unit)


def test_the_promise_of_the_masked_step_has_all_its_terms() -> None:
    N, eta, dtype = 4, 0.1, torch.float32
    t = {"gamma_1": 30.0, "c": 150.0, "c_field": 60.0}
    made = Causal(
        W=W.float(),
        eta=eta,
        responses=N,
        min_gap=0.5,
        reward_range=(-1.0, 0.5),
        radius=1.0,
        temperatures=t,
        dtype=dtype,
    )
    g, h = min(30 * 0.5, (150 - 30 * 1.5) / 2) - 1, (60 - bounds.score_spread(made.norm, 1.0)) / 2
    rounding = bounds.causal_rounding(dtype, eta, g, 30 * 1.0 + 2 * 150, h, 60.0, N, 4, 3, made.reach, 1.0)
    assert made.error_bound < math.inf
    sums_up(made, bounds.causal_error(2 * eta * 3 * 2, g, h, 60.0, N), rounding + of_norms(made))


def test_the_promise_of_the_three_layers_has_all_its_terms() -> None:
    N, eta, dtype = 4, 0.1, torch.float32
    kind: dict[str, Any] = {"responses": N, "min_gap": 0.5, "reward_range": (-1.0, 0.5), "radius": 1.0}
    made = ConstantDepth(W=W.float(), eta=eta, temperatures={"C": 20.0}, dtype=dtype, **kind)
    spread, mask = bounds.score_spread(made.norm, 1.0), 20.0 * (1 - (36 * 1.0 / 0.5 + 8) * 2**-24)
    rounding = bounds.constant_depth_rounding(
        dtype, eta, 20.0, (36 * 1.0 / 0.5 + 8) * 2**-24, spread, N, 4, 3, made.reach, 1.0
    )
    assert made.error_bound < math.inf
    sums_up(made, bounds.constant_depth_error(eta, mask, spread, N, 2.0), rounding + of_norms(made))


def of_a_crowd(L: float, crowd_L: float, q: float, tokens: int, radius: float, unit: float) -> float:
    """The docstring of crowd_rounding, from attention_rounding on."""
    kappa, larger = (8 * L + 4) * unit, (8 * crowd_L + 4) * unit
    weight = q * math.exp(kappa)
    moved = 2 * radius * weight / (1 + weight) * (math.exp(2 * larger) - 1)
    return bounds.attention_rounding(torch.float32, L, tokens, radius) + moved


@pytest.mark.parametrize(("L", "gap"), [(1.0, 0.5), (30.0, 0.1), (0.7, 3.0)])
def test_the_rounding_of_a_comparison_has_all_its_terms(L: float, gap: float) -> None:
    """In units of ε₀, with a = L/Δ, from the docstrings."""
    a = L / gap
    products, sums, bias = 6 * a, 6 * a, 6 * a + 2.5
    units = 2 * (products + sums + bias) + 1 + 2
    for dtype, unit in ((torch.float32, 2**-24), (torch.float16, 2**-11)):
        assert bounds.comparison_rounding(dtype, L, gap) == pytest.approx(units * unit, rel=1e-12)


@pytest.mark.parametrize(("dtype", "unit"), [(torch.float32, 2**-24), (torch.float16, 2**-11), (torch.bfloat16, 2**-8)])
def test_comparisons_are_exact_up_to_where_their_terms_add_up_to_a_half(dtype: torch.dtype, unit: float) -> None:
    slot, head = 2 + 3 + 1 + 2, 10
    in_z = 2 * (slot + head) + 3 * 6 + 6 + 2  # L/Δ: slots and head, weight, products and sum, bias, products again
    short = 2 * 4
    ratio = (0.5 / unit - (3 + 1)) / (in_z + short)
    assert ratio > 1
    assert bounds.comparison_is_exact(dtype, ratio * (1 - 1e-9), 1.0)
    assert not bounds.comparison_is_exact(dtype, ratio * (1 + 1e-9), 1.0)


def test_the_rounding_of_three_layers_has_all_its_terms() -> None:
    unit, (eta, C, phi, R_Z, N, d_x, d_y, reach, radius) = 2**-24, (0.2, 9.0, 0.01, 4.0, 5, 4, 3, 1.7, 1.1)
    live = (d_x + d_y + 5) / 4 * reach**2
    masked = live + (d_y + 4) / 2 * reach**2 + 2 * (d_y + 4) / 8 * C
    q = (N - 1) * math.exp(R_Z - C * (1 - phi))
    mean = of_a_crowd(live, masked, q, N, radius, unit)
    V = 4 * eta * N * radius
    total = 2 * eta * N * mean + (3 * V + (N + 2) * V + radius + V + V + radius) * unit
    given = (C, phi, R_Z, N, d_x, d_y, reach, radius)
    assert bounds.own_mean_rounding(torch.float32, *given) == pytest.approx(mean, rel=1e-12)
    assert bounds.constant_depth_rounding(torch.float32, eta, *given) == pytest.approx(total, rel=1e-12)


def test_the_rounding_of_heads_in_place_of_depth_has_all_its_terms() -> None:
    unit, (eta, h, c, N, d_x, d_y, reach, radius) = 2**-24, (0.2, 1.5, 9.0, 5, 4, 3, 1.7, 1.1)
    gathering = bounds.attention_rounding(torch.float32, math.log(N), N + 1, radius)
    live = 8 * (d_x + d_y + 6) * reach**2 / 8
    q_seen, q_unseen = math.exp(-h) + (N - 1) * math.exp(-2 * h), (N - 1) * math.exp(-h)
    heads = [
        of_a_crowd(live, live + 4 * c, q_seen, N + 1, radius, unit),
        of_a_crowd(0.0, live + 4 * c, q_unseen, N + 1, radius, unit),
    ]
    adding = (4 * eta * N**2 + 12 * eta * N + 4 * eta + 1) * radius * unit
    total = 2 * eta * ((N + 1) * gathering + N * max(heads)) + adding
    found = bounds.causal_depth_rounding(torch.float32, eta, h, c, N, d_x, d_y, reach, radius)
    assert found == pytest.approx(total, rel=1e-12)


def test_the_promise_of_heads_in_place_of_depth_has_all_its_terms() -> None:
    N, eta, dtype, unit, c = 4, 0.1, torch.float32, 2**-24, 30.0
    kind: dict[str, Any] = {"responses": N, "min_gap": 0.5, "reward_range": (-1.0, 0.5), "radius": 1.0}
    made = CausalConstantDepth(W=W.float(), eta=eta, temperatures={"c": c}, dtype=dtype, **kind)
    weight = 2 * math.expm1((8 * math.log(N) + 4) * unit) + (N + 2 + 3) * unit
    slot = 3 * (2 * 1.0 + 1.5 + 0.5) * unit + (1.5 + 0.5) * (weight + unit)
    assert bounds.slot_rounding(dtype, 0.5, 1.5, 1.0, N) == pytest.approx(slot, rel=1e-9)
    phi = (8 * (1.5 + 0.5 + slot) / 0.5 + 7) * unit  # flag_rounding
    h = (c - bounds.score_spread(made.norm, 1.0)) / 2 - c * phi
    rounding = bounds.causal_depth_rounding(dtype, eta, h, c, N, 4, 3, made.reach, 1.0)
    assert made.error_bound < math.inf
    sums_up(made, bounds.causal_depth_error(eta, h, N, 2.0), rounding + of_norms(made))


def short_of_one(points: int, gap: float, largest_reward: float, unit: float) -> float:
    """φ = 42(K+1)(K + 3 + 3·max|r|/Δ)ε₀, from the docstring of grid_rounding."""
    return 42 * (points + 1) * (points + 3 + 3 * largest_reward / gap) * unit


def test_the_promise_of_the_two_layers_has_all_its_terms() -> None:
    N, eta, dtype, unit = 4, 0.1, torch.float32, 2**-24
    kind: dict[str, Any] = {"responses": N, "min_gap": 0.5, "reward_range": (-1.0, 0.5), "radius": 1.0}
    made = TwoLayers(W=W.float(), eta=eta, temperatures={"C": 20.0}, dtype=dtype, **kind)
    K, spread = 9, bounds.score_spread(made.norm, 1.0)
    mask = 20.0 * (1 - short_of_one(K, 0.5, 1.0, unit))
    rounding = bounds.two_layers_rounding(dtype, eta, 20.0, 0.5, 1.0, K, spread, N, 4, 3, made.reach, 1.0)
    assert made.points == K and made.error_bound < math.inf
    sums_up(made, bounds.constant_depth_error(eta, mask, spread, N, 2.0), rounding + of_norms(made))


def test_the_promise_of_two_layers_for_several_queries_has_all_its_terms() -> None:
    M, N, eta, rho, D, unit = 2, 3, 0.1, 0.5, 2.0, 2**-53
    t = {"gamma_beta": 60.0, "C": 40.0, "epsilon": 1e-3, "lambda": 12.0}
    kind: dict[str, Any] = {"queries": M, "responses": N, "overlap": rho, "min_gap": 1.0, "radius": 1.0}
    made = TwoLayersMultiQuery(W=W, eta=eta, temperatures=t, **kind)
    K, U, tokens, spread = 6, 2 * eta * (N - 1) * D, M * N + 1, bounds.score_spread(made.norm, 1.0)
    phi = short_of_one(K, 1.0, 2.0, unit)
    strangers = [((M - 1) * N + 1) / (N - k + 1) * math.exp(spread + 40 * phi - 60 * (1 - rho)) for k in (1, 2, 3)]
    own = bounds.constant_depth_error(eta, 40 * (1 - phi), spread, N, D)
    own += 2 * eta * D * sum(x / (1 + x) for x in strangers)
    crowd = (N - 1) * math.exp(spread - 40 * (1 - phi)) + strangers[-1]
    graze = 1000 * ((K + 3 + 3 * 2.0) * unit) ** 2
    one = bounds.filtered_tails_rounding(
        torch.float64, eta, crowd, 60 + made.reach**2, 40.0, graze, K, tokens, N, 4, 3, 1.0
    )
    nu = 16 * unit
    one += of_norms(made, made.reach) - U * 2 * nu * (1 + nu)
    sink = bounds.sink_error(1e-3, 12.0, M * N, 1)
    pair = bounds.sink_rounding(torch.float64, 1e-3, 12.0, tokens, 4, 1)
    last = M * one * (1 + sink) + M * (U + own + one) * pair
    assert made.points == K and made.error_bound < math.inf
    sums_up(made, M * own + M * (U + own) * sink, last + (1 + M * U * (1 + 4 * nu / unit)) * unit)


def test_the_roundings_of_the_two_layers_are_those_of_their_docstrings() -> None:
    """Each formula once more, at one point where every term is seen."""
    dtype, unit, exactly = torch.float32, 2**-24, {"rel": 1e-12, "abs": 0}
    K, gap, largest, C, eta, N, dim_x, dim_y, reach, radius, spread = 9, 0.5, 1.0, 20.0, 0.1, 4, 4, 3, 5.0, 1.5, 12.0
    a = K + 3 + 3 * largest / gap
    phi, graze = 42 * (K + 1) * a * unit, 1000 * a**2 * unit**2
    assert bounds.grid_rounding(dtype, gap, largest, K) == pytest.approx(phi, **exactly)
    assert bounds.grid_graze(dtype, gap, largest, K) == pytest.approx(graze, **exactly)

    live = (dim_x + dim_y + 4) / 4 * reach**2 + C * graze / unit
    masked = live + (dim_y + 4) / 2 * reach**2 + (K + dim_y + 8) / 4 * (C + reach**2)
    crowd = (N - 1) * math.exp(spread - C * (1 - phi))
    A = bounds.crowd_rounding(dtype, live, masked, crowd, N, radius)
    U = 2 * eta * (N - 1) * 2 * radius
    both = 2 * eta * N * A + 4 * eta * N * (N + 6) * radius * unit
    found = bounds.two_layers_rounding(dtype, eta, C, gap, largest, K, spread, N, dim_x, dim_y, reach, radius)
    assert found == pytest.approx(1.01 * both + (radius + U) * unit, **exactly)

    F, q, n = 70.0, 0.02, 13
    ell = ((2 * dim_x + 2 * dim_y + 12) * F + 4) * unit + C * graze
    delta = ((2 * dim_x + 2 * dim_y + 2 * K + 20) * (F + C) + 4) * unit
    means = 2 * radius * (q * (math.exp(delta) - 1) + math.tanh(ell / 2)) + (4 * n + 26) * unit * radius
    found = bounds.filtered_tails_rounding(dtype, eta, q, F, C, graze, K, n, N, dim_x, dim_y, radius)
    assert found == pytest.approx(1.01 * 2 * eta * N * means, **exactly)


def test_the_reach_is_that_of_the_absolute_values() -> None:
    turn = torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64)  # ‖W‖ = √2, ‖|W|‖ = 2
    made = PlackettLuce(W=turn, responses=2, tolerance=1e-3)
    assert made.norm == pytest.approx(math.sqrt(2), rel=1e-12, abs=0) and made.norm >= math.sqrt(2)
    assert made.reach == pytest.approx(2 + 3, rel=1e-12, abs=0) and made.reach >= 5


# Refusals


@pytest.mark.parametrize("name", ONE_STEP)
@pytest.mark.parametrize(
    "changes",
    [{"W": W * 1e160}, {"W": W * 1e200}, {"W": W * 1e307}, {"radius": 1e160}],
    ids=["W 1e160", "W 1e200", "W 1e307", "radius"],
)
def test_what_overflows_is_refused(name: str, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="promises nothing for this class"):
        make(name, tolerance=1e-3, **changes)


@pytest.mark.parametrize("gamma", [0.0, 1e-18, 1e-300])
@pytest.mark.parametrize("steps", [1, 2])
def test_no_temperature_is_no_promise(gamma: float, steps: int) -> None:
    made = PlackettLuce(W=W, temperatures={"gamma": gamma, "C": 0.0}, steps=steps)
    assert made.error_bound == math.inf
    assert made(icalign.sample_task(seed=3)).isfinite().all()


@pytest.mark.parametrize(
    ("queries", "dim_x", "least"), [(2, 4, -1.0), (3, 4, -0.5), (5, 4, -0.25), (6, 4, 0.0), (3, 1, 0.0), (8, 4, 0.0)]
)
def test_an_overlap_that_no_queries_have_is_refused(queries: int, dim_x: int, least: float) -> None:
    """The corners of a simplex have −1/(M−1); more than d_x + 1 vectors cannot all be at obtuse angles."""
    sizes = {"dim_x": dim_x, "dim_y": 3, "responses": 2, "queries": queries}
    kind: dict[str, Any] = sizes | {"min_gap": 0.1, "reward_range": (0.0, 1.0), "radius": 1.0}
    TaskClass(**kind, overlap=least * (1 + 1e-16))
    if least > -1:
        with pytest.raises(ValueError, match=rf"overlap: .*, expected at least {least:.6g}.*the class is empty"):
            TaskClass(**kind, overlap=least - 1e-9)


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("queries", {"overlap": None}, "overlap: None, expected a real number"),
        ("causal own", {"overlap": None}, "overlap: None, expected a real number"),
        ("queries", {"cross_terms": None}, "cross_terms: None, expected True or False"),
        ("queries", {"cross_terms": "no"}, "cross_terms: 'no', expected True or False"),
        ("queries", {"query_ids": "no"}, "query_ids: 'no', expected True or False"),
        ("queries printed", {"pairs": 3}, "pairs: 3 with cross_terms=False, expected None"),
        ("causal own", {"pairs": 3}, "pairs: 3 with target='own', expected None"),
        ("queries", {"overlap": -0.9}, "overlap: -0.9, expected at least -0.5"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(name: str, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make(name, tolerance=1e-3, **changes)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-320])
def test_an_epsilon_too_small_for_the_weights_is_named(epsilon: float) -> None:
    t = {"gamma_1": 500.0, "gamma_2": 60.0, "gamma_beta": 500.0, "C": 100.0, "epsilon": epsilon, "lambda": 30.0}
    with pytest.raises(ValueError, match=r"temperatures: epsilon = .* make e\^λ/\(2ε\) = inf, expected at most"):
        MultiQuery(W=W, temperatures=t)
    causal = {"gamma_1": 30.0, "c": 150.0, "c_field": 60.0, "gamma_q": 1e3, "gamma_beta": 1e3, "gamma_p": 1e3}
    causal |= {"kappa": 2.0, "epsilon": epsilon, "lambda": 30.0}
    with pytest.raises(ValueError, match=r"temperatures: epsilon = "):
        Causal(W=W, queries=2, target="joint", temperatures=causal)
    made = MultiQuery(W=W, temperatures=t | {"epsilon": 800.0})
    assert made.error_bound == math.inf


def test_masks_that_add_up_beyond_the_dtype_are_refused() -> None:
    """An entry of the mask stays below the largest number, that of N + 1 rounds does not."""
    for t in ({"gamma_1": 1.0, "c": 5e37, "c_field": 1.0}, {"gamma_1": 1.0, "c": 1.0, "c_field": 5e37}):
        with pytest.raises(ValueError, match=r"make logits of .*\(N\+1\)c"):
            Causal(W=W.float(), temperatures=t, dtype=torch.float32)


# Values that overflow before a weight shrinks them


HALF: dict[str, Any] = {"W": torch.zeros(1, 1).half(), "dtype": torch.float16, "radius": 0.25}
SINGLE: dict[str, Any] = {"W": torch.zeros(1, 1), "dtype": torch.float32}
FAR: dict[str, Any] = {"min_gap": 1e37, "reward_range": (0.0, 8e37)}
AT_C: dict[str, Any] = {"temperatures": {"C": 10.0}}
AT_c: dict[str, Any] = {"temperatures": {"c": 10.0}}
AT_GAMMA: dict[str, Any] = {"temperatures": {"gamma": 100.0, "C": 60.0}}


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        (ConstantDepth, HALF | AT_C | {"responses": 4, "min_gap": 6600.0, "reward_range": (0.0, 2e4)}, "N·R = 80000"),
        (ConstantDepth, HALF | AT_C | {"responses": 8, "min_gap": 1273.0, "reward_range": (0.0, 9e3)}, "N·R = 72000"),
        (
            CausalConstantDepth,
            HALF | AT_c | {"responses": 2, "min_gap": 2e4, "reward_range": (0.0, 2e4)},
            "2max|r| + R",
        ),
        (
            CausalConstantDepth,
            HALF | AT_c | {"responses": 4, "min_gap": 6600.0, "reward_range": (0.0, 2e4)},
            "2max|r| + R + Δ",
        ),
        (CausalConstantDepth, HALF | AT_c | {"responses": 8, "min_gap": 900.0, "reward_range": (0.0, 7e3)}, "(N+1)(R"),
        (ConstantDepth, SINGLE | AT_C | FAR, "N·R = 6.4e+38"),
        (CausalConstantDepth, SINGLE | AT_c | FAR, "2max|r| + R + Δ"),
        (ConstantDepth, SINGLE | AT_C | {"eta": 1e37}, "(4ηN + 1)·radius = 9.6e+38"),
        (CausalConstantDepth, SINGLE | AT_c | {"eta": 1e37}, "(4ηN + 1)·radius = 9.6e+38"),
        (PlackettLuce, SINGLE | AT_GAMMA | {"eta": 1e38}, "(4ηN + 1)·radius = 9.6e+39"),
        (TwoLayers, SINGLE | AT_C | {"eta": 1e37}, "(4ηN + 1)·radius"),
        (Causal, SINGLE | {"eta": 1e37, "tolerance": 1e37}, "(4ηN + 1)·radius"),
        (MultiQuery, SINGLE | {"eta": 1e36, "queries": 9, "tolerance": 1e37}, "(4ηMN + 1)·radius"),
        (TwoLayersMultiQuery, SINGLE | {"eta": 1e36, "queries": 9, "tolerance": 1e37}, "(4ηMN + 1)·radius"),
        (PlackettLuce, {"W": W, "eta": 1e307, "radius": 0.1, "responses": 2, "steps": 99} | AT_GAMMA, "T·U + radius"),
    ],
)
def test_values_beyond_the_dtype_are_refused(kind: Maker, given: dict[str, Any], words: str) -> None:
    """They gave NaN where a finite error was promised."""
    with pytest.raises(
        ValueError, match=r"class: with eta = .* it makes values of " + re.escape(words) + ".*, expected at most"
    ):
        kind(**given)


def test_a_pair_of_heads_whose_values_overflow_is_refused() -> None:
    """e^λ/(2ε) fits, and so does u, but not their product."""
    own = {"gamma_1": 200.0, "gamma_2": 60.0, "gamma_beta": 60.0, "C": 60.0}
    given: dict[str, Any] = SINGLE | {"queries": 2, "eta": 1e30, "temperatures": own | {"epsilon": 0.1, "lambda": 20.0}}
    with pytest.raises(ValueError, match=r"epsilon = 0.1, lambda = 20 make values of .*‖v‖ = .*, expected at most"):
        MultiQuery(**given)


@pytest.mark.parametrize("kind", [ConstantDepth, CausalConstantDepth])
@pytest.mark.parametrize(
    ("dtype", "given"),
    [
        (torch.float16, {"radius": 0.25, "responses": 4, "min_gap": 1500.0, "reward_range": (0.0, 4600.0)}),
        (torch.float32, {"min_gap": 1.9e36, "reward_range": (0.0, 1.4e37)}),
        (torch.float32, {"eta": 1.7e36}),
        (torch.float64, {"eta": 1e305}),
    ],
)
def test_close_below_the_largest_values_the_promise_is_kept(
    kind: Maker, dtype: torch.dtype, given: dict[str, Any]
) -> None:
    name = "C" if kind is ConstantDepth else "c"
    made = kind(W=torch.zeros(1, 1, dtype=dtype), dtype=dtype, temperatures={name: 40.0}, **given)
    sizes = made.task_class
    low, high = sizes.reward_range
    x, ends = torch.ones(1, 1, dtype=dtype), torch.ones(sizes.responses, dtype=dtype)
    ends[::2] = -1
    r = torch.linspace(0.99 * high, low, sizes.responses, dtype=torch.float64).to(dtype)
    task = icalign.AlignmentTask(x, sizes.radius * ends[None, :, None], r[None], made.W)
    wide = icalign.AlignmentTask(*[v.double() for v in (task.x, task.y, task.r, task.W)])
    last = made.update(task)[0, -1].double()
    exact = icalign.gradient_step(wide, made.eta) @ wide.x[0]
    assert made.error_bound < math.inf
    assert float((last - exact).norm()) <= made.error_bound
