"""Calculations a = b ≤ c as objects: each link decided, each tried on random numbers, the whole typeset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from sympy.concrete.expr_with_limits import ExprWithLimits

from .limits import tends
from .monotone import dominated
from .numbers import compare
from .printing import typeset
from .signs import defined, nonnegative, positive, real
from .sums import put, zero
from .witness import NotShown, Point, ShownFalse, Undefined, admissible, evaluate, refuse_homonyms

SAMPLES = 20  # random points at which every link is evaluated before it is decided
Bounds = Mapping[sp.Symbol, Any]  # lower bounds of integer symbols
_LINE = 180  # letters of LaTeX that fit on a line of the page
_SYMBOL = {"=": "=", "≤": r"\le", "<": "<"}
# A reason is text: what TeX (or MathJax) would read as mathematics shows as itself.
_TEXT = str.maketrans(
    {c: rf"\(\{c}\)" for c in "{}$&%#_"} | {"\\": r"\(\backslash\)", "^": r"\({}^{\wedge}\)", "~": r"\({\sim}\)"}
)


@dataclass(frozen=True)
class Link:
    """left op right, with a reason for the reader."""

    left: Any
    op: str
    right: Any
    by: str

    @property
    def trivial(self) -> bool:
        """Whether both sides are written alike, so that the link states nothing."""
        return self.op != "<" and bool(self.left == self.right)

    def decided(self, at_least: Bounds) -> bool:
        """Decide the link by rewriting; lower bounds enter as N = low + n with n ≥ 0."""
        if isinstance(self.left, sp.MatrixExpr | sp.MatrixBase):
            return self.op == "=" and zero(_less(self.left, self.right))
        left, right = _shifted(sp.Tuple(self.left, self.right), at_least)
        return zero(right - left) if self.op == "=" else dominated(left, right, strict=self.op == "<")


def _less(left: Any, right: Any) -> Any:
    """The difference of two matrices, left as it is: sympy's own calls doit, which evaluates sums in them."""
    explicit = isinstance(left, sp.MatrixBase) and isinstance(right, sp.MatrixBase)
    return left - right if explicit else sp.MatAdd(left, sp.MatMul(-1, right))


@dataclass(frozen=True)
class Lifted(Link):
    """f(a) op f(b) because a op b and f increases on t ≥ 0."""

    function: Any
    inner: Link

    def decided(self, at_least: Bounds) -> bool:
        """Decide a op b, a ≥ 0 and the sign of f′."""
        if not self.inner.decided(at_least):
            return False
        t = sp.Dummy("t", nonnegative=True)
        inside = [self.inner.left, self.inner.right]
        images = [put(self.function(t), t, side) for side in inside]
        if not (zero(self.left - images[0]) and zero(self.right - images[1])):
            return False  # the function does not treat all expressions alike
        if not all([defined(_shifted(side, at_least)) and real(side) for side in inside]):
            return False  # f(a) may have a value where a has none
        if self.op == "=":
            return True
        start = _shifted(self.inner.left, at_least)
        if not nonnegative(start):
            return False
        above_zero = sp.Dummy("t", positive=True)
        return self._increases(t, at_least) or (positive(start) and self._increases(above_zero, at_least))

    def _increases(self, t: sp.Symbol, at_least: Bounds) -> bool:
        """Decide that f has a value at t, and the sign of f′ there."""
        value, slope = [_shifted(expr, at_least) for expr in (self.function(t), sp.diff(self.function(t), t))]
        return defined(value) and defined(slope) and (positive(slope) if self.op == "<" else nonnegative(slope))


@dataclass(frozen=True)
class Telescoped(Link):
    """Σ_{k=a}^{b} f(k) = F(b+1) − F(a) because F(k+1) − F(k) = f(k)."""

    antidifference: sp.Lambda

    def decided(self, at_least: Bounds) -> bool:
        """Decide that F has the difference f and that the range does not run backwards."""
        ((index, low, high),) = self.left.limits
        k = low + sp.Dummy("above", integer=True, nonnegative=True)
        count = _shifted(high - low + 1, at_least)
        step = _difference(self.antidifference, k, k + 1) - put(self.left.function, index, k)
        if not (bool(count.is_integer) and nonnegative(count) and zero(_shifted(step, at_least))):
            return False
        (place,) = self.antidifference.variables
        between = _shifted(sp.Sum(self.antidifference.expr, (place, low, high + 1)), at_least)
        return defined(between) and zero(self.right - _difference(self.antidifference, low, high + 1))


def _difference(F: sp.Lambda, low: sp.Expr, high: sp.Expr) -> sp.Expr:
    """F(high) − F(low); calling F would let its sums bind symbols of the bounds."""
    (variable,) = F.variables
    return put(F.expr, variable, high) - put(F.expr, variable, low)


class Chain:
    """A calculation, built with :meth:`equals`, :meth:`at_most` and :meth:`below`, decided with :meth:`check`.

    >>> t = sp.Symbol("t", positive=True)
    >>> Chain(t).at_most(2 * t).below(2 * t + 1).check()
    """

    def __init__(self, start: Any, links: tuple[Link, ...] = ()) -> None:
        self.start = start
        self.links = links

    @property
    def end(self) -> Any:
        """The last expression."""
        return self.links[-1].right if self.links else self.start

    def _then(self, op: str, right: Any, by: str) -> Chain:
        return Chain(self.start, (*self.links, Link(self.end, op, right, by)))

    def equals(self, right: Any, by: str = "") -> Chain:
        """The chain with ``= right`` at its end."""
        return self._then("=", right, by)

    def at_most(self, right: Any, by: str = "") -> Chain:
        """The chain with ``≤ right`` at its end."""
        return self._then("≤", right, by)

    def below(self, right: Any, by: str = "") -> Chain:
        """The chain with ``< right`` at its end."""
        return self._then("<", right, by)

    def through(self, function: Any, by: str = "") -> Chain:
        """The chain with f applied to all its expressions; the check shows that f increases on t ≥ 0."""
        links = [Lifted(function(x.left), x.op, function(x.right), by or x.by, function, x) for x in self.links]
        return Chain(function(self.start), tuple(links))

    def telescopes(self, antidifference: sp.Lambda, by: str = "the sum telescopes") -> Chain:
        """The chain, ended by a sum Σf over k = a…b, with ``= F(b+1) − F(a)``; the check shows F(k+1) − F(k) = f(k).

        Raises:
            ValueError: the chain does not end in one sum.
        """
        if not (isinstance(self.end, sp.Sum) and len(self.end.limits) == 1):
            raise ValueError(f"only a sum telescopes, got {self.end}")
        ((_, low, high),) = self.end.limits
        right = _difference(antidifference, low, high + 1)
        return Chain(self.start, (*self.links, Telescoped(self.end, "=", right, by, antidifference)))

    def then(self, other: Chain) -> Chain:
        """This chain followed by one that starts where it ends.

        Raises:
            ValueError: the other chain starts elsewhere.
        """
        if other.start != self.end:
            raise ValueError(f"the next chain starts at {other.start}, not at {self.end}")
        return Chain(self.start, self.links + other.links)

    @property
    def trivial(self) -> bool:
        """Whether it has links, and each has both sides written alike."""
        return bool(self.links) and all([link.trivial for link in self.links])

    @property
    def expressions(self) -> list[Any]:
        """All its expressions, in order."""
        return [self.start, *[link.right for link in self.links]]

    def check(self, at_least: Bounds | None = None) -> None:
        """Decide every link, for all admissible values.

        Args:
            at_least: lower bounds of integer symbols, numbers (N ≥ 2) or expressions (N ≥ k).

        Raises:
            ShownFalse: random admissible numbers refute a link.
            NotShown: the rules do not decide a link, or that both sides have a (real) value at all.
            ValueError: the chain states nothing: it has no link, or a link with both sides written alike.
        """
        self._refuse_nothing()
        refuse_homonyms([*self.expressions, *_named(at_least)])
        for link in self.links:
            for seed in range(SAMPLES):
                point = Point(seed=seed, at_least=at_least)
                if compare(link.left, link.op, link.right, point) == "fails":
                    raise _refutation(link, point)
            for side in (link.left, link.right):
                if not defined(_shifted(side, at_least or {})):
                    raise NotShown(f"not shown to be defined everywhere (no division by 0, no empty log): {side}")
                if link.op != "=" and not real(side):
                    raise NotShown(f"an inequality needs real symbols: {side}")
            if not link.decided(at_least or {}):
                raise NotShown(f"not shown: {link.left} {link.op} {link.right}")

    def _refuse_nothing(self) -> None:
        if not self.links:
            raise ValueError("a chain without a link states nothing")
        for start, link in zip([self.start, *[link.right for link in self.links]], self.links, strict=False):
            if link.left != start:
                raise ValueError(f"the link from {link.left} does not follow on {start}")
            if link.trivial:
                raise ValueError(f"{link.left} {link.op} {link.right} states nothing: both sides are written alike")

    def _compared(self, point: Point) -> Iterator[tuple[Link, str]]:
        """What every link is at the point; one that fails there raises."""
        self._refuse_nothing()
        for link in self.links:
            found = compare(link.left, link.op, link.right, point)
            if found == "fails":
                raise _refutation(link, point)
            yield link, found

    def evaluate(self, point: Point) -> None:
        """Try every link on the numbers of one point; equality is tried to a hundred digits.

        Raises:
            ShownFalse: a link fails there.
            NotShown: a side has no value there.
            ValueError: the chain states nothing.
        """
        for link, found in self._compared(point):
            if found == "undefined":
                raise NotShown(f"no value at {point.instance}: {link.left} {link.op} {link.right}")

    def certify(self, point: Point) -> None:
        """Prove every inequality of the chain at one point, in interval arithmetic.

        Raises:
            ShownFalse: a link fails there.
            NotShown: the intervals overlap; intervals never prove an equality.
            ValueError: the chain states nothing.
        """
        for link, found in self._compared(point):
            if found != "holds" or link.op == "=":
                raise NotShown(f"not decided by intervals at {point.instance}: {link.left} {link.op} {link.right}")

    @property
    def latex(self) -> str:
        """The calculation, typeset: one line when it is short, aligned with reasons when it has several links."""
        if len(self.links) == 1 and not self.links[0].by:
            link = self.links[0]
            line = f"{typeset(link.left)} {_SYMBOL[link.op]} {typeset(link.right)}"
            if len(line) <= _LINE:
                return line
        lines = [f"&{typeset(self.start)}"]
        for link in self.links:
            reason = rf" && \text{{{link.by.translate(_TEXT)}}}" if link.by else ""
            lines.append(rf"{_SYMBOL[link.op]}\;&{typeset(link.right)}{reason}")
        return r"\begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}"

    def _repr_latex_(self) -> str:
        return f"$$ {self.latex} $$"

    def __repr__(self) -> str:
        return " ".join([str(self.start), *[f"{link.op} {link.right}" for link in self.links]])


@dataclass(frozen=True)
class Limit:
    """The statement lim expr = value as the variable goes to a point or to infinity; closed forms only, no sums."""

    expr: sp.Expr
    variable: sp.Symbol
    to: sp.Expr
    value: sp.Expr
    side: str = "-"

    def check(self, at_least: Bounds | None = None) -> None:
        """Decide the limit for all admissible values of the other symbols, after a look at numbers on the way there.

        Where there are other symbols, sympy's limit would hold for most of their values only; see :func:`tends`.

        Raises:
            ShownFalse: the numbers do not come near the value.
            NotShown: no limit is found, or another one; or the expression holds a sum, or may have no value; or the
                numbers do not come near it on the way as far as they go, and yet it is the limit.
            ValueError: no limit is stated: the value depends on the variable, or the way lies outside its assumptions.
        """
        self._refuse_ill_stated()
        refuse_homonyms([self.expr, self.value, self.to, *_named(at_least)])
        if self.expr.has(ExprWithLimits) or self.value.has(ExprWithLimits):
            raise NotShown("limits are taken of closed forms only")
        try:
            for seed in range(SAMPLES):
                _approach(self, Point(seed=seed, at_least=at_least))
        except ShownFalse as refuted:
            if self._undecided(at_least or {}):
                raise
            raise NotShown(f"numbers do not come near {self.value}, and yet it is found to be the limit") from refuted
        if why := self._undecided(at_least or {}):
            raise NotShown(why)

    def _undecided(self, at_least: Bounds) -> str:
        """Why the limit is not shown; nothing when it is."""
        steps = sp.Dummy("steps", positive=True, integer=self.variable.is_integer)
        near = _shifted(put(self.expr, self.variable, self._way(1 + steps)), at_least)
        expr, value = [_shifted(part, at_least) for part in (self.expr, self.value)]
        if not (value in (sp.oo, -sp.oo) or defined(value)) or not defined(near):
            return f"not shown to be defined on the way: {self.expr}, {self.value}"
        alone = not (expr.free_symbols | self.to.free_symbols) - {self.variable}
        found = self._by_sympy() if alone else tends(near, steps)
        if found is None or (found != value and (sp.oo in (abs(found), abs(value)) or not zero(found - value))):
            return f"the limit of {self.expr} is not shown to be {self.value}; found: {found}"
        return ""

    def _by_sympy(self) -> sp.Expr | None:
        try:
            found = sp.limit(self.expr, self.variable, self.to, self.side)
        except (NotImplementedError, ValueError, TypeError, sp.PoleError):
            return None
        return None if found.has(sp.zoo, sp.nan, sp.AccumBounds, sp.Limit) else found

    def _refuse_ill_stated(self) -> None:
        if self.side not in ("-", "+"):
            raise ValueError(f"side: {self.side!r}, expected '-' (from below) or '+' (from above)")
        if self.variable in self.value.free_symbols | self.to.free_symbols:
            raise ValueError(f"the limit must not depend on its variable {self.variable}")
        if self.variable not in self.expr.free_symbols:
            raise ValueError(f"{self.expr} does not depend on {self.variable}: its limit states nothing")
        if self.variable.is_integer is False or (self.variable.is_rational and not self.variable.is_integer):
            raise ValueError(f"the variable {self.variable} is neither any real number nor any integer on its way")
        if any([getattr(self.variable, f"is_{kind}") for kind in ("even", "odd", "prime", "composite", "irrational")]):
            raise ValueError(f"the variable {self.variable} is neither any real number nor any integer on its way")

    def _way(self, steps: Any) -> sp.Expr:
        """A place on the way: out at the number of steps, or one over it from the end."""
        if self.to in (sp.oo, -sp.oo):
            return sp.sign(self.to) * steps
        return self.to - 1 / sp.sympify(steps) if self.side == "-" else self.to + 1 / sp.sympify(steps)

    @property
    def expressions(self) -> list[Any]:
        """What the statement speaks of."""
        bound = sp.Dummy(self.variable.name, real=True, integer=self.variable.is_integer)  # of any sign: it is no size
        return [put(self.expr, self.variable, bound), self.value]

    @property
    def latex(self) -> str:
        """The statement, typeset."""
        side = "" if self.to in (sp.oo, -sp.oo) else rf"^{{{self.side}}}"
        way = rf"{sp.latex(self.variable)} \to {sp.latex(self.to)}{side}"
        return rf"\lim_{{{way}}} {typeset(self.expr)} = {typeset(self.value)}"


def _refutation(link: Link, point: Point) -> ShownFalse:
    """The numbers of both sides at the point, for a reader."""
    sides = []
    with mpmath.workdps(40):
        for side in (link.left, link.right):
            value = evaluate(side, point.within(mpmath.mp))
            rows = [[mpmath.nstr(entry, 12) for entry in row] for row in value] if isinstance(value, np.ndarray) else []
            sides.append(str(rows).replace("'", "") if rows else mpmath.nstr(value, 12))
    return ShownFalse(f"{sides[0]} {link.op} {sides[1]} is false", point.instance)


_DIGITS = 700  # of the numbers along the way to a limit, the last of them 2^-400 from its end
_STAYS = 0.9  # a distance that shrinks by less between 2^-100 and 2^-400 does not go to 0


def _approach(limit: Limit, point: Point) -> None:
    """Raise ShownFalse unless the distance to the value shrinks (or the values grow) on the way to the point."""
    with mpmath.workdps(_DIGITS):
        try:
            end = evaluate(limit.to, point) if limit.to.is_finite is not False else limit.to
            value = evaluate(limit.value, point) if limit.value.is_finite is not False else limit.value
            seen = [_there(limit, k, point) for k in (100, 400)]
        except Undefined:
            return
        if value in (sp.oo, -sp.oo):
            sign = 1 if value is sp.oo else -1
            if not sign * seen[1] > max(sign * seen[0], 0):
                raise ShownFalse(f"{mpmath.nstr(seen[1], 12)} on the way to {value}", point.instance)
            return
        before, after = abs(seen[0] - value), abs(seen[1] - value)
        if after > mpmath.mpf(10) ** -60 and after >= _STAYS * before:
            what = f"the distance to {mpmath.nstr(value, 12)} stays at {mpmath.nstr(after, 12)}"
            raise ShownFalse(f"{what} as {limit.variable} goes to {end}", point.instance)


def _there(limit: Limit, k: int, point: Point) -> Any:
    """The expression at a place on the way, the other symbols as in the point."""
    way = limit._way(2**k + 1)
    evaluate(way, point)
    place = sp.Rational(way.subs(point.values))
    if not admissible(limit.variable, place):
        raise ValueError(f"{limit.variable} = {place} on the way to {limit.to} is against its assumptions")
    shared = point.without(limit.variable)
    shared.values[limit.variable] = place
    found = evaluate(limit.expr, shared)
    point.values.update({key: number for key, number in shared.values.items() if key != limit.variable})
    return found


def _named(at_least: Bounds | None) -> list[Any]:
    """The symbols with a lower bound, and their bounds.

    Raises:
        ValueError: they bound each other in a circle, so that no numbers may keep the bounds.
    """
    bounds = {symbol: sp.sympify(low).free_symbols for symbol, low in (at_least or {}).items()}
    for symbol in bounds:
        seen: set[Any] = set()
        while new := set().union(*[bounds.get(s, set()) for s in seen or {symbol}]) - seen:
            seen |= new
        if symbol in seen:
            raise ValueError(f"at_least: {symbol} is bounded by itself")
    return [*bounds, *(at_least or {}).values()]


def _shifted(expr: Any, at_least: Bounds) -> Any:
    """The expression with N = low + n, n ≥ 0, for every lower bound."""
    expr, left = sp.sympify(expr), dict(at_least)
    for _ in range(len(left)):  # a bound may name a symbol that has a bound itself
        for symbol, low in left.items():
            if not symbol.is_integer:
                raise ValueError(f"at_least: {symbol} is not an integer symbol; write it as its bound plus slack")
            if symbol in sp.sympify(low).free_symbols:
                raise ValueError(f"at_least: {symbol} is bounded by itself")
            if not sp.sympify(low).is_integer:
                raise ValueError(f"at_least: the bound {low} of {symbol} is not known to be an integer")
            known = 1 if symbol.is_positive else 0 if symbol.is_nonnegative else -sp.oo
            expr = put(expr, symbol, (max(low, known) if sp.sympify(low).is_number else low) + _surplus(symbol))
    return expr


@cache
def _surplus(symbol: sp.Symbol) -> sp.Symbol:
    """n = N − low; always the same symbol, so that shifted expressions stay comparable."""
    return sp.Dummy(symbol.name, integer=True, nonnegative=True)
