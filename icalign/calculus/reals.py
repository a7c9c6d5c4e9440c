"""Statements about finitely many real numbers, polynomial or piecewise linear, decided by z3."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add, mul
from typing import Any

import sympy as sp
import z3

from .witness import NotShown, ShownFalse, admissible, refuse_homonyms

_RELATIONS = {
    sp.Eq: lambda a, b: a == b,
    sp.Ne: lambda a, b: a != b,
    sp.Ge: lambda a, b: a >= b,
    sp.Gt: lambda a, b: a > b,
    sp.Le: lambda a, b: a <= b,
    sp.Lt: lambda a, b: a < b,
}
_ASSUMED: dict[str, Callable[[Any], Any]] = {
    "positive": lambda x: x > 0,
    "nonnegative": lambda x: x >= 0,
    "negative": lambda x: x < 0,
    "nonpositive": lambda x: x <= 0,
    "nonzero": lambda x: x != 0,
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
        return z3.And([arguments[0] == other for other in arguments[1:]])
    raise TypeError(f"z3 is not given {type(expr).__name__}: {expr}")


def implied(hypotheses: Sequence[Any], conclusion: Any) -> None:
    """Prove that the hypotheses, with the assumptions on their symbols, imply the conclusion.

    z3 gives x/0 some value; so every denominator must be shown not to vanish, from the assumptions and from the
    hypotheses without a division.

    Raises:
        ShownFalse: with the instance that refutes it.
        NotShown: z3 answers "unknown"; a denominator may vanish; or the hypotheses are not known to be satisfiable
            (from a contradiction anything would follow).
        TypeError: a formula that z3 does not know (:func:`to_z3`).
        ValueError: a formula is no statement (sympy has evaluated it to true or false), or two symbols have one name.
    """
    formulas = [*hypotheses, conclusion]
    for formula in formulas:
        if not isinstance(formula, sp.logic.boolalg.Boolean) or formula in (sp.true, sp.false):
            raise ValueError(f"{formula} states nothing: a formula with symbols is expected")
        to_z3(formula)  # raises for what z3 does not know
    refuse_homonyms(formulas)
    symbols = sorted(set().union(*[formula.free_symbols for formula in formulas]), key=str)
    plain = [formula for formula in hypotheses if not _denominators(formula)]
    for denominator in [d for formula in formulas for d in _denominators(formula)]:
        if _answer(symbols, [*plain, sp.Eq(denominator, 0, evaluate=False)], whole=True)[0] != z3.unsat:
            raise NotShown(f"the denominator {denominator} may vanish")
    if _answer(symbols, hypotheses, whole=True)[0] != z3.sat:
        raise NotShown("the hypotheses are not known to be satisfiable")
    against = [*hypotheses, sp.Not(conclusion, evaluate=False)]
    answer, instance = _answer(symbols, against)  # over the reals; if a whole number is 1/2 there, over the integers
    if answer == z3.sat and any([symbol.is_integer for symbol in symbols]):
        answer, instance = _answer(symbols, against, whole=True)
    if answer == z3.sat and _keeps_assumptions(symbols, instance):
        raise ShownFalse(f"{conclusion} does not follow", {name: str(value) for name, value in instance.items()})
    if answer != z3.unsat:
        raise NotShown(f"z3 answers {answer} for {conclusion}")


def _denominators(formula: Any) -> list[Any]:
    """What the formula divides by."""
    powers = [power for power in formula.atoms(sp.Pow) if power.exp.is_negative]
    return sorted([power.base for power in powers], key=sp.default_sort_key)


def _answer(symbols: Sequence[Any], formulas: Sequence[Any], whole: bool = False) -> tuple[Any, dict[str, Any]]:
    """z3's answer and its instance; integer symbols range over the reals unless ``whole``."""
    solver = z3.Solver()
    solver.set("timeout", _TIMEOUT)
    for symbol in symbols:
        number = z3.Real(symbol.name)
        for name, holds in _ASSUMED.items():
            if getattr(symbol, f"is_{name}"):
                solver.add(holds(number))
        if whole and symbol.is_integer:
            solver.add(z3.IsInt(number))
    for formula in formulas:
        solver.add(to_z3(formula))
    answer = solver.check()
    if answer != z3.sat:
        return answer, {}
    model = solver.model()
    return answer, {s.name: model.eval(z3.Real(s.name), model_completion=True) for s in symbols}


def _keeps_assumptions(symbols: Sequence[Any], instance: Mapping[str, Any]) -> bool:
    """Whether the instance keeps what z3 was not told, such as that a symbol is even."""
    rational = {s: instance[s.name] for s in symbols if z3.is_rational_value(instance[s.name])}
    return all([admissible(s, sp.Rational(str(value))) for s, value in rational.items()]) and not any(
        [s.is_integer for s in symbols if s not in rational]
    )
