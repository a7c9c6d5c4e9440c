"""An attention viewer in HTML and plain JavaScript: two queries, sliders for both temperatures and for their angle.

It needs nothing from elsewhere. Without JavaScript it shows the attention at all the settings it was made with.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .bounds import critical_ratio

# name, what it says, smallest, largest and step
_SLIDERS = (
    ("gamma_1", "γ₁, weight of the queries’ overlap", 0, 40, 0.5),
    ("gamma_2", "γ₂, weight of the rewards", 0, 20, 0.5),
    ("angle", "angle between the queries, in degrees", 0, 180, 1),
)
_TINT = 60  # per cent of colour at full attention

# Keeps the first table, hides the others, and fills it as :meth:`AttentionViewer._table` does; {name} is the id.
_SCRIPT = """
(() => {{
  const figure = document.getElementById("{name}");
  const rewards = JSON.parse(figure.dataset.rewards);
  const names = JSON.parse(figure.dataset.names);
  const [setting, ...others] = figure.querySelectorAll(".viewer-setting");
  const sliders = [...figure.querySelectorAll("input")];
  const outputs = figure.querySelectorAll("output");
  const sentences = setting.querySelectorAll("p");
  const number = (value, digits) =>
    (value === Infinity ? "∞" : value.toFixed(digits).replace(/^-(0[.]0*)$/, "$1").replace("-", "−"));
  const responses = rewards[0].length;
  const best = rewards.map((row) => Math.max(...row));
  const select = (asking, logits, top) => {{
    const token = logits.indexOf(top);
    const query = "ab"[asking];
    if (logits.filter((logit) => logit === top).length > 1) return `Query ${{query}} selects no single response.`;
    const own = Math.floor(token / responses) === asking;
    return `Query ${{query}} selects ${{names[token]}}, ${{own ? "its own best" : "a response to the other query"}}.`;
  }};
  const ask = (asking, [gamma_1, gamma_2, overlap]) => {{
    const products = rewards.flat().map((_, token) => (Math.floor(token / responses) === asking ? 1 : overlap));
    const logits = rewards.flat().map((reward, token) => gamma_1 * products[token] + gamma_2 * reward);
    const top = Math.max(...logits);
    const weights = logits.map((logit) => Math.exp(logit - top));
    const total = weights.reduce((sum, weight) => sum + weight);
    const cells = (row) => setting.querySelectorAll(`tr[data-row="${{row}}-${{asking}}"] td`);
    cells("logit").forEach((cell, token) => {{ cell.textContent = number(logits[token], 1); }});
    cells("attention").forEach((cell, token) => {{
      cell.textContent = number(weights[token] / total, 3);
      cell.style.setProperty("--tint", `${{Math.round({tint} * weights[token] / total)}}%`);
      cell.classList.toggle("viewer-selected", logits[token] === top);
    }});
    return select(asking, logits, top);
  }};
  const show = () => {{
    const [gamma_1, gamma_2, angle] = sliders.map((slider) => slider.valueAsNumber);
    [gamma_1, gamma_2, angle].forEach((value, k) => {{ outputs[k].textContent = value; }});
    const overlap = Math.cos(angle * Math.PI / 180);
    const critical = angle === 0 ? Infinity : Math.abs(best[0] - best[1]) / (1 - overlap);
    const ratio = gamma_1 === 0 && gamma_2 === 0 ? "is not defined" : `= ${{number(gamma_1 / gamma_2, 2)}}`;
    setting.querySelector("caption").textContent = `γ₁ = ${{gamma_1}}, γ₂ = ${{gamma_2}}, angle ${{angle}}°`;
    sentences[0].textContent = `γ₁/γ₂ ${{ratio}}, the critical ratio is ${{number(critical, 2)}}.`;
    const said = [0, 1].map((asking) => ask(asking, [gamma_1, gamma_2, overlap]));
    sentences[1].textContent = said.join(" ");
  }};
  others.forEach((other) => {{ other.hidden = true; }});
  sliders.forEach((slider) => {{ slider.oninput = show; }});
  figure.querySelector(".viewer-controls").hidden = false;
  show();
}})();
"""


@dataclass(frozen=True)
class Setting:
    """A place of the sliders, and the attention that torch computes there: a row for each query that asks.

    Args:
        gamma_1: γ₁.
        gamma_2: γ₂.
        angle: between the two queries, in degrees.
        attention: shape (2, 2N), the tokens of the first query first.
    """

    gamma_1: float
    gamma_2: float
    angle: float
    attention: Float[Tensor, "2 tokens"]


@dataclass(frozen=True)
class AttentionViewer:
    """Logits γ₁⟨x, x′⟩ + γ₂r of two unit queries, their attention, and what each query selects.

    The page computes them anew when a slider moves. The first setting is where the sliders start; the attention of all
    settings is kept in the page, to six digits, so that a test can compare.

    Args:
        name: the id of the figure; letters, digits and hyphens.
        rewards: shape (2, N), a row for each query; distinct.
        settings: at least one.

    Raises:
        ValueError: a name that is no id, no setting, or a setting that no slider reaches or of another shape.
    """

    name: str
    rewards: Float[Tensor, "2 responses"]
    settings: Sequence[Setting]

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", self.name):
            raise ValueError(f"name: {self.name!r}, expected letters, digits and hyphens, a letter first")
        if not self.settings:
            raise ValueError("settings: expected at least one")
        for setting in self.settings:
            shape, expected = tuple(setting.attention.shape), (2, self.rewards.numel())
            if shape != expected:
                raise ValueError(f"attention: shape {shape}, expected (2, 2N) = {expected}")
            for slider, _, low, high, step in _SLIDERS:
                value = getattr(setting, slider)
                if not (low <= value <= high and value % step == 0):
                    raise ValueError(f"{slider}: {value}, expected a multiple of {step} from {low} to {high}")

    @property
    def _tokens(self) -> list[str]:
        responses = range(1, self.rewards.shape[1] + 1)
        below = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
        return [f"{query}{str(k).translate(below)}" for query in "ab" for k in responses]

    def _controls(self) -> str:
        sliders = []
        for slider, label, low, high, step in _SLIDERS:
            name, value = f"{self.name}-{slider.replace('_', '-')}", f"{getattr(self.settings[0], slider):g}"
            sliders.append(
                f'<div><label for="{name}">{label}</label><input id="{name}" type="range" min="{low}" max="{high}" '
                f'step="{step}" value="{value}"><output for="{name}">{value}</output></div>'
            )
        return f'<div class="viewer-controls" hidden>{"".join(sliders)}</div>'

    def _table(self, setting: Setting) -> str:
        """One setting: the table, the critical ratio, and what is selected."""
        overlap, given = _overlap(setting.angle), self.rewards.double().round(decimals=6)
        head = "".join([f'<th scope="col">{token}</th>' for token in self._tokens])
        rewards = "".join([f"<td>{_number(value, 2)}</td>" for value in self.rewards.flatten().tolist()])
        lines, said = [f'<tr><th scope="row">reward</th>{rewards}</tr>'], []
        for asking, weights in enumerate(setting.attention.tolist()):
            products = [[overlap, 1.0][query == asking] for query in range(2)]
            shared = torch.tensor(products, dtype=torch.float64)[:, None]
            logits = (setting.gamma_1 * shared + setting.gamma_2 * given).flatten().tolist()
            top = [logit == max(logits) for logit in logits]
            said.append(self._says(asking, top))
            lines += [
                self._row("logit", asking, [f"<td>{_number(value, 1)}</td>" for value in logits]),
                self._row("attention", asking, [_shaded(*cell) for cell in zip(weights, top, strict=True)]),
            ]
        where = f"γ₁ = {setting.gamma_1:g}, γ₂ = {setting.gamma_2:g}, angle {setting.angle:g}°"
        exact = json.dumps(setting.attention.double().round(decimals=6).tolist())
        return (
            f'<div class="viewer-setting" data-gamma-1="{setting.gamma_1:g}" data-gamma-2="{setting.gamma_2:g}" '
            f'data-angle="{setting.angle:g}" data-attention="{exact}"><table><caption>{where}</caption>'
            f"<thead><tr><td></td>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
            f'<p>{self._ratio(setting)}</p><p aria-live="polite">{" ".join(said)}</p></div>'
        )

    def _row(self, what: str, asking: int, cells: Sequence[str]) -> str:
        label = f'<th scope="row">{what}, {"ab"[asking]} asks</th>'
        return f'<tr data-row="{what}-{asking}">{label}{"".join(cells)}</tr>'

    def _ratio(self, setting: Setting) -> str:
        advantage = abs(float(self.rewards[0].max() - self.rewards[1].max()))
        critical = float(critical_ratio(advantage, _overlap(setting.angle))) if setting.angle else math.inf
        ratio = "is not defined"
        if setting.gamma_1 or setting.gamma_2:
            ratio = f"= {_number(setting.gamma_1 / setting.gamma_2 if setting.gamma_2 else math.inf, 2)}"
        return f"γ₁/γ₂ {ratio}, the critical ratio is {_number(critical, 2)}."

    def _says(self, asking: int, top: list[bool]) -> str:
        if sum(top) > 1:
            return f"Query {'ab'[asking]} selects no single response."
        token = top.index(True)
        own = token // self.rewards.shape[1] == asking
        what = "its own best" if own else "a response to the other query"
        return f"Query {'ab'[asking]} selects {self._tokens[token]}, {what}."

    def _repr_html_(self) -> str:
        """The figure, with its script."""
        rewards = json.dumps(self.rewards.double().round(decimals=6).tolist())
        names = html.escape(json.dumps(self._tokens, ensure_ascii=False))
        tables = "".join([self._table(setting) for setting in self.settings])
        return (
            f'<figure class="viewer" id="{self.name}" data-rewards="{rewards}" data-names="{names}">'
            f"{self._controls()}{tables}</figure><script>{_SCRIPT.format(name=self.name, tint=_TINT)}</script>"
        )

    def __repr__(self) -> str:
        return f"AttentionViewer({self.name!r}, {len(self.settings)} settings)"


def _overlap(angle: float) -> float:
    """As the script computes it, so that ties are ties in both."""
    return math.cos(angle * math.pi / 180)


def _number(value: float, digits: int) -> str:
    """Fixed decimals, no minus before a zero, a sign for infinity."""
    if value == math.inf:
        return "∞"
    shown = f"{value:.{digits}f}"
    return shown.lstrip("-") if float(shown) == 0 else shown.replace("-", "−")


def _shaded(weight: float, selected: bool) -> str:
    mark = ' class="viewer-selected"' if selected else ""
    return f'<td{mark} style="--tint: {round(_TINT * weight)}%">{_number(weight, 3)}</td>'
