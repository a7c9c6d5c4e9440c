"""Twin of ``proofs/CausalClass.v``: one block for a class of inputs makes the step of every prefix."""

from collections.abc import Iterator

import torch

from icalign import bounds
from icalign.constructions import Causal
from icalign.tasks import AlignmentTask

from . import Draw, Outcome, at_most, given, twin
from .choices import inputs, spread_of, step_size, tolerance, unit
from .prompts import ranks, spaced, step_by_autograd


@twin
def causal_theorem_class(draw: Draw, broken: bool) -> Iterator[Outcome]:
    """N − 1 of the block for a class and a tolerance make every prefix's step to within the tolerance.

    For N ≥ 2, η > 0; the block is that of the package, which leaves half of the tolerance for rounding. Broken: the
    mask of its field head is made without the spread of the scores.
    """
    W, gap, found = inputs(draw, least=2)
    low, high = min([float(it.r.min()) for it in found]), max([float(it.r.max()) for it in found])
    radius = max([float(it.y.norm(dim=-1).max()) for it in found])
    eta = step_size(draw) or 0.5
    kind = {"W": W, "eta": eta, "responses": len(found[0].r), "min_gap": gap, "reward_range": (low, high)}
    reach = 4 * eta * (len(found[0].r) - 1) * radius
    construction = Causal(**kind, radius=radius, tolerance=(tol := tolerance(draw, reach)))
    if broken:
        weaker = construction.temperatures["c_field"] - bounds.score_spread(construction.norm, radius)
        construction = Causal(**kind, radius=radius, temperatures=construction.temperatures | {"c_field": weaker})
    given(eta > 0, gap > 0, tol > 0, spread_of(torch.tensor([low, high])) >= 0)
    for it in found:
        given(unit(it.x), it.y.norm(dim=-1) <= radius, low <= it.r, it.r <= high, spaced(gap, it.r))
        task = AlignmentTask(it.x[None], it.y[None], it.r[None], W)
        update = construction.update(task)[0]
        for i in range(len(it.r)):
            places = it.r[: i + 1].argsort(descending=True)
            given(ranks(it.r[: i + 1], places))
            yield at_most((update[i] - step_by_autograd(W, it.x, it.y[: i + 1], places, eta)).norm(), tol)
