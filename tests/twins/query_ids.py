"""Chapter 7, Multiple queries I: one-hot identifiers of the queries in place of their inner products."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from . import Draw, Outcome, at_most, equal, rounding, twin
from .query_bound import bound_cases, miss, outcome_rounding, selected_error
from .query_selection import Queries


@twin
def mq_query_ids_logits(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The logit of (b, j) at (a, i) is γ₁[a = b] + γ₂r_j^b, whatever the queries. Broken: γ₁⟨x^a, x^b⟩ + γ₂r_j^b."""
    queries, responses = draw.integer(1, 4), draw.integer(1, 5)
    x, y = draw.normal(queries, draw.integer(1, 4)), draw.normal(queries, responses, draw.integer(1, 3))
    it = Queries(x, y, draw.normal(queries, responses), draw.number(-3, 3), draw.number(-3, 3), by_id=True)
    same = x @ x.T if broken else torch.eye(queries, dtype=torch.float64)
    yield equal(it.logits, it.gamma_1 * same[:, None, :, None] + it.gamma_2 * it.r, it.logit_rounding)


@twin
def mq_query_ids_bound(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """1 − A ≤ (N−1)e^{−γ₂Δ} + (M−1)N e^{−(γ₁−γ₂R)}, whatever the queries. Broken: half of it."""
    for it, head, own, leak in bound_cases(draw, by_id=True):
        s, bound = draw.integer(0, it.r.shape[1] - 1), own + leak
        yield at_most(miss(it, head, s), (0.5 if broken else 1) * bound, rounding(2 * head.operations, bound))


@twin
def mq_query_ids_outcome(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """‖selected − y_best^a‖ ≤ D(N−1)e^{−γ₂Δ} + D₀(M−1)N e^{−(γ₁−γ₂R)}. Broken: D in place of D₀."""
    for it, head, own, leak in bound_cases(draw, by_id=True):
        near, far = it.distances
        promised = near * own + (near if broken else far) * leak
        error = selected_error(it, head, draw.integer(0, it.r.shape[1] - 1))
        yield at_most(error, promised, outcome_rounding(it, head) + rounding(head.operations, promised))
