"""Decide a ≤ b and a < b part by part: two expressions of one shape, the parts of b no smaller than those of a."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations

import sympy as sp

from .signs import general_term, nonnegative, positive, real
from .sums import put, unassuming

_MOST_TERMS = 3  # terms that are matched in every order


def dominated(small: sp.Expr, large: sp.Expr, *, strict: bool = False) -> bool:
    """Decide small ≤ large, or < when strict. True is a proof, False means only "not shown".

    Sums over one range are compared term by term, log, exp and reciprocals by their arguments, sums of a few terms and
    products with a common factor by what they do not share; otherwise the sign of the difference decides.
    """
    small, large = unassuming(small), unassuming(large)
    by_parts = real(small) and real(large) and _by_parts(small, large, strict)
    return by_parts or (positive(large - small) if strict else nonnegative(large - small))


def _by_parts(small: sp.Expr, large: sp.Expr, strict: bool) -> bool:
    if small == large:
        return not strict
    if isinstance(small, sp.Sum) and isinstance(large, sp.Sum):
        return _sums(small, large, strict)
    if isinstance(small, sp.log) and isinstance(large, sp.log):
        return positive(small.args[0]) and dominated(small.args[0], large.args[0], strict=strict)
    if isinstance(small, sp.exp) and isinstance(large, sp.exp):
        return dominated(small.exp, large.exp, strict=strict)  # args[0] of an unevaluated E**a is E
    if isinstance(small, sp.Pow) and isinstance(large, sp.Pow) and small.exp == large.exp and small.exp.is_negative:
        return positive(large.base) and dominated(large.base, small.base, strict=strict)
    if (small.is_Add or large.is_Add) and _terms(small, large, strict):
        return True
    if common := _shared(sp.Mul, small, large):
        factor = sp.Mul(*common.elements())
        if positive(factor) or (not strict and nonnegative(factor)):
            return dominated(_without(sp.Mul, small, common), _without(sp.Mul, large, common), strict=strict)
        if positive(-factor) or (not strict and nonnegative(-factor)):
            return dominated(_without(sp.Mul, large, common), _without(sp.Mul, small, common), strict=strict)
    return False


def _sums(small: sp.Sum, large: sp.Sum, strict: bool) -> bool:
    """Term by term, over a range that is known not to run backwards (nor to be empty, when strict)."""
    (*inner, (index, low, high)), (*others, (other, *range_)) = small.limits, large.limits
    if (low, high) != tuple(range_) or not (low.is_integer and high.is_integer):
        return False
    if not nonnegative(high - low + (0 if strict else 1)):
        return False
    left = sp.Sum(small.function, *inner) if inner else small.function
    right = sp.Sum(large.function, *others) if others else large.function
    k = sp.Dummy("k", integer=True)  # neither side can have it free
    both = sp.Tuple(put(left, index, k), put(right, other, k))
    above, below, *sizes = general_term(both, k, low, high)
    terms = (*reversed(sizes), above, below)  # what says most comes first
    return any(dominated(*pair, strict=strict) for pair in terms)


def _shared(operation: type[sp.Expr], small: sp.Expr, large: sp.Expr) -> Counter[sp.Expr]:
    """The terms (or factors) that both have."""
    return Counter(operation.make_args(small)) & Counter(operation.make_args(large))


def _without(operation: type[sp.Expr], expr: sp.Expr, parts: Counter[sp.Expr]) -> sp.Expr:
    return operation(*(Counter(operation.make_args(expr)) - parts).elements())


def _terms(small: sp.Expr, large: sp.Expr, strict: bool) -> bool:
    """What the two sums do not share, matched in some order."""
    common = _shared(sp.Add, small, large)
    left, right = [sp.Add.make_args(_without(sp.Add, expr, common)) for expr in (small, large)]
    if len(left) != len(right) or len(left) > _MOST_TERMS:
        return False
    for order in sorted(permutations(right), key=lambda order: _strangers(left, order)):
        pairs = list(zip(left, order, strict=True))
        if any([a.has(sp.Sum) != b.has(sp.Sum) for a, b in pairs]):
            continue
        if all([dominated(a, b) for a, b in pairs]):
            return not strict or any([dominated(a, b, strict=True) for a, b in pairs])
    return False


def _strangers(left: Sequence[sp.Expr], right: Sequence[sp.Expr]) -> int:
    """How many pairs of terms have sums over different ranges: the fewer, the sooner an order is tried."""
    return sum([_ranges(a) != _ranges(b) for a, b in zip(left, right, strict=True)])


def _ranges(expr: sp.Expr) -> set[tuple[sp.Expr, ...]]:
    """The ranges of all sums in an expression, their variables aside."""
    return {tuple(limits[1:]) for total in expr.atoms(sp.Sum) for limits in total.limits}
