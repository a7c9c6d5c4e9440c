"""What a twin is made of: instances that are drawn, hypotheses, conclusions, and the rounding they are allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

EPS = 2.0**-52  # twice the unit roundoff of float64: a first-order count of roundings, doubled for the higher orders
Number = float | Tensor


class Draw:
    """Random numbers of one instance, in float64; the same for the same theorem and number."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.generator = torch.Generator().manual_seed(seed)

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        """Uniform on [low, high), of the shape; without one, a scalar tensor."""
        return low + (high - low) * torch.rand(shape, generator=self.generator, dtype=torch.float64)

    def number(self, low: float, high: float) -> float:
        """One uniform number."""
        return float(self.uniform(low, high))

    def normal(self, *shape: int) -> Tensor:
        """Standard normal, of the shape."""
        return torch.randn(shape, generator=self.generator, dtype=torch.float64)

    def unit(self, d: int) -> Tensor:
        """A direction of length 1."""
        v = self.normal(d)
        return v / v.norm()

    def integer(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(torch.randint(low, high + 1, (), generator=self.generator))

    def permutation(self, n: int) -> Tensor:
        """A ranking of n responses: the k-th entry is the response in place k."""
        return torch.randperm(n, generator=self.generator)


@dataclass(frozen=True)
class Outcome:
    """Whether a conclusion held on one instance, and by how much it was missed where it did not."""

    held: bool
    missed: str


@dataclass(frozen=True)
class Twin:
    """The theorem of that name, said in torch."""

    theorem: str
    module: str
    says: Callable[[Draw, bool], Iterator[Outcome]]

    def fails(self, draws: int, broken: bool = False) -> Iterator[str]:
        """What does not hold on the instances, one after the other; nothing where all of it does."""
        for number in range(draws):
            outcomes = list(self.says(Draw(number), broken))
            if not outcomes:
                raise AssertionError(f"{self.theorem}: the twin says nothing about instance {number}")
            yield from (f"instance {number}: {outcome.missed}" for outcome in outcomes if not outcome.held)


ALL: dict[str, Twin] = {}


def twin(says: Callable[[Draw, bool], Iterator[Outcome]]) -> Callable[[Draw, bool], Iterator[Outcome]]:
    """Enters a function as the twin of the theorem whose name it has."""
    name = says.__name__
    if name in ALL:
        raise ValueError(f"{name} has two twins")
    ALL[name] = Twin(name, says.__module__.rpartition(".")[2], says)
    return says


def given(*hypotheses: bool | Tensor) -> None:
    """Makes sure that the instance meets the hypotheses: a theorem says nothing about one that does not."""
    for place, hypothesis in enumerate(hypotheses, 1):
        if not bool(torch.as_tensor(hypothesis).all()):
            raise AssertionError(f"hypothesis {place} is not met: the twin has to draw other instances")


def rounding(operations: float, *sizes: Number) -> float:
    """What float64 may add: that many rounded operations on a path, whose results are at most the sum of the sizes.

    Each rounded operation errs by at most 2⁻⁵³ of its result; errors to first order add up, and twice that covers the
    rest while operations · 2⁻⁵³ is small.
    """
    return EPS * operations * float(sum(torch.as_tensor(size, dtype=torch.float64).abs().max() for size in sizes))


def _outcome(excess: Tensor, allowed: float, what: str) -> Outcome:
    if not bool(torch.isfinite(excess).all()):
        raise AssertionError(f"not finite: {excess}")
    worst = float(excess.max())
    return Outcome(worst <= allowed, f"{what} by {worst:.3g}, allowed {allowed:.3g}")


def _number(value: Number) -> Tensor:
    return torch.as_tensor(value, dtype=torch.float64)


def equal(left: Number, right: Number, allowed: float = 0.0) -> Outcome:
    """left = right, entry by entry, up to the rounding that is allowed."""
    return _outcome((_number(left) - _number(right)).abs(), allowed, "they differ")


def at_most(left: Number, right: Number, allowed: float = 0.0) -> Outcome:
    """left ≤ right, entry by entry, up to the rounding that is allowed."""
    return _outcome(_number(left) - _number(right), allowed, "it is exceeded")


def below(left: Number, right: Number) -> Outcome:
    """left < right, entry by entry; instances must keep them apart by more than rounding."""
    gap = _number(right) - _number(left)
    return Outcome(bool((gap > 0).all()), f"the left side is larger or equal, by {-float(gap.min()):.3g}")


def holds(truth: bool | Tensor) -> Outcome:
    """A conclusion that is either true or false, with nothing to round."""
    return Outcome(bool(torch.as_tensor(truth).all()), "it is false")
