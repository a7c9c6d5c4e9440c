r"""A gradient step in three attention layers of one head each, for any number of responses with one-hot positions.

Every token learns all rewards, and so its own rank; then all terms of the step are made at once, each at the token
whose rank it is, and added up.

- ``spread`` moves the reward, less the least of the class, to the slot of the token's own position;
- ``broadcast``, a uniform head, gives every token the slots of all: the row board;
- ``compare`` turns the board into the mask m_i = (1{r_j > r_i})_j;
- ``field``, a β head behind the mask, gives token i the mean of the responses of its own rank and below;
- ``total``, a uniform head, adds up 2η(y_j − mean_j).

Claim ``constant-depth``.

Rows: x, y, sq = ‖y‖², r, 1, p (one-hot position), slot, board, m (the better responses), mean and u.
"""

from __future__ import annotations

import math
import sys

import sympy as sp
import torch
from jaxtyping import Float
from sympy.matrices.expressions.special import OneMatrix
from torch import Tensor

from .. import bounds
from ..spec import Block, FeedForward, Head, relu
from ..stream import Stream
from ..symbolic import SymbolicTransformer
from ..symbols import Delta, N, W, d_x, d_y, eta
from ..tasks import AlignmentTask
from .base import build
from .gradient import OneQueryStep

C = sp.Symbol("C", nonnegative=True)
low, high = sp.symbols("low high", real=True)

stream = Stream(x=d_x, y=d_y, sq=1, r=1, one=1, p=N, slot=N, board=N, m=N, mean=d_y, u=d_y)
i, j = stream.tokens
everywhere = OneMatrix(N, 1)

spread = FeedForward(
    write={"slot": relu(everywhere @ i.r + (high - low) * i.p - high)},
)

broadcast = Head(logit=0 * i.one * j.one, write={"board": N * j.slot})

z = (i.board - everywhere @ i.r + low) / (Delta / 2) - sp.Rational(1, 2)
compare = FeedForward(write={"m": relu(z) - relu(z - 1)})

field = Head(
    logit=2 * W @ i.x @ j.y - i.one * j.sq - C * i.m @ j.p,
    write={"mean": j.y},
)

total = Head(
    logit=0 * i.one * j.one,
    write={"u": 2 * eta * N * (j.y - j.mean)},
)

post = Block(feed_forward=spread)
rank = Block(heads=(broadcast,), feed_forward=compare)
weigh = Block(heads=(field,))
add = Block(heads=(total,))
blocks = (post, rank, weigh, add)


class ConstantDepth(OneQueryStep):
    r"""One gradient step on the Plackett–Luce loss of the N responses to one query, at a depth that does not grow.

    .. math:: u \approx ΔW\,x, \qquad ΔW = -η\,\nabla L(W), \qquad L(W) = -\log P_{PL}

    Claim ``constant-depth``. ``c(task)`` is y_i − u at every token, ``c.update(task)`` is u. Three attention layers of
    one head each and 3N ReLUs in two layers, whatever N; the width of a token is 4N and a constant. Each token has its
    one-hot position in the prompt.

    Args:
        W: the parameters W₀ (d_y, d_x) of the reward model at the start.
        eta: the step size η > 0.
        responses: N ≥ 2.
        min_gap: Δ, the least gap between two rewards.
        reward_range: (low, high).
        radius: bound on ‖y‖; D₀ is twice that.
        tolerance: bound on max over tokens of ‖c(task) − exact‖; half of it is left to rounding.
        temperatures: ``{"C": …}`` in place of a tolerance. ``error_bound`` is ∞ if the dtype cannot tell rewards apart
            that differ by Δ.
        dtype: of weights and tasks.

    Raises:
        ValueError: W or η out of range, a class that is empty or has N < 2, both or neither of tolerance and
            temperatures, a tolerance that the dtype cannot deliver, or a class or a weight beyond the dtype.
    """

    temperature_names = ("C",)

    @property
    def _least_mask(self) -> float:
        """1 − φ, what is left at least of C where a mask of 1 is rounded; 0 if a mask may be worse."""
        largest, gap = self.task_class.largest_reward, self.task_class.min_gap
        exact = bounds.comparison_is_exact(self.dtype, largest, gap)
        return 1 - bounds.comparison_rounding(self.dtype, largest, gap) if exact else 0.0

    def _temperatures(self, tolerance: float) -> dict[str, float]:
        kind, tiny = self.task_class, sys.float_info.min
        if not self._least_mask:
            return {"C": math.inf}
        once = max(min(tolerance / (1 + 1e-9), self.longest), tiny)  # with room for the rounding of the formulas
        scale = max(self.eta * kind.diameter, tiny)
        mask = bounds.constant_depth_mask(once, scale, self.score_spread, kind.responses, 1.0)
        return {"C": float(mask) / self._least_mask}

    def _exact_error(self) -> float:
        """The theorem's bound, at masks that may be less than 1 by their rounding; ∞ if they may be worse."""
        kind, least = self.task_class, self._least_mask
        if not least:
            return math.inf
        mask = self.temperatures["C"] * least
        error = bounds.constant_depth_error(self.eta, mask, self.score_spread, kind.responses, kind.diameter)
        return float(error)

    def _rounding(self) -> float:
        kind = self.task_class
        once = bounds.constant_depth_rounding(
            self.dtype,
            self.eta,
            self.temperatures["C"],
            1 - self._least_mask,
            self.score_spread,
            kind.responses,
            kind.dim_x,
            kind.dim_y,
            self.reach,
            kind.radius,
        )
        return once + self._query_rounding + self._radius_rounding()

    def _largest_logits(self) -> dict[str, float]:
        return {"(‖|W||x|‖ + ‖y‖)² + C": self.reach * self.reach + self.temperatures["C"]}

    def _largest_values(self) -> dict[str, float]:
        kind = self.task_class
        slot = 2 * kind.largest_reward + kind.spread
        return {"N·R": kind.responses * kind.spread, "2max|r| + R": slot} | super()._largest_values()

    def _build(self) -> None:
        kind = self.task_class
        self.values = {
            d_x: kind.dim_x,
            d_y: kind.dim_y,
            N: kind.responses,
            W: self.W,
            eta: self.eta,
            low: kind.reward_range[0],
            high: kind.reward_range[1],
            Delta: kind.min_gap,
            C: self.temperatures["C"],
        }
        self.transformer = build(blocks, stream, self.values, self.dtype, self.temperatures)

    def symbolic(self) -> SymbolicTransformer:
        """The four blocks, with symbols for d_x, d_y, N, η, low, high, Δ, C, W."""
        return SymbolicTransformer(stream, blocks, {"one": 1, "slot": 0, "board": 0, "m": 0, "mean": 0, "u": 0})

    def embed(self, task: AlignmentTask) -> Float[Tensor, "*batch tokens width"]:
        """The prompt: tokens [x; y_j; ‖y_j‖²; r_j; 1; p_j], p_j the j-th unit vector, the other rows 0.

        Raises:
            OutOfClass: a size differs from that of the class.
            ValueError: not a task, or one of another dtype.
        """
        X = super().embed(task)
        X[..., self.transformer.rows["p"]] = torch.eye(X.shape[-2], dtype=X.dtype)
        return X
