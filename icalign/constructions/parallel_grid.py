r"""A gradient step in two attention layers, for any number of responses, without positions.

A feed-forward layer writes each reward in a code on a grid of Δ/3, in which attention can compare: z = 3(r − low)/Δ,

.. math:: p_k(r) = \max(0, 1 - |z - k|), \qquad c_k(r) = \min(1, \max(0, z - k - 1)), \qquad k = 0, \dots, K-1.

The hats p and the thermometer c give ⟨c(r_l), p(r_i)⟩ = 1 where r_l − r_i ≥ Δ and 0 where r_l ≤ r_i. Then ``field``, a
β head with this product as its mask, gives token i the mean of the responses of its own rank and below, and ``total``,
a uniform head, adds up 2η(y_j − mean_j). With several queries the first head is filtered, and a pair of heads with a
sink adds up what each query owes the others.

p is made of ramps that fall and c of ramps that rise, on the same knots. So where r_l ≤ r_i rounding, too, leaves
nothing of ⟨c(r_l), p(r_i)⟩ (:func:`icalign.bounds.grid_graze`). In real arithmetic one set of ramps would do, as
relu(−t) = relu(t) − t.

Claim ``two-layers-suffice``.

Rows: x, y, sq = ‖y‖², r, 1, p, c (the code), mean and u; with several queries b (the sink?), own and joint for u.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

import sympy as sp
import torch
from jaxtyping import Float
from sympy.matrices.expressions.special import OneMatrix
from torch import Tensor

from .. import bounds
from ..forms import Bilinear, Form, Size
from ..spec import Block, FeedForward, Head, relu
from ..stream import Stream
from ..symbolic import SymbolicTransformer
from ..symbols import Delta, N, W, d_x, d_y, eta
from ..tasks import AlignmentTask, refuse_non_numbers, refuse_non_sizes
from .base import TaskClass, build, prompt, with_start
from .gradient import OneQueryStep
from .multi_query import gamma_beta, overlap
from .parallel import C, low, total
from .sink import MOST_PAIRS, epsilon, lambda_, linear_attention, pair_values, scale, sink_scale

K = sp.Symbol("K", integer=True, positive=True)  # points of the grid
D_0 = sp.Symbol("D_0", positive=True)

stream = Stream(x=d_x, y=d_y, sq=1, r=1, one=1, p=K, c=K, mean=d_y, u=d_y)
i, j = stream.tokens


def knots(size: Size, first: int) -> Form:
    """A column of the numbers 3·low/Δ + first, 3·low/Δ + first + 1, …"""
    k, column = sp.symbols("k l", integer=True)
    knot = sp.Lambda((k, column), 3 * low / Delta + first + k)
    numbers: Form = sp.FunctionMatrix(size, 1, knot) @ i.one
    return numbers


def differences(*weights: int) -> sp.FunctionMatrix:
    """Row k holds the weights in the columns k, k + 1, …: K rows."""
    k, m = sp.symbols("k m", integer=True)
    deltas = [sp.KroneckerDelta(m, k + at) for at in range(len(weights))]
    entry = sum([weight * delta for weight, delta in zip(weights, deltas, strict=True)])
    return sp.FunctionMatrix(K, K + len(weights) - 1, sp.Lambda((k, m), entry))


def cells(size: Size) -> Form:
    """3r/Δ, in every row of a column of the given size."""
    everywhere: Form = OneMatrix(size, 1) @ (3 / Delta * i.r)
    return everywhere


falling = relu(knots(K + 2, -1) - cells(K + 2))  # knots −1, 0, …, K
rising = relu(cells(K + 1) - knots(K + 1, 1))  # knots 1, …, K + 1
code = FeedForward(
    write={
        "p": differences(1, -2, 1) @ falling,
        "c": differences(1, -1) @ rising,
    }
)

field = Head(
    logit=2 * W @ i.x @ j.y - i.one * j.sq - C * i.p @ j.c,
    write={"mean": j.y},
)

blocks = (
    Block(feed_forward=code),
    Block(heads=(field,)),
    Block(heads=(total,)),  # the uniform head of ConstantDepth, which writes 2ηN(y − mean) to u
)

# Several queries, and a sink
rows = {name: size for name, size in stream.rows.items() if name != "u"}
queries_stream = Stream(**rows, b=1, own=d_y, joint=d_y)
at_sink = OneMatrix(d_y, 1) @ (D_0 * queries_stream.tokens[0].b)  # D₀ in every component at the sink, 0 elsewhere


def filtered(same: Bilinear) -> Head:
    """``field`` among the responses to the token's own query."""
    return Head(logit=gamma_beta * same + field.logit, write=field.write)


# 2η(y − mean), and 0 at the sink
gained, lost = relu(i.y - i.mean - at_sink), relu(i.mean - i.y - at_sink)
own = FeedForward(write={"own": 2 * eta * gained - 2 * eta * lost})


def queries_blocks(pairs: int = 1) -> tuple[Block, ...]:
    """The three blocks for several queries; the last has the given number of pairs."""
    ask, answer = queries_stream.tokens
    to_sink = ask.one * answer.b
    summing = linear_attention(overlap, to_sink, answer.own, "joint", pairs)
    return (
        Block(feed_forward=code),
        Block(heads=(filtered(overlap),), feed_forward=own),
        Block(heads=summing),
    )


MOST_POINTS = 4096  # of the grid: the layers hold matrices with more than K² entries


class TwoLayers(OneQueryStep):
    r"""One gradient step on the Plackett–Luce loss of the N responses to one query, in two attention layers.

    .. math:: u \approx ΔW\,x, \qquad ΔW = -η\,\nabla L(W), \qquad L(W) = -\log P_{PL}

    Claim ``two-layers-suffice``. ``c(task)`` is y_i − u at every token, ``c.update(task)`` is u. No positions, one head
    a layer, whatever N; before them one feed-forward layer of 2K + 3 ReLUs, K = ⌈3R/Δ⌉, and 2K rows of a token hold
    the code of its reward. :class:`TwoLayersMultiQuery` is the same for several queries.

    Args:
        W: the parameters W₀ (d_y, d_x) of the reward model at the start.
        eta: the step size η > 0.
        responses: N ≥ 2.
        min_gap: Δ, the least gap between two rewards.
        reward_range: (low, high).
        radius: bound on ‖y‖; D₀ is twice that.
        tolerance: bound on max over tokens of ‖c(task) − exact‖; half of it is left to rounding.
        temperatures: ``{"C": …}`` in place of a tolerance. ``error_bound`` is ∞ where the bound on rounding does
            not hold (φ > 1/4, or its exponents too large).
        dtype: of weights and tasks.

    Raises:
        ValueError: W or η out of range, a class that is empty or has N < 2, or whose grid has more than 4096 points,
            both or neither of tolerance and temperatures, a tolerance that the dtype cannot deliver, or a class or a
            weight beyond the dtype.
    """

    temperature_names: ClassVar[tuple[str, ...]] = ("C",)

    def _prepare(self) -> None:
        kind = self.task_class
        needed = 3 * (kind.spread / kind.min_gap)
        if not needed <= MOST_POINTS:
            raise ValueError(
                f"min_gap: {kind.min_gap} in a reward_range of length {kind.spread:.6g} makes a grid of "
                f"{needed:.6g} points, expected at most {MOST_POINTS}"
            )
        self.points = bounds.grid_points(kind.min_gap, kind.spread)

    @property
    def _grid(self) -> tuple[torch.dtype, float, float, int]:
        """What the rounding of the code depends on."""
        return self.dtype, self.task_class.min_gap, self.task_class.largest_reward, self.points

    @property
    def _short(self) -> float:
        """φ: by how much a mask may fall short of 1."""
        return bounds.grid_rounding(*self._grid)

    def _temperatures(self, tolerance: float) -> dict[str, float]:
        return {"C": self._mask(tolerance)}

    def _mask(self, tolerance: float) -> float:
        """C for an error of the own terms at masks of 1 − φ."""
        kind, tiny = self.task_class, sys.float_info.min
        once = max(min(tolerance, self.longest), tiny)
        size = max(self.eta * kind.diameter, tiny)
        mask = bounds.constant_depth_mask(once, size, self.score_spread, kind.responses, 1.0)
        return float(mask) / (1 - min(self._short, 0.25))

    def _exact_error(self) -> float:
        """The theorem's bound at masks of 1 − φ; ∞ where φ > 1/4, for which rounding is not bounded."""
        kind, short = self.task_class, self._short
        if short > 0.25:
            return math.inf
        mask = self.temperatures["C"] * (1 - short)
        return float(bounds.constant_depth_error(self.eta, mask, self.score_spread, kind.responses, kind.diameter))

    def _rounding(self) -> float:
        kind = self.task_class
        once = bounds.two_layers_rounding(
            self.dtype,
            self.eta,
            self.temperatures["C"],
            kind.min_gap,
            kind.largest_reward,
            self.points,
            self.score_spread,
            kind.responses,
            kind.dim_x,
            kind.dim_y,
            self.reach,
            kind.radius,
        )
        return once + self._query_rounding + self._radius_rounding()

    def _largest_logits(self) -> dict[str, float]:
        return {"(‖|W||x|‖ + ‖y‖)² + 2C": self.reach * self.reach + 2 * self.temperatures["C"]}

    def _largest_values(self) -> dict[str, float]:
        kind = self.task_class
        per_reward = 3 / kind.min_gap
        knots = 3 * (kind.largest_reward / kind.min_gap) + self.points + 1
        return super()._largest_values() | {"3/Δ": per_reward, "3·max|r|/Δ + K + 1": knots}

    def _known(self) -> dict[Any, Any]:
        kind = self.task_class
        return {
            d_x: kind.dim_x,
            d_y: kind.dim_y,
            K: self.points,
            W: self.W,
            eta: self.eta,
            low: kind.reward_range[0],
            Delta: kind.min_gap,
            C: self.temperatures["C"],
        }

    def _build(self) -> None:
        self.values = self._known() | {N: self.task_class.responses}
        self.transformer = build(blocks, stream, self.values, self.dtype, self.temperatures)

    def symbolic(self) -> SymbolicTransformer:
        """The three blocks, with symbols for d_x, d_y, N, K, η, low, Δ, C, W."""
        return SymbolicTransformer(stream, blocks, {"one": 1, "p": 0, "c": 0, "mean": 0, "u": 0})


class TwoLayersMultiQuery(TwoLayers):
    r"""One gradient step on the losses of M queries with N responses each, in two attention layers.

    .. math:: u^a \approx ΔW\,x^a, \qquad ΔW = -η\,\nabla \sum_b L_b(W)

    Claim ``two-layers-suffice``, part queries. ``c(task)`` is y_i^a − u^a at every token, ``c.update(task)`` is u^a.
    One head in the first layer and two in the second, or 2P with P pairs. The prompt has a sink in front.

    Args:
        W: the parameters W₀ (d_y, d_x) of the reward model at the start.
        eta: the step size η > 0.
        queries: M.
        responses: N ≥ 2.
        overlap: ρ < 1, a bound on ⟨x^a, x^b⟩ for a ≠ b.
        min_gap: Δ, the least gap between two rewards of one query.
        reward_range: (low, high).
        radius: bound on ‖y‖; D₀ is twice that.
        tolerance: bound on max over tokens of ‖c(task) − exact‖; half of it is left to rounding.
        temperatures: ``{"gamma_beta": …, "C": …, "epsilon": …, "lambda": …}`` in place of a tolerance, ε > 0.
            ``error_bound`` is ∞ as for :class:`TwoLayers`.
        pairs: how many pairs of heads the second layer has; as many as the tolerance asks for if None (1 to 4), or 1.
        dtype: of weights and tasks.

    Raises:
        ValueError: as :class:`TwoLayers`, or an overlap or ``pairs`` out of range.
    """

    temperature_names = ("gamma_beta", "C", "epsilon", "lambda")

    def __init__(
        self,
        *,
        W: Float[Tensor, "dim_y dim_x"],
        eta: float = 0.1,
        queries: int = 3,
        responses: int = 8,
        overlap: float = 0.9,
        min_gap: float = 0.1,
        reward_range: tuple[float, float] = (0.0, 2.0),
        radius: float = 3.0,
        tolerance: float | None = None,
        temperatures: Mapping[str, float] | None = None,
        pairs: int | None = None,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self._take(W, eta, dtype)
        refuse_non_numbers(overlap=overlap)
        self.task_class = TaskClass(
            dim_x=W.shape[1],
            dim_y=W.shape[0],
            responses=responses,
            queries=queries,
            min_gap=min_gap,
            reward_range=reward_range,
            radius=radius,
            overlap=overlap,
        )
        if pairs is not None:
            refuse_non_sizes(pairs=pairs)
        self._choices = range(1, MOST_PAIRS + 1) if pairs is None else range(pairs, pairs + 1)
        self.pairs = self._choices[0]
        self._prepare()
        self._set(tolerance, temperatures)

    @property
    def _scale(self) -> float:
        return super()._scale * self.task_class.queries

    @property
    def _overlap(self) -> float:
        """The largest of ρ and 0, as the sink counts as a query that is orthogonal to all."""
        kind = self.task_class
        return 0.0 if kind.queries == 1 or kind.overlap is None else max(kind.overlap, 0.0)

    @property
    def _tokens(self) -> int:
        return self.task_class.queries * self.task_class.responses

    def _temperatures(self, tolerance: float) -> dict[str, float]:
        """With the fewest pairs whose rounding is below the tolerance as well, or else with the most."""
        found: dict[str, float] = {}
        for pairs in self._choices:
            self.pairs = pairs
            self.temperatures = found = self._chosen(tolerance)
            if all([math.isfinite(value) for value in found.values()]) and self._rounding() <= tolerance:
                break
        return found

    def _chosen(self, tolerance: float) -> dict[str, float]:
        """A third of the tolerance for the own terms, an M-th of it each, half of that for strangers; the rest for the
        pairs."""
        kind = self.task_class
        most = kind.queries * max(self.longest, sys.float_info.min)
        tolerance = min(tolerance, most)
        half = max(tolerance / (6 * kind.queries), sys.float_info.min)
        if tolerance / most < 1e-150:  # as good as no error at all
            return dict.fromkeys(self.temperature_names, math.inf)
        mask = self._mask(half)
        spread = self.score_spread + self._noise(mask)
        strange = bounds.ranked_filter(
            half, self.eta, spread, self._overlap, kind.responses, kind.queries, kind.diameter
        )
        curvature, leak = 5 * tolerance / (36 * most), tolerance / (6 * most)
        small = min(1.0, float(bounds.sink_spacing(curvature, self.pairs)))
        strength = float(bounds.sink_logit(small, leak, self._tokens, self.pairs))
        return {"gamma_beta": float(strange), "C": mask, "epsilon": small, "lambda": strength}

    def _noise(self, mask: float) -> float:
        """Cφ: by how much rounding of the code may raise a stranger's logit."""
        return mask * min(self._short, 0.25)

    def _strangers(self) -> tuple[float, float, float, int, int]:
        """γ_β, R_Z with the noise of the code, ρ, N and M."""
        kind, t = self.task_class, self.temperatures
        spread = self.score_spread + self._noise(t["C"])
        return t["gamma_beta"], spread, self._overlap, kind.responses, kind.queries

    def _own_error(self) -> float:
        """How far the terms of a query, added up, are from 2ηG_a, in real arithmetic but for the code."""
        alone = super()._exact_error()
        if alone == math.inf:
            return math.inf
        return alone + float(bounds.ranked_stranger_error(self.eta, *self._strangers(), self.task_class.diameter))

    def _exact_error(self) -> float:
        own, t = self._own_error(), self.temperatures
        if own == math.inf:
            return math.inf
        sink = bounds.sink_error(t["epsilon"], t["lambda"], self._tokens, self.pairs)
        return float(bounds.coupled_error(self.task_class.queries, self.longest, own, sink))

    def _crowd(self) -> float:
        """The largest weight of all others beside the live field of a token."""
        kind, t = self.task_class, self.temperatures
        better = bounds.field_crowd(t["C"] * (1 - self._short), self.score_spread, kind.responses, kind.responses)
        return float(better + bounds.field_strangers(*self._strangers(), kind.responses))

    def _rounding(self) -> float:
        kind, t, unit = self.task_class, self.temperatures, bounds.unit_roundoff(self.dtype)
        exact = self._own_error()
        if exact == math.inf:
            return math.inf
        queries, eps, strength = kind.queries, t["epsilon"], t["lambda"]
        own = self._radius_rounding(self.reach) + bounds.filtered_tails_rounding(
            self.dtype,
            self.eta,
            self._crowd(),
            t["gamma_beta"] + self.reach * self.reach,
            t["C"],
            bounds.grid_graze(*self._grid),
            self.points,
            self._tokens + 1,
            kind.responses,
            kind.dim_x,
            kind.dim_y,
            kind.radius,
        )
        pair = bounds.sink_rounding(self.dtype, eps, strength, self._tokens + 1, kind.dim_x, self.pairs)
        if math.inf in (own, pair):
            return math.inf
        coupled = queries * own * (1 + bounds.sink_error(eps, strength, self._tokens, self.pairs))
        coupled += queries * (self.longest + exact + own) * pair
        return float(coupled + (kind.radius + queries * self.longest * (1 + 4 * self.norm_rounding / unit)) * unit)

    def _largest_logits(self) -> dict[str, float]:
        t = self.temperatures
        return {"γ_β + (‖|W||x|‖ + ‖y‖)² + 2C": t["gamma_beta"] + self.reach * self.reach + 2 * t["C"]}

    def _pair_values(self) -> dict[str, float]:
        return pair_values(self.temperatures, 2 * self.eta * self.task_class.diameter, self.pairs)

    def _build(self) -> None:
        t = self.temperatures
        if t["epsilon"] == 0 or t["lambda"] > 600:
            raise ValueError(f"temperatures: {t}, expected epsilon > 0 and lambda ≤ 600")
        self.values = self._known() | {
            gamma_beta: t["gamma_beta"],
            D_0: self.task_class.diameter,
            epsilon: t["epsilon"],
            lambda_: t["lambda"],
            scale: sink_scale(t, self.dtype),
        }
        model = self.symbolic()
        self.transformer = build(model.blocks, model.stream, self.values, self.dtype, t)

    def symbolic(self) -> SymbolicTransformer:
        """The three blocks, with symbols for d_x, d_y, K, γ_β, η, low, Δ, C, W, D₀, ε, λ and the scale of the pairs."""
        given = {"one": 1, "p": 0, "c": 0, "mean": 0, "b": 0, "own": 0, "joint": 0}
        return SymbolicTransformer(queries_stream, queries_blocks(self.pairs), given)

    def embed(self, task: AlignmentTask) -> Float[Tensor, "*batch tokens width"]:
        """The prompt: first the sink, which has zeros in all rows but b, then tokens [x; y_j; ‖y_j‖²; r_j; 1].

        Raises:
            OutOfClass: a size differs from that of the class.
            ValueError: not a task, or one of another dtype.
        """
        self.refuse_unfit(task)
        rows = self.transformer.rows
        return with_start(prompt(task, rows), rows, "b")

    @property
    def accumulator(self) -> str:
        """The row that holds ΔW x at the end."""
        return "joint"

    def responses(self, X: Float[Tensor, "*batch tokens width"]) -> Float[Tensor, "*batch queries responses width"]:
        """The tokens that hold responses, by query, without the sink."""
        return super().responses(X[..., 1:, :])
