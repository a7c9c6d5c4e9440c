"""The definitions that the proofs are about, run on floats (``proofs/extraction``), agree with icalign on random tasks.

Each comparison allows for the rounding of both sides, by the bounds that the book uses for its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from icalign import AlignmentTask, bounds
from icalign.constructions import Selection
from icalign.preferences import (
    gradient_step,
    online_plackett_luce_nll,
    plackett_luce_nll,
    scores,
)
from icalign.tasks import sample_task
from icalign.transformer import softmax_over_visible
from tools import proofs

SOURCE = proofs.PROOFS / "extraction"
SIZES = [(1, 1, 1), (1, 2, 2), (3, 2, 3), (2, 3, 4), (3, 4, 5)]
UNIT = bounds.unit_roundoff(torch.float64)
Ask = Callable[..., Tensor]


def missing() -> str:
    """What is missing to extract and compile; empty if nothing."""
    return proofs.missing() or ("" if shutil.which("ocamlfind") else "ocamlfind not found; on Debian it comes with coq")


def ready() -> None:
    """Skips a test where something is missing; where Rocq is required, it fails."""
    if reason := missing():
        (pytest.fail if os.environ.get("ICALIGN_REQUIRE_ROCQ") == "1" else pytest.skip)(reason)


@pytest.fixture(scope="module")
def program() -> Path:
    """The extracted definitions, compiled."""
    ready()
    proofs.compile_all("Convexity.vo", "OnlineLoss.vo", "Records.vo", "Selection.vo")
    folder = proofs.BUILD / "extraction"
    folder.mkdir(exist_ok=True)
    for path in SOURCE.iterdir():
        shutil.copyfile(path, folder / path.name)
    options = {"cwd": folder, "check": True, "capture_output": True}
    subprocess.run(["coqc", "-w", "none", "-Q", "..", "Icalign", "Extract.v"], **options)
    files = ["definitions.mli", "definitions.ml", "driver.ml"]
    compiler = ["ocamlfind", "ocamlopt", "-w", "-a", *files, "-o", "definitions"]
    subprocess.run(compiler, **options)
    return folder / "definitions"


@pytest.fixture
def ask(program: Path) -> Ask:
    """What the program answers: a name, and numbers and tensors."""

    def answer(*question: Any) -> Tensor:
        line = " ".join([written(part) for part in question])
        done = subprocess.run([str(program)], input=line, capture_output=True, text=True, check=True)
        return torch.tensor([float.fromhex(word) for word in done.stdout.split()], dtype=torch.float64)

    return answer


def written(part: Any) -> str:
    """As the program reads it: a list begins with its length."""
    if isinstance(part, Tensor):
        part = part.tolist()
    if isinstance(part, list):
        return " ".join([str(len(part)), *[written(inner) for inner in part]])
    return part.hex() if isinstance(part, float) else str(part)


def tasks(size: tuple[int, int, int]) -> list[AlignmentTask]:
    """Three random tasks of one query."""
    d_y, d_x, responses = size
    return [
        sample_task((), seed=seed, queries=1, responses=responses, dim_x=d_x, dim_y=d_y, min_gap=0.05)
        for seed in range(3)
    ]


def sizes_of(task: AlignmentTask) -> tuple[int, int, int]:
    return task.dim_y, task.dim_x, task.responses


def instance(task: AlignmentTask) -> list[Any]:
    """Sizes, W, x and the responses."""
    return [*sizes_of(task), task.W, task.x[0], task.y[0]]


def order(rewards: Tensor) -> Tensor:
    return rewards.argsort(descending=True)


def reach(task: AlignmentTask) -> float:
    """A bound on ‖|W||x|‖ + ‖y‖."""
    return float((task.W.abs() @ task.x[0].abs()).norm() + task.y.norm(dim=-1).max()) * (1 + 1e-12)


def score_rounding(task: AlignmentTask) -> float:
    return (2 * task.dim_x + task.dim_y + 6) * UNIT * reach(task) ** 2


ALL = [task for size in SIZES for task in tasks(size)]
every_task = pytest.mark.parametrize("task", ALL, ids=lambda task: "-".join(map(str, sizes_of(task))))


@every_task
def test_scores(task: AlignmentTask, ask: Ask) -> None:
    apart = (ask("scores", *instance(task)) - scores(task)[0]).abs().max()
    assert apart <= 2 * score_rounding(task)


@every_task
def test_loss(task: AlignmentTask, ask: Ask) -> None:
    allowed = 2 * bounds.loss_rounding(torch.float64, task.responses, task.dim_x, task.dim_y, reach(task))
    expected = plackett_luce_nll(scores(task), task.r)[0]
    assert (ask("loss", *instance(task), order(task.r[0])) - expected).abs() <= allowed
    assert (ask("law", *instance(task), order(task.r[0])).log() + expected).abs() <= allowed


@every_task
def test_gradient(task: AlignmentTask, ask: Ask) -> None:
    found = ask("gradient", *instance(task), order(task.r[0])).reshape(task.dim_y, task.dim_x)
    allowed = bounds.gradient_rounding(torch.float64, task.responses, task.dim_x, task.dim_y, reach(task))
    assert (found + gradient_step(task, 1.0)).norm() <= allowed


@every_task
def test_tail_means(task: AlignmentTask, ask: Ask) -> None:
    found = ask("tail_means", *instance(task), order(task.r[0])).reshape(task.responses, task.dim_y)
    places, spread = order(task.r[0]), 2 * score_rounding(task)
    for k in range(task.responses):
        tail = places[k:]
        expected = torch.softmax(scores(task)[0, tail], -1) @ task.y[0, tail]
        largest = float(task.y.norm(dim=-1).max())
        allowed = bounds.attention_rounding(torch.float64, reach(task) ** 2, task.responses, largest)
        assert (found[k] - expected).norm() <= 2 * (allowed + 2 * spread * largest)


@every_task
def test_prefixes(task: AlignmentTask, ask: Ask) -> None:
    losses = online_plackett_luce_nll(scores(task)[0], task.r[0])
    allowed = 2 * bounds.loss_rounding(torch.float64, task.responses, task.dim_x, task.dim_y, reach(task))
    for t in range(1, task.responses + 1):
        found = ask("online", *instance(task), t, order(task.r[0, :t]))
        assert (found - losses[t - 1]).abs() <= allowed


@every_task
def test_curvature(task: AlignmentTask, ask: Ask) -> None:
    V = torch.randn(task.W.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64)

    def loss(t: Tensor) -> Tensor:
        prediction = (task.W + t * V) @ task.x[0]
        return plackett_luce_nll(-(prediction - task.y[0]).square().sum(-1), task.r[0])

    expected = torch.autograd.functional.hessian(loss, torch.zeros((), dtype=torch.float64))
    found = ask("second", *instance(task), order(task.r[0]), V)
    assert found.item() == pytest.approx(expected.item(), rel=1e-10, abs=1e-10)


@every_task
def test_records(task: AlignmentTask, ask: Ask) -> None:
    maxima = task.r[0].cummax(-1).values.tolist()
    assert ask("records", task.responses, task.r[0]).item() == 1 + sum([a < b for a, b in pairwise(maxima)])


@pytest.mark.parametrize("task", [task for task in ALL if task.responses > 1])
def test_selection(task: AlignmentTask, ask: Ask) -> None:
    kind: dict[str, Any] = {
        "dim_x": task.dim_x, "dim_y": task.dim_y, "responses": task.responses, "min_gap": 0.01,
        "reward_range": (-10.0, 10.0), "radius": 10.0,
    }  # fmt: skip
    head = Selection(**kind, temperatures={"gamma": 3.5})
    arguments = [task.dim_x, task.dim_y, task.responses, 3.5, task.x[0], task.y[0], task.r[0]]
    allowed = 2 * bounds.attention_rounding(torch.float64, 3.5 * float(task.r.abs().max()), task.responses, 1.0)
    weights = head.transformer.attention(head.embed(task))[0][0]
    assert (ask("attention", *arguments) - weights.flatten()).abs().max() <= allowed
    radius = float(task.y.norm(dim=-1).max())
    found = ask("selected", *arguments).reshape(task.responses, task.dim_y)
    assert (found - head(task)[0]).norm(dim=-1).max() <= radius * allowed


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 2, 4, 3), (4, 3, 5, 4)], ids=str)
def test_a_block(sizes: tuple[int, int, int, int], masked: bool, ask: Ask) -> None:
    d, k, hidden, tokens = sizes
    generator = torch.Generator().manual_seed(sum(sizes))

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64) / 2

    Q, K, V, O = draw(k, d), draw(k, d), draw(k, d), draw(d, k)  # noqa: E741
    M1, M2, b1, b2, X = draw(hidden, d), draw(d, hidden), draw(hidden), draw(d), draw(tokens, d)
    visible = torch.ones(tokens, tokens, dtype=torch.bool)
    visible = visible.tril() if masked else visible
    attended = X + softmax_over_visible((X @ Q.mT) @ (X @ K.mT).mT, visible) @ X @ V.mT @ O.mT
    expected = attended + (attended @ M1.mT + b1).relu() @ M2.mT + b2
    found = ask("block", d, k, hidden, tokens, Q, K, V, O, M1, M2, b1, b2, X, int(masked))
    torch.testing.assert_close(found.reshape(tokens, d), expected, rtol=1e-12, atol=1e-12)


def test_other_arguments_give_other_answers(ask: Ask) -> None:
    (task, *_) = tasks((3, 4, 5))
    right = ask("loss", *instance(task), order(task.r[0]))
    assert (ask("loss", *instance(task), order(-task.r[0])) - right).abs() > 0.1


def test_a_machine_without_ocaml_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None if program == "ocamlfind" else program)
    monkeypatch.delenv("ICALIGN_REQUIRE_ROCQ", raising=False)
    with pytest.raises(pytest.skip.Exception, match="ocamlfind"):
        ready()
    monkeypatch.setenv("ICALIGN_REQUIRE_ROCQ", "1")
    with pytest.raises(pytest.fail.Exception, match="ocamlfind"):
        ready()
