"""The bounds and heads of chapter 14: noise in a ranking, losses of the first places, DPO in context."""

from __future__ import annotations

import pytest
import sympy as sp
import torch

import icalign
from icalign import bounds, rankings
from icalign.constructions import PlackettLuce, base, direct, elimination
from icalign.symbolic import SymbolicTransformer
from icalign.symbols import Delta, N, W, d_x, d_y, eta, gamma
from icalign.transformer import Transformer

ETA, BETA, GAP = 0.1, 0.25, 0.1


# ─── noise-kendall ─────────────────────────────────────────────────────────────────────────────────


def test_the_bound_of_noise_is_the_same_with_symbols() -> None:
    K = sp.Symbol("K", integer=True, positive=True)
    formula = bounds.noise_shift(eta, sp.Symbol("D"), K, N)
    numbers = formula.subs({eta: ETA, sp.Symbol("D"): 3, N: 6})
    for swaps in (1, 4, 5, 9):
        assert float(numbers.subs(K, swaps)) == pytest.approx(bounds.noise_shift(ETA, 3.0, swaps, 6))


def test_a_wrong_ranking_moves_the_step_within_its_bound() -> None:
    task = icalign.sample_task((200,), responses=5, seed=1)
    order = torch.stack([torch.randperm(5, generator=torch.Generator().manual_seed(t)) for t in range(200)])
    noisy = icalign.AlignmentTask(task.x, task.y, task.r.take_along_dim(order[:, None], -1), task.W)
    moved = icalign.gradient_step(task, ETA) - icalign.gradient_step(noisy, ETA)
    lengths = torch.einsum("byx,bx->by", moved, task.x[:, 0]).norm(dim=-1)
    farthest = torch.cdist(task.y[:, 0], task.y[:, 0]).amax((-1, -2))
    places = [t.r[:, 0].argsort(descending=True).tolist() for t in (task, noisy)]
    swaps = [rankings.kendall(a, b) for a, b in zip(*places, strict=True)]
    pairs = zip(farthest.tolist(), swaps, strict=True)
    limits = torch.tensor([bounds.noise_shift(ETA, distance, K, 5) for distance, K in pairs])
    assert (lengths <= limits + 1e-12).all()


def test_a_swap_of_the_last_two_attains_the_bound() -> None:
    y = torch.tensor([[0.2, 0.1], [0.0, 0.3], [-1.5, 0.0], [1.5, 0.0]], dtype=torch.float64)
    x, r = torch.ones(1, 1, dtype=torch.float64), torch.arange(4.0, 0, -1, dtype=torch.float64)
    W_0 = torch.tensor([[0.7], [-0.4]], dtype=torch.float64)
    steps = [
        icalign.gradient_step(icalign.AlignmentTask(x, y[None], ranks[None], W_0), ETA)
        for ranks in (r, r[[0, 1, 3, 2]])
    ]
    assert float((steps[0] - steps[1]).norm()) == pytest.approx(bounds.noise_shift(ETA, 3.0, 1, 4), rel=1e-12)


@pytest.mark.parametrize(
    ("swaps", "responses", "words"), [(-1, 3, "swaps: -1"), (0, 1, "responses: 1"), (1, 0, "resp")]
)
def test_noise_that_cannot_be_is_refused(swaps: int, responses: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bounds.noise_shift(ETA, 3.0, swaps, responses)


# ─── partial-sums ──────────────────────────────────────────────────────────────────────────────────


def test_the_error_of_all_places_is_that_of_the_theorem() -> None:
    known = (ETA, 80.0, 40.0, GAP, 2.0, 30.0, 6)
    assert bounds.top_error(*known, 5, 6.0) == pytest.approx(bounds.plackett_luce_error(*known, 6.0))
    errors = [bounds.top_error(*known, places, 6.0) for places in range(1, 6)]
    assert errors == sorted(errors)


@pytest.mark.parametrize("places", [-1, 0, 6, 7])
def test_places_that_take_no_blocks_are_refused(places: int) -> None:
    with pytest.raises(ValueError, match=rf"places: {places} of 6 responses, expected 1 to 5"):
        bounds.top_error(ETA, 80.0, 40.0, GAP, 2.0, 30.0, 6, places, 6.0)


def test_one_block_is_a_step_on_infonce() -> None:
    W_0 = icalign.sample_task(seed=2).W
    model = PlackettLuce(W=W_0, eta=ETA, responses=5, tolerance=1e-6)
    task = icalign.sample_task((20,), responses=5, W=W_0, seed=2)
    after = model.transformer.blocks[0](model.embed(task))
    V = task.W.expand(20, -1, -1).clone().requires_grad_()
    prediction = torch.einsum("byx,bx->by", V, task.x[:, 0])
    scores = -(prediction[:, None] - task.y[:, 0]).square().sum(-1)
    winner = task.r[:, 0].argmax(-1, keepdim=True)
    infonce = torch.nn.functional.cross_entropy(scores, winner[:, 0], reduction="sum")
    (slope,) = torch.autograd.grad(infonce, V)
    step = -ETA * torch.einsum("byx,bx->by", slope, task.x[:, 0])
    off = (after[..., model.transformer.rows["u"]] - step[:, None]).norm(dim=-1)
    assert float(off.amax()) <= model.error_bound


# ─── dpo-needs-no-square ───────────────────────────────────────────────────────────────────────────


def reference() -> torch.Tensor:
    return icalign.sample_task(seed=99).W


def values(task: icalign.AlignmentTask, product: float, mask: float) -> dict[sp.Basic, object]:
    known: dict[sp.Basic, object] = {d_x: 4, d_y: 3, W: task.W, direct.W_ref: reference(), eta: ETA, direct.beta: BETA}
    known |= {gamma: product / GAP, Delta: GAP, elimination.R: 2.0, elimination.C: mask}
    return known | {elimination.B: bounds.elimination_mask(GAP, 2.0) + 0.5}


def implicit_rewards(task: icalign.AlignmentTask, V: torch.Tensor) -> torch.Tensor:
    """β log(π/π_ref), by torch's own densities."""
    policies = [
        torch.distributions.Normal(place[:, None], 0.5**0.5)
        for place in (torch.einsum("byx,bx->by", V, task.x[:, 0]), task.x[:, 0] @ reference().mT)
    ]
    logs = [policy.log_prob(task.y[:, 0]).sum(-1) for policy in policies]
    return BETA * (logs[0] - logs[1])


@pytest.mark.parametrize("responses", [2, 3, 6])
def test_the_blocks_make_a_step_on_the_dpo_loss(responses: int) -> None:
    task = icalign.sample_task((30,), responses=responses, seed=responses)
    spread = bounds.direct_spread(BETA, float(torch.linalg.norm(task.W - reference(), 2)), 3.0)
    mask = spread + 20
    model = Transformer((direct.block,) * (responses - 1), direct.stream, values(task, 20.0, mask))
    u = model(base.prompt(task, model.rows))[..., model.rows["u"]]
    V = task.W.expand(30, -1, -1).clone().requires_grad_()
    loss = icalign.plackett_luce_nll(implicit_rewards(task, V), task.r[:, 0]).sum()
    (slope,) = torch.autograd.grad(loss, V)
    step = -ETA * torch.einsum("byx,bx->by", slope, task.x[:, 0])
    bound = bounds.plackett_luce_error(ETA * BETA, 20.0 / GAP, mask, GAP, 2.0, spread, responses, 6.0)
    assert float((u - step[:, None]).norm(dim=-1).amax()) <= bound + 1e-12


def test_the_logits_are_within_their_spread() -> None:
    task = icalign.sample_task((50,), responses=8, seed=5)
    rewards = implicit_rewards(task, task.W.expand(50, -1, -1))
    spread = bounds.direct_spread(BETA, float(torch.linalg.norm(task.W - reference(), 2)), 3.0)
    assert float((rewards.amax(-1) - rewards.amin(-1)).amax()) <= spread


def test_the_spread_of_the_logits_is_attained() -> None:
    """At the first right singular vector of W − W_ref, for the two responses at the poles of its image."""
    W_0 = icalign.sample_task(seed=5).W
    left, sizes, right = torch.linalg.svd(W_0 - reference())
    y = 3.0 * torch.stack([left[:, 0], -left[:, 0]])
    r = torch.tensor([[[1.0, 0.0]]], dtype=torch.float64)
    task = icalign.AlignmentTask(right[None, :1], y[None, None], r, W_0)
    logits = 2 * BETA * (y @ (W_0 - reference()) @ right[0])
    rewards = implicit_rewards(task, W_0[None])[0]
    spread = bounds.direct_spread(BETA, float(sizes[0]), 3.0)
    assert float(logits.max() - logits.min()) == pytest.approx(spread, rel=1e-12)
    assert float(rewards.max() - rewards.min()) == pytest.approx(spread, rel=1e-12)


def test_two_heads_do_for_a_pair() -> None:
    task = icalign.sample_task((40,), responses=2, reward_range=(0.0, 1.0), seed=7)
    both = Transformer((direct.pair,), direct.stream, values(task, 1.0, 1.0))
    u = both(base.prompt(task, both.rows))[..., both.rows["u"]]
    V = task.W.expand(40, -1, -1).clone().requires_grad_()
    loss = icalign.bradley_terry_nll(implicit_rewards(task, V), task.r[:, 0]).sum()
    (slope,) = torch.autograd.grad(loss, V)
    off = (u + ETA * torch.einsum("byx,bx->by", slope, task.x[:, 0])[:, None]).norm(dim=-1)
    lead = task.r[:, 0].diff(dim=-1).abs()[:, 0]
    between = task.y[:, 0].diff(dim=-2).norm(dim=-1)[:, 0]
    law = bounds.bradley_terry_error(ETA * BETA, 1.0 / GAP, lead, between)
    assert off == pytest.approx(law[:, None].expand_as(off), rel=1e-6)


def test_no_row_of_squares() -> None:
    assert "sq" not in direct.stream.rows
    head = SymbolicTransformer(direct.stream, (direct.block,), {"one": 1}).head(0, 1)
    read = {row for k, row in enumerate(direct.stream.rows) if any(not b.is_ZeroMatrix for b in head.key.blocks[:, k])}
    assert read == {"y", "flag"}
