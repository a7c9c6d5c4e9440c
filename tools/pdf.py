"""``make pdf``: the built site as one PDF, in the order of the table of contents.

Chromium prints every page as print.css has it, formulas typeset; pypdf joins them, adds a title page, a table of
contents, page numbers and bookmarks, and lets every link between pages lead to its place in the document. The pages
are handed to the browser from the disk under an invented address: nothing is served, and nothing from elsewhere loads.
"""

import argparse
import html
import io
import os
import posixpath
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

import yaml
from playwright.sync_api import Browser, Error, Page, Route, ViewportSize, sync_playwright
from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    Fit,
    FloatObject,
    IndirectObject,
    NameObject,
    NullObject,
    StreamObject,
    TextStringObject,
)

ORIGIN = "http://book.invalid/"
PAPER: ViewportSize = {"width": 672, "height": 950}  # CSS pixels between the margins of print.css
SITE, TARGET = Path("_build/html"), Path("_build/icalign.pdf")

# The formulas as read out are for the screen: an untagged PDF has no place for them, and they double the time.
SETTLE = """async () => {
  await window.MathJax?.startup?.promise;
  window.unfoldFormulas?.();
  document.querySelectorAll("mjx-assistive-mml").forEach((node) => node.remove());
  await document.fonts.ready;
  await Promise.all([...document.images].map((image) => image.decode()));
}"""
# Chromium leaves out what lies beyond the edge of the paper; what sticks out is noticed before.
WIDE = """() => {
  dispatchEvent(new Event("beforeprint"));
  const limit = document.documentElement.clientWidth + 1;
  const nodes = document.querySelectorAll("article :not(mjx-container *), article mjx-container > mjx-math");
  const stray = [...nodes].find((node) => node.checkVisibility() && node.getBoundingClientRect().right > limit);
  return stray?.textContent ?? "";
}"""
# Chromium keeps the place of an element only if a link on the page leads to it, be it one that nobody sees.
MARK = """(anchors) => {
  const nav = Object.assign(document.createElement("nav"), { hidden: true });
  nav.append(...anchors.map((id) => Object.assign(document.createElement("a"), { href: `#${id}`, textContent: id })));
  document.body.append(nav);
}"""
HEADINGS = """() => [...document.querySelectorAll("article :is(h1, h2)")].map((heading) => {
  const copy = heading.cloneNode(true);
  copy.querySelectorAll(".headerlink, mjx-assistive-mml").forEach((node) => node.remove());
  return [heading.localName, copy.textContent.trim(), heading.id || heading.parentElement.id];
})"""


class Failure(Exception):
    """What the reader of the terminal is told in one line."""


@dataclass(frozen=True)
class Entry:
    """A page of the book: its address in the site, how deep it stands in the table of contents, the part it opens."""

    address: str
    depth: int
    part: str = ""


@dataclass(frozen=True)
class Place:
    """Where a link leads: a sheet of a printed page, and the point that comes to the upper left corner."""

    sheet: int
    left: float = 0
    top: float = 10_000


class Printed:
    """A page of the site on paper.

    Args:
        pdf: what Chromium made of it.
        headings: of levels 1 and 2, in reading order: level, text, anchor.
    """

    def __init__(self, pdf: bytes, headings: Sequence[tuple[str, str, str]]) -> None:
        self.reader = PdfReader(io.BytesIO(pdf))
        self.headings = headings
        sheets = {page.indirect_reference: number for number, page in enumerate(self.reader.pages)}
        self.places = {
            name.removeprefix("/"): Place(sheets[at.raw_get("/Page")], at.left or 0, at.top or 0)
            for name, at in self.reader.named_destinations.items()
        }

    @property
    def title(self) -> str:
        """The heading of the page."""
        return next((text for level, text, _ in self.headings if level == "h1"), "")


def entries(toc: Mapping[str, Any]) -> list[Entry]:
    """The pages of ``_toc.yml`` in reading order."""

    def below(pages: Sequence[Mapping[str, Any]], depth: int, part: str = "") -> Iterator[Entry]:
        for number, page in enumerate(pages):
            yield Entry(f"{page['file']}.html", depth, part if number == 0 else "")
            yield from below(page.get("sections", ()), depth + 1)

    found = [Entry(f"{toc['root']}.html", 0)]
    for part in toc["parts"]:
        found += below(part["chapters"], 0, part.get("caption", ""))
    return found


def wanted(site: Path, pages: Sequence[str]) -> dict[str, set[str]]:
    """The anchors of each page that a link on some page of the book leads to."""
    found: dict[str, set[str]] = {page: set() for page in pages}
    for page in pages:
        text = (site / page).read_text(encoding="utf-8")
        for link in re.findall(r'<a\b[^>]*? href="([^"]*#[^"]+)"', text):
            address, anchor = urldefrag(urljoin(page, html.unescape(link)))
            if address in found:
                found[address].add(unquote(anchor))
    return found


# ─── the browser ─────────────────────────────────────────────────────────────────────────────────


def find_browser() -> str:
    """The path of an installed Chromium or Chrome."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    raise Failure("make pdf needs Chromium or Chrome to print with (on Debian: apt-get install chromium)")


def open_page(browser: Browser, site: Path, missing: list[str]) -> Page:
    """A page of a browser that finds the site under ``ORIGIN`` and nothing else; files it lacks are noted."""

    def serve(route: Route) -> None:
        address = urldefrag(route.request.url)[0].partition("?")[0]
        path = site / unquote(address.removeprefix(ORIGIN))
        if address.startswith(ORIGIN) and path.is_file():
            route.fulfill(path=path)
        else:
            missing.append(address)
            route.abort()

    page = browser.new_page(viewport=PAPER)
    page.route(re.compile("^(?!data:|blob:|about:)"), serve)
    return page


def print_page(page: Page, address: str, anchors: set[str]) -> Printed:
    """Opens a page, waits until it is as it shall be, and prints it."""
    page.emulate_media(media="screen")
    page.goto(ORIGIN + address)
    page.evaluate(SETTLE)
    headings = [(level, text, anchor) for level, text, anchor in page.evaluate(HEADINGS)]
    page.evaluate(MARK, sorted(anchors | {anchor for *_, anchor in headings}))
    page.emulate_media(media="print")
    if wide := page.evaluate(WIDE):
        raise Failure(f"{address} sticks out of the paper: {' '.join(wide.split())[:80]}")
    return Printed(page.pdf(prefer_css_page_size=True, print_background=True), headings)


def print_pages(site: Path, pages: Sequence[str], workers: int = 2) -> dict[str, Printed]:
    """Prints the pages of the site, several at a time."""
    anchors, executable = wanted(site, pages), find_browser()

    def work(share: Sequence[str]) -> dict[str, Printed]:
        missing: list[str] = []
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
            page, made = open_page(browser, site, missing), {}
            for address in share:
                made[address] = print_page(page, address, anchors[address])
                print(f"  {address}: {len(made[address].reader.pages)} sheets", flush=True)
            browser.close()
        if missing:
            raise Failure(f"the site lacks what its pages ask for: {', '.join(sorted(set(missing)))}")
        return made

    printed: dict[str, Printed] = {}
    with ThreadPoolExecutor(workers) as pool:
        for made in pool.map(work, [pages[worker::workers] for worker in range(workers)]):
            printed |= made
    return printed


# ─── title and contents ──────────────────────────────────────────────────────────────────────────

FRONT = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
@page {{ size: A4; margin: 22mm 24mm; }}
body {{ margin: 0; font: 10.5pt/1.4 "DejaVu Sans", sans-serif; color: #1b1f24; }}
.title {{ break-after: page; padding-top: 55mm; }}
.title svg {{ width: 34mm; height: auto; }}
h1 {{ margin: 8mm 0 4mm; font-size: 27pt; font-weight: 500; line-height: 1.2; }}
.title p {{ margin: 0 0 2mm; }}
.title .small {{ margin-top: 12mm; color: #4e5760; font-size: 9pt; }}
h2 {{ margin-top: 0; font-size: 18pt; font-weight: 500; }}
h3 {{ margin: 5mm 0 0.5mm; font-size: 10.5pt; }}
.contents p {{ display: flex; gap: 1em; justify-content: space-between; margin: 0; padding: 0.5mm 0; }}
.contents p.below {{ padding-left: 1.6em; }}
a {{ color: inherit; text-decoration: none; }}
</style></head><body><section class="title">{logo}<h1>{title}</h1><p>{author}</p><p>Version {version}, {date}</p>
<p class="small">{licence}</p>
<p class="small">Folded code (plots, controls, helpers) is left out on paper; the site and the notebooks have it.</p>
</section><section class="contents"><h2>Contents</h2>{lines}</section></body></html>"""


def built() -> datetime:
    """When the document is made; ``SOURCE_DATE_EPOCH`` fixes it."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)


def front(config: Mapping[str, Any], logo: str, lines: str) -> str:
    """The title page and the table of contents, as HTML."""
    about = {
        "title": config["title"],
        "author": config["author"],
        "version": version("icalign"),
        "date": f"{built():%-d %B %Y}",
        "licence": config["html"]["extra_footer"],
    }
    return FRONT.format(logo=logo, lines=lines, **{name: html.escape(text) for name, text in about.items()})


def contents(book: Sequence[Entry], printed: Mapping[str, Printed], starts: Mapping[str, int]) -> str:
    """The lines of the table of contents: title and number of the first sheet."""
    lines = ""
    for entry in book:
        part = f"<h3>{html.escape(entry.part)}</h3>" if entry.part else ""
        title = html.escape(printed[entry.address].title)
        below = ' class="below"' if entry.depth else ""
        number = starts[entry.address] + 1
        lines += f'{part}<p{below}><a href="{ORIGIN}{entry.address}">{title}</a><span>{number}</span></p>'
    return lines


def print_front(config: Mapping[str, Any], logo: str, book: Sequence[Entry], printed: Mapping[str, Printed]) -> Printed:
    """Prints title and contents, again until its own length fits the numbers in it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"])
        page, length = browser.new_page(), 2
        while True:
            starts = first_sheets(book, printed, length)
            page.set_content(front(config, logo, contents(book, printed, starts)))
            made = Printed(page.pdf(prefer_css_page_size=True), [("h1", "Contents", "contents")])
            if len(made.reader.pages) == length:
                browser.close()
                return made
            length = len(made.reader.pages)


def first_sheets(book: Sequence[Entry], printed: Mapping[str, Printed], before: int) -> dict[str, int]:
    """The sheet on which each page begins, counted from 0, after so many sheets."""
    starts = {}
    for entry in book:
        starts[entry.address] = before
        before += len(printed[entry.address].reader.pages)
    return starts


# ─── the document ────────────────────────────────────────────────────────────────────────────────


class Document:
    """The document that grows: sheets, and where each page of the site begins in it."""

    def __init__(self, book: Sequence[Entry], printed: Mapping[str, Printed], opening: Printed) -> None:
        self.printed = printed
        self.starts = first_sheets(book, printed, len(opening.reader.pages))
        self.writer = PdfWriter()
        self.add("", opening)
        for entry in book:
            self.add(entry.address, printed[entry.address])
        self.bookmarks(book, len(opening.reader.pages) - 1)

    def add(self, address: str, printed: Printed) -> None:
        """Adds the sheets of a page of the site; its links wait until all sheets are there."""
        for sheet in printed.reader.pages:
            self.writer.add_page(sheet)

    def destination(self, address: str, anchor: str) -> ArrayObject | None:
        """What a PDF calls a destination, or None for a page that is not in the book."""
        if address not in self.starts:
            return None
        place = self.printed[address].places.get(anchor, Place(0))
        sheet = self.writer.pages[self.starts[address] + place.sheet]
        reference = sheet.indirect_reference
        assert isinstance(reference, IndirectObject)
        at = [FloatObject(place.left), FloatObject(min(place.top, float(sheet.mediabox.top)))]
        return ArrayObject([reference, NameObject("/XYZ"), *at, NullObject()])

    def link(self) -> None:
        """Lets the links between pages lead to places in the document; those to pages outside the book are removed."""
        homes = {start: address for address, start in self.starts.items()}
        home = ""
        for number, sheet in enumerate(self.writer.pages):
            home = homes.get(number, home)
            kept = ArrayObject()
            for reference in sheet.get("/Annots", ArrayObject()):
                if self.lead(reference.get_object(), home):
                    kept.append(reference)
            if "/Annots" in sheet:
                sheet[NameObject("/Annots")] = kept

    def lead(self, annotation: DictionaryObject, home: str) -> bool:
        """Gives a link its destination; whether the link may stay."""
        address = str(annotation.get("/A", DictionaryObject()).get("/URI", ""))
        if "/Dest" in annotation:
            target, anchor = home, str(annotation["/Dest"]).removeprefix("/")
        elif address.startswith(ORIGIN):
            target, anchor = urldefrag(address.removeprefix(ORIGIN))
        else:
            return not address.startswith(("file:", "about:"))
        destination = self.destination(posixpath.normpath(target), unquote(anchor))
        annotation.pop("/A", None)
        if destination is not None:
            annotation[NameObject("/Dest")] = destination
        return destination is not None

    def bookmarks(self, book: Sequence[Entry], contents: int) -> None:
        """A bookmark for the contents, for every page, below the one it belongs to, and for every section."""
        self.writer.add_outline_item(title="Contents", page_number=contents)
        parents: list[Any] = []
        for entry in book:
            printed, start = self.printed[entry.address], self.starts[entry.address]
            parents = parents[: entry.depth]
            parent = parents[-1] if parents else None
            parents.append(self.writer.add_outline_item(title=printed.title, page_number=start, parent=parent))
            for level, text, anchor in printed.headings:
                if level == "h2":
                    place = printed.places.get(anchor, Place(0))
                    fit = Fit.xyz(left=place.left, top=place.top)
                    sheet = start + place.sheet
                    self.writer.add_outline_item(title=text, page_number=sheet, parent=parents[-1], fit=fit)

    def number(self) -> None:
        """A number at the foot of every sheet but the first."""
        digits = self.writer._add_object(
            DictionaryObject(
                {
                    NameObject("/Type"): NameObject("/Font"),
                    NameObject("/Subtype"): NameObject("/Type1"),
                    NameObject("/BaseFont"): NameObject("/Helvetica"),
                }
            )
        )
        for number, sheet in enumerate(self.writer.pages, 1):
            if number > 1:
                self.write(sheet, str(number), digits)

    def write(self, sheet: PageObject, text: str, font: IndirectObject) -> None:
        """Writes a line in the middle of the foot of a sheet; what the sheet has keeps its own coordinates."""
        left = float(sheet.mediabox.width) / 2 - 0.556 * 9 * len(text) / 2  # a digit is 0.556 wide
        before, after = StreamObject(), StreamObject()
        before.set_data(b"q\n")
        after.set_data(f"\nQ q BT /Digits 9 Tf {left:.2f} 26 Td ({text}) Tj ET Q".encode())
        found = sheet["/Contents"]
        streams = list(found) if isinstance(found, ArrayObject) else [sheet.raw_get("/Contents")]
        ends = [self.writer._add_object(stream) for stream in (before, after)]
        sheet[NameObject("/Contents")] = ArrayObject([ends[0], *streams, ends[1]])
        resources = sheet["/Resources"].get_object()
        assert isinstance(resources, DictionaryObject)
        fonts = resources.setdefault(NameObject("/Font"), DictionaryObject()).get_object()
        fonts[NameObject("/Digits")] = font

    def save(self, path: Path, config: Mapping[str, Any]) -> None:
        """Writes the document, with its title for the window and its bookmarks in sight."""
        self.link()
        self.number()
        self.writer.add_metadata(
            {
                "/Title": config["title"],
                "/Author": config["author"],
                "/Subject": f"Version {version('icalign')}",
                "/Creator": "icalign, make pdf",
                "/CreationDate": f"D:{built():%Y%m%d%H%M%SZ}",
                "/ModDate": f"D:{built():%Y%m%d%H%M%SZ}",
            }
        )
        self.writer.page_mode = "/UseOutlines"
        self.writer.root_object[NameObject("/Lang")] = TextStringObject(config.get("language", "en"))
        path.parent.mkdir(parents=True, exist_ok=True)
        self.writer.write(path)


def make(site: Path, target: Path, only: Sequence[str] = ()) -> Document:
    """Makes the PDF of the book, or of those of its pages whose address has one of these words."""
    config, toc = (yaml.safe_load(Path(name).read_text(encoding="utf-8")) for name in ("_config.yml", "_toc.yml"))
    book = [entry for entry in entries(toc) if not only or any(word in entry.address for word in only)]
    if absent := [entry.address for entry in book if not (site / entry.address).is_file()]:
        raise Failure(f"{site} has no {absent[0]} (make book builds the site)")
    printed = print_pages(site, [entry.address for entry in book])
    logo = Path(config["logo"]).read_text(encoding="utf-8")
    document = Document(book, printed, print_front(config, logo, book, printed))
    document.save(target, config)
    return document


def main() -> int:
    """Make the PDF and say where it is; one line when that cannot be."""
    parser = argparse.ArgumentParser(prog="python -m tools.pdf", description="Print the built site as one PDF.")
    parser.add_argument("only", nargs="*", help="part of a page's address, such as ledger (default: every page)")
    parser.add_argument("--site", type=Path, default=SITE, help="default: %(default)s")
    parser.add_argument("--target", type=Path, default=TARGET, help="default: %(default)s")
    arguments = parser.parse_args()
    try:
        document = make(arguments.site, arguments.target, arguments.only)
    except (Failure, Error) as failure:
        print(str(failure).partition("\n")[0], file=sys.stderr)
        return 1
    size = arguments.target.stat().st_size / 1e6
    print(f"{arguments.target}: {len(document.writer.pages)} sheets, {size:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
