"""Sums with symbolic bounds: a normal form, and a decision of expr = 0 that never errs towards yes."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy as sp
from sympy.concrete.expr_with_limits import ExprWithLimits


@cache
def _bound(height: int) -> sp.Symbol:
    """The variable of a sum over sums of the height. No user can write it, and it sorts alike in every run."""
    return sp.Dummy(f"kappa_{height}", dummy_index=height, integer=True)


def _name(height: int, *exprs: sp.Basic) -> sp.Symbol:
    """A variable for a new sum that occurs freely in none of the expressions."""
    free: set[sp.Basic] = set().union(*[expr.free_symbols for expr in exprs])
    while _bound(height) in free:
        height += 1
    return _bound(height)


def put(expr: sp.Basic, symbol: sp.Symbol, value: Any) -> Any:
    """The expression with its free ``symbol`` replaced; variables that would bind a symbol of the value are renamed.

    sympy's own ``subs`` lets them bind: ``Sum(j*k, (k, 1, 3)).subs(j, k)`` is Σ k².
    """
    value = sp.sympify(value)
    return _apart(expr, value.free_symbols).subs(symbol, value)


def _apart(expr: Any, names: set[sp.Basic]) -> Any:
    """The expression with other variables in its sums and products than the names."""
    if not (isinstance(expr, sp.Basic) and names and expr.has(ExprWithLimits)):
        return expr
    expr = expr.func(*[_apart(argument, names) for argument in expr.args])
    if not (isinstance(expr, ExprWithLimits) and names & set(expr.variables)):
        return expr
    *inner, (index, low, high) = expr.limits
    body = _apart(expr.func(expr.function, *inner), names) if inner else expr.function
    if index in names:
        fresh = sp.Dummy(index.name, integer=True)
        body, index = body.subs(index, fresh), fresh
    return expr.func(body, (index, low, high))


def unassuming(expr: Any) -> Any:
    """The expression with sums and products over variables that are integers and nothing more.

    A variable takes all numbers of its range, whatever sympy assumes of it: with k positive Π_{−5≤k≤5} k is said to be.
    """
    if isinstance(expr, sp.MatrixBase):
        return expr.applyfunc(unassuming)
    if not (isinstance(expr, sp.Basic) and expr.has(ExprWithLimits)):
        return expr
    expr = expr.func(*[unassuming(argument) for argument in expr.args])
    odd = [variable for variable in expr.variables if _assumes(variable)] if isinstance(expr, ExprWithLimits) else []
    if not odd:
        return expr
    *inner, (index, low, high) = expr.limits
    body = unassuming(expr.func(expr.function, *inner)) if inner else expr.function
    return expr.func(body.subs(index, _twin(index)), (_twin(index), low, high))


def _assumes(variable: sp.Symbol) -> bool:
    """Whether more is assumed of the symbol than that it is an integer."""
    return not variable.assumptions0.items() <= _bound(0).assumptions0.items()


@cache
def _twin(variable: sp.Symbol) -> sp.Symbol:
    return sp.Dummy(variable.name, integer=True)


def runs_forwards(low: sp.Expr, high: sp.Expr) -> bool:
    """Whether low..high is known to be a range of integers that holds none at least: high ≥ low − 1."""
    return bool(low.is_integer and high.is_integer and (high - low + 1).is_nonnegative)


def _height(expr: sp.Basic) -> int:
    """How deeply sums and products are nested in the expression."""
    below = max([_height(argument) for argument in expr.args], default=0)
    return below + len(expr.limits) if isinstance(expr, ExprWithLimits) else below


def _split(summand: sp.Expr, index: sp.Symbol) -> list[tuple[sp.Expr, sp.Expr]]:
    """The terms of the summand, each as (factor free of the index, rest)."""
    found = []
    common = [factor for factor in sp.Mul.make_args(summand) if index not in factor.free_symbols]
    rest = sp.Mul(*[factor for factor in sp.Mul.make_args(summand) if index in factor.free_symbols])
    for term in sp.Add.make_args(sp.expand(rest)):  # without the common factors: expand would move e^x into them
        free: list[sp.Expr] = []
        bound: list[sp.Expr] = []
        for factor in sp.Mul.make_args(term):
            (bound if index in factor.free_symbols else free).append(factor)
        found.append((sp.Mul(*common, *free), sp.powsimp(sp.Mul(*bound), combine="exp")))
    return found


def _pulled(summand: sp.Expr, index: sp.Symbol, low: sp.Expr, high: sp.Expr) -> sp.Expr:
    """One sum, linear in its summand, constants outside, its variable named by the height of the nest."""
    total = sp.Integer(0)
    for factor, rest in _split(summand, index):
        if rest == 1 and runs_forwards(low, high):  # else there are max(0, high − low + 1) terms
            total += factor * (high - low + 1)
        else:
            name = _name(_height(rest), rest)
            total += factor * sp.Sum(put(rest, index, name), (name, low, high))
    return total


def pull(expr: Any) -> Any:
    """The expression with constants pulled out of its sums, sums split at +, bound variables in a fixed naming.

    Two sums that are equal by linearity become the same sum. Valid for every value of the free symbols.
    """
    if not expr.has(ExprWithLimits):
        return expr
    if not isinstance(expr, ExprWithLimits):
        return expr.func(*[pull(argument) for argument in expr.args])
    *inner, (index, low, high) = expr.limits  # the last is the outermost
    variable = sp.Dummy(integer=True)  # so that no inner sum can bind it
    body = pull(put(expr.func(expr.function, *inner) if inner else expr.function, index, variable))
    if isinstance(expr, sp.Sum):
        return _pulled(body, variable, pull(low), pull(high))
    name = _name(_height(body), body)
    return expr.func(put(body, variable, name), (name, pull(low), pull(high)))


def gather(expr: sp.Expr) -> sp.Expr:
    """The sums of an expression that run over equal ranges as one sum: a Σf + b Σg = Σ(af + bg)."""
    by_range: dict[tuple[sp.Expr, sp.Expr], sp.Expr] = {}
    rest = sp.Integer(0)
    name = _name(_height(expr), expr)
    for term in sp.Add.make_args(expr):
        sums = [factor for factor in sp.Mul.make_args(term) if isinstance(factor, sp.Sum)]
        if len(sums) != 1:
            rest += term
            continue
        *inner, (index, low, high) = sums[0].limits
        body = sp.Sum(sums[0].function, *inner) if inner else sums[0].function
        by_range[low, high] = by_range.get((low, high), 0) + (term / sums[0]) * put(body, index, name)
    return rest + sp.Add(*[sp.Sum(summand, (name, low, high)) for (low, high), summand in by_range.items()])


def first(total: sp.Sum) -> sp.Expr:
    """The sum as its first term plus the rest; the range must hold at least one term.

    Raises:
        ValueError: the range may be empty.
    """
    *inner, (index, low, high) = total.limits
    if not runs_forwards(low, high - 1):
        raise ValueError(f"the range {low}..{high} may be empty")
    body = sp.Sum(total.function, *inner) if inner else total.function
    return put(body, index, low) + sp.Sum(body, (index, low + 1, high))


def split_at(total: sp.Sum, place: sp.Expr) -> tuple[sp.Sum, sp.Sum]:
    """The terms of a sum before the place, and those from the place on; the sum is the sum of the two.

    Raises:
        ValueError: the place is not known to lie in the range or right after it.
    """
    ((index, low, high),) = total.limits
    if not ((place - low).is_nonnegative and (high + 1 - place).is_nonnegative):
        raise ValueError(f"{place} is not known to lie in {low}..{high} + 1")
    return sp.Sum(total.function, (index, low, place - 1)), sp.Sum(total.function, (index, place, high))


def sums_at(expr: sp.Expr, values: dict[sp.Symbol, int]) -> sp.Expr:
    """The expression with sizes replaced by numbers and its sums and products written out."""
    return expr.subs(values).doit()


def _opaque(expr: sp.Expr) -> sp.Expr:
    """Sums and products become symbols: what holds for any value of them holds.

    sympy's own doit, which simplify calls, must not see them: it gets products with a KroneckerDelta wrong.
    """
    return _hidden(expr, {})


def _hidden(expr: Any, names: dict[Any, sp.Expr]) -> Any:
    if not (isinstance(expr, sp.Basic) and expr.has(ExprWithLimits)):
        return expr
    if not isinstance(expr, ExprWithLimits):
        return expr.func(*[_hidden(argument, names) for argument in expr.args])
    if expr not in names:
        names[expr] = sp.Dummy(f"sum_{len(names)}")
    return names[expr]


def _by_ends(expr: Any) -> Any:
    """Sums and products by their ends, Σ_{a≤k≤b} f(k) = F(b+1) − F(a) and Π likewise as a quotient: ranges join.

    F is opaque, one for each summand: it counts from a point below all the ends. This is for ranges that are known
    not to run backwards, b ≥ a − 1; others stay as they are.
    """
    if not expr.has(sp.Sum, sp.Product):
        return expr
    if not isinstance(expr, sp.Sum | sp.Product) or len(expr.limits) != 1:
        return expr.func(*[_by_ends(argument) for argument in expr.args])
    ((index, low, high),) = expr.limits
    if not runs_forwards(low, high):
        return expr
    name = _name(_height(expr.function), expr.function)
    ends = sp.Function(f"ends_{expr.func.__name__}")
    top, bottom = [ends(put(expr.function, index, name), sp.expand(end)) for end in (high + 1, low)]
    return top - bottom if isinstance(expr, sp.Sum) else top / bottom


def _peeled(expr: Any) -> Any:
    """Sums and products of one summand over ranges that end an integer apart, by the shortest and what it lacks.

    Σ_{a≤k≤b+1} f(k) = Σ_{a≤k≤b} f(k) + f(b+1), and Π likewise, where b ≥ a − 1 is known.
    """
    shortest: dict[tuple[Any, ...], sp.Expr] = {}

    def kind(node: Any) -> tuple[Any, ...]:
        ((index, low, _),) = node.limits
        return type(node), put(node.function, index, _name(_height(node.function), node.function)), low

    def known(node: Any) -> bool:
        return isinstance(node, sp.Sum | sp.Product) and len(node.limits) == 1

    for node in sorted([node for node in expr.atoms(sp.Sum, sp.Product) if known(node)], key=sp.default_sort_key):
        _, low, high = node.limits[0]
        other = shortest.get(kind(node))
        if runs_forwards(low, high) and (other is None or bool((other - high).is_positive)):
            shortest[kind(node)] = high

    def peel(node: Any) -> Any:
        index, low, high = node.limits[0]
        end = shortest.get(kind(node), high)
        more = sp.expand(high - end)
        if not (more.is_Integer and more > 0):
            return node
        last = [put(node.function, index, end + step) for step in range(1, int(more) + 1)]
        rest = node.func(node.function, (index, low, end))
        return sp.Add(rest, *last) if isinstance(node, sp.Sum) else sp.Mul(rest, *last)

    return expr.replace(known, peel)


def _without_max(expr: sp.Expr) -> sp.Expr:
    """max(a, b) of two numbers as (a + b + |a − b|)/2, so that relu(a) − relu(−a) is a."""
    return expr.replace(
        lambda e: isinstance(e, sp.Max) and len(e.args) == 2,
        lambda e: (e.args[0] + e.args[1] + sp.Abs(e.args[0] - e.args[1])) / 2,
    )


def _one_term(expr: sp.Expr) -> sp.Expr:
    """Sums whose range is one number as their only term."""
    return expr.replace(
        lambda e: isinstance(e, sp.Sum) and len(e.limits) == 1 and e.limits[0][1] == e.limits[0][2],
        lambda e: _one_term(put(e.function, *e.limits[0][:2])),
    )


def zero(expr: Any) -> bool:
    """Decide expr = 0, for scalars and matrix expressions. True is a proof; False means only "not shown"."""
    expr = unassuming(expr)
    if isinstance(expr, sp.MatrixExpr):  # doit would read sums over reversed ranges as Karr does, so they are hidden
        expr = sp.expand(sp.block_collapse(_opaque(pull(expr)))).doit()
    if isinstance(expr, sp.BlockMatrix):
        return all([zero(block) for block in expr.blocks])
    if isinstance(expr, sp.MatrixBase):
        return all([zero(entry) for entry in expr])
    if isinstance(expr, sp.MatrixExpr):
        return isinstance(expr, sp.ZeroMatrix)
    if expr == 0:
        return True
    if cancels(expr):
        return True
    if expr.has(sp.Sum, sp.Product) and (cancels(_by_ends(pull(sp.expand(expr)))) or cancels(_one_term(expr))):
        return True
    if expr.has(sp.Sum, sp.Product) and cancels(_peeled(pull(expr))):
        return True
    if expr.has(sp.Max) and cancels(_without_max(expr)):
        return True
    try:
        return bool(sp.simplify(sp.expand_log(_opaque(pull(sp.expand(expr))))) == 0)
    except (StopIteration, sp.PolynomialError):  # sympy gives up on some expressions by these: not shown
        return False


def cancels(expr: sp.Expr) -> bool:
    """Decide that a scalar expression is 0 by linearity of sums and algebra of fractions and exponentials alone."""
    for expand in (sp.expand_power_exp, sp.expand):  # expand may move e^x into denominators: try without, first
        try:
            if sp.cancel(sp.together(_opaque(pull(expand(expr))))) == 0:
                return True
        except sp.PolynomialError:
            continue
    return False
