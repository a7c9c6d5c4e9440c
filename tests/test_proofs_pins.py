"""The definitions that the proofs are about have the values that icalign computes: ``proofs/Pins.v`` bounds them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from icalign import AlignmentTask
from icalign.constructions import Selection
from icalign.preferences import (
    gradient_step,
    online_gradient_steps,
    online_plackett_luce_nll,
    plackett_luce_nll,
    scores,
)
from icalign.rankings import stirling

TEXT = (Path(__file__).parents[1] / "proofs" / "Pins.v").read_text(encoding="utf-8")
NUMBER = r"-?\d+(?:[/.]\d+)?"
PINS = {
    name: (Fraction(low), " ".join(what.split()), Fraction(high))
    for name, low, what, high in re.findall(
        rf"^Lemma pin_(\w+) :\s({NUMBER}) <=\s(.*?)\s<= ({NUMBER})\.\nProof", TEXT, re.DOTALL | re.MULTILINE
    )
}


def instance(name: str) -> Any:
    """What a definition of the file says: a number, or lists of numbers."""
    (text,) = re.findall(rf"^Definition {name} : [^:]+ := [a-z_]*\s?(.*?)\.$", TEXT, re.MULTILINE)
    lists = re.sub(NUMBER, r'"\g<0>"', text.replace("[::", "[").replace(";", ","))
    return torch.tensor(_floats(json.loads(lists)), dtype=torch.float64)


def _floats(entry: Any) -> Any:
    return [_floats(inner) for inner in entry] if isinstance(entry, list) else float(Fraction(entry))


class Book:
    """The same quantities, by icalign."""

    def __init__(self) -> None:
        x, y, self.r = instance("x"), instance("y"), instance("r")
        self.task = AlignmentTask(x[None], y[None], self.r[None], instance("W"))
        self.scores = scores(self.task)[0]
        self.gamma = float(instance("γ"))

    def loss_along(self, t: Tensor) -> Tensor:
        prediction = (self.task.W + t * instance("V")) @ self.task.x[0]
        return plackett_luce_nll(-(prediction - self.task.y[0]).square().sum(-1), self.r)

    def curvature(self) -> Tensor:
        return torch.autograd.functional.hessian(self.loss_along, torch.zeros((), dtype=torch.float64))  # type: ignore[no-untyped-call]

    def tail_mean(self, place: int) -> Tensor:
        tail = self.r.argsort(descending=True)[place:]
        return torch.softmax(self.scores[tail], -1) @ self.task.y[0, tail]

    def selection(self) -> Selection:
        kind: dict[str, Any] = {"dim_x": 2, "dim_y": 2, "responses": 3, "min_gap": 0.1, "reward_range": (-1.0, 1.0)}
        return Selection(**kind, temperatures={"gamma": self.gamma})

    def attention(self) -> Tensor:
        head = self.selection()
        return head.transformer.attention(head.embed(self.task))[0][0]

    def records(self) -> int:
        return sum([all([self.r[j] < self.r[i] for j in range(i)]) for i in range(len(self.r))])


VALUES: dict[str, Callable[[Book], Any]] = {
    **{f"score_{j}": lambda book, j=j: book.scores[j] for j in range(3)},
    "law": lambda book: (-plackett_luce_nll(book.scores, book.r)).exp(),
    "loss": lambda book: plackett_luce_nll(book.scores, book.r),
    "tail_mean_0": lambda book: book.tail_mean(0)[0],
    "tail_mean_1": lambda book: book.tail_mean(1)[1],
    **{f"gradient_{a}{b}": lambda book, a=a, b=b: -gradient_step(book.task, 1.0)[a, b] for a in (0, 1) for b in (0, 1)},
    "curvature": lambda book: book.curvature(),
    "online_loss": lambda book: online_plackett_luce_nll(book.scores, book.r)[1],
    "online_gradient_01": lambda book: -online_gradient_steps(book.task, 1.0)[0, 1, 0, 1],
    "softmax": lambda book: torch.softmax(book.r, -1)[0],
    "attention": lambda book: book.attention()[0, 2],
    "selected_0": lambda book: book.selection()(book.task)[0, 0, 0],
    "selected_1": lambda book: book.selection()(book.task)[0, 0, 1],
    "records": lambda book: book.records(),
    "stirling": lambda book: stirling(6)[3],
}


def test_every_pin_is_computed() -> None:
    assert list(PINS) == list(VALUES) == re.findall(r"^Lemma pin_(\w+)", TEXT, re.MULTILINE)


@pytest.mark.parametrize("name", VALUES)
def test_a_value_lies_where_the_kernel_says(name: str) -> None:
    low, _, high = PINS[name]
    assert low <= Fraction(float(VALUES[name](Book()))) <= high


@pytest.mark.parametrize("name", VALUES)
def test_a_pin_is_narrow(name: str) -> None:
    low, _, high = PINS[name]
    assert high - low <= Fraction(1, 10**8)
