"""Fixtures of the browser tests. Without a browser they skip, unless ``ICALIGN_REQUIRE_BROWSER=1``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from sitecheck import cannot_look, find_browser, launch


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser a module: an open one keeps an event loop running, which other tests must not meet."""
    executable = find_browser() or cannot_look("no Chromium or Chrome is installed (apt-get install chromium)")
    with launch(executable) as running:
        yield running
