"""The attention viewer of chapter 7: what it computes in the page is what torch computed in the notebook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page
from sitecheck import open_page, serve

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "book" / "07-query-selection.ipynb"
LABELS = ("γ₁, weight of the queries’ overlap", "γ₂, weight of the rewards", "angle between the queries, in degrees")
ROUNDED = 0.5e-3 + 0.5e-6  # three digits are shown, six are stored

pytestmark = pytest.mark.browser


def viewer_html() -> str:
    """The output of the notebook's cell."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    (found,) = [html for data in outputs if '<figure class="viewer"' in (html := "".join(data.get("text/html", "")))]
    return found


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("viewer")
    style = (ROOT / "book" / "_static" / "icalign.css").read_text(encoding="utf-8")
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>{style}</style>'
    page = f'<!doctype html><html lang="en"><head><title>Viewer</title><link rel="icon" href="data:,">{head}</head>'
    (folder / "viewer.html").write_text(f"{page}<body>{viewer_html()}</body></html>", encoding="utf-8")
    with serve(folder) as origin:
        yield origin


@pytest.fixture(params=[1280, 390])
def page(request: pytest.FixtureRequest, browser: Browser, origin: str) -> Iterator[Page]:
    seen: list[tuple[str, str]] = []
    with open_page(browser, origin, request.param, seen) as page:
        page.goto(f"{origin}/viewer.html")
        yield page
    assert not seen


def shown(setting: Locator) -> list[float]:
    """The attention that a table shows, row after row."""
    return [float(text) for text in setting.locator('tr[data-row^="attention"] td').all_inner_texts()]


def stored(setting: Locator) -> list[float]:
    """The attention that torch computed for it."""
    return [weight for row in json.loads(setting.get_attribute("data-attention") or "") for weight in row]


def test_at_every_stored_setting_the_page_shows_the_attention_of_torch(page: Page) -> None:
    settings = page.locator(".viewer-setting").all()
    assert len(settings) > 2
    live = settings[0]
    for setting in settings:
        for name, label in zip(("gamma-1", "gamma-2", "angle"), LABELS, strict=True):
            page.get_by_label(label).fill(setting.get_attribute(f"data-{name}") or "")
        assert shown(live) == pytest.approx(stored(setting), abs=ROUNDED)
        best = max(range(6), key=stored(setting)[:6].__getitem__)
        says = live.locator("p").all_inner_texts()[1]
        assert says.startswith(f"Query a selects {'aaabbb'[best]}{'₁₂₃'[best % 3]}, ")
        assert live.locator(".viewer-selected").count() == 2
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_a_key_moves_a_slider_and_the_table_follows(page: Page) -> None:
    live, slider = page.locator(".viewer-setting").first, page.get_by_label(LABELS[0])
    before, value = shown(live), float(slider.input_value())
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert float(slider.input_value()) == value + 0.5
    assert page.locator("output").first.inner_text() == slider.input_value()
    assert shown(live) != pytest.approx(before, abs=ROUNDED)
    assert shown(live) != pytest.approx(stored(live), abs=ROUNDED)


def test_equal_logits_select_nothing(page: Page) -> None:
    for label in LABELS[:2]:
        page.get_by_label(label).fill("0")
    says = page.locator(".viewer-setting p").all_inner_texts()
    assert says[:2] == [
        "γ₁/γ₂ is not defined, the critical ratio is 1.00.",
        "Query a selects no single response. Query b selects no single response.",
    ]


def test_without_scripts_every_stored_setting_is_there_to_read(browser: Browser, origin: str) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 900})
    page = context.new_page()
    page.goto(f"{origin}/viewer.html")
    assert not page.locator(".viewer-controls").is_visible()
    for setting in page.locator(".viewer-setting").all():
        assert setting.is_visible()
        assert shown(setting) == pytest.approx(stored(setting), abs=ROUNDED)
        box = setting.locator("table").bounding_box()
        assert box and box["x"] + box["width"] <= 390
    context.close()
