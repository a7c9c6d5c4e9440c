"""Twins of ``MaskedBlock.v``, chapter 11: the logits of the two heads with a record, from the matrices."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from icalign.constructions import causal
from icalign.symbols import N, W, d_x, d_y, eta
from icalign.transformer import Values

from . import Draw, Outcome, equal, given, rounding, twin
from ._drawn import attention, logits, size, tokens


def numbers(draw: Draw, n: int) -> dict[object, float | Tensor]:
    """Any temperatures and sizes, for tokens with n positions."""
    dims = draw.integer(1, 4), draw.integer(1, 4)
    names = (eta, causal.gamma_1, causal.c, causal.c_field)
    return {d_x: dims[0], d_y: dims[1], N: n, W: draw.normal(*dims[::-1])} | {
        name: draw.number(-3, 3) for name in names
    }


def record_products(X: Tensor, rows: dict[str, slice]) -> tuple[Tensor, Tensor]:
    """⟨m_i, p_j⟩, and the sizes that it adds up."""
    m, p = X[:, rows["m"]], X[:, rows["p"]]
    return m @ p.mT, m.abs() @ p.abs().mT


def field_products(X: Tensor, rows: dict[str, slice], values: Values) -> tuple[Tensor, Tensor]:
    """⟨Wx_i, y_j⟩, and the sizes that it adds up."""
    x, y = X[:, rows["x"]], X[:, rows["y"]]
    return x @ values[W].mT @ y.mT, x.abs() @ values[W].abs().mT @ y.abs().mT


@twin
def mask_logits_winner(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The logit of any tokens with one_i = 1 is γr_j − c⟨m_i, p_j⟩. Broken: + c⟨m_i, p_j⟩."""
    n, _ = size(draw, 1)
    values = numbers(draw, draw.integer(1, 6))
    X, rows = tokens(causal.stream, values, n, draw, one=1)
    products, sizes = record_products(X, rows)
    r, gamma, c = X[:, rows["r"]].mT, values[causal.gamma_1], values[causal.c]
    given(X[:, rows["one"]] == 1)
    found = logits(attention(causal.printed_winner, causal.stream, values), X)
    # either side: a product with the weight, N products and their sum, and r besides
    allowed = rounding(2 * (values[N] + 4), gamma * r, c * sizes)
    yield equal(found, gamma * r + (1 if broken else -1) * c * products, allowed)


@twin
def mask_logits_field(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The logit of any tokens with one_i = 1 is 2⟨Wx_i, y_j⟩ − sq_j − C⟨m_i, p_j⟩. Broken: without the 2."""
    n, _ = size(draw, 1)
    values = numbers(draw, draw.integer(1, 6))
    X, rows = tokens(causal.stream, values, n, draw, one=1)
    products, sizes = record_products(X, rows)
    scores, score_sizes = field_products(X, rows, values)
    sq, mask = X[:, rows["sq"]].mT, values[causal.c_field]
    given(X[:, rows["one"]] == 1)
    found = logits(attention(causal.printed_field, causal.stream, values), X)
    allowed = rounding(2 * (values[N] + values[d_x] + values[d_y] + 5), 2 * score_sizes, sq, mask * sizes)
    yield equal(found, (1 if broken else 2) * scores - sq - mask * products, allowed)
