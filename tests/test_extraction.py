"""The definitions that the proofs are about, run on floats (``proofs/extraction``), agree with icalign on random tasks.

Each comparison allows for the rounding of both sides, by the bounds that the book uses for its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from icalign import AlignmentTask, bounds
from icalign.constructions import Causal, ConstantDepth, MultiQuery, PlackettLuce, Selection, bradley_terry, field
from icalign.constructions.base import prompt
from icalign.constructions.gradient import GradientStep
from icalign.preferences import (
    gradient_step,
    online_plackett_luce_nll,
    plackett_luce_nll,
    scores,
)
from icalign.spec import Block
from icalign.stream import Stream
from icalign.symbols import W, d_x, d_y, eta, gamma
from icalign.tasks import sample_task
from icalign.transformer import Transformer, softmax_over_visible
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
    needed = re.findall(
        r"\w+", " ".join(re.findall(r"^From Icalign Require Import ([^.]*)\.", text("Extract.v"), re.M))
    )
    proofs.compile_all(*[f"{name}.vo" for name in needed])
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


def text(name: str) -> str:
    return (SOURCE / name).read_text(encoding="utf-8")


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
    # both add up, over N places, weights times squares of slopes, which are 2·reach·‖|V||x|‖ at most, and of ‖Vx‖; the
    # weights are off as the scores are, the rest by a rounding for each number that is added or multiplied
    length = float((V.abs() @ task.x[0].abs()).norm())
    sums = task.responses * (8 * reach(task) ** 2 + 4) * length**2
    relative = 8 * score_rounding(task) + 4 * (task.responses + task.dim_x + task.dim_y + 8) * UNIT
    assert (found - expected).abs() <= 2 * relative * sums


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
    # the same sums of absolute values, times the roundings that an entry goes through; an error of the logits is one of
    # the weights, and errors before the layer pass through it
    asked = (X.abs() @ Q.abs().mT) @ (X.abs() @ K.abs().mT).mT
    weighing = 4 * (2 * d + 2 * k) * float(asked.max()) + tokens + 4
    first = X.abs() + (X.abs() @ V.abs().mT @ O.abs().mT).max(0).values
    moved = (weighing + 2 * d + 2 * k + tokens) * first
    inner = first @ M1.abs().mT + b1.abs()
    moved = moved + moved @ M1.abs().mT @ M2.abs().mT + (2 * d + 2 * hidden + 4) * (inner @ M2.abs().mT + b2.abs())
    assert (found.reshape(tokens, d) - expected).abs().le(2 * UNIT * moved).all()


# ── The transformers of the theorems, all blocks ──────────────────────────────────────────────

CLASS: dict[str, Any] = {"min_gap": 0.1, "tolerance": 1e-2}


@dataclass(frozen=True)
class Twin:
    """A transformer of a theorem, by its name in the program, and the package's."""

    name: str
    numbers: str  # the names of the parameters, as they are printed, in the order of the definition in Rocq
    task: AlignmentTask
    values: Mapping[Any, Any]
    transformer: Transformer
    prompt: Tensor
    rounding: float  # a bound on how far a run can be from one in real arithmetic

    def question(self, what: str, **other: float) -> list[Any]:
        """What the program reads: sizes, W, the parameters, tokens for the layers, and the task."""
        task, values = self.task, {str(name): value for name, value in self.values.items()} | other
        sizes = [task.dim_x, task.dim_y, task.queries, task.responses]
        pairs = [len(self.transformer.blocks[-1].heads) // 2] if self.name == "multi_query" else []
        numbers = [float(values[name]) for name in self.numbers.split()]
        responses = [task.x, task.y.flatten(0, 1), task.r.flatten()]
        return [self.name, *pairs, what, *sizes, task.W, numbers, self.tokens(), *responses]

    def tokens(self) -> Tensor:
        """Random ones, large and small, so that every ReLU is on at some and off at others."""
        e = torch.randn(24, self.prompt.shape[-1], generator=torch.Generator().manual_seed(5), dtype=torch.float64)
        return e * torch.tensor([3.0, 3e-2, 1e-2]).repeat(8)[:, None].double()


def twin(
    name: str, kind: type[GradientStep], numbers: str, size: tuple[int, int, int], queries: int = 1, **options: Any
) -> Twin:
    """The construction of a theorem, and a task of its class; sizes d_x, d_y and N."""
    pair, (dim_x, dim_y, responses) = {"overlap": 0.5} if queries > 1 else {}, size
    task = sample_task((), seed=11, queries=queries, responses=responses, dim_x=dim_x, dim_y=dim_y, min_gap=0.1, **pair)
    several = {"queries": queries, **pair} if queries > 1 else {}
    construction = kind(W=task.W, responses=responses, **CLASS, **several, **options)
    rounding, model = construction._rounding(), construction.transformer
    return Twin(name, numbers, task, construction.values, model, construction.embed(task), rounding)


def one_block(name: str, block: Block, stream: Stream, numbers: str, **values: float) -> Twin:
    """A theorem about one block without a class: two responses."""
    task = sample_task((), seed=12, queries=1, responses=2, dim_x=3, dim_y=2, min_gap=0.1)
    known = {"d_x": 3, "d_y": 2, "W": task.W, **values}
    found = {symbol: known[symbol.name] for symbol in (d_x, d_y, W, eta, gamma) if symbol.name in known}
    model = Transformer((block,), stream, found)
    allowed = bounds.attention_rounding(torch.float64, reach(task) ** 2 + 10, 2, 1 + float(task.y.norm(dim=-1).max()))
    return Twin(name, numbers, task, found, model, prompt(task, model.rows), 4 * allowed)


SEVERAL = "eta gamma_1 gamma_2 gamma_beta Delta low R B C epsilon lambda"
TWINS = [
    *[
        it
        for size in [(3, 2, 3), (1, 1, 2), (2, 3, 4)]
        for it in (
            twin("plackett_luce", PlackettLuce, "eta gamma Delta R B C", size),
            twin("causal", Causal, "eta gamma_1 c c' sigma sigma'", size),
            twin("printed", Causal, "eta gamma_1 c c'", size, sink=False),
            twin("constant_depth", ConstantDepth, "eta Delta low high C", size),
        )
    ],
    *[twin("multi_query", MultiQuery, SEVERAL, (3, 2, 3), 2, pairs=pairs) for pairs in (1, 2)],
    twin("multi_query", MultiQuery, SEVERAL, (2, 1, 2), 3, pairs=1),
    one_block("bradley_terry", bradley_terry.block, bradley_terry.stream, "eta gamma", eta=0.1, gamma=7.0),
    one_block("field", field.block, field.stream, ""),
]
every_twin = pytest.mark.parametrize("twin", TWINS, ids=lambda twin: f"{twin.name}-{len(twin.prompt)}")


def matrices(twin: Twin) -> Tensor:
    """KᵀQ and PV of every head, the second by columns, in a row."""
    heads = [head for block in twin.transformer.blocks for head in block.attention_heads()]
    return torch.cat([entries.flatten() for head in heads for entries in (head.key.T @ head.query, head.value.T)])


@every_twin
def test_the_weights_of_the_theorems_are_those_that_run(twin: Twin, ask: Ask) -> None:
    # an entry is a product of up to four numbers, of which one may be e^λ, that is off by its last place on both sides
    torch.testing.assert_close(ask(*twin.question("heads")), matrices(twin), rtol=16 * UNIT, atol=0)


def made_by_layers(twin: Twin) -> tuple[Tensor, Tensor]:
    """What each layer makes of tokens, and how far rounding can move that: by its own sums, of absolute values."""
    e, made, moved = twin.tokens(), [torch.zeros(0)], [torch.zeros(0)]
    for block in twin.transformer.blocks:
        if (layer := block.feed_forward) is not None:
            made.append((e + layer(e)).flatten())
            inner = e.abs() @ layer.first.abs().T + layer.first_bias.abs()
            sums = e.abs() + inner @ layer.second.abs().T + layer.second_bias.abs()
            moved.append(((e.shape[-1] + inner.shape[-1] + 4) * 2 * UNIT * sums).flatten())
    return torch.cat(made).double(), torch.cat(moved).double()


@every_twin
def test_the_layers_of_the_theorems_are_those_that_run(twin: Twin, ask: Ask) -> None:
    expected, moved = made_by_layers(twin)
    assert (ask(*twin.question("layers")) - expected).abs().le(moved).all()


@every_twin
def test_other_numbers_make_other_weights_or_layers(twin: Twin, ask: Ask) -> None:
    heads, (layers, moved) = matrices(twin), made_by_layers(twin)
    for name in twin.numbers.split():
        value = next(float(value) for symbol, value in twin.values.items() if str(symbol) == name)
        changed = {name: value * (1 + 1e-9) + 1e-9}
        same = torch.allclose(ask(*twin.question("heads", **changed)), heads, rtol=1e-10, atol=0)
        same &= bool((ask(*twin.question("layers", **changed)) - layers).abs().le(moved).all())
        assert not same, name


@every_twin
def test_all_blocks_run_as_in_the_theorems(twin: Twin, ask: Ask) -> None:
    expected = twin.transformer(twin.prompt)
    assert (ask(*twin.question("tokens")) - expected.flatten()).abs().max() <= 2 * twin.rounding
    assert (expected - twin.prompt).abs().max() > 1e-3


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
