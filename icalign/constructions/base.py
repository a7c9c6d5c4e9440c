"""What all constructions share: the class of tasks their weights are made for, and how they are run."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor

from ..bounds import gap_shortfall, radius_excess, unit_roundoff
from ..spec import Block
from ..stream import Stream
from ..symbolic import SymbolicTransformer
from ..tasks import (
    AlignmentTask,
    OutOfClass,
    refuse_empty_class,
    refuse_non_numbers,
    refuse_non_sizes,
    refuse_non_tasks,
)
from ..transformer import Transformer, Values

_SIZES = ("dim_x", "dim_y", "responses", "queries")


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
        overlap: ρ < 1, a bound on ⟨x^a, x^b⟩ for two queries of one task; None for any queries.

    Raises:
        ValueError: no number or one outside its range, or an empty class, (N−1)Δ > R or ρ < −1/(M−1).
    """

    dim_x: int
    dim_y: int
    responses: int
    min_gap: float
    reward_range: tuple[float, float]
    radius: float
    queries: int = 1
    overlap: float | None = None

    def __post_init__(self) -> None:
        refuse_non_sizes(**{name: getattr(self, name) for name in _SIZES})
        if self.overlap is not None:
            refuse_non_numbers(overlap=self.overlap)
            if not -1 <= self.overlap < 1:
                raise ValueError(f"overlap: {self.overlap}, expected a bound ρ on ⟨x^a, x^b⟩ with −1 ≤ ρ < 1")
            self._refuse_impossible_overlap()
        refuse_empty_class(self.responses, self.min_gap, self.reward_range, self.radius)

    def _refuse_impossible_overlap(self) -> None:
        """As ‖Σ_a x^a‖² ≥ 0, some overlap of M unit vectors is at least −1/(M−1); of more than d_x + 1, at least 0."""
        if self.queries == 1 or self.overlap is None:
            return
        least = -1 / (self.queries - 1) if self.queries <= self.dim_x + 1 else 0.0
        if self.overlap < least - 8 * unit_roundoff(torch.float64):
            raise ValueError(
                f"overlap: {self.overlap}, expected at least {least:.6g}: {self.queries} unit vectors in dimension "
                f"{self.dim_x} have a larger overlap, the class is empty"
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

    def check_sizes(self, task: AlignmentTask) -> None:
        """Raise unless the task has the sizes of the class.

        Raises:
            OutOfClass: naming the size that differs.
            ValueError: not a task.
        """
        refuse_non_tasks("task", task)
        for name in _SIZES:
            if getattr(task, name) != getattr(self, name):
                raise OutOfClass(f"{name}: the task has {getattr(task, name)}, the class {getattr(self, name)}")

    def check(self, task: AlignmentTask) -> None:
        """Raise unless the task belongs to the class.

        A gap may fall short of Δ by the rounding of its two rewards, 4ε₀·max|r|, a norm exceed the radius by the
        rounding of its computation, (d_y + 4)·2ε₀ of itself, and an overlap exceed ρ by (d_x + 4)·2ε₀; bounds allow for
        all three.

        Raises:
            OutOfClass: naming the hypothesis that fails, the value and the limit.
            ValueError: not a task.
        """
        self.check_sizes(task)
        unit = unit_roundoff(task.dtype)
        if task.min_gap < self.min_gap - gap_shortfall(task.dtype, self.largest_reward):
            found, asked = f"{task.min_gap:.6g}", f"{self.min_gap:.6g}"
            more = f", {self.min_gap - task.min_gap:.3g} more" if found == asked else ""
            raise OutOfClass(f"min_gap: the task has a gap of {found}, the class asks for {asked}{more}")
        low, high = task.reward_range
        if low < self.reward_range[0]:
            raise OutOfClass(
                f"reward_range: the task has a reward of {low:.6g}, the class starts at {self.reward_range[0]:.6g}"
            )
        if high > self.reward_range[1]:
            raise OutOfClass(
                f"reward_range: the task has a reward of {high:.6g}, the class ends at {self.reward_range[1]:.6g}"
            )
        if task.radius > self.radius * (1 + radius_excess(task.dtype, self.dim_y)):
            raise OutOfClass(
                f"radius: the task has a response of norm {task.radius:.6g}, the class allows {self.radius:.6g}"
            )
        if self.overlap is None or self.queries == 1:
            return
        if task.overlap > self.overlap + (self.dim_x + 4) * 2 * unit:
            raise OutOfClass(
                f"overlap: the task has two queries with ⟨x^a, x^b⟩ = {task.overlap:.10g}, "
                f"the class allows {self.overlap:.10g}"
            )


class Construction(ABC):
    """A transformer with hand-set weights for a class of tasks; call it on a task of the class.

    The weights depend on the class, the temperatures and the dtype, never on a task. ``error_bound`` is what the
    construction promises for every task of its class, rounding included. ``values`` has a number, or a matrix, for
    every symbol of its formulas.
    """

    task_class: TaskClass
    values: Values
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

    def check(self, task: AlignmentTask) -> None:
        """Raise unless the task belongs to the class.

        Raises:
            OutOfClass: naming the hypothesis that fails, the value and the limit.
            ValueError: not a task.
        """
        self.task_class.check(task)

    def run(self, task: AlignmentTask) -> Float[Tensor, "*batch tokens width"]:
        """The tokens after the forward pass.

        Raises:
            OutOfClass: the task does not belong to the class.
            ValueError: not a task, or one of another dtype.
        """
        self.check(task)
        X: Tensor = self.transformer(self.embed(task))
        return X

    def __call__(self, task: AlignmentTask) -> Float[Tensor, "*batch queries responses dim_y"]:
        """The construction's answer at every token.

        Raises:
            OutOfClass: the task does not belong to the class.
            ValueError: not a task, or one of another dtype.
        """
        return self.read(self.run(task))

    def refuse_unfit(self, task: AlignmentTask) -> None:
        """Raise unless the tokens of the task fit the weights; for ``embed``.

        Raises:
            OutOfClass: a size differs from that of the class.
            ValueError: not a task, or one of another dtype.
        """
        self.task_class.check_sizes(task)
        if task.dtype != self.dtype:
            raise ValueError(f"task: dtype {task.dtype}, expected {self.dtype} as in the weights")

    def __repr__(self) -> str:
        kind = self.task_class
        numbers = [(f.name, getattr(kind, f.name)) for f in fields(kind)]
        silent = (("queries", 1), ("overlap", None))
        listed = ", ".join([f"{name}={value}" for name, value in numbers if (name, value) not in silent])
        return f"{type(self).__name__}({listed}, dtype={self.dtype}, error_bound={self.error_bound:.3g})"


def prompt(
    task: AlignmentTask, rows: Mapping[str, slice], without: Collection[str] = ()
) -> Float[Tensor, "*batch tokens width"]:
    """One token for every response, query by query: rows x, y, copy, sq, r and one if ``rows`` has them, others 0.

    Shapes: task with x (…, M, d_x), y (…, M, N, d_y) → (…, M·N, width).

    Args:
        task: the queries, responses and rewards.
        rows: the places of the rows of a token.
        without: rows to leave 0 all the same.
    """
    y = task.y
    values = {
        "x": task.x[..., None, :],
        "y": y,
        "copy": y,
        "sq": y.square().sum(-1, keepdim=True),
        "r": task.r[..., None],
        "one": y.new_ones(1),
    }
    X = y.new_zeros(*y.shape[:-1], max(place.stop for place in rows.values()))
    for name, place in rows.items():
        if name in values and name not in without:
            X[..., place] = values[name]
    return X.flatten(-3, -2)


def with_start(
    X: Float[Tensor, "*batch tokens width"], rows: Mapping[str, slice], *marked: str
) -> Float[Tensor, "*batch more width"]:
    """The tokens with one in front of them, which holds 1 in the marked rows and 0 in the others."""
    start = torch.zeros_like(X[..., :1, :])
    for row in marked:
        start[..., rows[row]] = 1
    return torch.cat([start, X], -2)


def either(tolerance: float | None, temperatures: Mapping[str, float] | None) -> None:
    """Exactly one of the two must be given, and a tolerance be positive and finite.

    Raises:
        ValueError: saying which came, or the tolerance.
    """
    if (tolerance is None) == (temperatures is None):
        came = "neither came" if tolerance is None else f"both came, {tolerance} and {temperatures}"
        raise ValueError(f"give either tolerance or temperatures: {came}")
    if tolerance is not None:
        refuse_non_numbers(tolerance=tolerance)
        if not 0 < tolerance < math.inf:
            raise ValueError(f"tolerance: {tolerance}, expected a positive finite number")


def hand_set(temperatures: Mapping[str, float], *names: str) -> dict[str, float]:
    """The temperatures set by hand, checked: exactly the names, each finite and not negative.

    Raises:
        ValueError: naming what is missing, unknown or out of range.
    """
    if not isinstance(temperatures, Mapping):
        raise ValueError(f"temperatures: {temperatures!r}, expected a number for each of {sorted(names)}, as a dict")
    if set(temperatures) != set(names):
        raise ValueError(f"temperatures: {sorted(temperatures, key=str)}, expected {sorted(names)}")
    for name, value in temperatures.items():
        refuse_non_numbers(**{f"temperatures[{name!r}]": value})
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"temperatures[{name!r}]: {value}, expected a finite number ≥ 0")
    return {name: float(value) for name, value in temperatures.items()}


def build(
    blocks: Sequence[Block], stream: Stream, values: Values, dtype: torch.dtype, temperatures: Mapping[str, float]
) -> Transformer:
    """The transformer of a construction.

    Raises:
        ValueError: a weight beyond the dtype, naming the temperatures.
    """
    try:
        return Transformer(blocks, stream, values, dtype)
    except OverflowError as overflow:
        named = ", ".join([f"{name} = {value:.6g}" for name, value in temperatures.items()])
        raise ValueError(f"temperatures: {named}, expected weights that the dtype holds: {overflow}") from overflow


def least_tolerance(attains: Callable[[float], bool], low: float, high: float) -> float:
    """The least attainable tolerance to within 10⁻⁴ of itself, rounded up to three digits; ∞ if none is.

    It halves ``high`` until that is attained and looks for the least below; so it finds what lies under a gap only if
    no tolerance above the gap is attained.

    Args:
        attains: whether a tolerance is attained: false below one number, true from there on, up to another at least
            twice as large.
        low: a positive tolerance that is not attained.
        high: where to start.
    """
    high = min(high, 0.99 * torch.finfo(torch.float64).max)
    halvings = range(max(1, math.ceil(math.log2(high) - math.log2(low))))
    found = next((t for k in halvings if attains(t := math.ldexp(high, -k))), None)
    if found is None:
        return math.inf
    low, high = math.log(low), math.log(found)
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if attains(math.exp(middle)) else (middle, high)
    # Half a unit of the third digit is added, so that rounding to three digits leads upwards.
    least = math.exp(high)
    return float(f"{least + 10.0 ** (math.floor(math.log10(least)) - 2) / 2:.3g}")
