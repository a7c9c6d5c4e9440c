"""Decide expr ≥ 0 and expr > 0 from the assumptions on symbols, termwise through sums with symbolic bounds.

True is a proof, False means only "not shown". Hypotheses enter as slack: a gap of at least Δ is written Δ + h, h ≥ 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import sympy as sp

from .sums import cancels, gather, pull

_DEPTH = 4  # how many rewritings deep the search goes


def nonnegative(expr: sp.Expr) -> bool:
    """Decide expr ≥ 0 for all admissible values of its symbols."""
    return _decide(sp.sympify(expr), False, _DEPTH)


def positive(expr: sp.Expr) -> bool:
    """Decide expr > 0 for all admissible values of its symbols."""
    return _decide(sp.sympify(expr), True, _DEPTH)


@lru_cache(maxsize=4096)
def _decide(expr: sp.Expr, strict: bool, depth: int) -> bool:
    known = expr.is_positive if strict else expr.is_nonnegative
    if known is not None:
        return bool(known)
    if depth == 0:
        return False
    if _by_shape(expr, strict, depth):
        return True
    return any([_decide(form, strict, depth - 1) for form in _rewritings(expr)])


def _rewritings(expr: sp.Expr) -> Iterator[sp.Expr]:
    """Equal expressions, or expressions of the same sign."""
    seen = {expr}
    for rewrite in (gather, pull, sp.factor_terms, _one_fraction, sp.factor, sp.expand):
        try:
            form = rewrite(expr)
        except (sp.PolynomialError, StopIteration):  # sympy gives up on some expressions by these
            continue
        if form not in seen:
            seen.add(form)
            yield form


def _one_fraction(expr: sp.Expr) -> sp.Expr:
    numerator, denominator = sp.fraction(sp.together(expr))
    return sp.factor_terms(numerator) / denominator


def _by_shape(expr: sp.Expr, strict: bool, depth: int) -> bool:
    if isinstance(expr, sp.Sum):
        return _sum(expr, strict, depth)
    if isinstance(expr, sp.Mul):
        return _product(expr, strict, depth)
    if isinstance(expr, sp.Add):
        return _terms(expr, strict, depth) or _increasing(expr, strict, depth)
    if isinstance(expr, sp.Pow):
        if expr.exp.is_Integer and expr.exp % 2 == 0 and not strict:
            return bool(expr.base.is_real)
        return bool(expr.exp.is_real) and _decide(expr.base, strict or expr.exp.is_nonnegative is not True, depth)
    if isinstance(expr, sp.log):
        return _decide(expr.args[0] - 1, strict, depth - 1)
    return False


def _sum(expr: sp.Sum, strict: bool, depth: int) -> bool:
    """Termwise; Karr's convention makes this unsound unless the range is known not to run backwards."""
    *inner, (index, low, high) = expr.limits
    body = sp.Sum(expr.function, *inner) if inner else expr.function
    count = high - low + (0 if strict else 1)
    above = sp.Dummy(nonnegative=True, integer=True)  # the index is low + above
    return _decide(count, False, depth - 1) and _decide(body.subs(index, low + above), strict, depth - 1)


def _product(expr: sp.Mul, strict: bool, depth: int) -> bool:
    sign = 1
    for factor in expr.args:
        if _decide(factor, strict, depth - 1):
            continue
        if _decide(-factor, strict, depth - 1):
            sign = -sign
        else:
            return False
    return sign == 1


def _terms(expr: sp.Add, strict: bool, depth: int) -> bool:
    """All terms ≥ 0, and for > 0 one of them > 0."""
    if not all([_decide(term, False, depth - 1) for term in expr.args]):
        return False
    return not strict or any([_decide(term, True, depth - 1) for term in expr.args])


def _increasing(expr: sp.Add, strict: bool, depth: int) -> bool:
    """c·f(a) − c·f(b) with f = exp or log increasing and c > 0: the sign of a − b."""
    if len(expr.args) != 2:
        return False
    for plus, minus in (expr.args, expr.args[::-1]):
        for split in (_exponential, _logarithm):
            up, down = split(plus), split(-minus)
            if up is None or down is None or not cancels(up[0] - down[0]) or not _decide(up[0], True, depth - 1):
                continue
            if split is _exponential or (_decide(up[1], True, depth - 1) and _decide(down[1], True, depth - 1)):
                return _decide(up[1] - down[1], strict, depth - 1)
    return False


def _exponential(term: sp.Expr) -> tuple[sp.Expr, sp.Expr] | None:
    """(c, a) with term = c·e^a; a term without an exponential is c·e⁰."""
    factors = sp.Mul.make_args(term)
    exponents = [factor.args[0] for factor in factors if isinstance(factor, sp.exp)]
    return sp.Mul(*[factor for factor in factors if not isinstance(factor, sp.exp)]), sp.Add(*exponents)


def _logarithm(term: sp.Expr) -> tuple[sp.Expr, sp.Expr] | None:
    """(c, a) with term = c·log a."""
    logarithms = [factor for factor in sp.Mul.make_args(term) if isinstance(factor, sp.log)]
    return (term / logarithms[0], logarithms[0].args[0]) if len(logarithms) == 1 else None
