"""How deep, how broad and how wide a construction is, read off its specification, as functions of its sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import sympy as sp

from .constructions.base import Construction
from .forms import PiecewiseLinear
from .spec import Block
from .symbolic import SymbolicTransformer
from .symbols import M, N
from .transformer import Transformer, TransformerBlock


@dataclass(frozen=True)
class Sizes:
    """What a transformer consists of.

    Attributes:
        attention_layers: how many of its blocks attend.
        heads: in all of them.
        most_heads: side by side in one block.
        relus: hidden units of all feed-forward layers.
        width: entries of a token.
    """

    attention_layers: Any
    heads: Any
    most_heads: Any
    relus: Any
    width: Any

    @classmethod
    def of(cls, model: SymbolicTransformer, values: Mapping[sp.Symbol, Any] | None = None) -> Sizes:
        """Count in the specification; sizes are expressions in its symbols, those with values replaced."""
        heads = [len(block.heads) for block in model.blocks if block.heads]
        relus = sp.Add(*[_relus(block) for block in model.blocks])
        found = (len(heads), sum(heads), max(heads, default=0), relus, model.stream.width)
        return cls(*[sp.sympify(size).subs(values or {}) for size in found])

    @classmethod
    def of_construction(cls, construction: Construction, known: Iterable[sp.Symbol] = (N, M)) -> Sizes:
        """Count in the formulas, with the numbers of the ``known`` symbols, and again in the weights.

        Raises:
            ValueError: the two disagree.
        """
        loop = construction.symbolic()
        loops = len(construction.transformer.blocks) // len(loop.blocks)  # of several steps, each a loop
        model = SymbolicTransformer(loop.stream, loop.blocks * loops, loop.given)
        values = {symbol: value for symbol, value in construction.values.items() if isinstance(symbol, sp.Symbol)}
        formulas, weights = cls.of(model, values), cls.of_weights(construction.transformer)
        if formulas != weights:
            raise ValueError(f"the formulas have {formulas}, the weights {weights}")
        return cls.of(model, {symbol: values[symbol] for symbol in known if symbol in values})

    @classmethod
    def of_weights(cls, model: Transformer) -> Sizes:
        """Count in the weights themselves."""
        heads, relus = [], 0
        for block in model.blocks:
            assert isinstance(block, TransformerBlock)
            heads += [len(block.heads)] if len(block.heads) else []
            relus += len(block.feed_forward.first) if block.feed_forward is not None else 0
        width = max(place.stop for place in model.rows.values())
        return cls(len(heads), sum(heads), max(heads, default=0), relus, width)


def _relus(block: Block) -> sp.Expr:
    """The hidden units of a block's feed-forward layer."""
    if block.feed_forward is None:
        return sp.Integer(0)
    written = [value for value in block.feed_forward.write.values() if isinstance(value, PiecewiseLinear)]
    return sp.Add(*[form.size for value in written for _, _, form in value.terms])


def polynomial(sizes: Callable[[int], Sizes], symbol: sp.Symbol, numbers: Sequence[int]) -> Sizes:
    """Sizes as polynomials in a symbol, of a degree below len(numbers) − 1, that take these values at the numbers.

    One number more than the degree asks for is there to refute it.

    Raises:
        ValueError: no such polynomial has these values.
    """
    found = [astuple(sizes(number)) for number in numbers]
    return Sizes(*[_through(list(zip(numbers, column, strict=True)), symbol) for column in zip(*found, strict=True)])


def _through(points: list[tuple[int, Any]], symbol: sp.Symbol) -> sp.Expr:
    fit = sp.expand(sp.interpolate(points[:-1], symbol))
    last, value = points[-1]
    if sp.expand(fit.subs(symbol, last) - value) != 0:
        raise ValueError(f"{fit} is {fit.subs(symbol, last)} at {symbol} = {last}, the size is {value}")
    return fit
