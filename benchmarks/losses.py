"""Batched online Plackett–Luce losses and gradient steps against one autograd pass for each prefix of each task.

Run `python benchmarks/losses.py`. The sides compute the same two things, the loss and the step ΔW of every prefix, from
the same float64 task; they alternate on one thread, and medians are compared.
"""

import resource
import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor

from icalign import (
    AlignmentTask,
    gradient_step,
    online_gradient_steps,
    online_plackett_luce_nll,
    sample_task,
    scores,
)

ETA = 0.1
REPETITIONS = 5
BATCHED_RUNS = 9  # the batched side is short: several runs for each run of the loop

Losses = tuple[Tensor, Tensor]


def batched(task: AlignmentTask) -> Losses:
    return online_plackett_luce_nll(scores(task), task.r), online_gradient_steps(task, ETA)


def loop(task: AlignmentTask, loss: Callable[[Tensor], Tensor]) -> Losses:
    losses, steps = [], []
    for x, y, r in zip(task.x[:, 0], task.y[:, 0], task.r[:, 0], strict=True):
        for t in range(1, task.responses + 1):
            W = task.W.detach().requires_grad_()
            s = -(W @ x - y[:t]).square().sum(-1)
            prefix_loss = loss(s[r[:t].argsort(descending=True)])
            (gradient,) = torch.autograd.grad(prefix_loss, W)
            losses.append(prefix_loss.detach())
            steps.append(-ETA * gradient)
    return torch.stack(losses).view_as(task.r), torch.stack(steps).view(*task.r.shape, task.dim_y, task.dim_x)


def place_by_place(ranked: Tensor) -> Tensor:
    """The loss as the formula reads: one logsumexp for each place."""
    return torch.stack([ranked[k:].logsumexp(0) - ranked[k] for k in range(len(ranked))]).sum()


def cumulative(ranked: Tensor) -> Tensor:
    """The fastest loss of one prefix that torch offers."""
    return (ranked.flip(0).logcumsumexp(0).flip(0) - ranked).sum()


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def peak_mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def speed() -> None:
    task = sample_task(batch=(256,), responses=20, dim_x=5, dim_y=5, min_gap=0.01)
    print("256 tasks × 20 responses × d = 5, float64: loss and gradient step of every prefix")
    sides: dict[str, Callable[[], Losses]] = {
        "batched": lambda: batched(task),
        "loop, place by place": lambda: loop(task, place_by_place),
        "loop, logcumsumexp": lambda: loop(task, cumulative),
    }
    results = {name: side() for name, side in sides.items()}  # also warms up
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(REPETITIONS):
        for name, side in sides.items():
            times[name] += [seconds(side) for _ in range(BATCHED_RUNS if name == "batched" else 1)]
    medians = {name: median(values) for name, values in times.items()}
    for name, value in medians.items():
        print(f"  {name:<22}{1000 * value:10.2f} ms" + f"{value / medians['batched']:8.0f} ×")
    for name, result in list(results.items())[1:]:
        loss, step = ((a - b).abs().max().item() for a, b in zip(results["batched"], result, strict=True))
        print(f"  largest difference to {name}: loss {loss:.1e}, step {step:.1e}")
    ratio = min(medians["loop, place by place"], medians["loop, logcumsumexp"]) / medians["batched"]
    print(f"  goal, at least 100 × against either loop: {'met' if ratio >= 100 else 'MISSED'} ({ratio:.0f} ×)")


def large() -> None:
    """One task of 2048 responses. It comes first, for the peak memory of a process never falls."""
    task = sample_task(responses=2048, dim_x=5, dim_y=5, min_gap=1e-5)
    s = scores(task)
    gradient_step(task, ETA)
    before, unit = peak_mebibytes(), 2048**2 * 8 / 2**20
    print(f"1 task × 2048 responses × d = 5, float64; one N × N matrix is {unit:.0f} MiB")
    runs: dict[str, Callable[[], object]] = {
        "online loss": lambda: online_plackett_luce_nll(s, task.r),
        "online gradient steps": lambda: online_gradient_steps(task, ETA),
        "online loss, backward": lambda: torch.autograd.grad(
            online_plackett_luce_nll(s.requires_grad_(), task.r).sum(), s
        ),
    }
    for name, run in runs.items():
        duration = median(seconds(run) for _ in range(3))
        extra = peak_mebibytes() - before
        print(
            f"  {name:<22}{duration:10.2f} s   peak so far {extra:5.0f} MiB above the start, {extra / unit:4.1f} N × N"
        )


if __name__ == "__main__":
    torch.set_num_threads(1)
    large()
    speed()
