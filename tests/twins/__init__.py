"""Twins of the theorems in ``proofs/``: what each says, said again in torch about instances that are drawn.

A module a file of proofs (``alignment_task`` for ``AlignmentTask.v``), a function a theorem, with the theorem's name::

    @twin
    def selection_bound(draw: Draw, broken: bool) -> Iterator[Outcome]:
        ...
        given(gamma >= 0, ...)                                     # the hypotheses, which the instance must meet
        yield at_most(miss, (0.5 if broken else 1) * bound, ...)   # the conclusions

What the theorem calls attention or loss is computed here by ``icalign`` as it runs, by autograd, or by a sum over all
permutations: never by the formula on the other side of the sign. Where the theorem says equal, or the claim says sharp,
the twin says ``equal``. Asked to be ``broken``, a twin changes one thing (a constant, a sign, an index, a hypothesis)
and has to fail on one of the instances at least.
"""

from .twin import Draw, Outcome, at_most, below, equal, given, holds, rounding, twin

__all__ = ["Draw", "Outcome", "at_most", "below", "equal", "given", "holds", "rounding", "twin"]
