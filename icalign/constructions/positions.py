r"""Positions from the causal mask alone: a start token, a head that counts, hats that read the count.

Rows: p and m of size N, b (start token?) and z. The start token stands first, so that response i is token t = i + 1.
A uniform causal head writes z = 1/t. ReLU hats with peaks at 1/2, …, 1/(N+1) turn it into a one-hot code in the row m,
exactly in real arithmetic. A second layer rounds the code to zeros and ones, writes it into p and empties z and m: the
row m is borrowed, and a construction that uses it as a mask can have these blocks in front.

Claims ``nope-reciprocal``, ``hat-one-hot``, ``position-precision``.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp
import torch
from jaxtyping import Float
from sympy.matrices.expressions.diagonal import DiagMatrix
from torch import Tensor

from ..bounds import digits, first_collision, most_positions
from ..forms import PiecewiseLinear, Size
from ..spec import Block, FeedForward, Head, relu
from ..stream import Stream
from ..symbols import N
from ..tasks import refuse_dtype, refuse_non_sizes

stream = Stream(p=N, m=N, b=1, z=1)
i, j = stream.tokens


def numbers(size: Size, first: int) -> sp.FunctionMatrix:
    """The column (first, first + 1, …) of the given size."""
    k, column = sp.symbols("k l", integer=True)
    return sp.FunctionMatrix(size, 1, sp.Lambda((k, column), k + first))


def ramps(size: Size, first: int) -> PiecewiseLinear:
    """relu(1 − kz) for k = first, first + 1, …: ramps that fall, to 0 at z = 1/k."""
    return relu(1 - numbers(size, first) @ i.z)


def hats(size: Size = N) -> FeedForward:
    r"""The layer that writes hat_t(z) into component t − 2 of the row m, t = 2, …, N + 1.

    .. math:: \mathrm{hat}_t(z) = t\,\bigl(\mathrm{relu}(1 - (t-1)z) - 2\,\mathrm{relu}(1 - tz)
              + \mathrm{relu}(1 - (t+1)z)\bigr)

    It is 1 at z = 1/t and 0 at all other 1/s (claim ``hat-one-hot``). The weights are whole numbers up to 2(N + 1).
    """
    t = DiagMatrix(numbers(size, 2))
    return FeedForward(write={"m": t @ ramps(size, 1) - 2 * (t @ ramps(size, 2)) + t @ ramps(size, 3)})


count = Head(logit=0 * i.b * j.b, write={"z": j.b})  # uniform weights: z = (1 + 0 + … + 0)/t

half = sp.Rational(1, 2)


def rounding(size: Size = N) -> FeedForward:
    """The layer that rounds the code in m, moves it to p and empties m and z."""
    i, _ = Stream(**{**stream.rows, "p": size, "m": size}).tokens
    return FeedForward(
        write={
            "p": relu(2 * i.m - half) - relu(2 * i.m - 3 * half),  # 0 for m ≤ 1/4, 1 for m ≥ 3/4
            "m": relu(-i.m) - relu(i.m),
            "z": -relu(i.z),
        }
    )


def blocks(size: Size = N) -> tuple[Block, Block]:
    """The two blocks, for a stream whose rows p and m have the given size."""
    counted = Block(heads=(count,), feed_forward=hats(size), causal=True)
    return counted, Block(feed_forward=rounding(size), causal=True)


def refuse_positions(responses: int, dtype: torch.dtype) -> None:
    """Raise unless the two blocks give N responses exactly one-hot positions in the dtype, for sure.

    Raises:
        ValueError: no size, no dtype of tasks, or more responses than that.
    """
    refuse_non_sizes(responses=responses)
    refuse_dtype(dtype)
    most = most_positions(dtype) - 1
    if responses > most:
        raise ValueError(
            f"responses: {responses}, expected at most {most}, for which {dtype} is sure to give exact positions "
            f"(1/t and 1/(t+1) are one number of it from t = {first_collision(digits(dtype))} on)"
        )


def prompt(
    responses: int, rows: Mapping[str, slice], dtype: torch.dtype = torch.float64
) -> Float[Tensor, "tokens width"]:
    """A start token, which has b = 1, and N tokens of zeros. Shape (N + 1, width)."""
    X = torch.zeros(responses + 1, max(place.stop for place in rows.values()), dtype=dtype)
    X[0, rows["b"]] = 1
    return X
