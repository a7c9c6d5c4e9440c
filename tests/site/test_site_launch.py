"""Links that take a chapter elsewhere: the notebook to download always, the others only where an address is known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from playwright.sync_api import Browser, Page
from sitecheck import open_page, pages_of, serve, survey
from small_book import CHAPTER, build, small_book

from tools import launch

ROOT = Path(__file__).parents[2]
ADDRESS = "https://github.com/example/icalign"
ELSEWHERE = ("//colab.research.google.com", "//mybinder.org", "//github.com", "issues/new")

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def addressed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site whose repository has an address."""
    return build(small_book(tmp_path_factory.mktemp("addressed"), ADDRESS))


@pytest.fixture(params=[1280, 390])
def page(request: pytest.FixtureRequest, browser: Browser, addressed: Path) -> Iterator[Page]:
    """The chapter of that site; nothing is fetched from elsewhere."""
    seen: list[tuple[str, str]] = []
    with serve(addressed) as origin, open_page(browser, origin, request.param, seen) as page:
        page.goto(f"{origin}/{CHAPTER}.html")
        yield page
    assert not seen


def links(page: Page, menu: str) -> dict[str, str]:
    """What a menu of the page offers once it is opened: text and address."""
    page.get_by_role("button", name=menu).click()
    items = page.locator(".dropdown-menu.show a")
    items.first.wait_for()
    return {item.inner_text().strip(): str(item.get_attribute("href")) for item in items.all()}


def test_a_chapter_opens_in_colab_and_binder(page: Page) -> None:
    assert links(page, "Launch interactive content") == {
        "Colab": f"https://colab.research.google.com/github/example/icalign/blob/main/{CHAPTER}.ipynb",
        "Binder": f"https://mybinder.org/v2/gh/example/icalign/main?urlpath=lab/tree/{CHAPTER}.ipynb",
    }


def test_a_page_leads_to_the_repository_and_to_a_new_issue(page: Page) -> None:
    found = links(page, "Source repositories")
    assert found.keys() == {"Repository", "Open issue"}
    assert found["Repository"] == ADDRESS
    assert unquote(found["Open issue"]).startswith(f"{ADDRESS}/issues/new?title=Issue on page /{CHAPTER}.html&")


def test_only_notebooks_open_elsewhere(browser: Browser, addressed: Path) -> None:
    with serve(addressed) as origin, open_page(browser, origin, 1280, []) as page:
        page.goto(f"{origin}/book/ledger.html")
        assert page.get_by_role("button", name="Source repositories").count() == 1
        assert page.get_by_role("button", name="Launch interactive content").count() == 0


def test_with_its_links_the_site_has_no_faults(addressed: Path) -> None:
    faults = survey(addressed).faults
    assert not faults, "\n" + "\n".join(map(str, faults))


@pytest.mark.skipif(bool(launch.repository()[0]), reason="the repository has an address")
def test_without_an_address_no_page_leads_there(site: Path) -> None:
    for path in pages_of(site):
        html = (site / path).read_text(encoding="utf-8")
        assert not [words for words in (*ELSEWHERE, "Launch interactive content") if words in html], path


@pytest.mark.skipif(not launch.repository()[0], reason="the repository has no address")
def test_with_an_address_every_chapter_opens_elsewhere(site: Path) -> None:
    for path in pages_of(site):
        html = (site / path).read_text(encoding="utf-8")
        chapter = (ROOT / path).with_suffix(".ipynb").is_file()
        assert ("Launch interactive content" in html) == chapter, path
        assert launch.repository()[0] in html, path


CHAPTERS = sorted(path.stem for path in (ROOT / "book").glob("*.ipynb"))


@pytest.mark.parametrize("width", [1280, 390])
def test_a_chapter_downloads_as_the_notebook_that_was_checked(width: int, browser: Browser, site: Path) -> None:
    with serve(site) as origin, open_page(browser, origin, width, []) as page:
        page.goto(f"{origin}/book/03-selection.html")
        page.get_by_role("button", name="Download this page").click()
        with page.expect_download() as download:
            page.locator(".dropdown-menu.show a", has_text=".ipynb").click()
        assert download.value.suggested_filename == "03-selection.ipynb"
        assert Path(download.value.path()).read_bytes() == (ROOT / "book" / "03-selection.ipynb").read_bytes()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_notebook_is_there_to_download(chapter: str, site: Path) -> None:
    page = site / "book" / f"{chapter}.html"
    if not page.is_file():
        pytest.skip("not in the table of contents yet")
    address = f"../_sources/book/{chapter}.ipynb"
    assert f'href="{address}"' in page.read_text(encoding="utf-8")
    assert (page.parent / address).read_bytes() == (ROOT / "book" / f"{chapter}.ipynb").read_bytes()


def test_the_set_up_cell_is_not_on_the_page(site: Path) -> None:
    for chapter in CHAPTERS:
        page = site / "book" / f"{chapter}.html"
        assert not page.is_file() or "find_spec" not in page.read_text(encoding="utf-8")
