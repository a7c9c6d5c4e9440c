"""Twins of ``Positions.v``, chapter 10: positions from the causal mask alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import sympy as sp
import torch
from torch import Tensor

from icalign.constructions import positions
from icalign.spec import Block, FeedForward, Head, relu
from icalign.stream import Stream
from icalign.symbols import N
from icalign.transformer import ReluLayer, Transformer

from . import Draw, Outcome, at_most, equal, given, rounding, twin
from ._drawn import size, tokens, transformer, visible

WIDTH, INNER = 3, 2
stream = Stream(e=WIDTH)
COUNT = Block(heads=(positions.count,), causal=True)


def random_transformer(draw: Draw, depth: int, sees: Tensor) -> Transformer:
    """Blocks of up to two heads, with or without a feed-forward layer, with any weights and any mask."""
    (i, j), values = stream.tokens, {}

    def matrix(rows: int, columns: int) -> sp.MatrixSymbol:
        symbol = sp.MatrixSymbol(f"A_{len(values)}", rows, columns)
        values[symbol] = draw.normal(rows, columns)
        return symbol

    blocks = []
    for _ in range(depth):
        layer = matrix(WIDTH, INNER) @ relu(matrix(INNER, WIDTH) @ i.e + draw.number(-1, 1))
        heads = [
            Head(
                logit=(matrix(INNER, WIDTH) @ i.e) @ (matrix(INNER, WIDTH) @ j.e),
                write={"e": matrix(WIDTH, WIDTH) @ j.e},
            )
            for _ in range(draw.integer(0, 2))
        ]
        blocks.append(Block(tuple(heads), FeedForward(write={"e": layer}) if draw.integer(0, 1) else None))
    model = Transformer(blocks, stream, values)
    for block in model.blocks:
        block.visible = lambda X: sees
    return model


def weigh(model: Transformer, draw: Draw, n: int) -> float:
    """Gives every head weights of its own in place of softmax, of any sign, that sum to one; the largest Σ|A_ij|."""
    largest = 1.0
    for block in model.blocks:
        for head in block.heads:
            A = draw.normal(n, n)
            A = A + (1 - A.sum(-1, keepdim=True)) / n
            given((A.sum(-1) - 1).abs() <= rounding(2 * n, A.abs().sum(-1).max()))
            largest = max(largest, float(A.abs().sum(-1).max()))
            head.weights = lambda X, visible, A=A: A
    return largest


def size_of_states(model: Transformer, X: Tensor, weight: float) -> float:
    """A bound on what the residual stream adds up on any path: every matrix counts with its norm, a row of weights with
    the sum of their sizes."""
    reach = float(X.norm(dim=-1).max())
    for block in model.blocks:
        reach *= 1 + weight * sum([float(head.value.norm()) for head in block.heads])
        if (layer := block.feed_forward) is not None:
            reach += float(layer.second.norm()) * float(layer.first.norm() * reach + layer.first_bias.norm())
    return reach


@cache
def hats(n: int) -> ReluLayer:
    """The layer of the hats t = 2, …, n + 1, as it runs."""
    return ReluLayer(positions.hats(), positions.stream, {N: n}, torch.float64).requires_grad_(False)


def all_alike(draw: Draw, depth: int, broken: bool) -> Iterator[Outcome]:
    """Tokens that are all the same stay so. Broken: one of them is marked."""
    n, _ = size(draw, 1)
    sees = visible(draw, n)
    model = random_transformer(draw, depth, sees)
    X = draw.normal(1, WIDTH).expand(n, WIDTH).clone()
    given(sees.any(dim=-1), X[0] == X)
    if broken:
        X[0, 0] += 1
    weight = weigh(model, draw, n) if draw.seed % 2 else 1.0
    found = model(X)
    # a head adds up n values and 2·WIDTH products, of equal logits; the layer WIDTH + INNER products
    operations = max(depth, 1) * (n + 3 * WIDTH + INNER + 8)
    yield equal(found, found[:1].expand_as(found), rounding(operations, 2 * size_of_states(model, X, weight)))


@twin
def nope_needs_a_start_one_layer(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A block of any heads and layer, with weights of any sign that sum to one, makes equal tokens of equal ones; every
    other time with softmax, under a mask under which every token sees some. Broken: the first token is marked."""
    yield from all_alike(draw, 1, broken)


@twin
def nope_needs_a_start_depth(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """So does any number of blocks. Broken: the first token is marked."""
    yield from all_alike(draw, draw.integer(0, 3), broken)


@twin
def nope_reciprocal(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The uniform causal head writes z = 1/(j+1) at token j, from 0. Broken: 1/(j+2)."""
    n = draw.integer(1, 40)
    model = transformer((COUNT,), positions.stream, {N: n})
    z = model(positions.prompt(n, model.rows))[:, model.rows["z"]][:, 0]
    t = torch.arange(n + 1).double() + (2 if broken else 1)
    yield equal(t * z, torch.ones(n + 1), rounding(3, 1))  # of t·z: the weight 1/t, twice rounded in torch, and t·z


@twin
def hat_one_hot(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A token with z = 1/s, s > 0, and m_c = 0 gets m_c = 1 if c + 2 = s, else 0, c from 0. Broken: if c + 1 = s."""
    n, _ = size(draw, 1)
    component = torch.arange(n)
    for s in range(1, n + 4):
        X, rows = tokens(positions.stream, {N: n}, n, draw, z=1 / s)
        X[:, rows["m"]].fill_diagonal_(0)  # token c has m_c = 0 and anything else
        given(s > 0, X[:, rows["m"]].diagonal() == 0)
        code = (X + hats(n)(X))[:, rows["m"]].diagonal()
        # ramps of 1/s, a product and a difference, weighted by 2t at most; three of them and m_c, t ≤ n + 1
        yield equal(code, (component + (1 if broken else 2) == s).double(), rounding(3 + 1 + 4, 4 * (n + 1)))


@twin
def hat_one_hot_partition(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The hats of t = 1, …, n add up to 1 for z ≥ 1/n, and none is negative; those from 2 on are the layer's.
    Broken: for z ≥ 1/(2n)."""
    n, _ = size(draw, 1)
    least = 1 / (2 * n) if broken else 1 / n
    some = torch.tensor([least, max(least, 1.0), 3.0], dtype=torch.float64)
    z = torch.cat([some, draw.uniform(least, 1.2, 8)])[:, None]
    given(n > 0, z >= least)
    total = (1 - 2 * (1 - z).relu() + (1 - 2 * z).relu())[:, 0]
    allowed = rounding(2 + 1 + 3 + n, 4 * n * n)  # n hats of ramps that weigh 4t
    yield at_most(0.0, total, allowed)
    if n > 1:
        X, rows = tokens(positions.stream, {N: n - 1}, len(z), z=z)
        of_layer = hats(n - 1)(X)[:, rows["m"]]
        yield at_most(0.0, of_layer, allowed)
        total = total + of_layer.sum(-1)
    yield equal(total, torch.ones(len(z)), allowed)
