"""Compare two expressions at one point in interval arithmetic, so that a refutation is a fact and no rounding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mpmath
import numpy as np

from .witness import Point, Undefined, evaluate

_DIGITS = (120, 480, 1920)  # working precisions; what overlaps in all of them counts as equal
_NARROW = mpmath.mpf(10) ** -80  # an interval narrower than this, relatively, holds what counts as one number


def compare(left: Any, op: str, right: Any, point: Point) -> str:
    """What left op right is at a point: "holds", "fails", "equal" (the sides agree in 80 digits) or "undefined".

    "holds" and "fails" are proved by the intervals, except for "fails" of a strict inequality whose sides agree in
    1900 digits. An equality that is not refuted is "equal"; so is ≤ where the intervals overlap.
    """
    found = "undefined"
    for digits in _DIGITS:
        with _precision(digits):
            try:
                found = _all([_relation(a, op, b) for a, b in _pairs(left, right, point)])
            except Undefined:
                return "undefined"
        if found in ("holds", "fails") or (found == "equal" and op != "<"):
            return found
    return "fails" if found == "equal" else found


def _pairs(left: Any, right: Any, point: Point) -> list[tuple[Any, Any]]:
    """The entries of both sides; one impossible pair when the shapes differ."""
    inside = point.within(mpmath.iv)
    a, b = [np.asarray(evaluate(side, inside), dtype=object) for side in (left, right)]
    if a.shape != b.shape:
        return [(mpmath.iv.mpf(0), mpmath.iv.mpf(1)), (mpmath.iv.mpf(1), mpmath.iv.mpf(0))]
    return list(zip(a.ravel(), b.ravel(), strict=True))


def _all(found: list[str]) -> str:
    """The worst of several outcomes; matrices without an entry are equal."""
    return next((worst for worst in ("fails", "undefined", "equal") if worst in found), "holds" if found else "equal")


def _relation(left: Any, op: str, right: Any) -> str:
    (a, b), (c, d) = [(mpmath.mpf(side.a), mpmath.mpf(side.b)) for side in (left, right)]  # [a, b] op [c, d]
    if b < c:
        return "fails" if op == "=" else "holds"
    if a > d or (op == "<" and a == b == c == d):
        return "fails"
    if (op == "≤" and b <= c) or (op == "=" and a == b == c == d):
        return "holds"
    return "equal" if max(b, d) - min(a, c) <= _NARROW * (1 + min(abs(a), abs(c))) else "undefined"


@contextmanager
def _precision(digits: int) -> Iterator[None]:
    """Both of mpmath's contexts at a precision."""
    before = mpmath.iv.dps
    mpmath.iv.dps = digits
    try:
        with mpmath.workdps(digits):
            yield
    finally:
        mpmath.iv.dps = before
