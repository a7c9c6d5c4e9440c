"""Fixtures of the browser tests. Without a browser they skip, unless ``ICALIGN_REQUIRE_BROWSER=1``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from sitecheck import cannot_look, find_browser, launch

ROOT = Path(__file__).parents[2]
SITE = ROOT / "_build" / "html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser a module: an open one keeps an event loop running, which other tests must not meet."""
    executable = find_browser() or cannot_look("no Chromium or Chrome is installed (apt-get install chromium)")
    with launch(executable) as running:
        yield running


@pytest.fixture(scope="module")
def site() -> Path:
    """The built site; one that is missing or older than its sources says nothing about the book."""
    kinds = {".ipynb", ".md", ".yml", ".bib", ".css", ".js", ".py"}
    sources = [*ROOT.glob("_*.yml"), *(path for path in (ROOT / "book").rglob("*") if path.suffix in kinds)]
    index = SITE / "searchindex.js"  # the last file that a build writes
    if not index.is_file():
        cannot_look("the site is not built (make book)")
    if index.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        cannot_look("the site is older than its sources (make book)")
    return SITE
