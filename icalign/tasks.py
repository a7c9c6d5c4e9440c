"""Alignment tasks: queries, responses to each, a reward for every response, and the reward model's parameters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


class OutOfClass(ValueError):
    """A task lies outside the class that a construction's weights were made for."""


@dataclass(frozen=True, eq=False)
class AlignmentTask:
    r"""A batch of alignment tasks: M unit queries, N responses to each, and distinct rewards that rank them.

    Shapes: x (…, M, d_x) queries, y (…, M, N, d_y) responses, r (…, M, N) rewards, and W (d_y, d_x), the parameters of
    the reward model r_W(x, y) = −‖Wx − y‖², shared by the whole batch. M, N ≥ 1.
    Raises ValueError, with the argument, what came and what was expected: not floating tensors of one dtype; shapes
    that do not fit; values not finite; two rewards of one query equal; a query whose norm is not 1. The norm may be off
    by 1e-9 in float64, 1e-5 in float32, and 4ε₀ in the half types (2e-3 float16, 1.6e-2 bfloat16): a query normalised
    in such a type carries one rounding each from its norm, the quotient and the cast of its entries.
    Source: the setting of the paper's section 3, whose tokens are [x; y_i; r_i].
    """

    x: Float[Tensor, "*batch queries dim_x"]
    y: Float[Tensor, "*batch queries responses dim_y"]
    r: Float[Tensor, "*batch queries responses"]
    W: Float[Tensor, "dim_y dim_x"]

    def __post_init__(self) -> None:
        for name in "xyrW":
            refuse_non_floating(name, getattr(self, name))
        self._refuse_mixed_dtypes()
        self._refuse_shapes()
        for name in "xyrW":
            refuse_non_finite(name, getattr(self, name))
        refuse_ties("r", self.r)
        self._refuse_non_unit_queries()

    @property
    def batch(self) -> tuple[int, ...]:
        """Leading dimensions: the shape of the batch of tasks."""
        return tuple(self.x.shape[:-2])

    @property
    def queries(self) -> int:
        """M."""
        return self.x.shape[-2]

    @property
    def responses(self) -> int:
        """N."""
        return self.y.shape[-2]

    @property
    def dim_x(self) -> int:
        """d_x."""
        return self.x.shape[-1]

    @property
    def dim_y(self) -> int:
        """d_y."""
        return self.y.shape[-1]

    @property
    def dtype(self) -> torch.dtype:
        """The one dtype of all four tensors."""
        return self.x.dtype

    @property
    def min_gap(self) -> float:
        """Δ: the smallest gap between two rewards of one query (∞ if N = 1)."""
        if self.responses == 1:
            return math.inf
        return float(self.r.double().sort(-1).values.diff(dim=-1).amin())

    @property
    def reward_range(self) -> tuple[float, float]:
        """(low, high): the smallest and the largest reward; R = high − low."""
        return float(self.r.amin()), float(self.r.amax())

    @property
    def radius(self) -> float:
        """max ‖y‖ over all responses; D₀ = 2·radius."""
        y = self.y.detach().double()
        # Squares of very large or small numbers would leave the range; scaling by a power of two rounds nothing.
        scale = 2.0 ** (math.frexp(float(y.abs().amax()))[1] - 1)
        return float((y / scale).norm(dim=-1).amax()) * scale

    @property
    def overlap(self) -> float:
        """ρ: the largest ⟨x^a, x^b⟩ over two queries of one task (0 if M = 1)."""
        return float(_overlaps(self.x.double()).amax()) if self.queries > 1 else 0.0

    def _refuse_mixed_dtypes(self) -> None:
        for name in "yrW":
            if getattr(self, name).dtype != self.x.dtype:
                raise ValueError(f"{name}: dtype {getattr(self, name).dtype}, expected {self.x.dtype} as in x")

    def _refuse_shapes(self) -> None:
        x, y, r, w = (tuple(getattr(self, name).shape) for name in "xyrW")
        if len(x) < 2 or 0 in x:
            raise ValueError(f"x: shape {x}, expected (…, M, d_x) with no dimension 0")
        if len(y) != len(x) + 1 or y[:-2] != x[:-1] or 0 in y:
            raise ValueError(f"y: shape {y}, expected {_shape(*x[:-1], 'N', 'd_y')} to fit x of shape {x}")
        if r != y[:-1]:
            raise ValueError(f"r: shape {r}, expected {y[:-1]}: one reward for each response")
        if w != (y[-1], x[-1]):
            raise ValueError(f"W: shape {w}, expected (d_y, d_x) = {(y[-1], x[-1])}")

    def _refuse_non_unit_queries(self) -> None:
        tolerance = {torch.float64: 1e-9, torch.float32: 1e-5}.get(self.dtype, 2 * torch.finfo(self.dtype).eps)
        norms = self.x.detach().double().norm(dim=-1)
        if (index := _first((norms - 1).abs() > tolerance)) is not None:
            raise ValueError(
                f"x: query {index} has norm {norms[index].item():.10g}, "
                f"expected 1 to within {tolerance:.2g} ({self.dtype})"
            )


def sample_task(
    batch: tuple[int, ...] = (),
    queries: int = 1,
    responses: int = 8,
    dim_x: int = 4,
    dim_y: int = 3,
    min_gap: float = 0.1,
    reward_range: tuple[float, float] = (0.0, 2.0),
    radius: float = 3.0,
    overlap: float | None = None,
    orthonormal: bool = False,
    W: Float[Tensor, "dim_y dim_x"] | None = None,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> AlignmentTask:
    """A batch of random tasks of one class: equal arguments give equal tasks, and the global generator is left alone.

    - queries: uniform on the sphere; with `overlap` ρ, max_{a≠b} ⟨x^a, x^b⟩ ≤ ρ; with `orthonormal`, a random frame.
    - responses: uniform in the ball of `radius`, a quarter of them moved onto its sphere, where bounds are tight.
    - rewards: uniform among those in `reward_range` with all gaps ≥ `min_gap`, in random order. They are multiples of
      the dtype's spacing at the largest reward, so that the stored gaps are exact. Where that grid leaves no room,
      which needs (N−1)Δ within N + 1 spacings of R, gaps are equal and short of Δ by less than 3 spacings.
    - W: standard normal entries over √d_x, which depend on seed, d_x and d_y only.

    Shapes: as :class:`AlignmentTask`, with leading dimensions `batch`.
    Raises ValueError: an empty class, (N−1)Δ > R; more orthonormal queries than dimensions; an overlap that was not
    met; a dtype too coarse or too narrow for the class; arguments of another kind or outside their range; W of another
    shape or dtype.
    Source: the classes of tasks over which "there exist weights" is uniform.
    """
    if not isinstance(batch, tuple | list) or not all([_is_integer(size) and size >= 1 for size in batch]):
        raise ValueError(f"batch: {batch!r}, expected a tuple of positive dimensions")
    refuse_non_sizes(queries=queries, responses=responses, dim_x=dim_x, dim_y=dim_y)
    refuse_dtype(dtype)
    refuse_empty_class(responses, min_gap, reward_range, radius)
    refuse_class_beyond(dtype, reward_range, radius)
    if not (_is_integer(seed) and 0 <= seed < 2**31):
        raise ValueError(f"seed: {seed!r}, expected an integer in [0, 2^31)")
    if W is None:
        normal = torch.randn(dim_y, dim_x, generator=torch.Generator().manual_seed(2 * int(seed)), dtype=torch.float64)
        W = (normal / math.sqrt(dim_x)).to(dtype)
    else:
        refuse_non_floating("W", W)
        if W.shape != (dim_y, dim_x) or W.dtype != dtype:
            expected = f"expected {dtype} of shape (dim_y, dim_x) = {(dim_y, dim_x)}"
            raise ValueError(f"W: {W.dtype} of shape {tuple(W.shape)}, {expected}")
    generator = torch.Generator().manual_seed(2 * int(seed) + 1)
    return AlignmentTask(
        x=_sample_queries((*batch, queries, dim_x), overlap, orthonormal, dtype, generator),
        y=_sample_responses((*batch, queries, responses, dim_y), radius, dtype, generator),
        r=_sample_rewards((*batch, queries, responses), min_gap, reward_range, dtype, generator),
        W=W,
    )


def _sample_queries(
    shape: tuple[int, ...], overlap: float | None, orthonormal: bool, dtype: torch.dtype, generator: torch.Generator
) -> Tensor:
    queries, dim_x = shape[-2:]
    if overlap is not None:
        refuse_non_numbers(overlap=overlap)
        if not -1 <= overlap <= 1:
            raise ValueError(f"overlap: {overlap}, expected a bound ρ in [−1, 1] on ⟨x^a, x^b⟩")
    normal = torch.randn(shape, generator=generator, dtype=torch.float64)
    if orthonormal:
        if queries > dim_x:
            raise ValueError(f"orthonormal: {queries} queries in dimension dim_x = {dim_x}, expected queries ≤ dim_x")
        if overlap is not None and overlap < 0 and queries > 1:
            raise ValueError(f"overlap: {overlap}, expected ≥ 0 with orthonormal=True, whose overlap is 0")
        frame: Tensor = torch.linalg.qr(normal.mT).Q.mT
        return frame.to(dtype)
    x = torch.nn.functional.normalize(normal, dim=-1).to(dtype)
    return x if overlap is None or queries == 1 else _keep_apart(x, overlap, generator)


def _keep_apart(x: Tensor, overlap: float, generator: torch.Generator, rounds: int = 2000) -> Tensor:
    """Redraws half of the queries of every pair that is too close, until none is.

    The bound is undercut by the rounding of an inner product, so that it holds however the product is summed.
    """
    bound = overlap - (x.shape[-1] + 1) * torch.finfo(torch.float64).eps if overlap < 1 else math.inf
    for _ in range(rounds):
        crowded = _overlaps(x.double()).amax(-1) > bound
        if not crowded.any():
            return x
        redraw = crowded & (torch.rand(crowded.shape, generator=generator) < 0.5)
        fresh = torch.randn(x.shape, generator=generator, dtype=torch.float64)
        x = torch.where(redraw.unsqueeze(-1), torch.nn.functional.normalize(fresh, dim=-1).to(x.dtype), x)
    raise ValueError(
        f"overlap: {overlap} was not met by {x.shape[-2]} queries in dimension {x.shape[-1]} in {rounds} rounds of "
        "redrawing; expected a larger overlap, fewer queries or a larger dim_x"
    )


def _overlaps(x: Tensor) -> Tensor:
    """⟨x^a, x^b⟩ for all pairs, −∞ where a = b."""
    return (x @ x.mT).masked_fill(torch.eye(x.shape[-2], dtype=torch.bool), -math.inf)


def _sample_responses(shape: tuple[int, ...], radius: float, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    directions = torch.nn.functional.normalize(torch.randn(shape, generator=generator, dtype=torch.float64), dim=-1)
    lengths = torch.rand((*shape[:-1], 1), generator=generator, dtype=torch.float64) ** (1 / shape[-1])
    on_sphere = torch.rand(lengths.shape, generator=generator) < 0.25
    # Rounding the entries, and computing the norm in float64, must not lead outside.
    inside = 1 - torch.finfo(dtype).eps - (shape[-1] + 4) * torch.finfo(torch.float64).eps
    return (radius * inside * torch.where(on_sphere, 1.0, lengths) * directions).to(dtype)


def _sample_rewards(
    shape: tuple[int, ...],
    min_gap: float,
    reward_range: tuple[float, float],
    dtype: torch.dtype,
    generator: torch.Generator,
) -> Tensor:
    """Sums of whole multiples of one power of two, which the dtype resolves in the whole range: nothing is rounded."""
    spacing = torch.finfo(dtype).eps * 2.0 ** (math.frexp(max(map(abs, reward_range)))[1] - 1)
    low, high = math.ceil(reward_range[0] / spacing), math.floor(reward_range[1] / spacing)
    gap = min(math.ceil(min_gap / spacing), (high - low) // max(1, shape[-1] - 1))
    if gap < 1 < shape[-1]:
        raise ValueError(
            f"dtype: {dtype} resolves rewards in {reward_range} to {spacing:.2g}, "
            f"expected one that holds {shape[-1]} responses at gaps of {min_gap}"
        )
    slack = high - low - (shape[-1] - 1) * gap
    shares = torch.rand(shape, generator=generator, dtype=torch.float64).sort(-1).values
    steps = low + gap * torch.arange(shape[-1]) + (shares * (slack + 1)).long().clamp(max=slack)
    shuffle = torch.rand(shape, generator=generator).argsort(-1)
    return (steps.gather(-1, shuffle).double() * spacing).to(dtype)


def refuse_non_floating(name: str, values: object) -> None:
    """Raises ValueError unless the values are a floating torch tensor."""
    if not isinstance(values, Tensor):
        raise ValueError(f"{name}: {type(values).__name__}, expected a floating torch tensor")
    if not values.is_floating_point():
        raise ValueError(f"{name}: dtype {values.dtype}, expected a floating torch tensor")


def refuse_non_finite(name: str, values: Tensor) -> None:
    """Raises ValueError, with the place and the value, unless all values are finite."""
    if (index := _first(~values.detach().isfinite())) is not None:
        raise ValueError(f"{name}: {values[index].item()} at {index}, expected finite values")


def refuse_overflow(name: str, values: Tensor, formula: str) -> None:
    """Raises ValueError, saying that the formula overflows the dtype, unless all values are finite.

    For results of finite arguments, where nothing else makes an infinity or, from two of them, NaN.
    """
    if (index := _first(~values.detach().isfinite())) is not None:
        raise ValueError(
            f"{name}: {values[index].item()} at {index}, expected finite values: {formula} overflows {values.dtype}, "
            f"whose largest number is {torch.finfo(values.dtype).max:.6g}"
        )


def refuse_ties(name: str, rewards: Shaped[Tensor, "*batch responses"]) -> None:
    """Raises ValueError, with the query and its responses, when two rewards of one query are equal."""
    ordered = rewards.detach().sort(-1)
    if (index := _first(ordered.values[..., 1:] == ordered.values[..., :-1])) is not None:
        query, place = index[:-1], index[-1]
        first, second = sorted(ordered.indices[query][place : place + 2].tolist())
        raise ValueError(
            f"{name}: responses {first} and {second} of query {query} both have reward "
            f"{ordered.values[index].item()}, expected distinct rewards"
        )


def refuse_non_tasks(name: str, task: object) -> None:
    """Raises ValueError unless the value is an alignment task."""
    if not isinstance(task, AlignmentTask):
        raise ValueError(f"{name}: {type(task).__name__}, expected an AlignmentTask")


def refuse_non_sizes(**sizes: object) -> None:
    """Raises ValueError unless all values are positive integers."""
    for name, size in sizes.items():
        if not _is_integer(size):
            raise ValueError(f"{name}: {size!r}, expected an integer, at least 1")
        if size < 1:  # type: ignore[operator]
            raise ValueError(f"{name}: {size}, expected at least 1")


def refuse_non_numbers(**values: object) -> None:
    """Raises ValueError unless all values are real numbers, be they finite or not."""
    for name, value in values.items():
        if not isinstance(value, Real) or isinstance(value, bool):
            raise ValueError(f"{name}: {value!r}, expected a real number")
        try:
            float(value)
        except OverflowError:
            raise ValueError(f"{name}: {value!r}, expected a number that a float holds") from None


def refuse_dtype(dtype: object) -> None:
    """Raises ValueError unless the dtype is one that tasks and weights may have."""
    if not isinstance(dtype, torch.dtype) or dtype not in _DTYPES:
        raise ValueError(f"dtype: {dtype!r}, expected a floating type: one of {', '.join(map(str, _DTYPES))}")


def refuse_empty_class(responses: int, min_gap: float, reward_range: Sequence[float], radius: float) -> None:
    """Raises ValueError unless Δ, (low, high) and the radius bound a class of tasks that is not empty.

    R = high − low and D₀ = 2·radius must be numbers of float64, which is what bounds are computed in.
    """
    refuse_non_numbers(min_gap=min_gap, radius=radius)
    if not (isinstance(reward_range, tuple | list) and len(reward_range) == 2):
        raise ValueError(f"reward_range: {reward_range!r}, expected a pair (low, high)")
    low, high = reward_range
    refuse_non_numbers(**{"reward_range[0]": low, "reward_range[1]": high})
    if not (math.isfinite(min_gap) and min_gap > 0):
        raise ValueError(f"min_gap: {min_gap}, expected a positive finite gap Δ")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"reward_range: {reward_range}, expected finite (low, high) with low < high")
    if not (math.isfinite(radius) and radius > 0):
        raise ValueError(f"radius: {radius}, expected a positive finite bound on ‖y‖")
    if (responses - 1) * min_gap > high - low:
        raise ValueError(
            f"min_gap: {responses} responses at gaps of {min_gap} span (N−1)Δ = {(responses - 1) * min_gap:.10g}, "
            f"expected at most high − low = {high - low:.10g}: the class is empty"
        )
    refuse_class_beyond(torch.float64, reward_range, radius)


def refuse_class_beyond(dtype: torch.dtype, reward_range: Sequence[float], radius: float) -> None:
    """Raises ValueError unless rewards, their differences and those of responses are in the normal range of a dtype."""
    limits = torch.finfo(dtype)
    low, high = reward_range
    spread = high - low
    if max(abs(low), abs(high), spread) > limits.max:
        raise ValueError(
            f"reward_range: {reward_range}, expected rewards and high − low = {spread:.6g} of at most "
            f"{limits.max:.6g}, the largest number of {dtype}"
        )
    if max(abs(low), abs(high)) < limits.smallest_normal:
        raise ValueError(
            f"reward_range: {reward_range}, expected an end of size at least {limits.smallest_normal:.6g}, "
            f"the smallest normal number of {dtype}"
        )
    if 2 * radius > limits.max:
        raise ValueError(
            f"radius: {radius}, expected at most {limits.max / 2:.6g}: "
            f"D₀ = 2·radius overflows {dtype}, whose largest number is {limits.max:.6g}"
        )


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _first(found: Tensor) -> tuple[int, ...] | None:
    """Index of the first True, or None."""
    return tuple(found.nonzero()[0].tolist()) if bool(found.any()) else None


def _shape(*sizes: int | str) -> str:
    return "(" + ", ".join(map(str, sizes)) + ")"
