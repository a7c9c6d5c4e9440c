"""The stepper and the computed table: what they show, and what they refuse."""

from typing import Any

import pytest
import torch

from icalign.stepper import Stepper, Table


def stepper(**changes: Any) -> Stepper:
    arguments: dict[str, Any] = {
        "name": "steps-1",
        "states": torch.tensor([[[0.0, 1.0, 2.0]], [[0.0, 1.0, -0.75]]]),
        "rows": {"r": slice(0, 1), "y": slice(1, 3)},
        "columns": ["one <token>"],
        "captions": ["before", "after"],
    }
    return Stepper(**(arguments | changes))


def test_every_step_is_in_the_page_and_what_changed_is_marked() -> None:
    page = stepper()._repr_html_()
    assert page.count('<section class="stepper-step">') == 2
    assert page.count("changed") == 1
    assert '<td class="negative changed" style="--tint: 21%"><b>−0.75</b></td>' in page
    assert "one &lt;token&gt;" in page
    assert "y<sub>2</sub>" in page


def test_nothing_is_fetched_and_without_scripts_all_steps_show() -> None:
    page = stepper()._repr_html_()
    assert "http" not in page and "src=" not in page
    assert "hidden>" in page.split("<section")[0]  # the controls
    assert "hidden" not in "".join(page.split("<section")[1:]).split("<script>")[0]


def test_a_change_that_does_not_show_is_not_marked() -> None:
    page = stepper(states=torch.tensor([[[0.0, 1.0, 2.0]], [[0.0, 1.001, -0.001 + 2]]]))._repr_html_()
    assert "changed" not in page


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "1 step"}, "name: '1 step', expected letters"),
        ({"captions": ["before"]}, r"states: \(2, 1\) steps and tokens, captions and columns: \(1, 1\)"),
        ({"columns": []}, r"states: \(2, 1\) steps and tokens"),
        ({"states": torch.full((2, 1, 3), float("nan"))}, "states: expected finite numbers"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        stepper(**changes)


def test_a_table_escapes_what_it_shows() -> None:
    page = Table(header=["a", "b < c"], rows=[["1", "&"]], caption="two")._repr_html_()
    assert "<caption>two</caption>" in page
    assert '<th scope="col">b &lt; c</th>' in page
    assert '<th scope="row">1</th><td>&amp;</td>' in page
