"""What all constructions share: the class of tasks their weights are made for, and how they are run."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..bounds import unit_roundoff
from ..symbolic import SymbolicTransformer
from ..tasks import AlignmentTask, OutOfClass
from ..transformer import Transformer


@dataclass(frozen=True, kw_only=True)
class TaskClass:
    """A class of tasks, over which one set of weights must work.

    Attributes:
        dim_x: d_x.
        dim_y: d_y.
        responses: N.
        queries: M.
        min_gap: Δ > 0, the least gap between two rewards of one query.
        reward_range: (low, high), bounds on all rewards; R = high − low.
        radius: bound on ‖y‖.

    Raises:
        ValueError: a number outside its range, or an empty class, (N−1)Δ > R.
    """

    dim_x: int
    dim_y: int
    responses: int
    min_gap: float
    reward_range: tuple[float, float]
    radius: float
    queries: int = 1

    def __post_init__(self) -> None:
        for name in ("dim_x", "dim_y", "responses", "queries"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)}, expected at least 1")
        for name in ("min_gap", "radius"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name}: {value}, expected a positive finite number")
        low, high = self.reward_range
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"reward_range: {self.reward_range}, expected finite (low, high) with low < high")
        if (self.responses - 1) * self.min_gap > self.spread:
            needed = (self.responses - 1) * self.min_gap
            raise ValueError(
                f"min_gap: {self.responses} rewards at gaps of {self.min_gap} span {needed:.6g}, "
                f"expected at most R = {self.spread:.6g}: the class is empty"
            )

    @property
    def spread(self) -> float:
        """R = high − low."""
        return self.reward_range[1] - self.reward_range[0]

    @property
    def diameter(self) -> float:
        """D₀ = 2·radius, a bound on every distance between responses."""
        return 2 * self.radius

    @property
    def largest_reward(self) -> float:
        """max |r| over the class."""
        return max(map(abs, self.reward_range))

    def check(self, task: AlignmentTask) -> None:
        """Raise unless the task belongs to the class.

        A gap may fall short of Δ by the rounding of its two rewards, 4ε₀·max|r|, and a norm exceed the radius by the
        rounding of its computation, (d_y + 4)·2ε₀ of itself; bounds allow for both.

        Raises:
            OutOfClass: naming the hypothesis that fails, the value and the limit.
        """
        for name in ("dim_x", "dim_y", "responses", "queries"):
            if getattr(task, name) != getattr(self, name):
                raise OutOfClass(f"{name}: the task has {getattr(task, name)}, the class {getattr(self, name)}")
        unit = unit_roundoff(task.dtype)
        if task.min_gap < self.min_gap - 4 * unit * self.largest_reward:
            raise OutOfClass(
                f"min_gap: the task has a gap of {task.min_gap:.6g}, the class asks for {self.min_gap:.6g}"
            )
        low, high = task.reward_range
        if low < self.reward_range[0]:
            raise OutOfClass(
                f"reward_range: the task has a reward of {low:.6g}, the class starts at {self.reward_range[0]:.6g}"
            )
        if high > self.reward_range[1]:
            raise OutOfClass(
                f"reward_range: the task has a reward of {high:.6g}, the class ends at {self.reward_range[1]:.6g}"
            )
        if task.radius > self.radius * (1 + (self.dim_y + 4) * 2 * unit):
            raise OutOfClass(
                f"radius: the task has a response of norm {task.radius:.6g}, the class allows {self.radius:.6g}"
            )


class Construction(ABC):
    """A transformer with hand-set weights for a class of tasks; call it on a task of the class.

    The weights depend on the class, the temperatures and the dtype, never on a task. ``error_bound`` is what the
    construction promises for every task of its class, rounding included.
    """

    task_class: TaskClass
    transformer: Transformer
    dtype: torch.dtype
    error_bound: float

    @abstractmethod
    def symbolic(self) -> SymbolicTransformer:
        """The same rows and blocks, with symbols for sizes, temperatures and parameters."""

    @abstractmethod
    def embed(self, task: AlignmentTask) -> Float[Tensor, "*batch tokens width"]:
        """The prompt: one token for every response, rows as in the stream of the construction."""

    @abstractmethod
    def read(self, X: Float[Tensor, "*batch tokens width"]) -> Float[Tensor, "*batch queries responses dim_y"]:
        """The answer, from the tokens after the forward pass."""

    def __call__(self, task: AlignmentTask) -> Float[Tensor, "*batch queries responses dim_y"]:
        """The construction's answer at every token.

        Raises:
            OutOfClass: the task does not belong to the class.
            ValueError: the task has another dtype.
        """
        self.task_class.check(task)
        if task.dtype != self.dtype:
            raise ValueError(f"task: dtype {task.dtype}, expected {self.dtype} as in the weights")
        answer: Tensor = self.read(self.transformer(self.embed(task)))
        return answer


def hand_set(temperatures: Mapping[str, float], *names: str) -> dict[str, float]:
    """The temperatures set by hand, checked: exactly the names, each finite and not negative.

    Raises:
        ValueError: naming what is missing, unknown or out of range.
    """
    if set(temperatures) != set(names):
        raise ValueError(f"temperatures: {sorted(temperatures)}, expected {sorted(names)}")
    for name, value in temperatures.items():
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"temperatures[{name!r}]: {value}, expected a finite number ≥ 0")
    return dict(temperatures)
