"""Calculations a = b ≤ c as objects: each link decided, each tried on random numbers, the whole typeset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mpmath
import sympy as sp

from .signs import nonnegative, positive
from .sums import zero
from .printing import typeset
from .witness import NotShown, Point, ShownFalse, evaluate

SAMPLES = 12  # random points at which every link is evaluated before it is decided
_DIGITS = 120  # working precision there; differences below 10^-80, relatively, count as equal
_EQUAL = sp.Rational(1, 10**80)
_SYMBOL = {"=": "=", "≤": r"\le", "<": "<"}


@dataclass(frozen=True)
class Link:
    """left op right, with a reason for the reader."""

    left: Any
    op: str
    right: Any
    by: str
    lifted: tuple[Any, Link] | None = None  # (f, a ≤ b) when this link is f(a) ≤ f(b)


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
        links = [Link(function(x.left), x.op, function(x.right), by or x.by, (function, x)) for x in self.links]
        return Chain(function(self.start), tuple(links))

    def then(self, other: Chain) -> Chain:
        """This chain followed by one that starts where it ends.

        Raises:
            ValueError: the other chain starts elsewhere.
        """
        if other.start != self.end:
            raise ValueError(f"the next chain starts at {other.start}, not at {self.end}")
        return Chain(self.start, self.links + other.links)

    @property
    def expressions(self) -> list[Any]:
        """All its expressions, in order."""
        return [self.start, *[link.right for link in self.links]]

    def check(self, at_least: Mapping[sp.Symbol, int] | None = None) -> None:
        """Decide every link, for all admissible values; ``at_least`` gives lower bounds of integer symbols.

        Raises:
            ShownFalse: random admissible numbers refute a link.
            NotShown: the rules do not decide a link.
            ValueError: the chain has no link.
        """
        if not self.links:
            raise ValueError("a chain without a link states nothing")
        for link in self.links:
            for seed in range(SAMPLES):
                _try(link, Point(seed=seed, at_least=at_least))
            if not _decided(link, at_least or {}):
                raise NotShown(f"not shown: {link.left} {link.op} {link.right}")

    def evaluate(self, point: Point) -> None:
        """Try every link on the numbers of one point.

        Raises:
            ShownFalse: a link fails there.
        """
        for link in self.links:
            _try(link, point)

    @property
    def latex(self) -> str:
        """The calculation, typeset: one line when it is short, aligned with reasons when it has several links."""
        if len(self.links) == 1 and not self.links[0].by:
            link = self.links[0]
            return f"{typeset(link.left)} {_SYMBOL[link.op]} {typeset(link.right)}"
        lines = [f"&{typeset(self.start)}"]
        for link in self.links:
            reason = rf" && \text{{{link.by}}}" if link.by else ""
            lines.append(rf"{_SYMBOL[link.op]}\;&{typeset(link.right)}{reason}")
        return r"\begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}"


@dataclass(frozen=True)
class Limit:
    """The statement lim expr = value as the variable goes to a point or to infinity; closed forms only, no sums."""

    expr: sp.Expr
    variable: sp.Symbol
    to: sp.Expr
    value: sp.Expr
    side: str = "-"

    def check(self, at_least: Mapping[sp.Symbol, int] | None = None) -> None:
        """Decide the limit by sympy, after a look at numbers on the way there.

        Raises:
            ShownFalse: the numbers do not come near the value.
            NotShown: sympy finds no limit, or another one; or the expression holds a sum.
        """
        if self.expr.has(sp.Sum):
            raise NotShown("limits are taken of closed forms only")
        for seed in range(SAMPLES):
            _approach(self, Point(seed=seed, at_least=at_least))
        try:
            found = sp.limit(self.expr, self.variable, self.to, self.side)
        except NotImplementedError as error:
            raise NotShown(f"sympy finds no limit of {self.expr}") from error
        if found != self.value and not zero(found - self.value):
            raise NotShown(f"sympy finds the limit {found}, not {self.value}")

    @property
    def expressions(self) -> list[Any]:
        """What the statement speaks of."""
        return [self.expr, self.value]

    @property
    def latex(self) -> str:
        """The statement, typeset."""
        return (
            rf"\lim_{{{sp.latex(self.variable)} \to {sp.latex(self.to)}}} {typeset(self.expr)} = {typeset(self.value)}"
        )


def _show(value: Any) -> str:
    return mpmath.nstr(value, 12) if isinstance(value, mpmath.mpf) else str(value)


def _try(link: Link, point: Point) -> None:
    """Raise ShownFalse when the link fails at the point."""
    with mpmath.workdps(_DIGITS):
        left, right = evaluate(link.left, point), evaluate(link.right, point)
        if hasattr(left, "shape"):
            pairs = list(zip(left.ravel(), right.ravel(), strict=True)) if left.shape == right.shape else []
            holds = left.shape == right.shape and all([_holds(a, link.op, b) for a, b in pairs])
        else:
            holds = _holds(left, link.op, right)
        if not holds:
            sides = f"{_show(left)} {link.op} {_show(right)} is false"
            raise ShownFalse(sides, point.instance)


def _holds(left: Any, op: str, right: Any) -> bool:
    near = abs(left - right) <= mpmath.mpf(10) ** -80 * (1 + abs(left) + abs(right))
    if op == "=":
        return bool(near)
    return bool(left < right and not near) if op == "<" else bool(left <= right or near)


def _approach(limit: Limit, point: Point) -> None:
    """Raise ShownFalse unless the distance to the value shrinks on the way to the point."""
    if (limit.to.is_finite is False and limit.to is not sp.oo) or limit.value.is_finite is False:
        return
    with mpmath.workdps(_DIGITS):
        evaluate(limit.expr, point)  # completes the point
        value = evaluate(limit.value, point)
        distances = []
        for k in (20, 60):
            away = sp.Rational(1, 2**k)
            there = 2**k if limit.to is sp.oo else limit.to - away if limit.side == "-" else limit.to + away
            at = Point({**point.values, limit.variable: there})
            distances.append(abs(evaluate(limit.expr, at) - value))
        if not (distances[1] <= distances[0] / 2 or distances[1] <= mpmath.mpf(10) ** -80):
            raise ShownFalse(f"the distance to {_show(value)} stays at {_show(distances[1])}", point.instance)


def _decided(link: Link, at_least: Mapping[sp.Symbol, int]) -> bool:
    """Decide a link by rewriting; lower bounds enter as N = low + n with n ≥ 0."""
    if isinstance(link.left, sp.MatrixExpr | sp.MatrixBase):
        return link.op == "=" and zero(link.left - link.right)
    if link.lifted is not None:
        function, inner = link.lifted
        t = sp.Dummy("t", nonnegative=True)
        slope = sp.diff(function(t), t)
        increases = positive(slope) if link.op == "<" else nonnegative(slope)
        start = _shifted(inner.left, at_least)
        return increases and nonnegative(start) and _decided(inner, at_least)
    difference = _shifted(link.right - link.left, at_least)
    return {"=": zero, "≤": nonnegative, "<": positive}[link.op](difference)


def _shifted(expr: Any, at_least: Mapping[sp.Symbol, int]) -> sp.Expr:
    lifted = {symbol: low + sp.Dummy(symbol.name, integer=True, nonnegative=True) for symbol, low in at_least.items()}
    return sp.sympify(expr).subs(lifted)
