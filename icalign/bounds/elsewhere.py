r"""Chapter 14: rankings with noise, losses of the first places, and direct preference optimisation."""

from __future__ import annotations

from typing import Any

import sympy as sp

from .elementary import share
from .plackett_luce import field_crowd, winner_crowd


def noise_shift(eta: Any, distance: Any, swaps: Any, responses: Any) -> Any:
    r"""2ηD·min(K, N−1) ≥ ‖ΔW_τ x − ΔW_τ′ x‖ for rankings at Kendall distance K (claim ``noise-kendall``).

    Args:
        eta: η.
        distance: D, the largest distance between two responses.
        swaps: K ≥ 0.
        responses: N ≥ 2.

    Raises:
        ValueError: K or N is a number below that.
    """
    for name, value, least in (("swaps", swaps, 0), ("responses", responses, 2)):
        if not isinstance(value, sp.Basic) and value < least:
            raise ValueError(f"{name}: {value}, expected at least {least}")
    symbolic = any([isinstance(value, sp.Basic) for value in (swaps, responses)])
    return 2 * eta * distance * (sp.Min if symbolic else min)(swaps, responses - 1)


def top_error(
    eta: Any,
    gamma: Any,
    mask: Any,
    gap: Any,
    spread: Any,
    score_spread: Any,
    responses: Any,
    places: Any,
    distance: Any,
) -> Any:
    r"""2ηD Σ_{k=1}^{K} [q_k/(1+q_k) + p_k/(1+p_k)]: the error of K blocks (claim ``partial-sums``).

    Args:
        eta: η.
        gamma: γ, at least log 5/Δ.
        mask: C, by which the flag lowers a score.
        gap: Δ.
        spread: R.
        score_spread: R_Z.
        responses: N.
        places: K, from 1 to N−1.
        distance: D, or the class's D₀.

    Raises:
        ValueError: K is out of this range.
    """
    if not 1 <= places < responses:
        raise ValueError(f"places: {places} of {responses} responses, expected 1 to {responses - 1}")
    winners = [share(winner_crowd(gamma, gap, spread, responses, k)) for k in range(1, places + 1)]
    fields = [share(field_crowd(mask, score_spread, responses, k)) for k in range(1, places + 1)]
    return 2 * eta * distance * sum([*winners, *fields])


def direct_spread(beta: Any, norm: Any, radius: Any) -> Any:
    r"""4β‖W − W_ref‖·radius ≥ max − min of the logits 2β⟨(W − W_ref)x, y⟩ (claim ``dpo-needs-no-square``).

    For a unit query x; attained where x is the first right singular vector of W − W_ref, at y = ±radius·e with e the
    direction of (W − W_ref)x.

    Args:
        beta: β, the inverse temperature of the implicit reward.
        norm: ‖W − W_ref‖₂.
        radius: a bound on ‖y‖.
    """
    return 4 * beta * norm * radius
