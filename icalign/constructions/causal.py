"""Causal attention with masked positions: every position makes its own online gradient step.

The appendix's construction (F.2 and Lemma F.1 in the camera-ready): each token keeps, in its row m, a record of the
positions it has selected. ``printed`` is its block. ``block`` adds what it lacks: a start token without a position,
whose logits lie between those of responses that are live and those that are taken, so that it ends the rounds of a
prefix that has nothing left to select.

Rows: x, y, sq = ‖y‖², r, 1, b (start token?), p (one-hot position), m (positions selected) and u (what has been added
up); with derived positions also z.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

import sympy as sp
import torch
from jaxtyping import Float
from torch import Tensor

from .. import bounds
from ..spec import Block, Head
from ..stream import Stream
from ..symbolic import SymbolicTransformer
from ..symbols import N, W, d_x, d_y, eta
from ..tasks import AlignmentTask, refuse_non_numbers, refuse_non_sizes
from . import positions as derived
from .base import TaskClass, build, prompt, with_start
from .gradient import GradientStep
from .order import Order, standing

gamma_1, c, c_field = sp.symbols("gamma_1 c c'", nonnegative=True)
sigma, sigma_field = sp.symbols("sigma sigma'", real=True)

stream = Stream(x=d_x, y=d_y, sq=1, r=1, one=1, b=1, p=N, m=N, u=d_y)
i, j = stream.tokens

# The selecting head as printed, with c = γ₁γ₂; the field head as read from the appendix
printed_winner = Head(
    logit=gamma_1 * i.one * j.r - c * i.m @ j.p,
    write={"u": 2 * eta * j.y, "m": j.p},
)

printed_field = Head(
    logit=2 * W @ i.x @ j.y - i.one * j.sq - c_field * i.m @ j.p,
    write={"u": -2 * eta * j.y},
)

printed = Block(heads=(printed_winner, printed_field), causal=True)

# With a start token that stops them
winner = Head(
    logit=i.one * (gamma_1 * j.r + sigma * j.b) - c * i.m @ j.p,
    write={"u": 2 * eta * j.y, "m": j.p},
)

field = Head(
    logit=2 * W @ i.x @ j.y - i.one * (j.sq - sigma_field * j.b) - c_field * i.m @ j.p,
    write={"u": -2 * eta * j.y},
)

block = Block(heads=(winner, field), causal=True)

derived_stream = Stream(**stream.rows, z=1)


class Causal(GradientStep):
    r"""One online gradient step on the Plackett–Luce loss at every position, under a causal mask.

    .. math:: u_t \approx ΔW_t\,x, \qquad ΔW_t = -η\,\nabla L_t(W), \qquad L_t = \text{loss of the first t responses}

    Claims ``mask-logits`` to ``causal-theorem``; section 2 of the paper's v2 appendix (F.2 in the camera-ready).
    ``c(task)`` is y_t − u_t at every position, ``c.update(task)`` is u_t. The prompt has a start token in front.

    With several queries the prompt has M·N tokens, and ``c(task, order=…)`` says which query each belongs to; answers
    come by query and response, as the task has them. With ``target="own"`` a token's step is that on the responses to
    its own query that it sees; with ``target="joint"`` that on everything it sees, summed over queries. Claim
    ``causal-multi-query``; :class:`icalign.constructions.causal_queries.CausalQueries` has its temperatures.

    Args:
        W: the parameters W₀ (d_y, d_x) of the reward model at the start.
        eta: the step size η > 0.
        responses: N ≥ 2.
        min_gap: Δ, the least gap between two rewards.
        reward_range: (low, high).
        radius: bound on ‖y‖; D₀ is twice that.
        tolerance: bound on max over positions of ‖c(task) − exact‖; half of it is left to rounding.
        temperatures: ``{"gamma_1": …, "c": …, "c_field": …}``, γ₁, c and c′, in place of a tolerance. ``error_bound``
            is ∞ if they are too small for the theorem.
        sink: with the start token. ``False`` is the construction as the paper prints it, c = γ₁γ₂, at the same
            temperatures and without a start token. It promises nothing: ``error_bound`` is ∞.
        positions: "given", one-hot in the prompt, or "derived" by two blocks in front, from the causal mask alone.
        queries: M; with more than one there has to be a start token.
        overlap: ρ < 1, a bound on ⟨x^a, x^b⟩ for a ≠ b; not read for one query.
        target: "own" or "joint", which are the same for one query.
        pairs: for the joint target alone, how many pairs of heads add up the queries; as many as the tolerance asks
            for if None (1 to 4), or 1.
        dtype: of weights and tasks.

    Raises:
        ValueError: W or η out of range, a class that is empty or has N < 2, both or neither of tolerance and
            temperatures, a tolerance that the dtype cannot deliver, a class or a weight beyond the dtype, other
            ``positions``, or derived ones without a start token or more than the dtype can tell apart, an overlap
            that is not below 1, another ``target``, or several queries without a start token.
    """

    temperature_names = ("gamma_1", "c", "c_field")

    def __new__(cls, **given: Any) -> Causal:
        """Several queries have heads of their own; one or several, it is a ``Causal``."""
        if cls is Causal and given.get("queries", 1) != 1:
            from .causal_queries import CausalQueries

            return super().__new__(CausalQueries)
        return super().__new__(cls)

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
        sink: bool = True,
        positions: str = "given",
        queries: int = 1,
        overlap: float = 0.9,
        target: str = "own",
        pairs: int | None = None,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self._take(W, eta, dtype)
        if queries != 1:
            refuse_non_numbers(overlap=overlap)
        self.task_class = TaskClass(
            dim_x=W.shape[1],
            dim_y=W.shape[0],
            responses=responses,
            min_gap=min_gap,
            reward_range=reward_range,
            radius=radius,
            queries=queries,
            overlap=None if queries == 1 else overlap,
        )
        if target not in ("own", "joint"):
            raise ValueError(f"target: {target!r}, expected 'own' or 'joint'")
        if pairs is not None:
            refuse_non_sizes(pairs=pairs)
            if target == "own":
                raise ValueError(f"pairs: {pairs} with target='own', expected None: only the joint target has pairs")
        if not isinstance(sink, bool):
            raise ValueError(f"sink: {sink!r}, expected True or False")
        if positions not in ("given", "derived"):
            raise ValueError(f"positions: {positions!r}, expected 'given' or 'derived'")
        if positions == "derived":
            if not sink:
                raise ValueError("positions: 'derived' needs a start token, and sink=False has none; expected 'given'")
            derived.refuse_positions(queries * responses, dtype)
        self.sink, self.positions, self.target = sink, positions, target
        self.pairs, self._pairs = pairs or 1, pairs
        self._set(tolerance, temperatures)
        if not sink:
            self.error_bound = math.inf

    @property
    def margin(self) -> float:
        """g, by which every round tells the next best response from all others."""
        kind, t = self.task_class, self.temperatures
        return bounds.mask_margin(t["gamma_1"], t["c"], kind.min_gap, kind.spread)

    @property
    def field_margin(self) -> float:
        """h = (c′ − R_Z)/2, by which the start token's logit lies below every live and above every taken score."""
        spread = bounds.score_spread(self.norm, self.task_class.radius)
        return float(self.temperatures["c_field"] - spread) / 2

    def _temperatures(self, tolerance: float) -> dict[str, float]:
        kind, tiny = self.task_class, sys.float_info.min
        reach = max(self.longest, tiny)
        once = max(min(tolerance, reach), tiny)
        h = max(self._field_margins(once, reach))
        field_mask = bounds.score_spread(self.norm, kind.radius) + 2 * h
        g = max(bounds.causal_margins(once, reach, field_mask, kind.min_gap, kind.spread, kind.responses))
        selecting, mask = bounds.mask_temperatures(g, kind.min_gap, kind.spread)
        return {"gamma_1": float(selecting), "c": float(mask), "c_field": float(field_mask)}

    def _field_margins(self, tolerance: float, reach: float) -> tuple[Any, ...]:
        """What h has to be at least."""
        return bounds.causal_field_margins(tolerance, reach, self.task_class.responses)

    def _exact_error(self) -> float:
        """The theorem's bound; ∞ if the masks may be too far off, in floating point, for the next round."""
        kind, masks = self.task_class, (self.temperatures["c"], self.temperatures["c_field"])
        if not (self.margin > 0 and self.field_margin >= 0):
            return math.inf
        slip = bounds.mask_rounding(self.dtype, self.margin, self._selecting_logit, kind.responses + 1)
        if not bounds.mask_holds(masks, self.margin, slip, kind.responses):
            return math.inf
        return float(bounds.causal_error(self.longest, self.margin, self.field_margin, masks[1], kind.responses))

    def _rounding(self) -> float:
        kind = self.task_class
        if not (self.margin > 0 and self.field_margin >= 0):
            return math.inf
        return (
            self._query_rounding
            + self._radius_rounding()
            + bounds.causal_rounding(
                self.dtype,
                self.eta,
                self.margin,
                self._selecting_logit,
                self.field_margin,
                self.temperatures["c_field"],
                kind.responses,
                kind.dim_x,
                kind.dim_y,
                self.reach,
                kind.radius,
            )
        )

    @property
    def _selecting_logit(self) -> float:
        """The largest logit of the selecting head where the theorem applies: no entry of m is above 2."""
        return self.temperatures["gamma_1"] * self.task_class.largest_reward + 2 * self.temperatures["c"]

    def _largest_logits(self) -> dict[str, float]:
        """Entries of m add up to the number of rounds at most."""
        t, rounds = self.temperatures, self.task_class.responses + 1
        return {
            "γ₁max|r| + (N+1)c": t["gamma_1"] * self.task_class.largest_reward + rounds * t["c"],
            "(‖|W||x|‖ + ‖y‖)² + (N+1)c′": self.reach * self.reach + rounds * t["c_field"],
        }

    def _numbers(self) -> dict[Any, Any]:
        """The numbers for the symbols."""
        kind, t = self.task_class, self.temperatures
        low, high = [t["gamma_1"] * end for end in kind.reward_range]
        lowest, highest = bounds.score_range(self.norm, kind.radius)
        return {
            d_x: kind.dim_x,
            d_y: kind.dim_y,
            N: kind.responses,
            W: self.W,
            eta: self.eta,
            gamma_1: t["gamma_1"],
            c: t["c"],
            c_field: t["c_field"],
            sigma: bounds.stop_logit(low, high, t["c"]),
            sigma_field: bounds.stop_logit(lowest, highest, t["c_field"]),
        }

    def _build(self) -> None:
        self.values, model = self._numbers(), self.symbolic()
        self.transformer = build(model.blocks, model.stream, self.values, self.dtype, self.temperatures)

    def symbolic(self) -> SymbolicTransformer:
        """The blocks, N−1 for this N, with symbols for d_x, d_y, N, γ₁, c, c′, σ, σ′, η, W."""
        given = {"one": 1, "m": 0, "u": 0}
        rounds = self.task_class.responses - 1
        if not self.sink:
            return SymbolicTransformer(stream, (printed,) * rounds, given | {"b": 0})
        if self.positions == "given":
            return SymbolicTransformer(stream, (block,) * rounds, given)
        return SymbolicTransformer(derived_stream, derived.blocks(N) + (block,) * rounds, given | {"p": 0, "z": 0})

    def standing(self, task: AlignmentTask, order: Order | None) -> Tensor:
        """Where in the prompt each response stands, query by query (:func:`icalign.constructions.order.standing`)."""
        return standing(order, self.task_class.queries, self.task_class.responses, task.batch)

    def embed(self, task: AlignmentTask, order: Order | None = None) -> Float[Tensor, "*batch tokens width"]:
        """The start token, rows one and b alone, if there is one; then tokens [x; y_t; ‖y_t‖²; r_t; 1; 0; p_t; 0; 0].

        Raises:
            OutOfClass: a size differs from that of the class.
            ValueError: not a task, one of another dtype, or an order that does not fit.
        """
        self.refuse_unfit(task)
        rows = self.transformer.rows
        X = prompt(task, rows)
        if order is not None:
            X = X.take_along_dim(self.standing(task, order).argsort(-1)[..., None], -2)
        if self.positions == "given":
            X[..., rows["p"]] = torch.eye(X.shape[-2], dtype=X.dtype)
        if not self.sink:
            return X
        return with_start(X, rows, "one", "b")

    def responses(self, X: Float[Tensor, "*batch tokens width"]) -> Float[Tensor, "*batch queries responses width"]:
        """The tokens that hold responses, by query, of a blocked prompt; without the start token."""
        return super().responses(X[..., 1:, :] if self.sink else X)

    def run(self, task: AlignmentTask, order: Order | None = None) -> Float[Tensor, "*batch tokens width"]:
        """The tokens after the forward pass, in the order of the prompt.

        Raises:
            OutOfClass: the task does not belong to the class.
            ValueError: not a task, one of another dtype, or an order that does not fit.
        """
        self.check(task)
        X: Tensor = self.transformer(self.embed(task, order))
        return X

    def _blocked(self, task: AlignmentTask, order: Order | None) -> Float[Tensor, "*batch tokens width"]:
        """The tokens after the forward pass, query by query."""
        X = self.run(task, order)
        if order is None:
            return X
        first = int(self.sink)
        stands = self.standing(task, order)[..., None]
        return torch.cat([X[..., :first, :], X[..., first:, :].take_along_dim(stands, -2)], -2)

    def __call__(
        self, task: AlignmentTask, order: Order | None = None
    ) -> Float[Tensor, "*batch queries responses dim_y"]:
        """y − u at every token, by query and response.

        Args:
            task: a task of the class.
            order: the query, 0, …, M − 1, of every token of the prompt, (M·N,) or one row for each task of the batch;
                the responses of a query come in the order of their index. Query by query if None.

        Raises:
            OutOfClass: the task does not belong to the class.
            ValueError: not a task, one of another dtype, or an order that does not fit.
        """
        return self.read(self._blocked(task, order))

    def update(
        self, task: AlignmentTask, order: Order | None = None
    ) -> Float[Tensor, "*batch queries responses dim_y"]:
        """u at every token, by query and response; arguments and errors as in a call."""
        return self.responses(self._blocked(task, order))[..., self.transformer.rows[self.accumulator]]

    def rounds(self, task: AlignmentTask, order: Order | None = None) -> list[Float[Tensor, "*batch tokens width"]]:
        """The tokens as each round finds them, from the first to after the last; without the start token.

        Raises:
            OutOfClass: the task does not belong to the class.
            ValueError: not a task, one of another dtype, or an order that does not fit.
        """
        self.check(task)
        X = self.embed(task, order)
        found = [X]
        for layer in self.transformer.blocks:
            X = layer(X)
            found.append(X)
        first = 2 if self.positions == "derived" else 0
        return [X[..., int(self.sink) :, :] for X in found[first : first + self.task_class.responses]]
