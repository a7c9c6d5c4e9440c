"""Several queries under a causal mask: every token makes the online step of its own query, or of all that it sees.

The heads are those of ``causal`` with γ⟨x_i, x_j⟩ added to their logits, so that a token looks at the responses to its
own query, in whatever order the prompt has them. The start token gets the same γ on top of its own logit, as if it
belonged to every query.

For the joint target two layers follow. ``fetch`` finds the previous token of the same query and takes its accumulator;
what remains is the increment that a token brings to its query's step. A causal sink pair adds up the increments,
Σ_j ⟨x_j, x_i⟩ v_j, which telescopes: of each query the last accumulator so far is left.

Claim ``causal-multi-query``.

Rows, besides those of ``causal``: p and m of size n = M·N, and for the joint target before and joint.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import sympy as sp

from .. import bounds
from ..spec import Block, Head
from ..stream import Stream
from ..symbolic import SymbolicTransformer
from ..symbols import M, N, W, d_x, d_y, eta
from . import positions as derived
from .causal import Causal, c, c_field, gamma_1, sigma, sigma_field
from .sink import MOST_PAIRS, epsilon, lambda_, linear_attention, pair_values, scale, sink_scale

gamma_q, gamma_beta, gamma_p = sp.symbols("gamma_q gamma_beta gamma_p", nonnegative=True)
kappa = sp.Symbol("kappa", positive=True)
n = M * N

own_stream = Stream(x=d_x, y=d_y, sq=1, r=1, one=1, b=1, p=n, m=n, u=d_y)
stream = Stream(**own_stream.rows, before=d_y, joint=d_y)
i, j = stream.tokens

winner = Head(
    logit=gamma_q * i.x @ j.x + i.one * (gamma_1 * j.r + (gamma_q + sigma) * j.b) - c * i.m @ j.p,
    write={"u": 2 * eta * j.y, "m": j.p},
)

field = Head(
    logit=(gamma_beta * i.x @ j.x + 2 * W @ i.x @ j.y - i.one * (j.sq - (gamma_beta + sigma_field) * j.b))
    - c_field * i.m @ j.p,
    write={"u": -2 * eta * j.y},
)

own = Block(heads=(winner, field), causal=True)

place = derived.numbers(n, 1).T @ j.p  # t for the t-th response of the prompt, 0 for the start token

fetch = Head(
    logit=gamma_p * i.x @ j.x + i.one * (kappa * place + gamma_p * j.b) - kappa * (n + 2) * i.p @ j.p,
    write={"before": j.u},
)

fetching = Block(heads=(fetch,), causal=True)


def coupling(pairs: int = 1) -> Block:
    """The layer that adds Σ_j ⟨x_j, x_i⟩ (u_j − before_j), over the tokens up to i, to the row joint."""
    heads = linear_attention(i.x @ j.x, i.one * j.b, j.u - j.before, "joint", pairs)
    return Block(heads=heads, causal=True)


class CausalQueries(Causal):
    """What ``Causal(queries=M, …)`` makes for M > 1; the arguments are described there.

    Temperatures are ``gamma_1``, ``c``, ``c_field``, as for one query, ``gamma_q`` and ``gamma_beta`` (γ_q and γ_β) by
    which the two heads tell queries apart, and for the joint target ``gamma_p`` and ``kappa`` of the head that fetches,
    ``epsilon`` and ``lambda`` of the pairs.
    """

    def __init__(self, **given: object) -> None:
        if given.get("sink", True) is False:
            raise ValueError("sink: False with several queries, expected True: the printed form has one query")
        super().__init__(**given)  # type: ignore[arg-type]

    @property
    def temperature_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Which temperatures there are."""
        own = ("gamma_1", "c", "c_field", "gamma_q", "gamma_beta")
        return (*own, "gamma_p", "kappa", "epsilon", "lambda") if self.target == "joint" else own

    @property
    def _scale(self) -> float:
        return super()._scale * self.task_class.queries

    @property
    def accumulator(self) -> str:
        """The row that holds the step at the end."""
        return "joint" if self.target == "joint" else "u"

    @property
    def tokens(self) -> int:
        """n = M·N, without the start token."""
        return self.task_class.queries * self.task_class.responses

    # --- temperatures

    def _temperatures(self, tolerance: float) -> dict[str, float]:
        """For the joint target with the fewest pairs whose rounding is below the tolerance as well."""
        if self.target == "own":
            return self._own_temperatures(tolerance)
        most = MOST_PAIRS if self._pairs is None else self._pairs
        found: dict[str, float] = {}
        for pairs in range(self._pairs or 1, most + 1):
            self.pairs = pairs
            self.temperatures = found = self._joint_temperatures(tolerance)
            if all([math.isfinite(value) for value in found.values()]) and self._rounding() <= tolerance:
                break
        return found

    def _own_temperatures(self, tolerance: float) -> dict[str, float]:
        found, overlap = super()._temperatures(tolerance), self.task_class.overlap
        assert overlap is not None
        filters = bounds.causal_filters(found["c"], found["c_field"], overlap, self.tokens)
        return found | dict(zip(("gamma_q", "gamma_beta"), map(float, filters), strict=True))

    def _field_margins(self, tolerance: float, reach: float) -> tuple[Any, ...]:
        return bounds.causal_queries_field_margins(tolerance, reach, self.task_class.responses)

    def _joint_temperatures(self, tolerance: float) -> dict[str, float]:
        kind = self.task_class
        assert kind.overlap is not None
        tolerance = min(tolerance, kind.queries * self.longest)  # which is met by doing nothing
        if tolerance / (kind.queries * kind.responses * self.longest) * bounds.unit_roundoff(self.dtype) ** 4 == 0:
            return dict.fromkeys(self.temperature_names, math.inf)
        sizes = (kind.queries, kind.responses, self.longest)
        once, strength, part = bounds.joint_causal_shares(tolerance, *sizes)
        found = self._own_temperatures(once)
        small = min(1.0, bounds.sink_spacing(part, self.pairs))
        return found | {
            "gamma_p": bounds.fetch_filter(strength, kind.overlap, self.tokens),
            "kappa": strength,
            "epsilon": small,
            "lambda": bounds.sink_logit(small, part, self.tokens, self.pairs),
        }

    # --- what is promised

    def _filtered(self, filter_name: str, needed: float) -> bool:
        """Whether γ(1−ρ) is at least what is needed, but for the rounding of the closed form."""
        assert self.task_class.overlap is not None
        apart = self.temperatures[filter_name] * (1 - self.task_class.overlap)
        return apart >= needed * (1 - 4 * sys.float_info.epsilon)

    def _holds(self) -> bool:
        """Whether the hypotheses of the theorem hold, in floating point, for the own steps."""
        kind, t = self.task_class, self.temperatures
        if not (self.margin > 0 and self.field_margin >= 0):
            return False
        logs = math.log(self.tokens)
        if not (self._filtered("gamma_q", t["c"] + logs) and self._filtered("gamma_beta", t["c_field"] + logs)):
            return False
        slip = bounds.causal_queries_slip(self.dtype, self.margin, self._selecting_logit, self.tokens + 1, kind.dim_x)
        return bounds.causal_queries_hold((t["c"], t["c_field"]), self.margin, slip, kind.responses)

    def _own_error(self) -> float:
        if not self._holds():
            return math.inf
        kind, mask = self.task_class, self.temperatures["c_field"]
        return float(bounds.causal_queries_error(self.longest, self.margin, self.field_margin, mask, kind.responses))

    def _fetch_error(self) -> float:
        strength = self.temperatures["kappa"]
        needed = strength * self.tokens + math.log(self.tokens)
        if not (strength >= math.log(7 / 3) and self._filtered("gamma_p", needed)):
            return math.inf
        return float(bounds.fetch_error(self.longest, self._own_error(), strength))

    def _exact_error(self) -> float:
        error = self._own_error()
        if self.target == "own" or error == math.inf:
            return error
        kind, t, fetched = self.task_class, self.temperatures, self._fetch_error()
        if fetched == math.inf:
            return math.inf
        sink = bounds.sink_error(t["epsilon"], t["lambda"], self.tokens, self.pairs)
        return float(bounds.joint_causal_error(kind.queries, kind.responses, self.longest, error, fetched, sink))

    def _rounding(self) -> float:
        kind, t, unit = self.task_class, self.temperatures, bounds.unit_roundoff(self.dtype)
        if not self._holds():
            return math.inf
        own = bounds.causal_queries_rounding(
            self.dtype,
            self.eta,
            self.margin,
            self._selecting_logit,
            self.field_margin,
            t["c_field"],
            self._field_logit,
            self.tokens + 1,
            kind.responses,
            kind.dim_x,
            kind.dim_y,
            kind.radius,
        )
        own += self._radius_rounding(self.reach)
        if self.target == "own":
            return own + self._query_rounding + (kind.radius + self.longest) * unit
        error, fetched = self._own_error(), self._fetch_error()
        if math.inf in (error, fetched):
            return math.inf
        joint = bounds.joint_causal_rounding(
            self.dtype,
            kind.queries,
            kind.responses,
            self.longest,
            error,
            fetched,
            own,
            t["kappa"],
            self._fetch_logit,
            t["epsilon"],
            t["lambda"],
            self.pairs,
            kind.dim_x,
        )
        return joint + (kind.radius + kind.queries * self.longest) * unit

    @property
    def _selecting_logit(self) -> float:
        return self.temperatures["gamma_q"] + super()._selecting_logit

    @property
    def _field_logit(self) -> float:
        return self.temperatures["gamma_beta"] + self.reach * self.reach + 2 * self.temperatures["c_field"]

    @property
    def _fetch_logit(self) -> float:
        return self.temperatures["gamma_p"] + 2 * self.temperatures["kappa"] * (self.tokens + 1)

    def _largest_logits(self) -> dict[str, float]:
        t, (selecting, weighing) = self.temperatures, super()._largest_logits().items()
        found = {
            f"γ_q + {selecting[0]}": t["gamma_q"] + selecting[1],
            f"γ_β + {weighing[0]}": t["gamma_beta"] + weighing[1],
        }
        return found | ({"γ_p + 2κ(n+1)": self._fetch_logit} if self.target == "joint" else {})

    def _pair_values(self) -> dict[str, float]:
        return pair_values(self.temperatures, 2 * self.longest, self.pairs) if self.target == "joint" else {}

    # --- the transformer

    def _numbers(self) -> dict[Any, Any]:
        kind, t = self.task_class, self.temperatures
        found = super()._numbers() | {M: kind.queries, gamma_q: t["gamma_q"], gamma_beta: t["gamma_beta"]}
        if self.target == "own":
            return found
        if t["epsilon"] == 0 or t["lambda"] > 600:
            raise ValueError(f"temperatures: {t}, expected epsilon > 0 and lambda ≤ 600")
        found |= {gamma_p: t["gamma_p"], kappa: t["kappa"], epsilon: t["epsilon"], lambda_: t["lambda"]}
        return found | {scale: sink_scale(t, self.dtype)}

    def symbolic(self) -> SymbolicTransformer:
        """N−1 blocks for this N, then those of the joint target; symbols for sizes, temperatures and all parameters."""
        blocks, given = (own,) * (self.task_class.responses - 1), {"one": 1, "m": 0, "u": 0}
        rows = own_stream.rows
        if self.target == "joint":
            blocks += (fetching, coupling(self.pairs))
            rows, given = stream.rows, given | {"before": 0, "joint": 0}
        if self.positions == "given":
            return SymbolicTransformer(Stream(**rows), blocks, given)
        return SymbolicTransformer(Stream(**rows, z=1), derived.blocks(n) + blocks, given | {"p": 0, "z": 0})
