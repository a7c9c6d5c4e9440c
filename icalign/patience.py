"""Patience sorting: the longest decreasing subsequence that ends at each value of a sequence (Schensted 1961)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from math import isfinite

from .tasks import refuse_non_numbers


def descents(values: Iterable[int | float]) -> list[int]:
    r"""λ_j, the length of the longest strictly decreasing subsequence that ends at value j.

    .. math:: λ_j = 1 + \max\{ λ_i : i < j,\ v_i > v_j \}, \qquad \max ∅ = 0

    Values are dealt onto piles from left to right, each onto the leftmost pile whose top it exceeds or equals; λ_j is
    the number of that pile. The tops decrease from left to right, so that a pile is found in O(log N). The values
    with λ_j = 1 are the running maxima; those with λ_j = k are the running maxima of what the piles before k leave.
    Raises ValueError: a value that is no finite number.
    Source: claim ``naive-causal-patience``.
    """
    tops: list[int | float] = []  # the negatives of the tops: these increase
    found = []
    for place, value in enumerate(values):
        refuse_non_numbers(**{f"values[{place}]": value})
        if not isfinite(value):
            raise ValueError(f"values[{place}]: {value}, expected a finite number")
        pile = bisect_left(tops, -value)
        tops[pile : pile + 1] = [-value]
        found.append(pile + 1)
    return found
