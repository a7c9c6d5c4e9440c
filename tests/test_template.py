"""The chapter that new chapters are copied from: it keeps every rule, alone and inside a copy of the book."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from small_book import CHAPTER, ROOT, TEMPLATE, build, small_book

from icalign.ledger import SECTIONS, Cover, Ledger, Status, read
from tools import hygiene, notebooks

NOTEBOOK = TEMPLATE / "chapter.ipynb"
CLAIM = "mean-at-zero"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    return read(small_book(tmp_path_factory.mktemp("small")))


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """The ledger of a copy of the book, to which CONTRIBUTING's first two commands were applied."""
    if CLAIM in read(ROOT).entries:
        pytest.skip("the book has the template's claim: give it an id of its own")
    root = tmp_path_factory.mktemp("copied")
    shutil.copytree(ROOT / "book", root / "book")
    shutil.copytree(ROOT / "proofs", root / "proofs")
    shutil.copy(NOTEBOOK, root / f"{CHAPTER}.ipynb")
    with (root / "book" / "claims.yml").open("a", encoding="utf-8") as registry:
        registry.write((TEMPLATE / "claims.yml").read_text(encoding="utf-8"))
    return read(root)


def test_the_template_has_no_faults() -> None:
    assert hygiene.faults(NOTEBOOK) == []


def test_its_claim_is_proved_for_all_sizes_and_measured(alone: Ledger) -> None:
    assert alone.violations == []
    (entry,) = alone
    assert (entry.claim.id, entry.status) == (CLAIM, Status.PROVED)
    assert entry.evidence == {"proof": 2, "measurement": 1, "control": 3}


def test_a_copy_of_the_book_takes_it_up(copied: Ledger) -> None:
    book = read(ROOT)
    assert copied.violations == book.violations
    assert copied.counts[Status.PROVED] == book.counts[Status.PROVED] + 1
    assert list(copied.entries) == [*book.entries, CLAIM]
    assert set(copied[CLAIM].covers.values()) == {Cover.PROVED}


def test_it_stands_at_the_end_where_appending_keeps_the_order(alone: Ledger) -> None:
    assert alone[CLAIM].claim.section == max(SECTIONS)


def test_it_has_what_a_chapter_has() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    figures = sum("image/png" in output.get("data", {}) for cell in cells for output in cell.get("outputs", []))
    assert figures == text.count("**What to see.**") == 2
    assert text.count("{dropdown} Solution") == 3
    for words in ("The idea in a picture", "What breaks it", "What to take away", "Exercises"):
        assert f"\n## {words}\n" in text


def test_a_notebook_that_was_downloaded_runs_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "chapter.ipynb"
    shutil.copy(NOTEBOOK, path)
    assert notebooks.execute(path) == ""
    assert hygiene.faults(path) == []


def test_a_number_that_is_changed_makes_the_claim_fail(tmp_path: Path) -> None:
    path = tmp_path / "chapter.ipynb"
    before, after = "A.subs(gamma, 0)).equals(1 / N)", "A.subs(gamma, 1)).equals(1 / N)"
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert text.count(before) == 1
    path.write_text(text.replace(before, after), encoding="utf-8")
    error = notebooks.execute(path).splitlines()[0]
    assert error.startswith(f"{path}, cell ") and "ShownFalse: " in error


@pytest.mark.slow
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    page = build(small_book(tmp_path)) / f"{CHAPTER}.html"
    html = page.read_text(encoding="utf-8")
    assert "proved for all sizes" in html
    assert "find_spec" not in html
