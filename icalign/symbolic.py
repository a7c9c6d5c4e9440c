r"""The symbolic reading of a specification: its matrices in sympy, with symbols for sizes and parameters.

What is derived with these matrices holds for all sizes. :mod:`icalign.transformer` reads the same specification with
numbers; both go through :func:`coefficient`, so nothing is typed twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy.matrices.expressions.diagonal import DiagMatrix
from sympy.matrices.expressions.special import OneMatrix

from .forms import Form, PiecewiseLinear, split
from .spec import Block, FeedForward, Head
from .stream import Stream


def coefficient(form: Form, row: str, size: sp.Expr) -> sp.MatrixExpr:
    """The matrix by which a form multiplies one row of the token (of the given size); zero if it does not read it."""
    terms = [term.scalar * term.matrix for term in form.terms if term.row == row]
    return sp.MatAdd(*terms).doit() if terms else sp.ZeroMatrix(form.size, size)


def _blocks(forms: list[Form], stream: Stream) -> sp.BlockMatrix:
    return sp.BlockMatrix([[coefficient(form, *row) for row in stream.rows.items()] for form in forms])


@dataclass(frozen=True)
class HeadMatrices:
    """W_Q, W_K (key width × stream width) and the value matrix P·V (stream width × stream width) of a head."""

    query: sp.BlockMatrix
    key: sp.BlockMatrix
    value: sp.BlockMatrix

    @classmethod
    def of(cls, head: Head, stream: Stream) -> HeadMatrices:
        """Derive the matrices from the head's formulas."""
        head.check(stream)
        silent = {row: Form("j", size, ()) for row, size in stream.rows.items()}
        return cls(
            query=_blocks([query for query, _ in head.logit.pairs], stream),
            key=_blocks([key for _, key in head.logit.pairs], stream),
            value=_blocks([head.write.get(row, silent[row]) for row in stream.rows], stream),
        )

    def product(self, keys: sp.BlockMatrix, queries: sp.BlockMatrix) -> sp.MatrixExpr:
        """(W_K X)ᵀ (W_Q X′), not multiplied out: where a derivation starts."""
        return sp.MatMul(sp.Transpose(sp.MatMul(self.key, keys)), sp.MatMul(self.query, queries))

    def logits(self, keys: sp.BlockMatrix, queries: sp.BlockMatrix) -> sp.MatrixExpr:
        """The product multiplied out: entry [j, i] is the logit of key j at query i."""
        return sp.block_collapse(self.product(keys, queries))

    def values(self, keys: sp.BlockMatrix, row: int) -> sp.MatrixExpr:
        """What the tokens X offer to the given row of the stream: that block of P·V·X."""
        return sp.block_collapse(self.value * keys).blocks[row, 0]

    def output(self, tokens: sp.BlockMatrix, row: int, component: Any, query: Any) -> sp.Expr:
        """What the head adds to a component of a row of one token: Σ_k softmax_k(logits) · value_k, k from 0."""
        k = sp.Symbol("k", integer=True)
        logits = self.logits(tokens, tokens)
        _refuse_bound(k, logits, component, query)
        offered = self.values(tokens, row)[component, k]
        return sp.Sum(offered * attention_weight(logits, k, query), (k, 0, logits.rows - 1))


@dataclass(frozen=True)
class FeedForwardMatrices:
    """W₁, b₁, W₂, b₂ of a feed-forward layer W₂ relu(W₁e + b₁) + b₂; biases as columns."""

    first: sp.BlockMatrix
    first_bias: sp.BlockMatrix
    second: sp.BlockMatrix
    second_bias: sp.BlockMatrix

    @classmethod
    def of(cls, layer: FeedForward, stream: Stream) -> FeedForwardMatrices:
        """Derive the matrices from the layer's formulas; each ReLU is one block of hidden units."""
        layer.check(stream)
        units = [
            (row, scalar, matrix, form)
            for row, value in layer.write.items()
            if isinstance(value, PiecewiseLinear)
            for scalar, matrix, form in value.terms
        ]
        if not units:  # a layer of biases alone still needs a hidden unit to have a shape: one that is always 0
            nothing = Form("i", sp.Integer(1), ())
            units = [(next(iter(layer.write)), sp.Integer(0), sp.Identity(1), nothing)]
        biases = {row: v.bias if isinstance(v, PiecewiseLinear) else sp.sympify(v) for row, v in layer.write.items()}
        second = [
            [
                scalar * matrix if row == name and scalar != 0 else sp.ZeroMatrix(size, form.size)
                for row, scalar, matrix, form in units
            ]
            for name, size in stream.rows.items()
        ]
        return cls(
            first=_blocks([form for _, _, _, form in units], stream),
            first_bias=sp.BlockMatrix([[_constant(form.bias, form.size)] for _, _, _, form in units]),
            second=sp.BlockMatrix(second),
            second_bias=sp.BlockMatrix([[_constant(biases.get(r, 0), size)] for r, size in stream.rows.items()]),
        )

    def added(self, token: sp.BlockMatrix, row: int, component: Any = 0) -> sp.Expr:
        """One component of what the layer adds to the given row of a token, each ReLU written as Max(·, 0).

        Raises:
            ValueError: a hidden unit that the row reads has several components, and not each its own.
        """
        total = self.second_bias.blocks[row, 0][component, 0]
        for unit in range(self.second.blockshape[1]):
            weight = self.second.blocks[row, unit]
            if isinstance(weight, sp.ZeroMatrix):
                continue
            parts = [self.first.blocks[unit, k] * token.blocks[k, 0] for k in range(token.blockshape[0])]
            before = sp.MatAdd(*parts, self.first_bias.blocks[unit, 0]).doit()
            if weight.shape[1] == 1:
                total += weight[component, 0] * sp.Max(scalar(before), 0)
            elif found := bands(weight):
                for offset, factor in found.items():
                    _refuse_outside(weight, offset, unit)
                    total += factor * sp.Max(sp.expand(before[component + offset, 0]), 0)
            else:
                total += _own(weight, unit, component) * sp.Max(sp.expand(before[component, 0]), 0)
        return total


def bands(matrix: sp.MatrixExpr) -> dict[sp.Expr, sp.Expr]:
    """{s: c} for a matrix given by the formula Σ_s c_s·δ(b, a + s) of its entry [a, b]; {} for any other."""
    factor, rest = split(matrix)
    if not isinstance(rest, sp.FunctionMatrix):
        return {}
    a, b = sp.symbols("a b", integer=True, cls=sp.Dummy)
    found: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(sp.expand(factor * rest.lamda(a, b))):
        scale, delta = term.as_independent(sp.KroneckerDelta)
        if not isinstance(delta, sp.KroneckerDelta):
            return {}
        apart = delta.args[0] - delta.args[1]
        offset = sp.expand(b - a - apart * apart.coeff(b))
        if (scale.free_symbols | offset.free_symbols) & {a, b}:
            return {}
        found[offset] = found.get(offset, sp.Integer(0)) + scale
    return found


def _refuse_outside(weight: sp.MatrixExpr, offset: sp.Expr, unit: int) -> None:
    """Raise a ValueError unless every row of the matrix has an entry at column row + offset."""
    room = weight.shape[1] - weight.shape[0] - offset
    if not (sp.sympify(offset).is_nonnegative and sp.expand(room).is_nonnegative):
        raise ValueError(f"hidden unit {unit}: the band at {offset} leaves the {weight.shape[1]} columns of its weight")


def _own(weight: sp.MatrixExpr, unit: int, component: Any) -> sp.Expr:
    """The entry [component, component] of a diagonal weight, whose other entries in the row are 0."""
    factor, rest = split(weight)
    if isinstance(rest, sp.Identity):
        return factor
    if isinstance(rest, DiagMatrix):
        return factor * rest.args[0][component, 0]
    raise ValueError(f"hidden unit {unit} has {weight.shape[1]} components, expected 1 or a diagonal weight")


def _constant(value: Any, rows: sp.Expr, columns: Any = 1) -> sp.MatrixExpr:
    return sp.ZeroMatrix(rows, columns) if value == 0 else value * OneMatrix(rows, columns)


@dataclass(frozen=True)
class SymbolicTransformer:
    """The stream and blocks of a construction, with symbols where numbers will stand.

    ``given`` names the rows whose entries are known at the input: ``{"one": 1, "best": 0}``.
    """

    stream: Stream
    blocks: tuple[Block, ...]
    given: Mapping[str, int]

    def head(self, block: int = 0, head: int = 0) -> HeadMatrices:
        """The matrices of one head."""
        return HeadMatrices.of(self.blocks[block].heads[head], self.stream)

    def feed_forward(self, block: int = 0) -> FeedForwardMatrices:
        """The matrices of one feed-forward layer.

        Raises:
            ValueError: the block has none.
        """
        layer = self.blocks[block].feed_forward
        if layer is None:
            raise ValueError(f"block {block} has no feed-forward layer")
        return FeedForwardMatrices.of(layer, self.stream)

    def tokens(self, count: Any, name: str = "") -> sp.BlockMatrix:
        """X: ``count`` tokens as columns, each row of the stream a matrix symbol, known rows filled in.

        A row called r is the matrix symbol ``r`` of shape size × count (``r_name`` when a name is given).
        """
        blocks = []
        for row, size in self.stream.rows.items():
            label = f"{row}_{name}" if name else row
            known = row in self.given
            blocks.append([_constant(self.given[row], size, count) if known else sp.MatrixSymbol(label, size, count)])
        return sp.BlockMatrix(blocks)


def scalar(expr: sp.MatrixExpr) -> sp.Expr:
    """The entry of a 1×1 matrix expression, written without matrix products so that equal ones cancel."""
    return sp.expand(sp.ImmutableMatrix([[expr[0, 0]]])[0, 0])


def _refuse_bound(index: sp.Symbol, *parts: Any) -> None:
    """Raise a ValueError if a sum over the index would bind a symbol of its parts."""
    if any([index in sp.sympify(part).free_symbols for part in parts]):
        raise ValueError(f"the sum runs over {index}: call the symbol {index} in it by another name")


def attention_weight(logits: sp.MatrixExpr, key: Any, query: Any) -> sp.Expr:
    """softmax over keys: e^{logits[key, query]} / Σ_k e^{logits[k, query]}; keys are numbered from 0."""
    k = sp.Symbol("k", integer=True, nonnegative=True)
    _refuse_bound(k, logits, query)
    return sp.exp(logits[key, query]) / sp.Sum(sp.exp(logits[k, query]), (k, 0, logits.rows - 1))


def entries(expr: sp.Expr, symbol: sp.MatrixSymbol, value: Any) -> sp.Expr:
    """Replace the entries of a matrix symbol by value(row, column), also where an index is bound by a sum."""
    return expr.replace(
        lambda e: isinstance(e, sp.matrices.expressions.matexpr.MatrixElement) and e.parent == symbol,
        lambda e: value(e.i, e.j),
    )
