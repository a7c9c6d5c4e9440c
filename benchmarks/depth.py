"""Three attention layers beside N−1 blocks: forward time of the same gradient step, as a ratio of medians.

Run `python benchmarks/depth.py`. Both sides see the same task, float64, batch 1, on one thread, and take turns. Errors
are printed beside what was promised.
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch

import icalign
from icalign.constructions import ConstantDepth, PlackettLuce
from icalign.sizes import Sizes

ETA, TOLERANCE = 0.1, 1e-6
LENGTHS = (8, 16, 32, 64, 128, 256, 512)


def medians(sides: dict[str, Callable[[], object]], repetitions: int) -> dict[str, float]:
    """Median seconds of each side; the sides take turns."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for side in sides.values():
        side()
    for _ in range(repetitions):
        for name, side in sides.items():
            start = time.perf_counter()
            side()
            times[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in times.items()}


def main() -> None:
    """One line for each N."""
    torch.set_num_threads(1)
    W = icalign.sample_task(seed=3).W
    print(f"{'N':>4} {'N−1 blocks':>12} {'3 layers':>12} {'ratio':>8} {'layers':>11} {'width':>11}  errors (promised)")
    for responses in LENGTHS:
        kind: dict[str, Any] = {"responses": responses, "min_gap": 1 / responses}
        deep = PlackettLuce(W=W, eta=ETA, tolerance=TOLERANCE, **kind)
        flat = ConstantDepth(W=W, eta=ETA, tolerance=TOLERANCE, **kind)
        task = icalign.sample_task((1,), W=W, seed=responses, **kind)
        exact = (task.x @ icalign.gradient_step(task, ETA).mT)[..., None, :]
        prompts = deep.embed(task), flat.embed(task)
        took = medians(
            {
                "deep": partial(deep.transformer, prompts[0]),
                "flat": partial(flat.transformer, prompts[1]),
            },
            9 if responses <= 128 else 3,
        )
        sizes = [Sizes.of_weights(each.transformer) for each in (deep, flat)]
        layers, widths = [f"{a} : {b}" for a, b in zip(*[(s.attention_layers, s.width) for s in sizes], strict=True)]
        errors = ", ".join(
            f"{float((each.update(task) - exact).norm(dim=-1).max()):.0e} ({each.error_bound:.0e})"
            for each in (deep, flat)
        )
        ratio = took["flat"] / took["deep"]
        print(
            f"{responses:4} {1e3 * took['deep']:9.1f} ms {1e3 * took['flat']:9.1f} ms {ratio:8.2f} "
            f"{layers:>11} {widths:>11}  {errors}"
        )


if __name__ == "__main__":
    main()
