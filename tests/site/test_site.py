"""The built site, as a reader's browser shows it: every page, wide and narrow, light and dark, offline."""

from __future__ import annotations

import ast
import json
import re
from html import unescape
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser, Page
from sitecheck import KINDS, Survey, open_page, serve, survey

ROOT = Path(__file__).parents[2]
CLAIMS = [claim["id"] for claim in yaml.safe_load((ROOT / "book" / "claims.yml").read_text(encoding="utf-8"))]

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def seen(site: Path) -> Survey:
    return survey(site, claims=CLAIMS)


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_has_a_fault_of_kind(kind: str, seen: Survey) -> None:
    faults = seen.of_kind(kind)
    assert not faults, "\n" + "\n".join(map(str, faults))


def test_every_chapter_of_the_table_of_contents_was_opened(seen: Survey) -> None:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    chapters = [chapter for part in toc["parts"] for chapter in part["chapters"]]
    pages = chapters + [page for chapter in chapters for page in chapter.get("sections", [])]
    files = [toc["root"], *(page["file"] for page in pages)]
    assert {f"{file}.html" for file in files} <= set(seen.text)


def test_a_known_statement_can_be_read(seen: Survey) -> None:
    statement = seen.statements["selection-bound"]
    for words in ("equality", "losers"):
        assert words in statement


def glued_values(notebook: Path) -> dict[str, str]:
    """The numbers that the prose of a notebook quotes by name, as its cells computed them."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    prose = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    quoted = set(re.findall(r"\{glue(?::text)?\}`([^`:]+)`", prose))
    values: dict[str, str] = {}
    for output in (output for cell in cells for output in cell.get("outputs", [])):
        glue = output.get("metadata", {}).get("scrapbook", {})
        if (name := glue.get("name")) in quoted:
            value = "".join(output["data"][f"{glue.get('mime_prefix', '')}text/plain"])
            values[name] = ast.literal_eval(value) if value[0] in "'\"" else value
    assert values.keys() == quoted, f"{notebook.name}: quoted but never computed: {quoted - values.keys()}"
    return values


@pytest.mark.parametrize("chapter", ["03-selection"])
def test_the_numbers_in_the_prose_are_those_the_cells_computed(chapter: str, seen: Survey) -> None:
    values = glued_values(ROOT / "book" / f"{chapter}.ipynb")
    assert values
    for name, value in values.items():
        assert value in seen.text[f"book/{chapter}.html"], name


def test_the_front_door_leads_to_the_introduction(browser: Browser, site: Path) -> None:
    with serve(site) as origin, open_page(browser, origin, 1280, []) as page:
        page.goto(f"{origin}/index.html")
        page.wait_for_url(f"{origin}/book/intro.html", timeout=5000)


def test_the_search_finds_a_chapter(browser: Browser, site: Path) -> None:
    with serve(site) as origin, open_page(browser, origin, 1280, []) as page:
        page.goto(f"{origin}/search.html?q=winner")
        page.wait_for_selector("#search-results a[href*='03-selection']", timeout=5000)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(
    ("words", "page_found", "anchor"),
    [
        ("selection-bound", "book/03-selection.html", "selection-bound"),
        ("selection-bound", "book/ledger.html", "ledger-selection-bound"),
        (CLAIMS[-1], "book/ledger.html", f"ledger-{CLAIMS[-1]}"),
        ("inverse temperature", "book/glossary.html", "term-inverse-temperature"),
    ],
)
def test_the_search_finds_claims_and_terms(
    width: int, words: str, page_found: str, anchor: str, browser: Browser, site: Path
) -> None:
    with serve(site) as origin, open_page(browser, origin, width, []) as page:
        page.goto(f"{origin}/search.html?q={words}")
        found = page.locator(f"#search-results a[href*='{page_found}'][href$='#{anchor}']").first
        found.wait_for(timeout=20_000)
        page.locator("#search-results .context").first.wait_for(timeout=20_000)
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width
        found.click(timeout=20_000)
        page.wait_for_url(f"{origin}/{page_found}*#{anchor}", timeout=20_000, wait_until="commit")
        page.locator(f"[id='{anchor}']").wait_for(state="attached", timeout=20_000)


def test_every_claim_and_every_term_is_in_the_index(seen: Survey, site: Path) -> None:
    script = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(script.removeprefix("Search.setIndex(").removesuffix(")"))
    listed = index["indexentries"].keys()
    glossary = (site / "book" / "glossary.html").read_text(encoding="utf-8")
    terms = {unescape(term).casefold() for term in re.findall(r'<dt id="term-[^"]+">([^<]+)<', glossary)}
    assert len(terms) >= 30 and len(terms) == sum(id.startswith("term-") for id in seen.ids["book/glossary.html"])
    assert {*CLAIMS, *terms} <= listed
    for entry in {*CLAIMS, *terms}:
        assert entry in seen.text["genindex.html"].casefold()


def test_every_name_in_the_crosswalk_leads_to_its_documentation(browser: Browser, site: Path) -> None:
    with serve(site) as origin, open_page(browser, origin, 1280, []) as page:
        page.goto(f"{origin}/book/crosswalk.html")
        names = page.locator("table.crosswalk td:last-child code[title]")
        linked = page.locator("table.crosswalk td:last-child a[href^='api/'] code[title]")
        assert linked.count() == names.count() > 100
        linked.first.click()
        page.wait_for_url(f"{origin}/book/api/*.html#*", timeout=20_000, wait_until="commit")


def test_a_chapter_and_the_reference_lead_to_each_other(browser: Browser, site: Path) -> None:
    with serve(site) as origin, open_page(browser, origin, 1280, []) as page:
        page.goto(f"{origin}/book/api/constructions.html")
        entry = page.locator("dl.py:has(> [id='icalign.constructions.selection.Selection'])")
        assert entry.locator("dt").first.inner_text().startswith("class icalign.constructions.selection.Selection(")
        assert entry.locator("a[href='../03-selection.html#selection-logits']").count() == 1
        entry.locator(".api-chapters a[href='../03-selection.html']").first.click()
        page.get_by_role("link", name="Selection", exact=True).click(timeout=20_000)
        target = f"{origin}/book/api/*#icalign.constructions.selection.Selection"
        page.wait_for_url(target, timeout=20_000, wait_until="commit")


def test_every_chapter_ends_with_what_its_code_uses(seen: Survey) -> None:
    for path in (ROOT / "book").glob("*.ipynb"):
        if (page := f"book/{path.stem}.html") in seen.text:
            assert "In the code of this page" in seen.text[page]


def test_a_finding_leads_to_its_counterexample(browser: Browser, site: Path) -> None:
    with serve(site) as origin, open_page(browser, origin, 1280, []) as page:
        page.goto(f"{origin}/book/findings.html")
        links = page.locator("#finding-readout-sign a[href*='#cell-']")
        address, anchor = str(links.first.get_attribute("href")).split("#")
        assert address == "02-gradient-step.html"
        links.first.click()
        page.locator(f"#{anchor} .evidence.exhibit").wait_for(timeout=20_000)


def test_a_statement_of_the_paper_is_judged_once(seen: Survey) -> None:
    text = seen.text["book/findings.html"]
    for words in ("The paper says", "the alignment objective is non-convex", "arXiv, version 2", "Open an issue"):
        assert text.count(words) == 1


def test_the_build_says_what_it_was_made_with(seen: Survey) -> None:
    text = seen.text["book/status.html"]
    assert re.search(r"Built on \d+ \w+ \d{4}, from version \d+\.\d+\.\d+ of icalign, with Python 3\.", text)
    for name in re.findall(r"(?m)^([\w.-]+)==", (ROOT / "requirements.txt").read_text(encoding="utf-8")):
        assert name in text


FOLDED = r'<div class="evidence-statement mathjax_ignore [^"]*">\\\[(.*?)\\\]</div>'


def not_understood(page: Page, formulas: list[str]) -> list[str]:
    """The TeX that MathJax does not understand."""
    found = {tex: page.evaluate("(tex) => MathJax.tex2mml(tex)", tex) for tex in formulas}
    return [tex for tex, mathml in found.items() if "<merror" in mathml or 'mathcolor="red"' in mathml]


def test_long_formulas_are_typeset_when_they_are_unfolded(browser: Browser, site: Path) -> None:
    with serve(site) as origin, open_page(browser, origin, 1280, []) as page:
        page.goto(f"{origin}/book/06-theorem.html")
        page.evaluate("MathJax.startup.promise")
        formulas = page.locator(".evidence-long mjx-container")
        assert page.locator(".evidence-long").count() > 9 and not formulas.count()
        page.locator(".evidence-long > summary").first.click()
        formulas.first.wait_for(timeout=20_000)
        assert formulas.count() == 1
        assert not_understood(page, [r"\frac{1}{2}", r"\frac{1}{", r"\nothing"]) == [r"\frac{1}{", r"\nothing"]
        for path in (site / "book").glob("*.html"):  # the survey does not see what is folded
            found = re.findall(FOLDED, text := path.read_text(encoding="utf-8"), re.DOTALL)
            assert len(found) == text.count('class="evidence-long"'), path.name
            assert not not_understood(page, [unescape(tex) for tex in found]), path.name


def shown(page: Page) -> int:
    """Which step of the stepper is on the screen; there must be one."""
    visible = [step.is_visible() for step in page.locator(".stepper-step").all()]
    assert visible.count(True) == 1
    return visible.index(True)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_stepper_goes_through_the_blocks(width: int, browser: Browser, site: Path) -> None:
    with serve(site) as origin, open_page(browser, origin, width, []) as page:
        page.goto(f"{origin}/book/06-theorem.html")
        first, back, onward = page.locator(".stepper-controls button").all()
        assert shown(page) == 0 and back.is_disabled()
        onward.click()
        page.keyboard.press("ArrowRight")
        assert shown(page) == 2 and page.locator(".stepper-controls output").inner_text() == "step 2 of 6"
        back.click()
        assert shown(page) == 1
        while onward.is_enabled():
            onward.click()
        assert shown(page) == 6
        first.click()
        assert shown(page) == 0


def test_without_scripts_the_stepper_shows_all_steps(browser: Browser, site: Path) -> None:
    with serve(site) as origin:
        page = browser.new_context(java_script_enabled=False).new_page()
        page.goto(f"{origin}/book/06-theorem.html")
        assert all(step.is_visible() for step in page.locator(".stepper-step").all())
        assert not page.locator(".stepper-controls").is_visible()
        page.context.close()
