"""Twins of ``proofs/Field.v``: with a row of squares the weights of a softmax head are β."""

from collections.abc import Iterator

import torch
from torch import Tensor

from icalign import symbols
from icalign.constructions.field import block, stream
from icalign.transformer import Attention, Transformer

from . import Draw, Outcome, equal, given, rounding, twin
from .prompts import field_count, field_reach, logits, mask, reach, responses, score, softmax_count, tokens, weights


def beta_head(draw: Draw) -> tuple[Tensor, Transformer, Attention]:
    """W, the block with one head for it, and the head."""
    W = draw.normal(draw.integer(1, 4), draw.integer(1, 4))
    d_y, d_x = W.shape
    model = Transformer((block,), stream, {symbols.d_x: d_x, symbols.d_y: d_y, symbols.W: W})
    return W, model, next(model.blocks[0].attention_heads())


def prompt(draw: Draw, W: Tensor, rows: dict[str, slice], n: int) -> tuple[Tensor, Tensor, Tensor]:
    """A query of any norm, responses, and the tokens [x; y_j; ‖y_j‖²; 1; 0]."""
    x, y = draw.normal(W.shape[1]), draw.normal(n, W.shape[0])
    return x, y, tokens(rows, n, x=x, y=y, sq=y.square().sum(-1, keepdim=True), one=1)


def beta(s: Tensor, tau: Tensor, k: int) -> Tensor:
    """β_j^k for every place j, by the definition."""
    e = s[tau].exp() * (torch.arange(len(s)) >= k)
    return e / e.sum()


@twin
def beta_head_logits(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """KᵀQ_ji = 2⟨Wx_i, y_j⟩ − sq_j for tokens of any content, if token i holds 1. Broken: without the factor 2."""
    W, model, head = beta_head(draw)
    n, rows = responses(draw), model.rows
    X, i = draw.normal(n, rows["mean"].stop), draw.integer(0, n - 1)
    X[i, rows["one"]] = 1
    given(X[i, rows["one"]] == 1)
    expected = (1 if broken else 2) * X[:, rows["y"]] @ (W @ X[i, rows["x"]]) - X[:, rows["sq"]][:, 0]
    yield equal(logits(head, X)[i], expected, rounding(2 * field_count(W), reach(head, X)))


@twin
def beta_head_scores(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """On the tokens of a prompt KᵀQ_ji = s_j + ‖Wx‖². Broken: s_j."""
    W, model, head = beta_head(draw)
    x, y, X = prompt(draw, W, model.rows, responses(draw))
    expected = score(W, x, y) + (0 if broken else (W @ x).square().sum())
    yield equal(logits(head, X), expected.expand(len(y), -1), rounding(3 * field_count(W), field_reach(W, x, y)))


@twin
def beta_head_weights(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A_ij = e^{s_j}/Σ_l e^{s_l} at every token i. Broken: with 2⟨Wx, y_j⟩ for s_j, without the squares."""
    W, model, _ = beta_head(draw)
    x, y, X = prompt(draw, W, model.rows, responses(draw))
    s = 2 * y @ W @ x if broken else score(W, x, y)
    expected = s.exp() / s.exp().sum()
    allowed = rounding(2 * softmax_count(len(y), field_reach(W, x, y), field_count(W)), 1)  # on either side
    yield equal(model.attention(X)[0][0], expected.expand(len(y), -1), allowed)


@twin
def beta_head_first_place(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A_{i,τ(j)} = β_j^0, the first of the weights of Plackett and Luce, for every ranking τ. Broken: A_ij."""
    W, model, _ = beta_head(draw)
    x, y, X = prompt(draw, W, model.rows, responses(draw))
    tau, A = draw.permutation(len(y)), model.attention(X)[0][0]
    expected = beta(score(W, x, y), tau, 0).expand(len(y), -1)
    allowed = rounding(2 * softmax_count(len(y), field_reach(W, x, y), field_count(W)), 1)  # on either side
    yield equal(A if broken else A[:, tau], expected, allowed)


@twin
def beta_head_mean(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The head writes Σ_j A_ij y_j to the row mean, on any tokens, under any mask. Broken: without the mask.

    Every token sees one at least: torch refuses a softmax over none, which the theorem takes for 0.
    """
    W, model, head = beta_head(draw)
    n, rows = responses(draw), model.rows
    X, seen = draw.normal(n, rows["mean"].stop), mask(draw, n)
    given(seen.any(-1))
    A = weights(logits(head, X), torch.ones_like(seen) if broken else seen)
    count = 2 * softmax_count(n, reach(head, X), field_count(W)) + 2 * n + 2  # two weights, two sums of products
    found = head(X, seen)[:, rows["mean"]]
    yield equal(found, A @ X[:, rows["y"]], rounding(count, X[:, rows["y"]]))


@twin
def beta_head_tail_mean(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """After the block the row mean of every token holds μ_0 = Σ_j β_j^0 y_τ(j), for every τ. Broken: Σ_j β_j^0 y_j."""
    W, model, _ = beta_head(draw)
    x, y, X = prompt(draw, W, model.rows, responses(draw))
    tau = draw.permutation(len(y))
    count = (
        2 * softmax_count(len(y), field_reach(W, x, y), field_count(W)) + 2 * len(y) + 2
    )  # two weights, two sums of products
    expected = beta(score(W, x, y), tau, 0) @ (y if broken else y[tau])
    yield equal(model(X)[:, model.rows["mean"]], expected.expand_as(y), rounding(count, y))


@twin
def beta_head_width(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The keys have d_y + 1 coordinates, and the rows of W_K are orthonormal. Broken: d_x + 1."""
    W, _, head = beta_head(draw)
    yield equal(len(head.key), W.shape[1 if broken else 0] + 1)
    yield equal(head.key @ head.key.T, torch.eye(W.shape[0] + 1))
