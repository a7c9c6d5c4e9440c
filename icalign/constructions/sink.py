"""Softmax attention with a sink as linear attention: Σ_j z_j v_j from pairs of heads that differ by the sign of ε.

A sink is a token that offers nothing and draws nearly all attention, by a logit λ that the others do not have. Beside
it the weight of token j is e^{−λ}e^{±εz_j}, nearly unnormalised, and the difference of the two heads is linear in z_j.

Claim ``sink-linear-attention``.

Rows: x, v, 1, b (the sink?) and sum, which the heads fill. Here z_j = ⟨x_i, x_j⟩.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import sympy as sp
import torch

from ..bounds import sink_coefficients
from ..forms import Bilinear, Form
from ..spec import Block, Head
from ..stream import Stream
from ..symbols import d_x, d_y

epsilon = sp.Symbol("epsilon", positive=True)
lambda_ = sp.Symbol("lambda", real=True)
scale = sp.Symbol("scale", positive=True)  # e^λ/(2ε), which is no rational number

MOST_PAIRS = 4  # with more, rounding of the blocks before is what limits a tolerance

stream = Stream(x=d_x, v=d_y, one=1, b=1, sum=d_y)
i, j = stream.tokens


def sink_scale(temperatures: Mapping[str, float], dtype: torch.dtype) -> float:
    """e^λ/(2ε), for λ ≤ 600.

    Raises:
        ValueError: more than the dtype holds, naming ε and λ.
    """
    small, strength = temperatures["epsilon"], temperatures["lambda"]
    found, largest = math.exp(strength) / (2 * small), torch.finfo(dtype).max
    if found > largest:
        raise ValueError(
            f"temperatures: epsilon = {small:.6g} and lambda = {strength:.6g} make e^λ/(2ε) = {found:.6g}, "
            f"expected at most {largest:.6g}, the largest number of {dtype}"
        )
    return found


def pair_values(temperatures: Mapping[str, float], longest: float, pairs: int) -> dict[str, float]:
    """A bound on what all heads of P pairs offer together, by its formula, if no v_j is longer than ``longest``."""
    small, strength = temperatures["epsilon"], temperatures["lambda"]
    if small == 0 or strength > 600:  # which is refused
        return {}
    weights = sum([abs(float(part)) / times for times, part in enumerate(sink_coefficients(pairs), 1)])
    return {"Σ|a_k|/k·(e^λ/ε)·‖v‖": weights * math.exp(strength) / small * longest}


def pair(z: Bilinear, to_sink: Bilinear, value: Form, row: str, times: int = 1) -> tuple[Head, Head]:
    r"""Two heads that add Σ_j (sinh(kεz_j)/(kε)) v_j to a row, nearly, where k is ``times``.

    .. math:: \frac{e^λ}{2kε}\Bigl(\mathrm{softmax}_j(+kεz_j + λb_j) - \mathrm{softmax}_j(-kεz_j + λb_j)\Bigr)

    Args:
        z: z_j, a bilinear form of the tokens i and j; zero where j is the sink.
        to_sink: b_j as a bilinear form, 1 where j is the sink and i is none.
        value: v_j, a form of token j; zero where j is the sink.
        row: where the heads write.
        times: k.
    """
    small = times * epsilon
    up = Head(logit=small * z + lambda_ * to_sink, write={row: scale / times * value})
    down = Head(logit=-small * z + lambda_ * to_sink, write={row: -scale / times * value})
    return up, down


def linear_attention(z: Bilinear, to_sink: Bilinear, value: Form, row: str, pairs: int = 1) -> tuple[Head, ...]:
    """P pairs at ε, 2ε, …, Pε, weighed so that all powers of ε below the 2P-th cancel; arguments as :func:`pair`."""
    heads: tuple[Head, ...] = ()
    for times, coefficient in enumerate(sink_coefficients(pairs), 1):
        heads += pair(z, to_sink, coefficient * value, row, times)
    return heads


def block(pairs: int = 1) -> Block:
    """The heads on this stream: they add Σ_j ⟨x_i, x_j⟩ v_j to the row sum."""
    return Block(heads=linear_attention(i.x @ j.x, i.one * j.b, j.v, "sum", pairs))
