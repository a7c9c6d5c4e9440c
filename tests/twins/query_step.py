"""Twins of ``QueryStep.v``, chapter 8: the step on the losses of all queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from icalign import bounds

from . import Draw, Outcome, at_most, given, rounding, twin
from .query_rounds import Several
from .sink_attention import leak
from .sink_order import bent
from .theorem33 import is_unit


def pair_rounding(case: Several, small: float, strong: float, pairs: int) -> float:
    """Relative to all values together: logits λ + Pε|⟨x, x⟩| in exp, differences of two heads, times e^λ/(2ε)."""
    n = case.y.shape[0] * case.y.shape[1] + 1
    return rounding(8 * pairs * (2 * n + 8 + (case.W.shape[1] + 4) * (strong + pairs)), 2 * 3.0**pairs / small)


@twin
def mq_theorem_coupling(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Beside a sink P pairs add up Σ_b ⟨x^b, x^a⟩ u^b, whatever the u^b are, up to E_sink Σ_b ‖u^b‖ with n = MN.
    Broken: with the error of P + 1 pairs; where all queries are one, and one response each, it is nearly attained."""
    case, pairs = Several.drawn(draw), draw.integer(1, 4)
    small, strong = draw.number(0.3, 1.2), draw.number(12, 20)
    queries, responses = case.y.shape[:2]
    x = case.x[:1].expand_as(case.x) if draw.seed % 2 else case.x
    given(small > 0, is_unit(x))
    X, rows = case.run(0)
    u = draw.normal(queries, case.y.shape[2])
    u = u[:1].expand_as(u) if draw.seed % 2 else u
    X[1:, rows["u"]], X[1:, rows["x"]] = u.repeat_interleave(responses, 0), x.repeat_interleave(responses, 0)
    X[1:, rows["flag"]] = draw.uniform(0, 1, queries * responses, 1)
    joint = case.of_query(case.couple(X, pairs, small, strong))[..., rows["joint"]]
    error = abs(bent(small, pairs + broken)) + leak(small, strong, pairs, queries * responses)
    length = float(u.norm(dim=-1).sum())
    off = (joint - (x @ x.T @ u)[:, None]).norm(dim=-1)
    yield at_most(off, error * length, pair_rounding(case, small, strong, pairs) * length)


@twin
def mq_theorem(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """N − 1 filtered blocks and P pairs make ΔW x^a on the losses of all queries at every token, up to
    M·E_own + M(U + E_own)·E_sink. Broken: the own term alone, as without the pairs."""
    case, pairs = Several.drawn(draw), draw.integer(1, 4)
    case.given()
    small, strong = draw.number(0.05, 0.5), draw.number(10, 20)
    given(small > 0)
    queries, responses = case.y.shape[:2]
    X, rows = case.run(responses - 1)
    X = case.couple(X, pairs, small, strong)
    sink = abs(bent(small, pairs)) + leak(small, strong, pairs, queries * responses)
    limit = queries * case.own + queries * (case.reach + case.own) * sink
    allowed = queries * (case.rounding() * (1 + sink) + case.reach * pair_rounding(case, small, strong, pairs))
    step = -case.eta * case.x @ case.losses.gradient.T
    if broken:
        step = torch.stack(
            [case.query(a).step(some.places(responses), case.eta) for a, some in enumerate(case.rewards)]
        )
    joint = case.of_query(X)[..., rows["joint"]]
    yield at_most((joint - step[:, None]).norm(dim=-1), limit, allowed)


@twin
def mq_theorem_choice(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """From a tolerance of at most MU: g = max(log 9, log(15MU/tol)), h = max(1, log(6M(N−1)U/tol)), and the ε and λ of
    the sink's two bounds, for any number of pairs, make the step on the losses of all queries up to the tolerance.
    Broken: the own term alone, as without the pairs."""
    case, pairs = Several.drawn(draw, least=2), draw.integer(1, 4)
    queries, responses = case.y.shape[:2]
    longest = queries * case.reach
    tolerance = longest * (1.0, 0.1, 1e-3)[draw.seed % 3]
    g, h = bounds.own_terms_margins(tolerance / (3 * queries), case.reach, responses)
    case = replace(case, g=float(g) + 1e-12, h=float(h))
    case.given()
    given(tolerance > 0, tolerance <= longest)
    small = min(1.0, float(bounds.sink_spacing(5 * tolerance / (36 * longest), pairs)))
    strong = float(bounds.sink_logit(small, tolerance / (6 * longest), queries * responses, pairs))
    X, rows = case.run(responses - 1)
    joint = case.of_query(case.couple(X, pairs, small, strong))[..., rows["joint"]]
    step = -case.eta * case.x @ case.losses.gradient.T
    if broken:
        step = torch.stack(
            [case.query(a).step(some.places(responses), case.eta) for a, some in enumerate(case.rewards)]
        )
    allowed = queries * (2 * case.rounding() + case.reach * pair_rounding(case, small, strong, pairs))
    yield at_most((joint - step[:, None]).norm(dim=-1), tolerance, allowed)
