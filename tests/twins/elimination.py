"""Twins of ``proofs/Elimination.v``: the layer eliminates exactly the winner, and two heads suffice."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from icalign import bounds, symbols
from icalign.constructions import elimination
from icalign.spec import Block, Head
from icalign.transformer import Transformer, TransformerBlock

from . import Draw, Outcome, at_most, equal, given, holds, rounding, twin
from .block import arbitrary, attention, numbers
from .prompts import field_count, gap_drawn, logits, mask, on_grid, reach, responses, softmax_count, weights

i, j = elimination.stream.tokens
SAME_LOGIT = symbols.gamma * i.one * (j.r - 2 * (elimination.R + symbols.Delta) * j.flag)
select = Head(logit=SAME_LOGIT, write={"u": 2 * symbols.eta * j.y})
fetch = Head(logit=SAME_LOGIT, write={"top": j.r})


# The layer


def fed(draw: Draw, gap: float, weight: float, **content: Tensor | float) -> tuple[dict[str, Tensor], float]:
    """Rows flag and top of tokens that hold this after the layer with Δ and B, and its rounding; the rest is drawn."""
    values = {symbols.d_x: draw.integer(1, 4), symbols.d_y: draw.integer(1, 4)}
    values |= {symbols.Delta: gap, elimination.B: weight}
    X, rows = arbitrary(draw, values, max(len(torch.as_tensor(value).flatten()) for value in content.values()))
    for name, value in content.items():
        X[:, rows[name]] = torch.as_tensor(value, dtype=torch.float64).reshape(-1, 1)
    out = Transformer((Block(feed_forward=elimination.eliminate),), elimination.stream, values)(X)
    r, top, flag = [X[:, rows[name]] for name in ("r", "top", "flag")]
    # twice a coefficient, three products, three sums; their difference, added to the flag
    allowed = rounding(16, 2 * (r.abs() + top.abs()) / abs(gap), weight * flag, flag, 3 / 2)
    return {name: out[:, rows[name]][:, 0] for name in ("flag", "top")}, allowed


def within(draw: Draw, largest: float) -> Tensor:
    """Numbers of that size at most, both ends among them; on the grid, if the largest is."""
    inside = on_grid(draw.uniform(-largest, largest, 6))
    return torch.cat([torch.tensor([-largest, largest]), inside.clamp(-largest, largest)])


@twin
def elimination_step_winner(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A flag of 0 becomes 1 if |top − r| ≤ Δ/4. Broken: if |top − r| ≤ Δ/2."""
    gap, r = gap_drawn(draw), on_grid(draw.uniform(-1, 1, 8))
    top, near = r + within(draw, gap / 4) * (2 if broken else 1), gap / (2 if broken else 4)
    given(gap > 0, (top - r).abs() <= near)
    found, allowed = fed(draw, gap, draw.number(-5, 5), flag=0.0, r=r, top=top)
    yield equal(found["flag"], 1.0, allowed)


@twin
def elimination_step_others(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A flag of 0 stays 0 if |top − m| ≤ Δ/4 and r + Δ ≤ m. Broken: if r + Δ/2 ≤ m."""
    gap, m = gap_drawn(draw), on_grid(draw.uniform(-1, 1, 8))
    behind = gap / (2 if broken else 1)
    r = m - behind - on_grid(draw.uniform(0, 2, 8)) * (torch.arange(8) % 3 > 0)
    top = m + within(draw, gap / 4)
    given(gap > 0, (top - m).abs() <= gap / 4, r + behind <= m)
    found, allowed = fed(draw, gap, draw.number(-5, 5), flag=0.0, r=r, top=top)
    yield equal(found["flag"], 0.0, allowed)


def ranged(draw: Draw) -> tuple[dict[Any, Any], Tensor, dict[str, slice], float]:
    """Tokens of any content, but for rewards from low to low + spread and an empty row top; weights, and low.

    Every second time the lowest reward alone has no flag, and r⁺ is nearly that.
    """
    values, n = numbers(draw), responses(draw)
    X, rows = arbitrary(draw, values, n)
    low, spread = float(on_grid(draw.uniform(-1, 1))), gap_drawn(draw)
    r = low + on_grid(draw.uniform(0, spread, n)).clamp(0, spread)
    r[0], r[-1] = low, low + spread
    X[:, rows["r"]], X[:, rows["top"]], values[elimination.R] = r[:, None], 0, spread
    if draw.seed % 2:
        X[:, rows["one"]], X[:, rows["flag"]] = 1, 9 * (r[:, None] > low)
        values |= {symbols.gamma: 3.0, symbols.Delta: 1.0}
    return values, X, rows, low


@twin
def elimination_step_mean(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The heads put Σ_l A_il r_l into an empty row top, a mean: r_j less that is at most the spread.

    For all tokens i, j of any content, if all rewards lie within the spread. Broken: half of it.
    """
    values, X, rows, low = ranged(draw)
    r, spread, n = X[:, rows["r"]][:, 0], values[elimination.R], len(X)
    given(low <= r, r <= low + spread, X[:, rows["top"]] == 0)
    seen = torch.ones(n, n, dtype=torch.bool)
    head = attention(elimination.winner, values)
    A = head.weights(X, seen)
    top = block_of(values, seen, elimination.winner, elimination.field).attend(X)[:, rows["top"]]
    count = softmax_count(n, reach(head, X), 5) + n + 2  # a logit: two coefficients, products, a sum
    yield at_most(0.0, A)
    yield equal(A.sum(-1), 1.0, rounding(count, 1))
    yield equal(top, (A @ r)[:, None], rounding(n + 2, r))
    yield at_most(r - top, (0.5 if broken else 1) * spread, rounding(count, r))


@twin
def elimination_step_flagged(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A block leaves a flag of 1, B ≥ 3/2 + 2·spread/Δ, rewards within the spread. Broken: B ≥ 2·spread/Δ."""
    values, X, rows, low = ranged(draw)
    gap, spread, n = abs(values[symbols.Delta]), values[elimination.R], len(X)
    least = bounds.elimination_mask(gap, spread) - (1.5 if broken else 0.0)
    weight = least + draw.integer(0, 2) // 2 * draw.number(0, 2)
    values |= {symbols.Delta: gap, elimination.B: weight}
    i, r = draw.integer(0, n - 1) if draw.seed % 2 == 0 else n - 1, X[:, rows["r"]]
    X[i, rows["flag"]] = 1
    given(gap > 0, least <= weight, low <= r, r <= low + spread, X[i, rows["top"]] == 0, X[i, rows["flag"]] == 1)
    seen = torch.ones(n, n, dtype=torch.bool)
    flag = block_of(values, seen, elimination.winner, elimination.field)(X)[i, rows["flag"]]
    count = softmax_count(n, reach(attention(elimination.winner, values), X), 5) + n + 18
    yield equal(flag, 1.0, rounding(count, 4 * r.abs().max() / gap, weight, 3 / 2))


@twin
def elimination_step_mean_needed(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Without r − top ≤ spread, at the least B: the flag 1 becomes 3/2 where top = m − Δ/4 and r = m + spread.

    The witness of the proof. Broken: the flag stays 1.
    """
    gap, spread, m = gap_drawn(draw), gap_drawn(draw, -0.5, 3), float(on_grid(draw.uniform(-1, 1)))
    given(gap > 0)
    top, r = m - gap / 4, m + spread
    found, allowed = fed(draw, gap, bounds.elimination_mask(gap, spread), flag=1.0, top=top, r=r)
    yield holds(abs(top - m) <= gap / 4)
    yield holds(r <= m + spread)
    yield equal(found["flag"], 1.0 if broken else 1.5, allowed)


@twin
def elimination_step_reset(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The row top becomes 0, whatever the token, Δ ≠ 0 and B are. Broken: what was negative stays.

    The theorem has Δ = 0 as well, where its 2/Δ is 0; torch has no such weights.
    """
    top, gap = draw.normal(8), draw.number(0.1, 2) * (-1) ** draw.integer(0, 1)
    found, _ = fed(draw, gap, draw.number(-5, 5), top=top)
    yield equal(found["top"], top.clamp(max=0) if broken else 0.0)


@twin
def elimination_step_behind(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """An eliminated token's logit is γ(spread + 2Δ) or more below a live one's, γ ≥ 0. Broken: 2γ(spread + Δ).

    If token i holds 1, and the eliminated reward is ahead by the spread at most; with = if by the spread.
    """
    values, n = numbers(draw), responses(draw, 2)
    (X, rows), asks = arbitrary(draw, values, n), draw.integer(0, n - 1)
    gamma, spread, gap = abs(values[symbols.gamma]) * min(1, draw.integer(0, 4)), gap_drawn(draw), gap_drawn(draw, -1)
    values |= {symbols.gamma: gamma, symbols.Delta: gap, elimination.R: spread}
    r, out = on_grid(draw.uniform(0, spread, n)).clamp(0, spread), torch.arange(n) >= draw.integer(1, n - 1)
    r[0], r[-1] = 0, spread
    r, out = (r + on_grid(draw.uniform(-1, 1)))[order := draw.permutation(n)], out[order]
    X[:, rows["r"]], X[:, rows["flag"]] = r[:, None], out.double()[:, None]
    X[asks, rows["one"]] = 1
    given(gamma >= 0, X[asks, rows["one"]] == 1, r[out][:, None] - r[~out] <= spread)
    z = logits(attention(elimination.winner, values), X)[asks]
    lead = gamma * (2 * (spread + gap) if broken else spread + 2 * gap)
    allowed = rounding(14, gamma * (r.abs() + 2 * abs(spread + gap) + abs(gap)))  # five a logit, four for the lead
    yield at_most(z[out][:, None] + lead, z[~out], allowed)


@twin
def elimination_needs_gap_runner_up(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A flag of 0 at r = top − Δ₁ becomes 3/2 − 2Δ₁/Δ, clipped to [0, 1]. Broken: 3/2 − Δ₁/Δ."""
    gap, behind = gap_drawn(draw), on_grid(draw.uniform(-1, 3, 8))
    top = on_grid(draw.uniform(-1, 1, 8))
    given(gap > 0, top - (top - behind) == behind)
    found, allowed = fed(draw, gap, draw.number(-5, 5), flag=0.0, top=top, r=top - behind)
    yield equal(found["flag"], (1.5 - (1 if broken else 2) * behind / gap).clamp(0, 1), allowed)


@twin
def elimination_needs_gap_either(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """A flag of 0 rises iff m − r < ¾Δ + (m − top). Broken: iff m − r < ¾Δ.

    Δ is a power of two and all else on a grid, so that nothing is rounded; tokens at the edge are among them.
    """
    gap, m, top = 2.0 ** draw.integer(-3, 2), *on_grid(draw.uniform(-1, 1, 2, 8))
    r = top - 3 / 4 * gap + on_grid(draw.uniform(-1, 1, 8)) * (torch.arange(8) % 3 > 0)
    given(gap > 0)
    found, _ = fed(draw, gap, draw.number(-5, 5), flag=0.0, top=top, r=r)
    yield holds((found["flag"] > 0) == (m - r < 3 / 4 * gap + (0 if broken else m - top)))


# Two heads suffice


def block_of(values: Mapping[Any, Any], seen: Tensor, *heads: Head) -> TransformerBlock:
    """Heads and the layer that eliminates, as torch runs them, but under any mask."""
    spec = Block(heads=heads, feed_forward=elimination.eliminate)
    (block,) = Transformer((spec,), elimination.stream, values).blocks
    block.visible = lambda _: seen
    return block


@twin
def two_heads_suffice_same_weights(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The heads that select, that fetch r⁺, and that do both have the same weights, on any tokens, under any mask.

    Broken: the one that fetches does not read the flags.
    """
    values, n = numbers(draw), responses(draw)
    (X, _), seen = arbitrary(draw, values, n), mask(draw, n)
    blind = Head(logit=symbols.gamma * i.one * j.r, write=fetch.write)
    fetched = attention(blind if broken else fetch, values).weights(X, seen)
    yield equal(attention(select, values).weights(X, seen), fetched)
    yield equal(attention(elimination.winner, values).weights(X, seen), fetched)


@twin
def two_heads_suffice_field(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """The field head writes −2η Σ_j A_ij y_j to the row u, on any tokens, under any mask. Broken: without the 2.

    Every token sees one at least, as torch refuses a softmax over none.
    """
    values, n = numbers(draw), responses(draw)
    (X, rows), seen = arbitrary(draw, values, n), mask(draw, n)
    given(seen.any(-1))
    head, eta, W = attention(elimination.field, values), values[symbols.eta], values[symbols.W]
    expected = -(1 if broken else 2) * eta * weights(logits(head, X), seen) @ X[:, rows["y"]]
    count = 2 * softmax_count(n, reach(head, X), field_count(W)) + 2 * n + 6  # two weights and two sums of products
    yield equal(head(X, seen)[:, rows["u"]], expected, rounding(count, 2 * eta * X[:, rows["y"]]))


@twin
def two_heads_suffice_merged(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """Two heads and the layer make the same of any tokens, under any mask, as three and the layer.

    Broken: the three without the one that fetches r⁺.
    """
    values, n = numbers(draw), responses(draw)
    (X, rows), seen = arbitrary(draw, values, n), mask(draw, n)
    two = block_of(values, seen, elimination.winner, elimination.field)
    three = block_of(values, seen, select, *(() if broken else (fetch,)), elimination.field)
    # weights are the same; sums of n products in u and top, of which the layer makes 2/Δ times as much
    slope, size = max(1.0, 4 / abs(values[symbols.Delta])), 2 * (1 + abs(values[symbols.eta])) * X.abs().max()
    allowed = rounding(2 * n + 20, slope * size, values[elimination.B] * X[:, rows["flag"]], 3 / 2)
    yield equal(two(X), three(X), allowed)
