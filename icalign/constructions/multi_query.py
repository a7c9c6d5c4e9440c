"""Several queries: N−1 blocks deliver the own terms, one layer with a sink adds up what the queries owe each other.

The heads of a block are those of ``elimination`` with γ⟨x_i, x_j⟩ added to their logits, so that a token looks at the
responses to its own query. What they gather in u is one term of Σ_b ⟨x^b, x^a⟩ u^b; ``sink.linear_attention`` makes the
whole sum, in the row joint.

Rows, besides those of ``elimination``: id, a one-hot identifier of the query; b, the sink?; joint. The sink has zeros
in all other rows, also in the row of ones. So where it asks, all logits are 0, both heads of a block look at all tokens
alike, and what they write into its u cancels. Where rewards are negative its flag may rise, once a block: that lowers
the logits that others have for it, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import sympy as sp
import torch
from jaxtyping import Float
from torch import Tensor

from .. import bounds
from ..forms import Bilinear
from ..spec import Block, Head
from ..stream import Stream
from ..symbolic import SymbolicTransformer
from ..symbols import Delta, M, N, W, d_x, d_y, eta
from ..tasks import AlignmentTask, refuse_non_numbers, refuse_non_sizes
from . import elimination
from .base import TaskClass, build, prompt, with_start
from .elimination import B, C, R
from .gradient import GradientStep
from .query_selection import gamma_1, gamma_2
from .sink import MOST_PAIRS, epsilon, lambda_, linear_attention, pair_values, scale, sink_scale

gamma_beta = sp.Symbol("gamma_beta", nonnegative=True)
low = sp.Symbol("low", real=True)

stream = Stream(**elimination.stream.rows, id=M, b=1, joint=d_y)
i, j = stream.tokens

overlap = i.x @ j.x  # 1 for tokens of one query, at most ρ for others
identity = i.id @ j.id  # 1 for tokens of one query, 0 for others


def winner(same: Bilinear) -> Head:
    """The best live response to the token's own query."""
    held_back = j.r - 2 * (R + Delta) * j.flag
    return Head(
        logit=gamma_1 * same + gamma_2 * i.one * held_back,
        write={"u": 2 * eta * j.y, "top": j.r},
    )


def field(same: Bilinear) -> Head:
    """The mean of the live responses to the token's own query."""
    return Head(
        logit=gamma_beta * same + elimination.field.logit,
        write=elimination.field.write,
    )


def winner_beside_sink(same: Bilinear) -> Head:
    """The same where one token is a sink: it counts as a response y = 0 of reward low to an orthogonal query."""
    head = winner(same)
    return Head(
        logit=head.logit + gamma_2 * low * i.one * j.b,
        write={**head.write, "top": j.r + low * j.b},
    )


def own_terms(same: Bilinear) -> Block:
    """One block as the appendix has it: no token is a sink."""
    return Block(heads=(winner(same), field(same)), feed_forward=elimination.eliminate)


def own_terms_beside_sink(same: Bilinear) -> Block:
    """One block among tokens with a sink."""
    return Block(heads=(winner_beside_sink(same), field(same)), feed_forward=elimination.eliminate)


def coupling(pairs: int = 1) -> Block:
    """The layer that adds Σ_b ⟨x^b, x^a⟩ u^b to the row joint, the mean of the N copies of each u^b."""
    return Block(heads=linear_attention(overlap, i.one * j.b, j.u / N, "joint", pairs))


_TINY = 1e-150  # an error that does not matter, with numbers below it that a float still holds


class MultiQuery(GradientStep):
    r"""One gradient step on the Plackett–Luce losses of M queries with N responses each, which share one W.

    .. math:: u^a \approx ΔW\,x^a, \qquad ΔW = -η\,\nabla \sum_b L_b(W)

    Claims ``mq-gradient``, ``mq-own-term``, ``sink-linear-attention``, ``mq-theorem``; the first extension of the
    paper's appendix. ``c(task)`` is y_i^a − u^a at every token, ``c.update(task)`` is u^a.

    With ``cross_terms=False`` it is the printed form, N−1 blocks without the last layer, and is held to the step of
    each query on its own loss, −η∇L_a x^a. With ``query_ids=True`` the blocks tell queries apart by one-hot
    identifiers; then any queries will do, and ``overlap`` is not read.

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
        temperatures: in place of a tolerance, ``{"gamma_1": …, "gamma_2": …, "gamma_beta": …, "C": …}`` and, with cross
            terms, ``"epsilon"`` > 0 and ``"lambda"``. ``error_bound`` is ∞ where the theorem does not apply.
        cross_terms: whether the last layer is there.
        query_ids: whether tokens carry identifiers.
        pairs: how many pairs of heads the last layer has; as many as the tolerance asks for if None (1 to 4), or 1.
            Not to be given without that layer.
        dtype: of weights and tasks.

    Raises:
        ValueError: W or η out of range, a class that is empty or has N < 2 or ρ ≥ 1, ``pairs`` without cross
            terms, an argument of another kind, both or neither of tolerance and temperatures, a tolerance that the
            dtype cannot deliver, or a class or a weight beyond the dtype.
    """

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
        cross_terms: bool = True,
        query_ids: bool = False,
        pairs: int | None = None,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self._take(W, eta, dtype)
        for name, value in {"cross_terms": cross_terms, "query_ids": query_ids}.items():
            if not isinstance(value, bool):
                raise ValueError(f"{name}: {value!r}, expected True or False")
        if not query_ids:
            refuse_non_numbers(overlap=overlap)
        self.task_class = TaskClass(
            dim_x=W.shape[1],
            dim_y=W.shape[0],
            responses=responses,
            queries=queries,
            min_gap=min_gap,
            reward_range=reward_range,
            radius=radius,
            overlap=None if query_ids else overlap,
        )
        if pairs is not None:
            refuse_non_sizes(pairs=pairs)
            if not cross_terms:
                raise ValueError(f"pairs: {pairs} with cross_terms=False, expected None: the printed form has no pairs")
        self.cross_terms, self.query_ids = cross_terms, query_ids
        self._choices = range(1, MOST_PAIRS + 1) if pairs is None else range(pairs, pairs + 1)
        self.pairs = self._choices[0]
        self._set(tolerance, temperatures)

    @property
    def _scale(self) -> float:
        return super()._scale * self.task_class.queries

    @property
    def temperature_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Which temperatures there are."""
        own = ("gamma_1", "gamma_2", "gamma_beta", "C")
        return (*own, "epsilon", "lambda") if self.cross_terms else own

    @property
    def distinct(self) -> float:
        """1 − ρ ≤ how much more two tokens of one query have in common than two of different ones; sinks included."""
        if self.query_ids or self.task_class.queries == 1:
            return 1.0
        assert self.task_class.overlap is not None
        return 1 - (max(self.task_class.overlap, 0.0) if self.cross_terms else self.task_class.overlap)

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
        """Temperatures for a number of pairs, from the closed forms of the claim ``mq-theorem``."""
        kind, longest = self.task_class, max(self.longest, _TINY)
        most = kind.queries * longest
        tolerance = min(tolerance, most if self.cross_terms else longest)  # U, or MU, is met by doing nothing
        share = tolerance / (3 * kind.queries) if self.cross_terms else tolerance
        if share < _TINY**2 or tolerance / most < _TINY:  # as good as no error at all
            return dict.fromkeys(self.temperature_names, math.inf)
        margins = bounds.own_terms_margins(share, longest, kind.responses)
        own = bounds.own_terms_temperatures(
            *margins, kind.min_gap, kind.spread, self._score_spread, 1 - self.distinct, kind.queries
        )
        found = dict(zip(("gamma_1", "gamma_2", "gamma_beta", "C"), own, strict=True))
        if self.cross_terms:
            curvature, leak = 5 * tolerance / (36 * most), tolerance / (6 * most)
            found["epsilon"] = min(1.0, bounds.sink_spacing(curvature, self.pairs))
            tokens = kind.queries * kind.responses
            found["lambda"] = bounds.sink_logit(found["epsilon"], leak, tokens, self.pairs)
        return found

    @property
    def _score_spread(self) -> float:
        return float(bounds.score_spread(self.norm, self.task_class.radius))

    @property
    def _others(self) -> tuple[int, int]:
        """(all tokens, sinks among them)."""
        sinks = int(self.cross_terms)
        return self.task_class.queries * self.task_class.responses + sinks, sinks

    def _crowds(self) -> tuple[float, float]:
        """The largest weight of all others beside what a head looks for, in any block; and that of strangers beside a
        winner."""
        kind, t, sinks = self.task_class, self.temperatures, self._others[1]
        N, M, apart = kind.responses, kind.queries, 1 - self.distinct
        own, strange, far = 0.0, 0.0, 0.0
        for k in range(1, N):
            own = max(own, bounds.winner_crowd(t["gamma_2"], kind.min_gap, kind.spread, N, k))
            selected = bounds.strangers(t["gamma_1"], t["gamma_2"], kind.min_gap, kind.spread, apart, N, M, k, sinks)
            strange = max(strange, selected)
            far = max(far, bounds.field_strangers(t["gamma_beta"], self._score_spread, apart, N, M, k, sinks))
        return own + strange + far, strange

    def _own_error(self) -> float:
        """How far u is from the own terms after the blocks, in real arithmetic but for flags less than 1."""
        kind, t = self.task_class, self.temperatures
        if not t["gamma_2"] * kind.min_gap >= math.log(5):
            return math.inf
        (crowd, strange), (tokens, sinks) = self._crowds(), self._others
        logit, _ = self._largest_logits().values()
        if not bounds.flags_are_exact_among(
            self.dtype,
            t["gamma_2"],
            crowd,
            strange,
            logit,
            kind.min_gap,
            kind.spread,
            kind.largest_reward,
            tokens,
            kind.dim_x,
        ):
            return math.inf
        flag = bounds.flag_rounding(self.dtype, kind.largest_reward, kind.min_gap)
        alone = bounds.plackett_luce_error(
            self.eta,
            t["gamma_2"],
            t["C"] * (1 - flag),
            kind.min_gap,
            kind.spread - 2 * (kind.spread + kind.min_gap) * flag,
            self._score_spread,
            kind.responses,
            kind.diameter,
        )
        leak = bounds.stranger_error(
            self.eta,
            t["gamma_1"],
            t["gamma_2"],
            t["gamma_beta"],
            kind.min_gap,
            kind.spread,
            self._score_spread,
            1 - self.distinct,
            kind.responses,
            kind.queries,
            kind.diameter,
            sinks,
        )
        return float(alone + leak)

    def _exact_error(self) -> float:
        own, M, N = self._own_error(), self.task_class.queries, self.task_class.responses
        if not self.cross_terms or own == math.inf:
            return own
        eps, lam = self.temperatures["epsilon"], self.temperatures["lambda"]
        sink = bounds.sink_error(eps, lam, M * N, self.pairs)
        return float(bounds.coupled_error(M, self.longest, own, sink))

    def _rounding(self) -> float:
        kind, unit, exact = self.task_class, bounds.unit_roundoff(self.dtype), self._own_error()
        if exact == math.inf:
            return math.inf
        logits, (tokens, _) = list(self._largest_logits().values()), self._others
        crowd, _ = self._crowds()
        own = bounds.filtered_rounding(
            self.dtype,
            self.eta,
            crowd,
            max(logits),
            logits[1],
            tokens,
            kind.responses,
            kind.dim_x,
            kind.dim_y,
            kind.radius,
        )
        own += self._radius_rounding(self.reach)
        if not self.cross_terms:
            return float(own + self._query_rounding + (kind.radius + self.longest) * unit)
        M, N, eps, lam = kind.queries, kind.responses, self.temperatures["epsilon"], self.temperatures["lambda"]
        pair = bounds.sink_rounding(self.dtype, eps, lam, tokens, kind.dim_x, self.pairs)
        if pair == math.inf:
            return math.inf
        coupled = M * own * (1 + bounds.sink_error(eps, lam, M * N, self.pairs))
        coupled += M * (self.longest + exact + own) * pair
        return float(coupled + (kind.radius + M * self.longest * (1 + 4 * self.norm_rounding / unit)) * unit)

    def _largest_logits(self) -> dict[str, float]:
        kind, t = self.task_class, self.temperatures
        held_back = kind.largest_reward + 2 * (kind.spread + kind.min_gap)
        return {
            "γ₁ + γ₂(max|r| + 2(R + Δ))": t["gamma_1"] + t["gamma_2"] * held_back,
            "γ_β + (‖|W||x|‖ + ‖y‖)² + C": t["gamma_beta"] + self.reach * self.reach + t["C"],
        }

    def _pair_values(self) -> dict[str, float]:
        return pair_values(self.temperatures, self.longest, self.pairs) if self.cross_terms else {}

    def _build(self) -> None:
        kind, t = self.task_class, self.temperatures
        self.values = {
            d_x: kind.dim_x,
            d_y: kind.dim_y,
            N: kind.responses,
            M: kind.queries,
            W: self.W,
            eta: self.eta,
            gamma_1: t["gamma_1"],
            gamma_2: t["gamma_2"],
            gamma_beta: t["gamma_beta"],
            Delta: kind.min_gap,
            R: kind.spread,
            B: bounds.elimination_mask(kind.min_gap, kind.spread) + 0.5,  # half a unit of room for rounding
            C: t["C"],
        }
        if self.cross_terms:
            if t["epsilon"] == 0 or t["lambda"] > 600:
                raise ValueError(f"temperatures: {t}, expected epsilon > 0 and lambda ≤ 600")
            self.values |= {low: kind.reward_range[0], epsilon: t["epsilon"], lambda_: t["lambda"]}
            self.values[scale] = sink_scale(t, self.dtype)
        model = self.symbolic()
        self.transformer = build(model.blocks, model.stream, self.values, self.dtype, t)

    def symbolic(self) -> SymbolicTransformer:
        """N−1 blocks for this N, and the last layer; symbols for sizes, temperatures and all parameters."""
        rows, same = dict(elimination.stream.rows), identity if self.query_ids else overlap
        rows |= {"id": M} if self.query_ids else {}
        given = {"one": 1, "flag": 0, "top": 0, "u": 0}
        times = self.task_class.responses - 1
        if not self.cross_terms:
            return SymbolicTransformer(Stream(**rows), (own_terms(same),) * times, given)
        blocks = (own_terms_beside_sink(same),) * times + (coupling(self.pairs),)
        return SymbolicTransformer(Stream(**rows, b=1, joint=d_y), blocks, given | {"b": 0, "joint": 0})

    def embed(self, task: AlignmentTask) -> Float[Tensor, "*batch tokens width"]:
        """The prompt: tokens [x; y_j; ‖y_j‖²; r_j; 1], with identifiers their query's as well; first of all the sink.

        Raises:
            OutOfClass: a size differs from that of the class.
            ValueError: not a task, or one of another dtype.
        """
        self.refuse_unfit(task)
        kind, rows = self.task_class, self.transformer.rows
        X = prompt(task, rows)
        if self.query_ids:
            numbers = torch.eye(kind.queries, dtype=self.dtype)
            X[..., rows["id"]] = numbers.repeat_interleave(kind.responses, 0)
        if not self.cross_terms:
            return X
        return with_start(X, rows, "b")

    @property
    def accumulator(self) -> str:
        """The row that holds ΔW x at the end: joint, or u in the printed form."""
        return "joint" if self.cross_terms else "u"

    def responses(self, X: Float[Tensor, "*batch tokens width"]) -> Float[Tensor, "*batch queries responses width"]:
        """The tokens that hold responses, by query, without the sink."""
        return super().responses(X[..., int(self.cross_terms) :, :])
