r"""Formulas between named rows: what a lemma writes, as objects.

A :class:`Form` is a linear (or affine) form of one token, ``W @ i.x`` or ``2 * eta * j.y``; a
:class:`Bilinear` is a sum of products of a form of the asking token i with a form of the answering
token j, such as ``gamma_1 * i.one * j.r - c * i.m @ j.p``, that is γ₁r_j − c⟨m_i, p_j⟩; a
:class:`PiecewiseLinear` is a sum of ReLUs of forms. Coefficients may be sympy expressions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import sympy as sp

Size: TypeAlias = "int | sp.Expr"
Scalar: TypeAlias = "int | float | sp.Expr"


def same_size(a: Size, b: Size) -> bool:
    """Whether two sizes are equal for all values of their symbols."""
    return bool(sp.sympify(a - b) == 0)


def exact_number(value: Any) -> sp.Rational:
    """A number as an exact rational.

    Raises:
        ValueError: NaN or infinity, of which ``sympy.Rational`` makes 0.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value}, expected a finite number")
    return sp.Rational(value)


def _scalar(value: object) -> sp.Expr | None:
    """The value as an exact sympy scalar, or None when it is no scalar."""
    if isinstance(value, bool) or not isinstance(value, int | float | sp.Expr):
        return None
    if isinstance(value, sp.MatrixExpr):
        return None
    exact = exact_number(value) if isinstance(value, float) else sp.sympify(value)
    if exact.has(sp.nan, sp.oo, -sp.oo, sp.zoo):
        raise ValueError(f"coefficient {value}, expected a finite number or a sympy expression")
    return exact


def split(matrix: sp.MatrixExpr) -> tuple[sp.Expr, sp.MatrixExpr]:
    """(c, M) with matrix = c·M, c a scalar."""
    factor, rest = matrix.as_coeff_mmul()
    return factor, rest.doit()


@dataclass(frozen=True)
class Term:
    """scalar · matrix · token[row]; the matrix has as many columns as the row has entries."""

    row: str
    scalar: sp.Expr
    matrix: sp.MatrixExpr


class Token:
    """One token of a stream; its attributes are its rows as forms. ``side`` is "i" (asks) or "j" (answers)."""

    def __init__(self, rows: Mapping[str, sp.Expr], side: str) -> None:
        self._rows, self._side = rows, side

    def __getattr__(self, row: str) -> Form:
        if row.startswith("_"):
            raise AttributeError(row)
        if row not in self._rows:
            raise AttributeError(f"no row {row!r} in the stream ({', '.join(self._rows)})")
        size = self._rows[row]
        return Form(self._side, size, (Term(row, sp.Integer(1), sp.Identity(size)),))


@dataclass(frozen=True, eq=False)
class Form:
    r"""An affine form of one token, :math:`\sum_k c_k M_k\, e[\mathrm{row}_k] + b`, of the given size.

    The bias b is added to every component. Scalars multiply with ``*``, matrices with ``@``; the product of two
    forms of size one is ``*``, the inner product of two forms of one size ``@``, both a :class:`Bilinear`.
    """

    side: str
    size: sp.Expr
    terms: tuple[Term, ...]
    bias: sp.Expr = sp.S.Zero

    def _scaled(self, factor: sp.Expr) -> Form:
        terms = tuple([replace(t, scalar=factor * t.scalar) for t in self.terms])
        return replace(self, terms=terms, bias=factor * self.bias)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Form):
            if not (same_size(self.size, 1) and same_size(other.size, 1)):
                raise ValueError(
                    f"`*` multiplies forms of size 1, got sizes {self.size} and {other.size}; use `@` for ⟨·,·⟩"
                )
            return Bilinear.of(self, other)
        if isinstance(other, Bilinear):
            return NotImplemented
        factor = _scalar(other)
        return NotImplemented if factor is None else self._scaled(factor)

    def __rmul__(self, other: Any) -> Any:
        factor = _scalar(other)
        return NotImplemented if factor is None else self._scaled(factor)

    def __truediv__(self, other: Any) -> Form:
        factor = _scalar(other)
        return NotImplemented if factor is None else self._scaled(1 / factor)

    def __matmul__(self, other: Any) -> Any:
        if not isinstance(other, Form):
            return NotImplemented
        if not same_size(self.size, other.size):
            raise ValueError(f"⟨·,·⟩ of forms of sizes {self.size} and {other.size}")
        return Bilinear.of(self, other)

    def __rmatmul__(self, matrix: Any) -> Form:
        if not isinstance(matrix, sp.MatrixExpr):
            return NotImplemented
        if not same_size(matrix.shape[1], self.size):
            raise ValueError(f"matrix of shape {matrix.shape} times a form of size {self.size}")
        if self.bias != 0:
            raise ValueError(f"a matrix times a form with the bias {self.bias}: add the bias last")
        factor, rest = split(matrix)
        terms = tuple([Term(t.row, factor * t.scalar, (rest * t.matrix).doit()) for t in self.terms])
        return Form(self.side, matrix.shape[0], terms)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Form):
            if other.side != self.side:
                raise ValueError(f"sum of a form of token {self.side} and one of token {other.side}")
            if not same_size(self.size, other.size):
                raise ValueError(f"sum of forms of sizes {self.size} and {other.size}")
            return Form(self.side, self.size, self.terms + other.terms, self.bias + other.bias)
        bias = _scalar(other)
        return NotImplemented if bias is None else replace(self, bias=self.bias + bias)

    def __radd__(self, other: Any) -> Any:
        return self.__add__(other)

    def __neg__(self) -> Form:
        return self._scaled(sp.Integer(-1))

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other


@dataclass(frozen=True, eq=False)
class Bilinear:
    r"""A sum of inner products :math:`\sum_k \langle a_k(i), b_k(j) \rangle`; its pairs are (a_k, b_k)."""

    pairs: tuple[tuple[Form, Form], ...]

    @classmethod
    def of(cls, a: Form, b: Form) -> Bilinear:
        """The product of one form of token i and one of token j, in either order."""
        if a.side == b.side:
            raise ValueError(f"a logit multiplies a form of token i with one of token j, got two of token {a.side}")
        query, key = (a, b) if a.side == "i" else (b, a)
        for form in (query, key):
            if form.bias != 0:
                raise ValueError(f"attention has no bias, got {form.bias} in a logit: use a row of ones")
        return cls(((query, key),))

    def __add__(self, other: Any) -> Any:
        return Bilinear(self.pairs + other.pairs) if isinstance(other, Bilinear) else NotImplemented

    def __mul__(self, other: Any) -> Bilinear:
        factor = _scalar(other)
        if factor is None:
            return NotImplemented
        return Bilinear(tuple([(factor * query, key) for query, key in self.pairs]))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Bilinear:
        factor = _scalar(other)
        return NotImplemented if factor is None else self * (1 / factor)

    def __neg__(self) -> Bilinear:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + (-other)


@dataclass(frozen=True, eq=False)
class PiecewiseLinear:
    r"""A sum of ReLUs of forms of one token, :math:`\sum_k M_k\,\mathrm{relu}(f_k) + b`."""

    size: sp.Expr
    terms: tuple[tuple[sp.Expr, sp.MatrixExpr, Form], ...]
    bias: sp.Expr = sp.S.Zero

    def __add__(self, other: Any) -> Any:
        if isinstance(other, PiecewiseLinear):
            if not same_size(self.size, other.size):
                raise ValueError(f"sum of ReLUs of sizes {self.size} and {other.size}")
            return PiecewiseLinear(self.size, self.terms + other.terms, self.bias + other.bias)
        bias = _scalar(other)
        return NotImplemented if bias is None else replace(self, bias=self.bias + bias)

    __radd__ = __add__

    def __mul__(self, other: Any) -> PiecewiseLinear:
        factor = _scalar(other)
        if factor is None:
            return NotImplemented
        terms = tuple([(factor * scalar, matrix, form) for scalar, matrix, form in self.terms])
        return PiecewiseLinear(self.size, terms, factor * self.bias)

    __rmul__ = __mul__

    def __rmatmul__(self, matrix: Any) -> PiecewiseLinear:
        if not isinstance(matrix, sp.MatrixExpr):
            return NotImplemented
        if not same_size(matrix.shape[1], self.size):
            raise ValueError(f"matrix of shape {matrix.shape} times ReLUs of size {self.size}")
        if self.bias != 0:
            raise ValueError(f"a matrix times ReLUs with the bias {self.bias}: add the bias last")
        factor, rest = split(matrix)
        terms = tuple([(factor * scalar, (rest * inner).doit(), form) for scalar, inner, form in self.terms])
        return PiecewiseLinear(matrix.shape[0], terms)

    def __neg__(self) -> PiecewiseLinear:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other


def relu(form: Form) -> PiecewiseLinear:
    r"""relu(f) = max(f, 0), component by component, of an affine form f of the token i."""
    if form.side != "i":
        raise ValueError(f"a feed-forward layer sees the token i alone, got a form of token {form.side}")
    return PiecewiseLinear(form.size, ((sp.Integer(1), sp.Identity(form.size), form),))
