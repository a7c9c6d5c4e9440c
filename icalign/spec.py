r"""What a layer does, written as formulas between named rows: heads, feed-forward layers, blocks.

A specification has two readings: :mod:`icalign.symbolic` gives its matrices in sympy, with symbols for sizes,
temperatures and parameters; :mod:`icalign.transformer` gives the weights of a torch module. Query, key and value
matrices are derived from the formulas, never typed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from .forms import Bilinear, Form, PiecewiseLinear, Scalar, relu
from .stream import Stream

__all__ = ["Block", "FeedForward", "Head", "LinearHead", "relu"]


@dataclass(frozen=True, eq=False)
class Head:
    r"""A softmax attention head: token i gains, in each row ``write`` names, the attention-weighted form of the
    tokens j.

    .. math:: e_i[\mathrm{row}] \mathrel{+}= \sum_j \mathrm{softmax}_j(\mathrm{logit}_{ij})\; \mathrm{write}(e_j)

    No 1/√d. ``logit`` is bilinear in the asking token i and the answering token j.
    """

    logit: Bilinear
    write: Mapping[str, Form]

    def check(self, stream: Stream) -> None:
        """Raise unless every row the head reads or writes is in the stream, with its size.

        Raises:
            ValueError: an unknown row, sizes that differ (both named), a written form of the token i, or a bias.
        """
        for query, key in self.logit.pairs:
            stream.check_form(query, "logit")
            stream.check_form(key, "logit")
        for row, form in self.write.items():
            stream.check(row, form.size, f"write[{row!r}]")
            stream.check_form(form, f"write[{row!r}]")
            if form.side != "j":
                raise ValueError(f"write[{row!r}] is a form of token {form.side}; a head writes forms of token j")
            if form.bias != 0:
                raise ValueError(f"write[{row!r}] has the bias {form.bias}; attention has none: use a row of ones")


@dataclass(frozen=True, eq=False)
class LinearHead(Head):
    """A head of linear attention: the weights are the logits themselves, no softmax."""


@dataclass(frozen=True, eq=False)
class FeedForward:
    r"""A feed-forward layer W₂ relu(W₁e + b₁) + b₂, added to the token; a bare number in ``write`` is a bias b₂."""

    write: Mapping[str, PiecewiseLinear | Scalar]

    def check(self, stream: Stream) -> None:
        """Raise unless every row the layer reads or writes is in the stream, with its size.

        Raises:
            ValueError: an unknown row, or sizes that differ (both named).
        """
        for row, value in self.write.items():
            if not isinstance(value, PiecewiseLinear):
                stream.check(row, stream.rows.get(row, sp.Integer(1)), f"write[{row!r}]")
                continue
            stream.check(row, value.size, f"write[{row!r}]")
            for _, _, form in value.terms:
                stream.check_form(form, f"write[{row!r}]")


@dataclass(frozen=True, eq=False)
class Block:
    """Heads side by side, then a feed-forward layer, both residual; ``causal`` hides the tokens after i from i."""

    heads: tuple[Head, ...] = ()
    feed_forward: FeedForward | None = None
    causal: bool = False

    def check(self, stream: Stream) -> None:
        """Raise unless all parts fit the stream (see :meth:`Head.check`)."""
        for head in self.heads:
            head.check(stream)
        if self.feed_forward is not None:
            self.feed_forward.check(stream)
