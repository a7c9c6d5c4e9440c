"""One definition, two readings: torch weights are the sympy matrices, bit for bit; the forward pass is the formula.

The substitution on this side knows nothing of icalign.transformer: sympy writes the block matrices out with exact
rationals, and each entry is rounded by comparing the neighbouring numbers of the dtype with it.
"""

import importlib
import inspect
import math
import pkgutil
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp
import torch
from jaxtyping import TypeCheckError
from torch import Tensor

import icalign.constructions
from icalign.constructions.base import Construction
from icalign.forms import Form, PiecewiseLinear
from icalign.spec import Block, FeedForward, Head, LinearHead, relu
from icalign.stream import Stream
from icalign.symbolic import FeedForwardMatrices, HeadMatrices, SymbolicTransformer
from icalign.symbols import N, W, d_x, d_y, eta, gamma
from icalign.transformer import Attention, Transformer, nearest, softmax_over_visible

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
BITS = {torch.float64: torch.int64, torch.float32: torch.int32, torch.bfloat16: torch.int16, torch.float16: torch.int16}


@cache
def rounded(value: Fraction, dtype: torch.dtype) -> float:
    """Nearest number of the dtype, ties to the even bit pattern: found by trying the neighbours exactly."""
    size = abs(value)
    guess = torch.tensor(min(float(size), torch.finfo(dtype).max), dtype=dtype).view(BITS[dtype]).item()
    found = []
    for bits in range(max(0, guess - 2), guess + 3):
        number = torch.tensor(bits, dtype=BITS[dtype]).view(dtype).double().item()
        if math.isfinite(number):
            found.append((abs(Fraction(number) - size), bits & 1, number))
    return math.copysign(min(found)[2], value)


def written_out(matrix: sp.BlockMatrix, values: dict[Any, Any], dtype: torch.dtype) -> Tensor:
    """The sympy matrix with numbers put in, every entry rounded once."""
    explicit = sp.Matrix(matrix.subs(values).as_explicit())
    entries = [Fraction(int(entry.p), int(entry.q)) for entry in explicit]
    return torch.tensor([rounded(e, dtype) for e in entries], dtype=dtype).reshape(explicit.shape)


def exact(value: Any) -> Any:
    """A number or tensor for sympy, as exact rationals."""
    if isinstance(value, Tensor):
        return sp.ImmutableMatrix([[sp.Rational(v) for v in row] for row in value.double().tolist()])
    return sp.Rational(value)


def assert_same_weights(blocks: tuple[Block, ...], stream: Stream, model: Transformer, values: dict[Any, Any]) -> None:
    numbers = {symbol: exact(value) for symbol, value in values.items() if isinstance(symbol, sp.Symbol)}
    matrices = {symbol.subs(numbers): exact(v) for symbol, v in values.items() if isinstance(symbol, sp.MatrixSymbol)}

    known: dict[sp.BlockMatrix, Tensor] = {}  # a block that runs again has the same matrices

    def same(matrix: sp.BlockMatrix, weight: Tensor) -> None:
        if matrix not in known:
            known[matrix] = written_out(matrix.subs(numbers), matrices, weight.dtype)
        expected = known[matrix]
        assert torch.equal(expected, weight.detach().reshape(expected.shape))

    assert len(model.blocks) > 0
    for number, module in enumerate(model.blocks):
        block = blocks[number % len(blocks)]
        assert len(block.heads) == len(module.heads)
        for head, attention in zip(block.heads, module.heads, strict=True):
            found = HeadMatrices.of(head, stream)
            for name in ("query", "key", "value"):
                same(getattr(found, name), getattr(attention, name))
        assert (block.feed_forward is None) == (module.feed_forward is None)
        if block.feed_forward is not None:
            layers = FeedForwardMatrices.of(block.feed_forward, stream)
            for name in ("first", "first_bias", "second", "second_bias"):
                same(getattr(layers, name), getattr(module.feed_forward, name))


# --- every construction -------------------------------------------------------------------------------------------

W_SAMPLE = icalign.sample_task(seed=3).W
# for constructions that need more than one temperature
ARGUMENTS: dict[str, dict[str, Any]] = {
    "Causal": {"W": W_SAMPLE, "temperatures": {"gamma_1": 123.456, "c": 271.8, "c_field": 61.7}, "responses": 4},
    "CausalConstantDepth": {"W": W_SAMPLE, "temperatures": {"c": 61.7}, "responses": 3},
    "CausalQueries": {
        "W": W_SAMPLE,
        "temperatures": {"gamma_1": 123.456, "c": 271.8, "c_field": 61.7, "gamma_q": 345.6, "gamma_beta": 234.5}
        | {"gamma_p": 177.7, "kappa": 3.21, "epsilon": 0.123, "lambda": 4.3},
        "responses": 3,
        "queries": 2,
        "target": "joint",
        "pairs": 2,
    },
    "ConstantDepth": {"W": W_SAMPLE, "temperatures": {"C": 61.7}, "responses": 4},
    "MultiQuery": {
        "W": W_SAMPLE,
        "temperatures": {
            "gamma_1": 345.6,
            "gamma_2": 123.456,
            "gamma_beta": 234.5,
            "C": 61.7,
            "epsilon": 0.123,
            "lambda": 4.3,
        },
        "responses": 4,
        "query_ids": True,
        "pairs": 2,
    },
    "PlackettLuce": {"W": W_SAMPLE, "temperatures": {"gamma": 123.456, "C": 61.7}, "responses": 4},
    "TwoLayers": {"W": W_SAMPLE, "temperatures": {"C": 61.7}, "responses": 3, "reward_range": (0.13, 0.41)},
    "TwoLayersMultiQuery": {
        "W": W_SAMPLE,
        "temperatures": {"gamma_beta": 234.5, "C": 61.7, "epsilon": 0.123, "lambda": 4.3},
        "responses": 3,
        "reward_range": (0.13, 0.41),
        "pairs": 2,
    },
}


def every_construction() -> list[type[Construction]]:
    """All of them, found by importing every module of icalign.constructions."""
    for module in pkgutil.iter_modules(icalign.constructions.__path__):
        importlib.import_module(f"icalign.constructions.{module.name}")

    def below(kind: type[Construction]) -> list[type[Construction]]:
        return [kind, *[c for child in kind.__subclasses__() for c in below(child)]]

    return [c for c in below(Construction)[1:] if c.__module__.startswith("icalign.") and not inspect.isabstract(c)]


def free_symbols(symbolic: SymbolicTransformer) -> set[Any]:
    """All symbols of a specification, those in sizes of rows included."""
    found: set[Any] = set().union(*[size.free_symbols for size in symbolic.stream.rows.values()])
    for block in symbolic.blocks:
        matrices = [m for head in block.heads for m in vars(HeadMatrices.of(head, symbolic.stream)).values()]
        if block.feed_forward is not None:
            matrices += vars(FeedForwardMatrices.of(block.feed_forward, symbolic.stream)).values()
        for matrix in matrices:
            found |= matrix.free_symbols
    return found


def made(kind: type[Construction], dtype: torch.dtype) -> Construction:
    arguments = dict(ARGUMENTS.get(kind.__name__, {"temperatures": {"gamma": 123.456}}))
    if "W" in arguments:
        arguments["W"] = arguments["W"].to(dtype)
    return kind(**arguments, dtype=dtype)


def test_every_construction_is_found() -> None:
    names = {kind.__name__ for kind in every_construction()}
    assert set(icalign.constructions.__all__) <= names
    assert "Selection" in names


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", every_construction(), ids=lambda kind: kind.__name__)
def test_the_weights_of_a_construction_are_its_matrices(kind: type[Construction], dtype: torch.dtype) -> None:
    construction = made(kind, dtype)
    symbolic = construction.symbolic()
    assert free_symbols(symbolic) <= set(construction.values)
    assert_same_weights(symbolic.blocks, symbolic.stream, construction.transformer, construction.values)
    assert all(p.dtype == dtype for p in construction.transformer.parameters())


# --- richer specifications ----------------------------------------------------------------------------------------

Delta, c, gap, B = sp.symbols("Delta c gap B", positive=True)
stream = Stream(x=d_x, y=d_y, s=1, r=1, one=1, e=1, p=N, m=N, u=d_y)
i, j = stream.tokens

winner = Head(
    logit=i.one * (gamma * j.r - 2 * gamma * (Delta + gap) * j.e) - c * i.m @ j.p, write={"m": j.p, "u": 2 * eta * j.y}
)
field = Head(
    logit=2 * W @ i.x @ j.y + i.one * (-j.s + sp.Rational(3, 4) * Delta * j.r) - c / 3 * i.m @ j.p,
    write={"u": -2 * eta * j.y, "y": W @ j.x / 7, "e": j.r - 0.1 * j.s},
)
transposed = LinearHead(logit=(W.T @ i.y) @ j.x - (W.T @ i.u) @ (W.T @ j.u) / 5, write={"x": W.T @ j.y, "r": -j.one})
z = (sp.Rational(3, 4) * gap * i.one - i.s + i.r) / (gap / 2) - B * i.e + sp.Rational(1, 3)
layer = FeedForward(
    write={
        "e": relu(z) - relu(z - i.one) + sp.Rational(1, 7),
        "u": W @ relu(W.T @ i.y - 2 * i.x) - relu(-i.y) * Delta,
        "y": 3 * relu(i.u - i.y + gap),
        "s": -5,
        "one": sp.Rational(1, 3) * gap,
    }
)
SPECS: dict[str, tuple[Block, ...]] = {
    "one product": (Block(heads=(Head(logit=gamma * i.one * j.r, write={"u": j.y}),)),),
    "several products and masks": (Block(heads=(winner,)),),
    "a matrix in logit and value": (Block(heads=(field, winner)),),
    "a transposed matrix, no softmax": (Block(heads=(transposed,)),),
    "relus alone": (Block(feed_forward=layer),),
    "biases alone": (Block(feed_forward=FeedForward(write={"one": 1, "y": sp.Rational(-1, 3)})),),
    "everything, causal, two blocks": (
        Block(heads=(winner, field, transposed), feed_forward=layer, causal=True),
        Block(heads=(field,), feed_forward=layer),
    ),
}


def values(seed: int, dtype: torch.dtype = torch.float64) -> dict[Any, Any]:
    """Off-grid numbers: almost no entry of the matrices is a number of the dtype."""
    generator = torch.Generator().manual_seed(seed)
    scalars = (torch.rand(6, generator=generator, dtype=torch.float64) + 0.1).tolist()
    return {
        d_x: 2 + seed % 2,
        d_y: 3 - seed % 2,
        N: 3,
        **dict(zip([gamma, Delta, c, gap, B, eta], scalars, strict=True)),
        W: torch.randn(3 - seed % 2, 2 + seed % 2, generator=generator, dtype=torch.float64).to(dtype),
    }


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", SPECS)
def test_the_weights_are_the_matrices_bit_for_bit(name: str, dtype: torch.dtype) -> None:
    numbers = values(DTYPES.index(dtype), dtype)
    model = Transformer(SPECS[name], stream, numbers, dtype)
    assert_same_weights(SPECS[name], stream, model, numbers)


def test_a_changed_weight_would_be_seen() -> None:
    numbers = values(0)
    model = Transformer(SPECS["several products and masks"], stream, numbers)
    with torch.no_grad():
        entry = model.blocks[0].heads[0].value[-1, 2]
        model.blocks[0].heads[0].value[-1, 2] = torch.nextafter(entry, torch.tensor(9.0, dtype=torch.float64))
    with pytest.raises(AssertionError):
        assert_same_weights(SPECS["several products and masks"], stream, model, numbers)


# --- the forward pass against the definition ----------------------------------------------------------------------


class Naive:
    """The layers as the specification's docstrings define them: one token after the other, from the formulas."""

    def __init__(self, numbers: dict[Any, Any]) -> None:
        self.scalars = {k: sp.Rational(v) for k, v in numbers.items() if isinstance(k, sp.Symbol)}
        self.matrices = {k.subs(self.scalars): exact(v) for k, v in numbers.items() if isinstance(k, sp.MatrixSymbol)}
        self.rows = stream.at(self.scalars).slices

    def number(self, expr: Any) -> float:
        return float(sp.sympify(expr).subs(self.scalars))

    def matrix(self, expr: Any) -> Any:
        return np.array(sp.Matrix(expr.subs(self.scalars).subs(self.matrices).as_explicit()), dtype=float)

    def form(self, form: Form, token: Any) -> Any:
        total = np.full(int(self.number(form.size)), self.number(form.bias))
        for term in form.terms:
            total = total + self.number(term.scalar) * self.matrix(term.matrix) @ token[self.rows[term.row]]
        return total

    def head(self, head: Head, tokens: Any, at: int, visible: list[int]) -> Any:
        logits = [
            sum(self.form(q, tokens[at]) @ self.form(k, tokens[key]) for q, k in head.logit.pairs) for key in visible
        ]
        linear = isinstance(head, LinearHead)
        weights = logits if linear else [math.exp(v - max(logits)) for v in logits]
        update = np.zeros_like(tokens[at])
        for row, form in head.write.items():
            mean = sum(weight * self.form(form, tokens[key]) for weight, key in zip(weights, visible, strict=True))
            update[self.rows[row]] = mean / (1 if linear else sum(weights))
        return update

    def feed_forward(self, layer: FeedForward, token: Any) -> Any:
        update = np.zeros_like(token)
        for row, value in layer.write.items():
            if not isinstance(value, PiecewiseLinear):
                update[self.rows[row]] = self.number(value)
                continue
            total = np.full(int(self.number(value.size)), self.number(value.bias))
            for scalar, matrix, form in value.terms:
                total = total + self.number(scalar) * self.matrix(matrix) @ np.maximum(self.form(form, token), 0)
            update[self.rows[row]] = total
        return update

    def __call__(self, blocks: tuple[Block, ...], tokens: Any) -> Any:
        for block in blocks:
            count = len(tokens)
            seen = [list(range(at + 1 if block.causal else count)) for at in range(count)]
            tokens = [t + sum(self.head(h, tokens, at, seen[at]) for h in block.heads) for at, t in enumerate(tokens)]
            if block.feed_forward:
                tokens = [t + self.feed_forward(block.feed_forward, t) for t in tokens]
        return np.array(tokens)


@pytest.mark.parametrize("name", SPECS)
def test_the_forward_pass_is_the_definition(name: str) -> None:
    numbers = values(1)
    model = Transformer(SPECS[name], stream, numbers)
    width = sum(s.stop - s.start for s in model.rows.values())
    X = torch.randn(2, 5, width, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    found = model(X).detach()
    for batch in range(2):
        expected = Naive(numbers)(SPECS[name], list(X[batch].numpy()))
        # Each of two blocks: sums of < 50 products of numbers whose sizes the largest result bounds, logits below 10³,
        # so that an error of 50·10³·ε in a logit, twice passed on, stays below 10⁶ units of the last place.
        scale = max(1.0, float(np.abs(expected).max()))
        assert np.abs(found[batch].numpy() - expected).max() <= 1e6 * 2**-53 * scale


def test_heads_side_by_side_read_the_same_tokens() -> None:
    both = Transformer((Block(heads=(winner, field)),), stream, values(0))
    one = Transformer((Block(heads=(winner,)),), stream, values(0))
    two = Transformer((Block(heads=(field,)),), stream, values(0))
    X = torch.randn(
        4,
        sum(s.stop - s.start for s in both.rows.values()),
        dtype=torch.float64,
        generator=torch.Generator().manual_seed(3),
    )
    # X + f + g in either order: two roundings of numbers of the size of the result
    assert torch.allclose(both(X), one(X) + two(X) - X, rtol=0, atol=8 * 2**-53 * both(X).abs().max().item())


def test_a_causal_block_does_not_see_the_future() -> None:
    blocks = (Block(heads=(winner, field), causal=True),)
    model = Transformer(blocks, stream, values(0))
    X = torch.randn(
        6,
        sum(s.stop - s.start for s in model.rows.values()),
        dtype=torch.float64,
        generator=torch.Generator().manual_seed(3),
    )
    changed = X.clone()
    changed[4:] = 99.0
    assert torch.equal(model(X)[:4], model(changed)[:4])
    assert not torch.equal(model(X)[4:], model(changed)[4:])
    weights = model.attention(X)[0]
    assert weights.shape == (2, 6, 6)
    assert torch.equal(weights, weights.tril())
    # a softmax over at most six keys sums to 1 up to six roundings of its quotients and sum
    assert (weights.sum(-1) - 1).abs().max() <= 12 * 2**-53
    everything = Transformer((Block(heads=(winner, field)),), stream, values(0))
    assert not torch.equal(everything(X)[:4], everything(changed)[:4])


def test_a_query_that_sees_no_key_raises() -> None:
    visible = torch.ones(3, 3, dtype=torch.bool)
    visible[1] = False
    with pytest.raises(ValueError, match="query 1 sees no key"):
        softmax_over_visible(torch.zeros(3, 3), visible)


def test_hidden_keys_weigh_nothing_even_where_their_logit_is_huge() -> None:
    visible = torch.tensor([[True, False], [True, True]])
    found = softmax_over_visible(torch.tensor([[0.0, 1e30], [0.0, 0.0]]), visible)
    assert torch.equal(found, torch.tensor([[1.0, 0.0], [0.5, 0.5]]))


def test_a_linear_head_weighs_by_its_logits() -> None:
    plain = Stream(a=1, b=1)
    p, q = plain.tokens
    model = Transformer((Block(heads=(LinearHead(logit=p.a * q.a, write={"b": q.b}),), causal=True),), plain, {})
    X = torch.tensor([[2.0, 1.0], [3.0, -1.0]], dtype=torch.float64)
    # token 0: 2·2·1 = 4; token 1: 3·2·1 + 3·3·(−1) = −3
    assert torch.equal(model(X)[:, 1], torch.tensor([5.0, -4.0], dtype=torch.float64))


def test_a_repeated_block_shares_its_weights() -> None:
    block, twin = Block(heads=(winner,)), Block(heads=(winner,))
    model = Transformer((block, block, twin), stream, values(0))
    first, second, third = model.blocks
    assert first is second
    assert first is not third
    assert len(list(model.parameters())) == 6
    X = torch.randn(
        4,
        sum(s.stop - s.start for s in model.rows.values()),
        dtype=torch.float64,
        generator=torch.Generator().manual_seed(3),
    )
    assert torch.equal(model(X), third(first(first(X))))


def test_leading_dimensions_are_batches() -> None:
    model = Transformer(SPECS["everything, causal, two blocks"], stream, values(0))
    width = sum(s.stop - s.start for s in model.rows.values())
    X = torch.randn(2, 3, 4, width, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    found = model(X)
    # batched products may be summed in another order
    assert torch.allclose(found[1, 2], model(X[1, 2]), rtol=1e-12, atol=1e-12 * found.abs().max().item())
    assert model.attention(X)[0].shape == (3, 2, 3, 4, 4)


# --- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({gamma: None}, "coefficient .*gamma.*, expected a number"),
        ({d_x: None}, "symbolic size d_x"),
        ({W: None}, "no value is given for the matrix W"),
        ({W: torch.zeros(2, 2, dtype=torch.float64)}, r"shape \(3, 2\), the value given \(2, 2\)"),
        ({d_x: 0}, "size 0, expected a positive"),
        ({d_x: 1.5}, "size 3/2, expected a positive integer"),
    ],
)
def test_values_that_do_not_fit_are_refused(change: dict[Any, Any], words: str) -> None:
    numbers = {symbol: v for symbol, v in (values(0) | change).items() if v is not None}
    with pytest.raises(ValueError, match=words):
        Transformer(SPECS["a matrix in logit and value"], stream, numbers)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises((ValueError, OverflowError, TypeError)):
        Transformer(SPECS["one product"], stream, values(0) | {gamma: value})
    bad = values(0)[W].clone()
    bad[0, 0] = value
    with pytest.raises((ValueError, OverflowError)):
        Transformer(SPECS["a matrix in logit and value"], stream, values(0) | {W: bad})


def test_a_weight_beyond_the_dtype_raises() -> None:
    blocks = SPECS["one product"]
    for dtype, beyond in ((torch.float16, 65520.0), (torch.float32, 3.5e38), (torch.bfloat16, 3.4e38)):
        with pytest.raises(OverflowError, match="beyond"):
            Transformer(blocks, stream, values(0) | {gamma: beyond}, dtype)
        Transformer(blocks, stream, values(0) | {gamma: torch.finfo(dtype).max}, dtype)
    Transformer(blocks, stream, values(0) | {gamma: 65519.99}, torch.float16)  # rounds to 65504


def test_wrong_shapes_are_caught() -> None:
    attention = Attention(winner, stream, values(0), torch.float64)
    width = attention.value.shape[0]
    with pytest.raises(TypeCheckError, match="visible"):
        attention(torch.zeros(4, width, dtype=torch.float64), torch.ones(4, 3, dtype=torch.bool))
    with pytest.raises(TypeCheckError, match="visible"):
        attention(torch.zeros(4, width, dtype=torch.float64), torch.ones(4, 4))
    with pytest.raises(TypeCheckError, match="X"):
        Transformer(SPECS["one product"], stream, values(0))(torch.zeros(width, dtype=torch.float64))


# --- rounding -----------------------------------------------------------------------------------------------------


def test_nearest_agrees_with_the_neighbours_on_many_numbers() -> None:
    generator = np.random.default_rng(0)
    for dtype in DTYPES:
        limits = torch.finfo(dtype)
        tiny = Fraction(limits.smallest_normal) * Fraction(limits.eps)  # the smallest subnormal
        cases = [
            Fraction(0),
            tiny,
            tiny / 2,
            tiny / 3,
            tiny * Fraction(2, 3),
            tiny * Fraction(3, 2),
            tiny * Fraction(5, 2),
        ]
        cases += [Fraction(limits.max), Fraction(limits.smallest_normal), Fraction(limits.smallest_normal) - tiny / 2]
        for exponent in generator.integers(-160, 100, 150).tolist():
            value = (
                Fraction(int(generator.integers(1, 2**62)), int(generator.integers(1, 2**62))) * Fraction(2) ** exponent
            )
            cases.append(value if value < Fraction(limits.max) else 1 / value)
        for _ in range(100):  # ties, and numbers right beside them
            number = (
                torch.rand((), generator=torch.Generator().manual_seed(int(generator.integers(2**31)))).to(dtype) + 1
            )
            half = Fraction(limits.eps) / 2
            cases += [Fraction(number.double().item()) + half + k * Fraction(1, 2**200) for k in (-1, 0, 1)]
        for case in cases:
            for value in (case, -case):
                assert nearest(value, dtype) == rounded(value, dtype), (dtype, value)


def test_nearest_agrees_with_numpy() -> None:
    numbers = np.random.default_rng(1).standard_normal(2000) * 10.0 ** np.random.default_rng(2).integers(-44, 4, 2000)
    for dtype, numpy_dtype in ((torch.float32, np.float32), (torch.float16, np.float16), (torch.float64, np.float64)):
        with np.errstate(all="ignore"):
            cast = numbers.astype(numpy_dtype).astype(float)
        for number, expected in zip(numbers.tolist(), cast.tolist(), strict=True):
            assert nearest(Fraction(number), dtype) == expected


def test_nearest_rounds_once() -> None:
    """1 + 2⁻²⁴ + 2⁻⁷⁰ lies above a tie of float32; by way of float64 it would fall on the tie and down to 1."""
    value = 1 + Fraction(1, 2**24) + Fraction(1, 2**70)
    assert nearest(value, torch.float32) == 1 + 2**-23
    assert float(np.float32(float(value))) == 1.0


def test_nearest_raises_beyond_the_largest_number() -> None:
    for dtype in DTYPES:
        limits = torch.finfo(dtype)
        half_step = Fraction(limits.max) * Fraction(limits.eps) / 4
        assert nearest(Fraction(limits.max) + half_step / 2, dtype) == limits.max
        with pytest.raises(OverflowError):
            nearest(Fraction(limits.max) * 2, dtype)
        with pytest.raises(OverflowError):
            nearest(Fraction(10) ** 400, dtype)


def test_the_stages_of_a_forward_pass_end_where_it_ends() -> None:
    construction = made(icalign.constructions.PlackettLuce, torch.float64)
    model = construction.transformer
    X = construction.embed(icalign.sample_task((2,), responses=4, W=W_SAMPLE))
    stages = model.stages(X)
    assert len(stages) == 1 + 2 * 3
    assert torch.equal(stages[0], X)
    assert torch.equal(stages[-1], model(X))
    heads = [head(X, model.blocks[0].visible(X)) for head in model.blocks[0].heads]  # type: ignore[operator]
    assert torch.equal(stages[1], X + heads[0] + heads[1])
