"""Twins of ``proofs/Block.v``: the logits of the two heads of a block."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from icalign import symbols
from icalign.constructions import elimination
from icalign.spec import Head
from icalign.transformer import Attention

from . import Draw, Outcome, equal, given, rounding, twin
from .prompts import field_count, logits, reach, responses


def numbers(draw: Draw) -> dict[Any, Any]:
    """W, η, γ, Δ, the spread R and the masks B and C, all of any sign, but Δ not 0."""
    W = draw.normal(draw.integer(1, 4), draw.integer(1, 4)) / 2
    d_y, d_x = W.shape
    found = {symbols.d_x: d_x, symbols.d_y: d_y, symbols.W: W}
    for symbol in (symbols.eta, symbols.gamma, elimination.R, elimination.B, elimination.C):
        found[symbol] = draw.number(-2, 3)
    return found | {symbols.Delta: draw.number(0.2, 2) * (1, 1, -1)[draw.integer(0, 2)]}


def attention(head: Head, values: Mapping[Any, Any]) -> Attention:
    """A head as torch runs it."""
    return Attention(head, elimination.stream, values, torch.float64).requires_grad_(False)


def arbitrary(draw: Draw, values: Mapping[Any, Any], n: int) -> tuple[Tensor, dict[str, slice]]:
    """n tokens of any content, and their rows."""
    rows = elimination.stream.at({size: values[size] for size in (symbols.d_x, symbols.d_y)}).slices
    return draw.normal(n, rows["u"].stop), rows


@twin
def elimination_step_winner_logit(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Winner head: KᵀQ_ji = γ r_j − 2γ(R+Δ) flag_j for any tokens, if token i holds 1. Broken: 2γR flag_j."""
    values, n = numbers(draw), responses(draw)
    (X, rows), i = arbitrary(draw, values, n), draw.integer(0, n - 1)
    X[i, rows["one"]] = 1
    given(X[i, rows["one"]] == 1)
    head, gamma = attention(elimination.winner, values), values[symbols.gamma]
    r, flag = [X[:, rows[name]][:, 0] for name in ("r", "flag")]
    behind = values[elimination.R] + (0 if broken else values[symbols.Delta])
    size = abs(gamma) * (r.abs() + 2 * (abs(values[elimination.R]) + abs(values[symbols.Delta])) * flag.abs())
    yield equal(logits(head, X)[i], gamma * r - 2 * gamma * behind * flag, rounding(10, size))  # five on either side


@twin
def elimination_step_field_logit(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Field head: KᵀQ_ji = 2⟨Wx_i, y_j⟩ − sq_j − C flag_j for any tokens, if token i holds 1. Broken: + C flag_j."""
    values, n = numbers(draw), responses(draw)
    (X, rows), i = arbitrary(draw, values, n), draw.integer(0, n - 1)
    X[i, rows["one"]] = 1
    given(X[i, rows["one"]] == 1)
    head, W = attention(elimination.field, values), values[symbols.W]
    sq, flag = [X[:, rows[name]][:, 0] for name in ("sq", "flag")]
    masked = (-1 if broken else 1) * values[elimination.C] * flag
    expected = 2 * X[:, rows["y"]] @ (W @ X[i, rows["x"]]) - sq - masked
    yield equal(logits(head, X)[i], expected, rounding(2 * field_count(W), reach(head, X)))
