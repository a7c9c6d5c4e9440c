"""Opens every page of a built site in a real browser, offline, and lists what is wrong with it.

A *fault* is one thing a reader would stumble over. ``faults.js`` looks at the page that is open; this module opens
the pages at each width and colour scheme, listens to the browser, and checks the links between pages.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import Any, Literal, NoReturn
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

Scheme = Literal["light", "dark"]
Part = Literal["all", "contrast", "all but contrast"]  # of the rules of axe-core, see axe.js

WIDTHS = (1280, 390)
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
# fmt: off
KINDS = (
    "outgoing", "request", "console", "error",              # what the browser reports
    "theme", "mathjax", "unrendered", "badge", "overflow",  # what faults.js sees
    "alt", "evidence", "contrast", "id",
    "axe",                                                  # what axe-core sees
    "link", "anchor",                                       # what is wrong between pages
)
# fmt: on
LOOK = (Path(__file__).parent / "faults.js").read_text(encoding="utf-8")
REVIEW = (Path(__file__).parent / "axe.js").read_text(encoding="utf-8")
AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Fault:
    """One thing wrong with one page, and the view in which it was first seen."""

    kind: str
    page: str
    detail: str
    view: str = field(compare=False)

    def __str__(self) -> str:
        return f"{self.page} ({self.view}) {self.kind}: {self.detail}"


@dataclass
class Survey:
    """What was found: each fault once, the text of each page, and the text of each claim's statement."""

    faults: dict[Fault, None] = field(default_factory=dict)
    ids: dict[str, set[str]] = field(default_factory=dict)
    links: dict[str, set[str]] = field(default_factory=dict)
    statements: dict[str, str] = field(default_factory=dict)
    text: dict[str, str] = field(default_factory=dict)

    def add(self, fault: Fault) -> None:
        """Keeps the fault, unless another view has shown it already."""
        self.faults.setdefault(fault)

    def __ior__(self, other: Survey) -> Survey:
        for fault in other.faults:
            self.add(fault)
        for mine, theirs in ((self.ids, other.ids), (self.links, other.links)):
            for page, names in theirs.items():
                mine[page] = mine.get(page, set()) | names
        self.statements |= other.statements
        self.text |= other.text
        return self

    def of_kind(self, kind: str) -> list[Fault]:
        """The faults of one kind, in the order in which they were seen."""
        return [fault for fault in self.faults if fault.kind == kind]


def find_browser() -> str | None:
    """The path of an installed Chromium or Chrome, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "/usr/bin/chromium")
    return next(filter(None, map(shutil.which, names)), None)


def cannot_look(reason: str) -> NoReturn:
    """Skips with the reason; fails where looking is a must (``ICALIGN_REQUIRE_BROWSER=1``, as in CI)."""
    if os.environ.get("ICALIGN_REQUIRE_BROWSER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def launch(executable: str) -> Iterator[Browser]:
    """A headless browser that finds no host but this machine."""
    quiet = "disable-gpu disable-quic no-first-run disable-background-networking disable-component-update disable-sync"
    arguments = ["--headless", "--no-sandbox", *(f"--{flag}" for flag in quiet.split())]
    arguments.append("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """A test run has no use for an access log."""


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serves the folder on a free local port; yields the origin, ``http://127.0.0.1:port``."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def pages_of(folder: Path) -> list[str]:
    """Every page a reader can open; assets and pages that only redirect are none."""
    paths = [path for path in sorted(folder.rglob("*.html")) if folder / "_static" not in path.parents]
    leads_on = re.compile(r'http-equiv="refresh"', re.IGNORECASE)
    return [path.relative_to(folder).as_posix() for path in paths if not leads_on.search(path.read_text("utf-8"))]


@contextmanager
def open_page(browser: Browser, origin: str, width: int, seen: list[tuple[str, str]]) -> Iterator[Page]:
    """A page that can reach the origin only; what the browser complains about is appended to ``seen``."""
    outside = re.compile(rf"^(?!{re.escape(origin)}/|data:|blob:|about:)")

    def note(kind: str, detail: str, when: object = True) -> None:
        if when:
            seen.append((kind, detail))

    context = browser.new_context(viewport={"width": width, "height": 900})
    context.on("request", lambda it: note("outgoing", it.url, outside.match(it.url)))
    context.on("requestfailed", lambda it: note("request", f"{it.url} {it.failure}", not outside.match(it.url)))
    context.on("response", lambda it: note("request", f"{it.url} {it.status}", it.status >= 400))
    context.on("console", lambda it: note("console", it.text, it.type in ("error", "warning")))
    context.on("weberror", lambda it: note("error", str(it.error)))
    page = context.new_page()
    page.on("websocket", lambda it: note("outgoing", it.url))
    try:
        yield page
    finally:
        context.close()


def review(page: Page, parts: dict[Scheme, Part]) -> Iterator[tuple[str, Scheme]]:
    """What axe-core finds in the open page, with the scheme: in each scheme the part of its rules that is asked for."""
    page.evaluate(AXE)
    for scheme, part in parts.items():
        page.emulate_media(color_scheme=scheme)
        yield from ((detail, scheme) for detail in page.evaluate(REVIEW, part))


def asked(path: str, pages: Sequence[str], width: int, schemes: Sequence[Scheme]) -> dict[Scheme, Part]:
    """What axe-core is asked about a page in each scheme, with nothing asked twice that has one answer.

    The pages of proofs are made alike: it sees the first. Colours do not change with the width: contrast is judged on
    wide pages, and narrow on the first one only, for the parts of the theme that are seen on narrow pages alone.
    """
    first, second = schemes
    if path.startswith("proofs/") and path != next(page for page in pages if page.startswith("proofs/")):
        return {}
    if width == WIDTHS[0] or path == pages[0]:
        return {first: "all", second: "contrast"}
    return {first: "all but contrast"}


def survey(folder: Path, claims: list[str] | None = None) -> Survey:
    """Opens every page of the folder: loaded wide in light and narrow in dark, then seen in the other scheme too.

    The pages of proofs are made alike: the other scheme is for the first of them.
    """
    executable = find_browser() or cannot_look("no Chromium or Chrome is installed (apt-get install chromium)")
    found = Survey()
    with ThreadPoolExecutor(len(WIDTHS)) as pool:  # a browser a width: the two share nothing
        look = partial(_look, executable, folder, claims or [])
        for seen in pool.map(look, WIDTHS, (SCHEMES, SCHEMES[::-1])):
            found |= seen
    _follow_links(folder, found)
    return found


def _look(executable: str, folder: Path, claims: list[str], width: int, schemes: Sequence[Scheme]) -> Survey:
    """What one width shows: each page loaded in the first scheme, then seen in the second too."""
    found, seen = Survey(), list[tuple[str, str]]()
    pages = pages_of(folder)
    with launch(executable) as browser, serve(folder) as origin, open_page(browser, origin, width, seen) as page:
        for path in pages:
            page.emulate_media(color_scheme=schemes[0])
            page.goto(f"{origin}/{path}")
            looks, parts = [], asked(path, pages, width, schemes[::-1])
            for scheme in schemes if parts else schemes[:1]:  # what is made like another page has its colours
                page.emulate_media(color_scheme=scheme)
                looks.append(page.evaluate(LOOK, {"claims": claims, "scheme": scheme, "again": bool(looks)}))
                for kind, detail in looks[-1]["faults"]:
                    found.add(Fault(kind, path, detail, f"{width} px, {scheme}"))
            look = looks[0]
            for detail, scheme in review(page, parts) if parts else ():  # last: it thins the page out
                found.add(Fault("axe", path, detail, f"{width} px, {scheme}"))
            page.goto("about:blank")  # what the browser has to say about the page comes before this is done
            for kind, detail in seen:
                found.add(Fault(kind, path, detail.replace(origin, ""), f"{width} px"))
            seen.clear()
            found.ids[path] = set(look["ids"])
            found.links[path] = {link.removeprefix(f"{origin}/") for link in look["links"]}
            found.text[path] = look["text"]
            found.statements |= look["statements"]
    return found


def _follow_links(folder: Path, found: Survey) -> None:
    """Each link within the site leads to a file, and its fragment to an element of that page."""
    for page, links in found.links.items():
        for link in sorted(links):
            if (scheme := urlsplit(link).scheme) in ("http", "https", "mailto", "data"):
                continue
            address, fragment = urldefrag(link)
            path = unquote(address.partition("?")[0])
            target = folder / path / ("index.html" if (folder / path).is_dir() else "")
            if scheme or not target.is_file():
                found.add(Fault("link", page, link, "any view"))
            elif fragment and path in found.ids and unquote(fragment) not in found.ids[path]:
                found.add(Fault("anchor", page, link, "any view"))
