"""Lemma C.2 (E.2 in the camera-ready): a softmax head copies the response with the largest reward into every token.

Rows: x, y, r, 1 and best, which the head fills.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from ..bounds import attention_rounding, crowd_in_steps, selection_temperature_all_gaps, share
from ..spec import Block, FeedForward, Head
from ..stream import Stream
from ..symbolic import SymbolicTransformer
from ..symbols import d_x, d_y, gamma
from ..tasks import AlignmentTask
from ..transformer import Transformer
from .base import Construction, TaskClass, hand_set

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
        ValueError: a class that is empty or has N < 2, both or neither of tolerance and temperatures, or a tolerance
            that the dtype cannot deliver.
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
        self.dtype = dtype
        self.gamma = self._inverse_temperature(tolerance, temperatures)
        values = {d_x: dim_x, d_y: dim_y, gamma: self.gamma}
        self.transformer = Transformer((block,), stream, values, dtype)
        self.error_bound = self._promise()
        if tolerance is not None and self.error_bound > tolerance:
            raise ValueError(f"tolerance: {tolerance}, {dtype} promises no less than {self.error_bound:.3g} here")

    def _inverse_temperature(self, tolerance: float | None, temperatures: Mapping[str, float] | None) -> float:
        if (tolerance is None) == (temperatures is None):
            raise ValueError("give either tolerance or temperatures")
        if temperatures is not None:
            return hand_set(temperatures, "gamma")["gamma"]
        assert tolerance is not None
        if not 0 < tolerance < math.inf:
            raise ValueError(f"tolerance: {tolerance}, expected a positive finite number")
        kind = self.task_class
        return max(0.0, float(selection_temperature_all_gaps(tolerance / 2, kind.min_gap, kind.diameter)))

    def _promise(self) -> float:
        kind = self.task_class
        exact = kind.diameter * share(crowd_in_steps(self.gamma, kind.min_gap, kind.responses))
        return float(
            exact + attention_rounding(self.dtype, self.gamma * kind.largest_reward, kind.responses, kind.radius)
        )

    def symbolic(self) -> SymbolicTransformer:
        """The head with symbols for d_x, d_y, γ; any number of tokens."""
        return SymbolicTransformer(stream, (block,), given={"one": 1, "best": 0})

    def embed(self, task: AlignmentTask) -> Float[Tensor, "*batch responses width"]:
        """Tokens [x; y_j; r_j; 1; 0]."""
        rows = self.transformer.rows
        X = task.y.new_zeros(*task.batch, self.task_class.responses, rows["best"].stop)
        X[..., rows["x"]] = task.x
        X[..., rows["y"]] = task.y[..., 0, :, :]
        X[..., rows["r"]] = task.r[..., 0, :, None]
        X[..., rows["one"]] = 1
        return X

    def read(self, X: Float[Tensor, "*batch responses width"]) -> Float[Tensor, "*batch 1 responses dim_y"]:
        """The row best of every token."""
        return X[..., None, :, self.transformer.rows["best"]]
