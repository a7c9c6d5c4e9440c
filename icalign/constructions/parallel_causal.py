"""N heads in one layer in place of N−1 blocks: the online step of every position at once, under a causal mask.

Under a causal mask position i must add up terms of its own prefix, those of earlier positions are other numbers. Here
head k of the last layer writes the term of response k, at every position that has seen it. Three blocks:

- ``spread`` writes each reward, plus an offset, into the slot of its own position: row ``slot``.
- ``gather`` adds up the prefix. All responses weigh 1/(N+1), because the start token takes the rest, which is
  (N+1−i)/(N+1) at position i. So position i has a place of row ``board`` for each reward of its prefix, and 0 in those
  of responses that are to come; and 2ηΣy of its prefix. ``compare`` makes N masks of this: m_k marks what is better
  than response k, and everything while response k is still to come.
- ``weigh(k)`` weighs what the mask m_k leaves, by score, and subtracts 2η times that mean. If it leaves nothing, the
  start token takes the weight and the head adds next to nothing.

Rows: x, y, sq = ‖y‖², r, 1, b (start token?), p (one-hot position), slot, board, m_1, …, m_N and u (what has been
added up). Claim ``causal-constant-depth``.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import sympy as sp
import torch
from jaxtyping import Float
from sympy.matrices.expressions.special import OneMatrix
from torch import Tensor

from .. import bounds
from ..forms import Form
from ..spec import Block, FeedForward, Head, relu
from ..stream import Stream
from ..symbolic import SymbolicTransformer
from ..symbols import Delta, N, W, d_x, d_y, eta
from ..tasks import AlignmentTask
from .base import build, prompt, with_start
from .causal import c, sigma
from .elimination import R
from .gradient import OneQueryStep

high = sp.Symbol("high", real=True)
rest = sp.MatrixSymbol("lambda", 1, N)  # the logit of the start token in the gathering head, by position

_before = {"x": d_x, "y": d_y, "sq": 1, "r": 1, "one": 1, "b": 1, "p": N, "slot": N, "board": N}


def stream(*responses: Any) -> Stream:
    """The rows of a token, with a mask m_k for each k that is given, a number or a symbol."""
    return Stream(**_before, **{f"m_{k}": N for k in responses}, u=d_y)


i, j = Stream(**_before, u=d_y).tokens

spread = FeedForward(
    write={"slot": relu(OneMatrix(N, 1) @ (i.r - high * (i.one - i.b)) + (R + Delta) * i.p)},
)

gather = Head(
    logit=(rest @ i.p) * j.b,
    write={"board": (N + 1) * j.slot, "u": 2 * eta * (N + 1) * j.y},
)


def lead(k: Any) -> Form:
    """board − board_k: by how much each slot of the board exceeds the k-th."""
    a, column = sp.symbols("a l", integer=True)
    others = sp.FunctionMatrix(N, N, sp.Lambda((a, column), sp.KroneckerDelta(column, k - 1)))
    found: Form = i.board - others @ i.board
    return found


def compare(*responses: Any) -> FeedForward:
    """The masks m_k: 0 where a slot exceeds the k-th by no more than Δ/4, and 1 from 3Δ/4 on."""
    rises = {f"m_{k}": 2 * lead(k) / Delta - sp.Rational(1, 2) for k in responses}
    return FeedForward(write={row: relu(z) - relu(z - 1) for row, z in rises.items()})


subtract = {"u": -2 * eta * j.y}  # one object, so that the heads share one matrix of values in torch


def weigh(k: Any) -> Head:
    """Head k: the mean, by score, of what m_k does not mark; or the start token."""
    mask: Form = getattr(stream(k).tokens[0], f"m_{k}")
    return Head(
        logit=2 * W @ i.x @ j.y - i.one * (j.sq - sigma * j.b) - c * mask @ j.p,
        write=subtract,
    )


def blocks(*responses: Any) -> tuple[Block, Block, Block]:
    """The three blocks, with a head for each k that is given: 1, …, N, or one symbol that stands for any."""
    return (
        Block(feed_forward=spread, causal=True),
        Block(heads=(gather,), feed_forward=compare(*responses), causal=True),
        Block(heads=tuple([weigh(k) for k in responses]), causal=True),
    )


class CausalConstantDepth(OneQueryStep):
    r"""One online gradient step on the Plackett–Luce loss at every position: three blocks, N heads in the last.

    .. math:: u_t \approx ΔW_t\,x, \qquad ΔW_t = -η\,\nabla L_t(W), \qquad L_t = \text{loss of the first t responses}

    Claim ``causal-constant-depth``. What :class:`icalign.constructions.Causal` does in N−1 blocks of two heads, in two
    attention layers of 1 and N heads, with N + 2N² ReLUs and N² more rows. ``c(task)`` is y_t − u_t at every position,
    ``c.update(task)`` is u_t. The prompt has a start token in front, and one-hot positions.

    The promise holds for every c ≥ 0; a small c makes it large. Masks are exact, so that errors do not compound.

    Args:
        W: the parameters W₀ (d_y, d_x) of the reward model at the start.
        eta: the step size η > 0.
        responses: N ≥ 2.
        min_gap: Δ, the least gap between two rewards.
        reward_range: (low, high).
        radius: bound on ‖y‖; D₀ is twice that.
        tolerance: bound on max over positions of ‖c(task) − exact‖; half of it is left to rounding.
        temperatures: ``{"c": …}`` in place of a tolerance. ``error_bound`` is ∞ if the dtype cannot tell rewards Δ
            apart.
        dtype: of weights and tasks.

    Raises:
        ValueError: W or η out of range, a class that is empty or has N < 2, both or neither of tolerance and
            temperatures, a tolerance that the dtype cannot deliver, or a class or a weight beyond the dtype.
    """

    temperature_names = ("c",)

    @property
    def margin(self) -> float:
        """h = (c − R_Z)/2, by which the start token's logit lies below every live and above every marked score."""
        return (self.temperatures["c"] - self.score_spread) / 2

    def _temperatures(self, tolerance: float) -> dict[str, float]:
        kind, tiny = self.task_class, sys.float_info.min
        once = max(min(tolerance, self.longest), tiny)
        h = max(bounds.causal_depth_margins(once, max(self.eta, tiny), kind.responses, max(kind.diameter, tiny)))
        return {"c": self.score_spread + 2 * h}

    @property
    def _rewards(self) -> tuple[float, float, float, int]:
        """Δ, R, max |r| and N, on which masks depend."""
        kind = self.task_class
        return kind.min_gap, kind.spread, kind.largest_reward, kind.responses

    @property
    def _least_margin(self) -> float:
        """h − cφ: what is left at least of h where a mask of 1 is rounded."""
        return self.margin - self.temperatures["c"] * bounds.mask_slip(self.dtype, *self._rewards)

    def _exact_error(self) -> float:
        """The bound at masks that may be less than 1 by their rounding; ∞ if they may be wrong."""
        kind = self.task_class
        if not bounds.masks_are_exact(self.dtype, *self._rewards):
            return math.inf
        return bounds.causal_depth_error(self.eta, self._least_margin, kind.responses, kind.diameter)

    def _rounding(self) -> float:
        kind = self.task_class
        return (
            self._query_rounding
            + self._radius_rounding()
            + bounds.causal_depth_rounding(
                self.dtype,
                self.eta,
                self._least_margin,
                self.temperatures["c"],
                kind.responses,
                kind.dim_x,
                kind.dim_y,
                self.reach,
                kind.radius,
            )
        )

    def _largest_logits(self) -> dict[str, float]:
        return {"(‖|W||x|‖ + ‖y‖)² + 2c": self.reach * self.reach + 2 * self.temperatures["c"]}

    def _largest_values(self) -> dict[str, float]:
        kind = self.task_class
        most = kind.spread + kind.min_gap
        own = {"2max|r| + R + Δ": 2 * kind.largest_reward + most, "(N+1)(R + Δ)": (kind.responses + 1) * most}
        return own | super()._largest_values()

    def _build(self) -> None:
        kind = self.task_class
        lowest, highest = bounds.score_range(self.norm, kind.radius)
        at = [bounds.prefix_logit(kind.responses, t) for t in range(1, kind.responses + 1)]
        self.values = {
            d_x: kind.dim_x,
            d_y: kind.dim_y,
            N: kind.responses,
            W: self.W,
            eta: self.eta,
            Delta: kind.min_gap,
            R: kind.spread,
            high: kind.reward_range[1],
            c: self.temperatures["c"],
            sigma: bounds.stop_logit(lowest, highest, self.temperatures["c"]),
            rest: torch.tensor([at], dtype=torch.float64),
        }
        model = self.symbolic()
        self.transformer = build(model.blocks, model.stream, self.values, self.dtype, self.temperatures)

    def symbolic(self) -> SymbolicTransformer:
        """The blocks, with N heads for this N, and symbols for d_x, d_y, N, η, Δ, R, high, c, σ, λ, W."""
        heads = range(1, self.task_class.responses + 1)
        empty = dict.fromkeys(["slot", "board", *[f"m_{k}" for k in heads], "u"], 0)
        return SymbolicTransformer(stream(*heads), blocks(*heads), {"one": 1} | empty)

    def embed(self, task: AlignmentTask) -> Float[Tensor, "*batch tokens width"]:
        """The start token, rows one and b alone; then tokens [x; y_t; ‖y_t‖²; r_t; 1; 0; p_t], the other rows 0.

        Raises:
            OutOfClass: a size differs from that of the class.
            ValueError: not a task, or one of another dtype.
        """
        self.refuse_unfit(task)
        rows = self.transformer.rows
        X = prompt(task, rows)
        X[..., rows["p"]] = torch.eye(X.shape[-2], dtype=X.dtype)
        return with_start(X, rows, "one", "b")

    def responses(self, X: Float[Tensor, "*batch tokens width"]) -> Float[Tensor, "*batch queries responses width"]:
        """The tokens that hold responses; without the start token."""
        return super().responses(X[..., 1:, :])
