"""Statements about finitely many real numbers, polynomial or piecewise linear, decided by z3."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, mul
from typing import Any

import sympy as sp
import z3

from .witness import NotShown, ShownFalse

_RELATIONS = {
    sp.Eq: lambda a, b: a == b,
    sp.Ne: lambda a, b: a != b,
    sp.Ge: lambda a, b: a >= b,
    sp.Gt: lambda a, b: a > b,
    sp.Le: lambda a, b: a <= b,
    sp.Lt: lambda a, b: a < b,
}
_TIMEOUT = 20_000  # milliseconds; z3's "unknown" is then "not shown"


def to_z3(expr: Any) -> Any:
    """A sympy term or formula over the reals as a z3 one.

    Raises:
        TypeError: a node outside polynomials, Max, Min, Abs, relations, And, Or, Not, Equivalent, Implies.
    """
    if expr.is_Rational:
        return z3.RealVal(str(expr))
    if expr.is_Symbol:
        return z3.Real(expr.name)
    arguments = [to_z3(argument) for argument in expr.args]
    if expr.is_Add:
        return reduce(add, arguments)
    if expr.is_Mul:
        return reduce(mul, arguments)
    if expr.is_Pow and expr.exp.is_Integer:
        power = reduce(mul, [arguments[0]] * abs(int(expr.exp)))
        return power if expr.exp > 0 else 1 / power
    if isinstance(expr, sp.Max | sp.Min):
        larger = isinstance(expr, sp.Max)
        return reduce(lambda a, b: z3.If((a >= b) if larger else (a <= b), a, b), arguments)
    if isinstance(expr, sp.Abs):
        return z3.If(arguments[0] >= 0, arguments[0], -arguments[0])
    if type(expr) in _RELATIONS:
        return _RELATIONS[type(expr)](*arguments)
    connectives = {sp.And: z3.And, sp.Or: z3.Or, sp.Not: z3.Not, sp.Implies: z3.Implies}
    if type(expr) in connectives:
        return connectives[type(expr)](*arguments)
    if isinstance(expr, sp.Equivalent):
        return arguments[0] == arguments[1]
    raise TypeError(f"z3 is not given {type(expr).__name__}: {expr}")


def implied(hypotheses: Sequence[Any], conclusion: Any) -> None:
    """Prove that the hypotheses, with the assumptions on their symbols, imply the conclusion.

    Raises:
        ShownFalse: with the model that refutes it.
        NotShown: z3 answers "unknown", or the hypotheses contradict each other (they would imply anything).
    """
    symbols = set().union(*[formula.free_symbols for formula in (*hypotheses, conclusion)])
    solver = z3.Solver()
    solver.set("timeout", _TIMEOUT)
    for symbol in symbols:
        if symbol.is_positive:
            solver.add(z3.Real(symbol.name) > 0)
        elif symbol.is_nonnegative:
            solver.add(z3.Real(symbol.name) >= 0)
    for formula in hypotheses:
        solver.add(to_z3(formula))
    if solver.check() != z3.sat:
        raise NotShown("the hypotheses are not known to be satisfiable")
    solver.add(z3.Not(to_z3(conclusion)))
    answer = solver.check()
    if answer == z3.sat:
        model = solver.model()
        instance = {s.name: str(model.eval(z3.Real(s.name), model_completion=True)) for s in sorted(symbols, key=str)}
        raise ShownFalse(f"{conclusion} does not follow", instance)
    if answer != z3.unsat:
        raise NotShown(f"z3 answers {answer} for {conclusion}")
