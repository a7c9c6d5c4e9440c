"""Pictures made of HTML alone: a table, and a stepper through the states of a small transformer.

Both need nothing from elsewhere. Without JavaScript a stepper shows all its steps, one below the other.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

# Hides all steps but one and moves between them; {name} is the id of the figure.
_SCRIPT = """
(() => {{
  const figure = document.getElementById("{name}");
  const steps = [...figure.querySelectorAll(".stepper-step")];
  const [first, back, next] = figure.querySelectorAll("button");
  const where = figure.querySelector("output");
  let now = 0;
  const show = (step) => {{
    now = Math.min(Math.max(step, 0), steps.length - 1);
    steps.forEach((element, k) => {{ element.hidden = k !== now; }});
    where.textContent = `step ${{now}} of ${{steps.length - 1}}`;
    first.disabled = back.disabled = now === 0;
    next.disabled = now === steps.length - 1;
  }};
  first.onclick = () => show(0);
  back.onclick = () => show(now - 1);
  next.onclick = () => show(now + 1);
  figure.onkeydown = (event) => {{
    if (event.key === "ArrowRight") show(now + 1);
    if (event.key === "ArrowLeft") show(now - 1);
  }};
  figure.querySelector(".stepper-controls").hidden = false;
  show(0);
}})();
"""


def _number(value: float) -> str:
    """Two decimals, and no minus before a zero."""
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


@dataclass(frozen=True)
class Table:
    """A table of text, the first row the header, the first column that of the rows."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    def _repr_html_(self) -> str:
        head = "".join([f'<th scope="col">{html.escape(cell)}</th>' for cell in self.header])
        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        lines = [
            f'<tr><th scope="row">{html.escape(first)}</th>'
            + "".join([f"<td>{html.escape(cell)}</td>" for cell in rest])
            + "</tr>"
            for first, *rest in self.rows
        ]
        body = "".join(lines)
        return (
            f'<div class="table-frame" tabindex="0"><table class="computed">{caption}'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )


@dataclass(frozen=True)
class Stepper:
    """States of a prompt, one step at a time: tokens as columns, named rows, a mark on what a step has changed.

    Shapes: states (steps, tokens, width).

    Args:
        name: the id of the figure; letters, digits and hyphens.
        states: the tokens at every step.
        rows: where each row lies in a token, in the order to show; several entries get a number each.
        columns: a name for every token.
        captions: a sentence for every step.
        scale: entries of this size get the full tint.

    Raises:
        ValueError: a name that is no id, or numbers of states, captions or columns that do not fit.
    """

    name: str
    states: Float[Tensor, "steps tokens width"]
    rows: Mapping[str, slice]
    columns: Sequence[str]
    captions: Sequence[str]
    scale: float = 2.0

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", self.name):
            raise ValueError(f"name: {self.name!r}, expected letters, digits and hyphens, a letter first")
        expected = (len(self.captions), len(self.columns))
        if tuple(self.states.shape[:2]) != expected:
            raise ValueError(
                f"states: {tuple(self.states.shape[:2])} steps and tokens, captions and columns: {expected}"
            )
        if not bool(torch.isfinite(self.states).all()):
            raise ValueError("states: expected finite numbers")

    def _cell(self, value: float, before: float) -> str:
        tint = round(55 * min(abs(value) / self.scale, 1))
        kind = ["positive" if value > 0 else "negative"] if tint else []
        changed = ["changed"] if _number(value) != _number(before) else []
        mark = f' class="{" ".join(kind + changed)}"' if kind + changed else ""
        style = f' style="--tint: {tint}%"' if tint else ""
        shown = f"<b>{_number(value)}</b>" if changed else _number(value)
        return f"<td{mark}{style}>{shown}</td>"

    def _table(self, step: int) -> str:
        now, before = self.states[step].tolist(), self.states[max(step - 1, 0)].tolist()
        head = "".join([f'<th scope="col">{html.escape(column)}</th>' for column in self.columns])
        lines = []
        for name, place in self.rows.items():
            several = place.stop - place.start > 1
            for entry in range(place.start, place.stop):
                label = f"{name}<sub>{entry - place.start + 1}</sub>" if several else name
                cells = [self._cell(token[entry], old[entry]) for token, old in zip(now, before, strict=True)]
                lines.append(f'<tr><th scope="row">{label}</th>{"".join(cells)}</tr>')
        return f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"

    def _repr_html_(self) -> str:
        steps = [
            f'<section class="stepper-step"><p>{html.escape(caption)}</p>{self._table(step)}</section>'
            for step, caption in enumerate(self.captions)
        ]
        buttons = "".join([f'<button type="button">{word}</button>' for word in ("first", "back", "next")])
        return (
            f'<figure class="stepper" id="{self.name}">'
            f'<div class="stepper-controls" hidden>{buttons}<output aria-live="polite"></output></div>'
            f"{''.join(steps)}</figure><script>{_SCRIPT.format(name=self.name)}</script>"
        )
