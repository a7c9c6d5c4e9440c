"""The symbolic reading: its matrices are those of the formulas, for all sizes, and its helpers change nothing."""

import pytest
import sympy as sp
from sympy.matrices.expressions.special import OneMatrix

from icalign.calculus import Chain, Point, evaluate, typeset, zero
from icalign.constructions.selection import block, stream
from icalign.spec import Block, FeedForward, Head, relu
from icalign.stream import Stream
from icalign.symbolic import FeedForwardMatrices, HeadMatrices, SymbolicTransformer, attention_weight, entries, scalar
from icalign.symbols import N, W, d_x, d_y, gamma

i, j = stream.tokens
symbolic = SymbolicTransformer(stream, (block,), given={"one": 1, "best": 0})


def test_query_and_key_are_derived_from_the_logit() -> None:
    head = symbolic.head()
    zeros = [sp.ZeroMatrix(1, size) for size in (d_x, d_y, 1, 1, d_y)]
    query = [*zeros]
    query[3] = gamma * sp.Identity(1)
    key = [*zeros]
    key[2] = sp.Identity(1)
    assert head.query == sp.BlockMatrix([query])
    assert head.key == sp.BlockMatrix([key])
    assert head.value.blocks[4, 1] == sp.Identity(d_y)
    others = [head.value.blocks[a, b] for a in range(5) for b in range(5) if (a, b) != (4, 1)]
    assert all([isinstance(block, sp.ZeroMatrix) for block in others])


def test_the_logits_of_all_tokens_are_those_of_the_lemma() -> None:
    X = symbolic.tokens(N)
    logits = symbolic.head().logits(X, X)
    r = sp.MatrixSymbol("r", 1, N)
    assert zero(logits - gamma * r.T * OneMatrix(1, N))
    assert not zero(logits - gamma * OneMatrix(N, 1) * r)  # keys down, queries across, not the other way round


def test_the_logit_of_two_tokens_is_the_formula() -> None:
    rows = Stream(x=d_x, y=d_y, one=1, r=1, u=d_y)
    a, b = rows.tokens
    head = Head(logit=2 * W @ a.x @ b.y - a.one * b.r / 3, write={"u": b.y})
    both = SymbolicTransformer(rows, (Block(heads=(head,)),), given={"one": 1})
    asks, answers = both.tokens(1, "i"), both.tokens(1, "j")
    found = both.head().logits(answers, asks)
    x_i, y_j, r_j = sp.MatrixSymbol("x_i", d_x, 1), sp.MatrixSymbol("y_j", d_y, 1), sp.MatrixSymbol("r_j", 1, 1)
    assert zero(scalar(found) - scalar(2 * y_j.T * W * x_i - r_j / 3))
    assert not zero(scalar(found) - scalar(2 * y_j.T * W * x_i + r_j / 3))


def test_a_feed_forward_layer_is_what_it_writes() -> None:
    rows = Stream(a=1, b=d_x)
    p, _ = rows.tokens
    layer = FeedForward(write={"a": 2 * relu(p.a - 3) - relu(-p.a) + 5, "b": relu(p.b)})
    matrices = FeedForwardMatrices.of(layer, rows)
    assert matrices.first == sp.BlockMatrix(
        [
            [sp.Identity(1), sp.ZeroMatrix(1, d_x)],
            [-sp.Identity(1), sp.ZeroMatrix(1, d_x)],
            [sp.ZeroMatrix(d_x, 1), sp.Identity(d_x)],
        ]
    )
    assert matrices.first_bias.blocks[0, 0] == -3 * OneMatrix(1, 1)
    assert matrices.second.blocks[0, 0] == 2 * sp.Identity(1)
    assert matrices.second.blocks[0, 1] == -sp.Identity(1)
    assert isinstance(matrices.second.blocks[1, 0], sp.ZeroMatrix)
    assert matrices.second_bias.blocks[0, 0] == 5 * OneMatrix(1, 1)


def test_attention_weights_sum_to_one() -> None:
    k = sp.Symbol("c", integer=True, nonnegative=True)
    X = symbolic.tokens(N)
    logits = symbolic.head().logits(X, X)
    weight = attention_weight(logits, k, sp.Integer(0))
    Chain(sp.Sum(weight, (k, 0, N - 1))).equals(sp.Integer(1)).check()


def test_the_sum_over_keys_does_not_bind_the_query() -> None:
    query = sp.Symbol("k", integer=True, nonnegative=True)
    with pytest.raises(ValueError, match="by another name"):
        attention_weight(sp.MatrixSymbol("L", N, N), 0, query)


def test_entries_are_replaced_where_a_sum_binds_their_index_too() -> None:
    k = sp.Symbol("k", integer=True, nonnegative=True)
    r = sp.MatrixSymbol("r", 1, N)
    h = sp.IndexedBase("h", real=True)
    total = sp.Sum(sp.exp(r[0, k]), (k, 0, N - 1)) + r[0, 0]
    assert entries(total, r, lambda _, column: h[column]) == sp.Sum(sp.exp(h[k]), (k, 0, N - 1)) + h[0]
    assert entries(total, sp.MatrixSymbol("q", 1, N), lambda *_: 0) == total


def test_scalar_is_the_entry() -> None:
    a, b = sp.MatrixSymbol("a", d_x, 1), sp.MatrixSymbol("b", d_x, 1)
    assert zero(scalar(a.T * b) - scalar(b.T * a))  # the two products keep their transposes in sympy
    point = Point(seed=3)
    assert evaluate((a.T * b)[0, 0], point) == evaluate(scalar(a.T * b), point)


def test_tokens_carry_what_is_given() -> None:
    X = symbolic.tokens(N, "j")
    assert [str(X.blocks[row, 0]) for row in range(3)] == ["x_j", "y_j", "r_j"]
    assert X.blocks[3, 0] == OneMatrix(1, N)
    assert X.blocks[4, 0] == sp.ZeroMatrix(d_y, N)
    assert X.shape == (stream.width, N)


def test_a_block_without_a_layer_says_so() -> None:
    with pytest.raises(ValueError, match="block 0 has no feed-forward layer"):
        symbolic.feed_forward()


def test_a_head_that_does_not_fit_has_no_matrices() -> None:
    with pytest.raises(ValueError, match="no row 'nothing'"):
        HeadMatrices.of(Head(logit=i.one * j.r, write={"nothing": j.y}), stream)


def test_matrices_are_shown_with_dots_for_zero() -> None:
    assert r"\cdot & \cdot & \cdot & \gamma & \cdot" in typeset(symbolic.head().query)
    assert "I_{d_{y}}" in typeset(symbolic.head().value)
    assert typeset(sp.Identity(1)) == "1"
