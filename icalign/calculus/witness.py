"""Numbers that refute: an evaluator independent of sympy's rewriting, and random admissible points."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping, Sequence
from functools import reduce, singledispatch
from operator import add, mul
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from sympy.matrices.expressions.matexpr import MatrixElement

from ..forms import exact_number

Bound = Mapping[sp.Symbol, int]

# What sympy may know of a symbol and of a rational number; "real" and the like hold for every number drawn here.
_ASSUMPTIONS = [
    *("integer", "positive", "negative", "nonnegative", "nonpositive", "zero", "nonzero"),
    *("even", "odd", "prime", "composite", "rational", "irrational", "real", "imaginary"),
]


class NotShown(AssertionError):
    """A statement could not be decided; it may be true."""


class ShownFalse(AssertionError):
    """A statement is false; ``instance`` holds numbers that refute it."""

    def __init__(self, message: str, instance: Mapping[str, str]) -> None:
        self.instance = dict(instance)
        shown = ", ".join([f"{name} = {value}" for name, value in self.instance.items()])
        super().__init__(f"{message} (at {shown})" if shown else message)


class Undefined(ArithmeticError):
    """An expression has no value at a point: 1/0, the logarithm of 0, a sum up to 5/2."""


def admissible(like: sp.Expr, value: sp.Rational) -> bool:
    """Whether a number keeps the assumptions of a symbol or of an entry of a family."""
    for name in _ASSUMPTIONS:
        wanted, found = getattr(like, f"is_{name}", None), getattr(value, f"is_{name}")
        if wanted is not None and found is not None and wanted != found:
            return False
    return True


def refuse_homonyms(expressions: Sequence[Any]) -> None:
    """Raise when two different free symbols look alike, as x1 and x_1 do: a reader would take them for the same.

    So does one that names a number and a family h[k]: sympy replaces both as one.

    Raises:
        ValueError: naming it.
    """
    found: dict[str, Any] = {}
    for symbol in sorted(set().union(*[sp.sympify(e).free_symbols for e in expressions]), key=str):
        if isinstance(symbol, sp.Symbol | sp.MatrixSymbol) and found.setdefault(sp.latex(symbol), symbol) != symbol:
            raise ValueError(f"two different symbols are called {symbol.name}, or look so")
    families = {family.label for e in expressions for family in sp.sympify(e).atoms(sp.IndexedBase)}
    if both := families & set().union(*[_numbers(sp.sympify(e)) for e in expressions]):
        raise ValueError(f"{min(map(str, both))} names a number and a family")


def _numbers(expr: sp.Basic) -> set[sp.Basic]:
    """The symbols that stand for numbers, bound ones included; the names of families do not."""
    if isinstance(expr, sp.Symbol | sp.IndexedBase):
        return {expr} if isinstance(expr, sp.Symbol) else set()
    return set().union(*[_numbers(argument) for argument in expr.args])


class Point:
    """Numbers for symbols and for entries of families (``h[3]``, ``X[0, 2]``); random ones where none is given.

    Random values respect the assumptions of a symbol and ``at_least``; every third seed is near a corner, with most of
    what may be zero at zero and most sizes as small as they can be. Without a ``seed`` nothing is drawn and a missing
    value raises. ``context`` is ``mpmath.mp`` or ``mpmath.iv`` (intervals that contain the true value).

    Raises:
        ValueError: a value against the assumptions of its symbol, or a lower bound of a symbol that is not an integer.
    """

    def __init__(
        self,
        values: Mapping[Any, Any] | None = None,
        *,
        seed: int | None = None,
        at_least: Mapping[sp.Symbol, Any] | None = None,
        context: Any = mpmath.mp,
    ) -> None:
        self.values = {key: exact_number(value) for key, value in (values or {}).items()}
        self.random = None if seed is None else random.Random(seed)
        self.corner = seed is not None and seed % 3 == 0
        self.at_least = dict(at_least or {})
        self.context = context
        for key, value in self.values.items():
            like = key[0] if isinstance(key, tuple) else key
            if isinstance(like, sp.Symbol) and not admissible(like, value):
                raise ValueError(f"{key} = {value} is against the assumptions on {like}")
        for symbol in self.at_least:
            if not symbol.is_integer:
                raise ValueError(f"at_least: {symbol} is not an integer symbol; write it as its bound plus slack")

    def _least(self, symbol: sp.Expr) -> int:
        """The smallest value that an integer may take, as far as it is known; −3 for one without a bound."""
        known = 1 if symbol.is_positive else 0 if symbol.is_nonnegative else -3
        if symbol not in self.at_least:
            return known
        low = sp.sympify(self.at_least[symbol])
        needed = {s: self.values.setdefault(s, self._draw(s)) for s in sorted(low.free_symbols, key=str)}
        return max(known, int(sp.ceiling(low.subs(needed)))) if symbol.is_nonnegative else int(low.subs(needed))

    def _draw(self, like: sp.Expr) -> sp.Rational:
        if self.random is None:
            raise ValueError(f"no value is given for {like}")
        for _ in range(100):
            value = self._any(like)
            if admissible(like, value):
                return value
        raise ValueError(f"no number is found that keeps the assumptions on {like}")

    def _any(self, like: sp.Expr) -> sp.Rational:
        """A number that keeps at_least and the usual assumptions."""
        assert self.random is not None
        if like.is_integer:
            low = self._least(like)
            spread = self.random.choice([3, 5, 7]) if like.is_nonnegative or like in self.at_least else 8
            tight = self.corner and spread < 8 and self.random.random() < 0.7
            return sp.Integer(low + (0 if tight else self.random.randrange(spread)))
        size = sp.Rational(self.random.randrange(1, 64), self.random.choice([7, 16, 33]))
        if like.is_positive:
            return size
        if like.is_zero is not False and self.random.random() < (0.7 if self.corner else 0.2):
            return sp.Integer(0)
        return size if like.is_nonnegative or self.random.random() < 0.5 else -size

    def number(self, key: Any, like: sp.Expr) -> Any:
        """The value under the key in ``context``, drawn with the assumptions of ``like`` when there is none yet."""
        if key not in self.values:
            self.values[key] = self._draw(like)
        return self.exact(self.values[key])

    def exact(self, value: sp.Rational) -> Any:
        """A rational number in ``context``."""
        return self.context.mpf(int(value.p)) / int(value.q)

    def within(self, context: Any) -> Point:
        """The same numbers, read in another context; what one of them draws, both have."""
        other = copy.copy(self)
        other.context = context
        return other

    def without(self, symbol: sp.Symbol) -> Point:
        """A copy that has no value for a symbol."""
        other = copy.copy(self)
        other.values = {key: value for key, value in self.values.items() if key != symbol}
        return other

    @property
    def instance(self) -> dict[str, str]:
        """The assignment, for a reader."""
        return {
            f"{key[0]}[{','.join(map(str, key[1:]))}]" if isinstance(key, tuple) else str(key): str(value)
            for key, value in self.values.items()
        }


def evaluate(expr: Any, point: Point) -> Any:
    """The value of a sympy expression at a point, by walking its tree: no rewriting of sympy is involved.

    Scalars come out in ``point.context``, matrices as object arrays. An empty sum is 0, an empty product 1.

    Raises:
        TypeError: a kind of node that the evaluator does not know.
    """
    return _value(expr, point, {})


@singledispatch
def _value(expr: Any, point: Point, bound: Bound) -> Any:
    raise TypeError(f"the evaluator does not know {type(expr).__name__}: {expr}")


def _integer(expr: sp.Expr, point: Point, bound: Bound) -> int:
    value = _value(expr, point, bound)
    low, high = (value.a, value.b) if isinstance(value, mpmath.iv.mpf) else (value, value)
    nearest = mpmath.nint(low)
    exact = low == high == nearest  # a quotient like (N + N²)/2 is an interval around its integer
    if not exact and not (low <= nearest <= high and high - low < mpmath.mpf(10) ** -9):
        raise Undefined(f"{expr} = {value} is not an integer")
    return int(nearest)


def _certainly(interval: Any, relation: str) -> bool:
    """Whether a number, or every number of an interval, is ≤ 0 or = 0."""
    if isinstance(interval, mpmath.iv.mpf):
        return bool(interval.b <= 0) if relation == "≤" else bool(interval.a == 0 == interval.b)
    return bool(interval <= 0) if relation == "≤" else bool(interval == 0)


def _everything(point: Point) -> Any:
    return point.context.mpf([-mpmath.inf, mpmath.inf])


def _power(base: Any, exponent: Any, point: Point) -> Any:
    """base^exponent for a real exponent; an interval that holds points without a power gives all numbers."""
    if _certainly(base, "="):
        if _certainly(exponent, "="):
            return point.context.mpf(1)
        if not _certainly(-exponent, "≤"):
            raise Undefined("0 to a negative power")
        return _everything(point) if _certainly(exponent, "≤") else point.context.mpf(0)
    if _certainly(base, "≤"):
        raise Undefined("a broken power of a negative number")
    if isinstance(base, mpmath.iv.mpf) and base.a <= 0:
        return _everything(point)
    return base**exponent


def _logarithm(value: Any, point: Point) -> Any:
    if _certainly(value, "≤"):
        raise Undefined("the logarithm of a number that is not positive")
    if isinstance(value, mpmath.iv.mpf) and value.a <= 0:
        return _everything(point)
    return point.context.log(value)


def _all(exprs: Sequence[sp.Basic], point: Point, bound: Bound) -> list[Any]:
    return [_value(expr, point, bound) for expr in exprs]


@_value.register(sp.Rational)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return point.exact(expr)


@_value.register(type(sp.E))
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return point.context.exp(point.context.mpf(1))


@_value.register(sp.Symbol)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return point.context.mpf(bound[expr]) if expr in bound else point.number(expr, expr)


@_value.register(sp.Indexed)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    indices = [_integer(index, point, bound) for index in expr.indices]
    return point.number((expr.base.label, *indices), expr)


@_value.register(MatrixElement)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    row, column = _integer(expr.i, point, bound), _integer(expr.j, point, bound)
    if isinstance(expr.parent, sp.MatrixSymbol):
        return point.number((expr.parent.name, row, column), _REAL)
    return _value(expr.parent, point, bound)[row, column]


@_value.register(sp.Add)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return reduce(add, _all(expr.args, point, bound))


@_value.register(sp.Mul)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return reduce(mul, _all(expr.args, point, bound))


@_value.register(sp.Pow)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    base = _value(expr.base, point, bound)
    if expr.exp.is_integer:
        exponent = _integer(expr.exp, point, bound)
        if exponent < 0 and _certainly(base, "="):
            raise Undefined(f"1/0 in {expr}")
        if exponent < 0 and isinstance(base, mpmath.iv.mpf) and base.a <= 0 <= base.b:
            return _everything(point)
        return base**exponent if exponent >= 0 else 1 / base ** (-exponent)
    return _power(base, _value(expr.exp, point, bound), point)


def _register_function(node: Any, function: Callable[[Any, Point], Any]) -> None:
    @_value.register(node)
    def _(expr: Any, point: Point, bound: Bound) -> Any:
        return function(_value(expr.args[0], point, bound), point)


def _exp(value: Any, point: Point) -> Any:
    size = mpmath.mpf(abs(value).b) if isinstance(value, mpmath.iv.mpf) else abs(value)
    if mpmath.ldexp(1, 10**6) < size < mpmath.inf:
        raise Undefined("an exponential beyond the numbers that fit into memory")
    return point.context.exp(value)


_register_function(sp.exp, _exp)
_register_function(sp.log, _logarithm)
_register_function(sp.sinh, lambda value, point: (_exp(value, point) - _exp(-value, point)) / 2)
_register_function(sp.cosh, lambda value, point: (_exp(value, point) + _exp(-value, point)) / 2)
_register_function(sp.tanh, lambda value, point: 1 - 2 / (_exp(2 * value, point) + 1))
_register_function(sp.Abs, lambda value, point: abs(value))


def _larger(a: Any, b: Any) -> Any:
    if isinstance(a, mpmath.iv.mpf):
        return mpmath.iv.mpf([max(a.a, b.a), max(a.b, b.b)])
    return max(a, b)


@_value.register(sp.Max)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return reduce(_larger, _all(expr.args, point, bound))


@_value.register(sp.Min)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return -reduce(_larger, [-value for value in _all(expr.args, point, bound)])


@_value.register(sp.KroneckerDelta)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    left, right = [_integer(index, point, bound) for index in expr.args]
    return point.context.mpf(int(left == right))


def _fold(expr: Any, point: Point, bound: Bound, step: Callable[[Any, Any], Any], start: int) -> Any:
    *inner, (index, low, high) = expr.limits  # the last limit is the outermost
    body = expr.func(expr.function, *inner) if inner else expr.function
    terms = range(_integer(low, point, bound), _integer(high, point, bound) + 1)
    return reduce(step, [_value(body, point, {**bound, index: k}) for k in terms], point.context.mpf(start))


@_value.register(sp.Sum)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return _fold(expr, point, bound, add, 0)


@_value.register(sp.Product)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return _fold(expr, point, bound, mul, 1)


_REAL = sp.Symbol("entry", real=True)


def _filled(expr: Any, point: Point, bound: Bound, entry: Callable[[int, int], Any]) -> Any:
    rows, columns = [_integer(sp.sympify(size), point, bound) for size in expr.shape]  # ints, in explicit matrices
    entries = [entry(a, b) for a in range(rows) for b in range(columns)]
    filled = np.empty(len(entries), dtype=object)  # np.array would take an interval for a sequence
    filled[:] = entries
    return filled.reshape(rows, columns)


@_value.register(sp.MatrixSymbol)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return _filled(expr, point, bound, lambda a, b: point.number((expr.name, a, b), _REAL))


@_value.register(sp.Identity)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return _filled(expr, point, bound, lambda a, b: point.context.mpf(int(a == b)))


@_value.register(sp.ZeroMatrix)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return _filled(expr, point, bound, lambda a, b: point.context.mpf(0))


@_value.register(sp.matrices.expressions.special.OneMatrix)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return _filled(expr, point, bound, lambda a, b: point.context.mpf(1))


@_value.register(sp.MatrixBase)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return _filled(expr, point, bound, lambda a, b: _value(expr[a, b], point, bound))


@_value.register(sp.BlockMatrix)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    blocks = expr.blocks
    return np.block([[_value(blocks[a, b], point, bound) for b in range(blocks.cols)] for a in range(blocks.rows)])


@_value.register(sp.Transpose)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return _value(expr.arg, point, bound).T


@_value.register(sp.MatAdd)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return reduce(add, _all(expr.args, point, bound))


@_value.register(sp.MatMul)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    def times(a: Any, b: Any) -> Any:
        if isinstance(b, np.ndarray):
            return a @ b if isinstance(a, np.ndarray) else b * a  # an interval does not know how to multiply an array
        return a * b

    return reduce(times, _all(expr.args, point, bound))


@_value.register(sp.MatPow)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    base, exponent = _value(expr.base, point, bound), _integer(expr.exp, point, bound)
    if exponent < 1:
        raise TypeError(f"the evaluator takes powers of matrices from 1 up: {expr}")
    return reduce(np.matmul, [base] * exponent)


@_value.register(sp.Trace)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return _value(expr.arg, point, bound).trace()
