"""Kendall distance, the counts of rankings, and the certificates for and against a ranking."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, permutations
from math import factorial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icalign import rankings
from icalign.rankings import Kind, Witness, count, decide, decided, demands, in_general_position, kendall, stirling

KINDS: tuple[Kind, ...] = ("direction", "distance")
PARALLELOGRAM = [[0, 0], [9, 2], [3, 8], [12, 10]]
ON_CIRCLE = [[5, 0], [0, 5], [-3, 4], [4, -3]]
ON_LINE = [[0, 0], [1, 2], [2, 4], [7, 1]]


def expressed(kind: Kind, points: list[list[int]]) -> int:
    found = 0
    for _, rows, why in decided(kind, points):
        assert why.holds(rows)
        found += why.parameter is not None
    return found


# ─── the Kendall distance ──────────────────────────────────────────────────────────────────────────


def test_the_kendall_distance_is_the_length_of_a_shortest_path_of_swaps() -> None:
    start = (0, 1, 2, 3)
    reached, front, length = {start: 0}, [start], 0
    while front:
        length += 1
        swapped = [(*r[:k], r[k + 1], r[k], *r[k + 2 :]) for r in front for k in range(3)]
        front = [r for r in dict.fromkeys(swapped) if r not in reached]
        reached |= dict.fromkeys(front, length)
    assert len(reached) == 24
    assert all(kendall(start, ranking) == steps for ranking, steps in reached.items())


@given(st.permutations(range(7)), st.permutations(range(7)))
def test_the_kendall_distance_is_symmetric(first: list[int], second: list[int]) -> None:
    assert kendall(first, second) == kendall(second, first) == 21 - kendall(first, second[::-1])


@pytest.mark.parametrize("second", [[0, 1], [0, 1, 1], [0, 1, 3]])
def test_two_rankings_of_other_items_are_refused(second: list[int]) -> None:
    with pytest.raises(ValueError, match="two rankings of the same items"):
        kendall([0, 1, 2], second)


# ─── the counts ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", range(1, 7))
def test_stirling_numbers_count_running_maxima(size: int) -> None:
    orders = list(permutations(range(size)))
    records = [sum(order[t] == max(order[: t + 1]) for t in range(size)) for order in orders]
    assert stirling(size) == [records.count(size - k) for k in range(size)]


def test_the_counts_are_the_published_ones() -> None:
    # OEIS A071223 (Cover 1967), and A308305 (Good and Tideman 1977, in the plane)
    published = {2: [2], 3: [2, 6], 4: [2, 12, 24], 5: [2, 20, 72, 120], 6: [2, 30, 172, 480, 720]}
    for size, row in published.items():
        assert [count("direction", size, d) for d in range(1, size)] == row
    assert [count("distance", size, 2) for size in range(1, 9)] == [1, 2, 6, 18, 46, 101, 197, 351]


@pytest.mark.parametrize("size", range(2, 9))
def test_with_enough_dimensions_every_ranking_occurs(size: int) -> None:
    for kind in KINDS:
        assert count(kind, size, size - 1) == count(kind, size, size + 3) == factorial(size)
        assert all(count(kind, size, d) < factorial(size) for d in range(1, size - 1))


@pytest.mark.parametrize("size", range(2, 9))
def test_the_counts_satisfy_the_recursion(size: int) -> None:
    for d in range(2, 9):
        for kind in KINDS:
            assert count(kind, size + 1, d) == count(kind, size, d) + size * count(kind, size, d - 1)


@pytest.mark.parametrize(("kind", "points", "dimension"), [("direction", 1, 2), ("distance", 0, 1), ("distance", 3, 0)])
def test_a_count_of_nothing_is_refused(kind: Kind, points: int, dimension: int) -> None:
    with pytest.raises(ValueError, match="too few"):
        count(kind, points, dimension)


def test_the_first_stirling_numbers() -> None:
    assert stirling(1) == [1] and stirling(4) == [1, 6, 11, 6]


# ─── refusals ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: decide([]), "rows: 0 of them, expected at least 1"),
        (lambda: decide([[1, 2], [1]]), r"rows: \[1\], expected 2 entries"),
        (lambda: decide([[]]), r"rows: \[\], expected some entries"),
        (lambda: decide([[0.5, 1]]), "rows: an entry 0.5, expected whole numbers"),
        (lambda: decided("direction", [[1, 2]]), "points: 1 of them, expected at least 2"),
        (lambda: decided("distance", []), "points: 0 of them, expected at least 1"),
        (lambda: decided("distance", [[0.1, 0.2], [0.3, 0.4]]), "points: an entry 0.1, expected whole numbers"),
        (lambda: decided("foo", [[1, 2], [3, 4]]), "kind: 'foo', expected 'direction' or 'distance'"),
        (lambda: demands("foo", [[1], [2]], (0, 1)), "kind: 'foo'"),
        (lambda: demands("distance", [[1], [2]], (0, 2)), "expected the numbers of all 2 points"),
        (lambda: in_general_position("foo", [[1, 2]]), "kind: 'foo'"),
        (lambda: in_general_position("direction", []), "points: 0 of them"),
        (lambda: count("foo", 4, 2), "kind: 'foo'"),
        (lambda: count("distance", 4.0, 2), "points: 4.0, expected a whole number"),
        (lambda: count("distance", 4, 2.5), "dimension: 2.5, expected a whole number"),
        (lambda: stirling(0), "points: 0, expected a whole number, at least 1"),
        (lambda: rankings.sample_points(3, 1, seed=0, reach=0), "reach: 0, expected a whole number, at least 1"),
        (lambda: rankings.sample_points(5, 1, seed=0, reach=1), "reach: 1, none of 1000 draws of 5 points"),
        (lambda: rankings.sample_points(3, 0, seed=0), "dimension: 0, expected a whole number, at least 1"),
    ],
)
def test_what_has_no_answer_is_refused(unchecked: None, call: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_a_single_point_is_in_general_position() -> None:
    assert all(in_general_position(kind, [[1, 2]]) for kind in KINDS)
    assert len(rankings.sample_points(1, 2, seed=0)) == 1
    assert [ranking for ranking, rows, why in decided("distance", [[1, 2]]) if why.holds(rows)] == [(0,)]


# ─── certificates ──────────────────────────────────────────────────────────────────────────────────


@settings(deadline=None)
@given(st.integers(1, 4).flatmap(lambda d: st.lists(st.lists(st.integers(-5, 5), min_size=d, max_size=d), min_size=1)))
def test_every_system_gets_a_certificate_that_holds(rows: list[list[int]]) -> None:
    assert decide(rows).holds(rows)


@pytest.mark.parametrize(
    ("parameter", "combination"),
    [(None, None), ((1, 1), (1, 1)), ((1, -1), None), (None, (0, 0)), (None, (1, 1)), (None, (1, -1)), (None, (1,))],
)
def test_a_false_certificate_is_seen(parameter: tuple[int, ...] | None, combination: tuple[int, ...] | None) -> None:
    assert not Witness(parameter, combination).holds([[1, 0], [0, 1]])


@pytest.mark.parametrize("kind", KINDS)
def test_a_parameter_ranks_as_it_says(kind: Kind) -> None:
    points = rankings.sample_points(5, 2, seed=3)
    for ranking, _, why in decided(kind, points):
        if why.parameter is None:
            continue
        if kind == "direction":
            values = [Fraction(sum(v * c for v, c in zip(why.parameter, y, strict=True))) for y in points]
        else:
            *w, t = why.parameter
            values = [-sum((Fraction(p, t) - c) ** 2 for p, c in zip(w, y, strict=True)) for y in points]
        assert tuple(sorted(range(5), key=lambda item: -values[item])) == ranking
        assert len(set(values)) == 5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_random_points_express_as_many_rankings_as_the_formula_says(kind: Kind, dimension: int) -> None:
    for size in range(2, 6):
        points = rankings.sample_points(size, dimension, seed=10 * dimension + size)
        assert expressed(kind, points) == count(kind, size, dimension)


@pytest.mark.parametrize(
    ("points", "directions", "distances"), [(PARALLELOGRAM, 8, 16), (ON_CIRCLE, 10, 10), (ON_LINE, 8, 16)]
)
def test_special_points_express_fewer(points: list[list[int]], directions: int, distances: int) -> None:
    assert expressed("direction", points) == directions < count("direction", 4, 2)
    assert expressed("distance", points) == distances < count("distance", 4, 2)
    assert not in_general_position("distance", points)


# ─── general position ──────────────────────────────────────────────────────────────────────────────


def test_general_position_is_more_than_no_three_on_a_line() -> None:
    for a, b, c in combinations(PARALLELOGRAM, 3):
        assert (b[0] - a[0]) * (c[1] - a[1]) != (b[1] - a[1]) * (c[0] - a[0])
    assert not in_general_position("direction", PARALLELOGRAM)


def test_points_on_a_circle_are_in_general_position_for_directions_only() -> None:
    points = [[25, 0], [7, 24], [-15, 20], [-24, -7]]
    assert all(x * x + y * y == 625 for x, y in points)
    assert in_general_position("direction", points)
    assert not in_general_position("distance", points)


def test_the_forests_of_a_complete_graph() -> None:
    # Cayley: n^{n−2} spanning trees
    assert [len(list(rankings._forests(n, n - 1))) for n in range(2, 6)] == [1, 3, 16, 125]
    assert len(list(rankings._forests(4, 2))) == 15


def test_demands_are_differences_of_neighbours() -> None:
    points = [[1, 0], [0, 2], [3, 3]]
    assert demands("direction", points, (2, 0, 1)) == [[2, 3], [1, -2]]
    assert demands("distance", points, (2, 0, 1)) == [[4, 6, -17], [2, -4, 3], [0, 0, 1]]


def test_samples_are_reproducible_and_in_general_position() -> None:
    points = rankings.sample_points(6, 3, seed=1)
    assert points == rankings.sample_points(6, 3, seed=1) != rankings.sample_points(6, 3, seed=2)
    assert in_general_position("distance", points)
