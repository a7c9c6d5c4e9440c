"""Chapter 8, Multiple queries II: pairs of softmax heads beside a sink are linear attention, nearly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor

from icalign.constructions import sink
from icalign.symbols import d_x, d_y
from icalign.transformer import Transformer

from . import Draw, Outcome, at_most, given, rounding, twin
from .sink_order import bent, coefficients


@cache
def model(epsilon: float, strength: float, pairs: int, dim_x: int, dim_v: int) -> Transformer:
    """P pairs of heads at ε, 2ε, …, with the logit λ of the sink."""
    values = {d_x: dim_x, d_y: dim_v, sink.epsilon: epsilon, sink.lambda_: strength}
    return Transformer((sink.block(pairs),), sink.stream, values | {sink.scale: math.exp(strength) / (2 * epsilon)})


def attended(epsilon: float, strength: float, pairs: int, x: Tensor, v: Tensor) -> Tensor:
    """What every token but the sink, the first, finds in its row sum."""
    built = model(epsilon, strength, pairs, x.shape[1], v.shape[1])
    rows = built.rows
    X = torch.zeros(len(x) + 1, rows["sum"].stop, dtype=torch.float64)
    X[1:, rows["x"]], X[1:, rows["v"]], X[1:, rows["one"]], X[0, rows["b"]] = x, v, 1, 1
    found: Tensor = built(X)[1:, rows["sum"]]
    return found


def leak(epsilon: float, strength: float, pairs: int, tokens: int) -> float:
    """n e^{−λ} Σ_k |a_k| sinh(2kε)/(kε)."""
    parts = [abs(a) * math.sinh(2 * k * epsilon) / (k * epsilon) for k, a in enumerate(coefficients(pairs), 1)]
    return tokens * math.exp(-strength) * sum(parts)


def sink_rounding(epsilon: float, strength: float, pairs: int, x: Tensor, v: Tensor) -> float:
    """Of 2P heads; the target loses less.

    After scaling by |a_k|/(2kε) a weight of head k is at most e^{kε}. Its logit loses (d + 4)kε|x|², the subtraction
    |λ| + kε more, exp 4, the weight twice that and n + 2; scaled values lose 4, the sum over tokens n + 1.
    """
    size = sum([abs(a) * math.exp(k * epsilon) / (k * epsilon) for k, a in enumerate(coefficients(pairs), 1)]) + 1
    logits = (x.shape[1] + 5) * pairs * epsilon * max(1.0, float(x.square().sum(-1).max())) + abs(strength)
    operations = 2 * (logits + 4) + 2 * len(x) + 7 + 2 * pairs
    return rounding(operations, size * float(v.norm(dim=-1).sum()))


def some_tokens(draw: Draw) -> tuple[Tensor, Tensor, int]:
    """x, v and a token i with |⟨x_i, x_j⟩| ≤ 1 for all j; in every other instance all products 1, all v equal."""
    tokens, dim = draw.integer(1, 5), draw.integer(1, 4)
    x, v, i = draw.normal(tokens, dim), draw.normal(tokens, draw.integer(1, 3)), draw.integer(0, tokens - 1)
    if draw.seed % 2:
        x[:, 0] = 1
        x[i, 1:] = 0
        return x, v[:1].expand_as(v), i
    x[i] /= x[i].norm()
    return x / (x @ x[i]).abs().clamp_min(1)[:, None], v, i


@twin
def sink_linear_attention_pairs(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """‖sum − Σ_j ⟨x_i, x_j⟩v_j‖ ≤ (bent + leak) Σ‖v_j‖ with P pairs. Broken: half of bent, as λ grows sharp.

    With no pairs bent is 1, and nothing is added.
    """
    x, v, i = some_tokens(draw)
    given((x @ x[i]).abs() <= 1 + 2.0**-51)
    for pairs in (draw.integer(0, 3), 2 if draw.seed % 2 else 0):
        epsilon, strength = draw.number(0.2, 2), draw.number(-2, 40)
        error = (attended(epsilon, strength, pairs, x, v)[i] - x @ x[i] @ v).norm()
        promised = (0.5 if broken else 1) * abs(bent(epsilon, pairs)) + leak(epsilon, strength, pairs, len(x))
        yield at_most(error, promised * v.norm(dim=-1).sum(), sink_rounding(epsilon, strength, pairs, x, v))


@twin
def sink_linear_attention(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """One pair: ‖sum − Σ_j ⟨x_i, x_j⟩v_j‖ ≤ [sinh ε/ε − 1 + n e^{−λ} sinh(2ε)/ε] Σ‖v_j‖. Broken: sinh(ε) for sinh(2ε).

    The second term is nearly attained at a small ε, by equal tokens whose products are 1.
    """
    x, v, i = some_tokens(draw)
    given((x @ x[i]).abs() <= 1 + 2.0**-51)
    for epsilon, strength in ((draw.number(0.1, 3), draw.number(-2, 40)), (draw.number(1e-4, 1e-2), draw.number(6, 9))):
        error = (attended(epsilon, strength, 1, x, v)[i] - x @ x[i] @ v).norm()
        second = len(x) * math.exp(-strength) * math.sinh((1 if broken else 2) * epsilon) / epsilon
        promised = (math.sinh(epsilon) / epsilon - 1 + second) * v.norm(dim=-1).sum()
        yield at_most(error, promised, sink_rounding(epsilon, strength, 1, x, v))


@twin
def sink_linear_attention_sharp(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """All products 1, all values equal: as λ grows, the error tends to (sinh ε/ε − 1)Σ‖v_j‖. Broken: to ε²/6·Σ‖v_j‖.

    The rate is the proof's: from λ = log((K + 1)/δ) on the two are within δ, K = n sinh(2ε)/ε·Σ‖v_j‖.
    """
    x = draw.normal(draw.integer(1, 5), draw.integer(1, 4))
    i, epsilon, close = draw.integer(0, len(x) - 1), draw.number(0.2, 2), 10 ** draw.number(-8, 0)
    x[:, 0] = 1
    x[i, 1:] = 0
    v = draw.normal(1, draw.integer(1, 3)).expand(len(x), -1)
    given(epsilon > 0, close > 0, x @ x[i] == 1, v == v[0])
    total = float(v.norm(dim=-1).sum())
    limit = (epsilon**2 / 6 if broken else math.sinh(epsilon) / epsilon - 1) * total
    strength = math.log((len(x) * math.sinh(2 * epsilon) / epsilon * total + 1) / close)
    for more in (0.0, 5.0):
        error = (attended(epsilon, strength + more, 1, x, v)[i] - v.sum(0)).norm()
        yield at_most((error - limit).abs(), close, sink_rounding(epsilon, strength + more, 1, x, v))


@twin
def sink_linear_attention_norm(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Weights off by E each move Σ w_j v_j by at most E Σ‖v_j‖; with = if all are off the same way, and all v_j point
    one way. Broken: half of it."""
    tokens, off = draw.integer(1, 6), draw.uniform(-2, 2, 6)
    v, z = draw.normal(tokens, draw.integer(1, 4)), draw.normal(tokens)
    w = z + (off[0] if draw.seed % 2 else off[:tokens])
    if draw.seed % 2:
        v = draw.uniform(0, 1, tokens, 1) * v[:1]
    E = float((w - z).abs().max())
    given((w - z).abs() <= E)
    allowed = rounding(2 * tokens + 10, (w.abs() + z.abs()) @ v.norm(dim=-1))
    yield at_most((w @ v - z @ v).norm(), (0.5 if broken else 1) * E * v.norm(dim=-1).sum(), allowed)


@twin
def sink_linear_attention_sharp_in_lambda(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """All products 1, all values equal, not zero: what is lost, over n e^{−λ} sinh(2ε)/ε·Σ‖v_j‖, is within δ of 1 where
    n e^{−λ} ≤ min(1, δ/(2 cosh ε + 1)). Broken: sinh ε for sinh 2ε."""
    x = draw.normal(draw.integer(1, 5), draw.integer(1, 4))
    i, epsilon, close = draw.integer(0, len(x) - 1), draw.number(0.2, 2), 10 ** draw.number(-4, 0)
    x[:, 0] = 1
    x[i, 1:] = 0
    v = draw.normal(1, draw.integer(1, 3)).expand(len(x), -1)
    given(epsilon > 0, close > 0, x @ x[i] == 1, v == v[0], v.any())
    total = float(v.norm(dim=-1).sum())
    small = min(1.0, close / (2 * math.cosh(epsilon) + 1))
    for size in (small, small / 10):
        strength = math.log(len(x) / size) + 2.0**-40
        given(len(x) * math.exp(-strength) <= small)
        lost = (math.sinh(epsilon) / epsilon * v.sum(0) - attended(epsilon, strength, 1, x, v)[i]).norm()
        second = len(x) * math.exp(-strength) * math.sinh((1 if broken else 2) * epsilon) / epsilon * total
        yield at_most((lost / second - 1).abs(), close, sink_rounding(epsilon, strength, 1, x, v) / second)
