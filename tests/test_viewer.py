"""The attention viewer: what it puts into the page, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from icalign.viewer import AttentionViewer, Setting

REWARDS = torch.tensor([[1.0, 0.25], [2.0, 0.5]], dtype=torch.float64)


def setting(**changes: Any) -> Setting:
    """Two queries at 60°: ⟨x^a, x^b⟩ = 1/2, computed here from the formula."""
    values: dict[str, Any] = {"gamma_1": 1.0, "gamma_2": 2.0, "angle": 60.0}
    values |= {name: value for name, value in changes.items() if name in values}
    inner = torch.tensor([[1.0, 1, 0.5, 0.5], [0.5, 0.5, 1, 1]], dtype=torch.float64)
    attention = torch.softmax(values["gamma_1"] * inner + values["gamma_2"] * REWARDS.flatten(), dim=-1)
    return Setting(**values, attention=changes.get("attention", attention))


def page(*settings: Setting, name: str = "viewer-1") -> str:
    return AttentionViewer(name, REWARDS, settings)._repr_html_()


def test_the_table_shows_rewards_logits_and_attention() -> None:
    html = page(setting())
    assert '<th scope="col">a₁</th><th scope="col">a₂</th><th scope="col">b₁</th>' in html
    assert '<th scope="row">logit, a asks</th><td>3.0</td><td>1.5</td><td>4.5</td><td>1.5</td>' in html
    assert '<th scope="row">logit, b asks</th><td>2.5</td><td>1.0</td><td>5.0</td><td>2.0</td>' in html
    # e³, e^1.5, e^4.5, e^1.5 over their sum
    assert '<td class="viewer-selected" style="--tint: 45%">0.756</td>' in html


def test_it_says_what_each_query_selects_and_where_that_changes() -> None:
    """The best rewards are 1 apart, 1 − ⟨x^a, x^b⟩ = 1/2: the critical ratio is 2."""
    below = page(setting())
    assert "γ₁/γ₂ = 0.50, the critical ratio is 2.00." in below
    assert "Query a selects b₁, a response to the other query. Query b selects b₁, its own best." in below
    assert "Query a selects a₁, its own best." in page(setting(gamma_1=5.0))
    assert "γ₁/γ₂ = ∞" in page(setting(gamma_2=0.0))


def test_what_is_not_defined_and_what_is_tied_is_said_as_the_script_says_it() -> None:
    nothing = page(setting(gamma_1=0.0, gamma_2=0.0))
    assert "γ₁/γ₂ is not defined, the critical ratio is 2.00." in nothing and "= ∞" not in nothing.split("<script>")[0]
    assert "Query a selects no single response. Query b selects no single response." in nothing
    assert nothing.split("<script>")[0].count("viewer-selected") == 8
    tied = page(setting(gamma_1=2.0, gamma_2=1.0))  # 2 + 1 = 1 + 2
    assert "Query a selects no single response. Query b selects b₁, its own best." in tied
    script = nothing.split("<script>")[1]
    assert "selects no single response." in script and '"is not defined"' in script


def test_the_numbers_of_torch_are_in_the_page_to_six_digits() -> None:
    one = setting()
    rounded = str(one.attention.round(decimals=6).tolist())
    assert f'data-gamma-1="1" data-gamma-2="2" data-angle="60" data-attention="{rounded}"' in page(one, setting())
    assert page(one, setting()).count("data-attention=") == 2


def test_nothing_is_fetched_every_slider_has_a_label_and_without_scripts_all_settings_show() -> None:
    html, script = page(setting(), setting()).split("<script>")
    assert "http" not in html + script and "src=" not in html
    assert html.count("<label for=") == html.count('<input id="viewer-1-') == html.count("<output for=") == 3
    assert html.count("hidden") == 1
    assert '<div class="viewer-controls" hidden>' in html
    assert 'getElementById("viewer-1")' in script


@pytest.mark.parametrize(
    ("settings", "name", "words"),
    [
        ([setting()], "1 viewer", "name: '1 viewer', expected letters"),
        ([], "viewer", "settings: expected at least one"),
        ([setting(gamma_1=41.0)], "viewer", "gamma_1: 41.0, expected a multiple of 0.5 from 0 to 40"),
        ([setting(gamma_2=0.25)], "viewer", "gamma_2: 0.25, expected a multiple of 0.5"),
        ([setting(angle=-1.0)], "viewer", "angle: -1.0, expected a multiple of 1 from 0 to 180"),
        ([setting(attention=torch.ones(2, 3))], "viewer", r"attention: shape \(2, 3\), expected \(2, 2N\) = \(2, 4\)"),
    ],
)
def test_what_no_slider_reaches_is_refused(settings: list[Setting], name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        AttentionViewer(name, REWARDS, settings)
