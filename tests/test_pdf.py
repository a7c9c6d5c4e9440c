"""The PDF of the book: its order, its links and bookmarks; nothing sticks out, nothing of the machine is in it."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pypdf import PdfReader, PdfWriter
from pypdf.annotations import Link
from pypdf.generic import ArrayObject, NameObject, TextStringObject

from tools import pdf

TOC = {
    "root": "intro",
    "parts": [
        {"caption": "Chapters", "chapters": [{"file": "one"}, {"file": "two", "sections": [{"file": "more"}]}]},
        {"caption": "Reference", "chapters": [{"file": "glossary"}]},
    ],
}
BOOK = [
    pdf.Entry("intro.html", 0),
    pdf.Entry("one.html", 0, "Chapters"),
    pdf.Entry("two.html", 0),
    pdf.Entry("more.html", 1),
    pdf.Entry("glossary.html", 0, "Reference"),
]


def sheets(*links: str, count: int = 2) -> bytes:
    """A PDF as Chromium prints it: links to addresses, or to ``#place`` on the page; ``#here`` is on the last sheet."""
    writer = PdfWriter()
    for _ in range(count):
        page = writer.add_blank_page(width=595, height=842)
        page[NameObject("/Contents")] = writer._add_object(pdf.StreamObject())
    writer.add_named_destination("/here", count - 1)
    for address in links:
        link = writer.add_annotation(page_number=0, annotation=Link(rect=(10, 10, 50, 20), url=address))
        if address.startswith("#"):
            link.pop("/A")
            link[NameObject("/Dest")] = TextStringObject(f"/{address[1:]}")
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


def printed(title: str, *links: str, count: int = 2) -> pdf.Printed:
    return pdf.Printed(sheets(*links, count=count), [("h1", title, "top"), ("h2", f"{title}, here", "here")])


@pytest.fixture
def document() -> pdf.Document:
    """Front matter of one sheet, five pages of two sheets; the first of them has the links."""
    links = ["http://book.invalid/two.html#here", "http://book.invalid/more.html", "#here", "https://arxiv.org/abs/1"]
    out = ["http://book.invalid/prf-prf.html#x", "file:///home/page.html", "http://book.invalid/./two.html#nowhere"]
    pages = {entry.address: printed(entry.address) for entry in BOOK}
    pages["intro.html"] = printed("A book", *links, *out)
    return pdf.Document(BOOK, pages, printed("Contents", count=1))


def destinations(reader: PdfReader, sheet: int) -> Iterator[int | str]:
    """Where the links of a sheet lead: a sheet, or an address."""
    for reference in reader.pages[sheet].get("/Annots", ArrayObject()):
        annotation = reference.get_object()
        if "/Dest" in annotation:
            number = reader.get_page_number(annotation["/Dest"][0].get_object())
            assert number is not None
            yield number
        else:
            yield annotation["/A"]["/URI"]


def saved(document: pdf.Document, path: Path) -> PdfReader:
    document.save(path, {"title": "A book", "author": "Its authors"})
    return PdfReader(path)


def outline(reader: PdfReader) -> list[tuple[int, str, int]]:
    """Depth, text and sheet of every bookmark."""

    def below(items: list[object], depth: int) -> Iterator[tuple[int, str, int]]:
        for item in items:
            if isinstance(item, list):
                yield from below(item, depth + 1)
            else:
                yield depth, str(item.title), reader.get_destination_page_number(item)  # type: ignore[attr-defined]

    return list(below(reader.outline, 0))


def test_pages_come_in_the_order_of_the_table_of_contents() -> None:
    assert pdf.entries(TOC) == BOOK


def test_the_book_is_its_table_of_contents(root: Path) -> None:
    text = (root / "_toc.yml").read_text(encoding="utf-8")
    files = [
        line.partition(":")[2].strip() for line in text.splitlines() if line.lstrip(" -").startswith(("file:", "root:"))
    ]
    assert [entry.address for entry in pdf.entries(yaml.safe_load(text))] == [f"{file}.html" for file in files]


def test_links_between_pages_lead_to_sheets_and_those_to_nowhere_are_gone(
    document: pdf.Document, tmp_path: Path
) -> None:
    reader = saved(document, tmp_path / "book.pdf")
    assert len(reader.pages) == 11
    # sheet 0 is the front; two.html#here, more.html, #here, elsewhere, and two.html where the place is unknown
    assert list(destinations(reader, 1)) == [6, 7, 2, "https://arxiv.org/abs/1", 5]
    data = (tmp_path / "book.pdf").read_bytes()
    assert b"book.invalid" not in data and b"file:" not in data


def test_there_is_a_bookmark_for_every_page_and_section(document: pdf.Document, tmp_path: Path) -> None:
    marks = outline(saved(document, tmp_path / "book.pdf"))
    assert marks[:3] == [(0, "Contents", 0), (0, "A book", 1), (1, "A book, here", 2)]
    assert [(depth, text) for depth, text, _ in marks if "here" not in text][4:] == [
        (1, "more.html"),
        (0, "glossary.html"),
    ]
    assert len(marks) == 1 + 2 * len(BOOK)


def test_sheets_are_numbered_and_the_document_says_what_it_is(document: pdf.Document, tmp_path: Path) -> None:
    reader = saved(document, tmp_path / "book.pdf")
    assert [page.extract_text().strip() for page in reader.pages] == ["", *map(str, range(2, 12))]
    assert reader.metadata and (reader.metadata.title, reader.metadata.author) == ("A book", "Its authors")
    assert reader.page_mode == "/UseOutlines"


def test_a_fixed_date_fixes_the_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    config = {"title": "A <book>", "author": "Its authors", "html": {"extra_footer": "CC BY"}}
    page = pdf.front(config, "<svg></svg>", "")
    assert "1 January 1970" in page and "A &lt;book&gt;" in page


def test_the_contents_name_the_sheet_on_which_a_page_begins() -> None:
    pages = {entry.address: printed(entry.address) for entry in BOOK}
    lines = pdf.contents(BOOK, pages, pdf.first_sheets(BOOK, pages, 2))
    assert '<p><a href="http://book.invalid/two.html">two.html</a><span>7</span></p>' in lines
    assert lines.count("<h3>") == 2 and lines.count('class="below"') == 1


def test_anchors_that_some_page_links_to_are_found(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "a.html").write_text(
        '<a class="x" href="b.html#one">1</a> <a href="#two">2</a>', encoding="utf-8"
    )
    (tmp_path / "book" / "b.html").write_text('<a href="../elsewhere.html#three">3</a>', encoding="utf-8")
    assert pdf.wanted(tmp_path, ["book/a.html", "book/b.html"]) == {"book/a.html": {"two"}, "book/b.html": {"one"}}


def test_without_a_browser_there_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, root: Path
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setattr("sys.argv", ["pdf", "--site", str(tmp_path)])
    assert pdf.main() == 1
    assert capsys.readouterr().err == f"{tmp_path} has no book/intro.html (make book builds the site)\n"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    for entry in pdf.entries(yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))):
        (tmp_path / entry.address).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / entry.address).write_text("", encoding="utf-8")
    assert pdf.main() == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "needs Chromium" in error
