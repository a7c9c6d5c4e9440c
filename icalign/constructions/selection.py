"""Lemma C.2 (E.2 in the camera-ready): a softmax head copies the response with the largest reward into every token.

Rows: x, y, r, 1 and best, which the head fills.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

import torch
from jaxtyping import Float
from torch import Tensor

from ..bounds import (
    attention_rounding,
    crowd_in_steps,
    radius_excess,
    selection_temperature_all_gaps,
    share,
    unit_roundoff,
)
from ..spec import Block, FeedForward, Head
from ..stream import Stream
from ..symbolic import SymbolicTransformer
from ..symbols import d_x, d_y, gamma
from ..tasks import AlignmentTask, refuse_class_beyond, refuse_dtype
from .base import Construction, TaskClass, build, either, hand_set, least_tolerance, prompt

stream = Stream(x=d_x, y=d_y, r=1, one=1, best=d_y)
i, j = stream.tokens

winner = Head(logit=gamma * i.one * j.r, write={"best": j.y})

block = Block(heads=(winner,))

ones = Block(feed_forward=FeedForward(write={"one": 1}))  # E.2's preprocessing, for tokens that come without the row


class Selection(Construction):
    r"""Every token learns the best response: ``c(task)`` ≈ y⁺ at every token.

    .. math:: \mathrm{best}_i = \sum_j \mathrm{softmax}_j(\gamma r_j)\, y_j, \qquad
              \lVert \mathrm{best}_i - y^+ \rVert \le D_0\,\frac{q}{1+q}, \quad q = \sum_{k=1}^{N-1} e^{-k\gamma\Delta}

    Claims ``selection-logits`` to ``selection-temperature``; Lemma C.2 of the paper.

    Args:
        dim_x: d_x.
        dim_y: d_y.
        responses: N.
        min_gap: Δ, the least gap between two rewards.
        reward_range: (low, high).
        radius: bound on ‖y‖; D₀ is twice that.
        tolerance: bound on max over tokens of ‖c(task) − y⁺‖; half of it is left to rounding.
        temperatures: ``{"gamma": …}`` in place of a tolerance.
        dtype: of weights and tasks.

    Raises:
        ValueError: a class that is empty or has N < 2, both or neither of tolerance and temperatures, a tolerance that
            the dtype cannot deliver, or a class, a weight or logits beyond the dtype.
    """

    def __init__(
        self,
        *,
        dim_x: int = 4,
        dim_y: int = 3,
        responses: int = 8,
        min_gap: float = 0.1,
        reward_range: tuple[float, float] = (0.0, 2.0),
        radius: float = 3.0,
        tolerance: float | None = None,
        temperatures: Mapping[str, float] | None = None,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self.task_class = TaskClass(
            dim_x=dim_x,
            dim_y=dim_y,
            responses=responses,
            min_gap=min_gap,
            reward_range=reward_range,
            radius=radius,
        )
        if responses < 2:
            raise ValueError(f"responses: {responses}, expected at least 2 to select among")
        refuse_dtype(dtype)
        refuse_class_beyond(dtype, reward_range, radius)
        self.dtype = dtype
        either(tolerance, temperatures)
        if temperatures is not None:
            self.gamma = hand_set(temperatures, "gamma")["gamma"]
            self._refuse_logits_beyond()
        else:
            assert tolerance is not None
            self.gamma = self._temperature(tolerance)
            if not self._attains(tolerance):
                low, high = tolerance, 2 * self.task_class.diameter + self._promise(0.0)
                least = least_tolerance(self._attains, low, high)
                promised = f"no less than {least:.3g}" if least < math.inf else "nothing"
                raise ValueError(f"tolerance: {tolerance}, {dtype} promises {promised} for this class")
        self.values = {d_x: dim_x, d_y: dim_y, gamma: self.gamma}
        self.transformer = build((block,), stream, self.values, dtype, {"gamma": self.gamma})
        self.error_bound = self._promise(self.gamma)

    def _temperature(self, tolerance: float) -> float:
        """The least γ ≥ 0 whose exact bound is half the tolerance; ∞ where that is too large a number."""
        kind, half = self.task_class, tolerance / 2
        if half >= kind.diameter:
            return 0.0
        return float(selection_temperature_all_gaps(half, kind.min_gap, kind.diameter)) if half > 0 else math.inf

    def _promise(self, gamma: float) -> float:
        kind = self.task_class
        exact = kind.diameter * share(crowd_in_steps(gamma, kind.min_gap, kind.responses))
        rounding = attention_rounding(self.dtype, gamma * kind.largest_reward, kind.responses, kind.radius)
        wider = kind.diameter * radius_excess(self.dtype, kind.dim_y)
        return float(exact + rounding + wider)

    def _attains(self, tolerance: float) -> bool:
        """Whether the dtype holds the weight for a tolerance, and promises it.

        If it does, it does so for every larger one. γ falls, and with it the rounding; and with ξ = e^{−γΔ} = T/(2D₀)
        and S = 1 + ξ + … + ξ^{N−1} the exact part, D₀(1 − 1/S), grows at the rate S′/(2S²) ≤ 1/2 in the tolerance T.
        """
        gamma = self._temperature(tolerance)
        return gamma <= torch.finfo(self.dtype).max and self._promise(gamma) <= tolerance

    def _refuse_logits_beyond(self) -> None:
        """Logits γr and their differences, three roundings each, must stay below the largest number of the dtype."""
        kind, largest = self.task_class, torch.finfo(self.dtype).max
        limit = largest * (1 - 8 * unit_roundoff(self.dtype))
        for words, size in (("largest logit γ·max|r|", kind.largest_reward), ("largest difference γR", kind.spread)):
            if self.gamma * size > limit:
                logit = Decimal(self.gamma) * Decimal(size)  # as a float it may be infinite
                raise ValueError(
                    f"temperatures['gamma']: {self.gamma:.6g} makes the {words} = {logit:.6g}, expected at most "
                    f"{limit:.6g}, which is a few roundings below {largest:.6g}, the largest number of {self.dtype}"
                )

    def symbolic(self) -> SymbolicTransformer:
        """The head with symbols for d_x, d_y, γ; any number of tokens."""
        return SymbolicTransformer(stream, (block,), given={"one": 1, "best": 0})

    def embed(self, task: AlignmentTask) -> Float[Tensor, "*batch responses width"]:
        """Tokens [x; y_j; r_j; 1; 0].

        Raises:
            OutOfClass: a size differs from that of the class.
            ValueError: not a task, or one of another dtype.
        """
        self.refuse_unfit(task)
        return prompt(task, self.transformer.rows)

    def read(self, X: Float[Tensor, "*batch responses width"]) -> Float[Tensor, "*batch 1 responses dim_y"]:
        """The row best of every token."""
        return X[..., None, :, self.transformer.rows["best"]]
