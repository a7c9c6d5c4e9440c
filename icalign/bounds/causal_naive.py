r"""Chapter 9: the construction without positions, run under a causal mask."""

from __future__ import annotations

from typing import Any

import torch

from .block import flag_rounding
from .elementary import exp, log, share, unit_roundoff
from .selection import attention_rounding, crowd


def sure_elimination(gap: Any, spread: Any, responses: Any) -> Any:
    r"""γ = log(4(N−1)R/Δ)/Δ: from here on |r⁺ − m| ≤ Δ/4, whatever is flagged (claim ``naive-causal-patience``).

    N−1 others, each γΔ or more behind the best live response, move r⁺ by at most R(N−1)e^{−γΔ}.

    Args:
        gap: Δ.
        spread: R.
        responses: N ≥ 2.
    """
    return log(4 * (responses - 1) * spread / gap) / gap


def causal_naive_error(
    eta: Any, gamma: Any, mask: Any, gap: Any, score_spread: Any, tokens: Any, rounds: Any, distance: Any
) -> Any:
    r"""How far u is from its hard limit at a position that sees t tokens (claim ``naive-causal-fails``).

    .. math:: 2ηDn \left( \frac{q}{1+q} + \frac{p}{1+p} \right), \quad q = (t-1)e^{-γΔ}, \quad p = (t-1)e^{-(C-R_Z)}

    Args:
        eta: η.
        gamma: γ.
        mask: C, by which the flag lowers a score.
        gap: Δ.
        score_spread: R_Z.
        tokens: t.
        rounds: n, the number of blocks.
        distance: D.
    """
    flagged = (tokens - 1) * exp(score_spread - mask)
    return 2 * eta * distance * rounds * (share(crowd(gamma, gap, tokens)) + share(flagged))


def causal_naive_rounding(
    dtype: torch.dtype,
    eta: float,
    gamma: float,
    mask: float,
    gap: float,
    spread: float,
    largest_reward: float,
    tokens: int,
    rounds: int,
    dim_x: int,
    dim_y: int,
    reach: float,
    radius: float,
) -> float:
    r"""How far the accumulator of that many blocks, and its hard limit, can be off in floating point.

    A flag may be off by φ, :func:`flag_rounding`, in units of ε₀ as much as logits larger by the factor 1 + φ/ε₀. The
    selecting head has logits, sums of two products, of at most 2γ(max|r| + 2(R + Δ)); those of the other, and the
    scores of the hard limit, are at most reach² + C and lose (d_x + d_y + 6)ε₀ of their size. Both are then covered by
    :func:`attention_rounding`. Values 2ηy are rounded twice, and u, at most 4ηn·radius after n rounds, is added to
    twice a round: (8ηn + 2n(4ηn + 2η))·radius·ε₀, and once more for the hard limit.
    """
    unit = unit_roundoff(dtype)
    flags = 1 + flag_rounding(dtype, largest_reward, gap) / unit
    selecting = 2 * gamma * (largest_reward + 2 * (spread + gap)) * flags
    weighing = (dim_x + dim_y + 6) * (reach * reach + mask) * flags
    heads = sum([attention_rounding(dtype, logit, tokens, radius) for logit in (selecting, weighing)])
    adding = 8 * eta * rounds + 2 * rounds * (4 * eta * rounds + 2 * eta)
    return 2 * (2 * eta * rounds * heads + adding * radius * unit)
