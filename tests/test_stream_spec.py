"""A specification that does not fit its stream is refused, with both sizes named; one that fits means what it says."""

from typing import Any

import pytest
import sympy as sp

from icalign.spec import Block, FeedForward, Head, relu
from icalign.stream import Stream
from icalign.symbolic import coefficient
from icalign.symbols import N, W, d_x, d_y, gamma

stream = Stream(x=d_x, y=d_y, r=1, one=1, p=N, m=N, u=d_y)
i, j = stream.tokens


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({}, "at least one row"),
        ({"_x": 1}, "underscore"),
        ({"x": 0}, "size 0, expected a positive"),
        ({"x": -2}, "size -2, expected a positive"),
        ({"x": sp.Rational(1, 2)}, "size 1/2, expected a positive integer"),
        ({"x": sp.Float(1.5)}, "expected a positive integer"),
        ({"x": sp.Symbol("n", negative=True)}, "expected a positive"),
    ],
)
def test_a_stream_with_an_impossible_row_is_refused(rows: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Stream(**rows)


def test_rows_lie_in_the_order_they_are_given() -> None:
    small = stream.at({d_x: 2, d_y: 3, N: 4})
    assert small.slices == {
        "x": slice(0, 2),
        "y": slice(2, 5),
        "r": slice(5, 6),
        "one": slice(6, 7),
        "p": slice(7, 11),
        "m": slice(11, 15),
        "u": slice(15, 18),
    }
    assert small.width == 18
    assert stream.width == d_x + 2 * d_y + 2 * N + 2
    with pytest.raises(ValueError, match="'x' has the symbolic size d_x"):
        _ = stream.slices


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: i.nothing, "no row 'nothing' in the stream"),
        (lambda: i.x @ j.y, "sizes d_x and d_y"),
        (lambda: W @ i.y, r"\(d_y, d_x\) times a form of size d_y"),
        (lambda: W @ (W @ i.x), r"\(d_y, d_x\) times a form of size d_y"),
        (lambda: i.x * j.x, "sizes d_x and d_x; use `@`"),
        (lambda: i.x @ i.x, "two of token i"),
        (lambda: j.x @ j.x, "two of token j"),
        (lambda: i.x + i.y, "sizes d_x and d_y"),
        (lambda: i.x + j.x, "token i and one of token j"),
        (lambda: (i.r + 1) * j.one, "attention has no bias, got 1"),
        (lambda: W @ (i.x + 1), "with the bias 1: add the bias last"),
        (lambda: relu(j.r), "got a form of token j"),
        (lambda: relu(i.x) + relu(i.y), "sizes d_x and d_y"),
        (lambda: W @ relu(i.y), r"\(d_y, d_x\) times ReLUs of size d_y"),
        (lambda: W @ (relu(i.x) + 1), "with the bias 1: add the bias last"),
    ],
)
def test_a_formula_that_does_not_fit_is_refused(make: Any, words: str) -> None:
    with pytest.raises((ValueError, AttributeError), match=words):
        make()


other = Stream(x=d_x, y=d_x, extra=1, one=1)
k, _ = other.tokens


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Head(logit=i.one * j.r, write={"best": j.y}), r"write\['best'\]: no row 'best'"),
        (Head(logit=i.one * j.r, write={"x": j.y}), r"write\['x'\]: row 'x' has size d_x, got size d_y"),
        (Head(logit=i.one * j.r, write={"y": i.y}), "form of token i; a head writes forms of token j"),
        (Head(logit=i.one * j.r, write={"y": j.y + 1}), "has the bias 1; attention has none"),
        (Head(logit=k.extra * j.r, write={"y": j.y}), "logit: no row 'extra'"),
        (Head(logit=k.y @ j.x, write={"y": j.y}), "logit: row 'y' has size d_y, got size d_x"),
        (FeedForward(write={"nothing": relu(i.r)}), "no row 'nothing'"),
        (FeedForward(write={"nothing": 1}), "no row 'nothing'"),
        (FeedForward(write={"y": relu(i.x)}), "row 'y' has size d_y, got size d_x"),
        (FeedForward(write={"r": relu(k.extra)}), "no row 'extra'"),
        (FeedForward(write={"x": relu(k.y)}), "row 'y' has size d_y, got size d_x"),
    ],
)
def test_a_layer_that_does_not_fit_its_stream_is_refused(part: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        part.check(stream)
    block = Block(heads=(part,)) if isinstance(part, Head) else Block(feed_forward=part)
    with pytest.raises(ValueError, match=words):
        block.check(stream)


def test_coefficients_are_what_the_formula_says() -> None:
    eta = sp.Symbol("eta")
    form = 2 * eta * i.y - W @ i.x / 3 + i.y
    assert coefficient(form, "y", d_y) == (1 + 2 * eta) * sp.Identity(d_y)
    assert coefficient(form, "x", d_x) == -W / 3
    assert coefficient(form, "r", sp.Integer(1)) == sp.ZeroMatrix(d_y, 1)
    assert coefficient(i.x * sp.Rational(3, 4), "x", d_x) == sp.Rational(3, 4) * sp.Identity(d_x)
    assert coefficient(W.T @ (2 * i.y), "y", d_y) == 2 * W.T


def test_scalars_distribute_over_products_and_signs() -> None:
    logit = -(gamma * i.one * j.r - i.m @ j.p) / 2
    (first_query, first_key), (second_query, second_key) = logit.pairs
    assert coefficient(first_query, "one", sp.Integer(1)) == -gamma / 2 * sp.Identity(1)
    assert coefficient(first_key, "r", sp.Integer(1)) == sp.Identity(1)
    assert coefficient(second_query, "m", N) == sp.Identity(N) / 2
    assert coefficient(second_key, "p", N) == sp.Identity(N)


def test_floats_enter_exactly() -> None:
    assert coefficient(0.1 * i.r, "r", sp.Integer(1)) == sp.Rational(0.1) * sp.Identity(1)
    assert sp.Rational(0.1) != sp.Rational(1, 10)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "2", None, 1j])
def test_what_is_no_number_is_no_coefficient(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        _ = i.r * value
    with pytest.raises((TypeError, ValueError)):
        _ = i.r + value
