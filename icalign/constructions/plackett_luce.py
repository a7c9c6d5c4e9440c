"""The paper's Theorem 3.3: N−1 blocks make one gradient step on the Plackett–Luce loss; looped, they make T steps.

One step is N−1 times ``elimination.block``. For T steps the stream has one more row, v, the shift committed so far:
the β head reads Wx + v, and the feed-forward layer of every (N−1)-th block, instead of eliminating once more, takes all
flags back and moves u to v.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from .. import bounds
from ..spec import Block, FeedForward, Head, relu
from ..stream import Stream
from ..symbolic import SymbolicTransformer
from ..symbols import Delta, W, d_x, d_y, eta, gamma
from ..tasks import refuse_non_sizes
from . import elimination
from .base import TaskClass, build
from .elimination import B, C, R
from .gradient import GradientStep

stream = Stream(**elimination.stream.rows, v=d_y)
i, j = stream.tokens

field = Head(
    logit=2 * (W @ i.x + i.v) @ j.y - i.one * (j.sq + C * j.flag),
    write={"u": -2 * eta * j.y},
)

commit = FeedForward(
    write={
        "v": relu(i.u) - relu(-i.u),
        "u": relu(-i.u) - relu(i.u),
        "flag": relu(-i.flag) - relu(i.flag),
        "top": relu(-i.top) - relu(i.top),
    }
)

heads = (elimination.winner, field)
turn = Block(heads=heads, feed_forward=elimination.eliminate)
last = Block(heads=heads, feed_forward=commit)


class PlackettLuce(GradientStep):
    r"""One gradient step, or T of them, on the Plackett–Luce loss of the N responses to one query.

    .. math:: u \approx ΔW\,x, \qquad ΔW = -η\,\nabla L(W), \qquad L(W) = -\log P_{PL}

    Claims ``theorem-3-3`` and, for T > 1, ``many-steps``, ``many-steps-stable``; the paper's Theorem 3.3.
    ``c(task)`` is y_i − u at every token, ``c.update(task)`` is u; a test token's prediction is moved to W₀x + u.

    Args:
        W: the parameters W₀ (d_y, d_x) of the reward model at the start.
        eta: the step size η > 0.
        responses: N ≥ 2.
        min_gap: Δ, the least gap between two rewards.
        reward_range: (low, high).
        radius: bound on ‖y‖; D₀ is twice that.
        tolerance: bound on max over tokens of ‖c(task) − exact‖; half of it is left to rounding.
        temperatures: ``{"gamma": …, "C": …}`` in place of a tolerance. ``error_bound`` is ∞ if γΔ < log 5.
        steps: T.
        dtype: of weights and tasks.

    Raises:
        ValueError: W, η or T out of range, a class that is empty or has N < 2, both or neither of tolerance and
            temperatures, a tolerance that the dtype cannot deliver, or a class or a weight beyond the dtype.
    """

    temperature_names = ("gamma", "C")

    def __init__(
        self,
        *,
        W: Float[Tensor, "dim_y dim_x"],
        eta: float = 0.1,
        responses: int = 8,
        min_gap: float = 0.1,
        reward_range: tuple[float, float] = (0.0, 2.0),
        radius: float = 3.0,
        tolerance: float | None = None,
        temperatures: Mapping[str, float] | None = None,
        steps: int = 1,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self._take(W, eta, dtype)
        self.task_class = TaskClass(
            dim_x=W.shape[1],
            dim_y=W.shape[0],
            responses=responses,
            min_gap=min_gap,
            reward_range=reward_range,
            radius=radius,
        )
        refuse_non_sizes(steps=steps)
        self.steps = steps
        self._set(tolerance, temperatures)

    @property
    def furthest(self) -> float:
        """ω + 2ηD₀(N−1)T, a bound on ‖Wx + v‖ in every step (claim ``many-steps``, part range)."""
        return self.norm + (self.steps * self.longest if self.steps > 1 else 0.0)

    @property
    def _reach_with_shift(self) -> float:
        """A bound on ‖|W||x|‖ + ‖v‖ + ‖y‖ in every step."""
        return self.reach + self.furthest - self.norm

    @property
    def _scale(self) -> float:
        return super()._scale * self.growth

    @property
    def growth(self) -> float:
        """Σ_{t<T} max(1, ηΛ−1)^t: what the error of one step can grow to (claim ``many-steps-stable``)."""
        curvature = bounds.smoothness(self.task_class.responses, self.task_class.diameter)
        return float(bounds.many_steps_growth(self.eta, curvature, self.steps))

    def _temperatures(self, tolerance: float) -> dict[str, float]:
        kind = self.task_class
        score_spread = bounds.score_spread(self.furthest, kind.radius)
        once = min(tolerance / self.growth, self.longest / 2)  # at U/2, γΔ ≥ log 5.2, which leaves r⁺ some room
        if once == 0:  # errors grow beyond what a float holds
            return {"gamma": math.inf, "C": math.inf}
        g, c = bounds.plackett_luce_temperatures(once, self.longest, kind.min_gap, score_spread, kind.responses)
        return {"gamma": g, "C": c}

    def _exact_error(self) -> float:
        """The bound at flags that may be less than 1 by their rounding; ∞ if γΔ < log 5 or r⁺ may be too far off."""
        kind, g, c = self.task_class, self.temperatures["gamma"], self.temperatures["C"]
        if not g * kind.min_gap >= math.log(5) or self.growth == math.inf:
            return math.inf
        flag = bounds.flag_rounding(self.dtype, kind.largest_reward, kind.min_gap)
        if not bounds.flags_are_exact(self.dtype, g, kind.min_gap, kind.spread, kind.largest_reward, kind.responses):
            return math.inf
        once = bounds.plackett_luce_error(
            self.eta,
            g,
            c * (1 - flag),
            kind.min_gap,
            kind.spread - 2 * (kind.spread + kind.min_gap) * flag,
            bounds.score_spread(self.furthest, kind.radius),
            kind.responses,
            kind.diameter,
        )
        return float(self.growth * once)

    def _rounding(self) -> float:
        kind = self.task_class
        once = bounds.plackett_luce_rounding(
            self.dtype,
            self.eta,
            self.temperatures["gamma"],
            self.temperatures["C"],
            kind.min_gap,
            kind.spread,
            kind.largest_reward,
            bounds.score_spread(self.furthest, kind.radius),
            kind.responses,
            kind.dim_x + 1,  # v is one more term in a query of the β head
            kind.dim_y,
            self._reach_with_shift,
            kind.radius,
        )
        commit = bounds.commit_rounding(self.dtype, self.steps, self.longest) if self.steps > 1 else 0.0
        return float(self.growth * (once + commit + self._query_rounding + self._radius_rounding()))

    def _largest_logits(self) -> dict[str, float]:
        kind, g, c = self.task_class, self.temperatures["gamma"], self.temperatures["C"]
        reach = self._reach_with_shift
        return {
            "γ(max|r| + 2(R + Δ))": g * (kind.largest_reward + 2 * (kind.spread + kind.min_gap)),
            "(‖|W||x|‖ + ‖y‖)² + C": reach * reach + c,
        }

    def _largest_values(self) -> dict[str, float]:
        found = super()._largest_values()
        if self.steps > 1:
            found["T·U + radius"] = self.steps * self.longest + self.task_class.radius
        return found

    def _build(self) -> None:
        kind = self.task_class
        self.values = {
            d_x: kind.dim_x,
            d_y: kind.dim_y,
            W: self.W,
            eta: self.eta,
            gamma: self.temperatures["gamma"],
            Delta: kind.min_gap,
            R: kind.spread,
            B: bounds.elimination_mask(kind.min_gap, kind.spread) + 0.5,  # half a unit of room for rounding
            C: self.temperatures["C"],
        }
        loop = self.symbolic()
        self.transformer = build(loop.blocks * self.steps, loop.stream, self.values, self.dtype, self.temperatures)

    @property
    def accumulator(self) -> str:
        """The row that holds ΔW x at the end: u, or v after several steps."""
        return "u" if self.steps == 1 else "v"

    def symbolic(self) -> SymbolicTransformer:
        """The blocks of one loop, N−1 for this N, with symbols for d_x, d_y, γ, η, Δ, R, B, C, W."""
        given = {"one": 1, "flag": 0, "top": 0, "u": 0}
        between = self.task_class.responses - 2
        if self.steps == 1:
            return SymbolicTransformer(elimination.stream, (elimination.block,) * (between + 1), given)
        return SymbolicTransformer(stream, (turn,) * between + (last,), given | {"v": 0})
