r"""Rankings: how far two are apart, and which of them a direction, or a reward model, can express.

N points are ranked by numbers that depend on a parameter: by ⟨v, y_j⟩, the direction v of a loss that falls without
end, or by −‖w − y_j‖², the reward model at w = Wx. Whether some parameter gives a ranking is decided exactly, with a
certificate either way (Gordan 1873): a parameter, or a combination that shows that there is none. Points have integer
coordinates here; rational ones can be scaled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from random import Random
from typing import Any, Literal, get_args

Rows = Sequence[Sequence[int]]
Kind = Literal["direction", "distance"]


def _refuse_kind(kind: str) -> None:
    if kind not in get_args(Kind):
        raise ValueError(f"kind: {kind!r}, expected 'direction' or 'distance'")


def _refuse_sizes(least: int, **sizes: Any) -> None:
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < least:
            raise ValueError(f"{name}: {size!r}, expected a whole number, at least {least}")


def _refuse_rows(name: str, rows: Any, least: int = 1) -> None:
    """Refuse all but the given number of rows or more, of one length, of whole numbers."""
    if len(rows) < least:
        raise ValueError(f"{name}: {len(rows)} of them, expected at least {least}")
    length = len(rows[0])
    for row in rows:
        if length == 0 or len(row) != length:
            raise ValueError(f"{name}: {list(row)}, expected {length or 'some'} entries")
        for entry in row:
            if not isinstance(entry, int):
                raise ValueError(f"{name}: an entry {entry!r}, expected whole numbers (rational ones can be scaled)")


def kendall(first: Sequence[int], second: Sequence[int]) -> int:
    """The Kendall distance of two rankings: how many pairs they order differently (claim ``noise-kendall``).

    Args:
        first: the items, best first.
        second: the same items in another order.

    Raises:
        ValueError: an item twice, or items that only one of them ranks.
    """
    place = {item: k for k, item in enumerate(second)}
    if len(place) != len(second) or len(set(first)) != len(first) or set(first) != set(place):
        raise ValueError(f"first, second: {list(first)} and {list(second)}, expected two rankings of the same items")
    return sum([place[a] > place[b] for a, b in combinations(first, 2)])


def stirling(points: int) -> list[int]:
    r"""The coefficients of :math:`\prod_{i=1}^{N-1} (1 + iz)`: entry k is \|s(N, N−k)\|, k = 0, …, N−1.

    They are the Stirling numbers of the first kind in falling order, the law of ``records`` times N!.

    Raises:
        ValueError: N is not a whole number, at least 1.
    """
    _refuse_sizes(1, points=points)
    row = [1]
    for i in range(1, points):
        row = [a + i * b for a, b in zip([*row, 0], [0, *row], strict=True)]
    return row


def count(kind: Kind, points: int, dimension: int) -> int:
    r"""How many of the N! rankings are given by some parameter, for points in general position.

    .. math:: \text{direction: } 2\sum_{k = d-1, d-3, \dots \ge 0} |s(N, N-k)|, \qquad
              \text{distance: } \sum_{k=0}^{d} |s(N, N-k)|

    Claim ``separable-count``.

    Args:
        kind: "direction", by ⟨v, y⟩, or "distance", by −‖w − y‖².
        points: N, at least 1, for directions at least 2.
        dimension: d ≥ 1.

    Raises:
        ValueError: another kind, N or d below that or no whole numbers.
    """
    _refuse_kind(kind)
    _refuse_sizes(0, points=points, dimension=dimension)
    if points < (2 if kind == "direction" else 1) or dimension < 1:
        raise ValueError(f"points, dimension: {points}, {dimension}, too few for a count by {kind}")
    row = stirling(points)
    if kind == "distance":
        return sum(row[: dimension + 1])
    return 2 * sum([row[k] for k in range(dimension - 1, -1, -2) if k < points])


def demands(kind: Kind, points: Rows, ranking: Sequence[int]) -> list[list[int]]:
    r"""Rows b with which a ranking asks for a parameter p such that ⟨b, p⟩ > 0 for all of them.

    By direction p = v, and the rows are y_τ(k) − y_τ(k+1). By distance p = (w, t): the scores 2⟨w, y⟩ − t‖y‖² have to
    decrease, and t > 0; then w/t is the parameter. N−1 rows, and one more by distance.

    Raises:
        ValueError: another kind, no ranking of the points, or points that :func:`decided` refuses.
    """
    _refuse_kind(kind)
    _refuse_rows("points", points, 2 if kind == "direction" else 1)
    if sorted(ranking) != list(range(len(points))):
        raise ValueError(f"ranking: {list(ranking)}, expected the numbers of all {len(points)} points")
    ranked = [_features(kind, points[item]) for item in ranking]
    rows = [[a - b for a, b in zip(p, q, strict=True)] for p, q in pairwise(ranked)]
    return rows if kind == "direction" else [*rows, [0] * len(points[0]) + [1]]


def _features(kind: Kind, y: Sequence[int]) -> list[int]:
    return list(y) if kind == "direction" else [*[2 * c for c in y], -sum([c * c for c in y])]


@dataclass(frozen=True)
class Witness:
    """Why some parameter meets all demands, or why none does; exactly one of the two is not None.

    Attributes:
        parameter: p with ⟨b, p⟩ > 0 for every row b.
        combination: λ ≥ 0, not all 0, with Σ λ_i b_i = 0. With it no p exists: 0 = Σ λ_i⟨b_i, p⟩ would be > 0.
    """

    parameter: tuple[int, ...] | None
    combination: tuple[int, ...] | None

    def holds(self, rows: Rows) -> bool:
        """Whether the certificate shows what it says, by a calculation in integers that trusts no solver."""
        if self.parameter is not None:
            return self.combination is None and all([_dot(row, self.parameter) > 0 for row in rows])
        weights = self.combination
        if weights is None or len(weights) != len(rows) or min(weights) < 0 or max(weights) == 0:
            return False
        return all([_dot(weights, column) == 0 for column in zip(*rows, strict=True)])


def _dot(a: Sequence[int], b: Sequence[int]) -> int:
    return sum([p * q for p, q in zip(a, b, strict=True)])


def decide(rows: Rows) -> Witness:
    """The certificate for demands, found by the simplex method in integers (Edmonds' pivots, Bland's rule).

    It looks for weights λ ≥ 0 with sum 1 and Σ λ_i b_i = 0, minimising the sum of the artificial variables. If that
    stays positive, the multipliers of the rows are a parameter.

    Raises:
        ValueError: no rows, or rows of several lengths or not of whole numbers.
    """
    _refuse_rows("rows", rows)
    size, wanted = len(rows), len(rows[0]) + 1
    units = [[int(a == b) for b in range(wanted)] for a in range(wanted)]
    columns = zip(*rows, strict=True)
    table = [[*column, *unit, 0] for column, unit in zip([*columns, (1,) * size], units, strict=True)]
    table[-1][-1] = 1
    cost = [-sum(column) for column in zip(*table, strict=True)]  # what the basis of artificial variables pays
    cost[size : size + wanted] = [0] * wanted
    basis, over = list(range(size, size + wanted)), 1  # all entries are over this positive integer
    while (enter := next((j for j in range(size) if cost[j] < 0), None)) is not None:
        open_lines = [k for k, line in enumerate(table) if line[enter] > 0]
        leave = min(open_lines, key=lambda k: (Fraction(table[k][-1], table[k][enter]), basis[k]))
        pivot = table[leave]
        for line in [*[line for k, line in enumerate(table) if k != leave], cost]:
            line[:] = [(a * pivot[enter] - line[enter] * b) // over for a, b in zip(line, pivot, strict=True)]
        over, basis[leave] = pivot[enter], enter
    if cost[-1] < 0:
        return Witness(tuple([value - over for value in cost[size:-2]]), None)
    paid = {variable: line[-1] for variable, line in zip(basis, table, strict=True)}
    return Witness(None, tuple([paid.get(variable, 0) for variable in range(size)]))


def decided(kind: Kind, points: Rows) -> Iterator[tuple[tuple[int, ...], list[list[int]], Witness]]:
    """Every ranking of the points, its demands, and a certificate for or against; whether it holds is for the caller.

    Args:
        kind: "direction" or "distance".
        points: the N points, one at least, for directions two.

    Raises:
        ValueError: another kind, fewer points, points of several lengths or with other coordinates than whole numbers.
    """
    _refuse_kind(kind)
    _refuse_rows("points", points, 2 if kind == "direction" else 1)
    return _all_decided(kind, points)


def _all_decided(kind: Kind, points: Rows) -> Iterator[tuple[tuple[int, ...], list[list[int]], Witness]]:
    for ranking in permutations(range(len(points))):
        rows = demands(kind, points, ranking)
        yield ranking, rows, decide(rows)


def in_general_position(kind: Kind, points: Rows) -> bool:
    """Whether the counts of ``separable-count`` apply, decided exactly.

    The edges of a forest on the points stand for differences y_i − y_j. By direction: those of every forest of at most
    d edges are linearly independent. By distance also: the perpendicular bisectors of no forest of d + 1 edges have a
    point in common. (d + 1 points on a hyperplane violate the first, d + 2 on a sphere the second; so do others, such
    as two parallel segments in the plane.) A single point is.

    Raises:
        ValueError: another kind, no points, points of several lengths or with other coordinates than whole numbers.
    """
    _refuse_kind(kind)
    _refuse_rows("points", points)
    dimension, most = len(points[0]), len(points) - 1
    sizes: list[tuple[Kind, int]] = [("direction", min(dimension, most))]
    if kind == "distance" and most > dimension:
        sizes.append(("distance", dimension + 1))
    for features, edges in sizes:
        lifted = [_features(features, y) for y in points]
        for forest in _forests(len(points), edges) if edges else ():
            differences = [[a - b for a, b in zip(lifted[i], lifted[j], strict=True)] for i, j in forest]
            if _rank(differences) < edges:
                return False
    return True


def _forests(points: int, edges: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """The forests of that many edges on the points."""
    for chosen in combinations(list(combinations(range(points), 2)), edges):
        tree = list(range(points))
        for i, j in chosen:
            if tree[i] == tree[j]:
                break
            tree = [tree[i] if label == tree[j] else label for label in tree]
        else:
            yield chosen


def _rank(rows: Rows) -> int:
    """The rank of a matrix of integers, by elimination without fractions."""
    left, rank = [list(row) for row in rows], 0
    for column in range(len(left[0])):
        pivot = next((row for row in left if row[column]), None)
        if pivot is None:
            continue
        left.remove(pivot)
        left = [[pivot[column] * a - row[column] * b for a, b in zip(row, pivot, strict=True)] for row in left]
        rank += 1
        if not left:
            break
    return rank


def sample_points(points: int, dimension: int, *, seed: int, reach: int = 40) -> list[list[int]]:
    """Random integer points in general position, for both kinds: the first such draw of the seed.

    Args:
        points: N.
        dimension: d.
        seed: of a generator of its own.
        reach: coordinates lie between −reach and reach.

    Raises:
        ValueError: N, d or the reach is no whole number from 1 on, or none of 1000 draws is in general position.
    """
    _refuse_sizes(1, points=points, dimension=dimension, reach=reach)
    draw = Random(seed)
    for _ in range(1000):
        found = [[draw.randint(-reach, reach) for _ in range(dimension)] for _ in range(points)]
        if in_general_position("distance", found):
            return found
    raise ValueError(f"reach: {reach}, none of 1000 draws of {points} points is in general position, expected more")
