"""Numbers that refute: an evaluator independent of sympy's rewriting, and random admissible points."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import reduce, singledispatch
from operator import add, mul
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from sympy.matrices.expressions.matexpr import MatrixElement

Bound = Mapping[sp.Symbol, int]


class NotShown(AssertionError):
    """A statement could not be decided; it may be true."""


class ShownFalse(AssertionError):
    """A statement is false; ``instance`` holds numbers that refute it."""

    def __init__(self, message: str, instance: Mapping[str, str]) -> None:
        self.instance = dict(instance)
        shown = ", ".join([f"{name} = {value}" for name, value in self.instance.items()])
        super().__init__(f"{message} (at {shown})" if shown else message)


class Point:
    """Numbers for symbols and for entries of families (``h[3]``, ``X[0, 2]``); random ones where none is given.

    Random values respect the assumptions of a symbol (integer, positive, nonnegative) and ``at_least``; every third
    seed is a corner, with what may be zero at zero and the smallest sizes. Without a ``seed`` nothing is drawn and a
    missing value raises. ``context`` is ``mpmath.mp`` (search) or ``mpmath.iv``
    (intervals that contain the true value).
    """

    def __init__(
        self,
        values: Mapping[Any, Any] | None = None,
        *,
        seed: int | None = None,
        at_least: Mapping[sp.Symbol, int] | None = None,
        context: Any = mpmath.mp,
    ) -> None:
        self.values = {key: sp.Rational(value) for key, value in (values or {}).items()}
        self.random = None if seed is None else random.Random(seed)
        self.corner = seed is not None and seed % 3 == 0
        self.at_least = dict(at_least or {})
        self.context = context

    def _draw(self, like: sp.Expr) -> sp.Rational:
        if self.random is None:
            raise ValueError(f"no value is given for {like}")
        if like.is_integer:
            least = 1 if like.is_positive else 0 if like.is_nonnegative else -3
            return sp.Integer(self.at_least.get(like, least) + (0 if self.corner else self.random.randrange(4)))
        size = sp.Rational(self.random.randrange(1, 64), self.random.choice([7, 16, 33]))
        if like.is_positive:
            return size
        if self.corner or self.random.random() < 0.2:
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

    @property
    def instance(self) -> dict[str, str]:
        """The assignment, for a reader."""
        return {
            f"{key[0]}[{','.join(map(str, key[1:]))}]" if isinstance(key, tuple) else str(key): str(value)
            for key, value in self.values.items()
        }


def evaluate(expr: sp.Basic, point: Point) -> Any:
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
    value = value.a if hasattr(value, "a") else value  # an interval of an integer is a point
    if int(value) != value:
        raise ValueError(f"{expr} = {value} is not an integer")
    return int(value)


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
    if expr.exp.is_Integer:
        return base ** int(expr.exp)
    if expr.exp == sp.Rational(1, 2):
        return point.context.sqrt(base)
    return base ** _value(expr.exp, point, bound)


def _register_function(node: Any, name: str) -> None:
    @_value.register(node)
    def _(expr: Any, point: Point, bound: Bound) -> Any:
        return getattr(point.context, name)(_value(expr.args[0], point, bound))


for _node, _function in [(sp.exp, "exp"), (sp.log, "log"), (sp.sinh, "sinh"), (sp.cosh, "cosh"), (sp.tanh, "tanh")]:
    _register_function(_node, _function)


@_value.register(sp.Max)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return max(_all(expr.args, point, bound))


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
    rows, columns = [_integer(size, point, bound) for size in expr.shape]
    return np.array([[entry(a, b) for b in range(columns)] for a in range(rows)], dtype=object)


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
        return a @ b if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) else a * b

    return reduce(times, _all(expr.args, point, bound))


@_value.register(sp.Trace)
def _(expr: Any, point: Point, bound: Bound) -> Any:
    return _value(expr.arg, point, bound).trace()
