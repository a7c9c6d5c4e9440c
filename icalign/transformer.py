r"""The numeric reading of a specification: a torch module whose weights are its matrices.

Coefficients go in as exact rationals and are rounded once to the dtype, so that a weight equals the entry of the
sympy matrix bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import sympy as sp
import torch
from jaxtyping import Bool, Float
from sympy.matrices.expressions.diagonal import DiagMatrix
from sympy.matrices.expressions.special import OneMatrix
from torch import Tensor, nn

from .bounds import unit_roundoff
from .forms import exact_number, split
from .spec import Block, FeedForward, Head, LinearHead
from .stream import Stream
from .symbolic import FeedForwardMatrices, HeadMatrices, bands

Values = Mapping[Any, Any]  # sympy symbol → number; sympy matrix symbol → tensor


def nearest(value: Fraction, dtype: torch.dtype) -> float:
    """The number of the dtype nearest to an exact rational, ties to even; exactly one rounding.

    Raises:
        OverflowError: the value is beyond the largest finite number of the dtype.
    """
    if value == 0:
        return 0.0
    digits = round(-torch.log2(torch.tensor(unit_roundoff(dtype), dtype=torch.float64)).item())
    smallest = torch.finfo(dtype).smallest_normal
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1  # now 2^exponent ≤ |value| < 2^(exponent + 1)
    lowest = Fraction(smallest).denominator.bit_length() - 1
    unit = Fraction(2) ** (max(exponent, -lowest) - digits + 1)
    rounded = round(value / unit) * unit
    largest = torch.finfo(dtype).max
    if abs(rounded) > Fraction(largest):
        shown = Decimal(value.numerator) / Decimal(value.denominator)  # float(value) may overflow as well
        raise OverflowError(f"{shown:.6g} is beyond {dtype}, whose largest number is {largest:.6g}")
    return float(rounded)


class _Substitution:
    """Exact values of coefficient matrices once sizes, scalars and parameter matrices are given."""

    def __init__(self, values: Values, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.matrices: dict[str, list[list[Fraction]]] = {}
        self.scalars: dict[Any, sp.Expr] = {}
        self.known: dict[Any, Fraction] = {}
        for symbol, value in values.items():
            if isinstance(symbol, sp.MatrixSymbol):
                self.matrices[symbol.name] = [[Fraction(entry) for entry in row] for row in value.double().tolist()]
            else:
                self.scalars[symbol] = exact_number(value)

    def scalar(self, expr: Any) -> Fraction:
        if expr not in self.known:
            value = sp.sympify(expr).subs(self.scalars)
            if not value.is_Rational:
                raise ValueError(f"the coefficient {expr} is {value} after substitution, expected a number")
            self.known[expr] = Fraction(int(value.p), int(value.q))
        return self.known[expr]

    def size(self, expr: Any) -> int:
        value = self.scalar(expr)
        if value.denominator != 1 or value < 0:
            raise ValueError(f"the size {expr} is {value}, expected a nonnegative integer")
        return int(value)

    def exact(self, expr: sp.MatrixExpr) -> list[list[Fraction]]:
        """A coefficient: sums and products of scalars, parameter matrices, their transposes, identities, formulas."""
        if isinstance(expr, sp.MatAdd):
            parts = [self.exact(part) for part in expr.args]
            return [[sum(cells, Fraction(0)) for cells in zip(*rows, strict=True)] for rows in zip(*parts, strict=True)]
        if isinstance(expr, sp.MatMul):
            factor, rest = expr.as_coeff_matrices()
            product = self.exact(rest[0])
            for matrix in rest[1:]:
                columns = list(zip(*self.exact(matrix), strict=True))
                product = [[sum(map(Fraction.__mul__, row, col), Fraction(0)) for col in columns] for row in product]
            scale = self.scalar(factor)
            return [[scale * cell for cell in row] for row in product]
        if isinstance(expr, sp.Transpose):
            return [list(column) for column in zip(*self.exact(expr.arg), strict=True)]
        if isinstance(expr, sp.MatrixSymbol):
            if expr.name not in self.matrices:
                raise ValueError(f"no value is given for the matrix {expr.name}")
            return self.matrices[expr.name]
        height, width = [self.size(size) for size in expr.shape]
        if isinstance(expr, sp.FunctionMatrix):
            return [[self.scalar(expr.lamda(a, b)) for b in range(width)] for a in range(height)]
        if isinstance(expr, DiagMatrix):
            entries = [row[0] for row in self.exact(expr.args[0])]
            return [[entries[a] if a == b else Fraction(0) for b in range(width)] for a in range(height)]
        if isinstance(expr, sp.Identity):
            return [[Fraction(int(a == b)) for b in range(width)] for a in range(height)]
        if isinstance(expr, sp.ZeroMatrix | OneMatrix):
            return [[Fraction(int(isinstance(expr, OneMatrix)))] * width for _ in range(height)]
        raise ValueError(f"the coefficient {expr} is a {type(expr).__name__}, which has no numbers here")

    def tensor(self, expr: sp.MatrixExpr) -> Tensor:
        """A coefficient, rounded once; the common sparse blocks take a short way to the same numbers."""
        rows, columns = [self.size(size) for size in expr.shape]
        if isinstance(expr, sp.ZeroMatrix):
            return torch.zeros(rows, columns, dtype=self.dtype)
        factor, rest = split(expr)
        if isinstance(rest, sp.Identity):
            return nearest(self.scalar(factor), self.dtype) * torch.eye(rows, dtype=self.dtype)
        if isinstance(rest, DiagMatrix):
            return torch.diag(self.tensor(factor * rest.args[0])[:, 0])
        if diagonals := bands(expr):
            return self.banded(diagonals, rows, columns)
        exact = self.exact(expr)
        if (len(exact), len(exact[0])) != (rows, columns):
            raise ValueError(f"{expr} has shape {(rows, columns)}, the value given {(len(exact), len(exact[0]))}")
        return torch.tensor([[nearest(cell, self.dtype) for cell in row] for row in exact], dtype=self.dtype)

    def banded(self, diagonals: Mapping[sp.Expr, sp.Expr], rows: int, columns: int) -> Tensor:
        """The matrix with the given numbers on the diagonals b = a + offset, rounded once."""
        result = torch.zeros(rows, columns, dtype=self.dtype)
        for offset, factor in diagonals.items():
            result.diagonal(int(self.scalar(offset))).fill_(nearest(self.scalar(factor), self.dtype))
        return result

    def block(self, matrix: sp.BlockMatrix) -> Tensor:
        rows, columns = matrix.blockshape
        lines = [torch.cat([self.tensor(matrix.blocks[a, b]) for b in range(columns)], dim=1) for a in range(rows)]
        return torch.cat(lines, dim=0)


def softmax_over_visible(
    logits: Float[Tensor, "*batch queries keys"], visible: Bool[Tensor, "queries keys"]
) -> Float[Tensor, "*batch queries keys"]:
    """Plain softmax over the keys that a query sees; 0 for the others.

    Raises:
        ValueError: a query sees no key (softmax would be 0/0).
    """
    if not bool(visible.any(dim=-1).all()):
        raise ValueError(f"query {int((~visible.any(dim=-1)).nonzero()[0])} sees no key")
    if not bool(visible.all()):
        logits = logits.masked_fill(~visible, float("-inf"))
    return torch.softmax(logits, dim=-1)


class Attention(nn.Module):
    r"""One head: :math:`\sum_j \mathrm{softmax}_j\langle W_K e_j, W_Q e_i\rangle\; PV e_j` for every token i.

    Parameters ``query``, ``key`` (key width × width) and ``value`` (width × width). A head of linear attention
    (:class:`icalign.spec.LinearHead`) uses the logits as weights. ``value`` is made unless that of a head with the same
    ``write`` is given.
    """

    def __init__(
        self, head: Head, stream: Stream, values: Values, dtype: torch.dtype, value: nn.Parameter | None = None
    ) -> None:
        super().__init__()
        matrices, numbers = HeadMatrices.of(head, stream), _Substitution(values, dtype)
        self.query = nn.Parameter(numbers.block(matrices.query))
        self.key = nn.Parameter(numbers.block(matrices.key))
        self.value = nn.Parameter(numbers.block(matrices.value)) if value is None else value
        self.linear = isinstance(head, LinearHead)

    def weights(
        self, X: Float[Tensor, "*batch tokens width"], visible: Bool[Tensor, "tokens tokens"]
    ) -> Float[Tensor, "*batch tokens tokens"]:
        """Weight of key j (last) at query i (second last)."""
        logits = (X @ self.query.T) @ (X @ self.key.T).mT
        return logits.masked_fill(~visible, 0) if self.linear else softmax_over_visible(logits, visible)

    def forward(
        self, X: Float[Tensor, "*batch tokens width"], visible: Bool[Tensor, "tokens tokens"]
    ) -> Float[Tensor, "*batch tokens width"]:
        """What the head adds to every token."""
        return self.weights(X, visible) @ (X @ self.value.T)


class ReluLayer(nn.Module):
    r"""W₂ relu(W₁e + b₁) + b₂ for every token; parameters ``first``, ``first_bias``, ``second``, ``second_bias``."""

    def __init__(self, layer: FeedForward, stream: Stream, values: Values, dtype: torch.dtype) -> None:
        super().__init__()
        matrices, numbers = FeedForwardMatrices.of(layer, stream), _Substitution(values, dtype)
        self.first = nn.Parameter(numbers.block(matrices.first))
        self.first_bias = nn.Parameter(numbers.block(matrices.first_bias)[:, 0])
        self.second = nn.Parameter(numbers.block(matrices.second))
        self.second_bias = nn.Parameter(numbers.block(matrices.second_bias)[:, 0])

    def forward(self, X: Float[Tensor, "*batch tokens width"]) -> Float[Tensor, "*batch tokens width"]:
        """What the layer adds to every token."""
        hidden = torch.relu(X @ self.first.T + self.first_bias)
        return hidden @ self.second.T + self.second_bias


class TransformerBlock(nn.Module):
    """Heads side by side, then a ReLU layer, both residual."""

    def __init__(self, block: Block, stream: Stream, values: Values, dtype: torch.dtype) -> None:
        super().__init__()
        self.heads = nn.ModuleList()
        shared: dict[int, nn.Parameter] = {}  # a matrix of values is kept once for all heads that write one object
        for head in block.heads:
            attention = Attention(head, stream, values, dtype, shared.get(id(head.write)))
            shared[id(head.write)] = attention.value
            self.heads.append(attention)
        layer = block.feed_forward
        self.feed_forward = ReluLayer(layer, stream, values, dtype) if layer else None
        self.causal = block.causal

    def visible(self, X: Float[Tensor, "*batch tokens width"]) -> Bool[Tensor, "tokens tokens"]:
        """Which keys (columns) each query (row) sees."""
        everything = torch.ones(X.shape[-2], X.shape[-2], dtype=torch.bool, device=X.device)
        return everything.tril() if self.causal else everything

    def weights(self, X: Float[Tensor, "*batch tokens width"]) -> Float[Tensor, "heads *batch tokens tokens"]:
        """The attention weights of every head."""
        visible = self.visible(X)
        return torch.stack([head.weights(X, visible) for head in self.attention_heads()])

    def attention_heads(self) -> Iterator[Attention]:
        """The heads, typed."""
        for head in self.heads:
            assert isinstance(head, Attention)
            yield head

    def attend(self, X: Float[Tensor, "*batch tokens width"]) -> Float[Tensor, "*batch tokens width"]:
        """The tokens after the heads, before the ReLU layer."""
        if not len(self.heads):  # then no mask of n × n is needed
            return X
        visible = self.visible(X)
        for update in [head(X, visible) for head in self.heads]:
            X = X + update
        return X

    def forward(self, X: Float[Tensor, "*batch tokens width"]) -> Float[Tensor, "*batch tokens width"]:
        """The tokens after the block."""
        X = self.attend(X)
        return X if self.feed_forward is None else X + self.feed_forward(X)


class Transformer(nn.Module):
    """The paper's transformer: no 1/√d, no LayerNorm, biases only where the specification has them.

    The weights are parameters, frozen as they are set by hand; ``requires_grad_()`` sets them free.

    Args:
        blocks: the layers, in order; a block that occurs several times shares its weights.
        stream: the rows of a token; sizes may be symbols.
        values: a number for every symbol and a tensor for every matrix symbol of stream and blocks.
        dtype: of all weights.

    Raises:
        ValueError: a symbol without a value, or a matrix of another shape.
        OverflowError: a weight beyond the range of the dtype.
    """

    def __init__(
        self, blocks: Sequence[Block], stream: Stream, values: Values, dtype: torch.dtype = torch.float64
    ) -> None:
        super().__init__()
        sizes = {symbol: value for symbol, value in values.items() if isinstance(symbol, sp.Symbol)}
        self.rows = stream.at({symbol: exact_number(value) for symbol, value in sizes.items()}).slices
        distinct = {id(block): block for block in blocks}
        built = {name: TransformerBlock(block, stream, values, dtype) for name, block in distinct.items()}
        self.blocks = nn.ModuleList([built[id(block)] for block in blocks])
        self.requires_grad_(False)

    def forward(self, X: Float[Tensor, "*batch tokens width"]) -> Float[Tensor, "*batch tokens width"]:
        """All tokens after all blocks."""
        for block in self.blocks:
            X = block(X)
        return X

    def stages(self, X: Float[Tensor, "*batch tokens width"]) -> list[Float[Tensor, "*batch tokens width"]]:
        """The tokens at the start, and for every block after its heads and at its end; for pictures."""
        found = [X]
        for block in self.blocks:
            assert isinstance(block, TransformerBlock)
            found += [block.attend(found[-1]), block(found[-1])]
        return found

    def attention(self, X: Float[Tensor, "*batch tokens width"]) -> list[Float[Tensor, "heads *batch tokens tokens"]]:
        """The attention weights of every block that has heads, on the input X; for pictures."""
        found = []
        for block in self.blocks:
            assert isinstance(block, TransformerBlock)
            if len(block.heads):
                found.append(block.weights(X))
            X = block(X)
        return found
