"""Transformers with hand-set weights: time per token-block beside the bare matrix products, and beside autograd.

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
from icalign.constructions import PlackettLuce
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


def by_autograd(task: icalign.AlignmentTask) -> Tensor:
    """ΔW x from autograd through the loss."""
    W = task.W.expand(*task.batch, -1, -1).clone().requires_grad_()
    s = -(torch.einsum("...yx,...mx->...my", W, task.x)[..., None, :] - task.y).square().sum(-1)
    (gradient,) = torch.autograd.grad(icalign.plackett_luce_nll(s, task.r).sum(), W)
    return -ETA * torch.einsum("...yx,...mx->...my", gradient, task.x)[..., None, :]


def whole_step(responses: int, dim: int, batch: int) -> None:
    """One gradient step of a batch: N−1 blocks, the same number of bare products, autograd."""
    kind = {"responses": responses, "min_gap": 1.0 / responses, "reward_range": (0.0, 2.0), "radius": 3.0}
    task = icalign.sample_task((batch,), dim_x=dim, dim_y=dim, **kind)
    construction = PlackettLuce(W=task.W, eta=ETA, tolerance=1e-6, **kind)
    X = construction.embed(task)
    block = construction.transformer.blocks[0]
    assert isinstance(block, TransformerBlock)
    times = medians(
        {
            "one block": lambda: block(X),
            "bare products of one block": lambda: products(block, X),
            "autograd step": lambda: by_autograd(task),
        }
    )
    start = time.perf_counter()
    error = (construction.update(task) - by_autograd(task)).norm(dim=-1).max().item()
    forward = time.perf_counter() - start
    tokens = batch * responses
    ratio = times["one block"] / times["bare products of one block"]
    print(f"N = {responses}, d = {dim}, batch {batch}, float64")
    for name in ("one block", "bare products of one block"):
        print(f"  {name:<28}{1e6 * times[name] / tokens:10.2f} µs a token-block")
    print(f"  ratio {ratio:.2f} (goal: at most 3: {'met' if ratio <= 3 else 'MISSED'})")
    print(
        f"  forward pass, {responses - 1} blocks {forward:8.2f} s, {forward / times['autograd step']:.0f} × one autograd step"
    )
    print(f"  error {error:.1e}, promised {construction.error_bound:.1e}; peak so far {peak_gibibytes():.2f} GiB")


if __name__ == "__main__":
    torch.set_num_threads(1)
    whole_step(256, 16, 8)
    whole_step(64, 16, 32)
    whole_step(16, 8, 256)
