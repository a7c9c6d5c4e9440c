"""Sums with symbolic bounds: a normal form, and a decision of expr = 0 that never errs towards yes."""

from __future__ import annotations

import sympy as sp


def _height(expr: sp.Basic) -> int:
    """How deeply sums are nested in the expression."""
    below = max([_height(argument) for argument in expr.args], default=0)
    return below + 1 if isinstance(expr, sp.Sum) else below


def _split(summand: sp.Expr, index: sp.Symbol) -> list[tuple[sp.Expr, sp.Expr]]:
    """The terms of the summand, each as (factor free of the index, rest)."""
    found = []
    for term in sp.Add.make_args(sp.expand(summand)):
        free: list[sp.Expr] = []
        bound: list[sp.Expr] = []
        for factor in sp.Mul.make_args(term):
            (bound if index in factor.free_symbols else free).append(factor)
        found.append((sp.Mul(*free), sp.powsimp(sp.Mul(*bound), combine="exp")))
    return found


def _pulled(summand: sp.Expr, index: sp.Symbol, low: sp.Expr, high: sp.Expr) -> sp.Expr:
    """One sum, linear in its summand, constants outside, its variable named by the height of the nest."""
    total = sp.Integer(0)
    for factor, rest in _split(summand, index):
        if rest == 1 and (high - low + 1).is_nonnegative:  # else Karr's convention could count negatively
            total += factor * (high - low + 1)
        else:
            name = sp.Symbol(f"kappa_{_height(rest)}", integer=True)
            total += factor * sp.Sum(rest.subs(index, name), (name, low, high))
    return total


def pull(expr: sp.Expr) -> sp.Expr:
    """The expression with constants pulled out of its sums, sums split at +, bound variables in a fixed naming.

    Two sums that are equal by linearity become the same sum. Valid for every value of the free symbols.
    """
    if not expr.has(sp.Sum):
        return expr
    if not isinstance(expr, sp.Sum):
        return expr.func(*[pull(argument) for argument in expr.args])
    summand = expr.function
    for index, low, high in expr.limits:  # innermost first
        summand = _pulled(pull(summand), index, pull(low), pull(high))
    return summand


def gather(expr: sp.Expr) -> sp.Expr:
    """The sums of an expression that run over equal ranges as one sum: a Σf + b Σg = Σ(af + bg)."""
    by_range: dict[tuple[sp.Expr, sp.Expr], sp.Expr] = {}
    rest = sp.Integer(0)
    name = sp.Symbol(f"kappa_{_height(expr)}", integer=True)
    for term in sp.Add.make_args(expr):
        sums = [factor for factor in sp.Mul.make_args(term) if isinstance(factor, sp.Sum)]
        if len(sums) != 1:
            rest += term
            continue
        *inner, (index, low, high) = sums[0].limits
        body = sp.Sum(sums[0].function, *inner) if inner else sums[0].function
        by_range[low, high] = by_range.get((low, high), 0) + (term / sums[0]) * body.subs(index, name)
    return rest + sp.Add(*[sp.Sum(summand, (name, low, high)) for (low, high), summand in by_range.items()])


def first(total: sp.Sum) -> sp.Expr:
    """The sum as its first term plus the rest; the range must hold at least one term.

    Raises:
        ValueError: the range may be empty.
    """
    ((index, low, high),) = total.limits
    if not (high - low).is_nonnegative:
        raise ValueError(f"the range {low}..{high} may be empty")
    return total.function.subs(index, low) + sp.Sum(total.function, (index, low + 1, high))


def sums_at(expr: sp.Expr, values: dict[sp.Symbol, int]) -> sp.Expr:
    """The expression with sizes replaced by numbers and its sums and products written out."""
    return expr.subs(values).doit()


def _opaque(expr: sp.Expr) -> sp.Expr:
    """Sums become symbols: what holds for any value of them holds."""
    return expr.xreplace({total: sp.Dummy() for total in expr.atoms(sp.Sum)})


def zero(expr: sp.Basic) -> bool:
    """Decide expr = 0, for scalars and matrix expressions. True is a proof; False means only "not shown"."""
    if isinstance(expr, sp.MatrixBase | sp.MatrixExpr):
        expr = sp.expand(sp.block_collapse(expr)).doit()
        if isinstance(expr, sp.BlockMatrix):
            return all([zero(block) for block in expr.blocks])
        if isinstance(expr, sp.MatrixBase):
            return all([zero(entry) for entry in expr])
        return isinstance(expr, sp.ZeroMatrix)
    if expr == 0:
        return True
    if cancels(expr):
        return True
    try:
        return bool(sp.simplify(sp.expand_log(_opaque(pull(sp.expand(expr))))) == 0)
    except (StopIteration, sp.PolynomialError):  # sympy gives up on some expressions by these: not shown
        return False


def cancels(expr: sp.Expr) -> bool:
    """Decide that a scalar expression is 0 by linearity of sums and algebra of fractions and exponentials alone."""
    try:
        return bool(sp.cancel(sp.together(_opaque(pull(sp.expand(expr))))) == 0)
    except sp.PolynomialError:
        return False
