"""What the constructions that make a gradient step share: W, η, temperatures from a tolerance, the accumulator."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from .. import bounds
from ..bounds import unit_roundoff
from ..tasks import (
    AlignmentTask,
    OutOfClass,
    refuse_class_beyond,
    refuse_dtype,
    refuse_non_finite,
    refuse_non_floating,
    refuse_non_numbers,
)
from .base import Construction, TaskClass, either, hand_set, least_tolerance, prompt


class GradientStep(Construction):
    r"""A construction that moves every response by a gradient step: ``c(task)`` ≈ y_i − ΔW x.

    A subclass says which temperatures meet a tolerance, what error is left at given temperatures in real arithmetic
    and through rounding, and which blocks there are; this class puts them together.

    Attributes:
        W: the parameters (d_y, d_x).
        eta: η.
        norm: ω = ‖W‖₂, a bound on ‖Wx‖.
        reach: a bound on ‖|W||x|‖ + ‖y‖, which products of W, x and y round in proportion to.
        temperatures: the inverse temperatures and masks in use, by name.
    """

    temperature_names: ClassVar[tuple[str, ...]]
    W: Tensor
    eta: float
    norm: float
    temperatures: dict[str, float]

    def _take(self, W: Float[Tensor, "dim_y dim_x"], eta: float, dtype: torch.dtype) -> None:
        """Check and keep W, η and the dtype."""
        refuse_dtype(dtype)
        self.dtype = dtype
        refuse_non_floating("W", W)
        if W.ndim != 2 or 0 in W.shape:
            raise ValueError(f"W: shape {tuple(W.shape)}, expected (d_y, d_x)")
        if W.dtype != dtype:
            raise ValueError(f"W: dtype {W.dtype}, expected {dtype} as in the weights")
        refuse_non_finite("W", W)
        refuse_non_numbers(eta=eta)
        if not 0 < eta < math.inf:
            raise ValueError(f"eta: {eta}, expected a positive finite step size")
        self.W, self.eta = W.detach().clone(), float(eta)
        up = 1 + 4 * sum(W.shape) * unit_roundoff(torch.float64)  # the rounding of a norm computed in float64
        self.norm = float(torch.linalg.matrix_norm(self.W.double(), 2)) * up
        self._absolute_norm = float(torch.linalg.matrix_norm(self.W.double().abs(), 2)) * up

    def _set(self, tolerance: float | None, temperatures: Mapping[str, float] | None) -> None:
        """Choose the temperatures, or check those given, and build the transformer."""
        kind = self.task_class
        if kind.responses < 2:
            raise ValueError(f"responses: {kind.responses}, expected at least 2 to rank")
        refuse_class_beyond(self.dtype, kind.reward_range, kind.radius)
        self._refuse_beyond(self._largest_values(), f"class: with eta = {self.eta:.6g} it makes values of")
        either(tolerance, temperatures)
        if temperatures is not None:
            self.temperatures = hand_set(temperatures, *self.temperature_names)
        else:
            assert tolerance is not None
            self.temperatures = self._temperatures(self._promised(tolerance) / 2)
        named = ", ".join([f"{name} = {value:.6g}" for name, value in self.temperatures.items()])
        self._refuse_beyond(self._largest_logits(), f"temperatures: {named} make logits of")
        self._build()
        self._refuse_beyond(self._pair_values(), f"temperatures: {named} make values of")
        exact = self._exact_error()
        self.error_bound = exact + self._rounding() if exact < math.inf else math.inf

    def _promised(self, tolerance: float) -> float:
        """The first of tolerance, tolerance/2, tolerance/4, … that is attained.

        A larger tolerance need not be: at lower temperatures the crowd is heavier, and what flags and masks are read
        from rounds worse.

        Raises:
            ValueError: none is, saying which larger one would be.
        """
        above = math.log2(tolerance) - math.log2(self._scale)  # temperatures are the same for all tolerances there
        halvings = range(64 + math.ceil(max(0.0, above)))
        met = next((t for k in halvings if self._attains(t := math.ldexp(tolerance, -k))), None)
        if met is not None:
            return met
        least = least_tolerance(self._attains, tolerance, 1e3 * max(self._scale, tolerance))
        promised = f"no less than {least:.3g}" if least < math.inf else "nothing"
        raise ValueError(f"tolerance: {tolerance}, {self.dtype} promises {promised} for this class")

    @property
    def _scale(self) -> float:
        """The size of what is promised: of ΔW x, or of y, which rounding is proportional to as well."""
        return max(self.longest, self.task_class.radius)

    @property
    def longest(self) -> float:
        """U = 2η(N−1)D₀, a bound on ‖ΔW x‖ and on ‖u‖."""
        kind = self.task_class
        return 2 * self.eta * (kind.responses - 1) * kind.diameter

    @property
    def reach(self) -> float:
        """‖|W|‖₂ + radius ≥ ‖|W||x|‖ + ‖y‖."""
        return self._absolute_norm + self.task_class.radius

    def _radius_rounding(self, reach: float = 0.0) -> float:
        """What norms of responses that exceed the radius by their rounding add to the error of one step."""
        return bounds.radius_rounding(self.dtype, self.task_class.dim_y, self.longest, reach)

    @property
    def norm_rounding(self) -> float:
        """(d_x + 4)·2ε₀: how far the norm of a query may be from 1; it is squared in ΔW x, which u does not know."""
        return (self.task_class.dim_x + 4) * 2 * unit_roundoff(self.dtype)

    @property
    def _query_rounding(self) -> float:
        """U((1+δ)² − 1) ≤ 2Uδ(1+δ): what a norm that is off by δ, :attr:`norm_rounding`, does to a step of length U."""
        return self.longest * 2 * self.norm_rounding * (1 + self.norm_rounding)

    @abstractmethod
    def _temperatures(self, tolerance: float) -> dict[str, float]:
        """Temperatures whose error in real arithmetic is at most the tolerance."""

    @abstractmethod
    def _exact_error(self) -> float:
        """The theorem's bound in real arithmetic at the temperatures in use, ∞ where no theorem applies."""

    @abstractmethod
    def _rounding(self) -> float:
        """What floating point can add to it."""

    @abstractmethod
    def _largest_logits(self) -> dict[str, float]:
        """A bound on the size of the logits of each kind of head, by the formula of the bound."""

    def _largest_values(self) -> dict[str, float]:
        """A bound on the size of what heads offer, rows hold and sums of these pass through, by its formula.

        Attention shrinks a value by a weight only after it was made. Here for responses: values 2ηN·(y − mean), or 2ηy
        in 2N heads, and y − u; M times that if queries are added up. What a construction makes of rewards is its own.
        """
        kind = self.task_class
        times, words = (1, "") if kind.queries == 1 else (kind.queries, "M")
        size = (4 * self.eta * times * kind.responses + 1) * kind.radius
        return {f"(4η{words}N + 1)·radius": size}

    def _pair_values(self) -> dict[str, float]:
        """The same for values that grow with temperatures: those of pairs of heads with a sink, if there are any."""
        return {}

    @abstractmethod
    def _build(self) -> None:
        """Set ``values`` and ``transformer``."""

    def _attains(self, tolerance: float) -> bool:
        """Whether half the tolerance covers the rounding at the temperatures that give the other half.

        A larger tolerance may fail where a smaller one succeeds: :meth:`_promised`.
        """
        self.temperatures = self._temperatures(tolerance / 2)
        if not all([math.isfinite(value) for value in self.temperatures.values()]):
            return False
        if max([*self._largest_logits().values(), *self._pair_values().values()]) > torch.finfo(self.dtype).max / 2:
            return False
        return self._exact_error() < math.inf and self._rounding() <= tolerance / 2

    def _refuse_beyond(self, sizes: Mapping[str, float], whose: str) -> None:
        largest = torch.finfo(self.dtype).max
        for words, size in sizes.items():
            if not size <= largest / 2:  # a factor of 2 for rounding and for differences
                raise ValueError(
                    f"{whose} {words} = {size:.6g}, expected at most {largest / 2:.6g}, "
                    f"half the largest number of {self.dtype}"
                )

    def check(self, task: AlignmentTask) -> None:
        """Raise unless the task belongs to the class and has the construction's W.

        Raises:
            OutOfClass: naming the hypothesis that fails, the value and the limit.
            ValueError: not a task, or one of another dtype.
        """
        self.refuse_unfit(task)
        self.task_class.check(task)
        off = float((task.x.double().norm(dim=-1) - 1).abs().max())
        if off > self.norm_rounding:
            raise OutOfClass(f"x: the norm of a query is 1 to within {off:.3g}, expected {self.norm_rounding:.3g}")
        if not torch.equal(task.W, self.W):
            apart = float((task.W - self.W).abs().max())
            raise OutOfClass(f"W: an entry of the task's W differs by {apart:.6g}, the weights are made for one W")

    def embed(self, task: AlignmentTask) -> Float[Tensor, "*batch tokens width"]:
        """The prompt: tokens [x; y_j; ‖y_j‖²; r_j; 1], the other rows 0.

        Raises:
            OutOfClass: a size differs from that of the class.
            ValueError: not a task, or one of another dtype.
        """
        self.refuse_unfit(task)
        return prompt(task, self.transformer.rows)

    @property
    def accumulator(self) -> str:
        """The row that holds ΔW x at the end."""
        return "u"

    def responses(self, X: Float[Tensor, "*batch tokens width"]) -> Float[Tensor, "*batch queries responses width"]:
        """The tokens that hold responses, by query."""
        kind = self.task_class
        return X.reshape(*X.shape[:-2], kind.queries, kind.responses, X.shape[-1])

    def read(self, X: Float[Tensor, "*batch tokens width"]) -> Float[Tensor, "*batch queries responses dim_y"]:
        """y_i − u at every token."""
        tokens, rows = self.responses(X), self.transformer.rows
        return tokens[..., rows["y"]] - tokens[..., rows[self.accumulator]]

    def update(self, task: AlignmentTask) -> Float[Tensor, "*batch queries responses dim_y"]:
        """u ≈ ΔW x at every token; the repaired read-out of a test token is W₀x + u.

        Raises:
            OutOfClass: the task does not belong to the class.
            ValueError: not a task, or one of another dtype.
        """
        return self.responses(self.run(task))[..., self.transformer.rows[self.accumulator]]


class OneQueryStep(GradientStep):
    """A gradient step on the loss of one query whose class and temperatures are all there is to say."""

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
        self._prepare()
        self._set(tolerance, temperatures)

    def _prepare(self) -> None:
        """Whatever else depends on the class alone."""

    @property
    def score_spread(self) -> float:
        """R_Z, a bound on the spread of the scores."""
        return float(bounds.score_spread(self.norm, self.task_class.radius))
