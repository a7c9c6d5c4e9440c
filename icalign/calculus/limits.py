"""Limits that hold for all admissible values of the other symbols: the algebra of limits, rule by rule.

sympy's own limit is generic: it finds 1/((a−1)²t + 1) → 0 as t → ∞, which fails at a = 1.
"""

from __future__ import annotations

import sympy as sp

from .signs import nonzero, positive
from .sums import zero

_OO = (sp.oo, -sp.oo)


def tends(expr: sp.Expr, t: sp.Symbol) -> sp.Expr | None:
    """The limit as t → ∞ of an expression that has a value on the way, ±∞ included; None means "not shown"."""
    if not expr.has(t):  # nor in the shape of a matrix, which its free symbols leave out
        return expr
    if expr == t:
        return sp.oo
    found = _by_parts(expr, t)
    return _ratio(expr, t) if found is None else found


def _by_parts(expr: sp.Expr, t: sp.Symbol) -> sp.Expr | None:
    if isinstance(expr, sp.Add | sp.Mul):
        parts = [tends(argument, t) for argument in expr.args]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return _sum(known) if expr.is_Add else _product(known)
    if isinstance(expr, sp.exp):
        return _exp(tends(expr.exp, t))
    if isinstance(expr, sp.log):
        return _log(tends(expr.args[0], t))
    if isinstance(expr, sp.Pow) and t not in expr.exp.free_symbols:
        return _power(expr.base, tends(expr.base, t), expr.exp)
    if isinstance(expr, sp.Pow) and positive(expr.base):
        return _exp(tends(expr.exp * sp.log(expr.base), t))
    return None


def _sum(parts: list[sp.Expr]) -> sp.Expr | None:
    infinite = {part for part in parts if part in _OO}
    return None if len(infinite) == 2 else infinite.pop() if infinite else sp.Add(*parts)


def _product(parts: list[sp.Expr]) -> sp.Expr | None:
    """Beside an infinite factor every other must be known to be positive or negative."""
    if not any([part in _OO for part in parts]):
        return sp.Mul(*parts)
    signs = [_sign(part) for part in parts]
    return sp.prod(signs) * sp.oo if all(signs) else None


def _sign(value: sp.Expr) -> int:
    """±1 where the sign is shown for all values of the symbols, else 0."""
    return 1 if value is sp.oo or positive(value) else -1 if value is -sp.oo or positive(-value) else 0


def _exp(exponent: sp.Expr | None) -> sp.Expr | None:
    return None if exponent is None else {sp.oo: sp.oo, -sp.oo: sp.Integer(0)}.get(exponent, sp.exp(exponent))


def _log(value: sp.Expr | None) -> sp.Expr | None:
    if value is None or value is sp.oo:
        return value
    return sp.log(value) if positive(value) else -sp.oo if zero(value) else None


def _power(base: sp.Expr, end: sp.Expr | None, exponent: sp.Expr) -> sp.Expr | None:
    """The limit of base^exponent with a base that tends to ``end`` and a fixed exponent."""
    grows = _sign(exponent)
    if end is None:
        return None
    if end not in _OO and (positive(end) or (exponent.is_integer and (grows > 0 or nonzero(end)))):
        return end**exponent
    if not grows or (end is -sp.oo and not exponent.is_Integer) or not (end in _OO or zero(end)):
        return None
    if (end in _OO) != (grows > 0):
        return sp.Integer(0)
    if end is sp.oo or positive(base):
        return sp.oo
    return (-1) ** exponent * sp.oo if exponent.is_Integer and positive(-base) else None


def _ratio(expr: sp.Expr, t: sp.Symbol) -> sp.Expr | None:
    """The limit of a quotient of polynomials in t; the leading coefficient of the lower one must vanish nowhere."""
    parts = sp.fraction(sp.together(expr))
    if not all([part.is_polynomial(t) for part in parts]):
        return None
    above, below = [sp.Poly(part, t) for part in parts]
    if not _sign(below.LC()):
        return None
    degree = above.degree() - below.degree()
    return _product([above.LC() / below.LC(), {-1: sp.Integer(0), 0: sp.Integer(1), 1: sp.oo}[sp.sign(degree)]])
