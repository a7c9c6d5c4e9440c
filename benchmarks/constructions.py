"""Transformers with hand-set weights: time per token-block beside bare matrix products, and beside the exact step.

Run `python benchmarks/constructions.py`. The sides alternate on one thread and medians are compared. The bare products
have the shapes of one block and nothing else: queries, keys, values, logits, weights times values, and the two layers.
"""

import resource
import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor

import icalign
from icalign.constructions import Causal, MultiQuery, PlackettLuce
from icalign.constructions.gradient import GradientStep
from icalign.transformer import TransformerBlock

ETA = 0.1
REPETITIONS = 9


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def medians(sides: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median seconds of each side; the sides take turns."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for side in sides.values():
        side()
    for _ in range(REPETITIONS):
        for name, side in sides.items():
            times[name].append(seconds(side))
    return {name: median(values) for name, values in times.items()}


def peak_gibibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def products(block: TransformerBlock, X: Tensor) -> Tensor:
    """The matrix products of one block, without softmax, ReLU, masks and sums."""
    out = X
    for head in block.attention_heads():
        queries, keys, values = X @ head.query.T, X @ head.key.T, X @ head.value.T
        out = (queries @ keys.mT) @ values
    if block.feed_forward is not None:
        out = (X @ block.feed_forward.first.T) @ block.feed_forward.second.T
    return out


def exact_update(task: icalign.AlignmentTask) -> Tensor:
    """ΔW x at every token, ΔW of the loss summed over queries, from autograd."""
    W = task.W.expand(*task.batch, -1, -1).clone().requires_grad_()
    s = -(torch.einsum("...yx,...mx->...my", W, task.x)[..., None, :] - task.y).square().sum(-1)
    (gradient,) = torch.autograd.grad(icalign.plackett_luce_nll(s, task.r).sum(), W)
    return -ETA * torch.einsum("...yx,...mx->...my", gradient, task.x)[..., None, :]


def online_update(task: icalign.AlignmentTask) -> Tensor:
    """ΔW x of every prefix at its last token, in closed form."""
    return torch.einsum("...nyx,...mx->...mny", icalign.online_gradient_steps(task, ETA)[..., 0, :, :, :], task.x)


def compare(
    construction: GradientStep, task: icalign.AlignmentTask, exact: Callable[[icalign.AlignmentTask], Tensor]
) -> None:
    """One block beside its bare products, then the whole forward pass beside the step that it makes."""
    X = construction.embed(task)
    block = construction.transformer.blocks[-2]
    assert isinstance(block, TransformerBlock)
    times = medians(
        {
            "one block": lambda: block(X),
            "bare products of one block": lambda: products(block, X),
            "the exact step": lambda: exact(task),
        }
    )
    start = time.perf_counter()
    found = construction.update(task)
    forward = time.perf_counter() - start
    tokens = X.shape[:-1].numel()
    ratio = times["one block"] / times["bare products of one block"]
    kind = task.batch[0], task.queries, task.responses, task.dim_x
    print("{} · batch {}, M = {}, N = {}, d = {}".format(type(construction).__name__, *kind))
    for name in ("one block", "bare products of one block"):
        print(f"  {name:<28}{1e6 * times[name] / tokens:10.2f} µs a token")
    print(f"  ratio {ratio:.2f} (goal: at most 3: {'met' if ratio <= 3 else 'MISSED'})")
    blocks = len(construction.transformer.blocks)
    print(f"  {blocks} blocks {forward:20.2f} s, {forward / times['the exact step']:.0f} × the exact step")
    error = (found - exact(task)).norm(dim=-1).max().item()
    print(f"  error {error:.1e}, promised {construction.error_bound:.1e}; peak so far {peak_gibibytes():.2f} GiB")


def single(responses: int, dim: int, batch: int) -> None:
    kind = {"responses": responses, "min_gap": 1.0 / responses}
    task = icalign.sample_task((batch,), dim_x=dim, dim_y=dim, **kind)
    compare(PlackettLuce(W=task.W, eta=ETA, tolerance=1e-6, **kind), task, exact_update)


def several(queries: int, responses: int, dim: int, batch: int) -> None:
    kind = {"queries": queries, "responses": responses, "min_gap": 1.0 / responses, "overlap": 0.8}
    task = icalign.sample_task((batch,), dim_x=dim, dim_y=dim, **kind)
    compare(MultiQuery(W=task.W, eta=ETA, tolerance=1e-4, **kind), task, exact_update)


def causal(responses: int, dim: int, batch: int) -> None:
    kind = {"responses": responses, "min_gap": 1.0 / responses}
    task = icalign.sample_task((batch,), dim_x=dim, dim_y=dim, **kind)
    compare(Causal(W=task.W, eta=ETA, tolerance=1e-6, **kind), task, online_update)


if __name__ == "__main__":
    torch.set_num_threads(1)
    single(256, 16, 8)
    single(16, 8, 256)
    several(32, 32, 16, 2)
    for length in (32, 64, 128):
        causal(length, 16, 4)
