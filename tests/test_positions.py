"""Positions from the mask alone: exact in rational arithmetic, within their bound in floating point, then exact."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import sympy as sp
import torch
from torch import Tensor

from icalign import bounds
from icalign.calculus import Chain, Point, typeset
from icalign.constructions import positions
from icalign.constructions.positions import blocks, prompt, refuse_positions, stream
from icalign.spec import Block, FeedForward, Head, relu
from icalign.stream import Stream
from icalign.symbolic import FeedForwardMatrices, SymbolicTransformer, entries
from icalign.symbols import N, d_y
from icalign.transformer import Transformer

DTYPES = [torch.bfloat16, torch.float16, torch.float32, torch.float64]


def one_hot(responses: int) -> Tensor:
    """No position for the start token, then the unit vectors."""
    return torch.cat([torch.zeros(1, responses), torch.eye(responses)]).double()


def states(responses: int, dtype: torch.dtype = torch.float64) -> tuple[Transformer, Tensor, Tensor]:
    """The model, and the tokens after its first and its second block."""
    model = Transformer(blocks(), stream, {N: responses}, dtype)
    counted = model.blocks[0](prompt(responses, model.rows, dtype))
    return model, counted, model.blocks[1](counted)


def hat(t: int, z: Fraction) -> Fraction:
    """The hat as one draws it, without ramps: the reference."""
    if z >= Fraction(1, t):
        return max(Fraction(0), (Fraction(1, t - 1) - z) * t * (t - 1))
    return max(Fraction(0), (z - Fraction(1, t + 1)) * t * (t + 1))


def test_the_weights_of_a_small_layer_are_those_of_the_formula() -> None:
    model = Transformer(blocks(), stream, {N: 2})
    rows, layer = model.rows, model.blocks[0].feed_forward
    first, second = layer.first[:, rows["z"]][:, 0], layer.second[rows["m"]]
    assert first.tolist() == [-1, -2, -2, -3, -3, -4]
    assert layer.first_bias.tolist() == [1] * 6
    assert second.tolist() == [[2, 0, -4, 0, 2, 0], [0, 3, 0, -6, 0, 3]]
    assert layer.first.count_nonzero() == 6 and layer.second.count_nonzero() == 6
    assert not model.blocks[0].heads[0].query.any()


@pytest.mark.parametrize("responses", [1, 2, 7])
def test_between_peaks_the_layer_interpolates(responses: int) -> None:
    layer = Block(feed_forward=positions.hats())
    model = Transformer((layer,), stream, {N: responses})
    values = [Fraction(n, 64) for n in range(1, 65)]
    X = torch.zeros(len(values), model.rows["z"].stop, dtype=torch.float64)
    X[:, model.rows["z"]] = torch.tensor([[float(value)] for value in values], dtype=torch.float64)
    expected = [[float(hat(t, value)) for t in range(2, responses + 2)] for value in values]
    # z and weights are exact in binary; products and sums of numbers below 64 have at most 12 digits
    assert model(X)[:, model.rows["m"]].tolist() == expected


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("responses", [1, 2, 5, 7])
def test_the_code_is_exactly_one_hot_and_the_borrowed_rows_are_empty(responses: int, dtype: torch.dtype) -> None:
    model, _, after = states(responses, dtype)
    assert torch.equal(after[:, model.rows["p"]].double(), one_hot(responses))
    assert not after[:, model.rows["m"]].any() and not after[:, model.rows["z"]].any()
    assert torch.equal(after[:, model.rows["b"]], prompt(responses, model.rows, dtype)[:, model.rows["b"]])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_it_is_exact_up_to_the_largest_size_that_is_not_refused(dtype: torch.dtype) -> None:
    most = min(bounds.most_positions(dtype) - 1, 300)
    refuse_positions(most, dtype)
    model, _, after = states(most, dtype)
    assert torch.equal(after[:, model.rows["p"]].double(), one_hot(most))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("responses", [3, 20, 128])
def test_count_and_hats_keep_their_bounds(responses: int, dtype: torch.dtype) -> None:
    model, counted, _ = states(responses, dtype)
    z = counted[:, model.rows["z"]][:, 0].double()
    t = torch.arange(1, responses + 2)
    assert (z * t - 1).abs().max() <= bounds.reciprocal_rounding(dtype)
    off = (counted[:, model.rows["m"]].double() - one_hot(responses)).abs()
    if bounds.position_rounding(dtype, responses + 1) < 1:
        assert off.max() <= bounds.position_rounding(dtype, responses + 1)
    # what comes two or more positions later than its own token has ended exactly
    assert not off[1:].triu(2).any()


def test_rising_ramps_break_the_bound_of_falling_ones_and_keep_their_own() -> None:
    t = positions.DiagMatrix(positions.numbers(N, 2))
    i, _ = stream.tokens
    rises = [t @ relu(positions.numbers(N, k) @ i.z - 1) for k in (1, 2, 3)]
    layer = FeedForward(write={"m": rises[0] - 2 * rises[1] + rises[2]})
    model = Transformer((Block(heads=(positions.count,), feed_forward=layer, causal=True),), stream, {N: 128})
    code = model(prompt(128, model.rows))[:, model.rows["m"]]
    off = (code - one_hot(128)).abs().max()
    assert bounds.position_rounding(torch.float64, 129) < off <= bounds.rising_rounding(torch.float64, 129)


def test_other_rows_of_a_stream_keep_their_values_and_do_not_matter() -> None:
    """The blocks in front of a construction whose mask they borrow; the content of the tokens is random."""
    rows = {"y": d_y, "r": 1, "one": 1, "p": N, "b": 1, "m": N, "u": d_y, "z": 1}
    model = Transformer(blocks(), Stream(**rows), {N: 6, d_y: 3})
    X = torch.randn(4, 7, max(place.stop for place in model.rows.values()), dtype=torch.float64)
    for name in ("p", "m", "z", "b"):
        X[..., model.rows[name]] = 0
    X[:, 0, model.rows["b"]] = 1
    after = model(X)
    assert torch.equal(after[..., model.rows["p"]], one_hot(6).expand(4, 7, 6))
    after[..., model.rows["p"]] = 0
    assert torch.equal(after, X)


def test_without_a_start_token_there_is_no_position() -> None:
    model = Transformer(blocks(), stream, {N: 5})
    X = torch.zeros(6, model.rows["z"].stop, dtype=torch.float64)
    assert torch.equal(model(X), X)


def test_a_shorter_prompt_uses_the_first_positions() -> None:
    model = Transformer(blocks(), stream, {N: 9})
    X = prompt(4, model.rows)
    assert torch.equal(model(X)[:, model.rows["p"]], one_hot(9)[:5])


# ─── when two positions become one ─────────────────────────────────────────────────────────────────


def rounded(t: int, p: int) -> Fraction:
    """1/t to p binary digits: Python's rounding of fractions (ties to even) on the grid of its binade."""
    exponent = t.bit_length() - 1
    if t & (t - 1) == 0:
        return Fraction(1, t)
    unit = 2 ** (exponent + p)
    return Fraction(round(Fraction(unit, t)), unit)


def collide(t: int, p: int) -> bool:
    return rounded(t, p) == rounded(t + 1, p)


@pytest.mark.parametrize("p", range(3, 14))
def test_the_first_collision_is_the_first_one(p: int) -> None:
    assert bounds.first_collision(p) == next(t for t in range(1, 2**p) if collide(t, p))


@pytest.mark.parametrize(
    ("p", "expected"), [(8, 190), (11, 1464), (24, 11_864_338), (53, 6_369_051_721_119_404), (113, None)]
)
def test_collisions_of_the_formats(p: int, expected: int | None) -> None:
    t = bounds.first_collision(p)
    assert expected in (None, t)
    assert collide(t, p)
    assert not any([collide(s, p) for s in range(t - 1000, t) if s > 0])
    assert abs(t - math.isqrt(2 ** (2 * p - 1))) <= math.isqrt(2**p) + 1


def test_float64_rounds_as_the_rationals_say() -> None:
    t = bounds.first_collision(53)
    assert 1.0 / t == 1.0 / (t + 1) and 1.0 / (t - 1) != 1.0 / t
    assert Fraction(1.0 / t) == rounded(t, 53)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_no_size_is_accepted_that_could_collide(dtype: torch.dtype) -> None:
    most = bounds.most_positions(dtype)
    assert most < bounds.first_collision(bounds.digits(dtype))
    assert bounds.position_rounding(dtype, most) <= 0.25 < bounds.position_rounding(dtype, most + 1)
    refuse_positions(most - 1, dtype)
    with pytest.raises(ValueError, match=f"responses: {most}, expected at most {most - 1}"):
        refuse_positions(most, dtype)


@pytest.mark.parametrize("responses", [0, -1, True])
def test_what_is_no_number_of_responses_is_refused(responses: int) -> None:
    with pytest.raises(ValueError, match="responses"):
        refuse_positions(responses, torch.float64)


# ─── columns given by a formula, in the two readings ───────────────────────────────────────────────


def test_a_component_of_a_diagonal_layer_is_read_from_its_matrices() -> None:
    layer = SymbolicTransformer(stream, blocks(), given={}).feed_forward()
    token = SymbolicTransformer(stream, blocks(), given={}).tokens(1)
    k = sp.Symbol("k", integer=True, nonnegative=True)
    z = sp.Symbol("z", nonnegative=True)
    added = entries(layer.added(token, 1, k), sp.MatrixSymbol("z", 1, 1), lambda *_: z)
    at = {k: 3, z: sp.Rational(3, 13)}
    assert added.subs(at) == hat(5, Fraction(3, 13))


def test_a_layer_that_mixes_the_components_of_a_unit_is_not_read() -> None:
    i, _ = stream.tokens
    mixed = FeedForward(write={"m": sp.MatrixSymbol("A", N, N) @ relu(i.p)})
    matrices = FeedForwardMatrices.of(mixed, stream)
    with pytest.raises(ValueError, match="hidden unit 0 has N components"):
        matrices.added(SymbolicTransformer(stream, (), given={}).tokens(1), 1, 0)


def test_formulas_become_the_weights_they_say() -> None:
    i, j = stream.tokens
    column = positions.numbers(N, 5)
    head = Head(logit=0 * i.b * j.b, write={"m": sp.Rational(1, 3) * (column @ j.b)})
    model = Transformer((Block(heads=(head,)),), stream, {N: 3})
    assert model.blocks[0].heads[0].value[model.rows["m"], model.rows["b"]][:, 0].tolist() == [5 / 3, 2.0, 7 / 3]
    product = FeedForward(write={"m": positions.DiagMatrix(column) @ (positions.numbers(N, 1) @ relu(i.b))})
    layer = Transformer((Block(feed_forward=product),), stream, {N: 3}).blocks[0].feed_forward
    assert layer.second[model.rows["m"]][:, 0].tolist() == [5, 12, 21]


def test_formulas_are_printed_as_such() -> None:
    assert typeset(positions.numbers(N, 2)) == r"\left[k + 2\right]_{k < N}"
    assert typeset(-2 * positions.DiagMatrix(positions.numbers(N, 2))).endswith(
        r"\operatorname{diag}\left[k + 2\right]_{k < N}"
    )


def test_the_hats_of_all_positions_add_up_to_one_at_exact_numbers() -> None:
    """The telescoped sum of the chapter, tried at numbers by the evaluator that shares no code with it."""
    t = sp.Symbol("t", integer=True)
    z = sp.Symbol("z", positive=True)
    ramp = [sp.Max(1 - (t + shift) * z, 0) for shift in (-1, 0, 1)]
    total = sp.Sum(t * (ramp[0] - 2 * ramp[1] + ramp[2]), (t, 1, 9))
    for numerator in range(2, 19):
        Chain(total).equals(sp.Integer(1)).evaluate(Point({z: sp.Rational(numerator, 18)}))


def test_positions_of_no_floating_dtype_are_refused() -> None:
    with pytest.raises(ValueError, match=r"dtype: torch\.int32, expected a floating type"):
        positions.refuse_positions(3, torch.int32)
