"""Twins of ``proofs/BradleyTerry.v``: on two responses two heads make one gradient step (Theorem 3.2)."""

from collections.abc import Iterator

import torch
from torch import Tensor

from icalign import symbols
from icalign.constructions.bradley_terry import block, stream
from icalign.transformer import Transformer

from . import Draw, Outcome, equal, given, rounding, twin
from .prompts import field_count, field_reach, logits, responses, score, softmax_count, step_by_autograd, tokens


def asked(W: Tensor, eta: float, gamma: float, x: Tensor, y: Tensor, r: Tensor) -> tuple[Transformer, Tensor]:
    """The block with two heads, and the tokens [x; y_j; ‖y_j‖²; r_j; 1]."""
    d_y, d_x = W.shape
    numbers = {symbols.d_x: d_x, symbols.d_y: d_y, symbols.W: W, symbols.eta: eta, symbols.gamma: gamma}
    model = Transformer((block,), stream, numbers)
    return model, tokens(model.rows, len(r), x=x, y=y, sq=y.square().sum(-1, keepdim=True), r=r[:, None], one=1)


def drawn(draw: Draw, n: int) -> tuple[Tensor, float, float, Tensor, Tensor, Tensor]:
    """W, η and γ of any sign, a query of any norm, responses and rewards."""
    d_x, d_y = draw.integer(1, 4), draw.integer(1, 4)
    W, x, y, r = draw.normal(d_y, d_x) / 2, draw.normal(d_x), draw.normal(n, d_y), draw.normal(n)
    return W, draw.number(-1, 1), draw.number(-2, 4), x, y, r


@twin
def bt_two_heads_rewards(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Winner head, N responses: KᵀQ_ji = γ r_j. Broken: rows and columns exchanged."""
    W, eta, gamma, x, y, r = drawn(draw, responses(draw))
    model, X = asked(W, eta, gamma, x, y, r)
    winner, _ = model.blocks[0].attention_heads()
    expected = (gamma * r).expand(len(r), -1)
    yield equal(logits(winner, X), expected.T if broken else expected, rounding(2, gamma * r))


@twin
def bt_two_heads_scores(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Field head, N responses: KᵀQ_ji = s_j + ‖Wx‖². Broken: s_j."""
    W, eta, gamma, x, y, r = drawn(draw, responses(draw))
    model, X = asked(W, eta, gamma, x, y, r)
    _, field = model.blocks[0].attention_heads()
    expected = score(W, x, y) + (0 if broken else (W @ x).square().sum())
    allowed = rounding(3 * field_count(W), field_reach(W, x, y))
    yield equal(logits(field, X), expected.expand(len(r), -1), allowed)


@twin
def bt_two_heads_update(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """y_i becomes y_i − ΔWx − 2η(Σ_j A_ij y_j − y_τ(1)), the other rows stay, for either τ and any η, γ. Broken: + ΔWx.

    ΔW from autograd through the Plackett–Luce loss, A the weights of the winner head.
    """
    W, eta, gamma, x, y, r = drawn(draw, 2)
    x, tau = x / x.norm(), draw.permutation(2)
    given((x.norm() - 1).abs() <= rounding(len(x) + 2, 1))
    model, X = asked(W, eta, gamma, x, y, r)
    out, place = model(X), model.rows["y"]
    found = model.attention(X)[0][0] @ y
    step = step_by_autograd(W, x, y, tau, eta)
    # β in the head and in the gradient; the same weights of the winner; ‖x‖², and products by x and W
    count = 2 * softmax_count(2, field_reach(W, x, y), field_count(W)) + 4 * sum(W.shape) + 20
    allowed = rounding(count, 4 * eta * field_reach(W, x, y).sqrt()) + rounding(W.shape[0] + 6, y.norm(dim=-1).max())
    yield equal(out[:, place], y + (step if broken else -step) - 2 * eta * (found - y[tau[0]]), allowed)
    yield equal(out[:, : place.start], X[:, : place.start])
    yield equal(out[:, place.stop :], X[:, place.stop :])


@twin
def bt_two_heads(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """‖out − (y_i − ΔWx)‖ = 2η‖y_τ(2) − y_τ(1)‖/(1 + e^{γ(r_τ(1) − r_τ(2))}), for either τ. Broken: without the 2.

    ΔW from autograd through the Plackett–Luce loss; η ≥ 0, any γ, the rewards need not rank as τ does.
    """
    W, eta, gamma, x, y, r = drawn(draw, 2)
    eta, x, tau = abs(eta) * min(1, draw.integer(0, 4)), x / x.norm(), draw.permutation(2)
    given(eta >= 0, (x.norm() - 1).abs() <= rounding(len(x) + 2, 1))
    model, X = asked(W, eta, gamma, x, y, r)
    best, other = tau
    out = model(X)[:, model.rows["y"]]
    expected = (1 if broken else 2) * eta * (y[other] - y[best]).norm() / (1 + torch.exp(gamma * (r[best] - r[other])))
    found = (out - (y - step_by_autograd(W, x, y, tau, eta))).norm(dim=-1)
    # β in the head and in the gradient, the winner's weight there and in the formula; ‖x‖², and products by x and W
    heads = 2 * softmax_count(2, field_reach(W, x, y), field_count(W))
    heads += 2 * softmax_count(2, abs(gamma) * r.abs().max()) + 4 * sum(W.shape) + 20
    allowed = rounding(heads, 4 * eta * field_reach(W, x, y).sqrt()) + rounding(W.shape[0] + 6, y.norm(dim=-1).max())
    yield equal(found, expected.expand(2), allowed)
