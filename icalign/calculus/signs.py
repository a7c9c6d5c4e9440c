"""Decide expr ≥ 0 and expr > 0 from the assumptions on symbols, termwise through sums with symbolic bounds.

True is a proof, False means only "not shown". Hypotheses enter as slack: a gap of at least Δ is written Δ + h, h ≥ 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.matrices.expressions.matexpr import MatrixElement
from sympy.matrices.expressions.special import OneMatrix

from .sums import cancels, gather, pull, put, runs_forwards, unassuming

_DEPTH = 4  # how many rewritings deep the search goes


def nonnegative(expr: sp.Expr) -> bool:
    """Decide expr ≥ 0 for all admissible values of its symbols."""
    return _decide(unassuming(sp.sympify(expr)), False, _DEPTH)


def positive(expr: sp.Expr) -> bool:
    """Decide expr > 0 for all admissible values of its symbols."""
    return _decide(unassuming(sp.sympify(expr)), True, _DEPTH)


Condition = tuple[Callable[[Any], bool], list[Any]]


def defined(expr: Any) -> bool:
    """Decide that the expression has a value for all admissible values of its symbols.

    No denominator vanishes, logarithms are taken of positive numbers and roots of nonnegative ones, sums and products
    run over integers, matrices have sizes ≥ 0; also inside of sums and products, for every value of their variables.
    """
    if _sizes_vary(expr):
        return False
    conditions = _conditions(unassuming(expr))
    return all([any(holds(subject) for subject in reversed(subjects)) for holds, subjects in conditions])


def _sizes_vary(expr: Any) -> bool:
    """Whether a sum has its variable in the size of a matrix, where sympy's subs and free_symbols do not see it."""
    shapes = [
        (total, size)
        for total in expr.atoms(sp.Sum, sp.Product)
        for matrix in total.function.atoms(sp.MatrixSymbol)
        for size in matrix.shape
    ]
    return any([size.has(*total.variables) for total, size in shapes])


def _conditions(expr: Any) -> list[Condition]:
    """What must hold for the expression to have a value; each time one of several expressions must be so."""
    if isinstance(expr, sp.MatrixBase):
        return [condition for entry in expr for condition in _conditions(entry)]
    if isinstance(expr, ExprWithLimits):
        return _conditions_within(expr)
    if isinstance(expr, sp.MatrixSymbol | sp.Identity | sp.ZeroMatrix | OneMatrix):
        return [(_is_size, [size]) for size in expr.shape]
    found = [condition for argument in expr.args for condition in _conditions(argument)]
    if isinstance(expr, sp.log):
        found.append((positive, [expr.args[0]]))
    elif isinstance(expr, sp.Pow) and not (expr.exp.is_integer and expr.exp.is_nonnegative):
        found.append((_is_power, [sp.Tuple(expr.base, expr.exp)]))
    elif isinstance(expr, sp.Indexed | sp.KroneckerDelta | MatrixElement):
        indices = expr.indices if isinstance(expr, sp.Indexed) else expr.args[-2:]
        found += [(_is_integer, [index]) for index in indices]
    elif expr in (sp.nan, sp.zoo, sp.oo, -sp.oo, sp.I):
        found.append((lambda _: False, [expr]))
    return found


def _conditions_within(expr: Any) -> list[Condition]:
    *inner, (index, low, high) = expr.limits
    body = expr.func(expr.function, *inner) if inner else expr.function
    found = [*_conditions(low), *_conditions(high), (_is_integer, [low]), (_is_integer, [high])]
    for holds, subjects in _conditions(body):
        found.append((holds, [term for subject in subjects for term in general_term(subject, index, low, high)]))
    return found


def _is_integer(expr: sp.Expr) -> bool:
    return bool(expr.is_integer)


def _is_size(expr: sp.Expr) -> bool:
    return bool(expr.is_integer) and nonnegative(expr)


def _is_power(power: sp.Tuple) -> bool:
    """Whether base^exponent has a value; 0⁰ is 1."""
    base, exponent = power
    if exponent.is_nonnegative:
        return bool(exponent.is_integer) or nonnegative(base)
    return nonzero(base) if exponent.is_integer else positive(base)


def nonzero(expr: Any) -> bool:
    """Decide expr ≠ 0 for all admissible values of its symbols."""
    return expr.is_zero is False or positive(expr) or positive(-expr)


def real(expr: sp.Expr) -> bool:
    """Whether all symbols are real; what :func:`defined` passes is then a real number. Matrix entries are real here."""
    return all([isinstance(s, sp.MatrixSymbol) or bool(s.is_extended_real) for s in _variables(expr)])


def _variables(expr: sp.Expr) -> set[Any]:
    """The free symbols, the names of families left out in favour of their entries."""
    return set(expr.free_symbols) - {family.label for family in expr.atoms(sp.IndexedBase)}


@lru_cache(maxsize=4096)
def _decide(expr: sp.Expr, strict: bool, depth: int) -> bool:
    if any([product.function.is_zero for product in expr.atoms(sp.Product)]):
        return False  # sympy takes it for 0, but it is 1 where its range is empty
    known = expr.is_positive if strict else expr.is_nonnegative
    if known is not None:
        return bool(known)
    if depth == 0:
        return False
    if _by_shape(expr, strict, depth):
        return True
    return any(_decide(form, strict, depth - 1) for form in _rewritings(expr))  # lazily: most need only one


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
    if isinstance(expr, sp.Product):
        return _long_product(expr, strict, depth)
    if isinstance(expr, sp.Mul):
        return _product(expr, strict, depth)
    if isinstance(expr, sp.Add):
        return _terms(expr, strict, depth) or _increasing(expr, strict, depth) or _tangent(expr, strict, depth)
    if isinstance(expr, sp.Pow):
        if expr.exp.is_Integer and expr.exp % 2 == 0 and not strict:
            return real(expr.base)
        return real(expr.exp) and _decide(expr.base, strict or expr.exp.is_nonnegative is not True, depth)
    if isinstance(expr, sp.log):
        return _decide(expr.args[0] - 1, strict, depth - 1)
    if isinstance(expr, sp.exp):
        return real(expr.args[0])
    return False


def _sum(expr: sp.Sum, strict: bool, depth: int) -> bool:
    """Termwise; Karr's convention makes this unsound unless the range is known not to run backwards."""
    *inner, (index, low, high) = expr.limits
    body = sp.Sum(expr.function, *inner) if inner else expr.function
    count = high - low + (0 if strict else 1)
    if not (low.is_integer and high.is_integer) or not _decide(count, False, depth - 1):
        return False
    return any(_decide(term, strict, depth - 1) for term in general_term(body, index, low, high))


def general_term(body: Any, index: sp.Symbol, low: sp.Expr, high: sp.Expr) -> Iterator[sp.Expr]:
    """The summand at index = low + above, at high − below, and with what index ≤ high says of N in high = N + rest.

    There N = index + below − rest, with above, below ≥ 0: an inner sum from index to N is then known not to be empty.
    """
    above, below = sp.symbols("above below", nonnegative=True, integer=True, cls=sp.Dummy)
    inside = sp.Dummy("inside", integer=True)  # the ends may have the name of the index for another number
    body, index = put(body, index, inside), inside
    yield put(body, index, low + above)
    yield put(body, index, high - below)
    for size in sorted(high.free_symbols - low.free_symbols, key=str):
        rest = high - size
        if size.is_integer and size not in rest.free_symbols and size in body.free_symbols:
            yield put(put(body, size, low + above + below - rest), index, low + above)


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


def _long_product(expr: sp.Product, strict: bool, depth: int) -> bool:
    """Factor by factor, where the range is known not to run backwards; an empty product is 1."""
    *inner, (index, low, high) = expr.limits
    body = sp.Product(expr.function, *inner) if inner else expr.function
    if not runs_forwards(low, high):
        return False
    return any(_decide(factor, strict, depth - 1) for factor in general_term(body, index, low, high))


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
            if split is _exponential and not (real(up[1]) and real(down[1])):
                continue
            if split is _exponential or (_decide(up[1], True, depth - 1) and _decide(down[1], True, depth - 1)):
                return _decide(sp.expand(up[1] - down[1]), strict, depth - 1)
    return False


def _tangent(expr: sp.Add, strict: bool, depth: int) -> bool:
    """e^a ≥ 1 + a, where c·e^a with c ≥ 0 is the only exponential: the sign of the sum with c + c·a in its place."""
    exponentials = [term for term in expr.args if term.has(sp.exp)]
    if len(exponentials) != 1:
        return False
    factor, exponent = _exponential(exponentials[0])
    if factor.has(sp.exp) or exponent.has(sp.exp) or not (real(exponent) and _decide(factor, False, depth - 1)):
        return False
    return _decide(sp.expand(expr - exponentials[0] + factor * (1 + exponent)), strict, depth - 1)


def _exponential(term: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """(c, a) with term = c·e^a; a term without an exponential is c·e⁰."""
    factors = sp.Mul.make_args(term)
    exponents = [factor.exp for factor in factors if isinstance(factor, sp.exp)]  # also of an unevaluated E**a
    return sp.Mul(*[factor for factor in factors if not isinstance(factor, sp.exp)]), sp.Add(*exponents)


def _logarithm(term: sp.Expr) -> tuple[sp.Expr, sp.Expr] | None:
    """(c, a) with term = c·log a."""
    logarithms = [factor for factor in sp.Mul.make_args(term) if isinstance(factor, sp.log)]
    return (term / logarithms[0], logarithms[0].args[0]) if len(logarithms) == 1 else None
